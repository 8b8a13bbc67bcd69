// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "parity.hpp"

namespace attune::cuda_test {

/// Statistics on the device against those of the same program on the host, in double.
template <class Op>
void check_statistics(Op const& op) {
  if (!has_device()) return;
  drawn<double> const d({});
  auto const of = [&](auto const& exec, auto const& in, tensor<double> const& out) {
    return statistics(exec, op, in, forward_and_save(exec, op, in, {.out = out}), {.columns = true, .above = 0.01});
  };
  std::vector<double> here(std::size_t(d.out().size()));
  thrust::device_vector<double> there(here.size());
  auto const right =
      of(thrust_on<double>(thrust::host), d.template on_host<Op>(), tensor<double>(here.data(), d.out()));
  auto const got = of(thrust_on<double>(thrust::device), d.template on_device<Op>(),
                      tensor<double>(thrust::raw_pointer_cast(there.data()), d.out()));
  CHECK(worst_error(got.mean_logit, right.mean_logit) <= 1e-12);
  CHECK(worst_error(got.mass, right.mass) <= 1e-12);
  CHECK(worst_error(got.entropy, right.entropy) <= 1e-12);
  CHECK(worst_error(got.columns, right.columns) <= 1e-12);
  CHECK(got.above == right.above);
}

TEST_CASE("cuda: statistics of masses") { check_statistics(sink_attention(0.5, visible())); }
TEST_CASE("cuda: statistics of candidates") { check_statistics(sparsemax_attention(visible())); }

}  // namespace attune::cuda_test
