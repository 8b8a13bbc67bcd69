# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""An operator as a Python object: arrays of NumPy, torch or DLPack in; tensors of torch, or arrays of NumPy, out."""

from __future__ import annotations

import inspect
import os
from typing import Any, Callable, Dict, Iterable, Literal, Optional, Sequence, Tuple, TypeVar, Union, overload

import numpy

from . import _decode, _oracle, _plans, _statistics
from ._arrays import is_torch, wrong
from ._layout import PRODUCTS
from ._calls import Call, cotangents_of, names_of, returned
from ._description import Description
from ._oracle import Reference
from ._statistics import Statistics
from .masks import Mask

_Array = TypeVar("_Array")  # of NumPy, torch or any library that speaks DLPack
_Out = Union[Literal["out"], Tuple[Literal["out"]]]
_Returns = Union[str, Sequence[str]]
_attend: Callable[..., Any]
_PRODUCTS = {None: PRODUCTS.of_machine, "float32": PRODUCTS.float}


def _with_products(operator: Operator, products: Optional[str]) -> Operator:
    return operator.with_products(products)


def _default_products() -> Optional[str]:
    given = os.environ.get("ATTUNE_PRODUCTS") or None
    if given not in _PRODUCTS:
        raise wrong("ATTUNE_PRODUCTS", f"the value {given!r}", '"float32", or nothing')
    return given



def register_attend(attend: Callable[..., Any]) -> Callable[..., Any]:
    """Registers the function that calls an operator with tensors that have gradients or lie on a device."""
    global _attend
    _attend = attend
    return attend


class Operator:
    """An operator of attention: a preset, or one that attune.compile made.

    Call it with arrays of NumPy, torch or any library that speaks DLPack, on the CPU:

        out = op(q, k, v)
        out, lse = op(q, k, v, mask=masks.causal(), returns=("out", "lse"))

    q: (B, H, Lq, D), k: (B, Hk, Lk, D), v: (B, Hv, Lk, Dv); Hk and Hv divide H. layout="blhd" takes (B, L, H, D). Types:
    float32, float64, bfloat16, float16, the same for all. Any strides; nothing is copied. torch tensors may also be on a
    CUDA device, in float32 or 16 bits.

    A parameter or table has a path, normalizer.gamma, and a short name, gamma. Where an input, or an argument of the call,
    has this name, the path alone means the parameter.

    Inputs with one number per position may leave out the last axis; inputs with one number per pair (scores, bias) are
    aligned at the right, and axes of length 1 are shared, but for the last: it has all keys. A parameter is a number,
    (H), (H, Lq) or (B, H, Lq), of float32 or float64; of bfloat16 or float16, it is read from a copy in float32. Lists
    of numbers are arrays of float64.
    """

    name: str

    __signature__: inspect.Signature

    def __init__(
        self, functions: Any, again: Callable[[Operator], Any], text: str, companions: Any, example: str, key: str | None = None
    ) -> None:
        """again: of an operator, the function and the arguments that make it in another process. text: the formula.
        example: how the operator is named in code."""
        self._functions, self._companions = functions, companions
        self._description = Description(functions)
        self.name = functions.name
        self._name_of_all = key or functions.name
        self._again = again
        self._set_products(_default_products())
        self._others: Dict[Optional[str], Operator] = {self._products: self}
        self._per_row: Optional[Tuple[int, int]] = None
        self._plans = _plans.new()
        self.__signature__ = self._description.signature()
        self._text = text
        self.__doc__ = self.documented(example)

    def documented(self, example: str) -> str:
        """The documentation, with a call of this name as the example."""
        d = self._description
        return "\n\n".join((self._text, d.summary(), f"Example:\n\n    out = {example}{d.example()}", inspect.cleandoc(type(self).__doc__ or "")))

    def _saved_per_row(self) -> Tuple[int, int]:
        """Saved numbers of a row: (a, b) where a row of Dv values saves a Dv + b."""
        if self._per_row is None:
            d, sizes = self._description, []
            for width in (1, 2):
                shapes = {"pair": (1, 1, 1, 1), "ground": (1, 1, 1, width), "query": (1, d.heads_each, 1, width)}
                fields = {name: numpy.zeros(shapes.get(side, (1, 1, 1, width)), numpy.dtype(d.types[0])) for name, side in zip(d.fields, d.sides)}
                for n, name in enumerate(d.fields):
                    if d.narrow[n]:
                        fields[name] = fields[name][..., :1]
                named = {path: 2.0 for path in d.parameters}
                named.update({path: numpy.ones((1, 1, 1, width), numpy.float32) for path in d.tables})
                named.update({path: numpy.ones((1, 1, 1, 2), numpy.float32) for path in d.arrays})
                call = Call(self, fields, named, None, None, 1, "bhld")
                sizes.append(self._functions.saved_size(call.address))
            self._per_row = sizes[1] - sizes[0], 2 * sizes[0] - sizes[1]
        return self._per_row

    def _set_products(self, products: Optional[str]) -> None:
        self._products = products
        self._how = _PRODUCTS[products]
        self._key = self._name_of_all + (f"@{products}" if products else "")  # another one for torch.library

    @property
    def products(self) -> Optional[str]:
        """How bfloat16 multiplies: "float32", or None: in bfloat16, with sums in float32, where the processor can."""
        return self._products

    def with_products(self, products: Optional[str]) -> Operator:
        """The same operator, which multiplies bfloat16 in this way: "float32" or None; see `products`.

        By default, bits of bfloat16 calls depend on the processor. "float32" gives those of machines that do not multiply
        bfloat16. The environment variable ATTUNE_PRODUCTS=float32 does so for all operators.
        """
        if products not in _PRODUCTS:
            raise wrong("products", f"the value {products!r}", '"float32" or None')
        if products not in self._others:
            other = self._others[products] = object.__new__(type(self))
            other.__dict__.update(self.__dict__)
            other._plans = _plans.new()
            other._set_products(products)
        return self._others[products]

    def __reduce__(self) -> Any:
        if self._products == _default_products():
            return self._again(self)
        return _with_products, (self._others[_default_products()], self._products)

    def __deepcopy__(self, memo: Any) -> Operator:
        return self  # it does not change

    @property
    def fields(self) -> Tuple[str, ...]:
        """Names of the input arrays."""
        return self._description.fields

    @property
    def parameters(self) -> Dict[str, Optional[float]]:
        """Paths of the parameters, and their numbers. None: computed from the call, or `required`."""
        return dict(zip(self._description.parameters, self._description.defaults))

    @property
    def required(self) -> Tuple[str, ...]:
        """Paths of the parameters without a default."""
        return self._description.required

    @property
    def tables(self) -> Tuple[str, ...]:
        """Paths of the tables."""
        return self._description.tables

    @property
    def arrays(self) -> Tuple[str, ...]:
        """Names of the arrays without gradients, for example angles. A call must give all of them."""
        return self._description.arrays

    @property
    def constants(self) -> Dict[str, float]:
        """Names of the constants, and their numbers. A call names a constant constant_k where an input is called k."""
        return dict(zip(self._description.constants, self._description.constant_defaults))

    @property
    def outputs(self) -> Tuple[str, ...]:
        """Names of the outputs."""
        return self._description.outputs

    @property
    def decodes(self) -> bool:
        """Whether decode() supports the operator."""
        return self._description.decodes

    @property
    def arguments(self) -> str:
        """The names that a call takes, as text. Paths of parameters and tables are names, too."""
        d = self._description
        return ", ".join([*d.short_names, *(path for path in d.names if "." in path), *d.of_calls])

    def __repr__(self) -> str:
        return f"<attune operator {': '.join(filter(None, (self.name, ', '.join(self._companions.policies()))))}>"

    def _call(self, q: Any, k: Any, v: Any, mask: Any, offset: Any, threads: Any, layout: str, named: Dict[str, Any]) -> Any:
        fields = {name: x for name, x in (("q", q), ("k", k), ("v", v)) if x is not None}
        return Call(self, fields, named, mask, offset, threads, layout)

    @overload
    def __call__(
        self, q: Optional[_Array] = None, k: Optional[_Array] = None, v: Optional[_Array] = None, *,
        mask: Optional[Mask] = None, offset: Any = None, threads: Optional[int] = None, returns: _Out = ("out",),
        layout: str = "bhld", **named: Any,
    ) -> _Array: ...

    @overload
    def __call__(
        self, q: Any = None, k: Any = None, v: Any = None, *, mask: Optional[Mask] = None, offset: Any = None,
        threads: Optional[int] = None, returns: Tuple[str, str], layout: str = "bhld", **named: Any,
    ) -> Tuple[Any, Any]: ...

    @overload
    def __call__(
        self, q: Any = None, k: Any = None, v: Any = None, *, mask: Optional[Mask] = None, offset: Any = None,
        threads: Optional[int] = None, returns: _Returns, layout: str = "bhld", **named: Any,
    ) -> Any: ...

    def __call__(
        self, q: Any = None, k: Any = None, v: Any = None, *, mask: Optional[Mask] = None, offset: Any = None,
        threads: Optional[int] = None, returns: _Returns = ("out",), layout: str = "bhld", **named: Any,
    ) -> Any:
        """The outputs: one array, or a tuple in the order of `returns`.

        mask: of attune.masks. offset: the position of query 0 among the keys, Lk - Lq by default; or one for each batch
        element. threads: 0 or None is one per processor; the numbers do not depend on it. Row outputs (lse,
        ground_weight, threshold) are (B, H, Lq), in float32 next to 16-bit inputs.
        Raises attune.Error if an argument is wrong.
        """
        if isinstance(returns, str):
            returns = (returns,)
        outputs = _plans.run(self, q, k, v, mask, offset, threads, layout, returns, named)
        if outputs is not None:
            return returned(outputs)
        if any(is_torch(x) and (x.requires_grad or x.is_cuda or x.is_meta) for x in (q, k, v, *named.values())):
            return _attend(self, q, k, v, mask=mask, offset=offset, threads=threads, returns=returns, layout=layout, **named)
        call = self._call(q, k, v, mask, offset, threads, layout, named)
        outputs = call.blank_outputs(names_of(returns))
        call.forward()
        return returned(outputs)

    def vjp(
        self, q: Any = None, k: Any = None, v: Any = None, *, dout: Any = None, dlse: Any = None,
        dground_weight: Any = None, wanted: Optional[Iterable[str]] = None, mask: Optional[Mask] = None,
        offset: Any = None, threads: Optional[int] = None, layout: str = "bhld", **named: Any,
    ) -> Dict[str, Any]:
        """Gradients of <dout, out> + <dlse, lse> + <dground_weight, ground_weight>, as arrays by name.

        Names are those of the inputs, and the paths of parameters and tables: {"q": ..., "normalizer.gamma": ...}.
        wanted: a name, or names, of the gradients to compute; None: of everything that the call gives. What is left out
        costs less.
        """
        call = self._call(q, k, v, mask, offset, threads, layout, named)
        if any(is_torch(x) and x.requires_grad for x in (q, k, v)):
            raise wrong("vjp", "a tensor that requires gradients", "attune.torch, or tensors after detach()")
        places = self._gradients_of(call, wanted)
        by = cotangents_of(self, {"out": dout, "lse": dlse, "ground_weight": dground_weight})
        return self._by_path(call.vjp(None, by, places))

    def statistics(
        self, q: Any = None, k: Any = None, v: Any = None, *, columns: bool = False, above: Optional[float] = None,
        mask: Optional[Mask] = None, offset: Any = None, threads: Optional[int] = None, layout: str = "bhld", **named: Any,
    ) -> Statistics:
        """Statistics of the rows and keys: entropy, mass, effective_keys, highest_weight, first_key and more.

        columns: also compute the weight that each key received. above: count the weights above this number. Arguments
        are those of a call; 16-bit arrays are read as float32. The first use compiles a library, which is kept.
        Memory: linear in Lq and Lk.
        """
        return _statistics.statistics(self, q, k, v, columns, above, mask, offset, threads, layout, named)

    def decode(
        self, q: Any = None, k: Any = None, v: Any = None, page_table: Any = None, lengths: Any = None, *,
        k_scale: Any = None, v_scale: Any = None, float8: Optional[str] = None, mask: Optional[Mask] = None,
        offset: Any = None, threads: Optional[int] = None, returns: _Returns = ("out",), layout: str = "bhld", **named: Any,
    ) -> Any:
        """The outputs of a call with few queries against a long cache, which is not copied. Forward only.

            out = op.decode(q, k_pages, v_pages, page_table, lengths)

        q: (B, H, Lq, D). Without page_table k and v are as in a call. page_table: (B, pages of a sequence), integers; key
        j of sequence b is row j % size of page page_table[b, j // size]. Arrays with a row per key are then (pages,
        heads, size, width), or (pages, size, heads, width) with layout="blhd". An entry that is no page (-1) stands for
        keys that no query sees.
        lengths: (B), or an integer: the keys of each sequence. Other keys are not seen, and the queries are the last
        positions of each sequence: masks.causal() is right for every one of them. Without, all keys count.
        k and v may have 8 bits (float8_e4m3fn, float8_e5m2) beside float32 or 16 bits. k_scale, v_scale: their factors, a
        number or (heads); 1 by default. float8: "e4m3fn" or "e5m2", for arrays of uint8.
        Other arguments are those of a call. The first use of each element type compiles a library, which is kept.
        Raises attune.Error if an argument is wrong or the operator has no decode(); see `decodes`.
        """
        return _decode.decode(
            self, q, k, v, page_table, lengths, (k_scale, v_scale), float8, mask, offset, threads, returns, layout, named
        )

    def _gradients_of(self, call: Any, wanted: Optional[Iterable[str]]) -> Any:
        """Pairs (kind, number) of the gradients with these names; None: of everything that the call gives."""
        d = self._description
        if wanted is None:
            places = [("field", n) for n, x in enumerate(call.views) if x is not None]
            places += [("parameter", n) for n in range(len(d.parameters))]
            return places + [("table", n) for n in range(len(d.tables)) if call.tables[n] is not None]
        places = []
        for name in (wanted,) if isinstance(wanted, str) else wanted:
            found = [at for at in d.names.get(name, ()) if at[0] != "constant"]
            if not found:
                raise wrong("wanted", f"the name {name!r}", f"some of {', '.join(sorted(d.names))}")
            for kind, n in found:
                if kind == "table" and n >= len(d.tables):
                    raise wrong("wanted", f"the name {name!r}", "an argument with a gradient: an array has none")
                if kind == "field" and call.views[n] is None or kind == "table" and call.tables[n] is None:
                    raise wrong("wanted", f"the name {name!r}", "an array that the call gives")
                places.append((kind, n))
        return places

    def _by_path(self, results: Any) -> Dict[str, Any]:
        """Arrays by pairs (kind, number), as arrays by name."""
        d = self._description
        paths = {"field": d.fields, "parameter": d.parameters, "table": d.tables}
        return {paths[kind][n]: x for (kind, n), x in results.items()}

    def reference(
        self, q: Any = None, k: Any = None, v: Any = None, *, digits: Optional[int] = None, mask: Optional[Mask] = None,
        offset: Any = None, layout: str = "bhld", **named: Any,
    ) -> Reference:
        """The exact result: dense, sequential, in float64, with every intermediate. See attune.reference."""
        return _oracle.reference(self, q, k, v, digits, mask, offset, layout, named)

    def reference_vjp(
        self, q: Any = None, k: Any = None, v: Any = None, *, dout: Any = None, dlse: Any = None,
        dground_weight: Any = None, wanted: Optional[Iterable[str]] = None, digits: Optional[int] = None,
        mask: Optional[Mask] = None, offset: Any = None, layout: str = "bhld", **named: Any,
    ) -> Dict[str, Any]:
        """The exact gradients, in float64, by name. Arguments are those of vjp; digits as in attune.reference."""
        cotangents = {"out": dout, "lse": dlse, "ground_weight": dground_weight}
        return _oracle.reference_vjp(self, q, k, v, cotangents, wanted, digits, mask, offset, layout, named)
