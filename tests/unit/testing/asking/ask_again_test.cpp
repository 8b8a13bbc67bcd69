// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A kernel that failed is asked again: its smallest failing call, and the weights that it used.
#include <cmath>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <attune/attune.hpp>
#include <attune/testing/asking/ask_again.hpp>
#include <attune/testing/drawn_problem.hpp>

#include "../../check.hpp"

namespace attune::test {
namespace {

using testing::ask_again;
using testing::candidate;

auto causal_operator() { return attention(kernel::dot_product{}, mask::causal{}); }
using op_type = decltype(causal_operator());
using kernel_inputs = inputs<op_type, tensor<float const>>;

/// A defect: the factor of a weight, for (heads, head, position of the query among the keys, key). 0: not seen.
using defect = std::function<double(index_t, index_t, index_t, index_t)>;

/// Causal attention with a planted defect.
candidate with_defect(kernel_inputs const& in, defect const& factor) {
  shape const q = in.q.extents(), k = in.k.extents();
  std::vector<float> out;
  for (index_t h = 0; h < q.head; ++h)
    for (index_t i = 0; i < q.position; ++i) {
      index_t const at = i + k.position - q.position, kv = h * k.head / q.head;
      std::vector<double> sum(std::size_t(q.feature), 0);
      double total = 0;
      for (index_t j = 0; j < k.position; ++j) {
        double s = 0;
        for (index_t d = 0; d < q.feature; ++d) s += double(in.q(0, h, i, d)) * double(in.k(0, kv, j, d));
        double const w = std::exp(s / std::sqrt(double(q.feature))) * factor(q.head, h, at, j);
        total += w;
        for (index_t d = 0; d < q.feature; ++d) sum[std::size_t(d)] += w * double(in.v(0, kv, j, d));
      }
      for (double x : sum) out.push_back(total == 0 ? 0.f : float(x / total));
    }
  return candidate(tensor<float const>(out, q));
}

testing::drawn_problem<op_type> drawn() {
  testing::detail::normal_numbers random(3);
  return {{.heads = 4, .queries = 24, .keys = 40, .width = 16, .value_width = 16, .key_heads = 2, .value_heads = 2},
          random};
}

template <class Kernel>
std::string answers(Kernel const& kernel, testing::ask_again_options const& how = {}) {
  auto const problem = drawn();
  std::ostringstream to;
  to << ask_again(causal_operator(), problem.inputs<any_tensor>(), kernel, how);
  return to.str();
}
std::string answers_with(defect const& factor) {
  return answers([&](kernel_inputs const& in) { return with_defect(in, factor); });
}
bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

TEST_SUITE_BEGIN("ask again");

TEST_CASE("a mask that shows one key more") {
  std::string const text = answers_with([](index_t, index_t, index_t i, index_t j) { return j <= i + 1 ? 1. : 0.; });
  INFO(text);
  CHECK(has(text, "smallest failing call: 1 head of 4 (head 0), 2 queries of 24 (0..1), 2 keys of 40 (0..1)\n"));
  CHECK(has(text, "without the last query it passes"));
  CHECK(has(text, "weights seen (24 x 40 of head 0, values one-hot):\n  query i sees keys up to i + 17, not i + 16\n"));
}

TEST_CASE("pages without their last key") {
  std::string const text =
      answers_with([](index_t, index_t, index_t i, index_t j) { return j <= i && j % 16 != 15 ? 1. : 0.; });
  INFO(text);
  CHECK(has(text, "16 keys of 40 (0..15)\n  without the last key it passes"));
  CHECK(has(text, "keys j with j mod 16 = 15 (15, 31): weight 0 in all queries that see them\n"));
}

TEST_CASE("a split with a stale maximum") {
  std::string const text = answers_with([](index_t, index_t, index_t i, index_t j) {
    return j > i ? 0. : j >= 32 ? 1.4 : 1.;
  });
  INFO(text);
  CHECK(has(text, "33 keys of 40 (0..32)"));
  CHECK(has(text, "keys 32..39: weights times 1.4, compared with the other keys\n"));
}

TEST_CASE("one head is wrong") {
  std::string const text = answers_with([](index_t, index_t h, index_t i, index_t j) {
    return j > i ? 0. : h == 3 && j % 4 == 1 ? 0.5 : 1.;
  });
  INFO(text);
  CHECK(has(text, "smallest failing call: 4 heads, 1 query of 24"));
  CHECK(has(text, "head 3 alone passes"));
  CHECK(has(text, "of head 3, values one-hot"));
  CHECK(has(text, "keys j with j mod 4 = 1 (1, 5, 9, ... (10 in all)): weights times 0.5"));
}

TEST_CASE("shapes that the kernel refuses are not asked") {
  auto const plus_one = [](index_t, index_t, index_t i, index_t j) { return j <= i + 1 ? 1. : 0.; };
  std::string text = answers([&](kernel_inputs const& in) {
    if (in.q.extents().position % 8 != 0 || in.k.extents().position % 8 != 0)
      throw std::invalid_argument("multiples of 8");
    return with_defect(in, plus_one);
  });
  INFO(text);
  CHECK(has(text, "1 head of 4 (head 0), 8 queries of 24 ("));
  CHECK(has(text, "8 keys of 40 ("));
  text = answers([&](kernel_inputs const&) -> candidate { throw std::invalid_argument("no kernel"); });
  CHECK(text == "not asked again: no kernel\n");
}

TEST_CASE("right kernels, and no time") {
  auto const right = [](index_t, index_t, index_t i, index_t j) { return j <= i ? 1. : 0.; };
  CHECK(answers_with(right) == "asked again, the same call passes\n");
  int calls = 0;
  auto const counted = [&](kernel_inputs const& in) {
    calls += 1;
    return with_defect(in, right);
  };
  CHECK(answers(counted, {.seconds = -1}) == "not asked again: there is no time\n");
  CHECK(calls == 0);
}

TEST_CASE("values that are read in a wrong way") {
  std::string const text = answers([](kernel_inputs const& in) {
    candidate const right = with_defect(in, [](index_t, index_t, index_t i, index_t j) { return j <= i ? 1. : 0.; });
    std::vector<float> out;
    for (double x : right.out()) out.push_back(float(std::fabs(x)));
    return candidate(tensor<float const>(out, right.extents()));
  });
  INFO(text);
  CHECK(has(text, "are the exact ones: look at how values are read and results are written\n"));
}

TEST_SUITE_END();

}  // namespace
}  // namespace attune::test
