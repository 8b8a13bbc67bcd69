# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""attune, or python -m attune: operators on files, and facts about the package.

    python -m attune presets                    names of the presets
    python -m attune show PRESET                its inputs, parameters and outputs
    python -m attune run PRESET NAME=VALUE...   its outputs
    python -m attune vjp PRESET NAME=VALUE...   its gradients
    python -m attune verdict PRESET ...         is that kernel right? --help has its options
    python -m attune probes ...                 inputs that reveal mistakes of kernels
    python -m attune include                    the folder of the headers: g++ -isystem $(python -m attune include)
    python -m attune cmake-dir                  the folder of attuneConfig.cmake: cmake -Dattune_DIR=...
    python -m attune version

    python -m attune run softmax q=q.npy k=k.npy v=v.npy mask=causal out=out.npy lse=lse.npy
    python -m attune vjp sink q=q.npy k=k.npy v=v.npy logit=0.5,-1 dout=dout.npy out=gradients.npz

Names of run and vjp:

    q, k, v, ...       an input: FILE.npy, FILE.npz:MEMBER, or FILE.npz with one array or one of this name
    alpha, gamma, ...  a parameter: a number, a list with one number per head, or a file. A table: a file
    mask               causal, window=LEFT:RIGHT (-1: no limit), prefix=LENGTH, sink_window=SINKS:WIDTH,
                       padding=LENGTHS, documents=IDS.npy or visible=TABLE.npy. Repeated masks intersect
    offset, threads    numbers
    layout             bhld (batch, head, position, feature), or blhd. Missing axes in front of bhld are 1

    run  out, lse, ground_weight, threshold     where an output goes: FILE.npy
    vjp  dout, dlse, dground_weight             gradients by the outputs: FILE.npy
         out                                    where all gradients go, by name: FILE.npz
         wanted                                 names of the gradients to compute, with commas between

The exit status is 0; 1 if an argument is refused, or a file; 2 if the command is wrong. verdict and probes have
their own: 0 PASS, 1 FAIL, 2 refused, 3 UNDECIDABLE.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from typing import Any

import numpy

from . import _places, _presets, masks
from ._abi import Error
from ._errors import CompileError
from ._operator import Operator

_OUTPUTS = ("out", "lse", "ground_weight", "threshold")
_COTANGENTS = ("dout", "dlse", "dground_weight")


class _Usage(Exception):
    """The command is wrong: the text says why."""


def _load(name: str, text: str) -> Any:
    """The array of FILE.npy, FILE.npz:MEMBER, or FILE.npz: its only array, or the one with the name of the argument."""
    start, archive, member = text.partition(".npz:")
    try:
        x = numpy.load(start + ".npz" if archive else text, allow_pickle=False)
        if isinstance(x, numpy.ndarray):
            return x
        with x:
            names = list(x.files)
            if not archive:
                member = names[0] if len(names) == 1 else name
            member = member[:-4] if member.endswith(".npy") else member
            if member in names:
                return x[member]
    except OSError as e:
        raise Error(f"attune: {name}: {text} cannot be read: {e.strerror or e}") from None
    except (ValueError, EOFError, zipfile.BadZipFile) as e:
        raise Error(f"attune: {name}: {text} is no array of NumPy: {e}") from None
    raise Error(f"attune: {name} is {text}, which has no {member}; expected one of {', '.join(names)}")


def _whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise _Usage(f"{name} has the value {text!r}; expected a whole number") from None


def _wholes(name: str, text: str) -> Any:
    """A list of whole numbers, or a file."""
    parts = text.split(",")
    if all(part.strip().isdigit() for part in parts):
        return [int(part) for part in parts]
    return _load(name, text)


def _pair(kind: str, form: str, text: str) -> tuple[int, int]:
    first, colon, second = text.partition(":")
    if not colon:
        raise _Usage(f"mask has the value {kind}={text}; expected {kind}={form}")
    return _whole(f"mask={kind}", first), _whole(f"mask={kind}", second)


def _no_causal_window(text: str) -> masks.Mask:
    n = _whole("mask=causal_window", text)
    raise _Usage(f"mask has the value causal_window={text}; expected window={n - 1}:0, which are {n} keys with the query's own")


_MASKS = {
    "window": lambda text: masks.window(*_pair("window", "LEFT:RIGHT, keys before and after the query's own", text)),
    "prefix": lambda text: masks.prefix(_whole("mask=prefix", text)),
    "sink_window": lambda text: masks.sink_window(*_pair("sink_window", "SINKS:WIDTH", text)),
    "padding": lambda text: masks.padding(_wholes("mask=padding", text)),
    "documents": lambda text: masks.documents(_load("mask=documents", text)),
    "visible": lambda text: masks.visible(_load("mask=visible", text)),
}


def _mask(text: str) -> masks.Mask:
    kind, equals, value = text.partition("=")
    if text == "causal":
        return masks.causal()
    if kind == "causal_window" and equals:
        return _no_causal_window(value)
    if kind not in _MASKS or not equals:
        raise _Usage(f"mask has the value {text!r}; expected causal, or {'=..., '.join(_MASKS)}=...")
    return _MASKS[kind](value)


def _parameter(name: str, text: str) -> Any:
    """A number, a list with one number per head, or a file."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        return _load(name, text)
    return numbers[0] if len(numbers) == 1 else numpy.array(numbers)


def _axes(x: Any, side: str, narrow: bool) -> Any:
    """The array with missing axes in front."""
    missing = (3 if narrow and x.ndim < 4 else 4) - x.ndim
    return x if side in ("pair", "ground") or missing <= 0 else x.reshape((1,) * missing + x.shape)


class _Command:
    """The arguments of run and vjp: those of the call, and `files`, where each of `targets` goes."""

    def __init__(self, op: Operator, words: list[str], targets: dict[str, str], cotangents: tuple[str, ...]):
        self.op = op
        self.given: dict[str, Any] = {}
        self.files: dict[str, str] = {}
        self.mask: Any = None
        known = {"mask", "offset", "threads", "layout", *targets, *cotangents, *op._description.names}
        pairs: list[tuple[str, str]] = []
        for word in words:
            name, equals, text = word.partition("=")
            if not equals or not text:
                raise _Usage(f"the argument {word!r}; expected NAME=VALUE")
            if name not in known:
                raise _Usage(f"{op.name} has no argument {name!r}; expected some of {', '.join(sorted(known))}")
            if name != "mask" and any(name == other for other, _ in pairs):
                raise _Usage(f"{name} is given twice; expected it once")
            pairs.append((name, text))
        self._set_files({name: text for name, text in pairs if name in targets}, targets)
        for name, text in pairs:
            if name == "mask":
                more = _mask(text)
                self.mask = more if self.mask is None else self.mask & more
        layout = dict(pairs).get("layout", "bhld")
        for name, text in pairs:
            if name not in targets and name != "mask":
                self.given[name] = self._value(name, text, layout, cotangents)

    def _set_files(self, chosen: dict[str, str], targets: dict[str, str]) -> None:
        for name, file in chosen.items():
            if targets[name] and not file.endswith(targets[name]):
                raise _Usage(f"{name} has the value {file!r}; expected a file with a name in {targets[name]}")
            if any(os.path.realpath(file) == os.path.realpath(other) for other in self.files.values()):
                raise _Usage(f"{name} has the value {file!r}, which another output has; expected a file of its own")
            self.files[name] = file

    def _value(self, name: str, text: str, layout: str, cotangents: tuple[str, ...]) -> Any:
        if name == "layout":
            return text
        if name in ("offset", "threads"):
            return _whole(name, text)
        d = self.op._description
        short = layout == "bhld"
        if name in cotangents:
            x = _load(name, text)
            return _axes(x, "query", name != "dout") if short else x
        kind, n = d.names[name][0]
        if kind == "field":
            x = _load(name, text)
            return _axes(x, d.sides[n], d.narrow[n]) if short else x
        return _load(name, text) if kind == "table" else _parameter(name, text)


def _describe(name: str, x: Any) -> None:
    print(f"{name}: {x.dtype} {tuple(x.shape)}")


def _write(name: str, file: str, write: Any) -> None:
    try:
        with open(file, "wb") as f:
            write(f)
    except OSError as e:
        raise Error(f"attune: {name}: {file} cannot be written: {e.strerror or e}") from None


def _run(op: Operator, words: list[str]) -> None:
    command = _Command(op, words, {name: ".npy" for name in op.outputs}, ())
    if not command.files:
        raise _Usage(f"no output; expected out=FILE.npy, or another of {', '.join(op.outputs)}")
    names = tuple(command.files)
    found = op(**command.given, mask=command.mask, returns=names)
    for name, x in zip(names, found if len(names) > 1 else (found,)):
        _write(name, command.files[name], lambda f, x=x: numpy.save(f, x))
        _describe(command.files[name], x)


def _vjp(op: Operator, words: list[str]) -> None:
    wanted = [word[len("wanted=") :] for word in words if word.startswith("wanted=")]
    rest = [word for word in words if not word.startswith("wanted=")]
    cotangents = tuple(name for name in _COTANGENTS if name[1:] in op.outputs)
    command = _Command(op, rest, {"out": ".npz"}, cotangents)
    if "out" not in command.files:
        raise _Usage("no output; expected out=FILE.npz: there are several gradients")
    if not any(name in command.given for name in cotangents):
        raise _Usage(f"no gradient by an output; expected dout=FILE.npy, or another of {', '.join(cotangents)}")
    names = [name for text in wanted for name in text.split(",")] or None
    found = op.vjp(**command.given, mask=command.mask, wanted=names)
    _write("out", command.files["out"], lambda f: numpy.savez(f, **found))
    for name, x in found.items():
        _describe(f"{command.files['out']}:{name}", x)


def _show(op: Operator, words: list[str]) -> None:
    if words:
        raise _Usage(f"show takes a preset and nothing else, not {words[0]!r}")
    d = op._description
    print(op.name)
    parameters = []
    for path, value in op.parameters.items():
        note = "required" if path in op.required else "computed from the call"
        parameters.append(f"{path}: {note}" if value is None else f"{path} = {value:g}")
    facts = (
        ("inputs", [f"{name} (optional)" if name == "v0" else name for name in op.fields]),
        ("parameters", parameters),
        ("tables", op.tables),
        ("constants", [f"{name} = {value:g}" for name, value in op.constants.items()]),
        ("outputs", op.outputs),
        ("types", d.types),
    )
    for title, names in facts:
        if names:
            print(f"  {title:11s} {', '.join(names)}")


def _preset(words: list[str], command: str) -> Operator:
    if not words or "=" in words[0]:
        raise _Usage(f"{command} has no preset; expected one of {', '.join(_presets.names())}")
    if not _presets.has(words[0]):
        raise _Usage(f"{command} has the preset {words[0]!r}; expected {_presets.no_preset(words[0])}")
    return _presets.op(words[0])


_OF_PRESET = {"run": _run, "vjp": _vjp, "show": _show}
_OF_PACKAGE = {
    "presets": lambda: "\n".join(_presets.names()),
    "include": _places.get_include,
    "cmake-dir": _places.get_cmake_dir,
    "version": lambda: _places.__version__,
}


_PROGRAM = _places.NATIVE / "attune"
_OF_PROGRAM = ("verdict", "probes")


def _verdict(words: list[str]) -> int:
    """Runs the program of verdicts, which is the one of scripts/attune."""
    if not _PROGRAM.exists():
        raise Error(
            f"attune: this package was built without the program of {words[0]}, {_PROGRAM}. Wheels have it, and "
            f"pip install -C cmake.define.ATTUNE_PYTHON_VERDICTS=ON builds it; in the sources: scripts/attune {words[0]}. "
            "In Python: attune.verdict"
        )
    return subprocess.run([str(_PROGRAM), *words]).returncode


def main(words: list[str]) -> int:
    """Runs a command. Returns the exit status."""
    all_of = (*_OF_PRESET, *_OF_PROGRAM, *_OF_PACKAGE)
    try:
        if not words:
            raise _Usage(f"no command; expected one of {', '.join(all_of)}, or --help")
        if words[0] in _OF_PROGRAM:
            return _verdict(words)
        if any(word in ("--help", "-h") for word in words):
            print(__doc__, end="")
        elif words[0] in _OF_PRESET:
            _OF_PRESET[words[0]](_preset(words[1:], words[0]), words[2:])
        elif words[0] in _OF_PACKAGE:
            if words[1:]:
                raise _Usage(f"{words[0]} takes no arguments, but got {words[1]!r}")
            print(_OF_PACKAGE[words[0]]())
        else:
            raise _Usage(f"unknown command {words[0]!r}; expected one of {', '.join(all_of)}")
    except _Usage as e:
        print(f"attune: {e}", file=sys.stderr)
        return 2
    except (Error, CompileError, FileNotFoundError, ImportError, MemoryError) as e:
        print(e, file=sys.stderr)
        return 1
    return 0


def program() -> int:
    """The program `attune`."""
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(program())
