# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Messages of C++ compilers, in attune's words and with the user's line. g++ and clang are understood."""

import difflib
import os
import pathlib
import re

from ._errors import CompileError, pointed
from ._expression import FUNCTIONS
from ._places import get_include

_ERROR = re.compile(r"^(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): (?:fatal )?error: (?P<text>.*)$", re.MULTILINE)
_PLACE = re.compile(r"^(?P<file>.+?):(?P<line>\d+):(?P<column>\d+):", re.MULTILINE)
_NO_COLUMN = re.compile(r"^(?P<file>[^\n:]+?):(?P<line>\d+)?:? ?(?:fatal )?error: (?P<text>.*)$", re.MULTILINE)
_ASSERTION = re.compile(
    r"static assertion failed(?: due to requirement '.*')?: (.*)|static_assert failed[^\"]*\"(.*)\""
)
_CHECKED = re.compile(r"(?:\bP = |(?:complete|require_contractions|probe)<)attune_own::part_(\d+)::(\w+)")
_SCALAR = "scalar_that_only_functions_of_math_take"  # of policies/probe.hpp
_SPACES = ("kernel", "gate", "normalizer", "length_scale", "mask")
_FUNCTIONS = sorted({cpp for cpp, _ in FUNCTIONS.values()} | {"infinity", "lowest_logit", "pow", "zero_if_finite"})
_OTHER_NAMES = {"fabs": "abs", "fmax": "larger", "max": "larger", "fmin": "smaller", "min": "smaller"}
_ROW = "position, visible, log_visible, keys, inverse_sqrt_width, logit_shift, logit(p), entries(table, i)"
_BRANCH = (
    "a comparison has one answer for each lane of a register, so it cannot choose a branch: write "
    "math::select(condition, a, b) instead of if and ?:"
)
_NO_RETURN = "this function must return a result, and it has no return"
_NO_T = "a T may be a register of numbers, and cannot become a double or a float: keep every number a T"


def error(log, parts, command):
    """The exception for what a compiler printed."""
    found = _ERROR.search(log)
    if found is None:
        found = _NO_COLUMN.search(log)
        why = found.group("text") if found else (log.strip().splitlines() or ["it printed nothing"])[0]
        return _exception(f"the compiler failed: {why}", None, None, None, command, log)
    message = found.group("text")
    assertion = _ASSERTION.search(message)
    if assertion:
        sentence = next(x for x in assertion.groups() if x is not None).strip()
        part, line, column = _place_of_policy(log, parts)
    else:
        part, line, column = _place_of_error(log, found, parts)
        sentence = _sentence(message, part, line, column)
    return _exception(sentence, part, line, column, command, log)


def _exception(sentence, part, line, column, command, log):
    text = sentence if sentence.startswith("attune: ") else f"attune: {sentence}"
    name = None
    if part is not None:
        name = part.name
        text += f"\n  {name}, line {line}, column {column}:\n{pointed(_line(part, line), column)}"
    text += f"\n  repeat: {command}"
    return CompileError(text, name, line if part else None, column if part else None, command, log)


def _line(part, line):
    lines = part.text.split("\n")
    return lines[line - 1] if 0 < line <= len(lines) else ""


def _place_of_policy(log, parts):
    """The struct that a failed assertion is about, or the expression."""
    found = _CHECKED.search(log)
    if found and int(found.group(1)) < len(parts):
        part = parts[int(found.group(1))]
        at = re.search(rf"\b(?:struct|class|using)\s+{found.group(2)}\b", part.code)
        return (part, *part.place(at.start() if at else part.expression_at))
    return _first_place(log, parts)


def _place_of_error(log, found, parts):
    """The place of an error in the user's text: its own, or the place that it was instantiated from."""
    at = _of_part(found, parts)
    return at or _first_place(log, parts)


def _first_place(log, parts):
    for found in _PLACE.finditer(log):
        at = _of_part(found, parts)
        if at:
            return at
    return None, None, None


def _of_part(found, parts):
    for part in parts:
        if part.label == found.group("file"):
            return part, int(found.group("line")), int(found.group("column"))
    return None


def _called(part, line, column):
    """The function that the user's line calls next to a column, with its namespace; or None."""
    best = None
    for call in re.finditer(r"(?<![\w:.])((?:\w+::)*)(\w+)\s*\(", _line(part, line)):
        near = call.start() <= column and call.end() >= column - 40
        known = call.group(2) in _FUNCTIONS or call.group(2) in _OTHER_NAMES
        if near and known and not call.group(1).startswith(("math::", "attune::")):
            best = call.group(1) + call.group(2)
    return best


def _sentence(message, part, line, column):
    """The message in attune's words."""
    own = re.match(r'(?:#error )?"(attune: [^"]*)"', message)
    if own:
        return own.group(1)
    if "comparison_of_scores_is_not_a_bool" in message:
        return _BRANCH
    if "no return statement" in message or "does not return a value" in message:
        return _NO_RETURN
    for pattern, of in _RULES:
        found = re.search(pattern, message)
        if found:
            sentence = of(found, part, line, column)
            if sentence:
                return sentence
    plain = re.sub(rf"(?:const )?attune::detail::{_SCALAR}", "T", message).replace(" [-Wfatal-errors]", "")
    return f"the compiler refuses this: {plain}"


def _of_function(found, part, line, column):
    """A function that does not take a T."""
    called = part and _called(part, line, column)
    if not called:
        return None
    name = called.rsplit("::", 1)[-1]
    return f"{called} does not take a T, which may be a register of numbers: write math::{_OTHER_NAMES.get(name, name)}"


def _of_conversion(found, part, line, column):
    return _of_function(found, part, line, column) or _NO_T


def _of_name(found, part, line, column):
    """A name that nothing has."""
    name = found.group("name")
    called = part and _called(part, line, column)
    if called and called.rsplit("::", 1)[-1] == name:
        return _of_function(found, part, line, column)
    if part and part.namespace and "{" not in part.text:
        return f"the name {name} is unknown. Give an expression of Python as attune.policy.{part.role}(...)"
    space = found.groupdict().get("space") or ""
    space = space.rsplit("::", 1)[-1]
    if space == "math":
        return f"attune::math has no function {name}{_near(name, _FUNCTIONS)} It has {', '.join(_FUNCTIONS)}"
    known = _policies(space or (part.namespace if part else None))
    kind = (space or part.namespace) if known else None
    if known and part and (space or line >= part.place(part.expression_at)[0]):
        return f"the {kind.replace('_', ' ')} {name} is unknown{_near(name, known)} attune has {', '.join(known)}"
    members = _enumerators(space)
    if members:
        return f"{space} has no {name}{_near(name, members)} It has {', '.join(members)}"
    return f"the name {name} is unknown"


def _of_member(found, part, line, column):
    """A member that a struct of attune does not have."""
    name, of = found.group("name"), found.group("type")
    plain = re.sub(r"<.*", "", of).rsplit("::", 1)[-1].rsplit(" ", 1)[-1]
    if plain == "row":
        return f"the row has no member {name}{_near(name, _ROW.split(', '))} It has {_ROW}"
    members = _members(plain)
    if members:
        return f"{plain} has no member {name}{_near(name, members)} It has {', '.join(members)}"
    return f"{plain} has no member {name}"


def _near(name, known):
    near = difflib.get_close_matches(name, known, 1)
    return f": do you mean {near[0]}?" if near else "."


def _headers(*folders):
    root = pathlib.Path(get_include()) / "attune"
    for folder in folders:
        for path in sorted((root / folder).glob("*.hpp")):
            yield path.read_text()


def _policies(namespace):
    """The policies of a namespace of attune."""
    if namespace not in _SPACES:
        return []
    found = []
    for text in _headers(os.path.join("policies", namespace)):
        body = text.partition(f"namespace attune::{namespace} {{")[2]
        for name in re.findall(r"^(?:struct|class|using) (\w+)\b(?!<)[^;{]*[{=]", body, re.MULTILINE):
            if not name.startswith(("no_", "is_", "bound_", "unbound_", "basic_")):
                found.append(name)
    return sorted(set(found) - {"expression_node", "mapped"})


def _body(kind, name):
    for text in _headers("core", "policies", *(f"policies/{space}" for space in _SPACES)):
        found = re.search(rf"^{kind} {name} (?:: [\w:<>, ]+ )?\{{(.*?)^\}};", text, re.MULTILINE | re.DOTALL)
        if found:
            return re.sub(r"//[^\n]*", "", found.group(1))
    return ""


def _enumerators(name):
    return re.findall(r"^\s+(\w+)\b(?=[^;]*?(?:,|=|$))", _body("enum class", name), re.MULTILINE) if name else []


def _members(name):
    member = r"^  (?!static|using|template|struct)[\w:]+ (\w+)(?: =[^;]*|\{[^;]*)?;"
    return re.findall(member, _body("struct", name), re.MULTILINE)


_RULES = (
    (r"'(?P<name>\w+)' (?:was not declared|has not been declared|does not name a type)", _of_name),
    (r"use of undeclared identifier '(?P<name>\w+)'", _of_name),
    (r"unknown type name '(?P<name>\w+)'", _of_name),
    (r"'(?P<name>\w+)' is not a member of '(?P<space>[\w:]+)'", _of_name),
    (r"no (?:member|type|template) named '(?P<name>\w+)' in (?:namespace )?'(?P<space>[\w:]+)'(?!.*<)", _of_name),
    (r"'(?P<type>[\w:<>, ]+)' has no (?:non-static data )?member named '(?P<name>\w+)'", _of_member),
    (r"designator '(?P<name>\w+)' does not refer to any field in type '(?:const )?(?P<type>[^']+)'", _of_member),
    (r"no member named '(?P<name>\w+)' in '(?P<type>[^']+)'", _of_member),
    (r"no matching function for call|call to '.*' is ambiguous|call of overloaded", _of_function),
    (rf"(?:cannot convert|invalid cast|cannot cast|no viable conversion).*{_SCALAR}", _of_conversion),
    (rf"{_SCALAR}.*(?:to type|to '(?:double|float)')", _of_conversion),
)
