// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   s = statistics(exec, op, in, rows, {.columns = true, .above = 0.1}):   statistics of attention's rows and keys
//
// Numbers per row and per key, linear in Lq and Lk, in plain arrays: you can send them as they are. The statistics of
// disjoint sets of keys merge into the statistics of all keys.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/exec/saved.hpp>

namespace attune {

/// Which statistics to compute in addition to those that cost nothing.
struct statistics_request {
  bool entropy = true;               ///< costs a logarithm per pair
  bool columns = false;              ///< the weight that each key received from all queries
  std::optional<double> above = {};  ///< counts a row's weights above this number, rounded to the executor's scalar

  friend bool operator==(statistics_request const&, statistics_request const&) = default;
};

/// Statistics of (B, H, Lq) rows of logits a and weights w, and of (B, H, Lk) columns of weights. A row consists of its
/// visible keys: masked keys count nowhere. `at(b, h, i)` is the index of a row, `at_key(b, h, j)` the index of a key.
///
/// A key of logit -inf counts only in the weights (0, or its uniform share). If no key of a row counts (no visible key,
/// or all logits -inf), its logits are -inf, its mass and entropy are 0, and its ground weight follows the contract
/// (docs/reference/contracts.md). NaN means that a logit or weight is NaN, or that the number does not exist: the
/// entropy if a weight is negative. The highest logit of a row with a NaN logit is NaN. A NaN row makes the columns of
/// the keys that it sees NaN, and no others.
template <class T>
struct row_statistics {
  problem_shape extents;          ///< of the call
  statistics_request request;     ///< what was computed
  std::vector<T> highest_logit;   ///< max a, row constant included
  std::vector<T> mean_logit;      ///< over the `scored` keys
  std::vector<index_t> scored;    ///< visible keys whose logit is not -inf; exact below 2^24 (float) or 2^53 (double)
  std::vector<T> highest_weight;  ///< max w; -inf without a visible key
  std::vector<T> mass;            ///< sum w
  std::vector<T> first_key;       ///< the weight of key 0 (the first token); 0 where the mask hides it
  std::vector<T> ground_weight;   ///< w0; 0 where the operator has none
  std::vector<T> entropy;         ///< -sum w log w in nats, 0 log 0 = 0, w not renormalized; if requested
  std::vector<index_t> above;     ///< visible keys with w > request.above; if requested
  std::vector<T> columns;         ///< (B, H, Lk): sum of w over the queries; if requested

  row_statistics() = default;
  /// Statistics of no keys: the unit of `merge`, except for the ground weight.
  row_statistics(problem_shape const& p, statistics_request const& r)
      : extents(p), request(r), highest_logit(std::size_t(p.batch * p.heads * p.row_count()), T(-math::infinity<T>())),
        mean_logit(highest_logit), scored(highest_logit.size(), 0), highest_weight(highest_logit),
        mass(highest_logit.size(), T(0)), first_key(mass), ground_weight(mass),
        entropy(r.entropy ? mass.size() : 0, T(0)), above(r.above ? mass.size() : 0, 0),
        columns(r.columns ? std::size_t(p.batch * p.heads * p.keys) : 0, T(0)) {}

  /// The index of row (b, h, i).
  index_t at(index_t b, index_t h, index_t i) const {
    return (b * extents.heads + h) * extents.row_count() + i - extents.first_query;
  }
  /// The index of key j in `columns`.
  index_t at_key(index_t b, index_t h, index_t j) const { return (b * extents.heads + h) * extents.keys + j; }

  /// The entropy of w / sum w, in nats: H / sum w + log sum w. 0 in a row without mass.
  T normalized_entropy(index_t row) const {
    if (!request.entropy) throw error("row_statistics", "entropy", "no numbers", "a request with .entropy = true");
    T const sum = mass[std::size_t(row)], h = entropy[std::size_t(row)];
    return sum == T(0) && h == T(0) ? T(0) : T(h / sum + math::log(sum));
  }
  /// e to the entropy of w / sum w: the number of keys that have this entropy if they share the row's mass equally. 0
  /// in a row without mass.
  T effective_keys(index_t row) const {
    T const h = normalized_entropy(row);
    return mass[std::size_t(row)] == T(0) ? T(h * T(0)) : math::exp(h);
  }
};

namespace detail {

/// The larger number; NaN if either is NaN, which math::larger would drop.
template <class T>
T larger_or_nan(T const& a, T const& b) {
  return b == b ? math::larger(a, b) : b;
}

/// The maximum, or NaN if the sum is NaN: a maximum drops NaN.
template <class V>
ATTUNE_HD V or_nan(V const& maximum, V const& sum) {
  return math::select(sum == sum, maximum, sum);
}

inline void check_request(char const* function, statistics_request const& r) {
  if (r.above && std::isnan(*r.above)) throw error(function, ".above", "the value nan", "a number");
}

/// The extents of a fused call, after all checks.
template <class T, class Op>
problem_shape checked_statistics(Op const& op, inputs<Op, tensor<T const>> const& in, saved_rows<T, Op> const& saved,
                                 statistics_request const& request, key_interval keys,
                                 memory_kind where = memory_kind::host) {
  problem_shape const p = checked_inputs("statistics", op, in, where);
  require_interval("statistics", keys, p);
  check_request("statistics", request);
  if constexpr (Op::contractions::has_derived)
    if (!(keys == key_interval{0, p.keys}))
      throw error("statistics", "keys", attune::detail::text("the interval [", keys.first, ", ", keys.last, ")"),
                  attune::detail::text("[0, ", p.keys, "): an ordered sum needs all keys"));
  shape const rows{p.batch, p.heads, p.queries, p.value_width};
  if (!(rows_of(saved) == rows))
    throw error("statistics", "saved", attune::detail::text("rows of shape ", to_string(rows_of(saved))),
                attune::detail::text(to_string(rows), ", those of the inputs"));
  return p;
}

}  // namespace detail

/// The statistics of both sets of keys. The sets must not share a key. Both statistics must be computed with the saved
/// rows of all keys. The ground weight is a property of the whole row: it is taken from the first. Associative and
/// commutative up to rounding.
/// Throws attune::error unless both belong to calls with the same extents and request.
template <class T>
row_statistics<T> merge(row_statistics<T> a, row_statistics<T> const& b) {
  detail::require_same_rows(a, b);
  if (a.extents.keys != b.extents.keys)
    throw error("merge", "the second part", detail::text(b.extents.keys, " keys"),
                detail::text(a.extents.keys, ", as the first: both count the keys of the whole problem"));
  if (!(a.request == b.request)) throw error("merge", "the second part", "another request", "that of the first");
  auto const add = [](auto& to, auto const& from) {
    for (std::size_t n = 0; n < to.size(); ++n) to[n] = to[n] + from[n];
  };
  for (std::size_t n = 0; n < a.mass.size(); ++n) {
    a.highest_logit[n] = detail::larger_or_nan(a.highest_logit[n], b.highest_logit[n]);
    a.highest_weight[n] = detail::larger_or_nan(a.highest_weight[n], b.highest_weight[n]);
    if (b.scored[n] == 0) continue;
    T const all = T(double(a.scored[n] + b.scored[n])), share = T(double(b.scored[n])) / all;
    a.mean_logit[n] = a.scored[n] == 0 ? b.mean_logit[n]
                                       : T(a.mean_logit[n] * (T(double(a.scored[n])) / all) + b.mean_logit[n] * share);
  }
  add(a.scored, b.scored);
  add(a.mass, b.mass);
  add(a.first_key, b.first_key);
  add(a.entropy, b.entropy);
  add(a.above, b.above);
  add(a.columns, b.columns);
  return a;
}

/// Means over the rows of one head. NaN for statistics that were not requested.
template <class T>
struct head_statistics {
  index_t rows = 0;  ///< the number of rows averaged; if 0, the means are 0
  // Means of the members of row_statistics of the same name.
  T highest_logit = T(0),         ///< of max a
      mean_logit = T(0),          ///< of the mean of a
      highest_weight = T(0),      ///< of max w
      mass = T(0),                ///< of sum w
      first_key = T(0),           ///< of the weight of key 0
      ground_weight = T(0);       ///< of w0
  T entropy = T(0),               ///< of the entropy, in nats
      normalized_entropy = T(0),  ///< of the entropy of w / sum w, in nats
      effective_keys = T(0),      ///< of e^normalized_entropy
      above = T(0);               ///< of the number of weights above request.above
};

/// Statistics of each of the H heads: means over all batches and queries in which any key counts (`scored` > 0). Empty
/// rows are excluded, NaN rows are not.
template <class T>
std::vector<head_statistics<T>> head_means(row_statistics<T> const& s) {
  using wide = std::conditional_t<std::is_same_v<T, float>, double, T>;  // for a sum of a million rows
  problem_shape const& p = s.extents;
  std::vector<head_statistics<T>> heads(std::size_t(p.heads));
  for (index_t h = 0; h < p.heads; ++h) {
    head_statistics<wide> sum;
    for (index_t b = 0; b < p.batch; ++b)
      for (index_t i = 0; i < p.queries; ++i) {
        index_t const row = s.at(b, h, i);
        auto const n = std::size_t(row);
        if (s.scored[n] == 0) continue;
        ++sum.rows;
        auto const add = [](wide& to, T const& x) { to = to + wide(x); };
        add(sum.highest_logit, s.highest_logit[n]);
        add(sum.mean_logit, s.mean_logit[n]);
        add(sum.highest_weight, s.highest_weight[n]);
        add(sum.mass, s.mass[n]);
        add(sum.first_key, s.first_key[n]);
        add(sum.ground_weight, s.ground_weight[n]);
        if (s.request.entropy) {
          add(sum.entropy, s.entropy[n]);
          add(sum.normalized_entropy, s.normalized_entropy(row));
          add(sum.effective_keys, s.effective_keys(row));
        }
        if (s.request.above) add(sum.above, T(double(s.above[n])));
      }
    auto const mean = [&](wide const& x) { return sum.rows == 0 ? T(0) : T(x / wide(double(sum.rows))); };
    auto const asked = [&](bool yes, wide const& x) { return yes ? mean(x) : std::numeric_limits<T>::quiet_NaN(); };
    heads[std::size_t(h)] = {sum.rows,
                             mean(sum.highest_logit),
                             mean(sum.mean_logit),
                             mean(sum.highest_weight),
                             mean(sum.mass),
                             mean(sum.first_key),
                             mean(sum.ground_weight),
                             asked(s.request.entropy, sum.entropy),
                             asked(s.request.entropy, sum.normalized_entropy),
                             asked(s.request.entropy, sum.effective_keys),
                             asked(s.request.above.has_value(), sum.above)};
  }
  return heads;
}

}  // namespace attune
