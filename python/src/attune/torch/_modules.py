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
from ..masks import Mask
from . import _call


class Attention(nn.Module):
    """An operator with its parameters as learnable tensors, one number per head.

        layer = at.Attention("principled", heads=8)
        y = layer(q, k, v, gate_q=..., gate_k=...)

    op: a preset's name or an operator. parameters: names that are learned, with their start values; None: all parameters
    that have a number as default. What op.required lists must be among them, or in each call. A tensor of a real type
    keeps its type, other values get torch's default type. Names with a dot are written with an underscore in the state:
    length_scale_gamma.

    An operator with the constants rate and seed has dropout. Each call in training draws a seed, by torch's generator, and
    each call in eval() has the rate 0, unless you give them in the call.
    """

    def __init__(
        self, op: str | Operator, heads: int, parameters: Mapping[str, Any] | None = None, mask: Mask | None = None
    ):
        super().__init__()
        self.op, self.heads, self.mask = operator_of(op), heads, mask
        if parameters is None:
            parameters = {path: start for path, start in self.op.parameters.items() if start is not None}
        self._has_dropout = {"rate", "seed"} <= self.op.constants.keys()
        self._paths = {}
        _call.require_apart(self.op, parameters)
        for name, start in parameters.items():
            if not any(kind == "parameter" for kind, _ in self.op._description.names.get(name, ())):
                raise wrong("parameters", f"the name {name!r}", f"some of {', '.join(self.op.parameters)}")
            member = name.replace(".", "_")
            self._paths[member] = name
            if start is None:
                raise wrong("parameters", f"no start value of {name}", "a number or a tensor")
            if not (isinstance(start, Tensor) and start.is_floating_point()):
                try:
                    start = torch.as_tensor(start, dtype=torch.get_default_dtype())
                except (TypeError, ValueError):
                    raise wrong(name, f"the value {start!r}", "a number or an array of numbers") from None
            self.register_parameter(member, nn.Parameter(start.expand(heads).clone() if start.dim() == 0 else start.clone()))

    def forward(
        self,
        q: Tensor | None = None,
        k: Tensor | None = None,
        v: Tensor | None = None,
        *,
        mask: Mask | None = None,
        **named: Any,
    ) -> Any:
        """The outputs of the operator. mask: in place of the mask of the layer. Arguments: attune.Operator."""
        named = {**{name: getattr(self, member) for member, name in self._paths.items()}, **named}
        if self._has_dropout:
            if self.training:
                named.setdefault("seed", torch.randint(2**53, (), device="cpu"))
            else:
                named.setdefault("rate", 0.0)
        return _call.call(self.op, q, k, v, mask=self.mask if mask is None else mask, **named)

    def extra_repr(self):
        return f"{self.op.name}, heads={self.heads}, mask={self.mask!r}"


class MultiheadAttention(nn.Module):
    """Projections around an operator: the state of nn.MultiheadAttention loads (batch_first; key_heads of all heads).

    That state has no parameters of an operator: load it with strict=False, and they keep their start values.
    Inputs are (B, L, embed_dim). key_heads: heads of keys and values, a divisor of heads.
    """

    def __init__(
        self,
        embed_dim: int,
        heads: int,
        op: str | Operator = "softmax",
        key_heads: int | None = None,
        mask: Mask | None = None,
        bias: bool = True,
        parameters: Mapping[str, Any] | None = None,
    ):
        super().__init__()
        key_heads = heads if key_heads is None else key_heads
        if heads < 1 or key_heads < 1 or embed_dim % heads or heads % key_heads:
            raise wrong("heads", f"the values {heads} and key_heads {key_heads}", f"divisors of {embed_dim} and of heads")
        self.embed_dim, self.heads, self.key_heads, self.width = embed_dim, heads, key_heads, embed_dim // heads
        rows = embed_dim + 2 * key_heads * self.width
        self.in_proj_weight = nn.Parameter(torch.empty(rows, embed_dim))
        self.in_proj_bias = nn.Parameter(torch.zeros(rows)) if bias else None
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias)
        bound = math.sqrt(6 / (rows + embed_dim))
        nn.init.uniform_(self.in_proj_weight, -bound, bound)
        if bias:
            nn.init.zeros_(self.out_proj.bias)
        self.attention = Attention(op, heads, parameters, mask)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        *,
        mask: Mask | None = None,
        **named: Any,
    ) -> Any:
        """(B, L, embed_dim) -> (B, L, embed_dim). key and value are query by default. returns=("out", "lse"): a tuple."""
        key = query if key is None else key
        value = key if value is None else value
        for name, x in (("query", query), ("key", key), ("value", value)):
            if x.dim() != 3 or x.shape[2] != self.embed_dim:
                raise wrong(name, f"the shape {tuple(x.shape)}", f"(batch, length, {self.embed_dim})")
        sizes = [self.embed_dim, self.key_heads * self.width, self.key_heads * self.width]
        weights = self.in_proj_weight.split(sizes)
        biases = self.in_proj_bias.split(sizes) if self.in_proj_bias is not None else (None,) * 3
        heads = (self.heads, self.key_heads, self.key_heads)
        q, k, v = (
            nn.functional.linear(x, w, b).unflatten(-1, (h, self.width))
            for x, w, b, h in zip((query, key, value), weights, biases, heads)
        )
        returns = named.setdefault("returns", "out")
        if isinstance(returns, str):
            returns = (returns,)
        if "out" not in returns:
            raise wrong("returns", f"the value {returns!r}", '"out", alone or with others')
        found = self.attention(q, k, v, mask=mask, layout="blhd", **named)
        outputs = found if isinstance(found, tuple) else (found,)
        outputs = tuple(self.out_proj(x.flatten(-2)) if name == "out" else x for name, x in zip(returns, outputs))
        return outputs if isinstance(found, tuple) else outputs[0]
