# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""python/examples/variants.py: values and gradients of every variant against its formula in NumPy."""

import pathlib
import runpy

import numpy as np
import pytest

import attune
import variant_formulas
from attune import masks

_ROOT = pathlib.Path(__file__).parents[2]
_CPP = _ROOT / "examples" / "variants"
_PYTHON = _ROOT / "python" / "examples" / "variants.py"
NAMES = sorted(path.stem for path in _CPP.glob("*.cpp"))


@pytest.fixture(scope="module")
def variants():
    return runpy.run_path(str(_PYTHON))["VARIANTS"]


@pytest.mark.skipif(not NAMES, reason="no sources next to these tests")
def test_every_variant_of_the_catalogue_is_there(variants):
    assert sorted(variants) == NAMES
    assert all(hasattr(variant_formulas, name) for name in NAMES)


def compared(case, causal):
    """The mask of a call, and the pairs that it shows."""
    mask, seen = case.mask, case.shown & np.ones((1, 1, len(case.i), case.j.size), bool)
    if causal:
        mask = masks.causal() if mask is None else mask & masks.causal()
        seen = seen & (case.j <= case.i)
    return mask, seen


def check(op, case, causal, r):
    """Values to 1e-11, and derivatives along a random direction of every argument to 1e-6."""
    mask, seen = compared(case, causal)
    call = {**case.more, "mask": mask, "offset": case.offset}
    expected = case.formula(case.given, seen)
    assert np.isfinite(expected).all() and np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(op(**case.given, **call), expected, rtol=1e-11, atol=1e-12)

    dout, step = r.normal(size=expected.shape), 1e-5
    for name, x in case.given.items():
        way = r.normal(size=x.shape)
        up, down = (case.formula({**case.given, name: x + s * way}, seen) for s in (step, -step))
        difference = np.sum((up - down) * dout) / (2 * step)
        g = op.vjp(**case.given, **call, dout=dout, wanted=(name,))
        along = sum(np.sum(by * way) for by in g.values())
        assert (abs(difference) > 1e-5) != (name in case.idle), f"the influence of {name}"
        np.testing.assert_allclose(along, difference, rtol=1e-6, atol=1e-8, err_msg=name)


@pytest.mark.compiles
@pytest.mark.parametrize("name", NAMES)
def test_a_variant_has_its_values_and_gradients(name, variants):
    op = variants[name](dtypes="float64")
    for causal in (False, True):
        check(op, getattr(variant_formulas, name)(np.random.default_rng(5)), causal, np.random.default_rng(6))


@pytest.mark.compiles
def test_rotary_angles_of_batch_elements_and_of_axes():
    width, scale, length = 8, 4.0, 7
    x = variant_formulas.qkv(np.random.default_rng(7), width=width)
    q, k, v = x.values()
    # [snippet: rotary]
    op = attune.compile('rotary{c.angles("angles")}', dtypes="float64")
    angles = attune.rotary.angles(attune.rotary.ntk(width, scale), length)  # once: cosines and sines of all positions
    out = op(q, k, v, angles=angles, mask=masks.causal())
    # [/snippet]
    assert op.arrays == ("angles",) and op.tables == ()
    moved = attune.rotary.angles(attune.rotary.ntk(width, scale), np.arange(length) + np.array([[3], [50]]))
    np.testing.assert_allclose(op(q, k, v, angles=moved, mask=masks.causal()), out, rtol=1e-12, atol=1e-13)
    rows, columns = np.divmod(np.arange(length), 3)
    axes = [attune.rotary.angles(attune.rotary.plain(width // 2), n) for n in (rows, columns)]
    i, turned = np.arange(variant_formulas.LQ) + length - variant_formulas.LQ, 0
    for axis, by in ((slice(0, 2), lambda n: n // 3), (slice(2, 4), lambda n: n % 3)):
        pairs = np.r_[axis, axis.start + 4 : axis.stop + 4]
        part = {name: x[name][..., pairs] for name in "qk"}
        frequencies = variant_formulas.theta(width // 2)
        turned = turned + variant_formulas.turned_dots(part, frequencies, by(i)[:, None], by(np.arange(length))[None])
    expected = variant_formulas.weighted(variant_formulas.softmax(turned / np.sqrt(width), True), v)
    np.testing.assert_allclose(op(q, k, v, angles=attune.rotary.joined(*axes)), expected, rtol=1e-11, atol=1e-12)
    kernel = attune.policy.kernel(attune.policy.rotary(given=True), "inverse_sqrt_width * rotary_dot")
    given = attune.compile(kernel, dtypes="float64")
    assert given.arrays == ("query_angles", "key_angles")
    rows = {"query_angles": angles[length - variant_formulas.LQ :], "key_angles": angles}
    np.testing.assert_allclose(given(q, k, v, **rows, mask=masks.causal()), out, rtol=1e-13, atol=1e-14)
    with pytest.raises(attune.Error, match="angles has no tensor; expected an array of numbers"):
        op(q, k, v)
    with pytest.raises(attune.Error, match="angles.*4 rows"):
        op(q, k, v, angles=angles[:4])
    with pytest.raises(attune.Error, match="wanted has the name 'angles'"):
        op.vjp(q, k, v, angles=angles, dout=out, wanted=("angles",))


@pytest.mark.compiles
def test_a_fold_says_what_it_needs(variants):
    op = variants["differential"](dtypes="float64")
    q, k, v = variant_formulas.qkv(np.random.default_rng(8), heads=4).values()
    assert op.outputs == ("out",) and op.required == ("fold.1",)
    assert op(q, k, v, fold_1=-0.5).shape == (*v.shape[:2], q.shape[2], v.shape[3])
    with pytest.raises(attune.Error, match="fold.1 has no value"):
        op(q, k, v)
    with pytest.raises(attune.Error, match="head extent 3; expected 2"):
        op(q[:, :3], k[:, :3], v[:, :1], fold_1=-0.5)
    with pytest.raises(attune.Error, match="statistics has a fold"):
        op.statistics(q, k, v, fold_1=-0.5)


@pytest.mark.compiles
def test_a_fold_and_angles_in_torch(variants):
    torch = pytest.importorskip("torch")
    import attune.torch as at

    op = variants["differential"](dtypes="float64")
    r = np.random.default_rng(9)
    given = [torch.from_numpy(x).requires_grad_() for x in variant_formulas.qkv(r, heads=4).values()]
    given.append(torch.tensor([-0.8, -0.3], dtype=torch.float64, requires_grad=True))

    def f(q, k, v, x):
        return at.attend(op, q, k, v, fold_1=x, mask=masks.causal())

    assert torch.autograd.gradcheck(f, given)
    expected, got = (g(*given) for g in (f, torch.compile(f, fullgraph=True, backend="aot_eager")))
    assert torch.equal(expected, got)
    for a, b in zip(*(torch.autograd.grad(x.square().sum(), given) for x in (expected, got))):
        assert torch.equal(a, b)

    turned = variants["ntk"](dtypes="float64")
    q, k, v = (torch.from_numpy(x).requires_grad_() for x in variant_formulas.qkv(r).values())
    angles = torch.from_numpy(attune.rotary.angles(attune.rotary.plain(4), variant_formulas.LK))
    assert torch.autograd.gradcheck(lambda q, k, v: at.attend(turned, q, k, v, angles=angles), (q, k, v))
    with pytest.raises(attune.Error, match="angles has a tensor that requires gradients"):
        at.attend(turned, q, k, v, angles=angles.requires_grad_())
