// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   by_slopes(call)    "ALiBi slopes of 16 heads"
//
// Another operator than the given one: other slopes, no cap, another head's bias.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <attune/testing/judging/forward/sampled_call.hpp>

namespace attune::testing::detail {

/// The same operator with another value of one parameter; of all of them with that path.
template <class Op>
void by_other_parameter(sampled_call<Op>& call, std::string const& name, std::string const& path,
                        std::vector<double> const& values, std::string_view look_at) {
  Op other = call.op;
  for (operator_parameter const& x : listed_parameters(other))
    if (x.path() == path)
      const_cast<parameter&>(*x.at) = parameter(tensor<double const>(values.data(), x.at->extents()));
  finding f;
  f.name = name;
  f.look_at = look_at;
  call.judge_direction(f, call.changes_to(altered_rows<Op>(other, call.in, call.p)));
}

/// A slope for each head, as ALiBi has them: the slopes of another number of heads, and slopes rounded to bf16.
template <class Op>
void by_slopes(sampled_call<Op>& call) {
  for (operator_parameter const& listed : listed_parameters(call.op)) {
    shape const e = listed.at->extents();
    std::string const path = listed.path();
    if (!listed.at->is_set() || !path.ends_with("slope") || e.head != call.p.heads || e.batch * e.position != 1)
      continue;
    std::vector<double> right;
    for (index_t h = 0; h < e.head; ++h) right.push_back(lift<double>{}.value(*listed.at, {0, h, 0, call.p.queries}));
    auto const with = [&](std::string const& name, std::vector<double> const& slopes) {
      if (slopes != right) by_other_parameter(call, name, path, slopes, "look at: the formula of the slopes");
    };
    index_t power = 1;
    while (power < call.p.heads) power *= 2;
    std::vector<index_t> counts{call.p.heads, 2 * call.p.heads, (std::max<index_t>)(1, call.p.heads / 2), power,
                                power / 2};
    std::sort(counts.begin(), counts.end());
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    for (index_t n : counts) {
      if (n == 0) continue;
      std::vector<double> slopes;
      for (index_t h = 0; h < call.p.heads; ++h) slopes.push_back(std::exp2(-8. * double(h + 1) / double(n)));
      bool same = true;
      for (std::size_t h = 0; h < slopes.size(); ++h) same = same && std::fabs(slopes[h] - right[h]) < 1e-6 * slopes[h];
      if (!same) with("ALiBi slopes of " + std::to_string(n) + " heads", slopes);
    }
    std::vector<double> narrow;
    for (double x : right) narrow.push_back(rounded_to(storage::bf16, x));
    with(path + " rounded to bf16", narrow);
  }
}

/// After a failure: the numbers of other heads, and a cap that is not applied.
template <class Op>
void by_other_parameters(sampled_call<Op>& call) {
  for (operator_parameter const& listed : listed_parameters(call.op)) {
    shape const e = listed.at->extents();
    std::string const path = listed.path();
    if (!listed.at->is_set() || e.batch * e.position != 1 || (e.head != 1 && e.head != call.p.heads)) continue;
    std::vector<double> right;
    for (index_t h = 0; h < e.head; ++h) right.push_back(lift<double>{}.value(*listed.at, {0, h, 0, call.p.queries}));
    if (path.ends_with("cap")) {
      std::vector<double> none = right;
      for (double& x : none) x *= 1e8;
      by_other_parameter(call, "cap ignored", path, none, look::operators);
    }
    auto const of_heads = [&](char const* words, auto const& head) {
      std::vector<double> other;
      for (index_t h = 0; h < e.head; ++h) other.push_back(right[std::size_t(head(h))]);
      if (other != right) by_other_parameter(call, path + words, path, other, look::heads);
    };
    index_t const H = e.head, groups = (std::max<index_t>)(call.p.key_heads, 1);
    of_heads(" of the next head", [&](index_t h) { return (h + 1) % H; });
    of_heads(" of the head before", [&](index_t h) { return (h + H - 1) % H; });
    of_heads(" of the heads in reverse order", [&](index_t h) { return H - 1 - h; });
    of_heads(" of head 0 in all heads", [](index_t) { return index_t(0); });
    if (H % groups == 0 && groups < H) {
      of_heads(" by the number of the key head", [&](index_t h) { return h / (H / groups); });
      of_heads(" of the first head of each group", [&](index_t h) { return h / (H / groups) * (H / groups); });
    }
  }
}
/// After a failure: a bias that is not added, of another head or batch element, or transposed.
template <class Op>
void by_other_bias(sampled_call<Op>& call) {
  if constexpr (Op::uses(field::bias)) {
    shape const e = call.in.bias.extents();
    if (e.size() > index_t(2e7)) return;
    auto const with = [&](char const* name, auto const& read) {
      std::vector<double> numbers;
      for (index_t b = 0; b < e.batch; ++b)
        for (index_t h = 0; h < e.head; ++h)
          for (index_t i = 0; i < e.position; ++i)
            for (index_t j = 0; j < e.feature; ++j) numbers.push_back(read(b, h, i, j));
      inputs<Op, any_tensor> other = call.in;
      other.bias = tensor<double const>(numbers, e);
      finding f;
      f.name = name;
      f.look_at = "look at: the strides of the bias, 0 where it is broadcast";
      call.judge_direction(f, call.changes_to(altered_rows<Op>(call.op, other, call.p)));
    };
    auto const& bias = call.in.bias;
    with("bias ignored", [](index_t, index_t, index_t, index_t) { return 0.; });
    with("bias added twice", [&](index_t b, index_t h, index_t i, index_t j) { return 2 * bias(b, h, i, j); });
    if (e.head > 1)
      with("bias of the next head",
           [&](index_t b, index_t h, index_t i, index_t j) { return bias(b, (h + 1) % e.head, i, j); });
    if (e.head > 1)
      with("bias of head 0 in all heads", [&](index_t b, index_t, index_t i, index_t j) { return bias(b, 0, i, j); });
    if (e.batch > 1)
      with("bias of the next batch element",
           [&](index_t b, index_t h, index_t i, index_t j) { return bias((b + 1) % e.batch, h, i, j); });
    if (e.batch > 1)
      with("bias of batch element 0 in all",
           [&](index_t, index_t h, index_t i, index_t j) { return bias(0, h, i, j); });
    if (e.position == e.feature)
      with("bias transposed", [&](index_t b, index_t h, index_t i, index_t j) { return bias(b, h, j, i); });
    if (e.position > 1)
      with("bias of query 0 in all rows", [&](index_t b, index_t h, index_t, index_t j) { return bias(b, h, 0, j); });
  }
}

}  // namespace attune::testing::detail
