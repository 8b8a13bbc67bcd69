# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""flex_attention: the score_mod and the mask_mod of PyTorch's FlexAttention, compiled for the CPU, with gradients."""

from __future__ import annotations

import sys
from typing import Any, Callable, Literal, Optional, Tuple, Union, overload

import torch
from torch import Tensor

from .._arrays import wrong
from .._graph import Node
from ..policy import Policy
from . import _call, _scores, _visible
from ._trace import trace

_INDICES = ("b", "h", "q", "k")
_NAMES = "(score, b, h, q_idx, kv_idx)"
_Function = Optional[Callable[..., Any]]
_Normalizer = Union[str, Policy, None]


@overload
def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: _Function = None, block_mask: Any = None,
    scale: Optional[float] = None, enable_gqa: bool = False, return_lse: Literal[False] = False,
    kernel_options: Any = None, *, return_aux: None = None, normalizer: _Normalizer = None, **parameters: Any,
) -> Tensor: ...


@overload
def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: _Function = None, block_mask: Any = None,
    scale: Optional[float] = None, enable_gqa: bool = False, *, return_lse: Literal[True],
    kernel_options: Any = None, return_aux: None = None, normalizer: _Normalizer = None, **parameters: Any,
) -> Tuple[Tensor, Tensor]: ...


@overload
def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: _Function = None, block_mask: Any = None,
    scale: Optional[float] = None, enable_gqa: bool = False, return_lse: bool = False, kernel_options: Any = None,
    *, return_aux: Any = None, normalizer: _Normalizer = None, **parameters: Any,
) -> Any: ...


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: _Function = None,
    block_mask: Any = None,
    scale: Optional[float] = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: Any = None,
    normalizer: _Normalizer = None,
    **parameters: Any,
) -> Any:
    """torch.nn.attention.flex_attention.flex_attention, by attune: the same arguments, shapes, values and gradients.

        def soft_cap(score, b, h, q_idx, kv_idx):
            return 30 * torch.tanh((score + slopes[h] * (kv_idx - q_idx)) / 30)

        out = at.flex_attention(q, k, v, soft_cap, create_block_mask(causal, None, None, Lq, Lk, device="cpu"))

    query: (B, H, Lq, D). key: (B, Hk, Lk, D). value: (B, Hk, Lk, Dv). Returns (B, H, Lq, Dv), and with return_lse=True
    also the natural logarithm of the sum that the weights are divided by, (B, H, Lq).

    score_mod(score, b, h, q_idx, kv_idx) is a Python function of torch. It runs once in a call, on symbols; attune
    compiles its formula, and keeps the operator for every function with the same formula: other captured numbers and
    tensors compile nothing. Captured tensors have gradients. A score of -inf hides the key.
    block_mask: a BlockMask of create_block_mask, or a mask_mod(b, h, q_idx, kv_idx) itself.
    normalizer: in place of softmax: the name of a normalizer of attune ("sink"), a policy of attune.policy or C++ text.
    parameters: of the normalizer, by name. kernel_options are not read: they are for GPUs.

    Rows that see no key have the output 0 and the lse -inf, as in PyTorch. What cannot be traced raises attune.Error
    with the line. The first call of a formula compiles it, some 10 seconds; see docs/howto/from_flex_attention.md.
    """
    if torch.compiler.is_compiling():
        torch._dynamo.graph_break(msg="attune: flex_attention runs outside of compiled code: leave out fullgraph=True")
    run = _uncompiled() if "torch._dynamo" in sys.modules else _flex
    lse, largest = (return_lse, False) if return_aux is None else (return_aux.lse, return_aux.max_scores)
    if return_lse and return_aux is not None:
        raise wrong("return_lse", "the value True, and return_aux", "one of them")
    if largest:
        raise wrong("return_aux", "max_scores=True", "AuxRequest(lse=True): largest scores are not kept")
    found = run(query, key, value, score_mod, block_mask, scale, enable_gqa, lse, normalizer, parameters)
    if return_aux is not None:
        from torch.nn.attention.flex_attention import AuxOutput

        return found[0], AuxOutput(lse=found[1] if lse else None)
    return found if lse else found[0]


_disabled: list = []  # _flex outside of compiled code; making it imports the compiler


def _uncompiled():
    if not _disabled:
        _disabled.append(torch.compiler.disable(_flex))
    return _disabled[0]


def _flex(query, key, value, score_mod, block_mask, scale, enable_gqa, lse, normalizer, parameters):
    q, k, v = _checked(*map(_autocast, (query, key, value)), enable_gqa)
    sizes = {"b": q.shape[0], "h": q.shape[1], "q": q.shape[2], "k": k.shape[2]}
    kind = torch.float64 if q.dtype == torch.float64 else torch.float32
    node = Node("s", axes=frozenset("s")) if score_mod is None else _traced_score(score_mod, kind)
    mask = _mask(block_mask, sizes, q.device)
    lowering, text = _scores.words_of(node)
    narrow = q.dtype
    if lowering.leaves.keys() & {"given_bias", "given_scores"} and narrow not in (torch.float32, torch.float64):
        q, k, v = q.to(kind), k.to(kind), v.to(kind)  # numbers for each pair have the type of the queries
    operator = _scores.operator(lowering, text, normalizer, q.dtype)
    named = {**_scores.arguments(lowering, sizes, kind), **parameters}
    if "scale" in text:
        name = "kernel.scale" if "kernel.scale" in operator.parameters else "scale"
        named[name] = q.shape[3] ** -0.5 if scale is None else scale
    returns = ("out", "lse") if lse else ("out",)
    with torch.autocast("cpu", enabled=False):
        found = _call.call(operator, q, k, v, mask=mask, offset=0, returns=returns, **named)
    out, *rest = found if lse else (found,)
    return (out.to(narrow), *rest)


def _autocast(x):
    return _call._autocast(x) if _call._autocasts() else x


def _checked(q, k, v, enable_gqa):
    for name, x in (("query", q), ("key", k), ("value", v)):
        if not isinstance(x, Tensor) or x.dim() != 4:
            got = f"{x.dim()} axes" if isinstance(x, Tensor) else f"the type {type(x).__name__}"
            raise wrong(name, got, "a tensor (batch, head, position, feature)")
        if not x.is_cpu:
            raise wrong(name, f"a tensor on {x.device}", "a tensor on the CPU; PyTorch's flex_attention is for GPUs")
    if k.shape[1] != q.shape[1] and not enable_gqa:
        raise wrong("key", f"{k.shape[1]} heads", f"{q.shape[1]}, as query; or enable_gqa=True")
    if k.shape[0] != v.shape[0] or k.shape[0] not in (1, q.shape[0]):
        raise wrong("key", f"the batch extent {k.shape[0]}, and value {v.shape[0]}", f"{q.shape[0]}, as query, or 1")
    if k.shape[0] != q.shape[0]:
        k, v = (x.expand(q.shape[0], -1, -1, -1) for x in (k, v))
    return q, k, v


def _traced_score(function, kind):
    node = trace("score_mod", function, ("s", *_INDICES), kind)
    if node.kind != "float" and "s" not in node.axes and node.kind == "bool":
        raise wrong("score_mod", "a result of bool", f"a number; a mask_mod{_NAMES.replace('score, ', '')} belongs to block_mask")
    return node


def _mask(block_mask, sizes, device):
    """The mask of a BlockMask or a mask_mod; None: every key is visible."""
    if block_mask is None:
        return None
    function, blocks = block_mask, None
    if hasattr(block_mask, "mask_mod"):
        function, blocks = block_mask.mask_mod, block_mask
        if min(blocks.BLOCK_SIZE) < 1 << 30:
            expected = sizes["q"], sizes["k"]
            if tuple(blocks.seq_lengths) != expected:
                raise wrong("block_mask", f"the lengths {tuple(blocks.seq_lengths)}", f"{expected}, of query and key")
        else:
            blocks = None
        if blocks is not None and blocks.kv_num_blocks.device != device:
            raise wrong("block_mask", f"blocks on {blocks.kv_num_blocks.device}", 'create_block_mask(..., device="cpu")')
    node = trace("mask_mod", function, _INDICES, torch.float32)
    if node.kind != "bool":
        raise wrong("mask_mod", f"a result of {node.kind}", "a comparison, such as q_idx >= kv_idx")
    return _visible.mask_of(node, sizes, blocks)


__all__ = ["flex_attention"]
