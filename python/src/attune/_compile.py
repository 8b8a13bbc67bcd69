# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Operators of your own policies: C++ that the system's compiler translates once."""

from __future__ import annotations

import ctypes
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Iterable, Optional, Union

from . import _abi, _cache, _diagnosis, _headers
from ._errors import CompileError
from ._operator import Operator
from ._places import NATIVE, get_include
from ._sources import Part, source_of_operator, source_of_parts, source_of_preset
from .policy import Policy

_Text = Union[str, "os.PathLike[str]"]
_Part = Union[Policy, str, "os.PathLike[str]"]
_TYPES = {"float32": 1, "float64": 2, "bfloat16": 5, "float16": 5}
# Where the policies of a role are, if not in the namespace of its name.
_NAMESPACES = {**dict.fromkeys(("term", "score_map"), "kernel"), **dict.fromkeys(("weight_gate", "value_gate", "output_gate"), "gate")}
_loaded: dict[pathlib.Path, Operator] = {}
_loaded_companions: dict[tuple[pathlib.Path, str], _abi.Companion] = {}
_lock = threading.Lock()


def compile(
    kernel: _Part = "dot_product{}",
    length_scale: Optional[_Part] = None,
    gate: Optional[_Part] = None,
    normalizer: Optional[_Part] = None,
    weight_gate: Optional[_Part] = None,
    value_gate: Optional[_Part] = None,
    output_gate: Optional[_Part] = None,
    terms: Union[_Part, Iterable[_Part]] = (),
    map: Optional[_Part] = None,
    dtypes: Union[str, Iterable[str]] = ("float32", "float64"),
    compiler: Optional[str] = None,
    cache: Optional[_Text] = None,
) -> Operator:
    """An operator of policies: your own, and attune's.

        hard = attune.policy.normalizer("sigmoid(a + bias - log_visible)", divided_by="one", parameters={"bias": 0.0})
        op = attune.compile("dot_product{} + alibi{0.1}", normalizer=hard)
        out = op(q, k, v, bias=-1.0)

    Each part is a policy of attune.policy; or C++ text: an expression of attune's policies ("softcap{50}"), or
    declarations, whose last struct is the policy unless an expression follows; or a pathlib.Path of such a text. In an
    expression, `open` is a parameter that the caller sets, c("k", 8) a constant with its default (a whole number, if
    the default has no point), c.array("x") an array that the caller gives, and c.angles("x") the same as angles of
    rotary.

    terms: kernels that are added to the kernel. map: a score map of their sum.
    dtypes: one or some of float32, float64, bfloat16, float16, as text or as types of NumPy or torch; what you leave out
        is not compiled. 16 bits need float32, too.
    compiler: a command; by default $ATTUNE_CXX, $CXX, or the first of g++, clang++ and c++.
    cache: the folder of compiled operators; by default $ATTUNE_CACHE or ~/.cache/attune. With ATTUNE_NO_COMPILE=1
    nothing is compiled: the folder must have the operator.

    The first call takes the compiler's time, 10 to 60 seconds, and says so on stderr, unless ATTUNE_QUIET=1; later calls
    load a file. Raises attune.CompileError.
    """
    given = [("kernel", kernel), *(("term", x) for x in _listed("terms", terms))]
    given += [("score_map", map), ("length_scale", length_scale), ("gate", gate), ("normalizer", normalizer)]
    given += [("weight_gate", weight_gate), ("value_gate", value_gate), ("output_gate", output_gate)]
    parts: list[Part] = []
    numbers: dict[str, int] = {}
    for role, x in given:
        if x is None and role != "kernel":
            continue
        numbers[role] = numbers.get(role, 0) + 1
        label = role if role != "term" else f"term {numbers[role]}"
        parts.append(_part(role, label, x))
    return _operator(source_of_parts(parts), dtypes, compiler, cache)


def compile_operator(
    text: _Text,
    dtypes: Union[str, Iterable[str]] = ("float32", "float64"),
    compiler: Optional[str] = None,
    cache: Optional[_Text] = None,
) -> Operator:
    """The operator of a C++ expression, with declarations in front of it if you like.

        op = attune.compile_operator("attention(kernel::rbf{open}, normalizer::sink{open}, m)")

    m is the mask of a call, and `open`, c("k", 8), c.array("x") and c.angles("x") are as in attune.compile. An operator
    may be a fold: fold(softmax_attention(m), {1.0, open}), whose argument is fold_1. The namespace attune is visible. text may be a pathlib.Path. Other arguments are those of attune.compile.
    """
    path = None
    if isinstance(text, os.PathLike):
        path, text = os.fspath(text), pathlib.Path(text).read_text()
    if not isinstance(text, str):
        raise CompileError(f"attune: compile_operator takes C++ text, not {type(text).__name__}")
    part = Part("operator", path or "operator", text, None, "operator")
    part.require_expression()
    return _operator(source_of_operator(part), dtypes, compiler, cache)


def _listed(name, x):
    if isinstance(x, (str, Policy, os.PathLike)):
        return (x,)
    try:
        return tuple(x)
    except TypeError:
        raise CompileError(f"attune: {name}: expected a list of policies, not {type(x).__name__}") from None


def _part(role, label, x):
    namespace = _NAMESPACES.get(role, role)
    if isinstance(x, Policy):
        fits = x.role == role or {x.role, role} == {"kernel", "term"}
        if not fits:
            raise CompileError(f"attune: {label}: the policy is a {x.role}: give it as {_argument(x.role)}", part=label)
        return Part(role, label, x.text, namespace)
    path = None
    if isinstance(x, os.PathLike):
        path, x = os.fspath(x), pathlib.Path(x).read_text()
    if not isinstance(x, str):
        expected = "a policy of attune.policy, C++ text or a pathlib.Path"
        raise CompileError(f"attune: {label}: expected {expected}, not {type(x).__name__}", part=label)
    return Part(role, path or label, x, namespace, label)


def _argument(role):
    return {"term": "terms=[...]", "score_map": "map="}.get(role, f"{role}=")


def _codes(dtypes):
    one = isinstance(dtypes, (str, type)) or not hasattr(dtypes, "__iter__")
    codes = 0
    for x in (dtypes,) if one else dtypes:
        name = x.__name__ if isinstance(x, type) else str(x).rpartition("torch.")[2]
        if name not in _TYPES:
            raise CompileError(f"attune: dtypes has {x!r}; expected some of {', '.join(_TYPES)}")
        codes |= _TYPES[name]
    if not codes:
        raise CompileError(f"attune: dtypes is empty; expected some of {', '.join(_TYPES)}")
    return codes


def _compiler(chosen):
    """The words of the compiler's command, the first with its path; or None if there is no compiler."""
    command = chosen or os.environ.get("ATTUNE_CXX") or os.environ.get("CXX")
    words = shlex.split(command) if command else None
    for name in [words[0]] if words else ("g++", "clang++", "c++"):
        path = shutil.which(name)
        if path:
            return [path, *(words or [name])[1:]]
    return None


def _version(cache, words):
    """The compiler's version. It is kept under the sizes and times of the programs in the command."""
    facts = []
    for word in words:
        path = shutil.which(word) if not word.startswith("-") else None
        if path:
            at = os.stat(path)
            facts.append(f"{os.path.realpath(path)} {at.st_size} {at.st_mtime_ns}")

    def ask():
        run = subprocess.run([*words, "--version"], capture_output=True, text=True)
        return (run.stdout or run.stderr).partition("\n")[0]

    return _cache.remembered(cache, "compiler", _cache.digest(*words, *facts), ask)


# Judges are compiled by -O1 and vectors: -O2 takes a third longer to compile, and -O1 alone 1.6 times as long to run.
_JUDGES = ("verdict_gradients", "verdict", "probes")  # the longest first
_QUICKLY = (*_JUDGES, "warps", "warps_vjp")
_OF_JUDGES = ("-ftree-vectorize", "-DEIGEN_NO_DEBUG", "-DEIGEN_DONT_VECTORIZE")


def _flags(codes, words, kind):
    flags = ["-std=c++20", "-march=native", "-fPIC", "-fvisibility=hidden", "-fvisibility-inlines-hidden", "-pthread"]
    if not any(word.startswith("-O") for word in words):
        flags.insert(1, "-O1" if kind in _QUICKLY else "-O2")
    if kind in _JUDGES:
        flags.extend(_OF_JUDGES)
    return [*flags, "-Wno-psabi", "-Werror=return-type", f"-DATTUNE_C_TYPES={codes}"]


class Host:
    """How libraries are compiled for this machine."""

    suffix = ".cpp"
    quiet = ("-Wfatal-errors", "-fdiagnostics-color=never")
    link = ("-shared", "-s")
    words = staticmethod(_compiler)
    flags = staticmethod(_flags)

    @staticmethod
    def missing(chosen=None):
        """Why words() returned None, and what to do."""
        wanted = chosen or os.environ.get("ATTUNE_CXX") or os.environ.get("CXX")
        missing = f"there is no {wanted}" if wanted else "there is none of g++, clang++ and c++"
        return (
            f"{missing}. Install g++ >= 12 or clang++ >= 14 (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++; "
            "conda install -c conda-forge gxx), or set ATTUNE_CXX"
        )


def _is_set(name):
    return os.environ.get(name, "0") not in ("", "0")


def _operator(source, dtypes, compiler, cache):
    path = compiled(source, "library", _codes(dtypes), compiler, cache)
    with _lock:
        if path not in _loaded:
            text = f"An operator that attune.compile made: {path.with_suffix('.cpp')}"
            _loaded[path] = Operator(_load(path), _again, text, Companions(source, compiler, cache), "op", path.stem)
        return _loaded[path]


def _again(operator):
    """What makes the operator in another process."""
    return compiled_again, (operator._companions.recipe(operator._description.types),)


def compiled_again(recipe):
    """The operator of Companions.recipe(): from this process, the cache or the compiler."""
    parts = [Part(*part) for part in recipe["parts"]]
    source = source_of_operator(*parts) if parts[0].role == "operator" else source_of_parts(parts)
    return _operator(source, recipe["dtypes"], recipe["compiler"], recipe["cache"])


def loaded(key):
    """The operator of attune.compile that has this key, or None if this process has not loaded it."""
    with _lock:
        return next((x for path, x in _loaded.items() if path.stem == key and isinstance(x, Operator)), None)


def _load(path):
    """The functions of a library of one operator."""
    (functions,) = _abi.Library(path).operators.values()
    return functions


class Later:
    """The functions of a preset that the package was built without: from the cache or the compiler, at the first call.

    Calls of float64 have a library of their own, which a program without them never compiles.
    """

    def __init__(self, name, description):
        self.name, self.description, self._by_codes = name, description, {}

    def _of(self, call):
        """The functions for the element type of a call, given by its address."""
        name = _abi.TYPES[ctypes.c_int32.from_address(call + _abi.CALL.at["type"]).value]
        codes = _TYPES["bfloat16" if name == "float32" else name]
        if codes not in self._by_codes:
            path = compiled(source_of_preset(self.name, self.description["expression"]), "library", codes)
            with _lock:
                if path not in _loaded:
                    _loaded[path] = _load(path)
            self._by_codes[codes] = _loaded[path]
        return self._by_codes[codes]

    def saved_size(self, call):
        """As Functions.saved_size."""
        return self._of(call).saved_size(call)

    def forward(self, call, saved=None, count=0):
        """As Functions.forward."""
        self._of(call).forward(call, saved, count)

    def forward_of_this_thread(self, call):
        """As Functions.forward_of_this_thread."""
        return self._of(call).forward_of_this_thread(call)

    def vjp(self, call, saved, count, gradients):
        """As Functions.vjp."""
        self._of(call).vjp(call, saved, count, gradients)


class Companions:
    """Libraries beside an operator's, each with one more function on its calls. They are compiled when first used."""

    def __init__(self, source, compiler=None, cache=None):
        self._source, self._where, self._runs = source, (compiler, cache), {}
        self.prepared = set()  # what calls on devices have loaded and checked

    def _built(self, kind):
        """The library that the package was built with, or None."""
        path = NATIVE / f"judges_{self._source.preset}.so"
        return path if kind in _JUDGES and self._source.preset and path.exists() else None

    def policies(self):
        """What attune.compile was given, each in a line."""
        return [part.shown() for part in self._source.parts]

    def recipe(self, types):
        """What compiled_again() takes: the texts that attune.compile was given, and how they were compiled."""
        parts = [(part.role, part.name, part.text, part.namespace, part.label) for part in self._source.parts]
        compiler, cache = self._where
        return {"parts": parts, "dtypes": types, "compiler": compiler, "cache": cache and os.fspath(cache)}

    def prepare_judges(self, gradients):
        """Compiles what judges need, side by side."""
        kinds = _JUDGES if gradients else _JUDGES[1:]
        kinds = [(kind, None) for kind in kinds if not self._built(kind)]
        self.compile_together(kinds, f"judges of {self._source.what('library')}")

    def compile_together(self, kinds, what=None, tool=Host, mask=None):
        """Compiles companions side by side, and says so in one line. What the cache has is not compiled. kinds: the first
        arguments of run(), the one that takes longest first. what: in the line; None: the first of them."""
        said, lock = [], threading.Lock()

        def say(one, _, path):
            with lock:
                if not said:
                    _say(what or one, self._source.seconds(kinds[0][0]), path)
                said.append(one)

        def prepare(kind):
            name, code, *types = kind
            if not self.is_loaded(*kind, tool=tool, mask=mask):
                compiled(self._source, name, _codes_of(code), *self._where, types=types, tool=tool, say=say, mask=mask)

        with ThreadPoolExecutor(len(kinds) or 1) as pool:
            list(pool.map(prepare, kinds))

    def _key(self, kind, code, types, tool, mask):
        return kind, code, types, getattr(tool, "architecture", None), mask

    def is_loaded(self, kind, code=None, *types, tool=Host, mask=None):
        """Whether run() has this function at once."""
        return self._key(kind, code, types, tool, mask) in self._runs

    def run(self, kind, code=None, *types, against=None, tool=Host, mask=None):
        """The function of a companion ("statistics", "decode") for calls of an element type; None: of float32 and float64.
        types: of its template. against, tool, mask: as in compiled()."""
        key = self._key(kind, code, types, tool, mask)
        if key not in self._runs:
            path = self._built(kind) or compiled(
                self._source, kind, _codes_of(code), *self._where, types=types, against=against, tool=tool, mask=mask
            )
            with _lock:
                if (path, kind) not in _loaded_companions:
                    _loaded_companions[path, kind] = _abi.Companion(path, kind)
                self._runs[key] = _loaded_companions[path, kind].run
        return self._runs[key]


def _codes_of(code):
    """The types that a companion is compiled for: of calls of an element type, or None."""
    return 3 if code is None else _TYPES[_abi.TYPES[code]]


def compiled(source, kind, codes, compiler=None, cache=None, types=(), against=None, tool=Host, say=None, mask=None):
    """The path of a library, which is compiled unless the cache has it.

    against: a library that it links (MpiLibrary). Its `identity` and its `options()` are part of the key.
    tool: how it is compiled: Host, or an Nvcc. say: called in front of the compiler; None: _say. mask: the form of masks of
    a call on a device, in C++.
    """
    words, include = tool.words(compiler), get_include()
    folder = _cache.folder(cache)
    flags = tool.flags(codes, words or [], kind)
    installed = os.path.dirname(include) == os.path.dirname(os.path.abspath(__file__))
    headers = _cache.headers(folder, include, installed)
    text = source.of(kind, types, mask)
    facts = [str(_abi.VERSION), text, *flags, _cache.processor(), headers]
    if against:
        facts.append(against.identity)
    content = _cache.digest(*facts)[:32]
    may_compile = words is not None and not _is_set("ATTUNE_NO_COMPILE")
    links = against.options() if against and may_compile else []
    if may_compile and links is not None:
        name = f"{content}-{_cache.digest(*words[1:], _version(folder, words), *links)[:16]}"
    else:
        name = None
    path = _found(folder, content, name)
    if path is None:
        if not may_compile:
            raise CompileError(_refusal(source, kind, types, folder, words, tool.missing(compiler)))
        if links is None:
            raise CompileError(against.missing())
        path = folder / f"{name}.so"
        with _cache.locked(folder / f"{name}.lock"):
            if not _cache.is_whole(path):
                others = _headers.flags(words, kind)
                (say or _say)(source.what(kind, types), source.seconds(kind), path)
                _translate(path, text, source.parts, [*words, *flags, *others, "-isystem", include], links, tool)
    return path


def _found(folder, content, name):
    """The library of the key, whole; without a compiler, one that any compiler made."""
    paths = [folder / f"{name}.so"] if name else sorted(folder.glob(f"{content}-*.so"))
    return next((path for path in paths if path in _loaded or _cache.is_whole(path)), None)


def _refusal(source, kind, types, folder, words, missing):
    start = f"attune: the folder {folder} does not have {source.what(kind, types)}, and "
    end = ""
    if source.preset and kind == "library":
        start = f"attune: the package was built without the preset {source.preset}, the folder {folder} does not have it, and "
        end = ". Or build the package with all presets: ATTUNE_PYTHON_PRESETS=all pip install ./python"
    if words is None:
        return f"{start}it cannot be compiled: {missing}{end}"
    return (
        f"{start}ATTUNE_NO_COMPILE is set. Make this call once without it, on a machine with the same processor, and keep "
        f"the folder{end}"
    )


def _say(what, seconds, path):
    """One line about what takes so long."""
    if not _is_set("ATTUNE_QUIET") and sys.stderr:
        line = f"attune: compiles {what}, once: about {seconds} s. Kept in {path.parent}; ATTUNE_QUIET=1 hides this line"
        print(line, file=sys.stderr, flush=True)


def _translate(path, source, parts, command, links=(), tool=Host):
    """Compiles the source to a library in the cache. links: options behind the source, where linkers need libraries."""
    text = path.with_suffix(tool.suffix)
    _cache.write(text, source.encode())
    handle, made = tempfile.mkstemp(prefix=path.name, suffix=".part", dir=path.parent)
    os.close(handle)
    try:
        run = subprocess.run(
            [*command, *tool.quiet, *tool.link, str(text), "-o", made, *links],
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, "LC_ALL": "C"},
        )
        if run.returncode != 0:
            again = shlex.join([*command, "-fsyntax-only", str(text), *links])
            raise _diagnosis.error(run.stderr, parts, again)
        _cache.seal(path, pathlib.Path(made).read_bytes())
    finally:
        os.unlink(made)


__all__ = ["compile", "compile_operator"]
