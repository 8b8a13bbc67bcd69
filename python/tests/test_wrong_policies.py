# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""attune.compile: what is said about wrong policies."""

import json
import pathlib

import pytest

import attune
from attune import _diagnosis
from attune._sources import Part

NORMALIZER = """struct mine {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.reference = mass_reference::none};
  template <class T>
  struct bound {
    T earned(T const& a, T const&) const { return math::exp(a); }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
"""
KERNEL = """struct mine {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::dot;
  template <class T>
  struct bound {
    T score(key<T> const& k) const { return k.position; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
"""


def changed(old, new):
    assert old in NORMALIZER
    return {"normalizer": NORMALIZER.replace(old, new, 1)}


LISTED = """  parameter a = 1, b = 2;
  static constexpr auto parameters() { return std::array{listed("a", &mine::a)}; }
"""
# The policy, the words of the message, and the line of the text; all but the last in attune's words.
WRONG = {
    "a function of std": (changed("math::exp", "std::exp"), "std::exp does not take a T.*write math::exp", 6),
    "no return": (changed("return math::exp", "math::exp"), "must return a result", 6),
    "no role": (changed("  static constexpr auto role = policy_role::normalizer;\n", ""), "a policy has no role", 1),
    "arguments of score": ({"terms": [KERNEL]}, "must return an object with T score\\(T const& contraction", 1),
    "a parameter that is not listed": (
        changed("  template <class T>\n  struct", LISTED + "  template <class T>\n  struct"),
        "room for a parameter that parameters\\(\\) does not list",
        1,
    ),
    "no earned": (changed("earned", "earnd"), "must return an object with T earned", 1),
    "whole numbers": (changed("math::exp(a)", "math::exp(T(1 / 2) * a)"), "1 / 2 divides whole numbers", 6),
    "a branch": (changed("math::exp(a)", "a > T(0) ? a : T(0)"), "write math::select\\(condition, a, b\\)", 6),
    "an unknown policy": ({"normalizer": "\n  sofmax{}"}, "the normalizer sofmax is unknown: do you mean softmax", 2),
    "a trait": (
        changed(".reference = mass_reference::none", ".divide_by = divisor::one"),
        "normalizer_traits has no member divide_by: do you mean divided_by",
        3,
    ),
    "a syntax error": (changed("math::exp(a);", "math::exp(a)"), "the compiler refuses this: expected", 6),
}


@pytest.mark.compiles
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_policy_is_answered_with_the_line_of_the_text(name, tmp_path):
    parts, words, line = WRONG[name]
    with pytest.raises(attune.CompileError, match=words) as e:
        attune.compile(**parts, dtypes="float64", cache=tmp_path / "cache")
    text = str(e.value)
    assert text.startswith("attune: ")
    assert e.value.part == ("term 1" if "terms" in parts else "normalizer")
    assert e.value.line == line
    assert f", line {line}, column {e.value.column}:\n" in text
    if e.value.command:
        assert text.split("\n")[-1] == f"  repeat: {e.value.command}"


RECORDED = json.loads((pathlib.Path(__file__).parent / "compiler_messages.json").read_text())


@pytest.mark.parametrize("compiler, name", [(c, n) for c, messages in RECORDED.items() for n in messages])
def test_messages_of_both_compilers_are_understood(compiler, name):
    parts, words, line = WRONG[name]
    role, text = next(iter(parts.items()))
    label = "term 1" if role == "terms" else role
    dot = Part("kernel", "kernel", "dot_product{}", "kernel")
    wrong = Part("kernel" if role == "terms" else role, label, text[0] if role == "terms" else text, role)
    wrong.namespace = "kernel" if role == "terms" else role
    error = _diagnosis.error(RECORDED[compiler][name], [dot, wrong], "c++ operator.cpp")
    with pytest.raises(attune.CompileError, match=words):
        raise error
    assert (error.part, error.line) == (label, line)


def test_the_assertions_of_newer_compilers_are_understood():
    part = Part("normalizer", "normalizer", "\n" + NORMALIZER, "normalizer")
    log = (
        "attune/policies/diagnostics.hpp:228:15: fatal error: static assertion failed due to requirement "
        "'Earns<attune_own::part_0::mine>': attune: NormalizerPolicy: write earned\n"
        "attune/operators/attention.hpp:167:42: note: in instantiation of function template specialization "
        "'attune::detail::complete<attune_own::part_0::mine>' requested here\n"
    )
    error = _diagnosis.error(log, [part], "c++ x.cpp")
    assert str(error).startswith("attune: NormalizerPolicy: write earned\n  normalizer, line 2, column 1:\n")


def test_an_expression_in_place_of_cpp_is_recognized():
    part = Part("normalizer", "normalizer", "sigmoid(a)", "normalizer")
    error = _diagnosis.error("normalizer:1:9: error: 'a' was not declared in this scope\n", [part], "c++ x.cpp")
    assert "the name a is unknown. Give an expression of Python as attune.policy.normalizer(...)" in str(error)


def test_an_error_in_a_file_names_the_file():
    part = Part("normalizer", "own/mine.hpp", NORMALIZER, "normalizer", "normalizer")
    assert '#line 1 "normalizer"' in part.source("x") and "own" not in part.source("x").replace("attune_own", "")
    error = _diagnosis.error("normalizer:6:9: error: expected ;\n", [part], "c++ x.cpp")
    assert "\n  own/mine.hpp, line 6, column 9:\n" in str(error)


def test_other_failures_of_a_compiler_are_passed_on():
    error = _diagnosis.error("cc1plus: fatal error: cannot execute\ncompilation terminated.\n", [], "c++ x.cpp")
    assert "the compiler failed: cannot execute\n  repeat: c++ x.cpp" in str(error)
    assert "it printed nothing" in str(_diagnosis.error("", [], "c++ x.cpp"))
