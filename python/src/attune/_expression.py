# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Expressions of Python as C++ of attune::math.

    translate("sigmoid(a + bias)", {"a": "x_a", "bias": "p_bias"})

Steps may precede an expression, each with a name: "t = a - bias; t * exp(t)".

The text is parsed, never evaluated. Every name and function must be in a list, so the result is an expression and
nothing else. Everything in it is a T, the scalar of pointwise code.
"""

import ast
import difflib
import math
import warnings

from ._errors import ExpressionError, pointed

#: Functions: the name in attune::math, and the number of arguments.
_OF_ONE = "abs acos cos erf exp exp_nonpositive expm1 floor log log1p sigmoid sin softplus sqrt tanh"
_OF_TWO = {"log1p_rate": "log1p_rate", "maximum": "larger", "minimum": "smaller", "scale_keeping_off": "scale_keeping_off"}
FUNCTIONS = {name: (name, 1) for name in _OF_ONE.split()}
FUNCTIONS.update({name: (cpp, 2) for name, cpp in _OF_TWO.items()}, where=("select", 3))
#: Names of functions elsewhere, and of these here.
_ELSEWHERE = {
    "arccos": "acos",
    "clip": "maximum(low, minimum(x, high))",
    "fabs": "abs",
    "fmax": "maximum",
    "fmin": "minimum",
    "larger": "maximum",
    "max": "maximum",
    "min": "minimum",
    "pow": "x ** y",
    "power": "x ** y",
    "relu": "maximum(x, 0)",
    "select": "where",
    "smaller": "minimum",
}
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_JOINED = {ast.And: "smaller", ast.Or: "larger"}  # of truths, which are 0 and 1
_CONSTANTS = {"inf": "T(math::infinity<T>())"}
_REFUSED = {
    ast.BitXor: "^ is not available: write ** for a power",
    ast.MatMult: "@ is not available: contractions are given as names",
    ast.Attribute: "a name with a dot is not available: write exp(x) without a module in front",
    ast.IfExp: "a branch has one answer for all lanes of a register: write where(condition, a, b)",
    ast.BoolOp: "and, or are only available in the first argument of where(condition, a, b)",
    ast.Compare: "a comparison is only available as the first argument of where(condition, a, b)",
    ast.Tuple: "a comma outside a call is not available",
    ast.NamedExpr: "an assignment is not available",
}
LONGEST = 4000
LARGEST_POWER = 16
DEEPEST = 200  # brackets in brackets; compilers take 256
_TOO_DEEP = "the expression is nested too deeply, or has too many terms: give a part of it as a policy in C++"


class _Translation:
    """One text on its way to C++."""

    def __init__(self, text, names, what):
        self.text, self.names, self.what = text, names, what
        self.line = text.replace("\n", " ").replace("\r", " ").replace("\f", " ")
        self.used = set()

    def fail(self, column, why):
        raise ExpressionError(
            f"attune: {self.what}, column {column}: {why}\n{pointed(self.line, column)}\n"
            f"  names: {', '.join(sorted(self.names))}\n"
            f"  functions: {', '.join(sorted(FUNCTIONS))}; operators: + - * / // % **",
            part=self.what,
            line=1,
            column=column,
        )

    def column(self, node):
        """Columns of ast count bytes from 0."""
        before = self.parsed.encode()[: node.col_offset].decode(errors="replace")
        return len(before) + 1 + self.start

    def operator_column(self, node):
        """The column of the operator between two operands."""
        at = len(self.parsed.encode()[: node.left.end_col_offset].decode(errors="replace"))
        while at + 1 < len(self.parsed) and self.parsed[at] in " )\t":
            at += 1
        return at + 1 + self.start

    def parse(self):
        if len(self.text) > LONGEST:
            self.line = self.line[:60]
            self.fail(1, f"the text has {len(self.text)} characters; at most {LONGEST} are allowed")
        self.parsed = self.line.strip()
        self.start = len(self.line) - len(self.line.lstrip())
        if not self.parsed:
            self.fail(1, "the text is empty")
        for x, why in (("#", "a comment is not available"), ("\0", "no expression: a character 0")):
            if x in self.parsed:
                self.fail(self.parsed.index(x) + 1 + self.start, why)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self.steps() or ([], ast.parse(self.parsed, mode="eval").body)
        except SyntaxError as e:
            column = min(e.offset or len(self.parsed), len(self.parsed))
            self.fail(column + self.start, f"no expression: {e.msg}")
        except (ValueError, MemoryError, RecursionError) as e:
            self.fail(1, _TOO_DEEP if isinstance(e, (MemoryError, RecursionError)) else f"no expression: {e}")

    def steps(self):
        """Pairs (node of a name, node) and the last node, if the text has steps; else None."""
        if ";" not in self.parsed:
            return None
        try:
            *steps, last = ast.parse(self.parsed).body
        except SyntaxError:
            return None
        named = [isinstance(x, ast.Assign) and len(x.targets) == 1 and isinstance(x.targets[0], ast.Name) for x in steps]
        if not steps or not all(named) or not isinstance(last, ast.Expr):
            return None
        return [(x.targets[0], x.value) for x in steps], last.value

    def translate(self):
        """The C++ of the text."""
        steps, last = self.parse()
        lines, given = [], self.names
        for name, node in steps:
            if name.id in self.names or name.id in FUNCTIONS or name.id in _CONSTANTS:
                self.fail(self.column(name), f"the step {name.id} has the name of something else")
            lines.append(f"T const s_{name.id} = {self.of(node)};")
            self.names = {**self.names, name.id: f"s_{name.id}"}
        cpp = self.of(last)
        self.used &= given.keys()
        return f"[&] {{ {' '.join(lines)} return {cpp}; }}()" if lines else cpp

    def number(self, node, sign=1):
        x = node.value
        if isinstance(x, bool) or not isinstance(x, (int, float)):
            self.fail(self.column(node), f"{x!r} is no number")
        try:
            x = sign * float(x)
        except OverflowError:
            x = math.inf
        if math.isinf(x):
            self.fail(self.column(node), "the number is too large")
        if x == int(x) and abs(x) <= 2**24:
            return f"T({int(x)})"
        return f"lift<T>::constant({x!r})"

    def name(self, node):
        if node.id not in self.names:
            if node.id in _CONSTANTS:
                return _CONSTANTS[node.id]
            if node.id in FUNCTIONS:
                self.fail(self.column(node), f"{node.id} is a function: write {node.id}(...)")
            near = difflib.get_close_matches(node.id, self.names, 1)
            self.fail(
                self.column(node),
                f"the name {node.id} is unknown" + (f": do you mean {near[0]}?" if near else ""),
            )
        self.used.add(node.id)
        return self.names[node.id]

    def call(self, node):
        if not isinstance(node.func, ast.Name):
            if isinstance(node.func, ast.Attribute):
                self.fail(self.column(node.func), _REFUSED[ast.Attribute])
            self.fail(self.column(node.func), "a call of something that is no function of the list")
        name = node.func.id
        if name not in FUNCTIONS:
            near = _ELSEWHERE.get(name) or next(iter(difflib.get_close_matches(name, FUNCTIONS, 1)), None)
            self.fail(
                self.column(node.func),
                f"{name} is a name, no function" if name in self.names else f"the function {name} is unknown"
                + (f": write {near}" if near else ""),
            )
        function, count = FUNCTIONS[name]
        if node.keywords:
            self.fail(self.column(node), f"{name} takes no arguments by name")
        if any(isinstance(x, ast.Starred) for x in node.args):
            self.fail(self.column(node), "* in front of an argument is not available")
        if len(node.args) != count:
            self.fail(self.column(node), f"{name} takes {count} argument{'s' * (count > 1)}, not {len(node.args)}")
        arguments = [self.condition(x) if name == "where" and n == 0 else self.of(x) for n, x in enumerate(node.args)]
        return f"T(math::{function}({', '.join(arguments)}))"

    def condition(self, node):
        """The C++ of a comparison, which has an answer for each lane."""
        if self.is_joined(node):
            return f"{self.truth(node)} > T(0.5)"
        if not isinstance(node, ast.Compare):
            self.fail(self.column(node), "the first argument of where is a comparison, for example a > 0")
        if len(node.ops) > 1:
            self.fail(self.column(node), "a chain of comparisons is not available: write a < b and b < c")
        sign = _COMPARISONS.get(type(node.ops[0]))
        if sign is None:
            self.fail(self.column(node), "the comparisons are < <= > >= == !=")
        left, right = self.of(node.left), self.of(node.comparators[0])
        return f"{self.opposite(f'{left} == {right}')} > T(0.5)" if sign == "!=" else f"{left} {sign} {right}"

    @staticmethod
    def is_joined(node):
        return isinstance(node, ast.BoolOp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))

    @staticmethod
    def opposite(condition):
        return f"T(math::select({condition}, T(0), T(1)))"

    def truth(self, node):
        """The C++ of 1 where a condition holds, and 0 elsewhere. Not every kind of lane can join comparisons."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.opposite(self.condition(node.operand))
        if isinstance(node, ast.BoolOp):
            first, *others = [self.truth(x) for x in node.values]
            for x in others:
                first = f"T(math::{_JOINED[type(node.op)]}({first}, {x}))"
            return first
        return f"T(math::select({self.condition(node)}, T(1), T(0)))"

    def power(self, node):
        exponent, sign = node.right, 1
        while isinstance(exponent, ast.UnaryOp) and isinstance(exponent.op, (ast.USub, ast.UAdd)):
            sign, exponent = -sign if isinstance(exponent.op, ast.USub) else sign, exponent.operand
        if isinstance(exponent, ast.Constant) and not isinstance(exponent.value, bool):
            n = exponent.value
            if isinstance(n, (int, float)) and abs(n) <= LARGEST_POWER and n == int(n):
                return f"attune_own::power<{sign * int(n)}>({self.of(node.left)})"
        return f"T(math::pow({self.of(node.left)}, {self.of(node.right)}))"

    def of(self, node):
        """The C++ of a node: a T."""
        if isinstance(node, ast.Constant):
            return self.number(node)
        if isinstance(node, ast.Name):
            return self.name(node)
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd):
            return self.of(node.operand)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            if isinstance(node.operand, ast.Constant):
                return self.number(node.operand, -1)
            return f"T(-{self.of(node.operand)})"
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Pow):
                return self.power(node)
            if isinstance(node.op, ast.FloorDiv):
                return f"T(math::floor(T({self.of(node.left)} / {self.of(node.right)})))"
            if isinstance(node.op, ast.Mod):
                return f"attune_own::modulo(T({self.of(node.left)}), T({self.of(node.right)}))"
            sign = _OPERATORS.get(type(node.op))
            if sign is not None:
                return f"T({self.of(node.left)} {sign} {self.of(node.right)})"
            self.fail(self.operator_column(node), _REFUSED.get(type(node.op), "this operator is not available"))
        why = _REFUSED.get(type(node), f"{type(node).__name__} is not available")
        self.fail(self.column(node), why)


def translate(text, names, what="expression"):
    """The C++ of an expression, and the set of the names that it uses.

    names: what the expression may name, and its C++. what: how error texts call the expression.
    Raises ExpressionError.
    """
    if not isinstance(text, str):
        raise ExpressionError(f"attune: {what}: expected a text, not {type(text).__name__}", part=what)
    t = _Translation(text, names, what)
    try:
        cpp = t.translate()
    except RecursionError:
        t.fail(1, _TOO_DEEP)
    depth = deepest = 0
    for x in cpp:
        depth += (x == "(") - (x == ")")
        deepest = max(deepest, depth)
    if deepest > DEEPEST:
        t.fail(1, _TOO_DEEP)
    return cpp, t.used
