# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Exceptions of attune.policy and attune.compile, and what error texts share."""

from __future__ import annotations

import difflib
from typing import Iterable


class CompileError(RuntimeError):
    """An operator could not be compiled. The text says what is wrong, where, and how to repeat the compilation.

    part: which text is wrong, for example "normalizer", or None. line, column: the place in it, from 1, or None.
    command: the command of the compiler, or None. log: everything that the compiler printed.
    """

    def __init__(
        self,
        text: str,
        part: str | None = None,
        line: int | None = None,
        column: int | None = None,
        command: str | None = None,
        log: str = "",
    ):
        super().__init__(text)
        self.part, self.line, self.column, self.command, self.log = part, line, column, command, log


class ExpressionError(CompileError, ValueError):
    """An expression is wrong. The text says at which column, what is wrong and what is allowed."""


# How tracebacks print them, and where users find them.
CompileError.__module__ = ExpressionError.__module__ = "attune"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The end of an error text, which names the nearest names; empty if none is near."""
    listed = sorted(names)
    near = difflib.get_close_matches(name, listed, 3, 0.7)
    if len(name) > 2:
        near += [x for x in listed if (name in x or len(x) > 2 and x in name) and x not in near][: 3 - len(near)]
    return f". Did you mean {' or '.join(near)}?" if near else ""


def pointed(text: str, column: int) -> str:
    """A line of a text, and a caret under its column, which counts from 1."""
    line = text.replace("\t", " ")
    return f"    {line}\n    {' ' * (column - 1)}^"
