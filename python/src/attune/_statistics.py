# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Statistics of an operator's rows and keys, by a companion library that is compiled when it is first used."""

from . import _abi
from ._arrays import empty_like, is_array, view, widened, wrong
from ._layout import TYPE

*_NAMES, _ = _abi.Layout("statistics").types  # its tensors, and the threshold
_STATISTICS = _abi.Layout("statistics").packer(" ".join((*_NAMES, "threshold")))


class Statistics:
    """Numbers of the rows of a call, (B, H, Lq), and of its keys, (B, H, Lk). Rows have their visible keys alone.

    highest_logit, mean_logit: of the logits. A row without a key has -inf.
    scored: how many visible keys have a logit that is not -inf.
    highest_weight, mass: the largest weight, and the sum of the weights.
    first_key: the weight of key 0; 0 where it is hidden.
    ground_weight: the weight of v0; None for operators without.
    entropy: -sum w log w in nats, of the weights as they are.
    effective_keys: e to the entropy of w / mass: how many keys with equal weights have this entropy.
    above: how many weights are above the number that you gave; else None.
    columns: (B, H, Lk), what each key received from all queries, if you asked for it; else None.
    """

    __slots__ = tuple(_NAMES)

    def __repr__(self):
        found = [name for name in _NAMES if getattr(self, name) is not None]
        return f"<attune statistics: {', '.join(found)}>"


def statistics(operator, q, k, v, columns, above, mask, offset, threads, layout, named):
    """The Statistics of a call."""
    if above is not None and (isinstance(above, bool) or not isinstance(above, (int, float)) or above != above):
        raise wrong("above", f"the value {above!r}", "a number")
    if operator._description.fold:
        raise wrong("statistics", "a fold", "one normalizer: call statistics of an operator of the fold")
    named = {name: widened(x) if is_array(x) else x for name, x in named.items()}
    call = operator._call(*(None if x is None else widened(x) for x in (q, k, v)), mask, offset, threads, layout, named)
    b, h, queries, _ = call.rows
    keys = call.extent_of("k", "v")
    found, parts = Statistics(), []
    for name in _NAMES:
        wanted = {"columns": columns, "above": above is not None}.get(name, True)
        if name == "ground_weight":
            wanted = name in operator.outputs
        if not wanted:
            setattr(found, name, None)
            parts.append(_abi.ABSENT)
            continue
        shape = (b, h, keys if name == "columns" else queries)
        x = empty_like(call.model, shape, TYPE.int64 if name in ("scored", "above") else call.code)
        at = view(name, x)
        parts.append(at.tensor((*shape, 1), (*at.strides, 0)))
        setattr(found, name, x)
    memory = _STATISTICS.pack(*(n for part in parts for n in part), float(above or 0))
    operator._companions.run("statistics", call.code)(call.address, memory)
    return found
