// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   row n:  f cos(p_n w_0) .. f cos(p_n w_{R-1}), f sin(p_n w_0) .. f sin(p_n w_{R-1})
//
// The cosines and sines of a rotary embedding, computed once. rotary_angles owns them. Policies hold rotary_rows, a
// view. The angles are data: nothing here is learned, and there is no gradient by them.
#pragma once

#include <cmath>
#include <type_traits>
#include <vector>

#include <attune/core/rotary_frequencies.hpp>
#include <attune/core/stored_view.hpp>

namespace attune {

/// Which features form pair r of R: (r, r + R) or (2 r, 2 r + 1). Features from 2 R on are not turned.
enum class rotary_layout {
  half,         ///< (r, r + R): Llama, GPT-NeoX
  interleaved,  ///< (2 r, 2 r + 1): RoFormer, GPT-J
};

/// How the input .k stores the keys.
enum class rotary_keys {
  plain,   ///< as projected: the operator turns them
  turned,  ///< turned already: the operator turns the queries alone, and the gradient is by the turned keys
};

/// The cosines and sines of positions. T is float or double: the type of the executor, so that they are rounded once.
/// Memory:    2 R numbers for each position.
/// Precision: the angle p w is computed in double with the rounding error of the product added back. So a cosine or a
///            sine is off by at most the rounding of T plus 3e-16, for every position: 3.0e-8 in float. The frequency
///            itself is a double: relative to a frequency of more digits, an angle is off by |p w| 1.2e-16 more.
template <class T = float>
class rotary_angles {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "attune: rotary_angles<T> holds float or double numbers");

 public:
  /// Row n belongs to position n, for n = 0 .. length - 1. All axes have the same position.
  rotary_angles(rotary_frequencies const& f, index_t length) : extents_{1, 1, length, 2 * index_t(f.values.size())} {
    if (length < 0) throw error("rotary_angles", "length", detail::text("the value ", length), "at least 0");
    fill(f, [](index_t, index_t n, index_t) { return double(n); }, 0);
  }
  /// Row n of batch element b belongs to the position p(b, 0, n, axis): a (1|B, 1, rows, axes) tensor of numbers.
  rotary_angles(rotary_frequencies const& f, stored_view positions)
      : extents_{positions.extents().batch, 1, positions.extents().position, 2 * index_t(f.values.size())} {
    if (positions.absent() || positions.extents().head != 1)
      throw error("rotary_angles", "positions", detail::text("shape ", to_string(positions.extents())),
                  "(1 or batch, 1, rows, axes)");
    fill(f, [&](index_t b, index_t n, index_t axis) { return positions(b, 0, n, axis); }, positions.extents().feature);
  }
  /// From cosines and sines of another program: two (1|B, 1, rows, R) tensors, which are copied.
  static rotary_angles from(stored_view cosines, stored_view sines) {
    shape const e = cosines.extents();
    if (!(e == sines.extents()) || e.head != 1)
      throw error("rotary_angles::from", "the tensors",
                  detail::text("shapes ", to_string(e), " and ", to_string(sines.extents())),
                  "two equal shapes (1 or batch, 1, rows, pairs)");
    rotary_angles to;
    to.extents_ = {e.batch, 1, e.position, 2 * e.feature};
    to.values_.reserve(std::size_t(to.extents_.size()));
    for (index_t b = 0; b < e.batch; ++b)
      for (index_t n = 0; n < e.position; ++n) {
        for (index_t r = 0; r < e.feature; ++r) to.values_.push_back(T(cosines(b, 0, n, r)));
        for (index_t r = 0; r < e.feature; ++r) to.values_.push_back(T(sines(b, 0, n, r)));
      }
    return to;
  }

  /// Turns keys in place, before they go to a cache of turned keys. Row n of x, of every head, has position first + n.
  /// E is float, double or a 16-bit type. Errors: attune::error if a row or a pair of features is missing.
  template <class E>
  void turn(rotary_layout layout, tensor<E> const& x, index_t first = 0) const {
    using number = std::conditional_t<std::is_same_v<E, double>, double, float>;
    shape const e = x.extents();
    if (first < 0 || first + e.position > rows())
      throw error("rotary_angles::turn", "first", detail::text("the value ", first, " for ", e.position, " rows"),
                  detail::text("rows within the ", rows(), " of the angles"));
    if (2 * pairs() > e.feature || (extents_.batch != 1 && extents_.batch != e.batch))
      throw error("rotary_angles::turn", "x", detail::text("shape ", to_string(e)),
                  detail::text("at least ", 2 * pairs(), " features, and the batch of the angles"));
    for (index_t b = 0; b < e.batch; ++b)
      for (index_t h = 0; h < e.head; ++h)
        for (index_t n = 0; n < e.position; ++n) {
          T const* const by = values_.data() + ((extents_.batch == 1 ? 0 : b) * rows() + first + n) * extents_.feature;
          for (index_t r = 0; r < pairs(); ++r) {
            bool const half = layout == rotary_layout::half;
            E &p = x(b, h, n, half ? r : 2 * r), &q = x(b, h, n, half ? r + pairs() : 2 * r + 1);
            number const c = number(by[r]), s = number(by[pairs() + r]), a = number(p), o = number(q);
            p = E(c * a - s * o);
            q = E(c * o + s * a);
          }
        }
  }

  index_t rows() const { return extents_.position; }      ///< positions of a batch element
  index_t pairs() const { return extents_.feature / 2; }  ///< R
  /// (1|B, 1, rows, 2 R): R cosines, then R sines. For a device, copy them and give kernel::rotary a view of the copy.
  tensor<T const> values() const { return {values_.data(), extents_}; }

 private:
  rotary_angles() = default;
  /// `axes`: the number of axes that positions have; 0: any.
  template <class Position>
  void fill(rotary_frequencies const& f, Position const& position, index_t axes) {
    index_t const pairs = index_t(f.values.size());
    if (pairs < 1) throw error("rotary_angles", "frequencies", "no value", "one for each pair of features");
    if (!f.axes.empty() && f.axes.size() != f.values.size())
      throw error("rotary_angles", "frequencies.axes", detail::text(f.axes.size(), " entries"),
                  detail::text(pairs, ", one for each frequency, or none"));
    for (index_t const axis : f.axes)
      if (axis < 0 || (axes > 0 && axis >= axes))
        throw error("rotary_angles", "frequencies.axes", detail::text("the value ", axis),
                    detail::text("an axis of the positions, which have ", axes));
    values_.resize(std::size_t(extents_.size()));
    T* to = values_.data();
    for (index_t b = 0; b < extents_.batch; ++b)
      for (index_t n = 0; n < extents_.position; ++n, to += 2 * pairs)
        for (index_t r = 0; r < pairs; ++r) {
          double const p = position(b, n, f.axes.empty() ? 0 : f.axes[std::size_t(r)]), w = f.values[std::size_t(r)];
          double const angle = p * w, lost = std::fma(p, w, -angle), c = std::cos(angle), s = std::sin(angle);
          if (!std::isfinite(angle) || !std::isfinite(f.attention_factor))
            throw error("rotary_angles", "an angle", detail::text("the value ", angle * f.attention_factor),
                        "finite positions, frequencies and attention factor");
          to[r] = T(f.attention_factor * (c - lost * s));
          to[pairs + r] = T(f.attention_factor * (s + lost * c));
        }
  }

  shape extents_{0, 0, 0, 0};
  std::vector<T> values_;
};
rotary_angles(rotary_frequencies, index_t) -> rotary_angles<float>;

/// A view of angles: the rows that queries and keys read. The angles must outlive it.
class rotary_rows {
 public:
  constexpr rotary_rows() = default;
  /// Counted positions: query i reads row i + offset, key j reads row j.
  template <class T>
  rotary_rows(rotary_angles<T> const& angles) : rotary_rows(stored_view(angles.values())) {
    on_host_ = true;
  }
  /// Given positions: query i reads row i of `queries`, key j reads row j of `keys`.
  template <class T, class U>
  rotary_rows(rotary_angles<T> const& queries, rotary_angles<U> const& keys)
      : rotary_rows(stored_view(queries.values()), stored_view(keys.values())) {
    on_host_ = true;
  }
  template <class T>
  rotary_rows(rotary_angles<T> const&&) = delete;  // it would dangle
  template <class T, class U>
  rotary_rows(rotary_angles<T> const&&, rotary_angles<U> const&) = delete;
  template <class T, class U>
  rotary_rows(rotary_angles<T> const&, rotary_angles<U> const&&) = delete;
  template <class T, class U>
  rotary_rows(rotary_angles<T> const&&, rotary_angles<U> const&&) = delete;
  /// The same from arrays that the executor can read, as rotary_angles::values() lays them out, with contiguous rows.
  rotary_rows(stored_view counted) : queries_(checked(counted)), keys_(counted) {}
  /// Given positions: a row of `queries` for each query, and a row of `keys` for each key.
  rotary_rows(stored_view queries, stored_view keys)
      : queries_(checked(queries)), keys_(checked(keys)), counted_(false) {}

  stored_view const& queries() const { return queries_; }  ///< (1|B, 1, rows, 2 R), read by queries
  stored_view const& keys() const { return keys_; }        ///< (1|B, 1, rows, 2 R), read by keys
  bool counted() const { return counted_; }                ///< query i reads row i + offset, not row i
  bool on_host() const { return on_host_; }                ///< the angles belong to a rotary_angles
  /// R, the number of pairs of features that turn.
  ATTUNE_HD constexpr index_t pairs() const { return queries_.extents().feature / 2; }
  /// The row of query i.
  ATTUNE_HD constexpr index_t row_of_query(index_t i, index_t offset) const { return counted_ ? i + offset : i; }
  /// The cosine of pair r in row n for the queries of batch element b.
  ATTUNE_HD constexpr double query_cosine(index_t b, index_t n, index_t r) const { return queries_(b, 0, n, r); }
  /// Its sine.
  ATTUNE_HD constexpr double query_sine(index_t b, index_t n, index_t r) const {
    return queries_(b, 0, n, pairs() + r);
  }
  /// The cosine of pair r in row n for the keys of batch element b.
  ATTUNE_HD constexpr double key_cosine(index_t b, index_t n, index_t r) const { return keys_(b, 0, n, r); }
  /// Its sine.
  ATTUNE_HD constexpr double key_sine(index_t b, index_t n, index_t r) const { return keys_(b, 0, n, pairs() + r); }

 private:
  static stored_view const& checked(stored_view const& x) {
    shape const e = x.extents();
    if (x.absent() || e.head != 1 || e.feature < 2 || e.feature % 2 != 0 || x.steps().feature != 1)
      throw error("kernel::rotary", "angles", detail::text("shape ", to_string(e)),
                  "(1 or batch, 1, rows, 2 R) with contiguous rows: R cosines, then R sines");
    return x;
  }

  stored_view queries_, keys_;
  bool counted_ = true, on_host_ = false;
};

/// The two features of pair r of R.
struct rotary_pair {
  index_t first,  ///< becomes cos first - sin second
      second;     ///< becomes cos second + sin first
  /// Pair r of `pairs` pairs, 0 <= r < pairs; not checked.
  ATTUNE_HD constexpr rotary_pair(rotary_layout layout, index_t pairs, index_t r)
      : first(layout == rotary_layout::half ? r : 2 * r),
        second(layout == rotary_layout::half ? r + pairs : 2 * r + 1) {}
};

}  // namespace attune
