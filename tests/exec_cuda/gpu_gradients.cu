// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Gradients on a device against gradient_error_bound(), and times of forward and backward passes together, at the
// shapes of scripts/lib/torch_times.py.
#include <attune/cuda_gradients.hpp>

#include "../unit/exec/cuda/gradients.hpp"
#include "gpu_main.hpp"

namespace attune::cuda_check {

/// A call on the device from the numbers of a problem; NaN in outputs before.
template <int Width, class E = bfloat16, class Op>
void gradients(char const* name, Op const& op, test::gradient_extents const& n) {
  ++cases;
  std::string wrong;
  try {
    test::gradient_problem<Op, E> p(op, n);
    p.asked.by_lse = p.asked.by_ground = false;
    device_place place;
    auto const in = make_inputs<Op, tensor<E const>>(
        [&]<field F>() { return tensor<E const>(place.keep(p.numbers(F)), p.extents(F)); }, n.offset);
    shape const rows = p.rows(n.value_width);
    cotangents<Op, tensor<E const>> const d{.out = tensor<E const>(place.keep(p.by_out()), rows)};
    auto const size = std::size_t(saved_size(op, p.in()));
    std::span<float> const saved(place.keep(std::vector<float>(size, NAN)), size);
    E* const out = place.keep(std::vector<E>(std::size_t(rows.size()), p.none()));
    cuda<E, exec_cuda::widths<Width>> const exec;
    forward_and_save(exec, op, in, outputs<Op, E>{.out = tensor<E>(out, rows)}, saved);
    auto const got = p.gradients([&](auto const&, auto const&, gradient_outputs<Op, E> const& to) {
      gradient_outputs<Op, E> there;
      auto const room = [&]<class N>(tensor<N> const& x, tensor<N>& on_device) {
        if (x.absent()) return;
        std::vector<N> const none(std::size_t(x.extents().size()), N(NAN));
        on_device = tensor<N>(place.keep(none), x.extents());
      };
      auto const back = [&]<class N>(tensor<N> const& x, tensor<N> const& on_device) {
        if (x.absent()) return;
        shape const e = x.extents();
        std::vector<N> const y = place.fetch(on_device.data(), std::size_t(e.size()));
        auto from = y.begin();
        for (index_t b = 0; b < e.batch; ++b)
          for (index_t h = 0; h < e.head; ++h)
            for (index_t i = 0; i < e.position; ++i)
              for (index_t f = 0; f < e.feature; ++f) x(b, h, i, f) = *from++;
      };
      for (std::size_t f = 0; f < to.fields.size(); ++f) room(to.fields[f], there.fields[f]);
      for (std::size_t k = 0; k < to.parameters.size(); ++k) room(to.parameters[k], there.parameters[k]);
      vjp(exec, op, in, std::span<float const>(saved), d, there);
      for (std::size_t f = 0; f < to.fields.size(); ++f) back(to.fields[f], there.fields[f]);
      for (std::size_t k = 0; k < to.parameters.size(); ++k) back(to.parameters[k], there.parameters[k]);
    });
    wrong = p.beyond_bound(got);
    if (p.compared == 0) wrong = "nothing was compared";
  } catch (std::exception const& e) {
    wrong = e.what();
  }
  failures += wrong.empty() ? 0 : 1;
  std::printf("%s  %-34s D%d  %s\n", wrong.empty() ? "PASS" : "FAIL", name, Width, wrong.c_str());
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
    auto const in =
        make_inputs<Op, tensor<E const>>([&]<field F>() { return tensor<E const>(place.keep(x), e); });
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
  test::gradient_extents const n{.heads = 4, .key_heads = 2, .value_heads = 2, .queries = 150, .keys = 170};
  test::gradient_extents const wide{.heads = 2, .queries = 150, .keys = 170, .width = 128, .value_width = 128};
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
