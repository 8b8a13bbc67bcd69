# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""attune.compile: values and gradients. Its cache: test_cache.py; wrong policies: test_wrong_policies.py.

Tests with the mark `compiles` run a C++ compiler: -m "not compiles" leaves them out.
"""

import copy
import importlib.util
import math
import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import attune
from attune import _compile, masks, policy

compiles = pytest.mark.compiles
B, H, LQ, LK, D, DV = 1, 2, 3, 5, 4, 3
OFFSET = LK - LQ


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A folder for the operators of this file, so that each of them is compiled once per run."""
    return tmp_path_factory.mktemp("compiled", numbered=True)


def draw(**shapes):
    r = np.random.default_rng(7)
    return {name: r.normal(size=shape) for name, shape in shapes.items()}


def inputs(**more):
    return draw(q=(B, H, LQ, D), k=(B, H, LK, D), v=(B, H, LK, DV), **more)


def rows(visible):
    """For each batch element, head and query: its position and the keys that it sees."""
    for b in range(B):
        for h in range(H):
            for i in range(LQ):
                yield b, h, i, i + OFFSET, [j for j in range(LK) if visible(i + OFFSET, j)]


def causal(i, j):
    return j <= i


def everything(i, j):
    return True


def check_gradients(op, given, mask, parameters=(), step=1e-6):
    """Compares vjp with central differences, for every number of every input."""
    given = {**given, **{name: np.asarray(x, float) for name, x in parameters}}
    dout = np.random.default_rng(1).normal(size=(B, H, LQ, DV))

    def value(**changed):
        return float(np.sum(op(**{**given, **changed}, mask=mask) * dout))

    g = op.vjp(**given, mask=mask, dout=dout)
    by_last = {path.rsplit(".", 1)[-1]: x for path, x in g.items()}
    for name, x in given.items():
        exact = np.zeros_like(x)
        for at in np.ndindex(x.shape):
            up, down = x.copy(), x.copy()
            up[at] += step
            down[at] -= step
            exact[at] = (value(**{name: up}) - value(**{name: down})) / (2 * step)
        np.testing.assert_allclose(by_last[name], exact, rtol=1e-6, atol=1e-7, err_msg=name)
        assert np.abs(exact).max() > 1e-4, f"{name} has no influence"


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# --- values and gradients ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sigmoid_operator(cache):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTUNE_CACHE", str(cache))
        # [snippet: compile]
        hard = attune.policy.normalizer("sigmoid(a + bias - log_visible)", divided_by="one", parameters={"bias": 0.5})
        slow = attune.policy.term("-rate * log1p(abs(distance))", parameters={"rate": 0.25})
        op = attune.compile("dot_product{}", normalizer=hard, terms=[slow])
        # [/snippet]
    return op


def test_dtypes_are_names_or_types():
    for one in ("float64", np.float64, np.dtype(np.float64), ["float64"], (np.float64,)):
        assert _compile._codes(one) == 2, one
    torch = pytest.importorskip("torch")
    assert _compile._codes(torch.float64) == 2 and _compile._codes((torch.float32, torch.bfloat16, np.float64)) == 7
    for bad in (torch.int64, np.int64, "float128", 8, None):
        with pytest.raises(attune.CompileError, match="dtypes has .*; expected some of float32, float64"):
            _compile._codes(bad)


@compiles
def test_a_normalizer_and_a_term_have_the_values_of_a_loop(sigmoid_operator):
    op, x, bias = sigmoid_operator, inputs(), np.array([0.25, -1.0])
    q, k, v = x.values()
    # [snippet: call]
    got = op(q, k, v, bias=bias, mask=masks.causal())  # bias: a number, (H), (H, Lq) or (B, H, Lq)
    # [/snippet]
    dout = np.ones_like(got)
    # [snippet: vjp]
    g = op.vjp(q, k, v, bias=bias, mask=masks.causal(), dout=dout)
    # [/snippet]
    assert g["normalizer.bias"].shape == (H,)
    out = np.zeros((B, H, LQ, DV))
    for b, h, i, position, keys in rows(causal):
        for j in keys:
            s = x["q"][b, h, i] @ x["k"][b, h, j] / np.sqrt(D) - 0.25 * np.log1p(abs(position - j))
            out[b, h, i] += sigmoid(s + bias[h] - np.log(len(keys))) * x["v"][b, h, j]
    np.testing.assert_allclose(got, out, rtol=1e-13, atol=1e-14)
    assert op.parameters["normalizer.bias"] == 0.5 and 0.25 in op.parameters.values()
    assert op.outputs == ("out",)


@compiles
def test_a_normalizer_and_a_term_have_their_gradients(sigmoid_operator):
    check_gradients(sigmoid_operator, inputs(), masks.causal(), [("bias", [0.25, -1.0]), ("rate", 0.3)])


@pytest.fixture(scope="module")
def all_roles(cache):
    return attune.compile(
        policy.kernel(
            ["dot", "scalar_difference"],
            "inverse_sqrt_width * dot - slope * scalar_difference ** 2",
            parameters={"slope": 0.5},
        ),
        map=policy.score_map("cap * tanh(score / cap)", parameters={"cap": 2.0}, domains={"cap": "positive"}),
        length_scale=policy.length_scale(
            "scale_keeping_off(1 + growth * log_visible, score)", parameters={"growth": 0.3}
        ),
        gate=policy.gate("score + strength * softplus(gate_dot)", parameters={"strength": 0.7}),
        normalizer=policy.normalizer("exp_nonpositive(a - m)"),
        weight_gate=policy.weight_gate("exp(-decay * abs(distance))", parameters={"decay": 0.2}),
        value_gate=policy.value_gate("sigmoid(x)"),
        output_gate=policy.output_gate("1 + x / 2"),
        dtypes="float64",
        cache=cache,
    )


ROLES = {
    "sort_q": (B, H, LQ, 1),
    "sort_k": (B, H, LK, 1),
    "gate_q": (B, H, LQ, 2),
    "gate_k": (B, H, LK, 2),
    "value_gate": (B, H, LK, DV),
    "output_gate": (B, H, LQ, DV),
}
ROLE_PARAMETERS = [("slope", 0.4), ("cap", 1.5), ("growth", 0.6), ("strength", 0.9), ("decay", 0.3)]


@compiles
def test_a_policy_of_every_role_has_the_values_of_a_loop(all_roles):
    x, p = inputs(**ROLES), dict(ROLE_PARAMETERS)
    out = np.zeros((B, H, LQ, DV))
    lse = np.zeros((B, H, LQ))
    for b, h, i, position, keys in rows(everything):
        difference = x["sort_q"][b, h, i, 0] - x["sort_k"][b, h, keys, 0]
        s = x["k"][b, h, keys] @ x["q"][b, h, i] / np.sqrt(D) - p["slope"] * difference**2
        s = p["cap"] * np.tanh(s / p["cap"]) * (1 + p["growth"] * np.log(len(keys)))
        s = s + p["strength"] * np.log1p(np.exp(x["gate_k"][b, h, keys] @ x["gate_q"][b, h, i]))
        lse[b, h, i] = np.log(np.sum(np.exp(s)))
        w = np.exp(s - lse[b, h, i]) * np.exp(-p["decay"] * abs(position - np.array(keys)))
        out[b, h, i] = w @ (x["v"][b, h, keys] * sigmoid(x["value_gate"][b, h, keys]))
        out[b, h, i] *= 1 + x["output_gate"][b, h, i] / 2
    got = all_roles(**x, **p, returns=("out", "lse"))
    np.testing.assert_allclose(got[0], out, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(got[1], lse, rtol=1e-13, atol=1e-14)


@compiles
def test_a_policy_of_every_role_has_its_gradients(all_roles):
    check_gradients(all_roles, inputs(**ROLES), masks.full(), ROLE_PARAMETERS)


@compiles
def test_only_the_types_that_are_named_are_compiled(all_roles):
    x = {name: a.astype(np.float32) for name, a in inputs(**ROLES).items()}
    with pytest.raises(attune.Error, match="float32; expected float64"):
        all_roles(**x)


@compiles
def test_a_parameter_is_checked_by_its_domain(all_roles):
    with pytest.raises(attune.Error, match="cap"):
        all_roles(**inputs(**ROLES), cap=-1.0)


CPP = """
// Weights softplus(a + shift), not divided by their sum but by 1 + sum.
struct shifted {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{
      .divided_by = divisor::one, .reference = mass_reference::none, .weight_factor = true};
  parameter shift = 0.5;
  static constexpr auto parameters() { return std::array{listed("shift", &shifted::shift)}; }
  template <class T>
  struct bound {
    T shift;
    T earned(T const& a, T const&) const { return math::softplus(T(a + shift)); }
    T weight_factor(T const& earned, T const&) const { return T(1) / (T(1) + earned); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r(shift) + r.logit_shift};
  }
};
"""


@compiles
def test_a_policy_in_cpp_has_values_and_gradients(cache, tmp_path):
    file = tmp_path / "shifted.hpp"
    file.write_text("#include <cmath>\n" + CPP)
    # [snippet: text]
    op = attune.compile("dot_product{} + alibi{0.25}", normalizer=pathlib.Path(file), dtypes="float64", cache=cache)
    # [/snippet]
    x = inputs()
    out = np.zeros((B, H, LQ, DV))
    for b, h, i, position, keys in rows(causal):
        s = x["k"][b, h, keys] @ x["q"][b, h, i] / np.sqrt(D) - 0.25 * (position - np.array(keys))
        earned = np.log1p(np.exp(s - 0.3))
        out[b, h, i] = earned @ x["v"][b, h, keys] / (1 + earned.sum())
    np.testing.assert_allclose(op(**x, shift=-0.3, mask=masks.causal()), out, rtol=1e-13, atol=1e-14)
    check_gradients(op, x, masks.causal(), [("shift", [0.2, -0.1]), ("slope", 0.4)])


# [snippet: operator]
OPERATOR = """
struct squared_relu {
  template <class T>
  static T map(T const& a) {
    T const positive = math::larger(a, T(0));
    return positive * positive;
  }
};
attention(kernel::dot_product{open} + kernel::alibi{c("start", 0.25)},
          normalizer::generic<squared_relu, divisor::count>{}, m)
"""
# [/snippet]


@compiles
def test_an_expression_of_an_operator_has_parameters_and_constants(cache):
    op = attune.compile_operator(OPERATOR, dtypes="float64", cache=cache)
    assert op.constants == {"start": 0.25}
    x = inputs()
    for start in (0.25, 0.75):
        out = np.zeros((B, H, LQ, DV))
        for b, h, i, position, keys in rows(causal):
            s = 0.9 * x["k"][b, h, keys] @ x["q"][b, h, i] - start * (position - np.array(keys))
            out[b, h, i] = np.maximum(s, 0) ** 2 / len(keys) @ x["v"][b, h, keys]
        got = op(**x, scale=0.9, mask=masks.causal(), **({} if start == 0.25 else {"start": start}))
        np.testing.assert_allclose(got, out, rtol=1e-13, atol=1e-14)


@compiles
def test_a_formula_of_a_paper(cache):
    """docs/tutorial/from_a_paper.md: Mega's attention by the Laplace function."""
    # [snippet: paper]
    op = attune.compile(
        "dot_product{1}",
        length_scale=attune.policy.length_scale("scale_keeping_off(1 / maximum(visible, 1), score)"),
        normalizer=attune.policy.normalizer(
            "(1 + erf((a - mu) / (sigma * sqrt(2)))) / 2",
            divided_by="one",
            parameters={"mu": 0.5**0.5, "sigma": (0.25 / math.pi) ** 0.5},
            domains={"sigma": "positive"},
        ),
        dtypes="float64",
        cache=cache,
    )
    # [/snippet]
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((1, 2, 6, 4)) for _ in range(3))
    out = op(q, k, v, mask=masks.causal(), sigma=0.4)
    for h, i in np.ndindex(2, 6):
        x = k[0, h, : i + 1] @ q[0, h, i] / (i + 1)
        w = [0.5 * (1 + math.erf((s - 0.5**0.5) / (0.4 * 2**0.5))) for s in x]
        np.testing.assert_allclose(out[0, h, i], w @ v[0, h, : i + 1], rtol=1e-12, atol=1e-14)


@compiles
def test_operators_and_their_modules_pickle_by_policies(cache, tmp_path):
    """In this process a copy is the same operator. A new one reads it from the cache, and compiles nothing."""
    x = inputs()
    ops = [
        attune.compile("dot_product{} + alibi{0.25}", normalizer=CPP, dtypes="float64", cache=cache),
        attune.compile_operator(OPERATOR, dtypes="float64", cache=cache),
    ]
    given = [{"shift": 0.2}, {"scale": 0.9}]
    made = [pickle.dumps((op, x, more, op(**x, **more))) for op, more in zip(ops, given)]
    assert all(pickle.loads(text)[0] is op and copy.deepcopy(op) is op for text, op in zip(made, ops))
    (tmp_path / "made").write_bytes(pickle.dumps(made))
    program = [
        "import pickle, sys, numpy",
        "for text in pickle.load(open(sys.argv[1] + '/made', 'rb')):",
        "    op, x, more, expected = pickle.loads(text)",
        "    assert numpy.array_equal(op(**x, **more), expected)",
    ]
    if importlib.util.find_spec("torch"):
        import torch

        import attune.torch as at

        layer = at.Attention(ops[0], H, parameters={"shift": 0.2})
        tensors = {name: torch.from_numpy(a) for name, a in x.items()}
        expected = layer(**tensors)
        assert copy.deepcopy(layer).op is ops[0]
        torch.save((layer, tensors, expected), tmp_path / "layer")
        program += [
            "import torch",
            "layer, x, expected = torch.load(sys.argv[1] + '/layer', weights_only=False)",
            "compiled = torch.compile(layer, fullgraph=True, backend='aot_eager')",
            "assert torch.equal(layer(**x), expected) and torch.equal(compiled(**x), expected)",
        ]
    environment = {**os.environ, "ATTUNE_NO_COMPILE": "1"}
    subprocess.run([sys.executable, "-c", "\n".join(program), str(tmp_path)], check=True, env=environment)


@compiles
def test_parameters_that_share_a_name_with_something_else(cache, rng):
    torch = pytest.importorskip("torch")
    import attune.torch as at

    op = attune.compile(
        "dot_product{} + bias{}",
        normalizer=policy.normalizer("sigmoid(k * (a + bias))", divided_by="one", parameters={"k": 1.5, "bias": -2.0}),
        terms=[policy.term("threads * 0.1 * key", parameters={"threads": 0.5})],
        dtypes="float64",
        cache=cache,
    )
    threads = next(path for path in op.parameters if path.endswith("threads"))

    def eager(q, k, v, table, slope, shift, rate):
        keys = torch.arange(k.shape[2], dtype=torch.float64)
        a = q @ k.mT / q.shape[-1] ** 0.5 + table + 0.1 * rate[:, None, None] * keys
        return torch.sigmoid(slope[:, None, None] * (a + shift[:, None, None])) @ v

    def mine(q, k, v, table, slope, shift, rate, call=at.attend):
        named = {"normalizer.k": slope, "normalizer.bias": shift, threads: rate}
        return call(op, q, k, v, bias=table, threads=2, **named)

    q, k, v = (torch.from_numpy(rng.standard_normal((1, 4, 4, 4))) for _ in range(3))
    table = torch.from_numpy(rng.standard_normal((4, 4)))
    numbers = [torch.from_numpy(rng.uniform(0.5, 2, 4)) for _ in range(3)]
    arguments = [x.requires_grad_() for x in (q, k, v, table, *numbers)]
    assert torch.allclose(mine(*arguments), eager(*arguments), rtol=0, atol=1e-13)
    plain = [x.detach() for x in arguments]
    assert torch.equal(mine(*plain, call=lambda op, *a, **b: op(*a, **b)), mine(*plain))
    assert np.array_equal(mine(*[x.numpy() for x in plain], call=lambda op, *a, **b: op(*a, **b)), mine(*plain).numpy())
    d = torch.ones_like(q)
    for got, wanted in zip(torch.autograd.grad(mine(*arguments), arguments, d), torch.autograd.grad(eager(*arguments), arguments, d)):
        assert torch.allclose(got, wanted, rtol=0, atol=1e-12)


@compiles
def test_a_module_draws_its_dropout_in_training_alone(cache, rng):
    torch = pytest.importorskip("torch")
    import attune.torch as at

    op = attune.compile(
        weight_gate='dropout{c("rate", 0.5), std::uint64_t(c("seed", 0))}', dtypes="float32", cache=cache
    )
    layer = at.MultiheadAttention(16, 4, op)
    x = torch.from_numpy(rng.standard_normal((2, 5, 16), dtype=np.float32))
    assert not torch.equal(layer(x), layer(x))
    assert torch.equal(layer(x, seed=3), layer(x, seed=3))
    torch.manual_seed(1)
    first = layer(x)
    torch.manual_seed(1)
    assert torch.equal(layer(x), first)
    plain = at.MultiheadAttention(16, 4)
    plain.load_state_dict(layer.state_dict())
    assert torch.allclose(layer.eval()(x), plain(x), atol=1e-6)
