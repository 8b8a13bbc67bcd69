# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""op.statistics against NumPy."""

import numpy as np
import pytest

import attune
from attune import masks

pytestmark = pytest.mark.compiles


def logits(q, k, seen):
    a = np.einsum("bhid,bhjd->bhij", *(np.asarray(x, np.float64) for x in (q, k))) * q.shape[-1] ** -0.5
    return np.where(seen, a, -np.inf)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
def test_softmax(kind, rng):
    q, k, v = (rng.standard_normal((2, 3, n, 8)).astype(kind) for n in (5, 7, 7))
    seen = np.arange(7) <= np.arange(5)[:, None] + 2
    s = attune.op("softmax").statistics(q, k, v, columns=True, above=0.3, mask=masks.causal())
    a = logits(q, k, seen)
    w = np.exp(a - a.max(-1, keepdims=True))
    w /= w.sum(-1, keepdims=True)
    entropy = -np.where(w > 0, w * np.log(np.where(w > 0, w, 1)), 0).sum(-1)
    near = dict(rtol=1e-12 if kind == np.float64 else 2e-5, atol=1e-12 if kind == np.float64 else 2e-6)
    np.testing.assert_allclose(s.highest_logit, a.max(-1), **near)
    np.testing.assert_allclose(s.mean_logit, np.where(seen, a, 0).sum(-1) / seen.sum(-1), **near)
    np.testing.assert_allclose(s.highest_weight, w.max(-1), **near)
    np.testing.assert_allclose(s.mass, np.ones_like(entropy), **near)
    np.testing.assert_allclose(s.first_key, w[..., 0], **near)
    np.testing.assert_allclose(s.entropy, entropy, **near)
    np.testing.assert_allclose(s.effective_keys, np.exp(entropy), **near)
    np.testing.assert_allclose(s.columns, w.sum(-2), **near)
    assert s.columns.shape == (2, 3, 7)
    assert np.array_equal(s.scored, np.broadcast_to(seen.sum(-1), (2, 3, 5)))
    clear = np.abs(w - 0.3) > 1e-4
    assert s.above.dtype == np.int64 and np.all(np.abs(s.above - (w > 0.3).sum(-1)) <= (~clear).sum(-1))
    assert s.ground_weight is None


def test_what_is_not_asked_for_is_none(rng):
    q, k, v = (rng.standard_normal((1, 2, 4, 8)) for _ in range(3))
    s = attune.op("sink").statistics(q, k, v, logit=0.5)
    assert s.columns is None and s.above is None
    out, lse, ground = attune.op("sink")(q, k, v, logit=0.5, returns=("out", "lse", "ground_weight"))
    np.testing.assert_allclose(s.ground_weight, ground, rtol=1e-12)
    np.testing.assert_allclose(s.mass + s.ground_weight, 1, rtol=1e-12)
    again = attune.op("sink").statistics(q, k, v, logit=0.5, threads=3)
    assert np.array_equal(s.entropy, again.entropy)


def test_layout_and_wrong_calls(rng):
    q, k, v = (rng.standard_normal((1, 2, 4, 8)) for _ in range(3))
    op = attune.op("softmax")
    turned = (np.ascontiguousarray(x.transpose(0, 2, 1, 3)) for x in (q, k, v))
    assert np.array_equal(op.statistics(*turned, layout="blhd").entropy, op.statistics(q, k, v).entropy)
    with pytest.raises(attune.Error, match="above has the value"):
        op.statistics(q, k, v, above="much")
    with pytest.raises(attune.Error, match="k has no value"):
        op.statistics(q)
