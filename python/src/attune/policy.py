# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Your own policies, written as expressions. attune.compile makes operators of them.

    hard = attune.policy.normalizer("sigmoid(a + bias - log_visible)", divided_by="one", parameters={"bias": 0.0})
    slow = attune.policy.term("-rate * log1p(abs(distance))", parameters={"rate": 1.0})
    op = attune.compile(normalizer=hard, terms=[slow])

An expression has numbers, names, + - * / **, and the functions abs, acos, cos, erf, exp, exp_nonpositive, expm1, floor,
log, log1p, log1p_rate, maximum, minimum, scale_keeping_off, sigmoid, sin, softplus, sqrt, tanh and
where(comparison, a, b). It is differentiated for you. Names are the parameters of the policy, the names that each
function here lists, and these of the query's row:

    position            position of the query among the keys: i + offset
    visible             K, the number of keys that the query sees
    log_visible         log K; 0 where K is 0
    keys                the number of keys, visible or not
    inverse_sqrt_width  1 / sqrt(D)

parameters: names and numbers. A call of the operator takes each as an argument: a number, (H), (H, Lq) or (B, H, Lq).
The number here is the default. domains: names of parameters and which numbers are legal: "real" (the default: finite),
"extended" (also infinite), "real_or_minus_inf", "positive", "above_one" or "one_to_four".
"""

from __future__ import annotations

import math
import re
from typing import Mapping, Optional, Sequence, Union

from ._errors import ExpressionError
from ._expression import FUNCTIONS, translate

_ROW = ("position", "visible", "log_visible", "keys", "inverse_sqrt_width")
_DOMAINS = ("real", "extended", "real_or_minus_inf", "positive", "above_one", "one_to_four")
_Parameters = Optional[Mapping[str, float]]
_Domains = Optional[Mapping[str, str]]
_Contractions = Union[str, Sequence[str]]
_DIVISORS = ("sum", "one", "count")
_QUERY_ROW = "query_row"
# Contractions, and the tables that they read: name and number of columns.
_CONTRACTIONS = {
    "biased_dot": (("bias", _QUERY_ROW),),
    "dot": (),
    "gate_dot": (),
    "given_bias": (),
    "given_gates": (),
    "given_key_bias": (),
    "given_scores": (),
    "metric_distance": (("metric", _QUERY_ROW),),
    "metric_dot": (("metric", _QUERY_ROW),),
    "per_key": (("per_key", "one"),),
    "position_dot": (),
    "scalar_difference": (),
    "spatial_distance": (),
    "squared_distance": (),
}


class Policy:
    """A policy that attune.compile takes. The functions of attune.policy make it.

    role: where it belongs. text: its C++, a struct.
    """

    __slots__ = ("role", "text")

    def __init__(self, role: str, text: str):
        self.role, self.text = role, text

    def __repr__(self):
        return f"<attune policy, {self.role}>"


def _wrong(what, why):
    return ExpressionError(f"attune: policy.{what}: {why}", part=what)


def _checked_parameters(what, parameters, domains, taken):
    parameters = dict(parameters or {})
    for name, x in parameters.items():
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
            raise _wrong(what, f"the parameter {name!r}: a name has letters, digits and _, and begins with a letter")
        if name in FUNCTIONS or name in taken:
            raise _wrong(what, f"the parameter {name!r} has the name of something else: {', '.join(sorted(taken))}")
        if isinstance(x, bool) or not isinstance(x, (int, float)) or x != x:
            raise _wrong(what, f"the parameter {name} has the value {x!r}; expected a number, its default")
    domains = dict(domains or {})
    for name, domain in domains.items():
        if name not in parameters:
            raise _wrong(what, f"domains has {name!r}; the parameters are {', '.join(parameters) or 'none'}")
        if domain not in _DOMAINS:
            raise _wrong(what, f"the domain of {name} is {domain!r}; expected one of {', '.join(_DOMAINS)}")
    return parameters, domains


def _number(x):
    x = float(x)
    if math.isinf(x):
        return f"{'-' if x < 0 else ''}std::numeric_limits<double>::infinity()"
    return repr(x)


def _policy(what, role, hooks, parameters, domains, declarations=(), tables=(), row=_ROW, fields_of=None):
    """A struct with hooks: (signature, {name: C++}, expression, label or None).

    fields_of: members of the bound object, name and value, that the C++ of a name reads.
    """
    taken = {*row, *(name for name, _ in tables)}
    for hook in hooks:
        taken.update(hook[1])
    parameters, domains = _checked_parameters(what, parameters, domains, taken)
    known = {**{name: f"p_{name}" for name in parameters}, **{name: f"r_{name}" for name in row}}
    used, functions = set(), []
    for signature, names, text, label in hooks:
        cpp, here = translate(text, {**known, **names}, what if label is None else f"{what}, {label}")
        used |= here
        functions.append((signature, cpp))
    for name in parameters:
        if name not in used:
            raise _wrong(what, f"no expression uses the parameter {name}")
    fields = [(f"p_{name}", f"r(p_{name})") for name in parameters]
    fields += [(f"r_{name}", f"r.{name}") for name in row if name in used]
    fields += [field for name, field in (fields_of or {}).items() if name in used and field not in fields]
    lines = ["struct own {", f"  static constexpr auto role = policy_role::{role};"]
    lines += [f"  {line}" for line in declarations]
    lines += [f"  table {name};" for name, _ in tables]
    lines += [f"  parameter p_{name} = {_number(x)};" for name, x in parameters.items()]
    listed = [
        f'listed("{name}", &own::p_{name}' + (f", domain::{domains[name]})" if name in domains else ")")
        for name in parameters
    ]
    if listed:
        lines.append(f"  static constexpr auto parameters() {{ return std::array{{{', '.join(listed)}}}; }}")
    elif tables:
        lines.append("  static constexpr auto parameters() { return std::tuple<>{}; }")
    if tables:
        listed = [f'listed("{name}", &own::{name}, table_width::{width})' for name, width in tables]
        lines.append(f"  static constexpr auto tables() {{ return std::array{{{', '.join(listed)}}}; }}")
    lines += ["  template <class T>", "  struct bound {"]
    if fields:
        lines.append(f"    T {', '.join(name for name, _ in fields)};")
    for signature, cpp in functions:
        lines.append(f"    T {signature} const {{ return {cpp}; }}")
    lines += ["  };", "  template <class T>", "  bound<T> bind([[maybe_unused]] row<T> const& r) const {"]
    lines.append(f"    return {{{', '.join(f'T({cpp})' for _, cpp in fields)}}};")
    lines += ["  }", "};", ""]
    return Policy(what, "\n".join(lines))


def normalizer(
    earned: str,
    *,
    divided_by: str = "sum",
    weight_factor: str | None = None,
    uniform_share: str | None = None,
    parameters: _Parameters = None,
    domains: _Domains = None,
) -> Policy:
    """A normalizer, from the mass that a key earns by its logit a.

        normalizer("softplus(a)")                                 weights softplus(a) / sum softplus(a)
        normalizer("sigmoid(a - log_visible)", divided_by="one")  no competition between keys
        normalizer("exp(a - m)")                                  softmax

    earned: an expression of a, and of m if the mass is relative to the largest logit m: e^-m times the mass at m = 0.
    divided_by: "sum" of the masses, "one" (the masses are the weights) or "count" (of the visible keys).
    weight_factor, uniform_share: expressions of earned, the sum of the masses: a factor of every weight, and a number
    that is added to the weight of every visible key.
    """
    if divided_by not in _DIVISORS:
        raise _wrong("normalizer", f"divided_by is {divided_by!r}; expected one of {', '.join(_DIVISORS)}")
    _, used = _probe("normalizer", earned, {"a", "m"}, parameters)
    relative = "m" in used
    if relative and divided_by != "sum":
        raise _wrong("normalizer", f'masses relative to m are divided by their sum, not by "{divided_by}": leave out m')
    if relative and (weight_factor is not None or uniform_share is not None):
        raise _wrong("normalizer", "weight_factor and uniform_share need masses that are not relative: leave out m")
    traits = [f".divided_by = divisor::{divided_by}"]
    if not relative:
        traits.append(".reference = mass_reference::none")
    names = {"a": "x_a" if relative else "T(x_a + x_shift)", "m": "x_m"}
    hooks: list = [("earned(T const& x_a, [[maybe_unused]] T const& x_m)", names, earned, None)]
    for label, text in (("weight_factor", weight_factor), ("uniform_share", uniform_share)):
        if text is not None:
            traits.append(f".{label} = true")
            signature = f"{label}(T const& x_earned, [[maybe_unused]] T const& x_visible)"
            hooks.append((signature, {"earned": "x_earned"}, text, label))
    declarations = [f"static constexpr normalizer_traits traits{{{', '.join(traits)}}};"]
    fields_of = {} if relative else {"a": ("x_shift", "r.logit_shift")}
    return _policy("normalizer", "normalizer", hooks, parameters, domains, declarations, fields_of=fields_of)


def _probe(what, text, names, parameters):
    """The names that an expression uses."""
    known = {name: name for name in (*names, *_ROW, *(parameters or {})) if isinstance(name, str)}
    return translate(text, known, what)


_OF_KEY = {"key": "x_key.position", "distance": "T(r_position - x_key.position)"}
_FIELDS_OF_KEY = {"distance": ("r_position", "r.position")}


def term(score: str, *, parameters: _Parameters = None, domains: _Domains = None) -> Policy:
    """A term that the kernel adds to the scores, from positions alone: an expression of key and distance.

        term("-rate * log1p(abs(distance))", parameters={"rate": 1.0})

    key: the position j of the key. distance: position - key.
    """
    return _of_contractions("term", "kernel", "score", (), (), score, parameters, domains)


def kernel(
    contractions: _Contractions, score: str, *, parameters: _Parameters = None, domains: _Domains = None
) -> Policy:
    """A kernel: the score of a query and a key, from the values of contractions.

        kernel("dot", "inverse_sqrt_width * dot")
        kernel(["dot", "scalar_difference"], "inverse_sqrt_width * dot + scalar_difference")

    score: an expression of the contractions, by their names, and of key and distance as in `term`. Contractions:
    biased_dot, dot, gate_dot, given_bias, given_gates, given_key_bias, given_scores, metric_distance, metric_dot,
    per_key, position_dot, scalar_difference, spatial_distance, squared_distance. The inputs and tables that they read
    become arguments of the operator.
    """
    names = _named_contractions("kernel", contractions)
    return _of_contractions("kernel", "kernel", "score", names, (), score, parameters, domains)


def gate(
    expression: str,
    *,
    contractions: _Contractions = "gate_dot",
    parameters: _Parameters = None,
    domains: _Domains = None,
) -> Policy:
    """A score gate: the gated score, from the score and the values of contractions.

        gate("score + strength * tanh(gate_dot)", parameters={"strength": 1.0})

    expression: of score and of the contractions, by their names.
    """
    names = _named_contractions("gate", contractions)
    if "given_scores" in names:
        raise _wrong("gate", "given_scores belongs to a kernel")
    return _of_contractions("gate", "gate", "gate", names, ("score",), expression, parameters, domains)


def weight_gate(
    factor: str, *, contraction: str | None = None, parameters: _Parameters = None, domains: _Domains = None
) -> Policy:
    """A weight gate: a factor of what each key adds to the output, after the normalizer.

        weight_gate("exp(-rate * abs(distance))", parameters={"rate": 0.1})

    factor: an expression of key and distance, and of the contraction if there is one, by its name.
    """
    names = () if contraction is None else _named_contractions("weight_gate", contraction)
    if len(names) > 1:
        raise _wrong("weight_gate", "one contraction is allowed")
    return _of_contractions("weight_gate", "weight_gate", "factor", names, (), factor, parameters, domains)


def _named_contractions(what, contractions):
    names = (contractions,) if isinstance(contractions, str) else tuple(contractions)
    for name in names:
        if name not in _CONTRACTIONS:
            raise _wrong(what, f"the contraction {name!r} is unknown; expected some of {', '.join(_CONTRACTIONS)}")
    if not names or len(set(names)) != len(names):
        raise _wrong(what, f"the contractions {list(names)!r}; expected at least one, and each of them once")
    return names


def _of_contractions(what, role, hook, contractions, first, text, parameters, domains):
    names = {name: f"x_{name}" for name in (*first, *contractions)}
    values = [f"[[maybe_unused]] T const& x_{name}" for name in (*first, *contractions)]
    if role != "gate":
        names.update(_OF_KEY)
        values.append("[[maybe_unused]] attune::key<T> const& x_key")
    listed = [f"contraction::{name}" for name in contractions] or ["contraction::none"]
    named = f"using contractions = contraction::list<{', '.join(listed)}>;"
    if len(listed) == 1:
        named = f"using contraction = {listed[0]};"
    tables = list(dict.fromkeys(table for name in contractions for table in _CONTRACTIONS[name]))
    hooks = [(f"{hook}({', '.join(values)})", names, text, None)]
    return _policy(what, role, hooks, parameters, domains, [named], tables, fields_of=_FIELDS_OF_KEY)


def score_map(expression: str, *, parameters: _Parameters = None, domains: _Domains = None) -> Policy:
    """A map of the sum of all kernels: an expression of score.

        score_map("cap * tanh(score / cap)", parameters={"cap": 30.0}, domains={"cap": "positive"})
    """
    hooks = [("map(T const& x_score)", {"score": "x_score"}, expression, None)]
    return _policy("score_map", "score_map", hooks, parameters, domains)


def length_scale(expression: str, *, parameters: _Parameters = None, domains: _Domains = None) -> Policy:
    """A length scale: the logit, from the score and the number of visible keys.

        length_scale("scale_keeping_off(sqrt(log_visible), score)")

    expression: of score. scale_keeping_off(f, score) is f * score, and keeps a score of -inf.
    """
    hooks = [("scale(T const& x_score)", {"score": "x_score"}, expression, None)]
    declarations = ["static constexpr length_scale_traits traits{};"]
    return _policy("length_scale", "length_scale", hooks, parameters, domains, declarations)


def value_gate(factor: str, *, parameters: _Parameters = None, domains: _Domains = None) -> Policy:
    """A value gate: a factor of each value, from the number x of the input value_gate: value_gate("sigmoid(x)").

    It acts for all queries alike, so no name of the query's row is available.
    """
    hooks = [("factor(T const& x_x)", {"x": "x_x"}, factor, None)]
    return _policy("value_gate", "value_gate", hooks, parameters, domains, row=())


def output_gate(factor: str, *, parameters: _Parameters = None, domains: _Domains = None) -> Policy:
    """An output gate: a factor of each output, from the number x of the input output_gate.

        output_gate("sigmoid(x)")
    """
    hooks = [("factor(T const& x_x)", {"x": "x_x"}, factor, None)]
    return _policy("output_gate", "output_gate", hooks, parameters, domains)


__all__ = [
    "Policy",
    "gate",
    "kernel",
    "length_scale",
    "normalizer",
    "output_gate",
    "score_map",
    "term",
    "value_gate",
    "weight_gate",
]
