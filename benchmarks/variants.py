# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""What no library has ready-made: for each operator its symbol, its formula, and the best spellings that PyTorch allows."""
import dataclasses
import math
import typing

import torch
import torch.nn.functional as F

import formulas


def no_leaves(random, b, h, length, d):
    return {}


@dataclasses.dataclass
class Variant:
    name: str
    formula: typing.Callable
    parameters: typing.Callable = no_leaves  # (random, B, H, L, D) -> dict: tensors with a gradient, in the order of the symbol
    constants: dict = dataclasses.field(default_factory=dict)  # numbers, which follow in the symbol
    products: int = 2  # matrix products over all pairs in the forward pass; the backward pass has 3 products - 1
    score_mod: typing.Optional[typing.Callable] = None  # (x) -> FlexAttention's score_mod, where that can say it
    spelled: typing.Optional[typing.Callable] = None  # (x, causal) -> out by a trick around scaled_dot_product_attention
    by_users: typing.Optional[typing.Callable] = None  # the formula as users write it, where random numbers make its result another one
    given: typing.Callable = lambda b, h, length, constants: {}  # what the formulas want besides
    terms: int = 1  # heads of q and k for each head of v
    called: dict = dataclasses.field(default_factory=dict)  # the name of a parameter's gradient, where it is another one
    tolerance: float = 1e-4
    gradient_tolerance: float = 1e-3

    @property
    def symbol(self):
        return "attune_" + self.name

    @property
    def train_symbol(self):
        return "attune_train_" + self.name


def sdpa(q, k, v, causal, **more):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal, **more)


# ---- parameters as models have them ----------------------------------------------------------------------------------------------


def _slopes(random, b, h, length, d):
    return {"slope": torch.tensor([2.0 ** -(8 * (i + 1) / h) for i in range(h)])}


def _hybrid(random, b, h, length, d):
    return {"sort_q": random(b, h, length, 1), "sort_k": random(b, h, length, 1), "tau": 0.5 + random(h).abs()}


def _fox(random, b, h, length, d):
    return {"sort_q": random(b, h, length, 1), "sort_k": random(b, h, length, 1)}


def _principled(random, b, h, length, d):
    return {"gate_q": random(b, h, length, d) / math.sqrt(d), "gate_k": random(b, h, length, d), "v0": random(h, d),
            "alpha": random(b, h, length) - 2, "beta": random(b, h, length), "gamma": 0.3 * random(b, h, length)}


# ---- tricks ----------------------------------------------------------------------------------------------------------------------


def _alibi_as_mask(x, causal):
    """A dense bias, made once per case as a model would."""
    if "bias" not in x:
        place = torch.arange(x["q"].shape[2], dtype=torch.float32)
        x["bias"] = formulas.hide(-formulas.by_head(x["slope"]) * (place[:, None] - place).abs(), x["hidden"])[None].contiguous()
    return F.scaled_dot_product_attention(x["q"], x["k"], x["v"], attn_mask=x["bias"])


def _ssmax_in_q(x, causal):
    return sdpa(x["q"] * formulas.by_head(x["factor"]) * torch.log(x["visible"]), x["k"], x["v"], causal)


def _affine_as_sum(x, causal):
    """The uniform share is a running mean of the values."""
    v, alpha = x["v"], x["alpha"][..., None]
    total = v.cumsum(2) if causal else v.sum(2, keepdim=True)
    return alpha * sdpa(x["q"], x["k"], v, causal) + (x["average"] - alpha) / x["visible"] * total


def _off_by_one_as_key(x, causal):
    """A key of zeros has score 0; a query of zeros before the others keeps the causal mask aligned."""
    q, k, v = (torch.cat([torch.zeros_like(t[:, :, :1]), t], 2) for t in (x["q"], x["k"], x["v"]))
    return sdpa(q, k, v, True)[:, :, 1:] if causal else sdpa(x["q"], k, v, False)


def _differential_as_two(x, causal):
    first, second = (sdpa(x["q"][:, n::2], x["k"][:, n::2], x["v"], causal) for n in (0, 1))
    return first + formulas.by_head(x["minus_lambda"]) * second


# ---- score_mod of FlexAttention --------------------------------------------------------------------------------------------------


def _flex_alibi(x):
    slope = x["slope"]
    return lambda score, b, h, i, j: score - slope[h] * (i - j).abs()


def _flex_softcap(x):
    cap = x["cap"]
    return lambda score, b, h, i, j: cap * torch.tanh(score / cap)


def _flex_ssmax(x):
    factor, log_visible = x["factor"], torch.log(x["visible"][:, 0]).contiguous()
    return lambda score, b, h, i, j: score * factor[h] * log_visible[i if log_visible.numel() > 1 else 0]


def _flex_hybrid(x):
    sort_q, sort_k, tau = x["sort_q"][..., 0].contiguous(), x["sort_k"][..., 0].contiguous(), x["tau"]
    return lambda score, b, h, i, j: score - (sort_q[b, h, i] - sort_k[b, h, j]) ** 2 / tau[h]


def _flex_fox(x):
    sort_q, sort_k = x["sort_q"][..., 0].contiguous(), x["sort_k"][..., 0].contiguous()
    return lambda score, b, h, i, j: score + sort_q[b, h, i] - sort_k[b, h, j]


SOFTMAX = Variant("softmax", formulas.softmax, spelled=lambda x, causal: sdpa(x["q"], x["k"], x["v"], causal))
VARIANTS = [
    Variant("off_by_one", formulas.off_by_one, spelled=_off_by_one_as_key),
    Variant("sink", formulas.sink, lambda random, b, h, length, d: {"logit": random(h)}),
    Variant("ssmax", formulas.ssmax, lambda random, b, h, length, d: {"factor": 0.3 + 0.1 * random(h)}, score_mod=_flex_ssmax,
            spelled=_ssmax_in_q, called={"factor": "length_scale.scale"}),
    Variant("affine", formulas.affine, lambda random, b, h, length, d: {"alpha": torch.sigmoid(random(b, h, length))},
            {"average": 0.6}, spelled=_affine_as_sum),
    Variant("sigmoid", formulas.sigmoid),
    Variant("alibi", formulas.alibi, _slopes, score_mod=_flex_alibi, spelled=_alibi_as_mask),
    Variant("softcap", formulas.softcap, constants={"cap": 30.0}, score_mod=_flex_softcap),
    Variant("hybrid", formulas.hybrid, _hybrid, score_mod=_flex_hybrid),
    Variant("fox", formulas.fox, _fox, score_mod=_flex_fox),
    Variant("rope", formulas.rope, spelled=lambda x, causal: sdpa(formulas.turned(x["q"]), formulas.turned(x["k"]), x["v"], causal)),
    Variant("stick_breaking", formulas.stick_breaking),
    Variant("differential", formulas.differential, lambda random, b, h, length, d: {"minus_lambda": -torch.sigmoid(random(h))}, terms=2,
            spelled=_differential_as_two, called={"minus_lambda": "fold.1"}),
    Variant("dropout", formulas.dropped, constants={"rate": 0.125, "seed": 1234}, by_users=formulas.dropout,
            given=lambda b, h, length, constants: {"factor": formulas.dropout_factors(b, h, length, **constants)},
            spelled=lambda x, causal: sdpa(x["q"], x["k"], x["v"], causal, dropout_p=x["rate"])),
    Variant("principled", formulas.principled, _principled, products=3),
]
# Their thresholds are found by sorting: see the group "entmax".
SPARSE = [
    Variant("entmax15", formulas.entmax15),
    # A key within rounding of the threshold is in the support for one and not for the other: its gradient jumps.
    Variant("sparsemax", formulas.sparsemax, gradient_tolerance=5e-2),
]
