# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""What torch.nn.functional.scaled_dot_product_attention computes on a CPU, for tests/verdict/libraries_test.cpp.

    python3 examples/libraries/from_pytorch.py FOLDER      needs torch and numpy
"""
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as sdpa

from cases import Results, cases, visible

TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
BACKENDS = {"math": SDPBackend.MATH, "flash": SDPBackend.FLASH_ATTENTION}

torch.set_num_threads(1)
results = Results()


def add(name, x):
    kind = "BF16" if x.dtype == torch.bfloat16 else None
    results.add(name, x.detach().float().numpy() if kind else x.detach().numpy(), kind)


for case, (q, k, v, dout) in cases().items():
    seen = visible(case)
    mask = None if seen is None else torch.from_numpy(seen)
    for form, dtype in TYPES.items():
        a = [torch.from_numpy(x).to(dtype) for x in (q, k, v)]
        groups = {"enable_gqa": q.shape[1] != k.shape[1]}
        for name, backend in BACKENDS.items():
            with sdpa_kernel([backend]):
                add(f"{case}.{name}.{form}", sdpa(*a, attn_mask=mask, **groups))
    if case == "late":  # is_causal aligns at the start
        add(f"{case}.is_causal.fp32", sdpa(*(torch.from_numpy(x) for x in (q, k, v)), is_causal=True))
    if case == "usual":
        for form, dtype in TYPES.items():
            a = [torch.from_numpy(x).to(dtype).requires_grad_() for x in (q, k, v)]
            with sdpa_kernel([SDPBackend.MATH]):
                sdpa(*a, attn_mask=mask, **groups).backward(torch.from_numpy(dout).to(dtype))
            for name, x in zip("qkv", a):
                add(f"{case}.math.{form}.d{name}", x.grad)
results.write(sys.argv[1], "pytorch", {"torch": torch.__version__})
