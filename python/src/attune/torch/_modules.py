# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Modules with the parameters of an operator."""

from __future__ import annotations

import math
from typing import Any, Mapping

import torch
from torch import Tensor, nn

from .._arrays import wrong
from .._operator import Operator
from .._presets import operator_of
from ..masks import Mask, causal, visible
from . import _call, _library
from ._drop_in import preset_with

# Start values of the parameters that presets leave open, by preset and path. A parameter that is not here has no value
# that suits most models, and Attention asks for one.
_AFFINE = {"normalizer.alpha": 1.0, "normalizer.average": 1.0}  # softmax, and both learn from the first step
_STARTS: dict[str, dict[str, Any]] = {
    "sink": {"normalizer.logit": 0.0},  # a key of logit 0: softmax off by one
    "margin": {"length_scale.alpha": 0.0, "length_scale.gamma": 0.0},  # as in "principled"
    "two_sided": {"gate.beta": 0.0},  # as in "principled"
    "affine_scaled": _AFFINE,
    "affine_scaled_total": _AFFINE,
    "affine_gated": _AFFINE,
    "affine_gated_total": _AFFINE,
    "alibi": {"kernel.1.slope": lambda heads: [2 ** (-8 * (n + 1) / heads) for n in range(heads)]},  # Press 2022
    "softcap": {"kernel.map.cap": 50.0},  # Gemma 2
    "entmax": {"normalizer.alpha": 1.5},  # between softmax and sparsemax
}


def _starts(operator: Operator, heads: int) -> dict[str, Any]:
    """Start values of all parameters that are learned by default."""
    known, found = _STARTS.get(operator.name, {}), {}
    for path, start in operator.parameters.items():
        if path in operator.required:
            start = known.get(path)
            if start is None:
                last = path.rsplit(".", 1)[-1]
                text = f'a number for each that is learned: parameters={{"{last}": ...}}; or {{}}, and {last} in each call'
                raise wrong("parameters", f"no value of {path}, which has no usual start", text)
            start = start(heads) if callable(start) else start
        if start is not None:
            found[path] = start
    return found


class Attention(nn.Module):
    """An operator with its parameters as learnable tensors, one number per head.

        layer = at.Attention("principled", heads=8)
        y = layer(q, k, v, gate_q=..., gate_k=...)

    op: a preset's name or an operator. parameters: names that are learned, with their start values; None: all parameters
    that have a number as default, and what op.required lists, from a usual start. Such starts are: 0 for the sink's logit,
    for margin and two_sided; 1 for affine_scaled and affine_gated; 1.5 for entmax; 50 for softcap; the slopes of its paper
    for alibi. A required parameter without one is an error here. A tensor of a real type keeps its type, other values get
    dtype, or torch's default type. Names with a dot are written with an underscore in the state: length_scale_gamma.

    An operator with the constants rate and seed has dropout. Each call in training draws a seed, by torch's generator, and
    each call in eval() has the rate 0, unless you give them in the call.
    """

    def __init__(
        self,
        op: str | Operator,
        heads: int,
        parameters: Mapping[str, Any] | None = None,
        mask: Mask | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        self.op, self.heads, self.mask = operator_of(op), heads, mask
        if parameters is None:
            parameters = _starts(self.op, heads)
        self._has_dropout = {"rate", "seed"} <= self.op.constants.keys()
        self._paths = {}
        _call.require_apart(self.op, parameters)
        kind = torch.get_default_dtype() if dtype is None else dtype
        for name, start in parameters.items():
            if not any(kind == "parameter" for kind, _ in self.op._description.names.get(name, ())):
                raise wrong("parameters", f"the name {name!r}", f"some of {', '.join(self.op.parameters)}")
            member = name.replace(".", "_")
            self._paths[member] = name
            if start is None:
                raise wrong("parameters", f"no start value of {name}", "a number or a tensor")
            if not (isinstance(start, Tensor) and start.is_floating_point()):
                try:
                    start = torch.as_tensor(start, dtype=kind, device=device)
                except (TypeError, ValueError):
                    raise wrong(name, f"the value {start!r}", "a number or an array of numbers") from None
            start = (start.expand(heads) if start.dim() == 0 else start).detach()
            self.register_parameter(member, nn.Parameter(start.clone() if device is None else start.to(device, copy=True)))

    def forward(
        self,
        q: Tensor | None = None,
        k: Tensor | None = None,
        v: Tensor | None = None,
        *,
        mask: Mask | None = None,
        operator: Operator | None = None,
        **named: Any,
    ) -> Any:
        """The outputs of the operator. mask, operator: in place of those of the layer. Arguments: attune.Operator."""
        named = {**{name: getattr(self, member) for member, name in self._paths.items()}, **named}
        if self._has_dropout:
            if self.training:
                named.setdefault("seed", new_seed())
            else:
                named.setdefault("rate", 0.0)
        operator = self.op if operator is None else operator
        return _call.call(operator, q, k, v, mask=self.mask if mask is None else mask, **named)

    def extra_repr(self):
        return f"{self.op.name}, heads={self.heads}, mask={self.mask!r}"


def new_seed() -> Tensor:
    """A seed of dropout by torch's generator. A tensor: a compiler does not have to know its number."""
    return torch.randint(2**53, (), device="cpu")


class MultiheadAttention(nn.Module):
    """Projections around an operator: nn.MultiheadAttention, by attune.

        layer = at.MultiheadAttention(512, 8, op="sink")
        y = layer(x, mask=masks.causal())
        y, weights = layer(x, x, x, key_padding_mask=padding, need_weights=True)

    The arguments of nn.MultiheadAttention have their names and meanings, and its state loads both ways. That state has no
    parameters of an operator: load it with strict=False, and they keep their start values. What differs:
    - Inputs are (B, L, embed_dim) unless batch_first=False.
    - key and value are query by default.
    - A call returns the output alone. One with need_weights=True or False returns a pair as PyTorch does, (output, weights)
      or (output, None). need_weights in the constructor is what such calls have by default.
    - is_causal needs no attn_mask, and applies next to one. A row that sees no key is 0.
    heads or num_heads: of queries. key_heads: heads of keys and values, a divisor of heads. mask: of attune.masks.
    parameters: of at.Attention. dropout: needs "softmax" or "biased", or is the rate of an operator that has one.
    """

    in_proj_weight: nn.Parameter | None
    q_proj_weight: nn.Parameter | None
    k_proj_weight: nn.Parameter | None
    v_proj_weight: nn.Parameter | None
    in_proj_bias: nn.Parameter | None

    bias_k = bias_v = None
    add_zero_attn = False
    _qkv_same_embed_dim = False  # else nn.TransformerEncoderLayer computes softmax itself, without this module

    def __init__(
        self,
        embed_dim: int,
        heads: int | None = None,
        op: str | Operator = "softmax",
        key_heads: int | None = None,
        mask: Mask | None = None,
        bias: bool = True,
        parameters: Mapping[str, Any] | None = None,
        *,
        num_heads: int | None = None,
        dropout: float | None = None,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = True,
        need_weights: bool | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        if (heads is None) == (num_heads is None):
            raise wrong("heads", "no value" if heads is None else "a value, and so has num_heads", "one of the two")
        if isinstance(op, float):
            raise wrong("op", f"the value {op}", "an operator, or the name of a preset; dropout= is a name of its own")
        if add_bias_kv:
            raise wrong("add_bias_kv", "the value True", 'False: no key is learned; op="sink" learns the logit of one')
        if add_zero_attn:
            expected = 'False: op="off_by_one" is softmax with a key and a value of zeros'
            raise wrong("add_zero_attn", "the value True", expected)
        heads = num_heads if heads is None else heads
        assert heads is not None
        key_heads = heads if key_heads is None else key_heads
        if heads < 1 or key_heads < 1 or embed_dim % heads or heads % key_heads:
            raise wrong("heads", f"the values {heads} and key_heads {key_heads}", f"divisors of {embed_dim} and of heads")
        self.embed_dim, self.heads, self.key_heads, self.width = embed_dim, heads, key_heads, embed_dim // heads
        self.num_heads, self.head_dim, self.batch_first, self.need_weights = heads, self.width, batch_first, need_weights
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.attention = Attention(op, heads, parameters, mask, **made)
        self.dropout = self._checked_rate(dropout)
        self._operator(False, self.dropout > 0)
        keys = key_heads * self.width
        rows = embed_dim + 2 * keys
        apart = not self.kdim == self.vdim == embed_dim
        self.register_parameter("in_proj_weight", None if apart else nn.Parameter(torch.empty(rows, embed_dim, **made)))
        for name, height, width in (("q", embed_dim, embed_dim), ("k", keys, self.kdim), ("v", keys, self.vdim)):
            weight = nn.Parameter(torch.empty(height, width, **made)) if apart else None
            self.register_parameter(f"{name}_proj_weight", weight)
        self.register_parameter("in_proj_bias", nn.Parameter(torch.empty(rows, **made)) if bias else None)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias, **made)
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                bound = math.sqrt(6 / sum(weight.shape))
                nn.init.uniform_(weight, -bound, bound)
        if self.in_proj_bias is not None:
            nn.init.zeros_(self.in_proj_bias)
            nn.init.zeros_(self.out_proj.bias)

    def _checked_rate(self, dropout):
        if dropout is None:
            return self.attention.op.constants["rate"] if self.attention._has_dropout else 0.0
        if not 0 <= dropout < 1:
            raise wrong("dropout", f"the value {dropout}", "a number in [0, 1)")
        return float(dropout)

    def _operator(self, adds, drops):
        """The operator of a call that adds numbers to the scores, or drops weights."""
        op = self.attention.op
        has = {"bias": "bias" in op.fields, "dropout": self.attention._has_dropout}
        missing = [name for name, wanted in (("bias", adds), ("dropout", drops)) if wanted and not has[name]]
        if not missing:
            return op
        both = [name for name in has if name in missing or has[name]]
        found = preset_with(both) if op.name in ("softmax", "biased", "softmax_dropout", "biased_dropout") else None
        if found is None:
            if "bias" in missing:
                expected = f"booleans, or 0 and -inf: {op.name} adds no numbers to its scores; \"biased\" does"
                raise wrong("attn_mask", "other numbers than 0 and -inf", expected)
            raise wrong("dropout", f"the value {self.dropout}, and {op.name} has no dropout", '0; or op="softmax" or "biased"')
        return operator_of(found)

    def _project(self, query, key, value):
        sizes = [self.embed_dim, self.key_heads * self.width, self.key_heads * self.width]
        heads = (self.heads, self.key_heads, self.key_heads)
        if self.in_proj_weight is not None and query is key is value:
            parts = nn.functional.linear(query, self.in_proj_weight, self.in_proj_bias).split(sizes, -1)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
            if self.in_proj_weight is not None:
                weights = self.in_proj_weight.split(sizes)
            biases = self.in_proj_bias.split(sizes) if self.in_proj_bias is not None else (None,) * 3
            parts = [nn.functional.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases)]
        return [x.unflatten(-1, (h, self.width)) for x, h in zip(parts, heads)]

    def _read_masks(self, masks, batch, queries, keys, has_batch):
        """The table of visible keys and the numbers to add that PyTorch's masks stand for, or None."""
        shown = added = None
        for name, x in masks.items():
            if x is None:
                continue
            if name == "key_padding_mask":
                shapes = {(batch, keys): (batch, 1, 1, keys)} if has_batch else {(keys,): (1, 1, 1, keys)}
            else:
                rows = batch * self.heads
                shapes = {(queries, keys): (1, 1, queries, keys), (rows, queries, keys): (batch, self.heads, queries, keys)}
            shape = shapes.get(tuple(x.shape)) if isinstance(x, Tensor) else None
            if shape is None:
                got = f"the shape {tuple(x.shape)}" if isinstance(x, Tensor) else f"the type {type(x).__name__}"
                raise wrong(name, got, f"a tensor of shape {' or '.join(map(str, shapes))}")
            table, numbers = self._hidden_or_added(name, x.reshape(shape))
            if table is not None:
                shown = table if shown is None else shown & table
            if numbers is not None:
                added = numbers if added is None else added + numbers
        return shown, added

    def _hidden_or_added(self, name, x):
        """Of a mask of PyTorch: the table of the keys that it shows, or the numbers that it adds; and None."""
        if x.dtype == torch.bool:
            return ~x, None
        if not x.is_floating_point():
            raise wrong(name, f"the type {x.dtype}", "bool, which hides keys where it is True, or a real type, which is added")
        adds = x.requires_grad or self.attention.op.name in ("softmax", "softmax_dropout") or "bias" in self.attention.op.fields
        if not adds or not _library.records((x,)):
            hides = ((x == 0) | (x == -math.inf)).all()
            if _library.records((x,)):  # its numbers are not there
                torch._assert_async(hides, f"attune: {name} has other numbers than 0 and -inf")
                return x == 0, None
            if hides and not x.requires_grad:
                return x == 0, None
        return None, x

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        need_weights: bool | None = None,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
        *,
        mask: Mask | None = None,
        **named: Any,
    ) -> Any:
        """(B, L, embed_dim) -> (B, L, embed_dim); or (L, embed_dim) without a batch.

        key_padding_mask, (B, S): True hides the key. attn_mask, (L, S) or (B * heads, L, S): True hides the pair. Numbers
        are added to the scores: those of 0 and -inf hide keys in every operator, others need one with the input bias;
        "softmax" has it.
        need_weights: see the class. The weights are (B, L, S), or (B, heads, L, S) with average_attn_weights=False. They
        are computed once more, as outputs for values that are unit vectors: S / D times the work of a call, and dense.
        returns=("out", "lse"): a tuple. mask: in place of that of the layer. Others: of the operator.
        """
        key = query if key is None else key
        value = key if value is None else value
        has_batch, axes = query.dim() != 2, query.dim() if query.dim() == 2 else 3
        shape = "(length, {})" if axes == 2 else "(batch, length, {})" if self.batch_first else "(length, batch, {})"
        for name, x, width in (("query", query, self.embed_dim), ("key", key, self.kdim), ("value", value, self.vdim)):
            if x.is_nested:
                expected = "a tensor with padding: nn.TransformerEncoder(..., enable_nested_tensor=False) makes none"
                raise wrong(name, "a nested tensor", expected)
            if x.dim() != axes or x.shape[-1] != width:
                raise wrong(name, f"the shape {tuple(x.shape)}", shape.format(width))
        q, k, v = self._project(query, key, value)
        if not has_batch:
            q, k, v = (x.unsqueeze(0) for x in (q, k, v))
        elif not self.batch_first:
            q, k, v = (x.transpose(0, 1) for x in (q, k, v))
        tables = {"key_padding_mask": key_padding_mask, "attn_mask": attn_mask}
        shown, added = self._read_masks(tables, q.shape[0], q.shape[1], k.shape[1], has_batch)
        mask = self.attention.mask if mask is None else mask
        for more in (causal(align="start") if is_causal else None, None if shown is None else visible(shown)):
            mask = more if mask is None else mask if more is None else mask & more
        if added is not None:
            named["bias"] = added.to(q.dtype) if named.get("bias") is None else named["bias"] + added.to(q.dtype)
        drops = self.training and self.dropout > 0
        if drops or (self.training and self.attention._has_dropout):
            named.setdefault("rate", self.dropout)
            named.setdefault("seed", new_seed())
        operator = self._operator(added is not None, drops)

        def back(x):
            return x if has_batch and self.batch_first else x.transpose(0, 1) if has_batch else x.squeeze(0)

        need_weights = self.need_weights if need_weights is None and "returns" not in named else need_weights
        if need_weights is not None and "returns" in named:
            raise wrong("need_weights", f"the value {need_weights}, and returns a value", "one of them")
        returns = named.setdefault("returns", "out")
        if isinstance(returns, str):
            returns = (returns,)
        if "out" not in returns:
            raise wrong("returns", f"the value {returns!r}", '"out", alone or with others')
        how = {"mask": mask, "layout": "blhd", "operator": operator}
        found = self.attention(q, k, v, **how, **named)
        outputs = found if isinstance(found, tuple) else (found,)
        outputs = tuple(back(self.out_proj(x.flatten(-2))) if name == "out" else x for name, x in zip(returns, outputs))
        if need_weights is None:
            return outputs if isinstance(found, tuple) else outputs[0]
        if not need_weights:
            return outputs[0], None
        unit = torch.eye(k.shape[1], dtype=v.dtype, device=v.device)[None, :, None].expand(k.shape[0], -1, -1, -1)
        if named.get("v0") is not None:
            named["v0"] = unit.new_zeros(k.shape[1])
        weights = self.attention(q, k, unit, **how, **named).transpose(1, 2)
        weights = weights.mean(1) if average_attn_weights else weights
        return outputs[0], weights if has_batch else weights.squeeze(0)

    @classmethod
    def of(cls, theirs: nn.MultiheadAttention, op: str | Operator = "softmax", **more: Any) -> MultiheadAttention:
        """The module that computes `op` in place of an nn.MultiheadAttention, with the same tensors as parameters.

        Its calls return pairs as those of nn.MultiheadAttention do. more: parameters, mask and dropout of the constructor;
        dropout is that of the module by default.
        """
        w = theirs.out_proj.weight
        dropout = more.pop("dropout", None)
        dropout = theirs.dropout if dropout is None else dropout
        options: dict[str, Any] = {"parameters": None, "mask": None, **more}
        mine = cls(
            theirs.embed_dim, theirs.num_heads, op, bias=theirs.in_proj_bias is not None, dropout=dropout,
            add_bias_kv=theirs.bias_k is not None, add_zero_attn=theirs.add_zero_attn, kdim=theirs.kdim, vdim=theirs.vdim,
            batch_first=theirs.batch_first, need_weights=True, device="meta", **options,
        )  # fmt: skip
        mine.attention = Attention(op, mine.heads, **options, device=w.device, dtype=w.dtype)
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias"):
            mine.register_parameter(name, getattr(theirs, name))
        mine.out_proj = theirs.out_proj
        return mine.train(theirs.training)

    def extra_repr(self):
        more = "" if self.batch_first else ", batch_first=False"
        return f"{self.embed_dim}, heads={self.heads}, key_heads={self.key_heads}, dropout={self.dropout}{more}"
