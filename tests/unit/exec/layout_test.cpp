// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The CPU executor is bitwise the same for every layout of its tensors and every number of threads.
#include <list>
#include <string>
#include <vector>

#include <attune/exec/cpu/tile/forward.hpp>

#include "../check.hpp"
#include "calls.hpp"

namespace attune::test {
namespace {

enum class layout { position_major, feature_gaps, reversed_positions, reversed_features };

/// Memory full of NaN, of which a tensor of the given layout takes some elements.
struct scattered {
  std::vector<float> memory;
  shape extents;
  strides steps;
  index_t origin = 0;

  scattered(shape const& s, layout how) : extents(s) {
    index_t const row = 2 * s.feature + 3;  // at least two elements between rows
    steps = {s.head * s.position * row, s.position * row, row, 1};
    if (how == layout::position_major) steps = {s.position * s.head * row, row, s.head * row, 1};
    if (how == layout::feature_gaps) steps.feature = 2;
    if (how == layout::reversed_positions) {
      origin = (s.position - 1) * row;
      steps.position = -row;
    }
    if (how == layout::reversed_features) {
      origin = s.feature - 1;
      steps.feature = -1;
    }
    memory.assign(std::size_t(s.batch * s.head * s.position * row), float(nan));
  }
  tensor<float> view() { return {memory.data() + origin, extents, steps}; }
};

template <class Visit>
void for_each_element(shape const& s, Visit const& visit) {
  for (index_t b = 0; b < s.batch; ++b)
    for (index_t h = 0; h < s.head; ++h)
      for (index_t i = 0; i < s.position; ++i)
        for (index_t d = 0; d < s.feature; ++d) visit(b, h, i, d);
}

/// Rows that see two stretches, all, nothing, one key.
struct patchy_mask {
  std::vector<unsigned char> table;
  mask::runtime mask;
  patchy_mask(index_t queries, index_t keys) {
    for (index_t i = 0; i < queries; ++i)
      for (index_t j = 0; j < keys; ++j)
        table.push_back(i % 4 == 0 ? j % 90 > 20 : i % 4 == 1 ? 1 : i % 4 == 2 ? 0 : j == i);
    mask.visible = table.data();
    mask.visible_shape = {1, 1, queries, keys};
  }
};

call_shapes const sizes = call_of(2, 4, 2, 1, 37, 150);

/// out, lse and ground weight in another layout against the dense ones.
template <class Op, class MakeInputs>
void same_in_every_layout(Op const& op, MakeInputs const& make_inputs) {
  arrays const a = random_arrays(sizes);
  results<float> const expected = run(cpu<float>{1}, op, make_inputs(dense(a)), sizes);
  for (layout how :
       {layout::position_major, layout::feature_gaps, layout::reversed_positions, layout::reversed_features}) {
    CAPTURE(int(how));
    std::list<scattered> copies;
    auto const in = make_inputs([&](char const* name, shape const& s) -> tensor<float const> {
      tensor<float const> const from(a.at(name), s);
      tensor<float> const to = copies.emplace_back(s, how).view();
      for_each_element(s, [&](auto... at) { to(at...) = from(at...); });
      return to;
    });
    scattered out(sizes.out, how), lse(sizes.lse, how), ground_weight(sizes.ground_weight, how);
    outputs<Op, float> to{.out = out.view(), .lse = natural_lse(lse.view())};
    if constexpr (Op::has_ground_weight) to.ground_weight = ground_weight.view();
    forward(cpu<float>{1}, op, in, to);
    auto const differences = [](scattered& got, std::vector<float> const& wanted) {
      int n = 0;
      tensor<float const> const dense_view(wanted, got.extents);
      for_each_element(got.extents, [&](auto... at) { n += got.view()(at...) != dense_view(at...); });
      return n;
    };
    CHECK(differences(out, expected.out) == 0);
    CHECK(differences(lse, expected.lse) == 0);
    if constexpr (Op::has_ground_weight) CHECK(differences(ground_weight, expected.ground_weight) == 0);
    std::size_t untouched = 0;  // nothing was written beside the elements
    for (float x : out.memory) untouched += std::isnan(x);
    CHECK(untouched == out.memory.size() - expected.out.size());
  }
}

TEST_CASE("layout: any strides give the same bits") {
  patchy_mask const m(37, 150);
  plain_operator plain{};
  plain.mask = m.mask;
  same_in_every_layout(plain, [](auto const& make) { return plain_inputs<tensor<float const>>(sizes, make); });
  principled_operator const principled = principled_attention({0.1, 0.2, 0.3}, m.mask);
  same_in_every_layout(principled,
                       [](auto const& make) { return principled_inputs<tensor<float const>>(sizes, make); });
  given_operator given{};
  given.mask = m.mask;
  same_in_every_layout(given, [](auto const& make) { return given_inputs<tensor<float const>>(sizes, make); });
}

TEST_CASE("threads: any number of them gives the same bits") {
  call_shapes const s = call_of(1, 4, 2, 1, 300, 130);  // several tasks per head, whatever the SIMD width
  arrays const a = random_arrays(s);
  patchy_mask const m(300, 130);
  principled_operator const op = principled_attention({0.1, 0.2, 0.3}, m.mask);
  auto const in = principled_inputs<tensor<float const>>(s, dense(a));
  results<float> const expected = run(cpu<float>{1}, op, in, s);
  for (int threads : {2, 3, 0, 64}) {
    CAPTURE(threads);
    CHECK(run(cpu<float>{threads}, op, in, s) == expected);
  }
}

}  // namespace
}  // namespace attune::test
