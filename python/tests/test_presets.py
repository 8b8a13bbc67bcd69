# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Every preset: a parameter without a value is an error unless the operator computes it."""

import inspect
import re

import numpy as np
import pytest

import attune
from attune.__main__ import main

#: Parameters that a policy computes from the call, by the ends of their paths: 1/sqrt(D), and -log K.
COMPUTED = {"scale": None, "bias": "sigmoid"}
#: Parameters that the caller sets.
REQUIRED = {
    "affine_gated": {"normalizer.alpha", "normalizer.average"},
    "affine_gated_total": {"normalizer.alpha", "normalizer.average"},
    "affine_scaled": {"normalizer.alpha", "normalizer.average"},
    "affine_scaled_total": {"normalizer.alpha", "normalizer.average"},
    "alibi": {"kernel.1.slope"},
    "entmax": {"normalizer.alpha"},
    "gaussian": {"kernel.tau"},
    "goat": {"kernel.0.tau"},
    "goat_fourier": {"kernel.0.0.tau"},
    "hybrid": {"kernel.1.tau"},
    "inverse_distance": {"kernel.eps"},
    "log_n": {"length_scale.training_length"},
    "margin": {"length_scale.alpha", "length_scale.gamma"},
    "rbf": {"kernel.tau"},
    "scalar_laplacian": {"kernel.tau"},
    "scalar_sort": {"kernel.tau"},
    "scaled_rbf": {"kernel.gamma"},
    "sink": {"normalizer.logit"},
    "smca": {"kernel.1.beta"},
    "softcap": {"kernel.map.cap"},
    "two_sided": {"gate.beta"},
    "yarn": {"length_scale.extension"},
}


def arguments(op):
    """Arrays of one query and one key for every input and table, and numbers for the parameters without a default."""
    d = op._description
    given = {name: np.ones((1, 1, 1, 1), np.float32) for name in d.fields}
    given.update({path: np.ones((1, 1, 1, 1), np.float32) for path in op.tables})
    return {**given, **dict.fromkeys(op.required, 2.0)}


@pytest.mark.parametrize("name", attune.presets())
def test_a_parameter_has_a_number_or_is_computed_or_required(name, capsys):
    op = attune.op(name)
    assert set(op.required) == REQUIRED.get(name, set())
    for path, number in op.parameters.items():
        last = path.rpartition(".")[2]
        computed = last in COMPUTED and COMPUTED[last] in (None, name)
        assert number is not None or computed or path in op.required, path
    main(["show", name])
    shown = capsys.readouterr().out
    for path in op.required:
        assert f"{path}: required" in shown
        if name not in attune.presets(built=True):
            continue
        given = arguments(op)
        del given[path]
        for call in (lambda: op(**given), lambda: op.vjp(**given, dout=given["v"])):
            with pytest.raises(attune.Error, match=f"attune: {path} has no value; expected a number or a tensor"):
                call()


def test_a_preset_says_what_it_takes():
    text = attune.op("principled").__doc__
    assert "gate_q (B, H, Lq, gate_width)" in text and "v (B, Hk, Lk, Dv)" in text and "gate.beta = 0" in text
    assert "Outputs: out (B, H, Lq, Dv), lse (B, H, Lq), ground_weight (B, H, Lq)." in text
    assert "normalizer::grounded  e^a / Σ e^max(γ, a); the rest weights v0; gamma" in text and "Principled, 3.2.3" in text
    for name in attune.presets():
        op = attune.op(name)
        for argument in (*op.fields, *op.parameters, *op.tables, *op.constants, *op.outputs):
            assert argument in op.__doc__, (name, argument)


@pytest.mark.parametrize("name", attune.presets())
def test_a_preset_shows_the_arguments_of_a_call(name):
    op = attune.op(name)
    shown = inspect.signature(op).parameters
    without_default = {x.name for x in shown.values() if x.default is x.empty}
    assert [*shown][-5:] == ["mask", "offset", "threads", "returns", "layout"]
    needed = {*op.fields, *op.required, *op.tables, *op.arrays} - {"v0"}
    assert {path for path in needed if path.rpartition(".")[2] in without_default} == needed
    assert all(argument in op._description.names for argument in [*shown][:-5])
    example = re.search(r"Example:\n\n    out = (attune.op\(.*)", op.__doc__).group(1)
    for argument in without_default:
        assert re.search(rf"\b{argument}\b", example), argument
    if name in attune.presets(built=True):
        assert eval(example, {"attune": attune, **dict.fromkeys(without_default, np.ones((1, 1, 1, 1)))}).shape == (1, 1, 1, 1)
