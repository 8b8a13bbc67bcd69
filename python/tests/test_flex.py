# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""attune.torch.flex_attention: values and gradients as PyTorch's, for functions that users write; and what is refused.

Functions: flex_functions.py. The expressions of graphs: test_graph.py.
"""

import inspect
import math
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", minversion="2.5")

import torch.nn.functional as F  # noqa: E402
from torch.nn.attention.flex_attention import create_block_mask, create_mask  # noqa: E402
from torch.nn.attention.flex_attention import flex_attention as of_torch  # noqa: E402

import attune  # noqa: E402
import attune.torch as at  # noqa: E402
import flex_functions  # noqa: E402
from attune import masks  # noqa: E402
from attune.torch import _flex, _scores  # noqa: E402

SIZES = {"batch": 2, "heads": 4, "queries": 17, "keys": 23}
MASKS = flex_functions.mask_mods()
SCORES = list(flex_functions.score_mods(torch.zeros, **SIZES))


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """A folder of compiled operators; no text of a test is in it before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTUNE_CACHE", str(tmp_path_factory.mktemp("flex")))
        patch.setattr(_scores, "_operators", {})
        yield


def made(rng):
    """A function that makes tensors with gradients."""
    return lambda *shape: torch.from_numpy(rng.standard_normal(shape)).requires_grad_()


def inputs(make, heads=4, key_heads=2, queries=17, keys=23, width=8, value_width=5):
    return make(2, heads, queries, width), make(2, key_heads, keys, width), make(2, key_heads, keys, value_width)


def of_all(function, scores):
    """function(score, b, h, q_idx, kv_idx) of every pair, one call each: what FlexAttention means by it."""
    indices = [torch.arange(n) for n in scores.shape]
    for n in reversed(range(4)):
        function = torch.vmap(function, in_dims=tuple([0] + [0 if m == n else None for m in range(4)]))
    return function(scores, *indices)


def eager(q, k, v, score_mod=None, mask_mod=None, scale=None, of=None):
    """The formula. of: what takes a score_mod to all scores."""
    groups = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(groups, 1) for x in (k, v))
    scores = q @ k.mT * (q.shape[3] ** -0.5 if scale is None else scale)
    if score_mod is not None:
        scores = (of or by_broadcast)(score_mod, scores)
    if mask_mod is not None:
        shown = create_mask(mask_mod, *scores.shape, device="cpu")
        scores = scores.masked_fill(~shown, -torch.inf)
    return torch._safe_softmax(scores, -1) @ v, scores.logsumexp(-1)


def by_broadcast(function, scores):
    """The same as of_all, for functions of numbers: all pairs in one call."""
    return function(scores.clone(), *torch.meshgrid(*[torch.arange(n) for n in scores.shape], indexing="ij"))


def same(got, expected, xs, rng, most=1e-10):
    """Fails unless outputs, lse and all gradients are equal. lse is -inf where a row sees no key, and has no gradient."""
    seen = expected[1].isfinite()
    assert torch.equal(seen, got[1].isfinite()) and not got[0].isnan().any()
    weights = [torch.from_numpy(rng.standard_normal(x.shape)) for x in got]
    gradients = []
    for out, lse in (got, expected):
        total = (out * weights[0]).sum() + (torch.where(seen, lse, 0.0) * weights[1]).sum()
        gradients.append(torch.autograd.grad(total, xs))
    pairs = [(got[0], expected[0]), (got[1][seen], expected[1][seen]), *zip(*gradients)]
    for a, b in pairs:
        assert a.shape == b.shape and (a - b).abs().max() <= most * max(1, b.abs().max())


# --- masks --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("blocks", [False, True], ids=["mask_mod", "BlockMask"])
def test_a_mask_mod_shows_the_keys_that_torch_shows(name, blocks):
    """All scores are 0, and value j is the unit vector j: the output is the mask, with rows divided by their sums."""
    mask_mod, ruled = MASKS[name]
    shown = create_mask(mask_mod, 2, 2, 48, 48, device="cpu")
    given = create_block_mask(mask_mod, 2, 2, 48, 48, device="cpu", BLOCK_SIZE=16) if blocks else mask_mod
    q, v = torch.zeros(2, 2, 48, 4), torch.eye(48).expand(2, 2, 48, 48)
    out = at.flex_attention(q, q, v, None, given)
    assert torch.equal(out, shown / shown.sum(-1, keepdim=True).clamp(min=1))
    if not blocks:
        mask = _flex._mask(mask_mod, {"b": 2, "h": 2, "q": 48, "k": 48}, q.device)
        tables = [] if mask is None else [x for x in leaves_of(mask) if "visible" in repr(x)]
        assert ruled == all(1 in x._x.shape[2:] for x in tables), mask


def leaves_of(mask):
    return [mask] if mask._parts is None else [leaf for part in mask._parts for leaf in leaves_of(part)]


@pytest.mark.parametrize("name", ["causal", "sliding window", "transfusion", "temporal head"])
def test_a_mask_has_gradients_and_lse(name, rng):
    mask_mod = MASKS[name][0]
    xs = inputs(made(rng))
    got = at.flex_attention(*xs, None, mask_mod, scale=0.4, enable_gqa=True, return_lse=True)
    same(got, eager(*xs, None, mask_mod, scale=0.4), xs, rng)


def test_blocks_hide_keys_of_their_own():
    """Blocks that a user chose, with a mask_mod that shows everything."""
    from torch.nn.attention.flex_attention import BlockMask

    count, at_keys = torch.tensor([[[1, 2]]], dtype=torch.int32), torch.tensor([[[[1, 0], [0, 1]]]], dtype=torch.int32)
    blocks = BlockMask.from_kv_blocks(count, at_keys, BLOCK_SIZE=(4, 4), seq_lengths=(8, 8))
    q = torch.zeros(2, 1, 8, 4)
    out = at.flex_attention(q, q, torch.eye(8).expand(2, 1, 8, 8), None, blocks)
    shown = torch.ones(8, 8)
    shown[:4, :4] = 0
    assert torch.equal(out[1, 0], shown / shown.sum(-1, keepdim=True))
    with pytest.raises(attune.Error, match=r"block_mask has the lengths \(8, 8\); expected \(8, 7\)"):
        at.flex_attention(q, q[:, :, :7], q[:, :, :7], None, blocks)


def test_rows_without_keys_are_as_in_torch():
    q, k, v = (torch.randn(1, 2, 5, 4) for _ in range(3))
    blocks = create_block_mask(lambda b, h, i, j: i > j, None, None, 5, 5, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = of_torch(q, k, v, None, blocks, return_lse=True)
    out, lse = at.flex_attention(q, k, v, None, blocks, return_lse=True)
    assert torch.equal(out[:, :, 0], torch.zeros(1, 2, 4)) and torch.equal(lse[:, :, 0], torch.full((1, 2), -torch.inf))
    assert torch.allclose(out, expected[0], atol=1e-6) and torch.equal(lse.isinf(), expected[1].isinf())


def test_numbers_and_tensors_of_a_mask_may_change():
    q, v, size, ids = torch.zeros(1, 1, 6, 4), torch.eye(6)[None, None], 1, torch.tensor([0, 0, 0, 1, 1, 1])

    def near(b, h, q_idx, kv_idx):
        return ((q_idx - kv_idx).abs() <= size) & (ids[q_idx] == ids[kv_idx])

    for size in (1, 2):
        for at_end in (1, 0):
            ids[5] = at_end
            shown = create_mask(near, 1, 1, 6, 6, device="cpu")
            assert torch.equal(at.flex_attention(q, q, v, None, near) > 0, shown)


# --- scores -------------------------------------------------------------------------------------------------------------


@pytest.mark.compiles
@pytest.mark.parametrize("name", SCORES)
def test_a_score_mod_has_the_values_and_gradients_of_eager_torch(name, rng):
    make = made(rng)
    score_mod, captured = flex_functions.score_mods(make, **SIZES)[name]
    xs = (*inputs(make), *captured)
    mask_mod = flex_functions.causal if name != "causal score" else None
    if name == "gelu":
        mask_mod = None
    of = of_latent(captured) if name == "latent" else None
    got = at.flex_attention(*xs[:3], score_mod, mask_mod, enable_gqa=True, return_lse=True)
    same(got, eager(*xs[:3], score_mod, mask_mod, of=of), xs, rng)


def of_latent(captured):
    """torch.dot has no broadcast; the same in words of matrices."""
    q, k = captured
    return lambda function, scores: scores + 0.3 * q @ k.mT


@pytest.mark.compiles
def test_numbers_that_change_compile_nothing(rng):
    xs, before = inputs(made(rng), key_heads=4), None
    for cap in (20.0, 7.5, 3):
        score_mod = flex_functions.soft_cap(cap) if cap > 5 else lambda s, b, h, q, kv: torch.mul(cap, torch.tanh(s / cap))
        got = at.flex_attention(*xs, score_mod, return_lse=True)
        same(got, eager(*xs, score_mod), xs, rng)
        assert before in (None, len(_scores._operators))
        before = len(_scores._operators)


@pytest.mark.compiles
def test_a_normalizer_by_name_by_policy_and_by_text(rng):
    make = made(rng)
    q, k, v = inputs(make, key_heads=4)
    logit = make(4)
    out = at.flex_attention(q, k, v, None, flex_functions.causal, normalizer="sink", logit=logit)
    expected = at.sink(q, k, v, logit=logit, mask=masks.causal(align="start"))
    xs = (q, k, v, logit)
    for a, b in zip((out, *torch.autograd.grad(out.sum(), xs)), (expected, *torch.autograd.grad(expected.sum(), xs))):
        assert torch.allclose(a, b, atol=1e-12)
    hard = attune.policy.normalizer("sigmoid(a + bias)", divided_by="one", parameters={"bias": 0.0})
    bias = torch.tensor(-1.0, requires_grad=True)
    out = at.flex_attention(q, k, v, None, flex_functions.causal, normalizer=hard, bias=bias)
    weights = torch.sigmoid(q @ k.mT / 8**0.5 - 1).tril() @ v
    assert torch.allclose(out, weights, atol=1e-12) and torch.autograd.grad(out.sum(), bias)[0].isfinite()


@pytest.mark.compiles
def test_narrow_types_layouts_and_broadcast_batches_are_as_in_torch():
    q, k, v = (torch.randn(2, n, 4, 16).transpose(1, 2)[..., ::2] for n in (9, 13, 13))
    bias = torch.randn(2, 13)

    def score_mod(score, b, h, q_idx, kv_idx):
        return torch.where((h == 2) & (q_idx == 5), -torch.inf, score + bias[b, kv_idx])

    blocks = create_block_mask(lambda b, h, i, j: (i >= j) & (i + b != 3), 2, None, 9, 13, device="cpu", BLOCK_SIZE=4)
    narrow = None
    for kind, most in ((torch.bfloat16, 2e-2), (torch.float32, 1e-6)):
        given = [x.to(kind) for x in (q, k, v)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = of_torch(*given, score_mod, blocks, return_lse=True)
        got = at.flex_attention(*given, score_mod, blocks, return_lse=True)
        for a, b in zip(got, expected):
            assert (a.dtype, a.shape) == (b.dtype, b.shape) and torch.equal(a.isinf(), b.isinf())
            assert (a.float() - b.float()).nan_to_num().abs().max() <= most
        narrow = got[0] if kind == torch.bfloat16 else narrow
    shared = at.flex_attention(q, k[:1], v[:1], score_mod, blocks)
    assert torch.equal(shared, at.flex_attention(q, k[:1].expand_as(k), v[:1].expand_as(v), score_mod, blocks))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(at.flex_attention(q, k, v, score_mod, blocks), narrow)


def test_a_model_that_is_compiled_calls_it_outside():
    q = torch.randn(1, 2, 5, 4)

    def model(q):
        return at.flex_attention(2 * q, q, q, None, flex_functions.causal) + 1

    assert torch.equal(torch.compile(model, backend="aot_eager")(q), model(q))
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="leave out fullgraph=True"):
        torch.compile(model, backend="aot_eager", fullgraph=True)(q)


# --- what is refused ----------------------------------------------------------------------------------------------------

table = torch.zeros(64)


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


def has_if(score, b, h, q_idx, kv_idx):
    if q_idx > kv_idx:  # here
        return score
    return 2 * score


def has_loop(score, b, h, q_idx, kv_idx):
    n = 0
    while n < q_idx:  # here
        n += 1
    return score + n


def writes_index(score, b, h, q_idx, kv_idx):
    table[kv_idx] = 1.0  # here
    return score


def writes_all(score, b, h, q_idx, kv_idx):
    table.add_(1.0)  # here
    return score


def fills(score, b, h, q_idx, kv_idx):
    score.fill_(1.0)  # here
    return score


def rounds(score, b, h, q_idx, kv_idx):
    return Rounded.apply(score)


REFUSED = {
    "if": (has_if, r"asks for the truth.*\n.*\n  write torch.where"),
    "while": (has_loop, "asks for the truth"),
    "in": (lambda s, b, h, q, kv: s if h in (0, 1) else 2 * s, "asks for the truth"),
    "item": (lambda s, b, h, q, kv: s + q.item(), r"item\(\) reads"),
    "float": (lambda s, b, h, q, kv: s * float(s), r"float\(\) of a traced number"),
    "int": (lambda s, b, h, q, kv: s + int(kv), "leave out int"),
    "math": (lambda s, b, h, q, kv: math.exp(s), r"write the function of torch"),
    "numpy": (lambda s, b, h, q, kv: np.exp(s), "write torch.exp"),
    "array": (lambda s, b, h, q, kv: np.array(s), "NumPy asks"),
    "list": (lambda s, b, h, q, kv: s * [1.0, 2.0][h], r"torch.tensor\(values\)\[h\]"),
    "range": (lambda s, b, h, q, kv: s + sum(table[i] for i in range(q)), r"in range\(\)"),
    "write": (writes_index, "a write into a tensor"),
    "write all": (writes_all, r"add_\(\) writes into a tensor"),
    "fill": (fills, r"fill_\(\) writes"),
    "random": (lambda s, b, h, q, kv: s + torch.rand(()), r"rand\(\) draws random numbers"),
    "random like": (lambda s, b, h, q, kv: s + torch.rand_like(s), "draws random numbers"),
    "dropout": (lambda s, b, h, q, kv: F.dropout(s, 0.5), "draws random numbers"),
    "unknown": (lambda s, b, h, q, kv: torch.special.bessel_j0(s), "bessel_j0.*of the score is not known"),
    "detach": (lambda s, b, h, q, kv: s.detach(), "detach.*not known"),
    "index of the score": (lambda s, b, h, q, kv: table[s.long()], "an index that depends on the score"),
    "bool index": (lambda s, b, h, q, kv: s + table[table > q].sum(), "an index of bool"),
    "own gradient": (rounds, "has a gradient of its own"),
    "None": (lambda s, b, h, q, kv: None, "it returns NoneType"),
    "two": (lambda s, b, h, q, kv: torch.stack([s, s]), r"a tensor of the shape \(2,\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_traced_is_refused_with_its_line(name):
    function, words = REFUSED[name]
    lines, start = inspect.getsourcelines(Rounded.forward if name == "own gradient" else function)
    marked = [start + n for n, line in enumerate(lines) if "# here" in line]
    line = marked[0] if marked else start + 2 * (name == "own gradient")
    q = torch.zeros(1, 2, 4, 4)
    with pytest.raises(attune.Error, match=words) as e:
        at.flex_attention(q, q, q, function)
    assert str(e.value).startswith("attune: score_mod cannot be traced: ") and f"{__file__}, line {line}\n" in str(e.value)
    assert not table.any()


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"score_mod": flex_functions.causal_score, "block_mask": flex_functions.causal_score}, "causal_score"),
        ({"score_mod": lambda s, b, h, q, kv: q >= kv}, "belongs to block_mask"),
        ({"score_mod": 2.0}, "score_mod has the type float; expected a function"),
        ({"block_mask": lambda b, h, q, kv: q - kv}, "mask_mod has a result of int; expected a comparison"),
        ({"block_mask": torch.ones(4, 4)}, "mask_mod has the type Tensor; expected a function"),
        ({"key": torch.zeros(1, 1, 4, 4)}, "or enable_gqa=True"),
        ({"key": torch.zeros(3, 2, 4, 4)}, "batch extent 3"),
        ({"query": torch.zeros(2, 4, 4)}, "query has 3 axes"),
    ],
)
def test_wrong_arguments_are_refused(arguments, words):
    q = torch.zeros(1, 2, 4, 4)
    with pytest.raises((attune.Error, TypeError), match=words):
        at.flex_attention(**{"query": q, "key": q, "value": q, **arguments})
