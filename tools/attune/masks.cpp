// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "masks.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include <attune/policies/mask/band.hpp>
#include <attune/policies/mask/causal.hpp>
#include <attune/policies/mask/documents.hpp>
#include <attune/policies/mask/padding.hpp>
#include <attune/policies/mask/prefix.hpp>
#include <attune/policies/mask/sink_window.hpp>

#include "files.hpp"
#include "values.hpp"

namespace attune::tool {
namespace {

/// Which rows and keys a mask tells apart, and what it shows.
struct part {
  bool by_batch = false, by_head = false;
  std::function<key_interval(mask_row const&)> keys;           ///< where each row sees one interval
  std::function<bool(mask_row const&, index_t)> visible = {};  ///< else
};

template <class Mask>
part interval_part(Mask const& m, mask_shape const& of) {
  mask::check(m, of);
  return {.keys = [m](mask_row const& r) { return mask::next(m, r, 0); }};
}

/// visible=FILE: (1 or B, 1 or H, Lq, Lk) of 0 and 1.
part table_part(std::string const& word, std::string const& file, mask_shape const& of) {
  io::array const x = read_array(word, file, "visible", std::nullopt);
  auto const values = naming(word, [&] { return io::integers(x); });
  shape const e = naming(word, [&] { return io::tensor_shape(x); });
  if ((e.batch != 1 && e.batch != of.batch) || (e.head != 1 && e.head != of.heads) || e.position != of.queries ||
      e.feature != of.keys)
    throw usage_error(word + ": shape " + to_string(e) + "; expected (1 or " + std::to_string(of.batch) + ", 1 or " +
                      std::to_string(of.heads) + ", " + std::to_string(of.queries) + ", " + std::to_string(of.keys) +
                      ")");
  for (index_t v : values)
    if (v != 0 && v != 1)
      throw usage_error(word + ": an entry " + std::to_string(v) + "; expected 0 and 1, or booleans");
  return {
      .by_batch = e.batch > 1, .by_head = e.head > 1, .keys = {}, .visible = [e, values](mask_row const& r, index_t j) {
        index_t const b = e.batch == 1 ? 0 : r.batch, h = e.head == 1 ? 0 : r.head;
        return values[std::size_t(((b * e.head + h) * e.position + r.query) * e.feature + j)] != 0;
      }};
}

/// documents=FILE: an id per position, (L) or (B, L), the same for queries and keys.
part documents_part(std::string const& word, std::string const& file, mask_shape const& of) {
  io::array const x = read_array(word, file, "documents", std::nullopt);
  auto const ids = naming(word, [&] { return io::integers(x); });
  index_t const batch = x.extents.size() == 2 ? x.extents[0] : 1;
  if (of.queries != of.keys)
    throw usage_error(word + ": queries and keys of different number; expected as many of each");
  if (x.extents.empty() || x.extents.size() > 2 || (batch != 1 && batch != of.batch) || x.extents.back() != of.keys)
    throw usage_error(word + ": shape " + io::to_string(x.extents) + "; expected (" + std::to_string(of.keys) +
                      ",) or (" + std::to_string(of.batch) + ", " + std::to_string(of.keys) + "), one id per position");
  return {.by_batch = batch > 1, .by_head = false, .keys = {}, .visible = [ids, batch](mask_row const& r, index_t j) {
            mask::documents const m(ids, batch);
            return m.visible(r, j);
          }};
}

/// padding=LENGTHS: visible keys per batch element.
part padding_part(std::string const& word, std::string const& value, mask_shape const& of) {
  std::vector<index_t> const lengths = integer_list(word, value, "padding");
  mask::check(mask::padding(lengths), of);
  return {.by_batch = true, .keys = [lengths](mask_row const& r) { return mask::next(mask::padding(lengths), r, 0); }};
}

/// window=LEFT:RIGHT: as window(LEFT, RIGHT) of Python and window_size of FlashAttention; -1 is no limit.
mask::band band_of(std::string const& word, std::string const& value) {
  auto const colon = value.find(':');
  if (colon == std::string::npos)
    throw usage_error(
        "--mask", word,
        "window=LEFT:RIGHT, keys before and after the query's own (window=" + value + ":" + value + " for a radius)");
  std::string const argument = "--mask " + word;
  auto const width = [&](std::string const& text) {
    index_t const n = integer(argument, text);
    if (n < -1) throw usage_error(argument, text, "a number of at least 0, or -1 for no limit");
    return n == -1 ? mask::band::no_limit : n;
  };
  return {width(value.substr(0, colon)), width(value.substr(colon + 1))};
}

part part_of(std::string const& word, mask_shape const& of) {
  auto const equals = word.find('=');
  std::string const kind = word.substr(0, equals);
  bool const has_value = equals != std::string::npos;
  std::string const value = has_value ? word.substr(equals + 1) : "", argument = "--mask " + word;
  if (kind == "causal" && !has_value) return interval_part(mask::causal{}, of);
  if (kind == "window" && has_value) return interval_part(band_of(word, value), of);
  if (kind == "causal_window" && has_value)
    throw usage_error("--mask", word,
                      "window=" + std::to_string(integer(argument, value) - 1) + ":0, which are " + value +
                          " keys with the query's own: masks.window(" + std::to_string(integer(argument, value) - 1) +
                          ", 0) in Python");
  if (kind == "prefix" && has_value) return interval_part(mask::prefix{integer(argument, value)}, of);
  if (kind == "padding" && has_value) return padding_part(argument, value, of);
  if (kind == "documents" && has_value) return documents_part(argument, value, of);
  if (kind == "visible" && has_value) return table_part(argument, value, of);
  if (kind == "sink_window" && has_value) {
    auto const colon = value.find(':');
    if (colon == std::string::npos) throw usage_error("--mask", word, "sink_window=SINKS:WIDTH, as sink_window=4:256");
    mask::sink_window const m{integer(argument, value.substr(0, colon)), integer(argument, value.substr(colon + 1))};
    mask::check(m, of);
    return {.keys = {}, .visible = [m](mask_row const& r, index_t j) { return mask::sees(m, r, j); }};
  }
  throw usage_error("--mask", word, std::string("one of ") + mask_help());
}

}  // namespace

char const* mask_help() {
  return "causal, window=LEFT:RIGHT (keys before and after the query's own, -1 for no limit), prefix=LENGTH, "
         "sink_window=SINKS:WIDTH, padding=LENGTHS, "
         "documents=IDS.npy, "
         "visible=TABLE.npy";
}

std::string mask_in_words(std::string const& word) {
  auto const equals = word.find('=');
  std::string const kind = word.substr(0, equals), value = equals == std::string::npos ? "" : word.substr(equals + 1);
  auto const colon = value.find(':');
  if (kind == "none") return "none: all keys";
  if (kind == "causal") return "causal: keys up to the query";
  if (kind == "window") {
    std::string const left = value.substr(0, colon), right = value.substr(colon + 1);
    return "window: " + (left == "-1" ? "all keys" : left + " keys") + " before the query's own, " +
           (right == "-1" ? "all" : right) + " after it";
  }
  if (kind == "prefix") return "prefix: the first " + value + " keys, and keys up to the query";
  if (kind == "padding") return "padding: as many keys as each batch element has (" + value + ")";
  if (kind == "documents") return "documents: keys with the id of the query (" + value + ")";
  if (kind == "visible") return "a table of visible keys (" + value + ")";
  return "sink window: the first " + value.substr(0, colon) + " keys, and the last " + value.substr(colon + 1) +
         " up to the query";
}

mask_memory make_mask(std::vector<std::string> const& words, mask_shape const& of, query_places const& at,
                      misplaced const& wrong) {
  mask_memory m;
  bool const packed = !at.cu_seqlens_q.empty();
  /// A part for each packed sequence, or for the whole call.
  struct frame {
    index_t first_query, queries, first_key, keys;
    std::vector<part> parts;
  };
  std::vector<frame> frames;
  if (packed)
    for (std::size_t s = 0; s + 1 < at.cu_seqlens_q.size(); ++s)
      frames.push_back({at.cu_seqlens_q[s],
                        at.cu_seqlens_q[s + 1] - at.cu_seqlens_q[s],
                        at.cu_seqlens_k[s],
                        at.cu_seqlens_k[s + 1] - at.cu_seqlens_k[s],
                        {}});
  else
    frames.push_back({0, of.queries, 0, of.keys, {}});
  for (frame& f : frames) {
    for (auto const& word : words) {
      if (word == "none") continue;
      for (char const* array : {"padding", "documents", "visible"})
        if (packed && word.rfind(array, 0) == 0)
          throw usage_error("--mask", word, "a mask without an array: --cu-seqlens applies it to each sequence");
      f.parts.push_back(part_of(word, {of.batch, of.heads, f.queries, f.keys}));
    }
    if (!at.lengths.empty())
      f.parts.push_back({.by_batch = true, .keys = [&at](mask_row const& r) {
                           return key_interval{0, at.lengths[std::size_t(r.batch)]};
                         }});
  }
  if (frames.size() == 1 && !packed && frames[0].parts.empty()) return m;

  shape intervals{at.offsets.empty() ? 1 : of.batch, 1, of.queries, 1}, table{1, 1, of.queries, of.keys};
  bool any_table = false;
  for (frame const& f : frames)
    for (auto const& p : f.parts) {
      shape& s = p.visible ? table : intervals;
      any_table = any_table || p.visible;
      if (p.by_batch) s.batch = of.batch;
      if (p.by_head) s.head = of.heads;
    }
  if (!at.offsets.empty()) table.batch = of.batch;
  auto const for_each_row = [&](shape const& s, auto const& visit) {
    for (index_t b = 0; b < s.batch; ++b)
      for (index_t h = 0; h < s.head; ++h)
        for (frame const& f : frames) {
          index_t const aligned = packed ? f.keys - f.queries : at.offset_of(b);
          index_t const first = wrong.top_left ? 0 : aligned + wrong.by;
          for (index_t i = 0; i < f.queries; ++i) visit(mask_row{b, h, i, i + first, f.queries, f.keys}, f);
        }
  };
  m.hulls.reserve(std::size_t(intervals.size()));
  for_each_row(intervals, [&](mask_row const& r, frame const& f) {
    key_interval seen{0, f.keys};
    for (auto const& p : f.parts)
      if (p.keys) {
        key_interval const k = p.keys(r);
        seen = {std::max(seen.first, k.first), std::min(seen.last, k.last)};
      }
    m.hulls.push_back({f.first_key + seen.first, f.first_key + seen.last});
  });
  m.view.hulls = m.hulls.data();
  m.view.hull_shape = intervals;
  if (!any_table) return m;
  m.visible.reserve(std::size_t(table.size()));
  for_each_row(table, [&](mask_row const& r, frame const& f) {
    for (index_t j = 0; j < of.keys; ++j) {
      index_t const key = j - f.first_key;
      m.visible.push_back(
          key >= 0 && key < f.keys &&
          std::all_of(f.parts.begin(), f.parts.end(), [&](part const& p) { return !p.visible || p.visible(r, key); }));
    }
  });
  m.view.visible = m.visible.data();
  m.view.visible_shape = table;
  return m;
}

}  // namespace attune::tool
