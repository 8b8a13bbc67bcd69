// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Random attention problems for an operator of the registry, and how to look into one.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../instances/registry.hpp"
#include "masks.hpp"
#include "random.hpp"

namespace attune::test {

using instances::array;
using instances::backend;
using instances::bounds;
using instances::entry;
using instances::options;
using instances::problem;
using instances::result;

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

inline std::size_t to_size(index i) { return static_cast<std::size_t>(i); }

inline bool contains(std::vector<std::string> const& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The policies that a registry name spells.
struct policies {
  bool given = false, softcap = false;
  std::string kernel, length_scale, gate, normalizer, post;
  std::vector<std::string> terms;  ///< of the kernel: dot+alibi|softcap has two

  bool has(std::string_view term) const { return contains(terms, term); }
  bool is(std::string_view prefix) const { return normalizer.compare(0, prefix.size(), prefix) == 0; }

  bool grounded() const { return normalizer == "grounded"; }
  bool sink() const { return normalizer == "sink" || normalizer == "sink_value"; }
  bool off_by_one() const { return normalizer == "off_by_one" || normalizer == "off_by_one_value"; }
  bool affine() const { return is("affine") || is("free_affine"); }
  bool adjusted() const { return is("adjusted"); }
  /// Weights that do not depend on the sum of all masses.
  bool summed() const {
    return is("sigmoid") || is("exponential") || is("relu") || is("mean_relu") || is("centered_relu") ||
           is("normalized_relu");
  }
  bool deformed() const { return is("sparsemax") || is("entmax"); }
  bool candidates() const { return deformed() || is("top_k"); }
  /// Masses e^a over a sum that may hold more than keys: the family of softmax.
  bool softmax_like() const { return normalizer == "softmax" || grounded() || sink() || off_by_one(); }
  /// A shift of all logits does not change the weights.
  bool shift_invariant() const {
    return normalizer == "softmax" || affine() || candidates() || normalizer == "adjusted_full_range";
  }
  /// Scores depend on where keys stand.
  bool positional() const {
    for (char const* term : {"alibi", "transformer_xl", "relative_bias", "t5_bias", "fourier_prior"})
      if (has(term)) return true;
    return false;
  }
  /// Weights and ground weight sum to 1 wherever some key has a finite logit.
  bool sums_to_one() const { return softmax_like() || candidates(); }
};

inline policies policies_of(entry const& e) {
  std::vector<std::string> slot(1);
  for (char c : e.name) {
    if (c == '/')
      slot.emplace_back();
    else
      slot.back() += c;
  }
  slot.resize(5);
  policies what{false, false, slot[0], slot[1], slot[2], slot[3], slot[4], {""}};
  for (char c : slot[0].substr(0, slot[0].find('|'))) {
    if (c == '+')
      what.terms.emplace_back();
    else
      what.terms.back() += c;
  }
  what.given = what.has("given");
  what.softcap = slot[0].find("|softcap") != std::string::npos;
  return what;
}

struct dimensions {
  index batch = 1, heads = 1, key_heads = 1, value_heads = 1;
  index queries = 1, keys = 1, width = 1, value_width = 1, gate_width = 1;
  index gate_key_heads = 1;
  index position_width = 3, axes = 2;  ///< of projections of positions, of places
};

/// An element of a 3- or 4-axis array; axes of size 1 are shared, and head h of `heads` reads its group floor(h G /
/// heads).
inline double& element(array& a, index heads, index b, index h, index i, index d = 0) {
  index const f = a.shape.size() > 3 ? a.shape[3] : 1;
  index const group = h * a.shape[1] / heads;
  return a.data[to_size(((a.shape[0] == 1 ? 0 : b) * a.shape[1] + group) * a.shape[2] * f +
                        (a.shape[2] == 1 ? 0 : i) * f + d)];
}
inline double element(array const& a, index heads, index b, index h, index i, index d = 0) {
  return element(const_cast<array&>(a), heads, b, h, i, d);
}

/// A row parameter, or `fallback` where the problem does not set it.
inline double parameter(problem const& p, char const* name, index heads, index b, index h, index i, double fallback) {
  auto const found = p.parameters.find(name);
  return found == p.parameters.end() ? fallback : element(found->second, heads, b, h, i);
}

inline bool visible(problem const& p, index b, index h, index i, index j) {
  if (p.visible.empty()) return true;
  auto const& s = p.visible_shape;
  return p.visible[to_size((((s[0] == 1 ? 0 : b) * s[1] + (s[1] == 1 ? 0 : h)) * s[2] + i) * s[3] + j)] != 0;
}

inline index visible_count(problem const& p, dimensions const& n, index b, index h, index i) {
  index count = 0;
  for (index j = 0; j < n.keys; ++j) count += visible(p, b, h, i, j) ? 1 : 0;
  return count;
}

inline array make_array(std::vector<index> shape, double value = 0) {
  index size = 1;
  for (index n : shape) size *= n;
  return {std::move(shape), std::vector<double>(to_size(size), value)};
}

inline array random_array(std::vector<index> shape, rng& random, double deviation = 1) {
  array a = make_array(std::move(shape));
  for (double& x : a.data) x = f32(deviation * random.normal());
  return a;
}

/// What to draw besides plain data.
struct recipe {
  mask_kind mask = mask_kind::none;
  double minus_infinity = 0;  ///< probability of -inf for each given score (or given gate)
  bool defaults = false;      ///< leave some parameters out
  double ramp = 0;            ///< growth of given scores from key to key: the running maximum changes in every block
  double parameter_limit =
      0;  ///< probability that a parameter is at or near its limit (alpha = -inf, gamma = +-inf, ...)
};

/// A parameter drawn where it makes sense; with probability `limit` at its limit.
inline double draw_parameter(std::string const& name, rng& random, double limit) {
  bool const extreme = random.chance(limit);
  if (name == "scale" || name == "rbf_gamma") return random.uniform(0.05, 1);
  if (name == "alpha" || name == "beta") return extreme ? -infinity : 1.5 * random.normal();
  if (name == "gamma") return extreme ? random.pick({-infinity, infinity, -1e16, 1e4}) : 2 * random.normal();
  if (name == "sink") return extreme ? random.pick({-infinity, infinity}) : 2 * random.normal();
  if (name == "slope") return extreme ? 0 : random.uniform(0, 0.5);
  if (name == "cap") return random.uniform(0.5, 30);
  if (name == "ss_scale") return random.uniform(0.05, 0.8);
  if (name == "ss_bias") return 0.5 * random.normal();
  if (name == "length0") return random.uniform(2, 500);
  if (name == "tau" || name == "eps" || name == "spatial_beta") return random.uniform(0.3, 3);
  if (name == "extension") return extreme ? 1 : random.uniform(0.5, 16);
  if (name == "ent_alpha") {  // the closed forms and what lies beside them
    if (!extreme && random.chance(0.6)) return random.uniform(1, 4);
    return random.pick({1., 1 + 0x1p-20, 1.001, 1.5, 1.5 - 0x1p-12, 2., 2 + 0x1p-12, 2.5, 4.});
  }
  if (name == "average" || name == "affine_alpha") return extreme ? random.pick({0., 1.}) : random.uniform(0, 1);
  if (name == "affine_beta") return extreme ? 0 : random.normal();
  if (name == "alpha_pre") return extreme ? random.pick({-40., -5., 5., 40.}) : 3 * random.normal();
  if (name == "sig_bias") return 2 * random.normal();
  if (name == "momentum") return random.uniform(0, 0.99);
  return random.normal();
}

/// The shape of tensor `name`; empty if there is no such tensor.
inline std::vector<index> tensor_shape(std::string const& name, dimensions const& n, rng& random) {
  auto const any = [&](index size) { return random.chance(0.5) ? size : index{1}; };
  if (name == "q") return {n.batch, n.heads, n.queries, n.width};
  if (name == "k") return {n.batch, n.key_heads, n.keys, n.width};
  if (name == "v" || name == "value_gate") return {n.batch, n.value_heads, n.keys, n.value_width};
  if (name == "gate_q") return {n.batch, n.heads, n.queries, n.gate_width};
  if (name == "gate_k") return {n.batch, n.gate_key_heads, n.keys, n.gate_width};
  if (name == "sort_q") return {n.batch, n.heads, n.queries, 1};
  if (name == "sort_k" || name == "key_bias") return {n.batch, n.gate_key_heads, n.keys, 1};
  if (name == "position_q") return {n.batch, n.heads, n.queries, n.position_width};
  if (name == "position_k") return {n.batch, n.key_heads, n.keys, n.position_width};
  if (name == "center" || name == "spread") return {n.batch, n.heads, n.queries, n.axes};
  if (name == "place") return {n.batch, n.key_heads, n.keys, n.axes};
  if (name == "output_gate") return {n.batch, n.heads, n.queries, any(n.value_width)};
  if (name == "v0") return {any(n.batch), any(n.heads), any(n.queries), n.value_width};
  if (name == "scores" || name == "gates" || name == "bias") return {n.batch, n.heads, n.queries, n.keys};
  return {};
}

/// Rows and columns of table `name`. `farthest` is the largest |i + offset - j|.
inline std::pair<index, index> table_shape(policies const& what, std::string const& name, dimensions const& n,
                                           index farthest) {
  if (name == "metric" || name == "bias_u" || name == "bias_w") return {1, n.width};
  if (name == "relative") return {2 * farthest + 1, n.width};
  if (name == "values")
    return {what.has("t5_bias") ? 8 : 7, 1};  // buckets come in pairs; distances from -M to M do not
  return {3, 1};                              // of a Fourier series
}

/// One number of a tensor or a table, where operator e wants it.
inline double draw_number(policies const& what, std::string const& name, rng& random, double deviation) {
  double const x = deviation * random.normal();
  if (name == "spread") return x < 0 ? x - 0.25 : x + 0.25;  // anything but 0
  if (name == "bias" && what.has("log_prior"))
    return random.chance(0.1) ? 0 : std::fabs(x);  // a probability, up to a factor
  if (name == "metric" && what.has("elliptical")) return std::fabs(x);
  return x;
}

/// One per key; one per pair: data that nobody reads where a key is masked.
inline bool is_of_keys(std::string const& name) {
  static std::vector<std::string> const names{"k",          "gate_k", "v",        "sort_k",
                                              "position_k", "place",  "key_bias", "value_gate"};
  return contains(names, name);
}
inline bool is_of_pairs(std::string const& name) { return name == "scores" || name == "gates" || name == "bias"; }

/// What the registry needs for operator e: data, parameters of any granularity, and a mask of the recipe's kind.
inline problem make_problem(entry const& e, dimensions const& n, recipe const& how, rng& random) {
  problem p;
  policies const what = policies_of(e);
  index const usual = n.keys - n.queries, offset = random.chance(0.5) ? usual : random.between(-n.queries, n.keys);
  if (offset != usual || random.chance(0.2)) p.offset = offset;
  p.queries = n.queries;
  for (std::string const& name : e.tensors) {
    double const deviation = name == "scores" || name == "gates" ? random.pick({1., 2., 6.}) : 1;
    array& a = p.tensors[name] = make_array(tensor_shape(name, n, random));
    for (double& x : a.data) x = f32(draw_number(what, name, random, deviation));
    if (name == "scores" && how.ramp != 0 && !what.is("exponential"))  // e^a is not held relative to a maximum
      for (std::size_t x = 0; x < a.data.size(); ++x)
        a.data[x] = f32(a.data[x] + how.ramp * static_cast<double>(x % to_size(n.keys)));
    if (name == "scores" || name == "gates")
      for (double& x : a.data)
        if (how.minus_infinity > 0 && random.chance(how.minus_infinity)) x = -infinity;
  }
  for (std::string const& name : e.parameters) {
    if (how.defaults && random.chance(name == "scale" ? 0.5 : 0.05)) continue;
    auto const any = [&](index size) { return random.chance(0.5) ? size : index{1}; };
    bool const one = name == "momentum", per_head = name == "average" && contains(e.parameters, "momentum");
    array& a = p.parameters[name] =
        make_array({one || per_head ? 1 : any(n.batch), one ? 1 : any(n.heads), one || per_head ? 1 : any(n.queries)});
    for (double& x : a.data) x = f32(draw_parameter(name, random, how.parameter_limit));
  }
  index const farthest = std::max(std::abs(offset - n.keys + 1), std::abs(n.queries - 1 + offset));
  for (std::string const& name : e.tables) {
    auto const any = [&](index size) { return random.chance(0.5) ? size : index{1}; };
    auto const [rows, columns] = table_shape(what, name, n, farthest);
    array& a = p.tables[name] = make_array({any(n.batch), any(n.heads), rows, columns});
    for (double& x : a.data) x = f32(draw_number(what, name, random, name == "frequency" ? 0.3 : 1));
  }
  if (how.mask != mask_kind::none) {
    bool const per_head = random.chance(0.4);
    set_mask(p, per_head ? n.batch : 1, per_head ? n.heads : 1, n.queries, n.keys,
             make_predicate(how.mask, n.batch, n.heads, n.queries, n.keys, offset, per_head, random));
  }
  return p;
}

/// Random sizes with up to that many queries, keys and features; key and value heads group independently.
inline dimensions random_dimensions(rng& random, index length, index width) {
  dimensions n;
  n.batch = random.between(1, 2);
  n.heads = random.between(1, 4);
  auto const group = [&] {
    index g = random.between(1, n.heads);
    while (n.heads % g != 0) g = random.between(1, n.heads);
    return g;
  };
  auto const features = [&] {
    return random.chance(0.9) ? random.between(1, std::min<index>(width, 20)) : random.between(1, width);
  };
  n.key_heads = group();
  n.value_heads = group();
  n.gate_key_heads = group();
  n.queries = random.between(1, length);
  n.keys = random.between(1, length);
  n.width = features();
  n.value_width = features();
  n.gate_width = random.between(1, 9);
  n.position_width = random.between(1, 6);
  n.axes = random.between(1, 3);
  return n;
}

/// NaN and infinities wherever no row looks: whole rows of keys and values that nobody sees, and the slots of given
/// scores, gates and biases that their own row does not see. No result may change by a bit.
inline void poison(problem& p, dimensions const& n, rng& random) {
  auto const garbage = [&] { return random.pick({not_a_number, infinity, -infinity, 1e30}); };
  for (auto& [name, a] : p.tensors) {
    if (is_of_keys(name)) {
      for (index b = 0; b < n.batch; ++b)
        for (index g = 0; g < a.shape[1]; ++g)
          for (index j = 0; j < n.keys; ++j) {
            bool seen = false;
            for (index h = 0; h < n.heads; ++h)
              for (index i = 0; i < n.queries && !seen && h * a.shape[1] / n.heads == g; ++i)
                seen = visible(p, b, h, i, j);
            for (index d = 0; d < a.shape[3] && !seen; ++d) element(a, a.shape[1], b, g, j, d) = garbage();
          }
    } else if (is_of_pairs(name)) {
      for (index b = 0; b < n.batch; ++b)
        for (index h = 0; h < n.heads; ++h)
          for (index i = 0; i < n.queries; ++i)
            for (index j = 0; j < n.keys; ++j)
              if (!visible(p, b, h, i, j)) element(a, n.heads, b, h, i, j) = garbage();
    }
  }
}

/// A case of a random test: everything follows from its seed.
struct sample {
  entry const* op = nullptr;
  dimensions n;
  mask_kind mask = mask_kind::none;
  problem p;
  std::uint64_t seed = 0;
};

inline entry const& random_entry(rng& random) {
  auto const& all = instances::registry();
  return std::next(all.begin(), random.between(0, static_cast<index>(all.size()) - 1))->second;
}

/// Any operator, any mask, sizes drawn by `draw(rng&)`, -inf among given scores, limits among parameters, poison where
/// nobody looks.
template <class Draw>
sample random_sample(std::uint64_t seed, Draw draw) {
  rng random(seed);
  sample s;
  s.seed = seed;
  s.op = &random_entry(random);
  s.n = draw(random);
  s.mask = all_mask_kinds[random.between(0, static_cast<index>(std::size(all_mask_kinds)) - 1)];
  recipe how;
  how.mask = s.mask;
  how.defaults = true;
  how.ramp = random.pick({0., 0., 0., 0., 4., -4.});
  how.minus_infinity = random.pick({0., 0., 0.1, 0.9});
  how.parameter_limit = random.pick({0., 0.1});
  s.p = make_problem(*s.op, s.n, how, random);
  poison(s.p, s.n, random);
  return s;
}

inline dimensions small_dimensions(rng& random) { return random_dimensions(random, 67, 160); }

/// Lengths at the edges of query blocks (16 ... 128) and key blocks (64, 128), up to four blocks; or few queries and
/// many keys.
inline dimensions block_edge_dimensions(rng& random) {
  auto const edge = [&] {
    return random.pick<index>({15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 191, 192, 193, 255, 256, 257});
  };
  dimensions n;
  n.heads = random.pick<index>({1, 1, 2});
  n.key_heads = random.between(1, n.heads);
  n.value_heads = random.between(1, n.heads);
  n.gate_key_heads = random.between(1, n.heads);
  bool const decode = random.chance(0.2);
  n.queries = decode ? random.between(1, 4) : edge();
  n.keys = decode ? random.between(500, 2100) : edge();
  n.width = random.between(1, 12);
  n.value_width = random.between(1, 12);
  n.gate_width = random.between(1, 5);
  return n;
}

}  // namespace attune::test
