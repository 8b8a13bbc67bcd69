// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   header-length {"q": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, ...} data
//
// Safetensors files: named tensors, including bfloat16 and float8. The whole header is checked before any tensor is
// read: offsets cover the data exactly once and sizes fit the shapes. attune reads the files that the format's own
// reader (0.8) accepts and rejects those that it rejects, with two exceptions. First, an unknown type, or extents that
// attune cannot hold, make only that tensor unreadable. Second, a tensor described by a list instead of an object is
// rejected. If a name occurs twice, the last one counts, as in the format's own reader. Needs nlohmann-json (Debian,
// Ubuntu: nlohmann-json3-dev).
// Source: github.com/huggingface/safetensors, README, "Format".
#pragma once

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <attune/io/array.hpp>
#include <attune/io/bytes.hpp>

namespace attune::io {

namespace detail {

struct safetensors_entry {
  std::string type;
  std::vector<std::uint64_t> extents;
  std::uint64_t begin = 0, end = 0;  ///< byte range in the data
  bool has_type = false, has_extents = false, has_offsets = false;
};

/// Bits per element of every type of the format; 0 for unknown types.
inline unsigned safetensors_bits(std::string const& type) {
  for (element_facts const& e : elements)
    if (type == e.safetensors) return unsigned(8 * e.size);
  static std::map<std::string, unsigned> const others{
      {"F4", 4}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"C64", 64}};
  auto const found = others.find(type);
  return found == others.end() ? 0 : found->second;
}

/// Reads the header in the callbacks of nlohmann's parser: builds no tree, and rejects each error at its position.
class safetensors_header {
 public:
  std::map<std::string, safetensors_entry> entries;
  std::map<std::string, std::string> metadata;

  safetensors_header(byte_source const& from, std::vector<unsigned char> const& json) : from_(from) {
    if (auto const nul = std::find(json.begin(), json.end(), 0);
        nul != json.end())  // nlohmann's parser would take it for the end
      from_.fail("header", "a byte 0 at byte " + std::to_string(nul - json.begin()), "a JSON object in UTF-8");
    if (json.size() >= 3 && json[0] == 0xef && json[1] == 0xbb && json[2] == 0xbf)
      from_.fail("header", "a byte order mark", "a JSON object in UTF-8");
    nlohmann::json::sax_parse(json, this);
    for (auto const& [name, e] : entries)
      if (!e.has_type || !e.has_extents || !e.has_offsets)
        from_.fail("tensor " + printable(name),
                   std::string("no ") + (!e.has_type      ? "dtype"
                                         : !e.has_extents ? "shape"
                                                          : "data_offsets"),
                   "dtype, shape and data_offsets");
  }

  // The callbacks of nlohmann's parser.
  bool null() {
    if (depth_ == 1 && in_metadata_) {
      in_metadata_ = false;
      return true;
    }
    return stray("null");
  }
  bool boolean(bool) { return stray("true or false"); }
  bool number_integer(nlohmann::json::number_integer_t x) { return stray(x == 0 ? "-0" : std::to_string(x)); }
  bool number_float(nlohmann::json::number_float_t, std::string const& text) {
    return stray("the number " + printable(text));
  }
  bool binary(nlohmann::json::binary_t&) { return stray("binary data"); }
  bool number_unsigned(nlohmann::json::number_unsigned_t x) {
    if (ignored() || !in_list_) return stray(std::to_string(x));
    if (field_ == "shape") {
      entry_->extents.push_back(x);
    } else {
      if (offsets_ == 2) from_.fail(where(), "more than two numbers", "[begin, end]");
      (offsets_++ == 0 ? entry_->begin : entry_->end) = x;
    }
    return true;
  }
  bool string(std::string& s) {
    if (ignored()) return stray(s);
    if (in_metadata_ && depth_ == 2) {
      metadata[field_] = s;
      return true;
    }
    if (depth_ != 2 || in_list_ || field_ != "dtype") return stray("the string " + printable(s));
    entry_->type = s;
    return true;
  }
  bool start_object(std::size_t) {
    if (opens_ignored()) return true;
    if (depth_ == 2 || in_list_) return stray("an object");
    ++depth_;
    return true;
  }
  bool end_object() {
    if (closes_ignored()) return true;
    --depth_;
    in_metadata_ = false;
    return true;
  }
  bool start_array(std::size_t) {
    if (opens_ignored()) return true;
    if (depth_ != 2 || in_list_ || in_metadata_ || (field_ != "shape" && field_ != "data_offsets"))
      return stray("a list");
    in_list_ = true;
    offsets_ = 0;
    return true;
  }
  bool end_array() {
    if (closes_ignored()) return true;
    if (field_ == "data_offsets" && offsets_ != 2)
      from_.fail(where(), std::to_string(offsets_) + " numbers", "[begin, end]");
    in_list_ = false;
    return true;
  }
  bool key(std::string& name) {
    if (ignored_ > 0) return true;
    if (depth_ == 1) {
      name_ = name;
      in_metadata_ = name == "__metadata__";
      if (in_metadata_ && std::exchange(has_metadata_, true))
        from_.fail("header", "the name '__metadata__' twice", "it once");
      entry_ = in_metadata_ ? nullptr : &(entries[name] = {});
      field_.clear();
      return true;
    }
    field_ = name;
    if (in_metadata_) return true;
    bool* const has = name == "dtype"          ? &entry_->has_type
                      : name == "shape"        ? &entry_->has_extents
                      : name == "data_offsets" ? &entry_->has_offsets
                                               : nullptr;
    ignore_next_ = has == nullptr;
    if (ignore_next_) return true;
    if (*has) from_.fail("tensor " + printable(name_), "the key " + printable(name) + " twice", "it once");
    *has = true;
    return true;
  }
  bool parse_error(std::size_t at, std::string const&, nlohmann::json::exception const& what) {
    std::string const why = what.what();  // "[json.exception.parse_error.101] parse error at ...: ..."
    from_.fail("header",
               "no valid JSON at byte " + std::to_string(at) + " (" + printable(why.substr(why.find("] ") + 2)) + ")",
               "a JSON object in UTF-8");
  }

 private:
  std::string where() const {
    if (name_.empty() && entry_ == nullptr) return "header";
    return (in_metadata_ ? std::string("__metadata__") : "tensor " + printable(name_)) +
           (field_.empty() ? std::string() : ", " + printable(field_));
  }
  /// Unknown keys of a tensor may have values of any kind; they are ignored.
  bool ignored() const { return ignored_ > 0 || ignore_next_; }
  bool opens_ignored() {
    if (!ignored()) return false;
    ignore_next_ = false;
    if (depth_ + ++ignored_ > deepest)
      from_.fail(where(), attune::detail::text("more than ", deepest, " levels of lists and objects"),
                 "a header that the format's own reader takes");
    return true;
  }
  bool closes_ignored() {
    if (ignored_ == 0) return false;
    --ignored_;
    return true;
  }
  /// A value in an unexpected place: ignored, or rejected.
  bool stray(std::string const& found) {
    if (ignored()) {
      ignore_next_ = false;
      return true;
    }
    from_.fail(where(), found,
               depth_ == 0    ? "a JSON object"
               : depth_ == 1  ? (in_metadata_ ? "an object of strings" : "an object with dtype, shape and data_offsets")
               : in_metadata_ ? "strings"
               : field_ == "dtype" ? "the name of a type"
               : field_ == "shape" ? "a list of extents >= 0"
                                   : "[begin, end]");
  }

  static constexpr int deepest = 127;

  byte_source const& from_;
  safetensors_entry* entry_ = nullptr;
  std::string name_, field_;
  int depth_ = 0, offsets_ = 0, ignored_ = 0;
  bool in_metadata_ = false, has_metadata_ = false, in_list_ = false, ignore_next_ = false;
};

}  // namespace detail

/// A file of named tensors in the safetensors format. read() reads one tensor.
class safetensors_file {
 public:
  /// Reads the header. Throws attune::error that names the file, the tensor and the field.
  explicit safetensors_file(std::filesystem::path const& file)
      : safetensors_file(byte_source("io::safetensors_file", file)) {}
  /// Reads the header from memory, which must outlive this object.
  safetensors_file(std::span<unsigned char const> bytes, std::string const& name)
      : safetensors_file(byte_source("io::safetensors_file", name, bytes)) {}

  /// The names of the tensors, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (auto const& [name, e] : entries_) all.push_back(name);
    return all;
  }
  std::map<std::string, std::string> const& metadata() const { return metadata_; }  ///< may be empty

  /// The tensor of that name. Throws attune::error that names the file, the tensor and the field.
  array read(std::string const& name) {
    std::string const part = "tensor " + detail::printable(name);
    auto const found = entries_.find(name);
    if (found == entries_.end()) {
      std::string all;
      for (auto const& n : names()) all += (all.empty() ? "" : ", ") + detail::printable(n);
      from_.fail(part, "no data", all.empty() ? "any: the file is empty" : "one of " + all.substr(0, 500));
    }
    auto const& e = found->second;
    std::size_t n = 0;
    while (n < std::size(detail::elements) && e.type != detail::elements[n].safetensors) ++n;
    if (n == std::size(detail::elements)) {
      std::string all;
      for (auto const& known : detail::elements) all += std::string(all.empty() ? "" : ", ") + known.safetensors;
      from_.fail(part + ", 'dtype'", detail::printable(e.type), "one of " + all);
    }
    std::vector<index_t> extents;
    for (std::uint64_t const x : e.extents) {
      if (!std::in_range<index_t>(x)) from_.fail(part + ", 'shape'", std::to_string(x), "extents below 2^63");
      extents.push_back(index_t(x));
    }
    detail::checked_count(from_, part + ", 'shape'", extents, detail::elements[n].size);
    return {element_type(n), std::move(extents), from_.read(data_ + e.begin, e.end - e.begin, part),
            from_.name() + ", " + part};
  }

 private:
  explicit safetensors_file(byte_source from) : from_(std::move(from)) {
    constexpr std::uint64_t longest = 100'000'000;  // the format's own limit
    std::uint64_t const length = detail::little_endian<8>(from_.read(0, 8, "header length").data());
    if (length > longest) from_.fail("header length", std::to_string(length), "at most 100000000");
    auto const json = from_.read(8, length, "header");
    detail::safetensors_header parsed(from_, json);
    entries_ = std::move(parsed.entries);
    metadata_ = std::move(parsed.metadata);
    data_ = 8 + length;
    check_layout();
  }

  static std::string shape_of(detail::safetensors_entry const& e) {
    std::string s = "(";
    for (std::size_t n = 0; n < e.extents.size(); ++n) s += (n == 0 ? "" : ", ") + std::to_string(e.extents[n]);
    return s + ")";
  }
  void check_layout() const {
    std::uint64_t const size = from_.size() - data_;
    std::vector<std::pair<std::string const*, detail::safetensors_entry const*>> order;
    for (auto const& [name, e] : entries_) {
      std::string const part = "tensor " + detail::printable(name);
      if (e.begin > e.end || e.end > size)
        from_.fail(part + ", 'data_offsets'", detail::text("[", e.begin, ", ", e.end, "]"),
                   detail::text("begin <= end <= ", size, ", the size of the data"));
      if (unsigned const bits = detail::safetensors_bits(e.type)) {
        std::uint64_t size_in_bits = bits;
        bool overflow = false;
        std::uint64_t count = 1;  // axis by axis, as in the format's own reader
        for (std::uint64_t const x : e.extents) overflow = overflow || __builtin_mul_overflow(count, x, &count);
        overflow = overflow || __builtin_mul_overflow(size_in_bits, count, &size_in_bits);
        if (overflow) from_.fail(part + ", 'shape'", shape_of(e), "a size below 2^64 bits");
        if (size_in_bits % 8 != 0 || size_in_bits / 8 != e.end - e.begin)
          from_.fail(part + ", 'data_offsets'", detail::text(e.end - e.begin, " bytes"),
                     detail::text(size_in_bits, " bits for ", e.type, " of shape ", shape_of(e)));
      }
      order.emplace_back(&name, &e);
    }
    std::sort(order.begin(), order.end(), [](auto const& a, auto const& b) {
      return std::pair(a.second->begin, a.second->end) < std::pair(b.second->begin, b.second->end);
    });
    std::uint64_t at = 0;
    for (auto const& [name, e] : order) {
      if (e->begin != at)
        from_.fail("tensor " + detail::printable(*name) + ", 'data_offsets'",
                   e->begin < at ? detail::text("a begin of ", e->begin, ", which overlaps another tensor's data")
                                 : detail::text("a begin of ", e->begin, ", which leaves a gap"),
                   detail::text(at, ", where the tensor before it ends"));
      at = e->end;
    }
    if (at != size) from_.fail("data", detail::text(size, " bytes"), detail::text(at, ", those of the tensors"));
  }

  byte_source from_;
  std::map<std::string, detail::safetensors_entry> entries_;
  std::map<std::string, std::string> metadata_;
  std::uint64_t data_ = 0;
};

/// Writes tensors under their names, in the order of the map, and a map of strings.
inline void write_safetensors(std::filesystem::path const& file, std::map<std::string, array> const& tensors,
                              std::map<std::string, std::string> const& metadata = {}) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (auto const& [name, x] : tensors) {
    if (name == "__metadata__")
      throw error("io::write_safetensors", "the name " + name, "a meaning of its own", "another name");
    header[name] = {{"dtype", detail::facts_of(x.type).safetensors},
                    {"shape", x.extents},
                    {"data_offsets", {at, at + x.bytes.size()}}};
    at += x.bytes.size();
  }
  std::string json;
  try {
    json = header.dump();
  } catch (nlohmann::json::exception const&) {
    throw error("io::write_safetensors", "a name", "bytes that are not UTF-8", "UTF-8");
  }
  json.append((8 - json.size() % 8) % 8, ' ');  // data start at a multiple of 8 bytes
  std::vector<unsigned char> length;
  detail::append_little_endian<8>(length, json.size());
  std::vector<std::span<unsigned char const>> parts{length, detail::bytes_of(json)};
  for (auto const& [name, x] : tensors) parts.emplace_back(x.bytes);
  detail::write_file("io::write_safetensors", file, parts);
}

}  // namespace attune::io
