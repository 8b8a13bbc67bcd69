# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Exact results of an operator, by companion libraries that are compiled when they are first used."""

from . import _abi
from ._arrays import empty_like, is_array, on_host, view, wrong
from ._calls import OUTPUTS, cotangents_of, output_shape
from ._layout import TYPE

_TABLES = ("scores", "logits", "weights", "visible")
_REFERENCE = _abi.Layout("reference").packer(" ".join(OUTPUTS + _TABLES))


class Reference:
    """Everything that a dense evaluation computes, in float64.

    out: (B, H, Lq, Dv), or (B, Lq, H, Dv) with layout="blhd". lse, ground_weight, threshold: (B, H, Lq); None for
    operators without.
    scores, logits, weights: (B, H, Lq, Lk). Scores are before length scale and gate, logits what the normalizer reads,
    weights what it returns. A key that the query does not see has the score and logit -inf and the weight 0.
    visible: (B, H, Lq, Lk), bool: which keys each query sees.
    """

    __slots__ = OUTPUTS + _TABLES

    def __repr__(self):
        found = [name for name in self.__slots__ if getattr(self, name) is not None]
        return f"<attune reference: {', '.join(found)}>"


def call_of(operator, q, k, v, mask, offset, layout, named):
    """A call of the oracle: its arrays are on the CPU and exact."""
    named = {name: on_host(x) if is_array(x) else x for name, x in named.items()}
    q, k, v = (None if x is None else on_host(x) for x in (q, k, v))
    return operator._call(q, k, v, mask, offset, 1, layout, named)


def _library(kind, digits):
    if digits is None:
        return f"reference{kind}"
    if isinstance(digits, bool) or digits != 50:
        raise wrong("digits", f"the value {digits!r}", "None for float64, or 50")
    return f"reference50{kind}"


def reference(operator, q, k, v, digits, mask, offset, layout, named):
    """The Reference of a call."""
    library, call = _library("", digits), call_of(operator, q, k, v, mask, offset, layout, named)
    keys = call.extent_of("k", "v")
    found, parts = Reference(), []
    for name in found.__slots__:
        if name in OUTPUTS and name not in operator.outputs:
            setattr(found, name, None)
            parts.append(_abi.ABSENT)
            continue
        shape = output_shape(name, call.rows, call.layout) if name in OUTPUTS else (*call.rows[:3], keys)
        x = empty_like(call.model, shape, TYPE.bytes if name == "visible" else TYPE.float64)
        at = view(name, x)
        parts.append(at.tensor(*call.with_four_axes(at)) if name in OUTPUTS else at.tensor())
        setattr(found, name, x)
    operator._companions.run(library)(call.address, _REFERENCE.pack(*(n for part in parts for n in part)))
    return found


def reference_vjp(operator, q, k, v, cotangents, wanted, digits, mask, offset, layout, named):
    """The exact gradients of a call, by name. cotangents: by the names of the outputs."""
    library = _library("_vjp", digits)
    call = call_of(operator, q, k, v, mask, offset, layout, named)
    memory, results, _ = call.gradient_block(
        cotangents_on_host(operator, cotangents), operator._gradients_of(call, wanted), TYPE.float64
    )
    operator._companions.run(library)(call.address, memory)
    return operator._by_path(results)


def cotangents_on_host(operator, given):
    """Gradients by the outputs as arrays of float32 or float64 on the CPU, in the order of the interface."""
    return [None if x is None else on_host(x) for x in cotangents_of(operator, given)]
