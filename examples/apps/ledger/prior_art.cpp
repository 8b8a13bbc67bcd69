// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Prior art that Scalar Sort cites: by the policies of the library.
#include <attune/analysis/similarity.hpp>
#include <attune/policies/kernel/alibi.hpp>
#include <attune/policies/kernel/scalar.hpp>

#include "common.hpp"

namespace ledger {
namespace {

using points = analysis::points<double>;

attune::row<double> row_at(index_t position, index_t keys) {
  attune::row<double> r{};
  r.position = double(position);
  r.visible = r.keys = double(keys);
  r.log_visible = std::log(double(keys));
  return r;
}

void smca(evidence& e) {
  e.on_random("log of a Gaussian of width b around the query's center = -(qs - ks)^2 / tau with tau = b (width^2)",
              [](rng& draw) {
                double const centre = draw.normal(), key = draw.normal(), beta = draw.uniform(0.5, 2),
                             width = draw.uniform(0.3, 2);
                auto const hybrid = attune::kernel::scalar_sort{beta * width * width}.bind(row_at(0, 1));
                double const z = centre - key, gaussian = std::exp(-z * z / (beta * width * width));
                return std::fabs(hybrid.score(z, attune::key<double>{0}) - std::log(gaussian)) <
                       1e-9 * (1 + z * z / (beta * width * width));
              });
  numbers const centre{0, 0}, near_key{1, 0}, far_key{1, 0.5};
  double const first = analysis::squared_distance(near_key, centre),
               second = analysis::squared_distance(far_key, centre);
  e.refute(first != second,
           "on two axes it is no function of one difference: keys (1, 0) and (1, 0.5) share a coordinate, but have "
           "distances ",
           first, " and ", second, " from the center");
}

void alibi(evidence& e) {
  e.on_random("the ALiBi policy is -m |i - j| and depends on positions alone", [](rng& draw) {
    double const slope = draw.uniform(0.01, 2);
    index_t const i = draw.between(0, 50), j = draw.between(0, 50);
    auto const bound = attune::kernel::alibi{slope}.bind(row_at(i, 51));
    return close(bound.score(attune::key<double>{double(j)}), -slope * std::fabs(double(i - j)));
  });
  e.on_random(
      "it is the Laplacian scalar kernel with qs = i, ks = j, tau = 1 / m: linear where the hybrid is quadratic",
      [](rng& draw) {
        double const slope = draw.uniform(0.01, 2);
        index_t const i = draw.between(0, 50), j = draw.between(0, 50);
        auto const scalar = attune::kernel::scalar_laplacian{1 / slope}.bind(row_at(i, 51));
        return close(scalar.score(double(i - j), attune::key<double>{double(j)}), -slope * std::fabs(double(i - j)));
      });
}

void elliptical(evidence& e) {
  numbers const m{2, 1}, q{1, 1}, k{1, 1, 3, 0};
  double const bilinear0 = 3, bilinear1 = 6, mahalanobis0 = 0, mahalanobis1 = 2 * 4 + 1;
  numbers const p = softmax(numbers{bilinear0, bilinear1}), r = softmax(numbers{-mahalanobis0 / 2, -mahalanobis1 / 2});
  e.refute(p[1] > p[0] && r[0] > r[1], "m = (2, 1), q = (1, 1), keys (1, 1) and (3, 0): Q M K^T prefers the second ", p,
           ", the Mahalanobis distance the first ", r);
  e.on_random("their softmaxes agree where k^T M k is the same for all keys", [](rng& draw) {
    index_t const d = 3, n = 5;
    numbers metric = draw.uniforms(d, 0.2, 3), keys = draw.sphere(n, d), query = draw.normals(d), s, t;
    for (index_t j = 0; j < n; ++j) {
      double dot = 0, distance = 0;
      for (index_t c = 0; c < d; ++c) {
        double const root = std::sqrt(metric[std::size_t(c)]),
                     key = keys[std::size_t(j * d + c)] / root;  // k^T M k = 1
        dot += metric[std::size_t(c)] * query[std::size_t(c)] * key;
        distance += metric[std::size_t(c)] * (query[std::size_t(c)] - key) * (query[std::size_t(c)] - key);
      }
      s.push_back(dot);
      t.push_back(-distance / 2);
    }
    return largest_difference(softmax(s), softmax(t)) < 1e-12;
  });
}

void goat(evidence& e) {
  e.on_random("a uniform prior adds a row constant: softmax(s + log(1 / n)) = softmax(s)", [](rng& draw) {
    numbers const s = draw.normals(draw.between(1, 20), 3);
    numbers shifted = s;
    for (double& x : shifted) x -= std::log(double(s.size()));
    return largest_difference(softmax(s), softmax(shifted)) < 1e-13;
  });
  e.on_random("softmax(s / tau + log pi) maximizes <p, s> - tau KL(p, pi)", [](rng& draw) {
    numbers const s = draw.normals(5), prior = softmax(draw.normals(5)), other = softmax(draw.normals(5, 2));
    double const tau = draw.uniform(0.2, 2);
    numbers logits;
    for (std::size_t j = 0; j < 5; ++j) logits.push_back(s[j] / tau + std::log(prior[j]));
    auto const objective = [&](numbers const& p) {
      double value = 0;
      for (std::size_t j = 0; j < 5; ++j)
        if (p[j] > 0) value += p[j] * s[j] - tau * p[j] * std::log(p[j] / prior[j]);
      return value;
    };
    return objective(softmax(logits)) >= objective(other) - 1e-12;
  });
}

void transformer_xl(evidence& e) {
  e.on_random("(q + u) . k + (q + w) . r is content-content + content-position + u . k + w . r", [](rng& draw) {
    numbers const q = draw.normals(4), k = draw.normals(4), r = draw.normals(4), u = draw.normals(4),
                  w = draw.normals(4);
    numbers qu, qw;
    for (std::size_t d = 0; d < 4; ++d) {
      qu.push_back(q[d] + u[d]);
      qw.push_back(q[d] + w[d]);
    }
    using analysis::dot;
    return close(dot(qu, k) + dot(qw, r), dot(q, k) + dot(q, r) + dot(u, k) + dot(w, r));
  });
  e.note("position-content is u . k with a learned u, the same for all positions, and position-position w . r");
}

}  // namespace

std::vector<claim> prior_art_claims() {
  using enum status;
  return {
      {"R01", "Scalar Sort, prior art 3", "SMCA is the hybrid's structure: dot product plus a log Gaussian",
       conditional, "This is exact on one axis, but SMCA has two axes", smca, true},
      {"R02", "Scalar Sort, prior art 2", "ALiBi is the hybrid with a linear penalty on token position", holds, "",
       alibi},
      {"R03", "Scalar Sort, prior art 8", "Elliptical attention uses a Mahalanobis distance, score = Q M K^T / sqrt(D)",
       incorrect, "These are two different operators. Their weights are equal where k^T M k is the same for all keys.",
       elliptical, true},
      {"R04", "Scalar Sort, prior art 4", "GOAT: standard attention is transport with a uniform prior", holds, "",
       goat},
      {"R05", "Scalar Sort, prior art 2", "Transformer-XL sums four terms", holds, "", transformer_xl},
  };
}

}  // namespace ledger
