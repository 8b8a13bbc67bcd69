# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""What a traced Python function computes: a graph of operations on the score and on indices of batch, head, query and key.

    text = Lowering("dot").text(node)

A Lowering turns the graph into an expression of attune.policy. What the expression does not say in numbers, it names: a
parameter of the query's row, or a leaf, a number for each key, each distance or each pair.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Tuple

INPUTS = ("s", "b", "h", "q", "k")  # the score, and the indices
_COMPARED = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_TRUNCATED = "where({0} < 0, -floor(-{0}), floor({0}))"
#: Expressions of operations, from the texts of their arguments.
TEXTS = {
    "add": "({0} + {1})", "sub": "({0} - {1})", "mul": "({0} * {1})", "div": "({0} / {1})", "floordiv": "({0} // {1})",
    "mod": "({0} % {1})", "neg": "(-{0})", "number": "{0}", "trunc": _TRUNCATED, "ceil": "(-floor(-{0}))",
    **{name: f"{name}({{0}})" for name in "abs acos cos erf exp expm1 floor log log1p sigmoid sin sqrt tanh".split()},
    "exp2": "exp(0.6931471805599453 * {0})", "log2": "(1.4426950408889634 * log({0}))",
    "log10": "(0.4342944819032518 * log({0}))", "rsqrt": "(1 / sqrt({0}))", "square": "({0} ** 2)",
    "reciprocal": "(1 / {0})", "tan": "(sin({0}) / cos({0}))", "cosh": "(0.5 * (exp({0}) + exp(-{0})))",
    "sinh": "(0.5 * (exp({0}) - exp(-{0})))", "sign": "where({0} > 0, 1, where({0} < 0, -1, 0))",
    "maximum": "maximum({0}, {1})", "minimum": "minimum({0}, {1})",
    "at_least": "where({0} < {1}, {1}, {0})", "at_most": "where({0} > {1}, {1}, {0})",
    "clamp": "where({0} < {1}, {1}, where({0} > {2}, {2}, {0}))",
    "relu": "where({0} > 0, {0}, 0)", "silu": "({0} * sigmoid({0}))", "logsigmoid": "(-softplus(-{0}))",
    "elu": "where({0} > 0, {0}, {1} * expm1({0}))", "leaky_relu": "where({0} > 0, {0}, {1} * {0})",
    "softplus": "where({0} * {1} > {2}, {0}, softplus({0} * {1}) / {1})",
    "gelu": "(0.5 * {0} * (1 + erf(0.7071067811865476 * {0})))",
    "gelu_tanh": "(0.5 * {0} * (1 + tanh(0.7978845608028654 * ({0} + 0.044715 * {0} ** 3))))",
}  # fmt: skip
_LARGEST_POWER = 16
_LONG = 60
_IN_TEXT = (0.0, 1.0, -1.0, math.inf, -math.inf)  # other numbers are parameters: a new one compiles nothing


class Node:
    """A value. op: what TEXTS calls it, an input, a comparison, `and`, `or`, `not`, `where`, `pow`; None: something else.

    args: nodes and numbers of op. call: the function of torch, its arguments with nodes in them, and its keyword
    arguments. axes: the inputs that it depends on. shape: its own, for one pair. kind: "float", "int" or "bool".
    place: the file and the line of the user that made it. other: whether torch computes it in another type than the score.
    """

    __slots__ = ("op", "args", "call", "axes", "shape", "kind", "place", "other")

    def __init__(
        self, op, args=(), call=None, axes: FrozenSet[str] = frozenset(), shape=(), kind="float", place=None, other=False
    ):
        self.op, self.args, self.call, self.axes = op, args, call, axes
        self.shape, self.kind, self.place, self.other = shape, kind, place, other

    @property
    def parts(self) -> List[Node]:
        """The nodes that it is computed from."""
        return list(nodes_in(self.call[1:])) if self.call is not None else []


def nodes_in(x: Any):
    """The nodes in nested tuples, lists, dictionaries and slices."""
    if isinstance(x, Node):
        yield x
    elif isinstance(x, (tuple, list)):
        for y in x:
            yield from nodes_in(y)
    elif isinstance(x, dict):
        yield from nodes_in(list(x.values()))
    elif isinstance(x, slice):
        yield from nodes_in((x.start, x.stop, x.step))


def line_of(x: Any, number_of: Optional[Callable[[Node], int]] = None) -> Optional[Tuple[int, int, int]]:
    """(c, d, n) if x is c q + d k + n with whole numbers; else None. number_of: of a node without inputs."""
    if isinstance(x, int) and not isinstance(x, bool):
        return 0, 0, x
    if not isinstance(x, Node) or x.kind != "int" or x.shape:
        return None
    if x.op in ("q", "k"):
        return int(x.op == "q"), int(x.op == "k"), 0
    if not x.axes and number_of is not None:
        return 0, 0, number_of(x)
    if x.op not in ("add", "sub", "neg", "mul", "number"):
        return None
    lines = [line for line in (line_of(y, number_of) for y in x.args) if line is not None]
    if len(lines) < len(x.args):
        return None
    (a, b, n), (c, d, m) = lines[0], lines[-1]
    if x.op == "number":
        return a, b, n
    if x.op == "neg":
        return -a, -b, -n
    if x.op == "add":
        return a + c, b + d, n + m
    if x.op == "sub":
        return a - c, b - d, n - m
    if a or b:
        (a, b, n), (c, d, m) = (c, d, m), (a, b, n)
    return None if a or b else (n * c, n * d, n * m)


def is_of_distance(node: Node, known: Optional[Dict[int, bool]] = None) -> bool:
    """Whether query and key come in by q - k alone."""
    known = {} if known is None else known
    if id(node) not in known:
        line = line_of(node)
        found = line is not None and line[0] == -line[1]
        if not found and node.op not in ("q", "k", "s"):
            found = not node.axes & {"q", "k"} or (bool(node.parts) and all(is_of_distance(x, known) for x in node.parts))
        known[id(node)] = found
    return known[id(node)]


class NotInWords(Exception):
    """The node has no expression."""

    def __init__(self, node):
        super().__init__(node.op)
        self.node = node


class Lowering:
    """The expression of a graph, and what it names.

    parameters: by name, a number, or a node without k. leaves: by name, a node with k: `per_key`, a number for each
    key; `distances`, one for each distance; `given_bias` and `given_scores`, one for each pair.
    """

    def __init__(self, score: str):
        self.score = score
        self.parameters: Dict[str, Any] = {}
        self.leaves: Dict[str, Node] = {}
        self._steps: List[str] = []
        self._texts: Dict[int, str] = {}
        self._trying = 0

    def text(self, x: Any) -> str:
        """The expression of a node or a number, with its steps in front. Raises NotInWords."""
        last = self.of(x)
        if self._steps and self._steps[-1].startswith(f"{last} = "):
            last = self._steps.pop().partition(" = ")[2]
        return "; ".join([*self._steps, last])

    def of(self, x: Any) -> str:
        """The expression of a node or a number, with the names of steps in it. Raises NotInWords."""
        if not isinstance(x, Node):
            return self._number(x)
        if id(x) not in self._texts:
            if x.shape:
                raise NotInWords(x)
            if "s" in x.axes:
                text = self._step(self._composed(x))
            elif "k" in x.axes:
                text = self._of_positions(x, self._composed) or self._leaf(x)
            else:
                text = "position" if x.op == "q" else self._parameter(x)
            self._texts[id(x)] = text
        return self._texts[id(x)]

    def _step(self, text):
        """The name of a step with this text, if it is long: a text that others repeat."""
        if len(text) <= _LONG:
            return text
        self._steps.append(f"t{len(self._steps)} = {text}")
        return f"t{len(self._steps) - 1}"

    def _number(self, x):
        x = float(x)
        if x in _IN_TEXT:
            return {math.inf: "inf", -math.inf: "(-inf)"}.get(x, f"{x:g}" if x >= 0 else f"({x:g})")
        return self._parameter(x)

    def _parameter(self, x):
        name = f"p{len(self.parameters)}"
        self.parameters[name] = x
        return name if not (isinstance(x, Node) and x.kind == "bool") else self._truth(f"{name} > 0.5")

    @staticmethod
    def _truth(condition):
        return f"where({condition}, 1, 0)"

    def _of_positions(self, x, compose):
        """What compose(x) says of a node of positions, if that takes no number for each pair; else None. What torch computes
        in another type, torch computes."""
        if x.other:
            return None
        before = dict(self.parameters), dict(self.leaves), dict(self._texts)
        self._trying += 1
        try:
            return compose(x)
        except NotInWords:
            self.parameters, self.leaves, self._texts = before
        finally:
            self._trying -= 1
        return None

    def _leaf(self, x):
        names = ["per_key"] if "q" not in x.axes else ["distances"] if is_of_distance(x) else []
        names += [] if self._trying else ["given_bias", "given_scores"]
        for name in names:
            if name not in self.leaves:
                self.leaves[name] = x
                return self._truth(f"{name} > 0.5") if x.kind == "bool" else name
        raise NotInWords(x)

    def condition(self, x: Any) -> str:
        """A node as a condition of where()."""
        if isinstance(x, Node) and not x.shape:
            if "s" in x.axes:
                return self._joined(x)
            if "k" in x.axes:
                return self._of_positions(x, self._joined) or self._holds(x, self._leaf(x))
        return self._holds(x, self.of(x))

    @staticmethod
    def _holds(x, text):
        """The condition that a number is not 0; of a parameter or a leaf of bool, what _truth() was given."""
        head, tail = "where(", ", 1, 0)"
        if isinstance(x, Node) and x.kind == "bool" and text.endswith(f" > 0.5{tail}") and text.count(head) == 1:
            return text[len(head) : -len(tail)]
        return f"{text} != 0"

    def _joined(self, x):
        if x.op in _COMPARED:
            first, second = (self.of(y) for y in x.args)
            return f"{first} {_COMPARED[x.op]} {second}"
        if x.op in ("and", "or"):
            first, second = (self.condition(y) for y in x.args)
            return f"({first}) {x.op} ({second})"
        if x.op == "not":
            return f"not ({self.condition(x.args[0])})"
        return self._holds(x, self.of(x))

    def _composed(self, x):
        if x.op == "s":
            return self.score
        if x.op == "k":
            return "key"
        if x.kind == "bool" and (x.op in _COMPARED or x.op in ("and", "or", "not")):
            return self._truth(self._joined(x))
        if x.op == "where":
            return f"where({self.condition(x.args[0])}, {self.of(x.args[1])}, {self.of(x.args[2])})"
        if x.op == "pow":
            base, n = x.args
            if not isinstance(n, Node) and abs(n) <= _LARGEST_POWER and float(n) == int(n):
                return f"({self.of(base)} ** {int(n)})"
            return f"({self.of(base)} ** {self.of(n)})"
        if x.op not in TEXTS:
            raise NotInWords(x)
        return TEXTS[x.op].format(*[self.of(y) for y in x.args])
