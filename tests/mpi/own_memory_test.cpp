// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// vjp() over ranks into the caller's memory: the bits of the dense gradients, whatever the strides; what is not
// requested stays out; requests that differ or do not fit are refused on all ranks.
#include <map>

#include "error_on_all.hpp"
#include "problem.hpp"

using namespace attune;
using namespace attune::test;

namespace {

constexpr index_t length = 45;

/// Memory with gaps for one gradient: a position takes three numbers more than its features.
struct gapped {
  std::vector<float> numbers;
  tensor<float> view;
  explicit gapped(shape const& e) : numbers(std::size_t(e.batch * e.head * e.position * (e.feature + 3) + 1), 7.f) {
    index_t const width = e.feature + 3;
    view = {numbers.data(), e, {e.head * e.position * width, e.position * width, width, 1}};
  }
  bool has(gradient_array<float> const& g) const {
    shape const e = view.extents();
    if (!(e == g.extents)) return false;
    for (index_t b = 0; b < e.batch; ++b)
      for (index_t h = 0; h < e.head; ++h)
        for (index_t i = 0; i < e.position; ++i) {
          if (std::memcmp(view.row(b, h, i), g.values.data() + g.at(b, h, i, 0),
                          sizeof(float) * std::size_t(e.feature)))
            return false;
          for (index_t d = 0; d < 3; ++d)
            if (view.row(b, h, i)[e.feature + d] != 7.f) return false;  // the gap
        }
    return true;
  }
};

/// Gapped memory for the gradients that `chosen` names, and a request of them.
template <class Op>
struct request {
  std::map<std::string, gapped> memory;
  gradient_outputs<Op, float> to;

  template <class Chosen>
  request(dense_gradients<float> const& like, Chosen const& chosen) {
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F))
        if (chosen(name_of(F))) to.of(F) = add(name_of(F), like.of(F).extents);
    });
    for (std::size_t n = 0; n < like.parameters.size(); ++n)
      if (chosen(like.parameters[n].path))
        to.parameters[n] = add(like.parameters[n].path, like.parameters[n].values.extents);
    for (std::size_t n = 0; n < like.tables.size(); ++n)
      if (chosen(like.tables[n].path)) to.tables[n] = add(like.tables[n].path, like.tables[n].values.extents);
  }
  /// Compares what was requested with the dense gradients; returns how many were.
  std::size_t check(dense_gradients<float> const& g) const {
    for (auto const& requested : memory) {
      auto const& [name, m] = requested;
      CAPTURE(requested.first);
      gradient_array<float> const* found = nullptr;
      for (std::size_t f = 0; f < field_count; ++f)
        if (name == name_of(field(f))) found = &g.fields[f];
      for (auto const& x : g.parameters)
        if (name == x.path) found = &x.values;
      for (auto const& x : g.tables)
        if (name == x.path) found = &x.values;
      REQUIRE(found != nullptr);
      CHECK(m.has(*found));
    }
    return memory.size();
  }

 private:
  tensor<float> add(std::string const& name, shape const& e) { return memory.emplace(name, e).first->second.view; }
};

auto const everything = [](std::string const&) { return true; };

/// One call of `op` on this rank, for shards of the keys.
template <class Op>
struct call {
  mpi::communicator ranks{MPI_COMM_WORLD};
  shards where;
  whole_problem<Op> whole{sizes{length, length + 10}, 3};
  std::array<array, field_count> fields;
  array by_out;
  across_ranks<cpu<float>> exec;

  explicit call(sharding const& keys)
      : where{.queries = sharding::zigzag(length, ranks.size()), .keys = keys},
        fields(whole.part(*where.queries, keys, ranks.rank())),
        by_out(part_of(random_array({2, Fold<Op> ? 2 : 4, length, 13}, 9), *where.queries, ranks.rank())),
        exec(on_ranks(ranks, cpu{1}, where)) {}
  auto in() const { return whole_problem<Op>::views(fields); }
  cotangents<Op, tensor<float const>> d() const { return {.out = by_out.view()}; }
};

template <class Op>
void compare_memories(Op const& op) {
  mpi::communicator const ranks(MPI_COMM_WORLD);
  for (sharding const& keys : several_shardings(length + 10, ranks.size())) {
    call<Op> const c(keys);
    CAPTURE(to_string(keys, ranks.rank()));
    auto const g = vjp(c.exec, op, c.in(), c.d());
    request<Op> all(g, everything);
    vjp(c.exec, op, c.in(), c.d(), all.to);
    CHECK(all.check(g) >= 4);
    array out(c.by_out.extents);
    auto const saved = forward_and_save(c.exec, op, c.in(), {.out = out.view()});
    // Neither keys nor values: only rows, parameters and tables.
    request<Op> some(g, [](std::string const& name) { return name != "k" && name != "v" && name != "value_gate"; });
    vjp(c.exec, op, c.in(), saved, c.d(), some.to);
    CHECK(some.check(g) >= 1);
    request<Op> values(g, [](std::string const& name) { return name == "v"; });
    vjp(c.exec, op, c.in(), saved, c.d(), values.to);
    CHECK(values.check(g) == 1);
  }
}

auto gated() {
  return attention(kernel::dot_product{0.3} + kernel::key_bias{} + kernel::alibi{0.05}, gate::sigmoid_value{},
                   normalizer::sink{0.2}, mask::causal{});
}

}  // namespace

TEST_CASE("mpi vjp: the caller's memory, a gate on values") { compare_memories(gated()); }
TEST_CASE("mpi vjp: the caller's memory, an input for each pair, a row that all queries share") {
  compare_memories(attention(kernel::dot_product{0.3} + kernel::bias{}, normalizer::valued_off_by_one{}, mask::none{}));
}
TEST_CASE("mpi vjp: the caller's memory, candidates") {
  compare_memories(attention(kernel::dot_product{0.3}, normalizer::top_k{5}, mask::causal_window{20}));
}
TEST_CASE("mpi vjp: the caller's memory, a fold") {
  compare_memories(fold(attention(kernel::dot_product{0.3}, normalizer::softmax{}, mask::causal{}), {1.0, -0.4}));
}
TEST_CASE("mpi vjp: requests that differ or do not fit are refused on all ranks") {
  using op_type = decltype(gated());
  mpi::communicator const ranks(MPI_COMM_WORLD);
  call<op_type> const c(sharding::contiguous(length + 10, ranks.size()));
  auto const g = vjp(c.exec, gated(), c.in(), c.d());
  request<op_type> all(g, everything);
  bool const last = ranks.rank() == ranks.size() - 1;
  if (ranks.size() > 1) {
    auto differs = all.to;
    if (last) differs.of(field::k) = {};
    std::string const words = error_on_all([&] { vjp(c.exec, gated(), c.in(), c.d(), differs); });
    CHECK(words.find("the gradient by k on rank " + std::to_string(ranks.size() - 1)) != std::string::npos);
  }
  auto wrong = all.to;
  if (last) wrong.of(field::v) = all.to.of(field::k);
  std::string const words = error_on_all([&] { vjp(c.exec, gated(), c.in(), c.d(), wrong); });
  CHECK(words.find("the gradient by v") != std::string::npos);
}
