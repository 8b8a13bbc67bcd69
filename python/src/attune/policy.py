# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Your own policies, written as expressions. attune.compile makes operators of them.

    hard = attune.policy.normalizer("sigmoid(a + bias - log_visible)", divided_by="one", parameters={"bias": 0.0})
    slow = attune.policy.term("-rate * log1p(abs(distance))", parameters={"rate": 1.0})
    op = attune.compile(normalizer=hard, terms=[slow])

An expression has numbers, inf, names, + - * / // % **, and the functions abs, acos, cos, erf, exp, exp_nonpositive,
expm1, floor, log, log1p, log1p_rate, maximum, minimum, scale_keeping_off, sigmoid, sin, softplus, sqrt, tanh and
where(condition, a, b). A condition is a comparison, < <= > >= == or !=, or some of them joined by and, or and not. It is
differentiated for you: // has the derivative 0. Steps may precede it: "t = score / cap; cap * tanh(t)".
Names are the parameters of the policy, the names that each function here lists, and these of the query's row:

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

from ._contractions import Contraction, feature_sum, listed, ordered_sum, read_at, rotary, wrong_policy
from ._expression import FUNCTIONS, translate

_ROW = ("position", "visible", "log_visible", "keys", "inverse_sqrt_width")
_DOMAINS = ("real", "extended", "real_or_minus_inf", "positive", "above_one", "one_to_four")
_Parameters = Optional[Mapping[str, float]]
_Domains = Optional[Mapping[str, str]]
_Contractions = Union[str, Contraction, Sequence[Union[str, Contraction]]]
_DIVISORS = ("sum", "one", "count")


class Policy:
    """A policy that attune.compile takes. The functions of attune.policy make it.

    role: where it belongs. text: its C++, a struct.
    """

    __slots__ = ("role", "text")

    def __init__(self, role: str, text: str):
        self.role, self.text = role, text

    def __repr__(self):
        return f"<attune policy, {self.role}>"


def _checked_parameters(what, parameters, domains, taken):
    parameters = dict(parameters or {})
    for name, x in parameters.items():
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
            raise wrong_policy(what, f"the parameter {name!r}: a name has letters, digits and _, and begins with a letter")
        if name in FUNCTIONS or name in taken:
            raise wrong_policy(what, f"the parameter {name!r} has the name of something else: {', '.join(sorted(taken))}")
        if isinstance(x, bool) or not isinstance(x, (int, float)) or x != x:
            raise wrong_policy(what, f"the parameter {name} has the value {x!r}; expected a number, its default")
    domains = dict(domains or {})
    for name, domain in domains.items():
        if name not in parameters:
            raise wrong_policy(what, f"domains has {name!r}; the parameters are {', '.join(parameters) or 'none'}")
        if domain not in _DOMAINS:
            raise wrong_policy(what, f"the domain of {name} is {domain!r}; expected one of {', '.join(_DOMAINS)}")
    return parameters, domains


def _number(x):
    x = float(x)
    if math.isinf(x):
        return f"{'-' if x < 0 else ''}std::numeric_limits<double>::infinity()"
    return repr(x)


def _policy(
    what,
    role,
    hooks,
    parameters,
    domains,
    declarations=(),
    contractions=(),
    row=_ROW,
    fields_of=None,
    logits=(),
):
    """A struct with hooks: (signature, {name: C++}, expression, label or None).

    fields_of: members of the bound object, name and value, that the C++ of a name reads. logits: parameters that are
    relative to the row constant.
    """
    tables = list(dict.fromkeys(table for x in contractions for table in x.tables))
    taken = {*row, *(name for name, _ in tables)}
    for hook in hooks:
        taken.update(hook[1])
    parameters, domains = _checked_parameters(what, parameters, domains, taken)
    known = {**{name: f"p_{name}" for name in parameters}, **{name: f"r_{name}" for name in row}}
    used, functions, outside = set(), [], []
    for signature, names, text, label in hooks:
        cpp, here = translate(text, {**known, **names}, what if label is None else f"{what}, {label}")
        used |= here
        functions.append((signature, cpp))
    for x in contractions:
        outside.append(x.declarations)
        if x.summand:
            inner, text = x.summand
            names = {**{name: f"row.{cpp}" for name, cpp in known.items()}, inner: f"x_{inner}"}
            cpp, here = translate(text, names, f"{what}, {x.name}")
            used |= here
            lines = [f"struct map_{x.name} {{", "  template <class Row, class T>"]
            lines += [f"  ATTUNE_HD static T map([[maybe_unused]] Row const& row, T const& x_{inner}) {{", f"    return {cpp};"]
            outside.append("\n".join([*lines, "  }", "};", ""]))
    for name in parameters:
        if name not in used:
            raise wrong_policy(what, f"no expression uses the parameter {name}")
    fields = [(f"p_{name}", f"r.logit(p_{name})" if name in logits else f"r(p_{name})") for name in parameters]
    fields += [(f"r_{name}", f"r.{name}") for name in row if name in used]
    fields += [field for name, field in (fields_of or {}).items() if name in used and field not in fields]
    lines = ["struct own {", f"  static constexpr auto role = policy_role::{role};"]
    lines += [f"  {line}" for line in (*declarations, *(member for x in contractions for member in x.members))]
    lines += [f"  table {name};" for name, _ in tables]
    lines += [f"  parameter p_{name} = {_number(x)};" for name, x in parameters.items()]
    listed = [
        f'listed("{name}", &own::p_{name}' + (f", domain::{domains[name]})" if name in domains else ")")
        for name in parameters
    ]
    if listed:
        lines.append(f"  static constexpr auto parameters() {{ return std::array{{{', '.join(listed)}}}; }}")
    elif tables or any(x.members for x in contractions):
        lines.append("  static constexpr auto parameters() { return std::tuple<>{}; }")
    if tables:
        listed = [f'listed("{name}", &own::{name}, table_width::{width})' for name, width in tables]
        lines.append(f"  static constexpr auto tables() {{ return std::array{{{', '.join(listed)}}}; }}")
    lines += ["  template <class T>", "  struct bound {"]
    if fields:
        lines.append(f"    T {', '.join(name for name, _ in fields)};")
    for signature, cpp in functions:
        lines.append(f"    ATTUNE_HD T {signature} const {{ return {cpp}; }}")
    lines += ["  };", "  template <class T>", "  ATTUNE_HD bound<T> bind([[maybe_unused]] row<T> const& r) const {"]
    lines.append(f"    return {{{', '.join(f'T({cpp})' for _, cpp in fields)}}};")
    lines += ["  }", "};", ""]
    formula = " ".join("; ".join(text for _, _, text, _ in hooks).split())
    outside.insert(0, f"// {formula}\n")
    made = [x for c in contractions for x in c.made]
    if made:
        lines.append(f"own{{{', '.join(made)}}}")
    return Policy(what, "".join(outside) + "\n".join(lines))


def normalizer(
    earned: str,
    *,
    divided_by: str = "sum",
    constant: str | None = None,
    ground: str | None = None,
    ground_value: bool = False,
    weight_factor: str | None = None,
    uniform_share: str | None = None,
    parameters: _Parameters = None,
    domains: _Domains = None,
    logits: str | Sequence[str] = (),
) -> Policy:
    """A normalizer, from the mass that a key earns by its logit a.

        normalizer("softplus(a)")                                 weights softplus(a) / sum softplus(a)
        normalizer("sigmoid(a - log_visible)", divided_by="one")  no competition between keys
        normalizer("exp(a - m)")                                  softmax

    earned: an expression of a, and of m if the mass is relative to the largest logit m: e^-m times the mass at m = 0.
    divided_by: "sum" of the masses, "one" (the masses are the weights) or "count" (of the visible keys).
    constant: an expression, a mass of the row that no key earns; it may name m. ground: an expression as earned, a mass
    that a key gives to the row and not to itself. Both belong to the sum of the masses. ground_value: they weight v0,
    an input of the operator, and not nothing.
    logits: names of parameters that are logits, like a. With m, logits and zero, the logit 0, are as far from a as they
    should be; no other number is.
    weight_factor, uniform_share: expressions of earned, the sum of the masses: a factor of every weight, and a number
    that is added to the weight of every visible key.
    """
    if divided_by not in _DIVISORS:
        raise wrong_policy("normalizer", f"divided_by is {divided_by!r}; expected one of {', '.join(_DIVISORS)}")
    masses = [(label, text) for label, text in (("ground", ground), ("constant", constant)) if text is not None]
    levels = (logits,) if isinstance(logits, str) else tuple(logits)
    for name in levels:
        if name not in (parameters or {}):
            there = ", ".join(parameters or {}) or "none"
            raise wrong_policy("normalizer", f"logits has {name!r}; the parameters are {there}")
    used: set = set()
    for text in (earned, *(text for _, text in masses)):
        used |= _probe("normalizer", text, {"a", "m", "zero"}, parameters)[1]
    relative = "m" in used
    if ground_value and not masses:
        raise wrong_policy("normalizer", "ground_value needs a mass that weights it: constant or ground")
    if masses and divided_by != "sum":
        raise wrong_policy("normalizer", f'constant and ground belong to a sum of masses, and divided_by is "{divided_by}"')
    if relative and divided_by != "sum":
        raise wrong_policy("normalizer", f'masses relative to m are divided by their sum, not by "{divided_by}": leave out m')
    if relative and (weight_factor is not None or uniform_share is not None):
        raise wrong_policy("normalizer", "weight_factor and uniform_share need masses that are not relative: leave out m")
    traits = [f".divided_by = divisor::{divided_by}"]
    if not relative:
        traits.append(".reference = mass_reference::none")
    names = {"a": "x_a" if relative else "T(x_a + x_shift)", "m": "x_m", "zero": "x_zero" if relative else "T(0)"}
    of_key = "([[maybe_unused]] T const& x_a, [[maybe_unused]] T const& x_m)"
    hooks: list = [(f"earned{of_key}", names, earned, None)]
    for label, text in masses:
        traits.append(f".{label}_mass = true")
        known = names if label == "ground" else {name: cpp for name, cpp in names.items() if name != "a"}
        signature = f"ground{of_key}" if label == "ground" else "constant([[maybe_unused]] T const& x_m)"
        hooks.append((signature, known, text, label))
    if ground_value:
        traits.append(".ground_value = true")
    if relative and masses:
        known_levels = [*(["x_zero"] if "zero" in used else []), *(f"p_{name}" for name in levels)]
        if not known_levels:
            why = "constant and ground relative to m need the logit that they have: zero, or one of logits"
            raise wrong_policy("normalizer", why)
        largest = known_levels[0]
        for level in known_levels[1:]:
            largest = f"T(math::larger({largest}, {level}))"
        hooks.append(("lowest_reference()", {"level": largest}, "level", None))
    for label, factor in (("weight_factor", weight_factor), ("uniform_share", uniform_share)):
        if factor is not None:
            traits.append(f".{label} = true")
            signature = f"{label}(T const& x_earned, [[maybe_unused]] T const& x_visible)"
            hooks.append((signature, {"earned": "x_earned"}, factor, label))
    declarations = [f"static constexpr normalizer_traits traits{{{', '.join(traits)}}};"]
    fields_of = {"zero": ("x_zero", "r.logit(0.0)")} if relative else {"a": ("x_shift", "r.logit_shift")}
    return _policy(
        "normalizer",
        "normalizer",
        hooks,
        parameters,
        domains,
        declarations,
        fields_of=fields_of,
        logits=levels if relative else (),
    )


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
    per_key, position_dot, rotary_dot, scalar_difference, spatial_distance, squared_distance; or your own sums, of
    feature_sum, ordered_sum, read_at and rotary. The inputs, tables and angles that they read become arguments of the
    operator.
    """
    of_pair = listed("kernel", contractions)
    return _of_contractions("kernel", "kernel", "score", of_pair, (), score, parameters, domains)


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
    of_pair = listed("gate", contractions)
    for x in of_pair:
        if x.name == "given_scores" or x.before:
            raise wrong_policy("gate", f"{x.name} belongs to a kernel")
    return _of_contractions("gate", "gate", "gate", of_pair, ("score",), expression, parameters, domains)


def weight_gate(
    factor: str,
    *,
    contraction: str | Contraction | None = None,
    parameters: _Parameters = None,
    domains: _Domains = None,
) -> Policy:
    """A weight gate: a factor of what each key adds to the output, after the normalizer.

        weight_gate("exp(-rate * abs(distance))", parameters={"rate": 0.1})

    factor: an expression of key and distance, and of the contraction if there is one, by its name.
    """
    contractions = () if contraction is None else listed("weight_gate", contraction)
    if len(contractions) > 1:
        raise wrong_policy("weight_gate", "one contraction is allowed")
    return _of_contractions("weight_gate", "weight_gate", "factor", contractions, (), factor, parameters, domains)


def _of_contractions(what, role, hook, contractions, first, text, parameters, domains):
    values = (*first, *(x.name for x in contractions))
    names = {name: f"x_{name}" for name in values}
    given = [f"[[maybe_unused]] T const& x_{name}" for name in values]
    if role != "gate":
        names.update(_OF_KEY)
        given.append("[[maybe_unused]] attune::key<T> const& x_key")
    types = [x.type for x in contractions] or ["contraction::none"]
    named = f"using contraction = {types[0]};"
    if len(types) > 1:
        named = f"using contractions = contraction::list<{', '.join(types)}>;"
    hooks = [(f"{hook}({', '.join(given)})", names, text, None)]
    return _policy(what, role, hooks, parameters, domains, [named], contractions, fields_of=_FIELDS_OF_KEY)


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
    "Policy", "feature_sum", "gate", "kernel", "length_scale", "normalizer", "ordered_sum", "output_gate",
    "read_at", "rotary", "score_map", "term", "value_gate", "weight_gate",
]
