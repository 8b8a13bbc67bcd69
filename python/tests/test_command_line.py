# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""python -m attune: what it writes and prints, and what it refuses."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import attune
from attune import masks
from attune.__main__ import _axes, main

H, LQ, LK, D, DV = 2, 4, 6, 3, 5


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Inputs in the current folder, and as arrays with four axes."""
    monkeypatch.chdir(tmp_path)
    r = np.random.default_rng(3)
    shapes = {"q": (H, LQ, D), "k": (H, LK, D), "v": (H, LK, DV), "dout": (H, LQ, DV), "dlse": (H, LQ)}
    x = {name: r.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    x["ids"] = np.array([0, 0, 1, 1, 1, 2])
    x["seen"] = r.random((LQ, LK)) < 0.7
    for name, a in x.items():
        np.save(f"{name}.npy", a)
    np.savez("some.npz", q=x["q"], other=x["k"])
    np.savez("one.npz", alone=x["v"])
    return {name: a[None] if name in shapes else a for name, a in x.items()}


_CALL = ["q=q.npy", "k=k.npy", "v=v.npy"]


def run(*words):
    return main(["run", *words])


def refused(capsys, words, status, *texts):
    assert main(words.split()) == status, words
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("attune"), captured.err
    for text in texts:
        assert text in captured.err, captured.err


def test_run_has_the_numbers_of_a_call(files, capsys):
    assert run("softmax", *_CALL, "mask=causal", "lse=l.npy", "out=o.npy") == 0
    out, lse = attune.op("softmax")(files["q"], files["k"], files["v"], mask=masks.causal(), returns=("out", "lse"))
    assert np.array_equal(np.load("o.npy"), out) and np.array_equal(np.load("l.npy"), lse)
    assert capsys.readouterr().out == "l.npy: float32 (1, 2, 4)\no.npy: float32 (1, 2, 4, 5)\n"


@pytest.mark.parametrize(
    "text, mask",
    [
        ("window=1:2", masks.window(1, 2)),
        ("window=-1:0", masks.causal()),
        ("prefix=3", masks.prefix(3)),
        ("sink_window=1:2", masks.sink_window(1, 2)),
        ("padding=5", masks.padding([5])),
    ],
)
def test_masks_by_numbers(files, text, mask):
    assert run("softmax", *_CALL, f"mask={text}", "out=o.npy", "threads=1") == 0
    assert np.array_equal(np.load("o.npy"), attune.op("softmax")(files["q"], files["k"], files["v"], mask=mask))


def test_masks_of_files_and_their_intersection(files):
    q, k, v = files["q"], files["k"], files["v"]
    np.save("lengths.npy", np.array([4]))
    assert run("softmax", "q=k.npy", "k=k.npy", "v=v.npy", "mask=documents=ids.npy", "mask=causal", "out=o.npy") == 0
    assert np.array_equal(np.load("o.npy"), attune.op("softmax")(k, k, v, mask=masks.documents(files["ids"]) & masks.causal()))
    assert run("softmax", *_CALL, "mask=visible=seen.npy", "mask=padding=lengths.npy", "out=o.npy") == 0
    expected = attune.op("softmax")(q, k, v, mask=masks.visible(files["seen"]) & masks.padding([4]))
    assert np.array_equal(np.load("o.npy"), expected)


def test_parameters_constants_and_archives(files):
    q, k, v = files["q"], files["k"], files["v"]
    np.save("logit.npy", np.linspace(-1, 1, H * LQ).reshape(H, LQ))
    for text, logit in (("0.5", 0.5), ("-inf", -np.inf), ("0.5,-1", np.array([0.5, -1.0])), ("logit.npy", np.load("logit.npy"))):
        assert run("sink", "q=some.npz", "k=some.npz:other.npy", "v=one.npz", f"logit={text}", "offset=1", "mask=causal", "out=o.npy") == 0
        expected = attune.op("sink")(q, k, v, logit=logit, offset=1, mask=masks.causal())
        assert np.array_equal(np.load("o.npy"), expected), text


def test_missing_axes_and_layouts(files):
    r, x = np.random.default_rng(5), (files["q"], files["k"], files["v"])
    gates = {name: r.standard_normal((length, 2)).astype(np.float32) for name, length in (("gate_q", LQ), ("gate_k", LK))}
    for name, a in zip(("q1", "k1", "v1"), x):
        np.save(f"{name}.npy", a[0, 0])
    for name, a in gates.items():
        np.save(f"{name}.npy", a)
    words = ["q=q1.npy", "k=k1.npy", "v=v1.npy", "gate_q=gate_q.npy", "gate_k=gate_k.npy", "alpha=0.25"]
    assert run("principled", *words, "out=o.npy") == 0
    one_head = (a[:, :1] for a in x)
    expected = attune.op("principled")(*one_head, **{name: a[None, None] for name, a in gates.items()}, alpha=0.25)
    assert np.array_equal(np.load("o.npy"), expected)
    for name, a in zip("qkv", x):
        np.save(f"t{name}.npy", a.transpose(0, 2, 1, 3))
    assert run("softmax", "q=tq.npy", "k=tk.npy", "v=tv.npy", "layout=blhd", "out=o.npy") == 0
    assert np.array_equal(np.load("o.npy").transpose(0, 2, 1, 3), attune.op("softmax")(*x))


@pytest.mark.parametrize(
    "shape, side, narrow, expected",
    [
        ((3,), "key", True, (1, 1, 3)),
        ((2, 3), "key", True, (1, 2, 3)),
        ((1, 2, 3, 1), "key", True, (1, 2, 3, 1)),
        ((3, 4), "query", False, (1, 1, 3, 4)),
        ((5, 6), "pair", False, (5, 6)),
        ((2, 4), "ground", False, (2, 4)),
    ],
)
def test_axes(shape, side, narrow, expected):
    assert _axes(np.zeros(shape), side, narrow).shape == expected


def test_vjp_has_the_gradients_of_a_call(files, capsys):
    words = ["vjp", "sink", *_CALL, "logit=0.5,-1", "dout=dout.npy", "dlse=dlse.npy", "out=g.npz"]
    assert main(words) == 0
    given = {name: files[name] for name in ("q", "k", "v", "dout", "dlse")}
    expected = attune.op("sink").vjp(**given, logit=np.array([0.5, -1.0]))
    found = np.load("g.npz")
    assert set(found.files) == set(expected)
    for name, x in expected.items():
        assert np.array_equal(found[name], x), name
    assert "g.npz:normalizer.logit: float32 (2,)\n" in capsys.readouterr().out
    assert main([*words, "wanted=q,logit"]) == 0
    assert set(np.load("g.npz").files) == {"q", "normalizer.logit"}


def test_what_the_package_says(capsys):
    def said(*words):
        assert main(list(words)) == 0
        return capsys.readouterr().out

    assert said("presets").split() == attune.presets()
    assert said("version") == attune.__version__ + "\n" and said("include") == attune.get_include() + "\n"
    assert said("--help") == said("run", "softmax", "-h") and "NAME=VALUE" in said("-h")
    assert said("show", "principled") == (
        "principled\n"
        "  inputs      q, k, v, gate_q, gate_k, v0 (optional)\n"
        "  parameters  kernel.scale: computed from the call, length_scale.alpha = 0, length_scale.gamma = 0, "
        "gate.beta = 0, normalizer.gamma = 0\n"
        "  outputs     out, lse, ground_weight\n"
        "  types       float32, float64, bfloat16, float16\n"
    )
    assert "normalizer.logit: required" in said("show", "sink")


def test_usage_is_status_2(files, capsys):
    call = " ".join(_CALL)
    for words, *texts in (
        ("", "no command", "run, vjp, show"),
        ("runn softmax", "'runn'"),
        ("version now", "version takes no arguments, but got 'now'"),
        ("show softmax q", "nothing else, not 'q'"),
        ("run", "run has no preset", "principled"),
        ("run q=q.npy", "run has no preset"),
        ("run softmix", "run has the preset 'softmix'; expected one of attune.presets()", "Did you mean softmax?"),
        (f"run softmax {call}", "no output; expected out=FILE.npy", "lse"),
        (f"run softmax {call} out=o.npz", "out has the value 'o.npz'", ".npy"),
        (f"run softmax {call} out=o.npy lse=./o.npy", "lse has the value './o.npy'", "of its own"),
        (f"run softmax {call} q=k.npy out=o.npy", "q is given twice"),
        (f"run softmax {call} logit=1 out=o.npy", "softmax has no argument 'logit'", "scale"),
        (f"run softmax {call} ground_weight=o.npy", "softmax has no argument 'ground_weight'"),
        (f"run softmax {call} causal out=o.npy", "the argument 'causal'; expected NAME=VALUE"),
        (f"run softmax {call} mask= out=o.npy", "'mask='"),
        (f"run softmax {call} mask=causl out=o.npy", "mask has the value 'causl'", "window=..."),
        (f"run softmax {call} mask=window out=o.npy", "mask has the value 'window'"),
        (f"run softmax {call} mask=window=x:0 out=o.npy", "mask=window has the value 'x'; expected a whole number"),
        (f"run softmax {call} mask=window=1 out=o.npy", "expected window=LEFT:RIGHT"),
        (f"run softmax {call} mask=causal_window=9 out=o.npy", "expected window=8:0, which are 9 keys"),
        (f"run softmax {call} mask=sink_window=4 out=o.npy", "sink_window=SINKS:WIDTH"),
        (f"run softmax {call} offset=1.5 out=o.npy", "offset has the value '1.5'"),
        (f"vjp softmax {call} dout=dout.npy", "no output; expected out=FILE.npz"),
        (f"vjp softmax {call} dout=dout.npy out=g.npy", "out has the value 'g.npy'", ".npz"),
        (f"vjp softmax {call} out=g.npz", "expected dout=FILE.npy", "dlse"),
        (f"vjp softmax {call} dout=dout.npy dground_weight=x.npy out=g.npz", "no argument 'dground_weight'"),
    ):
        refused(capsys, words, 2, *texts)


def test_a_refusal_is_status_1_and_writes_nothing(files, capsys, tmp_path):
    np.save("whole.npy", np.ones((1, H, LQ, D), np.int32))
    np.save("objects.npy", np.array([None]), allow_pickle=True)
    (tmp_path / "text.npy").write_text("no array")
    before = sorted(tmp_path.iterdir())
    for words, *texts in (
        ("q=none.npy k=k.npy v=v.npy", "q: none.npy cannot be read: No such file"),
        ("q=text.npy k=k.npy v=v.npy", "q: text.npy is no array of NumPy"),
        ("q=objects.npy k=k.npy v=v.npy", "q: objects.npy is no array of NumPy"),
        ("q=some.npz:r k=k.npy v=v.npy", "q is some.npz:r, which has no r; expected one of q, other"),
        ("q=q.npy k=some.npz v=v.npy", "k is some.npz, which has no k"),
        ("q=whole.npy k=k.npy v=v.npy", "q has the type int32; expected float32"),
        ("q=q.npy k=k.npy", "v has no value"),
        ("q=q.npy k=v.npy v=v.npy", "k has", "5"),
        ("q=q.npy k=k.npy v=v.npy mask=prefix=-1", "length has the value -1"),
        ("q=q.npy k=k.npy v=v.npy mask=window=-2:0", "left"),
        ("q=q.npy k=k.npy v=v.npy scale=1,2,3", "scale"),
        ("q=q.npy k=k.npy v=v.npy layout=hbld", "layout has the value 'hbld'"),
    ):
        refused(capsys, f"run softmax {words} out=o.npy", 1, *texts)
    refused(capsys, f"run softmax {' '.join(_CALL)} out=none/o.npy", 1, "out: none/o.npy cannot be written: No such file")
    refused(capsys, f"vjp softmax {' '.join(_CALL)} dout=dout.npy wanted=r out=g.npz", 1, "wanted has the name 'r'")
    assert sorted(tmp_path.iterdir()) == before


def test_a_preset_that_cannot_be_compiled(files, capsys, monkeypatch):
    others = sorted(set(attune.presets()) - set(attune.presets(built=True)))
    if "l2" not in others:
        pytest.skip("all presets are built")
    monkeypatch.setenv("ATTUNE_NO_COMPILE", "1")
    monkeypatch.setenv("ATTUNE_CACHE", "cache")
    refused(capsys, f"run l2 {' '.join(_CALL)} out=o.npy", 1, "built without the preset l2", "ATTUNE_PYTHON_PRESETS=all pip install")
    assert main(["show", "l2"]) == 0 and capsys.readouterr().out.startswith("l2\n  inputs      q, k, v\n")


def test_as_a_program(files):
    def program(*more):
        words = [sys.executable, "-m", "attune", "run", "softmax", *_CALL, "out=o.npy", *more]
        environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(attune.__file__).parents[1])}
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    assert program() == (0, "o.npy: float32 (1, 2, 4, 5)\n", "")
    status, out, error = program("mask=all")
    assert (status, out) == (2, "") and error.startswith("attune: mask has the value 'all'")


def test_verdict_and_probes_are_the_program_of_the_wheel(tmp_path, monkeypatch, capsys):
    """All words go to the program, --help as well, and its status comes back."""
    program = tmp_path / "attune"
    monkeypatch.setattr("attune.__main__._PROGRAM", program)
    refused(capsys, "verdict softmax --out o.npy", 1, "built without the program of verdict", "ATTUNE_PYTHON_VERDICTS=ON", "attune.verdict")
    program.write_text('#!/bin/sh\necho "$@" >"$(dirname "$0")/words"\nexit 3\n')
    program.chmod(0o700)
    assert main(["verdict", "softmax", "--out", "a b.npy", "--help"]) == 3
    assert (tmp_path / "words").read_text() == "verdict softmax --out a b.npy --help\n"
    assert main(["probes", "judge", "pack"]) == 3
