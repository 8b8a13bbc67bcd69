// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Gradients by products of bf16: how they are called, compared with one another, and held to their bound.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include <support/random.hpp>

#include <attune/certify/gradient_bound.hpp>
#include <attune/exec/cpu/gradients/bf16/backward.hpp>

#include "problems.hpp"

namespace attune::test {

template <class T, class Unit>
using products_of = cpu_bf16_products<xsimd::default_arch, T, Unit>;

/// The cotangents of a problem, as numbers of bf16.
template <class Op>
class rounded_cotangents {
 public:
  explicit rounded_cotangents(problem<Op> const& p)
      : out(p.by_out()), lse(p.by_lse()), ground_weight(p.by_ground_weight()) {
    for (std::size_t n = 0; n < out.doubles.size(); ++n)
      out.doubles[n] = double(out.floats[n] = float(bfloat16(out.floats[n])));
    for (float const x : out.floats) stored_.push_back(bfloat16(x));
  }
  template <class View>
  attune::cotangents<Op, View> of() const {
    attune::cotangents<Op, View> d;
    d.out = out.template view<View>();
    if constexpr (Op::has_lse) d.lse = lse.template view<View>();
    if constexpr (Op::has_ground_weight) d.ground_weight = ground_weight.template view<View>();
    return d;
  }
  attune::cotangents<Op, tensor<bfloat16 const>> stored() const {
    attune::cotangents<Op, tensor<bfloat16 const>> d;
    d.out = tensor<bfloat16 const>(stored_.data(), out.extents);
    if constexpr (Op::has_lse) d.lse = lse.template view<tensor<float const>>();
    if constexpr (Op::has_ground_weight) d.ground_weight = ground_weight.template view<tensor<float const>>();
    return d;
  }

  attune::testing::detail::drawn_tensor out, lse, ground_weight;

 private:
  std::vector<bfloat16> stored_;
};

/// Calls visit(name, array) for every gradient.
template <class Gradients, class Visit>
void each_gradient(Gradients const& g, Visit const& visit) {
  for (std::size_t f = 0; f < g.fields.size(); ++f) visit(attune::detail::text("field ", int(f)), g.fields[f].values);
  for (auto const& x : g.parameters) visit(x.path, x.values.values);
  for (auto const& x : g.tables) visit(x.path, x.values.values);
}
/// The first gradient in which two results differ; "" if all numbers are equal. NaN is as good as NaN.
inline std::string different(dense_gradients<float> const& a, dense_gradients<float> const& b) {
  std::vector<std::vector<float>> others;
  each_gradient(b, [&](std::string const&, std::vector<float> const& x) { others.push_back(x); });
  std::size_t n = 0;
  std::string where;
  each_gradient(a, [&](std::string const& name, std::vector<float> const& x) {
    auto const& y = others[n++];
    bool const same = std::equal(x.begin(), x.end(), y.begin(), y.end(),
                                 [](float u, float v) { return u == v || (std::isnan(u) && std::isnan(v)); });
    if (!same && where.empty()) where = name;
  });
  return where;
}

/// Gradients by the inputs as bf16.
template <class Op>
struct stored_gradients {
  std::array<std::vector<bfloat16>, field_count> fields;
  gradient_outputs<Op, bfloat16> to;
  explicit stored_gradients(problem<Op> const& p) {
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F)) {
        shape const e = p.of(F).extents;
        fields[std::size_t(F)].resize(std::size_t(e.size()));
        to.of(F) = tensor<bfloat16>(fields[std::size_t(F)].data(), e);
      }
    });
  }
  stored_gradients(stored_gradients const&) = delete;
  stored_gradients& operator=(stored_gradients const&) = delete;
  /// Whether they are the rounded numbers of `g`.
  bool are(dense_gradients<float> const& g) const {
    for (std::size_t f = 0; f < fields.size(); ++f)
      for (std::size_t n = 0; n < fields[f].size(); ++n)
        if (bfloat16 const x(g.fields[f].values[n]);
            !(x.bits == fields[f][n].bits || (std::isnan(float(x)) && std::isnan(float(fields[f][n])))))
          return false;
    return true;
  }
};

/// What the bound allows for `gates` gates of values and outputs whose factors are rounded into products (u = 2^-8): u of
/// each term of the gradients by values and by gates; and h_j - R is off by at most 2 u max_j sum_d |do_d| |v_jd|, do and
/// v after the gates, by which every logit's gradient p_j (h_j - R) moves like a cotangent of the lse.
template <class Op>
dense_gradients<certify::rounded> gate_allowance(Op const& op, problem<Op> const& p,
                                                 cotangents<Op, any_tensor> const& d, int gates) {
  using certify::rounded;
  auto const in = p.template inputs<any_tensor>();
  problem_shape const shapes = attune::detail::checked_problem("gate_allowance", op, in, p.extents());
  auto sum = attune::detail::dense_vjp<rounded>(op, in, shapes, d);
  for (std::size_t f = 0; f < sum.fields.size(); ++f) {
    bool const terms = field(f) == field::v || field(f) == field::value_gate || field(f) == field::output_gate;
    for (rounded& x : sum.fields[f].values) x = rounded(terms ? gates * 0x1p-8 * x.size : 0.0);
  }
  std::vector<double> off;
  for (index_t b = 0; b < shapes.batch; ++b)
    for (index_t h = 0; h < shapes.heads; ++h)
      for (index_t i = 0; i < shapes.queries; ++i) {
        double most = 0;
        for (index_t j = 0; j < shapes.keys; ++j) {
          double one = 0;  // factors of the gates are at most 1
          for (index_t c = 0; c < shapes.value_width; ++c)
            one += std::fabs(d.out(b, h, i, c) * in.v(b, shapes.group(h, shapes.value_heads), j, c));
          most = (std::max)(most, one);
        }
        off.push_back(2 * gates * 0x1p-8 * most);
      }
  if constexpr (Op::has_lse) {
    cotangents<Op, any_tensor> by_lse;
    by_lse.lse = tensor<double const>(off, {shapes.batch, shapes.heads, shapes.queries, 1});
    auto const rows = attune::detail::dense_vjp<rounded>(op, in, shapes, by_lse);
    for (std::size_t f = 0; f < sum.fields.size(); ++f)
      for (std::size_t n = 0; n < sum.fields[f].values.size(); ++n)
        sum.fields[f].values[n] = rounded(sum.fields[f].values[n].size + rows.fields[f].values[n].size);
  }
  return sum;
}

/// Where gradients leave their bound (docs/reference/error_bounds.md); "" nowhere. gates: of values and outputs.
/// largest: raised to the largest share of a bound that was used.
template <class Op>
std::string beyond_gradient_bound(dense_gradients<float> const& got, Op const& op, problem<Op> const& p,
                                  cotangents<Op, any_tensor> const& d, int gates = 0, double* largest = nullptr) {
  using certify::storage;
  auto const bound = certify::gradient_error_bound(op, p.template inputs<any_tensor>(), d,
                                                   {storage::fp32, storage::fp32, storage::bf16});
  dense_gradients<certify::rounded> more;
  if (gates > 0) more = gate_allowance(op, p, d, gates);
  std::string wrong;
  auto const check = [&](std::string const& name, auto const& bounds, std::vector<float> const& x,
                         std::vector<certify::rounded> const& allowed) {
    for (std::size_t n = 0; n < bounds.size(); ++n) {
      double const error = std::fabs(double(x[n]) - bounds[n].value),
                   off = bounds[n].bound + (allowed.empty() ? 0 : allowed[n].size);
      if (!std::isfinite(bounds[n].value) || !std::isfinite(off)) continue;
      if (largest != nullptr && off > 0) *largest = (std::max)(*largest, error / off);
      if (!(error <= off) && wrong.empty())
        wrong = attune::detail::text(name, " [", n, "]: ", x[n], ", not ", bounds[n].value, " +- ", off);
    }
  };
  for (std::size_t f = 0; f < got.fields.size(); ++f)
    check(attune::detail::text("field ", int(f)), bound.fields[f], got.fields[f].values,
          gates > 0 ? more.fields[f].values : std::vector<certify::rounded>());
  for (std::size_t n = 0; n < got.parameters.size(); ++n)
    check(got.parameters[n].path, bound.parameters[n].numbers, got.parameters[n].values.values, {});
  for (std::size_t n = 0; n < got.tables.size(); ++n)
    check(got.tables[n].path, bound.tables[n].numbers, got.tables[n].values.values, {});
  return wrong;
}

/// One problem under every mask. gates: of values and outputs; values are then positive.
template <class Unit, class Op>
void check_backward_of(Op op, problem_extents const& e, int gates) {
  attune::testing::detail::normal_numbers random(41);
  double largest = 0;
  for (sees kind : every_mask) {
    table_mask const mask(kind, e);
    op.mask = mask.mask();
    problem<Op> p(e, random);
    round_to_bf16(p);
    if (gates > 0) p.change(field::v, [](double x, index_t, index_t, index_t) { return std::fabs(x); });
    rounded_cotangents<Op> const d(p);
    products_of<float, Unit> const one(cpu<float>(1)), two(cpu<float>(2));
    auto const in = [&] { return p.template inputs<tensor<float const>>(); };
    auto const by = d.template of<tensor<float const>>();
    auto const g = vjp(one, op, in(), by);
    std::string const where =
        attune::detail::text("mask ", int(kind), ", H ", e.heads, "/", e.key_heads, "/", e.value_heads, ", Lq ",
                             e.queries, ", Lk ", e.keys, ", D ", e.width, "/", e.value_width);
    std::string const wrong = beyond_gradient_bound(g, op, p, d.template of<any_tensor>(), gates, &largest);
    CHECK_MESSAGE(wrong == "", where << ": " << wrong);
    CHECK_MESSAGE(different(g, vjp(two, op, in(), by)) == "", where << ": two threads");
    std::vector<float> out(std::size_t(p.extents().size()));
    auto const saved = forward_and_save(one, op, in(), {.out = tensor<float>(out, p.extents())});
    CHECK_MESSAGE(different(g, vjp(two, op, in(), saved, by)) == "", where << ": saved rows");
    for (index_t apart : {1, 2}) {
      stored_gradients<Op> to(p);
      vjp(products_of<bfloat16, Unit>(cpu<bfloat16>(1)), op, stored_problem(p, apart)(), d.stored(), to.to);
      CHECK_MESSAGE(to.are(g), where << ": bf16 tensors, features " << apart << " apart");
    }
    using twin = typename Unit::twin;
    if constexpr (!std::is_same_v<Unit, twin>)
      CHECK_MESSAGE(different(g, vjp(products_of<float, twin>(cpu<float>(1)), op, in(), by)) == "",
                    where << ": the twin");
    p.poison(mask);
    CHECK_MESSAGE(different(g, vjp(one, op, in(), by)) == "", where << ": garbage changed bits");
  }
  MESSAGE("largest share of a bound: " << largest);
}
template <class Op>
void check_backward(Op const& op, problem_extents const& e, int gates = 0) {
  check_backward_of<bf16_emulated>(op, e, gates);
  if constexpr (bf16_instructions::there) check_backward_of<bf16_instructions>(op, e, gates);
}
/// The same by tiles.
template <class Op>
void check_backward_of_tiles(Op const& op, problem_extents const& e, int gates = 0) {
  check_backward_of<amx_emulated>(op, e, gates);
  if constexpr (amx_tiles::there) check_backward_of<amx_tiles>(op, e, gates);
}

/// One random problem: forward and backward within their bounds, the same bits by two threads.
template <class Unit = bf16_emulated, class Op>
void check_drawn(Op op, std::uint64_t seed, int gates, double* largest) {
  rng random(seed);
  attune::testing::detail::normal_numbers numbers(seed);
  auto const from = [&](int low, int high) { return index_t(random.between(low, high)); };
  index_t const groups = from(1, 2);
  problem_extents e{.batch = from(1, 2),
                    .heads = groups * from(1, 2),
                    .queries = from(1, random.chance(0.1) ? 40 : 12),
                    .keys = from(1, random.chance(0.1) ? 140 : 24),
                    .width = from(1, 12),
                    .value_width = from(1, 20),
                    .key_heads = random.chance(0.5) ? groups : 1};
  sees const kind = every_mask[random.between(0, index(std::size(every_mask)) - 1)];
  table_mask const mask(kind, e);
  op.mask = mask.mask();
  problem<Op> p(e, numbers);
  round_to_bf16(p);
  if (gates > 0) p.change(field::v, [](double x, index_t, index_t, index_t) { return std::fabs(x); });
  rounded_cotangents<Op> const d(p);
  products_of<float, Unit> const one(cpu<float>(1)), two(cpu<float>(2));
  auto const in = p.template inputs<tensor<float const>>();
  auto const by = d.template of<tensor<float const>>();
  auto const g = vjp(one, op, in, by);
  std::string wrong = beyond_gradient_bound(g, op, p, d.template of<any_tensor>(), gates, largest);
  auto const out = written_by<float>(op, p.extents(), [&](auto const& to) { forward(one, op, in, to); });
  if (wrong.empty()) wrong = beyond_bound(out, op, p, 1 + (Op::has_value_gate ? 1 : 0));
  if (wrong.empty() && different(g, vjp(two, op, in, by)) != "") wrong = "two threads";
  CHECK_MESSAGE(wrong == "", "seed " << seed << ", mask " << int(kind) << ": " << wrong);
}
}  // namespace attune::test
