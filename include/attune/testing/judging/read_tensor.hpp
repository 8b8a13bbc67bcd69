// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   auto const K = testing::read_tensor(tensor(k8, {pages, Hk, size, D}, steps), {.scales = S, .pages = table});
//   verdict(op, {.q = Q, .k = K, .v = V}, candidate(...))
//
// The inputs of a kernel, as a verdict reads them: numbers of 16 or 8 bits, with scales, in any strides or in the pages
// of a cache, become one dense tensor of doubles.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/core/error.hpp>
#include <attune/core/float8.hpp>
#include <attune/core/page_table.hpp>
#include <attune/core/storage.hpp>
#include <attune/core/stored_view.hpp>
#include <attune/exec/reference/any_tensor.hpp>

namespace attune::testing {

/// A dense tensor that owns its numbers. It converts to the view that a verdict reads, and must outlive it.
class dense_numbers {
 public:
  /// Row-major numbers of these extents.
  dense_numbers(shape const& extents, std::vector<double> values) : extents_(extents), values_(std::move(values)) {}

  shape const& extents() const { return extents_; }                   ///< (batch, head, position, feature)
  std::vector<double> const& values() const { return values_; }       ///< row-major
  std::vector<double> take() && { return std::move(values_); }        ///< the same, moved out
  operator any_tensor() const& { return tensor(values_, extents_); }  ///< a view of them
  operator any_tensor() && = delete;                                  // it would dangle

 private:
  shape extents_;
  std::vector<double> values_;
};

/// How a tensor is stored.
struct storage_layout {
  tensor<float const> scales = {};                ///< (1 or B, 1 or H, 1 or L, 1): a code means code * scale; absent: 1
  std::optional<page_table> pages = {};           ///< the tensor is (pages, H, keys of a page, D), and this says whose
  std::vector<index_t> const* lengths = nullptr;  ///< of paged sequences; null: every key of every page
};

namespace detail {

inline void check_scales(shape const& e, tensor<float const> const& scales) {
  if (scales.absent()) return;
  shape const& s = scales.extents();
  auto const fits = [](index_t has, index_t all) { return has == 1 || has == all; };
  if (!fits(s.batch, e.batch) || !fits(s.head, e.head) || !fits(s.position, e.position) || s.feature != 1)
    throw error("testing::read_tensor", "scales", "shape " + to_string(s),
                attune::detail::text("(1 or ", e.batch, ", 1 or ", e.head, ", 1 or ", e.position, ", 1)"));
}
inline void check_pages(shape const& e, page_table const& table, std::vector<index_t> const* lengths) {
  index_t const most = table.per_sequence() * e.position;
  if (lengths != nullptr && index_t(lengths->size()) != table.batch())
    throw error("testing::read_tensor", "lengths", attune::detail::text(lengths->size(), " entries"),
                attune::detail::text(table.batch(), ", one for each sequence of the page table"));
  for (index_t b = 0; b < table.batch(); ++b) {
    index_t const length = lengths == nullptr ? most : (*lengths)[std::size_t(b)];
    if (length < 0 || length > most)
      throw error("testing::read_tensor", attune::detail::text("lengths[", b, "]"),
                  attune::detail::text("the value ", length),
                  attune::detail::text("a number in [0, ", most, "], the keys of its pages"));
    for (index_t n = 0; n * e.position < length; ++n)
      if (table(b, n) < 0 || table(b, n) >= e.batch)
        throw error("testing::read_tensor", attune::detail::text("pages(", b, ", ", n, ")"),
                    attune::detail::text("the value ", table(b, n)),
                    attune::detail::text("a page in [0, ", e.batch, "): the sequence has ", length, " keys"));
  }
}

}  // namespace detail

/// Reads a tensor of double, float, bfloat16, float16, float8_e4m3fn or float8_e5m2 in any strides. A code times its
/// scale is exact here: a kernel that rounds the product to float makes one more rounding error.
/// pages:      key j of sequence b is row j mod size of page (b, j / size). The result is (sequences, H, keys, D), with
///             as many keys as the longest sequence has. Keys behind the end of a sequence are NaN, and no query may
///             see them (mask::padding).
/// Errors:     attune::error names scales, lengths, or an entry of the page table.
/// Complexity: one pass over the result.
template <class E>
dense_numbers read_tensor(tensor<E> const& x, storage_layout const& how = {}) {
  using element = std::remove_const_t<E>;
  shape const& e = x.extents();
  detail::check_scales(e, how.scales);
  stored_view const scales = how.scales.absent() ? stored_view() : stored_view(how.scales);
  auto const at = [&](index_t b, index_t h, index_t i, index_t d) {
    double number;
    if constexpr (std::is_same_v<element, double>)
      number = x(b, h, i, d);
    else
      number = double(float(x(b, h, i, d)));
    return scales.absent() ? number : number * scales(b, h, i, 0);
  };
  shape to = e;
  if (how.pages) {
    detail::check_pages(e, *how.pages, how.lengths);
    to.batch = how.pages->batch();
    to.position = how.pages->per_sequence() * e.position;
    if (how.lengths != nullptr) {
      to.position = 0;
      for (index_t length : *how.lengths) to.position = (std::max)(to.position, length);
    }
  }
  std::vector<double> all;
  all.reserve(std::size_t(to.size()));
  for (index_t b = 0; b < to.batch; ++b)
    for (index_t h = 0; h < to.head; ++h)
      for (index_t i = 0; i < to.position; ++i) {
        bool const behind = how.pages && how.lengths != nullptr && i >= (*how.lengths)[std::size_t(b)];
        index_t const page = how.pages && !behind ? (*how.pages)(b, i / e.position) : b;
        index_t const row = how.pages ? i % e.position : i;
        for (index_t d = 0; d < to.feature; ++d)
          all.push_back(behind ? std::numeric_limits<double>::quiet_NaN() : at(page, h, row, d));
      }
  return {to, std::move(all)};
}

}  // namespace attune::testing
