# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""nvcc, which compiles the companions of a CUDA device."""

from __future__ import annotations

import os
import pathlib
import shlex
import shutil
import sys

_NAMES = ("nvcc", "/usr/local/cuda/bin/nvcc")


class Nvcc:
    """How a companion is compiled for the devices of a compute capability, (9, 0) say."""

    suffix = ".cu"
    quiet = ("-Xcompiler=-fdiagnostics-color=never",)
    link = ("-shared", "-Xlinker=-s")

    def __init__(self, capability: tuple[int, int]) -> None:
        self.architecture = "sm_{}{}".format(*capability)

    def words(self, _: str | None = None) -> list[str] | None:
        """The words of the command, the first with its path; None: there is no nvcc.

        $ATTUNE_NVCC, $CUDACXX, nvcc of PATH, of /usr/local/cuda, or of PyPI's nvidia-cuda-nvcc in this environment.
        """
        command = os.environ.get("ATTUNE_NVCC") or os.environ.get("CUDACXX")
        words = shlex.split(command) if command else []
        for name in [words[0]] if words else (*_NAMES, *_of_pypi()):
            path = shutil.which(name)
            if path:
                return [path, *words[1:]]
        return None

    def flags(self, codes: int, words: list[str], kind: str) -> list[str]:
        """Options that are part of the key. `codes` are of the host's types: the source has the device's."""
        host = "-Xcompiler=-fPIC,-fvisibility=hidden,-pthread"
        return ["-std=c++20", "-O2", f"-arch={self.architecture}", host, f"-DATTUNE_C_TYPES={codes}"]

    def missing(self, chosen: str | None = None) -> str:
        """Why words() returned None, and what to do."""
        return (
            "there is no nvcc. Install NVIDIA's CUDA toolkit 13 (or pip install nvidia-cuda-nvcc), or set ATTUNE_NVCC"
        )


def _of_pypi() -> list[str]:
    """Places of nvcc in the packages of this environment."""
    places: list[str] = []
    for folder in sys.path:
        found = pathlib.Path(folder or ".").glob("nvidia/*/bin/nvcc")
        places += map(str, sorted(found))
    return places
