// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   header-length {"q": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, ...} data
//
// Files of safetensors: tensors by name, bfloat16 among them. The header is checked whole, by the format's own rules and before
// any tensor is read: no name or key twice, offsets that cover the data once and leave nothing out, sizes that fit the shapes.
// Needs nlohmann-json (Debian, Ubuntu: nlohmann-json3-dev). Source: github.com/huggingface/safetensors, README, "Format".
#pragma once

#include <algorithm>
#include <filesystem>
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
  std::vector<index_t> extents;
  std::uint64_t begin = 0, end = 0;  ///< in the data
  bool has_type = false, has_extents = false, has_offsets = false;
};

/// Bytes per element of every type that the format has; 0 for others.
inline std::size_t safetensors_size(std::string const& type) {
  static std::map<std::string, std::size_t> const sizes{{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
                                                        {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
                                                        {"U32", 4},  {"F32", 4}, {"F64", 8}, {"I64", 8},     {"U64", 8}};
  auto const found = sizes.find(type);
  return found == sizes.end() ? 0 : found->second;
}

/// Reads the header as nlohmann's parser walks through it: no tree is built, and each thing is refused where it stands.
class safetensors_header {
 public:
  std::map<std::string, safetensors_entry> entries;
  std::map<std::string, std::string> metadata;

  safetensors_header(byte_source const& from, std::vector<unsigned char> const& json) : from_(from) {
    nlohmann::json::sax_parse(json, this);
    for (auto const& [name, e] : entries)
      if (!e.has_type || !e.has_extents || !e.has_offsets)
        from_.fail("tensor " + printable(name),
                   std::string("no ") + (!e.has_type      ? "dtype"
                                         : !e.has_extents ? "shape"
                                                          : "data_offsets"),
                   "dtype, shape and data_offsets");
  }

  // What nlohmann's parser calls.
  bool null() { return stray("null"); }
  bool boolean(bool) { return stray("true or false"); }
  bool number_integer(nlohmann::json::number_integer_t x) { return stray(std::to_string(x)); }
  bool number_float(nlohmann::json::number_float_t, std::string const& text) { return stray("the number " + printable(text)); }
  bool binary(nlohmann::json::binary_t&) { return stray("binary data"); }
  bool number_unsigned(nlohmann::json::number_unsigned_t x) {
    if (!in_list_) return stray(std::to_string(x));
    if (field_ == "shape") {
      if (x > std::uint64_t((std::numeric_limits<index_t>::max)()))
        from_.fail(where(), std::to_string(x), "extents below 2^63");
      entry_->extents.push_back(index_t(x));
      if (entry_->extents.size() > 32) from_.fail(where(), "more than 32 axes", "at most 32");
    } else {
      if (offsets_ == 2) from_.fail(where(), "more than two numbers", "[begin, end]");
      (offsets_++ == 0 ? entry_->begin : entry_->end) = x;
    }
    return true;
  }
  bool string(std::string& s) {
    if (in_metadata_ && depth_ == 2) {
      metadata[field_] = s;
      return true;
    }
    if (depth_ != 2 || in_list_ || field_ != "dtype") return stray("the string " + printable(s));
    entry_->type = s;
    return true;
  }
  bool start_object(std::size_t) {
    if (depth_ == 2 || in_list_) return stray("an object");
    ++depth_;
    return true;
  }
  bool end_object() {
    --depth_;
    in_metadata_ = false;
    return true;
  }
  bool start_array(std::size_t) {
    if (depth_ != 2 || in_list_ || in_metadata_ || (field_ != "shape" && field_ != "data_offsets")) return stray("a list");
    in_list_ = true;
    offsets_ = 0;
    return true;
  }
  bool end_array() {
    if (field_ == "data_offsets" && offsets_ != 2) from_.fail(where(), std::to_string(offsets_) + " numbers", "[begin, end]");
    in_list_ = false;
    return true;
  }
  bool key(std::string& name) {
    if (depth_ == 1) {
      name_ = name;
      in_metadata_ = name == "__metadata__";
      if (in_metadata_ ? std::exchange(has_metadata_, true) : !entries.emplace(name, safetensors_entry{}).second)
        from_.fail("header", "the name " + printable(name) + " twice", "it once");
      entry_ = in_metadata_ ? nullptr : &entries[name];
      field_.clear();
      return true;
    }
    field_ = name;
    if (in_metadata_) {
      if (metadata.count(name) != 0) from_.fail("__metadata__", "the key " + printable(name) + " twice", "it once");
      return true;
    }
    bool* const has = name == "dtype"          ? &entry_->has_type
                      : name == "shape"        ? &entry_->has_extents
                      : name == "data_offsets" ? &entry_->has_offsets
                                               : nullptr;
    if (has == nullptr) from_.fail("tensor " + printable(name_), "the key " + printable(name), "dtype, shape and data_offsets");
    if (*has) from_.fail("tensor " + printable(name_), "the key " + printable(name) + " twice", "it once");
    *has = true;
    return true;
  }
  bool parse_error(std::size_t at, std::string const&, nlohmann::json::exception const& what) {
    std::string const why = what.what();  // "[json.exception.parse_error.101] parse error at ...: ..."
    from_.fail("header", "no valid JSON at byte " + std::to_string(at) + " (" + printable(why.substr(why.find("] ") + 2)) + ")",
               "a JSON object in UTF-8");
  }

 private:
  std::string where() const {
    if (name_.empty() && entry_ == nullptr) return "header";
    return (in_metadata_ ? std::string("__metadata__") : "tensor " + printable(name_)) +
           (field_.empty() ? std::string() : ", " + printable(field_));
  }
  bool stray(std::string const& found) const {
    from_.fail(where(), found,
               depth_ == 0         ? "a JSON object"
               : depth_ == 1       ? (in_metadata_ ? "an object of strings" : "an object with dtype, shape and data_offsets")
               : in_metadata_      ? "strings"
               : field_ == "dtype" ? "the name of a type"
               : field_ == "shape" ? "a list of extents >= 0"
                                   : "[begin, end]");
  }

  byte_source const& from_;
  safetensors_entry* entry_ = nullptr;
  std::string name_, field_;
  int depth_ = 0, offsets_ = 0;
  bool in_metadata_ = false, has_metadata_ = false, in_list_ = false;
};

}  // namespace detail

class safetensors_file {
 public:
  /// Reads the header. Throws attune::error that names the file, the tensor and the field.
  explicit safetensors_file(std::filesystem::path const& file) : safetensors_file(byte_source("io::safetensors_file", file)) {}
  /// The same from memory, which must outlive this object.
  safetensors_file(std::span<unsigned char const> bytes, std::string const& name)
      : safetensors_file(byte_source("io::safetensors_file", name, bytes)) {}

  /// The names of the tensors, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (auto const& [name, e] : entries_) all.push_back(name);
    return all;
  }
  std::map<std::string, std::string> const& metadata() const { return metadata_; }

  array read(std::string const& name) {
    std::string const part = "tensor " + detail::printable(name);
    auto const found = entries_.find(name);
    if (found == entries_.end()) {
      std::string all;
      for (auto const& n : names()) all += (all.empty() ? "" : ", ") + detail::printable(n);
      from_.fail(part, "no data", all.empty() ? "any: the file is empty" : "one of " + all.substr(0, 500));
    }
    auto const& e = found->second;
    std::pair<char const*, element_type> const known[] = {
        {"F64", element_type::float64},   {"F32", element_type::float32},  {"F16", element_type::float16},
        {"BF16", element_type::bfloat16}, {"BOOL", element_type::boolean}, {"U8", element_type::uint8},
        {"U16", element_type::uint16},    {"I32", element_type::int32},    {"I64", element_type::int64}};
    for (auto const& [type, t] : known)
      if (e.type == type) return {t, e.extents, from_.read(data_ + e.begin, e.end - e.begin, part), from_.name() + ", " + part};
    from_.fail(part + ", 'dtype'", detail::printable(e.type), "F64, F32, F16, BF16, BOOL, U8, U16, I32 or I64");
  }

 private:
  explicit safetensors_file(byte_source from) : from_(std::move(from)) {
    constexpr std::uint64_t longest = 100'000'000;  // the format's own limit
    std::uint64_t const length = detail::little_endian<8>(from_.read(0, 8, "header length").data());
    if (length > longest) from_.fail("header length", std::to_string(length), "at most 100000000");
    auto const json = from_.read(8, length, "header");
    if (json.empty() || json[0] != '{') from_.fail("header", "another beginning", "'{'");
    detail::safetensors_header parsed(from_, json);
    entries_ = std::move(parsed.entries);
    metadata_ = std::move(parsed.metadata);
    data_ = 8 + length;
    check();
  }

  void check() const {
    std::uint64_t const size = from_.size() - data_;
    std::vector<std::pair<std::string const*, detail::safetensors_entry const*>> order;
    for (auto const& [name, e] : entries_) {
      std::string const part = "tensor " + detail::printable(name);
      if (e.begin > e.end || e.end > size)
        from_.fail(part + ", 'data_offsets'", detail::text("[", e.begin, ", ", e.end, "]"),
                   detail::text("begin <= end <= ", size, ", the size of the data"));
      std::size_t const element = detail::safetensors_size(e.type);
      if (element == 0) from_.fail(part + ", 'dtype'", detail::printable(e.type), "a type of the format, as F32 or BF16");
      std::uint64_t const count = detail::checked_count(from_, part + ", 'shape'", e.extents, element);
      if (count * element != e.end - e.begin)
        from_.fail(part + ", 'data_offsets'", detail::text(e.end - e.begin, " bytes"),
                   detail::text(count * element, " for ", e.type, " of shape ", to_string(e.extents)));
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

/// Writes tensors under their names, in their order, and a map of strings.
inline void write_safetensors(std::filesystem::path const& file, std::map<std::string, array> const& tensors,
                              std::map<std::string, std::string> const& metadata = {}) {
  constexpr char const* types[] = {"F64", "F32", "F16", "BF16", "BOOL", "U8", "U16", "I32", "I64"};
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (auto const& [name, x] : tensors) {
    if (name == "__metadata__")
      throw error("io::write_safetensors", "the name " + name, "a meaning of its own", "another name");
    header[name] = {{"dtype", types[int(x.type)]}, {"shape", x.extents}, {"data_offsets", {at, at + x.bytes.size()}}};
    at += x.bytes.size();
  }
  std::string json;
  try {
    json = header.dump();
  } catch (nlohmann::json::exception const&) {
    throw error("io::write_safetensors", "a name", "bytes that are not UTF-8", "UTF-8");
  }
  json.append((8 - json.size() % 8) % 8, ' ');  // data begin at a multiple of 8 bytes
  std::vector<unsigned char> length;
  detail::append_little_endian<8>(length, json.size());
  std::vector<std::span<unsigned char const>> parts{length, detail::bytes_of(json)};
  for (auto const& [name, x] : tensors) parts.emplace_back(x.bytes);
  detail::write_file("io::write_safetensors", file, parts);
}

}  // namespace attune::io
