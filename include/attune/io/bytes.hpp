// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   io::byte_source from("q.npy");   from.size(), from.read(0, 8)
//
// The source of bytes for readers: a file on disk or memory. Every reader first gets the number of bytes, so that no
// header makes it allocate more than a file holds. Also the function with which writers write files.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/io/array.hpp>

namespace attune::io {

/// Bytes of a file or of memory, read on demand. Errors name the source.
class byte_source {
 public:
  /// Opens a regular file. Throws attune::error if it cannot be opened.
  byte_source(char const* function, std::filesystem::path const& file)
      : function_(function), name_("file " + file.string()) {
    std::error_code problem;
    bool const regular = std::filesystem::is_regular_file(file, problem);
    if (!regular)
      fail("", std::filesystem::exists(file, problem) ? "another kind than a regular file" : "no such path",
           "a readable file");
    size_ = std::filesystem::file_size(file, problem);
    if (problem) fail("", "no size: " + problem.message(), "a readable file");
    stream_.open(file, std::ios::binary);
    if (!stream_) fail("", std::string("a problem with opening it: ") + std::strerror(errno), "a readable file");
  }
  /// Reads from memory, which must outlive the source.
  byte_source(char const* function, std::string name, std::span<unsigned char const> memory)
      : function_(function), name_(std::move(name)), memory_(memory), size_(memory.size()), in_memory_(true) {}

  std::uint64_t size() const { return size_; }       ///< in bytes
  std::string const& name() const { return name_; }  ///< for errors: "file q.npy"
  /// The function that errors name.
  char const* function() const { return function_; }

  /// Bytes [from, from + count). If there are fewer, throws attune::error before it allocates; `part` names the bytes
  /// in the message.
  std::vector<unsigned char> read(std::uint64_t from, std::uint64_t count, std::string const& part) {
    if (from > size_ || count > size_ - from)
      fail(part, "its end at byte " + std::to_string(size_),
           std::to_string(count) + " bytes from byte " + std::to_string(from) + " on");
    std::vector<unsigned char> to(std::size_t{count});
    if (count == 0) return to;
    if (in_memory_) {
      std::memcpy(to.data(), memory_.data() + from, to.size());
      return to;
    }
    stream_.clear();
    stream_.seekg(std::streamoff(from));
    if (!stream_.read(reinterpret_cast<char*>(to.data()), std::streamsize(count)))
      fail(part, "a read error", "readable bytes");
    return to;
  }

  /// Throws the error "<function>: file q.npy, <part> has <found>; expected <expected>".
  [[noreturn]] void fail(std::string const& part, std::string const& found, std::string const& expected) const {
    throw error(function_, part.empty() ? name_ : name_ + ", " + part, found, expected);
  }

 private:
  char const* function_;
  std::string name_;
  std::span<unsigned char const> memory_;
  std::ifstream stream_;
  std::uint64_t size_ = 0;
  bool in_memory_ = false;
};

namespace detail {

/// A little-endian number of `Count` bytes.
template <std::size_t Count>
std::uint64_t little_endian(unsigned char const* at) {
  std::uint64_t x = 0;
  for (std::size_t n = 0; n < Count; ++n) x |= std::uint64_t(at[n]) << (8 * n);
  return x;
}
template <std::size_t Count>
void append_little_endian(std::vector<unsigned char>& to, std::uint64_t x) {
  for (std::size_t n = 0; n < Count; ++n) to.push_back(static_cast<unsigned char>(x >> (8 * n)));
}

/// The number of elements of these extents. Throws unless attune can multiply them safely: the product must fit even
/// where an extent of 0 makes it 0, and then it must be at most 2^32.
inline std::uint64_t checked_count(byte_source const& from, std::string const& part,
                                   std::vector<index_t> const& extents, std::size_t element_size) {
  constexpr std::uint64_t largest = std::uint64_t((std::numeric_limits<index_t>::max)());
  constexpr std::size_t most_axes = 32;
  std::uint64_t product = 1;
  bool none = false;
  if (extents.size() > most_axes) from.fail(part, std::to_string(extents.size()) + " axes", "at most 32");
  for (index_t e : extents) {
    none = none || e == 0;
    if (e != 0 && product > largest / element_size / std::uint64_t(e))
      from.fail(part, "the value " + to_string(extents), "a size below 2^63 bytes");
    if (e != 0) product *= std::uint64_t(e);
  }
  if (none && product > std::uint64_t(1) << 32)
    from.fail(part, "the value " + to_string(extents), "smaller extents in an array without elements");
  return none ? 0 : product;
}

/// Writes all parts, or throws attune::error.
inline void write_file(char const* function, std::filesystem::path const& file,
                       std::vector<std::span<unsigned char const>> const& parts) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  if (!out)
    throw error(function, "file " + file.string(), std::string("a problem: ") + std::strerror(errno),
                "a writable file");
  for (auto const& part : parts) out.write(reinterpret_cast<char const*>(part.data()), std::streamsize(part.size()));
  out.close();
  if (!out) throw error(function, "file " + file.string(), "a write error", "room for what is written");
}
inline std::span<unsigned char const> bytes_of(std::string const& s) {
  return {reinterpret_cast<unsigned char const*>(s.data()), s.size()};
}

}  // namespace detail
}  // namespace attune::io
