# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""attune.compile: values, gradients, the cache, and what is said about wrong policies.

Tests with the mark `compiles` run a C++ compiler: -m "not compiles" leaves them out. The others use a program that
copies a file instead.
"""

import json
import math
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import attune
from attune import _diagnosis, _presets, masks, policy
from attune._sources import Part

compiles = pytest.mark.compiles
B, H, LQ, LK, D, DV = 1, 2, 3, 5, 4, 3
OFFSET = LK - LQ


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A folder for the operators of this file, so that each of them is compiled once per run."""
    return tmp_path_factory.mktemp("compiled", numbered=True)


def draw(**shapes):
    r = np.random.default_rng(7)
    return {name: r.normal(size=shape) for name, shape in shapes.items()}


def inputs(**more):
    return draw(q=(B, H, LQ, D), k=(B, H, LK, D), v=(B, H, LK, DV), **more)


def rows(visible):
    """For each batch element, head and query: its position and the keys that it sees."""
    for b in range(B):
        for h in range(H):
            for i in range(LQ):
                yield b, h, i, i + OFFSET, [j for j in range(LK) if visible(i + OFFSET, j)]


def causal(i, j):
    return j <= i


def everything(i, j):
    return True


def check_gradients(op, given, mask, parameters=(), step=1e-6):
    """Compares vjp with central differences, for every number of every input."""
    given = {**given, **{name: np.asarray(x, float) for name, x in parameters}}
    dout = np.random.default_rng(1).normal(size=(B, H, LQ, DV))

    def value(**changed):
        return float(np.sum(op(**{**given, **changed}, mask=mask) * dout))

    g = op.vjp(**given, mask=mask, dout=dout)
    by_last = {path.rsplit(".", 1)[-1]: x for path, x in g.items()}
    for name, x in given.items():
        exact = np.zeros_like(x)
        for at in np.ndindex(x.shape):
            up, down = x.copy(), x.copy()
            up[at] += step
            down[at] -= step
            exact[at] = (value(**{name: up}) - value(**{name: down})) / (2 * step)
        np.testing.assert_allclose(by_last[name], exact, rtol=1e-6, atol=1e-7, err_msg=name)
        assert np.abs(exact).max() > 1e-4, f"{name} has no influence"


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# --- values and gradients ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sigmoid_operator(cache):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTUNE_CACHE", str(cache))
        # [snippet: compile]
        hard = attune.policy.normalizer("sigmoid(a + bias - log_visible)", divided_by="one", parameters={"bias": 0.5})
        slow = attune.policy.term("-rate * log1p(abs(distance))", parameters={"rate": 0.25})
        op = attune.compile("dot_product{}", normalizer=hard, terms=[slow])
        # [/snippet]
    return op


@compiles
def test_a_normalizer_and_a_term_have_the_values_of_a_loop(sigmoid_operator):
    op, x, bias = sigmoid_operator, inputs(), np.array([0.25, -1.0])
    q, k, v = x.values()
    # [snippet: call]
    got = op(q, k, v, bias=bias, mask=masks.causal())  # bias: a number, (H), (H, Lq) or (B, H, Lq)
    # [/snippet]
    dout = np.ones_like(got)
    # [snippet: vjp]
    g = op.vjp(q, k, v, bias=bias, mask=masks.causal(), dout=dout)
    # [/snippet]
    assert g["normalizer.bias"].shape == (H,)
    out = np.zeros((B, H, LQ, DV))
    for b, h, i, position, keys in rows(causal):
        for j in keys:
            s = x["q"][b, h, i] @ x["k"][b, h, j] / np.sqrt(D) - 0.25 * np.log1p(abs(position - j))
            out[b, h, i] += sigmoid(s + bias[h] - np.log(len(keys))) * x["v"][b, h, j]
    np.testing.assert_allclose(got, out, rtol=1e-13, atol=1e-14)
    assert op.parameters["normalizer.bias"] == 0.5 and 0.25 in op.parameters.values()
    assert op.outputs == ("out",)


@compiles
def test_a_normalizer_and_a_term_have_their_gradients(sigmoid_operator):
    check_gradients(sigmoid_operator, inputs(), masks.causal(), [("bias", [0.25, -1.0]), ("rate", 0.3)])


@pytest.fixture(scope="module")
def all_roles(cache):
    return attune.compile(
        policy.kernel(
            ["dot", "scalar_difference"],
            "inverse_sqrt_width * dot - slope * scalar_difference ** 2",
            parameters={"slope": 0.5},
        ),
        map=policy.score_map("cap * tanh(score / cap)", parameters={"cap": 2.0}, domains={"cap": "positive"}),
        length_scale=policy.length_scale(
            "scale_keeping_off(1 + growth * log_visible, score)", parameters={"growth": 0.3}
        ),
        gate=policy.gate("score + strength * softplus(gate_dot)", parameters={"strength": 0.7}),
        normalizer=policy.normalizer("exp_nonpositive(a - m)"),
        weight_gate=policy.weight_gate("exp(-decay * abs(distance))", parameters={"decay": 0.2}),
        value_gate=policy.value_gate("sigmoid(x)"),
        output_gate=policy.output_gate("1 + x / 2"),
        dtypes="float64",
        cache=cache,
    )


ROLES = {
    "sort_q": (B, H, LQ, 1),
    "sort_k": (B, H, LK, 1),
    "gate_q": (B, H, LQ, 2),
    "gate_k": (B, H, LK, 2),
    "value_gate": (B, H, LK, DV),
    "output_gate": (B, H, LQ, DV),
}
ROLE_PARAMETERS = [("slope", 0.4), ("cap", 1.5), ("growth", 0.6), ("strength", 0.9), ("decay", 0.3)]


@compiles
def test_a_policy_of_every_role_has_the_values_of_a_loop(all_roles):
    x, p = inputs(**ROLES), dict(ROLE_PARAMETERS)
    out = np.zeros((B, H, LQ, DV))
    lse = np.zeros((B, H, LQ))
    for b, h, i, position, keys in rows(everything):
        difference = x["sort_q"][b, h, i, 0] - x["sort_k"][b, h, keys, 0]
        s = x["k"][b, h, keys] @ x["q"][b, h, i] / np.sqrt(D) - p["slope"] * difference**2
        s = p["cap"] * np.tanh(s / p["cap"]) * (1 + p["growth"] * np.log(len(keys)))
        s = s + p["strength"] * np.log1p(np.exp(x["gate_k"][b, h, keys] @ x["gate_q"][b, h, i]))
        lse[b, h, i] = np.log(np.sum(np.exp(s)))
        w = np.exp(s - lse[b, h, i]) * np.exp(-p["decay"] * abs(position - np.array(keys)))
        out[b, h, i] = w @ (x["v"][b, h, keys] * sigmoid(x["value_gate"][b, h, keys]))
        out[b, h, i] *= 1 + x["output_gate"][b, h, i] / 2
    got = all_roles(**x, **p, returns=("out", "lse"))
    np.testing.assert_allclose(got[0], out, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(got[1], lse, rtol=1e-13, atol=1e-14)


@compiles
def test_a_policy_of_every_role_has_its_gradients(all_roles):
    check_gradients(all_roles, inputs(**ROLES), masks.full(), ROLE_PARAMETERS)


@compiles
def test_only_the_types_that_are_named_are_compiled(all_roles):
    x = {name: a.astype(np.float32) for name, a in inputs(**ROLES).items()}
    with pytest.raises(attune.Error, match="float32; expected float64"):
        all_roles(**x)


@compiles
def test_a_parameter_is_checked_by_its_domain(all_roles):
    with pytest.raises(attune.Error, match="cap"):
        all_roles(**inputs(**ROLES), cap=-1.0)


CPP = """
// Weights softplus(a + shift), not divided by their sum but by 1 + sum.
struct shifted {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{
      .divided_by = divisor::one, .reference = mass_reference::none, .weight_factor = true};
  parameter shift = 0.5;
  static constexpr auto parameters() { return std::array{listed("shift", &shifted::shift)}; }
  template <class T>
  struct bound {
    T shift;
    T earned(T const& a, T const&) const { return math::softplus(T(a + shift)); }
    T weight_factor(T const& earned, T const&) const { return T(1) / (T(1) + earned); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r(shift) + r.logit_shift};
  }
};
"""


@compiles
def test_a_policy_in_cpp_has_values_and_gradients(cache, tmp_path):
    file = tmp_path / "shifted.hpp"
    file.write_text("#include <cmath>\n" + CPP)
    # [snippet: text]
    op = attune.compile("dot_product{} + alibi{0.25}", normalizer=pathlib.Path(file), dtypes="float64", cache=cache)
    # [/snippet]
    x = inputs()
    out = np.zeros((B, H, LQ, DV))
    for b, h, i, position, keys in rows(causal):
        s = x["k"][b, h, keys] @ x["q"][b, h, i] / np.sqrt(D) - 0.25 * (position - np.array(keys))
        earned = np.log1p(np.exp(s - 0.3))
        out[b, h, i] = earned @ x["v"][b, h, keys] / (1 + earned.sum())
    np.testing.assert_allclose(op(**x, shift=-0.3, mask=masks.causal()), out, rtol=1e-13, atol=1e-14)
    check_gradients(op, x, masks.causal(), [("shift", [0.2, -0.1]), ("slope", 0.4)])


# [snippet: operator]
OPERATOR = """
struct squared_relu {
  template <class T>
  static T map(T const& a) {
    T const positive = math::larger(a, T(0));
    return positive * positive;
  }
};
attention(kernel::dot_product{open} + kernel::alibi{c("start", 0.25)},
          normalizer::generic<squared_relu, divisor::count>{}, m)
"""
# [/snippet]


@compiles
def test_an_expression_of_an_operator_has_parameters_and_constants(cache):
    op = attune.compile_operator(OPERATOR, dtypes="float64", cache=cache)
    assert op.constants == {"start": 0.25}
    x = inputs()
    for start in (0.25, 0.75):
        out = np.zeros((B, H, LQ, DV))
        for b, h, i, position, keys in rows(causal):
            s = 0.9 * x["k"][b, h, keys] @ x["q"][b, h, i] - start * (position - np.array(keys))
            out[b, h, i] = np.maximum(s, 0) ** 2 / len(keys) @ x["v"][b, h, keys]
        got = op(**x, scale=0.9, mask=masks.causal(), **({} if start == 0.25 else {"start": start}))
        np.testing.assert_allclose(got, out, rtol=1e-13, atol=1e-14)


# --- wrong policies ---------------------------------------------------------------------------------------------------

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


@compiles
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_policy_is_answered_with_the_line_of_the_text(name, cache):
    parts, words, line = WRONG[name]
    with pytest.raises(attune.CompileError, match=words) as e:
        attune.compile(**parts, dtypes="float64", cache=cache)
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


# --- the cache, with a program that copies a file in place of a compiler ----------------------------------------------


@pytest.fixture
def copier(tmp_path):
    """A command that behaves as a compiler, and a function that says how often it ran."""
    count, script = tmp_path / "count", tmp_path / "copier"
    library = _presets.library().path
    script.write_text(
        textwrap.dedent(
            f"""\
            #!/bin/sh
            case "$*" in *--version) echo copier 1.0; exit;; esac
            echo ran >> {count}
            sleep 0.3
            while [ "$1" != -o ]; do shift; done
            cp {library} "$2"
            """
        )
    )
    script.chmod(0o755)
    return str(script), lambda: count.read_text().count("ran") if count.exists() else 0


@pytest.fixture
def one_operator(monkeypatch):
    """Takes the first operator of a library that has several."""
    monkeypatch.setattr(attune._compile, "_load", load_first)


def load_first(path):
    return next(iter(attune._abi.Library(path).operators.values()))


@pytest.fixture
def own(tmp_path, copier, one_operator):
    """Compiles with the copier into a new folder."""
    folder = tmp_path / "cache"

    def run(text="dot_product{}", **options):
        attune._compile._loaded.clear()
        return attune.compile(text, **{"compiler": copier[0], "cache": folder, **options})

    run.folder, run.count = folder, copier[1]
    return run


def libraries(folder):
    return sorted(folder.glob("*.so"))


def test_the_second_time_comes_from_the_cache(own):
    first = own()
    assert own.count() == 1 and stat.S_IMODE(own.folder.stat().st_mode) == 0o700
    assert own().name == first.name and own.count() == 1
    options = {"compiler": own_compiler(own), "cache": own.folder}
    assert attune.compile("dot_product{}", **options) is attune.compile("dot_product{}", **options)


def own_compiler(own):
    return str(own.folder.parent / "copier")


def test_the_key_has_everything_that_the_code_depends_on(own, tmp_path, monkeypatch):
    own()
    own("dot_product{} + alibi{0.5}")
    own(dtypes="float64")
    own(compiler=f"{own_compiler(own)} -O1")
    assert own.count() == 4
    headers = tmp_path / "headers"
    shutil.copytree(pathlib.Path(attune.get_include()) / "attune", headers / "attune")
    monkeypatch.setattr(attune._compile, "get_include", lambda: str(headers))
    own()
    assert own.count() == 4, "the content of the headers is the same"
    with open(headers / "attune" / "config.hpp", "a") as f:
        f.write("// changed\n")
    attune._cache._headers.clear()
    own()
    assert own.count() == 5
    monkeypatch.setattr(attune._cache, "_processor", "another one")
    own()
    assert own.count() == 6
    text = pathlib.Path(own_compiler(own)).read_text()
    pathlib.Path(own_compiler(own)).write_text(text.replace("1.0", "2.0.0"))
    own()
    assert own.count() == 7
    assert len(libraries(own.folder)) == 7


def test_installed_headers_are_looked_at_by_one_of_them(tmp_path):
    root, folder = tmp_path / "include", attune._cache.folder(tmp_path / "cache")
    shutil.copytree(pathlib.Path(attune.get_include()) / "attune", root / "attune")

    def look(installed):
        attune._cache._headers.clear()
        return attune._cache.headers(folder, str(root), installed)

    before = look(True)
    assert before == look(False)
    (root / "attune" / "config.hpp").write_text("// changed\n")
    assert look(True) == before != look(False)
    version = root / "attune" / "version.hpp"
    version.write_text(version.read_text())
    assert look(True) == look(False) != before


@pytest.mark.parametrize("damage", ["empty", "short", "changed", "no hash"])
def test_a_damaged_library_is_compiled_again(own, damage):
    own()
    (path,) = libraries(own.folder)
    data = bytearray(path.read_bytes())
    if damage == "changed":
        data[len(data) // 2] ^= 1
    made = path.with_suffix(".damaged")
    made.write_bytes({"empty": b"", "short": data[:-5000], "changed": data, "no hash": data[:-79]}[damage])
    os.replace(made, path)
    own()
    assert own.count() == 2
    own()
    assert own.count() == 2


def test_of_several_processes_one_compiles(own, copier):
    script = (
        "import sys, attune\n"
        "sys.path.insert(0, sys.argv[3])\n"
        "from test_compile import load_first\n"
        "attune._compile._load = load_first\n"
        "print(attune.compile('dot_product{}', compiler=sys.argv[1], cache=sys.argv[2]).name)\n"
    )
    tests = str(pathlib.Path(__file__).parent)
    command = [sys.executable, "-c", script, copier[0], str(own.folder), tests]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    names = [p.communicate(timeout=120)[0] for p in processes]
    assert [p.returncode for p in processes] == [0, 0, 0] and len(set(names)) == 1 and names[0]
    assert own.count() == 1
    assert not list(own.folder.glob("*.part"))


def test_nothing_is_compiled_if_that_is_forbidden(own, monkeypatch):
    monkeypatch.setenv("ATTUNE_NO_COMPILE", "1")
    with pytest.raises(attune.CompileError, match="does not have this operator, and ATTUNE_NO_COMPILE is set"):
        own()
    monkeypatch.setenv("ATTUNE_NO_COMPILE", "0")
    own()
    monkeypatch.setenv("ATTUNE_NO_COMPILE", "1")
    own()
    own(compiler="/no/such/compiler")
    assert own.count() == 1


def test_without_a_compiler_the_cache_is_enough(own, monkeypatch):
    own()
    own(compiler="/no/such/compiler")
    with pytest.raises(attune.CompileError, match="there is no /no/such/compiler"):
        own("dot_product{} + alibi{0.5}", compiler="/no/such/compiler")
    monkeypatch.setenv("ATTUNE_CXX", "/no/such/thing")
    with pytest.raises(attune.CompileError, match="there is no /no/such/thing"):
        own("dot_product{} + alibi{0.5}", compiler=None)


def test_variables_choose_the_compiler_and_the_folder(own, monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", "/no/such/thing")
    monkeypatch.setenv("ATTUNE_CXX", own_compiler(own))
    monkeypatch.setenv("ATTUNE_CACHE", str(tmp_path / "other" / "folder"))
    own(compiler=None, cache=None)
    assert own.count() == 1 and libraries(tmp_path / "other" / "folder")
    monkeypatch.delenv("ATTUNE_CXX")
    monkeypatch.setenv("CXX", own_compiler(own))
    own(compiler=None, cache=None)
    assert own.count() == 1


def test_a_folder_of_others_is_refused(own, monkeypatch, tmp_path):
    own.folder.mkdir(mode=0o700)
    for mode in (0o770, 0o707, 0o722):
        own.folder.chmod(mode)
        with pytest.raises(attune.CompileError, match=f"other users may write.*chmod 700 {own.folder}"):
            own()
    own.folder.chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: own.folder.stat().st_uid + 1)
    with pytest.raises(attune.CompileError, match="belongs to user .*set ATTUNE_CACHE"):
        own()
    monkeypatch.undo()
    (tmp_path / "file").write_text("")
    with pytest.raises(attune.CompileError, match="is no folder"):
        own(cache=tmp_path / "file")
    with pytest.raises(attune.CompileError, match="cannot be made"):
        own(cache=tmp_path / "file" / "below")
    assert own.count() == 0


def test_loading_takes_a_few_milliseconds(own, monkeypatch):
    """At most 10 for the library of one operator. This library has several, and machines that run tests are busy."""
    own()

    def never(*_, **__):
        raise AssertionError("headers are listed once per process, and the compiler is asked once")

    monkeypatch.setattr(attune._cache, "_files", never)
    monkeypatch.setattr(subprocess, "run", never)
    times = []
    for _ in range(9):
        attune._compile._loaded.clear()
        start = time.process_time()
        attune.compile("dot_product{}", compiler=own_compiler(own), cache=own.folder)
        times.append(time.process_time() - start)
    print(f"{min(times) * 1e3:.1f} ms")
    assert min(times) < 0.03


def test_a_failed_compilation_leaves_its_source_and_nothing_else(own, tmp_path):
    failing = tmp_path / "failing"
    script = '#!/bin/sh\n[ "$1" = --version ] && exit 0\necho "cc1plus: fatal error: no memory" >&2\nexit 1\n'
    failing.write_text(script)
    failing.chmod(0o755)
    with pytest.raises(attune.CompileError, match="the compiler failed: no memory") as e:
        own(compiler=str(failing))
    assert not libraries(own.folder) and not list(own.folder.glob("*.part"))
    (source,) = own.folder.glob("*.cpp")
    assert e.value.command.endswith(str(source)) and "fatal error: no memory" in e.value.log


@pytest.mark.compiles
def test_a_formula_of_a_paper(cache):
    """docs/tutorial/from_a_paper.md: Mega's attention by the Laplace function."""
    # [snippet: paper]
    op = attune.compile(
        "dot_product{1}",
        length_scale=attune.policy.length_scale("scale_keeping_off(1 / maximum(visible, 1), score)"),
        normalizer=attune.policy.normalizer(
            "(1 + erf((a - mu) / (sigma * sqrt(2)))) / 2",
            divided_by="one",
            parameters={"mu": 0.5**0.5, "sigma": (0.25 / math.pi) ** 0.5},
            domains={"sigma": "positive"},
        ),
        dtypes="float64",
        cache=cache,
    )
    # [/snippet]
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((1, 2, 6, 4)) for _ in range(3))
    out = op(q, k, v, mask=masks.causal(), sigma=0.4)
    for h, i in np.ndindex(2, 6):
        x = k[0, h, : i + 1] @ q[0, h, i] / (i + 1)
        w = [0.5 * (1 + math.erf((s - 0.5**0.5) / (0.4 * 2**0.5))) for s in x]
        np.testing.assert_allclose(out[0, h, i], w @ v[0, h, : i + 1], rtol=1e-12, atol=1e-14)
