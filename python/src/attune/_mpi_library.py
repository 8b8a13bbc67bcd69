# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The MPI of this process, as mpi4py loads it, and the options with which operators are compiled and linked for it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from typing import Any

from ._errors import CompileError


def mpi4py_module() -> Any:
    """mpi4py.MPI; an ImportError with a readable message where it is missing."""
    try:
        from mpi4py import MPI
    except ImportError as e:
        raise ImportError(
            f"attune: attune.mpi needs the package mpi4py and the MPI library that it was built for ({e}): install MPI "
            "(libopenmpi-dev and openmpi-bin on Debian and Ubuntu), then run pip install mpi4py"
        ) from e
    return MPI


class MpiLibrary:
    """How a companion is compiled and linked for the MPI that mpi4py uses."""

    def __init__(self) -> None:
        mpi = mpi4py_module()
        #: MPI's own text about itself. It is part of the key of a compiled operator.
        self.identity: str = mpi.Get_library_version()
        self._vendor: str = mpi.get_vendor()[0]

    def options(self) -> list[str] | None:
        """Options of the compiler and the linker; None if there is no compiler command of MPI."""
        command = self._command()
        if command is None:
            return None
        run = subprocess.run([*command, "-show"], capture_output=True, text=True)
        if run.returncode != 0:
            problem = f"the command '{shlex.join(command)} -show' does not print its options"
            raise CompileError(f"attune: {problem}: set ATTUNE_MPICC", command=shlex.join(command), log=run.stderr)
        # attune calls MPI's C functions; the C++ ones of old releases are left out.
        return [*shlex.split(run.stdout)[1:], "-DOMPI_SKIP_MPICXX=1", "-DMPICH_SKIP_MPICXX=1"]

    def missing(self) -> str:
        """Why options() returned None, and what to do."""
        return (
            f"attune: an operator over MPI is compiled with the options of {', '.join(self._names())}, and there is no "
            "such command. Install MPI's development files (libopenmpi-dev or libmpich-dev on Debian and Ubuntu), or "
            "set ATTUNE_MPICC to the C compiler of your MPI"
        )

    def _names(self) -> list[str]:
        """Commands that may be this MPI's C compiler, the likeliest first."""
        chosen = os.environ.get("ATTUNE_MPICC")
        if chosen:
            return [chosen]
        import mpi4py

        found = [mpi4py.get_config().get("mpicc", "")] if hasattr(mpi4py, "get_config") else []
        found += {"Open MPI": ["mpicc.openmpi"], "MPICH": ["mpicc.mpich"]}.get(self._vendor, [])
        return [*filter(None, found), "mpicc"]

    def _command(self) -> list[str] | None:
        for name in self._names():
            words = shlex.split(name)
            if words and shutil.which(words[0]):
                return words
        return None
