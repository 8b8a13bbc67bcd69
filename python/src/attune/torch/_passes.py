# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The forward and the backward pass of a call with tensors, on memory that this process reads."""

import torch

from .. import _cuda, _plans
from .._arrays import copied, is_array
from .._calls import Call

_COTANGENTS = ("out", "lse", "ground_weight")


class Spec:
    """The part of a call that is no tensor. names: of the tensors."""

    __slots__ = ("operator", "names", "numbers", "mask", "offset", "layout", "threads", "returns")

    def __init__(self, operator, names, numbers, mask, offset, layout, threads, returns):
        self.operator, self.names, self.numbers, self.mask = operator, names, numbers, mask
        self.offset = copied(offset) if is_array(offset) else offset  # the backward pass reads it again
        self.layout, self.threads, self.returns = layout, threads, returns

    def call(self, tensors):
        """The Call of these tensors."""
        d, fields, named = self.operator._description, {}, dict(self.numbers)
        for name, x in zip(self.names, tensors):
            (fields if name in d.fields else named)[name] = x
        device = _cuda.device_of(tensors[0])
        if device is not None:
            return _cuda.DeviceCall(self.operator, fields, named, self.mask, self.offset, self.layout, device)
        return Call(self.operator, fields, named, self.mask, self.offset, self.threads, self.layout)

    def places(self, needed):
        """Where the gradients of the tensors stand, of those that are needed."""
        d = self.operator._description
        return [(n, place) for n, name in enumerate(self.names) if needed[n] for place in d.names[name]]


def _plan(spec, tensors):
    if _cuda.device_of(tensors[0]) is not None:
        return None
    items = [*zip(spec.names, tensors), *spec.numbers.items()]
    return _plans.find(
        spec.operator, items, spec.mask, spec.offset, spec.threads, spec.layout, spec.returns, grads=False
    )


def forward(spec, tensors, saves, needed=None):
    """The outputs of a call in a list, and the rows that it saves for backward(), or None. needed: of each tensor, whether
    backward() will have to have its gradient; a call that has not all of them fails. None: nobody knows yet."""
    found = _plan(spec, tensors)
    if found is not None:
        results = found[0].run(found[1], saves)
        return (results[:-1], results[-1]) if saves else (results, None)
    call = spec.call(tensors)
    if needed is not None:
        call.require_gradients([place for _, place in spec.places(needed)])
    outputs = call.blank_outputs(spec.returns)
    saved = call.saved_memory() if saves else None
    call.forward(saved)
    return outputs, saved


def backward(spec, tensors, saved, cotangents, needed):
    """The gradients of the tensors, None where not needed. cotangents: of spec.returns, or None."""
    by = dict(zip(spec.returns, cotangents))
    places = spec.places(needed)
    found = _plan(spec, tensors)
    if found is not None and all(by.get(n) is None or _plans.plain_tensor(by[n], torch) for n in _COTANGENTS):
        wanted = tuple([place for _, place in places])
        results = found[0].pull(
            found[1], saved, [by.get(n) for n in _COTANGENTS], wanted, lambda: spec.call(tensors)
        )
        if results is not None:
            gradients = [None] * len(tensors)
            for (n, _), g in zip(places, results):
                gradients[n] = g if g.dtype == tensors[n].dtype else g.to(tensors[n].dtype)
            return gradients
    call = spec.call(tensors)
    found = call.vjp(saved, (by.get("out"), by.get("lse"), by.get("ground_weight")), [place for _, place in places])
    gradients = [None] * len(tensors)
    for n, place in places:
        g = found[place]
        gradients[n] = g if gradients[n] is None else gradients[n] + g
    return [None if g is None else g.to(x.dtype) for g, x in zip(gradients, tensors)]
