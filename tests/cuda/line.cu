// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <attune/line/thrust/gaussian.hpp>
#include <attune/line/thrust/laplacian_vjp.hpp>
#include <attune/line/thrust/sliced_relu.hpp>

#include "parity.hpp"

namespace attune::cuda_test {

/// The operator on the device and on the host, both in double: heads with orders of their own over values that they
/// share.
template <class Op>
void check_on_device(Op const& op) {
  if (!has_device()) return;
  shape const queries{2, 4, 37, 1}, keys{2, 4, 501, 1}, values{2, 2, 501, 11}, outputs{2, 4, 37, 11};
  auto const draw = [](shape const& e, double from) {
    std::vector<double> x(std::size_t(e.size()));
    for (std::size_t n = 0; n < x.size(); ++n) x[n] = 3 * std::sin(from + 1.3 * double(n));
    return x;
  };
  auto const q = draw(queries, 1), k = draw(keys, 2), v = draw(values, 3);
  std::vector<double> expected(std::size_t(outputs.size()));
  thrust::device_vector<double> const there_q = q, there_k = k, there_v = v;
  thrust::device_vector<double> out(expected.size(), std::numeric_limits<double>::quiet_NaN());
  auto const at = [](auto& x) { return thrust::raw_pointer_cast(x.data()); };
  forward(thrust_on<double>(thrust::host), op,
          {.v = tensor<double const>(v.data(), values),
           .sort_q = tensor<double const>(q.data(), queries),
           .sort_k = tensor<double const>(k.data(), keys)},
          {.out = tensor<double>(expected.data(), outputs)});
  forward(thrust_on<double>(thrust::device), op,
          {.v = tensor<double const>(at(there_v), values),
           .sort_q = tensor<double const>(at(there_q), queries),
           .sort_k = tensor<double const>(at(there_k), keys)},
          {.out = tensor<double>(at(out), outputs)});
  std::vector<double> const got(out.begin(), out.end());
  CHECK(worst_error(got, expected) <= 1e-12);
}

/// Gradients: those by the scalars of the keys go through both scans.
void check_gradient() {
  if (!has_device()) return;
  constexpr index_t n = 300;
  shape const s{1, 1, n, 1};
  std::vector<double> x(n), y(n);
  for (index_t i = 0; i < n; ++i)
    x[std::size_t(i)] = std::sin(1.3 * double(i)), y[std::size_t(i)] = std::cos(double(i));
  thrust::device_vector<double> const there_x = x, there_y = y;
  auto const of = [&](auto const& exec, double const* q, double const* k) {
    tensor<double const> const a(q, s), b(k, s);
    return vjp(exec, line::laplacian{0.5}, {.v = a, .sort_q = a, .sort_k = b}, {.out = b});
  };
  auto const right = of(thrust_on<double>(thrust::host), x.data(), y.data());
  auto const got = of(thrust_on<double>(thrust::device), thrust::raw_pointer_cast(there_x.data()),
                      thrust::raw_pointer_cast(there_y.data()));
  for (field const f : {field::sort_q, field::sort_k, field::v})
    CHECK(worst_error(got.of(f).values, right.of(f).values) <= 1e-11);
  CHECK(worst_error(got.parameter("tau").values, right.parameter("tau").values) <= 1e-9);
}

TEST_CASE("cuda: Laplacian on a line") {
  check_on_device(line::laplacian{0.5});
  check_gradient();
}
TEST_CASE("cuda: sliced ReLU on a line") { check_on_device(line::sliced_relu{normalizer::normalized_relu{}}); }
TEST_CASE("cuda: certified windows") { check_on_device(line::gaussian{0.01, 1e-12}); }

}  // namespace attune::cuda_test
