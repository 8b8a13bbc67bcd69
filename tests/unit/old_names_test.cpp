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
#include <attune/cache/eviction/density.hpp>
#include <attune/cache/eviction/first_and_recent.hpp>
#include <attune/cache/eviction/geometric.hpp>
#include <attune/cache/eviction/heavy_hitters.hpp>
#include <attune/exec/cpu/float8_cache.hpp>
#include <attune/exec/pool_functions.hpp>
#include <attune/exec/thread_placement.hpp>
#include <attune/exec/thread_pool.hpp>
#include <attune/exec/threading.hpp>
#include <attune/testing/call_numbers.hpp>
#include <attune/testing/error_bound.hpp>
#include <attune/testing/gradient_bound.hpp>
#include <attune/testing/number_format.hpp>

namespace {

using namespace attune;

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
  TEST_CASE("threads by the names of version 0.1") {
    thread_executor_ref const threads = thread_pool{};
    CHECK(threads.concurrency() >= 1);
  }
}

}  // namespace
