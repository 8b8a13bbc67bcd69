// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   rows = forward_and_save(cpu{}, op, in, {.out = O});   g = vjp(cpu{}, op, in, rows, {.out = dO})
//
// Tasks = (batch, head, a chunk of queries). A task writes the query sides of its own rows where they belong. The key sides it
// shares with other tasks: the first of these writes where they belong too, the others to memory of their own, which is then
// added in the order of the tasks, so that the result does not depend on who ran when.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <attune/exec/cpu/candidate_gradients.hpp>
#include <attune/exec/cpu/mass_gradients.hpp>
#include <attune/exec/cpu/stream.hpp>
#include <attune/exec/cpu/threads.hpp>
#include <attune/exec/frozen.hpp>

namespace attune {

namespace exec_cpu {

/// A tensor of which all queries read the rows of the same keys: its heads and width. `in_place`: its rows are such that a task
/// can add to the result itself.
struct key_side {
  field of;
  index_t heads, width;
  bool in_place = false;
};
template <class Op>
std::vector<key_side> key_sides(problem_shape const& p) {
  std::vector<key_side> used;
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F) && side_of(F) == input_side::key) used.push_back({F, p.heads_of(F), p.width_of(F)});
  });
  return used;
}

/// What one task leaves for the others.
template <class T>
struct task_results {
  std::unique_ptr<aligned_buffer<T>> keys;
  shared_sums sums;
};

/// The gradients of one call.
template <class T, class Arch, class Op>
class gradient_run {
  using tile = std::conditional_t<Op::has_threshold, candidate_gradients<T, Arch, Op>, mass_gradients<T, Arch, Op>>;
  static constexpr index_t step_of(index_t width) { return panels<T, Arch>::padded_width(width); }

 public:
  gradient_run(cpu<T, Arch> exec, gradient_call<T, Op> const& c, dense_gradients<T>& to)
      : exec_(exec), c_(c), to_(to), sides_(key_sides<Op>(c.p)) {
    for (operator_table const& x : listed_tables(c.op)) tables_.push_back(x.at);
    divide();
    for (key_side& side : sides_) {
      side.in_place =
          side.width == step_of(side.width) && to.of(side.of).extents == shape{c.p.batch, side.heads, c.p.keys, side.width};
      keys_size_ += c.p.keys * step_of(side.width);
    }
    parameters_of_call();
  }

  template <class Runs>
  void operator()(Runs const& runs) {
    problem_shape const& p = c_.p;
    if (p.batch == 0 || p.heads == 0 || p.queries == 0) return;
    index_t const chunk = chunk_, chunks = chunks_;
    std::vector<index_t> tasks;
    for (index_t n = 0; n < p.batch * p.heads * chunks; ++n)
      if (runs(n / chunks % p.heads)) tasks.push_back(n);
    std::vector<task_results<T>> results(std::size_t(std::min(wave, index_t(tasks.size()))));
    for (index_t begin = 0; begin < index_t(tasks.size()); begin += wave) {
      index_t const some = std::min(wave, index_t(tasks.size()) - begin);
      parallel(exec_, some, [&] {
        auto const scratch = std::make_shared<aligned_buffer<T>>(tile::block_scratch(p));
        auto const resident = std::make_shared<aligned_buffer<T>>(tile::tiles_of_task * tile::resident_scratch(p));
        return [&, scratch, resident](index_t n) {
          index_t const task = tasks[std::size_t(begin + n)], head = task / chunks, first = task % chunks * chunk;
          run(results[std::size_t(n)], head / p.heads, head % p.heads, first, std::min(first + chunk, p.queries),
              resident->data(), scratch->data());
        };
      });
      for (index_t n = 0; n < some; ++n) {
        index_t const task = tasks[std::size_t(begin + n)], head = task / chunks;
        add_sums(results[std::size_t(n)].sums, head / p.heads, head % p.heads, task % chunks * chunk);
      }
      add_keys(results, tasks, begin, some, chunks);
    }
    for (std::size_t n = 0; n < total_.parameters.size(); ++n) round_to(total_.parameters[n], to_.parameters[n].values);
    for (std::size_t n = 0; n < total_.tables.size(); ++n) round_to(total_.tables[n], to_.tables[n].values);
    if constexpr (Op::uses(field::v0)) round_to(total_.ground_value, to_.of(field::v0));
  }

 private:
  static constexpr index_t wave = 32;  ///< tasks whose key sides are held at a time

  /// Chunks of queries depend on the shape alone: as many as keep some dozen threads busy, none much shorter than 512 queries.
  void divide() {
    problem_shape const& p = c_.p;
    if (p.batch == 0 || p.heads == 0 || p.queries == 0) return;
    constexpr index_t tiles = tile::tiles_of_task * tile::queries;
    index_t const rows = p.batch * p.heads, wanted = std::min((2 * wave + rows - 1) / rows, (p.queries + 1023) / 1024);
    chunk_ = ((p.queries + wanted - 1) / wanted + tiles - 1) / tiles * tiles;
    chunks_ = (p.queries + chunk_ - 1) / chunk_;
  }
  void parameters_of_call() {
    for (auto const* slot : c_.slots) total_.parameters.emplace_back(slot->extents());
    for (auto const* x : tables_) total_.tables.emplace_back(x->extents());
    if constexpr (Op::uses(field::v0)) total_.ground_value = gradient_array<double>(c_.in.v0.extents());
  }
  /// Sums of one head and `rows` queries: one number for all queries where they share it.
  shared_sums blank_sums(index_t rows) const {
    auto const own = [&](shape const& e, index_t positions) {
      return gradient_array<double>(shape{1, 1, e.position == 1 ? 1 : positions, e.feature});
    };
    shared_sums s;
    for (auto const* slot : c_.slots) s.parameters.push_back(own(slot->extents(), rows));
    for (auto const* x : tables_) s.tables.push_back(own(x->extents(), x->rows()));
    if constexpr (Op::uses(field::v0)) s.ground_value = own(c_.in.v0.extents(), rows);
    return s;
  }

  /// Whether the task of head h that begins with this query (or chunk) is the first to touch its rows of a key side.
  bool writes_in_place(key_side const& side, index_t h, index_t first) const {
    return side.in_place && first == 0 && h * side.heads % c_.p.heads == 0;
  }

  void run(task_results<T>& result, index_t b, index_t h, index_t first, index_t last, T* resident, T* scratch) {
    problem_shape const& p = c_.p;
    result.sums = blank_sums(last - first);
    gradient_sinks<T> sinks{&to_, {}, &result.sums, &tables_, {}};
    index_t own = 0;
    for (key_side const& side : sides_) {
      index_t const step = step_of(side.width), size = p.keys * step;
      T* rows;
      if (writes_in_place(side, h, first)) {
        rows = to_.of(side.of).values.data() + (b * side.heads + p.group(h, side.heads)) * size;
      } else {
        if (!result.keys) result.keys = std::make_unique<aligned_buffer<T>>(keys_size_);
        rows = result.keys->data() + own;
        std::fill_n(rows, size, T(0));
      }
      sinks.keys[std::size_t(side.of)] = {rows, step};
      own += size;
    }
    sinks.distances.assign(std::size_t(tile::pairs * (p.queries + p.keys)), 0.0);
    std::vector<tile> tiles;
    for (index_t begin = first; begin < last; begin += tile::tiles_of_task * tile::queries) {
      tiles.clear();
      tiles.reserve(std::size_t(tile::tiles_of_task));
      key_interval hull{p.keys, 0};
      for (index_t t = 0; t < tile::tiles_of_task && begin + t * tile::queries < last; ++t) {
        auto const& made =
            tiles.emplace_back(c_, b, h, begin + t * tile::queries, resident + t * tile::resident_scratch(p), scratch);
        hull = {std::min(hull.first, made.sees.hull.first), std::max(hull.last, made.sees.hull.last)};
      }
      T* const gated = tile::gated_values(scratch, p);
      for (index_t j = hull.first; j < hull.last; j += tile::block) {
        index_t const end = std::min(j + tile::block, hull.last);
        tile::gate_values(c_.op, c_.in, p, b, h, j, end - j, gated);
        for (tile& t : tiles) t.absorb(j, end, scratch, gated, sinks);
      }
      for (tile& t : tiles) t.finish(first, scratch, sinks);
    }
    if constexpr (Op::has_value_gate) value_gate(b, h, sinks);
    finish_distances(b, h, sinks);
  }

  /// What grew as the gradient of gated values becomes that of values and gates.
  void value_gate(index_t b, index_t h, gradient_sinks<T>& to) const {
    using slots = slots_of<Op>;
    using D = dual<T, 1 + slots::value_gate>;
    constexpr int first_slot = slots::logit + slots::normalizer;
    problem_shape const& p = c_.p;
    row<T> const r = attune::detail::any_query_row<T>(p, b, h);
    auto const gate = c_.op.value_gate.bind(moving_row<D>(r, c_.slots.data() + first_slot, slots::value_gate, 1));
    index_t const head = p.group(h, p.value_heads);
    for (index_t j = 0; j < p.keys; ++j) {
      T* const by_value = to.rows(field::v).at(j);
      T* const by_gate = to.rows(field::value_gate).at(j);
      for (index_t d = 0; d < p.value_width; ++d) {
        T const grown = by_value[d];
        if (grown == T(0)) continue;
        D const f = gate.factor(D::variable(c_.in.value_gate(b, head, j, d), 0));
        T const gain = grown * c_.in.v(b, head, j, d);
        by_value[d] = grown * f.value;
        by_gate[d] = gain * f.tangent[0];
        for (int s = 0; s < slots::value_gate; ++s)
          to.sums->parameters[std::size_t(first_slot + s)](0, 0, 0, 0) +=
              double(attune::detail::chained(gain, f.tangent[1 + s]));
      }
    }
  }

  void finish_distances([[maybe_unused]] index_t b, [[maybe_unused]] index_t h, [[maybe_unused]] gradient_sinks<T>& to) const {
    [&]<class... C, int... I>(contraction::list<C...>, std::integer_sequence<int, I...>) {
      [[maybe_unused]] auto const one = [&](auto contraction, auto const& owner, int n) {
        if constexpr (sums_distances<decltype(contraction)>)
          puller<decltype(contraction), T, Arch>::finish(to.distances.data() + n * (c_.p.queries + c_.p.keys), c_.p, owner, b,
                                                         h, to);
      };
      (..., one(C{}, c_.op.template owner<I>(), I));
    }(typename Op::contractions{}, std::make_integer_sequence<int, tile::pairs>{});
  }

  void add_sums(shared_sums const& s, index_t b, index_t h, index_t first) {
    auto const add = [&](gradient_array<double> const& from, gradient_array<double>& to, bool by_query) {
      for (index_t i = 0; i < from.extents.position; ++i)
        for (index_t d = 0; d < from.extents.feature; ++d)
          to(b, h, by_query && from.extents.position > 1 ? first + i : i, d) += from(0, 0, i, d);
    };
    for (std::size_t n = 0; n < s.parameters.size(); ++n) add(s.parameters[n], total_.parameters[n], true);
    for (std::size_t n = 0; n < s.tables.size(); ++n) add(s.tables[n], total_.tables[n], false);
    if constexpr (Op::uses(field::v0)) add(s.ground_value, total_.ground_value, true);
  }
  /// Adds the key sides of some tasks in their order; threads share the keys.
  void add_keys(std::vector<task_results<T>> const& results, std::vector<index_t> const& tasks, index_t begin, index_t some,
                index_t chunks) {
    problem_shape const& p = c_.p;
    constexpr index_t keys_of_task = 256;
    parallel(exec_, (p.keys + keys_of_task - 1) / keys_of_task, [&] {
      return [&](index_t part) {
        index_t const first = part * keys_of_task, last = std::min(first + keys_of_task, p.keys);
        for (index_t n = 0; n < some; ++n) {
          index_t const task = tasks[std::size_t(begin + n)], head = task / chunks, b = head / p.heads, h = head % p.heads;
          index_t own = 0;
          for (key_side const& side : sides_) {
            index_t const step = step_of(side.width);
            if (!writes_in_place(side, h, task % chunks)) {
              T const* const from = results[std::size_t(n)].keys->data() + own;
              T* const to = &to_.of(side.of)(b, p.group(h, side.heads), first, 0);
              for (index_t j = first; j < last; ++j)
                for (index_t d = 0; d < side.width; ++d) to[(j - first) * side.width + d] += from[j * step + d];
            }
            own += p.keys * step;
          }
        }
      };
    });
  }
  static void round_to(gradient_array<double> const& from, gradient_array<T>& to) {
    for (std::size_t n = 0; n < from.values.size(); ++n) to.values[n] = T(from.values[n]);
  }

  cpu<T, Arch> exec_;
  gradient_call<T, Op> const& c_;
  dense_gradients<T>& to_;
  std::vector<key_side> sides_;
  std::vector<table const*> tables_;
  index_t keys_size_ = 0, chunk_ = 1, chunks_ = 0;
  shared_sums total_;
};

/// What a tile of rows leaves for the backward pass, once it has seen all keys. `finished`: its outputs are written.
template <class Op, class Tile, class Saved>
void save_rows(Tile& tile, Saved& to, [[maybe_unused]] bool finished) {
  if constexpr (Op::has_threshold) {
    if (!finished) tile.settle();
    tile.thresholds(to);
  } else {
    tile.states(to);
  }
}

/// The gradients of the heads that run.
template <class T, class Arch, class Op, class Runs>
dense_gradients<T> fused_vjp(cpu<T, Arch> exec, Op const& op, inputs<Op, tensor<T const>> const& in, problem_shape const& p,
                             saved_rows<T, Op> const& saved, cotangents<Op, tensor<T const>> const& d, Runs const& runs,
                             dense_gradients<T> memory = {}) {
  attune::detail::check_cotangents("vjp", d, p);
  shape const rows{p.batch, p.heads, p.queries, p.value_width};
  if (!(attune::detail::rows_of(saved) == rows))
    throw error("vjp", "saved", "rows of shape " + to_string(attune::detail::rows_of(saved)),
                to_string(rows) + ", those of the inputs");
  dense_gradients<T> to = attune::detail::blank_gradients<T>(op, in, std::move(memory));
  attune::detail::frozen<Op> const fixed(op);
  gradient_call<T, Op> const call{fixed.op, in, p, saved, d, attune::detail::parameter_slots(fixed.op)};
  gradient_run<T, Arch, Op>(exec, call, to)(runs);
  auto const slots = attune::detail::parameter_slots(op);
  for (std::size_t n = 0; n < slots.size(); ++n) attune::detail::pull_projection(*slots[n], to.parameters[n]);
  return to;
}
/// The same with a forward pass of their own.
template <class T, class Arch, class Op, class Runs>
dense_gradients<T> fused_vjp(cpu<T, Arch> exec, Op const& op, inputs<Op, tensor<T const>> const& in, problem_shape const& p,
                             cotangents<Op, tensor<T const>> const& d, Runs const& runs) {
  saved_rows<T, Op> saved(op, p);
  stream(exec, op, in, p, {0, p.keys}, runs, [&](auto& tile, T*) { save_rows<Op>(tile, saved, false); });
  return fused_vjp(exec, op, in, p, saved, d, runs);
}

}  // namespace exec_cpu

/// forward, which also returns what vjp() starts from.
template <class T, class Arch, class Op>
saved_rows<T, Op> forward_and_save(cpu<T, Arch> exec, Op const& op, inputs<Op, tensor<T const>> const& in,
                                   outputs<Op, T> const& out) {
  problem_shape const p = detail::checked_problem("forward_and_save", op, in, out.out.extents());
  detail::check_outputs("forward_and_save", out, p);
  saved_rows<T, Op> all(op, p);
  exec_cpu::stream(
      exec, op, in, p, {0, p.keys}, [](index_t) { return true; },
      [&](auto& tile, T* scratch) {
        tile.finish(in, out, scratch);
        exec_cpu::save_rows<Op>(tile, all, true);
      });
  return all;
}

/// Gradients of sum <d.out, out> + <d.lse, lse> + <d.ground_weight, w0> by every input, parameter and table, fused: nothing of
/// size Lq x Lk exists. `saved` is what forward_and_save returned for the same operator and inputs.
/// Conventions at kinks and ties, and degenerate rows: docs/contracts.md.
/// Errors:      attune::error names argument, value and expectation.
/// Complexity:  5/2 of the forward's products; memory that of the gradients, and the key sides of at most 32 tasks.
/// Determinism: bitwise the same for any number of threads.
/// In a loop, g = vjp(..., std::move(g)) uses the memory of the last call again.
template <class T, class Arch, class Op>
dense_gradients<T> vjp(cpu<T, Arch> exec, Op const& op, inputs<Op, tensor<T const>> const& in, saved_rows<T, Op> const& saved,
                       cotangents<Op, tensor<T const>> const& d, dense_gradients<T> memory = {}) {
  problem_shape const p = detail::checked_problem("vjp", op, in, detail::output_shape(in));
  return exec_cpu::fused_vjp(
      exec, op, in, p, saved, d, [](index_t) { return true; }, std::move(memory));
}

/// The same with a forward pass of its own.
template <class T, class Arch, class Op>
dense_gradients<T> vjp(cpu<T, Arch> exec, Op const& op, inputs<Op, tensor<T const>> const& in,
                       cotangents<Op, tensor<T const>> const& d) {
  problem_shape const p = detail::checked_problem("vjp", op, in, detail::output_shape(in));
  return exec_cpu::fused_vjp(exec, op, in, p, d, [](index_t) { return true; });
}

}  // namespace attune
