# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The cache of attune.compile, with a program that copies a file in place of a compiler."""

import inspect
import os
import pathlib
import pickle
import shutil
import stat
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import attune
from attune import _presets
from attune._compile import Companions
from attune._sources import source_of_preset


@pytest.fixture
def copier(tmp_path):
    """A command that behaves as a compiler, and a function that says how often it ran."""
    count, script = tmp_path / "count", tmp_path / "copier"
    library = _presets.library().path
    script.write_text(
        textwrap.dedent(
            f"""\
            #!/bin/sh
            case "$*" in *--version) echo copier 1.0; exit;; esac
            echo ran >> {count}
            sleep 0.3
            while [ "$1" != -o ]; do shift; done
            cp {library} "$2"
            """
        )
    )
    script.chmod(0o755)
    return str(script), lambda: count.read_text().count("ran") if count.exists() else 0


@pytest.fixture
def one_operator(monkeypatch):
    """Takes the first operator of a library that has several."""
    monkeypatch.setattr(attune._compile, "_load", load_first)


def load_first(path):
    return next(iter(attune._abi.Library(path).operators.values()))


@pytest.fixture
def own(tmp_path, copier, one_operator):
    """Compiles with the copier into a new folder."""
    folder = tmp_path / "cache"

    def run(text="dot_product{}", **options):
        attune._compile._loaded.clear()
        return attune.compile(text, **{"compiler": copier[0], "cache": folder, **options})

    run.folder, run.count = folder, copier[1]
    return run


def libraries(folder):
    return sorted(folder.glob("*.so"))


def test_the_second_time_comes_from_the_cache(own):
    first = own()
    assert repr(first).endswith(": kernel dot_product{}>") and first.name in repr(first)
    assert own.count() == 1 and stat.S_IMODE(own.folder.stat().st_mode) == 0o700
    assert own().name == first.name and own.count() == 1
    options = {"compiler": own_compiler(own), "cache": own.folder}
    assert attune.compile("dot_product{}", **options) is attune.compile("dot_product{}", **options)


def own_compiler(own):
    return str(own.folder.parent / "copier")


def test_the_key_has_everything_that_the_code_depends_on(own, tmp_path, monkeypatch):
    own()
    own("dot_product{} + alibi{0.5}")
    own(dtypes="float64")
    own(compiler=f"{own_compiler(own)} -O1")
    assert own.count() == 4
    headers = tmp_path / "headers"
    shutil.copytree(attune.get_include(), headers)
    monkeypatch.setattr(attune._compile, "get_include", lambda: str(headers))
    own()
    assert own.count() == 4, "the content of the headers is the same"
    with open(headers / "attune" / "config.hpp", "a") as f:
        f.write("// changed\n")
    attune._cache._headers.clear()
    own()
    assert own.count() == 5
    monkeypatch.setattr(attune._cache, "_processor", "another one")
    own()
    assert own.count() == 6
    text = pathlib.Path(own_compiler(own)).read_text()
    pathlib.Path(own_compiler(own)).write_text(text.replace("1.0", "2.0.0"))
    own()
    assert own.count() == 7
    assert len(libraries(own.folder)) == 7


def test_installed_headers_are_looked_at_by_one_of_them(tmp_path):
    root, folder = tmp_path / "include", attune._cache.folder(tmp_path / "cache")
    shutil.copytree(pathlib.Path(attune.get_include()) / "attune", root / "attune")

    def look(installed):
        attune._cache._headers.clear()
        return attune._cache.headers(folder, str(root), installed)

    before = look(True)
    assert before == look(False)
    (root / "attune" / "config.hpp").write_text("// changed\n")
    assert look(True) == before != look(False)
    version = root / "attune" / "version.hpp"
    version.write_text(version.read_text())
    assert look(True) == look(False) != before


@pytest.mark.parametrize("damage", ["empty", "short", "changed", "no hash"])
def test_a_damaged_library_is_compiled_again(own, damage):
    own()
    (path,) = libraries(own.folder)
    data = bytearray(path.read_bytes())
    if damage == "changed":
        data[len(data) // 2] ^= 1
    made = path.with_suffix(".damaged")
    made.write_bytes({"empty": b"", "short": data[:-5000], "changed": data, "no hash": data[:-79]}[damage])
    os.replace(made, path)
    own()
    assert own.count() == 2
    own()
    assert own.count() == 2


def test_of_several_processes_one_compiles(own, copier):
    script = (
        "import sys, attune\n"
        "sys.path.insert(0, sys.argv[3])\n"
        "from test_cache import load_first\n"
        "attune._compile._load = load_first\n"
        "print(attune.compile('dot_product{}', compiler=sys.argv[1], cache=sys.argv[2]).name)\n"
    )
    tests = str(pathlib.Path(__file__).parent)
    command = [sys.executable, "-c", script, copier[0], str(own.folder), tests]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    names = [p.communicate(timeout=120)[0] for p in processes]
    assert [p.returncode for p in processes] == [0, 0, 0] and len(set(names)) == 1 and names[0]
    assert own.count() == 1
    assert not list(own.folder.glob("*.part"))


def test_nothing_is_compiled_if_that_is_forbidden(own, monkeypatch):
    monkeypatch.setenv("ATTUNE_NO_COMPILE", "1")
    with pytest.raises(attune.CompileError, match="does not have this operator, and ATTUNE_NO_COMPILE is set"):
        own()
    monkeypatch.setenv("ATTUNE_NO_COMPILE", "0")
    own()
    monkeypatch.setenv("ATTUNE_NO_COMPILE", "1")
    own()
    own(compiler="/no/such/compiler")
    assert own.count() == 1


def test_without_a_compiler_the_cache_is_enough(own, monkeypatch):
    own()
    own(compiler="/no/such/compiler")
    with pytest.raises(attune.CompileError, match="there is no /no/such/compiler"):
        own("dot_product{} + alibi{0.5}", compiler="/no/such/compiler")
    monkeypatch.setenv("ATTUNE_CXX", "/no/such/thing")
    with pytest.raises(attune.CompileError, match="there is no /no/such/thing"):
        own("dot_product{} + alibi{0.5}", compiler=None)


def test_variables_choose_the_compiler_and_the_folder(own, monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", "/no/such/thing")
    monkeypatch.setenv("ATTUNE_CXX", own_compiler(own))
    monkeypatch.setenv("ATTUNE_CACHE", str(tmp_path / "other" / "folder"))
    own(compiler=None, cache=None)
    assert own.count() == 1 and libraries(tmp_path / "other" / "folder")
    monkeypatch.delenv("ATTUNE_CXX")
    monkeypatch.setenv("CXX", own_compiler(own))
    own(compiler=None, cache=None)
    assert own.count() == 1


def test_a_folder_of_others_is_refused(own, monkeypatch, tmp_path):
    own.folder.mkdir(mode=0o700)
    for mode in (0o770, 0o707, 0o722):
        own.folder.chmod(mode)
        with pytest.raises(attune.CompileError, match=f"other users may write.*chmod 700 {own.folder}"):
            own()
    own.folder.chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: own.folder.stat().st_uid + 1)
    with pytest.raises(attune.CompileError, match="belongs to user .*set ATTUNE_CACHE"):
        own()
    monkeypatch.undo()
    (tmp_path / "file").write_text("")
    with pytest.raises(attune.CompileError, match="is no folder"):
        own(cache=tmp_path / "file")
    with pytest.raises(attune.CompileError, match="cannot be made"):
        own(cache=tmp_path / "file" / "below")
    assert own.count() == 0


def test_loading_takes_milliseconds(own, monkeypatch):
    """At most 10 for the library of one operator. This library has several, and machines that run tests are busy: up to 33
    were seen."""
    own()

    def never(*_, **__):
        raise AssertionError("headers are listed once per process, and the compiler is asked once")

    monkeypatch.setattr(attune._cache, "_files", never)
    monkeypatch.setattr(subprocess, "run", never)
    times = []
    for _ in range(9):
        attune._compile._loaded.clear()
        start = time.process_time()
        attune.compile("dot_product{}", compiler=own_compiler(own), cache=own.folder)
        times.append(time.process_time() - start)
    print(f"{min(times) * 1e3:.1f} ms")
    assert min(times) < 0.1


def test_a_failed_compilation_leaves_its_source_and_nothing_else(own, tmp_path):
    failing = tmp_path / "failing"
    script = '#!/bin/sh\n[ "$1" = --version ] && exit 0\necho "cc1plus: fatal error: no memory" >&2\nexit 1\n'
    failing.write_text(script)
    failing.chmod(0o755)
    with pytest.raises(attune.CompileError, match="the compiler failed: no memory") as e:
        own(compiler=str(failing))
    assert not libraries(own.folder) and not list(own.folder.glob("*.part"))
    (source,) = own.folder.glob("*.cpp")
    assert e.value.command.endswith(str(source)) and "fatal error: no memory" in e.value.log


# --- presets that the package was built without -----------------------------------------------------------------------


@pytest.fixture
def without_softmax(own, monkeypatch, tmp_path):
    """A package without the preset softmax, and the copier as its compiler: softmax is the first of the library."""
    monkeypatch.setenv("ATTUNE_CXX", own_compiler(own))
    monkeypatch.setenv("ATTUNE_CACHE", str(own.folder))
    functions = _presets.library().operators["softmax"]
    monkeypatch.setattr(_presets, "_operators", {})
    monkeypatch.setitem(_presets.library().operators, "softmax", functions)
    monkeypatch.delitem(_presets.library().operators, "softmax")
    attune._compile._loaded.clear()
    return own


X = np.random.default_rng(1).standard_normal((1, 2, 5, 4))


def test_a_preset_is_the_same_built_or_not(without_softmax, monkeypatch):
    assert "softmax" in attune.presets() and "softmax" not in attune.presets(built=True)
    later = attune.softmax
    assert later is attune.op("softmax") and pickle.loads(pickle.dumps(later)) is later
    assert without_softmax.count() == 0, "nothing is compiled before a call"
    out, gradients = later(X, X, X), later.vjp(X, X, X, dout=X)
    assert without_softmax.count() == 1
    monkeypatch.undo()
    built = attune.op("softmax")
    assert built is not later
    assert np.array_equal(built(X, X, X), out)
    assert all(np.array_equal(x, gradients[name]) for name, x in built.vjp(X, X, X, dout=X).items())
    assert (repr(later), later.__doc__) == (repr(built), built.__doc__)
    assert inspect.signature(later) == inspect.signature(built)
    for name in attune.presets(built=True):
        assert _presets.library().operators[name].description == _presets._described()["presets"][name]["description"], name


def test_a_preset_is_compiled_for_float64_apart(without_softmax):
    single = X.astype(np.float32)
    for _ in range(2):
        attune.op("softmax")(single, single, single)
        assert without_softmax.count() == 1, "float32 and 16 bits are one library"
    for _ in range(2):
        attune.op("softmax")(X, X, X)
        assert without_softmax.count() == 2


def test_a_wrong_call_compiles_nothing(without_softmax):
    with pytest.raises(attune.Error, match="q has the type int64"):
        attune.op("softmax")(X.astype(int), X, X)
    with pytest.raises(TypeError, match="softmax.. has no argument 'sigm'"):
        attune.op("softmax")(X, X, X, sigm=1)
    assert without_softmax.count() == 0


def test_a_preset_that_cannot_be_compiled(without_softmax, monkeypatch):
    start = f"the package was built without the preset softmax, the folder {without_softmax.folder} does not have it, and "
    end = "build the package with all presets: ATTUNE_PYTHON_PRESETS=all pip install ./python"
    monkeypatch.setenv("ATTUNE_NO_COMPILE", "1")
    with pytest.raises(attune.CompileError, match=f"{start}ATTUNE_NO_COMPILE is set.*{end}"):
        attune.op("softmax")(X, X, X)
    monkeypatch.delenv("ATTUNE_NO_COMPILE")
    monkeypatch.setenv("ATTUNE_CXX", "/no/such/thing")
    with pytest.raises(attune.CompileError, match=f"{start}it cannot be compiled: there is no /no/such/thing.*{end}"):
        attune.op("softmax")(X, X, X)


def test_one_line_says_what_is_compiled(own, without_softmax, monkeypatch, capsys):
    attune.op("softmax")(X, X, X)
    said = capsys.readouterr().err
    assert said == f"attune: compiles the preset softmax, once: about 15 s. Kept in {own.folder}; ATTUNE_QUIET=1 hides this line\n"
    own()
    assert capsys.readouterr().err.startswith("attune: compiles this operator, once: about 15 s. Kept in ")
    own()
    monkeypatch.setenv("ATTUNE_QUIET", "1")
    own("dot_product{} + alibi{0.5}")
    assert own.count() == 3 and capsys.readouterr() == ("", "")


# --- judges -----------------------------------------------------------------------------------------------------------


def test_judges_are_compiled_side_by_side_and_said_in_one_line(own, monkeypatch, capsys):
    monkeypatch.setattr(attune._compile._headers, "flags", lambda words, kind: [])
    companions = Companions(source_of_preset("softmax", "softmax_attention(m)"), own_compiler(own), own.folder)
    companions.prepare_judges(gradients=False)
    said = capsys.readouterr().err
    assert own.count() == 2
    assert said.startswith("attune: compiles judges of the preset softmax, once: about ") and said.count("\n") == 1
    companions.prepare_judges(gradients=True)
    assert own.count() == 3 and capsys.readouterr().err.count("compiles judges") == 1
    companions.prepare_judges(gradients=True)
    assert own.count() == 3 and capsys.readouterr().err == ""


def test_judges_that_the_package_has_are_not_compiled(own, monkeypatch, tmp_path):
    monkeypatch.setattr(attune._compile, "NATIVE", tmp_path)
    for preset, built in (("softmax", True), ("sink", False)):
        companions = Companions(source_of_preset(preset, f"{preset}_attention(m)"), own_compiler(own), own.folder)
        (tmp_path / "judges_softmax.so").touch()
        assert bool(companions._built("verdict")) == built
        assert companions._built("reference") is None
    Companions(source_of_preset("softmax", "softmax_attention(m)"), own_compiler(own), own.folder).prepare_judges(True)
    assert own.count() == 0
