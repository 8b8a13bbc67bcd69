# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Operators of attention for PyTorch, on the CPU and on CUDA devices, with gradients by every tensor.

    import attune.torch as at
    from attune import masks

    out = at.softmax(q, k, v, mask=masks.causal())
    out, lse = at.sink(q, k, v, logit=self.sink, returns=("out", "lse"))

Every preset is a function of its name; attune.presets() lists them, and attune.op(name) says what each takes. Tensors are
(B, H, L, D), or (B, L, H, D) with layout="blhd". A parameter is a number or a tensor: (H), (H, Lq), (B, H, Lq). Rows that
see no key are 0, not NaN.

scaled_dot_product_attention, flex_attention, flash_attn_func and flash_attn_varlen_func have the arguments of their
originals.

torch.compile(fullgraph=True), dynamic lengths, torch.export, torch.jit.trace and make_fx work. Double backward, vmap and
forward-mode derivatives are refused.
"""

from __future__ import annotations

from typing import Any, List, Optional

from torch import Tensor

from .. import _presets
from .._operator import Operator
from . import _call, _functions
from ._drop_in import register_with_transformers, scaled_dot_product_attention
from ._flash import flash_attn_func, flash_attn_varlen_func
from ._flex import flex_attention
from ._modules import Attention, MultiheadAttention
from ._replace import replace_attention


def attend(
    operator: Operator, q: Optional[Tensor] = None, k: Optional[Tensor] = None, v: Optional[Tensor] = None, **named: Any
) -> Any:
    """The outputs of any operator, a preset or one of attune.compile, with gradients. Arguments: attune.Operator."""
    return _call.call(operator, q, k, v, **named)


def __getattr__(name: str) -> _functions.Preset:
    found = globals()[name] = getattr(_functions, name)  # the next look-up does not come here
    return found


def __dir__() -> List[str]:
    return sorted({*__all__, *_presets.names()})


__all__ = [
    "Attention", "MultiheadAttention", "attend", "flash_attn_func", "flash_attn_varlen_func", "flex_attention",
    "register_with_transformers", "replace_attention", "scaled_dot_product_attention",
]
