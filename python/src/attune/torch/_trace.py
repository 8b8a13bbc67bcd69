# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Runs a Python function on symbols in place of tensors, and writes down what it does: a graph of _graph.Node.

The function is the score_mod or the mask_mod of a FlexAttention. A symbol stands for the score or an index of one pair.
It answers to the operators and functions of torch. What would need its number is refused, with the line of the user.
"""

import functools
import numbers
import operator
import os
import sys

import numpy
import torch
from torch.overrides import TorchFunctionMode

from .._abi import Error
from .._graph import Node
from ._functions_of_torch import READING, canonical, index, name_of, plain_name

_FOLDERS = (os.path.dirname(torch.__file__) + os.sep, __file__)
_RANDOM = (
    "rand randn randint randperm rand_like randn_like randint_like bernoulli multinomial normal poisson dropout alpha_dropout "
    "feature_dropout native_dropout rrelu gumbel_softmax".split()
)
_KINDS = ("bool", "int", "float")  # a type of one kind holds those before it
_FILLED = frozenset("new_ones new_zeros new_full new_tensor ones_like zeros_like full_like".split())
_METADATA = frozenset("dim ndimension numel nelement size stride is_floating_point is_complex element_size".split())
_INSTEAD_OF_READING = "write torch.where(condition, a, b), and keep the number a tensor"


class _Function:
    """The function that is traced: how errors call it, the file and line where it is, and the type of the score."""

    def __init__(self, name, function, kind):
        self.name, self.kind = name, kind
        while hasattr(function, "func"):  # functools.partial
            function = function.func
        code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
        code = code or getattr(getattr(type(function), "__call__", None), "__code__", None)
        self.code, self.place = code, None if code is None else (code.co_filename, code.co_firstlineno)

    def here(self):
        """The file and line of the user that runs now."""
        frame, found = sys._getframe(1), None
        while frame is not None and frame.f_code is not trace.__code__:
            code, file = frame.f_code, frame.f_code.co_filename
            if code.co_name == "forward" and code is not self.code and code.co_varnames[:1] != ("self",):
                why = "a torch.autograd.Function has a gradient of its own"
                self.fail(why, "write its formula: attune derives the gradient", (file, frame.f_lineno))
            if found is None and not file.startswith(_FOLDERS):
                found = file, frame.f_lineno
            frame = frame.f_back
        return found or self.place

    def fail(self, what, instead, place=None):
        file, line = place or self.here() or ("?", 0)
        raise Error(f"attune: {self.name} cannot be traced: {what}\n  {file}, line {line}\n  {instead}")


class Symbol:
    """A value of the traced function. meta: a tensor of its type and shape, without numbers."""

    __slots__ = ("node", "meta", "of")

    def __init__(self, node, meta, of):
        self.node, self.meta, self.of = node, meta, of

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return _record(func, args, kwargs or {})

    def __getattr__(self, name):
        if name in ("shape", "dtype", "ndim", "itemsize", "is_sparse", "is_quantized", "layout"):
            return getattr(self.meta, name)
        if name == "device":
            return torch.device("cpu")
        if name in ("requires_grad", "is_cuda", "is_meta", "is_nested"):
            return False
        found = None if name.startswith("__") else getattr(torch.Tensor, name, None)
        if found is None:
            raise AttributeError(f"attune: a tensor has no attribute {name!r}")
        if not callable(found):
            if name in ("T", "mT", "H", "mH"):
                return self
            self.of.fail(f"the attribute {name} of a traced number", "use functions of torch")
        if name in _METADATA:
            return getattr(self.meta, name)
        return lambda *args, **kwargs: _record(found, (self, *args), kwargs)

    def __repr__(self):
        return f"<a traced number, {self.node.op or 'computed'}>"

    def _becomes(self, other):
        """In place: the name in the function of the user stands for the new value."""
        if _KINDS.index(other.node.kind) > _KINDS.index(self.node.kind) or other.node.shape != self.node.shape:
            self.of.fail(f"a result of {other.node.kind} is written into a number of {self.node.kind}", "give it a new name")
        self.node, self.meta = other.node, other.meta
        return self

    def _read(self, what, instead=_INSTEAD_OF_READING):
        self.of.fail(what, instead)

    def __bool__(self):
        self._read("`if`, `while`, `and`, `or`, `not` or `in` asks for the truth of a traced number")

    def __int__(self):
        self._read("int() of a traced number", "leave out int(): an index is a whole number; or write torch.floor(x)")

    def __float__(self):
        self._read("float() of a traced number, or a function of math", "write the function of torch: torch.exp(x)")

    def __index__(self):
        instead = "make the list a tensor: torch.tensor(values)[h]; a loop needs a length that is a Python number"
        self._read("a traced number as an index of a list, or in range()", instead)

    def __len__(self):
        if not self.meta.dim():
            self._read("len() of a traced number")
        return len(self.meta)

    def __iter__(self):
        if not self.meta.dim():
            self._read("a loop over a traced number")
        return iter([self[n] for n in range(len(self.meta))])

    def __array__(self, *args, **kwargs):
        self._read("NumPy asks for a traced number", "write the function of torch")

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        known = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "power": "pow"}
        numpys = [isinstance(x, numpy.generic) for x in inputs]
        if method == "__call__" and not kwargs and any(numpys) and ufunc.__name__ in known:
            values = [x.item() if is_numpy else x for x, is_numpy in zip(inputs, numpys)]
            return getattr(operator, {"div": "truediv"}.get(known[ufunc.__name__], known[ufunc.__name__]))(*values)
        self.of.fail(f"numpy.{ufunc.__name__} of a traced number", f"write torch.{ufunc.__name__}")

    def __getitem__(self, at):
        return _record(torch.Tensor.__getitem__, (self, at), {})

    def __setitem__(self, at, x):
        self.of.fail("a write into a tensor", "write torch.where(condition, new, old)")

    def __hash__(self):
        return id(self)


def _two(function, reverse=False):
    def method(self, other):
        if not isinstance(other, (Symbol, torch.Tensor, numbers.Number, numpy.generic)):
            return NotImplemented
        return _record(function, (other, self) if reverse else (self, other), {})

    return method


def _in_place(function):
    def method(self, other):
        return self._becomes(_record(function, (self, other), {}))

    return method


for _name, _torch in {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "truediv": torch.true_divide, "floordiv": torch.floor_divide,
    "mod": torch.remainder, "pow": torch.pow, "and": torch.bitwise_and, "or": torch.bitwise_or, "xor": torch.bitwise_xor,
    "lshift": torch.bitwise_left_shift, "rshift": torch.bitwise_right_shift, "matmul": torch.matmul,
}.items():  # fmt: skip
    setattr(Symbol, f"__{_name}__", _two(_torch))
    setattr(Symbol, f"__r{_name}__", _two(_torch, True))
    setattr(Symbol, f"__i{_name}__", _in_place(_torch))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Symbol, f"__{_name}__", _two(getattr(torch, _name)))
for _name, _torch in {"neg": torch.neg, "abs": torch.abs, "invert": torch.bitwise_not, "pos": torch.positive}.items():
    setattr(Symbol, f"__{_name}__", lambda self, f=_torch: _record(f, (self,), {}))


def mapped(x, of):
    """Nested arguments with of(leaf) in place of each leaf."""
    if isinstance(x, (tuple, list)):
        return type(x)([mapped(y, of) for y in x]) if not hasattr(x, "_fields") else type(x)(*[mapped(y, of) for y in x])
    if isinstance(x, dict):
        return {name: mapped(y, of) for name, y in x.items()}
    if isinstance(x, slice):
        return slice(mapped(x.start, of), mapped(x.stop, of), mapped(x.step, of))
    return of(x)


def _symbols(x, to):
    if isinstance(x, Symbol):
        to.append(x)
    elif isinstance(x, (tuple, list)):
        for y in x:
            _symbols(y, to)
    elif isinstance(x, dict):
        _symbols(list(x.values()), to)
    elif isinstance(x, slice):
        _symbols([x.start, x.stop, x.step], to)
    return to


def _meta(x):
    x = x.meta if isinstance(x, Symbol) else x
    if isinstance(x, torch.Tensor) and not x.is_meta:
        return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")
    return torch.device("meta") if isinstance(x, torch.device) else x


@functools.lru_cache(maxsize=None)
def _one(kind):
    """A single number of a type. It stands for all single numbers: functions of it take less time than on meta tensors."""
    return torch.ones((), dtype=kind)


def _inferred(func, args, kwargs, leaves):
    """A tensor of the type and the shape of a result."""
    if func is torch.Tensor.__getitem__:
        x, at = args
        at = at if isinstance(at, tuple) else (at,)
        if isinstance(x, torch.Tensor) and len(at) == x.dim() and all(isinstance(y, (Symbol, int)) for y in at):
            if all(isinstance(y, Symbol) and not y.meta.dim() and not y.meta.dtype.is_floating_point for y in at):
                return _one(x.dtype)
        return index(*mapped(args, _meta))
    if not any(x.meta.dim() for x in leaves) and not _has_axes([args, kwargs]):
        found = func(*mapped(args, _single), **mapped(kwargs, _single))
        return _one(found.dtype) if isinstance(found, torch.Tensor) and not found.dim() else mapped(found, _meta)
    return func(*mapped(args, _meta), **mapped(kwargs, _meta))


def _single(x):
    return x.meta if isinstance(x, Symbol) else x


def _has_axes(x):
    """Whether there is a captured tensor of more than a number."""
    if isinstance(x, (tuple, list)):
        return any([_has_axes(y) for y in x])
    if isinstance(x, dict):
        return _has_axes(list(x.values()))
    return isinstance(x, torch.Tensor) and x.dim() > 0


def _zeros(x):
    return torch.zeros(x.meta.shape, dtype=x.meta.dtype) if isinstance(x, Symbol) else x


def _node(x):
    if isinstance(x, Symbol):
        return x.node
    return x.item() if isinstance(x, numpy.generic) else x


def _record(func, args, kwargs):
    """The symbol of a call with symbols among its arguments."""
    with torch._C.DisableTorchFunction(), torch.no_grad():
        return _recorded(func, args, kwargs)


def _recorded(func, args, kwargs):
    found = _symbols([args, kwargs], [])
    of, name = found[0].of, name_of(func)
    place = of.here()
    plain = plain_name(name)
    if name == "__get__" or plain in READING:
        of.fail(f"{plain or name}() reads a traced number", _INSTEAD_OF_READING, place)
    if plain in _RANDOM:
        of.fail(f"{plain}() draws random numbers", "draw them before, and index the tensor", place)
    if plain in _FILLED:
        return func(*mapped(args, _zeros), **kwargs)
    if kwargs.get("out") is not None or name == "__setitem__":
        of.fail("a write into a tensor", "write torch.where(condition, new, old)", place)
    if func is torch.Tensor.__getitem__ and any("s" in x.node.axes for x in _symbols([args[1]], [])):
        of.fail("an index that depends on the score", "write a formula of the score", place)
    in_place = name.endswith("_") and not name.endswith("__")
    if in_place:
        func = getattr(torch.Tensor, name[:-1], None)
        if not isinstance(args[0], Symbol) or func is None:
            of.fail(f"{name}() writes into a tensor", f"write {name[:-1]}(), which returns a new one", place)
    try:
        meta = _inferred(func, args, kwargs, found)
    except Error:
        raise
    except Exception as e:
        of.fail(f"{plain}() of a traced number: {e}".split("\n")[0], "use functions of torch that act on each number", place)
    axes = frozenset().union(*[x.node.axes for x in found])
    call = (func, mapped(args, _node), mapped(kwargs, _node))
    if isinstance(meta, torch.Tensor):
        result = Symbol(_of_call(plain, call, meta, axes, place, of.kind), meta, of)
        if in_place:
            return args[0]._becomes(result)
        return result
    if isinstance(meta, (tuple, list)) and all(isinstance(x, torch.Tensor) for x in meta):
        whole = Node(None, call=call, axes=axes, place=place)
        parts = [Node(None, (), (operator.getitem, (whole, n), {}), axes, tuple(x.shape), _kind(x), place) for n, x in enumerate(meta)]
        return tuple([Symbol(part, x, of) for part, x in zip(parts, meta)])
    return of.fail(f"{plain}() of a traced number returns {type(meta).__name__}", _INSTEAD_OF_READING, place)


def _kind(x):
    return "bool" if x.dtype == torch.bool else "float" if x.dtype.is_floating_point else "int"


def _of_call(plain, call, meta, axes, place, kind):
    op, args = canonical(plain, call, _kind(meta)) if not meta.dim() else (None, ())
    args = tuple([constant(x) if isinstance(x, (bool, torch.Tensor)) else x for x in args])
    if op is not None and any(isinstance(x, Node) and x.shape for x in args):
        op, args = None, ()
    other = meta.dtype.is_floating_point and meta.dtype != kind
    return Node(op, args, call, axes, tuple(meta.shape), _kind(meta), place, other)


def constant(x):
    """The node of a captured tensor, or of a number."""
    x = x if isinstance(x, torch.Tensor) else torch.tensor(x)
    return Node(None, (), (torch.Tensor.clone, (x,), {}), frozenset(), tuple(x.shape), _kind(x))


class _Watched(TorchFunctionMode):
    """Sees every function of torch that the traced function calls."""

    def __init__(self, of):
        super().__init__()
        self.of = of

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if _symbols([args, kwargs], []):
            return _record(func, args, kwargs)
        name = name_of(func)
        if plain_name(name) in _RANDOM:
            self.of.fail(f"{plain_name(name)}() draws random numbers", "draw them before, and index the tensor")
        writes = name == "__setitem__" or (name.endswith("_") and not name.endswith("__")) or kwargs.get("out") is not None
        if writes and name != "requires_grad_":
            self.of.fail(f"{name}() writes into a tensor", "compute the new tensor before")
        return func(*args, **kwargs)


def trace(name, function, inputs, kind):
    """The node that a function returns. name: how errors call it. inputs: names of _graph.INPUTS. kind: of the score."""
    if not callable(function):
        raise Error(f"attune: {name} has the type {type(function).__name__}; expected a function")
    of = _Function(name, function, kind)
    symbols = []
    for x in inputs:
        meta = _one(kind if x == "s" else torch.int64)
        symbols.append(Symbol(Node(x, axes=frozenset(x), kind=_kind(meta)), meta, of))
    with _Watched(of):
        result = function(*symbols)
    if isinstance(result, (bool, int, float, torch.Tensor, numpy.generic)):
        return constant(result.item() if isinstance(result, numpy.generic) else result)
    if not isinstance(result, Symbol):
        of.fail(f"it returns {type(result).__name__}", "return a tensor", of.place)
    if result.node.shape:
        of.fail(f"it returns a tensor of the shape {result.node.shape}", "return one number for each pair", of.place)
    return result.node
