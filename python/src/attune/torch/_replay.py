# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The numbers of a traced node, by torch: for all indices that it depends on, and with gradients by captured tensors."""

import torch

from .._graph import Node, line_of
from ._functions_of_torch import index
from ._trace import mapped


class _NotByBroadcast(Exception):
    pass


class _Run:
    """One evaluation. inputs: the tensors of the indices. by_distance: q and k come in by their distance alone, "d"."""

    def __init__(self, inputs, by_distance):
        self.inputs, self.by_distance, self.known = inputs, by_distance, {}

    def of(self, x):
        if not isinstance(x, Node):
            return x
        if id(x) not in self.known:
            self.known[id(x)] = self.computed(x)
        return self.known[id(x)]

    def computed(self, x):
        line = line_of(x) if self.by_distance else None
        if line is not None and any(line[:2]):
            return line[0] * self.inputs["d"] + line[2]
        if x.op in ("b", "h", "q", "k"):
            return self.inputs[x.op]
        return self.called(x, *x.call)

    def called(self, x, function, args, named):
        args, named = mapped(args, self.of), mapped(named, self.of)
        return index(*args) if function is torch.Tensor.__getitem__ else function(*args, **named)


class _Broadcast(_Run):
    """All indices at once: for functions of single numbers, and captured tensors at indices."""

    def called(self, x, function, args, named):
        if x.shape:
            raise _NotByBroadcast
        if function is torch.Tensor.__getitem__:
            base, at = args
            at = at if isinstance(at, tuple) else (at,)
            if isinstance(base, Node) or not all(isinstance(y, (Node, int)) and not isinstance(y, bool) for y in at):
                raise _NotByBroadcast
            view = self.view(base, at)
            if view is not None:
                return view
        elif x.op is None and x.axes:
            raise _NotByBroadcast
        else:  # numbers without axes would lose against tensors when types are joined
            args, named = mapped(args, _with_axes), mapped(named, _with_axes)
        return super().called(x, function, args, named)


    def view(self, base, at):
        """base[b, h, q, k], with some of these in any order, without a copy; None if it is something else."""
        names = [y.op if isinstance(y, Node) else None for y in at]
        if len(set(names)) < len(names) or not set(names) <= set(self.inputs):
            return None
        lengths = [self.inputs[x].numel() for x in names]
        if any(n > most for n, most in zip(lengths, base.shape)):
            return None  # an index is too large, and torch says so
        for axis, n in enumerate(lengths):
            base = base.narrow(axis, 0, n)
        base = base.permute(sorted(range(len(names)), key=lambda n: "bhqk".index(names[n])))
        for axis, x in enumerate("bhqk"):
            if x not in names:
                base = base.unsqueeze(axis)
        return base


def _with_axes(x):
    return x.reshape(1, 1, 1, 1) if isinstance(x, torch.Tensor) and not x.dim() else x


def evaluate(node, sizes, by_distance=None):
    """The numbers of a node: (B, H, Lq, Lk), with length 1 in place of what it does not depend on.

    sizes: lengths by the names b, h, q, k. by_distance: a tensor of distances; they stand in place of the queries.
    """
    names = [x for x in "bhqk" if x in node.axes]
    vectors = {x: torch.arange(sizes[x]) for x in names}
    if by_distance is not None:
        vectors = {**{x: vectors[x] for x in names if x in "bh"}, "d": by_distance}
        names = [*[x for x in names if x in "bh"], "d"]
    places = {"b": 0, "h": 1, "q": 2, "k": 3, "d": 2}
    shape = [1, 1, 1, 1]
    for x in names:
        shape[places[x]] = len(vectors[x])
    grid = {x: v.reshape([-1 if n == places[x] else 1 for n in range(4)]) for x, v in vectors.items()}
    try:
        found = _Broadcast(grid, by_distance is not None).of(node)
    except _NotByBroadcast:
        found = _mapped_over(node, names, vectors, by_distance is not None)
    return found.reshape(shape) if found.numel() == _product(shape) else found.expand(shape)


def _product(shape):
    n = 1
    for x in shape:
        n *= x
    return n


def _mapped_over(node, names, vectors, by_distance):
    def one(*numbers):
        return _Run(dict(zip(names, numbers)), by_distance).of(node)

    for n in reversed(range(len(names))):
        one = torch.vmap(one, in_dims=tuple([0 if m == n else None for m in range(len(names))]))
    return one(*[vectors[x] for x in names])


