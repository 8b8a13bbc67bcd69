// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Gradients of floats, on warps that add as tensor cores do: within the bound of split products, and as close as
// products of floats are.
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <attune/exec/cuda/gradients/products.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

#include "../gradients.hpp"

namespace attune::test {
namespace {

/// Emulated tensor cores add towards zero while this lives.
struct truncating {
  truncating() { testing::host_warp::truncates = true; }
  ~truncating() { testing::host_warp::truncates = false; }
  truncating(truncating const&) = delete;
};

/// "" if the gradients keep their bound, have a relative error of `most` and cause no bank conflict.
template <int Width, class Op, class Change>
std::string of_floats(Op const& op, gradient_extents const& n, double most, Change const& change) {
  truncating const as_devices;
  gradient_problem<Op, float> p(op, n);
  change(p);
  testing::host_warp::tally = {};
  auto const got = p.template on_host<exec_cuda::widths<Width>>();
  auto const t = testing::host_warp::tally;
  std::string const wrong = p.beyond_bound(got);
  if (!wrong.empty()) return wrong;
  if (!(p.norm <= most)) return detail::text("relative error ", p.norm);
  long const conflicts = t.load_waves - 4 * t.loads + t.copy_waves - 4 * t.copies;
  return p.compared == 0 ? "nothing was compared" : conflicts != 0 ? detail::text(conflicts, " bank conflicts") : "";
}
template <int Width, class Op>
std::string of_floats(Op const& op, gradient_extents const& n, double most = 1e-6) {
  return of_floats<Width>(op, n, most, [](auto&) {});
}

struct every_third {
  ATTUNE_HD constexpr bool operator()(mask_row const& r, index_t j) const { return (r.query + j + r.head) % 3 != 0; }
};

TEST_CASE("gradients of floats: softmax, four query heads for a head of keys, tails") {
  auto const op = softmax_attention(mask::causal{});
  CHECK(of_floats<64>(op, {.heads = 4, .queries = 40, .keys = 140, .offset = 100}) == "");
  CHECK(of_floats<64>(op, {.heads = 4, .key_heads = 2, .value_heads = 4, .queries = 35, .keys = 33}) == "");
  CHECK(of_floats<64>(op, {.batch = 2, .queries = 30, .keys = 50, .width = 21, .value_width = 13, .offset = -4}) == "");
}
TEST_CASE("gradients of floats: masks that are no intervals") {
  CHECK(of_floats<64>(softmax_attention(mask::predicate(every_third{})), {.heads = 2, .queries = 40, .keys = 70}) ==
        "");
}
TEST_CASE("gradients of floats: masses that are no exponentials, and logits that are no products") {
  CHECK(of_floats<64>(attention(kernel::dot_product{} | kernel::softcap{5}, normalizer::sigmoid{}, mask::causal{}),
                      {.heads = 2, .queries = 40, .keys = 70, .offset = 40}) == "");
}
TEST_CASE("gradients of floats: two products") {
  auto const op = principled_attention({.alpha = -1.0, .beta = 0.2, .gamma = 0.3}, mask::causal{});
  CHECK(of_floats<64>(op, {.heads = 4, .queries = 20, .keys = 70, .offset = 45}, 2e-6) == "");
  CHECK(of_floats<128>(op, {.queries = 20, .keys = 40, .width = 128, .value_width = 128, .offset = 20}, 2e-6) == "");
}
TEST_CASE("gradients of floats: 256 features") {
  auto const op = softmax_attention(mask::causal{});
  CHECK(of_floats<256>(op, {.heads = 2, .queries = 40, .keys = 50, .width = 256, .value_width = 200, .offset = 20},
                       2e-6) == "");
}
TEST_CASE("gradients of floats: rows of any size") {
  auto const op = softmax_attention(mask::causal{});
  gradient_extents const n{.queries = 40, .keys = 70, .offset = 30};
  CHECK(of_floats<64>(op, n, 1e-6, [](auto& p) {
          auto& v = p.numbers(field::v);
          for (std::size_t k = 0; k < v.size(); ++k) v[k] *= std::ldexp(1.f, int(k / 64 * 7 % 40) - 20);
          for (std::size_t k = 0; k < p.by_out().size(); ++k)
            p.by_out()[k] *= std::ldexp(1.f, int(k / 64 * 11 % 40) - 20);
        }) == "");
  for (float by : {0x1p-90f, 0x1p90f})  // no sum of terms is a float, but for these factors
    CHECK(of_floats<64>(op, n, 1e-6, [&](auto& p) {
            for (float& x : p.numbers(field::v)) x *= by;
            for (float& x : p.by_out()) x /= by;
          }) == "");
}
TEST_CASE("gradients of floats: NaN and infinities stay with the rows and keys that they belong to") {
  gradient_extents const n{.heads = 2, .queries = 70, .keys = 70};
  auto const op = softmax_attention(mask::causal{});
  double const any = std::numeric_limits<double>::infinity();
  for (field f : {field::q, field::k, field::v}) {
    INFO(name_of(f));
    CHECK(of_floats<64>(op, n, any, [&](auto& p) { p.spoil(f, 40); }) == "");
  }
  for (float x : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    CHECK(of_floats<64>(op, n, any, [&](auto& p) { p.by_out()[64 * 20 + 3] = x; }) == "");
}
TEST_CASE("gradients of floats: keys and queries with an infinity, whose logits are -inf") {
  float const infinity = std::numeric_limits<float>::infinity();
  for (field f : {field::q, field::k}) {
    INFO(name_of(f));
    CHECK(of_floats<64>(softmax_attention(mask::causal{}), {.queries = 70, .keys = 70}, 1e-6, [&](auto& p) {
            for (float& x : p.numbers(f == field::q ? field::k : field::q)) x = std::fabs(x) + 0.1f;
            p.numbers(f)[64 * 20 + 3] = p.numbers(f)[64 * 60 + 3] = -infinity;
          }) == "");
  }
}
TEST_CASE("gradients of floats: NaN that no query sees reaches nothing") {
  CHECK(of_floats<64>(softmax_attention(mask::causal{}), {.queries = 40, .keys = 70, .offset = 5}, 1e-6, [](auto& p) {
          for (index_t j : {46, 69}) p.spoil(field::k, j), p.spoil(field::v, j);
        }) == "");
}

}  // namespace
}  // namespace attune::test
