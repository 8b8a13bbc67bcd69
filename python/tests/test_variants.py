# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""python/examples/variants.py: values and gradients of every variant against its formula in NumPy."""

import importlib.util
import pathlib

import numpy as np
import pytest

import variant_formulas
from attune import masks

_ROOT = pathlib.Path(__file__).parents[2]
_CPP = _ROOT / "examples" / "variants"
_PYTHON = _ROOT / "python" / "examples" / "variants.py"
NAMES = sorted(path.stem for path in _CPP.glob("*.cpp"))


@pytest.fixture(scope="module")
def variants():
    spec = importlib.util.spec_from_file_location("variants", _PYTHON)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.VARIANTS


@pytest.mark.skipif(not NAMES, reason="no sources next to these tests")
def test_every_variant_of_the_catalogue_is_there(variants):
    assert sorted(variants) == NAMES
    assert all(hasattr(variant_formulas, name) for name in NAMES)


def compared(case, causal):
    """The mask of a call, and the pairs that it shows."""
    mask, seen = case.mask, np.broadcast_to(case.shown, (1, 1, *np.broadcast_shapes(case.i.shape, case.j.shape)))
    seen = np.broadcast_to(case.shown, np.broadcast_shapes(np.shape(case.shown), seen.shape))
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
