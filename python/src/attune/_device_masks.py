# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Masks of calls on a device: include/attune/interop/device/mask.hpp. The form of a mask is a type of C++, so that a
companion is compiled for it; its numbers, and the addresses of its arrays, are arguments."""

from . import _abi
from ._arrays import on_host, wrong
from ._layout import MASK_KIND as KIND
from .masks import _Nodes

_SPACE = "attune::interop::on_device::"
#: The form of a call without a mask.
BAND = _SPACE + "band"
_ONE = {
    KIND.prefix: "prefix", KIND.sink_window: "sink_window", KIND.padding: "padding", KIND.documents: "documents",
    KIND.block_sparse: "block_sparse", KIND.visible: "visible_table",
}  # fmt: skip
# Bands, and the end from which they count. Two that count from the same one are one band.
_ENDS = {KIND.none: None, KIND.causal: "last", KIND.band: "last", KIND.band_from_start: "first"}
_ARRAYS = 2 * len(_abi.ABSENT)


class Packed:
    """A mask for calls on a device. memory, count: its nodes. form: its type. checks: what a call must hold, as the host
    knows it: pairs of a function of (queries, keys), which says what is wrong, and the name of the mask."""

    __slots__ = ("memory", "count", "form", "needs_offset", "checks")

    def require(self, queries, keys):
        """Fails if the numbers of the arrays do not fit a call."""
        for check in self.checks:
            check(queries, keys)


def packed(mask, place):
    """The Packed of a mask whose arrays are on a device of torch. Made once for each device."""
    known = mask._elsewhere
    if known is None:
        known = mask._elsewhere = {}
    key = "nodes", place
    if key not in known:
        nodes, kept = _Nodes(place), []
        mask._nodes(nodes)
        to = known[key] = Packed()
        to.form, _, _ = _kept(nodes, len(nodes) - 1, kept)
        to.memory, to.count = b"".join([_abi.MASK_NODE.pack(*node) for node in kept]), len(kept)
        to.needs_offset, to.checks = nodes.needs_offset, [check for leaf in _leaves(mask) for check in _checks(leaf)]
    return known[key]


def _kept(nodes, n, to):
    """Appends the nodes that node n needs. Returns its form, from where a band counts, and its new index."""
    *arrays, a, b, kind = nodes[n]
    end = form = None
    if kind in _ENDS:
        form, end = BAND, _ENDS[kind] if (a, b) != (-1, -1) else None
    elif kind in _ONE:
        form = f"{_SPACE}one<attune::mask::{_ONE[kind]}>"
    elif kind == KIND.ragged:
        form = _SPACE + "ragged"
    elif kind == KIND.ragged_within:
        within, _, a = _kept(nodes, a, to)
        form = f"{_SPACE}ragged_within<{within}>"
    else:
        if kind == KIND.both:
            for one, other in ((a, b), (b, a)):  # a mask of each sequence, and the sequences: the former has both
                same = nodes[one][:_ARRAYS] == nodes[other][:_ARRAYS]
                if same and (nodes[one][-1], nodes[other][-1]) == (KIND.ragged_within, KIND.ragged):
                    return _kept(nodes, one, to)
        first, end, a = _kept(nodes, a, to)
        second, other_end, b = _kept(nodes, b, to)
        if kind == KIND.both and first == second == BAND and (end == other_end or None in (end, other_end)):
            form, end = BAND, end or other_end
        else:
            form, end = f"{_SPACE}{'both' if kind == KIND.both else 'either'}<{first}, {second}>", None
    to.append((*arrays, a, b, kind))
    return form, end, len(to) - 1


def _leaves(mask):
    return [mask] if mask._parts is None else [leaf for part in mask._parts for leaf in _leaves(part)]


def _checks(leaf):
    """Checks of numbers that a device would read without looking: as masks of the CPU make them. Arrays that are on a device
    are not copied for it."""
    if getattr(leaf._x, "is_cuda", False):
        return
    if leaf._kind == KIND.padding:
        lengths = on_host(leaf._x)
        least, most = (int(lengths.min()), int(lengths.max())) if len(lengths) else (0, 0)

        def fits(queries, keys):
            if least < 0 or most > keys:
                raise wrong("mask", f"the length {least if least < 0 else most}", f"lengths in [0, {keys}]")

        yield fits
    elif leaf._kind == KIND.ragged:
        given = [("cu_seqlens", on_host(leaf._x)), ("cu_seqlens_k", on_host(leaf._y))]
        for name, x in given:
            if x[0] != 0 or bool((x[1:] < x[:-1]).any()):
                raise wrong(name, f"the values {x.tolist()}", "numbers that begin with 0 and do not descend")
        ends = [(name, int(x[-1])) for name, x in given]

        def ends_fit(queries, keys):
            for (name, end), wanted, what in zip(ends, (queries, keys), ("queries", "keys")):
                if end != wanted:
                    raise wrong(name, f"the last value {end}", f"{wanted}, the number of {what}")

        yield ends_fit
