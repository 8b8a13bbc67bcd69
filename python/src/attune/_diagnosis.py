# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Messages of C++ compilers in attune's words, with the user's line."""

from ._errors import CompileError


def error(log, parts, command):
    """The exception for what a compiler printed."""
    return CompileError("attune: the compiler refuses the operator\n" + log[:3000] + f"\n  repeat: {command}", command=command, log=log)
