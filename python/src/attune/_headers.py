# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Headers of other projects that some companions include: found as the compiler finds them, or asked for in words."""

import re
import shlex
import subprocess

from ._errors import CompileError

# Name, header, the folder that systems put it in, packages.
_EIGEN = ("Eigen", "Eigen/Core", "eigen3", "Debian, Ubuntu: libeigen3-dev; Fedora: eigen3-devel; Arch, conda-forge, Homebrew: eigen")
_BOOST = (
    "Boost", "boost/multiprecision/cpp_bin_float.hpp", None,
    "Debian, Ubuntu: libboost-dev; Fedora: boost-devel; conda-forge: libboost-headers; Arch, Homebrew: boost",
)
_NEEDED = {
    "reference": (_EIGEN,),
    "reference_vjp": (_EIGEN,),
    "reference50": (_EIGEN, _BOOST),
    "reference50_vjp": (_EIGEN, _BOOST),
    "verdict": (_EIGEN,),
    "verdict_gradients": (_EIGEN,),
}


def flags(words, kind):
    """Options with which the compiler finds what a companion includes. words: the compiler's command."""
    found = []
    for name, header, folder, package in _NEEDED.get(kind, ()):
        if _has(words, header):
            continue
        place = folder and _folder(words, folder, header)
        if not place:
            raise CompileError(
                f"attune: the oracle's library \"{kind}\" needs the headers of {name}, and {shlex.join(words)} does not "
                f"find <{header}>. Install them ({package}), or say where they are: "
                f"ATTUNE_CXX='{words[0]} -isystem FOLDER'"
            )
        found += ["-isystem", place]
    return found


def _run(words, options, text):
    run = subprocess.run([*words, *options, "-x", "c++", "-"], input=text, capture_output=True, text=True)
    return run.stdout if run.returncode == 0 else ""


def _has(words, header):
    text = f"#if __has_include(<{header}>)\nattune_has_it\n#endif\n"
    return "attune_has_it" in _run(words, ["-E", "-std=c++20"], text)


def _folder(words, folder, header):
    """The folder below one of the compiler's own in which the header is; None: there is none."""
    listed = _run(words, ["-M", "-std=c++20"], f"#include <{folder}/{header}>\n")
    paths = re.findall(r"(?:[^\s\\]|\\.)+", listed.replace("\\\n", " "))
    end = f"/{folder}/{header}"
    place = next((path for path in paths if path.endswith(end)), None)
    return place and re.sub(r"\\(.)", r"\1", place[: -len(header) - 1])
