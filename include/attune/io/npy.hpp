// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   "\x93NUMPY" version header-length {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } data
//
// NumPy's files, versions 1 to 3: one array of float64, float32, float16, booleans or integers. Fortran order is
// converted to C order. NumPy does not have bfloat16 and float8; they are stored as words, and the caller gives their
// type.
// Source: numpy.lib.format.
#pragma once

#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <attune/io/array.hpp>
#include <attune/io/bytes.hpp>

namespace attune::io {

/// How to read an array of NumPy.
struct npy_options {
  /// The type of untyped words (unsigned integers, or raw '|V2' and '|V1' as ml_dtypes writes bfloat16 and float8) of
  /// the same size: float16, bfloat16, float8_e4m3fn or float8_e5m2. Without it they stay integers.
  std::optional<element_type> words = std::nullopt;
};

namespace detail {

struct npy_header {
  element_type type = element_type::float32;
  bool fortran = false;
  std::vector<index_t> extents;
};

/// The Python dictionary of a header: exactly three keys, each once, with literals of four kinds.
class npy_dictionary {
 public:
  npy_dictionary(byte_source const& from, std::string text) : from_(from), text_(std::move(text)) {}

  npy_header parse(npy_options const& options) {
    npy_header h;
    bool has_type = false, has_order = false, has_shape = false;
    take('{');
    while (!next_is('}')) {
      std::string const key = string();
      take(':');
      bool* seen = key == "descr"           ? &has_type
                   : key == "fortran_order" ? &has_order
                   : key == "shape"         ? &has_shape
                                            : nullptr;
      if (seen == nullptr) fail("the key " + printable(key), "'descr', 'fortran_order' and 'shape'");
      if (*seen) fail("the key " + printable(key) + " twice", "it once");
      *seen = true;
      if (seen == &has_type)
        h.type = type(options);
      else if (seen == &has_order)
        h.fortran = boolean();
      else
        h.extents = tuple();
      if (!next_is('}')) take(',');
    }
    take('}');
    blanks();
    if (at_ != text_.size()) fail(printable(text_.substr(at_)) + " behind the dictionary", "blanks");
    if (!has_type || !has_order || !has_shape)
      fail(std::string("no key ") + (!has_type    ? "'descr'"
                                     : !has_order ? "'fortran_order'"
                                                  : "'shape'"),
           "'descr', 'fortran_order' and 'shape'");
    return h;
  }

 private:
  [[noreturn]] void fail(std::string const& found, std::string const& expected) const {
    from_.fail("header", found, expected);
  }
  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  bool next_is(char c) {
    blanks();
    return at_ < text_.size() && text_[at_] == c;
  }
  void take(char c) {
    if (!next_is(c))
      fail(printable(text_.substr(at_)) + " at byte " + std::to_string(at_), printable(std::string(1, c)));
    ++at_;
  }
  /// Whether a string follows. Skips the u that Python 2 writes before strings of Unicode.
  bool finds_string() {
    if ((next_is('u') || next_is('U')) && at_ + 1 < text_.size() && (text_[at_ + 1] == '\'' || text_[at_ + 1] == '"'))
      ++at_;
    return next_is('\'') || next_is('"');
  }
  std::string string() {
    finds_string();
    char const quote = next_is('"') ? '"' : '\'';
    take(quote);
    std::size_t const end = text_.find(quote, at_);
    if (end == std::string::npos) fail("a string without an end", printable(std::string(1, quote)));
    std::string const s = text_.substr(at_, end - at_);
    at_ = end + 1;
    return s;
  }
  bool boolean() {
    blanks();
    for (bool value : {true, false})
      if (std::string const word = value ? "True" : "False"; text_.compare(at_, word.size(), word) == 0) {
        at_ += word.size();
        return value;
      }
    from_.fail("header field 'fortran_order'", printable(text_.substr(at_)), "True or False");
  }
  element_type type(npy_options const& options) {
    if (!finds_string()) from_.fail("header field 'descr'", "a structured type", "one number per element");
    std::string const d = string();
    char const order = !d.empty() && std::strchr("<>=|", d[0]) != nullptr ? d[0] : '=';
    std::string const kind = d == "?" ? "b1" : d.substr(!d.empty() && d[0] == order ? 1 : 0);
    if (kind == "V1" || kind == "V2")  // raw bytes: ml_dtypes makes NumPy store float8 and bfloat16 this way
      return options.words && size_of(*options.words) == std::size_t(kind[1] - '0') ? *options.words
             : kind == "V1"                                                         ? element_type::uint8
                                                                                    : element_type::uint16;
    for (int n = 0; n < int(std::size(elements)); ++n) {
      auto const t = element_type(n);
      if (t == element_type::bfloat16 || t == element_type::float8_e4m3fn || t == element_type::float8_e5m2) continue;
      if (kind != elements[n].numpy + 1) continue;
      if (order == '>' && elements[n].size > 1)
        from_.fail("header field 'descr'", printable(d) + ", big-endian", "little-endian numbers");
      bool const words = t == element_type::uint16 || t == element_type::uint8;
      return words && options.words && size_of(*options.words) == size_of(t) ? *options.words : t;
    }
    bool const complex = !kind.empty() && kind[0] == 'c', object = kind == "O";
    from_.fail("header field 'descr'",
               "the type " + printable(d) +
                   (complex  ? ", complex numbers"
                    : object ? ", Python objects"
                             : ""),
               "numbers: 'b1', 'u1' to 'u8', 'i1' to 'i8', 'f2', 'f4', 'f8'");
  }
  std::vector<index_t> tuple() {
    std::vector<index_t> t;
    if (!next_is('(')) from_.fail("header field 'shape'", printable(text_.substr(at_)), "a tuple, as (2, 3)");
    take('(');
    while (!next_is(')')) {
      t.push_back(number());
      if (!next_is(')')) take(',');
    }
    take(')');
    return t;
  }
  index_t number() {
    blanks();
    std::size_t const begin = at_;
    std::uint64_t x = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      x = x * 10 + std::uint64_t(text_[at_] - '0');
      if (x > std::uint64_t((std::numeric_limits<index_t>::max)()) / 10)
        from_.fail("header field 'shape'", "the extent " + printable(text_.substr(begin)), "less than 2^63 / 10");
    }
    if (at_ == begin) from_.fail("header field 'shape'", printable(text_.substr(at_)), "an extent >= 0");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2
    return index_t(x);
  }

  byte_source const& from_;
  std::string text_;
  std::size_t at_ = 0;
};

/// Converts elements from Fortran order (the first axis fastest) to C order.
inline std::vector<unsigned char> c_order(std::vector<unsigned char> const& from, std::vector<index_t> const& extents,
                                          std::size_t size) {
  std::vector<unsigned char> to(from.size());
  std::vector<std::size_t> at(extents.size(), 0), step(extents.size(), 1);
  for (std::size_t a = 1; a < extents.size(); ++a) step[a] = step[a - 1] * std::size_t(extents[a - 1]);
  std::size_t source = 0;
  for (std::size_t n = 0; n < from.size(); n += size) {
    std::memcpy(to.data() + n, from.data() + source * size, size);
    for (std::size_t a = extents.size(); a-- > 0;) {  // the next index in C order
      source += step[a];
      if (++at[a] < std::size_t(extents[a])) break;
      source -= step[a] * at[a];
      at[a] = 0;
    }
  }
  return to;
}

/// Reads the one array of an .npy file.
inline array parse_npy(byte_source& from, npy_options const& options) {
  if (options.words && (!is_floating(*options.words) || size_of(*options.words) > 2))
    throw error(from.function(), "options.words", std::string("the type ") + name_of(*options.words),
                "float16, bfloat16, float8_e4m3fn or float8_e5m2");
  auto const start = from.read(0, 8, "magic number");
  if (std::memcmp(start.data(), "\x93NUMPY", 6) != 0)
    from.fail("magic number", printable({reinterpret_cast<char const*>(start.data()), 6}),
              "'\\x93NUMPY' of an .npy file");
  int const version = start[6];
  if (version < 1 || version > 3) from.fail("version", std::to_string(version), "1 to 3");
  std::size_t const length_bytes = version == 1 ? 2 : 4;
  auto const length_field = from.read(8, length_bytes, "header length");
  std::uint64_t const length =
      version == 1 ? little_endian<2>(length_field.data()) : little_endian<4>(length_field.data());
  constexpr std::uint64_t longest = 65536;
  if (length > longest) from.fail("header length", std::to_string(length), "at most 65536");
  std::uint64_t const data_begin = 8 + length_bytes + length;
  auto const raw = from.read(8 + length_bytes, length, "header");
  npy_header h = npy_dictionary(from, std::string(raw.begin(), raw.end())).parse(options);

  std::uint64_t const expected =
      checked_count(from, "header field 'shape'", h.extents, size_of(h.type)) * size_of(h.type);
  std::uint64_t const found = from.size() - data_begin;
  if (found != expected)
    from.fail("data", std::to_string(found) + " bytes",
              std::to_string(expected) + " for " + name_of(h.type) + " of shape " + to_string(h.extents));
  array x{h.type, std::move(h.extents), from.read(data_begin, expected, "data"), from.name()};
  if (h.fortran && x.extents.size() > 1) x.bytes = c_order(x.bytes, x.extents, size_of(x.type));
  return x;
}

/// Everything before the data; its length is a multiple of 64 bytes.
inline std::string npy_start(array const& x) {
  std::string header = std::string("{'descr': '") + facts_of(x.type).numpy +
                       "', 'fortran_order': False, 'shape': " + to_string(x.extents) + ", }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  if (header.size() > 65535) throw error("io::write_npy", "extents", to_string(x.extents), "fewer axes");
  return std::string("\x93NUMPY\x01\x00", 8) + char(header.size() % 256) + char(header.size() / 256) + header;
}

}  // namespace detail

/// Reads a file. Throws attune::error that names the file and the field.
inline array read_npy(std::filesystem::path const& file, npy_options const& options = {}) {
  byte_source from("io::read_npy", file);
  return detail::parse_npy(from, options);
}

/// Reads from memory; errors use `name` instead of a file name.
inline array read_npy(std::span<unsigned char const> bytes, std::string const& name, npy_options const& options = {}) {
  byte_source from("io::read_npy", name, bytes);
  return detail::parse_npy(from, options);
}

/// Writes a file, version 1.0, C order. bfloat16 and float8 become unsigned integers; read_npy with `words` reads them
/// back.
inline void write_npy(std::filesystem::path const& file, array const& x) {
  std::string const start = detail::npy_start(x);
  detail::write_file("io::write_npy", file, {detail::bytes_of(start), x.bytes});
}

}  // namespace attune::io
