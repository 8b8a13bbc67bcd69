// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Mismatches between ranks and exceptions on one of them: every rank gets the same error, with the promised words, within
// seconds.
#include <chrono>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <attune/attune.hpp>
#include <attune/exec/mpi/agree.hpp>

#include "error_on_all.hpp"

namespace attune::test {
namespace {

/// MPI_COMM_WORLD, and whether this rank is the one that differs: the last.
struct world {
  mpi::communicator ranks{MPI_COMM_WORLD};
  bool odd = ranks.rank() == ranks.size() - 1;
  std::string name = std::to_string(ranks.size() - 1);
};

/// What all ranks throw if they call agree(facts of the last rank, facts of the others). Empty with one rank.
std::string disagreement(std::function<void(mpi::call_facts&)> const& of_last,
                         std::function<void(mpi::call_facts&)> const& of_others) {
  world const w;
  mpi::call_facts facts("forward");
  (w.odd ? of_last : of_others)(facts);
  auto const start = std::chrono::steady_clock::now();
  std::string const words = error_on_all([&] { mpi::agree(w.ranks, facts); });
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
  CHECK(error_on_all([&] { mpi::agree(w.ranks, mpi::call_facts("forward")); }) ==
        "");  // the next call is not disturbed
  return words;
}
void check_disagreement(std::string const& expected, std::function<void(mpi::call_facts&)> const& of_last,
                        std::function<void(mpi::call_facts&)> const& of_others) {
  world const w;
  std::string const words = disagreement(of_last, of_others);
  if (w.ranks.size() == 1) {
    CHECK(words == "");
    return;
  }
  std::string wanted = "attune::forward: " + expected;
  if (auto const at = wanted.find("RANK"); at != std::string::npos) wanted.replace(at, 4, "rank " + w.name);
  CHECK(words == wanted);
}

/// One kind of fact, with the value of the last rank and that of the others.
template <class... A>
auto fact(A... arguments) {
  return [=](mpi::call_facts& f) { f.add(arguments...); };
}
template <class Op>
auto of_operator(Op const& op) {
  return [op](mpi::call_facts& f) { f.add_operator(op); };
}

TEST_CASE("agree: equal facts do not throw") {
  auto const op = attention(kernel::dot_product{.scale = 0.5}, normalizer::entmax{1.5}, mask::causal{});
  CHECK(disagreement(of_operator(op), of_operator(op)) == "");
}

TEST_CASE("agree: another function") {
  world const w;
  std::string const words = error_on_all([&] { mpi::agree(w.ranks, mpi::call_facts(w.odd ? "vjp" : "forward")); });
  if (w.ranks.size() > 1)
    CHECK(words ==
          "attune::forward: the call on rank " + w.name + " has name vjp; expected name forward, as on rank 0");
}

TEST_CASE("agree: extents, offsets, plans, types and optional arguments") {
  check_disagreement("q on RANK has shape (3, 4, 5, 8); expected shape (2, 4, 5, 8), as on rank 0",
                     fact("q", shape{3, 4, 5, 8}), fact("q", shape{2, 4, 5, 8}));
  check_disagreement("k on RANK has feature extent 16; expected feature extent 8, as on rank 0",
                     fact("k", "feature extent", 16), fact("k", "feature extent", 8));
  check_disagreement("offset on RANK has the value -1; expected the value 0, as on rank 0",
                     fact("offset", "the value", -1), fact("offset", "the value", 0));
  check_disagreement("plan on RANK has the value states; expected the value ring, as on rank 0",
                     fact("plan", "the value", "states"), fact("plan", "the value", "ring"));
  check_disagreement(
      "the executor on RANK has the type double; expected the type float, as on rank 0",
      [](mpi::call_facts& f) { f.add_type<double>("the executor"); },
      [](mpi::call_facts& f) { f.add_type<float>("the executor"); });
  check_disagreement(
      "lse on RANK has no value; expected a value, as on rank 0",
      [](mpi::call_facts& f) { f.add_presence("lse", false); },
      [](mpi::call_facts& f) { f.add_presence("lse", true); });
  check_disagreement("v0 on RANK has a shape (1, 1, 1, 4); expected no such argument, as on rank 0",
                     fact("v0", "a shape", "(1, 1, 1, 4)"), [](mpi::call_facts&) {});
  check_disagreement(
      "v0 on RANK has no such argument; expected shape (1, 1, 1, 4), as on rank 0", [](mpi::call_facts&) {},
      fact("v0", shape{1, 1, 1, 4}));
}

TEST_CASE("agree: real numbers are compared with all their digits") {
  check_disagreement(
      "scale on RANK has the value 0.30000000000000004; expected the value 0.29999999999999999, as on rank 0",
      fact("scale", "the value", 0.1 + 0.2), fact("scale", "the value", 0.3));
}

TEST_CASE("agree: shardings") {
  auto const of = [](sharding const& s) { return [s](mpi::call_facts& f) { f.add("the sharding of the keys", s); }; };
  check_disagreement(
      "the sharding of the keys on RANK has for rank 0 the positions [0, 2) [6, 8); expected for rank 0 the positions "
      "[0, "
      "4), as on rank 0",
      of(sharding::zigzag(8, 2)), of(sharding::contiguous(8, 2)));
  check_disagreement(
      "the sharding of the keys on RANK has a number of positions, 9; expected a number of positions, 8, as on rank 0",
      of(sharding::contiguous(9, 2)), of(sharding::contiguous(8, 2)));
  check_disagreement(
      "the sharding of the keys on RANK has a number of ranks, 3; expected a number of ranks, 2, as on rank 0",
      of(sharding::contiguous(8, 3)), of(sharding::contiguous(8, 2)));
}

TEST_CASE("agree: operators, their parameters and their tables") {
  auto const dot = [](parameter scale) {
    return of_operator(attention(kernel::dot_product{.scale = scale}, normalizer::softmax{}, mask::causal{}));
  };
  world const w;
  std::string const types =
      disagreement(of_operator(attention(kernel::dot_product{}, normalizer::sparsemax{}, mask::causal{})), dot({}));
  if (w.ranks.size() > 1) {
    CHECK(types.starts_with("attune::forward: the operator on rank " + w.name + " has the type "));
    auto const sparsemax = types.find("attune::normalizer::sparsemax"), expected = types.find("; expected the type "),
               softmax = types.find("attune::normalizer::softmax");
    CHECK(sparsemax < expected);
    CHECK(expected < softmax);
    CHECK(softmax != std::string::npos);
  }
  check_disagreement("parameter kernel.scale on RANK has the value 0.5; expected the value 0.25, as on rank 0",
                     dot(0.5), dot(0.25));
  check_disagreement(
      "parameter kernel.scale on RANK has the value of its default; expected the value 0.5, as on rank 0", dot({}),
      dot(0.5));
}

TEST_CASE("agree: parameters per head and tables are compared number by number") {
  static std::vector<float> const three{1, 2, 3}, others{1, 2, 4};
  auto const per_head = [](std::vector<float> const& x, index_t heads) {
    parameter const scale(tensor<float const>(x.data(), {1, heads, 1, 1}));
    return of_operator(attention(kernel::dot_product{.scale = scale}, normalizer::softmax{}, mask::causal{}));
  };
  auto const metric = [](std::vector<float> const& x) {
    return of_operator(attention(kernel::elliptical{table(tensor<float const>(x.data(), {1, 1, 1, 3}))},
                                 normalizer::softmax{}, mask::causal{}));
  };
  check_disagreement("parameter kernel.scale on RANK has shape (1, 2, 1, 1); expected shape (1, 3, 1, 1), as on rank 0",
                     per_head(three, 2), per_head(three, 3));
  CHECK(disagreement(per_head(three, 3), per_head(std::vector<float>(three), 3)) == "");  // other memory, same numbers
  world const w;
  if (w.ranks.size() == 1) return;
  CHECK(disagreement(per_head(others, 3), per_head(three, 3))
            .starts_with("attune::forward: parameter kernel.scale on rank " + w.name + " has numbers with the hash "));
  CHECK(disagreement(metric(others), metric(three))
            .starts_with("attune::forward: table kernel.metric on rank " + w.name + " has numbers with the hash "));
}

TEST_CASE("agree: a middle rank that differs is named, and of several the lowest") {
  world const w;
  if (w.ranks.size() < 3) return;
  mpi::call_facts facts("forward");
  facts.add("k", "feature extent", w.ranks.rank() == 0 ? 8 : 8 + w.ranks.rank());
  CHECK(error_on_all([&] { mpi::agree(w.ranks, facts); }) ==
        "attune::forward: k on rank 1 has feature extent 9; expected feature extent 8, as on rank 0");
}

/// Keys [0, last).
struct first_keys {
  [[maybe_unused]] static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::interval;
  index_t last;
  constexpr key_interval keys(mask_row const&) const { return {0, last}; }
};

TEST_CASE("agree: masks of the same type that differ in the keys that rows see") {
  problem_shape p;
  p.batch = p.heads = 1;
  p.queries = p.keys = 100000;
  auto const of = [p](index_t radius) { return [=](mpi::call_facts& f) { f.add_mask(mask::window{radius}, p); }; };
  auto const before = [p](index_t last) { return [=](mpi::call_facts& f) { f.add_mask(first_keys{last}, p); }; };
  world const w;
  CHECK(disagreement(before(40), before(40)) == "");
  CHECK(disagreement(before(41), before(40)).empty() == (w.ranks.size() == 1));
  std::string const words = disagreement(of(17), of(16));
  if (w.ranks.size() > 1) {
    CHECK(words.starts_with("attune::forward: the mask on rank " + w.name + " has visible keys with the hash "));
    CHECK(words.ends_with(", as on rank 0"));
  }
}

TEST_CASE("agree: long values are cut to where they differ") {
  std::string const common(3000, 'x');
  world const w;
  std::string const words = disagreement(fact("note", "the text", common + "old" + common),
                                         fact("note", "the text", common + "new" + common));
  if (w.ranks.size() == 1) return;
  CHECK(words.size() < 800);
  CHECK(words.find("old") < words.find("; expected "));
  CHECK(words.find("new") > words.find("; expected "));
}

/// What all ranks throw if the last one runs `fault` in an agreed call.
std::string after(std::function<void()> const& fault) {
  world const w;
  auto const start = std::chrono::steady_clock::now();
  std::string const words =
      error_on_all([&] { mpi::reach_all(w.ranks, "forward", [&] { w.odd ? fault() : void(); }); });
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
  CHECK(error_on_all([&] { mpi::reach_all(w.ranks, "forward", [] {}); }) == "");
  return words;
}
std::string thrown(std::string const& what) {
  return "attune::forward: rank " + world().name + " has the exception \"" + what + "\"; expected none on any rank";
}

TEST_CASE("reach_all: an exception on one rank is an error on all, with its text and the rank") {
  CHECK(after([] { throw std::runtime_error("no such table"); }) == thrown("no such table"));
  CHECK(after([] { throw std::bad_alloc(); }) == thrown(std::bad_alloc().what()));
  CHECK(after([] { throw 7; }) == thrown("of a type that is no std::exception"));
  CHECK(after([] { throw error("forward", "k", "feature extent 16", "8, the width of q"); }) ==
        thrown("attune::forward: k has feature extent 16; expected 8, the width of q"));
  CHECK(
      after([] { static_cast<void>(std::vector<int>().at(3)); }).starts_with("attune::forward: rank " + world().name));
  CHECK(after([] { throw std::runtime_error(std::string(5000, 'x').substr(0, 900)); }) ==
        thrown(std::string(900, 'x')));
}

TEST_CASE("reach_all: exceptions on several ranks: the lowest is named, and each rank keeps its own inside") {
  world const w;
  std::string nested;
  std::string const words = error_on_all([&] {
    try {
      mpi::reach_all(w.ranks, "vjp", [&] { throw std::runtime_error("on rank " + std::to_string(w.ranks.rank())); });
    } catch (error const& e) {
      try {
        std::rethrow_if_nested(e);
      } catch (std::runtime_error const& own) {
        nested = own.what();
      }
      throw;
    }
  });
  CHECK(words == "attune::vjp: rank 0 has the exception \"on rank 0\"; expected none on any rank");
  CHECK(nested == "on rank " + std::to_string(w.ranks.rank()));
}

TEST_CASE("reach_all: returns what the function returns, also what cannot be copied") {
  world const w;
  CHECK(*mpi::reach_all(w.ranks, "forward", [&] { return std::make_unique<int>(w.ranks.rank()); }) == w.ranks.rank());
}

TEST_CASE("failures: a rank that throws in a ring goes on with its messages; all ranks get the error after the ring") {
  world const w;
  int const me = w.ranks.rank(), size = w.ranks.size(), right = (me + 1) % size, left = (me + size - 1) % size;
  for (int when = 0; when < size; ++when) {
    std::vector<int> block(1 << 16, me), next(block.size());
    int steps = 0;
    std::string const words = error_on_all([&] {
      mpi::failures of_this_rank;
      for (int step = 0; step < size; ++step) {
        mpi::exchange messages(w.ranks);
        messages.receive(std::span(next), left);
        messages.send(std::span(block), right);
        of_this_rank.run([&] {
          ++steps;
          if (w.odd && step == when) throw std::runtime_error("in step " + std::to_string(step));
          if (block[0] != (me + size - step) % size) throw std::logic_error("a wrong block");
        });
        messages.wait();
        std::swap(block, next);
      }
      CHECK(of_this_rank.any() == w.odd);
      of_this_rank.reach_all(w.ranks, "forward");
    });
    CHECK(words == "attune::forward: rank " + w.name + " has the exception \"in step " + std::to_string(when) +
                       "\"; expected none on any rank");
    CHECK(steps == (w.odd ? when + 1 : size));      // after its exception a rank computes nothing
    CHECK(block == std::vector<int>(1 << 16, me));  // the ring is closed: no message is left over
  }
}

TEST_CASE("reach_all: an exception while messages of one step are in flight") {
  world const w;
  int const me = w.ranks.rank(), size = w.ranks.size(), right = (me + 1) % size, left = (me + size - 1) % size;
  std::vector<int> got(1 << 18);
  CHECK(error_on_all([&] {
          mpi::reach_all(w.ranks, "decode", [&] {
            std::vector<int> const mine(got.size(), me);
            mpi::exchange messages(w.ranks);
            messages.receive(std::span(got), left);
            messages.send(std::span(mine), right);
            if (w.odd) throw std::runtime_error("computing");
            messages.wait();
          });
        }) == "attune::decode: rank " + w.name + " has the exception \"computing\"; expected none on any rank");
  CHECK(got == std::vector<int>(1 << 18, left));
}

}  // namespace
}  // namespace attune::test
