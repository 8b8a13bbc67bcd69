# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Calls of operators with tensors that may require gradients: torch.autograd in eager mode, an operator of
torch.library wherever something records or watches the operators of torch: torch.compile, make_fx, torch.jit.trace."""

from typing import List

import torch

from .. import _compile, _cuda, _plans, _presets
from .._abi import Error
from .._arrays import copied, is_array, wrong
from .._calls import Call, no_argument
from .._operator import Operator
from ..masks import Mask

_Tensor, _with_gradients, _autocasts = torch.Tensor, torch.is_grad_enabled, torch._C._is_any_autocast_enabled
_transforms, _compiling, _threads = torch._C._are_functorch_transforms_active, torch.compiler.is_compiling, torch.get_num_threads
_tracing, _modes, _function_modes = torch._C._is_tracing, torch._C._len_torch_dispatch_stack, torch._C._len_torch_function_stack
_modes_before_autograd = torch._ops._len_torch_dispatch_stack_pre_dispatch  # of make_fx(pre_dispatch=True)
_PLAIN, _PYTHON = (torch.Tensor, torch.nn.Parameter), torch._C.DispatchKey.Python
_COTANGENTS = ("out", "lse", "ground_weight")
_SECOND = (
    "attune: second derivatives of an operator: create_graph=True, double backward, a gradient of a gradient. In C++, "
    "jvp_of_vjp() of the reference computes them"
)
_VMAP = (
    "attune: torch.vmap over an operator: the batch axis is the first axis of q, k and v; reshape the mapped axis into it"
)


class Spec:
    """The part of a call that is no tensor."""

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
        return Call(self.operator, fields, named, self.mask, self.offset, self.threads, self.layout)

    def places(self, needed):
        """Where the gradients of the tensors stand, of those that are needed."""
        d = self.operator._description
        return [(n, place) for n, name in enumerate(self.names) if needed[n] for place in d.names[name]]


def _plan(spec, tensors):
    items = [*zip(spec.names, tensors), *spec.numbers.items()]
    return _plans.find(
        spec.operator, items, spec.mask, spec.offset, spec.threads, spec.layout, spec.returns, grads=False
    )


def _forward(spec, tensors, saves):
    found = _plan(spec, tensors)
    if found is not None:
        results = found[0].run(found[1], saves)
        return (results[:-1], results[-1]) if saves else (results, None)
    call = spec.call(tensors)
    outputs = call.blank_outputs(spec.returns)
    saved = call.saved_memory() if saves else None
    call.forward(saved)
    return outputs, saved


def _backward(spec, tensors, saved, cotangents, needed):
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


class _Pull(torch.autograd.Function):
    """The backward pass, with a derivative that is refused."""

    @staticmethod
    def forward(spec, needed, count, *rest):
        return tuple(_backward(spec, rest[count:-1], rest[-1], rest[:count], needed))

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, *cotangents):
        raise NotImplementedError(_SECOND)

    @staticmethod
    def vmap(info, in_dims, *more):
        raise NotImplementedError(_VMAP)


class _Eager(torch.autograd.Function):
    """The operator outside of torch.func, whose conventions cost time."""

    @staticmethod
    def forward(ctx, spec, *tensors):
        outputs, saved = _forward(spec, tensors, True)
        ctx.spec = spec
        ctx.save_for_backward(*tensors, saved)
        ctx.set_materialize_grads(False)
        if "threshold" in spec.returns:
            ctx.mark_non_differentiable(outputs[spec.returns.index("threshold")])
        return tuple(outputs)

    @staticmethod
    def backward(ctx, *cotangents):
        *tensors, saved = ctx.saved_tensors
        needed = ctx.needs_input_grad[1:]
        if torch.is_grad_enabled():  # create_graph=True
            return (None, *_Pull.apply(ctx.spec, needed, len(cotangents), *cotangents, *tensors, saved))
        return (None, *_backward(ctx.spec, tensors, saved, cotangents, needed))


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(spec, *tensors):
        outputs, saved = _forward(spec, tensors, True)
        return (*outputs, saved)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.spec = inputs[0]
        ctx.save_for_backward(*inputs[1:], output[-1])
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(output[-1], *(x for x, name in zip(output, ctx.spec.returns) if name == "threshold"))

    @staticmethod
    def backward(ctx, *cotangents):
        *tensors, saved = ctx.saved_tensors
        needed = ctx.needs_input_grad[1:]
        if torch.is_grad_enabled():  # create_graph=True, torch.func
            return (None, *_Pull.apply(ctx.spec, needed, len(cotangents) - 1, *cotangents[:-1], *tensors, saved))
        return (None, *_backward(ctx.spec, tensors, saved, cotangents[:-1], needed))

    @staticmethod
    def vmap(info, in_dims, spec, *tensors):
        raise NotImplementedError(_VMAP)

    @staticmethod
    def jvp(ctx, *tangents):
        raise NotImplementedError(
            "attune: forward-mode derivatives of an operator in Python: torch.func.jvp, torch.autograd.forward_ad. "
            "In C++, jvp() computes them"
        )


# --- recorded calls: torch.compile, make_fx, torch.jit.trace ----------------------------------------------------------


def _operator(key):
    """The operator that an operator of torch.library names by text."""
    found = _presets.op(key) if key in _presets.library().operators else _compile.loaded(key)
    if found is None:
        raise wrong(
            "the recorded program",
            f"the operator {key} of attune.compile",
            "an operator of this process: call attune.compile with the same policies before the program runs",
        )
    return found


def _spec_of(arrays, numbers, operator, names, mask, options, returns):
    """The Spec of the plain arguments of an operator of torch.library."""
    layout, threads, has_offset, offset = options
    number_names = names.split(";")[1]
    return Spec(
        _operator(operator),
        names.split(";")[0].split(","),
        dict(zip(number_names.split(","), numbers.tolist())) if number_names else {},
        _unpacked(iter(mask), arrays) if mask else None,
        (None, offset, arrays[-1] if arrays else None)[has_offset],
        ("bhld", "blhd")[layout],
        torch.get_num_threads() if threads < 0 else threads,
        tuple(returns.split(",")),
    )


def _packed(mask, to, arrays):
    """A mask as integers, and its arrays at the end of `arrays`."""
    to.append(mask._kind)
    if mask._parts is not None:
        for part in mask._parts:
            _packed(part, to, arrays)
        return
    to.extend((mask._a, mask._b))
    for array in (mask._x, mask._y):
        if array is None:
            to.append(-1)
        else:
            to.append(len(arrays))
            arrays.append(array if isinstance(array, torch.Tensor) else torch.from_numpy(array))


def _unpacked(numbers, arrays):
    kind = next(numbers)
    if kind >= 100:
        return Mask(kind, parts=(_unpacked(numbers, arrays), _unpacked(numbers, arrays)))
    a, b, x, y = (next(numbers) for _ in range(4))
    return Mask(kind, a, b, *(None if at < 0 else arrays[at] for at in (x, y)))


@torch.library.custom_op("attune::attend", mutates_args=())
def _attend(
    tensors: List[torch.Tensor],
    arrays: List[torch.Tensor],
    numbers: torch.Tensor,
    operator: str,
    names: str,
    mask: List[int],
    options: List[int],
    returns: str,
) -> List[torch.Tensor]:
    outputs, saved = _forward(_spec_of(arrays, numbers, operator, names, mask, options, returns), tensors, True)
    return [*outputs, saved]


@torch.library.custom_op("attune::attend_backward", mutates_args=())
def _attend_backward(
    tensors: List[torch.Tensor],
    arrays: List[torch.Tensor],
    numbers: torch.Tensor,
    operator: str,
    names: str,
    mask: List[int],
    options: List[int],
    returns: str,
    saved: torch.Tensor,
    cotangents: List[torch.Tensor],
    needed: List[int],
) -> List[torch.Tensor]:
    s = _spec_of(arrays, numbers, operator, names, mask, options, returns)
    by = dict(zip([name for name in s.returns if name != "threshold"], cotangents))
    wanted = [n in needed for n in range(len(tensors))]
    found = _backward(s, tensors, saved, [by.get(name) for name in s.returns], wanted)
    return [found[n] for n in needed]


def _rows_of(d, names, blhd, tensors):
    """(B, H, Lq, Dv), from shapes alone."""
    batch, heads, queries, values = 1, 1, 1, 0
    for name, x in zip(names, tensors):
        if name not in d.fields:
            continue
        side = d.sides[d.fields.index(name)]
        if side == "pair":
            shape = (*(1,) * (4 - x.dim()), *x.shape)
        elif side == "ground" or name == "output_gate":
            continue
        else:
            shape = (x.shape[0], x.shape[2], x.shape[1], *x.shape[3:]) if blhd else tuple(x.shape)
        if name == "v":
            values = shape[3]
        if side == "query":
            batch, heads, queries = shape[:3]
        elif side == "pair" and "q" not in names and "sort_q" not in names:
            heads, queries = shape[1], shape[2]
        elif side == "key" and "q" not in names and "sort_q" not in names:
            batch = shape[0]
    return batch, heads // d.heads_each, queries, values


@_attend.register_fake
def _(tensors, arrays, numbers, operator, names, mask, options, returns):
    op, first, blhd = _operator(operator), tensors[0], options[0] == 1
    b, h, q, w = _rows_of(op._description, names.split(";")[0].split(","), blhd, tensors)
    narrow = torch.float64 if first.dtype == torch.float64 else torch.float32
    out = []
    for name in returns.split(","):
        if name == "out":
            out.append(first.new_empty((b, q, h, w) if blhd else (b, h, q, w)))
        else:
            out.append(first.new_empty((b, h, q), dtype=narrow))
    per_value, per_row = op._saved_per_row()
    return [*out, first.new_empty((b * h * q * (w * per_value + per_row),), dtype=narrow)]


@_attend_backward.register_fake
def _(tensors, arrays, numbers, operator, names, mask, options, returns, saved, cotangents, needed):
    return [torch.empty_like(tensors[n], memory_format=torch.contiguous_format) for n in needed]


def _setup(ctx, inputs, output):
    tensors, arrays, numbers, *ctx.plain = inputs
    ctx.count, ctx.arrays = len(tensors), len(arrays)
    ctx.needed = [n for n, x in enumerate(tensors) if x.requires_grad]
    ctx.save_for_backward(*tensors, *arrays, numbers, *output)


def _pull(ctx, cotangents):
    saved = ctx.saved_tensors
    tensors, arrays = list(saved[: ctx.count]), list(saved[ctx.count : ctx.count + ctx.arrays])
    numbers, *outputs = saved[ctx.count + ctx.arrays :]
    by = [
        torch.zeros_like(x) if g is None else g
        for g, x, name in zip(cotangents[:-1], outputs[:-1], ctx.plain[-1].split(","))
        if name != "threshold"
    ]
    found = _attend_backward(tensors, arrays, numbers, *ctx.plain, outputs[-1], by, ctx.needed)
    gradients = [None] * ctx.count
    for n, g in zip(ctx.needed, found):
        gradients[n] = g
    # An empty list counts as a list of tensors there.
    return (gradients, [None] * ctx.arrays, None, *([] if isinstance(x, list) and not x else None for x in ctx.plain))


_attend.register_autograd(_pull, setup_context=_setup)


def _recorded(tensors):
    """Whether the operator of torch.library must run: a compiler or tracer records it, a mode watches it, or a subclass of
    Tensor has its own way to run operators. Memory that this process reads would be another than the one of the records."""
    if _compiling() or _tracing() or _modes() or _modes_before_autograd():
        return True
    return any([type(x) not in _PLAIN and torch._C._dispatch_keys(x).has(_PYTHON) for x in tensors])


def _numbers(values):
    """Numbers as one tensor: a compiler keeps numbers that change, and tensors, as inputs of the product with 1."""
    one = torch.ones((), dtype=torch.float64)
    return torch.stack([one * x for x in values]) if values else one.new_empty(0)


def _as_record(operator, names, tensors, numbers, mask, offset, layout, threads, returns):
    arrays, nodes = [], []
    if mask is not None:
        _packed(mask, nodes, arrays)
    has_offset = 0
    if isinstance(offset, torch.Tensor):
        arrays.append(offset)
        has_offset, offset = 2, 0
    elif offset is not None:
        has_offset = 1
    options = [1 if layout == "blhd" else 0, -1 if threads is None else threads, has_offset, 0 if offset is None else offset]
    text = ",".join(names) + ";" + ",".join(numbers)
    values = _numbers(list(numbers.values()))
    return _attend(tensors, arrays, values, operator._key, text, nodes, options, ",".join(returns))[:-1]


# --- the call -----------------------------------------------------------------------------------------------------------


def _autocast(x):
    """What autocast makes of an input: its 16-bit type, for inputs of float32 and 16 bits."""
    place = x.device.type
    if torch.is_autocast_enabled(place) and x.dtype in (torch.float32, torch.bfloat16, torch.float16):
        return x.to(torch.get_autocast_dtype(place))
    return x


def _on_device(operator, names, tensors, numbers, mask, offset, layout, returns):
    """The outputs of a call whose first tensor is on a CUDA device."""
    if _recorded(tensors):
        raise wrong(names[0], "a tensor on a CUDA device, under torch.compile or a tracer", "a call outside of it")
    for name, x in zip(names, tensors):
        if x.requires_grad and torch.is_grad_enabled():
            raise wrong(
                name,
                f"a tensor on {x.device} that requires gradients",
                "a tensor after detach(), or a call under torch.no_grad(): devices run the forward pass alone",
            )
    d, device = operator._description, _cuda.Device(tensors[0].device)
    fields = {name: x for name, x in zip(names, tensors) if name in d.fields}
    named = {**numbers, **{name: x for name, x in zip(names, tensors) if name not in d.fields}}
    return _cuda.forward(operator, fields, named, mask, offset, layout, returns, device)


def quick(operator, q, k, v, mask, offset, threads, layout, returns):
    """The outputs of a call without gradients that looks like an earlier one, in a list; else None.

    Its parts are written out: such a call takes a few microseconds.
    """
    if (
        _compiling()
        or _tracing()
        or _modes()
        or _function_modes()  # make_fx has one, also where it has no other mode
        or type(q) is not _Tensor
        or type(k) is not _Tensor
        or type(v) is not _Tensor
        or (_with_gradients() and (q.requires_grad or k.requires_grad or v.requires_grad))
        or not (q.is_cpu and k.is_cpu and v.is_cpu)
        or q.is_neg()
        or k.is_neg()
        or v.is_neg()
        or _autocasts()
        or _transforms()
    ):
        return None
    try:
        key = (
            ("q", q.dtype, q.shape, q.stride()),
            ("k", k.dtype, k.shape, k.stride()),
            ("v", v.dtype, v.shape, v.stride()),
            None if mask is None else mask._identity(),
            offset,
            _threads() if threads is None else threads,
            layout,
            returns,
        )
        plans = operator._plans
        last, plan = plans.last
        if last != key:  # faster than to look it up
            plan = plans.found.get(key)
            plans.last = (None if plan is None else key), plan
    except (AttributeError, RuntimeError, TypeError, ValueError):  # call() says what is wrong
        return None
    return plan and plan.quick(q, k, v)


def call(operator, q=None, k=None, v=None, *, mask=None, offset=None, threads=None, returns=("out",), layout="bhld", **named):
    """The outputs of an operator, with gradients by every tensor that requires them. See attune.Operator."""
    if not isinstance(operator, Operator):
        raise wrong("operator", f"the type {type(operator).__name__}", 'an operator: attune.op("softmax")')
    one = isinstance(returns, str)
    returns = (returns,) if one else tuple(returns)
    d = operator._description
    names, tensors, numbers = [], [], {}
    cast = _autocasts()
    for name, x in (("q", q), ("k", k), ("v", v), *named.items()):
        if x is None:
            continue
        if name not in d.names:
            raise no_argument(operator, name)
        if isinstance(x, torch.Tensor) and d.is_constant(name):
            if x.dim():
                raise wrong(name, f"{x.dim()} axes", "a number, or a tensor of one number without axes")
            numbers[name] = x
        elif isinstance(x, torch.Tensor):
            if x.requires_grad and name in d.arrays:
                raise wrong(name, "a tensor that requires gradients", "a tensor after detach(): this array has none")
            if x.requires_grad and not x.dtype.is_floating_point:
                raise wrong(name, f"the type {x.dtype} and requires_grad", "a tensor of a real type")
            names.append(name)
            tensors.append(_autocast(x) if cast and name in d.fields else x)
        elif name in d.fields:
            raise wrong(name, f"the type {type(x).__name__}", "a tensor of torch")
        elif is_array(x):
            raise wrong(name, f"the type {type(x).__name__}", "a number or a tensor of torch")
        else:
            numbers[name] = x
    if tensors and tensors[0].is_cuda:
        outputs = _on_device(operator, names, tensors, numbers, mask, offset, layout, returns)
    elif _recorded(tensors):
        outputs = _as_record(operator, names, tensors, numbers, mask, offset, layout, threads, returns)
    else:
        numbers = {name: x.item() if isinstance(x, torch.Tensor) else x for name, x in numbers.items()}
        spec = Spec(operator, names, numbers, mask, offset, layout, torch.get_num_threads() if threads is None else threads, returns)
        if torch._C._are_functorch_transforms_active():
            outputs = _Attend.apply(spec, *tensors)[:-1]
        elif torch.is_grad_enabled() and any([x.requires_grad for x in tensors]):
            outputs = _Eager.apply(spec, *tensors)
        else:
            outputs = _forward(spec, tensors, False)[0]
    return outputs[0] if one or len(outputs) == 1 else tuple(outputs)


__all__ = ["Error", "call"]
