# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""attune in place of the attention of a whole model."""

from __future__ import annotations

import sys
from typing import Any, Mapping

from torch import nn

from .._arrays import wrong
from .._operator import Operator
from .._presets import operator_of
from ..masks import Mask
from ._drop_in import hands_attention_to_others, register_with_transformers
from ._modules import Attention, MultiheadAttention


class Replaced:
    """What replace_attention did. replaced, left: pairs (name of the module, words). str() has a line for each."""

    def __init__(self) -> None:
        self.replaced: list[tuple[str, str]] = []
        self.left: list[tuple[str, str]] = []

    def __str__(self) -> str:
        lines = [f"{len(self.replaced)} replaced, {len(self.left)} left"]
        for word, pairs in (("replaced", self.replaced), ("left", self.left)):
            lines += [f"  {word} {name or 'the model'}: {what}" for name, what in pairs]
        return "\n".join(lines)

    __repr__ = __str__


def _models_of_transformers(model: nn.Module) -> list[tuple[str, Any]]:
    """The models of Hugging Face in a model, and what they are part of."""
    module = sys.modules.get("transformers.modeling_utils")
    kind = getattr(module, "PreTrainedModel", ())
    return [(name, m) for name, m in model.named_modules() if isinstance(m, kind)]


def _why_not(module: nn.MultiheadAttention) -> str | None:
    """Why a module of PyTorch stays as it is."""
    if type(module) is not nn.MultiheadAttention:
        return f"{type(module).__name__} has its own code"
    if module.bias_k is not None or module.add_zero_attn:
        return "add_bias_kv and add_zero_attn have no counterpart"
    if module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks:
        return "it has hooks"
    return None


def replace_attention(
    model: nn.Module,
    op: str | Operator = "softmax",
    *,
    parameters: Mapping[str, Any] | None = None,
    mask: Mask | None = None,
    dropout: float | None = None,
) -> Replaced:
    """Makes attune compute the attention of a model, and says what it changed and what it left.

        print(at.replace_attention(model))

    Each nn.MultiheadAttention in the model becomes an at.MultiheadAttention with the same tensors as parameters, so an
    optimizer keeps them; also in nn.Transformer and its layers, whose own computation of softmax is switched off. That one
    returns zeros for positions of padding in eval(); now they have numbers, as in training. Hugging Face models get
    attn_implementation="attune". With another op than "softmax", parameters and mask are those of
    at.Attention; new parameters have to be given to the optimizer. Hugging Face models are then left. dropout: in place of
    that of the modules; most operators have none, and take 0.
    A model without anything to replace is an error. After an error the model is as it was.
    """
    operator = operator_of(op)
    if isinstance(model, nn.MultiheadAttention):
        raise wrong("model", "the type MultiheadAttention", "a model that contains it; or at.MultiheadAttention.of(model, op)")
    options = {"parameters": parameters, "mask": mask, "dropout": dropout}
    steps: list[Any] = []
    found, made, inside, set_by_others = Replaced(), {}, set(), set()
    for name, part in _models_of_transformers(model):
        if id(part) in set_by_others:
            continue
        inside |= {id(m) for m in part.modules()}
        if operator.name != "softmax" or any(x is not None for x in options.values()):
            found.left.append((name, f"{type(part).__name__} computes softmax, with masks and dropout of its own"))
        elif hands_attention_to_others(type(part)):
            steps.append((part.set_attn_implementation, ("attune",)))
            found.replaced.append((name, f'{type(part).__name__}, attn_implementation="attune"'))
        else:  # its parts may hand theirs
            found.left.append((name, f"{type(part).__name__} does not hand its attention to others"))
            continue
        set_by_others |= {id(m) for m in part.modules() if hands_attention_to_others(type(m))}
    if steps:
        register_with_transformers()
    for name, parent in model.named_modules():
        if isinstance(parent, nn.TransformerEncoder):
            steps += [(setattr, (parent, switch, False)) for switch in ("enable_nested_tensor", "use_nested_tensor")]
        for last, child in parent._modules.items():  # named_children() leaves out a module that is there twice
            path = f"{name}.{last}" if name else last
            if isinstance(child, nn.MultiheadAttention):
                why = _why_not(child)
                if why is not None:
                    found.left.append((path, why))
                    continue
                if id(child) not in made:
                    made[id(child)] = MultiheadAttention.of(child, operator, **options)
                steps.append((setattr, (parent, last, made[id(child)])))
                found.replaced.append((path, f"nn.MultiheadAttention, now {operator.name}"))
            elif isinstance(child, (Attention, MultiheadAttention)):
                if not isinstance(parent, MultiheadAttention):
                    found.left.append((path, "it is attune's already"))
            elif "attention" in type(child).__name__.lower() and id(child) not in inside:
                found.left.append((path, f"{type(child).__name__} has its own code: call at.scaled_dot_product_attention in it"))
    if not found.replaced:
        expected = "an nn.MultiheadAttention, or a model of transformers that hands its attention to others"
        raise wrong("model", "no attention that attune can replace", f"{expected}\n{found}")
    for step, arguments in steps:
        step(*arguments)
    return found
