// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sums over the few keys of a query that are not in its rectangles, by position
//
// A scan pays off for rectangles of a few hundred rows. The fused CPU executor computes smaller sets faster, pair by
// pair, in double like the scans. Sums in other types, which only check the others, compute their pairs one at a time.
#pragma once

#include <vector>

#include <attune/line/order/key_order.hpp>

namespace attune::line::detail {

/// Keys of a head that are computed pair by pair. Scores: laplacian_scores or relu_scores.
template <class T, class Arch, class Scores>
class near_pairs {
  using problem_type = part_problem<double, T, Scores>;
  static constexpr index_t queries_of_call = 1024;

 public:
  /// Stretches shorter than this are computed pair by pair.
  static constexpr index_t most_keys = 128;

  near_pairs(arrays<T> const& in, extents const& e, index_t b, index_t h, double tau)
      : width_(e.width), stretches_(e.queries), head_{head_tensors<T>::of_head(in.sort_q, b, h),
                                                      head_tensors<T>::of_head(in.sort_k, b, e.key_head(h)),
                                                      {},
                                                      {},
                                                      head_tensors<T>::of_head(in.v, b, e.value_head(h)),
                                                      std::vector<double>(std::size_t(e.queries), tau),
                                                      std::vector<double>(std::size_t(e.queries), 1.0)},
        one_(1, e.width + 1) {}

  void add(index_t i, index_t first, index_t last) { stretches_.add(i, first, last); }
  void clear() { stretches_.clear(); }

  /// Calls join(i, reference, row) with sums (values, mass) relative to e^reference.
  template <class Join>
  void forward(Join const& join) {
    stretches_.for_each_part(queries_of_call, [&](key_order_part const& part) {
      problem_type const problem(head_, part);
      auto const states = accumulate(exec_, problem.op(), problem.in(), {0, index_t(part.keys.size())});
      for (std::size_t r = 0; r < part.queries.size(); ++r) {
        if (states.earned[r] == 0) continue;
        std::copy_n(states.acc.begin() + index_t(r) * problem.value_width(), problem.value_width(), one_[0]);
        one_[0][width_] = states.earned[r];
        join(part.queries[r], states.reference[r], one_[0]);
      }
    });
  }
  /// Adds to the gradients of <pulls_i, sum_j w_ij (v_j, 1)> by scalars, in units of `unit`, and by values. w =
  /// e^(score - reference), or max(q - k, 0).
  void backward(rows<double> const& pulls, std::vector<double> const& reference, double unit, std::vector<double>& dq,
                std::vector<double>& dk, rows<double>& dv) {
    std::vector<double> out, mass;
    stretches_.for_each_part(queries_of_call, [&](key_order_part const& part) {
      problem_type const problem(head_, part);
      auto saved = problem.blank_states();
      index_t const n = index_t(part.queries.size());
      out.clear();
      mass.clear();
      for (std::size_t r = 0; r < part.queries.size(); ++r) {
        index_t const i = part.queries[r];
        out.insert(out.end(), pulls[i], pulls[i] + problem.value_width());
        mass.push_back(pulls[i][width_]);
        saved.earned[r] =
            1;  // with value sum 0 and the pull of the mass as the lse's, each pair gets the slope needed here
        saved.reference[r] = Scores::is_divided ? reference[std::size_t(i)] : 0;
      }
      attune::cotangents<typename problem_type::op_type, tensor<double const>> by;
      by.out = problem_type::view(out, n, problem.value_width());
      if constexpr (Scores::is_divided) by.lse = problem_type::view(mass, n, 1);
      auto const g = vjp(exec_, problem.op(), problem.in(), saved, by);
      for (index_t r = 0; r < n; ++r)
        dq[std::size_t(part.queries[std::size_t(r)])] += g.of(field::sort_q)(0, 0, r, 0) / unit;
      for (index_t r = 0; r < index_t(part.keys.size()); ++r) {
        index_t const j = part.keys[std::size_t(r)];
        dk[std::size_t(j)] += g.of(field::sort_k)(0, 0, r, 0) / unit;
        for (index_t d = 0; d < width_; ++d) dv[j][d] += g.of(field::v)(0, 0, r, d);
      }
    });
  }

 private:
  index_t width_;
  cpu<double, Arch> exec_{1};
  near_stretches stretches_;
  head_tensors<T> head_;
  rows<double> one_;
};

/// For sums in other types than double: no near pairs.
struct no_near_pairs {
  static constexpr index_t most_keys = shortest_block;
  template <class... Any>
  explicit no_near_pairs(Any const&...) {}
};
template <class T, class Arch, class Scores>
using near_pairs_of = std::conditional_t<std::is_same_v<wide<T>, double>, near_pairs<T, Arch, Scores>, no_near_pairs>;

}  // namespace attune::line::detail
