// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   std::vector<float> out = run(problem, kernel_kind{...}, planted{...}).out
//
// Attention kernels as they are written for devices, in float on one thread: tiles of keys, a running maximum, splits,
// storage of 16 bits. Each may have one defect: what is wrong, where, and by how much. Independent of attune's code.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <attune/certify/number_format.hpp>
#include <attune/core/tensor.hpp>

namespace attune::test {

using certify::rounded_to;
using certify::storage;

/// Softmax attention: extents, and inputs that the storage type holds exactly.
struct simulated_problem {
  index_t batch = 1, heads = 4, key_heads = 2, value_heads = 2, queries = 24, keys = 40, width = 16;
  bool causal = true;
  std::vector<float> q = {}, k = {}, v = {};  ///< (B, H, Lq, D), (B, Hk, Lk, D), (B, Hv, Lk, D)

  shape of_queries() const { return {batch, heads, queries, width}; }
  shape of_keys() const { return {batch, key_heads, keys, width}; }
  shape of_values() const { return {batch, value_heads, keys, width}; }
  /// How many keys query i sees. `later`: the mask is that many keys too late.
  index_t keys_of(index_t i, index_t later = 0) const {
    return causal ? std::clamp<index_t>(i + 1 + keys - queries + later, 0, keys) : keys;
  }

  float const* query(index_t b, index_t h, index_t i) const {
    return q.data() + ((b * heads + h) * queries + i) * width;
  }
  float const* key(index_t b, index_t h, index_t j) const {
    return k.data() + ((b * key_heads + h) * keys + j) * width;
  }
  float const* value(index_t b, index_t h, index_t j) const {
    return v.data() + ((b * value_heads + h) * keys + j) * width;
  }
};

/// A way to compute it that is right.
struct kernel_kind {
  storage stored = storage::fp32;   ///< of out
  storage weights = storage::fp32;  ///< probabilities are rounded to it before they multiply values
  index_t tile = 32;                ///< keys
  index_t splits = 1;               ///< parts of the keys, merged at the end
  bool base_two = false;            ///< 2^(s log2 e) in place of e^s
  bool backwards = false;           ///< the last tile first
  bool divides_first = false;       ///< probabilities, not masses, are rounded (two passes)
  index_t lanes = 1;                ///< partial sums of dot products and of a tile's values
  float patience = 0;               ///< the reference follows the maximum when it is this much larger
};

/// What may be wrong.
enum class fault {
  none,
  scale,      ///< times 1 + size
  out,        ///< times 1 + size
  keys_lost,  ///< `size` keys in the middle
  keys_twice,
  mask_later,    ///< one key too many
  mask_earlier,  ///< one key too few
  mask_ignored,
  mask_top_left,
  denominator_bf16,  ///< the sum is rounded after each tile
  denominator_fp16,
  accumulator_bf16,  ///< out is rounded after each tile
  accumulator_fp16,
  logits_bf16,
  logits_fp16,
  weights_bf16,
  weights_fp16,
  not_rescaled,    ///< the accumulator keeps its old reference when the maximum rises
  values_late,     ///< value j + 1 for key j
  value_wrong,     ///< one key's weight, times 1 + size
  neighbor_batch,  ///< keys of the next batch element
  neighbor_head,   ///< keys of the next key head
  lse_base_two,
  lse_off,  ///< plus size
  count
};

/// Where it is wrong.
enum class place { everywhere, one_head, one_batch, half_tile, last_rows, long_rows, count };

/// A defect.
struct planted {
  fault what = fault::none;
  place where = place::everywhere;
  double size = 0;
  index_t head = 0, batch = 0, tile = 32;  ///< of the place

  bool hits(simulated_problem const& p, index_t b, index_t h, index_t i) const {
    switch (where) {
      case place::one_head:
        return h == head;
      case place::one_batch:
        return b == batch;
      case place::half_tile:
        return i % tile >= tile / 2;
      case place::last_rows:
        return i >= p.queries - (p.queries + 7) / 8;
      case place::long_rows:
        return i >= p.queries / 2;
      default:
        return true;
    }
  }
};

struct simulated_result {
  std::vector<float> out, lse;
};

namespace detail {

/// Sums of `width` numbers each. Term m goes to partial sum m mod `lanes`, as registers and warps add; the partial sums
/// are added in pairs.
class lane_sums {
 public:
  lane_sums(index_t lanes, index_t width)
      : lanes_(std::size_t(lanes)), width_(std::size_t(width)), sums_(lanes_ * width_, 0) {}
  void clear() { std::fill(sums_.begin(), sums_.end(), 0.f); }
  float* at(index_t term) { return sums_.data() + std::size_t(term) % lanes_ * width_; }
  float const* total() {
    for (std::size_t step = 1; step < lanes_; step *= 2)
      for (std::size_t n = 0; n + step < lanes_; n += 2 * step)
        for (std::size_t c = 0; c < width_; ++c) sums_[n * width_ + c] += sums_[(n + step) * width_ + c];
    return sums_.data();
  }

 private:
  std::size_t lanes_, width_;
  std::vector<float> sums_;
};

/// The dot product of two rows, in the order of `sums`.
inline float dot(lane_sums& sums, float const* x, float const* y, index_t width) {
  sums.clear();
  for (index_t c = 0; c < width; ++c) *sums.at(c) += x[c] * y[c];
  return *sums.total();
}

struct simulated_state {
  float top = -INFINITY, sum = 0;
  std::vector<float> acc;
};

}  // namespace detail

/// Runs a kernel.
inline simulated_result run(simulated_problem const& p, kernel_kind const& kind, planted const& d = {}) {
  simulated_result r;
  r.out.assign(std::size_t(p.batch * p.heads * p.queries * p.width), 0);
  r.lse.assign(std::size_t(p.batch * p.heads * p.queries), 0);
  std::size_t row = 0;
  detail::lane_sums dots(kind.lanes, 1), products(kind.lanes, p.width);
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t h = 0; h < p.heads; ++h)
      for (index_t i = 0; i < p.queries; ++i, ++row) {
        bool const hit = d.hits(p, b, h, i);
        auto const is = [&](fault f) { return hit && d.what == f; };
        index_t const kb = is(fault::neighbor_batch) ? (b + 1) % p.batch : b;
        index_t const late = is(fault::neighbor_head) ? 1 : 0, kh = (h * p.key_heads / p.heads + late) % p.key_heads,
                      vh = (h * p.value_heads / p.heads + late) % p.value_heads;
        float scale = float((is(fault::scale) ? 1 + d.size : 1) / std::sqrt(double(p.width)));
        index_t const end = is(fault::mask_ignored)    ? p.keys
                            : is(fault::mask_top_left) ? p.keys_of(i, p.queries - p.keys)
                                                       : p.keys_of(i, is(fault::mask_later)     ? 1
                                                                      : is(fault::mask_earlier) ? -1
                                                                                                : 0);
        std::vector<index_t> keys;
        index_t const from = p.keys / 4, lost = index_t(d.size);
        for (index_t j = 0; j < end; ++j) {
          bool const middle = j >= from && j < from + lost;
          if (is(fault::keys_lost) && middle) continue;
          keys.push_back(j);
          if (is(fault::keys_twice) && middle) keys.push_back(j);
        }
        auto const logit = [&](index_t j) {
          float s = scale * detail::dot(dots, p.query(b, h, i), p.key(kb, kh, j), p.width);
          if (is(fault::logits_bf16)) s = float(rounded_to(storage::bf16, s));
          if (is(fault::logits_fp16)) s = float(rounded_to(storage::fp16, s));
          return s;
        };
        auto const power = [&](float x) { return kind.base_two ? std::exp2(x * 1.44269504f) : std::exp(x); };
        storage const to = is(fault::weights_bf16)   ? storage::bf16
                           : is(fault::weights_fp16) ? storage::fp16
                                                     : kind.weights;
        float all_top = -INFINITY, all_sum = 0;
        if (kind.divides_first) {
          for (index_t j : keys) all_top = std::max(all_top, logit(j));
          for (index_t j : keys) all_sum += power(logit(j) - all_top);
        }
        std::vector<detail::simulated_state> parts;
        index_t const n = index_t(keys.size()), chunk = (n + kind.splits - 1) / kind.splits;
        for (index_t first = 0; first < n; first += chunk) {
          detail::simulated_state s;
          s.acc.assign(std::size_t(p.width), 0);
          index_t const last = std::min(n, first + chunk), tiles = (last - first + kind.tile - 1) / kind.tile;
          for (index_t t = 0; t < tiles; ++t) {
            index_t const begin = first + (kind.backwards ? tiles - 1 - t : t) * kind.tile,
                          stop = std::min(last, begin + kind.tile);
            std::vector<float> a;
            float top = s.top;
            for (index_t m = begin; m < stop; ++m) {
              a.push_back(logit(keys[std::size_t(m)]));
              top = std::max(top, a.back());
            }
            if (kind.divides_first) top = all_top;
            if (top <= s.top + kind.patience) top = s.top;
            float const old = s.top == -INFINITY ? 0 : power(s.top - top);
            s.sum *= old;
            if (!is(fault::not_rescaled))
              for (float& x : s.acc) x *= old;
            s.top = top;
            float part = 0;
            products.clear();
            for (std::size_t m = 0; m < a.size(); ++m) {
              index_t const j = keys[std::size_t(begin) + m];
              float w = power(a[m] - top);
              if (is(fault::value_wrong) && j == from) w *= float(1 + d.size);
              part += w;
              if (kind.divides_first) w /= all_sum;
              w = float(rounded_to(to, w));
              float const* v = p.value(kb, vh, is(fault::values_late) ? std::min(j + 1, p.keys - 1) : j);
              float* const to_lane = products.at(index_t(m));
              for (index_t c = 0; c < p.width; ++c) to_lane[c] += w * v[c];
            }
            s.sum += part;
            float const* const sums = products.total();
            for (std::size_t c = 0; c < s.acc.size(); ++c) s.acc[c] += sums[c];
            if (is(fault::denominator_bf16)) s.sum = float(rounded_to(storage::bf16, s.sum));
            if (is(fault::denominator_fp16)) s.sum = float(rounded_to(storage::fp16, s.sum));
            for (float& x : s.acc) {
              if (is(fault::accumulator_bf16)) x = float(rounded_to(storage::bf16, x));
              if (is(fault::accumulator_fp16)) x = float(rounded_to(storage::fp16, x));
            }
          }
          parts.push_back(std::move(s));
        }
        float top = -INFINITY, sum = 0;
        for (auto const& s : parts) top = std::max(top, s.top);
        std::vector<float> acc(std::size_t(p.width), 0);
        for (auto const& s : parts) {
          float const by = power(s.top - top);
          sum += by * s.sum;
          for (std::size_t c = 0; c < acc.size(); ++c) acc[c] += by * s.acc[c];
        }
        float const z = kind.divides_first ? 1 : sum;
        for (index_t c = 0; c < p.width; ++c) {
          float x = sum > 0 ? acc[std::size_t(c)] / z : 0;
          if (is(fault::out)) x *= float(1 + d.size);
          r.out[row * std::size_t(p.width) + std::size_t(c)] = float(rounded_to(kind.stored, x));
        }
        float lse = sum > 0 ? top + std::log(sum) : -INFINITY;
        if (is(fault::lse_base_two)) lse *= 1.44269504f;
        if (is(fault::lse_off)) lse += float(d.size);
        r.lse[row] = lse;
      }
  return r;
}

}  // namespace attune::test
