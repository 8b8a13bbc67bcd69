# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Operators of attention for PyTorch, on the CPU, with gradients by every tensor.

    import attune.torch as at
    from attune import masks

    out = at.softmax(q, k, v, mask=masks.causal())
    out, lse = at.sink(q, k, v, logit=self.sink, returns=("out", "lse"))

Every preset is a function of its name; attune.presets() lists them, and attune.op(name) says what each takes. Tensors are
(B, H, L, D), or (B, L, H, D) with layout="blhd". A parameter is a number or a tensor: (H), (H, Lq), (B, H, Lq). Rows that
see no key are 0, not NaN.

torch.compile(fullgraph=True), dynamic lengths, torch.export, torch.jit.trace and make_fx work. Double backward, vmap and
forward-mode derivatives are refused.
"""

from .. import _presets
from .._operator import Operator
from . import _call
from ._drop_in import register_with_transformers, scaled_dot_product_attention
from ._modules import Attention, MultiheadAttention


def attend(operator, q=None, k=None, v=None, **named):
    """The outputs of any operator, a preset or one of attune.compile, with gradients. Arguments: attune.Operator."""
    return _call.call(operator, q, k, v, **named)


def _function(name):
    operator = _presets.op(name)

    def preset(q=None, k=None, v=None, *, mask=None, offset=None, threads=None, returns=("out",), layout="bhld", **named):
        if not named:
            found = _call.quick(operator, q, k, v, mask, offset, threads, layout, returns)
            if found is not None:
                return found[0] if len(found) == 1 else tuple(found)
        return _call.call(
            operator, q, k, v, mask=mask, offset=offset, threads=threads, returns=returns, layout=layout, **named
        )

    preset.__name__ = preset.__qualname__ = name
    preset.__doc__ = operator.__doc__
    return preset


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    if name not in _presets.library().operators:
        raise AttributeError(f"attune.torch has no {name!r}; presets: {', '.join(_presets.names())}")
    found = globals()[name] = _function(name)  # the next look-up does not come here
    return found


def __dir__():
    return sorted({*globals(), *_presets.names()})


__all__ = [
    "Attention",
    "MultiheadAttention",
    "attend",
    "register_with_transformers",
    "scaled_dot_product_attention",
]
