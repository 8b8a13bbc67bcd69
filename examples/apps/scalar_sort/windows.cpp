// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "windows.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <attune/line/decode.hpp>

namespace scalar_sort {

heads_in_context in_context(projections const& p, stretch const& s, index_t queries) {
  scalars const at = p.of(s);
  heads_in_context to{.heads = s.heads(),
                      .queries = queries,
                      .keys = s.count,
                      .width = s.width(),
                      .value_width = s.width(),
                      .sort_q = {},
                      .sort_k = at.k,
                      .q = {},
                      .k = {},
                      .v = {},
                      .tau = p.tau()};
  auto const append = [&](numbers& y, numbers const& x, index_t h, index_t first) {
    auto const view = s(x);
    y.insert(y.end(), view.row(0, h, first), view.row(0, h, 0) + s.count * s.width());
  };
  for (index_t h = 0; h < to.heads; ++h) {
    to.sort_q.insert(to.sort_q.end(), at.q.begin() + (h + 1) * s.count - queries, at.q.begin() + (h + 1) * s.count);
    append(to.q, s.of->q, h, s.count - queries);
    append(to.k, s.of->k, h, 0);
    append(to.v, s.of->v, h, 0);
  }
  return to;
}

struct window_study::cache : attune::line::sorted_cache<float> {
  using attune::line::sorted_cache<float>::sorted_cache;
};

struct window_study::decoded_rows {
  numbers out;
  std::vector<attune::line::row_report> reports;
};

window_study::~window_study() = default;
window_study::window_study(window_study&&) noexcept = default;

window_study::window_study(heads_in_context what) : what_(std::move(what)) {
  heads_in_context const& p = what_;
  cache_ = std::make_unique<cache>(attune::line::cache_layout{
      .heads = p.heads, .value_groups = p.heads, .key_width = p.width, .value_width = p.value_width});
  numbers sort_k(std::size_t(p.heads)), k(std::size_t(p.heads * p.width)), v(std::size_t(p.heads * p.value_width));
  for (index_t j = 0; j < p.keys; ++j) {
    for (index_t h = 0; h < p.heads; ++h) {
      sort_k[std::size_t(h)] = p.sort_k[std::size_t(h * p.keys + j)];
      std::copy_n(p.k.begin() + (h * p.keys + j) * p.width, p.width, k.begin() + h * p.width);
      std::copy_n(p.v.begin() + (h * p.keys + j) * p.value_width, p.value_width, v.begin() + h * p.value_width);
    }
    cache_->insert(sort_k, v, k);
  }
  all_ = std::make_unique<decoded_rows>(run(attune::line::nearest{p.keys}));
}

window_study::decoded_rows window_study::run(any_window const& w) const {
  heads_in_context const& p = what_;
  using attune::tensor;
  decoded_rows to;
  to.out.resize(std::size_t(p.heads * p.queries * p.value_width));
  to.reports.resize(std::size_t(p.heads * p.queries));
  attune::line::queries<float> const in{
      .sort_q = as_tensor(p.sort_q.data(), p.heads, p.queries),
      .q = p.width > 0 ? tensor<float const>(p.q.data(), {1, p.heads, p.queries, p.width}) : tensor<float const>{}};
  attune::line::decoded<float> const rows{.out = tensor<float>(to.out.data(), {1, p.heads, p.queries, p.value_width}),
                                          .rows = to.reports};
  attune::line::sorted_cache<float> const& kv = *cache_;
  attune::parameter const tau = attune::per_head(p.tau);
  std::visit(
      [&](auto const& window) {
        if (p.width > 0)
          decode(attune::cpu<float>{1}, attune::line::hybrid{tau, window}, kv, in, rows);
        else
          decode(attune::cpu<float>{1}, attune::line::windowed{tau, window}, kv, in, rows);
      },
      w);
  return to;
}

std::vector<window_row> window_study::rows(any_window const& w) const {
  decoded_rows const found = run(w);
  std::vector<window_row> to;
  std::size_t const width = std::size_t(what_.value_width);
  for (std::size_t n = 0; n < found.reports.size(); ++n) {
    auto const& r = found.reports[n];
    double error = 0, exact = 0;
    for (std::size_t d = n * width; d < (n + 1) * width; ++d) {
      double const e = double(found.out[d]) - double(all_->out[d]);
      error += e * e;
      exact += double(all_->out[d]) * double(all_->out[d]);
    }
    to.push_back({std::min(1.0, std::exp(r.lse - all_->reports[n].lse)), std::sqrt(error), std::sqrt(exact),
                  r.output_error, r.discarded_by_ends, r.scored, r.summed, double(what_.sort_q[n])});
  }
  return to;
}

double window_study::density(index_t head, double x, index_t among) const {
  std::vector<double> away;
  for (index_t j = 0; j < what_.keys; ++j)
    away.push_back(std::fabs(double(what_.sort_k[std::size_t(head * what_.keys + j)]) - x));
  auto const nth = away.begin() + std::min(among, what_.keys) - 1;
  std::nth_element(away.begin(), nth, away.end());
  return double(std::min(among, what_.keys)) / (2 * *nth);
}

std::vector<window_row> rows_of(std::vector<window_study> const& studies, any_window const& w) {
  std::vector<window_row> to;
  for (window_study const& s : studies) {
    auto const more = s.rows(w);
    to.insert(to.end(), more.begin(), more.end());
  }
  return to;
}

window_summary summary(std::span<window_row const> rows) {
  window_summary s;
  double error = 0, exact = 0;
  for (window_row const& r : rows) {
    s.captured += r.captured / double(rows.size());
    s.scored += double(r.scored) / double(rows.size());
    error += r.error * r.error;
    exact += r.exact * r.exact;
  }
  s.error = std::sqrt(error / exact);
  return s;
}

}  // namespace scalar_sort
