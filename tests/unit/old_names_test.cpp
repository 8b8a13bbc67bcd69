// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A program written for version 0.1: old paths and names still work. The compiler says where they are now.
#include <unit/check.hpp>

#include <attune/analysis/random_selection.hpp>
#include <attune/analysis/selection.hpp>
#include <attune/analysis/separability.hpp>
#include <attune/analysis/vanishing.hpp>
#include <attune/attune.hpp>
#include <attune/cache/decode.hpp>
#include <attune/cache/eviction/density.hpp>
#include <attune/cache/eviction/first_and_recent.hpp>
#include <attune/cache/eviction/geometric.hpp>
#include <attune/cache/eviction/heavy_hitters.hpp>
#include <attune/exec/cpu/float8_cache.hpp>
#include <attune/exec/pool_functions.hpp>
#include <attune/exec/thread_placement.hpp>
#include <attune/exec/thread_pool.hpp>
#include <attune/exec/threading.hpp>
#include <attune/sorted/gaussian.hpp>
#include <attune/sorted/hybrid.hpp>
#include <attune/sorted/laplacian.hpp>
#include <attune/sorted/low_rank.hpp>
#include <attune/sorted/sliced_relu.hpp>
#include <attune/testing/call_numbers.hpp>
#include <attune/testing/error_bound.hpp>
#include <attune/testing/gradient_bound.hpp>
#include <attune/testing/number_format.hpp>

namespace {

using namespace attune;

/// A line of keys, one head.
struct line_of_keys {
  std::vector<double> q, k, v, out, lse;
  shape rows{1, 1, 20, 1};

  line_of_keys() : out(20), lse(20) {
    for (int n = 0; n < 20; ++n) {
      q.push_back(std::sin(1.3 * n));
      k.push_back(std::cos(0.7 * n));
      v.push_back(std::sin(0.4 * n + 1));
    }
  }
};

TEST_SUITE("old names") {
  TEST_CASE("bounds of an operator by the names of version 0.1") {
    auto const op = attention(kernel::dot_product{});
    using Op = std::remove_const_t<decltype(op)>;
    double q = 1, k = 2, v = 3, d = 1;
    shape const one{1, 1, 1, 1};
    auto const in = make_inputs<Op, any_tensor>([&]<field F>() {
      return tensor<double const>(F == field::q ? &q : F == field::k ? &k : &v, one);
    });
    testing::error_bounds const bounds = testing::error_bound(op, in, certify::precision{});
    CHECK(bounds.out.at(0).value == 3);  // a single key
    cotangents<Op, any_tensor> by;
    by.out = tensor<double const>(&d, one);
    testing::gradient_bounds const of_gradients = testing::gradient_error_bound(op, in, by, certify::precision{});
    CHECK(of_gradients.of(field::v).at(0).value == 1);
    CHECK(testing::rounded_to(certify::storage::fp16, 1 + 0x1p-12) == 1);
  }
  TEST_CASE("keys on a line by the names of version 0.1") {
    using sorted::visibility;
    line_of_keys p;
    sorted::arrays<double> const in{tensor(p.q, p.rows), tensor(p.k, p.rows), tensor(p.v, p.rows)};
    sorted::results<double> const to{tensor(p.out, p.rows), tensor(p.lse, p.rows)};
    auto const right = [&](auto const& op) {
      using Op = std::remove_cvref_t<decltype(op)>;
      std::vector<double> out(p.q.size());
      forward(cpu<double>{}, op, inputs<Op, tensor<double const>>{.v = in.v, .sort_q = in.sort_q, .sort_k = in.sort_k},
              {.out = tensor(out, p.rows)});
      return out;
    };
    sorted::forward(sorted::laplacian{0.5, visibility::causal}, in, to);
    CHECK(p.out == right(line::laplacian{0.5, mask::causal{}}));
    sorted::forward(sorted::gaussian{.tau = 0.5, .sees = visibility::window(3)}, in, to, {2});
    CHECK(p.out == right(line::gaussian{0.5, 1e-6, mask::window{3}}));
    sorted::forward(sorted::sliced_relu{divisor::sum, visibility::causal_window(4)}, in, to);
    CHECK(p.out == right(line::sliced_relu{normalizer::normalized_relu{}, mask::causal_window{4}}));
    sorted::forward(sorted::sliced_relu{}, in, sorted::results<double>{to.out, {}});
    CHECK(p.out == right(line::sliced_relu{}));
    sorted::forward(sorted::nystroem{.tau = 0.5, .landmarks = 6}, in, to);
    CHECK(p.out == right(line::nystroem{0.5, 6}));
    sorted::forward(sorted::fourier_features{.tau = 0.5, .features = 9}, in, to);
    CHECK(p.out == right(line::fourier_features{0.5, 9}));
    sorted::hybrid_arrays<double> const few{in.sort_q, in.sort_k, in.v};
    sorted::forward(sorted::hybrid{.tau = 0.5}, few, sorted::hybrid_results<double>{to.out, to.lse});
    CHECK(p.out == right(line::windowed{0.5}));
    sorted::forward(sorted::truncated{.tau = 0.5, .keys = 5}, few, sorted::hybrid_results<double>{to.out});
    CHECK(p.out == right(line::windowed{0.5, line::half{5}}));
    sorted::forward(sorted::limited_radius{.tau = 0.5, .eps = 0.1}, few, sorted::hybrid_results<double>{to.out});
    CHECK(p.out == right(line::windowed{0.5, line::radius{0.1}}));
    // With vectors and a sink without a value.
    std::vector<double> const sink{0.25};
    shape const one{1, 1, 1, 1};
    sorted::hybrid_arrays<double> const all{.sort_q = in.sort_q,
                                            .sort_k = in.sort_k,
                                            .v = in.v,
                                            .q = in.sort_q,
                                            .k = in.sort_k,
                                            .sink_k = tensor(sink, one)};
    sorted::forward(sorted::hybrid{.tau = 0.5, .scale = 2.0}, all, sorted::hybrid_results<double>{to.out});
    std::vector<double> const zero{0};
    std::vector<double> with_sink(p.q.size());
    line::hybrid const op{0.5, line::certified{}, mask::none{}, line::sink{0.25}, 2.0};
    forward(
        cpu<double>{}, op,
        {.q = in.sort_q, .k = in.sort_k, .v = in.v, .sort_q = in.sort_q, .sort_k = in.sort_k, .v0 = tensor(zero, one)},
        {.out = tensor(with_sink, p.rows)});
    CHECK(p.out == with_sink);
  }
  TEST_CASE("gradients of keys on a line by the names of version 0.1") {
    line_of_keys p;
    sorted::arrays<double> const in{tensor(p.q, p.rows), tensor(p.k, p.rows), tensor(p.v, p.rows)};
    std::vector<double> q(p.q.size()), k(p.k.size()), v(p.v.size()), tau(1), each(p.q.size()), scale(1);
    shape const one{1, 1, 1, 1};
    sorted::vjp(sorted::laplacian{0.5}, in, {in.v, in.v},
                sorted::gradients<double>{tensor(q, p.rows), tensor(k, p.rows), tensor(v, p.rows), tensor(tau, one)});
    auto const by = [&](auto const& op, auto const& inputs) {
      using Op = std::remove_cvref_t<decltype(op)>;
      cotangents<Op, tensor<double const>> d;
      d.out = in.v, d.lse = in.v;
      return vjp(cpu<double>{}, op, inputs, d);
    };
    using L = line::laplacian<>;
    auto const g = by(L{0.5}, inputs<L, tensor<double const>>{.v = in.v, .sort_q = in.sort_q, .sort_k = in.sort_k});
    CHECK(q == g.of(field::sort_q).values);
    CHECK(k == g.of(field::sort_k).values);
    CHECK(v == g.of(field::v).values);
    CHECK(tau == g.parameter("tau").values);
    // One number per row of a tau and a scale that all rows share.
    sorted::hybrid_arrays<double> const all{in.sort_q, in.sort_k, in.v, in.sort_q, in.sort_k};
    sorted::vjp(sorted::hybrid{.tau = 0.5, .scale = 2.0}, all, {in.v, in.v},
                sorted::hybrid_gradients<double>{.tau = tensor(each, p.rows), .scale = tensor(scale, one)});
    using H = line::hybrid<>;
    std::vector<double> const same(p.q.size(), 0.5);
    auto const h = by(H{per_query(same, 1), line::certified{}, mask::none{}, line::no_sink{}, 2.0},
                      inputs<H, tensor<double const>>{
                          .q = in.sort_q, .k = in.sort_k, .v = in.v, .sort_q = in.sort_q, .sort_k = in.sort_k});
    CHECK(each == h.parameter("tau").values);
    CHECK(scale == h.parameter("scale").values);
  }
  TEST_CASE("a sorted cache by the names of version 0.1") {
    cache::sorted<double> kv({.value_width = 1});
    for (double const x : {0.0, 1.0, 3.0}) kv.insert(std::vector{x}, std::vector{10 * x});
    double const at = 2;
    double out = 0, right = 0;
    shape const one{1, 1, 1, 1};
    cache::row_report report;
    cache::decode(cpu<double>{}, kv, cache::queries<double>{.sort_q = {&at, one}, .tau = 0.5}, cache::certified{1e-6},
                  cache::decoded<double>{.out = {&out, one}, .rows = {&report, 1}});
    decode(cpu<double>{}, line::windowed{0.5, line::certified{1e-6}}, kv, {.sort_q = {&at, one}},
           {.out = {&right, one}});
    CHECK(out == right);
    CHECK(report.summed == 3);
  }
  TEST_CASE("visibility: what does not fit is refused in words") {
    using sorted::visibility;
    using test::error_of;
    CHECK(error_of([] { visibility::causal_window(0); }).find("width has the value 0") != std::string::npos);
    CHECK(error_of([] { visibility::window(-1); }).find("radius has the value -1") != std::string::npos);
    std::vector<index_t> const ids{1, 2, 1}, two{1, 2};
    CHECK(error_of([&] { visibility::full.within(two, ids).check("f", 2, 3); }).find("id 1 after 2 at position 2") !=
          std::string::npos);
    CHECK(error_of([&] { visibility::full.within(two, two).check("f", 2, 3); }).find("2 ids") != std::string::npos);
    CHECK(to_string(visibility::full) == "full");
    CHECK(to_string(visibility::causal.within(two, two)) == "causal within documents");
    CHECK(to_string(visibility::causal_window(5)) == "causal_window(5)");
    CHECK(to_string(visibility::window(3)) == "window(3)");
    CHECK(visibility::causal == visibility::causal);
    CHECK(!(visibility::causal == visibility::full));
  }
  TEST_CASE("threads by the names of version 0.1") {
    thread_executor_ref const threads = thread_pool{};
    CHECK(threads.concurrency() >= 1);
  }
}

}  // namespace
