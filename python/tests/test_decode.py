# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""op.decode against the operator's own call and against NumPy."""

import dense
import numpy as np
import pytest

import attune
from attune import masks

pytestmark = pytest.mark.compiles


def in_pages(rng, arrays, lengths, size, spare=3, hidden=np.nan):
    """Arrays (B, heads, Lk, D) in pages of `size` keys in random order, and the page table.

    Pages and rows that no sequence uses are `hidden`; the table has -1 and numbers that are no page behind each end.
    """
    batch, _, keys, _ = arrays[0].shape
    wanted = [-(-int(n) // size) for n in lengths]
    columns = -(-keys // size)
    numbers = rng.permutation(sum(wanted) + spare)
    table = rng.choice([-1, 10**6], (batch, columns)).astype(np.int32)
    pages = [np.full((len(numbers), x.shape[1], size, x.shape[3]), hidden, x.dtype) for x in arrays]
    for b in range(batch):
        for n in range(wanted[b]):
            table[b, n], numbers = numbers[0], numbers[1:]
            first, last = n * size, min((n + 1) * size, int(lengths[b]))
            for to, x in zip(pages, arrays):
                to[table[b, n], :, : last - first] = x[b, :, first:last]
    return pages, table


def one_by_one(op, q, arrays, lengths, names=("k", "v"), **more):
    """The operator's own call of each sequence, cut to its length."""
    results = []
    for b, n in enumerate(lengths):
        cut = {name: x[b : b + 1, :, :n] for name, x in zip(names, arrays)}
        queries = {name: x[b : b + 1] for name, x in q.items()}
        results.append(op(**queries, **cut, returns=op.outputs, **more))
    return [np.concatenate(x) for x in zip(*results)]


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_softmax_from_pages(kind, rng):
    """Random pages, lengths and groups of heads; causal is right for every sequence."""
    op = attune.op("softmax")
    near = {np.float64: 1e-12, np.float32: 2e-6, np.float16: 2e-3}[kind]
    for _ in range(4):
        batch, groups, key_heads, width = (int(n) for n in rng.integers(1, 5, 4))
        queries, size = int(rng.integers(1, 4)), int(rng.choice([1, 7, 16, 64]))
        lengths = rng.integers(queries, 200, batch)
        q = rng.standard_normal((batch, groups * key_heads, queries, width)).astype(kind)
        k, v = (rng.standard_normal((batch, key_heads, int(lengths.max()) + 9, width)).astype(kind) for _ in range(2))
        (k_pages, v_pages), table = in_pages(rng, (k, v), lengths, size)
        out, lse = op.decode(q, k_pages, v_pages, table, lengths, mask=masks.causal(), returns=("out", "lse"))
        assert out.dtype == kind and lse.dtype == (np.float64 if kind == np.float64 else np.float32)
        for b, n in enumerate(lengths):
            seen = np.arange(n) <= np.arange(queries)[:, None] + n - queries
            want, want_lse = dense.softmax(q[b : b + 1], k[b : b + 1, :, :n], v[b : b + 1, :, :n], seen)
            np.testing.assert_allclose(out[b : b + 1], want, rtol=near, atol=near)
            np.testing.assert_allclose(lse[b : b + 1], want_lse, rtol=near, atol=near)
        own = one_by_one(op, {"q": q}, (k, v), lengths, mask=masks.causal())
        np.testing.assert_allclose(out, own[0], rtol=near, atol=near)
        whole = op.decode(q, k, v, lengths=lengths, mask=masks.causal())  # in one piece, with room behind each end
        np.testing.assert_allclose(out, whole, rtol=near, atol=near)
        turned = (np.ascontiguousarray(x.swapaxes(1, 2)) for x in (q, k_pages, v_pages))
        again = op.decode(*turned, table.astype(np.int64), lengths, mask=masks.causal(), layout="blhd", threads=3)
        assert np.array_equal(again.swapaxes(1, 2), op.decode(q, k_pages, v_pages, table, lengths, mask=masks.causal(), threads=1))


def test_in_one_piece(rng):
    """Without a table, decode is the operator's call."""
    op = attune.op("softmax")
    q, k, v = (rng.standard_normal((2, h, n, 8)) for h, n in ((4, 2), (2, 150), (1, 150)))
    for more in ({}, {"mask": masks.window(40, 0)}, {"offset": 70, "mask": masks.causal()}, {"scale": np.full(4, 0.3)}):
        np.testing.assert_allclose(op.decode(q, k, v, **more), op(q, k, v, **more), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(op.decode(q, k, v, lengths=99), op(q, k[:, :, :99], v[:, :, :99]), rtol=1e-12, atol=1e-12)
    nothing = op.decode(q, k[:, :, :0], v[:, :, :0], returns=("out", "lse"))
    assert not nothing[0].any() and np.all(nothing[1] == -np.inf)
    rows = op.decode(q, k, v, returns="lse")
    others = [np.full(q.shape, 7.0) for _ in range(50)]  # they may get the memory of the output that nobody wanted
    assert all(np.array_equal(op.decode(q, k, v, returns="lse"), rows) for _ in range(3))
    assert all((x == 7).all() for x in others)


def test_all_keys_hidden_and_shared_pages(rng):
    op = attune.op("softmax")
    q, pages = rng.standard_normal((2, 2, 1, 4)), rng.standard_normal((3, 2, 8, 4))
    out = op.decode(q, pages, pages, [[2, 2], [-1, -1]], [16, 0])
    assert not out[1].any()
    twice = np.concatenate([pages[2:3], pages[2:3]], axis=2)
    np.testing.assert_allclose(out[:1], op(q[:1], twice, twice), rtol=1e-12)
    np.testing.assert_allclose(op.decode(q[:1], pages, pages, [[2, 2]]), out[:1], rtol=1e-12)
    assert op.decode(q[:0], pages, pages, np.zeros((0, 2), int), np.zeros(0, int)).shape == (0, 2, 1, 4)


def test_sink(rng):
    op = attune.op("sink")
    lengths = np.array([77, 5, 160])
    q, k, v = (rng.standard_normal((3, h, n, 16)) for h, n in ((6, 1), (2, 160), (2, 160)))
    logit = rng.standard_normal(6)
    (k_pages, v_pages), table = in_pages(rng, (k, v), lengths, 32)
    got = op.decode(q, k_pages, v_pages, table, lengths, logit=logit, returns=op.outputs)
    assert op.outputs == ("out", "lse", "ground_weight")
    short = logit.astype(np.float16)
    for _ in range(2):
        narrow, wide = (op.decode(q, k_pages, v_pages, table, lengths, logit=x) for x in (short, short.astype(np.float32)))
        assert np.array_equal(narrow, wide)
        short += np.float16(1)
    for x, want in zip(got, one_by_one(op, {"q": q}, (k, v), lengths, logit=logit)):
        np.testing.assert_allclose(x, want, rtol=1e-12, atol=1e-12)


def test_principled(rng):
    op = attune.op("principled")
    lengths = np.array([90, 33])
    names = [name for name, side in zip(op.fields, op._description.sides) if side == "key"]
    widths = {"q": 8, "k": 8, "v": 6, "gate_q": 3, "gate_k": 3}
    arrays = [rng.standard_normal((2, 2, 90, widths[name])) for name in names]
    q = {name: rng.standard_normal((2, 4, 2, widths[name])) for name in ("q", "gate_q")}
    v0, parameters = rng.standard_normal(6), dict.fromkeys(op.required, 0.3)
    pages, table = in_pages(rng, arrays, lengths, 16)
    more = dict(v0=v0, mask=masks.causal(), **parameters)
    got = op.decode(**q, **dict(zip(names, pages)), page_table=table, lengths=lengths, returns=op.outputs, **more)
    for x, want in zip(got, one_by_one(op, q, arrays, lengths, names, **more)):
        np.testing.assert_allclose(x, want, rtol=1e-12, atol=1e-12)


@pytest.mark.compiles
def test_fold(rng):
    op = attune.compile_operator("fold(attention(kernel::dot_product{}, m), {1.0, -0.5})", dtypes="float64")
    assert op.decodes
    lengths = np.array([21, 40])
    q, k, v = (rng.standard_normal((2, h, n, 8)) for h, n in ((4, 1), (2, 40), (2, 40)))
    (k_pages, v_pages), table = in_pages(rng, (k, v), lengths, 8)
    got = op.decode(q, k_pages, v_pages, table, lengths)
    want = [op(q[b : b + 1], k[b : b + 1, :, :n], v[b : b + 1, :, :n]) for b, n in enumerate(lengths)]
    np.testing.assert_allclose(got, np.concatenate(want), rtol=1e-12, atol=1e-12)


def test_bits_do_not_depend_on_threads_or_pages(rng):
    op = attune.op("softmax")
    lengths = np.array([5000, 3100])
    q, k, v = (rng.standard_normal((2, h, n, 16), dtype=np.float32) for h, n in ((4, 1), (2, 5000), (2, 5000)))
    whole = op.decode(q, k, v, lengths=lengths, threads=1)
    assert np.array_equal(whole, op.decode(q, k, v, lengths=lengths, threads=3))
    keys = [np.concatenate([x, np.zeros((2, 2, 120, 16), np.float32)], axis=2) for x in (k, v)]  # 80 pages of 64
    (k_pages, v_pages), table = in_pages(rng, keys, lengths, 64)
    paged = [op.decode(q, k_pages, v_pages, table, lengths, threads=n) for n in (1, 2, 3)]
    assert all(np.array_equal(x, op.decode(q, *keys, lengths=lengths)) for x in paged)


@pytest.mark.parametrize("float8", ["e4m3fn", "e5m2"])
def test_float8(float8, rng):
    torch = pytest.importorskip("torch")
    op, lengths = attune.op("softmax"), np.array([70, 21])
    kind = getattr(torch, f"float8_{float8}")
    k8, v8 = (torch.from_numpy(rng.standard_normal((2, 2, 70, 16), dtype=np.float32) * 4).to(kind) for _ in range(2))
    k_scale, v_scale = 0.05, np.array([0.3, -0.7])
    q = rng.standard_normal((2, 4, 1, 16), dtype=np.float32)
    k = k8.float().numpy() * np.float32(k_scale)
    v = v8.float().numpy() * v_scale.astype(np.float32)[:, None, None]
    bytes_of = [x.view(torch.uint8).numpy() for x in (k8, v8)]
    scales = dict(k_scale=k_scale, v_scale=v_scale)
    want = op.decode(q, k, v, lengths=lengths)
    assert np.array_equal(op.decode(q, *bytes_of, lengths=lengths, float8=float8, **scales), want)
    tensors = op.decode(torch.from_numpy(q), k8, v8, lengths=torch.from_numpy(lengths), k_scale=torch.tensor(k_scale), v_scale=torch.from_numpy(v_scale))
    assert np.array_equal(tensors.numpy(), want)
    (k_pages, v_pages), table = in_pages(rng, bytes_of, lengths, 16, hidden=0x7F)
    got = op.decode(q, k_pages, v_pages, table, lengths, float8=float8, **scales)
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=2e-6)
    (k_wide, v_wide), same = in_pages(np.random.default_rng(1), (k, v), lengths, 16)
    (k_pages, v_pages), table = in_pages(np.random.default_rng(1), bytes_of, lengths, 16, hidden=0x7F)
    assert np.array_equal(table, same)
    assert np.array_equal(
        op.decode(q, k_pages, v_pages, table, lengths, float8=float8, **scales), op.decode(q, k_wide, v_wide, table, lengths)
    )


def test_torch(rng):
    torch = pytest.importorskip("torch")
    op = attune.op("softmax")
    q, k, v = (torch.randn(2, h, n, 8).bfloat16() for h, n in ((4, 1), (2, 50), (2, 50)))
    out, lse = op.decode(q, k, v, returns=("out", "lse"))
    want, want_lse = op(q, k, v, returns=("out", "lse"))
    assert out.dtype == torch.bfloat16 and lse.dtype == torch.float32
    torch.testing.assert_close(out, want, rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(lse, want_lse)
    q.requires_grad_()
    with pytest.raises(attune.Error, match=r"requires gradients; expected none, for decode has no gradient: use the operator"):
        op.decode(q, k, v)
    with torch.no_grad():
        assert torch.equal(op.decode(q, k, v), out)
    kv = torch.randn(2, 9, 2, 16, 8).bfloat16()  # keys and values of all pages in one tensor
    table = torch.tensor([[3, 1, 0], [8, 7, 5]], dtype=torch.int32)[:, :2]
    got = op.decode(q.detach(), kv[0], kv[1], table, torch.tensor([20, 32]))
    own = torch.cat([op(q.detach()[b : b + 1], *(x[t].transpose(0, 1).reshape(1, 2, 32, 8)[:, :, :n] for x in kv)) for b, t, n in ((0, [3, 1], 20), (1, [8, 7], 32))])
    torch.testing.assert_close(got, own, rtol=1e-2, atol=1e-2)


Q, PAGES, WHOLE = np.ones((2, 4, 1, 5), np.float32), np.ones((3, 2, 8, 5), np.float32), np.ones((2, 2, 8, 5), np.float32)
TABLE = np.array([[0, 1], [2, 0]])


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda op: op.decode(Q, PAGES, PAGES, TABLE, [16, 17]), "lengths[1] has the value 17; expected a number in [0, 16]: page_table has room for 16 keys"),
        (lambda op: op.decode(Q, WHOLE, WHOLE, lengths=[-1, 8]), "lengths[0] has the value -1; expected a number in [0, 8]: k has 8 keys"),
        (lambda op: op.decode(Q, WHOLE, WHOLE, lengths=2**80), "lengths[0] has the value 4611686018427387904"),
        (lambda op: op.decode(Q, WHOLE, WHOLE, lengths=[8]), "lengths has the shape (1,); expected (2,), a number for each sequence"),
        (lambda op: op.decode(Q, PAGES, PAGES, [[0, 1], [2]], [16, 8]), "page_table has the value [[0, 1], [2]]; expected integers, and as many"),
        (lambda op: op.decode(Q, PAGES, PAGES, TABLE, [[16], [8, 8]]), "lengths has the value [[16], [8, 8]]; expected integers"),
        (lambda op: op.decode(Q, PAGES, PAGES, TABLE, [True, True]), "lengths has the type bool; expected integers"),
        (lambda op: op.decode(Q, WHOLE, WHOLE, k_scale=[[1], [2, 3]]), "k_scale has the value [[1], [2, 3]]; expected a number or an array"),
        (lambda op: op.decode(Q, WHOLE, WHOLE, lengths=[8.0, 8.0]), "lengths has the type float64; expected integers"),
        (lambda op: op.decode(Q, PAGES, PAGES, TABLE + 1, [16, 16]), "pages(1, 0) has the value 3; expected a page in [0, 3): query 0 of head 0 sees key 0"),
        (lambda op: op.decode(Q, PAGES, PAGES, TABLE - 1), "pages(0, 0) has the value -1; expected a page in [0, 3)"),
        (lambda op: op.decode(Q, PAGES, PAGES, TABLE + 2**32), "pages(0, 0) has the value 2147483647; expected a page in [0, 3)"),
        (lambda op: op.decode(Q, PAGES, PAGES, TABLE[:1]), "page_table has the shape (1, 2); expected 2 rows, one for each batch element of q"),
        (lambda op: op.decode(Q, PAGES, PAGES, TABLE[0]), "page_table has 1 axes; expected 2: (batch, pages of a sequence)"),
        (lambda op: op.decode(Q, PAGES, PAGES, TABLE * 1.0), "page_table has the type float64; expected integers"),
        (lambda op: op.decode(Q, PAGES[:2], PAGES, TABLE), "k has batch extent 2; expected 3, the number of pages of v"),
        (lambda op: op.decode(Q, PAGES[:, :, :4], PAGES, TABLE), "k has position extent 4; expected 8, the keys of a page of v"),
        (lambda op: op.decode(Q, WHOLE[:, :, :4], WHOLE), "k has position extent 4; expected 8, the keys of v"),
        (lambda op: op.decode(Q, WHOLE), "v has no value; expected an array: softmax reads it"),
        (lambda op: op.decode(Q, WHOLE, WHOLE.astype(float)), "v has the type float64; expected float32, the type of q"),
        (lambda op: op.decode(Q, WHOLE, WHOLE, k_scale=2.0), "k_scale has a value; expected None: k has no 8-bit numbers"),
        (lambda op: op.decode(Q, WHOLE.astype(np.uint8), WHOLE), "k has the type uint8; expected also float8="),
        (lambda op: op.decode(Q, WHOLE, WHOLE, float8="e4m3fn"), "k has the type float32; expected uint8 or float8_e4m3fn"),
        (lambda op: op.decode(Q, WHOLE, WHOLE, float8="fp8"), "float8 has the value 'fp8'; expected \"e4m3fn\" or \"e5m2\""),
        (lambda op: op.decode(Q, WHOLE, WHOLE, returns=("out", "threshold")), "returns has the output 'threshold'; expected some of out, lse"),
        (lambda op: op.decode(Q, WHOLE, WHOLE, mask=TABLE), "mask has the type ndarray; expected a mask of attune.masks"),
    ],
)
def test_wrong_calls(call, text):
    with pytest.raises(attune.Error) as e:
        call(attune.op("softmax"))
    assert text in str(e.value)


def test_places_behind_the_last_page_of_a_sequence_may_be_minus_1():
    op = attune.op("softmax")
    expected = op.decode(Q, PAGES, PAGES, TABLE, [16, 8])
    assert np.array_equal(op.decode(Q, PAGES, PAGES, [[0, 1], [2, -1]], [16, 8]), expected)


def test_wrong_scales():
    codes = np.ones((2, 2, 8, 5), np.uint8)
    op = attune.op("softmax")
    with pytest.raises(attune.Error, match=r"v_scale has the shape \(3,\); expected a number, or \(2,\), one for each head"):
        op.decode(Q, codes, codes, float8="e4m3fn", v_scale=np.ones(3))
    with pytest.raises(attune.Error, match="the scale of k has the value nan for head 0; expected a finite number"):
        op.decode(Q, codes, codes, float8="e4m3fn", k_scale=np.nan)
    with pytest.raises(attune.Error, match="q has the type float64; expected float32, bfloat16 or float16 next to"):
        op.decode(Q.astype(float), codes, codes, float8="e4m3fn")


def test_operators_without_decode(monkeypatch):
    """They are refused before a compiler runs."""
    monkeypatch.setattr(attune._compile, "compiled", None)
    for name in ("entmax15", "sparsemax"):
        assert not attune.op(name).decodes
        with pytest.raises(attune.Error, match=f"decode has the operator {name}; expected one without a candidate set"):
            attune.op(name).decode(Q, WHOLE, WHOLE)
    assert attune.op("softmax").decodes
    half = [x.astype(np.float16) for x in (Q, WHOLE, WHOLE)]
    with pytest.raises(attune.Error, match="bias has the type float16; expected float32 or float64 throughout"):
        attune.op("biased").decode(*half, bias=np.ones((1, 8), np.float16))


def test_later_calls_of_the_same_shape_have_their_own_numbers(rng):
    """A call of known shapes and types changes addresses, lengths, pages and factors alone."""
    op = attune.op("softmax")
    mask = masks.causal()

    def numbers():
        lengths = rng.integers(2, 33, 2)
        q = rng.standard_normal((2, 4, 2, 8)).astype(np.float32)
        k, v = (rng.standard_normal((2, 2, 32, 8)).astype(np.float32) for _ in range(2))
        (k_pages, v_pages), table = in_pages(rng, (k, v), [32, 32], 8)
        return (q, k_pages, v_pages, table.astype(rng.choice([np.int32, np.int64])), lengths), (q, k, v, lengths)

    op._plans.found.clear()
    for _ in range(5):
        given, whole = numbers()
        out, lse = op.decode(*given, mask=mask, returns=("out", "lse"))
        q, k, v, lengths = whole
        expected = one_by_one(op, {"q": q}, (k, v), lengths, mask=mask)
        assert np.abs(out - expected[0]).max() < 2e-6 and np.abs(lse - expected[1]).max() < 2e-6
    assert len([key for key in op._plans.found if key[0] == "decode"]) == 1
    (q, k_pages, v_pages, table, lengths), _ = numbers()
    with pytest.raises(attune.Error, match=r"lengths\[1\] has the value 33"):
        op.decode(q, k_pages, v_pages, table, np.array([3, 33]), mask=mask, returns=("out", "lse"))

    bytes_of_keys, bytes_of_values = (rng.integers(0, 120, (2, 2, 32, 8)).astype(np.uint8) for _ in range(2))
    results = []
    for scale in (0.5, 1.0, 2.0):
        results.append(op.decode(q, bytes_of_keys, bytes_of_values, v_scale=scale, float8="e4m3fn"))
    assert np.array_equal(results[0] * 2, results[1]) and np.array_equal(results[1] * 2, results[2])
