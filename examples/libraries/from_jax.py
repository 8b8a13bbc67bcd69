# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""What jax.nn.dot_product_attention computes on a CPU, for tests/verdict/libraries_test.cpp.

    python3 examples/libraries/from_jax.py FOLDER      needs jax and numpy
"""
import sys

import jax
import jax.numpy as jnp
import numpy

from cases import Results, cases, visible

results = Results()


def attend(q, k, v, **how):
    """jax.nn has (batch, position, head, feature)."""
    out = jax.nn.dot_product_attention(*(jnp.swapaxes(x, 1, 2) for x in (q, k, v)), implementation="xla", **how)
    return jnp.swapaxes(out, 1, 2)


def add(name, x):
    narrow = x.dtype == jnp.bfloat16
    results.add(name, numpy.asarray(x.astype(jnp.float32) if narrow else x), "BF16" if narrow else None)


for case, (q, k, v, dout) in cases().items():
    seen = visible(case)
    how = {} if seen is None else {"mask": jnp.asarray(seen)[None, None]}
    for form, dtype in {"fp32": jnp.float32, "bf16": jnp.bfloat16, "fp16": jnp.float16}.items():
        a = [jnp.asarray(x, dtype) for x in (q, k, v)]
        add(f"{case}.{form}", attend(*a, **how))
        if case == "usual":
            _, back = jax.vjp(lambda *x: attend(*x, **how), *a)
            for name, x in zip("qkv", back(jnp.asarray(dout, dtype))):
                add(f"{case}.{form}.d{name}", x)
    if case == "late":
        add(f"{case}.is_causal.fp32", attend(*(jnp.asarray(x) for x in (q, k, v)), is_causal=True))
results.write(sys.argv[1], "jax", {"jax": jax.__version__})
