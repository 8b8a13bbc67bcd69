# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Typical uses of attune.torch, which mypy reads and nobody runs. A line with "type: ignore" is one that mypy must refuse."""

from typing import Tuple

import torch

import attune
import attune.torch as at
from attune import masks

q = torch.zeros(1, 2, 3, 4)
out: torch.Tensor = at.softmax(q, q, q, mask=masks.causal(), scale=0.5)
pair: Tuple[torch.Tensor, torch.Tensor] = at.sink(q, q, q, logit=torch.zeros(2), returns=("out", "lse"))
out, lse = at.sink(q, k=q, v=q, logit=0.5, returns=("out", "lse"), layout="blhd", threads=1, offset=2)
lse = at.softmax(q, q, q, returns="lse")
out = at.attend(attune.op("softmax"), q, q, q, mask=None)
out = at.scaled_dot_product_attention(q, q, q, is_causal=True, scale=0.5)
out = at.flex_attention(q, q, q, lambda score, b, h, i, j: score + i, lambda b, h, i, j: i >= j, scale=0.5)
pair = at.flex_attention(q, q, q, return_lse=True, normalizer="sink", logit=torch.zeros(2))
out = at.flash_attn_func(q, q, q, causal=True, window_size=(3, 0))
layer = at.Attention("principled", heads=4, mask=masks.causal(), parameters={"gamma": 0.0})
out = layer(q, q, q)
module: torch.nn.Module = at.MultiheadAttention(8, 2, op=attune.op("softmax"), key_heads=1)
module.to(torch.float64)
found: str = str(at.replace_attention(module, "sink", dropout=0.0))
at.MultiheadAttention(8, num_heads=2, dropout=0.1, batch_first=False, device="cpu", dtype=torch.float64)
module = at.MultiheadAttention.of(torch.nn.MultiheadAttention(8, 2), "sink")
at.register_with_transformers()

at.softmax(1, q, q)  # type: ignore
at.softmax(q, q, q, mask="causal")  # type: ignore
at.softmax(q, q, q, scale="1")  # type: ignore
number: int = at.softmax(q, q, q)  # type: ignore
three: Tuple[torch.Tensor, torch.Tensor, torch.Tensor] = at.softmax(q, q, q, returns=("out", "lse"))  # type: ignore
at.attend("softmax", q, q, q)  # type: ignore
at.scaled_dot_product_attention(q, q)  # type: ignore
at.flex_attention(q, q, q, 2.0)  # type: ignore
pair = at.flex_attention(q, q, q)  # type: ignore
at.flash_attn_func(q, q, q, window_size=3)  # type: ignore
at.Attention("softmax")  # type: ignore
at.MultiheadAttention("softmax", 8)  # type: ignore
