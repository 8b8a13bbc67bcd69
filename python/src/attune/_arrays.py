# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Arrays of any library as addresses, shapes and strides. Nothing is copied.

NumPy arrays and torch tensors are read directly, other arrays by DLPack.
"""

import functools
import math
import operator
import sys

import numpy

from ._abi import TYPE, TYPES, Error


@functools.lru_cache(maxsize=None)
def types_of(library):
    """The types of numpy or torch by their codes. None: the library does not have it. Bytes are booleans."""
    names = {"bytes": "bool_" if library is numpy else "bool"}
    return tuple(getattr(library, names.get(name, name), None) for name in TYPES)


@functools.lru_cache(maxsize=None)
def _codes_of(library):
    """The codes of the types that arrays may have."""
    codes = {kind: code for code, kind in enumerate(types_of(library)[: TYPE.int32]) if kind is not None}
    codes[library.uint8] = TYPE.bytes
    return {numpy.dtype(kind): code for kind, code in codes.items()} if library is numpy else codes


_NUMPY_TYPES, _NUMPY_CODES = types_of(numpy), _codes_of(numpy)


def is_torch(x):
    """Whether x is a torch tensor. torch is not imported for it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_array(x):
    """Whether x is an array of some library, and no number."""
    if isinstance(x, (int, float)):  # first: torch.compile has no attributes for numbers that it keeps as symbols
        return False
    return isinstance(x, numpy.ndarray) or is_torch(x) or (hasattr(x, "__dlpack__") and not numpy.isscalar(x))


def index_of(x):
    """x as an integer of Python, or None if it is none."""
    if type(x) is int:  # first: a compiler keeps such a number as a symbol
        return x
    if isinstance(x, bool):
        return None
    try:
        return operator.index(x)
    except TypeError:
        return None


def wrong(name, got, expected):
    """The exception for a wrong argument."""
    return Error(f"attune: {name} has {got}; expected {expected}")


class View:
    """An array: address, shape, strides in elements, code of its type. `owner` keeps the memory alive."""

    __slots__ = ("data", "shape", "strides", "code", "owner")

    def __init__(self, data, shape, strides, code, owner):
        self.data, self.shape, self.strides, self.code, self.owner = data, shape, strides, code, owner

    def tensor(self, shape=None, strides=None):
        """The members of a tensor of the interface. shape, strides: with four axes, if the array has other ones."""
        if shape is None:
            return (self.data, *self.shape, *self.strides, self.code, 1)
        return (self.data, *shape, *strides, self.code, 1)


def view(name, x, place="cpu"):
    """The View of an array. place: the type of the device on which it must lie."""
    if is_torch(x):
        torch = sys.modules["torch"]
        refuse_nested(name, x)
        if x.layout is not torch.strided:
            raise wrong(name, f"the layout {x.layout}", "a dense tensor")
        if x.is_quantized:
            raise wrong(name, f"the type {x.dtype}, a quantized tensor", "its numbers: x.dequantize()")
        if x.device.type != place:
            raise wrong(name, f"the device {x.device}", "a tensor on the CPU")
        code = _codes_of(torch).get(x.dtype)
        if code is None:
            raise wrong(name, f"the type {x.dtype}", "float32, float64, bfloat16 or float16")
        if x.is_conj() or x.is_neg():
            x = x.resolve_conj().resolve_neg()
        if x._is_zerotensor():  # it has no memory
            x = x.clone()
        return View(x.data_ptr(), tuple(x.shape), x.stride(), code, x)
    if isinstance(x, numpy.ndarray):
        _refuse_masked(name, x)
        code = _NUMPY_CODES.get(x.dtype)
        if code is None and x.dtype.name == "bfloat16":
            code = TYPE.bfloat16
        if code is None or not x.dtype.isnative:
            raise wrong(name, f"the type {x.dtype}", "float32, float64, bfloat16 or float16")
        size = x.itemsize
        for axis, step in enumerate(x.strides):
            if step % size and x.shape[axis] > 1:
                raise wrong(name, f"a stride of {step} bytes", f"a multiple of {size}, the size of an element")
        strides = [step // size for step in x.strides]
        if not x.size:  # NumPy's are 0
            strides = [max(1, math.prod(x.shape[axis + 1 :])) for axis in range(x.ndim)]
        return View(x.__array_interface__["data"][0], x.shape, tuple(strides), code, x)
    if hasattr(x, "__dlpack__"):
        try:
            return view(name, numpy.from_dlpack(x))
        except (BufferError, RuntimeError, TypeError, ValueError) as e:
            raise _not_passed(name, x, e) from e
    raise wrong(name, f"the type {type(x).__name__}", "an array of NumPy, torch or DLPack")


def _not_passed(name, x, reason):
    """The exception for an array that DLPack does not pass to NumPy."""
    kind = str(getattr(x, "dtype", "")).rsplit(".", 1)[-1]
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(x, jax.core.Tracer):
        return wrong(name, "a tracer of JAX, which has no numbers", "an array: attune has no part in jax.jit and jax.grad")
    if kind == "bfloat16" or kind.startswith("float8"):
        expected = "numpy.asarray(x), which has this type by ml_dtypes; or float32"
        return wrong(name, f"the type {kind} in an array that NumPy does not read by DLPack", expected)
    return wrong(name, f"an array that DLPack does not pass to the CPU ({reason})", "an array on the CPU")


def refuse_nested(name, x):
    """Refuses nested tensors of torch: they have no shape."""
    if x.is_nested:
        raise wrong(name, "a nested tensor", "one sequence after another, and masks.from_cu_seqlens")


def _refuse_masked(name, x):
    """Refuses arrays of numpy.ma: their mask would be lost."""
    if isinstance(x, numpy.ma.MaskedArray):
        raise wrong(name, "a masked array", "an array without one: x.filled(number), and a mask of attune.masks")


def from_list(name, x):
    """A list or tuple of numbers as an array of float64; other arguments as they are."""
    if not isinstance(x, (list, tuple)):
        return x
    a = as_numpy(name, x, "a number or an array of numbers")
    if a.size and a.dtype.kind not in "iuf":
        raise wrong(name, f"the value {x!r}", "a number or an array of numbers")
    return a.astype(numpy.float64)


def as_numpy(name, x, expected):
    """x as an array of NumPy."""
    try:
        return numpy.asarray(x)
    except (RuntimeError, TypeError, ValueError):  # lists of several lengths; tensors that require gradients
        raise wrong(name, f"the value {x!r}", expected) from None


def copied(x):
    """A copy of an array. What it shares along an axis, by a stride of 0, stays shared."""
    shared = [step == 0 for step in (x.stride() if is_torch(x) else x.strides)]
    once = x[(*(slice(0, 1) if is_shared else slice(None) for is_shared in shared), ...)]
    if is_torch(x):
        return once.clone().expand(x.shape)
    once = once.copy()
    steps = [0 if is_shared else step for is_shared, step in zip(shared, once.strides)]
    return numpy.lib.stride_tricks.as_strided(once, x.shape, steps)


def _host(x, stays=False):
    """A tensor on the CPU, without gradients. One of the meta device has no numbers, and stays; so does one of a CUDA device,
    if `stays`."""
    return x.detach() if x.is_meta or (stays and x.is_cuda) else x.detach().cpu()


_INTEGERS = "integers of 64 bits, and as many in each list"
_NO_BOOLEANS = "integers. A table of booleans is a mask: masks.visible"


def numbers_of_int64(name, x, kinds="iu", stays=False):
    """A dense array of int64 with the numbers of x; copied only if x is something else. kinds: NumPy's letters of types.
    stays: on its CUDA device."""
    if is_torch(x):
        torch = sys.modules["torch"]
        if x.dtype.is_floating_point or x.dtype.is_complex or (x.dtype == torch.bool and "b" not in kinds):
            raise wrong(name, f"the type {x.dtype}", _NO_BOOLEANS if x.dtype == torch.bool else "integers")
        a = _host(x, stays).to(torch.int64).contiguous()
        wraps = str(x.dtype) == "torch.uint64" and bool((a < 0).any())
    else:
        _refuse_masked(name, x)
        given = as_numpy(name, x, _INTEGERS)
        if given.size and given.dtype.kind not in kinds:
            expected = {"b": _NO_BOOLEANS, "O": _INTEGERS}.get(given.dtype.kind, "integers")
            raise wrong(name, f"the type {given.dtype}", expected)
        a = numpy.ascontiguousarray(given, dtype=numpy.int64)
        wraps = given.dtype.kind == "u" and bool((a < 0).any())
    if wraps:
        raise wrong(name, "a number of at least 2**63", "integers below it")
    return a


def bytes_of(name, x, stays=False):
    """An array of bytes with the truth values of x, which is copied only if it is neither bool nor uint8. Other integers
    must be 0 or 1: a larger one is more likely a mistake, for example an id. stays: on its CUDA device."""
    expected = "bool, uint8, or integers that are 0 or 1"
    if is_torch(x):
        torch = sys.modules["torch"]
        a, is_bytes = _host(x, stays), x.dtype in (torch.bool, torch.uint8)
        is_integer = not (x.dtype.is_floating_point or x.dtype.is_complex)
    else:
        _refuse_masked(name, x)
        a = as_numpy(name, x, f"{expected}, and as many in each list")
        is_bytes, is_integer = a.dtype in (numpy.bool_, numpy.uint8), a.dtype.kind in "iu"
    if is_bytes:
        return a
    if not is_integer:
        raise wrong(name, f"the type {a.dtype}", expected)
    if not bool(((a == 0) | (a == 1)).all()):
        raise wrong(name, f"the type {a.dtype} and other numbers than 0 and 1", expected)
    return a == 1


def widened(x):
    """An array of 16 bits as float32, which has all its numbers; others as they are."""
    if is_torch(x):
        torch = sys.modules["torch"]
        return x.detach().float() if x.dtype in (torch.bfloat16, torch.float16) else x.detach()
    if not isinstance(x, numpy.ndarray):
        return x
    return x.astype(numpy.float32) if x.dtype == numpy.float16 or x.dtype.name == "bfloat16" else x


def on_host(x):
    """An array on the CPU, without gradients, whose 16-bit numbers became float32."""
    return widened(x).cpu() if is_torch(x) else widened(x)


def empty_like(x, shape, code=None):
    """A new array of the library of x, with another shape and perhaps another type."""
    if is_torch(x):
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=x.dtype if code is None else types_of(torch)[code], device="cpu")
    if not isinstance(x, numpy.ndarray):
        x = numpy.from_dlpack(x)
    return numpy.empty(shape, x.dtype if code is None else _NUMPY_TYPES[code])

