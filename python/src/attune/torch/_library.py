# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Calls as operators of torch.library, which torch.compile, make_fx and torch.jit.trace record."""

import torch

from .. import _compile, _cuda, _presets
from .._arrays import is_array, wrong
from .._calls import output_shape
from .._layout import MASK_KIND
from ..masks import Mask
from . import _passes

_LAYOUTS = ("bhld", "blhd")
_compiling, _tracing, _modes = torch.compiler.is_compiling, torch._C._is_tracing, torch._C._len_torch_dispatch_stack
# Modes of make_fx(pre_dispatch=True), which come with a function mode. Their number takes longer to find.
_function_modes, _modes_before_autograd = torch._C._len_torch_function_stack, torch._ops._len_torch_dispatch_stack_pre_dispatch
_PLAIN, _PYTHON = (torch.Tensor, torch.nn.Parameter), torch._C.DispatchKey.Python


def _operator(key):
    """The operator that an operator of torch.library names by text."""
    name, _, products = key.partition("@")
    found = _presets.op(name) if _presets.has(name) else _compile.loaded(name)
    if found is None:
        raise wrong(
            "the recorded program",
            f"the operator {key} of attune.compile",
            "an operator of this process: call attune.compile with the same policies before the program runs",
        )
    return found.with_products(products or None)


def _spec_of(arrays, numbers, operator, names, mask, options, returns):
    """The Spec of the plain arguments of an operator of torch.library."""
    layout, threads, has_offset, offset = options
    operator = _operator(operator)
    return _passes.Spec(
        operator,
        names.split(";")[0].split(","),
        _numbers(operator, names.split(";")[1], numbers),
        _unpacked(iter(mask), arrays) if mask else None,
        (None, offset, arrays[-1] if arrays else None)[has_offset],
        _LAYOUTS[layout],
        torch.get_num_threads() if threads < 0 else threads,
        tuple(returns.split(",")),
    )


def _numbers(operator, names, numbers):
    """The numbers of a call by their names. Parameters on a device stay there: to read them would wait for it."""
    if not names:
        return {}
    names = names.split(",")
    if not numbers.is_cuda or any(name in operator._description.only_numbers for name in names):
        return dict(zip(names, numbers.tolist()))
    return dict(zip(names, numbers.unbind()))


def _packed(mask, to, arrays, place):
    """A mask as integers, and its arrays at the end of `arrays`, on a device or on the CPU."""
    to.append(mask._kind)
    if mask._parts is not None:
        for part in mask._parts:
            _packed(part, to, arrays, place)
        return
    to.extend((mask._a, mask._b))
    for array in (mask._x, mask._y):
        if array is None:
            to.append(-1)
        else:
            to.append(len(arrays))
            array = array if isinstance(array, torch.Tensor) else torch.from_numpy(array)
            arrays.append(array if place is None else array.to(place))


def _unpacked(numbers, arrays):
    kind = next(numbers)
    if kind in (MASK_KIND.both, MASK_KIND.either):
        return Mask(kind, parts=(_unpacked(numbers, arrays), _unpacked(numbers, arrays)))
    a, b, x, y = (next(numbers) for _ in range(4))
    return Mask(kind, a, b, *(None if at < 0 else arrays[at] for at in (x, y)))


# Arguments of the operators. Those behind `tensors` are what _spec_of takes.
_ARGUMENTS = "Tensor[] tensors, Tensor[] arrays, Tensor numbers, str operator, str names, SymInt[] mask, SymInt[] options, str returns"
_OF_GRADIENTS = "Tensor saved, Tensor[] cotangents, str given, int[] needed"


@torch.library.custom_op("attune::attend", mutates_args=(), schema=f"({_ARGUMENTS}) -> Tensor[]")
def _attend(tensors, *plain):
    outputs, saved = _passes.forward(_spec_of(*plain), tensors, True)
    return [*outputs, saved]


@torch.library.custom_op("attune::attend_backward", mutates_args=(), schema=f"({_ARGUMENTS}, {_OF_GRADIENTS}) -> Tensor[]")
def _attend_backward(tensors, *rest):
    *plain, saved, cotangents, given, needed = rest
    s = _spec_of(*plain)
    by = dict(zip(given.split(","), cotangents))
    wanted = [n in needed for n in range(len(tensors))]
    found = _passes.backward(s, tensors, saved, [by.get(name) for name in s.returns], wanted)
    return [found[n] for n in needed]


def _rows_of(d, names, blhd, tensors):
    """(B, H, Lq, Dv), from shapes alone."""
    shapes = [None] * len(d.fields)
    for name, x in zip(names, tensors):
        if name in d.fields:
            n, shape = d.fields.index(name), tuple(x.shape)
            if d.sides[n] in ("query", "key") and blhd:
                shape = (shape[0], shape[2], shape[1], *shape[3:])
            shapes[n] = (*(1,) * (4 - len(shape)), *shape) if d.sides[n] == "pair" else shape
    return d.rows(shapes)


@_attend.register_fake
def _(tensors, arrays, numbers, operator, names, mask, options, returns):
    op, first, blhd = _operator(operator), tensors[0], options[0] == 1
    b, h, q, w = rows = _rows_of(op._description, names.split(";")[0].split(","), blhd, tensors)
    kinds = {"out": first.dtype}
    narrow = torch.float64 if first.dtype == torch.float64 else torch.float32
    out = [first.new_empty(output_shape(x, rows, blhd), dtype=kinds.get(x, narrow)) for x in returns.split(",")]
    per_value, per_row = op._saved_per_row()
    return [*out, first.new_empty((b * h * q * (w * per_value + per_row),), dtype=narrow)]


@_attend_backward.register_fake
def _(tensors, *rest):
    return [torch.empty_like(tensors[n], memory_format=torch.contiguous_format) for n in rest[-1]]


def _setup(ctx, inputs, output):
    tensors, arrays, numbers, *ctx.plain = inputs
    ctx.count, ctx.arrays = len(tensors), len(arrays)
    ctx.needed = [n for n, x in enumerate(tensors) if x.requires_grad]
    ctx.save_for_backward(*tensors, *arrays, numbers, output[-1])


def _pull(ctx, cotangents):
    *all_arrays, numbers, saved = ctx.saved_tensors
    tensors, arrays = all_arrays[: ctx.count], all_arrays[ctx.count :]
    gradients = _pulled(tensors, (arrays, numbers, *ctx.plain), saved, cotangents[:-1], ctx.needed)
    # An empty list counts as a list of tensors there.
    return (gradients, [None] * ctx.arrays, None, *([] if isinstance(x, list) and not x else None for x in ctx.plain))


_attend.register_autograd(_pull, setup_context=_setup)


def _pulled(tensors, plain, saved, cotangents, needed):
    """The gradients of the tensors by attend_backward. needed: which of them have one."""
    by = [(name, g) for name, g in zip(plain[-1].split(","), cotangents) if g is not None and name != "threshold"]
    given = ",".join([name for name, _ in by])
    found = _attend_backward(tensors, *plain, saved, [g for _, g in by], given, needed)
    gradients = [None] * len(tensors)
    for n, g in zip(needed, found):
        gradients[n] = g
    return gradients


def records(tensors):
    """Whether a call of these tensors must be an operator of torch.library: a compiler or tracer records it, a mode sees
    all operators, a subclass of Tensor runs them in its own way, or a tensor is on the meta device and has a shape alone. The
    memory of such tensors says nothing."""
    if _compiling() or _tracing() or _modes() or (_function_modes() and _modes_before_autograd()):
        return True
    for x in tensors:
        if x.is_meta or (type(x) not in _PLAIN and torch._C._dispatch_keys(x).has(_PYTHON)):
            return True
    return False


def _plain(spec, tensors):
    """The arguments of an operator of torch.library behind the tensors."""
    arrays, nodes, offset, kind = [], [], spec.offset, 0
    place = tensors[0].device if tensors[0].is_cuda else None
    if spec.mask is not None:
        _packed(spec.mask, nodes, arrays, place)
    if offset is None:
        offset = 0
    elif is_array(offset) or isinstance(offset, (list, tuple)):
        try:
            arrays.append(torch.as_tensor(offset, device=place or "cpu"))
        except (TypeError, ValueError):
            raise wrong("offset", f"the value {offset!r}", "an integer, or one for each batch element") from None
        offset, kind = 0, 2
    else:
        kind = 1
    if spec.layout not in _LAYOUTS:
        raise wrong("layout", f"the value {spec.layout!r}", '"bhld" or "blhd"')
    options = [_LAYOUTS.index(spec.layout), -1 if spec.threads is None else spec.threads, kind, offset]
    names = ",".join(spec.names) + ";" + ",".join(spec.numbers)
    # All numbers are one tensor: a compiler keeps a product with a number that changes, and with a tensor, as it is.
    one = tensors[0].new_ones((), dtype=torch.float64)
    numbers = torch.stack([one * x for x in spec.numbers.values()]) if spec.numbers else one.new_empty(0)
    return arrays, numbers, spec.operator._key, names, nodes, options, ",".join(spec.returns)


def forward(spec, tensors, saves=True):
    """The outputs of a recorded call in a list, which have gradients, and the rows that it saves, always."""
    *outputs, saved = _attend(list(tensors), *_plain(spec, tensors))
    return [x.detach() if name == "threshold" else x for name, x in zip(spec.returns, outputs)], saved


def backward(spec, tensors, saved, cotangents, needed):
    """The gradients of a recorded call, as in _passes.backward()."""
    return _pulled(list(tensors), _plain(spec, tensors), saved, cotangents, [n for n, wanted in enumerate(needed) if wanted])
