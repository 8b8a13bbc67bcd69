// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   io::detail::zip_directory(from).members   the members of a zip file and their positions, by name
//
// Reads every archive that Python's zipfile opens: with a comment or other bytes after the end, with a program in
// front, streamed, with 64-bit numbers (zip64) wherever the writer put them. An error in one member makes only that
// member unreadable. Every number is checked against the size of the file before it is used.
// Source: PKWARE's APPNOTE.TXT 6.3, sections 4.3 and 4.5.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/crc.hpp>

#include <attune/io/bytes.hpp>

namespace attune::io {

/// Fills the second span from a raw deflate stream. False if the stream is damaged or holds a different number of
/// bytes.
using inflate_function = bool (*)(std::span<unsigned char const>, std::span<unsigned char>);

namespace detail {

inline std::uint32_t crc32(std::span<unsigned char const> bytes) {
  boost::crc_32_type sum;
  sum.process_bytes(bytes.data(), bytes.size());
  return sum.checksum();
}

/// A file inside a zip file, as the directory describes it.
struct zip_member {
  std::uint64_t packed = 0, size = 0, header = 0;
  std::uint64_t end = 0;  ///< the member's bytes end before this: another header, or the directory, starts here
  std::uint32_t checksum = 0;
  unsigned method = 0;
  bool encrypted = false, lacks_zip64 = false;
};

/// The directory of a zip file, by name. If a name occurs twice, the last one counts.
class zip_directory {
 public:
  std::map<std::string, zip_member> members;

  explicit zip_directory(byte_source& from) : from_(from) {
    find_end();
    auto const all = from_.read(begin_, size_, "directory");
    for (std::uint64_t at = 0; at < all.size();) at = read_entry(all, at);
    for (auto& [name, m] : members) {
      auto const next = headers_.upper_bound(m.header);
      m.end = next == headers_.end() ? begin_ : *next;
    }
  }

 private:
  static constexpr std::uint64_t in_zip64_ = 0xffffffff;

  [[noreturn]] void fail(std::string const& part, std::string const& found, std::string const& expected) const {
    from_.fail(part, found, expected);
  }

  /// Finds the end record and the zip64 end record, which takes precedence if present. The directory must end where the
  /// records begin. If its stated position differs, all positions are shifted by the difference, because something was
  /// put in front of the archive.
  void find_end() {
    constexpr std::uint64_t record = 22, comment = 65535;
    if (from_.size() < record) fail("", text(from_.size(), " bytes"), "at least 22, those of a zip file");
    std::uint64_t const tail = (std::min)(from_.size(), record + comment), tail_begin = from_.size() - tail;
    auto const bytes = from_.read(tail_begin, tail, "end of directory");
    std::uint64_t const none = tail;
    std::uint64_t best = none, last = none;  // the comment reaches the end of the file; else the last candidate
    for (std::uint64_t at = tail - record + 1; at-- > 0 && best == none;) {
      if (std::memcmp(&bytes[at], "PK\5\6", 4) != 0) continue;
      if (last == none) last = at;
      if (little_endian<2>(&bytes[at + 20]) == tail - at - record) best = at;
    }
    std::uint64_t const at = best != none ? best : last;
    if (at == none) fail("end of directory", "no signature", "'PK\\x05\\x06' near the end of a zip file");
    unsigned char const* e = &bytes[at];
    size_ = little_endian<4>(e + 12);
    begin_ = little_endian<4>(e + 16);
    std::uint64_t end = tail_begin + at;
    if (end >= 20) {
      auto const locator = from_.read(end - 20, 20, "zip64 locator");
      if (std::memcmp(locator.data(), "PK\6\7", 4) == 0) {
        if (little_endian<4>(&locator[4]) != 0 || little_endian<4>(&locator[16]) > 1)
          fail("zip64 locator", "several disks", "one");
        read_zip64_end(end - 20, little_endian<8>(&locator[8]));
        end = zip64_;
      }
    }
    if (size_ > end)
      fail("end of directory", text("a directory of ", size_, " bytes"),
           text("at most ", end, ", those in front of it"));
    shift_ = end - size_ - begin_;  // modulo 2^64: a part cut off in front is added back
    begin_ = end - size_;
  }
  /// The record is at the position that the locator gives or, if something is in front of the archive, right before the
  /// locator.
  void read_zip64_end(std::uint64_t locator, std::uint64_t at) {
    constexpr std::uint64_t record = 56;
    auto const is_one = [&](std::uint64_t place) {
      return place <= locator && locator - place >= record &&
             std::memcmp(from_.read(place, 4, "zip64 end of directory").data(), "PK\6\6", 4) == 0;
    };
    if (!is_one(at) && locator >= record) at = locator - record;
    if (!is_one(at)) fail("zip64 end of directory", "no signature", "'PK\\x06\\x06'");
    auto const r = from_.read(at, record, "zip64 end of directory");
    size_ = little_endian<8>(&r[40]);
    begin_ = little_endian<8>(&r[48]);
    zip64_ = at;
  }

  std::uint64_t read_entry(std::vector<unsigned char> const& all, std::uint64_t at) {
    if (all.size() - at < 46) fail("directory", "an entry cut short", "46 bytes");
    unsigned char const* e = &all[at];
    if (std::memcmp(e, "PK\1\2", 4) != 0) fail("directory", "an entry without a signature", "'PK\\x01\\x02'");
    std::uint64_t const name_size = little_endian<2>(e + 28), extra = little_endian<2>(e + 30),
                        comment = little_endian<2>(e + 32);
    if (all.size() - at - 46 < name_size + extra + comment)
      fail("directory", "an entry cut short", "its name and its extras");
    std::string const name(e + 46, e + 46 + name_size);
    zip_member m;
    m.encrypted = (little_endian<2>(e + 8) & 1) != 0;
    m.method = unsigned(little_endian<2>(e + 10));
    m.checksum = std::uint32_t(little_endian<4>(e + 16));
    m.packed = little_endian<4>(e + 20);
    m.size = little_endian<4>(e + 24);
    m.header = little_endian<4>(e + 42);
    read_zip64(m, {e + 46 + name_size, e + 46 + name_size + extra}, "member " + printable(name));
    m.header += shift_;
    headers_.insert(m.header);
    members[name] = m;
    return at + 46 + name_size + extra + comment;
  }

  /// Numbers too large for 32 bits are in an extra field, in this order. Each is present only if its 32-bit field says
  /// so.
  void read_zip64(zip_member& m, std::span<unsigned char const> extra, std::string const& part) const {
    bool wanted = m.size == in_zip64_ || m.packed == in_zip64_ || m.header == in_zip64_;
    while (extra.size() >= 4) {
      std::uint64_t const id = little_endian<2>(extra.data()), size = little_endian<2>(extra.data() + 2);
      if (size > extra.size() - 4) fail(part, "an extra field cut short", text(size, " bytes"));
      if (id == 1 && std::exchange(wanted, false)) {
        std::uint64_t used = 0;
        for (std::uint64_t* x : {&m.size, &m.packed, &m.header})
          if (*x == in_zip64_) {
            if (size - used < 8) fail(part, text("a zip64 field of ", size, " bytes"), "8 for each large number");
            *x = little_endian<8>(extra.data() + 4 + used);
            used += 8;
          }
      }
      extra = extra.subspan(4 + size);
    }
    m.lacks_zip64 = wanted;
  }

  byte_source& from_;
  std::set<std::uint64_t> headers_;
  std::uint64_t size_ = 0, begin_ = 0, zip64_ = 0, shift_ = 0;
};

/// The bytes of a member. Throws attune::error, before it allocates memory, for members that attune cannot read or that
/// do not fit the file.
inline std::vector<unsigned char> read_member(byte_source& from, std::string const& name, zip_member const& m,
                                              std::string const& part, inflate_function inflate) {
  if (m.encrypted) from.fail(part, "encrypted data", "plain data");
  if (m.method != 0 && m.method != 8) {
    char const* const known = m.method == 12   ? " (bzip2)"
                              : m.method == 14 ? " (lzma)"
                              : m.method == 93 ? " (zstd)"
                              : m.method == 9  ? " (deflate64)"
                                               : "";
    from.fail(part, text("the compression method ", m.method, known), "0 (stored) or 8 (deflated)");
  }
  if (m.lacks_zip64) from.fail(part, "no zip64 field", "one, for a size or place of 2^32 - 1");
  bool const deflated = m.method == 8;
  if (deflated && inflate == nullptr)
    from.fail(part, "compressed data", "stored data (numpy.savez), or zlib (attune/io/zlib.hpp)");
  auto const h = from.read(m.header, 30, part + ", header");
  if (std::memcmp(h.data(), "PK\3\4", 4) != 0) from.fail(part + ", header", "no signature", "'PK\\x03\\x04'");
  std::uint64_t const name_size = little_endian<2>(&h[26]), extra = little_endian<2>(&h[28]);
  auto const own = from.read(m.header + 30, name_size, part + ", header");
  if (std::string(own.begin(), own.end()) != name)
    from.fail(part + ", header", "another name, " + printable({reinterpret_cast<char const*>(own.data()), own.size()}),
              "the name in the directory");
  std::uint64_t const data = m.header + 30 + name_size + extra;
  if (data > m.end || m.packed > m.end - data)
    from.fail(part, text(m.packed, " bytes from byte ", data, " on"),
              text("data that end before byte ", m.end, ", where another member or the directory begins"));
  constexpr std::uint64_t best_ratio = 1032;  // of deflate
  if (deflated ? m.size / best_ratio > m.packed : m.size != m.packed)
    from.fail(part, text(m.packed, " bytes"), text("the data of ", m.size, " bytes"));
  auto bytes = from.read(data, m.packed, part);
  if (deflated) {
    std::vector<unsigned char> whole(std::size_t{m.size});
    if (!inflate(bytes, whole)) from.fail(part, "a damaged deflate stream", text("one of ", m.size, " bytes"));
    bytes = std::move(whole);
  }
  if (detail::crc32(bytes) != m.checksum) from.fail(part, "another checksum than it should", "undamaged data");
  return bytes;
}

}  // namespace detail
}  // namespace attune::io
