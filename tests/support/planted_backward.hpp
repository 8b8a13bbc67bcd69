// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A naive backward pass in float with planted defects: softmax with a sink, causal, grouped heads. Independent of
// attune's own code, on purpose.
//
//   P = e^(a - lse),  dS = P (dP - D + dlse),  dP = dO v,  D = <dO, out>,  dq = c dS k,  dk = c dS^T q,  dv = P^T dO
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <attune/certify/number_format.hpp>
#include <attune/testing/drawn_problem.hpp>

namespace attune::test {

struct backward_mutation {
  char const* name = "";   ///< what is wrong
  char const* cause = "";  ///< the finding that should name it, up to '|' if several may; "" if there is no name for it
  double scale = 1, lse_term = 1, row_term = 1, by_q = 1, by_k = 1, by_v = 1, sink = 0;
  int shift = 0, tail = 0, skipped_from = -1, skipped_to = -1;
  bool top_left = false, one_head = false, q_swapped = false, reversed = false;
};

struct planted_gradients {
  std::vector<float> q, k, v;
};

/// `rounded`: the 16-bit format that out, P and dS are rounded to on the way, as tensor cores do, or fp32. `sink`: the
/// logit.
template <class Op>
planted_gradients run_planted_backward(testing::drawn_problem<Op> const& p, double sink, backward_mutation const& m,
                                       certify::storage rounded) {
  auto const& q = p.of(field::q);
  auto const& k = p.of(field::k);
  auto const& v = p.of(field::v);
  index_t const H = q.extents.head, Lq = q.extents.position, D = q.extents.feature, Lk = k.extents.position,
                Dv = v.extents.feature, Hk = k.extents.head, Hv = v.extents.head;
  auto const narrow = [&](float x) { return float(certify::rounded_to(rounded, x)); };
  auto const row = [](std::vector<float> const& x, index_t rows, index_t h, index_t i, index_t width) {
    return x.data() + (h * rows + i) * width;
  };
  planted_gradients g;
  g.q.assign(q.floats.size(), 0);
  g.k.assign(k.floats.size(), 0);
  g.v.assign(v.floats.size(), 0);
  float const scale = float(m.scale / std::sqrt(double(D)));
  for (index_t h = 0; h < H; ++h)
    for (index_t i = 0; i < Lq; ++i) {
      index_t const kh = h * Hk / H, vh = h * Hv / H;
      index_t const end = std::clamp<index_t>((m.top_left ? i : i + Lk - Lq) + 1 + m.shift, 0, Lk);
      std::vector<index_t> keys;
      for (index_t j = 0; j < end; ++j)
        if (j < m.skipped_from || j >= m.skipped_to) keys.push_back(j);
      if (m.reversed) std::reverse(keys.begin(), keys.end());
      float const *const at_q = row(q.floats, Lq, h, i, D), *const by_out = row(p.by_out().floats, Lq, h, i, Dv);
      float const by_lse = p.by_lse().floats[std::size_t(h * Lq + i)];
      std::vector<float> a;
      float top = float(sink + m.sink);
      for (index_t j : keys) {
        float s = 0;
        for (index_t c = 0; c < D; ++c) s += at_q[c] * row(k.floats, Lk, kh, j, D)[c];
        a.push_back(s * scale);
        top = std::max(top, a.back());
      }
      float sum = std::exp(float(sink + m.sink) - top);
      for (float x : a) sum += std::exp(x - top);
      float const lse = top + std::log(sum);
      std::vector<float> out(std::size_t(Dv), 0.f);
      for (std::size_t n = 0; n < keys.size(); ++n)
        for (index_t c = 0; c < Dv; ++c)
          out[std::size_t(c)] += narrow(std::exp(a[n] - lse)) * row(v.floats, Lk, vh, keys[n], Dv)[c];
      float term = 0;
      for (index_t c = 0; c < Dv; ++c) term += by_out[c] * narrow(out[std::size_t(c)]);
      bool const of_keys = !(m.one_head && h % (H / Hk) != 0) && i < Lq - m.tail;
      for (std::size_t n = 0; n < keys.size(); ++n) {
        index_t const j = keys[n];
        float const weight = std::exp(a[n] - lse);
        float gain = 0;
        for (index_t c = 0; c < Dv; ++c) gain += by_out[c] * row(v.floats, Lk, vh, j, Dv)[c];
        float const ds = narrow(weight * (gain - float(m.row_term) * term + float(m.lse_term) * by_lse));
        index_t const to = m.q_swapped ? i * H + h : h * Lq + i;
        for (index_t c = 0; c < D; ++c) {
          g.q[std::size_t(to * D + c)] += float(m.by_q) * scale * ds * row(k.floats, Lk, kh, j, D)[c];
          if (of_keys) g.k[std::size_t((kh * Lk + j) * D + c)] += float(m.by_k) * scale * ds * at_q[c];
        }
        for (index_t c = 0; c < Dv && of_keys; ++c)
          g.v[std::size_t((vh * Lk + j) * Dv + c)] += float(m.by_v) * narrow(weight) * by_out[c];
      }
    }
  return g;
}

inline std::vector<backward_mutation> backward_mutations() {
  auto const m = [](char const* name, char const* cause, auto const& change) {
    backward_mutation x;
    x.name = name;
    x.cause = cause;
    change(x);
    return x;
  };
  return {
      m("lse term left out", "gradient without its lse term", [](backward_mutation& x) { x.lse_term = 0; }),
      m("lse term with the wrong sign", "lse term of the gradient", [](backward_mutation& x) { x.lse_term = -1; }),
      m("dS = P dP", "row term", [](backward_mutation& x) { x.row_term = 0; }),
      m("dq without its scale", "dq", [](backward_mutation& x) { x.by_q = std::sqrt(32.); }),
      m("dk scaled twice", "dk", [](backward_mutation& x) { x.by_k = 1 / std::sqrt(32.); }),
      m("dv - 1 %", "dv", [](backward_mutation& x) { x.by_v = 0.99; }),
      m("scale + 2 %", "kernel.scale", [](backward_mutation& x) { x.scale = 1.02; }),
      m("sink ignored", "normalizer.logit", [](backward_mutation& x) { x.sink = -1000; }),
      m("dk, dv of one head of each group", "gradients of one head", [](backward_mutation& x) { x.one_head = true; }),
      m("causal mask top-left", "mask aligned top-left", [](backward_mutation& x) { x.top_left = true; }),
      m("mask one too far", "mask shifted by +1", [](backward_mutation& x) { x.shift = 1; }),
      m("diagonal missing", "mask shifted by -1", [](backward_mutation& x) { x.shift = -1; }),
      m("dq (B, L, H, D)", "head and position of dq transposed", [](backward_mutation& x) { x.q_swapped = true; }),
      m("tile of keys skipped", "", [](backward_mutation& x) { x.skipped_from = 8, x.skipped_to = 16; }),
      m("last two queries not in dk, dv", "", [](backward_mutation& x) { x.tail = 2; }),
  };
}

}  // namespace attune::test
