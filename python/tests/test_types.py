# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The annotations of the package: mypy reads typical uses and the package itself. Of the full tier; needs mypy."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

_TYPED = pathlib.Path(__file__).parent / "typed"
_SOURCES = pathlib.Path(__file__).parents[1] / "src"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A folder for what mypy remembers: it takes a minute to read PyTorch."""
    return tmp_path_factory.mktemp("mypy")


def _mypy(cache, *words):
    command = [sys.executable, "-m", "mypy", "--warn-unused-ignores", "--cache-dir", cache]
    environment = {**os.environ, "MYPYPATH": str(_SOURCES)}  # an installed package has no errors, says mypy
    done = subprocess.run([*command, *words], stdout=subprocess.PIPE, cwd=cache, env=environment)
    assert done.returncode == 0, done.stdout.decode()


@pytest.mark.parametrize("name", ["uses", "uses_of_torch"])
def test_types_of_typical_uses(cache, many, name):
    if not many:
        pytest.skip("of the full tier")
    pytest.importorskip("mypy")
    if "torch" in name:
        pytest.importorskip("torch")
    _mypy(cache, _TYPED / f"{name}.py")


def test_types_inside_of_the_package(cache, many):
    if not many:
        pytest.skip("of the full tier")
    pytest.importorskip("mypy")
    modules = [word for name in ("attune", "attune.__main__") for word in ("-m", name)]
    if importlib.util.find_spec("torch") is not None:
        modules += ["-m", "attune.torch"]
    if importlib.util.find_spec("mpi4py") is not None:
        modules += ["-m", "attune.mpi"]
    _mypy(cache, *modules)
