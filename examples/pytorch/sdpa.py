# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Results of PyTorch's scaled_dot_product_attention, right and wrong, as .npy files for `attune verdict`.

    python3 examples/pytorch/sdpa.py FOLDER            needs torch and numpy; docs/reference/command_line.md shows the verdicts
"""
import math
import pathlib
import sys

import numpy
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
torch.manual_seed(1)
heads, queries, keys, width = 4, 128, 192, 64


def save(name, x):
    """bfloat16 goes into float32 files: every number stays what it is."""
    numpy.save(folder / f"{name}.npy", x.detach().float().numpy())


q = torch.randn(1, heads, queries, width).bfloat16()  # numbers that both types have
k, v = (torch.randn(1, heads, keys, width).bfloat16() for _ in "kv")
seen = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)  # causal, aligned at the end
for name, x in {"q": q, "k": k, "v": v}.items():
    save(name, x)

for dtype in (torch.float32, torch.bfloat16):
    a = [x.to(dtype) for x in (q, k, v)]
    end = "bf16" if dtype == torch.bfloat16 else "fp32"
    save(f"right_{end}", sdpa(*a, attn_mask=seen))
    save(f"scale_{end}", sdpa(*a, attn_mask=seen, scale=1 / math.sqrt(width + 1)))
    save(f"top_left_{end}", sdpa(*a, is_causal=True))  # is_causal aligns at the start where Lq != Lk

# Gradients of <dout, out>.
dout = torch.randn(1, heads, queries, width).bfloat16()
save("dout", dout)
for dtype in (torch.float32, torch.bfloat16):
    end = "bf16" if dtype == torch.bfloat16 else "fp32"
    for kind, how in {"right": {}, "scale": {"scale": 1 / math.sqrt(width + 1)}}.items():
        a = [x.to(dtype).detach().requires_grad_() for x in (q, k, v)]
        sdpa(*a, attn_mask=seen, **how).backward(dout.to(dtype))
        for name, x in zip("qkv", a):
            save(f"{kind}_{end}_d{name}", x.grad)
