// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Random calls, most of them wrong, of every entry point: shapes that do not fit, absent, empty and overflowing
// tensors, any strides, outputs whose elements coincide, intervals that are none. 300 per entry point and operator,
// 10,000 in the full tier.
#include <string>

#include <support/wild_call.hpp>
#include <unit/check.hpp>

using namespace attune;
using attune::test::tally_of_calls;
using attune::test::wild_call;

namespace {

template <class Op, class Enter>
void check(char const* entry, char const* name, std::uint64_t first, test::index count, Enter const& enter) {
  tally_of_calls tally;
  for (test::index n = 0; n < count && tally.fault.empty(); ++n) {
    std::uint64_t const seed = first + std::uint64_t(n);
    wild_call<Op> call(seed);
    enter(call, tally, seed);
    if (!tally.fault.empty())
      FAIL_CHECK(std::string(entry) << " of " << std::string(name) << ", ATTUNE_SEED=" << seed << ": " << tally.fault);
  }
  if (count >= 100) {
    CHECK(tally.computed > count / 10);
    CHECK(tally.refused > count / 10);
  }
}

template <class Op>
void every_entry_point(char const* name, Op const& op) {
  bool const repeat = std::getenv("ATTUNE_SEED") != nullptr;
  std::uint64_t const fresh = test::fresh_seed();
  MESSAGE(std::string(name) << ": fresh calls from seed " << fresh);
  test::index const count = test::case_count() < 1000 ? 300 : 10000;  // the quick tier, the full tier
  for (std::uint64_t const first : {repeat ? fresh : std::uint64_t(1), fresh}) {
    test::index const some = first == fresh && !repeat ? count / 3 : count;
    check<Op>("forward", name, first, some, [&](auto& call, auto& to, std::uint64_t) { call.forward(op, to); });
    check<Op>("forward_and_save", name, first, some,
              [&](auto& call, auto& to, std::uint64_t) { call.forward_and_save(op, to); });
    check<Op>("accumulate and finish", name, first, some,
              [&](auto& call, auto& to, std::uint64_t) { call.accumulate_and_finish(op, to); });
    check<Op>("vjp", name, first, some, [&](auto& call, auto& to, std::uint64_t) { call.vjp(op, to); });
    check<Op>("statistics", name, first, some, [&](auto& call, auto& to, std::uint64_t seed) {
      wild_call<Op> other(seed + 1'000'000);
      call.statistics(op, to, other);
    });
    if constexpr (offers_call<cpu<>, call_kind::decode, Op>)
      check<Op>("decode", name, first, some, [&](auto& call, auto& to, std::uint64_t) { call.decode(op, to); });
    if constexpr (Op::normalizer_is.family == row_family::masses)
      check<Op>("jvp", name, first, some, [&](auto& call, auto& to, std::uint64_t) { call.jvp(op, to); });
  }
}

TEST_SUITE("wrong calls") {
  TEST_CASE("softmax") {
    every_entry_point("softmax", attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{}));
  }
  TEST_CASE("grounded, with gates") { every_entry_point("grounded", principled_attention({-1.0, 0.2, 0.3})); }
  TEST_CASE("sparsemax") { every_entry_point("sparsemax", attention(kernel::dot_product{}, normalizer::sparsemax{})); }
  TEST_CASE("bias, ground value, gated values and outputs") {
    every_entry_point("valued", attention(kernel::dot_product{} + kernel::bias{}, normalizer::valued_off_by_one{},
                                          gate::sigmoid_value{}, gate::sigmoid_output{}));
  }
  TEST_CASE("given scores, self-adjusted") {
    every_entry_point("self-adjusted", attention(kernel::given_scores{},
                                                 normalizer::self_adjusted<normalizer::adjusted_form::product>{}));
  }
}

}  // namespace
