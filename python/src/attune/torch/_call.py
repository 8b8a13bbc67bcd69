# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Calls of operators with tensors that may require gradients: torch.autograd in eager mode, an operator of
torch.library wherever something records or watches the operators of torch: torch.compile, make_fx, torch.jit.trace."""

import functools

import torch
from torch.autograd import forward_ad, profiler

from .. import _cuda
from .._arrays import is_array, refuse_nested, wrong
from .._calls import names_of, no_argument, returned
from .._operator import Operator
from . import _library, _passes

_Tensor, _with_gradients, _autocasts = torch.Tensor, torch.is_grad_enabled, torch._C._is_any_autocast_enabled
_transforms, _compiling, _threads = (
    torch._C._are_functorch_transforms_active,
    torch.compiler.is_compiling,
    torch.get_num_threads,
)
_tracing, _modes, _function_modes = (
    torch._C._is_tracing,
    torch._C._len_torch_dispatch_stack,
    torch._C._len_torch_function_stack,
)
_FORWARD = (
    "attune: forward-mode derivatives of an operator in Python: torch.func.jvp, torch.autograd.forward_ad. In C++, jvp() "
    "computes them"
)
_SECOND = (
    "attune: second derivatives of an operator: create_graph=True, double backward, a gradient of a gradient. In C++, "
    "jvp_of_vjp() of the reference computes them"
)
_VMAP = (
    "attune: torch.vmap over an operator: the batch axis is the first axis of q, k and v; reshape the mapped axis into it"
)


_has_axis = torch._C._functorch.is_batchedtensor
_has_old_axis = getattr(torch._C._functorch, "is_legacy_batchedtensor", _has_axis)


def _is_batched(x):
    """Whether x has an axis of torch.vmap, in either of its forms."""
    return _has_axis(x) or _has_old_axis(x)


def _moves(tensors):
    """Whether a tensor has a tangent of forward mode."""
    return forward_ad._current_level >= 0 and any([forward_ad.unpack_dual(x).tangent is not None for x in tensors])


def _runner(tensors):
    """The module whose forward() and backward() run passes of these tensors now."""
    return _library if _library.records(tensors) else _passes


def _backward(spec, tensors, saved, cotangents, needed):
    if any([x is not None and _is_batched(x) for x in cotangents]):
        raise NotImplementedError(_VMAP)
    return _runner(tensors).backward(spec, tensors, saved, cotangents, needed)


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
        outputs, saved = _passes.forward(spec, tensors, True, ctx.needs_input_grad[1:])
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
        if torch.is_grad_enabled():  # create_graph=True, torch.func
            return (None, *_Pull.apply(ctx.spec, needed, len(cotangents), *cotangents, *tensors, saved))
        return (None, *_backward(ctx.spec, tensors, saved, cotangents, needed))


@functools.lru_cache(maxsize=None)
def _eager_of(name):
    """_Eager, with a name that grad_fn and profilers show."""
    return type(f"attune_{name}", (_Eager,), {})


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(spec, *tensors):
        outputs, saved = _runner(tensors).forward(spec, tensors, True)
        return (*outputs, saved)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.spec = inputs[0]
        ctx.save_for_backward(*inputs[1:], output[-1])
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(output[-1], *(x for x, name in zip(output, ctx.spec.returns) if name == "threshold"))

    backward = staticmethod(_Eager.backward)  # the last cotangent, of the saved rows, has no name in spec.returns

    @staticmethod
    def vmap(info, in_dims, spec, *tensors):
        raise NotImplementedError(_VMAP)

    @staticmethod
    def jvp(ctx, *tangents):
        raise NotImplementedError(_FORWARD)


# --- the call -----------------------------------------------------------------------------------------------------------


def _autocast(x):
    """What autocast makes of an input: its 16-bit type, for inputs of float32 and 16 bits."""
    place = x.device.type
    if torch.is_autocast_enabled(place) and x.dtype in (torch.float32, torch.bfloat16, torch.float16):
        return x.to(torch.get_autocast_dtype(place))
    return x


def _read(named):
    """What the key of a plan has of these arguments, and the addresses of their tensors; None: not for a plan."""
    found, addresses = [], []
    for name, x in named.items():
        kind = type(x)
        if kind is float or kind is int:
            found += (name, x, kind)
        elif kind is _Tensor or kind is torch.nn.Parameter:
            if (x.requires_grad and _with_gradients()) or not x.is_cpu or x.is_neg():
                return None
            found += (name, x.dtype, x.shape, x.stride())
            addresses.append(x.data_ptr())
        else:
            return None
    return found, addresses


def quick(operator, q, k, v, mask, offset, threads, layout, returns, named):
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
        or forward_ad._current_level >= 0
        or profiler._is_profiler_enabled
        or _cuda.warps is not None
    ):
        return None
    try:
        more, addresses = _read(named) if named else ((), [])
        if mask is not None:
            table = mask._table()
            mask = mask._identity() if table is None else table[0]
            if table is not None:
                addresses.append(table[1])
        key = (
            *("q", q.dtype, q.shape, q.stride()),
            *("k", k.dtype, k.shape, k.stride()),
            *("v", v.dtype, v.shape, v.stride()),
            *more,
            mask,
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
    return plan and plan.quick(q, k, v, addresses)


def _listed(name, x):
    try:
        return torch.tensor(x, dtype=torch.float64, device="cpu")
    except (TypeError, ValueError):
        raise wrong(name, f"the value {x!r}", "a number or an array of numbers") from None


def require_apart(operator, named):
    """Fails if two of the names stand for the same argument: one of the two would be lost, and have a wrong gradient."""
    names, taken = operator._description.names, {}
    for name, x in named.items():
        for place in names.get(name, ()) if x is not None else ():
            if place in taken:
                raise wrong(name, f"a value, and so has {taken[place]}, which is the same argument", "one of them")
            taken[place] = name


def _run(run, spec, tensors):
    """The outputs of a call. run: the module with the passes."""
    if not _compiling() and _transforms():
        return _Attend.apply(spec, *tensors)[:-1]
    if run is _passes and torch.is_grad_enabled() and any([x.requires_grad for x in tensors]):
        return _eager_of(spec.operator.name).apply(spec, *tensors)
    return run.forward(spec, tensors, False)[0]


def call(operator, q=None, k=None, v=None, *, mask=None, offset=None, threads=None, returns=("out",), layout="bhld", **named):
    """The outputs of an operator, with gradients by every tensor that requires them. See attune.Operator."""
    if not isinstance(operator, Operator):
        raise wrong("operator", f"the type {type(operator).__name__}", 'an operator: attune.op("softmax")')
    returns = names_of(returns)
    d = operator._description
    names, tensors, numbers, drawn = [], [], {}, []
    if len(named) > 1:
        require_apart(operator, named)
    cast = _autocasts()
    for name, x in (("q", q), ("k", k), ("v", v), *named.items()):
        if x is None:
            continue
        if name not in d.names:
            raise no_argument(operator, name)
        if name in d.only_numbers and isinstance(x, torch.Tensor):
            if x.dim():
                raise wrong(name, f"{x.dim()} axes", "a number, or a tensor of one number without axes")
            numbers[name] = x
            drawn.append(name)
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
        elif isinstance(x, (list, tuple)) and name not in d.only_numbers:
            names.append(name)
            tensors.append(_listed(name, x))
        else:
            numbers[name] = x
    for name, x in zip(names, tensors):
        refuse_nested(name, x)
        if x.is_meta != tensors[0].is_meta:
            raise wrong(name, f"the device {x.device}", f"{tensors[0].device}, the device of {names[0]}")
    if not _compiling() and _moves(tensors):
        raise NotImplementedError(_FORWARD)
    run = _runner(tensors)
    if run is _passes:
        for name in drawn:
            numbers[name] = numbers[name].item()
        threads = torch.get_num_threads() if threads is None else threads
    spec = _passes.Spec(operator, names, numbers, mask, offset, layout, threads, returns)
    if not _compiling() and profiler._is_profiler_enabled:
        with profiler.record_function(f"attune::{operator.name}"):
            outputs = _run(run, spec, tensors)
    else:
        outputs = _run(run, spec, tensors)
    return returned(outputs)
