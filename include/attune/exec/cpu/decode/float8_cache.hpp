// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   decode(cpu_float8_cache<float8_e4m3fn>{}, op, {.q = Q, .k = {K, 0.02f}, .v = {V, scales}}, {.out = O})
//
// Keys and values of 8 bits, with a scale per tensor or per head; all other tensors are of type T. Include this header
// in addition to attune/attune.hpp.
#pragma once

#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include <attune/core/float8.hpp>
#include <attune/exec/cpu/decode/stored.hpp>
#include <attune/exec/cpu/tile/stored.hpp>

namespace attune {

ATTUNE_INTRINSICS_BEGIN
namespace exec_cpu {

/// N bytes, each in a 32-bit word. With intrinsics: g++ 12 compiles a conversion of vectors byte by byte.
template <int N, class E>
ATTUNE_INLINE auto words_of(E const* from) {
  using words = typename attune::detail::vector_of<std::uint32_t, N>::type;
  static_assert(sizeof(E) == 1);
#if defined(__AVX512F__)
  if constexpr (N == 16)
    return std::bit_cast<words>(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<__m128i const*>(from))));
#endif
#if defined(__AVX2__)
  if constexpr (N == 8)
    return std::bit_cast<words>(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<__m128i const*>(from))));
#endif
  words to;
  for (int l = 0; l < N; ++l) to[l] = from[l].bits;
  return to;
}

/// Floats of N codes. The exponent's bias is changed. A subnormal code is computed as a normal number minus its leading
/// bit: no subnormal float slows anything down. Infinity and NaN are kept.
template <class E, int N>
ATTUNE_INLINE auto widen_codes(E const* from) {
  constexpr bool has_infinity = std::is_same_v<E, float8_e5m2>;
  constexpr int fraction = has_infinity ? 2 : 3, bias = has_infinity ? 15 : 7, shift = 23 - fraction;
  using word = typename attune::detail::vector_of<std::uint32_t, N>::type;
  using floats = typename attune::detail::vector_of<float, N>::type;
  word const code = exec_cpu::words_of<N>(from), size = code & 0x7f, sign = (code & 0x80) << 24;
  constexpr std::uint32_t rebias = std::uint32_t(127 - bias) << 23, one = 1u << 23;
  word const normal = (size << shift) + rebias;
  floats const lowest = std::bit_cast<floats>(word{} + (rebias + one));
  word const subnormal = std::bit_cast<word>(std::bit_cast<floats>(normal + one) - lowest);
  word result = size < (1u << fraction) ? subnormal : normal;
  if constexpr (has_infinity)
    result = size >= 0x7c ? (size == 0x7c ? word{} + 0x7f800000u : word{} + 0x7fc00000u) : result;
  else
    result = size == 0x7f ? word{} + 0x7fc00000u : result;
  return std::bit_cast<floats>(result | sign);
}

/// to[d] = float(from[d]) * scale for n codes.
template <class E>
ATTUNE_NOINLINE void widen_codes(E const* ATTUNE_RESTRICT from, float scale, float* ATTUNE_RESTRICT to, index_t n) {
  constexpr int together = attune::detail::converted_together;
  index_t d = 0;
  for (; d + together <= n; d += together) {
    auto const some = exec_cpu::widen_codes<E, together>(from + d) * scale;
    std::memcpy(to + d, &some, sizeof some);
  }
  for (; d < n; ++d) to[d] = float(from[d]) * scale;
}

}  // namespace exec_cpu
ATTUNE_INTRINSICS_END

/// A tensor of T, or a tensor of 8-bit codes. A code means float(code) * scale, rounded to float. `scales` (1, heads,
/// 1, 1): one scale per head of the tensor.
template <class T, class E>
class float8_view {
 public:
  constexpr float8_view() = default;
  constexpr float8_view(tensor<T const> x) : plain_(x), extents_(x.extents()) {}  ///< a tensor of T
  constexpr float8_view(tensor<T> x) : float8_view(tensor<T const>(x)) {}         ///< a tensor of T
  /// Codes with one scale for all heads.
  constexpr float8_view(tensor<E const> codes, float scale) : codes_(codes), extents_(codes.extents()), scale_(scale) {}
  /// Codes with one scale per head: scales (1, heads, 1, 1).
  constexpr float8_view(tensor<E const> codes, tensor<float const> scales)
      : codes_(codes), scales_(scales), extents_(codes.extents()) {}

  constexpr bool absent() const { return plain_.absent() && codes_.absent(); }  ///< whether no tensor was given
  constexpr shape const& extents() const { return extents_; }                   ///< of the tensor
  constexpr bool has_codes() const { return !codes_.absent(); }                 ///< codes, not a tensor of T
  constexpr tensor<float const> const& scales() const { return scales_; }       ///< absent: one scale for all heads
  /// The factor of the codes of one head of the tensor.
  constexpr float scale(index_t head) const { return scales_.absent() ? scale_ : scales_(0, head, 0, 0); }
  /// Calls use(tensor) with the tensor that is present.
  template <class Use>
  decltype(auto) visit(Use const& use) const {
    return has_codes() ? use(codes_) : use(plain_);
  }
  /// The number that an element means, as a float; not checked.
  constexpr float operator()(index_t b, index_t h, index_t i, index_t d) const {
    return has_codes() ? float(codes_(b, h, i, d)) * scale(h) : float(plain_(b, h, i, d));
  }

  /// Like attune::detail::spread_over for a tensor.
  float8_view spread_over(shape const& all) const {
    float8_view to = *this;
    if (has_codes())
      to.codes_ = attune::detail::spread_over(codes_, all);
    else
      to.plain_ = attune::detail::spread_over(plain_, all);
    to.extents_ = {all.batch, all.head, all.position, extents_.feature};
    return to;
  }
  /// The same tensor with other extents. For checks only: the rows are elsewhere.
  float8_view with_extents(shape const& e) const {
    float8_view to = *this;
    to.extents_ = e;
    return to;
  }
  /// Throws unless all scales are finite. `name`: of the input.
  void require_finite_scales(char const* function, char const* name) const {
    using attune::detail::text;
    if (!has_codes()) return;
    if (!scales().absent())
      attune::detail::require_shape(function, text("the scales of ", name).c_str(), scales().extents(),
                                    {1, extents().head, 1, 1}, ": one per head of the tensor");
    for (index_t h = 0; h < extents().head; ++h)
      if (!std::isfinite(scale(h)))
        throw error(function, text("the scale of ", name), text("the value ", double(scale(h)), " for head ", h),
                    "a finite number");
  }
  /// Converts rows to floats, as exec_cpu::widened does for a tensor.
  static constexpr bool is_converted_by_itself = true;
  /// Rows [first, first + n) of heads [head, last_head] as floats, at their own indices. `to` has memory for them.
  tensor<float const> widened(float* to, index_t b, index_t head, index_t last_head, index_t first, index_t n) const {
    if (!has_codes()) return exec_cpu::widened(to, plain_, b, head, last_head, first, n);
    auto const convert = [&](index_t batch, index_t h, index_t i, float* row) {
      E const* const from = codes_.row(batch, h, i);
      index_t const step = codes_.steps().feature;
      float const factor = scale(h);
      if (step == 1) return exec_cpu::widen_codes(from, factor, row, extents_.feature);
      for (index_t d = 0; d < extents_.feature; ++d) row[d] = float(from[d * step]) * factor;
    };
    return exec_cpu::widened_by(convert, to, *this, b, head, last_head, first, n);
  }

 private:
  tensor<T const> plain_;
  tensor<E const> codes_;
  tensor<float const> scales_;
  shape extents_{0, 0, 0, 0};
  float scale_ = 1;
};

/// An executor like cpu<T> whose inputs may be float8 codes with scales. E is float8_e4m3fn or float8_e5m2; T is float,
/// bfloat16 or float16. It has forward() and decode(). Results equal the results of cpu<T> for the numbers that the
/// codes mean.
/// Cost:        a block of keys is converted to floats once for all query rows that share it: one conversion per
///              number, and a quarter of the memory traffic.
/// Determinism: bitwise the same for any number of threads and any strides.
template <class E, class T = float, class Arch = xsimd::default_arch>
struct cpu_float8_cache : cpu_threads {
  static_assert(std::is_same_v<E, float8_e4m3fn> || std::is_same_v<E, float8_e5m2>,
                "attune: cpu_float8_cache<E> reads float8_e4m3fn or float8_e5m2");
  static_assert(std::is_same_v<T, float> || storage_only<T>,
                "attune: tensors that are not 8-bit codes are float, bfloat16 or float16");
  using value_type = T;             ///< element type of outputs, and of inputs that are not codes
  using arch = Arch;                ///< instruction set
  using view = float8_view<T, E>;   ///< read-only view of an input
  using engine = exec_cpu::engine;  ///< where its rows are computed
  using instead = cpu<T, Arch>;     ///< what offers more
  /// The calls. Scores, gates and biases given per pair are not read from 8 bits.
  static constexpr call_table offers = [] {
    constexpr offer forwards = without(every_operator, &offer::mixtures, &offer::pair_inputs);
    call_table x;
    x.forward = forwards;
    x.decode = x.paged_decode = without(forwards, &offer::candidate_sets, &offer::ordered_sums, &offer::value_gates);
    return x;
  }();

  using cpu_threads::cpu_threads;
  constexpr cpu_float8_cache() = default;
  constexpr explicit cpu_float8_cache(cpu<T, Arch> const& like) : cpu_threads(like) {}  ///< runs on its threads
};

namespace detail {

template <class T, class E>
struct element_of<float8_view<T, E>> {
  using type = float;
};

}  // namespace detail

namespace exec_cpu {

/// The key source of decode() where some inputs are codes: converts blocks of keys to floats.
template <class Op, class View>
class converted_keys {
 public:
  using inputs_type = inputs<Op, tensor<float const>>;

  /// `resident`: the inputs without a row per key, as floats, and the extents of the others. `pages`: the table if `in`
  /// has pages; else null. Allocates room for blocks of `most` keys.
  converted_keys(inputs<Op, View> const& in, page_table const* pages, inputs_type const& resident,
                 problem_shape const& p, index_t most)
      : from_(&in), pages_(pages), size_(in.v.extents().position), in_(resident), p_(&p) {
    for_each_field([&]<field F>() {
      if constexpr (is_of_keys<F>) rows_[index_of(F)].resize(std::size_t(most * p.width_of(F) * p.heads_of(F)));
    });
  }

  inputs_type const& resident() const { return in_; }
  index_t end(index_t first) const {
    return pages_ && size_ != 0 ? (first / size_ + 1) * size_ : (std::numeric_limits<index_t>::max)();
  }
  inputs_type const& block(block_of_keys const& rows) {
    for_each_field([&]<field F>() {
      if constexpr (is_of_keys<F> && F != field::v) convert<F>(rows);
    });
    return in_;
  }
  tensor<float const> const& values(block_of_keys const& rows) {
    convert<field::v>(rows);
    return in_.v;
  }
  template <field F>
  prefetch_range ahead(index_t b, index_t h, index_t first, index_t last) const {
    if (first >= last) return {};
    place const at = place_of(b, first);
    if (at.batch < 0 || at.batch >= member<F>(*from_).extents().batch) return {};  // no query sees it
    index_t const end = (std::min)(last - at.skipped, size_);
    return member<F>(*from_).visit(
        [&](auto const& x) { return prefetch_range(x, at.batch, h, first - at.skipped, end); });
  }

 private:
  template <field F>
  static constexpr bool is_of_keys = Op::uses(F) && side_of(F) == input_side::key;
  static constexpr std::size_t index_of(field f) { return static_cast<std::size_t>(f); }
  /// The batch element of the inputs that has a key, and the keys in front of its first.
  struct place {
    index_t batch, skipped;
  };
  place place_of(index_t b, index_t key) const {
    if (!pages_) return {b, 0};
    return {(*pages_)(b, key / size_), key / size_ * size_};
  }
  template <field F>
  void convert(block_of_keys const& rows) {
    index_t const heads = p_->heads_of(F);
    place const at = place_of(rows.b, rows.first);
    tensor<float const> const x =
        widened(rows_[index_of(F)].data(), member<F>(*from_), at.batch, p_->group(rows.head, heads),
                p_->group(rows.last_head, heads), rows.first - at.skipped, rows.n);
    auto& to = member<F>(in_);
    to = {x.data() - at.skipped * x.steps().position, to.extents(), x.steps()};
  }

  inputs<Op, View> const* from_;
  page_table const* pages_;
  index_t size_;  ///< keys of a page; of all, if there are no pages
  inputs_type in_;
  problem_shape const* p_;
  std::array<std::vector<float>, field_count> rows_;
};

template <class E, class T, class Arch, class Op, class S>
void forward_rows(engine, cpu_float8_cache<E, T, Arch> const& exec, Op const& op,
                  inputs<Op, float8_view<T, E>> const& in, problem_shape const& p, outputs<Op, S> const& out,
                  attune::detail::heads_served const&) {
  stored_run<float8_view<T, E>, S, Arch, Op>(cpu_like<float>(exec), op, in, p, out)();
}

template <class Op, class View>
page_table const* pages_of(attune::detail::whole_cache<Op, View> const&) {
  return nullptr;
}
template <class Op, class View>
page_table const* pages_of(attune::detail::paged_cache<Op, View> const& cache) {
  return &cache.pages;
}
/// Results are bitwise the same from pages as from one piece if pages hold a multiple of 64 keys.
template <class E, class T, class Arch, class Op, class Cache, class S>
void decode_rows(engine, cpu_float8_cache<E, T, Arch> const& exec, Op const& op, Cache const& cache,
                 problem_shape const& p, outputs<Op, S> const& out) {
  widened_resident<Op, float8_view<T, E>> const resident(cache.whole());
  converted_keys<Op, float8_view<T, E>> const keys(cache.in, pages_of(cache), resident(), p,
                                                   decode_tiling<float, Arch>::block);
  attune::detail::rounded_once(
      out, [&](outputs<Op, float> const& wide) { decode_from(cpu_like<float>(exec), op, keys, p, wide); });
}

}  // namespace exec_cpu
}  // namespace attune
