# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""attune behind the interfaces of others: PyTorch's function, and attention of Hugging Face models."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from typing import Any

import torch
from torch import Tensor

from .. import masks
from .._arrays import wrong
from . import _functions as functions  # the preset as a function, also where a compiler meets it first
from ._call import _autocast

_CAUSAL = masks.causal(align="start")
_NAMES = ("attune", "attune:sink")  # attn_implementation of transformers
# Presets by what they have beside the scores of queries and keys, in the order of the names below.
_PRESETS = {
    (): "softmax",
    ("bias",): "biased",
    ("cap",): "softcap",
    ("logit",): "sink",
    ("dropout",): "softmax_dropout",
    ("bias", "dropout"): "biased_dropout",
}
_WORDS = {
    "bias": "numbers that are added to the scores (a mask of numbers, position_bias)",
    "cap": "a softcap",
    "logit": "sinks (s_aux)",
    "dropout": "dropout (to train without it, set the attention dropout of the model to 0)",
}
# What transformers hands to every attention, and what its own sdpa does not read either: masks have it already, or it is
# for other parts of a model.
_ELSEWHERE = frozenset(
    """
    cache_position deterministic encoder_attention_mask encoder_hidden_states kernel_options labels logits_to_keep
    max_length_k max_length_q num_items_in_batch output_hidden_states output_router_logits past_key_value past_key_values
    position_embeddings position_ids return_dict seq_idx use_cache
    """.split()
)
_INSTEAD = {
    "cu_seq_lens_q": "position_ids alone, which transformers makes the mask of packed sequences from",
    "cu_seq_lens_k": "position_ids alone, which transformers makes the mask of packed sequences from",
    "output_attentions": 'False: no weights are kept; or attn_implementation="eager"',
}


def preset_with(terms):
    """The name of the preset with these terms, in the order of their words; None: there is none."""
    return _PRESETS.get(tuple(terms))


def _attend(q, k, v, mask, dropout_p, **terms):
    """The output of the preset that has these terms. bias, cap, logit, scale: arguments of presets, or None.

    The seed of dropout is a tensor: a compiler does not have to know its number."""
    given = {name: x for name, x in terms.items() if x is not None}
    has = [name for name in _WORDS if name in given or (name == "dropout" and dropout_p > 0)]
    preset = preset_with(has)
    if preset is None:
        raise wrong("attention", " and ".join([_WORDS[name] for name in has]), "one of them: no preset has all")
    if dropout_p == 1:
        return _all_dropped(q, k, v, *[x for x in given.values() if isinstance(x, Tensor)])
    if dropout_p > 0:
        given["rate"], given["seed"] = dropout_p, torch.randint(2**53, (), device="cpu")
    kind = wide = q.dtype
    if "bias" in given:
        if given["bias"].dtype.itemsize > 1:  # 8 bits are exact in any type, and have no promotion
            wide = torch.promote_types(kind, given["bias"].dtype)
        given["bias"] = given["bias"].to(wide)
        if k.dtype == kind == v.dtype:  # else they are refused
            q, k, v = q.to(wide), k.to(wide), v.to(wide)
    out = getattr(functions, preset)(q, k, v, mask=mask, **given)
    return out.to(kind) if out.dtype == wide else out  # autocast returns its own type


def _all_dropped(*tensors):
    """The output of q, k, v and more if dropout leaves no key: zeros, and gradients of zeros. No number is read: NaN and
    overflow do not reach it."""
    q, _, v, *_ = tensors
    empty = [x.unsqueeze(0)[:0] for x in tensors]
    out = torch.zeros((*q.shape[:3], v.shape[3]), dtype=_autocast(empty[0]).dtype, device=q.device)
    return out + sum([x.sum() for x in empty])


def _shown(table):
    """The mask of a boolean table. It is a copy if a backward pass may read it, or a compiler sees the call."""
    if table.is_cpu and not torch.is_grad_enabled() and not torch.compiler.is_compiling():
        return masks._borrowed(table)
    return masks.visible(table)


def _mask_or_bias(name, table, keys):
    """The mask of a boolean table, which shows keys, or the bias of numbers, which are added to the scores; and None."""
    if table.dtype == torch.bool:
        return _shown(table), None
    if not table.is_floating_point():
        raise wrong(name, f"the type {table.dtype}", "bool, or a real type: numbers are added to the scores")
    return None, table.expand(*table.shape[:-1], keys)


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
    a mask of numbers is added to the scores and has a gradient. One of a wider type than query makes the call compute in
    that type, and round the output once. Axes in front of (L, D) are broadcast. The random numbers
    of dropout come from a seed that torch's generator draws. A row that sees no key is 0.
    """
    if scale is None and dropout_p == 0 and query.dim() == key.dim() == value.dim() == 4:
        q, k, v = query.shape, key.shape, value.shape
        if q[0] == k[0] == v[0] and (enable_gqa or q[1] == k[1] == v[1]):  # the usual call, in few steps
            if attn_mask is None:
                return functions.softmax(query, key, value, mask=_CAUSAL if is_causal else None)
            if not is_causal and attn_mask.dim() == 4 and attn_mask.dtype == torch.bool:
                return functions.softmax(query, key, value, mask=_shown(attn_mask))
    if query.dim() < 2 or key.dim() != query.dim() or value.dim() != query.dim():
        raise wrong("query", f"{query.dim()} axes, key {key.dim()} and value {value.dim()}", "the same number, at least 2")
    if not 0 <= dropout_p <= 1:
        raise wrong("dropout_p", f"the value {dropout_p}", "a number in [0, 1]")
    lead = _batch(query, key, value)
    q, k, v = (_four_axes(x, lead) for x in (query, key, value))
    heads = max(q.shape[1], k.shape[1], v.shape[1])
    if not enable_gqa:
        if any([x.shape[1] not in (1, heads) for x in (q, k, v)]):
            raise wrong("key", f"{k.shape[1]} heads and value {v.shape[1]}", f"{q.shape[1]}, as query; or enable_gqa=True")
        q = q.expand(-1, heads, -1, -1)
    mask = bias = None
    if is_causal:
        if attn_mask is not None:
            raise wrong("attn_mask", "a tensor", "None, with is_causal=True")
        mask = _CAUSAL
    elif attn_mask is not None:
        table = _four_axes(attn_mask, lead) if len(lead) > 1 and attn_mask.dim() > 3 else attn_mask
        mask, bias = _mask_or_bias("attn_mask", table, k.shape[2])
    front = (*lead, q.shape[1]) if query.dim() > 2 else ()
    shape = (*front, query.shape[-2], value.shape[-1])
    return _attend(q, k, v, mask, dropout_p, bias=bias, scale=scale).reshape(shape)


def _batch(*tensors):
    """The axes in front of (H, L, D), broadcast."""
    lead, *others = [tuple(x.shape[:-3]) for x in tensors]
    if all([x == lead for x in others]):
        return lead
    try:
        return tuple(torch.broadcast_shapes(lead, *others))
    except RuntimeError:
        raise wrong("key", f"the batch axes {others[0]} and value {others[1]}", f"{lead}, as query, or 1") from None


def _four_axes(x, lead):
    """A tensor as (B, H, L, D), with the batch axes in `lead` in one."""
    if x.dim() < 4:
        return x.reshape(*(1,) * (4 - x.dim()), *x.shape)
    if tuple(x.shape[:-3]) != lead:
        x = x.expand(*lead, *x.shape[-3:])
    return x if len(lead) == 1 else x.reshape(-1, *x.shape[-3:])


def _transformers_attention(
    module,
    query,
    key,
    value,
    attention_mask,
    scaling=None,
    dropout=0.0,
    is_causal=None,
    position_bias=None,
    softcap=None,
    s_aux=None,
    sliding_window=None,
    **more,
):
    """Attention as transformers calls it. It computes all that the model asks for, or raises attune.Error."""
    for name, x in more.items():
        if name not in _ELSEWHERE and x is not None and x is not False:
            got = f"the type {type(x).__name__}" if isinstance(x, Tensor) else f"the value {x!r}"
            raise wrong(name, got, _INSTEAD.get(name, 'None: attn_implementation="attune" does not know it'))
    keys, mask, bias = key.shape[2], None, None
    if attention_mask is not None:
        mask, bias = _mask_or_bias("attention_mask", attention_mask[..., :keys], keys)
    elif sliding_window is not None and keys > sliding_window:
        raise wrong("sliding_window", f"the value {sliding_window} and no mask", "a mask, which has the window")
    elif query.shape[2] > 1 and (is_causal if is_causal is not None else getattr(module, "is_causal", True)):
        mask = _CAUSAL  # a static cache has room behind its keys
    if scaling == query.shape[3] ** -0.5:
        scaling = None  # what the operator takes by itself, in a call with fewer arguments
    if position_bias is not None:
        bias = position_bias if bias is None else position_bias + bias
    out = _attend(query, key, value, mask, dropout, bias=bias, cap=softcap, logit=s_aux, scale=scaling)
    return out.transpose(1, 2).contiguous(), None


_OF_ATTENTION = re.compile(r"^class \w*Attention\w*\(nn\.Module\):", re.MULTILINE)


_hands: dict[type, bool] = {}


def hands_attention_to_others(model: type) -> bool:
    """Whether a class of models in transformers gets its attention function by name. Others ignore the name."""
    if model not in _hands:
        _hands[model] = _names_the_interface(model)
    return _hands[model]


def _names_the_interface(model: type) -> bool:
    """Whether the source of a class of models, or of its bases, names the interface of attention functions.

    transformers has no flag for it, and reads the source, too: a file with modules of attention names the interface. One
    such file of a class and of the models that it is made from is enough.
    """
    from transformers import PreTrainedModel

    names = []
    for kind in model.__mro__:
        if kind is PreTrainedModel:
            break
        try:
            text = inspect.getsource(sys.modules[kind.__module__])
        except (KeyError, OSError, TypeError):  # a class of a notebook
            continue
        if _OF_ATTENTION.search(text):
            names.append("ALL_ATTENTION_FUNCTIONS" in text)
    return any(names) or not names


def _require_interface() -> None:
    """Makes transformers refuse attune, when a model is made, for models that would ignore the name."""
    from transformers import PreTrainedModel

    checked = getattr(PreTrainedModel, "get_correct_attn_implementation", None)
    if checked is None or hasattr(checked, "_of_attune"):
        return

    @functools.wraps(checked)
    def check(self, requested_attention, *args, **more):
        if requested_attention in _NAMES and not hands_attention_to_others(type(self)):
            expected = '"eager": this model does not hand its attention to others. Parts may: {"text_config": "attune"}'
            raise wrong("attn_implementation", f"the value {requested_attention!r} for {type(self).__name__}", expected)
        return checked(self, requested_attention, *args, **more)

    check._of_attune = True  # type: ignore[attr-defined]
    PreTrainedModel.get_correct_attn_implementation = check  # type: ignore[method-assign]


def register_with_transformers() -> None:
    """Registers attn_implementation="attune" for Hugging Face models on the CPU.

    It computes softmax, and what the model asks for beside it: a softcap, attention sinks, position biases, masks of
    numbers, dropout. What no preset has raises attune.Error, and so does a model that does not hand its attention to others,
    when it is made. "attune:sink" is another name of the same.
    """
    from transformers import AttentionInterface

    _require_interface()
    for name in _NAMES:
        AttentionInterface.register(name, _transformers_attention)
    try:
        from transformers import AttentionMaskInterface
        from transformers.masking_utils import sdpa_mask
    except ImportError:  # older releases pass masks without asking
        return
    for name in _NAMES:
        AttentionMaskInterface.register(name, sdpa_mask)
