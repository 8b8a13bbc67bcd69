# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Few queries against a long cache, by a companion library that is compiled when it is first used."""

import ctypes
import sys

import numpy

from . import _abi, masks
from ._arrays import View, index_of, is_array, is_torch, numbers_of_int64, view, wrong
from ._calls import Call

# The element types in C++.
_TYPES = {
    "float32": "float",
    "float64": "double",
    "bfloat16": "attune::bfloat16",
    "float16": "attune::float16",
    "float8_e4m3fn": "attune::float8_e4m3fn",
    "float8_e5m2": "attune::float8_e5m2",
}


def decode(operator, q, k, v, page_table, lengths, scales, float8, mask, offset, threads, returns, layout, named):
    """The outputs: one array, or a tuple in the order of `returns`."""
    d = operator._description
    if not d.decodes:
        raise wrong(
            "decode",
            f"the operator {operator.name}",
            "one without a candidate set (top-k, sparsemax, entmax), value gate and ordered sum: call the operator itself",
        )
    _refuse_gradients((q, k, v, *scales, *named.values()))
    k, v = _codes("k", k, float8), _codes("v", v, float8)
    table = None if page_table is None else _table(page_table)
    given = {name: x for name, x in (("q", q), ("k", k), ("v", v)) if x is not None}
    starts = None
    if lengths is not None:
        batch = len(table) if table is not None else _batch(given)
        lengths = _lengths(lengths, batch)
        ends = masks.padding(lengths)
        mask = ends if mask is None else ends & mask
        if offset is None:
            offset = starts = lengths.copy()
    call = Call(operator, given, named, mask, offset, threads, layout)
    if starts is not None:
        starts -= call.rows[2]  # the call refers to these numbers: the position of query 0 in each sequence
    keys = call.extent_of("v", "k")
    if table is not None:
        if "query" in d.sides and len(table) != call.rows[0]:
            raise wrong("page_table", f"the shape {table.shape}", f"{call.rows[0]} rows, one for each batch element of q")
        call.rows = (len(table), *call.rows[1:])
        keys *= table.shape[1]
    if lengths is not None:
        _check_lengths(lengths, keys, "page_table has room for" if table is not None else "there are")
    types = _check_types(d, call, k, v)
    heads = {name: x[1][1] for name, x in zip(d.fields, call.views) if x is not None}
    parts = [_abi.ABSENT if table is None else (_address(table), 1, 1, *table.shape, 0, 0, table.shape[1], 1, 6, 1)]
    for name, x, scale in (("k", k, scales[0]), ("v", v, scales[1])):
        factors = _scale(f"{name}_scale", scale, type(x) is View, heads.get(name, 0))
        call.keep.append(factors)
        parts.append(_abi.ABSENT if factors is None else (_address(factors), 1, len(factors), 1, 1, 0, 1, 0, 0, 0, 1))
    memory = ctypes.create_string_buffer(_abi.DECODE.size)
    _abi.DECODE.pack_into(memory, 0, *(n for part in parts for n in part))
    one = isinstance(returns, str)
    if not one and not isinstance(returns, (tuple, list)):
        raise wrong("returns", f"the type {type(returns).__name__}", "a name or a tuple of names")
    outputs = call.blank_outputs((returns,) if one else tuple(returns))
    run = operator._companions.run("decode", call.code, *(_TYPES[name] for name in types))
    run(call.address, ctypes.addressof(memory))
    return outputs[0] if one or len(outputs) == 1 else tuple(outputs)


def _address(x):
    return x.__array_interface__["data"][0]


def _refuse_gradients(arrays):
    for x in arrays:
        if is_torch(x) and x.requires_grad and sys.modules["torch"].is_grad_enabled():
            expected = "none, for decode has no gradient: use the operator, detach() or torch.no_grad()"
            raise wrong("decode", "a tensor that requires gradients", expected)


def _codes(name, x, float8):
    """The View of an array of 8-bit numbers; other arrays as they are."""
    if float8 not in (None, "e4m3fn", "e5m2"):
        raise wrong("float8", f"the value {float8!r}", '"e4m3fn" or "e5m2"')
    if not is_array(x):
        return x
    if not is_torch(x) and not isinstance(x, numpy.ndarray):
        x = numpy.from_dlpack(x)
    kind = str(x.dtype).removeprefix("torch.")
    if kind == "uint8" and float8 is None:
        raise wrong(name, "the type uint8", 'also float8="e4m3fn" or "e5m2", which says what the bytes mean')
    if kind == "uint8":
        kind = f"float8_{float8}"
    elif float8 is not None and kind != f"float8_{float8}":
        raise wrong(name, f"the type {x.dtype}", f"uint8 or float8_{float8}, by float8={float8!r}")
    if kind not in _abi.FLOAT8:
        return x
    at = view(name, x.detach().view(sys.modules["torch"].uint8) if is_torch(x) else x.view(numpy.uint8))
    at.code = _abi.CODES[kind]
    return at


def _check_types(d, call, k, v):
    """The types of the library: of the call, and of 8-bit keys and values if there are."""
    types, kind = [x.code for x in (k, v) if type(x) is View], _abi.TYPES[call.code]
    if len(set(types)) > 1:
        raise wrong("v", f"the type {_abi.TYPES[v.code]}", f"{_abi.TYPES[k.code]}, the type of k")
    if types and kind == "float64":
        raise wrong("q", "the type float64", "float32, bfloat16 or float16 next to keys and values of 8 bits")
    pairs = [name for name, side, x in zip(d.fields, d.sides, call.views) if side == "pair" and x is not None]
    if pairs and (types or kind in ("bfloat16", "float16")):
        raise wrong(pairs[0], f"the type {kind}", "float32 or float64 throughout: decode reads no numbers per pair from less")
    return (kind, *(_abi.TYPES[code] for code in types[:1]))


def _table(x):
    """Page numbers as a dense array of int32. Numbers that int32 does not have become others that are no page."""
    a = x.detach().cpu().numpy() if is_torch(x) else numpy.asarray(x)
    if a.dtype.kind not in "iu":
        raise wrong("page_table", f"the type {a.dtype}", "integers")
    if a.ndim != 2:
        raise wrong("page_table", f"{a.ndim} axes", "2: (batch, pages of a sequence)")
    if a.dtype != numpy.int32:
        a = numpy.clip(a.astype(numpy.int64), -1, 2**31 - 1).astype(numpy.int32)
    return numpy.ascontiguousarray(a)


def _batch(given):
    """The batch of a call without pages."""
    shape = getattr(given.get("v"), "shape", ())
    return shape[0] if shape else 1


def _lengths(x, batch):
    n = None if is_array(x) else index_of(x)
    if n is not None:
        x = numpy.full(batch, min(max(n, -1), 2**62))
    x = numbers_of_int64("lengths", x)
    if is_torch(x):
        x = x.numpy()
    if x.shape != (batch,):
        raise wrong("lengths", f"the shape {tuple(x.shape)}", f"({batch},), a number for each sequence")
    return x


def _check_lengths(lengths, keys, room):
    outside = numpy.flatnonzero((lengths < 0) | (lengths > keys))
    if outside.size:
        b = outside[0]
        raise wrong(f"lengths[{b}]", f"the value {lengths[b]}", f"a number in [0, {keys}]: {keys} keys {room}")


def _scale(name, x, wanted, heads):
    """The factors of 8-bit numbers: one, or one for each head."""
    if x is None:
        return None
    if not wanted:
        raise wrong(name, "a value", f"None: {name[0]} has no 8-bit numbers")
    a = x.detach().cpu().double().numpy() if is_torch(x) else numpy.asarray(x)
    if a.dtype.kind not in "fiu":
        raise wrong(name, f"the value {x!r}", f"a number, or {heads} numbers, one for each head")
    if a.size != 1 and a.shape != (heads,):
        raise wrong(name, f"the shape {a.shape}", f"a number, or ({heads},), one for each head")
    return numpy.ascontiguousarray(a.reshape(-1), dtype=numpy.float32)
