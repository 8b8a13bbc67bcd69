// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   d logit, weights of a block  ->  dQ, dK, dV and every parameter
//
// What the tiles of the backward pass share: a batch of rows in every variable, as in the forward. Derivatives of
// pointwise code come from dual numbers over batches on the policies' own source, in two stages: contractions and
// parameters to the logit, the logit to its mass. How a row's weights depend on its logits is for mass_gradients.hpp
// and candidate_gradients.hpp to say.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include <attune/exec/cpu/gradients/contractions_vjp.hpp>
#include <attune/exec/cpu/tile/logits.hpp>
#include <attune/exec/saved.hpp>

namespace attune::exec_cpu {

/// What all tiles of a call share.
template <class T, class Op>
struct gradient_call {
  Op const& op;
  inputs<Op, tensor<T const>> const& in;
  problem_shape const& p;
  saved_rows<T, Op> const& saved;
  cotangents<Op, tensor<T const>> const& d;
};

/// How many parameters of an operator move what.
template <class Op>
struct slots_of {
  template <class P>
  static constexpr int count = attune::detail::count_of<P>::parameters;
  static constexpr int logit =
      count<typename Op::kernel_policy> + count<typename Op::length_scale_policy> + count<typename Op::gate_policy>;
  static constexpr int normalizer = count<typename Op::normalizer_policy>;
  static constexpr int value_gate = count<typename Op::value_gate_policy>;
  static constexpr int output_gate = count<typename Op::output_gate_policy>;
};

/// A row of dual numbers that stand still, but for the parameters [number, number + count), from direction `first` on.
template <class D, class T>
row<D> moving_row(row<T> const& r, int number, int count, int first) {
  return lifted(r, lift<D>{r.numbers, {number, count, first}});
}

template <class T, class Arch, class Op>
class gradient_tile : public logit_tile<T, Arch, Op> {
  using base = logit_tile<T, Arch, Op>;

 public:
  using base::block;
  using base::lanes;
  using base::queries;
  using base::traits;
  using base::vectors;
  using typename base::batch;
  using typename base::inputs_type;
  using typename base::normalizer;
  using call = gradient_call<T, Op>;
  static constexpr int pairs = Op::contractions::size;

  /// Memory that lives as long as the tile.
  struct tile_memory {
    T *packed, *pulls, *by_out, *out_panels;
    tile_memory(arena<T>& from, problem_shape const& p)
        : packed(from.take(base::packed_scratch(p))), pulls(from.take(pulls_scratch(p))),
          by_out(from.take(queries * p.value_width)),
          out_panels(from.take(panels<T, Arch>::size(p.value_width, queries))) {}
  };
  /// Memory of a block: the forward's, and what pulls need.
  struct block_memory : base::block_memory {
    T* pulls;
    block_memory(arena<T>& from, problem_shape const& p)
        : base::block_memory(from, p), pulls(from.take(pull_scratch(p))) {}
  };

 protected:
  using base::b_;
  using base::bound_;
  using base::count_;
  using base::first_query_;
  using base::h_;
  using base::op_;
  using base::p_;
  using base::packed_;
  using slots = slots_of<Op>;
  /// Directions of a logit: its contractions, its parameters.
  template <chain_rule Rule = chain_rule::guarded>
  using logit_dual = dual<batch, (std::max)(1, pairs + slots::logit), Rule>;
  template <chain_rule Rule>
  using logit_bound = decltype(std::declval<Op const&>().bind(std::declval<row<logit_dual<Rule>> const&>()));
  using logit_sums = std::array<batch, std::size_t((std::max)(1, slots::logit))>;
  /// Whether the length scale keeps a row constant out of the logits, which then moves the normalizer.
  static constexpr int shifts = Op::length_scale_policy::traits.row_constant ? 1 : 0;
  /// Of the normalizer: the row constant, if there is one, its parameters.
  using normalizer_sums = std::array<batch, std::size_t((std::max)(1, shifts + slots::normalizer))>;

  gradient_tile(call const& c, index_t b, index_t h, index_t first_query, tile_memory const& memory,
                typename base::block_memory const& shared)
      : gradient_tile(std::make_index_sequence<std::size_t(vectors)>{}, c, b, h, first_query, memory, shared) {}

  template <std::size_t... V>
  gradient_tile(std::index_sequence<V...>, call const& c, index_t b, index_t h, index_t first_query,
                tile_memory const& memory, typename base::block_memory const& shared)
      : base(c.op, c.in, c.p, b, h, first_query, memory.packed), call_(&c), own_(memory.pulls), by_out_(memory.by_out),
        out_panels_(memory.out_panels), row_{this->lane_row(c.p, index_t(V))...},
        moving_{{bind_logit<chain_rule::guarded>(int(V))...}} {
    for (int v = 0; v < vectors; ++v) {
      by_logit_parameter_[v].fill(batch(T(0)));
      by_normalizer_[v].fill(batch(T(0)));
      for (int s = 0; s < slots::logit; ++s)
        shift_by_[v][std::size_t(s)] = moving_.at[v].logit_shift.tangent[pairs + s];
    }
    read_cotangents(shared.factors);
    each_pull([&](auto contraction, auto const& owner, auto const& t, int) {
      puller<decltype(contraction), T, Arch>::begin(t, c.in, owner);
    });
  }

  template <chain_rule Rule>
  logit_bound<Rule> bind_logit(int v) const {
    return op_->bind(moving_row<logit_dual<Rule>>(row_[v], 0, slots::logit, pairs));
  }
  /// The normalizer's row: from direction `first` on the row constant, if there is one, and the normalizer's
  /// parameters.
  template <class D>
  row<D> normalizer_row(int v, int first) const {
    row<D> r = moving_row<D>(row_[v], slots::logit, slots::normalizer, first + shifts);
    r.logit_shift = shifts != 0 ? D::variable(bound_.at[v].logit_shift, first) : D(bound_.at[v].logit_shift);
    return r;
  }
  template <class D>
  auto normalizer_of(row<D> const& r) const {
    return op_->normalizer.bind(r);
  }

  /// Lanes past the last query repeat it, and must not add: bits of a whole block without them. True if there are such
  /// lanes.
  template <class Seen>
  bool drop_idle_lanes(Seen& s, std::uint64_t* bits) const {
    if (count_ == queries) return false;
    std::uint64_t const valid = (std::uint64_t(1) << count_) - 1;
    for (index_t j = 0; j < s.n; ++j)
      bits[j] = (j >= s.full_first && j < s.full_last ? ~std::uint64_t(0) : bits[j]) & valid;
    s.full_first = s.full_last = 0;
    return true;
  }

  /// Gradients by the contractions, pairs[n] for number n, and weights of a block: what they do to everything a pair is
  /// made of.
  template <class Pairs>
  void pull_block(key_block_place const& keys, Pairs const& pairs_of, T const* weights, T* pulls,
                  gradient_sinks<T>& to) const {
    key_rows<T> const& rows = to.rows(field::v);
    outer<T, Arch>(rows.at(keys.first), rows.step, weights, out_panels_, count_, keys.n, p_->value_width,
                   finite_cotangents_);
    each_pull([&](auto c, auto const& owner, auto const& t, int n) {
      using puller_type = puller<decltype(c), T, Arch>;
      if constexpr (contraction::of_distance_alone<decltype(c)>)
        puller_type::pull_distances(pairs_of(n), t, keys, to.distances.data() + n * (call_->p.queries + call_->p.keys));
      else
        puller_type::pull(pairs_of(n), t, call_->in, owner, keys, pulls, to);
    });
  }

  /// Gives what grew with the tile to the call.
  void leave(index_t first_of_task, gradient_sinks<T>& to) const {
    each_pull([&](auto contraction, auto const& owner, auto const& t, int) {
      puller<decltype(contraction), T, Arch>::end(t, call_->in, owner, to);
    });
    alignas(64) T lane[queries];
    auto const add = [&](int slot, auto const& of_vector) {
      for (int v = 0; v < vectors; ++v) of_vector(v).store_aligned(lane + v * lanes);
      gradient_array<double>& sum = to.sums->parameters[std::size_t(slot)];
      for (index_t l = 0; l < count_; ++l) sum(0, 0, first_query_ + l - first_of_task, 0) += double(lane[l]);
    };
    for (int s = 0; s < slots::logit; ++s)
      add(s, [&](int v) {  // the row constant of the length scale moves what the normalizer sees
        auto const u = std::size_t(s);
        if constexpr (shifts == 0)
          return by_logit_parameter_[v][u];
        else
          return by_logit_parameter_[v][u] + attune::detail::chained(by_normalizer_[v][0], shift_by_[v][u]);
      });
    for (int s = 0; s < slots::normalizer; ++s)
      add(slots::logit + s, [&](int v) { return by_normalizer_[v][std::size_t(shifts + s)]; });
  }

  /// do' = do f(x) with f the gate:  dx = do o f', and the gate's parameters; out(lane, d) is o, the row before the
  ///                                 gate.
  template <class Out>
  void pull_output_gate(index_t first_of_task, gradient_sinks<T>& to, Out const& out) const {
    using D = dual<T, 1 + slots::output_gate>;
    constexpr int first_slot = slots::logit + slots::normalizer + slots::value_gate;
    for (index_t l = 0; l < count_ && !call_->d.out.absent(); ++l) {
      index_t const i = first_query_ + l;
      row<T> const r = attune::detail::scalar_row<T>(*p_, op_->mask, b_, h_, i);
      auto const gate = op_->output_gate.bind(moving_row<D>(r, first_slot, slots::output_gate, 1));
      for (index_t d = 0; d < p_->value_width; ++d) {
        index_t const column = p_->output_gate_width == 1 ? 0 : d;
        auto const& gates = call_->in.output_gate;
        D const f = gate.factor(D::variable(attune::detail::shared_element<T>(gates, b_, h_, i, column), 0));
        T const gain = call_->d.out(b_, h_, i, d) * out(l, d);
        if (gradient_array<double>* const shared = to.shared(field::output_gate))
          (*shared)(0, 0, i - first_of_task, column) += double(gain * f.tangent[0]);
        else
          to.to->of(field::output_gate)(b_, h_, i, column) += gain * f.tangent[0];
        for (int s = 0; s < slots::output_gate; ++s)
          to.sums->parameters[std::size_t(first_slot + s)](0, 0, i - first_of_task, 0) +=
              double(attune::detail::chained(gain, f.tangent[1 + s]));
      }
    }
  }

  call const* call_;
  T *own_, *by_out_, *out_panels_;
  row<batch> row_[std::size_t(vectors)];
  struct {
    logit_bound<chain_rule::guarded> at[std::size_t(vectors)];
  } moving_;
  logit_sums by_logit_parameter_[std::size_t(vectors)], shift_by_[std::size_t(vectors)];
  normalizer_sums by_normalizer_[std::size_t(vectors)];

 private:
  /// Visits contraction, its policy, the tile as its puller sees it, and its number.
  template <class Visit>
  void each_pull(Visit const& visit) const {
    [&]<class... C, int... Index>(contraction::list<C...>, std::integer_sequence<int, Index...>) {
      [[maybe_unused]] T* packed = packed_;
      [[maybe_unused]] T* own = own_;
      [[maybe_unused]] tile_place const at{p_, b_, h_, first_query_};
      (..., (visit(C{}, op_->template owner<Index>(), pulled_tile<T>{at, count_, packed, own}, Index),
             packed += contractor<C, T, Arch>::resident(*p_), own += puller<C, T, Arch>::resident(*p_)));
    }(typename Op::contractions{}, std::make_integer_sequence<int, pairs>{});
  }
  static index_t pull_scratch(problem_shape const& p) {
    return [&]<class... C>(contraction::list<C...>) {
      return (std::max)({index_t(0), puller<C, T, Arch>::block(p)...});
    }(typename Op::contractions{});
  }
  static index_t pulls_scratch(problem_shape const& p) {
    return [&]<class... C>(contraction::list<C...>) {
      return (index_t(0) + ... + puller<C, T, Arch>::resident(p));
    }(typename Op::contractions{});
  }

  /// do behind the output gate.
  void read_cotangents([[maybe_unused]] T* factors) {
    index_t const width = p_->value_width;
    if (call_->d.out.absent())
      std::fill_n(by_out_, queries * width, T(0));
    else
      pack_queries<queries>(by_out_, call_->d.out, b_, h_, first_query_);
    if constexpr (Op::has_output_gate) {
      T const* const factor = this->output_factors(call_->in, factors);
      for (index_t c = 0; c < width; ++c)
        for (index_t l = 0; l < queries; ++l)
          by_out_[c * queries + l] *= factor[(p_->output_gate_width == 1 ? 0 : c) * queries + l];
    }
    if (Op::has_output_gate || call_->d.out.absent())
      panels<T, Arch>::template from_packed<queries>(out_panels_, by_out_, width, count_);
    else
      panels<T, Arch>::from_tensor(out_panels_, call_->d.out, b_, h_, first_query_, count_);
    constexpr index_t panel = panels<T, Arch>::width;
    finite_cotangents_ =
        finite_rows<T, Arch>(row_block<T>(out_panels_, panel), panel, 0, panels<T, Arch>::count(width) * count_);
  }

  bool finite_cotangents_ = true;
};

}  // namespace attune::exec_cpu
