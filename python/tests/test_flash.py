# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""attune.torch.flash_attn_func and flash_attn_varlen_func: values and gradients by the formula, and what is refused."""

import pytest

torch = pytest.importorskip("torch")

import attune  # noqa: E402
import attune.torch as at  # noqa: E402
from attune.torch import _scores  # noqa: E402

CASES = [
    {},
    {"causal": True, "softmax_scale": 0.3},
    {"window_size": (3, 1)},
    {"causal": True, "window_size": (2, -1)},
    pytest.param({"causal": True, "softcap": 3.0}, marks=pytest.mark.compiles),
    pytest.param({"causal": True, "slopes": 1}, marks=pytest.mark.compiles),
    pytest.param({"window_size": (4, 2), "softcap": 2.0, "slopes": 2}, marks=pytest.mark.compiles),
]


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTUNE_CACHE", str(tmp_path_factory.mktemp("flash")))
        patch.setattr(_scores, "_operators", {})
        yield


def formula(q, k, v, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None, softmax_scale=None):
    """The output and lse of (B, L, H, D), as the documentation of flash-attn defines them."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    scores = q @ k.mT * (q.shape[3] ** -0.5 if softmax_scale is None else softmax_scale)
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    i, j = torch.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2], torch.arange(k.shape[2])
    if alibi_slopes is not None:
        scores = scores - alibi_slopes.reshape(-1, q.shape[1], 1, 1) * (i - j).abs()
    left, right = window_size[0], 0 if causal else window_size[1]
    hidden = (j < i - left if left >= 0 else j < 0) | (j > i + right if right >= 0 else j < 0)
    scores = scores.masked_fill(hidden, -torch.inf)
    return (torch._safe_softmax(scores, -1) @ v).transpose(1, 2), scores.logsumexp(-1)


def same(got, expected, xs):
    seen = expected[1].isfinite()
    assert torch.equal(seen, got[1].isfinite())
    weight = torch.randn_like(got[0])
    totals = [(out * weight).sum() + torch.where(seen, lse, 0.0).sum() for out, lse, *_ in (got, expected)]
    gradients = [torch.autograd.grad(total, xs) for total in totals]
    for a, b in ((got[0], expected[0]), (got[1][seen], expected[1][seen]), *zip(*gradients)):
        assert a.shape == b.shape and (a - b).abs().max() <= 1e-10


def tensor(rng, *shape):
    return torch.from_numpy(rng.standard_normal(shape)).requires_grad_()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("queries, keys", [(9, 13), (13, 9)])
def test_outputs_lse_and_gradients(case, queries, keys, rng):
    xs = [tensor(rng, 2, queries, 4, 8), tensor(rng, 2, keys, 2, 8), tensor(rng, 2, keys, 2, 5)]
    case = dict(case)
    if "slopes" in case:
        case["alibi_slopes"] = tensor(rng, *(4,) if case.pop("slopes") == 1 else (2, 4))
        xs.append(case["alibi_slopes"])
    got = at.flash_attn_func(*xs[:3], return_attn_probs=True, deterministic=True, **case)
    assert got[2] is None
    same(got, formula(*xs[:3], **case), xs)


@pytest.mark.parametrize("case", CASES)
def test_sequences_in_one_tensor_are_as_alone(case, rng):
    ends, key_ends = torch.tensor([0, 3, 9, 16], dtype=torch.int32), torch.tensor([0, 5, 7, 21], dtype=torch.int32)
    xs = [tensor(rng, 16, 4, 8), tensor(rng, 21, 2, 8), tensor(rng, 21, 2, 5)]
    case, slopes = dict(case), [None] * 3
    if "slopes" in case:
        each = case.pop("slopes") == 2
        case["alibi_slopes"] = tensor(rng, *(3, 4) if each else (4,))
        xs.append(case["alibi_slopes"])
        slopes = list(case["alibi_slopes"]) if each else [case["alibi_slopes"]] * 3
    got = at.flash_attn_varlen_func(*xs[:3], ends, key_ends, 7, 14, return_attn_probs=True, **case)
    parts = []
    for n in range(3):
        q, k, v = (x[None, e[n] : e[n + 1]] for x, e in zip(xs, (ends, key_ends, key_ends)))
        parts.append(formula(q, k, v, **{**case, **({} if slopes[n] is None else {"alibi_slopes": slopes[n]})}))
    same(got, (torch.cat([x[0][0] for x in parts]), torch.cat([x[1][0] for x in parts], 1)), xs)


@pytest.mark.compiles
def test_dropout_is_drawn_by_the_generator_of_torch(rng):
    q, k, v = (tensor(rng, 1, 64, 2, 8) for _ in range(3))
    outs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        outs.append(at.flash_attn_func(q, k, v, dropout_p=0.5))
    assert torch.equal(outs[0], outs[1]) and not torch.equal(outs[0], outs[2])
    assert torch.allclose(at.flash_attn_func(q, k, v, dropout_p=1e-9), at.flash_attn_func(q, k, v))


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"dropout_p": 1.5}, "dropout_p"),
        ({"dropout_p": 0.1, "return_attn_probs": True}, "no weights are kept"),
        ({"alibi_slopes": torch.ones(3)}, r"alibi_slopes has the shape \(3,\); expected \(heads\)"),
        ({"q": torch.zeros(4, 2, 8)}, r"q has 3 axes; expected 4"),
        ({"q": torch.zeros(1, 4, 3, 8)}, "head extent 2"),
    ],
)
def test_wrong_arguments_are_refused(arguments, words):
    x = torch.zeros(1, 4, 2, 8)
    with pytest.raises(attune.Error, match=words):
        at.flash_attn_func(**{"q": x, "k": x, "v": x, **arguments})


def test_pages_are_for_decode():
    x, ends = torch.zeros(4, 2, 8), torch.tensor([0, 4])
    with pytest.raises(attune.Error, match="block_table has a value; .*decode"):
        at.flash_attn_varlen_func(x, x, x, ends, ends, 4, 4, block_table=torch.zeros(1, 1))
