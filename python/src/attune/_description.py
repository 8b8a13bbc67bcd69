# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""What an operator reads and writes, and where a call holds it."""

import ctypes
import inspect
import keyword

from . import _abi

# What a call has beside inputs, parameters, tables and constants, and the defaults.
_OF_CALLS = {"mask": None, "offset": None, "threads": None, "returns": ("out",), "layout": "bhld"}
_AXES = {"query": "B, H, Lq", "key": "B, Hk, Lk", "pair": "B, H, Lq", "ground": "1, H, 1"}
_WIDTHS = {"width": "D", "value_width": "Dv", "keys": "Lk"}


class Description:
    """The inputs, parameters, tables, constants and outputs of an operator, and where a call holds them."""

    def __init__(self, functions):
        d = functions.description
        self.fields = tuple(f["name"] for f in d["fields"])
        self.sides = tuple(f["side"] for f in d["fields"])
        self.features = tuple(_WIDTHS.get(f["features"], f["features"]) for f in d["fields"])
        self.narrow = tuple(f["features"] == "1" for f in d["fields"])  # one number per position
        self.parameters = tuple(p["path"] for p in d["parameters"])
        self.defaults = tuple(p["value"] for p in d["parameters"])
        self.required = tuple(p["path"] for p in d["parameters"] if p.get("required"))
        self.tables = tuple(t["path"] for t in d["tables"] if t.get("gradient", True))
        self.arrays = tuple(t["path"] for t in d["tables"] if not t.get("gradient", True))  # stand behind the tables
        self.fold = any(path.startswith("fold.") for path in self.parameters)
        self.heads_each = d.get("heads_each", 1)  # query heads for each head of out
        self.constants = tuple(name for name, _ in d["constants"])
        self.constant_defaults = tuple(value for _, value in d["constants"])
        self.outputs = tuple(d["outputs"])
        self.types = tuple(d["types"])
        self.decodes = d.get("decodes", True)
        # A short name means one kind of argument. Where it is taken, the path alone names a parameter or a table.
        self.names, taken = {}, {name: "call" for name in ("operator", *_OF_CALLS)}
        tables = (*self.tables, *self.arrays)
        for kind, paths in (("field", self.fields), ("parameter", self.parameters), ("table", tables)):
            for n, path in enumerate(paths):
                last = path.rsplit(".", 1)[-1]
                short = path.replace(".", "_") if last.isdigit() else last  # fold_1
                for name in dict.fromkeys((short, path) if taken.setdefault(short, kind) == kind else (path,)):
                    self.names.setdefault(name, []).append((kind, n))
        for n, name in enumerate(self.constants):
            self.names.setdefault(f"constant_{name}" if name in taken else name, []).append(("constant", n))
        self.short_names = tuple(name for name in self.names if name.isidentifier() and not keyword.iskeyword(name))
        self.of_calls = tuple(_OF_CALLS)
        # Names that a call reads as numbers alone, never as arrays.
        self.only_numbers = frozenset(name for name, at in self.names.items() if {kind for kind, _ in at} == {"constant"})
        at = _abi.CALL.size
        self.field_at, at = at, at + _abi.TENSOR.size * len(self.fields)
        self.parameter_at, at = at, at + _abi.PARAMETER.size * len(self.parameters)
        self.table_at, at = at, at + _abi.TENSOR.size * len(tables)
        self.constant_at, at = at, at + _abi.CONSTANT.size * len(self.constants)
        self.mask_at = at
        self.blank = bytes(at)
        self.constant_names = [ctypes.create_string_buffer(name.encode()) for name in self.constants]

    def rows(self, shapes):
        """(B, H, Lq, Dv) of out, from the shapes of the inputs. They have four axes, or are None."""
        batch, heads, queries = 1, 1, 1
        for n, shape in enumerate(shapes):
            side = self.sides[n]
            if shape is None or side == "ground":
                continue
            if side == "query" and self.fields[n] != "output_gate":
                batch, heads, queries = shape[:3]
                break
            batch = max(batch, shape[0])
            if side != "key":
                heads, queries = max(heads, shape[1]), max(queries, shape[2])
        return batch, max(heads // self.heads_each, min(heads, 1)), queries, shapes[self.fields.index("v")][3]

    def signature(self):
        """The arguments of a call as inspect and editors show them: without a default where the call must give one."""
        given, positional = [], self.fields[:3] == ("q", "k", "v")
        for name in self.short_names:
            kind, n = self.names[name][0]
            default = inspect.Parameter.empty
            if name == "v0":
                default = None
            elif kind == "parameter" and self.parameters[n] not in self.required:
                default = self.defaults[n]
            elif kind == "constant":
                default = self.constant_defaults[n]
            first = positional and name in ("q", "k", "v")
            how = inspect.Parameter.POSITIONAL_OR_KEYWORD if first else inspect.Parameter.KEYWORD_ONLY
            given.append(inspect.Parameter(name, how, default=default))
        more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=x) for name, x in _OF_CALLS.items()]
        return inspect.Signature([*given, *more])

    def example(self):
        """The arguments of a call in Python, with all that it must give."""
        words = []
        for parameter in self.signature().parameters.values():
            name = parameter.name
            if parameter.kind == inspect.Parameter.POSITIONAL_OR_KEYWORD:
                words.append(name)
            elif parameter.default is inspect.Parameter.empty:
                words.append(f"{name}={2.0 if self.names[name][0][0] == 'parameter' else name}")
        return f"({', '.join([*words, 'mask=attune.masks.causal()'])})"

    def summary(self):
        """What an operator takes and gives, in a few lines."""
        inputs = [
            f"{name} ({_AXES[side]}{'' if narrow else ', ' + features})"
            for name, side, features, narrow in zip(self.fields, self.sides, self.features, self.narrow)
        ]
        numbers = [
            path + (" (required)" if path in self.required else "" if value is None else f" = {value:g}")
            for path, value in zip(self.parameters, self.defaults)
        ]
        lines = [("Inputs", inputs), ("Parameters", numbers), ("Tables", (*self.tables, *self.arrays))]
        outputs = [f"{name} (B, H, Lq{', Dv' if name == 'out' else ''})" for name in self.outputs]
        lines += [("Constants", self.constants), ("Outputs", outputs)]
        return "\n".join(f"{what}: {', '.join(names)}." for what, names in lines if names)
