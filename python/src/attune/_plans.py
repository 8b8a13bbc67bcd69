# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Calls that look like an earlier call: only the addresses change.

A plan is the memory of a checked call. Its key is all that checks depend on: types, shapes, strides, numbers, mask. Every
thread has plans of its own, because a call runs while other threads go on.
"""

import struct
import sys
import threading

import numpy

from . import _abi
from ._operator import Call

_ADDRESS = struct.Struct("=Q").pack_into
_MOST = 64  # plans of an operator and thread


class _Plan:
    __slots__ = ("call", "places", "outputs", "count", "address", "memory", "run", "numpy")

    def __init__(self, call, arrays, returns):
        d = call.operator._description
        self.call, self.memory, self.address = call, call.memory, call.address
        self.places = [_place(d, name) for name, _ in arrays]
        self.outputs = []
        call.blank_outputs(returns)
        for name in returns:
            at = 120 + _abi.TENSOR.size * ("out", "lse", "ground_weight", "threshold").index(name)
            *_, code, _ = _abi.TENSOR.unpack_from(call.memory, at)
            b, h, q, w = call.rows
            shape = (b, h, q) if name != "out" else (b, q, h, w) if call.layout else call.rows
            self.outputs.append((at, shape, code))
        self.count = None
        self.run = call.operator._functions.forward
        self.numpy = not hasattr(call.model, "data_ptr")
        call.keep, call.views, call.model = [call.keep[0]], None, None  # the mask stays, arrays do not


def _place(d, name):
    """Where the address of an array stands."""
    ((kind, n),) = d.names[name]
    if kind == "field":
        return d.field_at + n * _abi.TENSOR.size
    if kind == "parameter":
        return d.parameter_at + n * _abi.PARAMETER.size
    return d.table_at + n * _abi.TENSOR.size


class _Plans(threading.local):
    def __init__(self):
        self.found = {}


def new():
    """Plans of an operator."""
    return _Plans()


def run(operator, q, k, v, mask, offset, threads, layout, returns, named, saves=False):
    """The outputs of a call in a list, with the saved rows at the end if `saves`; None: not for a plan."""
    torch = sys.modules.get("torch")
    tensor = None if torch is None else torch.Tensor
    signature, addresses, arrays = [], [], []
    items = (("q", q), ("k", k), ("v", v), *named.items()) if named else (("q", q), ("k", k), ("v", v))
    for name, x in items:
        kind = type(x)
        if kind is tensor or (torch is not None and kind is torch.nn.Parameter):
            if not x.is_cpu or x.layout is not torch.strided or x.is_neg() or (x.requires_grad and torch.is_grad_enabled() and not saves):
                return None
            signature.append((name, x.dtype, x.shape, x.stride()))
            addresses.append(x.data_ptr())
        elif kind is numpy.ndarray:
            signature.append((name, x.dtype, x.shape, x.strides, 0))
            addresses.append(x.__array_interface__["data"][0])
        elif kind is float or kind is int:
            signature.append((name, x, kind))
            continue
        elif x is None:
            continue
        else:
            return None
        arrays.append((name, x))
    if not arrays or not (offset is None or type(offset) is int) or type(returns) is not tuple:
        return None
    try:
        key = (*signature, mask and mask._identity(), offset, threads, layout, returns)
        plan = operator._plans.found.get(key)
    except (AttributeError, TypeError, ValueError):  # the checks say what is wrong
        return None
    if plan is None:
        if any(len(operator._description.names.get(name, (0, 0))) != 1 for name, _ in arrays):
            return None
        fields = {name: x for name, x in (("q", q), ("k", k), ("v", v)) if x is not None}
        call = Call(operator, fields, named, mask, offset, threads, layout)
        plan = _Plan(call, arrays, returns)
        if len(operator._plans.found) >= _MOST:
            operator._plans.found.clear()
        operator._plans.found[key] = plan
    memory = plan.memory
    for at, address in zip(plan.places, addresses):
        _ADDRESS(memory, at, address)
    results = []
    if plan.numpy:
        types = (numpy.float32, numpy.float64, None, numpy.float16)
        like = arrays[0][1]
        for at, shape, code in plan.outputs:
            x = numpy.empty(shape, types[code] or like.dtype)
            _ADDRESS(memory, at, x.__array_interface__["data"][0])
            results.append(x)
    else:
        types = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
        for at, shape, code in plan.outputs:
            x = torch.empty(shape, dtype=types[code])
            _ADDRESS(memory, at, x.data_ptr())
            results.append(x)
    if not saves:
        plan.run(plan.address)
        return results
    if plan.count is None:
        rows = plan.call.rows
        plan.count = operator._functions.saved_size(plan.address) if rows[0] * rows[1] * rows[2] else 0
    code = 1 if plan.outputs[0][2] == 1 else 0
    saved = numpy.empty(plan.count, types[code]) if plan.numpy else torch.empty(plan.count, dtype=types[code])
    at = saved.__array_interface__["data"][0] if plan.numpy else saved.data_ptr()
    plan.run(plan.address, at if plan.count else None, plan.count)
    results.append(saved)
    return results
