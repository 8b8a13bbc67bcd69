# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The operators that the package was built with."""

import os
import pathlib
import platform

from . import _abi
from ._operator import Operator

_FOLDER = pathlib.Path(__file__).parent / "_native"
# The features that the x86-64 levels add, as Linux names them; the best first.
_LEVELS = (
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    ("x86-64-v3", {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}),
    ("x86-64-v2", {"cx16", "popcnt", "sse4_1", "sse4_2", "ssse3"}),
)
_library = None
_operators = {}


def _flags():
    try:
        with open("/proc/cpuinfo") as f:
            return next((set(line.split(":", 1)[1].split()) for line in f if line.startswith("flags")), set())
    except OSError:
        return set()


def _path():
    """The library for this processor: ATTUNE_LIBRARY, one built for this machine, or the best level that it has."""
    if chosen := os.environ.get("ATTUNE_LIBRARY"):
        return pathlib.Path(chosen)
    native = _FOLDER / "attune_native.so"
    if native.exists():
        return native
    if platform.machine() in ("x86_64", "AMD64"):
        flags = _flags()
        missing = False
        for level, needed in _LEVELS:
            path = _FOLDER / f"attune_{level}.so"
            missing = missing or path.exists()
            if path.exists() and all(more <= flags for name, more in _LEVELS if name <= level):
                return path
        if missing:
            raise ImportError("attune: this processor has fewer instructions than x86-64-v2: build the package on it")
    raise ImportError(f"attune: no library in {_FOLDER}: install the package by pip, or set ATTUNE_LIBRARY")


def library():
    """The loaded library of presets."""
    global _library
    if _library is None:
        _library = _abi.Library(_path())
    return _library


def names():
    """Names of the presets, sorted."""
    return sorted(library().operators)


def _companions(functions):
    from ._compile import Companions  # not before it is needed
    from ._sources import source_of_preset

    return Companions(source_of_preset(functions.description["expression"]))


def op(name):
    """The operator of a preset: attune.op("principled")."""
    found = _operators.get(name)
    if found is None:
        functions = library().operators.get(name)
        if functions is None:
            raise _abi.Error(f"attune: op has the name {name!r}; expected one of {', '.join(names())}")
        found = _operators[name] = Operator(functions, f"The preset {name}.", None, _companions(functions))
    return found
