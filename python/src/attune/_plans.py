# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Calls that look like an earlier call: only the addresses change.

A plan is the memory of a checked call. Its key has everything that the checks depend on: types, shapes, strides, numbers,
mask. Every thread has its own plans, because a call runs while other threads go on.
"""

import ctypes
import sys
import threading

import numpy

from . import _abi
from ._arrays import types_of
from ._calls import OUTPUTS_AT, Call, numbers_of, output_shape

_MOST = 64  # plans of an operator and thread
# Where the address of a tensor stands in it, in a parameter and in the gradients.
_DATA, _DATA_OF_PARAMETER = _abi.Layout("tensor").at["data"], _abi.Layout("parameter").at["tensor.data"]
_DATA_OF_COTANGENTS, _DATA_OF_MASK = _abi.GRADIENTS.at["cotangents.data"], _abi.Layout("mask_node").at["x.data"]


class Plan:
    """The memory of a call, as words of 8 bytes. `outputs`: place, shape and type of each output."""

    # torch: the module if the call has tensors, None if it has arrays of NumPy.
    __slots__ = (
        "operator", "call", "address", "words", "places", "outputs", "out_is_like_q", "run_forward", "count", "saves_as",
        "pulls", "torch",
    )

    def __init__(self, call, names, returns, model, table=False):
        """table: the mask is one, whose address comes last."""
        d = call.operator._description
        self.operator, self.call, self.words, self.address = call.operator, call, _words(call.memory), call.address
        self.places = [_place(d, name) // _abi.WORD for name in names]
        if table:
            self.places.append((d.mask_at + _DATA_OF_MASK) // _abi.WORD)
        call.blank_outputs(returns)
        torch = None if isinstance(model, numpy.ndarray) else sys.modules["torch"]
        self.torch = torch
        self.saves_as = types_of(torch or numpy)[numbers_of(call.code)]
        self.outputs = []
        for name in returns:
            kind = call.model.dtype if name == "out" else self.saves_as
            shape = output_shape(name, call.rows, call.layout)
            self.outputs.append(((OUTPUTS_AT[name] + _DATA) // _abi.WORD, shape, kind))
        self.count, self.pulls = None, {}
        self.run_forward = call.operator._functions.forward_of_this_thread(call.address)
        self.out_is_like_q = torch is not None and names[0] == "q" and self._out_is_like(model)
        # No array stays, and no mask: the caller of a later call has the same mask, or the key differs.
        call.keep, call.views, call.model = [], None, None

    def _out_is_like(self, q):
        """Whether `out` alone returns, with the type, shape and strides of the tensor q: its memory then takes less time."""
        (_, shape, kind), *more = self.outputs
        dense = self.torch.empty(shape, dtype=kind, device="meta")
        return not more and (q.shape, q.stride(), q.dtype) == (dense.shape, dense.stride(), kind)

    def fill(self, addresses):
        """Writes the addresses of the arrays, and of new outputs, into the call. Returns the outputs in a list."""
        words = self.words
        for at, address in zip(self.places, addresses):
            words[at] = address
        results = []
        if self.torch is None:
            for at, shape, kind in self.outputs:
                x = numpy.empty(shape, kind)
                words[at] = x.__array_interface__["data"][0]
                results.append(x)
            return results
        empty = self.torch.empty
        for at, shape, kind in self.outputs:
            x = empty(shape, dtype=kind, device="cpu")
            words[at] = x.data_ptr()
            results.append(x)
        return results

    def quick(self, q, k, v, more):
        """The outputs for tensors q, k and v, and others at the addresses `more`, in a list. Its parts are written out:
        small calls take a few microseconds."""
        words = self.words
        a, b, c = self.places[:3]
        for at, address in zip(self.places[3:], more):
            words[at] = address
        words[a], words[b], words[c] = q.data_ptr(), k.data_ptr(), v.data_ptr()
        if self.out_is_like_q:
            x = self.torch.empty_like(q)
            words[self.outputs[0][0]] = x.data_ptr()
            results = [x]
        else:
            results, new = [], q.new_empty  # faster than torch.empty
            for at, shape, kind in self.outputs:
                x = new(shape, dtype=kind)
                words[at] = x.data_ptr()
                results.append(x)
        status = self.run_forward()
        if status:
            if not (words[a] and words[b] and words[c]):  # a tensor without memory: view() knows what it is
                return None
            _abi.check(status)
        return results

    def run(self, addresses, saves):
        """The outputs in a list, with the saved rows at the end if `saves`."""
        results, torch, functions = self.fill(addresses), self.torch, self.operator._functions
        if not saves:
            functions.forward(self.address)
            return results
        if self.count is None:
            b, h, q, _ = self.call.rows
            self.count = functions.saved_size(self.address) if b * h * q else 0
        if torch is None:
            saved = numpy.empty(self.count, self.saves_as)
            at = saved.__array_interface__["data"][0]
        else:
            saved = torch.empty(self.count, dtype=self.saves_as, device="cpu")
            at = saved.data_ptr()
        functions.forward(self.address, at if self.count else None, self.count)
        results.append(saved)
        return results

    def pull(self, addresses, saved, cotangents, wanted, make):
        """The gradients of torch tensors in the order of `wanted`. make(): a Call of the same tensors, for the first time."""
        key = (wanted, *(None if x is None else (x.dtype, x.shape, x.stride()) for x in cotangents))
        found = self.pulls.get(key)
        if found is None:
            call = make()
            memory, results, places = call.gradient_block(cotangents, wanted)
            shapes = [((at + _DATA) // _abi.WORD, tuple(x.shape), x.dtype) for at, x in zip(places, results.values())]
            starts = range(_DATA_OF_COTANGENTS, _abi.GRADIENTS.size, _abi.TENSOR.size)
            cot = [at // _abi.WORD for at, x in zip(starts, cotangents) if x is not None]
            if len(shapes) != len(wanted):
                return None
            found = self.pulls[key] = _words(memory), ctypes.addressof(memory), cot, shapes
        memory, base, cot, shapes = found
        for at, address in zip(self.places, addresses):
            self.words[at] = address
        for at, x in zip(cot, (x for x in cotangents if x is not None)):
            memory[at] = x.data_ptr()
        empty, results = self.torch.empty, []
        for at, shape, kind in shapes:
            x = empty(shape, dtype=kind, device="cpu")
            memory[at] = x.data_ptr()
            results.append(x)
        count = saved.shape[0]
        self.operator._functions.vjp(self.address, saved.data_ptr() if count else None, count, base)
        return results


def _words(memory):
    """The same memory as words. Setting one is faster than struct.pack_into."""
    return (ctypes.c_uint64 * (len(memory) // _abi.WORD)).from_buffer(memory)


def _place(d, name):
    """Where the address of an array stands."""
    ((kind, n),) = d.names[name]
    if kind == "field":
        return d.field_at + n * _abi.TENSOR.size + _DATA
    if kind == "parameter":
        return d.parameter_at + n * _abi.PARAMETER.size + _DATA_OF_PARAMETER
    return d.table_at + n * _abi.TENSOR.size + _DATA


class _Plans(threading.local):
    def __init__(self):
        self.found = {}
        self.last = None, None  # the key and the plan of the last quick call


def new():
    """Plans of an operator."""
    return _Plans()


def plain_tensor(x, torch):
    """Whether x is a tensor whose memory can be read as it is."""
    return x.is_cpu and not x.is_nested and not x.is_neg() and x.layout is torch.strided and not x._is_zerotensor()


def signature(items, grads=True):
    """What the checks of a call read of its arguments, the addresses and names of the arrays, and the first array.

    items: pairs (name, value). None: not for a plan. grads: tensors that require gradients are not for a plan.
    """
    torch = sys.modules.get("torch")
    tensor = None if torch is None else torch.Tensor
    parameter = None if torch is None else torch.nn.Parameter
    found, addresses, names, model = [], [], [], None
    for name, x in items:
        kind = type(x)
        if tensor is not None and (kind is tensor or kind is parameter):
            if not plain_tensor(x, torch) or (grads and x.requires_grad and torch.is_grad_enabled()):
                return None
            found += (name, x.dtype, x.shape, x.stride())
            addresses.append(x.data_ptr())
        elif kind is numpy.ndarray:
            found += (name, x.dtype, x.shape, x.strides, 0)
            addresses.append(x.__array_interface__["data"][0])
        elif kind is float or kind is int:
            found += (name, x, kind)
            continue
        elif x is None:
            continue
        else:
            return None
        names.append(name)
        model = x if model is None else model
    return None if model is None else (found, addresses, names, model)


def has_one_place(operator, names):
    """Whether each of these arrays is read at one place of a call. A constant is a number, whose array is not read there."""
    d = operator._description
    return all(len(d.names.get(name, ())) == 1 and name not in d.only_numbers for name in names)


def keep(operator, key, plan):
    """Keeps a plan for later calls."""
    if len(operator._plans.found) >= _MOST:
        operator._plans.found.clear()
        operator._plans.last = None, None
    operator._plans.found[key] = plan


def allows(offset, returns):
    """Whether a call with these may have a plan. Every call writes `out`, and a plan has memory for what it returns alone."""
    return (offset is None or type(offset) is int) and type(returns) is tuple and "out" in returns


def find(operator, items, mask, offset, threads, layout, returns, grads=True):
    """The plan of a call, its addresses and its key; None: not for a plan. items: pairs (name, value)."""
    known = signature(items, grads)
    if known is None or not allows(offset, returns):
        return None
    read, addresses, names, model = known
    try:
        table = None if mask is None else mask._table()
        if table is not None:
            addresses.append(table[1])
        shown = table[0] if table is not None else None if mask is None else mask._identity()
        key = (*read, shown, offset, threads, layout, returns)
        plan = operator._plans.found.get(key)
    except (AttributeError, TypeError, ValueError):  # the checks say what is wrong
        return None
    if plan is None:
        if not has_one_place(operator, names):
            return None
        given = dict(items)
        fields = {name: given.pop(name) for name in "qkv" if given.get(name) is not None}
        call = Call(operator, fields, {n: x for n, x in given.items() if x is not None}, mask, offset, threads, layout)
        if call.widened:  # a copy, which has another address
            return None
        plan = Plan(call, names, returns, model, table is not None)
        keep(operator, key, plan)
    return plan, addresses, key


def run(operator, q, k, v, mask, offset, threads, layout, returns, named):
    """The outputs of a call in a list; None: not for a plan."""
    items = (("q", q), ("k", k), ("v", v), *named.items()) if named else (("q", q), ("k", k), ("v", v))
    found = find(operator, items, mask, offset, threads, layout, returns)
    return None if found is None else found[0].run(found[1], False)
