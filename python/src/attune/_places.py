# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Where the headers are, and the version."""

import pathlib
import re

_HERE = pathlib.Path(__file__).parent
_SOURCES = _HERE.parent.parent.parent  # of a checkout


def get_include():
    """The folder with attune's headers, and with xsimd's in a wheel. For compilers: -I."""
    packed = _HERE / "include"
    folder = packed if packed.is_dir() else _SOURCES / "include"
    if not (folder / "attune" / "version.hpp").exists():
        raise FileNotFoundError(f"attune: no headers in {packed} nor in {_SOURCES / 'include'}")
    return str(folder)


def _version():
    text = (pathlib.Path(get_include()) / "attune" / "version.hpp").read_text()
    return ".".join(re.search(rf"ATTUNE_VERSION_{part} (\d+)", text).group(1) for part in ("MAJOR", "MINOR", "PATCH"))


__version__ = _version()
