// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   d logit, weights of a block  ->  dQ, dK, dV and every parameter
//
// The code that the tiles of the backward pass share. Every variable is a batch of rows, as in the forward pass.
// Derivatives of pointwise code come from the policies' own source, run on dual numbers over batches. There are two
// stages: from contractions and parameters to the logit, and from the logit to its mass. How the weights of a row
// depend on its logits is in gradients/masses.hpp and gradients/candidates.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include <attune/exec/cpu/gradients/entries_vjp.hpp>
#include <attune/exec/cpu/gradients/products.hpp>
#include <attune/exec/cpu/row/pass.hpp>
#include <attune/exec/cpu/row/slots.hpp>
#include <attune/exec/cpu/tile/write.hpp>
#include <attune/exec/saved.hpp>

namespace attune::exec_cpu {

/// The data that all tiles of a call share.
template <class T, class Op>
struct gradient_call {
  Op const& op;
  inputs<Op, tensor<T const>> const& in;
  problem_shape const& p;
  attune::detail::saved_view<T const, Op> const& saved;
  cotangents<Op, tensor<T const>> const& d;
  gradient_part<T> part;
};

/// Products: how the tile multiplies.
template <class T, class Arch, class Op, class Products = full_products>
struct gradient_tile {
  using types = tile_types<T, Arch, Op>;
  using multiplies = gradient_products<Products>;
  using cotangents_of_tile = typename multiplies::template cotangents<T, Arch>;
  template <class C>
  using vjp_of = typename multiplies::template contraction_vjp<C, T, Arch>;
  template <class C>
  using grown_of = typename vjp_of<C>::grown;
  template <class C>
  using scratch_of = typename vjp_of<C>::scratch;
  using batch = typename types::batch;
  using inputs_type = typename types::inputs_type;
  using normalizer = typename types::normalizer;
  static constexpr int vectors = types::vectors, lanes = types::lanes, queries = types::queries, pairs = types::pairs;
  static constexpr int logit_pairs = types::logit_pairs;
  static constexpr index_t block = types::block;
  static constexpr normalizer_traits traits = types::traits;

  using call_type = gradient_call<T, Op>;

  /// Memory that lives as long as the tile.
  struct tile_memory {
    T *packed, *grown, *d_out, *packed_out;
    tile_memory(arena<T>& from, problem_shape const& p)
        : packed(from.take(packed_queries<T, Arch, Op, Products>::size(p))),
          grown(from.take(resident_memory_size<T, typename Op::contractions, grown_of>(p))),
          d_out(from.take(queries * p.value_width)), packed_out(from.take(cotangents_of_tile::size(p))) {}
  };
  /// Memory of a block: the memory of the forward pass, and the scratch of pulls.
  struct block_memory : multiplies::template block_memory<T, Arch, Op> {
    using base = typename multiplies::template block_memory<T, Arch, Op>;
    T* pulls;       ///< of one contraction at a time
    T* kept_pulls;  ///< what lasts as long as the task, of one contraction after the other
    block_memory(arena<T>& from, problem_shape const& p)
        : block_memory(from, p, block_memory_size<T, typename Op::contractions, scratch_of>(p)) {}
    /// Visits each rotary contraction with its policy and the gradients by its turned keys.
    template <class Visit>
    void each_turned(Op const& op, problem_shape const& p, Visit const& visit) const {
      [[maybe_unused]] arena<T> next(kept_pulls);
      for_each_contraction(op, [&](auto c, [[maybe_unused]] auto const& owner, auto) {
        if constexpr (contraction::Rotary<decltype(c)>) visit(c, owner, scratch_of<decltype(c)>(next, p));
      });
    }
    /// Must be called before the first block of a task.
    void start_task(Op const& op, problem_shape const& p) const {
      this->forget(p);
      each_turned(op, p, [&](auto, auto const&, auto const& turned) { turned.forget(p); });
    }

   private:
    template <class Sizes>
    block_memory(arena<T>& from, problem_shape const& p, Sizes const& sizes)
        : base(from, p), pulls(from.take(sizes.shared)), kept_pulls(from.take(sizes.kept)) {}
  };

  using counts = slots_of<Op>;
  /// Directions of a logit: its contractions, then its parameters.
  template <chain_rule Rule = chain_rule::guarded>
  using logit_dual = dual<batch, (std::max)(1, logit_pairs + counts::logit), Rule>;
  template <chain_rule Rule>
  using logit_bound = decltype(std::declval<Op const&>().bind(std::declval<row<logit_dual<Rule>> const&>()));
  using logit_sums = std::array<batch, std::size_t((std::max)(1, counts::logit))>;
  /// 1 if the length scale keeps a row constant out of the logits. The row constant then moves the normalizer.
  static constexpr int shifts = Op::length_scale_policy::traits.row_constant ? 1 : 0;
  /// Of the normalizer: the row constant, if there is one, then its parameters.
  using normalizer_sums = std::array<batch, std::size_t((std::max)(1, shifts + counts::normalizer))>;

  gradient_tile(call_type const& c, index_t b, index_t h, index_t first_query, tile_memory const& memory,
                tile_block_memory<T, Arch, Op> const& shared)
      : gradient_tile(std::make_index_sequence<std::size_t(vectors)>{}, c, b, h, first_query, memory, shared) {}

  template <std::size_t... V>
  gradient_tile(std::index_sequence<V...>, call_type const& c, index_t b, index_t h, index_t first_query,
                tile_memory const& memory, tile_block_memory<T, Arch, Op> const& shared)
      : rows(c.op, {&c.p, b, h, first_query}, memory.packed), call(&c), grown(memory.grown), d_out(memory.d_out),
        packed_out(memory.packed_out), facts{rows.lane_row(index_t(V))...},
        moving{{bind_logit<chain_rule::guarded>(int(V))...}}, entries(c.op, facts) {
    pack_contractions<Products>(rows, c.in);
    for (int v = 0; v < vectors; ++v) {
      by_logit_parameter[v].fill(batch(T(0)));
      by_normalizer[v].fill(batch(T(0)));
      for (int s = 0; s < counts::logit; ++s)
        shift_by[v][std::size_t(s)] = moving.at[v].logit_shift.tangent[logit_pairs + s];
    }
    read_cotangents(shared.factors);
    each_pull([&](auto contraction, auto const& owner, auto const& t, auto) {
      vjp_of<decltype(contraction)>::begin(t, c.in, owner);
    });
  }

  template <chain_rule Rule>
  logit_bound<Rule> bind_logit(int v) const {
    return rows.op->bind(moving_row<logit_dual<Rule>>(facts[v], 0, counts::logit, logit_pairs));
  }
  /// The row of the normalizer. From direction `first` on: the row constant, if there is one, then the normalizer's
  /// parameters.
  template <class D>
  row<D> normalizer_row(int v, int first) const {
    row<D> r = moving_row<D>(facts[v], counts::logit, counts::normalizer, first + shifts);
    r.logit_shift = shifts != 0 ? D::variable(rows.bound.at[v].logit_shift, first) : D(rows.bound.at[v].logit_shift);
    return r;
  }
  template <class D>
  auto normalizer_of(row<D> const& r) const {
    return rows.op->normalizer.bind(r);
  }

  /// <do, row> lane by lane, for saved rows, in the order in which `gains` sums <do, v>. For a single key both are
  /// then the same number. Their difference, which says that nothing competes with the key, is exactly 0.
  void inner(std::span<T const> saved_rows, T* packed, batch* sum) const {
    problem_shape const& p = *rows.p;
    strides const steps = strides::dense({p.batch, p.heads, p.row_count(), p.value_width});
    tensor<T const> const view(saved_rows.data() - p.first_query * p.value_width, p.rows(p.value_width), steps);
    pack_queries<queries>(packed, view, rows.b, rows.h, rows.first_query);
    for (int v = 0; v < vectors; ++v)
      sum[v] = cotangents_of_tile::inner(d_out + v * lanes, packed + v * lanes, p.value_width);
  }
  /// Lanes past the last query repeat it and must not add anything. Removes them from the bits, which then cover the
  /// whole block. Returns whether there are such lanes.
  template <class Seen>
  bool drop_idle_lanes(Seen& s, std::uint64_t* bits) const {
    if (rows.count == queries) return false;
    std::uint64_t const valid = (std::uint64_t(1) << rows.count) - 1;
    for (index_t j = 0; j < s.n; ++j)
      bits[j] = (j >= s.full_first && j < s.full_last ? ~std::uint64_t(0) : bits[j]) & valid;
    s.full_first = s.full_last = 0;
    return true;
  }

  /// gain[key][query] = <do, v> for a block of keys, whose gated values begin with key `first`; v with the numbers of
  /// the pair.
  template <class Memory>
  ATTUNE_INLINE void gains(T* gain, seen_block const& s, Memory const& memory, index_t first) const {
    cotangents_of_tile::gains(gain, d_out, packed_out, rows, call->in, s, memory, first);
    pair_values<T, Arch, Op>::add_gains(rows, {s.first, s.n}, d_out, gain);
  }

  /// Adds the gradients of everything that the pairs of a block are computed from. pairs_of(n): the gradients by
  /// contraction n. weights: the weights of the block.
  template <class Pairs>
  void pull_block(key_block_place const& keys, Pairs const& pairs_of, T const* weights, block_memory const& memory,
                  gradient_sinks<T>& to) const {
    if (key_rows<T> const& by_values = to.rows(field::v); by_values.data != nullptr)
      cotangents_of_tile::add_to_values(by_values.at(keys.first), by_values.step, weights, packed_out, memory,
                                        rows.count, keys.n, rows.p->value_width, finite_cotangents);
    pair_values<T, Arch, Op>::pull(rows, keys, weights, d_out, to);
    arena<T> kept_copies(memory.kept), kept_pulls(memory.kept_pulls);
    each_pull([&](auto c, auto const& owner, auto const& t, auto number) {
      using C = decltype(c);
      using vjp = vjp_of<C>;
      T const* const ds = pairs_of(number);
      [[maybe_unused]] auto const scratch = memory_of_block<scratch_of<C>>(kept_pulls, memory.pulls, *rows.p);
      if constexpr (contraction::of_distance_alone<C>)
        vjp::pull_distances(ds, t, keys, to.distances.data() + number * (call->p.queries + call->p.keys));
      else if constexpr (contraction::Rotary<C>)
        vjp::pull(ds, t, call->in, owner, keys, detail::turned_keys<T, Arch>(kept_copies, *rows.p), scratch, to);
      else if constexpr (Products::template reads_paired_keys<C>)
        vjp::pull(ds, t, keys, memory, number, to);
      else
        vjp::pull(ds, t, call->in, owner, keys, scratch, to);
    });
  }

  /// Visits each contraction with its policy, the tile as its contraction_vjp sees it, and its number.
  template <class Visit>
  void each_pull(Visit const& visit) const {
    arena<T> next(grown);
    each_contraction<Products>(rows, [&](auto c, auto const& owner, auto const& packed, auto number) {
      using grown_type = grown_of<decltype(c)>;
      visit(c, owner,
            vjp_tile<std::remove_cvref_t<decltype(packed)>, grown_type>{rows.place(), rows.count, packed,
                                                                        grown_type(next, *rows.p)},
            number);
    });
  }

  /// Passes the gradients that accumulated in the tile to the call.
  void flush(index_t first_of_task, gradient_sinks<T>& to) const {
    each_pull([&](auto contraction, auto const& owner, auto const& t, auto) {
      vjp_of<decltype(contraction)>::end(t, call->in, owner, to);
    });
    entries.flush(*rows.op, to);
    auto const add = [&](int slot, auto const& of_vector) { add_parameter(slot, first_of_task, to, of_vector); };
    for (int s = 0; s < counts::logit; ++s)
      add(s, [&](int v) {  // the row constant of the length scale moves the normalizer's input
        auto const u = std::size_t(s);
        if constexpr (shifts == 0)
          return by_logit_parameter[v][u];
        else
          return by_logit_parameter[v][u] + attune::detail::chained(by_normalizer[v][0], shift_by[v][u]);
      });
    for (int s = 0; s < counts::normalizer; ++s)
      add(counts::logit + s, [&](int v) { return by_normalizer[v][std::size_t(shifts + s)]; });
  }

  /// Adds of_vector(v), the gradients of batch v of the rows by parameter number `slot`, to the call.
  template <class OfVector>
  void add_parameter(int slot, index_t first_of_task, gradient_sinks<T>& to, OfVector const& of_vector) const {
    alignas(64) T lane[queries];
    for (int v = 0; v < vectors; ++v) of_vector(v).store_aligned(lane + v * lanes);
    gradient_array<double>& sum = to.sums->parameters[std::size_t(slot)];
    for (index_t l = 0; l < rows.count; ++l) sum(0, 0, rows.first_query + l - first_of_task, 0) += double(lane[l]);
  }

  /// do' = do f(x) with f the gate:  dx = do o f', and the gate's parameters; out(lane, d) is o, the row before the
  ///                                 gate.
  template <class Out>
  void pull_output_gate(index_t first_of_task, gradient_sinks<T>& to, Out const& out) const {
    using D = dual<T, 1 + counts::output_gate>;
    constexpr int first_slot = counts::of_output_gate;
    for (index_t l = 0; l < rows.count && !call->d.out.absent(); ++l) {
      index_t const i = rows.first_query + l;
      row<T> const r = attune::detail::scalar_row<T>(*rows.p, rows.op->mask, rows.b, rows.h, i);
      auto const gate = rows.op->output_gate.bind(moving_row<D>(r, first_slot, counts::output_gate, 1));
      for (index_t d = 0; d < rows.p->value_width; ++d) {
        index_t const column = rows.p->output_gate_width == 1 ? 0 : d;
        auto const& gates = call->in.output_gate;
        D const f = gate.factor(D::variable(attune::detail::shared_element<T>(gates, rows.b, rows.h, i, column), 0));
        T const gain = call->d.out(rows.b, rows.h, i, d) * out(l, d);
        if (gradient_array<double>* const shared = to.shared(field::output_gate))
          (*shared)(0, 0, i - first_of_task, column) += double(gain * f.tangent[0]);
        else if (to.takes(field::output_gate))
          to.to->of(field::output_gate)(rows.b, rows.h, i, column) += gain * f.tangent[0];
        for (int s = 0; s < counts::output_gate; ++s)
          to.sums->parameters[std::size_t(first_slot + s)](0, 0, i - first_of_task, 0) +=
              double(attune::detail::chained(gain, f.tangent[1 + s]));
      }
    }
  }

  tile_rows<T, Arch, Op> rows;
  call_type const* call;
  T *grown, *d_out, *packed_out;
  row<batch> facts[std::size_t(vectors)];
  struct {
    logit_bound<chain_rule::guarded> at[std::size_t(vectors)];
  } moving;
  [[no_unique_address]] entry_gradients<T, Arch, Op> entries;
  logit_sums by_logit_parameter[std::size_t(vectors)], shift_by[std::size_t(vectors)];
  normalizer_sums by_normalizer[std::size_t(vectors)];

 private:
  /// Computes the gradient before the output gate: do times the gate's factor.
  void read_cotangents([[maybe_unused]] T* factors) {
    index_t const width = rows.p->value_width;
    if (call->d.out.absent())
      std::fill_n(d_out, queries * width, T(0));
    else
      pack_queries<queries>(d_out, call->d.out, rows.b, rows.h, rows.first_query);
    if constexpr (Op::has_output_gate) {
      T const* const factor = output_factors(rows, call->in, factors);
      for (index_t c = 0; c < width; ++c)
        for (index_t l = 0; l < queries; ++l)
          d_out[c * queries + l] *= factor[(rows.p->output_gate_width == 1 ? 0 : c) * queries + l];
    }
    finite_cotangents =
        cotangents_of_tile::pack(packed_out, d_out, call->d.out, !(Op::has_output_gate || call->d.out.absent()), rows);
  }

  bool finite_cotangents = true;
};

}  // namespace attune::exec_cpu
