// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Thresholds and weights of sparsemax, entmax and top-k by hand, on columns of a few logits.
#include <numeric>
#include <vector>

#include <attune/policies/candidates.hpp>
#include <attune/policies/normalizer/entmax.hpp>
#include <attune/policies/normalizer/top_k.hpp>

#include "../../check.hpp"
#include "../row.hpp"

namespace attune::test {
namespace {

using numbers = std::vector<double>;

struct weighed {
  numbers weights;
  double reported;
};
template <class N>
weighed weigh_row(N const& n, numbers const& logits, double logit_shift = 0) {
  std::vector<index_t> positions(logits.size());
  std::iota(positions.begin(), positions.end(), index_t{0});
  auto const f = n.bind(row_with(0, 0, logit_shift));
  candidate_column<double> column(logits, positions);
  candidate_threshold<double> const at = f.solve(column);
  weighed r{{}, f.reported(at)};
  for (std::size_t j = 0; j < logits.size(); ++j) r.weights.push_back(f.weight(at, logits[j], key<double>{double(j)}));
  return r;
}
template <class N>
void check_row(N const& n, numbers const& logits, numbers const& weights, double tolerance = 1e-14) {
  weighed const r = weigh_row(n, logits);
  for (std::size_t j = 0; j < logits.size(); ++j) {
    CAPTURE(j);
    CHECK(near(r.weights[j], weights[j], tolerance));
  }
}

TEST_CASE("candidate_column: keep drops what is of no interest, with its position") {
  candidate_column<double> c({3, 1, 2}, {10, 11, 12});
  c.keep([](double a) { return a - 1.5; });
  CHECK(c.size() == 2);
  CHECK(c.logit(1) == 2);
  CHECK(c.position(1) == 12);
}

TEST_CASE("candidate_column: the k largest, ties to lower positions") {
  candidate_column<double> const c({2, 5, 2, 2, -inf}, {10, 11, 12, 13, 14});
  double cut = 0, last = 0;
  c.largest(1, cut, last);
  CHECK(cut == 5);
  CHECK(last == 11);
  c.largest(3, cut, last);
  CHECK(cut == 2);
  CHECK(last == 12);
  c.largest(4, cut, last);  // all finite ones
  CHECK(cut == 2);
  CHECK(last == 13);
  c.largest(5, cut, last);  // there are no five: no cut
  CHECK(cut == -inf);
}

TEST_CASE("sparsemax: [a - tau]_+") {
  check_row(normalizer::sparsemax{}, {1, 0.5, -3}, {0.75, 0.25, 0});
  check_row(normalizer::sparsemax{}, {2, 2, 2, 2}, {0.25, 0.25, 0.25, 0.25});
  check_row(normalizer::sparsemax{}, {7}, {1});
  CHECK(near(weigh_row(normalizer::sparsemax{}, {1, 0.5, -3}).reported, 0.25));
  CHECK(near(weigh_row(normalizer::sparsemax{}, {1, 0.5, -3}, 100).reported, 100.25));  // at the true logits
}

TEST_CASE("sparsemax: a lead of 1 takes all; on the threshold is outside") {
  weighed const r = weigh_row(normalizer::sparsemax{}, {1, 0});
  CHECK(r.weights[0] == 1);
  CHECK(r.weights[1] == 0);
  CHECK(r.reported == 0);
}

TEST_CASE("entmax15: [a / 2 - tau]_+^2") {
  // a / 2 = x: weights (x1 - tau)^2 + (x2 - tau)^2 = 1 with x = (0.2, 0): tau = 0.1 - sqrt(0.49) = -0.6
  check_row(normalizer::entmax15{}, {0.4, 0}, {0.64, 0.36});
  check_row(normalizer::entmax15{}, {5, 5, 5, 5}, {0.25, 0.25, 0.25, 0.25});
  check_row(normalizer::entmax15{}, {2, 0}, {1, 0});
  CHECK(near(weigh_row(normalizer::entmax15{}, {0.4, 0}).reported, -0.6));
}

TEST_CASE("entmax: softmax at alpha = 1, the closed forms at 3/2 and 2, anything between") {
  check_row(normalizer::entmax{1.0}, {ln3, 0}, {0.75, 0.25});
  check_row(normalizer::entmax{1.5}, {0.4, 0}, {0.64, 0.36});
  check_row(normalizer::entmax{2.0}, {1, 0.5, -3}, {0.75, 0.25, 0});
  numbers shared(3, 1.0 / 3);  // not a braced list: g++ 12 -O2 with AVX-512 makes its last element 1/3 too
  shared.push_back(0);
  for (double alpha : {1.0, 1.0000001, 1.25, 1.5, 2.0, 3.0, 4.0}) {
    CAPTURE(alpha);
    check_row(normalizer::entmax{alpha}, {3, 3, 3, -inf}, shared, 1e-13);
    weighed const r = weigh_row(normalizer::entmax{alpha}, {0.3, 0.1, -0.2, 0.25});
    CHECK(near(r.weights[0] + r.weights[1] + r.weights[2] + r.weights[3], 1));
    for (std::size_t j = 0; j < 4; ++j) {  // [(alpha - 1) a - tau]^(1 / (alpha - 1)) with the reported tau
      double const a[] = {0.3, 0.1, -0.2, 0.25};
      double const y = std::fmax((alpha - 1) * a[j] - r.reported, 0);
      if (alpha > 1.01) CHECK(near(r.weights[j], std::pow(y, 1 / (alpha - 1)), 1e-12));
    }
  }
}

TEST_CASE("entmax: next to alpha = 1 it is next to softmax") {
  weighed const limit = weigh_row(normalizer::entmax{1.0}, {ln3, 0}),
                close = weigh_row(normalizer::entmax{1 + 1e-12}, {ln3, 0});
  CHECK(near(close.weights[0], limit.weights[0], 1e-11));
  CHECK(close.weights[0] > 0.7499);
}

TEST_CASE("the deformed family: shifts, huge logits, keys that are off") {
  for (double shift : {1e6, -1e6}) {
    check_row(normalizer::sparsemax{}, {shift + 1, shift + 0.5, shift - 3}, {0.75, 0.25, 0}, 1e-9);
    check_row(normalizer::entmax15{}, {shift + 2, shift}, {1, 0}, 1e-9);
  }
  check_row(normalizer::sparsemax{}, {1e300, -1e300}, {1, 0});
  check_row(normalizer::entmax{1.5}, {-inf, 0.4, 0}, {0, 0.64, 0.36});
  for (double w : weigh_row(normalizer::sparsemax{}, {-inf, -inf}).weights) CHECK(w == 0);
  for (double w : weigh_row(normalizer::entmax{1.3}, {-inf, -inf}).weights) CHECK(w == 0);
}

TEST_CASE("top_k: softmax masses of the k largest, ties at the k-th to the lower position") {
  weighed const r = weigh_row(normalizer::top_k{2}, {ln2, 0, 0, -1});
  CHECK(r.weights[2] == 0);
  CHECK(r.weights[3] == 0);
  CHECK(near(r.weights[0] / r.weights[1], 2));
  CHECK(r.reported == 0);
  CHECK(weigh_row(normalizer::top_k{2}, {ln2, 0, 0, -1}, 5).reported == 5);
  CHECK(weigh_row(normalizer::top_k{4}, {ln2, 0, 0, -1}).reported == -1);
  CHECK(weigh_row(normalizer::top_k{5}, {ln2, 0, 0, -1}).reported == -inf);
  for (double w : weigh_row(normalizer::top_k{9}, {1, 2, 3}).weights) CHECK(w > 0);
  CHECK(error_of([] { normalizer::top_k{0}; }) == "attune::normalizer::top_k: k has the value 0; expected at least 1");
}

}  // namespace
}  // namespace attune::test
