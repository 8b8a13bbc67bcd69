// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <attune/exec/cuda/host/executor.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

#include "../../../check.hpp"
#include "../gradients.hpp"

namespace attune::test {
namespace {

template <class X>
bool same(std::vector<X> const& a, std::vector<X> const& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), sizeof(X) * a.size()) == 0;
}

TEST_CASE("emulated_cuda: the calls of an executor give the bits of the emulated warps, in any memory") {
  using widths = exec_cuda::widths<64>;
  auto const op = sink_attention(parameter(0.5), mask::causal{});
  using op_type = std::remove_const_t<decltype(op)>;
  gradient_problem<op_type, bfloat16> p(op, {.heads = 4, .key_heads = 2, .value_heads = 2, .queries = 20, .keys = 33});
  shape const rows = p.rows(64);
  std::vector<bfloat16> first(std::size_t(rows.size())), second(first.size()), third(first.size());
  testing::forward_on_host_warps<widths>(op, p.in(), outputs<op_type, bfloat16>{.out = {first.data(), rows}});
  testing::emulated_cuda<bfloat16, widths> const exec{};
  outputs<op_type, bfloat16> const to{.out = {second.data(), rows}}, by_call{.out = {third.data(), rows}};
  forward(exec, op, p.in(), to);
  CHECK(same(first, second));
  std::vector<float> saved(std::size_t(saved_size(op, p.in())));
  std::vector<unsigned char> room(workspace_bytes(exec, op, p.in(), to));
  testing::emulated_cuda<bfloat16, widths> const in_room{nullptr, room.data(), room.size()};
  forward_and_save(in_room, op, p.in(), by_call, std::span<float>(saved));
  CHECK(same(first, third));
  CHECK(same(saved, p.saved<widths>()));

  std::size_t needed = 0;
  auto const mine = p.gradients([&](auto const& in, auto const& d, auto const& g) {
    needed = workspace_bytes(exec, op, in, std::span<float const>(saved), d, g);
    vjp(exec, op, in, std::span<float const>(saved), d, g);
  });
  CHECK(same_bits(mine, p.on_host<widths>()));
  room.resize(needed);
  CHECK(same_bits(mine, p.gradients([&](auto const& in, auto const& d, auto const& g) {
    vjp(testing::emulated_cuda<bfloat16, widths>{nullptr, room.data(), needed}, op, in, std::span<float const>(saved),
        d, g);
  })));
}
TEST_CASE("emulated_cuda: a workspace that is too small") {
  using widths = exec_cuda::widths<64>;
  auto const op = softmax_attention();
  using op_type = std::remove_const_t<decltype(op)>;
  gradient_problem<op_type, bfloat16> p(op, {.queries = 5, .keys = 7});
  shape const rows = p.rows(64);
  std::vector<bfloat16> out(std::size_t(rows.size()));
  outputs<op_type, bfloat16> const to{.out = {out.data(), rows}};
  std::vector<unsigned char> room(100);
  testing::emulated_cuda<bfloat16, widths> const small{nullptr, room.data(), room.size()};
  CHECK(error_of([&] { forward(small, op, p.in(), to); }).find("the workspace has 100 bytes") != std::string::npos);
  auto const saved = p.saved<widths>();
  p.gradients([&](auto const& in, auto const& d, auto const& g) {
    CHECK(error_of([&] {
            vjp(small, op, in, std::span<float const>(saved), d, g);
          }).find("attune::vjp: the workspace") != std::string::npos);
  });
}

}  // namespace
}  // namespace attune::test
