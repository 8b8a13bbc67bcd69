# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Contractions that expressions name: those of attune, and your own sums over features or over keys."""

from __future__ import annotations

import re

from ._errors import ExpressionError
from ._expression import FUNCTIONS, translate

_QUERY_ROW = "query_row"
#: Contractions of attune, and the tables that they read: name and width.
TABLES = {
    **dict.fromkeys(
        "biased_dot dot gate_dot given_bias given_gates given_key_bias given_scores metric_distance metric_dot per_key "
        "position_dot rotary_dot scalar_difference spatial_distance squared_distance".split(),
        (),
    ),
    "biased_dot": (("bias", _QUERY_ROW),),
    **dict.fromkeys(("metric_distance", "metric_dot"), (("metric", _QUERY_ROW),)),
    "per_key": (("per_key", "one"),),
}
_KEYS = ("later", "earlier")
_LAYOUTS, _STORED = ("half", "interleaved"), ("plain", "turned")


def wrong_policy(what, why):
    """The exception for a wrong argument of attune.policy."""
    return ExpressionError(f"attune: policy.{what}: {why}", part=what)


class Contraction:
    """A number for each pair of a query and a key, by its name in an expression.

    type: its C++. declarations: structs that the type names. tables: names and widths. members, made: further members
    of the policy, and how they are set. before: contractions that it is computed from. summand: of an ordered sum, the
    name of what it adds and the expression.
    """

    def __init__(self, name, type, declarations="", tables=(), members=(), made=(), before=(), summand=None):
        self.name, self.type, self.declarations, self.tables = name, type, declarations, tables
        self.members, self.made, self.before, self.summand = members, made, before, summand

    def __repr__(self):
        return f"<attune contraction {self.name}>"


def _checked_name(what, name):
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name in FUNCTIONS:
        raise wrong_policy(what, f"the name {name!r}: a name has letters, digits and _, begins with a letter, and is new")
    if name in TABLES:
        raise wrong_policy(what, f"the name {name!r} belongs to a contraction of attune")
    return name


def _one_of(what, name, x, known):
    if x not in known:
        raise wrong_policy(what, f"{name} is {x!r}; expected {' or '.join(known)}")
    return x


def named(what, x):
    """A contraction, or the one of attune that has this name."""
    if isinstance(x, Contraction):
        return x
    if x not in TABLES:
        raise wrong_policy(what, f"the contraction {x!r} is unknown; expected some of {', '.join(TABLES)}")
    return rotary() if x == "rotary_dot" else Contraction(x, f"contraction::{x}", tables=TABLES[x])


def listed(what, contractions):
    """Contractions in the order in which an executor computes them, each of them once."""
    one = isinstance(contractions, (str, Contraction))
    given = [named(what, x) for x in ((contractions,) if one else contractions)]
    names = [x.name for x in given]
    if not given or len(set(names)) != len(names):
        raise wrong_policy(what, f"the contractions {names!r}; expected at least one, and each of them once")
    all = {}
    for x in given:
        for y in (*x.before, x):
            if all.setdefault(y.name, y).type != y.type:
                raise wrong_policy(what, f"two contractions are called {y.name}")
    return sorted(all.values(), key=lambda x: len(x.before))


def feature_sum(name: str, term: str) -> Contraction:
    """The sum over the features of q and k of an expression of the two features, q and k:

        feature_sum("manhattan", "abs(q - k)")

    metric: a table with a number for each feature, (1, H, 1, D); an argument of the operator if the term names it.
    """
    cpp, used = translate(term, {"q": "x_q", "k": "x_k", "metric": "x_metric"}, "feature_sum")
    base = "contraction::feature_sum"
    tables: tuple[tuple[str, str], ...] = ()
    if "metric" in used:
        tables = (("metric", _QUERY_ROW),)
        operands = "contraction::of_query<field::q>, contraction::of_key<field::k>"
        base = f"contraction::sum_of<{operands}, contraction::by_feature<contraction::tables::metric>>"
    type = f"sum_{_checked_name('feature_sum', name)}"
    given = ", ".join(f"[[maybe_unused]] T const& x_{x}" for x in ("q", "k", "metric"))
    lines = [f"struct {type} : {base} {{", "  template <class T>", f"  ATTUNE_HD static T term({given}, T const&) {{"]
    return Contraction(name, type, "\n".join([*lines, f"    return {cpp};", "  }", "};", ""]), tables)


def ordered_sum(
    name: str, of: str | Contraction, summand: str, *, keys: str = "later", own: bool = False
) -> Contraction:
    """The sum over the visible keys on one side of a key: ordered_sum("count", "dot", "sigmoid(dot)").

    of: a contraction, or its name. summand: an expression of it, of the parameters of the kernel and of the names of
    the row. keys: "later" or "earlier" than the key. own: whether the key itself is added, too.
    """
    inner = named("ordered_sum", of)
    if inner.before:
        raise wrong_policy("ordered_sum", f"a sum of {inner.name}, which is computed from others: sum one of those")
    side = f"contraction::own_key::{'included' if own else 'excluded'}"
    order = f"contraction::key_order::{_one_of('ordered_sum', 'keys', keys, _KEYS)}"
    map = f"map_{_checked_name('ordered_sum', name)}"
    type = f"contraction::ordered_sum<{inner.type}, {map}, {order}, {side}>"
    return Contraction(name, type, before=(inner,), summand=(inner.name, summand))


def read_at(name: str, index: Contraction) -> Contraction:
    """The number at a fractional index of the input position_scores, a row for each query: read_at("z", sum).

    index: an ordered_sum. Between two integers the value is on a line.
    """
    if not isinstance(index, Contraction) or index.summand is None:
        raise wrong_policy("read_at", f"the index {index!r}; expected an ordered_sum")
    _checked_name("read_at", name)
    return Contraction(name, f"contraction::interpolated<{index.type}>", before=(*index.before, index))


def rotary(layout: str = "half", keys: str = "plain", given: bool = False) -> Contraction:
    """The contraction rotary_dot: the dot product of q and k, turned by the angles of their positions.

    layout: the features of a pair, "half" for (r, r + R) or "interleaved" for (2 r, 2 r + 1). keys: "plain", or
    "turned" if k holds keys that are turned already. given: the operator takes query_angles and key_angles, a row for
    each query and each key, in place of angles, a row for each position. attune.rotary computes angles.
    """
    layout = _one_of("rotary", "layout", layout, _LAYOUTS)
    stored = _one_of("rotary", "keys", keys, _STORED)
    size = "sizeof(rotary_rows) + sizeof(rotary_layout) + sizeof(rotary_keys)"
    members = [f"static constexpr std::size_t constants = {size};", "rotary_rows angles;"]
    members += [f"rotary_layout layout = rotary_layout::{layout};", f"rotary_keys keys = rotary_keys::{stored};"]
    made = 'c.angles("query_angles", "key_angles")' if given else 'c.angles("angles")'
    return Contraction("rotary_dot", "contraction::rotary_dot", members=members, made=[f".angles = {made}"])
