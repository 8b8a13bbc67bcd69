# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The character model trains: five steps of each operator have the losses of the same formula in PyTorch."""

import pathlib
import runpy
import types

import pytest

import attune

pytest.importorskip("torch")
pytestmark = pytest.mark.compiles  # differential attention

_PROGRAM = pathlib.Path(__file__).parents[1] / "examples" / "character_model.py"


def test_character_model():
    model = types.SimpleNamespace(**runpy.run_path(str(_PROGRAM)))
    names = [name for name in model.OPERATORS if name == "differential" or name in attune.presets(built=True)]
    runs, others = model.train(names, 5, 5, length=48, batch=2)
    assert {run.name for run in runs} == set(names) and len(others) >= len(names)
    for run in others:
        fused = next(x for x in runs if x.name == run.name)
        assert run.losses == pytest.approx(fused.losses, abs=1e-4)
        assert fused.losses[-1] < fused.losses[0]
