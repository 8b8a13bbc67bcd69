// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Scalar Sort Attention: caches, grouping, eviction, the hybrid.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <boost/multiprecision/cpp_bin_float.hpp>

#include <attune/analysis/row_shape.hpp>
#include <attune/analysis/similarity.hpp>
#include <attune/exec/reference/forward.hpp>
#include <attune/line/sorted_cache.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies/normalizer/generic.hpp>

#include "common.hpp"

namespace ledger {
namespace {

double weighted_mean(numbers const& w, numbers const& v) { return analysis::dot(w, v); }

void shared_store(evidence& e) {
  rng draw(3);
  numbers const first = draw.normals(8), second = draw.normals(8);
  std::vector<std::size_t> order(8);
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return first[a] < first[b]; });
  int descents = 0;
  for (std::size_t i = 1; i < 8; ++i)
    if (second[order[i]] < second[order[i - 1]]) ++descents;
  e.refute(descents > 0, "eight random keys of head 2 in the order of head 1 descend ", descents,
           " times: no binary search");
  e.on_random("a permutation per head over the shared values finds every key", [](rng& random) {
    numbers const keys = random.normals(8);
    std::vector<std::size_t> own(8);
    std::iota(own.begin(), own.end(), std::size_t(0));
    std::sort(own.begin(), own.end(), [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
    auto const wanted = std::size_t(random.between(0, 7));
    auto const at =
        std::lower_bound(own.begin(), own.end(), keys[wanted], [&](std::size_t j, double q) { return keys[j] < q; });
    return *at == wanted;
  });
}

/// Numbers per token: `heads` heads that share `groups` sets of keys and values of a width.
double standard_cache(double groups, double width) { return 2 * groups * width; }
/// G n d_v + H n, per token.
double scalar_cache(double heads, double groups, double width) { return groups * width + heads; }

void negligible(evidence& e) {
  for (double const width : {64.0, 128.0}) {
    double const all = scalar_cache(64, 4, width), share = 64 / all;
    e.refute(share > 0.1, "H = 64, G = 4, d_v = ", width, ": ", all, " numbers per token, ", 100 * share,
             " % of them scalar keys. Four standard heads: ", standard_cache(4, width), " with their keys");
  }
  namespace line = attune::line;
  line::sorted_cache<float> kv({.heads = 64, .value_groups = 4, .value_width = 64});
  rng draw(17);
  index_t const tokens = 4096;
  std::vector<float> keys(64), values(4 * 64, 0.0f);
  for (index_t j = 0; j < tokens; ++j) {
    for (float& k : keys) k = float(draw.normal());
    kv.insert(keys, values);
  }
  line::cache_memory const m = kv.memory();
  e.confirm(m.printed == std::size_t(tokens) * std::size_t(scalar_cache(64, 4, 64)) * sizeof(float),
            "the paper's formula for a cache of ", tokens, " tokens: ", m.printed, " bytes");
  e.refute(m.permutations + m.sort_keys > m.values / 3, "that cache: ", m.values, " bytes of values, ", m.sort_keys,
           " of scalar keys, ", m.permutations, " of permutations (S16), ", m.orders,
           " for the trees that keep the orders");
}

void compression(evidence& e) {
  numbers const k{0, 0.01, -0.01, 0.02, 2}, v{1, 1, 1, 1, -1}, few{0.005, 2}, values{1, -1};
  double const exact = weighted_mean(scalar_weights(1, k, 1), v),
               printed = weighted_mean(scalar_weights(1, few, 1), values);
  e.refute(std::fabs(exact - printed) > 0.5, "four keys near 0 and one at 2, q = 1: exact ", exact,
           ", centroid and mean value ", printed);
  e.on_random("with log m added to the score, the error is of second order in the width of the cluster", [](rng& draw) {
    double const width = 0.01, q = draw.uniform(-2, 2), tau = draw.uniform(0.5, 2);
    index_t const m = draw.between(2, 6);
    numbers keys = draw.uniforms(m, -width, width), value(std::size_t(m), 1.0);
    double centre = 0;
    for (double x : keys) centre += x / double(m);
    keys.push_back(1.5);
    value.push_back(-1);
    numbers s = scalar_scores(q, numbers{centre, 1.5}, tau);
    s[0] += std::log(double(m));
    return std::fabs(weighted_mean(scalar_weights(q, keys, tau), value) - weighted_mean(softmax(s), numbers{1, -1})) <
           60 * width * width;
  });
}

void sink_entry(evidence& e) {
  double const q = 5, tau = 0.1, radius = std::sqrt(-tau * std::log(1e-6));
  e.refute(q - radius > 0, "sink at 0, q = 5, tau = 0.1, eps = 1e-6: the window begins at ", q - radius);
}

void relu_sums(evidence& e) {
  e.on_random("q C0(r) - C1(r) = sum relu(q - k_j) v_j with prefix sums C0 = sum v, C1 = sum k v", [](rng& draw) {
    numbers k = draw.normals(20), v = draw.normals(20);
    std::sort(k.begin(), k.end());
    double const q = draw.normal();
    double direct = 0, c0 = 0, c1 = 0;
    for (std::size_t j = 0; j < 20; ++j) {
      direct += attune::normalizer::map::relu::map(q - k[j]) * v[j];
      if (k[j] < q) {
        c0 += v[j];
        c1 += k[j] * v[j];
      }
    }
    return close(q * c0 - c1, direct, 1e-11);
  });
  double const far = attune::normalizer::map::relu::map(1e6);
  e.refute(far == 1e6, "relu(1e6) = ", far, ": its support is unbounded");
  e.note("the sums are exact because each branch is a polynomial");
}

void gaussian_rank(evidence& e) {
  using digits = boost::multiprecision::number<boost::multiprecision::cpp_bin_float<80>, boost::multiprecision::et_off>;
  // Pivots of the Gaussian kernel matrix of 12 points: all positive, so no prefix statistics of lower rank are exact.
  constexpr int n = 12;
  std::vector<std::vector<digits>> m(n, std::vector<digits>(n));
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) m[std::size_t(i)][std::size_t(j)] = exp(digits(-digits((i - j) * (i - j)) / 16));
  digits least = 1;
  for (std::size_t p = 0; p < std::size_t(n); ++p) {
    least = m[p][p] < least ? m[p][p] : least;
    for (std::size_t i = p + 1; i < std::size_t(n); ++i) {
      digits const factor = m[i][p] / m[p][p];
      for (std::size_t j = p; j < std::size_t(n); ++j) m[i][j] = m[i][j] - factor * m[p][j];
    }
  }
  e.confirm(least > 0 && least < digits(1e-3), "12 points at distance 1/4, 80 digits: all pivots positive, the least ",
            double(least));
  e.note("small pivots mean numerically low rank, so approximations like the fast Gauss transform apply");
}

void arxiv_date(evidence& e) {
  std::string const id = "2512.11411",
                    months[] = {"January", "February", "March",     "April",   "May",      "June",
                                "July",    "August",   "September", "October", "November", "December"};
  int const year = 2000 + std::stoi(id.substr(0, 2)),
            month = std::stoi(id.substr(2, 2));  // the scheme since April 2007: YYMM.number
  e.refute(year != 2024, "arXiv:", id, " is of ", months[month - 1], " ", year);
}

/// Weights of hybrid attention for one query at the sort key 0 and keys of these dot products and penalties (q - k)^2 /
/// tau.
numbers hybrid_weights(numbers const& dots, numbers const& penalties) {
  using attune::tensor;
  index_t const keys = index_t(dots.size());
  numbers const one(1, 1.0), zero(1, 0.0), v(dots.size(), 0.0);
  numbers places;
  for (double p : penalties) places.push_back(std::sqrt(p));
  auto const view = [&](numbers const& x) { return tensor<double const>(x.data(), {1, 1, index_t(x.size()), 1}); };
  auto const row = attune::forward_row(
      attune::reference<double>{}, attune::hybrid_attention(1.0),
      {.q = view(one), .k = view(dots), .v = view(v), .sort_q = view(zero), .sort_k = view(places)}, 0, 0, 0);
  numbers w;
  for (index_t j = 0; j < keys; ++j) w.push_back(row.weights(0, j));
  return w;
}

void both_filters(evidence& e) {
  double const failing_one = hybrid_weights({0, 0}, {0, 40})[1], strong_dot = hybrid_weights({0, 30}, {0, 40})[1];
  e.refute(failing_one < 1e-15, "equal dot products, scalar penalty 40: weight ", failing_one,
           ": failing one filter is enough");
  e.refute(strong_dot < 1e-3, "dot + 30, penalty 40: ", strong_dot, ": passing one does not save it");
  e.on_random("the filters add: a key that trails another by g in dot minus penalty has a weight of at most e^-g",
              [](rng& draw) {
                numbers const dots = draw.normals(6, 5);
                numbers const penalties = draw.uniforms(6, 0, 20), w = hybrid_weights(dots, penalties);
                bool holds = true;
                for (std::size_t i = 0; i < 6; ++i)
                  for (std::size_t j = 0; j < 6; ++j)
                    holds = holds && at_most(w[i], std::exp((dots[i] - penalties[i]) - (dots[j] - penalties[j])));
                return holds;
              });
}

void disposal(evidence& e) {
  e.on_random("the force of L_align on a key is 2 w |q - k|: exactly 0 at w = 0", [](rng& draw) {
    double const q = draw.normal(), k = draw.normal(), w = 0, h = 1e-4;
    return (w * (q - k - h) * (q - k - h) - w * (q - k + h) * (q - k + h)) == 0;
  });
  double const range = 3, key = 5, force = -2 * (key - range) / 8;  // the largest of eight keys, targets in [-3, 3]
  e.refute(force < 0, "an ignored key at 5, targets in [-3, 3], n = 8: L_spread, the only force on it, is ", force,
           ": inwards");
  e.note("the effect of training on it cannot be decided here");
}

void insertion(evidence& e) {
  rng draw(8);
  numbers sorted;
  double moved = 0;
  int const n = 4000;
  for (int i = 0; i < n; ++i) {
    double const x = draw.uniform();
    auto const at = std::lower_bound(sorted.begin(), sorted.end(), x);
    moved += double(sorted.end() - at) / n;
    sorted.insert(at, x);
  }
  e.refute(moved > 500, "random inserts into a sorted array of up to ", n, " move ", moved,
           " entries on average, n / 4");
  e.note("a balanced tree has O(log n), a packed-memory array O(log^2 n) amortized");
}

void aligned(evidence& e) {
  numbers k, s;
  for (int i = 0; i < 200; ++i) k.push_back(-3 + 6 * i / 199.0);
  s = scalar_scores(0, k, 0.2);
  for (std::size_t i = 0; i < k.size(); ++i)
    if (k[i] > 2.9) s[i] += 60;
  numbers const w = softmax(s);
  double const radius = std::sqrt(-0.2 * std::log(1e-6));
  double inside = 0;
  for (std::size_t i = 0; i < k.size(); ++i)
    if (std::fabs(k[i]) < radius) inside += w[i];
  e.refute(inside < 1e-3, "dot = 60 for keys beyond 2.9, tau = 0.2: the window of eps = 1e-6 has mass ", inside);
  e.on_random("|dot| <= B: the tail is at most T / (Z_window + T) with T multiplied by e^B", [](rng& draw) {
    double const tau = draw.uniform(0.1, 1), bound = draw.uniform(0, 3), r = draw.uniform(0.1, 2);
    numbers const keys = draw.normals(20), dots = draw.uniforms(20, -bound, bound);
    double window = 0, all = 0, n = 0, nearest = 1e9;
    for (std::size_t j = 0; j < 20; ++j) {
      double const f = std::exp(dots[j] - keys[j] * keys[j] / tau);
      all += f;
      if (std::fabs(keys[j]) <= r)
        window += f;
      else {
        ++n;
        nearest = std::fmin(nearest, std::fabs(keys[j]));
      }
    }
    double const t = n > 0 ? n * std::exp(bound - nearest * nearest / tau) : 0;
    return at_most(1 - window / all, t / (window + t));
  });
}

void collapse(evidence& e) {
  numbers share;
  for (index_t const n : {10, 100, 1000, 10000}) {
    rng draw{std::uint64_t(n)};
    share.push_back(analysis::entropy(softmax(draw.normals(n))) / std::log(double(n)));
  }
  e.confirm(share[3] > 0.9, "normal logits, n = 10 to 10000: H / log n = ", share);
}

void radius(evidence& e) {
  e.on_random("e^(-d^2 / tau) < eps if and only if d > sqrt(-tau log eps)", [](rng& draw) {
    double const tau = draw.uniform(0.01, 2), eps = std::pow(10, draw.uniform(-9, -1)), d = draw.uniform(0, 4);
    double const r = std::sqrt(-tau * std::log(eps));
    return std::fabs(d - r) < 1e-9 || (std::exp(-d * d / tau) < eps) == (d > r);
  });
  e.note("a drift of tau from 0.03 to 0.42 widens the window ", std::sqrt(0.42 / 0.03), " times");
}

void memory_access(evidence& e) {
  double const radius_of = std::sqrt(-0.1 * std::log(1e-3));
  numbers counts;
  for (index_t const n : {1000, 10000, 100000}) {
    rng draw{std::uint64_t(n)};
    double count = 0;
    for (double x : draw.uniforms(n, -3, 3))
      if (std::fabs(x) < radius_of) ++count;
    counts.push_back(count);
  }
  e.refute(counts[2] > 50 * counts[0], "keys in the window at n = 10^3, 10^4, 10^5: ", counts,
           ": the search is O(log n), the window is not");
}

void implicit_kernel(evidence& e) {
  e.on_random("exp(-|q-k|^2 / (2 sqrt d)) exp((|q|^2 + |k|^2) / (2 sqrt d)) normalized is softmax(q.k / sqrt d)",
              [](rng& draw) {
                numbers const q = draw.normals(4), k = draw.normals(20);
                analysis::points<double> const keys(k, 4);
                auto const f = analysis::factors_of(q, keys);
                return largest_difference(analysis::product_of_experts(f.similarity, f.magnitude),
                                          softmax(analysis::dot_scores(q, keys, 2.0))) < 1e-12;
              });
}

void mean_loss(evidence& e) {
  e.on_random("(w * sq).mean() is the mean cost per query divided by T", [](rng& draw) {
    index_t const n = draw.between(2, 12);
    double total = 0, per_query = 0;
    for (index_t i = 0; i < n; ++i) {
      numbers const w = softmax(draw.normals(i + 1)), cost = draw.uniforms(i + 1, 0, 2);
      total += analysis::dot(w, cost) / double(n * n);
      per_query += analysis::dot(w, cost) / double(n);
    }
    return close(total * double(n), per_query);
  });
  double masked = 0;
  for (int i = 0; i < 64; ++i) masked += 1.0 / (64 * 64);  // causal, uniform weights, cost 1: each row sums to 1
  e.refute(close(masked, 1.0 / 64), "masked pairs count in the divisor: T = 64, a cost of 1 per query: the loss is ",
           masked, ", so lambda_a must grow with T");
}

}  // namespace

std::vector<claim> scalar_sort_cache_claims() {
  using enum status;
  return {
      {"S16", "grouped value", "One sorted store per group; every head searches it with its own query", incorrect,
       "Each head needs its own permutation", shared_store, true},
      {"S17", "grouped value", "Scalar keys are negligible: 64 patterns at the memory cost of 4 heads", incorrect,
       "A token has G d_v numbers of values, H scalar keys and H entries of permutations. That is less than four "
       "standard heads, because no vector keys are stored.",
       negligible},
      {"S18", "eviction", "Replace k adjacent tokens by one of mean value at the centroid", incorrect,
       "Add log(multiplicity) to the score of the merged token", compression, true},
      {"S19", "sinks", "Binary search always includes the sink at no marginal cost", incorrect,
       "Append the sink to the window", sink_entry},
      {"S20", "prior art 6", "Sliced ReLU is exact by the finite support of the ReLU", incorrect,
       "It is exact because each branch is a polynomial, separable in q and k", relu_sums, true},
      {"S21", "prior art 6", "The Gaussian kernel admits no finite prefix statistics", holds, "", gaussian_rank},
      {"S22", "prior art 6", "Sliced ReLU Attention, arXiv:2512.11411, December 2024", incorrect,
       "The paper is of December 2025", arxiv_date},
      {"S23", "hybrid sinks", "A token is ignorable only when it fails both filters", incorrect,
       "Logits add, so failing one filter is enough", both_filters, true},
      {"S24", "token disposal", "Ignored tokens drift to peripheral regions", incorrect, "The loss does not imply this",
       disposal},
      {"S25", "binary search 4", "O(log n) insertion into a sorted array with a gap buffer", incorrect, "", insertion},
      {"S26", "hybrid inference", "The scalar window captures the combined mass if the metrics align", conditional,
       "This is certified for |dot| <= B", aligned, true},
      {"S27", "long context", "Dot-product softmax suffers entropy collapse as n grows", holds,
       "The softmax flattens and its entropy grows. Entropy collapse usually means the opposite.", collapse},
      {"S28", "bandwidth", "The radius is sqrt(-tau log eps)", holds, "", radius},
      {"S29", "overview 2", "Memory access per step drops from O(n) to O(log n)", incorrect,
       "It is O(log n + keys in the window)", memory_access},
      {"S30", "prior art 1", "The implicit kernel of softmax attention", holds, "", implicit_kernel},
      {"S31", "term 1, code", "L_align = (w * sq).mean()", conditional, "lambda_a must scale with T", mean_loss, true},
  };
}

}  // namespace ledger
