# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Every preset as a function of its name, made when it is asked for."""

from __future__ import annotations

from typing import Any, Optional, Protocol, Sequence, Tuple, Union, overload

from torch import Tensor

from .. import _presets
from .._calls import returned
from ..masks import Mask
from . import _call

_T = Optional[Tensor]
_Offset = Union[int, Tensor, None]
_Number = Union[Tensor, float, None]  # of an input, a parameter, a table or a constant


class Preset(Protocol):
    """A preset as a function. The outputs have gradients by all tensors."""

    __name__: str

    @overload
    def __call__(
        self, q: _T = None, k: _T = None, v: _T = None, *, mask: Optional[Mask] = None, offset: _Offset = None,
        threads: Optional[int] = None, returns: Union[str, Tuple[str]] = ("out",), layout: str = "bhld", **named: _Number,
    ) -> Tensor: ...

    @overload
    def __call__(
        self, q: _T = None, k: _T = None, v: _T = None, *, mask: Optional[Mask] = None, offset: _Offset = None,
        threads: Optional[int] = None, returns: Tuple[str, str], layout: str = "bhld", **named: _Number,
    ) -> Tuple[Tensor, Tensor]: ...

    @overload
    def __call__(
        self, q: _T = None, k: _T = None, v: _T = None, *, mask: Optional[Mask] = None, offset: _Offset = None,
        threads: Optional[int] = None, returns: Sequence[str], layout: str = "bhld", **named: _Number,
    ) -> Any: ...


def _function(name: str) -> Any:
    operator = _presets.op(name)

    def preset(q=None, k=None, v=None, *, mask=None, offset=None, threads=None, returns=("out",), layout="bhld", **named):
        found = _call.quick(operator, q, k, v, mask, offset, threads, layout, returns, named)
        if found is not None:
            return returned(found)
        return _call.call(
            operator, q, k, v, mask=mask, offset=offset, threads=threads, returns=returns, layout=layout, **named
        )

    preset.__name__ = preset.__qualname__ = name
    preset.__doc__ = operator.documented(f"attune.torch.{name}")
    preset.__signature__ = operator.__signature__  # type: ignore[attr-defined]
    return preset


def __getattr__(name: str) -> Preset:
    if name.startswith("_"):
        raise AttributeError(name)
    if not _presets.has(name):
        raise AttributeError(f"attune.torch has no {name!r}; expected {_presets.no_preset(name)}")
    found = globals()[name] = _function(name)  # the next look-up does not come here
    return found
