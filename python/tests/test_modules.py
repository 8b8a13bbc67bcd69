# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The modules of the package import one another without a circle, wherever the import statement stands."""

import ast
import pathlib

import attune

_ROOT = pathlib.Path(attune.__file__).parent


def imports(tree):
    """All import statements of a module but for those under `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            yield from imports(ast.Module(node.orelse, []))
        else:
            yield from imports(node)


def targets(node, package, modules):
    """The modules of the package that a statement imports. `from x import y` is x.y if that is a module, else x."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names} & modules
    parts = package[: len(package) - node.level + 1] if node.level else []
    base = ".".join([*parts, *filter(None, [node.module])])
    names = {f"{base}.{alias.name}" for alias in node.names}
    return {name if name in modules else base for name in names} & modules


def test_no_circle_of_modules():
    files = {}
    for path in _ROOT.rglob("*.py"):
        parts = ("attune", *path.relative_to(_ROOT).with_suffix("").parts)
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = parts[:-1], path
    reached = {
        name: {x for node in imports(ast.parse(path.read_text())) for x in targets(node, list(package), set(files))}
        for name, (package, path) in files.items()
    }
    assert len(reached) > 30 and "attune._abi" in reached["attune._calls"] and "attune._call" not in reached
    for middle in files:
        for found in reached.values():
            if middle in found:
                found |= reached[middle]
    circles = sorted(name for name, found in reached.items() if name in found)
    assert not circles, f"{len(circles)} modules in a circle: {', '.join(circles)}"
