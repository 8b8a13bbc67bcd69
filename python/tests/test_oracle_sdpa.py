# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The example of docs/howto/python_oracle.md: PyTorch's attention, right and wrong, judged by pytest."""

import re

import pytest

import attune
from attune import masks

torch = pytest.importorskip("torch")
F = torch.nn.functional
pytestmark = pytest.mark.compiles
SMALL = dict(heads=4, key_heads=2, queries=24, keys=40, width=16)


def fails(kernel, words, op="softmax", **more):
    """The text of the AssertionError that judges the kernel."""
    with pytest.raises(AssertionError, match=words) as failed:
        attune.testing.assert_attention(kernel, op, mask=masks.causal(), **SMALL, **more)
    return str(failed.value)


# [snippet: kernel]
def causal_attention(q, k, v):
    """Causal attention by PyTorch, with the ends of queries and keys aligned."""
    queries, keys = q.shape[2], k.shape[2]
    seen = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)
    # [/snippet]


def wrong_scale(q, k, v):
    seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(k.shape[2] - q.shape[2])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True, scale=(q.shape[3] + 1) ** -0.5)


def wrong_corner(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


# [snippet: test]
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_causal_attention(dtype):
    shapes = dict(heads=4, key_heads=2, queries=24, keys=40, width=16)
    attune.testing.assert_attention(
        causal_attention, "softmax", mask=masks.causal(), dtype=dtype, must_detect={"kernel.scale": 0.02}, **shapes
    )
    # [/snippet]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_wrong_scale(dtype):
    fails(wrong_scale, r"^behaves as if kernel.scale were -(2.9|3)\d* %", dtype=dtype)


def test_wrong_corner():
    fails(wrong_corner, "^behaves as if: mask aligned top-left", dtype=torch.float32)


_OVERFLOW = "^behaves as if: exponentials overflow and underflow"


def without_maximum(q, k, v):
    """Causal attention in float32 that takes exponentials of the logits as they are."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.float().repeat_interleave(group, 1) for x in (k, v))
    seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(k.shape[2] - q.shape[2])
    weights = (q.float() @ k.mT * q.shape[3] ** -0.5).masked_fill(~seen, -torch.inf).exp()
    return (weights / weights.sum(-1, keepdim=True) @ v).to(q.dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("gradients", [False, True])
def test_exponentials_that_overflow(dtype, gradients):
    text = fails(without_maximum, _OVERFLOW, dtype=dtype, gradients=gradients)
    assert "on the probe 'logits far from 0'" in text


def test_exponentials_that_overflow_in_the_backward_pass_alone():
    class attention(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v):
            ctx.save_for_backward(q, k, v)
            return causal_attention(q, k, v)

        @staticmethod
        def backward(ctx, dout):
            leaves = [x.detach().requires_grad_() for x in ctx.saved_tensors]
            with torch.enable_grad():
                return torch.autograd.grad(without_maximum(*leaves), leaves, dout)

    assert "outputs: PASS" in fails(attention.apply, _OVERFLOW)


@pytest.mark.parametrize("width", [16, 64])
@pytest.mark.parametrize("factor", [1 / 8, 4, 8])
def test_a_scale_that_is_far_off(width, factor):
    def kernel(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, scale=factor * q.shape[3] ** -0.5)

    with pytest.raises(AssertionError) as failed:
        attune.testing.assert_attention(kernel, "softmax", gradients=False, heads=2, queries=24, keys=40, width=width)
    found = re.match(r"behaves as if kernel.scale were ([+-]\S+) % \(", str(failed.value))
    assert found, failed.value
    assert 1 + float(found.group(1)) / 100 == pytest.approx(factor, rel=0.01)


def test_float32_in_float64():
    text = fails(lambda q, k, v: causal_attention(q, k, v).double(), "^behaves as if: computed in fp32")
    assert 'every number is a float32: if the kernel wrote those, say dtype="float32"' in text


def test_gradients_alone():
    class halved(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, d):
            return d / 2

    fails(lambda q, k, v: causal_attention(q, halved.apply(k), v), "gradients: FAIL")


def test_dropped_sink():
    words = "^behaves as if: (sink or ground ignored|weights not divided)"
    fails(causal_attention, words, "sink", logit=1.0, gradients=False, dtype=torch.bfloat16)

    # [snippet: probes]
    def with_sink(q, k, v):
        keys = torch.cat([torch.zeros_like(k[:, :, :1]), k], 2)  # a key of zeros, whose logit the mask adds
        values = torch.cat([torch.zeros_like(v[:, :, :1]), v], 2)
        queries, count = q.shape[2], k.shape[2]
        bias = torch.zeros(queries, count).masked_fill(~torch.ones(queries, count).tril(count - queries).bool(), -torch.inf)
        bias = torch.cat([torch.full((queries, 1), 1.0), bias], 1).to(q.dtype)
        return F.scaled_dot_product_attention(q, keys, values, attn_mask=bias, enable_gqa=True)

    for probe in attune.testing.probes("sink", logit=1.0, mask=masks.causal(), dtype=torch.bfloat16, **SMALL):
        assert probe.judge(with_sink(probe.q, probe.k, probe.v)), probe
    # [/snippet]


def test_tensors_of_torch():
    q, k, v = (torch.randn(1, 4, n, 16).bfloat16() for n in (9, 14, 14))
    out = causal_attention(q, k, v)
    report = attune.verdict("softmax", q, k, v, mask=masks.causal(), out=out)
    assert report, report
    assert attune.verdict("softmax", q, k, v, mask=masks.causal(), out=out.float(), dtype=torch.bfloat16)
    exact = attune.reference("softmax", q, k, v, mask=masks.causal())
    assert exact.out.dtype == torch.float64 and exact.visible.dtype == torch.bool
    assert float((exact.out - out.double()).abs().max()) < 0.03


def test_no_gradients():
    with pytest.raises(attune.Error, match="the kernel's out has no gradient"):
        attune.testing.assert_attention(lambda q, k, v: causal_attention(q, k, v).detach(), "softmax", mask=masks.causal(), **SMALL)
    with pytest.raises(attune.Error, match="the kernel's result has 'out' of type str"):
        attune.testing.assert_attention(lambda q, k, v: "done", "softmax", mask=masks.causal(), **SMALL)
