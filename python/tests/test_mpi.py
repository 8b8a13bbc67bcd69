# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""attune.mpi: mpi_program.py on two ranks, one launch for all of its cases; and what needs no second rank."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import attune
import attune.mpi
from attune import _mpi_library

from conftest import MANY, SEED

_PROGRAM = pathlib.Path(__file__).parent / "mpi_program.py"
_TEXT = _PROGRAM.read_text()
_NAMES = re.findall(r"^@case\ndef (\w+)", _TEXT, re.M), re.findall(r"^@full_case\ndef (\w+)", _TEXT, re.M)
_SECONDS = 1200  # until mpirun ends ranks that wait for ever; it has the time to compile


def _launcher():
    """mpirun with its options, or a text that says what is missing."""
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        pytest.skip("there is no mpirun: install openmpi-bin")
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True).stdout
    if "Open MPI" in version or "OpenRTE" in version:
        # Ranks share the cores. Shared memory without the system call that containers forbid.
        flags = ["--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "--timeout", str(_SECONDS)]
        return [mpirun, *flags, "--mca", "btl_vader_single_copy_mechanism", "none"]
    return [mpirun]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """For each case the errors of the ranks."""
    path = tmp_path_factory.mktemp("mpi") / "results.json"
    command = [*_launcher(), "-n", "2", sys.executable, str(_PROGRAM), str(SEED), str(int(MANY)), str(path)]
    environment = {**os.environ, "MPIEXEC_TIMEOUT": str(_SECONDS)}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    assert done.returncode == 0 and path.exists(), done.stdout
    return json.loads(path.read_text())


@pytest.mark.compiles
@pytest.mark.parametrize("name", _NAMES[0] + _NAMES[1])
def test_two_ranks(name, request):
    if name in _NAMES[1] and not MANY:
        pytest.skip("of the full tier")
    errors = request.getfixturevalue("results")[name]
    assert errors == ["", ""], "\n".join(f"rank {r}: {text}" for r, text in enumerate(errors))


def test_every_case_is_a_test():
    assert len(_NAMES[0]) == _TEXT.count("\n@case\n") and len(_NAMES[1]) == _TEXT.count("\n@full_case\n")
    assert len(_NAMES[0]) > 10


class Ranks:
    """Number and size of a rank, in place of a communicator."""

    def __init__(self, rank, size):
        self.Get_rank, self.Get_size = (lambda: rank), (lambda: size)


@pytest.mark.parametrize(
    "order, length, expected",
    [
        ("contiguous", 5, [[0, 1, 2], [3, 4]]),
        ("zigzag", 8, [[0, 1, 6, 7], [2, 3, 4, 5]]),
        ("zigzag", 6, [[0, 1, 5], [2, 3, 4]]),
        ("zigzag", 1, [[0], []]),
        ([[(4, 5)], [(0, 4)]], 5, [[4], [0, 1, 2, 3]]),
        ([[(0, 1), (3, 3), (3, 4)], []], 4, [[0, 3], []]),
    ],
)
def test_positions_of_a_rank(order, length, expected):
    for r in range(2):
        found = attune.mpi.positions(Ranks(r, 2), length, order)
        assert found.dtype == np.int64 and found.tolist() == expected[r]


@pytest.mark.parametrize(
    "order, length, text",
    [
        ("spiral", 4, "order has the value 'spiral'; expected \"contiguous\", \"zigzag\""),
        ([[(0, 4)]], 4, "order has lists for 1 ranks"),
        ([[(0, 4)], [(4,)]], 4, r"order has the interval (4,)"),
        ([[(0, 2.5)], []], 4, r"order has the interval (0, None)"),
        ([[(0, 4)], 7], 4, "order has the value"),
        ("zigzag", -1, "length has the value -1"),
    ],
)
def test_wrong_positions(order, length, text):
    with pytest.raises(attune.Error, match=re.escape(text)):
        attune.mpi.positions(Ranks(0, 2), length, order)


def test_without_mpi4py_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ImportError, match="pip install mpi4py"):
        attune.mpi.on_ranks(None, attune.op("softmax"))


@pytest.fixture
def library():
    """The MPI of a process, without starting MPI."""
    made = object.__new__(_mpi_library.MpiLibrary)
    made.identity, made._vendor = "Open MPI v0", "Open MPI"
    return made


def test_without_a_compiler_of_mpi_the_message_says_what_to_install(library, monkeypatch, tmp_path):
    monkeypatch.setenv("ATTUNE_MPICC", "no_such_mpicc")
    assert library.options() is None
    with pytest.raises(attune.CompileError, match="no_such_mpicc.*libopenmpi-dev.*ATTUNE_MPICC"):
        attune.op("softmax")._companions.__class__(
            attune.op("softmax")._companions._source, None, tmp_path / "cache"
        ).run("mpi", 0, against=library)


def test_options_come_from_the_compiler_of_mpi(library, monkeypatch, tmp_path):
    script = tmp_path / "mpicc"
    script.write_text('#!/bin/sh\n[ "$1" = -show ] && echo "gcc -I/a -L/b -lmpi"\n')
    script.chmod(0o755)
    monkeypatch.setenv("ATTUNE_MPICC", str(script))
    assert library.options()[:3] == ["-I/a", "-L/b", "-lmpi"]
    script.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(attune.CompileError, match="does not print its options"):
        library.options()
