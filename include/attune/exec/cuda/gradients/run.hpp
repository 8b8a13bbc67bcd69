// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The steps of a VJP on tiles, for any runner: a CUDA stream, or loops over emulated warps.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include <attune/exec/cuda/gradients/config.hpp>
#include <attune/exec/cuda/gradients/finish.hpp>
#include <attune/exec/cuda/gradients/reduce.hpp>
#include <attune/exec/cuda/gradients/row_program.hpp>
#include <attune/exec/cuda/gradients/wanted.hpp>
#include <attune/exec/cuda/run.hpp>

namespace attune::exec_cuda {

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
    this->unit_of_values_ = 1;  // values are multiplied, and never added
  }

  void operator()() {
    auto const& p = c_.p;
    if (p.batch * p.heads * p.queries * p.keys == 0) return clear();
    this->bind(heads_of_groups(c_.op, c_.in, p, to_));
    if constexpr (Op::has_output_gate) open();
    if (!g_.d_out.absent()) g_.d_rows = this->readable(g_.d_out);
    this->plan();
    g_.forward = c_;
    memory_of_rows();
    plan_of_keys();
    targets();
    if (counting_) return;
    if constexpr (moves_members)
      members_ ? tiles<true>() : tiles<false>();
    else
      tiles<false>();
    for (auto const& program : after_) program();
  }

 private:
  static constexpr int operands = products + gradient_call<Op, E>::key_numbers + gradient_call<Op, E>::query_numbers +
                                  1;  ///< at most, of one input
  static constexpr bool moves_members = has_parameter_gradients<Op>;

  template <bool Members>
  void tiles() {
    runner_.template gradients<Op, E, Queries, Keys, Members>(g_, queries_, keys_);
  }

  /// Without a pair, every gradient is 0.
  void clear() { clear(to_.fields), clear(to_.parameters), clear(to_.tables); }
  template <class List>
  void clear(List const& list) {
    for (auto const& x : list)
      if (!x.absent()) run(zeros_of(x));
  }
  template <class N>
  static store_program<no_value, N> zeros_of(tensor<N> const& x) {
    return {{}, x};
  }
  shape rows_of(index_t width) const { return {c_.p.batch, c_.p.heads, c_.p.queries, width}; }

  /// Cotangents before the output gate, rounded to the type of the tensors.
  void open() {
    given_ = g_.d_out;
    if (given_.absent()) return;
    shape const e = given_.extents();
    E* const to = memory_.template take<E>(e.size());
    if (counting_) return;  // tiles read the copy as it is wherever they could read the original
    run(store_program<opened_feature<Op, E>, E>{{c_, given_}, tensor<E>(to, e)});
    g_.d_out = tensor<E const>(to, e);
  }
  template <class List>
  static bool any_of(List const& list) {
    return std::any_of(list.begin(), list.end(), [](auto const& x) { return !x.absent(); });
  }
  /// Numbers of rows that the programs before the tiles, and the tiles, write for those that follow.
  void memory_of_rows() {
    index_t const rows = c_.p.batch * c_.p.heads * c_.p.queries;
    if constexpr (moves_members) {
      members_ = any_of(to_.parameters);
      if (members_) {
        queries_ = true;
        g_.by_member = memory_.template take<float>(rows * member_sums<Op>::size);
        g_.by_parameter = memory_.template take<float>(rows * parameter_count<Op>);
      }
    }
    if constexpr (Op::has_output_gate || Op::uses(field::v0))
      if (members_ || !to_.of(field::output_gate).absent() || !to_.of(field::v0).absent())
        g_.ends = memory_.template take<row_end>(rows);
  }
  void plan_of_keys() {
    index_t const groups = c_.p.batch * c_.groups;
    g_.rows_each = Keys::bn;
    g_.keys_each = Keys::rows;
    g_.row_tiles = (c_.rows + Keys::bn - 1) / Keys::bn;
    g_.key_tiles = int((c_.p.keys + Keys::rows - 1) / Keys::rows);
    if (index_t const tiles = groups * g_.row_tiles; tiles >= index_t(1) << 31)
      throw error("vjp", "the number of tiles of rows", attune::detail::text(tiles), "at most 2^31 - 1");
    g_.pairs = memory_.template take<pair_record<Op>>(groups * g_.row_tiles * g_.rows_each);
    if constexpr (tile_format<E>::split)
      g_.row_factors =
          memory_.template take<float>(groups * g_.row_tiles * g_.rows_each * (tile_facts<Op>::products + 1));
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
    if constexpr (!tile_format<E>::split) mark_infinities();  // floats have factors whose signs tell
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
    tables();
    for_each_field([&]<field F>() {
      if constexpr (has_gradient<Op>(F)) {
        tensor<E> const to = to_.of(F);
        if (to.absent() || to.extents().size() == 0) return;
        if constexpr (F == field::v0)
          sum(ground_value<Op, E>{this->g_}, this->rows_of(this->c_.p.value_width), to);
        else if constexpr (F == field::output_gate)
          sum(output_gate_gains<Op, E>{this->g_, this->given_}, this->rows_of(this->c_.p.output_gate_width), to);
        else if constexpr (Op::has_value_gate && (F == field::v || F == field::value_gate))
          this->template gated_values<F == field::value_gate>(to);
        else if constexpr (side_of(F) == input_side::pair)
          this->template pairs<F>(to);
        else
          this->template operands_of<F>(to);
      }
    });
    if constexpr (moves_members)
      if (members_) parameters();
  }
  template <class Value, class N>
  void sum(Value const& value, shape const& all, tensor<N> const& to) {
    after_.push_back(planned_reduction([this](auto const& program) { this->run(program); }, memory_, value, all, to));
  }
  template <field F>
  void operands_of(tensor<E> const& to) {
    constexpr bool by_key = side_of(F) == input_side::key;
    (by_key ? keys_ : queries_) = true;
    operand_target of[operands];
    int count = 0;
    if constexpr (F == field::v) of[count++] = {&g_.by_value};
    for_each_contraction(typename Op::contractions{}, [&](auto contraction, auto index, auto place) {
      using chosen = decltype(contraction);
      constexpr int c = decltype(index)::value, k = decltype(place)::value;
      if constexpr (is_number_of<operand_side::key, chosen> && !is_distance<chosen>)
        if constexpr (number_reads<operand_side::key, chosen>(F)) of[count++] = {&this->template sums_of_keys<c>()};
      if constexpr (is_number_of<operand_side::query, chosen> && !is_distance<chosen>)
        if constexpr (number_reads<operand_side::query, chosen>(F))
          of[count++] = {&this->template sums_of_queries<c>()};
      if constexpr (k >= 0) {
        if constexpr (chosen::x::of == F)
          of[count++] = {&this->g_.by_query[k], this->template finish_of<chosen, c, F, false>()};
        if constexpr (chosen::y::of == F)
          of[count++] = {&this->g_.by_key[k], this->template finish_of<chosen, c, F, true>()};
      }
    });
    send(to, of, count, by_key ? index_t(c_.groups) : c_.p.heads);
  }
  template <int Index>
  row_target<E>& sums_of_queries() {
    return g_.by_query_number[numbers_before<operand_side::query, Index>(typename Op::contractions{})];
  }
  template <int Index>
  row_target<E>& sums_of_keys() {
    return g_.by_key_number[numbers_before<operand_side::key, Index>(typename Op::contractions{})];
  }
  template <operand_side Side, class C>
  static constexpr bool number_reads(field f) {
    if constexpr (Side == operand_side::key && !contraction::Plain<C>)
      return C::y::of == f;
    else
      return C::x::of == f;
  }
  /// Floats for each pair, shared by all batch elements where there is one, and by all heads.
  pair_target<E> parts_of_pairs(index_t batch, index_t heads) {
    auto const& p = c_.p;
    queries_ = true;
    if (batch < p.batch) g_.shared_batches = int(p.batch);
    if (heads < p.heads) g_.shared_groups = c_.groups;
    index_t const size = batch * heads * p.queries * p.keys;
    float* const parts = memory_.template take<float>(size);
    if (!counting_) runner_.clear(parts, std::size_t(size) * sizeof(float));
    return {{}, parts, batch, heads, p.queries, p.keys};
  }
  template <field F>
  void pairs(tensor<E> const& to) {
    queries_ = true;
    auto const& p = c_.p;
    shape const e = to.extents(), all{e.batch, e.head, p.queries, p.keys};
    pair_target<E> x;
    if (e == shape{p.batch, p.heads, p.queries, p.keys}) {
      x.to = to;
      run(zeros_of(to));  // of pairs that no tile sees
    } else {
      x = parts_of_pairs(e.batch, e.head);
      sum(pair_value<E>{x}, all, to);
    }
    for_each_contraction(typename Op::contractions{}, [&](auto contraction, auto index, auto) {
      using chosen = decltype(contraction);
      if constexpr (is_number_of<operand_side::pair, chosen> && !is_distance_table<chosen>)
        if constexpr (chosen::x::of == F)
          this->g_.by_pair[numbers_before<operand_side::pair, decltype(index)::value>(typename Op::contractions{})] = x;
    });
  }
  template <bool Gate>
  void gated_values(tensor<E> const& to) {
    keys_ = true;
    auto const& p = c_.p;
    own_parts(g_.by_value, c_.groups, p.keys, p.value_width);
    sum(value_gate_value<Op, E, Gate>{g_, c_.value.heads / p.value_heads},
        {p.batch, p.value_heads, p.keys, p.value_width}, to);
  }
  void tables() {
    for_each_pulled_table(c_.op, [&](table const& of, auto contraction, auto number, auto place) {
      tensor<float> const to = this->to_.tables[std::size_t(of.number())];
      if (!to.absent() && to.extents().size() != 0)
        this->template one_table<decltype(contraction), decltype(number)::value, decltype(place)::value>(to);
    });
  }
  template <class C, int Index, int Product>
  void one_table(tensor<float> const& to) {
    auto const& p = c_.p;
    auto const owner = c_.op.template owner<Index>();
    using owner_type = std::remove_const_t<decltype(owner)>;
    queries_ = true;
    if constexpr (is_distance_table<C>) {
      using name = typename pulled_table<C>::type;
      shape const e = to.extents();
      // Where offsets differ, so do the distances of the pairs that batch elements share.
      pair_target<E> const x = parts_of_pairs(e.batch == 1 && !p.has_offsets() ? 1 : p.batch, e.head);
      g_.by_pair[numbers_before<operand_side::pair, Index>(typename Op::contractions{})] = x;
      double* const sums = memory_.template take<double>(x.batch * x.heads * (p.queries + p.keys - 1));
      after_.push_back([=, this] {
        run(diagonal_sum_program<E>{x, sums});
        run(distance_table_program<name, owner_type>{sums, x.batch, x.heads, owner, c_.p, to});
      });
    } else {
      tensor<E const> const x = member<C::x::of>(c_.in);
      index_t const width = x.extents().feature;
      own_parts(g_.by_query[Product], p.heads, p.queries, width);
      if constexpr (is_distance<C>) {
        keys_ = true;
        own_parts(this->template sums_of_queries<Index>(), p.heads, p.queries, 1);
        own_parts(this->template sums_of_keys<Index>(), c_.groups, p.keys, 1);
        sum(metric_value<E>{g_.by_query[Product], this->template sums_of_queries<Index>(),
                            this->template sums_of_keys<Index>(), x, member<C::y::of>(c_.in), p.heads},
            {p.batch, p.heads, p.queries + p.keys, width}, to);
      } else {
        using slope = left_slope<E, C, owner_type, true>;
        sum(left_value<E, slope>{g_.by_query[Product], {owner, x}}, rows_of(width), to);
      }
    }
  }
  void parameters() {
    after_.push_back([this] { run(chain_parameters_program<Op, E>{g_, given_}); });
    int s = 0;
    for (auto const& to : to_.parameters) {
      if (!to.absent() && to.extents().size() != 0)
        sum(parameter_value{g_.by_parameter, c_.p, parameter_count<Op>, s}, rows_of(1), to);
      ++s;
    }
  }
  void own_parts(row_target<E>& x, index_t heads, index_t positions, index_t width) {
    x.heads = heads, x.positions = positions, x.width = width;
    if (x.parts == nullptr) x.parts = memory_.template take<float>(c_.p.batch * heads * positions * width);
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
    } else if constexpr (is_distance<C>) {
      row_target<E>& sums = OfKeys ? this->template sums_of_keys<Index>() : this->template sums_of_queries<Index>();
      own_parts(sums, OfKeys ? index_t(c_.groups) : c_.p.heads, OfKeys ? c_.p.keys : c_.p.queries, 1);
      return [=, this, sums = sums](row_target<E> const& x) {
        this->change(x, distance_value<E, C, owner_type, OfKeys>{x, sums, owner, member<F>(this->c_.in), this->c_.p});
      };
    } else if constexpr (is_prepared<C> && !OfKeys) {
      return [=, this](row_target<E> const& x) {
        using slope = left_slope<E, C, owner_type, false>;
        this->change(x, left_value<E, slope>{x, {owner, member<F>(this->c_.in)}});
      };
    } else {
      return nullptr;
    }
  }
  template <class Value>
  void change(row_target<E> const& rows, Value const& value) {
    run(change_parts_program<E, Value>{rows, value, c_.p.batch});
  }
  void send(tensor<E> const& to, operand_target const* of, int count, index_t heads) {
    shape const e = to.extents();
    bool const direct = count == 1 && heads == e.head && !of[0].finish && of[0].rows->parts == nullptr;
    sum_of_parts<E, operands> all{{}, count, e.head};
    for (int n = 0; n < count; ++n) {
      row_target<E>& x = *of[n].rows;
      if (direct) {
        x.heads = heads, x.positions = e.position, x.width = e.feature;
        x.to = to;
        x.stores_pairs = stores_two(to);
      } else {
        own_parts(x, heads, e.position, e.feature);
      }
      all.from[n] = x;
      if (of[n].finish) after_.push_back([x, finish = of[n].finish] { finish(x); });
    }
    if (!direct) sum(all, e, to);
  }

  requested_gradients<E> const& to_;
  gradient_call<Op, E> g_;
  tensor<E const> given_ = {};  ///< the cotangents of the call
  bool queries_ = false, keys_ = false, members_ = false;
  std::vector<std::function<void()>> after_;  ///< programs that follow the tiles, in order
};

/// The widths that tiles of gradients are compiled for by default.
using gradient_widths = widths<64, 128, 256>;

/// Runs a VJP, or counts its memory, with the tiles of the first width that holds its features. Arguments are checked;
/// `to` has gradients that the tiles have.
template <class Runner, class Op, class E, int Memory, int... Width>
void run_vjp(widths_within<Memory, Width...>, Runner& runner, arena& memory, Op const& op,
             inputs<Op, tensor<E const>> const& in, problem_shape const& p, saved_numbers const& saved,
             row_cotangents<E> const& d, requested_gradients<E> const& to) {
  static_assert(require_tiles<Op>() && require_gradient_tiles<Op, E>());
  index_t const most = widest<Op>(p);
  bool done = false;
  auto const one = [&]<int W>() {
    if (done || most > W) return;
    done = true;
    using configs = gradient_configs<Op, E, W, Memory>;
    gradient_run<Runner, Op, E, typename configs::queries, typename configs::keys>(runner, memory, op, in, p, saved, d,
                                                                                   to)();
  };
  (one.template operator()<Width>(), ...);
  if (!done)
    throw error("vjp", "a width", attune::detail::text(most, " features"),
                "at most the widest tiles that the executor has: cuda<E, widths<64, 128, 256>>");
}

}  // namespace attune::exec_cuda
