# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Attention operators with numbers you can trust: fused, differentiable, on the CPU.

    import attune
    from attune import masks

    op = attune.op("principled")  # attune.principled is the same; attune.presets() lists all
    out, lse = op(q, k, v, gate_q=gq, gate_k=gk, mask=masks.causal(), returns=("out", "lse"))
    g = op.vjp(q, k, v, gate_q=gq, gate_k=gk, mask=masks.causal(), dout=dout)

attune.reference and attune.verdict are the oracle for other kernels; attune.testing is for their tests.
attune.compile makes operators of your own policies, which attune.policy helps to write.
attune.torch has the operators as differentiable functions and modules of PyTorch.
"""

from typing import TYPE_CHECKING

from . import _presets, masks, policy, rotary, testing
from ._abi import Error
from ._compile import compile, compile_operator
from ._errors import CompileError, ExpressionError
from ._operator import Operator, register_attend
from ._oracle import Reference
from ._places import __version__, get_cmake_dir, get_include
from ._verdict import Verdict, reference, verdict

op, presets = _presets.op, _presets.names


@register_attend
def _attend(*arguments, **named):
    from .torch import attend  # not before a tensor needs it: it imports torch

    return attend(*arguments, **named)


if not TYPE_CHECKING:  # to type checkers a preset is attune.op(name), so that they see misspelt names of the package

    def __getattr__(name):
        if name.startswith("_"):
            raise AttributeError(name)
        if not _presets.has(name):
            known = f"import attune.{name} first" if name in ("mpi", "torch") else f"expected {_presets.no_preset(name)}"
            raise AttributeError(f"attune has no {name!r}; {known}")
        return op(name)


def __dir__() -> "list[str]":
    return sorted({*globals(), *presets()})


__all__ = [
    "CompileError", "Error", "ExpressionError", "Operator", "Reference", "Verdict", "__version__", "compile",
    "compile_operator", "get_cmake_dir", "get_include", "masks", "op", "policy", "presets", "reference", "rotary",
    "testing", "verdict",
]
