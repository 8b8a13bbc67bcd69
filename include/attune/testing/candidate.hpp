// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   candidate given(tensor(out, {B, H, Lq, Dv}));   given.with_lse(natural_lse(view)).with_ground_weight(view);
//
// The results of the kernel under test, read into doubles. The storage type is the tensor's.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include <attune/core/lse.hpp>
#include <attune/core/tensor.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::testing {

/// The first finite number that a format does not have; null if it has them all.
inline double const* foreign_to(storage s, std::vector<double> const& x) {
  auto const found =
      std::find_if(x.begin(), x.end(), [&](double y) { return std::isfinite(y) && rounded_to(s, y) != y; });
  return found == x.end() ? nullptr : &*found;
}
/// Throws attune::error if a number has more digits than the format of the kernel's results.
inline void require_format(std::string_view name, std::vector<double> const& x, storage s) {
  if (double const* const odd = foreign_to(s, x))
    throw error("testing::verdict", name, attune::detail::text("the number ", *odd),
                attune::detail::text("numbers of ", name_of(s), ", the format that the kernel stores"));
}

/// The results of the kernel under test, as doubles, with the format in which the kernel stored `out`.
class candidate {
 public:
  /// out (B, H, Lq, Dv) as double, float, bfloat16 or float16, with any strides.
  template <class E>
  explicit candidate(tensor<E> const& out) : storage_(storage_of<E>()), extents_(out.extents()), out_(read(out)) {}

  /// From numbers that were already read into doubles. `stored` is the format that the kernel wrote.
  candidate(tensor<double const> const& out, storage stored)
      : storage_(stored), extents_(out.extents()), out_(read(out)) {}

  /// Takes the numbers of a tensor without strides.
  candidate(std::vector<double>&& out, shape const& extents, storage stored)
      : storage_(stored), extents_(extents), out_(std::move(out)) {
    if (index_t(out_.size()) != extents.size())
      throw error("testing::candidate", "out", attune::detail::text(out_.size(), " numbers"),
                  attune::detail::text(extents.size(), ", as many as ", to_string(extents), " has"));
  }

  /// (B, H, Lq, 1). The type states the log base: testing::verdict detects a base-2 lse that was passed as a natural
  /// one.
  template <class E>
  candidate& with_lse(natural_lse<E> const& lse) {
    return with_lse(lse, storage_of<E>());
  }
  /// Numbers that were already read into doubles. `stored` is the format that the kernel wrote.
  template <class E>
  candidate& with_lse(natural_lse<E> const& lse, storage stored) {
    lse_ = read(of_rows("lse", lse.values));
    lse_stored_ = stored;
    base_two_ = false;
    return *this;
  }
  /// (B, H, Lq, 1): logarithms of base 2, as FlashInfer returns them. They are read as natural ones.
  template <class E>
  candidate& with_base_two_lse(tensor<E> const& lse) {
    return with_base_two_lse(lse, storage_of<E>());
  }
  /// Numbers that were already read into doubles. `stored` is the format that the kernel wrote.
  template <class E>
  candidate& with_base_two_lse(tensor<E> const& lse, storage stored) {
    with_lse(natural_lse<E>(lse), stored);
    for (double& x : lse_) x *= 0.693147180559945309417;
    base_two_ = true;
    return *this;
  }
  /// (B, H, Lq, 1). Throws attune::error for another shape.
  template <class E>
  candidate& with_ground_weight(tensor<E> const& w0) {
    return with_ground_weight(w0, storage_of<E>());
  }
  /// Numbers that were already read into doubles. `stored` is the format that the kernel wrote.
  template <class E>
  candidate& with_ground_weight(tensor<E> const& w0, storage stored) {
    ground_weight_ = read(of_rows("ground_weight", w0));
    ground_weight_stored_ = stored;
    return *this;
  }

  storage stored() const { return storage_; }                                  ///< the format of `out`
  shape const& extents() const { return extents_; }                            ///< of `out`
  std::vector<double> const& out() const { return out_; }                      ///< row-major, like all below
  std::vector<double> const& lse() const { return lse_; }                      ///< empty: not given
  std::vector<double> const& ground_weight() const { return ground_weight_; }  ///< empty: not given
  bool base_two() const { return base_two_; }                                  ///< whether `lse` was given in base 2
  storage lse_stored() const { return lse_stored_; }                           ///< the format of `lse`
  storage ground_weight_stored() const { return ground_weight_stored_; }       ///< the format of `ground_weight`

 private:
  template <class E>
  tensor<E> const& of_rows(char const* name, tensor<E> const& x) const {
    shape const wanted{extents_.batch, extents_.head, extents_.position, 1};
    if (!(x.extents() == wanted))
      throw error("testing::candidate", name, "shape " + to_string(x.extents()),
                  to_string(wanted) + ": one number per row");
    return x;
  }
  template <class E>
  static std::vector<double> read(tensor<E> const& x) {
    shape const e = x.extents();
    std::vector<double> all;
    all.reserve(std::size_t(e.size()));
    for (index_t b = 0; b < e.batch; ++b)
      for (index_t h = 0; h < e.head; ++h)
        for (index_t i = 0; i < e.position; ++i)
          for (index_t d = 0; d < e.feature; ++d)
            all.push_back(double(arithmetic_t<std::remove_const_t<E>>(x(b, h, i, d))));
    return all;
  }

  storage storage_, lse_stored_ = storage::fp32, ground_weight_stored_ = storage::fp32;
  bool base_two_ = false;
  shape extents_;
  std::vector<double> out_, lse_, ground_weight_;
};

}  // namespace attune::testing
