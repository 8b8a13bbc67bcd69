# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Published variants of attention as calls of attune.compile: those of examples/variants, whose C++ has the sources.

    op = fox()
    out = op(q, k, v, sort_q=sums, sort_k=sums, mask=attune.masks.causal())

Every function compiles an operator; options are dtypes, compiler and cache. The text of a function says the formula,
and what a call gives besides q, k and v. c is 1 / sqrt(D), w are weights, i and j are positions of queries and keys.
"""

import attune
from attune import policy

_ROTARY = 'rotary{c.angles("angles")}'  # angles: attune.rotary.angles(frequencies, positions)


def alibi_rotary(**options):
    """RoPE with ALiBi: s = c <R(i) q_i, R(j) k_j> - slope |i - j|. angles, slope."""
    return attune.compile(f"{_ROTARY} + alibi{{open}}", **options)


def cable(**options):
    """CABLE: s = c <q_i, k_j> + b_i - b_j. sort_q, sort_k: b_i = -sum_{l <= i} softplus(<w, x_l>)."""
    return fox(**options)


def cope(**options):
    """CoPE: s = c <q_i, k_j> + z_i[p_ij], p_ij = sum_{j <= l <= i} sigmoid(<q_i, k_l>). position_scores: z."""
    # [snippet: cope]
    place = policy.ordered_sum("place", "dot", "sigmoid(dot)", own=True)
    z = policy.read_at("z", place)
    return attune.compile(policy.kernel(["dot", place, z], "inverse_sqrt_width * dot + z"), **options)
    # [/snippet]


def cosine(**options):
    """Scaled cosine attention: s = <q_i, k_j> / tau + B_ij, q and k of length 1. tau, bias: B."""
    return attune.compile("tempered_dot{open} + bias{}", **options)


def differential(**options):
    """Differential attention: w = softmax c <q1_i, k1_j> - lambda softmax c <q2_i, k2_j>. fold_1: -lambda.

    Heads 2 h and 2 h + 1 of q and k are the terms of head h of v.
    """
    # [snippet: differential]
    return attune.compile_operator("fold(softmax_attention(m), {1.0, open})", **options)
    # [/snippet]


def dropout(**options):
    """Dropout: w = f softmax c <q_i, k_j>, f = 0 with probability rate, else 1 / (1 - rate). rate, seed."""
    return attune.compile(weight_gate='dropout{c("rate", 0.1), std::uint64_t(c("seed", 0))}', **options)


def epanechnikov(**options):
    """Epanechnikov attention: w proportional to max(1 - |q_i - k_j|^2 / tau, 0). tau."""
    return attune.compile("rbf{open}", normalizer=policy.normalizer("maximum(1 + a, 0)"), **options)


FIRE = """
struct fire {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::none;
  table hidden, out;  // (1, 1, 2, 32): weights and biases; (1, heads, 1, 32): weights
  parameter g = 1, least = 16;
  static constexpr auto parameters() {
    return std::array{listed("g", &fire::g, domain::positive), listed("least", &fire::least, domain::positive)};
  }
  static constexpr auto tables() {
    return std::array{listed("hidden", &fire::hidden, table_width::any, table_use::bind),
                      listed("out", &fire::out, table_width::any, table_use::bind)};
  }
  template <class T>
  struct bound {
    table_entries<T> weight, bias, out;
    T g, position, inverse;
    T score(key<T> const& k) const {
      T const x = math::log1p(T(g * math::abs(T(position - k.position)))) * inverse;
      T sum(0);
      for (int n = 0; n < 32; ++n) sum = sum + out[n] * math::larger(T(weight[n] * x + bias[n]), T(0));
      return sum;
    }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    T const inverse = T(1) / math::log1p(T(r(g) * math::larger(r.position, r(least))));
    return {r.entries(hidden, 0), r.entries(hidden, 1), r.entries(out), r(g), r.position, inverse};
  }
};
"""


def fire(**options):
    """FIRE: s = c <q_i, k_j> + f(log(1 + g |i - j|) / log(1 + g max(i, least))), f an MLP. hidden, out, g, least."""
    return attune.compile(terms=[FIRE], **options)


def fox(**options):
    """Forgetting attention: s = c <q_i, k_j> + F_i - F_j. sort_q, sort_k: F_i = sum_{l <= i} log f_l."""
    return attune.compile("dot_product{} + scalar_difference{}", **options)


def gat(**options):
    """Graph attention: s = LeakyReLU(a_i + b_j). sort_q: a_i = <a_1, W h_i>; sort_k: -b_j = -<a_2, W h_j>; v: W h_j.

    The edges are the mask: masks.visible(edges).
    """
    leaky = policy.kernel("scalar_difference", "maximum(scalar_difference, 0.2 * scalar_difference)")
    return attune.compile(leaky, **options)


def gated_power(**options):
    """Power attention with gates: w proportional to (c <q_i, k_j>)^2 exp(g_i - g_j). sort_q, sort_k: g."""
    log_square = "log((inverse_sqrt_width * dot) ** 2) + scalar_difference"
    return attune.compile(policy.kernel(["dot", "scalar_difference"], log_square), **options)


def gatv2(**options):
    """GATv2: s = <a, LeakyReLU(q_i + k_j)>, q = W_1 h and k = v = W_2 h. metric: a, (1, H, 1, D); the mask: edges."""
    leaky = policy.feature_sum("leaky", "metric * maximum(q + k, 0.2 * (q + k))")
    return attune.compile(policy.kernel(leaky, "leaky"), **options)


def kerple_log(**options):
    """KERPLE, logarithmic: s = c <q_i, k_j> - r1 log(1 + r2 |i - j|). r1, r2."""
    positive = {"r1": "positive", "r2": "positive"}
    term = policy.term("-r1 * log1p(r2 * abs(distance))", parameters={"r1": 1, "r2": 1}, domains=positive)
    return attune.compile(terms=[term], **options)


def kerple_power(**options):
    """KERPLE, power: s = c <q_i, k_j> - r1 |i - j|^r2. r1, r2."""
    positive = {"r1": "positive", "r2": "positive"}
    term = policy.term("-r1 * abs(distance) ** r2", parameters={"r1": 1, "r2": 1}, domains=positive)
    return attune.compile(terms=[term], **options)


def laser(**options):
    """LASER: exp(out_i) = sum_j softmax(c <q_i, k_j>) exp(v_j). value_gate: the values; v: ones. Take the logarithm."""
    return attune.compile(value_gate=policy.value_gate("exp(x)"), **options)


def lorentz(**options):
    """Hyperbolic attention: s = -beta arccosh(-<q_i, k_j>) + log gamma_j. beta; key_bias: log gamma.

    q and k lie on the hyperboloid, q with its feature 0 negated.
    """
    # arccosh(1 + e); rounding may leave less than 1
    e = "maximum(-dot - 1, 1e-7)"
    distance = f"log1p({e} + sqrt({e} * ({e} + 2)))"
    beta = {"parameters": {"beta": 1}, "domains": {"beta": "positive"}}
    return attune.compile(policy.kernel("dot", f"-beta * {distance}", **beta), terms=["key_bias{}"], **options)


def mla(**options):
    """MLA, absorbed: s = scale (<U^T q_i, c_j> + <qR_i, kR_j>). scale; q: both, k: (c_j, kR_j), v: c_j, a view of k."""
    return attune.compile("dot_product{open}", **options)


def moba(**options):
    """MoBA: softmax over chosen blocks of keys. The mask: masks.block_sparse(chosen, 1, block) & masks.causal()."""
    return attune.compile(**options)


NATTEN = """
#include <algorithm>
struct grid_bias {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::gathered_by_pair;
  table values;
  index_t columns = 1, reach = 0;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("values", &grid_bias::values, table_width::one)}; }
  index_t index(index_t i, index_t j) const {
    return (i / columns - j / columns + reach) * (2 * reach + 1) + i % columns - j % columns + reach;
  }
  template <class T>
  kernel::bound_identity<T> bind(row<T> const&) const {
    return {};
  }
};
struct neighborhood {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::intervals;
  index_t rows = 1, columns = 1, radius = 0;
  key_interval next(mask_row const& r, index_t from) const {
    index_t const width = 2 * radius + 1, y = std::clamp(r.position / columns - radius, index_t(0), rows - width),
                  x = std::clamp(r.position % columns - radius, index_t(0), columns - width),
                  line = std::max(y, (from + columns - x - width) / columns);
    return line < y + width ? key_interval{line * columns + x, line * columns + x + width} : key_interval{};
  }
};
auto natten(index_t rows, index_t columns, index_t radius, mask::composed const& m) {
  return attention(kernel::dot_product{} + grid_bias{{}, columns, 2 * radius}, neighborhood{rows, columns, radius} & m);
}
natten(index_t(c("rows", 1)), index_t(c("columns", 1)), index_t(c("radius", 0)), m)
"""


def natten(**options):
    """NATTEN: s = c <q_i, k_j> + B[y_i - y_j, x_i - x_j], j in a square around i. values: B; rows, columns, radius."""
    return attune.compile_operator(NATTEN, **options)


def nsa(**options):
    """NSA, the selected branch: softmax over selected blocks of keys, the same for heads that share keys. As moba."""
    return attune.compile(**options)


def ntk(**options):
    """Rotary positions, NTK-aware: angles(ntk(features, scale), length)."""
    return attune.compile(_ROTARY, **options)


def partial_rotary(**options):
    """Rotary positions on the first T features: angles(plain(T), length)."""
    return attune.compile(_ROTARY, **options)


def polynomial(**options):
    """Polynomial attention, degree 4: w = <q_i, k_j>^4 / (1 + sum_l <q_i, k_l>^4)."""
    return attune.compile("dot_product{1}", normalizer=policy.normalizer("a ** 4", constant="1"), **options)


def relu_squared(**options):
    """Squared ReLU by length: w = max(c <q_i, k_j>, 0)^2 / n, n keys."""
    squared = policy.normalizer("maximum(a, 0) ** 2", divided_by="count")
    return attune.compile(normalizer=squared, **options)


def retention(**options):
    """Retention: s = c <R(i) q_i, R(j) k_j> g^(i - j) / sqrt(sum_{l <= i} g^(i - l)), w = s / max(|sum s|, 1).

    angles; rate: g = e^-rate.
    """
    decays = "expm1(-rate * (position + 1)) / expm1(-rate)"  # a geometric sum
    decayed = f"inverse_sqrt_width * rotary_dot * exp(-rate * distance) / sqrt({decays})"
    kernel = policy.kernel("rotary_dot", decayed, parameters={"rate": 1}, domains={"rate": "positive"})
    total = policy.normalizer("a", divided_by="one", weight_factor="1 / maximum(abs(earned), 1)")
    return attune.compile(kernel, normalizer=total, **options)


def sandwich(**options):
    """Sandwich: s = c <q_i, k_j> + sum_r a_r cos(w_r (i - j)). cosine: a, H / (8 h) for head h = 1, ..., H.

    frequency: w; sine: zeros. Tables have the shape (1, H or 1, terms, 1).
    """
    return attune.compile("dot_product{} + fourier_prior{}", **options)


def softpick(**options):
    """Softpick: w = max(e^a - 1, 0) / (eps + sum |e^a - 1|). eps."""
    rectified = policy.normalizer(
        "where(a > zero, -exp_nonpositive(a - m) * expm1(zero - a), 0)",
        ground="where(a < zero, -exp_nonpositive(zero - m) * expm1(a - zero), 0)",
        constant="eps * exp_nonpositive(zero - m)",
        parameters={"eps": 1e-6},
        domains={"eps": "positive"},
    )
    return attune.compile(normalizer=rectified, **options)


def ssd(**options):
    """State space duality: w = <q_i, k_j> exp(c_i - c_j), not divided. sort_q, sort_k: c_i = sum_{l <= i} log a_l."""
    return attune.compile(
        "dot_product{1}",
        gate=policy.gate("score * exp(scalar_difference)", contractions="scalar_difference"),
        normalizer=policy.normalizer("a", divided_by="one"),
        **options,
    )


def stick_breaking(**options):
    """Stick-breaking: w = sigmoid(z_ij) prod_{j < l < i} (1 - sigmoid(z_il)), z = c <q_i, k_j>.

    A query does not see its own key: the offset is 1 less than usual.
    """
    # log(1 - sigmoid(z)) = -softplus(z), and log sigmoid(z) = z - softplus(z)
    left = policy.ordered_sum("left", "dot", "-softplus(inverse_sqrt_width * dot)", own=True)
    stick = policy.kernel(["dot", left], "inverse_sqrt_width * dot + left")
    return attune.compile(stick, normalizer="exponential{}", **options)


def student_t(**options):
    """Student-t attention: w proportional to (1 + |q_i - k_j|^2 / nu)^(-(nu + 1) / 2). nu."""
    log = "-0.5 * (nu + 1) * log1p(squared_distance / nu)"
    nu = {"parameters": {"nu": 1}, "domains": {"nu": "positive"}}
    return attune.compile(policy.kernel("squared_distance", log, **nu), **options)


SWIN = """
struct window_bias {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::gathered_by_pair;
  table values;
  index_t side = 1;  // M
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("values", &window_bias::values, table_width::one)}; }
  index_t index(index_t i, index_t j) const {
    index_t const dy = i / side - j / side, dx = i % side - j % side;
    return (dy + side - 1) * (2 * side - 1) + dx + side - 1;
  }
  template <class T>
  kernel::bound_identity<T> bind(row<T> const&) const {
    return {};
  }
};
window_bias{{}, index_t(c("side", 7))}
"""


def swin(**options):
    """Swin: s = c <q_i, k_j> + B[y_i - y_j, x_i - x_j] in a window of side x side patches. values: B; side."""
    return attune.compile(terms=[SWIN], **options)


def talking_heads(heads=3, **options):
    """Talking heads: out_h = sum_g W_gh softmax(c <q_g, k_g>) v_h. fold_g: row g of W, (H, 1, 1).

    The heads h are batch elements: q and k are shared by them, and v is (H, 1, Lk, D).
    """
    rows = ", ".join(["open"] * heads)
    return attune.compile_operator(f"fold(softmax_attention(m), {{{rows}}})", **options)


def yarn(**options):
    """Rotary positions with YaRN: angles(yarn(features, scale, trained), length, yarn_factor(scale))."""
    return attune.compile(_ROTARY, **options)


VARIANTS = {
    name: x for name, x in list(globals().items()) if callable(x) and getattr(x, "__module__", None) == __name__
}
