# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Expressions and the policies made of them, without a compiler."""

import math
import re

import numpy as np
import pytest

import attune
from attune import policy
from attune._expression import FUNCTIONS, translate
from attune._sources import Part

NAMES = {"a": "x_a", "bias": "p_bias"}

# attune::math as Python functions: enough to run the C++ of an expression, whose other signs Python has too.
SOFT = {"sigmoid": lambda x: 1 / (1 + math.exp(-x)), "softplus": lambda x: math.log1p(math.exp(x))}
ALIKE = ("acos", "cos", "erf", "exp", "expm1", "floor", "log", "log1p", "pow", "sin", "sqrt", "tanh")


def run(cpp, **values):
    """The number that an expression in C++ has."""
    functions = {name: getattr(math, name) for name in ALIKE}
    functions.update(SOFT, abs=abs, larger=max, smaller=min, exp_nonpositive=math.exp)
    functions.update(log1p_rate=lambda k, x: math.log1p(k * x) / k, scale_keeping_off=lambda f, s: f * s)
    functions.update(infinity=lambda: math.inf, modulo=lambda x, y: x - y * math.floor(x / y))
    functions["select"] = lambda c, a, b: a if c else b
    text = cpp.replace("math::", "").replace("lift<T>::constant", "T")
    text = re.sub(r"attune_own::power<(-?\d+)>", r"power(\1)", text).replace("attune_own::", "").replace("<T>", "")
    scope = {**functions, **values, "T": lambda x: x, "power": lambda n: lambda x: x**n}
    return eval(text, {"__builtins__": {}}, scope)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a + bias * 2 - 1", lambda a, b: a + b * 2 - 1),
        ("1 / 2 * a", lambda a, b: 0.5 * a),
        ("-a ** 2", lambda a, b: -(a**2)),
        ("a ** -3", lambda a, b: a**-3),
        ("abs(a) ** 0.5", lambda a, b: abs(a) ** 0.5),
        ("(a - bias) - (a - 2 * bias)", lambda a, b: b),
        ("a / (bias / 3)", lambda a, b: a / (b / 3)),
        ("where(a > bias, a, bias)", lambda a, b: max(a, b)),
        ("where(a <= bias, 1, 0) + where(a < bias, 1, 0) + where(a >= bias, 4, 0)", lambda a, b: 4 if a >= b else 2),
        ("maximum(a, 0) + minimum(a, 0)", lambda a, b: a),
        ("log1p(abs(a)) + expm1(bias)", lambda a, b: math.log1p(abs(a)) + math.expm1(b)),
        ("0.1e-3 * a + 12345678901", lambda a, b: 0.1e-3 * a + 12345678901),
        ("  tanh(\n a)", lambda a, b: math.tanh(a)),
        ("+a - -bias", lambda a, b: a + b),
        ("where(a > 0 and bias < 1 and a != bias, 1, 2)", lambda a, b: 1 if a > 0 and b < 1 else 2),
        ("where(not (a > 0 or bias > 1), 1, 2)", lambda a, b: 2 if a > 0 or b > 1 else 1),
        ("where(a == a and not a == bias, 3, 4) + where(a == bias, 1, 2)", lambda a, b: 5),
        ("where(a != bias, 3, 4)", lambda a, b: 3),
        ("(10 * a) // 1 + (10 * a) // -3", lambda a, b: 10 * a // 1 + 10 * a // -3),
        ("(7 * a) % (2 * bias)", lambda a, b: 7 * a % (2 * b)),
        ("maximum(where(a > 0, a, -inf), -1)", lambda a, b: max(a, -1) if a > 0 else -1),
    ],
)
def test_the_translation_has_the_value_of_the_expression(text, expected):
    cpp, _ = translate(text, NAMES)
    for a, b in ((0.7, 0.3), (0.2, 1.5), (-1.25, 0.5)):
        assert run(cpp, x_a=a, p_bias=b) == pytest.approx(expected(a, b), rel=1e-14)


def test_steps_stand_in_front_of_an_expression():
    cpp, used = translate("t = exp(a); u = t * t + inf - inf; t + u", NAMES)
    assert cpp == (
        "[&] { T const s_t = T(math::exp(x_a)); T const s_u = T(T(T(s_t * s_t) + T(math::infinity<T>())) - "
        "T(math::infinity<T>())); return T(s_t + s_u); }()"
    )
    assert used == {"a"}
    with pytest.raises(attune.ExpressionError, match="column 19: the name bais is unknown: do you mean bias"):
        translate("t = a; b = t; b + bais", NAMES)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function_has_its_value(name):
    same = {"maximum": max, "minimum": min, "abs": abs, "exp_nonpositive": math.exp, **SOFT}
    same["log1p_rate"] = lambda k, x: math.log1p(k * x) / k
    same["scale_keeping_off"] = lambda f, s: f * s
    if name == "where":
        assert run(translate("where(a > 0.5, 1, 2)", NAMES)[0], x_a=0.25) == 2
        return
    function = same.get(name) or getattr(math, name)
    values = (0.25,) if FUNCTIONS[name][1] == 1 else (0.25, 0.75)
    text = f"{name}({', '.join(('a', 'bias')[: len(values)])})"
    assert run(translate(text, NAMES)[0], x_a=0.25, p_bias=0.75) == pytest.approx(function(*values), rel=1e-15)


def test_every_function_is_one_of_the_vocabulary():
    text = open(f"{attune.get_include()}/attune/core/math.hpp").read()
    for function, _ in FUNCTIONS.values():
        assert re.search(rf"\b{function}\(", text), function


@pytest.mark.parametrize(
    "text, column, words",
    [
        ("", 1, "empty"),
        ("a +", 3, "no expression"),
        ("exp(a", 4, "never closed|EOF|no expression"),
        ("a; b", 2, "no expression"),
        ("a = 2; a", 1, "the step a has the name of something else"),
        ("t = a; exp = t; exp", 8, "the step exp has the name of something else"),
        ("t = a;", 3, "no expression"),
        ("t[0] = a; a", 6, "no expression"),
        ("a + bais", 5, "the name bais is unknown: do you mean bias"),
        ("  é + a", 3, "the name é is unknown"),
        ("exp", 1, r"write exp\(\.\.\.\)"),
        ("sinh(a)", 1, "the function sinh is unknown: write sin"),
        ("1 + max(a, 0)", 5, "write maximum"),
        ("a(1)", 1, "a is a name, no function"),
        ("exp(a, 2)", 1, "exp takes 1 argument, not 2"),
        ("exp(x=a)", 1, "no arguments by name"),
        ("exp(*a)", 1, r"\* in front of an argument"),
        ("np.exp(a)", 1, "without a module in front"),
        ("a.real", 1, "a name with a dot"),
        ("a if a > 0 else 0", 1, r"write where\(condition, a, b\)"),
        ("bias + (a > 0)", 9, "first argument of where"),
        ("where(a, 1, 2)", 7, "is a comparison"),
        ("where(0 < a < 1, 1, 2)", 7, "a chain of comparisons"),
        ("where(a in bias, 1, 2)", 7, "< <= > >= == !="),
        ("where(a > 0 and bias, 1, 2)", 17, "is a comparison"),
        ("a and bias", 1, "only available in the first argument of where"),
        ("not a", 1, "UnaryOp is not available"),
        ("a ^ 2", 3, r"write \*\*"),
        ("a @ a", 3, "contractions"),
        ("~a", 1, "UnaryOp is not available"),
        ("1e999", 1, "too large"),
        ("9" * 400, 1, "too large"),
        ("1j * a", 1, "no number"),
        ("True", 1, "no number"),
        ("'x'", 1, "no number"),
        ("None", 1, "no number"),
        ("[a]", 1, "List is not available"),
        ("a, bias", 1, "a comma outside a call"),
        ("lambda: 1", 1, "Lambda is not available"),
        ("(a := 2)", 2, "an assignment"),
        ("f'{a}'", 1, "JoinedStr is not available"),
        ("[x for x in a]", 1, "ListComp is not available"),
        ("a # b", 3, "a comment"),
        ("__import__('os').system('true')", 1, "a name with a dot"),
        ("__import__('os')", 1, "the function __import__ is unknown"),
        ("().__class__", 1, "a name with a dot"),
        ("a\0", 2, "no expression"),
        ("a" * 5000, 1, "at most 4000"),
        ("(" * 300 + "a" + ")" * 300, 1, "nested too deeply|too many nested"),
        ("-" * 3000 + "a", 1, "nested too deeply|no expression"),
        ("+".join("a" * 400), 1, "nested too deeply"),
    ],
)
def test_a_wrong_expression_is_refused_with_its_column(text, column, words):
    with pytest.raises(attune.ExpressionError, match=words) as e:
        translate(text, NAMES, "normalizer")
    assert isinstance(e.value, attune.CompileError)
    if "nested" not in words and "never" not in words:
        assert e.value.column == column
    shown = str(e.value).split("\n")
    assert shown[0].startswith("attune: normalizer, column ")
    assert shown[2].index("^") - 4 == e.value.column - 1
    assert "names: a, bias" in str(e.value) and "softplus" in str(e.value)


def test_nothing_but_a_text_is_an_expression():
    with pytest.raises(attune.ExpressionError, match="expected a text, not int"):
        translate(1, NAMES)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: policy.normalizer("a + beta", parameters={"bias": 0}), "the name beta is unknown"),
        (lambda: policy.normalizer("a", parameters={"bias": 0}), "no expression uses the parameter bias"),
        (lambda: policy.normalizer("a + m", parameters={"m": 0}), "has the name of something else"),
        (lambda: policy.normalizer("a + exp", parameters={"exp": 0}), "has the name of something else"),
        (lambda: policy.normalizer("a + b", parameters={"b": None}), "value None; expected a number"),
        (lambda: policy.normalizer("a + b", parameters={"b": math.nan}), "value nan; expected a number"),
        (lambda: policy.normalizer("a", parameters={"b;": 1}), "a name has letters"),
        (lambda: policy.normalizer("a", parameters={"_b": 1}), "begins with a letter"),
        (lambda: policy.normalizer("a", divided_by="max"), "expected one of sum, one, count"),
        (lambda: policy.normalizer("exp(a - m)", divided_by="one"), "leave out m"),
        (lambda: policy.normalizer("exp(a - m)", weight_factor="1 / earned"), "leave out m"),
        (lambda: policy.normalizer("a", weight_factor="1 / a"), "normalizer, weight_factor, column 5: the name a"),
        (lambda: policy.term("dot"), "the name dot is unknown"),
        (lambda: policy.kernel("dott", "dot"), "the contraction 'dott' is unknown"),
        (lambda: policy.kernel([], "1"), "at least one"),
        (lambda: policy.kernel(["dot", "dot"], "dot"), "each of them once"),
        (lambda: policy.kernel("per_key", "per_key", parameters={"per_key": 1}), "has the name of something else"),
        (lambda: policy.kernel(policy.feature_sum("dot", "q * k"), "dot"), "belongs to a contraction of attune"),
        (lambda: policy.feature_sum("x", "q * j"), "feature_sum, column 5: the name j is unknown"),
        (lambda: policy.ordered_sum("x", "dot", "dot", keys="last"), "expected later or earlier"),
        (lambda: policy.ordered_sum("x", policy.ordered_sum("y", "dot", "dot"), "y"), "a sum of y, which is computed"),
        (lambda: policy.kernel(policy.ordered_sum("x", "dot", "rate * dot"), "x"), "kernel, x, column 1: the name"),
        (lambda: policy.gate("score + x", contractions=policy.ordered_sum("x", "dot", "dot")), "x belongs to a kernel"),
        (lambda: policy.read_at("x", "dot"), "expected an ordered_sum"),
        (lambda: policy.rotary(layout="both"), "expected half or interleaved"),
        (lambda: policy.kernel(["dot", policy.feature_sum("x", "q")] * 2, "x"), "each of them once"),
        (lambda: policy.normalizer("a", constant="1", divided_by="one"), 'divided_by is "one"'),
        (lambda: policy.normalizer("exp(a - m)", constant="exp(-m)"), "need the logit that they have"),
        (lambda: policy.normalizer("a", ground_value=True), "needs a mass that weights it"),
        (lambda: policy.normalizer("a", logits=("sink",)), "logits has 'sink'"),
        (lambda: policy.score_map("a"), "the name a is unknown"),
        (lambda: policy.score_map("c * score", parameters={"c": 1}, domains={"d": "real"}), "domains has 'd'"),
        (lambda: policy.score_map("c * score", parameters={"c": 1}, domains={"c": "big"}), "the domain of c is 'big'"),
        (lambda: policy.weight_gate("1", contraction=["dot", "gate_dot"]), "one contraction"),
        (lambda: policy.gate("score", contractions="given_scores"), "belongs to a kernel"),
        (lambda: policy.value_gate("x * position"), "the name position is unknown"),
        (lambda: attune.compile(normalizer=policy.term("-abs(distance)")), "the policy is a term: give it as terms="),
        (lambda: attune.compile(normalizer=3), "not int"),
        (lambda: attune.compile(normalizer=""), "the text is empty"),
        (lambda: attune.compile(terms=3), "terms: expected a list"),
        (lambda: attune.compile_operator(3), "not int"),
        (lambda: attune.compile_operator("struct x {};"), "no expression at its end"),
        (lambda: attune.compile("dot_product{}", dtypes=("float8",)), "dtypes has 'float8'"),
        (lambda: attune.compile("dot_product{}", dtypes=()), "dtypes is empty"),
    ],
)
def test_a_wrong_policy_is_refused_at_once(make, words):
    with pytest.raises(attune.CompileError, match=re.escape(words)):
        make()


def test_a_policy_has_only_the_numbers_that_it_uses():
    text = policy.normalizer("sigmoid(a + bias - log_visible)", divided_by="one", parameters={"bias": -0.5}).text
    assert "T p_bias, r_log_visible, x_shift;" in text and "parameter p_bias = -0.5;" in text
    assert ".divided_by = divisor::one, .reference = mass_reference::none" in text
    relative = policy.normalizer("exp_nonpositive(a - m)").text
    assert "mass_reference::none" not in relative and "x_shift" not in relative
    assert "infinity()" in policy.score_map("minimum(score, c)", parameters={"c": math.inf}).text


def test_tables_of_contractions_are_members():
    text = policy.kernel(["metric_dot", "metric_distance", "per_key"], "metric_dot - metric_distance + per_key").text
    assert text.count("table metric;") == 1 and 'listed("per_key", &own::per_key, table_width::one)' in text


def test_the_last_struct_is_the_policy():
    text = "struct x { int y; };\n// struct no {}\nstruct last : x { };\n"
    part = Part("normalizer", "normalizer", text, "normalizer")
    assert part.made() == "last{}"
    part = Part("normalizer", "normalizer", "struct f {};\nusing last = generic<f>;", "normalizer")
    assert part.made() == "last{}"
    part = Part("normalizer", "normalizer", "struct f { char const* x = \"};\"; };\n  generic<f>{}  ", "normalizer")
    assert part.made() == "generic<f>{}" and part.place(part.expression_at) == (2, 3)
    part = Part("operator", "operator", "#define X ;\ninline int f() { return 1; }\nattention(X, m)", None)
    assert part.made() == "attention(X, m)"


@pytest.mark.parametrize(
    "text, line, column, words",
    [
        ("struct x {\n  int y = f(1;\n};", 2, 13, None),
        ("struct x {\n  T y() { return T(1 / 2); }\n};", 2, 20, "write 1.0 / 2"),
        ("struct x { }", 1, 1, "write ; behind it"),
        ("int f(int);\n", 1, 11, "has no struct"),
    ],
)
def test_faults_that_need_no_compiler_have_a_place(text, line, column, words):
    with pytest.raises(attune.CompileError, match=words) as e:
        Part("kernel", "kernel", text, "kernel").made()
    assert (e.value.line, e.value.column) == (line, column) or words is None
    assert e.value.part == "kernel"


def test_whole_numbers_may_be_divided_without_a_rest():
    for text in ("alibi{4 / 2}", "alibi{1.0 / 2}", "alibi{1 / 2.0}", "alibi{x1 / 2}", "alibi{1} // 1 / 2"):
        Part("kernel", "kernel", text, "kernel")


def test_numbers_keep_all_their_digits():
    for x in np.random.default_rng(3).normal(size=20) * 10.0 ** np.arange(-10, 10):
        assert run(translate(repr(float(x)), NAMES)[0]) == x


def test_ordered_sums_stand_behind_what_they_add_and_in_front_of_what_reads_them():
    place = policy.ordered_sum("place", "dot", "rate * sigmoid(dot)", keys="earlier", own=True)
    text = policy.kernel([policy.read_at("z", place), "given_bias"], "z + given_bias", parameters={"rate": 1}).text
    rule = "contraction::key_order::earlier, contraction::own_key::included"
    sum = f"contraction::ordered_sum<contraction::dot, map_place, {rule}>"
    order = ["contraction::dot", "contraction::given_bias", sum, f"contraction::interpolated<{sum}>"]
    assert f"contraction::list<{', '.join(order)}>" in text
    values = "".join(f"[[maybe_unused]] T const& x_{name}, " for name in ("dot", "given_bias", "place", "z"))
    assert f"score({values}" in text
    assert "row.p_rate" in text and "T p_rate;" in text


def test_logits_of_relative_masses_are_relative_to_the_row():
    made = policy.normalizer("exp(a - m)", constant="exp(sink - m)", parameters={"sink": 0.5}, logits="sink").text
    assert "T(r.logit(p_sink))" in made and "T lowest_reference() const { return p_sink; }" in made
    free = policy.normalizer("a ** 2", constant="sink", parameters={"sink": 0.5}, logits="sink").text
    assert "T(r(p_sink))" in free and "lowest_reference" not in free


def test_frequencies_and_angles():
    from attune import rotary

    np.testing.assert_allclose(rotary.plain(6), [1, 10000 ** (-1 / 3), 10000 ** (-2 / 3)])
    np.testing.assert_allclose(rotary.ntk(4, 8)[-1], rotary.linear(4, 8)[-1])  # the slowest pair is that of linear
    yarn = rotary.yarn(64, 4, 2048)
    assert yarn[0] == rotary.plain(64)[0] and yarn[-1] == rotary.linear(64, 4)[-1] and rotary.yarn_factor(0.5) == 1
    expected = [2 * f(x) for f in (math.cos, math.sin) for x in (1, 4)]
    np.testing.assert_allclose(rotary.angles([0.5, 2.0], 3, 2.0)[2], expected)
    assert rotary.angles(rotary.plain(4), np.ones((3, 5))).shape == (3, 1, 5, 4)
