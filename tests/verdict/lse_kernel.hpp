// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   simulated_result r = run(problem, lse_kind{...}, lse_fault::none)
//
// Kernels that normalize rows by an lse, in float on one thread: e^(s - lse) in a second pass, parts of the keys that
// are merged by their lse, and rings. The lse may be wrong. Independent of attune's code.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "simulated_kernel.hpp"

namespace attune::test {

/// A formula for `out`, which is right with the lse of the row and of its parts.
enum class lse_formula {
  two_passes,  ///< the sum of e^(s - lse) v
  splits,      ///< the sum of e^(lse_i - lse) out_i over parts i of the keys
  ring,        ///< part by part: out -= sigmoid(lse_i - lse) (out - out_i)
  count
};
inline char const* name_of(lse_formula f) {
  return f == lse_formula::two_passes ? "e^(s - lse)" : f == lse_formula::splits ? "splits" : "ring";
}

/// A way to compute it that is right.
struct lse_kind {
  lse_formula formula = lse_formula::two_passes;
  storage stored = storage::fp32;   ///< of out
  storage weights = storage::fp32;  ///< probabilities are rounded to it before they multiply values
  index_t parts = 4;                ///< of the keys
  index_t lanes = 1;                ///< partial sums
  bool base_two = false;            ///< 2^x and lse in base 2
};

/// What is wrong with the lse by which rows are normalized. The lse that the kernel returns is right.
enum class lse_fault {
  none,
  bf16,      ///< rounded to it
  fp16,      ///< the same
  base_two,  ///< e^(s - lse) with an lse in base 2
  tile,      ///< of another tile: of queries in two passes, of keys in merges
  head,      ///< of the next head
  count
};
inline char const* name_of(lse_fault f) {
  constexpr char const* names[] = {"none", "in bf16", "in fp16", "in base 2", "of another tile", "of the next head"};
  static_assert(std::size(names) == std::size_t(lse_fault::count));
  return names[int(f)];
}

namespace detail {

/// One row: softmax of parts of the keys, and their merge.
class lse_row {
 public:
  lse_row(simulated_problem const& p, lse_kind const& kind, index_t b, index_t h, index_t i)
      : p_(p), kind_(kind), dots_(kind.lanes, 1), sums_(kind.lanes, p.width), value_head_(h * p.value_heads / p.heads),
        batch_(b), count_(p.keys_of(i)) {
    float const scale = float((kind.base_two ? 1.4426950408889634 : 1) / std::sqrt(double(p.width)));
    for (index_t j = 0; j < count_; ++j)
      logits_.push_back(scale * dot(dots_, p.query(b, h, i), p.key(b, h * p.key_heads / p.heads, j), p.width));
    std::size_t const n = logits_.size(), parts = std::size_t(kind.formula == lse_formula::two_passes ? 1 : kind.parts),
                      each = (n + parts - 1) / parts;
    for (std::size_t first = 0; first < n; first += each) {
      part& x = parts_.emplace_back();
      x.first = first, x.last = std::min(n, first + each);
      x.top = *std::max_element(logits_.begin() + std::ptrdiff_t(x.first), logits_.begin() + std::ptrdiff_t(x.last));
      for (std::size_t j = x.first; j < x.last; ++j) x.sum += power(logits_[j] - x.top);
      x.lse = x.top + logarithm(x.sum);
    }
  }
  bool empty() const { return parts_.empty(); }
  std::size_t parts() const { return parts_.size(); }
  float lse_of_part(std::size_t n) const { return parts_[n].lse; }
  /// In the base of the kernel.
  float lse() const {
    float top = -INFINITY, sum = 0;
    for (part const& x : parts_) top = std::max(top, x.lse);
    if (parts_.size() == 1) return top;
    for (part const& x : parts_) sum += power(x.lse - top);
    return top + logarithm(sum);
  }
  /// `out` from an lse of the row and of each part.
  std::vector<float> out(float lse, std::vector<float> const& of_parts) {
    if (kind_.formula == lse_formula::two_passes) return weighed(parts_[0], lse, 1);
    std::vector<float> to(std::size_t(p_.width), 0);
    float running = of_parts[0];
    for (std::size_t n = 0; n < parts_.size(); ++n) {
      part const& x = parts_[n];
      std::vector<float> const one = weighed(x, x.top, x.sum);
      float const by = kind_.formula == lse_formula::splits ? power(of_parts[n] - lse) : sigmoid(of_parts[n] - running);
      for (std::size_t c = 0; c < to.size(); ++c)
        if (kind_.formula == lse_formula::splits)
          to[c] += by * one[c];
        else if (n == 0)
          to[c] = one[c];
        else
          to[c] -= by * (to[c] - one[c]);
      if (n > 0) running -= log_sigmoid(running - of_parts[n]);
    }
    return to;
  }

 private:
  struct part {
    std::size_t first = 0, last = 0;
    float top = 0, sum = 0, lse = 0;
  };
  float power(float x) const { return kind_.base_two ? std::exp2(x) : std::exp(x); }
  float logarithm(float x) const { return kind_.base_two ? std::log2(x) : std::log(x); }
  float sigmoid(float x) const { return 1 / (1 + power(-x)); }
  float log_sigmoid(float x) const {
    float const y = power(-std::fabs(x));
    return std::min(x, 0.f) - (kind_.base_two ? 1.44269504f * std::log1p(y) : std::log1p(y));
  }
  /// The sum of e^(s - reference) v over a part, divided.
  std::vector<float> weighed(part const& x, float reference, float divisor) {
    sums_.clear();
    for (std::size_t j = x.first; j < x.last; ++j) {
      float const w = float(rounded_to(kind_.weights, power(logits_[j] - reference)));
      float const* const v = p_.value(batch_, value_head_, index_t(j));
      float* const to = sums_.at(index_t(j));
      for (index_t c = 0; c < p_.width; ++c) to[c] += w * v[c];
    }
    float const* const total = sums_.total();
    std::vector<float> to(total, total + p_.width);
    for (float& y : to) y /= divisor;
    return to;
  }

  simulated_problem const& p_;
  lse_kind const& kind_;
  lane_sums dots_, sums_;
  index_t value_head_, batch_, count_;
  std::vector<float> logits_;
  std::vector<part> parts_;
};

}  // namespace detail

/// Runs a kernel.
inline simulated_result run(simulated_problem const& p, lse_kind const& kind, lse_fault fault = lse_fault::none) {
  simulated_result r;
  std::vector<detail::lse_row> rows;
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t h = 0; h < p.heads; ++h)
      for (index_t i = 0; i < p.queries; ++i) rows.emplace_back(p, kind, b, h, i);
  float const natural = kind.base_two ? 0.69314718f : 1;
  bool const merges = kind.formula != lse_formula::two_passes;
  auto const wrong = [&](float x) {
    return fault == lse_fault::bf16       ? float(rounded_to(storage::bf16, x))
           : fault == lse_fault::fp16     ? float(rounded_to(storage::fp16, x))
           : fault == lse_fault::base_two ? x * 1.44269504f
                                          : x;
  };
  for (std::size_t n = 0; n < rows.size(); ++n) {
    detail::lse_row& row = rows[n];
    std::size_t const i = n % std::size_t(p.queries), tile = (i + 16) % std::size_t(p.queries) + n - i,
                      head = (n + std::size_t(p.queries)) % rows.size();
    detail::lse_row const& other = fault == lse_fault::head              ? rows[head]
                                   : fault == lse_fault::tile && !merges ? rows[tile]
                                                                         : row;
    float const lse = row.empty() ? -INFINITY : row.lse();
    r.lse.push_back(lse * natural);
    std::vector<float> out(std::size_t(p.width), 0), of_parts;
    for (std::size_t k = 0; k < row.parts() && !other.empty(); ++k)
      of_parts.push_back(wrong(other.lse_of_part(
          std::min(fault == lse_fault::tile && merges ? (k + 1) % row.parts() : k, other.parts() - 1))));
    if (!row.empty() && !other.empty()) out = row.out(wrong(other.lse()), of_parts);
    for (float x : out) r.out.push_back(float(rounded_to(kind.stored, x)));
  }
  return r;
}

}  // namespace attune::test
