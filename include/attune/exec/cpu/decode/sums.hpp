// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sum[row] += masses[row] V,   and the same relative to a higher reference:   sum[row] *= e^(m - m')
//
// The part of the decode path's rows that no policy affects: compiled once for all operators that keep the same sums.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <attune/core/simd_lift.hpp>
#include <attune/exec/cpu/contraction/kinds.hpp>
#include <attune/exec/cpu/decode/visibility.hpp>
#include <attune/exec/cpu/products/buffer.hpp>
#include <attune/exec/cpu/row/planes.hpp>
#include <attune/exec/states.hpp>

namespace attune::exec_cpu {

/// How the decode path multiplies features, and weights with values: in T. The alternative: bf16_products.hpp.
struct float_products {
  template <class C, class T, class Arch>
  using contractor = decode_contractor<C, T, Arch>;

  /// Calls use(data, step) with rows [first, first + n) of one head in the form that the functions below read.
  /// `scratch`: room for whole rows.
  template <class T, class Arch, class E, class Use>
  static void with_rows(tensor<E const> const& x, index_t b, index_t h, index_t first, index_t n, T* scratch,
                        Use const& use) {
    with_whole_rows<T, Arch>(x, b, h, first, n, scratch, use);
  }
  template <class T, class Arch, class E>
  static void accumulate(T* sum, index_t rows, index_t width, T const* weights, E const* values, index_t value_step,
                         index_t n, prefetch_range const& ahead) {
    accumulate_features<T, Arch>(sum, rows, decode_tiling<T, Arch>::whole(width), weights, values, value_step, n,
                                 ahead);
  }
  template <class T, class Arch, class E>
  static void accumulate_seen(T* sum, index_t width, T const* weights, E const* values, index_t value_step, index_t,
                              std::uint64_t seen) {
    accumulate_seen_features<T, Arch>(sum, decode_tiling<T, Arch>::whole(width), weights, values, value_step, seen);
  }
};

/// Represents all normalizers that keep the same sums of values.
template <row_family Family, bool UniformShare>
struct sums_like {
  static constexpr normalizer_traits traits{.family = Family, .uniform_share = UniformShare};
};
/// The same with a uniform share whose keys have factors f: sum v becomes sum f v, with f in the last plane of pairs.
template <row_family Family>
struct factored_sums_like : sums_like<Family, true> {
  static constexpr bool factored_share = true;
};
template <class Op>
using sums_of = std::conditional_t<pair_planes<Op>::factored_share, factored_sums_like<Op::normalizer_is.family>,
                                   sums_like<Op::normalizer_is.family, Op::normalizer_is.uniform_share>>;

template <class T, class Arch>
T sum_of_lanes(xsimd::batch<T, Arch> const& x) {
  alignas(64) T lanes[xsimd::batch<T, Arch>::size];
  x.store_aligned(lanes);
  for (int half = int(xsimd::batch<T, Arch>::size) / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  return lanes[0];
}
/// Uses math::larger, so that NaN lanes do not count.
template <class T, class Arch>
T largest_lane(xsimd::batch<T, Arch> const& x) {
  alignas(64) T lanes[xsimd::batch<T, Arch>::size];
  x.store_aligned(lanes);
  for (int half = int(xsimd::batch<T, Arch>::size) / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) lanes[l] = math::larger(lanes[l], lanes[l + half]);
  return lanes[0];
}

/// The masses of a row. The reference is the same in all lanes; each lane has the masses of its keys.
template <class T, class Arch>
struct decode_masses {
  xsimd::batch<T, Arch> reference, earned, ground, lowest;
};

/// The rows of a worker's current task. Sums: a sums_like. Products: float_products or another type.
template <class T, class Arch, class Sums, class Products>
class decode_sums {
 public:
  using tile = decode_tiling<T, Arch>;
  using batch = typename tile::batch;
  static constexpr bool adjusted = Sums::traits.family == row_family::range_weighted;
  static constexpr bool uniform_share = Sums::traits.uniform_share;
  static constexpr bool factored_share = requires { Sums::factored_share; };
  static constexpr bool has_second = row_state<T>::template has_second<Sums>;
  static constexpr int lanes = tile::lanes;
  static constexpr index_t block = tile::block;
  /// Self-adjusted rows subtract sums of values, so they always use float products.
  using products = std::conditional_t<adjusted, float_products, Products>;

  /// `buffers`: planes of pairs. `packed`, `copied`: elements of the packed queries, and of a block of keys or values.
  ATTUNE_NOINLINE decode_sums(problem_shape const& p, index_t most_rows, index_t buffers, index_t packed,
                              index_t copied)
      : p_(&p), plane_(most_rows * block), width_(tile::whole(p.value_width)), packed_(packed),
        pairs_(buffers * plane_), copy_((std::max)(copied, arena<T>::template size_of<value_copies>(width_))),
        sum_(most_rows * width_), second_(has_second ? most_rows * width_ : 0), common_(uniform_share ? width_ : 0),
        ones_(uniform_share ? block : 0) {
    if constexpr (uniform_share) std::fill_n(ones_.data(), block, T(1));
    if constexpr (factored_share) last_plane_ = buffers - 1;
  }

 protected:
  ATTUNE_NOINLINE ~decode_sums() = default;

  /// Resets the rows: no key seen yet.
  ATTUNE_NOINLINE void clear(decode_place const& at) {
    at_ = at;
    masses_.assign(std::size_t(at.rows), {initial_max<batch>(), batch(T(0)), batch(T(0)), math::infinity<batch>()});
    seen_.resize(std::size_t(at.rows));
    std::fill_n(sum_.data(), at.rows * width_, T(0));
    if constexpr (has_second) std::fill_n(second_.data(), at.rows * width_, T(0));
    if constexpr (uniform_share) std::fill_n(common_.data(), width_, T(0));
  }

  /// Adds the values of a block that the rows see, with the weights in pairs_. `next`: rows to prefetch meanwhile.
  template <class E>
  ATTUNE_NOINLINE void add_values(tensor<E const> const& v, key_block_place const& keys, prefetch_range const& next) {
    bool const by_all =
        std::all_of(seen_.begin(), seen_.end(), [&](std::uint64_t x) { return x == lowest_bits(keys.n); });
    index_t const head = p_->group(at_.head, p_->value_heads);
    products::template with_rows<T, Arch>(
        v, at_.b, head, keys.first, keys.n, arena<T>::template in<value_copies>(copy_.data(), width_).values,
        [&](auto const* values, index_t step) {
          add(values, step, keys.n, by_all, pairs_.data(), sum_.data(), next);
          if constexpr (adjusted) add(values, step, keys.n, by_all, pairs_.data() + plane_, second_.data(), {});
          if constexpr (factored_share) {
            add(values, step, keys.n, by_all, pairs_.data() + last_plane_ * plane_, second_.data(), {});
          } else if constexpr (uniform_share) {
            if (by_all)
              products::template accumulate<T, Arch>(common_.data(), 1, p_->value_width, ones_.data(), values, step,
                                                     keys.n, {});
            else
              for (std::size_t r = 0; r < seen_.size(); ++r)
                products::template accumulate_seen<T, Arch>(second_.data() + index_t(r) * width_, p_->value_width,
                                                            ones_.data(), values, step, keys.n, seen_[r]);
          }
        });
  }

  /// Calls visit(plane of pairs with the weights, [row][width]) for each sum of values with weights.
  template <class Visit>
  void each_sum(Visit const& visit) const {
    visit(0, sum_.data());
    if constexpr (adjusted) visit(1, second_.data());
    if constexpr (factored_share) visit(last_plane_, second_.data());
  }

  /// Changes all masses and value sums of a row to a higher reference.
  ATTUNE_NOINLINE void raise(index_t r, T const& to) {
    decode_masses<T, Arch>& masses = masses_[std::size_t(r)];
    batch const higher(to), drop = masses.reference - higher, factor = math::exp_nonpositive(drop);
    masses.reference = higher;
    masses.earned = masses.earned * factor;
    masses.ground = masses.ground * factor;
    for (index_t d = r * width_; d < (r + 1) * width_; d += lanes) {
      batch const sum = batch::load_aligned(sum_.data() + d);
      // sum e (a - m') v = sum e (a - m) v + (m - m') sum e v
      if constexpr (adjusted)
        (simd::multiply_add(sum, drop, batch::load_aligned(second_.data() + d)) * factor)
            .store_aligned(second_.data() + d);
      (sum * factor).store_aligned(sum_.data() + d);
    }
  }

  ATTUNE_NOINLINE void write_states(row_states<T, Sums>& to) const {
    index_t const width = p_->value_width;
    for (index_t r = 0; r < at_.rows; ++r) {
      index_t const n = to.at(at_.b, at_.head_of(r), at_.query_of(r));
      auto const u = std::size_t(n);
      decode_masses<T, Arch> const& masses = masses_[std::size_t(r)];
      to.reference[u] = largest_lane(masses.reference);
      to.earned[u] = sum_of_lanes(masses.earned);
      to.ground[u] = sum_of_lanes(masses.ground);
      if constexpr (adjusted) to.lowest[u] = -largest_lane(batch(-masses.lowest));
      std::copy_n(sum_.data() + r * width_, width, to.acc.begin() + n * width);
      if constexpr (has_second)
        for (index_t d = 0; d < width; ++d) {
          T x = second_.data()[r * width_ + d];
          if constexpr (uniform_share) x += common_.data()[d];
          to.second[std::size_t(n * width + d)] = x;
        }
    }
  }

  problem_shape const* p_;
  index_t plane_, width_;  ///< elements of a plane of pairs [row][block]; value features in whole batches
  aligned_buffer<T> packed_, pairs_, copy_;
  decode_place at_{};
  std::vector<decode_masses<T, Arch>> masses_;
  std::vector<std::uint64_t> seen_;  ///< for the current block: a bit per key, for each row

 private:
  /// Values that are not whole batches of contiguous features.
  struct value_copies {
    T* values;
    value_copies(arena<T>& from, index_t width) : values(from.take(block * width)) {}
  };
  /// sum += weights V. Values that a row does not see may hold anything and are skipped: 0 * NaN would be NaN.
  template <class E>
  void add(E const* values, index_t step, index_t n, bool by_all, T const* weights, T* sum,
           prefetch_range const& next) const {
    if (by_all)
      products::template accumulate<T, Arch>(sum, at_.rows, p_->value_width, weights, values, step, n, next);
    else
      for (index_t r = 0; r < at_.rows; ++r)
        products::template accumulate_seen<T, Arch>(sum + r * width_, p_->value_width, weights + r * block, values,
                                                    step, n, seen_[std::size_t(r)]);
  }

  struct no_plane {};
  aligned_buffer<T> sum_, second_, common_, ones_;
  [[no_unique_address]] std::conditional_t<factored_share, index_t, no_plane> last_plane_{};  ///< factors of the share
};

template <class T, class Sums>
ATTUNE_NOINLINE std::vector<row_states<T, Sums>> empty_parts(index_t count, problem_shape const& p) {
  return std::vector<row_states<T, Sums>>(std::size_t(count), row_states<T, Sums>(Sums{}, p));
}

/// parts[0] = the states of all parts, merged in order.
template <class T, class Sums>
ATTUNE_NOINLINE void merge_parts(std::vector<row_states<T, Sums>>& parts) {
  for (std::size_t c = 1; c < parts.size(); ++c) attune::detail::merge_in_place(parts[0], parts[c]);
}

}  // namespace attune::exec_cpu
