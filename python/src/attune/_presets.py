# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The presets: those that the package was built with, and those that are compiled at their first call."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import platform
from typing import Any

from . import _abi
from ._arrays import wrong
from ._compile import Companions, Later
from ._errors import did_you_mean
from ._operator import Operator
from ._places import NATIVE
from ._sources import source_of_preset

_FOLDER = NATIVE
# The features that each x86-64 level adds to the one below, as Linux names them (abm is LZCNT); the best first.
_LEVELS = (
    ("x86-64-v4-amx", {"avx512_bf16", "amx_tile", "amx_bf16"}),
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    ("x86-64-v3", {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}),
    ("x86-64-v2", {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}),
)
# Other libraries' names for the preset softmax.
_OF_OTHERS = {"attention", "eager", "flash", "flash_attention", "flex", "flex_attention", "math", "mem_efficient", "sdpa", "vanilla"}
_OF_OTHERS |= {"memory_efficient", "scaled_dot_product", "scaled_dot_product_attention", "xformers"}
_SYMBOLS = (
    "s: the score, a sum over the kernels. a: the logit, which length scale and gate make of s. K: the number of visible "
    "keys.\nn: the distance of a key behind its query."
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


@functools.lru_cache(maxsize=None)
def _described() -> dict[str, Any]:
    """What python/native/describe.cpp wrote beside the library; nothing beside a library of your own."""
    try:
        written = json.loads(_path().with_name("presets.json").read_bytes())
    except FileNotFoundError:
        return {"presets": {}, "policies": {}}
    return {**written, "presets": {preset["name"]: preset for preset in written["presets"]}}


def names(built: bool = False) -> list[str]:
    """Names of the presets, sorted. built: only of those that need no compiler; others are compiled at their first call."""
    return sorted(library().operators if built else {*library().operators, *_described()["presets"]})


def has(name: str) -> bool:
    """Whether there is a preset of this name."""
    return name in library().operators or name in _described()["presets"]


def no_preset(name: Any) -> str:
    """What is expected in place of a name that no preset has."""
    hint = ". In its place: softmax, which is fused as all of them are" if name in _OF_OTHERS else did_you_mean(str(name), names())
    return f"one of attune.presets(){hint}"


def _text(name: str) -> str:
    """The formula of a preset, and where it is from."""
    described = _described()
    preset = described["presets"].get(name)
    if preset is None:
        return f"The preset {name}."
    known = {policy: described["policies"][policy] for policy in preset["policies"]}
    width = max(map(len, known))
    lines = [f"    {policy:{width}s}  {'; '.join(filter(None, about[:2]))}" for policy, about in known.items()]
    sources = [source for source in dict.fromkeys(about[2] for about in known.values()) if source not in ("", "all")]
    call = f", {preset['call']} in C++" if preset["call"] else ""
    note = f" {preset['note']}." if preset["note"] else ""
    return "\n".join([f"The preset {name}{call}.{note}", "", *lines, "", _SYMBOLS, f"From: {'; '.join(sources)}."])


def op(name: str) -> Operator:
    """The operator of a preset: attune.op("principled")."""
    found = _operators.get(name)
    if found is None:
        functions = library().operators.get(name)
        if functions is None:
            if not has(name):
                raise wrong("op", f"the name {name!r}", no_preset(name))
            functions = Later(name, _described()["presets"][name]["description"])
        companions = Companions(source_of_preset(name, functions.description["expression"]))
        example = f'attune.op("{name}")'
        found = _operators[name] = Operator(functions, lambda operator: (op, (operator.name,)), _text(name), companions, example)
    return found


def operator_of(x: str | Operator) -> Operator:
    """An operator, or the preset of this name."""
    if isinstance(x, Operator):
        return x
    if isinstance(x, str):
        return op(x)
    raise wrong("op", f"the type {type(x).__name__}", "an operator of attune, or the name of a preset")
