# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Masks: which keys a query sees. Combine them by & and |.

    masks.causal() & masks.documents(ids)

A mask is no table, unless you give one: the rows of a call find their intervals of keys one by one. The keys of a
query's row that it does not see are not read: NaN in them never reaches a result. A mask copies its arrays, so
you may change them later. Tensors on a CUDA device stay there; calls there do not check their numbers.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy

from . import _abi
from ._arrays import bytes_of, copied, index_of, is_torch, numbers_of_int64, on_host, view, wrong
from ._layout import MASK_KIND as KIND

# Masks of positions.
_FROM_END, _FROM_START = (KIND.causal, KIND.band, KIND.prefix, KIND.sink_window), (KIND.band_from_start,)


class _Nodes(list):
    """The nodes of a mask for a call. needs_offset: the call must say at which position query 0 is. place: the device of
    torch whose memory has the arrays; None: the host."""

    needs_offset = False

    def __init__(self, place=None):
        super().__init__()
        self.place = place


class Mask:
    """A mask. Combine masks by & (both show the key) and | (at least one does)."""

    __slots__ = ("_kind", "_a", "_b", "_x", "_y", "_text", "_parts", "_packed", "_same", "_elsewhere")

    def __init__(self, kind, a=0, b=0, x=None, y=None, text="", parts=None):
        self._kind, self._a, self._b, self._x, self._y = kind, a, b, x, y
        self._text, self._parts, self._packed, self._same = text, parts, None, None
        self._elsewhere = None  # by devices of torch: copies of the arrays, and what a call there has

    def _identity(self):
        """Equal for masks that show the same keys, as far as numbers tell: their nodes. With arrays: equal to nothing else,
        also after the mask is gone."""
        if self._same is None:
            self._same = object() if self._has_arrays() else self._pack()[0]
        return self._same

    def _table(self):
        """Of a mask that is one table: what a call depends on but its numbers, and its address; else None."""
        if self._kind != KIND.visible:
            return None
        x, _ = self._on(None)
        if isinstance(x, numpy.ndarray):
            return ("table", x.shape, x.strides, x.dtype), x.__array_interface__["data"][0]
        return ("table", x.shape, x.stride(), x.dtype), x.data_ptr()

    def _has_arrays(self):
        if self._parts is not None:
            return any(part._has_arrays() for part in self._parts)
        return self._x is not None

    def __reduce__(self):
        return Mask, (self._kind, self._a, self._b, self._x, self._y, self._text, self._parts)

    def __and__(self, other: Mask) -> Mask:
        return _combined(self, other, KIND.both, "&")

    def __or__(self, other: Mask) -> Mask:
        return _combined(self, other, KIND.either, "|")

    def __invert__(self) -> Mask:
        raise TypeError("attune: a mask has no complement: write the mask of the other keys; for a table, masks.visible(~table)")

    def __eq__(self, other: object) -> bool:
        """Whether both show the same keys for the same numbers. A mask with arrays is equal to itself alone."""
        return self is other or (isinstance(other, Mask) and self._identity() == other._identity())

    def __hash__(self) -> int:
        return hash(self._identity())

    def __bool__(self) -> bool:
        raise TypeError("attune: a mask is neither true nor false: combine masks by & and |, not by `and`, `or`, `not`")

    def __repr__(self) -> str:
        if self._parts is None:
            return f"masks.{_shown(self._text)}"
        first, second = self._parts
        return f"({first!r} {self._text} {second!r})"

    def _nodes(self, to, beside=()):
        """Appends the nodes of the mask; returns the index of its own. beside: masks that & combines it with."""
        if self._parts is None:
            to.append((*self._arrays(to.place), self._a, self._b, self._kind))
            if self._kind in _FROM_END or self._kind in _FROM_START:
                self._place(to, beside)
        else:
            if self._kind == KIND.both:
                beside = (*beside, *self._conjuncts())
            first, second = (part._nodes(to, beside) for part in self._parts)
            to.append((*_abi.ABSENT, *_abi.ABSENT, first, second, self._kind))
        return len(to) - 1

    def _place(self, to, beside):
        """Says where the positions of a mask of positions count: in each sequence of a pack, or in the whole call."""
        packs = list({id(m): m for m in beside if m._kind == KIND.ragged}.values())
        if len(packs) > 1:
            raise wrong("mask", f"{self!r} & two from_cu_seqlens", "one: positions count within its sequences")
        if packs:
            to.append((*packs[0]._arrays(to.place), len(to) - 1, 0, KIND.ragged_within))
        elif self._kind in _FROM_END and not all(m._ends_with_the_keys() for m in beside if m._kind == KIND.documents):
            to.needs_offset = True

    def _conjuncts(self):
        """The masks that & combines."""
        if self._kind != KIND.both:
            return (self,)
        return tuple(m for part in self._parts for m in part._conjuncts())

    def _ends_with_the_keys(self):
        """Whether the last ids of queries and keys are the same: query i is then at position i + Lk - Lq. As many queries as
        keys have the same positions in any case."""
        queries, keys = self._x.shape[-1], self._y.shape[-1]
        if queries == keys:
            return True
        (x, y), n = (numpy.asarray(on_host(array)) for array in (self._x, self._y)), min(queries, keys)
        return bool((x[..., queries - n :] == y[..., keys - n :]).all())

    def _on(self, place):
        """The two arrays on a device of torch, copied once; None: on the host."""
        if self._x is None or (place is None and not getattr(self._x, "is_cuda", False)):
            return self._x, self._y
        if self._elsewhere is None:
            self._elsewhere = {}
        if place not in self._elsewhere:
            as_tensor, device = sys.modules["torch"].as_tensor, place or "cpu"
            self._elsewhere[place] = tuple([None if x is None else as_tensor(x, device=device) for x in (self._x, self._y)])
        return self._elsewhere[place]

    def _arrays(self, place=None):
        """The arrays of the mask as two tensors of the interface."""
        x, y = (_abi.ABSENT if array is None else _tensor(self._kind, array) for array in self._on(place))
        return (*x, *y)

    def _pack(self, offset=None):
        """The nodes as memory for a call, and their number. Made once: a mask does not change."""
        if self._packed is None:
            nodes = _Nodes()
            self._nodes(nodes)
            self._packed = b"".join(_abi.MASK_NODE.pack(*node) for node in nodes), len(nodes), nodes.needs_offset
        memory, count, needs_offset = self._packed
        self._require(needs_offset, offset)
        return memory, count

    def _require(self, needs_offset, offset):
        """Fails if a call must say at which position query 0 is, and does not."""
        if needs_offset and offset is None:
            raise wrong(
                "offset",
                f"no value, and in {self!r} the ids of queries are not the last ones of the keys",
                "the position of query 0 among the keys; or from_cu_seqlens(cu_seqlens, cu_seqlens_k), which counts "
                "positions within each sequence",
            )


def _combined(a, b, kind, sign):
    if not isinstance(b, Mask):
        return NotImplemented
    return Mask(kind, text=sign, parts=(a, b))


def _shown(text):
    """The text of a mask. Numbers become text here: a compiler would have to know them."""
    if isinstance(text, str):
        return text
    name, *numbers = text
    return f"{name}({', '.join(map(str, numbers))})"


def _checked_axes(name, x, allowed, expected):
    if x.ndim not in allowed:
        raise wrong(name, f"{x.ndim} axes", expected)
    return x


def _number(name, x, least):
    n = index_of(x)
    if n is None:
        raise wrong(name, f"the value {x!r}", "an integer")
    if not least <= n < 2**62:
        raise wrong(name, f"the value {n}", f"an integer of at least {least}, below 2**62")
    return n


def _width(name, x):
    return -1 if x is None or index_of(x) == -1 else _number(name, x, 0)


def _numbers(name, x, kinds="iu"):
    return copied(numbers_of_int64(name, x, kinds, stays=True))


def _tensor(kind, array):
    """The array of a mask as a tensor of the interface."""
    at = view("mask", array, array.device.type if is_torch(array) else "cpu")
    shape, strides = tuple(at.shape), tuple(at.strides)
    if kind == KIND.documents:  # ids: (L) or (B, L)
        if len(shape) == 1:
            shape, strides = (1, *shape), (shape[0], *strides)
        shape, strides = (shape[0], 1, 1, shape[1]), (strides[0], strides[0], strides[0], strides[1])
    missing = 4 - len(shape)
    return at.tensor((*(1,) * missing, *shape), (*(0,) * missing, *strides))


def full() -> Mask:
    """Every key is visible."""
    return Mask(KIND.none, text="full()")


def causal(align: str = "end") -> Mask:
    """Keys up to the query's own position.

    align: "end" aligns the last query with the last key (flash-attention; what decoding with a cache needs); "start"
        the first query with the first key (PyTorch's is_causal). They are the same for as many queries as keys. A call
        with offset= moves "end" along: offset is the position of query 0.
    """
    if align == "end":
        return Mask(KIND.causal, text="causal()")
    if align == "start":
        return Mask(KIND.band_from_start, -1, 0, text='causal(align="start")')
    raise wrong("align", f"the value {align!r}", '"end" or "start"')


def window(left: int | None = None, right: int | None = None) -> Mask:
    """Keys from `left` positions before the query to `right` positions after it. None or -1: no limit."""
    return Mask(KIND.band, _width("left", left), _width("right", right), text=("window", left, right))


def prefix(length: int) -> Mask:
    """The first `length` keys, and all keys up to the query's own position: prefix language models."""
    return Mask(KIND.prefix, _number("length", length, 0), text=("prefix", length))


def sink_window(sinks: int, width: int) -> Mask:
    """The first `sinks` keys and the `width` last ones up to the query's position: StreamingLLM."""
    return Mask(KIND.sink_window, _number("sinks", sinks, 0), _number("width", width, 1), text=("sink_window", sinks, width))


def padding(lengths: Any) -> Mask:
    """The first lengths[b] keys of batch element b. lengths: (B), integers."""
    x = _checked_axes("lengths", _numbers("lengths", lengths), (1,), "1: a number for each batch element")
    return Mask(KIND.padding, x=x, text="padding(...)")


def documents(ids: Any, key_ids: Any = None) -> Mask:
    """Keys with the query's id: packed sequences. ids: (L) or (B, L), integers; key_ids: of the keys, if they differ.

    causal(), window() and the like count positions of the whole call next to it. That is right where queries are the
    last of the keys, or where the call has offset=. Else use from_cu_seqlens.
    """
    x = _numbers("ids", ids, "iub")
    y = x if key_ids is None else _numbers("key_ids", key_ids, "iub")
    for name, a in (("ids", x), ("key_ids", y)):
        _checked_axes(name, a, (1, 2), "1 or 2: (L) or (B, L)")
    if (x.shape[0] if x.ndim == 2 else 1) != (y.shape[0] if y.ndim == 2 else 1):
        raise wrong("key_ids", f"the shape {y.shape}", f"as many batch elements as ids, of shape {x.shape}")
    return Mask(KIND.documents, x=x, y=y, text="documents(...)")


def from_cu_seqlens(cu_seqlens: Any, cu_seqlens_k: Any = None) -> Mask:
    """Keys of the query's sequence, for sequences that follow one another (flash-attention's cu_seqlens: 0, the end of
    the first sequence, ..., L). The batch is 1. Takes less time than `documents`.

    causal(), window(), prefix() and sink_window() that & combines with it count positions within each sequence, as
    flash-attention does: causal() aligns the last query of a sequence with its last key. offset= has no part in it.
    """
    x = _numbers("cu_seqlens", cu_seqlens)
    y = x if cu_seqlens_k is None else _numbers("cu_seqlens_k", cu_seqlens_k)
    for name, a in (("cu_seqlens", x), ("cu_seqlens_k", y)):
        if a.ndim != 1 or a.shape[0] < 1:
            raise wrong(name, f"the shape {a.shape}", "(sequences + 1)")
    return Mask(KIND.ragged, x=x, y=y, text="from_cu_seqlens(...)")


setattr(documents, "from_cu_seqlens", from_cu_seqlens)


def block_sparse(table: Any, query_block: int, key_block: int) -> Mask:
    """Blocks of keys that blocks of queries see. table: (query blocks, key blocks) or with heads in front, bool."""
    x = numpy.ascontiguousarray(copied(bytes_of("table", table)))
    _checked_axes("table", x, (2, 3), "2 or 3: (query blocks, key blocks), heads in front")
    a, b = _number("query_block", query_block, 1), _number("key_block", key_block, 1)
    return Mask(KIND.block_sparse, a, b, x=x, text=f"block_sparse(..., {a}, {b})")


def visible(table: Any) -> Mask:
    """A table: True, or 1, where the query sees the key. Up to four axes (B, H, Lq, Lk), aligned at the right; axes of
    length 1 are shared. A mask of keys (B, Lk), as tokenizers return it, is table[:, None, None]."""
    x = _checked_axes("table", copied(bytes_of("table", table, stays=True)), range(5), "at most 4")
    return Mask(KIND.visible, x=x, text="visible(...)")


def _borrowed(table):
    """visible(table) for a tensor of bool on the CPU, which is not copied: for a call that nobody reads again."""
    return Mask(KIND.visible, x=table, text="visible(...)")


def from_block_mask(block_mask: Any) -> Mask:
    """The mask of a FlexAttention BlockMask: its blocks, and in them its mask_mod, evaluated for every pair into a boolean
    table. Needs torch."""
    from torch.nn.attention.flex_attention import create_mask

    batch, heads = block_mask.kv_num_blocks.shape[:2]
    table = block_mask.to_dense().bool()
    for axis, (block, length) in enumerate(zip(block_mask.BLOCK_SIZE, block_mask.seq_lengths), 2):
        table = table.repeat_interleave(block, axis).narrow(axis, 0, length)
    queries, keys = block_mask.seq_lengths
    return visible(table & create_mask(block_mask.mask_mod, batch, heads, queries, keys, device="cpu"))


__all__ = [
    "Mask", "block_sparse", "causal", "documents", "from_block_mask", "from_cu_seqlens", "full", "padding",
    "prefix", "sink_window", "visible", "window",
]
