# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The operators that the package was built with."""

from __future__ import annotations

import os
import pathlib
import platform

from . import _abi
from ._arrays import wrong
from ._compile import Companions
from ._operator import Operator
from ._sources import source_of_preset

_FOLDER = pathlib.Path(__file__).parent / "_native"
# The features that each x86-64 level adds to the one below, as Linux names them (abm is LZCNT); the best first.
_LEVELS = (
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    ("x86-64-v3", {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}),
    ("x86-64-v2", {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}),
)
_library: _abi.Library | None = None
_operators: dict[str, Operator] = {}


def _flags() -> set[str]:
    """The features of this processor; none if Linux does not say."""
    try:
        with open("/proc/cpuinfo") as f:
            return next((set(line.split(":", 1)[1].split()) for line in f if line.startswith("flags")), set())
    except OSError:
        return set()


def levels() -> list[str]:
    """The x86-64 levels that this processor has, the best first."""
    flags = _flags()
    found: list[str] = []
    for level, features in reversed(_LEVELS):
        if not features <= flags:
            break
        found.insert(0, level)
    return found


def _path() -> pathlib.Path:
    """The library for this processor: ATTUNE_LIBRARY, one built for this machine, or the best level that it has."""
    chosen = os.environ.get("ATTUNE_LIBRARY")
    if chosen:
        return pathlib.Path(chosen)
    native = _FOLDER / "attune_native.so"
    if native.exists():
        return native
    built = [level for level, _ in _LEVELS if (_FOLDER / f"attune_{level}.so").exists()]
    if not built:
        raise ImportError(f"attune: no library in {_FOLDER}: install the package by pip, or set ATTUNE_LIBRARY")
    has = levels() if platform.machine() in ("x86_64", "AMD64") else []
    for level in built:
        if level in has:
            return _FOLDER / f"attune_{level}.so"
    raise ImportError(
        f"attune: the libraries in {_FOLDER} are for {', '.join(built)}, and this processor ({platform.machine()}) is "
        f"{has[0] if has else 'none of them'}: build the package on it, from its sources"
    )


def library() -> _abi.Library:
    """The loaded library of presets."""
    global _library
    if _library is None:
        _library = _abi.Library(_path())
    return _library


def names() -> list[str]:
    """Names of the presets, sorted."""
    return sorted(library().operators)


def op(name: str) -> Operator:
    """The operator of a preset: attune.op("principled")."""
    found = _operators.get(name)
    if found is None:
        functions = library().operators.get(name)
        if functions is None:
            raise _abi.Error(f"attune: op has the name {name!r}; expected one of {', '.join(names())}")
        text = f"The preset {name}. Formula and source: docs/reference/operators.md."
        companions = Companions(source_of_preset(functions.description["expression"]))
        found = _operators[name] = Operator(functions, lambda operator: (op, (operator.name,)), text, companions)
    return found


def operator_of(x: str | Operator) -> Operator:
    """An operator, or the preset of this name."""
    if isinstance(x, Operator):
        return x
    if isinstance(x, str):
        return op(x)
    raise wrong("op", f"the type {type(x).__name__}", "an operator of attune, or the name of a preset")
