# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Attention operators with numbers you can trust: fused, differentiable, on the CPU.

    import attune
    from attune import masks

    op = attune.op("principled")
    out, lse = op(q, k, v, gate_q=gq, gate_k=gk, mask=masks.causal(), returns=("out", "lse"))
    g = op.vjp(q, k, v, gate_q=gq, gate_k=gk, mask=masks.causal(), dout=dout)

attune.reference and attune.verdict are the oracle for other kernels; attune.testing is for their tests.
attune.compile makes operators of your own policies, which attune.policy helps to write.
attune.torch has the operators as differentiable functions and modules of PyTorch.
"""

from . import masks, policy, rotary, testing
from ._abi import Error
from ._compile import compile, compile_operator
from ._errors import CompileError, ExpressionError
from ._operator import Operator, register_attend
from ._oracle import Reference
from ._places import __version__, get_cmake_dir, get_include
from ._presets import names as presets
from ._presets import op
from ._verdict import Verdict, reference, verdict


@register_attend
def _attend(*arguments, **named):
    from .torch import attend  # not before a tensor needs it: it imports torch

    return attend(*arguments, **named)


__all__ = [
    "CompileError", "Error", "ExpressionError", "Operator", "Reference", "Verdict", "__version__", "compile",
    "compile_operator", "get_cmake_dir", "get_include", "masks", "op", "policy", "presets", "reference", "rotary",
    "testing", "verdict",
]
