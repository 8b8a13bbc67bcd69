// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The threshold search against sorting and bisection, 1 to 4096 keys; the selection of top-k against sorting.
#include "gradients/thresholds.hpp"

#include <numeric>

#include <doctest/doctest.h>

#include <attune/policies/normalizer/top_k.hpp>

using namespace attune;
using namespace attune::test;

namespace {

std::vector<index_t> positions_of(std::vector<double> const& logits) {
  std::vector<index_t> p(logits.size());
  std::iota(p.begin(), p.end(), index_t(0));
  return p;
}

/// Solves a column in T and holds the threshold to `tolerance`, the weights' sum to a few of it.
template <class T, class Policy>
void check_search(Policy const& policy, double alpha, std::vector<double> const& logits, true_threshold const& truth,
                  double tolerance) {
  auto const bound = policy.bind(row<T>{});
  candidate_column<T> column(std::vector<T>(logits.begin(), logits.end()), positions_of(logits));
  candidate_threshold<T> const at = bound.solve(column);
  CHECK(double(at.reference) == *std::max_element(logits.begin(), logits.end()));
  // Relative to the largest logit tau keeps its digits, however large that is.
  T const tau = bound.reported(candidate_threshold<T>{T(0), at.level, at.cut, at.last});
  CHECK(error_of_tau(digits(tau), truth) <= tolerance);
  digits sum(0);
  for (double const a : logits) sum += digits(bound.weight(at, T(a), key<T>{T(0)}));
  // A level off by d changes the sum by d sum y, y = w^(2 - alpha): at most n for alpha = 2, more beyond.
  if (alpha <= 2)
    CHECK(double(abs(digits(sum - 1))) <= 4 * tolerance * std::pow(double(logits.size()), std::fmax(alpha - 1, 0.0)));
}

template <class Policy>
void check_sizes(Policy const& policy, double alpha, std::initializer_list<std::size_t> sizes,
                 double tolerance = 1e-14) {
  for (std::size_t const size : sizes)
    for (auto const& entry : difficult_columns(size, size)) {  // no structured binding: clang 14 captures none
      auto const& name = entry.first;
      auto const& logits = entry.second;
      CAPTURE(alpha);
      CAPTURE(size);
      CAPTURE(name);
      check_search<double>(policy, alpha, logits, threshold_of(logits, alpha), tolerance);
    }
}

}  // namespace

TEST_SUITE("thresholds") {
  TEST_CASE("sparsemax: the sorted closed form") {
    check_sizes(normalizer::sparsemax{}, 2, {1, 2, 3, 5, 8, 33, 256, 1000, 4096});
  }
  TEST_CASE("entmax 1.5: the sorted closed form") {
    check_sizes(normalizer::entmax15{}, 1.5, {1, 2, 3, 5, 8, 33, 256, 1000, 4096});
  }
  TEST_CASE("entmax: bisection in 50 digits") {
    for (double const alpha : {1.0, 1.0001, 1.25, 1.5, 1.9, 2.0, 2.5, 4.0}) {
      check_sizes(normalizer::entmax{alpha}, alpha, {1, 2, 3, 7, 24});
      if (alpha == 1 || alpha == 1.5 || alpha == 2) check_sizes(normalizer::entmax{alpha}, alpha, {300, 4096});
    }
  }
  TEST_CASE("entmax: bisection in 50 digits, many keys") {
    for (double const alpha : {1.0001, 1.9, 2.5, 4.0})
      for (auto const& entry : difficult_columns(alpha == 2.5 ? 4096 : 512, 9)) {
        auto const& name = entry.first;
        auto const& logits = entry.second;
        if (!(name == "normal" || name == "few values")) continue;

        CAPTURE(alpha);
        CAPTURE(name);
        check_search<double>(normalizer::entmax{alpha}, alpha, logits, threshold_of(logits, alpha), 1e-14);
      }
  }
  TEST_CASE("the reported tau is that of the papers, in the units of the true logits") {
    std::vector<double> const logits{0.5, 1.25, -0.25, 1.0};
    row<double> r{};
    r.logit_shift = 0.125;  // what a length scale took out
    for (double const alpha : {1.5, 2.0, 3.0}) {
      auto const bound = normalizer::entmax{alpha}.bind(r);
      candidate_column<double> column(logits, positions_of(logits));
      double const tau = bound.reported(bound.solve(column));
      double sum = 0;
      for (double const a : logits) sum += std::pow(std::fmax((alpha - 1) * (a + 0.125) - tau, 0), 1 / (alpha - 1));
      CHECK(std::fabs(sum - 1) < 1e-14);
    }
  }
  TEST_CASE("the closed forms and the bisection agree where all apply") {
    for (auto const& entry : difficult_columns(23, 3)) {  // no structured binding: clang 14 captures none
      auto const& name = entry.first;
      auto const& logits = entry.second;
      CAPTURE(name);
      CHECK(error_of_level(bisected_level(logits, 2), threshold_of(logits, 2)) < 1e-20);
      CHECK(error_of_level(bisected_level(logits, 1.5), threshold_of(logits, 1.5)) < 1e-20);
    }
  }
}

TEST_SUITE("top-k selection") {
  TEST_CASE("exactly the k largest, ties to the lower index, in any order of the column") {
    for (std::size_t const size : {1u, 2u, 5u, 17u, 300u})
      for (index_t const k : {1, 2, 3, 16, 299, 400})
        for (auto const& entry : difficult_columns(size, size)) {  // no structured binding: clang 14 captures none
          auto const& name = entry.first;
          auto const& logits = entry.second;
          CAPTURE(size);
          CAPTURE(k);
          CAPTURE(name);
          std::vector<index_t> order = positions_of(logits);
          std::stable_sort(order.begin(), order.end(),
                           [&](index_t a, index_t b) { return logits[std::size_t(a)] > logits[std::size_t(b)]; });
          std::vector<bool> kept(size, false);
          for (std::size_t n = 0; n < std::min(size, std::size_t(k)); ++n) kept[std::size_t(order[n])] = true;

          std::vector<index_t> shuffled = positions_of(logits);
          rng random(size);
          for (std::size_t n = size; n > 1; --n)
            std::swap(shuffled[n - 1], shuffled[std::size_t(random.between(0, index_t(n) - 1))]);
          std::vector<double> column_logits;
          for (index_t const j : shuffled) column_logits.push_back(logits[std::size_t(j)]);
          candidate_column<double> column(column_logits, shuffled);
          auto const bound = normalizer::top_k{k}.bind(row<double>{});
          candidate_threshold<double> const at = bound.solve(column);
          for (std::size_t j = 0; j < size; ++j) {
            // An exponential may vanish far below the largest: what is kept is then told by the cut.
            double const w = bound.weight(at, logits[j], key<double>{double(j)});
            if (logits[j] > at.reference - 700) CHECK((w > 0) == kept[j]);
            bool const within = logits[j] > at.cut || (logits[j] == at.cut && double(j) <= at.last);
            CHECK((within || index_t(size) <= k) == kept[j]);
          }
        }
  }
  TEST_CASE("the cut is reported: the k-th largest logit, -inf where there are fewer") {
    row<double> r{};
    r.logit_shift = 0.5;
    auto const bound = normalizer::top_k{2}.bind(r);
    candidate_column<double> three({1.0, 3.0, 2.0}, {0, 1, 2}), two({1.0, 3.0}, {0, 1}), one({3.0}, {0});
    CHECK(bound.reported(bound.solve(three)) == 2.5);
    CHECK(bound.reported(bound.solve(two)) == 1.5);
    CHECK(bound.reported(bound.solve(one)) == -std::numeric_limits<double>::infinity());
  }
}
