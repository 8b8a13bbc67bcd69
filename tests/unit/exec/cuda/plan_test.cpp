// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Lists of tiles of keys: one for all heads where all heads see the same keys.
#include <cstring>
#include <random>
#include <vector>

#include <attune/exec/cuda/host/forward.hpp>
#include <attune/exec/cuda/plan.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

#include "../../check.hpp"

namespace attune::test {
namespace {

using namespace exec_cuda;

/// A document mask whose second head sees the first key alone: what it inherits about heads is wrong.
struct changed_documents : mask::documents {
  using mask::documents::documents;
  ATTUNE_HD constexpr bool visible(mask_row const& r, index_t j) const {
    return r.head == 0 ? mask::documents::visible(r, j) : j == 0;
  }
};

constexpr shape extents{2, 4, 140, 24};

/// The outputs of softmax under `m`, and the bytes of workspace of the call.
template <class M>
std::pair<std::vector<bfloat16>, std::size_t> computed(M const& m) {
  std::mt19937_64 random(4);
  std::normal_distribution<float> normal;
  std::vector<bfloat16> q, k, v;
  for (auto* x : {&q, &k, &v})
    for (index_t n = 0; n < extents.size(); ++n) x->push_back(bfloat16(normal(random)));
  auto const op = softmax_attention(m);
  using op_type = std::remove_const_t<decltype(op)>;
  inputs<op_type, tensor<bfloat16 const>> const in{
      .q = {q.data(), extents}, .k = {k.data(), extents}, .v = {v.data(), extents}};
  std::vector<bfloat16> out(q.size());
  outputs<op_type, bfloat16> const to{.out = tensor<bfloat16>(out.data(), extents)};
  problem_shape const p = detail::checked_problem("forward", op, in, extents);
  testing::host_runner runner;
  arena memory;
  auto const run = [&] {
    run_forward<testing::host_runner, op_type, bfloat16>(widths<64>{}, runner, memory, op, in, to, p);
  };
  run();
  std::size_t const bytes = memory.needed();
  std::vector<unsigned char> room(bytes);
  memory = {room.data()};
  run();
  return {out, bytes};
}

bool same(std::vector<bfloat16> const& a, std::vector<bfloat16> const& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(bfloat16)) == 0;
}

TEST_SUITE_BEGIN("cuda plan");

TEST_CASE("heads that see the same keys share a list, and have the same bits") {
  std::vector<unsigned char> table;
  for (int n = 0; n < 35 * 35; ++n) table.push_back((n / 35 + 2 * (n % 35)) % 5 < 2 || n % 35 == 0 ? 1 : 0);
  std::vector<unsigned char> of_heads;
  for (int h = 0; h < 4; ++h) of_heads.insert(of_heads.end(), table.begin(), table.end());
  auto const [one, one_bytes] = computed(mask::block_sparse(table, 4, 4));
  auto const [each, each_bytes] = computed(mask::block_sparse(of_heads, 4, 4, 4));
  CHECK(same(one, each));
  CHECK(one_bytes < each_bytes);
}

TEST_CASE("which masks are the same for all heads") {
  std::vector<index_t> const ids(8), offsets{0, 8};
  std::vector<unsigned char> const table(4 * 64);
  mask::documents const documents(ids);
  auto const rule = mask::predicate([](mask_row const&, index_t) { return true; });
  CHECK(mask::same_for_heads(documents));
  CHECK(mask::same_for_heads(mask::sink_window{1, 2}));
  CHECK(mask::same_for_heads(mask::causal{} & documents));
  CHECK(mask::same_for_heads(mask::window{2} | documents));
  CHECK(mask::same_for_heads(mask::ragged(offsets, mask::sink_window{1, 2})));
  CHECK(mask::same_for_heads(mask::runtime{}));
  CHECK(!mask::same_for_heads(mask::runtime{.visible = table.data(), .visible_shape = {1, 4, 8, 8}}));
  CHECK(mask::same_for_heads(mask::visible_table{.table = {table.data(), shape{1, 1, 8, 8}}}));
  CHECK(!mask::same_for_heads(mask::visible_table{.table = {table.data(), shape{1, 4, 8, 8}}}));
  CHECK(!mask::same_for_heads(mask::block_sparse(table, 1, 1, 4)));
  CHECK(!mask::same_for_heads(rule));
  CHECK(!mask::same_for_heads(rule & mask::causal{}));
  CHECK(!mask::same_for_heads(changed_documents(ids)));
}

TEST_CASE("a mask that changes an inherited one by head has its own lists") {
  std::vector<index_t> ids;
  for (index_t n = 0; n < extents.position; ++n) ids.push_back(n / 50);
  mask::documents const documents(ids);
  auto const by_rule = computed(mask::predicate(
      [documents](mask_row const& r, index_t j) { return r.head == 0 ? documents.visible(r, j) : j == 0; }));
  CHECK(same(computed(changed_documents(ids)).first, by_rule.first));
  CHECK(computed(documents).second < by_rule.second);
}

}  // namespace
}  // namespace attune::test
