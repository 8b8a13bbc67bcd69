// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The steps of a VJP on tiles, for any runner: a CUDA stream, or loops over emulated warps.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <attune/exec/cuda/gradients/config.hpp>
#include <attune/exec/cuda/gradients/finish.hpp>
#include <attune/exec/cuda/gradients/row_program.hpp>
#include <attune/exec/cuda/run.hpp>

namespace attune::exec_cuda {

/// The requested gradients of a call. Each has the shape of its input; an absent one is not computed.
template <class E>
using requested_gradients = attune::detail::gradient_views<E>;

/// Throws where a gradient is requested that tiles do not have.
template <class Op, class E>
void check_wanted(Op const& op, requested_gradients<E> const& to) {
  auto const refuse = [](std::string const& name) {
    throw error(
        "vjp", "the gradient by " + name, "a tensor",
        "none: the tiles of `cuda` have gradients by v, by the inputs of products and by key_bias; use thrust_on");
  };
  for_each_field([&]<field F>() {
    if (!to.of(F).absent() && !has_gradient<Op>(F)) refuse(name_of(F));
  });
  std::size_t n = 0;
  if constexpr (parameter_count<Op> != 0)
    for (operator_parameter const& x : listed_parameters(op))
      if (n < to.parameters.size() && !to.parameters[n++].absent()) refuse(x.path());
  n = 0;
  if constexpr (table_count<Op> != 0)
    for (operator_table const& x : listed_tables(op))
      if (n < to.tables.size() && !to.tables[n++].absent()) refuse(x.path());
}

/// The cotangents of a call.
template <class E>
struct row_cotangents {
  tensor<E const> out;
  tensor<float const> lse = {}, ground_weight = {};
};

/// Runs a VJP, or counts its memory.
template <class Runner, class Op, class E, class Queries, class Keys>
class gradient_run : forward_run<Runner, Op, E, Queries> {
  using base = forward_run<Runner, Op, E, Queries>;
  using base::c_, base::counting_, base::memory_, base::run, base::runner_;
  static constexpr int products = tile_facts<Op>::products;

 public:
  gradient_run(Runner& runner, arena& from, Op const& op, inputs<Op, tensor<E const>> const& in, problem_shape const& p,
               saved_numbers const& saved, row_cotangents<E> const& d, requested_gradients<E> const& to)
      : base(runner, from, op, in, outputs<Op, E>{.out = tensor<E>()}, p), to_(to),
        g_{c_, d.out, d.lse, d.ground_weight} {
    g_.saved = saved;
  }

  void operator()() {
    auto const& p = c_.p;
    if (p.batch * p.heads * p.queries * p.keys == 0) return clear();
    this->bind(heads_of_numbers());
    if (!g_.d_out.absent()) g_.d_rows = this->readable(g_.d_out);
    this->plan();
    g_.forward = c_;
    plan_of_keys();
    targets();
    if (counting_) return;
    if (queries_) runner_.template query_gradients<Op, E, Queries>(g_);
    if (keys_) runner_.template key_gradients<Op, E, Keys>(g_);
    for (auto const& program : after_) program();
  }

 private:
  static constexpr int operands = products + gradient_call<Op, E>::key_numbers + 1;  ///< at most, of one input
  using sum_program = sum_parts_program<E, operands>;

  /// A head for every head of the numbers of keys.
  index_t heads_of_numbers() const {
    index_t heads = 1;
    for_each_contraction(typename Op::contractions{}, [&](auto contraction, auto, auto) {
      using chosen = decltype(contraction);
      if constexpr (is_key_number<chosen>) heads = std::lcm(heads, member<chosen::x::of>(this->c_.in).extents().head);
    });
    return heads;
  }
  /// Without a pair, every gradient is 0.
  void clear() {
    for (tensor<E> const& x : to_.fields)
      if (!x.absent() && x.extents().size() != 0) run(sum_program{{}, 0, x});
  }
  void plan_of_keys() {
    index_t const groups = c_.p.batch * c_.groups;
    g_.rows_each = Keys::bn;
    g_.keys_each = Keys::rows;
    g_.row_tiles = (c_.rows + Keys::bn - 1) / Keys::bn;
    g_.key_tiles = int((c_.p.keys + Keys::rows - 1) / Keys::rows);
    g_.pairs = memory_.template take<pair_record<Op>>(groups * g_.row_tiles * g_.rows_each);
    g_.ranges = memory_.template take<row_range>(groups * g_.key_tiles);
    constexpr bool interval = Op::mask_policy::form == mask_form::interval;
    if constexpr (interval)
      g_.hulls = memory_.template take<tile_hull>(groups * g_.row_tiles);
    else
      g_.classes = memory_.template take<int>(groups * g_.row_tiles * g_.key_tiles);
    run(row_slopes_program<Op, E>{g_});
    if constexpr (interval) {
      run(tile_hull_program<Op, E>{g_});
    } else {
      forward_call<Op, E> transposed = c_;
      transposed.lists = g_.classes;
      transposed.list_groups = c_.groups;
      transposed.row_tiles = g_.row_tiles;
      transposed.key_tiles = g_.key_tiles;
      run(classify_program<Op, E>{transposed, g_.rows_each, g_.keys_each});
    }
    run(row_range_program<Op, E>{g_});
    mark_infinities();
  }

  void mark_infinities() {
    index_t const batch = c_.p.batch;
    int* const keys = g_.infinite_keys = memory_.template take<int>(batch * c_.key_tiles);
    int* const rows = g_.infinite_rows = memory_.template take<int>(batch * g_.row_tiles);
    if (!counting_) {
      runner_.clear(keys, std::size_t(batch * c_.key_tiles) * sizeof(int));
      runner_.clear(rows, std::size_t(batch * g_.row_tiles) * sizeof(int));
    }
    for (int k = 0; k < products; ++k) {
      run(infinite_tiles_program<E>{c_.key[k], batch, c_.p.keys, 1, Queries::bn, c_.key_tiles, keys});
      run(infinite_tiles_program<E>{c_.query[k], batch, c_.p.queries, c_.pack, Keys::bn, g_.row_tiles, rows});
    }
  }

  /// Where tiles write: to the gradient itself if one operand alone adds to it, else to parts, which are summed.
  void targets() {
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F) && has_gradient<Op>(F)) {
        tensor<E> const to = to_.of(F);
        if (to.absent() || to.extents().size() == 0) return;
        constexpr bool by_key = side_of(F) == input_side::key;
        (by_key ? this->keys_ : this->queries_) = true;
        operand_target of[operands];
        int count = 0;
        if constexpr (F == field::v) of[count++] = {&this->g_.by_value};
        for_each_contraction(typename Op::contractions{}, [&](auto contraction, auto index, auto place) {
          using chosen = decltype(contraction);
          constexpr int c = decltype(index)::value, k = decltype(place)::value;
          if constexpr (is_key_number<chosen>)
            if constexpr (chosen::x::of == F)
              of[count++] = {&this->g_.by_number[key_numbers_before<c>(typename Op::contractions{})]};
          if constexpr (k >= 0) {
            if constexpr (chosen::x::of == F)
              of[count++] = {&this->g_.by_query[k], this->template finish_of<chosen, c, F, false>()};
            if constexpr (chosen::y::of == F)
              of[count++] = {&this->g_.by_key[k], this->template finish_of<chosen, c, F, true>()};
          }
        });
        send(to, of, count, by_key ? index_t(this->c_.groups) : this->c_.p.heads);
      }
    });
  }
  /// A place of gradients by an operand, and the program, if any, that makes them gradients by the input.
  struct operand_target {
    row_target<E>* rows = nullptr;
    std::function<void(row_target<E> const&)> finish = nullptr;
  };
  template <class C, int Index, field F, bool OfKeys>
  std::function<void(row_target<E> const&)> finish_of() {
    auto const owner = c_.op.template owner<Index>();
    using owner_type = std::remove_const_t<decltype(owner)>;
    if constexpr (contraction::Rotary<C>) {
      if (OfKeys && owner.keys == rotary_keys::turned) return nullptr;
      return [=, this](row_target<E> const& x) {
        this->run(turn_back_program<E, owner_type, OfKeys>{x, owner, this->c_.p});
      };
    } else if constexpr (is_prepared<C> && !OfKeys) {
      return [=, this](row_target<E> const& x) {
        this->run(left_slope_program<E, C, owner_type>{x, owner, member<F>(this->c_.in), this->c_.p.batch});
      };
    } else {
      return nullptr;
    }
  }
  void send(tensor<E> const& to, operand_target const* of, int count, index_t heads) {
    shape const e = to.extents();
    strides const s = to.steps();
    bool const direct = count == 1 && heads == e.head && !of[0].finish;
    sum_program sum{{}, count, to};
    for (int n = 0; n < count; ++n) {
      row_target<E>& x = *of[n].rows;
      x.heads = heads, x.positions = e.position, x.width = e.feature;
      if (direct) {
        x.to = to;
        x.stores_pairs = e.feature % 2 == 0 && s.position % 2 == 0 && s.head % 2 == 0 && s.batch % 2 == 0 &&
                         reinterpret_cast<std::uintptr_t>(to.data()) % (2 * sizeof(E)) == 0;
      } else {
        x.parts = memory_.template take<float>(c_.p.batch * heads * e.position * e.feature);
      }
      sum.from[n] = x;
      if (of[n].finish) after_.push_back([x, finish = of[n].finish] { finish(x); });
    }
    if (!direct) after_.push_back([this, sum] { run(sum); });
  }

  requested_gradients<E> const& to_;
  gradient_call<Op, E> g_;
  bool queries_ = false, keys_ = false;
  std::vector<std::function<void()>> after_;  ///< programs that follow the tiles, in order
};

/// The widths that tiles of gradients are compiled for by default.
using gradient_widths = widths<64, 128>;

/// Runs a VJP, or counts its memory, with the tiles of the first width that holds its features. Arguments are checked;
/// `to` has gradients that the tiles have.
template <class Runner, class Op, class E, int... Width>
void run_vjp(widths<Width...>, Runner& runner, arena& memory, Op const& op, inputs<Op, tensor<E const>> const& in,
             problem_shape const& p, saved_numbers const& saved, row_cotangents<E> const& d,
             requested_gradients<E> const& to) {
  static_assert(require_tiles<Op>() && require_gradient_tiles<Op, E>());
  index_t const most = widest<Op>(p);
  bool done = false;
  auto const one = [&]<int W>() {
    if (done || most > W) return;
    done = true;
    using configs = gradient_configs<Op, E, W>;
    gradient_run<Runner, Op, E, typename configs::queries, typename configs::keys>(runner, memory, op, in, p, saved, d,
                                                                                   to)();
  };
  (one.template operator()<Width>(), ...);
  if (!done)
    throw error("vjp", "a width", attune::detail::text(most, " features"),
                "at most 128, the widest tiles of gradients: use thrust_on");
}

}  // namespace attune::exec_cuda
