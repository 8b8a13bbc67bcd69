# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The oracle for other kernels: exact results, and verdicts on theirs.

What a report contains is decided in C++ (testing/interop/report_json.hpp): its JSON becomes attributes here.
"""

import ctypes
import json
import math

import numpy

from . import _abi
from ._arrays import is_array, is_torch, view, wrong
from ._calls import aligned, parameter_axes
from ._layout import TYPE
from ._oracle import Reference, call_of, cotangents_on_host
from ._presets import operator_of

_TYPES = {
    "float64": ("float64", "f64", "fp64", "double"),
    "float32": ("float32", "f32", "fp32", "float"),
    "float16": ("float16", "f16", "fp16", "half"),
    "bfloat16": ("bfloat16", "bf16"),
}
_FORMATS = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
_VERDICT = _abi.Layout("verdict").packer(
    "outputs cotangents gradients parameters tables must_detect sizes must_detect_count "
    "stored weights arithmetic rows numbers lse_of_base_two receive"
)
_NO_NUMBERS = {"nan", "inf", "-inf"}


def reference(op, q=None, k=None, v=None, *, digits=None, mask=None, offset=None, layout="bhld", **named) -> Reference:
    """The exact result of a call: dense, sequential, as textbooks write it, with every intermediate.

        exact = attune.reference("softmax", q, k, v, mask=masks.causal())
        exact.out, exact.lse, exact.weights

    op: an operator, or the name of a preset. Other arguments are those of a call. Inputs of 16 and 32 bits are exact
    numbers: they are widened, and so are tensors of other devices copied. All results are float64.
    digits: None computes in float64. 50 computes in 50 decimal digits and rounds once, so every number is the float64
    that is nearest to the exact one, unless its terms cancel to 1e-34 of their size. It takes some 100 times longer.
    Memory: O(B H Lq Lk). The first use for an operator compiles a library, which is kept.
    """
    return operator_of(op).reference(q, k, v, digits=digits, mask=mask, offset=offset, layout=layout, **named)


class Record(dict):
    """A part of a report: a dict whose entries are attributes, too."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"attune: the report has no {name!r}; it has {', '.join(self)}") from None


def _numbers(x):
    """The texts that stand for infinities and NaN in a report, as numbers."""
    if isinstance(x, dict):
        return Record({name: _numbers(value) for name, value in x.items()})
    if isinstance(x, list):
        return [_numbers(value) for value in x]
    return float(x) if isinstance(x, str) and x in _NO_NUMBERS else x


def _texts(x):
    """The reverse: JSON has no infinities and no NaN."""
    if isinstance(x, dict):
        return {name: _texts(value) for name, value in x.items()}
    if isinstance(x, list):
        return [_texts(value) for value in x]
    return str(x) if isinstance(x, float) and not math.isfinite(x) else x


class Verdict:
    """The judgement of a kernel's results. It is true only for a PASS.

    decision: "PASS", "FAIL" or "UNDECIDABLE". reasons: sentences, the deciding one first.
    cause: .name and .words of the defect that explains a FAIL, or None.
    findings: what was looked for: .name, .kind ("parameter" or "defect"), .estimate, .z, .smallest_noticed, .looked_for.
    elements: by the names of the outputs and gradients: .count, .outside, .nan (how many are NaN and should not be) and
    .worst, which has .batch, .head, .query, .feature, .got, .exact, .bound and .error_over_bound.
    residuals: by the same names: .overall, the size of all errors in units of what rounding leaves; .found, whether a
    region has too much of it, and then its .where ("in head 3"), .times and .limit.
    stored: the type that the kernel was judged by. hints: what the caller may have meant.
    reports: the whole reports, "outputs" and "gradients". json: everything as text. str(): as the program prints it.
    """

    def __init__(self, operator, sent):
        self.operator, self._sent = operator, sent
        self.reports = Record({what: one.report for what, one in sent.items()})
        all_of = list(self.reports.values())
        decisions = [one.decision for one in all_of]
        self.decision = next((d for d in ("FAIL", "UNDECIDABLE") if d in decisions), "PASS")
        self.reasons = [text for one in all_of if one.decision == self.decision for text in one.reasons]
        self.cause = next((one.cause for one in all_of if "cause" in one), None)
        self.findings = [f for one in all_of for f in one.findings]
        self.elements = Record({name: e for one in all_of for name, e in one.elements.items()})
        self.residuals = Record({e.output: e for one in all_of for e in one.residuals})
        first = next(iter(sent.values()))
        self.stored = _FORMATS[first.stored]
        self.hints = []
        narrow = {one.get("also_fits") for one in sent.values()}
        if self.decision != "PASS" and len(narrow) == 1 and None not in narrow:
            name = _FORMATS[narrow.pop()]
            self.hints.append(f'every number is a {name}: if the kernel wrote those, say dtype="{name}"')

    def __bool__(self):
        return self.decision == "PASS"

    def __str__(self):
        several = len(self._sent) > 1
        text = "".join((f"{what}: " if several else "") + one.text for what, one in self._sent.items())
        first, _, rest = text.partition("\n")
        return "\n".join([first, *(f"  hint: {hint}" for hint in self.hints), rest]).rstrip("\n")

    def __repr__(self):
        return f"<attune verdict {self.decision}{': ' + self.reasons[0] if self.reasons else ''}>"

    @property
    def json(self):
        """The verdict as JSON. Infinities and NaN are the texts "inf", "-inf" and "nan"."""
        return json.dumps(
            {
                "operator": self.operator.name,
                "stored": self.stored,
                "decision": self.decision,
                "verdict": _texts(self.reports),
                "hints": self.hints,
            },
            allow_nan=False,
        )


def verdict(
    op,
    q=None,
    k=None,
    v=None,
    *,
    out=None,
    lse=None,
    lse_base="e",
    ground_weight=None,
    dout=None,
    dlse=None,
    dground_weight=None,
    gradients=None,
    dtype=None,
    weights=None,
    arithmetic=None,
    must_detect=None,
    mask=None,
    offset=None,
    layout="bhld",
    **named,
):
    """Is somebody's kernel right? Judges what it computed from these inputs. Returns a Verdict.

        print(attune.verdict("softmax", q, k, v, mask=masks.causal(), out=out, lse=lse))

    op: the operator that the kernel is meant to compute, or the name of a preset. q, k, v, mask, offset, layout and
    other names are those of a call. Tensors may be on any device.
    out, lse, ground_weight: what the kernel returned. lse and ground_weight are judged with out.
    lse_base: the base of the logarithm in lse, "e" or 2.
    dq, dk, dv, and so on for other inputs: its gradients, with the dout (dlse, dground_weight) that they belong to.
    A gradient by a parameter or table has the name of that argument, too: dgamma.
    gradients: the same as one dict, with the names that op.vjp() returns: {"q": ..., "normalizer.gamma": ...}.
    dtype: what the kernel stores: "bfloat16", torch.bfloat16, ...; by default the type of out, or of the gradients.
    lse, ground_weight, and gradients by parameters and tables are judged by their own types.
    weights: the type of its probabilities where they meet the values; by default dtype. arithmetic: of everything else.
    must_detect: defects that must not go unnoticed, else the decision is UNDECIDABLE: {"kernel.scale": 0.01}, names, or
    texts as "kernel.scale=0.01". With out and gradients, it is asked of out.
    The same arguments give the same verdict. The first use for an operator compiles a library, which is kept.
    """
    operator = operator_of(op)
    gradients = _gradients(operator, gradients, named)
    cotangents = {"out": dout, "lse": dlse, "ground_weight": dground_weight}
    outputs = {"out": out, "lse": lse, "ground_weight": ground_weight}
    _require_results(operator, outputs, gradients, cotangents)
    if lse_base not in ("e", 2):
        raise wrong("lse_base", f"the value {lse_base!r}", '"e" or 2')
    by_inputs = [(f"d{name}", x) for kind, _, name, x in gradients if kind == "field"]
    by_numbers = [(f"d{name}", x) for kind, _, name, x in gradients if kind != "field"]
    first = ("out", out) if out is not None else (by_inputs + by_numbers)[0]
    stored = _type_of(*first) if dtype is None else type_named("dtype", dtype)
    formats = [-1 if x is None else type_named(name, x) for name, x in (("weights", weights), ("arithmetic", arithmetic))]
    if formats[1] in (TYPE.bfloat16, TYPE.float16):
        raise wrong("arithmetic", f"the value {arithmetic!r}", "float32 or float64: in 16 bits nothing can be promised")
    names, sizes = _demanded(must_detect)
    call = call_of(operator, q, k, v, mask, offset, layout, named)
    sent = {}
    if out is not None:
        kinds = [(name, outputs[name]) for name in ("lse", "ground_weight") if outputs[name] is not None]
        types = (stored, *formats, _one_type(kinds), stored, int(lse_base == 2))
        sent["outputs"] = _judged("verdict", call, outputs, None, (), types, names, sizes)
    if gradients:
        if sent:
            names, sizes = [], []
        by = cotangents_on_host(operator, cotangents)
        types = (stored, *formats, stored, _one_type(by_numbers), 0)
        sent["gradients"] = _judged("verdict_gradients", call, {}, by, gradients, types, names, sizes)
    return Verdict(operator, sent)


def _gradients(operator, given, named):
    """The gradients among the arguments: (kind, number, name, array). Takes them out of `named`."""
    d = operator._description
    if given is not None and not hasattr(given, "items"):
        raise wrong("gradients", f"the type {type(given).__name__}", "a dict as op.vjp() returns it")
    pairs = dict(given or {})
    for name in [name for name in named if name[:1] == "d" and name not in d.names and name[1:] in d.names]:
        if name[1:] in pairs:
            raise wrong(name, "two arrays", "the argument, or its entry in gradients")
        pairs[name[1:]] = named.pop(name)
    found = []
    for name, x in pairs.items():
        if x is None:
            continue
        places = [at for at in d.names.get(name, ()) if at[0] != "constant"]
        places = [at for at in places if at[0] != "table" or at[1] < len(d.tables)]  # an array has no gradient
        if not places:
            raise wrong("gradients", f"the name {name!r}", f"some of {operator.arguments}")
        if len(places) > 1:
            paths = {"field": d.fields, "parameter": d.parameters, "table": d.tables}
            all_of = " or ".join(paths[kind][n] for kind, n in places)
            raise wrong(f"d{name}", f"a name of {len(places)} arguments", f"gradients with the name {all_of}")
        found.append((*places[0], name, x))
    return found


def _one_type(arrays):
    """The code of the type that all of these have; of float32 without any."""
    kinds = [(name, _type_of(name, x)) for name, x in arrays]
    for name, kind in kinds:
        if kind != kinds[0][1]:
            raise wrong(name, f"another type than {kinds[0][0]}", "one type for both")
    return kinds[0][1] if kinds else TYPE.float32


def _require_results(operator, outputs, gradients, cotangents):
    for name in ("lse", "ground_weight"):
        if outputs[name] is None:
            continue
        if outputs["out"] is None:
            raise wrong(name, "an array, and out has none", "both: they are judged together")
        if name not in operator.outputs:
            raise wrong(name, "an array", f"None: {operator.name} has no {name}")
    if outputs["out"] is None and not gradients:
        raise wrong("verdict", "no results", "out, what the kernel computed, or its gradients dq, dk, dv")
    given = [f"d{name}" for name, x in cotangents.items() if x is not None]
    if gradients and not given:
        raise wrong(f"d{gradients[0][2]}", "an array, and dout has none", "the dout that the gradients belong to")
    if given and not gradients:
        raise wrong(given[0], "an array", "None, or also gradients of it: dq, dk, dv")


def type_named(name, x):
    """The code of a type: of torch, of NumPy, or a name."""
    text = str(x).rsplit(".", 1)[-1] if is_torch_type(x) else x if isinstance(x, str) else _name_of_numpy(x)
    for type_name, words in _TYPES.items():
        if text in words:
            return _abi.TYPES.index(type_name)
    raise wrong(name, f"the value {x!r}", "float64, float32, float16 or bfloat16")


def is_torch_type(x):
    """Whether x is a type of torch."""
    return type(x).__module__ == "torch" and type(x).__name__ == "dtype"


def _name_of_numpy(x):
    try:
        return numpy.dtype(x).name
    except TypeError:
        return None


def _type_of(name, x):
    if not is_array(x):
        raise wrong(name, f"the type {type(x).__name__}", "an array")
    return type_named(f"the type of {name}", x.dtype)


def _demanded(must_detect):
    """Names and sizes."""
    if must_detect is None:
        return [], []
    if isinstance(must_detect, str):
        must_detect = [must_detect]
    if isinstance(must_detect, dict):
        pairs = list(must_detect.items())
    else:
        pairs = [(x.rsplit("=", 1) if "=" in x else (x, 1)) if isinstance(x, str) else (x, None) for x in must_detect]
    names, sizes = [], []
    for name, size in pairs:
        try:
            number = float(size)
        except (TypeError, ValueError):
            number = 0.0
        if not isinstance(name, str) or not number > 0:
            raise wrong("must_detect", f"the entry {name!r}: {size!r}", 'a name and a number > 0: {"kernel.scale": 0.01}')
        names.append(name)
        sizes.append(number)
    return names, sizes


def doubles(name, x):
    """The numbers of an array of any library and device, in float64."""
    if not is_array(x):
        raise wrong(name, f"the type {type(x).__name__}", "an array")
    if is_torch(x):
        return x.detach().cpu().double().contiguous().numpy()
    if not isinstance(x, numpy.ndarray):
        x = numpy.from_dlpack(x)
    type_named(f"the type of {name}", x.dtype)
    return numpy.ascontiguousarray(x, dtype=numpy.float64)


def _judged(kind, call, outputs, cotangents, gradients, types, names, sizes):
    """What the library sends: stored, report, text. types: the numbers of attune_verdict from `stored` on."""
    operator, keep, parts = call.operator, [], []

    def tensor(name, x, axes):
        if x is None:
            return _abi.ABSENT
        a = doubles(name, x)
        keep.append(a)
        at = view(name, a)
        shape, strides = axes(name, tuple(at.shape), tuple(at.strides))
        return at.tensor(shape, strides)

    def of_out(name, shape, strides):
        if len(shape) != 4:
            raise wrong(name, f"{len(shape)} axes", "4, as q has")
        return call.turned(shape, strides)

    def of_rows(name, shape, strides):
        if len(shape) == 3:
            return (*shape, 1), (*strides, 0)
        if len(shape) != 4:
            raise wrong(name, f"{len(shape)} axes", "3: (B, H, Lq)")
        return shape, strides

    for name, axes in (("out", of_out), ("lse", of_rows), ("ground_weight", of_rows)):
        parts.append(tensor(name, outputs.get(name), axes))
    for name, x, axes in zip(("dout", "dlse", "dground_weight"), cotangents or (None,) * 3, (of_out, of_rows, of_rows)):
        parts.append(tensor(name, x, axes))
    d = operator._description
    blocks = {
        kind: ctypes.create_string_buffer(max(1, len(all_of)) * _abi.TENSOR.size)  # zero: absent
        for kind, all_of in (("field", d.fields), ("parameter", d.parameters), ("table", d.tables + d.arrays))
    }
    for of, n, name, x in gradients:
        axes = {"field": lambda name, *x, n=n: call._axes(d, n, name, *x), "parameter": parameter_axes, "table": aligned}[of]
        _abi.TENSOR.pack_into(blocks[of], n * _abi.TENSOR.size, *tensor(f"d{name}", x, axes))
    texts = [name.encode() for name in names]
    words, numbers = (ctypes.c_char_p * (len(texts) + 1))(*texts), (ctypes.c_double * (len(sizes) + 1))(*sizes)
    received = []
    receive = _abi.RECEIVER(received.append)
    tensors = (n for part in parts for n in part)
    pointers = (ctypes.addressof(x) for x in (*blocks.values(), words, numbers))
    memory = _VERDICT.pack(*tensors, *pointers, len(names), *types, ctypes.cast(receive, ctypes.c_void_p).value)
    operator._companions.run(kind)(call.address, memory)
    return _numbers(json.loads(received[0]))
