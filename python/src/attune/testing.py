# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Tests of other kernels: inputs with power, and an assertion that names what is wrong.

    def test_my_kernel():
        attune.testing.assert_attention(my_kernel, "softmax", mask=masks.causal(), dtype=torch.bfloat16)
"""

import ctypes
import functools
import math
import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy

from . import _abi
from ._arrays import index_of, is_array, is_torch, on_host, wrong
from ._ask_again import explained
from ._calls import Call
from ._layout import TYPE
from ._presets import operator_of
from ._verdict import _demanded, is_torch_type, type_named, verdict

_EXTENTS = "batch heads key_heads value_heads queries keys axes width value_width gate_width position_width".split()
# Promises that probes need and kernels need not make: such a probe is left out unless the caller is strict.
_CONTRACTS = {"hidden NaN": "NaN in keys and values that no query sees never reaches a result"}
_PROBES = _abi.Layout("probes").packer(" ".join([*_EXTENTS, "seed receive"]))


class Probe:
    """Inputs that reveal mistakes, as arrays of the kernel's type.

    name, reveals: what it is, and which mistakes it reveals. seed: of its numbers.
    inputs: arrays by name; q, k and v are attributes, too. dout, dlse, dground_weight: gradients by the outputs.
    """

    def __init__(self, operator, call, to, name, reveals, seed):
        self.operator, self._call, self._to, self._took = operator, call, to, 0.0
        self.name, self.reveals, self.seed = name, reveals, seed
        self.inputs, self.dout, self.dlse, self.dground_weight = {}, None, None, None

    def __getattr__(self, name):
        try:
            return self.__dict__["inputs"][name]
        except KeyError:
            raise AttributeError(f"attune: the probe has no {name!r}") from None

    def __str__(self):
        return f"{self.name}, seed {self.seed}".replace(" ", "_").replace(",", "")

    def __repr__(self):
        return f"<attune probe {self.name!r}, seed {self.seed}: reveals {self.reveals}>"

    def judge(self, out=None, *, must_detect=None, **results):
        """The verdict on what a kernel computed from the probe: out, lse, and dq, dk, dv of dout."""
        if any(name[:1] == "d" and name[1:] in self.inputs for name in results) and "dlse" not in results:
            results.setdefault("dout", self.dout)
        return verdict(self.operator, out=out, must_detect=must_detect, **self.inputs, **self._call, **results)

    def ask_again(self, kernel, *, gradients=False, seconds=10, weights=None, arithmetic=None):
        """Text about a kernel that fails on this probe: its smallest failing call, and the weights that it used.

        kernel, gradients and formats are those of assert_attention, which does this on a failure.
        """
        return "\n".join(_again(kernel, self, gradients, _formats(weights, arithmetic), _seconds("seconds", seconds)))


class _Arrays:
    """How the numbers of probes become arrays of the kernel."""

    def __init__(self, dtype, arrays, device):
        self.code = TYPE.float32 if dtype is None else type_named("dtype", dtype)
        if arrays is None:
            of_numpy = isinstance(dtype, (type, numpy.dtype)) and not is_torch_type(dtype)
            arrays = "numpy" if of_numpy or not _has_torch() else "torch"
        if arrays not in ("numpy", "torch"):
            raise wrong("arrays", f"the value {arrays!r}", '"torch" or "numpy"')
        self.kind, self.device = arrays, device
        self.dtype = dtype
        if arrays == "numpy":
            if self.code == TYPE.bfloat16 and isinstance(dtype, str):
                raise wrong("dtype", f"the value {dtype!r}", 'a type of NumPy, or arrays="torch": NumPy has no bfloat16')
            if device is not None:
                raise wrong("device", f"the value {device!r}", 'None, or arrays="torch"')
            if dtype is None or isinstance(dtype, str):
                self.dtype = numpy.dtype(_abi.TYPES[self.code])
        else:
            import torch

            self.dtype = getattr(torch, _abi.TYPES[self.code])

    def of(self, x):
        """An array with these numbers, rounded to the kernel's type."""
        if self.kind == "numpy":
            return x.astype(self.dtype)
        import torch

        return torch.from_numpy(x).to(self.dtype).to(self.device or "cpu")


def _has_torch():
    from importlib.util import find_spec

    return find_spec("torch") is not None


def probes(
    op,
    *,
    mask=None,
    dtype=None,
    batch=1,
    heads=4,
    key_heads=None,
    value_heads=None,
    queries=64,
    keys=256,
    width=64,
    value_width=0,
    gate_width=0,
    position_width=0,
    axes=2,
    seed=1,
    offset=None,
    layout="bhld",
    arrays=None,
    device=None,
    strict=False,
    **named,
):
    """Inputs with power, as a list of Probe: random numbers hide a dropped sink among many keys; these do not.

        @pytest.mark.parametrize("probe", attune.testing.probes("softmax", heads=8, key_heads=2, width=128), ids=str)
        def test_my_kernel(probe):
            assert probe.judge(my_kernel(probe.q, probe.k, probe.v))

    op, mask, offset, layout and other names are those of a call. key_heads: as heads by default; value_heads: as
    key_heads. Some probes have other lengths. Those that mask and parameters do not fit are left out.
    dtype: of the kernel, float32 by default; a type of NumPy makes NumPy arrays, everything else tensors of torch, on
    `device`. arrays: "torch" or "numpy" says so. Equal seeds give equal probes.
    strict: also the probe "hidden NaN", for kernels that promise that NaN in keys and values that no query sees never
    reaches a result.
    """
    operator = operator_of(op)
    key_heads = heads if key_heads is None else key_heads
    value_heads = key_heads if value_heads is None else value_heads
    extents = dict(zip(_EXTENTS, (batch, heads, key_heads, value_heads, queries, keys, axes, width)))
    extents.update(value_width=value_width, gate_width=gate_width, position_width=position_width)
    for name, x in extents.items():
        least = 0 if name.endswith("_width") else 1
        if index_of(x) is None or not least <= x < 2**20:
            raise wrong(name, f"the value {x!r}", f"a whole number of at least {least}")
    for name in ("key_heads", "value_heads"):
        if heads % extents[name]:
            raise wrong(name, f"the value {extents[name]}", f"a divisor of {heads}, the number of heads")
    if index_of(seed) is None or not 0 <= seed < 2**63:
        raise wrong("seed", f"the value {seed!r}", "a whole number of at least 0")
    to = _Arrays(dtype, arrays, device)
    call = dict(mask=mask, offset=offset, layout=layout, **named)
    found = {}

    def receive(probe, reveals, name, at):
        probe, name = probe.decode(), name.decode()
        one = found.setdefault(probe, Probe(operator, call, to, probe, reveals.decode(), seed))
        x = to.of(_turned(operator, name, _copied(at), layout))
        if name in operator.fields:
            one.inputs[name] = x
        else:
            setattr(one, name, x)

    function = _abi.TENSOR_RECEIVER(receive)
    memory = _PROBES.pack(*extents.values(), seed, ctypes.cast(function, ctypes.c_void_p).value)
    blank = _blank_call(operator, mask, offset, named)
    operator._companions.run("probes")(blank.address, memory)
    if not strict:
        found = {name: one for name, one in found.items() if name not in _CONTRACTS}
    if not found:
        raise wrong("probes", "no probe that fits", "a mask and parameters that fit batch, heads, queries and keys")
    return list(found.values())


def _copied(at):
    """A tensor of the interface, which is dense, as a NumPy array."""
    data, *rest = _abi.TENSOR.unpack(ctypes.string_at(at, _abi.TENSOR.size))
    shape = rest[:4]
    size = math.prod(shape) * numpy.dtype(numpy.float64).itemsize
    return numpy.frombuffer(ctypes.string_at(data, size), numpy.float64).reshape(shape).copy()


def _turned(operator, name, x, layout):
    """An array with the axes that a call has."""
    d = operator._description
    if name in ("dlse", "dground_weight"):
        return x[..., 0]
    side = "query" if name == "dout" else d.sides[d.fields.index(name)]
    if layout == "blhd" and side in ("query", "key"):
        x = numpy.ascontiguousarray(x.transpose(0, 2, 1, 3))
    return x[..., 0] if name in d.fields and d.narrow[d.fields.index(name)] else x


def _blank_call(operator, mask, offset, named):
    """A call with the operator's mask and parameters, and the smallest inputs."""
    d = operator._description
    kind = numpy.dtype("float64" if "float64" in d.types else "float32")
    fields = {name: numpy.zeros((1, 1, 1, 1), kind) for name in d.fields}
    named = {name: on_host(x) if is_array(x) else x for name, x in named.items() if name not in fields}
    return Call(operator, fields, named, mask, offset, 1, "bhld")


def assert_attention(
    kernel, op, *, gradients=True, must_detect=None, seeds=(1,), weights=None, arithmetic=None, ask_again=10, **how
):
    """Fails unless a kernel computes the operator: on every probe, and its gradients, too.

        attune.testing.assert_attention(my_kernel, "softmax", mask=masks.causal(), dtype=torch.bfloat16, heads=8)

    kernel: a function kernel(q, k, v), with further inputs of the operator by name. It returns out, (out, lse), or a
    dict with out, lse, ground_weight. What it returns is judged.
    gradients: also judge dq, dk, dv, which torch computes from a random dout. Needs tensors of torch.
    must_detect: defects that at least one probe must be able to show, as in attune.verdict.
    seeds: of the probes. weights, arithmetic: as in attune.verdict. Other arguments are those of attune.testing.probes:
    strict=True judges what kernels need not promise, too.
    ask_again: seconds for calling a failed kernel again, on parts of the probe: the failure names the smallest failing
    call and the weights that the kernel used. 0 does not.

    The first line of the AssertionError says what is wrong: "behaves as if kernel.scale were -0.77 % ...". Returns the
    verdicts, by probes.
    """
    wanted = dict(zip(*_demanded(must_detect)))
    operator_of(op)._companions.prepare_judges(gradients)
    packs = [probe for seed in _seeds(seeds) for probe in probes(op, seed=seed, **how)]
    if gradients and packs[0]._to.kind == "numpy":
        raise wrong("gradients", "the value True", 'False for NumPy arrays, or arrays="torch"')
    seconds = _seconds("ask_again", ask_again)
    formats = _formats(weights, arithmetic)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        waiting = [(one, pool.submit(one.judge, **results)) for one, results in _run(kernel, packs, gradients, formats)]
        try:
            verdicts, failed = [], []
            for one, found in waiting:
                verdicts.append((one, found.result()))
                if verdicts[-1][1].decision == "FAIL":
                    failed.append(verdicts[-1])
                    if _told(verdicts[-1][1]) > 2.99:  # nothing tells more
                        break
        finally:
            for _, found in waiting:
                found.cancel()
    if failed:
        probe, one = max(failed, key=lambda x: _told(x[1]))
        again = _again(kernel, probe, _of_gradients(one), formats, seconds) if seconds else []
        raise AssertionError(_words(probe, one, again))
    unseen = _unseen(verdicts, wanted)
    if unseen:
        raise AssertionError("UNDECIDABLE: " + "\n  ".join(unseen))
    if all(one.decision == "UNDECIDABLE" for _, one in verdicts):
        raise AssertionError(f"UNDECIDABLE: {_words(*verdicts[0])}")
    return verdicts


def _told(one):
    """How much a FAIL says: above 2 it has a cause that explains all, above 1 one that explains a part."""
    told = 0
    for report in one.reports.values():
        cause = report.get("cause")
        if cause:
            told = max(told, (1 if cause.in_part else 2) + report.get("share", 0))
        elif "observation" in report:
            told = max(told, 0.5)
    return told


def _seeds(seeds):
    seeds = [seeds] if index_of(seeds) is not None else list(seeds)
    if not seeds:
        raise wrong("seeds", "no number", "at least one")
    return seeds


def _run(kernel, packs, gradients, formats):
    """Pairs of a probe and what the kernel computed from it."""
    for probe in packs:
        try:
            started = time.perf_counter()
            results = _results(kernel, probe, gradients)
            probe._took = time.perf_counter() - started
        except Exception as e:
            if hasattr(e, "add_note"):
                e.add_note(f"attune: the kernel ran on the probe {probe.name!r}, seed {probe.seed}")
            raise
        yield probe, {**results, **formats}


def _results(kernel, probe, gradients):
    inputs = dict(probe.inputs)
    if gradients:
        inputs = {name: x.detach().requires_grad_() for name, x in inputs.items()}
    first = [inputs.pop(name) for name in ("q", "k", "v") if name in inputs]
    leaves = dict(zip([name for name in ("q", "k", "v") if name in probe.inputs], first), **inputs)
    returned = kernel(*first, **inputs)
    if isinstance(returned, (tuple, list)):
        returned = dict(zip(("out", "lse", "ground_weight"), returned))
    elif not isinstance(returned, dict):
        returned = {"out": returned}
    results = {name: x for name, x in returned.items() if x is not None}
    for name, x in results.items():
        if name not in ("out", "lse", "ground_weight") or not is_array(x):
            expected = "an array; a tuple (out, lse); or a dict with out, lse and ground_weight"
            raise wrong("the kernel's result", f"{name!r} of type {type(x).__name__}", expected)
    out = results.get("out")
    if out is None:
        raise wrong("the kernel's result", "no out", "an array, or (out, lse)")
    if gradients:
        import torch

        if not is_torch(out) or not out.requires_grad:
            raise wrong("the kernel's out", "no gradient", "a differentiable tensor, or gradients=False")
        if out.shape != probe.dout.shape:
            raise wrong("the kernel's out", f"the shape {tuple(out.shape)}", f"{tuple(probe.dout.shape)}")
        found = torch.autograd.grad(out, list(leaves.values()), probe.dout.to(out.dtype), allow_unused=True)
        for (name, _), x in zip(leaves.items(), found):
            if x is None:
                raise wrong("the kernel's out", f"no gradient by {name}", "one, or gradients=False")
            results[f"d{name}"] = x
        results["dout"] = probe.dout
    return results


def _formats(weights, arithmetic):
    return {name: x for name, x in (("weights", weights), ("arithmetic", arithmetic)) if x is not None}


def _again(kernel, probe, gradients, formats, seconds):
    return explained(functools.partial(_results, kernel), probe, gradients, formats, seconds)


def _seconds(name, x):
    if isinstance(x, bool) or not isinstance(x, (int, float)) or not x >= 0:
        raise wrong(name, f"the value {x!r}", "seconds, or 0")
    return x


def _of_gradients(one):
    """Whether the gradients of a verdict failed, and out did not."""
    return "gradients" in one.reports and not ("outputs" in one.reports and one.reports.outputs.decision == "FAIL")


def _words(probe, one, again=()):
    lines = [one.reasons[0]]
    lines.append(f"  on the probe {probe.name!r}, seed {probe.seed}, which reveals {probe.reveals}")
    if probe.name in _CONTRACTS:
        lines.append(f"  contract of strict=True: {_CONTRACTS[probe.name]}")
    lines += ["  " + line for line in again]
    lines.append(f"  meant to be {probe.operator.name}, judged as {one.stored}:")
    return "\n".join(lines + ["  " + line for line in str(one).split("\n")])


def _unseen(verdicts, wanted):
    """The demanded defects that no probe would have shown."""
    best = {}
    for _, one in verdicts:
        for f in one.findings:
            if f.looked_for and not f.smallest_noticed >= best.get(f.name, float("inf")):
                best[f.name] = f.smallest_noticed
    texts = []
    for name, size in wanted.items():
        found = [(power, full) for full, power in best.items() if full == name or full.endswith("." + name)]
        if not found:
            texts.append(f"{name}: no probe shows it at all")
        elif not min(found)[0] < size:
            texts.append(f"{min(found)[1]}: {size:g} would go unnoticed, the smallest to be seen is {min(found)[0]:g}")
    return texts


__all__ = ["Probe", "assert_attention", "probes"]
