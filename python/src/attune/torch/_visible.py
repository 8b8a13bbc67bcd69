# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The mask of a traced mask_mod: intervals of keys where it says so in whole numbers, else a table.

    q_idx >= kv_idx, q_idx - kv_idx <= 8, kv_idx < 5, ids[q_idx] == ids[kv_idx], and these joined by & and |

are intervals. A condition of the key alone, or of the query alone, is a row of numbers. Others take a byte for each pair.
"""

import collections
import hashlib

import torch

from .. import masks
from .._graph import Node, line_of
from ._replay import evaluate

_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}


class _NoRule(Exception):
    """A condition that is no rule of masks."""


class _Rules:
    """Masks of conditions, for a call of these sizes."""

    def __init__(self, sizes):
        self.sizes = sizes

    def of(self, x):
        """The mask of a condition, and None if every key is visible. What has no rule is one table."""
        found, rest = None, None
        for part in _conjuncts(x):
            try:
                rule = self.rule(part)
            except _NoRule:
                table = self.numbers(part)
                rest = table if rest is None else rest & table
            else:
                found = rule if found is None else found & rule if rule is not None else found
        if rest is None:
            return found
        table = masks.visible(rest)
        return table if found is None else found & table

    def numbers(self, x):
        with torch.no_grad():
            return evaluate(x, self.sizes)

    def number(self, x):
        return int(self.numbers(x))

    def rule(self, x):
        """The mask of a condition without a table of pairs, or None: every key. Raises _NoRule."""
        if not x.axes:
            return None if bool(self.numbers(x)) else masks.visible(torch.zeros(1, 1, 1, 1, dtype=torch.bool))
        if x.kind == "bool" and not x.shape:
            if x.op in ("and", "or"):
                rest = [y for y in x.args if y.axes or bool(self.numbers(y)) != (x.op == "and")]
                if len(rest) == 1:  # `false or y`, `true and y`
                    return self.rule(rest[0])
                first, second = (self.rule(y) for y in x.args)
                if first is None or second is None:
                    every = first is second or x.op == "or"
                    return None if every else first if second is None else second
                return first & second if x.op == "and" else first | second
            if x.op == "not":
                return self.rule(_negated(x.args[0]))
            if x.op in _MIRRORED:
                found = self.compared(x.op, *x.args)
                if found is not None:
                    return found
        if not {"q", "k"} <= x.axes:
            return masks.visible(self.numbers(x))
        raise _NoRule

    def compared(self, op, left, right):
        """The mask of a comparison, or None if it is no rule of positions and ids."""
        if isinstance(right, Node) and right.op == "abs":
            op, left, right = _MIRRORED[op], right, left
        if isinstance(left, Node) and left.op == "abs" and op in ("lt", "le"):
            line, most = self.line(left.args[0]), self.line(right)
            if line is None or most is None or any(most[:2]) or not any(line[:2]):
                return None
            n = most[2] - (op == "lt")
            first = self.at_least(line[0], line[1], line[2] + n)
            second = self.at_least(-line[0], -line[1], n - line[2])
            return None if first is None or second is None else first & second
        if op == "eq" and _kinds(left, right) <= {"int", "bool"}:
            for q, k in ((left, right), (right, left)):
                if "q" in q.axes and "k" in k.axes and not q.axes & {"h", "k"} and not k.axes & {"h", "q"}:
                    return self.documents(q, k)
        first, second = self.line(left), self.line(right)
        if first is None or second is None or op == "eq":
            return None
        c, d, n = (a - b for a, b in zip(first, second))
        if op in ("lt", "le"):
            c, d, n = -c, -d, -n
        return self.at_least(c, d, n - (op in ("lt", "gt")))

    def line(self, x):
        return line_of(x, self.number)

    def at_least(self, c, d, n):
        """The mask of c q + d k + n >= 0, or None."""
        if (c, d) == (1, -1) and n >= 0:
            return masks.causal() if n == 0 else masks.window(None, n)
        if (c, d) == (-1, 1) and n >= 0:
            return masks.window(n, None)
        if c == 0 and d < 0:
            length = min(max(n // -d + 1, 0), self.sizes["k"])
            return masks.padding([length] * self.sizes["b"])
        return None

    def documents(self, q, k):
        ids, key_ids = (self.numbers(x).flatten(1) for x in (q, k))
        count = max(len(ids), len(key_ids))
        return masks.documents(ids.expand(count, -1), key_ids.expand(count, -1))


def _kinds(*nodes):
    """The kinds of two nodes of single numbers; None stands for something else."""
    return {x.kind if isinstance(x, Node) and not x.shape else None for x in nodes}


def _conjuncts(x):
    if x.op == "and" and not x.shape:
        return [part for y in x.args for part in _conjuncts(y)]
    return [x]


def _negated(x):
    """The node of `not x`: of comparisons where it can."""
    if isinstance(x, Node) and x.kind == "bool" and not x.shape:
        call = (torch.logical_not, (x,), {})
        if x.op == "not":
            return x.args[0]
        if x.op in ("and", "or"):
            op = "or" if x.op == "and" else "and"
            return Node(op, tuple([_negated(y) for y in x.args]), call, x.axes, (), "bool", x.place)
        if x.op in _OPPOSITE and _OPPOSITE[x.op] != "ne":
            return Node(_OPPOSITE[x.op], x.args, call, x.axes, (), "bool", x.place)
        if not {"q", "k"} <= x.axes:
            return Node(None, (), call, x.axes, (), "bool", x.place)
    raise _NoRule


# --- masks that earlier calls made --------------------------------------------------------------------------------------


_MOST = 4  # a table may be large
_known: "collections.OrderedDict" = collections.OrderedDict()


def _print_of(x, to):
    """What a node computes, with a name for each node: they are appended to `to`. Tensors count by their numbers."""
    if isinstance(x, Node):
        if id(x) not in to:
            parts = None if x.call is None else tuple([_print_of(y, to) for y in x.call])
            to[id(x)] = len(to), (x.op, parts)
        return "node", to[id(x)][0]
    if isinstance(x, (tuple, list)):
        return type(x), tuple([_print_of(y, to) for y in x])
    if isinstance(x, dict):
        return tuple([(name, _print_of(y, to)) for name, y in x.items()])
    if isinstance(x, slice):
        return "slice", _print_of([x.start, x.stop, x.step], to)
    if isinstance(x, torch.Tensor):
        data = x.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
        return "tensor", x.dtype, x.shape, hashlib.blake2b(data, digest_size=16).digest()
    return type(x), x


def mask_of(node, sizes, block_mask=None):
    """The mask of a traced mask_mod, and of the blocks of a BlockMask. None: every key is visible."""
    nodes, key = {}, object()
    blocks = None if block_mask is None else block_mask.as_tuple()[2:6]
    try:
        _print_of(node, nodes)
        key = (tuple([x for _, x in nodes.values()]), tuple(sizes.items()), _print_of(blocks, {}))
        found = _known.get(key, key)
    except (RuntimeError, TypeError):  # tensors without memory, an argument without a hash
        found = key
    if found is key:
        rule = _Rules(sizes).of(node)
        blocks = None if block_mask is None else _blocks(block_mask)
        found = blocks if rule is None else rule if blocks is None else rule & blocks
        _known[key] = found
        while len(_known) > _MOST:
            _known.popitem(last=False)
    return found


def _blocks(block_mask):
    """The blocks that a BlockMask lists; None if these are all."""
    table = block_mask.to_dense().bool()
    if bool(table.all()):
        return None
    if bool((table == table[:1]).all()):
        return masks.block_sparse(table[0] if table.shape[1] > 1 else table[0, 0], *block_mask.BLOCK_SIZE)
    for axis, (block, length) in enumerate(zip(block_mask.BLOCK_SIZE, block_mask.seq_lengths), 2):
        table = table.repeat_interleave(block, axis).narrow(axis, 0, length)
    return masks.visible(table)
