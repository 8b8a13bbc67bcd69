# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
#
# The presets are functions that are made when they are asked for. __init__.py has the texts.
from typing import Any, List, Optional, Protocol, Sequence, Tuple, Union, overload

from torch import Tensor

from .._operator import Operator
from ..masks import Mask
from ._drop_in import register_with_transformers as register_with_transformers
from ._drop_in import scaled_dot_product_attention as scaled_dot_product_attention
from ._modules import Attention as Attention
from ._modules import MultiheadAttention as MultiheadAttention

_Number = Union[Tensor, float, None]  # of an input, a parameter, a table or a constant

class _Preset(Protocol):
    __name__: str
    @overload
    def __call__(
        self,
        q: Optional[Tensor] = None,
        k: Optional[Tensor] = None,
        v: Optional[Tensor] = None,
        *,
        mask: Optional[Mask] = None,
        offset: Union[int, Tensor, None] = None,
        threads: Optional[int] = None,
        returns: Union[str, Tuple[str]] = ("out",),
        layout: str = "bhld",
        **named: _Number,
    ) -> Tensor: ...
    @overload
    def __call__(
        self,
        q: Optional[Tensor] = None,
        k: Optional[Tensor] = None,
        v: Optional[Tensor] = None,
        *,
        mask: Optional[Mask] = None,
        offset: Union[int, Tensor, None] = None,
        threads: Optional[int] = None,
        returns: Tuple[str, str],
        layout: str = "bhld",
        **named: _Number,
    ) -> Tuple[Tensor, Tensor]: ...
    @overload
    def __call__(
        self,
        q: Optional[Tensor] = None,
        k: Optional[Tensor] = None,
        v: Optional[Tensor] = None,
        *,
        mask: Optional[Mask] = None,
        offset: Union[int, Tensor, None] = None,
        threads: Optional[int] = None,
        returns: Sequence[str],
        layout: str = "bhld",
        **named: _Number,
    ) -> Any: ...

def attend(
    operator: Operator,
    q: Optional[Tensor] = None,
    k: Optional[Tensor] = None,
    v: Optional[Tensor] = None,
    **named: Any,
) -> Any: ...
def __getattr__(name: str) -> _Preset: ...
def __dir__() -> List[str]: ...

__all__ = ["Attention", "MultiheadAttention", "attend", "register_with_transformers", "scaled_dot_product_attention"]
