// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   io::npz_file file("x.npz");   file.names() = {"q", "k", "v"},   io::array q = file.read("q")
//
// NumPy's archives: a zip file with one .npy file per name. Members that are stored (numpy.savez) need nothing; compressed ones
// (numpy.savez_compressed) a function that inflates, as zlib_inflate of io/zlib.hpp. Sizes beyond 4 GiB (zip64) are read, as
// NumPy writes them. Every size is checked against the file before memory is taken; checksums are verified.
// Source: PKWARE's APPNOTE.TXT 6.3, sections 4.3 and 4.5.
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/crc.hpp>

#include <attune/io/array.hpp>
#include <attune/io/bytes.hpp>
#include <attune/io/npy.hpp>

namespace attune::io {

/// Fills the second span from a raw deflate stream; false if the stream is damaged or holds another number of bytes.
using inflate_function = bool (*)(std::span<unsigned char const>, std::span<unsigned char>);

namespace detail {

inline std::uint32_t crc32(std::span<unsigned char const> bytes) {
  boost::crc_32_type sum;
  sum.process_bytes(bytes.data(), bytes.size());
  return sum.checksum();
}

/// A file inside a zip file.
struct zip_member {
  std::uint64_t packed = 0, size = 0, header = 0, data = 0;
  std::uint32_t checksum = 0;
  bool deflated = false;
};

/// The directory of a zip file, by name.
class zip_directory {
 public:
  std::map<std::string, zip_member> members;

  explicit zip_directory(byte_source& from) : from_(from) {
    find_end();
    if (entries_ > size_ / 46) fail("end of directory", text(entries_, " entries"), "as many as its size has room for");
    auto const all = from_.read(begin_, size_, "directory");
    std::uint64_t at = 0;
    for (std::uint64_t n = 0; n < entries_; ++n) at = read_entry(all, at);
    if (at != all.size()) fail("directory", text(all.size() - at, " bytes behind its last entry"), "none");
    check_overlaps();
  }

 private:
  static constexpr std::uint64_t in_zip64_ = 0xffffffff;

  [[noreturn]] void fail(std::string const& part, std::string const& found, std::string const& expected) const {
    from_.fail(part, found, expected);
  }

  /// The record at the end, behind which there may be a comment, and the zip64 record that it may stand for.
  void find_end() {
    constexpr std::uint64_t record = 22, comment = 65535;
    if (from_.size() < record) fail("", text(from_.size(), " bytes"), "at least 22, those of a zip file");
    std::uint64_t const tail = (std::min)(from_.size(), record + comment), tail_begin = from_.size() - tail;
    auto const bytes = from_.read(tail_begin, tail, "end of directory");
    std::uint64_t at = tail - record + 1;
    bool found = false;
    while (!found && at-- > 0)
      found = std::memcmp(&bytes[at], "PK\5\6", 4) == 0 && little_endian<2>(&bytes[at + 20]) == tail - at - record;
    if (!found) fail("end of directory", "no signature", "'PK\\x05\\x06' at the end of a zip file");
    unsigned char const* e = &bytes[at];
    if (little_endian<2>(e + 4) != 0 || little_endian<2>(e + 6) != 0) fail("end of directory", "several disks", "one");
    entries_ = little_endian<2>(e + 10);
    size_ = little_endian<4>(e + 12);
    begin_ = little_endian<4>(e + 16);
    std::uint64_t end = tail_begin + at;
    if (entries_ == 0xffff || size_ == in_zip64_ || begin_ == in_zip64_) {
      if (end < 20) fail("zip64 locator", "no bytes", "20");
      auto const locator = from_.read(end - 20, 20, "zip64 locator");
      if (std::memcmp(locator.data(), "PK\6\7", 4) != 0) fail("zip64 locator", "no signature", "'PK\\x06\\x07'");
      end = little_endian<8>(&locator[8]);
      auto const r = from_.read(end, 56, "zip64 end of directory");
      if (std::memcmp(r.data(), "PK\6\6", 4) != 0) fail("zip64 end of directory", "no signature", "'PK\\x06\\x06'");
      entries_ = little_endian<8>(&r[32]);
      size_ = little_endian<8>(&r[40]);
      begin_ = little_endian<8>(&r[48]);
    }
    if (begin_ > end || size_ != end - begin_)
      fail("end of directory", text("a directory of ", size_, " bytes from byte ", begin_, " on"),
           text("one that ends at byte ", end));
  }

  std::uint64_t read_entry(std::vector<unsigned char> const& all, std::uint64_t at) {
    if (all.size() - at < 46) fail("directory", "an entry cut short", "46 bytes");
    unsigned char const* e = &all[at];
    if (std::memcmp(e, "PK\1\2", 4) != 0) fail("directory", "an entry without a signature", "'PK\\x01\\x02'");
    std::uint64_t const name_size = little_endian<2>(e + 28), extra = little_endian<2>(e + 30),
                        comment = little_endian<2>(e + 32);
    if (all.size() - at - 46 < name_size + extra + comment) fail("directory", "an entry cut short", "its name and its extras");
    std::string const name(e + 46, e + 46 + name_size);
    std::string const part = "member " + printable(name);
    auto const flags = little_endian<2>(e + 8), method = little_endian<2>(e + 10);
    if ((flags & 1) != 0) fail(part, "encrypted data", "plain data");
    if (method != 0 && method != 8) fail(part, text("the compression method ", method), "0 (stored) or 8 (deflated)");
    zip_member m;
    m.deflated = method == 8;
    m.checksum = std::uint32_t(little_endian<4>(e + 16));
    m.packed = little_endian<4>(e + 20);
    m.size = little_endian<4>(e + 24);
    m.header = little_endian<4>(e + 42);
    read_zip64(m, {e + 46 + name_size, e + 46 + name_size + extra}, part);
    read_local_header(m, name, part);
    if (!members.emplace(name, m).second) fail(part, "two entries", "one");
    return at + 46 + name_size + extra + comment;
  }

  /// Numbers too large for 32 bits stand in an extra field, in this order, each only where its place says so.
  void read_zip64(zip_member& m, std::span<unsigned char const> extra, std::string const& part) const {
    if (m.size != in_zip64_ && m.packed != in_zip64_ && m.header != in_zip64_) return;
    while (extra.size() >= 4) {
      std::uint64_t const id = little_endian<2>(extra.data()), size = little_endian<2>(extra.data() + 2);
      if (size > extra.size() - 4) fail(part, "an extra field cut short", text(size, " bytes"));
      if (id == 1) {
        std::uint64_t used = 0;
        for (std::uint64_t* x : {&m.size, &m.packed, &m.header})
          if (*x == in_zip64_) {
            if (size - used < 8) fail(part, text("a zip64 field of ", size, " bytes"), "8 for each large number");
            *x = little_endian<8>(extra.data() + 4 + used);
            used += 8;
          }
        return;
      }
      extra = extra.subspan(4 + size);
    }
    fail(part, "no zip64 field", "one, for a size or place of 2^32 - 1");
  }

  void read_local_header(zip_member& m, std::string const& name, std::string const& part) {
    auto const h = from_.read(m.header, 30, part + ", header");
    if (std::memcmp(h.data(), "PK\3\4", 4) != 0) fail(part + ", header", "no signature", "'PK\\x03\\x04'");
    std::uint64_t const name_size = little_endian<2>(&h[26]), extra = little_endian<2>(&h[28]);
    auto const own = from_.read(m.header + 30, name_size, part + ", header");
    if (std::string(own.begin(), own.end()) != name)
      fail(part + ", header", "another name, " + printable({reinterpret_cast<char const*>(own.data()), own.size()}),
           "the name in the directory");
    m.data = m.header + 30 + name_size + extra;
    if (m.data > begin_ || m.packed > begin_ - m.data)
      fail(part, text(m.packed, " bytes from byte ", m.data, " on"), text("data before the directory, at byte ", begin_));
    constexpr std::uint64_t best_ratio = 1032;  // of deflate
    if (m.deflated ? m.size / best_ratio > m.packed : m.size != m.packed)
      fail(part, text(m.packed, " bytes"), text("the data of ", m.size, " bytes"));
  }

  void check_overlaps() const {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
    for (auto const& [name, m] : members) taken.emplace_back(m.header, m.data + m.packed);
    std::sort(taken.begin(), taken.end());
    for (std::size_t n = 1; n < taken.size(); ++n)
      if (taken[n].first < taken[n - 1].second)
        fail("directory", text("two members that share byte ", taken[n].first), "members that do not overlap");
  }

  byte_source& from_;
  std::uint64_t entries_ = 0, size_ = 0, begin_ = 0;
};

}  // namespace detail

class npz_file {
 public:
  /// Reads the directory. Throws attune::error that names the file and what is wrong.
  explicit npz_file(std::filesystem::path const& file, inflate_function inflate = nullptr)
      : npz_file(byte_source("io::npz_file", file), inflate) {}
  /// The same from memory, which must outlive this object.
  npz_file(std::span<unsigned char const> bytes, std::string const& name, inflate_function inflate = nullptr)
      : npz_file(byte_source("io::npz_file", name, bytes), inflate) {}

  /// The names of the arrays, without ".npy", sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (auto const& [name, m] : directory_.members)
      if (name.ends_with(".npy")) all.push_back(name.substr(0, name.size() - 4));
    return all;
  }
  array read(std::string const& name, npy_options const& options = {}) {
    std::string const part = "member " + detail::printable(name);
    auto const found = directory_.members.find(name + ".npy");
    if (found == directory_.members.end()) {
      std::string all;
      for (auto const& n : names()) all += (all.empty() ? "" : ", ") + detail::printable(n);
      from_.fail(part, "no data", all.empty() ? "any: the archive is empty" : "one of " + all.substr(0, 500));
    }
    detail::zip_member const& m = found->second;
    if (m.deflated && inflate_ == nullptr)
      from_.fail(part, "compressed data", "stored data (numpy.savez), or zlib (attune/io/zlib.hpp)");
    auto bytes = from_.read(m.data, m.packed, part);
    if (m.deflated) {
      std::vector<unsigned char> whole(std::size_t{m.size});
      if (!inflate_(bytes, whole)) from_.fail(part, "a damaged deflate stream", detail::text("one of ", m.size, " bytes"));
      bytes = std::move(whole);
    }
    if (detail::crc32(bytes) != m.checksum) from_.fail(part, "another checksum than it should", "undamaged data");
    byte_source inner(from_.function(), from_.name() + ", " + part, bytes);
    return detail::parse_npy(inner, options);
  }

 private:
  npz_file(byte_source from, inflate_function inflate) : from_(std::move(from)), directory_(from_), inflate_(inflate) {}

  byte_source from_;
  struct directory {
    std::map<std::string, detail::zip_member> members;
    explicit directory(byte_source& from) : members(detail::zip_directory(from).members) {}
  } directory_;
  inflate_function inflate_;
};

/// Writes arrays under their names, stored. Throws attune::error if a file or array would pass 4 GiB.
inline void write_npz(std::filesystem::path const& file, std::map<std::string, array> const& arrays) {
  std::vector<std::vector<unsigned char>> starts;  // what stands before each array: a zip header and the .npy header
  std::vector<unsigned char> directory;
  std::vector<std::span<unsigned char const>> parts;
  std::uint64_t at = 0;
  for (auto const& [key, x] : arrays) {
    std::string const name = key + ".npy", npy = detail::npy_start(x);
    boost::crc_32_type sum;
    sum.process_bytes(npy.data(), npy.size());
    sum.process_bytes(x.bytes.data(), x.bytes.size());
    std::uint64_t const size = npy.size() + x.bytes.size();
    std::vector<unsigned char> common;                    // the same words in both headers
    detail::append_little_endian<2>(common, 20);          // version needed
    detail::append_little_endian<2>(common, 1 << 11);     // names are UTF-8
    detail::append_little_endian<2>(common, 0);           // stored
    detail::append_little_endian<4>(common, 0x00210000);  // 1980-01-01 00:00: equal arrays make equal files
    detail::append_little_endian<4>(common, sum.checksum());
    detail::append_little_endian<4>(common, size);
    detail::append_little_endian<4>(common, size);
    detail::append_little_endian<2>(common, name.size());
    detail::append_little_endian<2>(common, 0);  // no extras

    auto& start = starts.emplace_back();
    start.insert(start.end(), {'P', 'K', 3, 4});
    start.insert(start.end(), common.begin(), common.end());
    start.insert(start.end(), name.begin(), name.end());
    start.insert(start.end(), npy.begin(), npy.end());
    directory.insert(directory.end(), {'P', 'K', 1, 2, 20, 0});
    directory.insert(directory.end(), common.begin(), common.end());
    directory.insert(directory.end(), 10, 0);  // no comment, first disk, no attributes
    detail::append_little_endian<4>(directory, at);
    directory.insert(directory.end(), name.begin(), name.end());
    at += start.size() + x.bytes.size();
    if (at > 0xfffffffe || name.size() > 65535 || starts.size() > 65534)
      throw error("io::write_npz", "file " + file.string(), detail::text(at, " bytes or more"),
                  "less than 4 GiB, or a safetensors file");
  }
  std::vector<unsigned char> end{'P', 'K', 5, 6, 0, 0, 0, 0};
  detail::append_little_endian<2>(end, starts.size());
  detail::append_little_endian<2>(end, starts.size());
  detail::append_little_endian<4>(end, directory.size());
  detail::append_little_endian<4>(end, at);
  detail::append_little_endian<2>(end, 0);
  std::size_t n = 0;
  for (auto const& [key, x] : arrays) {
    parts.emplace_back(starts[n++]);
    parts.emplace_back(x.bytes);
  }
  parts.emplace_back(directory);
  parts.emplace_back(end);
  detail::write_file("io::write_npz", file, parts);
}

}  // namespace attune::io
