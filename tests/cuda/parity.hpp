// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// An operator on a CUDA device against the same row program in double on the host. Needs CCCL and doctest alone, so
// that a machine with a GPU needs no more.
#pragma once

#include <cmath>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>

#include <attune/thrust.hpp>

namespace attune::cuda_test {

inline bool has_device() {
  int devices = 0;
  bool const found = cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
  if (!found) MESSAGE("no CUDA device: compiled, not run");
  return found;
}

/// Sizes that are multiples of nothing; grouped heads; the last keys are seen by nobody and are NaN.
struct sizes {
  index_t batch = 2, heads = 4, key_heads = 2, queries = 37, keys = 141, unseen = 3, width = 64, value_width = 70;
};

/// The extents of a field.
inline shape extents_of(field f, sizes const& n) {
  switch (side_of(f)) {
    case input_side::query:
      return {n.batch, n.heads, n.queries, f == field::output_gate ? n.value_width : f == field::sort_q ? 1 : n.width};
    case input_side::key:
      return {n.batch, n.key_heads, n.keys,
              f == field::v || f == field::value_gate      ? n.value_width
              : f == field::sort_k || f == field::key_bias ? 1
                                                           : n.width};
    case input_side::pair:
      return {n.batch, n.heads, n.queries, n.keys};
    case input_side::ground:
      return {1, n.heads, 1, n.value_width};
  }
  return {};
}

/// Numbers of every field, on the host in double and on the device in T; each is a float.
template <class T>
struct drawn {
  sizes n;
  std::vector<double> host[field_count], by_out;
  thrust::device_vector<T> device[field_count], device_by_out;

  explicit drawn(sizes const& s) : n(s) {
    double seed = 1;
    auto const draw = [&](shape const& e, bool of_keys, double least) {
      std::vector<double> x(std::size_t(e.size()));
      for (std::size_t at = 0; at < x.size(); ++at) {
        bool const seen = !of_keys || index_t(at) / e.feature % e.position < n.keys - n.unseen;
        x[at] = seen ? double(float(least + 1 + std::sin(seed + 1.7 * double(at))))
                     : std::numeric_limits<double>::quiet_NaN();
      }
      seed += 1;
      return x;
    };
    for (int f = 0; f < int(field_count); ++f) {
      bool const positive =
          field(f) == field::spread || field(f) == field::bias;  // a divisor; a prior, of which GOAT takes the log
      host[f] = draw(extents_of(field(f), n), side_of(field(f)) == input_side::key, positive ? 0.5 : -1);
      device[f] =
          std::vector<T>(host[f].begin(),
                         host[f].end());  // converted here: on the device that is a kernel for each pair of types
    }
    by_out = draw({n.batch, n.heads, n.queries, n.value_width}, false, -1);
    device_by_out = std::vector<T>(by_out.begin(), by_out.end());
  }
  shape out() const { return {n.batch, n.heads, n.queries, n.value_width}; }
  template <class Op>
  inputs<Op, tensor<double const>> on_host() const {
    return make_inputs<Op, tensor<double const>>(
        [&]<field F>() { return tensor<double const>(host[int(F)].data(), extents_of(F, n)); });
  }
  template <class Op>
  inputs<Op, tensor<T const>> on_device() const {
    return make_inputs<Op, tensor<T const>>(
        [&]<field F>() { return tensor<T const>(thrust::raw_pointer_cast(device[int(F)].data()), extents_of(F, n)); });
  }
};

/// The largest finite magnitude.
inline double largest(std::vector<double> const& expected) {
  double most = 0;
  for (double x : expected) most = std::isfinite(x) ? std::fmax(most, std::fabs(x)) : most;
  return most;
}
/// The largest error of a result, relative to the largest number expected or to `scale` if that is larger; infinity
/// where one has a NaN that the other has not.
template <class Got>
double worst_error(Got const& got, std::vector<double> const& expected, double scale = 0) {
  double const most = std::fmax(largest(expected), scale);
  double error = 0;
  if (got.size() != expected.size()) return std::numeric_limits<double>::infinity();
  for (std::size_t n = 0; n < expected.size(); ++n) {
    double const x = double(got[n]), y = expected[n];
    if (std::isnan(x) != std::isnan(y)) return std::numeric_limits<double>::infinity();
    if (!(x == y) && !std::isnan(x)) error = std::fmax(error, std::fabs(x - y));
  }
  return error / std::fmax(most, 1e-30);
}

/// What operators learn: the same floats wherever they run. Vector is a std::vector or a thrust::device_vector.
template <class Vector>
class tables {
  using number = typename Vector::value_type;
  using choices = std::conditional_t<std::is_same_v<Vector, std::vector<number>>, std::vector<index_t>,
                                     thrust::device_vector<index_t>>;

 public:
  /// (1, heads, rows, columns)
  table operator()(index_t heads, index_t rows, index_t columns) { return numbers(heads, rows, columns); }
  tensor<number const> numbers(index_t heads, index_t rows, index_t columns) {
    std::vector<number> x(std::size_t(heads * rows * columns));
    for (std::size_t at = 0; at < x.size(); ++at)
      x[at] = number(float(0.3 * std::sin(double(memory_.size()) + 0.9 * double(at))));
    memory_.push_back(Vector(x));
    return tensor<number const>(thrust::raw_pointer_cast(memory_.back().data()), shape{1, heads, rows, columns});
  }
  /// Which operator of a mixture each head runs.
  index_t const* choice(std::vector<index_t> const& which) {
    choices_ = which;
    return thrust::raw_pointer_cast(choices_.data());
  }

 private:
  std::deque<Vector> memory_;
  choices choices_;
};

/// Forward in T, and vjp if `Gradients`, of make(tables). Memory is NaN before it is written; a mask hides the keys
/// that are NaN.
template <class T, bool Gradients, class Make>
void check_parity_of(Make const& make) {
  if (!has_device()) return;
  drawn<T> const d({});
  double const tolerance = std::is_same_v<T, float> ? 4e-5 : 1e-12;  // sparsemax on an H100: 2.4e-5
  auto const exec = thrust_on<T>(thrust::device);
  auto const exact = thrust_on<double>(thrust::host);
  tables<thrust::device_vector<T>> there;
  tables<std::vector<double>> here;
  auto const op = make(there), same = make(here);
  using op_type = std::remove_const_t<decltype(op)>;
  std::vector<double> expected(std::size_t(d.out().size()));
  thrust::device_vector<T> out(expected.size(), std::numeric_limits<T>::quiet_NaN());
  forward(exec, op, d.template on_device<op_type>(), {.out = tensor<T>(thrust::raw_pointer_cast(out.data()), d.out())});
  forward(exact, same, d.template on_host<op_type>(), {.out = tensor<double>(expected.data(), d.out())});
  std::vector<T> const copied(out.begin(), out.end());
  CHECK(worst_error(copied, expected) <= tolerance);
  if constexpr (Gradients) {
    auto const got = vjp(exec, op, d.template on_device<op_type>(),
                         {.out = tensor<T const>(thrust::raw_pointer_cast(d.device_by_out.data()), d.out())});
    auto const right =
        vjp(exact, same, d.template on_host<op_type>(), {.out = tensor<double const>(d.by_out.data(), d.out())});
    for (int f = 0; f < int(field_count); ++f)
      CHECK_MESSAGE(worst_error(got.of(field(f)).values, right.of(field(f)).values) <= 20 * tolerance,
                    std::string(name_of(field(f))));
    // A parameter's gradient is a sum over all pairs. Its terms may cancel, as those of a margin's gamma do where the
    // normalizer does not see a shift: so errors are relative to the largest gradient of any parameter.
    double scale = 0;
    for (auto const& x : right.parameters) scale = std::fmax(scale, largest(x.values.values));
    for (std::size_t n = 0; n < right.parameters.size(); ++n)
      CHECK_MESSAGE(
          worst_error(got.parameters[n].values.values, right.parameters[n].values.values, scale) <= 100 * tolerance,
          right.parameters[n].path);
    for (std::size_t n = 0; n < right.tables.size(); ++n)
      CHECK_MESSAGE(worst_error(got.tables[n].values.values, right.tables[n].values.values) <= 100 * tolerance,
                    right.tables[n].path);
  }
}
/// The same of an operator without tables.
template <class T, bool Gradients, class Op>
void check_parity(Op const& op) {
  check_parity_of<T, Gradients>([&](auto&) { return op; });
}

/// Causal, offset so that nobody sees the last keys.
struct causal_but_last {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::interval;
  ATTUNE_HD constexpr key_interval keys(mask_row const& r) const { return {0, r.position + 1 - 3}; }
};
inline causal_but_last visible() { return {}; }

}  // namespace attune::cuda_test
