# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""One call of an operator: arrays as the memory that the C interface reads."""

import ctypes

from . import _abi
from ._arrays import View, empty_like, from_list, index_of, is_array, numbers_of_int64, view, widened, wrong
from ._errors import did_you_mean
from ._layout import TYPE
from .masks import Mask

#: Names of the outputs, in the order of the interface, and where a call holds them. The first three have a cotangent.
OUTPUTS = ("out", "lse", "ground_weight", "threshold")
OUTPUTS_AT = {name: _abi.CALL.at["outputs"] + n * _abi.TENSOR.size for n, name in enumerate(OUTPUTS)}
_LAYOUTS = {"bhld": None, "blhd": (0, 2, 1, 3)}
_PACK = _abi.TENSOR.pack_into
_POINTERS, _NUMBERS = "fields parameters tables constants mask", "constant_count mask_count offset has_offset type threads products"
_PACK_CALL = _abi.CALL.packer(f"{_POINTERS} offsets {_NUMBERS}").pack_into
_PACK_GRADIENTS = _abi.GRADIENTS.packer("cotangents fields parameters tables").pack_into
# Arguments of other libraries, and what attune has in their place.
_ELSEWHERE = {
    "attn_bias": 'the preset "biased", with bias=',
    "attn_mask": "mask=masks.visible(table)",
    "block_mask": "mask=masks.from_block_mask(block_mask)",
    "causal": "mask=masks.causal()",
    "cu_seqlens": "mask=masks.from_cu_seqlens(cu_seqlens)",
    "dropout_p": "attune.torch.scaled_dot_product_attention",
    "is_causal": 'mask=masks.causal(), or masks.causal(align="start") as PyTorch aligns it',
    "key_padding_mask": "mask=masks.padding(lengths)",
    "score_mod": "attune.torch.flex_attention",
    "return_lse": 'returns=("out", "lse")',
    "softmax_scale": "scale=",
    "window_size": "mask=masks.window(left, right)",
}
_SHARED = ("output_gate", "position_scores", "value_gate")  # inputs that batches may share
_ROW_AXES = (("batch", "batch"), ("head", "heads"), ("position", "queries"))


def no_argument(operator, name):
    """The exception for an argument that no call of the operator takes."""
    text = f"attune: {operator.name}() has no argument {name!r}; it has {operator.arguments}"
    known = operator._description
    hint = did_you_mean(name, (*known.names, *known.of_calls))
    return TypeError(text + (f". In its place: {_ELSEWHERE[name]}" if name in _ELSEWHERE else hint))


def numbers_of(code):
    """The type of rows, parameters and saved numbers, by the type of a call."""
    return TYPE.float64 if code == TYPE.float64 else TYPE.float32


def output_shape(name, rows, blhd):
    """The shape of an output as the caller gets it. rows: (B, H, Lq, Dv)."""
    b, h, q, w = rows
    return (b, h, q) if name != "out" else (b, q, h, w) if blhd else (b, h, q, w)


def names_of(returns):
    """The names of outputs that `returns` has."""
    if isinstance(returns, str):
        return (returns,)
    if not isinstance(returns, (tuple, list)):
        raise wrong("returns", f"the type {type(returns).__name__}", "a name or a tuple of names")
    return tuple(returns)


def returned(outputs):
    """What a call returns: one array, or a tuple."""
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


class Call:
    """One call: its memory and the arrays that it points to."""

    __slots__ = (
        "operator",
        "layout",
        "memory",
        "address",
        "views",
        "keep",
        "code",
        "model",
        "rows",
        "parameters",
        "tables",
        "threads",
        "widened",  # whether a parameter or table is read from a copy in float32
    )

    def __init__(self, operator, fields, named, mask, offset, threads, layout):
        d = operator._description
        if not isinstance(layout, str) or layout not in _LAYOUTS:
            raise wrong("layout", f"the value {layout!r}", '"bhld" or "blhd"')
        self.operator, self.layout, self.keep = operator, _LAYOUTS[layout], []
        self.parameters, self.tables = [None] * len(d.parameters), [None] * (len(d.tables) + len(d.arrays))
        self.widened = False
        constants = None
        for name, x in named.items():
            places = d.names.get(name)
            if places is None:
                raise no_argument(operator, name)
            x = from_list(name, x)
            for kind, n in places:
                if kind == "field":
                    fields = dict(fields) if fields is not None else {}
                    fields[name] = x
                elif x is None:
                    continue
                elif kind == "parameter":
                    self.parameters[n] = x
                elif kind == "table":
                    self.tables[n] = x
                else:
                    constants = constants or list(d.constant_defaults)
                    constants[n] = _real(name, x)
        nodes, count = (b"", 0) if mask is None else self._nodes(_mask(mask), offset)
        self.memory = ctypes.create_string_buffer(d.blank + nodes, d.mask_at + len(nodes) + 1)
        base = self.address = ctypes.addressof(self.memory)
        self.keep.append(mask)
        self._read_fields(d, fields)
        for n, x in enumerate(self.parameters):
            if x is not None:
                self._put_parameter(d, n, x)
        for n, x in enumerate(self.tables):
            if x is not None:
                self._put_table(d, n, x)
        if d.constants:
            for n, value in enumerate(constants or d.constant_defaults):
                at = d.constant_at + n * _abi.CONSTANT.size
                _abi.CONSTANT.pack_into(self.memory, at, ctypes.addressof(d.constant_names[n]), value)
        offsets, offset_count, start, has_start = _abi.ABSENT, None, 0, 0
        if offset is not None:
            offsets, offset_count, start, has_start = self._offset(offset)
        self._check_rows(d, offset_count)
        self.threads = 0 if threads is None else _count("threads", threads)
        places = (base + at for at in (d.field_at, d.parameter_at, d.table_at, d.constant_at, d.mask_at))
        numbers = len(d.constants), count, start, has_start, self.code, self.threads, operator._how
        _PACK_CALL(self.memory, 0, *places, *offsets, *numbers)

    # --- what a call on a device does in its own way ---------------------------------------------------------------------

    def _view(self, name, x):
        return view(name, x)

    def _like(self, x, shape, code=None):
        return empty_like(x, shape, code)

    def _nodes(self, mask, offset):
        return mask._pack(offset)

    def require_gradients(self, wanted):
        """Fails if the call has not all of these gradients: pairs (kind, number)."""

    def _types(self, d):
        return d.types

    def _offsets(self, offset):
        return numbers_of_int64("offset", offset)

    # --- inputs -----------------------------------------------------------------------------------------------------

    def _read_fields(self, d, fields):
        self.views, self.code, self.model = [], None, None
        at = d.field_at
        for n, name in enumerate(d.fields):
            x = from_list(name, fields.get(name))
            if x is None:
                self.views.append(None)
                if name != "v0":
                    raise wrong(name, "no value", f"an array: {self.operator.name} reads it")
            else:
                v = x if type(x) is View else self._view(name, x)
                if _abi.TYPES[v.code] in _abi.FLOAT8:
                    pass
                elif self.code is None:
                    self.code, self.model = v.code, x
                    if _abi.TYPES[v.code] not in self._types(d):
                        raise wrong(name, f"the type {_abi.TYPES[v.code]}", " or ".join(self._types(d)))
                elif v.code != self.code:
                    raise wrong(name, f"the type {_abi.TYPES[v.code]}", f"{_abi.TYPES[self.code]}, the type of {self._first(d)}")
                shape, strides = self._axes(d, n, name, v.shape, v.strides)
                self.views.append((x, shape))
                self.keep.append(v.owner)
                _PACK(self.memory, at, *v.tensor(shape, strides))
            at += _abi.TENSOR.size
        if self.code is None:
            raise wrong("the call", "no array", "at least one")
        for name in fields:
            if name not in d.names and fields[name] is not None:
                raise no_argument(self.operator, name)
        self.rows = d.rows([x and x[1] for x in self.views])

    def _check_rows(self, d, offset_count):
        """Refuses inputs of several batches, and query inputs of several rows. The interface would name `out`, which the
        caller does not give."""
        first, rows = None, self.rows
        for name, side, at in zip(d.fields, d.sides, self.views):
            if at is None or name in _SHARED or side not in ("query", "key"):
                continue
            if first is None and side == "query":
                first, rows = name, at[1]
            for axis, (extent, extents) in enumerate(_ROW_AXES if side == "query" else _ROW_AXES[:1]):
                if first is not None and at[1][axis] != rows[axis]:
                    raise wrong(name, f"{extent} extent {at[1][axis]}", f"{rows[axis]}, the {extents} of {first}")
        if offset_count is not None and offset_count != self.rows[0]:
            expected = f"an integer, or {self.rows[0]} of them, one for each batch element"
            raise wrong("offset", f"{offset_count} numbers", expected)

    def _first(self, d):
        return next(name for name, v in zip(d.fields, self.views) if v is not None)

    def _axes(self, d, n, name, shape, strides):
        """Shape and strides with the axes (batch, head, position, feature)."""
        side, narrow, axes = d.sides[n], d.narrow[n], len(shape)
        if side == "pair":
            return aligned(name, shape, strides)
        if side == "ground":
            if axes <= 2:  # (Dv) or (H, Dv)
                shape, strides = (*(1,) * (2 - axes), *shape), (*(0,) * (2 - axes), *strides)
                return (1, shape[0], 1, shape[1]), (0, strides[0], 0, strides[1])
        elif narrow and axes == 3:
            shape, strides, axes = (*shape, 1), (*strides, 0), 4
        if axes != 4:
            raise wrong(name, f"{axes} axes", "4: " + ("(batch, position, head, feature)" if self.layout else "(batch, head, position, feature)"))
        return self.turned(shape, strides)

    def extent_of(self, *names):
        """The number of positions of the first of these inputs that the operator reads."""
        d = self.operator._description
        for name in names:
            if name in d.fields and self.views[d.fields.index(name)] is not None:
                return self.views[d.fields.index(name)][1][2]
        raise wrong("the call", "no keys", f"one of {', '.join(names)}")

    def _numbers(self, name, x):
        """The View of a parameter or table. The interface reads float32 and float64: 16 bits are read from a copy."""
        v = self._view(name, x)
        if _abi.TYPES[v.code] in ("bfloat16", "float16"):
            self.widened = True
            v = self._view(name, widened(v.owner))
        if v.code not in (TYPE.float32, TYPE.float64):
            raise wrong(name, f"the type {_abi.TYPES[v.code]}", "float32, float64, bfloat16 or float16")
        return v

    def _put_parameter(self, d, n, x):
        name, at = d.parameters[n], d.parameter_at + n * _abi.PARAMETER.size
        if not is_array(x):
            _abi.PARAMETER.pack_into(self.memory, at, *_abi.ABSENT, _real(name, x), 1)
            return
        v = self._numbers(name, x)
        shape, strides = parameter_axes(name, v.shape, v.strides)
        self.keep.append(v.owner)
        _abi.PARAMETER.pack_into(self.memory, at, *v.tensor(shape, strides), 0.0, 2)

    def _put_table(self, d, n, x):
        name = (*d.tables, *d.arrays)[n]
        v = self._numbers(name, x)
        shape, strides = aligned(name, v.shape, v.strides)
        self.keep.append(v.owner)
        _PACK(self.memory, d.table_at + n * _abi.TENSOR.size, *v.tensor(shape, strides))

    def _offset(self, offset):
        if is_array(offset) or isinstance(offset, (list, tuple)):
            x = self._offsets(offset)
            if x.ndim != 1:
                raise wrong("offset", f"{x.ndim} axes", "an integer, or one for each batch element")
            self.keep.append(x)
            at = self._view("offset", x)
            return at.tensor((1, 1, 1, *at.shape), (0, 0, 0, 1)), at.shape[0], 0, 0
        n = index_of(offset)
        if n is None:
            raise wrong("offset", f"the value {offset!r}", "an integer, or one for each batch element")
        if not -(2**62) < n < 2**62:
            raise wrong("offset", f"the value {n}", "an integer of 62 bits")
        return _abi.ABSENT, None, n, 1

    # --- results ----------------------------------------------------------------------------------------------------

    def blank_outputs(self, returns):
        """New arrays for the named outputs, which the next forward pass writes."""
        d, results = self.operator._description, {}
        if not returns:
            raise wrong("returns", "no name", f"some of {', '.join(d.outputs)}")
        for name in returns:
            if not isinstance(name, str) or name not in d.outputs:
                raise wrong("returns", f"the output {name!r}", f"some of {', '.join(d.outputs)}")
        for name, at in OUTPUTS_AT.items():
            if name != "out" and name not in returns:  # every call writes out
                continue
            shape = output_shape(name, self.rows, self.layout)
            x = self._like(self.model, shape, None if name == "out" else numbers_of(self.code))
            v = self._view(name, x)
            _PACK(self.memory, at, *v.tensor(*self.with_four_axes(v)))
            results[name] = x
        self.keep.append(results["out"])
        return [results[name] for name in returns]

    def with_four_axes(self, v):
        """Shape and strides of an output or a cotangent; not checked."""
        if len(v.shape) == 3:
            return (*v.shape, 1), (*v.strides, 0)
        return (v.shape, v.strides) if self.layout is None else self.turned(v.shape, v.strides)

    def turned(self, shape, strides):
        """Shape and strides of an array in the layout of the call, with the axes (batch, head, position, feature)."""
        if self.layout is None:
            return tuple(shape), tuple(strides)
        return tuple([shape[a] for a in self.layout]), tuple([strides[a] for a in self.layout])

    def saved_memory(self):
        """New memory for the rows that a forward pass saves."""
        count = self.operator._functions.saved_size(self.address) if 0 not in self.rows[:3] else 0
        return empty_like(self.model, (count,), numbers_of(self.code))

    def forward(self, saved=None):
        """Runs the forward pass."""
        if saved is None:
            self.operator._functions.forward(self.address)
        else:
            v = view("saved", saved)
            self.operator._functions.forward(self.address, v.data or None, v.shape[0])

    def vjp(self, saved, cotangents, wanted):
        """The gradients of the named inputs, parameters and tables: new arrays, by name.

        cotangents: gradients by out, lse and ground_weight, or None. wanted: pairs (kind, number).
        """
        memory, results, _ = self.gradient_block(cotangents, wanted)
        v = None if saved is None else view("saved", saved)
        at, count = (None, 0) if v is None else (v.data or None, v.shape[0])
        self.operator._functions.vjp(self.address, at, count, memory)
        return results

    def gradient_block(self, cotangents, wanted, code=None):
        """The memory that vjp() of the interface reads, new arrays for the gradients, and where their addresses stand.

        code: the type of the gradients; None: as vjp() wants it.
        """
        d = self.operator._description
        parts = [_abi.ABSENT] * 3
        for n, x in enumerate(cotangents):
            if x is None:
                continue
            name = f"the gradient of {OUTPUTS[n]}"
            v = self._view(name, x)
            if v.shape != output_shape(OUTPUTS[n], self.rows, self.layout):
                raise wrong(name, f"the shape {tuple(v.shape)}", f"the shape of {OUTPUTS[n]}")
            parts[n] = v.tensor(*self.with_four_axes(v))
            self.keep.append(v.owner)
        sizes = (len(d.fields), len(d.parameters), len(d.tables))
        memory = ctypes.create_string_buffer(_abi.GRADIENTS.size + _abi.TENSOR.size * sum(sizes) + 1)
        base, results, places = ctypes.addressof(memory), {}, []
        starts = [_abi.GRADIENTS.size]
        for size in sizes[:2]:
            starts.append(starts[-1] + size * _abi.TENSOR.size)
        _PACK_GRADIENTS(memory, 0, *parts[0], *parts[1], *parts[2], *(base + s for s in starts))
        for kind, n in wanted:
            at = starts[("field", "parameter", "table").index(kind)] + n * _abi.TENSOR.size
            x, shape, strides, v = self._blank_gradient(d, kind, n, code)
            _PACK(memory, at, *v.tensor(shape, strides))
            results[kind, n] = x
            places.append(at)
        return memory, results, places

    def _blank_gradient(self, d, kind, n, code):
        if kind == "field":
            given = self.views[n][0]
            x = self._like(given, tuple(given.shape), code)
            v = self._view(d.fields[n], x)
            shape, strides = self._axes(d, n, d.fields[n], v.shape, v.strides)
            return x, shape, strides, v
        code = numbers_of(self.code) if code is None else code
        given = (self.parameters if kind == "parameter" else self.tables)[n]
        if given is None or not is_array(given):
            x = self._like(self.model, (), code)
            v = self._view("a gradient", x)
            return x, (1, 1, 1, 1), (0, 0, 0, 0), v
        x = self._like(given, tuple(given.shape), code)
        v = self._view("a gradient", x)
        shape, strides = (parameter_axes if kind == "parameter" else aligned)("a gradient", v.shape, v.strides)
        return x, shape, strides, v


def parameter_axes(name, shape, strides):
    """Shape and strides of a parameter: a number, (H), (H, Lq), (B, H, Lq), or four axes whose last has length 1."""
    axes = len(shape)
    if axes == 0:
        return (1, 1, 1, 1), (0, 0, 0, 0)
    if axes == 1:
        return (1, shape[0], 1, 1), (0, strides[0], 0, 0)
    if axes == 2:
        return (1, *shape, 1), (0, *strides, 0)
    if axes == 3:
        return (*shape, 1), (*strides, 0)
    if axes == 4:
        return tuple(shape), tuple(strides)
    raise wrong(name, f"{axes} axes", "a number, (heads), (heads, queries) or (batch, heads, queries)")


def aligned(name, shape, strides):
    """Up to four axes, aligned at the right."""
    axes = len(shape)
    if axes > 4:
        raise wrong(name, f"{axes} axes", "at most 4")
    return (*(1,) * (4 - axes), *shape), (*(0,) * (4 - axes), *strides)


def _mask(mask):
    if not isinstance(mask, Mask):
        example = "masks.visible(table)" if is_array(mask) else "masks.causal()"
        raise wrong("mask", f"the type {type(mask).__name__}", f"a mask of attune.masks, for example {example}")
    return mask


def _real(name, x):
    try:
        if not isinstance(x, (str, bytes)):  # which float() parses
            return float(x)
    except (TypeError, ValueError, OverflowError):
        pass
    raise wrong(name, f"the value {x!r}", "a number or an array of numbers")


def cotangents_of(operator, given):
    """Gradients by the outputs in the order of the interface. given: by the names of outputs."""
    for name, x in given.items():
        if x is not None and name not in operator.outputs:
            raise wrong(f"d{name}", "an array", f"None: {operator.name} has no output {name}")
    if all(x is None for x in given.values()):
        names = [f"d{name}" for name in OUTPUTS[:3] if name in operator.outputs]
        raise wrong("dout", "no value", f"an array, the gradient by out; some of {', '.join(names)}")
    return [given.get(name) for name in OUTPUTS[:3]]


def _count(name, x):
    n = index_of(x)
    if n is None or not 0 <= n < 2**20:
        raise wrong(name, f"the value {x!r}", "a number of threads; 0: one per processor")
    return n
