# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Typical uses of attune, which mypy reads and nobody runs. A line with "type: ignore" is one that mypy must refuse."""

import pathlib
from typing import Dict, List, Optional, Tuple

import numpy as np

import attune
from attune import masks, policy

q = np.zeros((1, 2, 3, 4), np.float32)
op: attune.Operator = attune.op("softmax")
out: np.ndarray = op(q, q, q, mask=masks.causal(), scale=0.5, layout="blhd", threads=2, offset=[1])
pair: Tuple[np.ndarray, np.ndarray] = op(q, q, q, returns=("out", "lse"))
out, lse = op(q, k=q, v=q, returns=("out", "lse"))
out, lse, ground_weight = attune.op("principled")(q, q, q, returns=("out", "lse", "ground_weight"), alpha=out)
lse = op(q, q, q, returns="lse")
gradients: Dict[str, np.ndarray] = op.vjp(q, q, q, dout=out, wanted=["q"])
fields: Tuple[str, ...] = op.fields
defaults: Dict[str, Optional[float]] = op.parameters
presets: List[str] = attune.presets()
folders: List[str] = [attune.get_include(), attune.get_cmake_dir(), attune.__version__]

mask: masks.Mask = masks.causal() & masks.documents([0, 1]) | masks.window(left=4) & masks.visible(q > 0)
hard: policy.Policy = policy.normalizer("sigmoid(a + bias)", divided_by="one", parameters={"bias": 1}, domains={"bias": "real"})
made: attune.Operator = attune.compile(
    "dot_product{}", normalizer=hard, terms=[policy.term("-abs(distance)"), "alibi{0.1}"], gate=pathlib.Path("gate.hpp")
)
made = attune.compile_operator("attention(kernel::dot_product{}, m)", dtypes="float32", cache=pathlib.Path("cache"))
try:
    attune.compile(policy.kernel(["dot", "gate_dot"], "dot + gate_dot"))
except attune.CompileError as error:
    line: Optional[int] = error.line
except attune.Error as error_of_call:
    text: str = str(error_of_call)

attune.op(3)  # type: ignore
attune.compile(normalizer=3)  # type: ignore
number: int = op(q, q, q)  # type: ignore
_: int = op(q, q, q, returns=("out", "lse"))  # type: ignore
op(q, q, q, q)  # type: ignore
op(q, q, q, mask="causal")  # type: ignore
op.vjp(q, q, q, wanted=3)  # type: ignore
op.fields = ()  # type: ignore
masks.window("4")  # type: ignore
masks.causal() & 3  # type: ignore
policy.term(3)  # type: ignore
policy.term("distance", parameters={"rate": "1"})  # type: ignore
attune.no_such_name  # type: ignore
