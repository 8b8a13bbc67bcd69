# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Inputs for other libraries, and files for what they compute. tests/verdict/libraries_test.cpp judges the files.

    python3 examples/libraries/cases.py FOLDER         writes FOLDER/inputs.safetensors; needs numpy
    python3 examples/libraries/from_pytorch.py FOLDER  writes FOLDER/pytorch.safetensors; the other scripts likewise
"""
import json
import pathlib
import sys

import numpy

# name: batch, heads, heads of keys, queries, keys, width, size of q, whether query i sees keys up to i + keys - queries
SIZES = {
    "usual": (2, 4, 2, 48, 48, 16, 1, True),
    "late": (1, 2, 2, 24, 40, 16, 1, True),  # a causal mask that is aligned at the end
    "no_keys": (1, 2, 2, 40, 24, 16, 1, True),  # the first 16 queries see no key
    "equal": (1, 2, 2, 32, 60, 16, 0, False),  # equal logits
    "peaked": (1, 2, 2, 32, 60, 16, 6, False),
    "long": (1, 2, 1, 2, 1024, 16, 1, False),
}


def to_bfloat16(x):
    """float32 numbers with 8 significant bits, rounded to even. float16 holds them too."""
    bits = numpy.ascontiguousarray(x, numpy.float32).view(numpy.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(numpy.float32)
    rounded[numpy.abs(rounded) < 2.0**-12] = 0
    assert (rounded.astype(numpy.float16).astype(numpy.float32) == rounded).all()
    return rounded


def cases():
    """name: q, k, v as (batch, head, position, feature), and dout."""
    random = numpy.random.Generator(numpy.random.PCG64(43))
    made = {}
    for name, (b, h, hk, lq, lk, d, size, causal) in SIZES.items():
        draw = lambda heads, rows: to_bfloat16(random.standard_normal((b, heads, rows, d)).astype(numpy.float32))
        q, k, v, dout = draw(h, lq), draw(hk, lk), draw(hk, lk), draw(h, lq)
        made[name] = to_bfloat16(size * q), k, v, dout
    return made


def visible(name):
    """(queries, keys): which keys a query sees; None for all."""
    _, _, _, lq, lk, _, _, causal = SIZES[name]
    return numpy.tril(numpy.ones((lq, lk), bool), lk - lq) if causal else None


class Results:
    """Tensors of the types F32, F16 and BF16, by name."""

    def __init__(self):
        self.tensors = {}

    def add(self, name, array, kind=None):
        """kind: "BF16" for float32 numbers that bfloat16 holds; by default the array's own type."""
        array = numpy.ascontiguousarray(array)
        kind = kind or {"float32": "F32", "float16": "F16"}[array.dtype.name]
        if kind == "BF16":
            bits = array.astype(numpy.float32).view(numpy.uint32)
            assert (bits & 0xFFFF == 0).all(), name
            data = (bits >> 16).astype(numpy.uint16).tobytes()
        else:
            data = array.tobytes()
        self.tensors[name] = kind, list(array.shape), data

    def write(self, folder, name, metadata=None):
        header, at = {"__metadata__": metadata} if metadata else {}, 0
        for key, (kind, extents, data) in self.tensors.items():
            header[key] = {"dtype": kind, "shape": extents, "data_offsets": [at, at + len(data)]}
            at += len(data)
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        path = pathlib.Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        path = path / f"{name}.safetensors"
        path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(x[2] for x in self.tensors.values()))
        print(f"{path}: {len(self.tensors)} tensors, {path.stat().st_size} bytes, {metadata or ''}")


if __name__ == "__main__":
    results = Results()
    for name, tensors in cases().items():
        for key, x in zip(("q", "k", "v", "dout"), tensors):
            if key != "dout" or name == "usual":
                results.add(f"{name}.{key}", x, "BF16")
    results.write(sys.argv[1], "inputs")
