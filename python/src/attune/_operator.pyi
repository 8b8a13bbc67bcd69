# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
#
# Operators have their arguments at run time, and return what `returns` says. _operator.py has the texts.
from typing import Any, Dict, Iterable, Literal, Optional, Sequence, Tuple, TypeVar, Union, overload

from ._oracle import Reference
from ._statistics import Statistics
from .masks import Mask

_Array = TypeVar("_Array")  # of NumPy, torch or any library that speaks DLPack
_Out = Union[Literal["out"], Tuple[Literal["out"]]]

class Operator:
    name: str
    _description: Any
    _companions: Any
    _functions: Any
    _key: str
    _plans: Any
    def __init__(
        self, functions: Any, text: str = "", key: Optional[str] = None, companions: Any = None
    ) -> None: ...
    def _call(self, *arguments: Any) -> Any: ...
    def _gradients_of(self, call: Any, wanted: Optional[Iterable[str]]) -> Any: ...
    def _by_path(self, results: Any) -> Dict[str, Any]: ...
    @property
    def fields(self) -> Tuple[str, ...]: ...
    @property
    def parameters(self) -> Dict[str, Optional[float]]: ...
    @property
    def required(self) -> Tuple[str, ...]: ...
    @property
    def tables(self) -> Tuple[str, ...]: ...
    @property
    def arrays(self) -> Tuple[str, ...]: ...
    @property
    def constants(self) -> Dict[str, float]: ...
    @property
    def outputs(self) -> Tuple[str, ...]: ...
    @property
    def decodes(self) -> bool: ...
    @property
    def arguments(self) -> str: ...
    @overload
    def __call__(
        self,
        q: Optional[_Array] = None,
        k: Optional[_Array] = None,
        v: Optional[_Array] = None,
        *,
        mask: Optional[Mask] = None,
        offset: Any = None,
        threads: Optional[int] = None,
        returns: _Out = ("out",),
        layout: str = "bhld",
        **named: Any,
    ) -> _Array: ...
    @overload
    def __call__(
        self,
        q: Any = None,
        k: Any = None,
        v: Any = None,
        *,
        mask: Optional[Mask] = None,
        offset: Any = None,
        threads: Optional[int] = None,
        returns: Tuple[str, str],
        layout: str = "bhld",
        **named: Any,
    ) -> Tuple[Any, Any]: ...
    @overload
    def __call__(
        self,
        q: Any = None,
        k: Any = None,
        v: Any = None,
        *,
        mask: Optional[Mask] = None,
        offset: Any = None,
        threads: Optional[int] = None,
        returns: Union[str, Sequence[str]],
        layout: str = "bhld",
        **named: Any,
    ) -> Any: ...
    def vjp(
        self,
        q: Any = None,
        k: Any = None,
        v: Any = None,
        *,
        dout: Any = None,
        dlse: Any = None,
        dground_weight: Any = None,
        wanted: Optional[Iterable[str]] = None,
        mask: Optional[Mask] = None,
        offset: Any = None,
        threads: Optional[int] = None,
        layout: str = "bhld",
        **named: Any,
    ) -> Dict[str, Any]: ...
    def statistics(
        self,
        q: Any = None,
        k: Any = None,
        v: Any = None,
        *,
        columns: bool = False,
        above: Optional[float] = None,
        mask: Optional[Mask] = None,
        offset: Any = None,
        threads: Optional[int] = None,
        layout: str = "bhld",
        **named: Any,
    ) -> Statistics: ...
    def decode(
        self,
        q: Any = None,
        k: Any = None,
        v: Any = None,
        page_table: Any = None,
        lengths: Any = None,
        *,
        k_scale: Any = None,
        v_scale: Any = None,
        float8: Optional[str] = None,
        mask: Optional[Mask] = None,
        offset: Any = None,
        threads: Optional[int] = None,
        returns: Union[str, Sequence[str]] = ("out",),
        layout: str = "bhld",
        **named: Any,
    ) -> Any: ...
    def reference(
        self,
        q: Any = None,
        k: Any = None,
        v: Any = None,
        *,
        digits: Optional[int] = None,
        mask: Optional[Mask] = None,
        offset: Any = None,
        layout: str = "bhld",
        **named: Any,
    ) -> Reference: ...
    def reference_vjp(
        self,
        q: Any = None,
        k: Any = None,
        v: Any = None,
        *,
        dout: Any = None,
        dlse: Any = None,
        dground_weight: Any = None,
        wanted: Optional[Iterable[str]] = None,
        digits: Optional[int] = None,
        mask: Optional[Mask] = None,
        offset: Any = None,
        layout: str = "bhld",
        **named: Any,
    ) -> Dict[str, Any]: ...
