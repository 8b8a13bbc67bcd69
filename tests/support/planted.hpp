// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Naive attention in float with planted defects: what the verdict has to catch. Independent of attune's own code, on
// purpose.
//
//   ssmax + sink (causal, grouped heads):  a = (c log K + d) <q, k> / sqrt D,  w = e^a / (e^t + sum e^a)
//   principled (causal): a = s + kappa (s - gamma) - softplus(beta) softplus(-g),  w = e^a / sum e^max(a, gamma),
//       + w0 v0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

#include <attune/certify/number_format.hpp>
#include <attune/testing/drawn_problem.hpp>
#include <attune/testing/verdict.hpp>

namespace attune::test {

struct plant {
  char const* name;  ///< what is wrong
  char const*
      cause;  ///< the finding that should name it, up to '|' if several may; "" if the verdict has no name for it
  bool needs_lse = false;
  bool wide_only = false;  ///< no defect where probabilities are rounded to 16 bits anyway
};

/// What may be wrong with the naive kernel.
struct mutation {
  double scale = 1, sink = 0, bias = 1, gamma = 0, alpha = 1, beta = 1, v0 = 1, out = 1;
  int count = 0, shift = 0, skip_first = 0, double_first = 0, double_last = 0, value_late = 0, tail = 0, features = 0;
  bool all_keys = false, no_sink = false, no_scale = false, top_left = false, interleaved = false, v_swapped = false;
  bool out_swapped = false, sum_lacks_first = false, sum_lacks_last = false, base_two = false, lse_plain = false;
  bool lse_without_sink = false, no_gate = false, no_ground = false, no_rescale = false, sum_in_storage = false,
       reads_hidden = false;
  bool reversed = false, pairwise = false, gate_sign = false;
  int skipped_from = -1, skipped_to = -1, doubled_from = -1, doubled_to = -1;
  certify::storage weights = certify::storage::fp32, logits = certify::storage::fp32;
};

/// Parameters of both operators.
struct planted_parameters {
  double c = 0.4, d = 0.3, t = 0.5, alpha = -1, beta = 0.3, gamma = 0.2;
};

struct planted_result {
  std::vector<float> out, lse;
};

/// Runs the naive kernel. `principled` chooses the operator; numbers come from the drawn problem.
template <class Op>
planted_result run_planted(testing::drawn_problem<Op> const& p, planted_parameters const& par, mutation const& m,
                           certify::storage stored, bool principled) {
  using certify::rounded_to;
  using certify::storage;
  auto const& q = p.of(field::q);
  auto const& k = p.of(field::k);
  auto const& v = p.of(field::v);
  index_t const B = q.extents.batch, H = q.extents.head, Lq = q.extents.position, D = q.extents.feature;
  index_t const Hk = k.extents.head, Hv = v.extents.head, Lk = k.extents.position, Dv = v.extents.feature;
  auto const at = [](testing::detail::drawn_tensor const& x, index_t b, index_t h, index_t i, index_t c) {
    return x.floats[std::size_t(((b * x.extents.head + h) * x.extents.position + i) * x.extents.feature + c)];
  };
  auto const softplus = [](double x) { return std::fmax(x, 0.) + std::log1p(std::exp(-std::fabs(x))); };
  planted_result r;
  r.out.assign(std::size_t(B * H * Lq * Dv), 0);
  r.lse.assign(std::size_t(B * H * Lq), 0);
  float const scale = float(m.scale / std::sqrt(double(D)));
  for (index_t b = 0; b < B; ++b)
    for (index_t h = 0; h < H; ++h)
      for (index_t i = 0; i < Lq; ++i) {
        index_t const position = (m.top_left ? i : i + Lk - Lq), true_end = std::min(Lk, i + Lk - Lq + 1);
        index_t const end = std::clamp<index_t>(position + 1 + m.shift, 0, Lk);
        std::vector<index_t> keys;
        for (index_t j = m.skip_first; j < end; ++j)
          if (j < m.skipped_from || j >= m.skipped_to) keys.push_back(j);
        for (index_t j = m.doubled_from; j < std::min<index_t>(m.doubled_to, end); ++j) keys.push_back(j);
        if (m.double_first != 0 && end > 0) keys.push_back(0);
        if (m.double_last != 0 && end > 0) keys.push_back(end - 1);
        if (m.reversed) std::reverse(keys.begin(), keys.end());
        double const K = m.all_keys ? double(Lk) : std::fmax(1, double(true_end + m.count));
        float const log_k = float(std::log(K));
        index_t const kh = m.interleaved ? h % Hk : h * Hk / H, vh = m.interleaved ? h % Hv : h * Hv / H;
        std::vector<float> a, raw;
        for (index_t j : keys) {
          float s = 0;
          for (index_t c = 0; c < D - m.features; ++c) s += at(q, b, h, i, c) * at(k, b, kh, j, c);
          raw.push_back(s);
          s *= scale;
          float x;
          if (principled) {
            float const kappa = m.no_scale ? 0 : float(softplus(par.alpha) * m.alpha) * log_k, gamma = float(par.gamma);
            x = s + kappa * (s - gamma);
            if (!m.no_gate) {
              float g = 0;
              index_t const gh = h * p.of(field::gate_k).extents.head / H;
              for (index_t c = 0; c < p.of(field::gate_q).extents.feature; ++c)
                g += at(p.of(field::gate_q), b, h, i, c) * at(p.of(field::gate_k), b, gh, j, c);
              x -= float(softplus(par.beta) * m.beta) * float(softplus(m.gate_sign ? g : -g));
            }
          } else {
            x = m.no_scale ? s : (float(par.c) * log_k + float(par.d * m.bias)) * s;
          }
          a.push_back(float(rounded_to(m.logits, x)));
        }
        float const gamma = float(par.gamma + m.gamma), sink = float(par.t + m.sink);
        float top = (principled ? m.no_ground : m.no_sink) ? -1e30f : principled ? gamma : sink;
        for (float x : a) top = std::max(top, x);
        if (keys.empty()) top = 0;
        float sum = 0, ground = 0;
        std::vector<float> e;
        std::vector<float> acc(std::size_t(Dv), 0.f);
        float running = -1e30f;
        for (std::size_t n = 0; n < keys.size(); ++n) {
          float w = std::exp(a[n] - top);
          if (m.no_rescale) {  // the accumulator is not rescaled when the maximum rises in a later block of 16
            if (n % 16 == 0) {
              float block = running;
              for (std::size_t x = n; x < std::min(n + 16, keys.size()); ++x) block = std::max(block, a[x]);
              if (running > -1e29f) sum *= std::exp(running - block);
              running = block;
            }
            w = std::exp(a[n] - running);
          }
          e.push_back(float(rounded_to(m.weights, w)));
          bool const counted = !(m.sum_lacks_first && n == 0) && !(m.sum_lacks_last && n + 1 == keys.size());
          if (counted || keys.size() == 1) sum += w;
          if (m.sum_in_storage) sum = float(rounded_to(storage::bf16, sum));
          if (principled && !m.no_ground && a[n] < gamma) ground += -std::exp(gamma - top) * std::expm1(a[n] - gamma);
        }
        float const z0 = principled ? ground : m.no_sink ? 0 : std::exp(sink - (m.no_rescale ? running : top));
        float const z = sum + z0;
        for (std::size_t n = 0; n < keys.size(); ++n) {
          index_t j = std::min<index_t>(keys[n] + m.value_late, Lk - 1), head = vh;
          if (m.v_swapped) {
            index_t const place = j * Hv + vh;
            head = place / Lk;
            j = place % Lk;
          }
          for (index_t c = 0; c < Dv; ++c) acc[std::size_t(c)] += e[n] * at(v, b, head, j, c);
        }
        if (m.reads_hidden)
          for (index_t c = 0; c < Dv; ++c) acc[std::size_t(c)] += 0 * (end < Lk ? std::nanf("") : 0.f);
        index_t row = (b * H + h) * Lq + i;
        if (m.out_swapped) row = (b * Lq + i) * H + h;
        for (index_t c = 0; c < Dv; ++c) {
          float x = z > 0 ? acc[std::size_t(c)] / z : 0;
          if (principled) x += float(m.v0) * (z > 0 ? ground / z : 1) * at(p.of(field::v0), 0, h, 0, c);
          x *= float(m.out);
          if (m.tail != 0 && i >= Lq - m.tail) x = 0;
          r.out[std::size_t(row * Dv + c)] = float(rounded_to(stored, x));
        }
        float lse = top + std::log(m.lse_without_sink ? sum : z);
        if (m.lse_plain) {
          float most = -1e30f, all = 0;
          for (float x : raw) most = std::max(most, x);
          for (float x : raw) all += std::exp(x - most);
          lse = most + std::log(all);
        }
        r.lse[std::size_t((b * H + h) * Lq + i)] = m.base_two ? lse * 1.4426950f : lse;
      }
  return r;
}

struct planted_mutation {
  plant what;
  mutation how;
};

inline mutation changed(void (*f)(mutation&)) {
  mutation m;
  f(m);
  return m;
}

/// Of ssmax + sink.
inline std::vector<planted_mutation> sink_mutations() {
  auto const m = [](void (*f)(mutation&)) { return changed(f); };
  using certify::storage;
  return {
      {{"scale + 0.5 %", "kernel.scale"}, m([](mutation& x) { x.scale = 1.005; })},
      {{"scale 1/sqrt(D + 1)", "kernel.scale"}, m([](mutation& x) { x.scale = std::sqrt(32. / 33); })},
      {{"K + 1 in log K", "K one too large"}, m([](mutation& x) { x.count = 1; })},
      {{"K - 1 in log K", "K one too small"}, m([](mutation& x) { x.count = -1; })},
      {{"Lk for K", "Lk taken for K"}, m([](mutation& x) { x.all_keys = true; })},
      {{"sink ignored", "sink or ground ignored|weights not divided"}, m([](mutation& x) { x.no_sink = true; })},
      {{"sink + 0.1", "normalizer.logit"}, m([](mutation& x) { x.sink = 0.1; })},
      {{"2^sink for e^sink", "normalizer.logit"}, m([](mutation& x) { x.sink = 0.5 * (0.6931471805599453 - 1); })},
      {{"length scale ignored", "length scale ignored"}, m([](mutation& x) { x.no_scale = true; })},
      {{"bias of the length scale dropped", "length_scale.bias"}, m([](mutation& x) { x.bias = 0; })},
      {{"causal mask top-left", "mask aligned top-left"}, m([](mutation& x) { x.top_left = true; })},
      {{"mask one too far", "mask shifted by +1|one key too many at the end"}, m([](mutation& x) { x.shift = 1; })},
      {{"diagonal missing", "mask shifted by -1|last visible key missing"}, m([](mutation& x) { x.shift = -1; })},
      {{"first key missing", "first visible key missing|keys missing: 0"}, m([](mutation& x) { x.skip_first = 1; })},
      {{"first key twice", "first visible key doubled|keys counted twice: 0"},
       m([](mutation& x) { x.double_first = 1; })},
      {{"last key twice", "last visible key doubled"}, m([](mutation& x) { x.double_last = 1; })},
      {{"sum lacks the first key", "first visible key missing from the sum"},
       m([](mutation& x) { x.sum_lacks_first = true; })},
      {{"sum lacks the last key", "last visible key missing from the sum"},
       m([](mutation& x) { x.sum_lacks_last = true; })},
      {{"tile of keys skipped", "keys missing: 8..15"}, m([](mutation& x) { x.skipped_from = 8, x.skipped_to = 16; })},
      {{"tile of keys twice", "keys counted twice: 8..15"},
       m([](mutation& x) { x.doubled_from = 8, x.doubled_to = 16; })},
      {{"one key skipped", "keys missing: 11"}, m([](mutation& x) { x.skipped_from = 11, x.skipped_to = 12; })},
      {{"heads h mod Hk", "key heads interleaved"}, m([](mutation& x) { x.interleaved = true; })},
      {{"v (B, L, H, D)", "head and position of v transposed"}, m([](mutation& x) { x.v_swapped = true; })},
      {{"out (B, L, H, D)", "head and position of out transposed"}, m([](mutation& x) { x.out_swapped = true; })},
      {{"v one row late", "values shifted by one key"}, m([](mutation& x) { x.value_late = 1; })},
      {{"lse in base 2", "lse in base 2", true}, m([](mutation& x) { x.base_two = true; })},
      {{"lse of unscaled scores", "scale missing from lse", true}, m([](mutation& x) { x.lse_plain = true; })},
      {{"lse without the sink", "sink or ground missing from lse", true},
       m([](mutation& x) { x.lse_without_sink = true; })},
      {{"probabilities in bf16", "probabilities rounded to bf16", false, true},
       m([](mutation& x) { x.weights = storage::bf16; })},
      {{"probabilities in fp16", "probabilities rounded to fp16", false, true},
       m([](mutation& x) { x.weights = storage::fp16; })},
      {{"logits in bf16", "logits rounded to bf16"}, m([](mutation& x) { x.logits = storage::bf16; })},
      {{"sum kept in bf16", ""}, m([](mutation& x) { x.sum_in_storage = true; })},
      {{"values not rescaled at a new maximum", ""}, m([](mutation& x) { x.no_rescale = true; })},
      {{"last feature of the dot missing", ""}, m([](mutation& x) { x.features = 1; })},
      {{"last two queries not written", ""}, m([](mutation& x) { x.tail = 2; })},
      {{"0 * NaN from hidden values", ""}, m([](mutation& x) { x.reads_hidden = true; })},
      {{"out - 0.2 %", "out"}, m([](mutation& x) { x.out = 0.998; })},
  };
}

/// Of principled attention.
inline std::vector<planted_mutation> principled_mutations() {
  auto const m = [](void (*f)(mutation&)) { return changed(f); };
  return {
      {{"v0 ignored", "ground value v0 ignored"}, m([](mutation& x) { x.v0 = 0; })},
      {{"ground ignored", "sink or ground ignored"}, m([](mutation& x) { x.no_ground = true, x.v0 = 0; })},
      {{"score gate ignored", "score gate ignored"}, m([](mutation& x) { x.no_gate = true; })},
      {{"gamma of the ground + 0.05", "normalizer.gamma"}, m([](mutation& x) { x.gamma = 0.05; })},
      {{"softplus(alpha) + 5 %", "length_scale.alpha"}, m([](mutation& x) { x.alpha = 1.05; })},
      {{"softplus(beta) + 5 %", "gate.beta"}, m([](mutation& x) { x.beta = 1.05; })},
      {{"margin ignored", "length scale ignored"}, m([](mutation& x) { x.no_scale = true; })},
      {{"gate of the wrong sign", ""}, m([](mutation& x) { x.gate_sign = true; })},
      {{"K + 1 in log K", "K one too large"}, m([](mutation& x) { x.count = 1; })},
  };
}

/// What a kernel of that storage type hands over.
inline testing::candidate as_stored(certify::storage s, std::vector<float> const& out, shape const& e) {
  if (s == certify::storage::fp32) return testing::candidate(tensor<float const>(out, e));
  auto const narrow = [&]<class E>(E) {
    std::vector<E> x;
    for (float y : out) x.push_back(E(y));
    return testing::candidate(tensor<E const>(x, e));
  };
  return s == certify::storage::fp16 ? narrow(float16{}) : narrow(bfloat16{});
}

/// Whether the verdict names one of `causes`, or none where there is no name.
inline bool names(testing::verdict_report const& r, std::string const& causes) {
  if (causes.empty()) return r.cause() == nullptr;
  if (r.cause() == nullptr) return false;
  std::stringstream all(causes);
  for (std::string cause; std::getline(all, cause, '|');)
    if (r.cause()->name.rfind(cause, 0) == 0) return true;
  return false;
}

inline std::string printed(testing::verdict_report const& r) {
  std::ostringstream s;
  s << r;
  return s.str();
}

/// Correct kernels: other orders of summation.
inline std::vector<mutation> correct_variants() {
  return {changed([](mutation&) {}), changed([](mutation& x) { x.reversed = true; })};
}

}  // namespace attune::test
