# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The C interface. scripts/abi_layout makes this file from include/attune/interop/c_abi.h.

A structure: its size, and its members with offset, type and name. Types are those of `struct`, z is a text, and a name is
another structure.
"""

from types import SimpleNamespace as _Names

VERSION = 1
TYPE = _Names(float32=0, float64=1, bfloat16=2, float16=3, int64=4, bytes=5, int32=6, float8_e4m3fn=7, float8_e5m2=8)
STATUS = _Names(done=0, refused=1, out_of_memory=2, failed=3)
MASK_KIND = _Names(none=0, causal=1, band=2, band_from_start=3, prefix=4, sink_window=5, padding=6, documents=7,
    ragged=8, block_sparse=9, visible=10, ragged_within=11, both=100, either=101)
PRODUCTS = _Names(of_machine=0, float=1)
RANKS_STEP = _Names(match=0, join=1, leave=2, forward=3, save=4, vjp=5, forget=6)
CUDA_STEP = _Names(run=0, measure=1, prepare=2)
STRUCTS = """
tensor 80: 0 Q data, 8 4q extents, 40 4q strides, 72 i type, 76 i given
parameter 96: 0 tensor tensor, 80 d number, 88 q how
constant 16: 0 z name, 8 d value
mask_node 184: 0 tensor x, 80 tensor y, 160 q a, 168 q b, 176 q kind
call 480: 0 Q fields, 8 Q parameters, 16 Q tables, 24 Q constants, 32 Q mask, 40 tensor offsets, 120 4tensor outputs,
    440 q constant_count, 448 q mask_count, 456 q offset, 464 i has_offset, 468 i type, 472 i threads, 476 i products
gradients 264: 0 3tensor cotangents, 240 Q fields, 248 Q parameters, 256 Q tables
text 16: 0 Q at, 8 q room
operator 40: 0 z name, 8 z description, 16 Q saved_size, 24 Q forward, 32 Q vjp
library 40: 0 i version, 4 i count, 8 Q operators, 16 z built_for, 24 Q own_pool, 32 Q use_pool
companion 40: 0 i version, 4 i reserved, 8 z built_for, 16 Q own_pool, 24 Q use_pool, 32 Q run
statistics 888: 0 tensor highest_logit, 80 tensor mean_logit, 160 tensor highest_weight, 240 tensor mass,
    320 tensor first_key, 400 tensor ground_weight, 480 tensor entropy, 560 tensor effective_keys, 640 tensor scored,
    720 tensor above, 800 tensor columns, 880 d threshold
decode 240: 0 tensor pages, 80 tensor k_scale, 160 tensor v_scale
sharding 32: 0 Q counts, 8 Q ends, 16 q positions, 24 q ranks
ranks 112: 0 i step, 4 i plan, 8 i communicator, 12 i reserved, 16 z library, 24 sharding queries, 56 sharding keys,
    88 Q ranks, 96 Q rows, 104 Q gradients
reference 640: 0 tensor out, 80 tensor lse, 160 tensor ground_weight, 240 tensor threshold, 320 tensor scores,
    400 tensor logits, 480 tensor weights, 560 tensor visible
cuda 64: 0 Q stream, 8 Q workspace, 16 q bytes, 24 Q saved, 32 q saved_count, 40 Q gradients, 48 Q needed, 56 q step
verdict 560: 0 3tensor outputs, 240 3tensor cotangents, 480 Q gradients, 488 Q parameters, 496 Q tables,
    504 Q must_detect, 512 Q sizes, 520 q must_detect_count, 528 i stored, 532 i weights, 536 i arithmetic, 540 i rows,
    544 i numbers, 548 i lse_of_base_two, 552 Q receive
probes 104: 0 q batch, 8 q heads, 16 q key_heads, 24 q value_heads, 32 q queries, 40 q keys, 48 q axes, 56 q width,
    64 q value_width, 72 q gate_width, 80 q position_width, 88 q seed, 96 Q receive
"""
