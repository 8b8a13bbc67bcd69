# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Exceptions of attune.policy and attune.compile."""

from __future__ import annotations


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


def pointed(text: str, column: int) -> str:
    """A line of a text, and a caret under its column, which counts from 1."""
    line = text.replace("\t", " ")
    return f"    {line}\n    {' ' * (column - 1)}^"
