// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   by_pages(call)    "page 3 of batch element 1 read as page 4 of batch element 0: a stale page"
//
// Pages of a cache that a kernel reads instead of others.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <attune/core/stable_sort.hpp>
#include <attune/testing/judging/forward/sampled_call.hpp>
#include <attune/testing/judging/forward/suspicion.hpp>

namespace attune::testing::detail {

struct page_place {
  index_t batch, number;
};
/// All pages. First those whose keys explain most of the residual if the rows lack them: a kernel that reads other
/// keys in their place lacks them too.
template <class Op>
std::vector<page_place> pages_by_suspicion(sampled_call<Op> const& call, index_t size) {
  index_t const pages = (call.p.keys + size - 1) / size;
  struct sums {
    double square = 0, product = 0;
    double gain() const { return square > 0 && product > 0 ? product * product / square : 0; }
  };
  std::vector<sums> of(std::size_t(call.p.batch * pages));
  std::vector<double> effect(static_cast<std::size_t>(pages));
  for (std::size_t n = 0; n < call.sampled.size(); ++n) {
    sampled_row const& r = call.sampled[n];
    auto const row = call.rows.template evaluate<double>({}, r.batch, r.head, r.query);
    index_t const head = call.p.group(r.head, call.p.value_heads);
    for (index_t c = 0; c < call.p.value_width; ++c) {
      std::size_t const at = n * call.step() + std::size_t(c);
      double const m = call.seen.metric(at);
      if (m == 0) continue;
      std::fill(effect.begin(), effect.end(), 0.);
      for (std::size_t k = 0; k < row.keys.size(); ++k)
        if (row.weights[k] != 0)
          effect[std::size_t(row.keys[k] / size)] -=
              row.weights[k] * (call.in.v(r.batch, head, row.keys[k], c) - row.out[std::size_t(c)]);
      for (std::size_t k = 0; k < effect.size(); ++k) {
        if (!std::isfinite(effect[k])) continue;
        sums& to = of[std::size_t(r.batch * pages) + k];
        to.square += effect[k] * effect[k] * m;
        to.product += effect[k] * call.seen.residual(at) * m;
      }
    }
  }
  std::vector<page_place> to;
  for (index_t b = 0; b < call.p.batch; ++b)
    for (index_t n = 0; n < pages; ++n) to.push_back({b, n});
  attune::detail::sort_stably(to, [&](page_place const& x, page_place const& y) {
    return of[std::size_t(x.batch * pages + x.number)].gain() > of[std::size_t(y.batch * pages + y.number)].gain();
  });
  return to;
}

/// Pages that are read as their neighbors, or as pages of another sequence. For a FAIL, where the caller says how
/// many keys a page has. The pages whose own keys seem to be missing come first; where there are very many readings,
/// the others are not tried.
template <class Op>
void by_pages(sampled_call<Op>& call) {
  if constexpr (Op::uses(field::k)) {
    if (call.how.page <= 0 || call.how.page >= call.p.keys) return;
    constexpr index_t most = 256;  // readings that are tried
    index_t tried = 0;
    for (auto const& [b, n] : pages_by_suspicion(call, call.how.page))
      for (index_t from = 0; from < call.p.batch; ++from)
        for (index_t m : {n, n - 1, n + 1}) {
          index_t const first = n * call.how.page, last = (std::min)(call.p.keys, first + call.how.page),
                        by = (m - n) * call.how.page;
          if ((m == n && from == b) || (from != b && m != n)) continue;
          if (first + by < 0 || last + by > call.p.keys || ++tried > most) continue;  // no such keys
          std::vector<bool> page(std::size_t(call.p.keys), false);
          std::fill(page.begin() + first, page.begin() + last, true);
          call.rows.pairs().mark(std::move(page));
          call.rows.pairs().read_from(from, by);
          finding f;
          f.name = attune::detail::text("page ", n, " of batch element ", b, " read as page ", m, " of batch element ",
                                        from, ": a stale page");
          f.look_at = "the block table, and the stride of its rows";
          call.report.findings.push_back(call.judged(f, row_change{.keys = marked::elsewhere},
                                                     [b = b](sampled_row const& r) { return r.batch == b; }));
        }
  }
}

/// Tiles of k, of v, or of both that are read as their neighbors: stale tiles of shared memory, exchanged pages.
template <class Op>
void add_other_tiles(suspicions<Op>& all, sampled_call<Op> const& call) {
  if constexpr (Op::uses(field::k)) {
    problem_shape const& p = call.p;
    if (double(call.in.k.extents().size()) > 4e6 || double(call.in.v.extents().size()) > 4e6) return;
    std::vector<index_t> sizes{16, 32, 64};
    if (call.how.page > 0 && std::find(sizes.begin(), sizes.end(), call.how.page) == sizes.end())
      sizes.push_back(call.how.page);
    for (index_t size : sizes) {
      if (2 * size > p.keys) continue;
      std::vector<index_t> tiles;
      for (auto const& [b, n] : pages_by_suspicion(call, size))
        if (std::find(tiles.begin(), tiles.end(), n) == tiles.end() && tiles.size() < 3) tiles.push_back(n);
      for (index_t n : tiles)
        for (index_t m : {n - 1, n + 1}) {
          if (m < 0 || ((std::max)(n, m) + 1) * size > p.keys) continue;
          for (bool exchanged : {false, true})
            for (int which : {3, 1, 2}) {
              auto const from = [=](index_t j) {
                return j / size == n ? j + (m - n) * size : exchanged && j / size == m ? j + (n - m) * size : j;
              };
              std::string const of = which == 3 ? "k and v" : which == 1 ? "k" : "v";
              all.add_call(attune::detail::text("keys ", n * size, "..", (n + 1) * size - 1, " of ", of,
                                                exchanged ? " exchanged with keys " : " read from keys ", m * size,
                                                "..", (m + 1) * size - 1,
                                                exchanged ? ": pages or tiles exchanged" : ": a stale page or tile"),
                           "the block table, and the barrier between loading a tile and its use",
                           [=, &call](other_call<Op>& to) {
                             auto const moved = [&](any_tensor const& x) {
                               shape const& e = x.extents();
                               std::vector<double>& numbers = to.numbers.emplace_back();
                               numbers.reserve(std::size_t(e.size()));
                               for (index_t b = 0; b < e.batch; ++b)
                                 for (index_t h = 0; h < e.head; ++h)
                                   for (index_t j = 0; j < e.position; ++j)
                                     for (index_t d = 0; d < e.feature; ++d) numbers.push_back(x(b, h, from(j), d));
                               return any_tensor(tensor<double const>(numbers, e));
                             };
                             to.numbers.reserve(2);
                             if (which != 2) to.in.k = moved(call.in.k);
                             if (which != 1) to.in.v = moved(call.in.v);
                           });
            }
        }
    }
  }
}

}  // namespace attune::testing::detail
