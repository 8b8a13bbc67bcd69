# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Calls on a CUDA device. Without one, the same calls run on emulated warps, and nvcc compiles what it would run."""

import contextlib
import ctypes
import subprocess

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import attune  # noqa: E402
import attune.torch as at  # noqa: E402
from attune import _abi, _cuda, masks  # noqa: E402
from attune._compile import Host, _part, compiled  # noqa: E402
from attune._nvcc import Nvcc  # noqa: E402
from attune._sources import Part, source_of_operator, source_of_parts  # noqa: E402

compiles = pytest.mark.compiles
needs_nvcc = pytest.mark.skipif(Nvcc((9, 0)).words() is None, reason="there is no nvcc")
needs_device = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


class Warps:
    """Emulated warps in the place of a device."""

    kind, tool, place = "warps", Host, torch.device("cpu")

    def holds(self, x):
        return x.device == self.place

    def current(self):
        return contextlib.nullcontext()

    def stream(self):
        return 0


def drawn(rng, kind, queries=19, keys=37, width=24, heads=4, key_heads=2):
    shapes = ((2, heads, queries, width), (2, key_heads, keys, width), (2, key_heads, keys, 16))
    return [torch.from_numpy(rng.standard_normal(s)).to(kind) for s in shapes]


def on_warps(op, q, k, v, mask=None, offset=None, layout="bhld", returns=("out",), **named):
    return _cuda.forward(attune.op(op), {"q": q, "k": k, "v": v}, named, mask, offset, layout, returns, Warps())


def near(found, exact, kind):
    """Within some roundings of outputs of size 1."""
    size = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11, torch.float32: 2.0**-20}[kind]
    return (found.double() - exact).abs().max() < 4 * size


@compiles
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.float32])
def test_the_path_of_a_call(rng, kind):
    q, k, v = drawn(rng, kind)
    logit = torch.tensor([0.5, -1, 0, 2], dtype=torch.float32)
    for mask in (None, masks.causal(), masks.causal() & masks.window(5, None), masks.causal("start")):
        out, lse = on_warps("sink", q, k, v, mask, returns=("out", "lse"), logit=logit)
        exact = attune.reference("sink", q, k, v, mask=mask, logit=logit)
        assert out.dtype is kind and lse.dtype is torch.float32 and lse.shape == (2, 4, 19)
        assert near(out, exact.out, kind) and (lse - exact.lse).abs().max() < 1e-4
    # Another layout, strides that tiles cannot copy, an offset, a number as parameter.
    turned = [x.transpose(1, 2) for x in (q, k, v)]
    (out,) = on_warps("sink", *turned, masks.causal(), 3, "blhd", logit=1.0)
    exact = attune.reference("sink", q, k, v, mask=masks.causal(), offset=3, logit=1.0)
    assert out.shape == (2, 19, 4, 16) and near(out.transpose(1, 2), exact.out, kind)
    (empty,) = on_warps("sink", q[:, :, :0], k, v, logit=1.0)
    assert empty.shape == (2, 4, 0, 16)


@compiles
def test_offsets_of_a_batch(rng):
    q, k, v = drawn(rng, torch.bfloat16)
    (out,) = on_warps("softmax", q, k, v, masks.causal(), torch.tensor([0, 11]))
    for b, offset in enumerate((0, 11)):
        exact = attune.reference("softmax", q[b : b + 1], k[b : b + 1], v[b : b + 1], mask=masks.causal(), offset=offset)
        assert near(out[b : b + 1], exact.out, torch.bfloat16)


@pytest.mark.parametrize(
    "change, text",
    [
        (dict(mask=masks.prefix(3)), "full, causal, a window"),
        (dict(mask=masks.causal() | masks.causal()), "on a device"),
        (dict(k="numpy"), "k has the type ndarray; expected a tensor of torch on cpu"),
        (dict(v="meta"), "v has the device meta; expected a tensor of torch on cpu"),
        (dict(logit=np.float32(1) * np.ones(4)), "logit has the type ndarray"),
        (dict(q="double"), "q has the type float64; expected float32 or bfloat16 or float16"),
        (dict(offset=[1, 2]), "offset has the type list; expected integers, as a tensor on cpu"),
        (dict(offset=torch.tensor([0.5, 1])), "offset has the type torch.float32; expected integers"),
    ],
)
@compiles
def test_refusals(rng, change, text):
    q, k, v = drawn(rng, torch.bfloat16)
    given = {"q": q, "k": k, "v": v, "logit": 1.0, **change}
    for name, x in given.items():
        if isinstance(x, str):
            t = {"q": q, "k": k, "v": v}[name]
            given[name] = t.float().numpy() if x == "numpy" else t.double() if x == "double" else t.to("meta")
    with pytest.raises(attune.Error) as refused:
        on_warps("sink", **given)
    assert text in str(refused.value)


@compiles
@needs_nvcc
def test_nvcc_compiles_what_a_device_would_run(rng):
    q, k, v = drawn(rng, torch.bfloat16)
    op = attune.op("softmax")
    path = compiled(op._companions._source, "cuda", 5, types=("attune::bfloat16",), tool=Nvcc((9, 0)))
    run = _abi.Companion(path, "cuda").run
    # To ask for the size of the workspace needs no device.
    call = _cuda.DeviceCall(op, {"q": q, "k": k, "v": v}, {}, masks.causal(), None, "bhld", Warps())
    call.blank_outputs(("out",))
    needed = ctypes.c_int64()
    run(call.address, _cuda.CUDA.pack(0, 0, 0, ctypes.addressof(needed)))
    assert needed.value > 2 * 4 * 19 * 4


@compiles
@needs_nvcc
def test_nvcc_compiles_policies_of_python():
    hard = attune.policy.normalizer("sigmoid(a + bias - log_visible)", divided_by="one", parameters={"bias": 0.0})
    source = source_of_parts([_part("kernel", "kernel", "dot_product{}"), _part("normalizer", "normalizer", hard)])
    assert compiled(source, "cuda", 5, types=("attune::float16",), tool=Nvcc((8, 0))).stat().st_size > 10000


@compiles
@needs_nvcc
def test_operators_that_tiles_cannot_run_are_refused():
    source = attune.op("entmax15")._companions._source
    with pytest.raises(attune.CompileError, match="candidate set"):
        compiled(source, "cuda", 5, types=("attune::bfloat16",), tool=Nvcc((9, 0)))


@compiles
def test_folds_are_refused():
    source = source_of_operator(Part("operator", "operator", "fold(softmax_attention(m), {1.0, open})", None, "operator"))
    with pytest.raises(attune.CompileError, match="a fold does not run on a device"):
        compiled(source, "warps", 5, types=("attune::bfloat16",))


def test_without_nvcc(monkeypatch):
    monkeypatch.setenv("ATTUNE_NVCC", "no-such-nvcc")
    with pytest.raises(attune.CompileError, match="there is no nvcc"):
        compiled(attune.op("softmax")._companions._source, "cuda", 5, types=("attune::float16",), tool=Nvcc((8, 0)))


def test_the_command_of_nvcc(monkeypatch, tmp_path):
    nvcc = tmp_path / "nvcc"
    nvcc.write_text("#!/bin/sh\necho nvcc of a test\n")
    nvcc.chmod(0o755)
    monkeypatch.setenv("ATTUNE_NVCC", f"{nvcc} -lineinfo")
    words = Nvcc((10, 0)).words()
    assert words == [str(nvcc), "-lineinfo"] and "-arch=sm_100" in Nvcc((10, 0)).flags(5, words, "cuda")
    assert "nvcc of a test" in subprocess.run(words[:1], capture_output=True, text=True).stdout


@compiles
@needs_nvcc
@needs_device
def test_on_a_device(rng):
    for kind in (torch.bfloat16, torch.float16, torch.float32):
        q, k, v = drawn(rng, kind)
        logit = torch.tensor([0.5, -1, 0, 2])
        there = [x.cuda() for x in (q, k, v)]
        for mask in (None, masks.causal(), masks.window(5, 0)):
            out, lse = at.sink(*there, logit=logit.cuda(), mask=mask, returns=("out", "lse"))
            exact = attune.reference("sink", q, k, v, mask=mask, logit=logit)
            assert out.is_cuda and near(out.cpu(), exact.out, kind) and (lse.cpu() - exact.lse).abs().max() < 1e-3
        with pytest.raises(attune.Error, match="requires gradients"):
            at.softmax(*(x.requires_grad_() for x in there))
