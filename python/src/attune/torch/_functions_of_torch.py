# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Which functions of torch are which operations of _graph.Node."""

import numbers

import torch

#: Functions that read numbers.
READING = frozenset(
    "item tolist numpy data_ptr nonzero is_nonzero equal allclose unique unique_consecutive bincount masked_select cpu_numpy "
    "__bool__ __float__ __int__ __index__ __array__ __len__ __contains__ backward register_hook".split()
)
_SAME = {
    "multiply": "mul", "divide": "div", "true_divide": "div", "truediv": "div", "subtract": "sub", "floor_divide": "floordiv",
    "remainder": "mod", "negative": "neg", "absolute": "abs", "arccos": "acos", "special_expit": "sigmoid",
    "special_erf": "erf", "special_exp2": "exp2", "special_expm1": "expm1", "special_log1p": "log1p", "fix": "trunc",
    "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "not_equal": "ne", "sgn": "sign",
    "log_sigmoid": "logsigmoid", "fmax": "maximum", "fmin": "minimum",
}  # fmt: skip
_UNARY = frozenset(
    "neg abs acos cos erf exp exp2 expm1 floor log log1p log2 log10 sigmoid sin sqrt tanh rsqrt square reciprocal tan cosh sinh "
    "sign relu silu logsigmoid ceil trunc".split()
)
_BINARY = frozenset("add sub mul div floordiv mod pow maximum minimum lt le gt ge eq ne".split())
_LOGIC = {f"{group}_{name}": name for group in ("logical", "bitwise") for name in ("and", "or", "not", "xor")}
_LOGIC.update({"and": "and", "or": "or", "xor": "xor", "invert": "not"})
_SAME_NUMBER = frozenset("clone contiguous positive pos squeeze cpu alias".split())
_CASTS = frozenset("to type float double half bfloat16 int long short char byte bool type_as".split())


def name_of(func):
    """The name of a function of torch: __add__, add, add_."""
    name = getattr(func, "__name__", None) or type(func).__name__
    return name.split(".")[0] if "::" not in name else name


def plain_name(name):
    """The name of the operation: add of __add__, __iadd__ and add_."""
    if name.startswith("__") and name.endswith("__"):
        inner = name[2:-2]
        return name if name in READING or name in ("__getitem__", "__setitem__", "__get__") else inner
    return name.rstrip("_") if name.endswith("_") and not name.startswith("_") else name


def index(x, at):
    """x[at], whose numbers may be tensors of one number without that they are read."""
    at = list(at) if isinstance(at, tuple) else [at]
    if not any(isinstance(y, torch.Tensor) for y in at):
        return x[tuple(at)]
    if any(y is Ellipsis for y in at):
        n = next(n for n, y in enumerate(at) if y is Ellipsis)
        used = sum(y is not None and y is not Ellipsis for y in at)
        at[n : n + 1] = [slice(None)] * (x.dim() - used)
    if any(isinstance(y, torch.Tensor) and y.dtype == torch.bool for y in at):
        raise TypeError("an index of bool has as many results as it has true ones: write torch.where(condition, a, b)")
    basic = tuple([slice(None) if isinstance(y, torch.Tensor) else y for y in at])
    if any(y != slice(None) for y in basic):
        x = x[basic]
    at = [y if isinstance(y, torch.Tensor) else None for y in at if not isinstance(y, numbers.Integral)]
    while at[-1] is None:
        at.pop()
    return torch.ops.aten.index(x, at)


def _are(args, counts):
    return len(args) in counts and all(_is_number(x) for x in args)


def _is_number(x):
    if isinstance(x, torch.Tensor):
        return not x.dim()
    return not isinstance(x, (str, bytes, tuple, list, dict, slice, torch.dtype, torch.device)) and x is not None


def _kind_of(x):
    if isinstance(x, torch.Tensor):
        return "bool" if x.dtype == torch.bool else "float" if x.dtype.is_floating_point else "int"
    return getattr(x, "kind", None) or ("bool" if isinstance(x, bool) else "int" if isinstance(x, int) else "float")


def canonical(name, call, kind):
    """(op, arguments) of a call of torch with the result of a kind; (None, ()) if it has no op."""
    _, args, named = call
    name = _SAME.get(name, name)
    rule = _RULES.get(name)
    if rule is not None:
        try:
            found = rule(kind, *args, **named)
        except TypeError:  # arguments that the rule does not know
            found = None
        return (None, ()) if found is None else found
    if name in _CASTS or name in _SAME_NUMBER:
        return _cast(args[0], kind)
    if name in ("max", "min") and len(args) == 2:
        name = {"max": "maximum", "min": "minimum"}[name]
    if named or not _are(args, (1, 2)):
        return None, ()
    if name in _LOGIC and all(_kind_of(x) == "bool" for x in args):
        name = _LOGIC[name]
        return ("ne" if name == "xor" else name), args
    if name in ("add", "mul") and kind == "bool":
        return {"add": "or", "mul": "and"}[name], args
    if name in _UNARY and len(args) == 1 or name in _BINARY and len(args) == 2:
        return name, args
    return None, ()


def _cast(x, kind):
    had = _kind_of(x)
    if kind == "bool":
        return ("number", (x,)) if had == "bool" else ("ne", (x, 0))
    return ("trunc" if kind == "int" and had == "float" else "number"), (x,)


def _where(kind, condition, first=None, second=None, **named):
    first, second = named.get("input", first), named.get("other", second)
    return ("where", (condition, first, second)) if _are((condition, first, second), (3,)) else None


def _clamp(kind, x, min=None, max=None):
    bounds = [y for y in (min, max) if y is not None]
    op = "clamp" if len(bounds) == 2 else "at_most" if min is None else "at_least"
    return (op, (x, *bounds)) if _are((x, *bounds), (2, 3)) else None


def _div(kind, x, y, rounding_mode=None):
    op = {None: "div", "floor": "floordiv"}.get(rounding_mode)
    return (op, (x, y)) if op and _are((x, y), (2,)) else None


def _gelu(kind, x, approximate="none"):
    return "gelu" if approximate == "none" else "gelu_tanh", (x,)


def _softplus(kind, x, beta=1, threshold=20):
    return "softplus", (x, beta, threshold)


def _elu(kind, x, alpha=1.0, inplace=False):
    return "elu", (x, alpha)


def _leaky_relu(kind, x, negative_slope=0.01, inplace=False):
    return "leaky_relu", (x, negative_slope)


def _inplace_free(op):
    def rule(kind, x, inplace=False):
        return op, (x,)

    return rule


_RULES = {
    "where": _where,
    "masked_fill": lambda kind, x, condition, y: ("where", (condition, y, x)) if _are((x, condition, y), (3,)) else None,
    "clamp": _clamp, "clip": _clamp,
    "clamp_min": lambda kind, x, min: _clamp(kind, x, min), "clamp_max": lambda kind, x, max: _clamp(kind, x, None, max),
    "div": _div, "gelu": _gelu, "softplus": _softplus, "elu": _elu,
    "leaky_relu": _leaky_relu, "relu": _inplace_free("relu"), "silu": _inplace_free("silu"),
    "rsub": lambda kind, x, y, alpha=1: ("sub", (y, x)) if alpha == 1 and _are((x, y), (2,)) else None,
}  # fmt: skip
