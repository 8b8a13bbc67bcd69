# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The functions of FlashAttention, with its arguments, on the CPU and with gradients."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
from torch import Tensor

from .. import _presets, masks
from .._arrays import wrong
from .._graph import Lowering
from . import _call, _scores


def flash_attn_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout_p: float = 0.0,
    softmax_scale: Optional[float] = None,
    causal: bool = False,
    window_size: Tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Optional[Tensor] = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """flash_attn.flash_attn_func, by attune: the same arguments, shapes and alignment (of flash-attn 2.1 and later).

        out = at.flash_attn_func(q, k, v, causal=True, window_size=(128, 0))

    q: (B, Lq, H, D). k: (B, Lk, Hk, D). v: (B, Lk, Hk, Dv). Returns (B, Lq, H, Dv).
    causal and window_size align the last query with the last key. Without softcap and alibi_slopes nothing is compiled.
    alibi_slopes: (H) or (B, H), and has a gradient. dropout_p: the random numbers come from a seed that torch's generator
    draws, and are not those of flash-attn. deterministic: the gradients are, in any case.
    return_attn_probs: (out, lse, None), without dropout. lse is (B, H, Lq), and -inf where a query sees no key.
    """
    _check(dropout_p, return_attn_probs)
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.dim() != 4:
            raise wrong(name, f"{x.dim()} axes", "4: (batch, position, head, feature)")
    slope = None if alibi_slopes is None else _slopes("(heads) or (batch, heads)", alibi_slopes, q.shape[2], q.shape[0])
    mask = _mask(causal, window_size)
    return _run(q, k, v, mask, None, dropout_p, softmax_scale, softcap, slope, None, return_attn_probs)


def flash_attn_varlen_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: Optional[int] = None,
    max_seqlen_k: Optional[int] = None,
    dropout_p: float = 0.0,
    softmax_scale: Optional[float] = None,
    causal: bool = False,
    window_size: Tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Optional[Tensor] = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: Any = None,
) -> Any:
    """flash_attn.flash_attn_varlen_func, by attune: sequences that follow one another in one tensor.

        out = at.flash_attn_varlen_func(q, k, v, cu_seqlens, cu_seqlens, longest, longest, causal=True)

    q: (total of Lq, H, D). k: (total of Lk, Hk, D). v: (total of Lk, Hk, Dv). Returns (total of Lq, H, Dv).
    cu_seqlens: (sequences + 1), integers: 0, the end of the first sequence, and so on. max_seqlen_q and max_seqlen_k are
    not needed. causal and window_size align the ends of each sequence. alibi_slopes: (H) or (sequences, H).
    block_table is refused: attune.op("softmax").decode reads pages. Other arguments are those of flash_attn_func; lse is
    (H, total of Lq).
    """
    _check(dropout_p, return_attn_probs)
    if block_table is not None:
        raise wrong("block_table", "a value", 'None: attune.op("softmax").decode(q, k, v, page_table, lengths) reads pages')
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.dim() != 3:
            raise wrong(name, f"{x.dim()} axes", "3: (position, head, feature)")
    slope = shift = None
    if alibi_slopes is not None:
        ends, key_ends = (x[1:].to(torch.int64) for x in (cu_seqlens_q, cu_seqlens_k))
        at = torch.searchsorted(ends, torch.arange(len(q)), right=True).clamp(max=len(ends) - 1)
        slopes = _slopes("(heads) or (sequences, heads)", alibi_slopes, q.shape[1], len(ends))
        slope = slopes if len(slopes) == 1 else slopes[at, :, 0, 0].T[None, :, :, None]
        shift = (key_ends - ends)[at].to(slopes.dtype)[None, None, :, None]  # from positions in a call to those in a sequence
    mask, offset = masks.from_cu_seqlens(cu_seqlens_q, cu_seqlens_k), None if shift is None else 0
    other = _mask(causal, window_size)
    mask = mask if other is None else mask & other
    q, k, v = q[None], k[None], v[None]
    found = _run(q, k, v, mask, offset, dropout_p, softmax_scale, softcap, slope, shift, return_attn_probs)
    return (found[0][0], found[1][0], None) if return_attn_probs else found[0]


def _check(dropout_p, return_attn_probs):
    if not 0 <= dropout_p < 1:
        raise wrong("dropout_p", f"the value {dropout_p}", "a number in [0, 1)")
    if return_attn_probs and dropout_p > 0:
        raise wrong("return_attn_probs", "the value True, with dropout", "False: no weights are kept")


def _mask(causal, window_size):
    left, right = window_size
    left, right = (None if x is None or x < 0 else x for x in (left, right))
    if causal:
        right = 0
    return None if left is None and right is None else masks.causal() if left is None and right == 0 else masks.window(left, right)


def _slopes(expected, slopes, heads, batch):
    """Slopes as (1 or batch, heads, 1, 1)."""
    if slopes.dim() not in (1, 2) or slopes.shape[-1] != heads or (slopes.dim() == 2 and len(slopes) != batch):
        raise wrong("alibi_slopes", f"the shape {tuple(slopes.shape)}", expected)
    return slopes.reshape(-1, heads, 1, 1)


# Presets by the names of what they have beside the scores; others are compiled.
_PRESETS = {(): "softmax", ("dropout",): "softmax_dropout", ("cap",): "softcap", ("slope",): "alibi"}


def _operator(names, kind, dropout):
    """The operator with these parameters, and what is in front of their names."""
    preset = _PRESETS.get((*names, *["dropout"] * dropout))
    if preset in _presets.names():
        return _presets.op(preset), ""
    lowering, text = Lowering(_scores.SCORE), _scores.SCORE
    lowering.parameters = dict.fromkeys(names)
    if "cap" in names:
        text = f"(cap * tanh({text} / cap))"
    if "slope" in names:
        lowering.parameters["shift"] = None
        text = f"({text} - slope * abs(distance + shift))"
    return _scores.operator(lowering, text, None, kind, dropout), "kernel."


def _run(q, k, v, mask, offset, dropout_p, scale, cap, slope, shift, lse):
    named = {} if not cap else {"cap": float(cap)}
    if slope is not None:
        named["slope"] = slope
    names = (*named, *["shift"] * (shift is not None))
    kind = _call._autocast(q).dtype if _call._autocasts() else q.dtype
    operator, front = _operator(names, kind, dropout_p > 0)
    if slope is not None and front:
        named["shift"] = 0.0 if shift is None else shift
    named = {f"{front}{name}": x for name, x in named.items()}
    named[f"{front}scale"] = q.shape[-1] ** -0.5 if scale is None else scale
    if dropout_p > 0:
        named["rate"], named["seed"] = dropout_p, torch.randint(2**53, (), device="cpu")
    returns = ("out", "lse") if lse else ("out",)
    found = _call.call(operator, q, k, v, mask=mask, offset=offset, returns=returns, layout="blhd", **named)
    return (*found, None) if lse else found


__all__ = ["flash_attn_func", "flash_attn_varlen_func"]
