// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   by_slopes(call)    "ALiBi slopes of 16 heads"      add_other_calls(suspicions, call)    "bias of the next head"
//
// Another operator than the given one: other slopes, no cap, another head's bias.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <attune/testing/judging/forward/sampled_call.hpp>
#include <attune/testing/judging/forward/suspicion.hpp>
#include <attune/testing/moving_parameter.hpp>

namespace attune::testing::detail {

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
      if (slopes != right) {
        Op other = call.op;
        set_parameter(other, path, slopes);
        finding f;
        f.name = name;
        f.look_at = "the formula of the slopes";
        call.judge_direction(f, call.changes_to(altered_rows<Op>(other, call.in, call.p)));
      }
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

/// Parameters of other heads, and a cap that is not applied.
template <class Op>
void add_other_parameters(suspicions<Op>& all, sampled_call<Op> const& call) {
  for (operator_parameter const& listed : listed_parameters(call.op)) {
    shape const e = listed.at->extents();
    std::string const path = listed.path(), called = path + words_of_parameter(call.op, path);
    if (!listed.at->is_set() || e.batch * e.position != 1 || (e.head != 1 && e.head != call.p.heads)) continue;
    std::vector<double> right;
    for (index_t h = 0; h < e.head; ++h) right.push_back(lift<double>{}.value(*listed.at, {0, h, 0, call.p.queries}));
    auto const with = [&](std::string const& name, std::string_view look_at, auto const& value) {
      std::vector<double> other;
      for (index_t h = 0; h < e.head; ++h) other.push_back(value(h));
      if (other == right) return;
      all.add_call(name, look_at, [other, path](other_call<Op>& to) {
        to.numbers.push_back(other);
        set_parameter(to.op, path, to.numbers.back());
      });
    };
    auto const of = [&](index_t h) { return right[std::size_t(h)]; };
    for (auto const& [by, words] : {std::pair{0., " ignored"},
                                    {-1., " with the wrong sign"},
                                    {2., " added twice"},
                                    {0.5, " halved"},
                                    {1.4426950408889634, " times log2 e: base 2"},
                                    {0.6931471805599453, " times ln 2: base 2"},
                                    {1 / std::sqrt(double((std::max<index_t>)(call.p.width, 1))), " times the scale"}})
      if (!path.ends_with("scale")) with(called + words, look::operators, [&, x = by](index_t h) { return x * of(h); });
    index_t const H = e.head, groups = (std::max<index_t>)(call.p.key_heads, 1);
    if (path.ends_with("cap")) with("cap ignored", look::operators, [&](index_t h) { return 1e8 * of(h); });
    with(called + " of the next head", look::heads, [&](index_t h) { return of((h + 1) % H); });
    with(called + " of the head before", look::heads, [&](index_t h) { return of((h + H - 1) % H); });
    with(called + " of the heads in reverse order", look::heads, [&](index_t h) { return of(H - 1 - h); });
    with(called + " of head 0 in all heads", look::heads, [&](index_t) { return of(0); });
    if (H % groups != 0 || groups >= H) continue;
    with(called + " by the number of the key head", look::heads, [&](index_t h) { return of(h / (H / groups)); });
    with(called + " of the first head of each group", look::heads,
         [&](index_t h) { return of(h / (H / groups) * (H / groups)); });
  }
}
/// A bias that is not added, of another head or batch element, or transposed.
template <class Op>
void add_other_bias(suspicions<Op>& all, sampled_call<Op> const& call) {
  if constexpr (Op::uses(field::bias)) {
    any_tensor const bias = call.in.bias;
    shape const e = bias.extents();
    if (e.size() > index_t(1e7)) return;
    auto const with = [&](std::string const& name, auto const& read) {
      all.add_call(name, "the strides of the bias, 0 where it is broadcast", [e, read](other_call<Op>& to) {
        std::vector<double>& numbers = to.numbers.emplace_back();
        for (index_t b = 0; b < e.batch; ++b)
          for (index_t h = 0; h < e.head; ++h)
            for (index_t i = 0; i < e.position; ++i)
              for (index_t j = 0; j < e.feature; ++j) numbers.push_back(read(b, h, i, j));
        to.in.bias = tensor<double const>(numbers, e);
      });
    };
    with("bias ignored", [=](index_t, index_t, index_t, index_t) { return 0.; });
    with("bias added twice", [=](index_t b, index_t h, index_t i, index_t j) { return 2 * bias(b, h, i, j); });
    if (e.head > 1) {
      with("bias of the next head",
           [=](index_t b, index_t h, index_t i, index_t j) { return bias(b, (h + 1) % e.head, i, j); });
      with("bias of head 0 in all heads", [=](index_t b, index_t, index_t i, index_t j) { return bias(b, 0, i, j); });
    }
    if (e.batch > 1) {
      with("bias of the next batch element",
           [=](index_t b, index_t h, index_t i, index_t j) { return bias((b + 1) % e.batch, h, i, j); });
      with("bias of batch element 0 in all",
           [=](index_t, index_t h, index_t i, index_t j) { return bias(0, h, i, j); });
    }
    if (e.position == e.feature)
      with("bias transposed", [=](index_t b, index_t h, index_t i, index_t j) { return bias(b, h, j, i); });
    if (e.position > 1)
      with("bias of query 0 in all rows", [=](index_t b, index_t h, index_t, index_t j) { return bias(b, h, 0, j); });
    with("bias subtracted", [=](index_t b, index_t h, index_t i, index_t j) { return -bias(b, h, i, j); });
    with("bias times log2 e: base 2",
         [=](index_t b, index_t h, index_t i, index_t j) { return 1.4426950408889634 * bias(b, h, i, j); });
    with("bias times the scale", [=, x = 1 / std::sqrt(double((std::max<index_t>)(call.p.width, 1)))](
                                     index_t b, index_t h, index_t i, index_t j) { return x * bias(b, h, i, j); });
    with("bias of key 0 for all keys", [=](index_t b, index_t h, index_t i, index_t) { return bias(b, h, i, 0); });
    with("bias of the next key",
         [=](index_t b, index_t h, index_t i, index_t j) { return bias(b, h, i, (std::min)(j + 1, e.feature - 1)); });
    if (e.position > 1)
      with("bias of the next query", [=](index_t b, index_t h, index_t i, index_t j) {
        return bias(b, h, (std::min)(i + 1, e.position - 1), j);
      });
    for (index_t multiple : {8, 16, 32, 64, 128}) {
      index_t const stride = (e.feature + multiple - 1) / multiple * multiple;
      if (e.position > 1 && stride != e.feature)
        with(attune::detail::text("bias read with rows of ", stride, " numbers"),
             [=](index_t b, index_t h, index_t i, index_t j) {
               index_t const at = (std::min)(i * stride + j, e.position * e.feature - 1);
               return bias(b, h, at / e.feature, at % e.feature);
             });
    }
    for (index_t tile : {16, 32, 64, 128})
      if (e.feature % tile != 0)
        with(attune::detail::text("bias missing in the last tile of ", tile, " keys"),
             [=](index_t b, index_t h, index_t i, index_t j) {
               return j < e.feature / tile * tile ? bias(b, h, i, j) : 0;
             });
  }
}
/// Exchanged scales of quantized k and v: logits times 1 + x, out divided by 1 + x. `of`: the rows that tell x.
template <class Op>
void add_exchanged_scales(suspicions<Op>& all, sampled_call<Op> const& call, std::vector<std::size_t> const& of) {
  finding scale;
  scale.name = "kernel.scale", scale.relative = true;
  auto const rows_of = [&call, scale](double by, auto const& visit) {
    return with_moved_parameter(call.op, call.p, scale, by, visit);
  };
  if (!rows_of(0, [](Op const&) {})) return;
  auto const append = [&call](altered_rows<Op> const& rows, double by, sampled_row const& r, std::vector<double>& x) {
    auto row = rows.template evaluate<double>({}, r.batch, r.head, r.query);
    for (double& y : row.out) y /= 1 + by;
    call.append_change(row, r, x);
  };
  std::size_t const every = of.size() / 16 + 1;
  double const size = fitted_size(scale, [&](double by) {
    double sum = 0;
    std::vector<double> change;
    rows_of(by, [&](Op const& op) {
      altered_rows<Op> const rows(op, call.in, call.p);
      for (std::size_t n = 0; n < of.size(); n += every) {
        change.clear();
        append(rows, by, call.sampled[of[n]], change);
        for (std::size_t k = 0; k < change.size(); ++k) sum += call.seen.left(of[n] * call.step() + k, change[k]);
      }
    });
    return sum;
  });
  if (!(std::fabs(size) > 0.01)) return;
  all.add(attune::detail::text("scales of k and v exchanged (logits ",
                               attune::detail::signed_number_text(100 * size, 3), " %, out divided by the same)"),
          "which scale belongs to k and which to v",
          [&call, append, rows_of, size](sampled_row const& r, std::vector<double>& x) {
            rows_of(size, [&](Op const& op) { append(altered_rows<Op>(op, call.in, call.p), size, r, x); });
          });
}

}  // namespace attune::testing::detail
