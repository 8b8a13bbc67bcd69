// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Calls that differ between ranks, and policies that throw on one: every rank throws the same error.
#include <stdexcept>
#include <string>

#include "error_on_all.hpp"
#include "problem.hpp"

using namespace attune;
using namespace attune::test;

namespace {

constexpr index_t length = 60;

/// A softmax that throws for a key on the rank that sets it.
struct throwing {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.divided_by = divisor::one, .reference = mass_reference::none};
  index_t throws = 0;
  static constexpr auto parameters() { return std::tuple<>{}; }
  template <class T>
  struct bound {
    T earned(T const& logit, T const&) const { return math::sigmoid(logit); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    if constexpr (!std::is_same_v<T, double>)  // not where ranks compare their operators
      if (throws != 0 && r.place.query >= 0) throw std::runtime_error("a policy of a user");
    return {};
  }
};

/// Tensors of this rank, which a case may spoil on one rank.
struct call {
  mpi::communicator ranks{MPI_COMM_WORLD};
  sharding parts = sharding::contiguous(length, ranks.size());
  index_t n = parts.size(ranks.rank());
  array q = random_array({2, 4, n, 8}, 1), k = random_array({2, 2, n, 8}, 2), v = random_array({2, 2, n, 8}, 3),
        out{shape{2, 4, n, 8}};
  bool spoils() const { return ranks.rank() == ranks.size() - 1; }
  std::string named() const { return "on rank " + std::to_string(ranks.size() - 1); }

  template <class Op>
  std::string error_of(Op const& op, shards where = {}, std::optional<index_t> offset = std::nullopt) {
    return error_on_all([&] {
      forward(on_ranks(ranks, cpu{1}, where), op, {.q = q.view(), .k = k.view(), .v = v.view(), .offset = offset},
              {.out = out.view()});
    });
  }
};

auto softmax_of(double scale) {
  return attention(kernel::dot_product{.scale = scale}, normalizer::softmax{}, mask::causal{});
}
bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("mpi refusals: the same call does not throw") { CHECK(call().error_of(softmax_of(0.5)).empty()); }

TEST_CASE("mpi refusals: operators, masks, offsets and plans that differ") {
  call c;
  if (c.ranks.size() == 1) return;
  auto const check = [&](std::string const& text, std::string const& argument, std::string const& rank) {
    CAPTURE(text);
    CHECK(has(text, argument));
    CHECK(has(text, rank));
  };
  check(c.error_of(softmax_of(c.spoils() ? 0.4 : 0.5)), "parameter kernel.scale", c.named());
  check(c.error_of(attention(kernel::dot_product{}, mask::causal_window{c.spoils() ? 20 : 21})), "the mask", c.named());
  check(c.error_of(attention(kernel::dot_product{}, gate::dropout{.rate = 0.3, .seed = c.spoils() ? 1u : 2u})),
        "the operator", c.named());
  check(c.error_of(attention(kernel::dot_product{}, gate::dropout{.rate = c.spoils() ? 0.2 : 0.3, .seed = 1})),
        "the operator", c.named());
  check(c.error_of(attention(kernel::dot_product{}, normalizer::top_k{c.spoils() ? 3 : 4})), "the operator", c.named());
  check(c.error_of(softmax_of(0.5), {}, c.spoils() ? 1 : 0), "offset", c.named());
  check(c.error_of(softmax_of(0.5), {.plan = c.spoils() ? rank_plan::ring : rank_plan::states}), "the plan", c.named());
  std::string const text = c.spoils() ? error_on_all([&] {
    forward(on_ranks(c.ranks, cpu{1}), attention(kernel::dot_product{}, normalizer::off_by_one{}),
            {.q = c.q.view(), .k = c.k.view(), .v = c.v.view()}, {.out = c.out.view()});
  })
                                      : c.error_of(attention(kernel::dot_product{}, normalizer::softmax{}));
  check(text, "the operator", c.named());
}
TEST_CASE("mpi refusals: extents and shardings that differ") {
  call c;
  if (c.ranks.size() == 1) return;
  int const ranks = c.ranks.size();
  auto const spoiled = [&](auto change) {
    call other;
    if (other.spoils()) change(other);
    return other.error_of(softmax_of(0.5));
  };
  auto const check = [&](std::string const& text, std::string const& argument) {
    CAPTURE(text);
    CHECK(has(text, argument));
    CHECK(has(text, "rank " + std::to_string(ranks - 1)));
  };
  check(spoiled([](call& x) { x.k = random_array({2, 4, x.n, 8}, 2); }), "k");
  check(spoiled([](call& x) { x.k = random_array({2, 2, x.n, 9}, 2), x.q = random_array({2, 4, x.n, 9}, 2); }), "q");
  check(spoiled([](call& x) { x.v = random_array({2, 2, x.n, 7}, 2), x.out = array({2, 4, x.n, 7}); }), "v");
  check(spoiled([](call& x) { x.k = random_array({2, 2, x.n + 1, 8}, 2); }), "k");
  check(spoiled([](call& x) { x.q = random_array({2, 4, x.n + 1, 8}, 2); }), "q");
  check(spoiled([](call& x) { x.v = random_array({1, 2, x.n, 8}, 2); }), "v");
  auto const even = sharding::contiguous(length, ranks);
  check(c.error_of(softmax_of(0.5), {.queries = c.spoils() ? sharding::zigzag(length, ranks) : even}), "sharding");
  check(c.error_of(softmax_of(0.5), {.keys = c.spoils() ? sharding::contiguous(length + 1, ranks) : even}), "sharding");
  check(c.error_of(softmax_of(0.5), {.keys = c.spoils() ? sharding::contiguous(length, ranks + 1) : even}), "sharding");
}
TEST_CASE("mpi refusals: outputs, cotangents and saved rows that do not fit") {
  call c;
  auto const op = softmax_of(0.5);
  auto const exec = on_ranks(c.ranks, cpu{1});
  auto const named = "rank " + std::to_string(c.ranks.size() - 1);
  array lse({2, 4, c.n + (c.spoils() ? 1 : 0), 1});
  std::string text = error_on_all([&] {
    forward(exec, op, {.q = c.q.view(), .k = c.k.view(), .v = c.v.view()},
            {.out = c.out.view(), .lse = natural_lse(lse.view())});
  });
  CAPTURE(text);
  CHECK(has(text, named));
  CHECK(has(text, "lse"));
  auto saved = forward_and_save(exec, op, {.q = c.q.view(), .k = c.k.view(), .v = c.v.view()}, {.out = c.out.view()});
  if (c.spoils()) saved.windows.clear();
  text = error_on_all(
      [&] { vjp(exec, op, {.q = c.q.view(), .k = c.k.view(), .v = c.v.view()}, saved, {.out = c.out.view()}); });
  CHECK(has(text, named));
  CHECK(has(text, "saved"));
}
TEST_CASE("mpi refusals: a policy that throws on one rank, in both plans, forward and backward") {
  call c;
  throwing const normalizer{c.spoils() ? 1 : 0};
  auto const op = attention(kernel::dot_product{}, normalizer);
  for (rank_plan const plan : {rank_plan::ring, rank_plan::states}) {
    std::string const text = c.error_of(op, {.plan = plan});
    CAPTURE(text);
    CHECK(has(text, "a policy of a user"));
    CHECK(has(text, "rank " + std::to_string(c.ranks.size() - 1)));
  }
  std::string const text = error_on_all([&] {
    vjp(on_ranks(c.ranks, cpu{1}), op, {.q = c.q.view(), .k = c.k.view(), .v = c.v.view()}, {.out = c.out.view()});
  });
  CHECK(has(text, "a policy of a user"));
  CHECK(c.error_of(softmax_of(0.5)).empty());  // the communicator is still usable
}
TEST_CASE("mpi refusals: messages of at most 1,000 bytes") {
  call c;
  mpi::communicator const cut(MPI_COMM_WORLD, 1000);
  auto const op = softmax_of(0.5);
  array whole(c.out.extents), parts(c.out.extents);
  forward(on_ranks(c.ranks, cpu{1}), op, {.q = c.q.view(), .k = c.k.view(), .v = c.v.view()}, {.out = whole.view()});
  forward(on_ranks(cut, cpu{1}), op, {.q = c.q.view(), .k = c.k.view(), .v = c.v.view()}, {.out = parts.view()});
  CHECK(same_bits(whole, parts));
}
TEST_CASE("mpi refusals: a plan that does not run the operator") {
  call c;
  std::string const text =
      c.error_of(attention(kernel::dot_product{}, normalizer::sparsemax{}), {.plan = rank_plan::states});
  CAPTURE(text);
  CHECK(has(text, "rank_plan::states"));
}

namespace {
/// Threads that fail when they are asked for the n-th time.
struct failing_threads {
  int fails_at = 0, asked = 0;
  int concurrency() { return 2; }
  void run(int workers, worker_body body) {
    if (++asked == fails_at) throw std::runtime_error("a thread of a user");
    for (int w = 0; w < workers; ++w) body(w);
  }
};
}  // namespace

TEST_CASE("mpi refusals: threads of a user that fail on one rank, wherever it is in the backward pass") {
  call c;
  auto const check = [&](auto const& op) {
    auto const in = [&] {
      return inputs<std::remove_cvref_t<decltype(op)>, tensor<float const>>{
          .q = c.q.view(), .k = c.k.view(), .v = c.v.view()};
    };
    array out{shape{2, Fold<std::remove_cvref_t<decltype(op)>> ? 2 : 4, c.n, 8}};
    auto const saved = forward_and_save(on_ranks(c.ranks, cpu{1}), op, in(), {.out = out.view()});
    int failures = 0;
    for (int n = 1; n < 100; ++n) {
      failing_threads threads{c.spoils() ? n : 0};
      std::string const text =
          error_on_all([&] { vjp(on_ranks(c.ranks, cpu<>{threads}), op, in(), saved, {.out = out.view()}); });
      if (text.empty()) break;
      CHECK_MESSAGE(has(text, "a thread of a user"), text);
      ++failures;
    }
    CHECK(failures > 0);
    CHECK(failures < 99);
  };
  check(attention(kernel::dot_product{}, normalizer::softmax{}));
  check(fold(attention(kernel::dot_product{}, normalizer::softmax{}), {1.0, parameter(-0.5)}));
}
