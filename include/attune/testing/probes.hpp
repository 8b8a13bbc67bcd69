// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for (auto& probe : probe_pack(op, extents))
//       ... run the kernel on probe->problem, verdict(op, probe->inputs(), candidate)
//
// Inputs that reveal mistakes: a wrong kernel may look right on random numbers, but not on these.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <attune/exec/problem.hpp>
#include <attune/exec/reference/any_tensor.hpp>
#include <attune/testing/drawn/probe_contract.hpp>
#include <attune/testing/drawn_problem.hpp>

namespace attune::testing {

/// One set of inputs, in float and in double, and the mistakes that it reveals.
template <class Op>
struct probe {
  std::string name,           ///< "values one-hot"
      reveals;                ///< the mistakes that it reveals, in a few words
  drawn_problem<Op> problem;  ///< inputs and cotangents

  /// Draws a problem; probe_pack() calls it.
  probe(std::string n, std::string what, problem_extents const& e, detail::normal_numbers& random,
        draw_rule const& rule = {})
      : name(std::move(n)), reveals(std::move(what)), problem(e, random, rule) {}
  /// The inputs for the reference executor and the verdict.
  inputs<Op, any_tensor> inputs_of_any() const { return problem.template inputs<any_tensor>(); }
};

namespace detail {

/// Fills a tensor of a problem by (head, position, feature).
template <class Op, class Value>
void fill(drawn_problem<Op>& p, field f, Value const& value) {
  drawn_tensor& x = p.of(f);
  for (std::size_t n = 0; n < x.floats.size(); ++n) {
    index_t const at = index_t(n), rows = at / x.extents.feature;
    x.floats[n] = float(value(x.floats[n], rows % x.extents.position, at % x.extents.feature));
    x.doubles[n] = double(x.floats[n]);
  }
}

/// Puts NaN into every key and value that no query sees. Returns whether there is one.
template <class Op>
bool poison_hidden(Op const& op, drawn_problem<Op>& p) {
  auto const in = p.template inputs<any_tensor>();
  problem_shape const all = attune::detail::checked_inputs("probe_pack", op, in);
  bool any = false;
  for (index_t b = 0; b < all.batch; ++b) {
    std::vector<bool> seen(std::size_t(all.keys), false);
    for (index_t h = 0; h < all.heads; ++h)
      for (index_t i = 0; i < all.queries; ++i) {
        mask_row const r = all.row(b, h, i);
        for (key_interval k = mask::next(op.mask, r, 0); !k.empty(); k = mask::next(op.mask, r, k.last))
          for (index_t j = k.first; j < k.last; ++j) seen[std::size_t(j)] = true;
      }
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F) && side_of(F) == input_side::key) {
        drawn_tensor& x = p.of(F);
        shape const e = x.extents;
        for (index_t h = 0; h < e.head; ++h)
          for (index_t j = 0; j < e.position; ++j)
            for (index_t d = 0; d < e.feature && !seen[std::size_t(j)]; ++d) {
              std::size_t const n = std::size_t(((b * e.head + h) * e.position + j) * e.feature + d);
              x.floats[n] = std::nanf("");
              x.doubles[n] = std::nan("");
              any = true;
            }
      }
    });
  }
  return any;
}

/// Moves all logits of a row by about `size`: up for even queries, down for odd ones. The weights of softmax stay, and
/// its exponentials do not. Returns whether the operator reads scores, or q and k.
template <class Op>
bool move_logits(Op const& op, drawn_problem<Op>& p, double size) {
  auto const up = [](index_t position) { return position % 2 == 0 ? 1. : -1.; };
  if constexpr (Op::uses(field::scores)) {
    fill(p, field::scores, [=](double x, index_t i, index_t) { return x + up(i) * size; });
    return true;
  } else if constexpr (Op::uses(field::q) && Op::uses(field::k)) {
    index_t const last = p.of(field::q).extents.feature - 1;  // a rotation turns it least, or not at all
    double scale = 1 / std::sqrt(double(last + 1));
    for (operator_parameter const& x : listed_parameters(op))
      if (x.path() == "kernel.scale" && x.at->is_set()) scale = lift<double>{}.value(*x.at, {0, 0, 0, 0});
    if (scale == 0 || !std::isfinite(scale)) return false;
    // A whole number has few bits: 16 bits round it little, and the product with itself in float not at all.
    double const root = std::ceil(std::sqrt(size / std::fabs(scale)));
    fill(p, field::q, [=](double x, index_t i, index_t d) { return d == last ? up(i) * root : x; });
    fill(p, field::k, [=](double x, index_t, index_t d) { return d == last ? root : x; });
    return true;
  } else {
    return false;
  }
}

}  // namespace detail

/// Probes for the operators that `op_of(extents)` makes at about these extents, so that masks and parameters that are
/// arrays can follow the lengths. A user's kernel can run on these inputs without changes.
/// strict: also the probes of contract_of_probe().
/// Errors: none. A probe is skipped if op_of or the operator rejects its extents with an attune::error.
template <class OpOf>
auto probe_pack_of(OpOf const& op_of, problem_extents const& e, std::uint64_t seed = 1, bool strict = false) {
  using Op = std::remove_cvref_t<decltype(op_of(e))>;
  std::vector<std::unique_ptr<probe<Op>>> all;
  detail::normal_numbers random(seed);
  auto const add = [&](char const* name, char const* reveals, problem_extents const& extents, draw_rule const& rule,
                       auto const& change) {
    auto p = std::make_unique<probe<Op>>(name, reveals, extents, random, rule);
    try {
      auto const& op = op_of(extents);
      auto const in = p->inputs_of_any();
      attune::detail::checked_inputs("probe_pack", op, in);
      if (!change(op, p->problem)) return;
    } catch (error const&) {
      return;
    }
    if (strict || contract_of_probe(name).empty()) all.push_back(std::move(p));
  };
  auto const as_drawn = [](auto const&, auto&) { return true; };
  auto const scaled = [](double factor) {
    return draw_rule([factor](field f, double x) {
      double const y = detail::drawn_by_default(f, x);
      return f == field::q || f == field::gate_q || f == field::scores || f == field::sort_q ? factor * y : y;
    });
  };
  auto const values = [](auto const& of) {
    return [of](auto const&, auto& p) {
      detail::fill(p, field::v, of);
      return true;
    };
  };
  double const keys = double(e.keys);
  add("random", "parameters, heads, masks", e, {}, as_drawn);
  add("values one", "the sum of weights: a missing or doubled key, sink and ground", e, {},
      values([](double, index_t, index_t) { return 1.; }));
  add("values one-hot", "which key got which weight", e, {},
      values([](double, index_t j, index_t d) { return j % 16 == d ? 1. : 0.; }));
  add("values index", "keys shifted, reordered or skipped", e, {},
      values([keys](double, index_t j, index_t) { return double(j) / keys; }));
  add("peaked", "large logits: references, rescaling", e, scaled(8), as_drawn);
  add("flat", "long sums; a sink or ground of a size with the keys", e, scaled(1. / 16), as_drawn);
  problem_extents two = e;
  two.keys = 2;
  two.queries = (std::min<index_t>)(e.queries, 2);
  add("two keys", "sink, ground, K: nothing is diluted", two, {}, as_drawn);
  add("two keys, flat", "a sink near the lse", two, scaled(1. / 16), as_drawn);
  for (index_t n : {63, 64, 65, 127, 128, 129}) {
    problem_extents edge = e;
    edge.keys = n;
    edge.queries = (std::min)(e.queries, n);
    add("block edge", "tails of tiles", edge, {}, as_drawn);
    if (!all.empty() && all.back()->name == "block edge") all.back()->name += " " + std::to_string(n);
  }
  add("hidden NaN", "reads what no query sees", e, {},
      [](auto const& op, auto& p) { return detail::poison_hidden(op, p); });
  // e^800 is infinite and e^-800 is 0, in double, too.
  add("logits far from 0", "exponentials that overflow, or are all 0", e, {},
      [](auto const& op, auto& p) { return detail::move_logits(op, p, 800); });
  return all;
}

/// Probes for one operator. Lengths change only where its mask and parameters allow it.
template <class Op>
std::vector<std::unique_ptr<probe<Op>>> probe_pack(Op const& op, problem_extents const& e, std::uint64_t seed = 1,
                                                   bool strict = false) {
  return probe_pack_of([&](problem_extents const&) -> Op const& { return op; }, e, seed, strict);
}

}  // namespace attune::testing
