# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Which library a wheel loads, where its files are, and the syntax of its sources."""

import ast
import pathlib
import shutil
import subprocess
import sys

import pytest

import attune
from attune import _presets

_V2 = "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"
_V3 = f"{_V2} avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"
_V4 = f"{_V3} avx512f avx512bw avx512cd avx512dq avx512vl"
_AMX = f"{_V4} avx512_bf16 amx_tile amx_bf16"
_ALL = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4-amx")


@pytest.fixture
def package(monkeypatch, tmp_path):
    """Makes a package with libraries, on a processor with features; returns the name of the library that is chosen."""

    def choose(features, built=_ALL, machine="x86_64"):
        folder = tmp_path / "_native"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for level in built:
            (folder / f"attune_{level}.so").touch()
        monkeypatch.delenv("ATTUNE_LIBRARY", raising=False)
        monkeypatch.setattr(_presets, "_FOLDER", folder)
        monkeypatch.setattr(_presets, "_flags", lambda: set(features.split()))
        monkeypatch.setattr(_presets.platform, "machine", lambda: machine)
        return _presets._path().name

    return choose


def without(features, name):
    return " ".join(x for x in features.split() if x != name)


@pytest.mark.parametrize("more", ["", " fpu sse2 avx512_bf16 amx_tile"])
def test_the_best_level_of_the_processor(package, more):
    assert package(_AMX + more) == "attune_x86-64-v4-amx.so"
    assert package(_V4 + more) == "attune_x86-64-v4.so"
    assert package(_V3 + more) == "attune_x86-64-v3.so"
    assert package(_V2 + more) == "attune_x86-64-v2.so"


def test_one_feature_less_is_a_level_less(package):
    for name in set(_AMX.split()) - set(_V4.split()):
        assert package(without(_AMX, name)) == "attune_x86-64-v4.so", name
    for name in set(_V4.split()) - set(_V3.split()):
        assert package(without(_V4, name)) == "attune_x86-64-v3.so", name
    for name in set(_V3.split()) - set(_V2.split()):
        assert package(without(_V3, name)) == "attune_x86-64-v2.so", name
        assert package(without(_V4, name)) == "attune_x86-64-v2.so", f"{name}: v4 needs all of v3"


def test_a_level_that_is_not_built(package):
    assert package(_V4, built=_ALL[:2]) == "attune_x86-64-v3.so"
    assert package(_V3, built=("x86-64-v2", "x86-64-v4")) == "attune_x86-64-v2.so"
    assert package(_V2, built=("native",)) == "attune_native.so"
    assert package("", built=("native", *_ALL)) == "attune_native.so", "built on this machine, for this machine"


def test_no_level_fits(package):
    for features, built, machine, has in (
        (without(_V2, "ssse3"), _ALL, "x86_64", "none of them"),
        ("", _ALL, "x86_64", "none of them"),
        (_V3, ("x86-64-v4",), "x86_64", "x86-64-v3"),
        (_V4, _ALL, "aarch64", "none of them"),
    ):
        with pytest.raises(ImportError, match=f"this processor .{machine}. is {has}: build the package"):
            package(features, built, machine)
    with pytest.raises(ImportError, match="no library in .*_native: install the package by pip, or set ATTUNE_LIBRARY"):
        package(_V4, built=())


def test_a_chosen_library(package, monkeypatch):
    package(_V4)
    monkeypatch.setenv("ATTUNE_LIBRARY", "/somewhere/else.so")
    assert _presets._path() == pathlib.Path("/somewhere/else.so")


def test_levels_of_this_processor():
    found = _presets.levels()
    assert found == [level for level in reversed(_ALL) if level in found]


# --- the folders of an installation -----------------------------------------------------------------------------------


def test_include_has_the_headers():
    folder = pathlib.Path(attune.get_include())
    for name in ("version.hpp", "policies.hpp", "interop/c_abi.h", "interop/c_operator.hpp"):
        assert (folder / "attune" / name).exists(), name


def test_cmake_dir(monkeypatch, tmp_path):
    from attune import _places

    monkeypatch.setattr(_places, "_HERE", tmp_path)
    with pytest.raises(FileNotFoundError, match="no attuneConfig.cmake in .*: only an installed package has it"):
        attune.get_cmake_dir()
    folder = tmp_path / "share" / "cmake" / "attune"
    folder.mkdir(parents=True)
    (folder / "attuneConfig.cmake").touch()
    assert attune.get_cmake_dir() == str(folder)


def test_the_program_attune():
    program = pathlib.Path(sys.executable).with_name("attune")
    if not program.exists():
        pytest.skip("a checkout: only an installed package has the program")
    assert subprocess.run([program, "version"], check=True, stdout=subprocess.PIPE).stdout.decode() == attune.__version__ + "\n"
    assert subprocess.run([program, "versoin"], stderr=subprocess.PIPE).returncode == 2


@pytest.mark.compiles
def test_find_package_finds_the_installed_package(tmp_path):
    consumer = pathlib.Path(__file__).parents[2] / "tests" / "consumer" / "find_package"
    try:
        folder = attune.get_cmake_dir()
    except FileNotFoundError:
        pytest.skip("a checkout: only an installed package has attuneConfig.cmake")
    if not shutil.which("cmake") or not consumer.exists():
        pytest.skip("CMake or the project of tests/consumer is not here")
    configure = ["cmake", "-S", consumer, "-B", tmp_path, f"-Dattune_DIR={folder}", "-DCONSUMER_COMPONENTS="]
    said = subprocess.run(configure, check=True, stdout=subprocess.PIPE).stdout.decode()
    if (pathlib.Path(attune.get_include()) / "xsimd").exists():  # a wheel
        assert f" in {attune.get_include()}," in said, said
    subprocess.run(["cmake", "--build", tmp_path], check=True, stdout=subprocess.PIPE)
    subprocess.run([tmp_path / "consumer"], check=True, stdout=subprocess.PIPE)


# --- the sources ------------------------------------------------------------------------------------------------------


def test_sources_have_no_syntax_newer_than_python_3_9():
    root = pathlib.Path(attune.__file__).parent
    sources = [*root.rglob("*.py"), *root.rglob("*.pyi"), *pathlib.Path(__file__).parent.rglob("*.py")]
    assert len(sources) > 20
    for source in sources:
        ast.parse(source.read_text(), str(source), feature_version=(3, 9))


def test_the_package_says_that_it_has_types():
    assert (pathlib.Path(attune.__file__).parent / "py.typed").exists()
