# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The operator of a traced score_mod, and what a call gives it: numbers, parameters of rows, tables and pairs."""

import re

import torch

from .. import _presets, policy
from .._abi import Error
from .._compile import compile
from .._contractions import Contraction
from .._graph import Lowering, NotInWords
from ..policy import Policy
from ._replay import evaluate

_DISTANCES = Contraction(
    "distances",
    "contraction::gathered",
    tables=(("values", "one"),),
    members=(
        "ATTUNE_HD index_t index(index_t distance) const {",
        "  index_t const reach = (values.rows() - 1) / 2;",
        "  return (distance < -reach ? -reach : distance > reach ? reach : distance) + reach;",
        "}",
    ),
)
_PLACES = {"per_key": "kernel.per_key", "distances": "kernel.values", "given_bias": "bias", "given_scores": "scores"}
SCORE = "(scale * dot)"
_OF_PRESETS = {SCORE: "softmax", f"({SCORE} + given_bias)": "biased"}  # need no compiler
_KINDS = {torch.bfloat16: ("float32", "bfloat16"), torch.float16: ("float32", "float16")}  # others have one name
_operators: dict = {}


def words_of(node):
    """The Lowering of a traced score_mod, and its expression."""
    lowering = Lowering(SCORE)
    try:
        return lowering, lowering.text(node)
    except NotInWords as e:
        x = e.node
    if "s" not in x.axes:
        what = "it needs a third number for each pair of a query and a key"
        instead = "compute one tensor of both before, and index it once"
    else:
        function = x.call[0]
        name = getattr(function, "__name__", str(function))
        what = f"{name}() of the score is not known" + (f", with the result {x.shape}" if x.shape else "")
        instead = "write it by + - * / ** and the functions of attune.policy; positions alone may use all of torch"
    file, line = x.place or ("?", 0)
    raise Error(f"attune: score_mod cannot be traced: {what}\n  {file}, line {line}\n  {instead}")


def _normalizer(x):
    """A normalizer as attune.compile takes it. A name alone has the defaults of its parameters."""
    if isinstance(x, str) and re.fullmatch(r"\s*[A-Za-z_]\w*\s*", x):
        return f"{x.strip()}{{}}"
    return x


def operator(lowering, text, normalizer, kind, dropout=False):
    """The operator of an expression; compiled, unless this process has it."""
    kinds = _KINDS.get(kind) or (str(kind).rpartition(".")[2],)
    by = normalizer.text if isinstance(normalizer, Policy) else str(normalizer)
    parts = text, tuple(lowering.leaves), tuple(lowering.parameters), by, dropout
    key = parts, kinds
    if key not in _operators:
        preset = _OF_PRESETS.get(text) if normalizer is None and not dropout else None
        if preset in _presets.names():
            _operators[key] = _presets.op(preset)
        else:
            names = [*["scale"] * ("scale" in text), *lowering.parameters]
            contractions = ["dot", *[_DISTANCES if x == "distances" else x for x in lowering.leaves]]
            domains = {**dict.fromkeys(lowering.parameters, "extended")}
            kernel = policy.kernel(contractions, text, parameters=dict.fromkeys(names, 1.0), domains=domains)
            gate = 'dropout{c("rate", 0.1), std::uint64_t(c("seed", 0))}' if dropout else None
            _operators[key] = compile(kernel, normalizer=_normalizer(normalizer), weight_gate=gate, dtypes=kinds)
            _operators.setdefault((parts, kinds[:1]), _operators[key])
    return _operators[key]


def arguments(lowering, sizes, kind):
    """The arguments of a call by name. kind: the type of the scores."""
    given = {}
    for name, x in lowering.parameters.items():
        if not hasattr(x, "axes"):
            given[f"kernel.{name}"] = float(x)
            continue
        x = evaluate(x, sizes).to(kind)
        given[f"kernel.{name}"] = x.reshape(()) if x.numel() == 1 else x
    for name, x in lowering.leaves.items():
        if name == "distances":
            given[_PLACES[name]] = _distances(x, sizes).to(kind)
        else:
            x = evaluate(x, sizes).to(kind)
            given[_PLACES[name]] = x.transpose(2, 3) if name == "per_key" else _with_all_keys(x, sizes)
    return given


def _with_all_keys(x, sizes):
    return x.expand(-1, -1, -1, sizes["k"]).contiguous() if x.shape[3] != sizes["k"] else x


def _distances(x, sizes):
    """The numbers for distances from -M to M. Distances that no pair has get the number of the nearest that one has."""
    most = max(sizes["q"], sizes["k"], 1) - 1
    return evaluate(x, sizes, torch.arange(-most, most + 1).clamp(1 - sizes["k"], sizes["q"] - 1))


