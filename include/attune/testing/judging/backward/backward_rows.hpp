// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   w = e^(a - lse),  h = <do, v>,  R = <do, out> + w0 dw0 - dlse,  da = w (h - R),  dv += w do,  <dq, dk> += da d<a>
//
// The rows of a backward pass that recomputes its weights from a saved lse, with one mistake. The lse and the row term
// come from a forward pass that is right. Each row adds its own part to the gradients, so that a mistake of some rows
// is a sum over them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/exec/reference/dense_vjp.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::testing::detail {

/// A mistake of a backward pass.
enum class backward_defect {
  whole_row,         ///< what the row adds
  logits_too_large,  ///< a derivative: logits times 1 + x
  logits_in_bf16,
  logits_in_fp16,
  weights_in_bf16,  ///< in dv alone
  weights_in_fp16,
  unnormalized_weights,  ///< in dv alone: e^(a - maximum)
  products_in_bf16,      ///< h
  products_in_fp16,
  slopes_in_bf16,  ///< da
  slopes_in_fp16,
  through_maximum,  ///< da of the largest logit lacks R once more
  row_term_missing,
  row_term_in_bf16,
  row_term_in_fp16,
  row_term_late,  ///< of the next query
  lse_late,       ///< of the next query
  mask_ignored,
  mask_top_left,
  mask_later,
  mask_earlier,
  next_key_head,
  one_head_of_group,  ///< dk and dv alone: they lack the rows of all heads but the first of each group
  count
};

/// The name of a finding.
constexpr char const* name_of(backward_defect d) {
  constexpr char const* names[] = {"whole rows",
                                   "factor of the recomputed logits",
                                   "logits rounded to bf16",
                                   "logits rounded to fp16",
                                   "probabilities rounded to bf16",
                                   "probabilities rounded to fp16",
                                   "dv from weights that are not normalized",
                                   "dP rounded to bf16",
                                   "dP rounded to fp16",
                                   "dS rounded to bf16",
                                   "dS rounded to fp16",
                                   "gradient through the maximum",
                                   "row term <dout, out> missing from dS",
                                   "row term <dout, out> rounded to bf16",
                                   "row term <dout, out> rounded to fp16",
                                   "row term <dout, out> of the next query",
                                   "saved lse of the next query",
                                   "mask ignored in the backward pass alone",
                                   "mask aligned top-left in the backward pass alone",
                                   "mask shifted by +1 in the backward pass alone",
                                   "mask shifted by -1 in the backward pass alone",
                                   "keys and values of the next key head in the backward pass alone",
                                   "gradients of one head of each group alone"};
  static_assert(std::size(names) == std::size_t(backward_defect::count));
  return names[int(d)];
}

/// Whether a mistake changes dq. The others change dv alone, or dk and dv alone.
constexpr bool changes_queries(backward_defect d) {
  return d != backward_defect::weights_in_bf16 && d != backward_defect::weights_in_fp16 &&
         d != backward_defect::unnormalized_weights && d != backward_defect::one_head_of_group;
}

/// The keys of a row that are read.
enum class row_keys {
  visible,
  all  ///< hidden keys and the next key head too
};

/// Whether a row with this mistake reads keys that it does not see, or keys of another head.
constexpr bool reads_other_keys(backward_defect d) {
  return d == backward_defect::mask_ignored || d == backward_defect::mask_top_left ||
         d == backward_defect::mask_later || d == backward_defect::mask_earlier || d == backward_defect::next_key_head;
}

/// Whether the weights of an operator are e^(a - lse), and nothing else multiplies weights, values or outputs. A policy
/// may still have another mass: compare `whole_row` with the exact gradients.
template <class Op>
concept RecomputesWeights =
    Op::has_lse && Op::contractions::size > 0 && !Op::contractions::has_derived && Op::has_plain_values &&
    !Op::has_output_gate && Op::normalizer_policy::traits.family == row_family::masses &&
    Op::normalizer_policy::traits.divided_by == divisor::sum &&
    Op::normalizer_policy::traits.reference == mass_reference::running_maximum &&
    !Op::normalizer_policy::traits.ground_mass && !Op::normalizer_policy::traits.weight_factor &&
    !Op::normalizer_policy::traits.uniform_share;

/// Adds rows to gradients: select(b, h, i), then add(defect, gradients) as often as you like. Gradients by parameters
/// and tables of the normalizer and the kernel's logit stay 0.
/// Complexity: select: O(Lk (D + Dv)); add: the same for the pairs that the defect changes.
template <RecomputesWeights Op>
class backward_rows {
  using view = any_tensor;
  using normalizer = typename Op::normalizer_policy;
  static constexpr int terms = Op::contractions::size;
  using D = dual<double, terms>;

 public:
  backward_rows(Op const& op, inputs<Op, view> const& in, problem_shape const& p, cotangents<Op, view> const& d)
      : op_(attune::detail::numbered(op)), in_(in), other_in_(in), p_(p), d_(d) {
    for (index_t b = 0; b < p.batch; ++b)
      for (index_t h = 0; h < p.heads; ++h)
        for (index_t i = 0; i < p.queries; ++i) {
          select(b, h, i, row_keys::visible);
          lse_.push_back(here_.lse), row_terms_.push_back(here_.row_term);
        }
  }
  backward_rows(backward_rows const&) = delete;  // it refers to its arguments

  /// Whether a defect changes anything in this problem.
  bool applies(backward_defect d) const {
    switch (d) {
      case backward_defect::mask_ignored:
      case backward_defect::mask_top_left:
      case backward_defect::mask_later:
      case backward_defect::mask_earlier:
        return masked;
      case backward_defect::one_head_of_group:
        return Op::uses(field::k) && p_.key_heads < p_.heads && p_.key_heads == p_.value_heads;
      case backward_defect::next_key_head:
        return Op::uses(field::k) && p_.key_heads > 1 && p_.key_heads == p_.value_heads;
      default:
        return true;
    }
  }
  /// Reads a row. row_keys::all: for mistakes that read other keys, too.
  void select(index_t b, index_t h, index_t i, row_keys keys) {
    b_ = b, h_ = h, i_ = i;
    index_t const own = p_.group(h, p_.value_heads);
    read(here_, in_, own, masked ? keys : row_keys::visible);
    if constexpr (Op::uses(field::k)) {
      if (keys == row_keys::all && applies(backward_defect::next_key_head)) {
        other_in_.k = in_.k.of_head(b, next_head());
        read(other_, other_in_, (own + 1) % p_.value_heads, row_keys::visible);
      }
    }
  }

  /// Adds the change that a defect makes in the selected row: of `whole_row`, what it adds.
  void add(backward_defect d, dense_gradients<double>& to) const {
    using is = backward_defect;
    lift<double> const numbers{};
    auto const pull = [&](inputs<Op, view> const& in, pair const& x, double weight, double slope) {
      if (slope != 0) {
        attune::detail::reference_contraction<double, Op, view> const contract{op_, in, p_, numbers};
        std::array<double, terms> by{};
        for (std::size_t c = 0; c < by.size(); ++c) by[c] = slope * x.slopes[c];
        contract.pull_all(by.data(), to, b_, h_, i_, x.key);
      }
      index_t const head = p_.group(h_, p_.value_heads);
      for (index_t c = 0; c < p_.value_width && weight != 0; ++c)
        to.add(field::v, b_, head, x.key, c, weight * by_out_[std::size_t(c)]);
    };
    std::size_t const next = row_of(b_, h_, (std::min)(i_ + 1, p_.queries - 1));
    double const R = here_.row_term;
    if (d == is::next_key_head) {
      for (pair const& x : other_.pairs) pull(other_in_, x, x.weight(here_.lse), x.weight(here_.lse) * (x.gain - R));
    }
    for (pair const& x : here_.pairs) {
      double const w = x.visible ? x.weight(here_.lse) : 0, da = w * (x.gain - R);
      double weight = w, slope = da;
      auto const again = [&](double logit, double lse, double gain, double row_term) {
        weight = x.visible ? std::exp(logit - lse) : 0;
        slope = weight * (gain - row_term);
      };
      auto const seen = [&](mask_row const& m) {
        weight = sees(m, x.key) ? x.weight(here_.lse) : 0;
        slope = weight * (x.gain - R);
      };
      auto const moved = [&](index_t by) {
        mask_row m = p_.row(b_, h_, i_);
        m.position += by;
        return m;
      };
      auto const in = [](storage s, double y) { return rounded_to(s, y); };
      switch (d) {
        case is::whole_row:
          weight = 2 * w, slope = 2 * da;
          break;
        case is::logits_too_large:
          if (w != 0) weight = w + w * x.logit, slope = da + w * x.logit * (x.gain - R);
          break;
        case is::logits_in_bf16:
        case is::logits_in_fp16:
          again(in(d == is::logits_in_bf16 ? storage::bf16 : storage::fp16, x.logit), here_.lse, x.gain, R);
          break;
        case is::weights_in_bf16:
        case is::weights_in_fp16:
          weight = in(d == is::weights_in_bf16 ? storage::bf16 : storage::fp16, w);
          break;
        case is::unnormalized_weights:
          weight = x.visible ? std::exp(x.logit - here_.largest) : 0;
          break;
        case is::products_in_bf16:
        case is::products_in_fp16:
          again(x.logit, here_.lse, in(d == is::products_in_bf16 ? storage::bf16 : storage::fp16, x.gain), R);
          break;
        case is::slopes_in_bf16:
        case is::slopes_in_fp16:
          slope = in(d == is::slopes_in_bf16 ? storage::bf16 : storage::fp16, da);
          break;
        case is::through_maximum:
          if (x.key == here_.largest_key) slope -= R;
          break;
        case is::row_term_missing:
          again(x.logit, here_.lse, x.gain, 0);
          break;
        case is::row_term_in_bf16:
        case is::row_term_in_fp16:
          again(x.logit, here_.lse, x.gain, in(d == is::row_term_in_bf16 ? storage::bf16 : storage::fp16, R));
          break;
        case is::row_term_late:
          again(x.logit, here_.lse, x.gain, row_terms_[next]);
          break;
        case is::lse_late:
          again(x.logit, lse_[next], x.gain, R);
          break;
        case is::mask_ignored:
          weight = x.weight(here_.lse), slope = weight * (x.gain - R);
          break;
        case is::mask_top_left: {
          mask_row m = p_.row(b_, h_, i_);
          m.position = i_;
          seen(m);
          break;
        }
        case is::mask_later:
          seen(moved(1));
          break;
        case is::mask_earlier:
          seen(moved(-1));
          break;
        case is::one_head_of_group:
          if (h_ % (p_.heads / p_.key_heads) != 0) weight = slope = 0;
          break;
        default:
          weight = slope = 0;  // of another key head
      }
      if (weight != w || slope != da) pull(in_, x, weight == w ? 0 : weight - w, slope == da ? 0 : slope - da);
    }
  }

  /// Calls visit(key, what it adds to dq) for each visible key of the selected row.
  template <class Visit>
  void for_each_key(dense_gradients<double>& scratch, Visit const& visit) const {
    lift<double> const numbers{};
    attune::detail::reference_contraction<double, Op, view> const contract{op_, in_, p_, numbers};
    auto& q = scratch.of(field::q);
    std::size_t const first = std::size_t(q.at(b_, h_, i_, 0)), width = std::size_t(q.extents.feature);
    for (pair const& x : here_.pairs) {
      if (!x.visible) continue;
      double const da = x.weight(here_.lse) * (x.gain - here_.row_term);
      std::array<double, terms> by{};
      for (std::size_t c = 0; c < by.size(); ++c) by[c] = da * x.slopes[c];
      std::fill_n(q.values.begin() + std::ptrdiff_t(first), width, 0.);
      contract.pull_all(by.data(), scratch, b_, h_, i_, x.key);
      visit(x.key, q.values.data() + first);
    }
  }

 private:
  static constexpr bool masked = !std::is_same_v<typename Op::mask_policy, mask::none>;

  /// A key that the row sees, or may see by mistake.
  struct pair {
    index_t key = 0;
    bool visible = true;
    double logit = 0, gain = 0;          ///< gain: h
    std::array<double, terms> slopes{};  ///< of the logit, by the contractions
    double weight(double lse) const { return std::exp(logit - lse); }
  };
  struct row_numbers {
    std::vector<pair> pairs;
    double lse = 0, row_term = 0, largest = 0;
    index_t largest_key = -1;
  };

  bool sees(mask_row const& m, index_t j) const {
    key_interval const k = mask::next(op_.mask, m, j);
    return !k.empty() && k.first <= j;
  }
  index_t next_head() const { return (p_.group(h_, p_.key_heads) + 1) % p_.key_heads; }
  std::size_t row_of(index_t b, index_t h, index_t i) const { return std::size_t((b * p_.heads + h) * p_.queries + i); }

  void read(row_numbers& to, inputs<Op, view> const& in, index_t head, row_keys keys) {
    bool const hidden = keys == row_keys::all;
    row<D> const moving = attune::detail::scalar_row<D>(p_, op_.mask, b_, h_, i_);
    row<double> const plain = attune::detail::scalar_row<double>(p_, op_.mask, b_, h_, i_);
    auto const f = op_.bind(moving);
    auto const bound = op_.bind(plain);
    lift<double> const numbers{};
    attune::detail::reference_contraction<double, Op, view> const contract{op_, in, p_, numbers};
    by_out_.assign(std::size_t(p_.value_width), 0);
    if (!d_.out.absent())
      for (index_t c = 0; c < p_.value_width; ++c) by_out_[std::size_t(c)] = d_.out(b_, h_, i_, c);
    to.pairs.clear();
    attune::detail::visible_keys<double> seen;
    std::vector<double> gains;
    to.largest = -math::infinity<double>(), to.largest_key = -1;
    mask_row const m = p_.row(b_, h_, i_);
    auto const add = [&](index_t j, bool visible) {
      double x[terms];
      D duals[terms];
      contract.all(x, b_, h_, i_, j);
      for (int c = 0; c < terms; ++c) duals[c] = D::variable(x[c], c);
      D const a = f.logit(duals, key<D>{D(double(j))});
      pair& to_pair = to.pairs.emplace_back();
      to_pair.key = j, to_pair.visible = visible, to_pair.logit = a.value;
      for (int c = 0; c < terms; ++c) to_pair.slopes[std::size_t(c)] = a.tangent[c];
      for (index_t c = 0; c < p_.value_width; ++c) to_pair.gain += by_out_[std::size_t(c)] * in.v(b_, head, j, c);
      if (!visible) return;
      seen.keys.push_back(j), seen.logits.push_back(a.value), gains.push_back(to_pair.gain);
      if (a.value > to.largest) to.largest = a.value, to.largest_key = j;
    };
    index_t from = 0;
    for (key_interval k = mask::next(op_.mask, m, 0); !k.empty(); k = mask::next(op_.mask, m, k.last)) {
      for (index_t j = from; j < k.first && hidden; ++j) add(j, false);
      for (index_t j = k.first; j < k.last; ++j) add(j, true);
      from = k.last;
    }
    for (index_t j = from; j < p_.keys && hidden; ++j) add(j, false);
    auto const w = attune::detail::weigh<normalizer>(bound.normalizer, seen, plain.visible);
    to.lse = w.lse;
    to.row_term = 0;
    for (std::size_t n = 0; n < gains.size(); ++n)
      if (w.weights[n] != 0) to.row_term += w.weights[n] * gains[n];
    if constexpr (Op::has_ground_weight) {
      double ground = d_.ground_weight.absent() ? 0 : d_.ground_weight(b_, h_, i_, 0);
      if constexpr (Op::uses(field::v0))
        for (index_t c = 0; c < p_.value_width; ++c)
          ground += by_out_[std::size_t(c)] * attune::detail::read_shared<double>(in.v0, b_, h_, i_, c);
      to.row_term += w.ground_weight * ground;
    }
    if (!d_.lse.absent()) to.row_term -= d_.lse(b_, h_, i_, 0);
  }

  Op op_;
  inputs<Op, view> const& in_;
  inputs<Op, view> other_in_;
  problem_shape const& p_;
  cotangents<Op, view> const& d_;
  index_t b_ = 0, h_ = 0, i_ = 0;
  row_numbers here_, other_;
  std::vector<double> by_out_, lse_, row_terms_;
};

}  // namespace attune::testing::detail
