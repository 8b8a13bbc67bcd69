// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Gradients on a device against the same operator in double on the host, and times of forward and backward passes together, at the
// shapes of scripts/lib/torch_times.py.
#include <attune/cuda_gradients.hpp>
#include <attune/exec/reference/dense_vjp.hpp>

#include "gpu_main.hpp"

namespace attune::cuda_check {

/// The largest error of a gradient, as a share of its largest number; infinite where NaN is.
template <class N>
double share_of_largest(std::vector<N> const& got, std::vector<double> const& right) {
  double most = 1e-30, worst = 0;
  for (double y : right) most = std::fmax(most, std::fabs(y));
  for (std::size_t n = 0; n < right.size(); ++n) {
    double const error = std::fabs(double(float(got[n])) - right[n]);
    worst = error <= worst ? worst : error;
    if (std::isnan(error)) return HUGE_VAL;
  }
  return worst / most;
}
/// One operator with random numbers. NaN in gradients before. An error of 2^-6 of the largest number is allowed in bf16,
/// which has 8 bits and rounds weights and their slopes; 2^-9 in fp16; 2^-16 of floats.
template <int Width, class E = bfloat16, class Op>
void gradients(char const* name, Op const& op, sizes const& n) {
  ++cases;
  std::string wrong;
  double worst = 0;
  try {
    device_place place;
    std::mt19937 random(11);
    std::normal_distribution<float> normal;
    std::vector<double> wide[field_count + 1];
    auto const draw = [&](shape const& e, std::vector<double>& to) {
      std::vector<E> x;
      for (index_t k = 0; k < e.size(); ++k) x.push_back(E(normal(random))), to.push_back(double(float(x.back())));
      return tensor<E const>(place.keep(x), e);
    };
    auto const in = make_inputs<Op, tensor<E const>>([&]<field F>() { return draw(extents_of(F, n), wide[int(F)]); });
    auto const exact = make_inputs<Op, tensor<double const>>(
        [&]<field F>() { return tensor<double const>(wide[int(F)].data(), extents_of(F, n)); });
    shape const rows{n.batch, n.heads, n.queries, n.value_width};
    cotangents<Op, tensor<E const>> const d{.out = draw(rows, wide[field_count])};
    cotangents<Op, tensor<double const>> const by{.out = tensor<double const>(wide[field_count].data(), rows)};
    auto const right = vjp(thrust_on<double>(thrust::host), op, exact, by);

    auto const size = std::size_t(saved_size(op, exact));
    std::span<float> const saved(place.keep(std::vector<float>(size, NAN)), size);
    outputs<Op, E> const out{.out = tensor<E>(place.keep(std::vector<E>(std::size_t(rows.size()), E(NAN))), rows)};
    gradient_outputs<Op, E> to;
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F) && exec_cuda::has_gradient<Op>(F)) {
        shape const e = extents_of(F, n);
        to.of(F) = tensor<E>(place.keep(std::vector<E>(std::size_t(e.size()), E(NAN))), e);
      }
    });
    cuda<E, exec_cuda::widths<Width>> const exec;
    forward_and_save(exec, op, in, out, saved);
    vjp(exec, op, in, std::span<float const>(saved), d, to);
    for_each_field([&]<field F>() {
      if (to.of(F).absent()) return;
      std::vector<double> const& expected = right.of(F).values;
      worst = std::fmax(worst, share_of_largest(place.fetch(to.of(F).data(), expected.size()), expected));
    });
    if (!(worst <= (std::is_same_v<E, bfloat16> ? 0x1p-6 : std::is_same_v<E, float> ? 0x1p-16 : 0x1p-9)))
      wrong = "too much";
  } catch (std::exception const& e) {
    wrong = e.what();
  }
  failures += wrong.empty() ? 0 : 1;
  std::printf("%s  %-34s D%d  error %.2g of the largest  %s\n", wrong.empty() ? "PASS" : "FAIL", name, Width, worst,
              wrong.c_str());
  std::fflush(stdout);
}

/// Milliseconds of a forward and a backward pass. A pass forward counts 4 B H L^2 D operations, a pass back 10.
template <int Width, class Op>
void time_both(char const* name, Op const& op, double share) {
  if (few) return;
  ++cases;
  try {
    using E = bfloat16;
    device_place place;
    shape const e{4, 16, 4096, Width};
    std::vector<E> x(std::size_t(e.size()));
    unsigned state = 1;
    for (auto& y : x) state = state * 1664525u + 1013904223u, y = E(float(state >> 8) * 0x1p-23f - 1.f);
    auto const in = make_inputs<Op, tensor<E const>>([&]<field F>() { return tensor<E const>(place.keep(x), e); });
    cotangents<Op, tensor<E const>> const d{.out = tensor<E const>(place.keep(x), e)};
    outputs<Op, E> const out{.out = tensor<E>(place.keep(x), e)};
    gradient_outputs<Op, E> to;
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F) && exec_cuda::has_gradient<Op>(F)) to.of(F) = tensor<E>(place.keep(x), e);
    });
    auto const size = std::size_t(attune::detail::saved_size<float, Op>(
        attune::detail::checked_inputs("saved_size", op, in, memory_kind::device)));
    std::span<float> const saved(place.keep(std::vector<float>(size)), size);
    std::span<float const> const rows = saved;
    cuda<E, exec_cuda::widths<Width>> exec;
    exec.bytes = std::max(workspace_bytes(exec, op, in, out), workspace_bytes(exec, op, in, rows, d, to));
    exec.workspace = place.keep(std::vector<char>(exec.bytes));
    double const ms = median_milliseconds([&] {
      forward_and_save(exec, op, in, out, saved);
      vjp(exec, op, in, rows, d, to);
    });
    std::printf("TIME  %-34s forward + backward B4 H16 L4096 D%d  %.3f ms  %.0f TFLOP/s\n", name, Width, ms,
                14.0 * 64 * 4096.0 * 4096.0 * Width * share / ms * 1e-9);
  } catch (std::exception const& e) {
    ++failures;
    std::printf("FAIL  TIME  %-34s %s\n", name, e.what());
  }
  std::fflush(stdout);
}

void run() {
  auto const softmax = softmax_attention(mask::causal{});
  auto const principled = principled_attention({.alpha = -1.0, .beta = 0.2, .gamma = 0.3}, mask::causal{});
  sizes const n{.heads = 4, .key_heads = 2, .value_heads = 2, .queries = 150, .keys = 170};
  sizes const wide{.queries = 150, .keys = 170, .width = 128, .value_width = 128, .gate_width = 128};
  gradients<64>("softmax causal, GQA", softmax, n);
  gradients<64, float16>("softmax causal, GQA, fp16", softmax, n);
  gradients<64, float>("softmax causal, GQA, fp32", softmax, n);
  gradients<64>("softcap causal", softcap_attention(30, mask::causal{}), n);
  gradients<64>("principled causal", principled, n);
  gradients<64>("sinks and window", softmax_attention(mask::sink_window{.sinks = 4, .width = 30}), n);
  gradients<128>("softmax causal", softmax, wide);
  gradients<128>("principled causal", principled, wide);
  time_both<64>("softmax", softmax_attention(), 1);
  time_both<64>("softmax causal", softmax, 0.5);
  time_both<128>("softmax", softmax_attention(), 1);
  time_both<128>("softmax causal", softmax, 0.5);
  time_both<128>("principled causal", principled, 0.5);
}

}  // namespace attune::cuda_check
