# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Where the headers are, and the version."""

from __future__ import annotations

import pathlib
import re

_HERE = pathlib.Path(__file__).parent
NATIVE = _HERE / "_native"  # what is built: libraries, and in a wheel the program
_SOURCES = _HERE.parent.parent.parent  # of a checkout


def get_include() -> str:
    """The folder with attune's headers, and with xsimd's in a wheel. For compilers: -I."""
    packed = _HERE / "include"
    folder = packed if packed.is_dir() else _SOURCES / "include"
    if not (folder / "attune" / "version.hpp").exists():
        raise FileNotFoundError(f"attune: no headers in {packed} nor in {_SOURCES / 'include'}")
    return str(folder)


def get_cmake_dir() -> str:
    """The folder of attuneConfig.cmake, for CMake: -Dattune_DIR=, then find_package(attune CONFIG)."""
    folder = _HERE / "share" / "cmake" / "attune"
    if not (folder / "attuneConfig.cmake").exists():
        raise FileNotFoundError(
            f"attune: no attuneConfig.cmake in {folder}: only an installed package has it. Run pip install on the folder "
            "python of the sources, or cmake --install on the sources"
        )
    return str(folder)


def _version() -> str:
    text = (pathlib.Path(get_include()) / "attune" / "version.hpp").read_text()
    return ".".join(re.findall(r"define ATTUNE_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))


__version__ = _version()
