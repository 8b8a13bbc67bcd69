# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Few queries against a long cache, by a companion library that is compiled when it is first used."""

import ctypes
import struct
import sys

import numpy

from . import _abi, _plans, masks
from ._arrays import View, as_numpy, from_list, index_of, is_array, is_torch, numbers_of_int64, view, wrong
from ._calls import Call, names_of, returned
from ._layout import TYPE

_ADDRESS = struct.Struct("=Q").pack_into
_LAYOUT = _abi.Layout("decode")
_DECODE = _LAYOUT.packer("pages k_scale v_scale")


def decode(operator, q, k, v, page_table, lengths, scales, float8, mask, offset, threads, returns, layout, named):
    """The outputs: one array, or a tuple in the order of `returns`."""
    if not operator._description.decodes:
        raise wrong(
            "decode",
            f"the operator {operator.name}",
            "one without a candidate set (top-k, sparsemax, entmax), value gate and ordered sum: call the operator itself",
        )
    returns = names_of(returns)
    table = None if page_table is None else _table(page_table)
    if lengths is not None:
        lengths = _lengths(lengths, len(table) if table is not None else _batch(v))
    scales = [from_list(f"{name}_scale", x) for name, x in zip("kv", scales)]
    arrays = (("q", q), ("k", k), ("v", v), *named.items())
    known = _plans.signature(arrays)
    key = None
    if known is not None and _plans.allows(offset, returns) and _plans.has_one_place(operator, known[2]):
        kinds = table is not None and table.shape, lengths is not None, *map(_kind_of_scale, scales)
        try:
            key = ("decode", *known[0], *kinds, float8, None if mask is None else mask._identity(), offset, threads, layout, returns)
            plan = operator._plans.found.get(key)
        except (AttributeError, TypeError, ValueError):  # the checks say what is wrong
            key = plan = None
    if key is None or plan is None:
        _refuse_gradients((q, k, v, *scales, *named.values()))
        given = {name: x for name, x in (("q", q), ("k", _codes("k", k, float8)), ("v", _codes("v", v, float8))) if x is not None}
        plan = _Plan(operator, given, named, table, lengths, scales, mask, offset, threads, layout)
        if plan.call.widened:
            key = None
        if key is None:
            outputs = plan.call.blank_outputs(returns)
        else:
            plan.keeps = _plans.Plan(plan.call, known[2], returns, known[3])
            _plans.keep(operator, key, plan)
    if key is not None:
        outputs = plan.keeps.fill(known[1])
    plan.run(table, lengths, scales)
    return returned(outputs)


class _PagedCall(Call):
    """A call whose keys and values lie in pages, which no batch has."""

    __slots__ = ()

    def _check_rows(self, d, offset_count):
        pass


class _Plan:
    """A checked call. A later one with arrays of the same types and shapes changes addresses and lengths."""

    __slots__ = ("call", "keeps", "memory", "heads", "keys", "lengths", "starts", "words", "function")

    def __init__(self, operator, given, named, table, lengths, scales, mask, offset, threads, layout):
        d = operator._description
        self.starts = None
        if lengths is not None:
            ends = masks.padding(lengths)
            self.lengths = ends._x  # run() writes the lengths of its call
            mask = ends if mask is None else ends & mask
            if offset is None:
                offset = self.starts = lengths.copy()
        call = self.call = (Call if table is None else _PagedCall)(operator, given, named, mask, offset, threads, layout)
        self.keys = call.extent_of("v", "k")
        if table is not None:
            if "query" in d.sides and len(table) != call.rows[0]:
                raise wrong("page_table", f"the shape {table.shape}", f"{call.rows[0]} rows, one for each batch element of q")
            call.rows = (len(table), *call.rows[1:])
            self.keys *= table.shape[1]
        self.words = "k has" if table is None else "page_table has room for"
        types = _check_types(d, call, given.get("k"), given.get("v"))
        heads = {name: x[1][1] for name, x in zip(d.fields, call.views) if x is not None}
        self.heads = [(f"{name}_scale", type(given.get(name)) is View, heads.get(name, 0)) for name in "kv"]
        parts = [None if table is None else ((1, 1, *table.shape), (0, 0, table.shape[1], 1), TYPE.int32)]
        for (name, wanted, count), scale in zip(self.heads, scales):
            n = _scale(name, scale, wanted, count)
            parts.append(None if n is None else ((1, len(n), 1, 1), (0, 1, 0, 0), TYPE.float32))
        tensors = [_abi.ABSENT if part is None else View(0, *part, None).tensor() for part in parts]
        self.memory = ctypes.create_string_buffer(_DECODE.pack(*(n for tensor in tensors for n in tensor)), _DECODE.size)
        self.function = operator._companions, call.code, [_abi.CPP[name] for name in types]

    def run(self, table, lengths, scales):
        """Writes the outputs of the call, for these numbers of pages, lengths and factors."""
        call = self.call
        if lengths is not None:
            _check_lengths(lengths, self.keys, self.words)
            self.lengths[:] = lengths
            if self.starts is not None:  # the position of query 0 in each sequence
                numpy.subtract(lengths, call.rows[2], out=self.starts)
        if table is not None:
            _ADDRESS(self.memory, _LAYOUT.at["pages.data"], _address(table))
        kept = []
        for (name, *about), scale in zip(self.heads, scales):
            if scale is not None:
                kept.append(_scale(name, scale, *about))
                _ADDRESS(self.memory, _LAYOUT.at[f"{name}.data"], _address(kept[-1]))
        companions, code, types = self.function
        companions.run("decode", code, *types)(call.address, self.memory)


def _kind_of_scale(x):
    """What the memory of a plan depends on: how many factors there are."""
    if x is None:
        return None
    return getattr(x, "shape", ()) if is_array(x) else numpy.shape(x)


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
    at.code = _abi.TYPES.index(kind)
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
    expected = "integers, and as many for each sequence: fill with -1"
    a = x.detach().cpu().numpy() if is_torch(x) else as_numpy("page_table", x, expected)
    if a.dtype.kind not in "iu":
        raise wrong("page_table", f"the type {a.dtype}", expected)
    if a.ndim != 2:
        raise wrong("page_table", f"{a.ndim} axes", "2: (batch, pages of a sequence)")
    if a.dtype != numpy.int32:
        a = numpy.clip(a.astype(numpy.int64), -1, 2**31 - 1).astype(numpy.int32)
    return numpy.ascontiguousarray(a)


def _batch(v):
    """The batch of a call without pages."""
    shape = getattr(v, "shape", ())
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
        raise wrong(f"lengths[{b}]", f"the value {lengths[b]}", f"a number in [0, {keys}]: {room} {keys} keys")


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
