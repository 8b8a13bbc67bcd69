# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Random problems through PyTorch's scaled_dot_product_attention, its outputs and gradients judged by `attune verdict`: it must not
find fault with a correct kernel.

    python3 examples/pytorch/many.py [COUNT [PROGRAM]]     default 1000, scripts/attune; needs torch and numpy. Status 1 beyond 1 in 1,000

On CPUs PyTorch adds up dk and dv in the 16 bits of the inputs, from one 32 queries to the next; the verdict finds that in some problems.
So gradients in 16 bits are asked of no more than 32 queries.
"""
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
program = sys.argv[2] if len(sys.argv) > 2 else str(pathlib.Path(__file__).parents[2] / "scripts" / "attune")
formats = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def problem(seed, folder):
    """Writes a problem and what PyTorch makes of it into a folder; returns the arguments of attune and what they are in words."""
    torch.manual_seed(seed)
    draw = random.Random(seed)
    kind = draw.choice(list(formats))
    groups, group, queries = draw.randint(1, 3), draw.randint(1, 2), draw.randint(1, 70)
    keys, width, value_width = queries + draw.randint(0, 70), 8 * draw.randint(1, 8), 8 * draw.randint(1, 8)
    causal, size = draw.random() < 0.5, draw.choice([0.3, 1, 3])

    def tensor(heads, rows, columns, size=1.0):
        return (size * torch.randn(1, heads, rows, columns)).to(formats[kind]).requires_grad_()

    q, k = tensor(groups * group, queries, width, size), tensor(groups, keys, width)
    v, dout = tensor(groups, keys, value_width), tensor(groups * group, queries, value_width)
    seen = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries) if causal else None
    out = sdpa(q, k, v, attn_mask=seen, enable_gqa=group > 1)
    out.backward(dout.detach())
    results = {"q": q, "k": k, "v": v, "out": out}
    if kind == "f32" or queries <= 32:
        results |= {"dout": dout, "dq": q.grad, "dk": k.grad, "dv": v.grad}
    arguments = ["--dtype", kind] + (["--mask", "causal"] if causal else [])
    for name, x in results.items():
        numpy.save(folder / f"{name}.npy", x.detach().float().numpy())
        arguments += [f"--{name}", str(folder / f"{name}.npy")]
    return arguments, f"{kind}, {groups} x {group} heads, {queries} x {keys}, {width} and {value_width} wide, causal {causal}, size {size}"


decisions = {}
with tempfile.TemporaryDirectory() as name:
    for seed in range(count):
        arguments, words = problem(seed, pathlib.Path(name))
        run = subprocess.run([program, "verdict", "softmax", *arguments], capture_output=True, text=True)
        decision = {0: "PASS", 1: "FAIL", 3: "UNDECIDABLE"}.get(run.returncode, "error")
        what = f"{decision}, outputs" + (" and gradients" if "--dq" in arguments else "")
        decisions[what] = decisions.get(what, 0) + 1
        if run.returncode != 0:
            print(f"seed {seed} ({words}):\n{run.stdout}{run.stderr}", flush=True)
print(decisions)
sys.exit(1000 * sum(n for what, n in decisions.items() if not what.startswith("PASS")) > count)
