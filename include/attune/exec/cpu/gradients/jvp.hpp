// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   r = jvp(cpu{}, op, {.q = {Q, dQ}, .k = K, .v = V}, {{"gamma", 1.0}});    r.out(b, h, i, d), r.out_along(b, h, i, d)
//
// Directional derivatives, fused: the recurrence of the forward pass on dual numbers with one tangent. The running
// reference does not move: a row does not depend on it.
#pragma once

#include <algorithm>
#include <vector>

#include <attune/calls/gradients.hpp>
#include <attune/exec/cpu/products/lanes.hpp>
#include <attune/exec/cpu/row/pass.hpp>
#include <attune/exec/cpu/tile/stream.hpp>
#include <attune/exec/direction.hpp>
#include <attune/exec/gradients.hpp>
#include <attune/exec/materialized.hpp>

namespace attune {

namespace exec_cpu {

template <class T, class Arch, class Op>
class directional_tile {
  using types = tile_types<T, Arch, Op>;
  using pair_values = exec_cpu::pair_values<T, Arch, Op>;

 public:
  using batch = typename types::batch;
  using normalizer = typename types::normalizer;
  static constexpr int vectors = types::vectors, lanes = types::lanes, queries = types::queries, pairs = types::pairs;
  static constexpr index_t block = types::block;
  static constexpr normalizer_traits traits = types::traits;
  using D = dual<batch, 1>;
  using call = moving_call<T, Op>;
  template <class C>
  using moved_of = typename contraction_jvp<C, T, Arch>::moved;
  template <class C>
  using scratch_of = typename contraction_jvp<C, T, Arch>::scratch;
  static constexpr index_t tiles_of_task = types::shape_of::tiles;
  static constexpr bool factored_share = types::planes::factored_share;
  using share_sums = exec_cpu::share_sums<T, Arch, Op>;
  static constexpr bool last_keys_first = takes_later_keys_first<Op>;
  /// Memory that lives as long as the tile: value sums and their tangents; for a uniform share also the plain sums.
  struct tile_memory {
    T *packed, *pushed, *sum, *sum_along, *plain, *plain_along;
    tile_memory(arena<T>& from, problem_shape const& p)
        : packed(from.take(packed_queries<T, Arch, Op>::size(p))),
          pushed(from.take(resident_memory_size<T, typename Op::contractions, moved_of>(p))),
          sum(from.take(queries * p.value_width)), sum_along(from.take(queries * p.value_width)),
          plain(from.take(plain_size(p))), plain_along(from.take(plain_size(p))) {}
  };
  struct block_memory : tile_block_memory<T, Arch, Op> {
    T* tangents;     ///< of contractions; the first becomes the tangent of the masses
    T* pushes;       ///< scratch for the derivatives of contractions
    T* gated_along;  ///< tangents of values after a gate that moves
    T* copy;         ///< of directions of values that are not contiguous
    block_memory(arena<T>& from, problem_shape const& p)
        : tile_block_memory<T, Arch, Op>(from, p), tangents(from.take(types::planes::count * types::pair_buffer)),
          pushes(from.take(block_memory_size<T, typename Op::contractions, scratch_of>(p).shared)),
          gated_along(from.take(types::block * p.value_width)), copy(from.take(types::block * p.value_width)) {}
  };

  directional_tile(Op const& op, call const& c, problem_shape const& p, lift<D> const& numbers, index_t b, index_t h,
                   index_t first_query, tile_memory const& memory)
      : tile_(op, {&p, b, h, first_query}, memory.packed), call_(&c), own_(memory.pushed), sum_(memory.sum),
        sum_along_(memory.sum_along), moving_(bind(op, numbers, std::make_index_sequence<std::size_t(vectors)>{})) {
    pack_contractions(tile_, c.in);
    std::fill_n(sum_, queries * p.value_width, T(0));
    std::fill_n(sum_along_, queries * p.value_width, T(0));
    if constexpr (traits.uniform_share) {
      plain_ = {memory.plain, p.value_width};
      plain_along_ = {memory.plain_along, p.value_width};
    }
    for (int v = 0; v < vectors; ++v) {
      reference_[v] =
          initial_reference<normalizer, decltype(tile_.bound.at[v].normalizer), batch>(tile_.bound.at[v].normalizer);
      earned_[v] = ground_[v] = D();
    }
    each_push([&](auto contraction, auto const& owner, auto const&, auto const& own, int) {
      contraction_jvp<decltype(contraction), T, Arch>::pack(own, c, owner, tile_.place());
    });
  }

  key_interval hull() const { return tile_.sees.hull; }

  tile_rows<T, Arch, Op> const& rows() const { return tile_; }
  /// Visits each contraction with its policy, its packed memory, the memory of its tangents, and its number.
  template <class Visit>
  void each_push(Visit const& visit) const {
    arena<T> next(own_);
    each_contraction(tile_, [&](auto c, auto const& owner, auto const& packed, auto number) {
      visit(c, owner, packed, moved_of<decltype(c)>(next, *tile_.p), number);
    });
  }

  /// Streams the keys [first, last) of one block through the rows.
  void accumulate(index_t first, index_t last, block_memory const& memory) {
    std::uint64_t bits[types::block];
    auto const s = tile_.seen(first, last, bits);
    if (s.n == 0) return;
    T *const scratch = memory.pairs, *const tangents = memory.tangents;
    contract_all(tile_, call_->in, s, memory);
    each_push([&](auto contraction, auto const& owner, auto const& packed, auto const& own, int n) {
      using C = decltype(contraction);
      contraction_jvp<C, T, Arch>::run(tangents + types::planes::of(n) * types::pair_buffer, own, packed, *call_, owner,
                                       tile_.place(), key_block_place{s.first, s.n},
                                       arena<T>::template in<scratch_of<C>>(memory.pushes, *tile_.p));
    });
    pass_.numbers(*this, moving_, scratch, tangents, s, bits);
    batch highest[vectors];
    for (int v = 0; v < vectors; ++v) highest[v] = reference_[v];
    logits<true>(scratch, tangents, s.first, 0, s.full_first, bits, highest);
    logits<false>(scratch, tangents, s.first, s.full_first, s.full_last, bits, highest);
    logits<true>(scratch, tangents, s.first, s.full_last, s.n, bits, highest);
    if constexpr (traits.reference == mass_reference::running_maximum) raise(highest);
    masses<true>(scratch, tangents, 0, s.full_first, bits);
    masses<false>(scratch, tangents, s.full_first, s.full_last, bits);
    masses<true>(scratch, tangents, s.full_last, s.n, bits);
    if constexpr (types::planes::factors_weights) gate_moving_weights(tile_, moving_, scratch, tangents, s, bits);
    [[maybe_unused]] constexpr index_t factors = types::planes::gate * types::pair_buffer;
    row_block<T> const values = values_of(tile_, call_->in, s.first, s.n, memory, first);
    add_values(tile_, values, s, scratch, bits, sum_);
    add_values(tile_, values, s, tangents, bits, sum_along_);
    if constexpr (factored_share) {
      add_values(tile_, values, s, scratch + factors, bits, plain_.own);
      add_values(tile_, values, s, tangents + factors, bits, plain_along_.own);
    } else if constexpr (traits.uniform_share) {
      plain_.add(values, s.n, s.full_first, s.full_last, bits);
    }
    pair_values::add_moving(tile_, *call_, s, scratch, tangents, sum_, sum_along_);
    if constexpr (factored_share)
      pair_values::add_moving(tile_, *call_, s, scratch + factors, tangents + factors, plain_.own, plain_along_.own);
    if (!Op::has_value_gate && call_->along.v.absent()) return;
    row_block<T> const moved =
        Op::has_value_gate
            ? row_block<T>(memory.gated_along + (s.first - first) * tile_.p->value_width, tile_.p->value_width)
            : row_block<T>(call_->along.v, tile_.b, tile_.p->group(tile_.h, tile_.p->value_heads), s.first, s.n,
                           memory.copy);
    add_values(tile_, moved, s, scratch, bits, sum_along_);
    if constexpr (factored_share)
      add_values(tile_, moved, s, scratch + factors, bits, plain_along_.own);
    else if constexpr (traits.uniform_share)
      plain_along_.add(moved, s.n, s.full_first, s.full_last, bits);
  }

  /// Divides the sums and writes the rows.
  void finish(directional_result<T>& to) {
    alignas(64) T value[4][queries], along[4][queries];
    auto const store = [&](int n, int v, D const& x) {
      x.value.store_aligned(value[n] + v * lanes);
      x.tangent[0].store_aligned(along[n] + v * lanes);
    };
    for (int v = 0; v < vectors; ++v) {
      auto const done = finish_masses<normalizer>(moving_.at[v].normalizer, D(reference_[v]), earned_[v], ground_[v],
                                                  D(tile_.visible[v]));
      D lse = done.lse + moving_.at[v].logit_shift;
      auto const dead = done.lse.value == -math::infinity<batch>();  // no mass at all: does not move
      lse.tangent[0] = math::select(dead, batch(T(0)), lse.tangent[0]);
      store(0, v, done.value_factor);
      store(1, v, done.share);
      store(2, v, done.ground_weight);
      store(3, v, lse);
    }
    using S = dual<T, 1>;
    for (index_t l = 0; l < tile_.count; ++l) {
      index_t const i = tile_.first_query + l;
      auto const number = [&](int n) { return made<S>(value[n][l], along[n][l]); };
      for (index_t d = 0; d < tile_.p->value_width; ++d) {
        index_t const at = d * queries + l;
        S out = made<S>(sum_[at], sum_along_[at]) * number(0);
        if constexpr (traits.uniform_share) out = out + made<S>(plain_(l, d), plain_along_(l, d)) * number(1);
        if constexpr (Op::uses(field::v0)) {
          auto const at_row = attune::detail::broadcast(call_->in.v0, tile_.b, tile_.h, i);
          auto const read = [&](tensor<T const> const& x) {
            return x.absent() ? T(0) : attune::detail::element<T>(x, at_row, d);
          };
          out = out + number(2) * made<S>(read(call_->in.v0), read(call_->along.v0));
        }
        if constexpr (Op::has_output_gate) {
          index_t const column = tile_.p->output_gate_width == 1 ? 0 : d;
          auto const at_row = attune::detail::broadcast(call_->in.output_gate, tile_.b, tile_.h, i);
          auto const read = [&](tensor<T const> const& x) {
            return x.absent() ? T(0) : attune::detail::element<T>(x, at_row, column);
          };
          out = out * output_factor(l, made<S>(read(call_->in.output_gate), read(call_->along.output_gate)));
        }
        to.out(tile_.b, tile_.h, i, d) = out.value;
        to.out_along(tile_.b, tile_.h, i, d) = out.tangent[0];
      }
      if constexpr (Op::has_lse)
        to.lse(tile_.b, tile_.h, i, 0) = value[3][l], to.lse_along(tile_.b, tile_.h, i, 0) = along[3][l];
      if constexpr (Op::has_ground_weight)
        to.ground_weight(tile_.b, tile_.h, i, 0) = value[2][l],
                                              to.ground_weight_along(tile_.b, tile_.h, i, 0) = along[2][l];
    }
  }

 private:
  struct moving_lanes {
    decltype(std::declval<Op const&>().bind(std::declval<row<D> const&>())) at[std::size_t(vectors)];
  };

  template <std::size_t... V>
  moving_lanes bind(Op const& op, lift<D> const& numbers, std::index_sequence<V...>) {
    return {{op.bind(lifted(tile_.lane_row(index_t(V)), numbers))...}};
  }
  template <class S, class Number>
  static S made(Number const& value, Number const& along) {
    S x(value);
    x.tangent[0] = along;
    return x;
  }

  static index_t plain_size(problem_shape const& p) {
    return traits.uniform_share ? share_sums::size(p.value_width) : 0;
  }
  /// The factor of the output gate in lane l, with a moving input.
  dual<T, 1> output_factor(index_t l, dual<T, 1> const& x) const {
    auto const v = int(l / lanes);
    D const f = moving_.at[v].output_gate.factor(made<D>(batch(x.value), batch(x.tangent[0])));
    alignas(64) T value[lanes], along[lanes];
    f.value.store_aligned(value);
    f.tangent[0].store_aligned(along);
    return made<dual<T, 1>>(value[l % lanes], along[l % lanes]);
  }

  /// Turns contractions and their tangents into logits and their tangents, in place of the first contraction.
  template <bool Masked>
  ATTUNE_POINTWISE void logits(T* x, T* tangents, index_t first, index_t from, index_t to, std::uint64_t const* bits,
                               batch* highest) const {
    if (from >= to) return;
    batch const off = -math::infinity<batch>(), zero(T(0));
    for (int v = 0; v < vectors; ++v) {
      auto const f = moving_.at[v];
      batch top = highest[v];
      for (index_t j = from; j < to; ++j) {
        index_t const at = j * queries + v * lanes;
        D moved[types::logit_pairs + 1];
        for (int c = 0; c < types::logit_pairs; ++c)
          moved[c] = made<D>(batch::load_aligned(x + c * types::pair_buffer + at),
                             batch::load_aligned(tangents + c * types::pair_buffer + at));
        D a = f.logit(moved, key<D>{D(batch(T(first + j)))});
        if constexpr (Masked) {
          auto const seen = lanes_of<T, Arch>(bits[j] >> (v * lanes));
          a.value = math::select(seen, a.value, off);
          a.tangent[0] = math::select(seen, a.tangent[0], zero);
        }
        top = math::larger(top, a.value);
        a.value.store_aligned(x + at);
        a.tangent[0].store_aligned(tangents + at);
      }
      highest[v] = top;
    }
  }
  /// Turns logits into masses, both with their tangents, in place.
  template <bool Masked>
  ATTUNE_POINTWISE void masses(T* x, T* tangents, index_t from, index_t to, std::uint64_t const* bits) {
    if (from >= to) return;
    for (int v = 0; v < vectors; ++v) {
      auto const f = moving_.at[v].normalizer;
      D const reference(reference_[v]), zero;
      D earned, ground;
      for (index_t j = from; j < to; ++j) {
        index_t const at = j * queries + v * lanes;
        D const a = made<D>(batch::load_aligned(x + at), batch::load_aligned(tangents + at));
        auto const seen = [&](D const& y) {
          if constexpr (Masked)
            return math::select(lanes_of<T, Arch>(bits[j] >> (v * lanes)), y, zero);
          else
            return y;
        };
        D e = seen(f.earned(a, reference));
        if constexpr (drops_tiny_masses<normalizer>) e.value = attune::detail::zero_if_tiny(e.value);
        earned = earned + e;
        if constexpr (traits.ground_mass) ground = ground + seen(f.ground(a, reference));
        e.value.store_aligned(x + at);
        e.tangent[0].store_aligned(tangents + at);
      }
      earned_[v] = earned_[v] + earned;
      ground_[v] = ground_[v] + ground;
    }
  }
  /// Changes all sums to higher references, which do not move.
  void raise(batch const* higher) {
    scale_of_sums<Op, batch> factor[vectors];
    auto const scaled = [](D const& x, auto const& by) { return made<D>(x.value * by, x.tangent[0] * by); };
    for (int v = 0; v < vectors; ++v) {
      auto const same = higher[v] == reference_[v];  // also at +inf, where the difference is NaN
      factor[v] = scale_of_sums<Op, batch>(
          math::select(same, batch(T(1)), math::exp_nonpositive(batch(reference_[v] - higher[v]))));
      reference_[v] = higher[v];
      earned_[v] = scaled(earned_[v], factor[v]);
      ground_[v] = scaled(ground_[v], factor[v]);
    }
    scale_rows<T, Arch>(sum_, tile_.p->value_width, factor);
    scale_rows<T, Arch>(sum_along_, tile_.p->value_width, factor);
  }

  tile_rows<T, Arch, Op> tile_;
  call const* call_;
  T *own_, *sum_, *sum_along_;
  share_sums plain_, plain_along_;  ///< for a uniform share
  moving_lanes moving_;
  batch reference_[std::size_t(vectors)];
  D earned_[std::size_t(vectors)], ground_[std::size_t(vectors)];
  [[no_unique_address]] moving_pass<T, Arch, Op> pass_;
};

/// The values of keys [first, first + n) after a value gate, and their tangents.
template <class T, class Arch, class Op>
void gate_moving_values(Op const& op, moving_call<T, Op> const& c, problem_shape const& p,
                        lift<dual<xsimd::batch<T, Arch>, 1>> const& numbers, index_t b, index_t h, index_t first,
                        index_t n, T* to, T* to_along) {
  using batch = xsimd::batch<T, Arch>;
  using D = dual<batch, 1>;
  constexpr index_t lanes = tiling<T, Arch>::lanes;
  index_t const head = p.group(h, p.value_heads), width = p.value_width;
  auto const gate = op.value_gate.bind(attune::detail::any_query_row<D>(p, b, h, numbers));
  for (index_t j = first; j < first + n; ++j)
    for (index_t d = 0; d < width; d += lanes) {
      index_t const some = (std::min)(lanes, width - d);
      auto const read = [&](tensor<T const> const& x) {
        alignas(64) T lane[lanes] = {};
        for (index_t l = 0; l < some && !x.absent(); ++l)
          lane[l] = attune::detail::element<T>(x, attune::detail::broadcast(x, b, head, j), d + l);
        return batch::load_aligned(lane);
      };
      auto const moving = [&](tensor<T const> const& value, tensor<T const> const& along) {
        D x(read(value));
        x.tangent[0] = read(along);
        return x;
      };
      D const x = moving(c.in.v, c.along.v) * gate.factor(moving(c.in.value_gate, c.along.value_gate));
      alignas(64) T value[lanes], along[lanes];
      x.value.store_aligned(value);
      x.tangent[0].store_aligned(along);
      std::copy_n(value, some, to + (j - first) * width + d);
      std::copy_n(along, some, to_along + (j - first) * width + d);
    }
}

template <class T, class Arch, class Op>
directional_result<T> jvp_rows(engine, cpu<T, Arch> const& exec, Op const& op,
                               inputs<Op, tensor<T const>> const& values, inputs<Op, tensor<T const>> const& along,
                               problem_shape const& p, policy_direction const& direction) {
  using tile = directional_tile<T, Arch, Op>;
  using batch = typename tile::batch;
  attune::detail::materialized<Op, T> const fixed(op);
  attune::detail::moving_numbers<batch> const moving(fixed.op, direction);
  moving_call<T, Op> const call{values, along, moving.tables_along};
  auto const rows = [&](index_t width) { return gradient_array<T>(shape{p.batch, p.heads, p.queries, width}); };
  directional_result<T> to{rows(p.value_width), rows(p.value_width), {}, {}, {}, {}};
  if constexpr (Op::has_lse) to.lse = to.lse_along = rows(1);
  if constexpr (Op::has_ground_weight) to.ground_weight = to.ground_weight_along = rows(1);
  stream_tiles<tile>(
      exec, p, {0, p.keys}, [](index_t) { return true; },
      [&](index_t b, index_t h, index_t first, auto const& memory) {
        return tile(fixed.op, call, p, moving.numbers(), b, h, first, memory);
      },
      [&](std::vector<tile>& tiles, index_t b, index_t h, index_t first, index_t last, auto const& memory) {
        if constexpr (Op::has_value_gate)
          gate_moving_values<T, Arch>(fixed.op, call, p, moving.numbers(), b, h, first, last - first, memory.gated,
                                      memory.gated_along);
        for (tile& t : tiles) t.accumulate(first, last, memory);
      },
      [&](tile& t, auto const&) { t.finish(to); });
  return to;
}

}  // namespace exec_cpu
}  // namespace attune
