# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""attune behind the interfaces of others: PyTorch's function, and attention of Hugging Face models."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import _presets, masks
from .._arrays import wrong
from . import _call


def _op(name):
    return _presets.op(name)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """torch.nn.functional.scaled_dot_product_attention, by attune: the same arguments, shapes and alignment.

    is_causal aligns the first query with the first key, as PyTorch does. A boolean attn_mask shows keys where it is True;
    a mask of numbers is added to the scores and has a gradient. The random numbers of dropout come from a seed that
    torch's generator draws. A row that sees no key is 0.
    """
    if query.dim() < 2 or key.dim() != query.dim() or value.dim() != query.dim():
        raise wrong("query", f"{query.dim()} axes, key {key.dim()} and value {value.dim()}", "the same number, at least 2")
    if not 0 <= dropout_p <= 1:
        raise wrong("dropout_p", f"the value {dropout_p}", "a number in [0, 1]")
    lead = query.shape[:-3] if query.dim() > 3 else ()
    q, k, v = (_four_axes(x) for x in (query, key, value))
    if not enable_gqa and not q.shape[1] == k.shape[1] == v.shape[1]:
        raise wrong("key", f"{k.shape[1]} heads and value {v.shape[1]}", f"{q.shape[1]}, as query; or enable_gqa=True")
    mask, name = None, "softmax"
    named: dict[str, Any] = {}
    if is_causal:
        if attn_mask is not None:
            raise wrong("attn_mask", "a tensor", "None, with is_causal=True")
        mask = masks.causal(align="start")
    elif attn_mask is not None:
        table = attn_mask
        if lead and table.dim() > 3:  # batch axes in front: one
            table = table.expand(*lead, *table.shape[-3:]) if table.shape[:-3] != lead else table
            table = table.reshape(-1, *table.shape[-3:])
        if table.dtype == torch.bool:
            mask = masks.visible(table)
        elif not table.is_floating_point():
            raise wrong("attn_mask", f"the type {table.dtype}", "bool, or a real type: numbers are added to the scores")
        else:
            name, named["bias"] = "biased", table.to(query.dtype)
    if dropout_p > 0:
        if dropout_p == 1:
            return torch.zeros(*query.shape[:-1], value.shape[-1], dtype=query.dtype) + 0 * query.sum() * value.sum()
        name += "_dropout"
        named["rate"] = float(dropout_p)
        named["seed"] = int(torch.randint(2**53, ()))
    if scale is not None:
        named["scale"] = float(scale)
    out = _call.call(_op(name), q, k, v, mask=mask, **named)
    return out.reshape(*query.shape[:-1], value.shape[-1])


def _four_axes(x):
    if x.dim() == 4:
        return x
    return x.reshape(*(1,) * (4 - x.dim()), *x.shape) if x.dim() < 4 else x.reshape(-1, *x.shape[-3:])


def _transformers_attention(name):
    def attune_attention(
        module, query, key, value, attention_mask, scaling=None, dropout=0.0, is_causal=None, s_aux=None, **more
    ):
        if dropout:
            raise wrong("dropout", f"the value {dropout}", "0: set attention_dropout of the model's configuration to 0")
        mask, named = None, {}
        if attention_mask is not None:
            if attention_mask.dtype == torch.bool:
                mask = masks.visible(attention_mask[..., : key.shape[2]])
            else:
                mask = masks.visible(attention_mask[..., : key.shape[2]] > torch.finfo(attention_mask.dtype).min / 2)
        elif query.shape[2] > 1 and (is_causal if is_causal is not None else getattr(module, "is_causal", True)):
            mask = masks.causal()
        if scaling is not None:
            named["scale"] = float(scaling)
        if name == "sink" and s_aux is not None:
            named["logit"] = s_aux.float()
        out = _call.call(_op(name), query, key, value, mask=mask, **named)
        return out.transpose(1, 2).contiguous(), None

    return attune_attention


def register_with_transformers() -> None:
    """Registers attn_implementation="attune" (softmax) and "attune:sink" (models with attention sinks) for Hugging Face
    models on the CPU."""
    from transformers import AttentionInterface

    names = {"attune": "softmax", "attune:sink": "sink"}
    for implementation, preset in names.items():
        AttentionInterface.register(implementation, _transformers_attention(preset))
    try:
        from transformers import AttentionMaskInterface
        from transformers.masking_utils import sdpa_mask
    except ImportError:  # older releases pass masks without asking
        return
    for implementation in names:
        AttentionMaskInterface.register(implementation, sdpa_mask)
