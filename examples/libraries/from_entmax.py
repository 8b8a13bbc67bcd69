# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Attention with the weights of the package entmax, for tests/verdict/libraries_test.cpp.

    python3 examples/libraries/from_entmax.py FOLDER      needs torch, entmax and numpy
"""
import importlib.metadata
import math
import sys

import entmax
import torch

from cases import Results, cases, visible

torch.set_num_threads(1)
WEIGHTS = {
    "sparsemax": entmax.sparsemax,
    "entmax15": entmax.entmax15,
    "bisect_1.25": lambda s, dim: entmax.entmax_bisect(s, alpha=1.25, dim=dim),
}
results = Results()
for case, (q, k, v, dout) in cases().items():
    if visible(case) is not None:
        continue
    q, k, v = (torch.from_numpy(x) for x in (q, k, v))
    groups = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(groups, 1) for x in (k, v))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    for name, weights in WEIGHTS.items():
        results.add(f"{case}.{name}.fp32", (weights(scores, dim=-1) @ v).numpy())
results.write(sys.argv[1], "entmax", {"entmax": importlib.metadata.version("entmax"), "torch": torch.__version__})
