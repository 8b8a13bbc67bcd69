# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The training study: five steps reproduce numbers of docs/lab/training.jsonl, and docs/lab/training.md has its tables."""

import pathlib
import sys

import pytest

import attune

pytest.importorskip("torch")

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))

from training import page, runs  # noqa: E402
from training.model import ROWS  # noqa: E402

LINES = runs.read(ROOT / "docs/lab/training.jsonl")


def committed(row, text, steps):
    return next(x for x in LINES if (x["row"], x.get("text"), x.get("steps"), x["seed"]) == (row, text, steps, 1))


def numbers(x):
    """All numbers of nested lists and dictionaries."""
    parts = x.values() if isinstance(x, dict) else x if isinstance(x, list) else ()
    return [n for part in parts for n in numbers(part)] if isinstance(x, (dict, list)) else [x]


def skip_unless_built(row):
    if ROWS[row][0].preset not in attune.presets(built=True):
        pytest.skip(f"{ROWS[row][0].preset} is not built")


@pytest.mark.parametrize("row", ["softmax", "sink", "entmax15", "principled"])
def test_five_steps_reproduce_a_row(row):
    skip_unless_built(row)
    expected = committed(row, "alice", 5)
    found = runs.run(row, 1, runs.Data("alice"), 5)
    assert found.keys() == expected.keys() and found["parameters"] == expected["parameters"]
    for name in ("first", "curve", "validation", "layers", "lengths", "learned", "scores"):
        assert numbers(found[name]) == pytest.approx(numbers(expected[name]), rel=6e-4, abs=2e-4), name
    assert found["first"][-1] < found["first"][0]


@pytest.mark.parametrize("row", ["softmax", "sink", "entmax15", "principled"])
def test_the_study_starts_as_it_did(row):
    skip_unless_built(row)
    expected, data = committed(row, "topics", runs.STEPS), runs.Data("topics")
    if data.hash != expected["hash"]:
        pytest.skip("pydoc_data.topics of this Python has another text")
    training = runs.Training(row, 1, data, runs.STEPS)
    assert [training.take()[0] for _ in range(runs.FIRST)] == pytest.approx(expected["first"], abs=1e-4)


def test_all_operators_start_from_the_same_weights():
    models = [runs.model_of(row, 1, 50).state_dict() for row in ("softmax", "principled", "hybrid")]
    for name, x in models[0].items():
        assert all((x == other[name]).all() for other in models[1:]), name


def test_the_page_has_the_tables_of_the_results():
    text = page.PAGE.read_text()
    for mark, block in page.blocks(page.Study(LINES)).items():
        assert f"<!-- {mark}: written by scripts/training -->\n{block}\n<!-- /{mark} -->" in text, mark


def test_the_order_of_runs():
    order = runs.order(list(ROWS))
    assert len(order) == sum(seeds for _, seeds in ROWS.values()) == len(set(order))
    assert order[: len(ROWS)] == [(row, 1) for row in ROWS]
    most = [row for row, (_, seeds) in ROWS.items() if seeds == 5]
    assert {"softmax", "sink", "entmax15", "principled"} <= {*most}
    assert order[len(ROWS) : len(ROWS) + len(most) + 1] == [*((row, 2) for row in most), ("softmax", 3)]
    assert runs.order(["gate", "sink"], 2) == [("gate", 1), ("sink", 1), ("sink", 2), ("gate", 2)]


def test_intervals():
    assert page.interval([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx((3.0, 2.776 * 1.5811388 / 5**0.5))
    assert page.shown([1.0, 2.0], 1) == "1.0, 2.0" and page.shown([0.5], 1, "+") == "+0.5"
