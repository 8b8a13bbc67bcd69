#!/usr/bin/env python3
"""Times of PyTorch, forward, and forward and backward together: SDPA (flash, cuDNN) and FlexAttention, in bf16.

    torch_times.py [--out FILE.json] [--runs N] [--no-flex]

Median and least of N calls, by CUDA events. What fails is reported and left out.
"""
import argparse
import json
import statistics

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

parser = argparse.ArgumentParser()
parser.add_argument("--out", default=None)
parser.add_argument("--runs", type=int, default=20)
parser.add_argument("--no-flex", action="store_true")
a = parser.parse_args()
torch.manual_seed(0)
B, H, L = 4, 16, 4096
rows = []


def both(call, inputs):
    """A call that runs the backward pass too; its cotangent is made once."""
    by = torch.randn_like(inputs[0])

    def run():
        for x in inputs:
            x.grad = None
        call().backward(by)

    return run


def measure(name, width, causal, call, passes=4):
    """passes: operations for each of B H L^2 D, 4 forward and 14 with the backward pass."""
    try:
        for _ in range(3):
            call()
        torch.cuda.synchronize()
        times = []
        for _ in range(a.runs):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            call()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))
        ms = statistics.median(times)
        flops = passes * B * H * L * L * width * (0.5 if causal else 1)
        rows.append(dict(name=name, B=B, H=H, L=L, D=width, causal=causal, ms=ms, least_ms=min(times), tflops=flops / ms / 1e9))
        print(f"{name:24} D {width:3} causal {int(causal)}  {ms:8.3f} ms (least {min(times):.3f})  {flops / ms / 1e9:6.1f} TFLOP/s", flush=True)
    except Exception as e:  # goes on with the others, and says so
        rows.append(dict(name=name, D=width, causal=causal, error=str(e)[:300]))
        print(f"{name:24} D {width:3} causal {int(causal)}  FAILED: {type(e).__name__}: {str(e)[:200]}", flush=True)


print(torch.cuda.get_device_name(), "torch", torch.__version__, flush=True)
for width in (64, 128):
    q, k, v = (torch.randn(B, H, L, width, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    for causal in (False, True):
        for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
            def sdpa():
                with sdpa_kernel(backend):
                    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
            measure("sdpa " + backend.name.lower(), width, causal, sdpa)
            q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
            measure("sdpa " + backend.name.lower() + " both", width, causal, both(sdpa, (q, k, v)), 14)
            q, k, v = (x.detach() for x in (q, k, v))
if not a.no_flex:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    flex = torch.compile(flex_attention, dynamic=False)
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, L, L, device="cuda")
    slopes = torch.exp2(-(torch.arange(H, device="cuda", dtype=torch.float32) + 1) / 2)
    alibi = lambda s, b, h, i, j: s - slopes[h] * (i - j)
    for width in (64, 128):
        q, k, v = (torch.randn(B, H, L, width, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        for causal in (False, True):
            measure("flex softmax", width, causal, lambda: flex(q, k, v, block_mask=mask if causal else None))
            x = tuple(y.detach().requires_grad_() for y in (q, k, v))
            measure("flex softmax both", width, causal, both(lambda: flex(*x, block_mask=mask if causal else None), x), 14)
        measure("flex alibi", width, True, lambda: flex(q, k, v, score_mod=alibi, block_mask=mask))
if a.out:
    with open(a.out, "w") as f:
        json.dump(dict(device=torch.cuda.get_device_name(), torch=torch.__version__, rows=rows), f, indent=1)
