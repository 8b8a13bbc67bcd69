// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The steps of a forward call, for any runner: a CUDA stream, or loops over emulated warps.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>

#include <attune/exec/cuda/plan.hpp>
#include <attune/exec/cuda/prepare.hpp>
#include <attune/exec/cuda/split.hpp>
#include <attune/exec/cuda/tile/config.hpp>
#include <attune/exec/saved.hpp>

namespace attune::exec_cuda {

/// The widths that tiles are compiled for, ascending multiples of 64. A call takes the first that holds its features.
/// Memory: the bytes of shared memory that a block may have.
template <int Memory, int... Width>
struct widths_within {};
template <int... Width>
using widths = widths_within<large_memory, Width...>;
/// The same, with smaller tiles: for sm_86, sm_89 and sm_120, whose blocks have 99 KiB of shared memory.
template <int... Width>
using small_widths = widths_within<small_memory, Width...>;
#if defined(__CUDA_ARCH_LIST__)
inline constexpr int compiled_for[] = {__CUDA_ARCH_LIST__};
#else
inline constexpr int compiled_for[] = {0};
#endif
/// Whether all devices that nvcc compiles for have blocks of 99 KiB.
inline constexpr bool for_small_memory = [] {
  for (int n10 : compiled_for)
    if (!has_small_memory(n10)) return false;
  return true;
}();
/// All widths, in tiles that fit the devices that nvcc compiles for.
using default_widths = widths_within<for_small_memory ? small_memory : large_memory, 64, 128, 256>;

/// Memory of a call, taken piece by piece; without memory it only counts. Every piece begins at a multiple of 256,
/// wherever the memory begins: a call takes at most 255 bytes more than it counts.
struct arena {
  static constexpr std::size_t alignment = 256;  ///< of the pieces, in bytes
  unsigned char* memory = nullptr;
  std::size_t used = 0;
  /// Bytes of memory for what was counted.
  std::size_t needed() const { return used + alignment; }
  template <class T>
  T* take(index_t n) {
    std::size_t const from = reinterpret_cast<std::uintptr_t>(memory) % alignment;
    std::size_t const at = (from + used + alignment - 1) / alignment * alignment - from;
    used = at + std::size_t(n) * sizeof(T);
    return memory == nullptr ? nullptr : reinterpret_cast<T*>(memory + at);
  }
};

/// Throws unless a workspace holds the bytes that a call needs.
inline void require_workspace(char const* function, std::size_t bytes, std::size_t needed) {
  if (bytes < needed)
    throw error(function, "the workspace", attune::detail::text(bytes, " bytes"),
                attune::detail::text("at least ", needed, ", as workspace_bytes() says"));
}

/// Whether tiles can copy rows of a tensor as they are.
template <class E>
bool is_ready(tensor<E const> const& x) {
  strides const s = x.steps();
  shape const e = x.extents();
  auto const whole = [](index_t step, index_t extent) { return extent <= 1 || step % 8 == 0; };
  return reinterpret_cast<std::uintptr_t>(x.data()) % 16 == 0 && e.feature % 8 == 0 &&
         (s.feature == 1 || e.feature == 1) && whole(s.position, e.position) && whole(s.head, e.head) &&
         whole(s.batch, e.batch);
}

template <class Runner, class Op, class E, class C>
class forward_run {
  using facts = tile_facts<Op>;
  using contractions = typename Op::contractions;

 public:
  forward_run(Runner& runner, arena& from, Op const& op, inputs<Op, tensor<E const>> const& in,
              outputs<Op, E> const& to, problem_shape const& p, saved_arrays const& saved = {})
      : runner_(runner), memory_(from), counting_(from.memory == nullptr && Runner::launches),
        c_{op, p, in, to, saved} {}

  void operator()() {
    if (c_.p.batch * c_.p.heads * c_.p.queries == 0) return;
    bind();
    c_.stores_pairs = stores_two(c_.to.out);
    plan();
    if (!counting_) runner_.template tiles<Op, E, C>(c_);
  }

 protected:  // exec/cuda/gradients/run.hpp takes the same steps
  /// Records of the rows, and operands that tiles can copy. `heads`: see group().
  void bind(index_t heads = 1) {
    settle();
    c_.records = memory_.template take<row_record<Op>>(c_.p.batch * c_.p.heads * c_.p.queries);
    run(bind_row_program<Op, E>{c_});
    prepare();
    group(heads);
  }
  template <class Program>
  void run(Program const& program) {
    if (!counting_) runner_.tasks(program.tasks(), program);
  }
  /// Moving averages are computed once; a v0 in the host's memory of `zeros` becomes a zero that programs read.
  void settle() {
    for (operator_parameter const& listed : listed_parameters(c_.op)) {
      auto& x = const_cast<parameter&>(*listed.at);  // c_.op is a copy
      if (!x.is_average()) continue;
      shape const e = x.extents();
      double* const to = memory_.template take<double>(e.size());
      if (counting_) continue;
      runner_.tasks(e.size(), average_program{x, to});
      if (to == nullptr) continue;
      int const number = x.number();
      x = parameter(tensor<double const>(to, e));
      x.number(number);
    }
    if constexpr (Op::uses(field::v0))
      if (c_.in.v0.data() == &attune::detail::zero<E>) {
        E* const to = memory_.template take<E>(1);
        if (counting_) return;
        runner_.clear(to, sizeof(E));
        if (to == nullptr) return;
        c_.in.v0 = tensor<E const>(to, c_.in.v0.extents(), c_.in.v0.steps());
      }
  }

  /// Rows that a block copies at once.
  static constexpr int together = C::threads / (C::width / 8);
  operand as_it_is(tensor<E const> const& x) const {
    strides const s = x.steps();
    constexpr std::int64_t size = sizeof(E);
    return {reinterpret_cast<unsigned char const*>(x.data()),
            s.batch * size,
            s.head * size,
            s.position * size,
            int(x.extents().head),
            x.data() == nullptr ? 0 : int(x.extents().feature / 8),  // without positions there may be no memory
            s.position * size * together};
  }
  /// `unit`: split rows get their factors times this.
  template <class Feature>
  operand_of<E> copied(Feature const& feature, index_t heads, index_t positions, index_t width, float unit = 1) {
    using number = typename tile_format<E>::number;
    index_t const chunks = (width + 7) / 8;
    std::int64_t const row = chunks * 16, plane = c_.p.batch * heads * positions * row;
    number* const to = memory_.template take<number>(tile_format<E>::planes * plane / index_t(sizeof(number)));
    operand const copy{reinterpret_cast<unsigned char const*>(to),
                       heads * positions * row,
                       positions * row,
                       row,
                       int(heads),
                       int(chunks),
                       row * together};
    if constexpr (tile_format<E>::split) {
      index_t const each = (positions + 63) / 64 * 64;
      float* const factors = memory_.template take<float>(c_.p.batch * heads * each);
      run(row_factor_program<Feature>{feature, factors, c_.p.batch, heads, positions, width, each, unit});
      split_operand const split{copy, plane, factors, each};
      run(split_rows_program<Feature>{feature, to, split, c_.p.batch, positions, width, unit});
      return split;
    } else {
      run(copy_rows_program<E, Feature>{feature, to, c_.p.batch, heads, positions, width, chunks});
      return copy;
    }
  }
  operand_of<E> readable(tensor<E const> const& x, float unit = 1) {
    if constexpr (!tile_format<E>::split)
      if (is_ready(x)) return as_it_is(x);
    shape const e = x.extents();
    return copied(plain_feature<E>{x}, e.head, e.position, e.feature, unit);
  }

  void prepare() {
    for_each_contraction(contractions{}, [&](auto contraction, auto number, auto place) {
      using chosen = decltype(contraction);
      constexpr int k = decltype(place)::value;
      if constexpr (k >= 0) {
        constexpr field queries = chosen::x::of, keys = chosen::y::of;
        auto const& owner = c_.op.template owner<decltype(number)::value>();
        using owner_type = std::remove_cvref_t<decltype(owner)>;
        tensor<E const> const x = member<queries>(c_.in), y = member<keys>(c_.in);
        index_t const width = x.extents().feature;
        if constexpr (contraction::Rotary<chosen>)
          c_.query[k] = copied(turned_feature<E, owner_type, false>{x, owner, c_.p}, c_.p.heads, c_.p.queries, width);
        else if constexpr (is_prepared<chosen>)
          c_.query[k] = copied(left_feature<E, chosen, owner_type>{x, owner}, c_.p.heads, c_.p.queries, width);
        else
          c_.query[k] = readable(x);
        bool turns = false;
        if constexpr (contraction::Rotary<chosen>)
          if (owner.keys != rotary_keys::turned) {
            turns = true;
            c_.key[k] = copied(turned_feature<E, owner_type, true>{y, owner, c_.p}, y.extents().head, c_.p.keys, width);
          }
        if (!turns) c_.key[k] = readable(y);
        if constexpr (is_distance<chosen>) {
          float* const of_queries = memory_.template take<float>(c_.p.batch * c_.p.heads * c_.p.queries);
          float* const of_keys = memory_.template take<float>(c_.p.batch * c_.p.heads * c_.p.keys);
          run(norm_program<Op, E, chosen, owner_type, false>{c_, owner, of_queries});
          run(norm_program<Op, E, chosen, owner_type, true>{c_, owner, of_keys});
          c_.query_norm = of_queries;
          c_.key_norm = of_keys;
        }
      }
    });
    if constexpr (Op::has_value_gate) {
      index_t const each = std::is_empty_v<typename Op::value_gate_policy> ? 1 : c_.p.heads / c_.p.value_heads;
      c_.value =
          copied(gated_feature<Op, E>{c_, each}, c_.p.value_heads * each, c_.p.keys, c_.p.value_width, unit_of_values_);
    } else {
      c_.value = readable(c_.in.v, unit_of_values_);
    }
  }
  /// Query heads that read the same keys and values share tiles. The heads of other tensors with a row per key may be
  /// given: the heads of a group then read the same rows.
  void group(index_t heads) {
    heads = std::lcm(heads, index_t(c_.value.heads));
    for (int k = 0; k < facts::products; ++k) heads = std::lcm(heads, index_t(c_.key[k].heads));
    c_.groups = int(heads);
    c_.pack = int(c_.p.heads / heads);
    index_t const rows = c_.p.queries * c_.pack, most = index_t(1) << 30;
    if (rows > most || c_.p.keys > most)
      throw error("forward", "the number of rows or keys", attune::detail::text(rows, " rows and ", c_.p.keys, " keys"),
                  "at most 2^30 rows of a group of heads, and keys");
    c_.rows = int(rows);
    c_.row_tiles = (c_.rows + C::rows - 1) / C::rows;
    c_.key_tiles = int((c_.p.keys + C::bn - 1) / C::bn);
  }
  void plan() {
    if constexpr (Op::mask_policy::form != mask_form::interval) {  // of an interval, tiles find their plan themselves
      c_.list_groups = mask::same_for_heads(c_.op.mask) ? 1 : c_.groups;
      index_t const tiles = c_.p.batch * c_.list_groups * c_.row_tiles;
      c_.plans = memory_.template take<tile_plan>(tiles);
      int* const classes = memory_.template take<int>(tiles * c_.key_tiles);
      int* const numbers = memory_.template take<int>(tiles * c_.key_tiles);
      c_.lists = classes;
      run(classify_program<Op, E>{c_, C::rows, C::bn});
      run(list_program<Op, E>{c_, numbers});
      c_.lists = numbers;
    }
  }

  Runner& runner_;
  arena& memory_;
  bool counting_;
  float unit_of_values_ = value_unit;  ///< of the factors of split values
  forward_call<Op, E> c_;
};

/// Features that a tile must hold.
template <class Op>
index_t widest(problem_shape const& p) {
  index_t most = p.value_width;
  for_each_contraction(typename Op::contractions{}, [&](auto contraction, auto, auto place) {
    if constexpr (decltype(place)::value >= 0) {
      index_t const width = p.width_of(decltype(contraction)::x::of);
      most = width > most ? width : most;
    }
  });
  return most;
}

/// The arrays of rows that a call saves.
template <class Rows>
saved_arrays arrays_of(Rows const& rows) {
  return {rows.reference.data(), rows.earned.data(), rows.ground.data(),
          rows.lowest.data(),    rows.acc.data(),    rows.second.data()};
}

/// Runs a call, or counts its memory, with the tiles of the first width that holds its features.
template <class Runner, class Op, class E, int Memory, int... Width>
void run_forward(widths_within<Memory, Width...>, Runner& runner, arena& memory, Op const& op,
                 inputs<Op, tensor<E const>> const& in, outputs<Op, E> const& to, problem_shape const& p,
                 saved_arrays const& saved = {}) {
  static_assert(require_tiles<Op>());
  index_t const most = widest<Op>(p);
  bool done = false;
  auto const one = [&]<int W>() {
    if (done || most > W) return;
    done = true;
    forward_run<Runner, Op, E, config_of<Op, E, W, Memory>>(runner, memory, op, in, to, p, saved)();
  };
  (one.template operator()<Width>(), ...);
  if (!done)
    throw error("forward", "a width", attune::detail::text(most, " features"),
                "at most the widest tiles that the executor has: cuda<E, widths<64, 128, 256>>");
}

}  // namespace attune::exec_cuda
