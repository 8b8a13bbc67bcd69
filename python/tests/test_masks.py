# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Masks: packs of sequences, copies of their arrays, and combinations that would be mistakes."""

import numpy as np
import pytest

import attune
import dense
from attune import masks


def tensors(rng, queries, keys, batch=1):
    return tuple(rng.standard_normal((batch, 2, n, 4)) for n in (queries, keys, keys))


# Masks within a sequence of nq queries and nk keys: query i is at position i + nk - nq.
WITHIN = [
    (lambda: masks.causal(), lambda i, j, p: j <= p),
    (lambda: masks.causal(align="start"), lambda i, j, p: j <= i),
    (lambda: masks.window(2, 1), lambda i, j, p: (p - 2 <= j) & (j <= p + 1)),
    (lambda: masks.prefix(2), lambda i, j, p: (j < 2) | (j <= p)),
    (lambda: masks.sink_window(1, 2), lambda i, j, p: (j <= p) & ((j < 1) | (j > p - 2))),
    (lambda: masks.causal() & masks.window(2, None), lambda i, j, p: (j <= p) & (j >= p - 2)),
    (lambda: masks.window(0, 0) | masks.prefix(1), lambda i, j, p: (j == p) | (j < 1) | (j <= p)),
]


@pytest.mark.parametrize("case", range(len(WITHIN)))
@pytest.mark.parametrize("pack", [([0, 2, 3], [0, 2, 12]), ([0, 1, 1, 4, 9], [0, 5, 6, 9, 20]), ([0, 3, 7], None)])
def test_positions_count_within_each_sequence_of_a_pack(rng, case, pack):
    make, rule = WITHIN[case]
    of_queries, of_keys = pack[0], pack[1] or pack[0]
    q, k, v = tensors(rng, of_queries[-1], of_keys[-1])
    seen = np.zeros((of_queries[-1], of_keys[-1]), bool)
    for s in range(len(of_queries) - 1):
        nq, nk = of_queries[s + 1] - of_queries[s], of_keys[s + 1] - of_keys[s]
        i, j = np.arange(nq)[:, None], np.arange(nk)
        seen[of_queries[s] : of_queries[s + 1], of_keys[s] : of_keys[s + 1]] = rule(i, j, i + nk - nq)
    expected = dense.softmax(q, k, v, seen)[0]
    mask, sequences = make(), masks.from_cu_seqlens(*pack)
    for each in (sequences & mask, mask & sequences, masks.full() & (mask & sequences), (sequences & mask) & sequences):
        assert np.allclose(attune.op("softmax")(q, k, v, mask=each), expected), each
    table = rng.random(seen.shape) < 0.5  # a mask of no positions, in the same expression
    out = attune.op("softmax")(q, k, v, mask=sequences & (mask | masks.visible(table)))
    s = [np.repeat(np.arange(len(ends) - 1), np.diff(ends)) for ends in (of_queries, of_keys)]
    assert np.allclose(out, dense.softmax(q, k, v, seen | (table & (s[0][:, None] == s[1])))[0])


def test_positions_of_two_packs_are_refused(rng):
    q, k, v = tensors(rng, 3, 3)
    two = masks.from_cu_seqlens([0, 1, 3]) & masks.from_cu_seqlens([0, 2, 3])
    assert np.allclose(attune.op("softmax")(q, k, v, mask=two), v)
    with pytest.raises(attune.Error, match="two from_cu_seqlens; expected one: positions count within its sequences"):
        attune.op("softmax")(q, k, v, mask=two & masks.causal())


def test_documents_with_other_ids_of_keys_need_an_offset_for_positions(rng):
    of_keys = np.array([0, 0, 1, 1, 1, 2])
    q, k, v = tensors(rng, 2, 6)
    op = attune.op("softmax")
    tail = masks.documents(of_keys[4:], of_keys) & masks.causal()
    seen = (of_keys[4:, None] == of_keys) & (np.arange(6) <= np.array([[4], [5]]))
    assert np.allclose(op(q, k, v, mask=tail), dense.softmax(q, k, v, seen)[0])
    middle = masks.causal() & masks.documents(of_keys[2:4], of_keys)
    with pytest.raises(attune.Error, match="offset has no value, and in .* the ids of queries are not the last ones"):
        op(q, k, v, mask=middle)
    seen = (of_keys[2:4, None] == of_keys) & (np.arange(6) <= np.array([[2], [3]]))
    assert np.allclose(op(q, k, v, mask=middle, offset=2), dense.softmax(q, k, v, seen)[0])
    assert op(q, k, v, mask=masks.documents(of_keys[2:4], of_keys)).shape == q.shape  # no positions


# Arrays, and masks of them.
OF_ARRAYS = {
    "padding": ([3], masks.padding),
    "documents": ([0, 0, 1, 1], masks.documents),
    "key_ids": ([0, 0, 1, 1], lambda x: masks.documents([1, 1, 0, 0], x)),
    "cu_seqlens": ([0, 1, 4], masks.from_cu_seqlens),
    "visible": (np.tri(4, dtype=bool), masks.visible),
    "block_sparse": (np.tri(2, dtype=bool), lambda x: masks.block_sparse(x, 2, 2)),
}


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("name", OF_ARRAYS)
def test_a_mask_keeps_its_keys_when_the_arrays_change(rng, kind, name):
    torch = pytest.importorskip("torch") if kind == "torch" else None
    q, k, v = tensors(rng, 4, 4)
    start, make = OF_ARRAYS[name]
    array = np.array(start)
    mask = make(torch.from_numpy(array) if torch else array)
    op = attune.op("softmax")
    before, by_v = op(q, k, v, mask=mask), op.vjp(q, k, v, mask=mask, dout=q)["v"]
    array[...] = array[::-1].copy() if array.size > 1 else 1
    assert np.array_equal(op(q, k, v, mask=mask), before) and np.array_equal(op.vjp(q, k, v, mask=mask, dout=q)["v"], by_v)


def test_a_gradient_does_not_change_with_the_lengths(rng):
    torch = pytest.importorskip("torch")
    import attune.torch as at

    q, k, v = (torch.from_numpy(x).requires_grad_() for x in tensors(rng, 3, 5, batch=2))
    gradients = []
    for changes in (False, True):
        lengths, offset, table = torch.tensor([4, 2]), torch.tensor([2, 0]), torch.ones(2, 1, 1, 5, dtype=torch.bool)
        mask = masks.padding(lengths) & masks.visible(table) & masks.causal()
        out = at.softmax(q, k, v, mask=mask, offset=offset)
        if changes:
            lengths.fill_(5), offset.fill_(1), table.fill_(False)
        gradients.append(torch.autograd.grad(out.square().sum(), (q, k, v)))
    assert all(torch.equal(a, b) for a, b in zip(*gradients))


def test_a_shared_axis_of_a_table_is_not_copied():
    table = np.broadcast_to(np.tri(64, dtype=bool), (8, 16, 64, 64))
    x = masks.visible(table)._x
    assert x.shape == table.shape and x.strides == (0, 0, 64, 1) and not np.shares_memory(x, table)
    torch = pytest.importorskip("torch")
    x = masks.visible(torch.from_numpy(np.tri(64, dtype=bool)).expand(8, 16, 64, 64))._x
    assert x.shape == table.shape and x.stride() == (0, 0, 64, 1) and x.untyped_storage().nbytes() == 64 * 64


def test_masks_are_neither_true_nor_false():
    for combine in (lambda a, b: a and b, lambda a, b: a or b, lambda a, b: not a):
        with pytest.raises(TypeError, match="combine masks by & and |"):
            combine(masks.causal(), masks.padding([2]))


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_integers_of_a_table_are_0_or_1(rng, kind):
    q, k, v = tensors(rng, 3, 3, batch=2)
    numbers = np.array([[1, 1, 0], [1, 1, 1]])  # attention_mask of a tokenizer
    x = pytest.importorskip("torch").from_numpy(numbers) if kind == "torch" else numbers
    out = attune.op("softmax")(q, k, v, mask=masks.visible(x[:, None, None]))
    assert np.array_equal(out, attune.op("softmax")(q, k, v, mask=masks.padding([2, 3])))
    with pytest.raises(attune.Error, match="table has the type .*int64 and other numbers than 0 and 1; expected bool"):
        masks.visible(x + 1)


def test_window_takes_integers_of_numpy():
    assert repr(masks.window(np.int64(-1), np.int32(0))._pack()) == repr(masks.window(-1, 0)._pack())


def test_block_masks_of_blocks_alone(rng):
    torch = pytest.importorskip("torch")
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    counts, columns = torch.tensor([[[1, 2, 1]]], dtype=torch.int32), torch.tensor([[[[1, 0], [0, 1], [0, 1]]]], dtype=torch.int32)
    block_mask = flex.BlockMask.from_kv_blocks(counts, columns, BLOCK_SIZE=(2, 3), seq_lengths=(5, 6))
    blocks = np.array([[0, 1], [1, 1], [1, 0]], bool)
    q, k, v = (torch.from_numpy(x) for x in tensors(rng, 5, 6))
    op = attune.op("softmax")
    found = op(q, k, v, mask=masks.from_block_mask(block_mask))
    assert torch.equal(found, op(q, k, v, mask=masks.visible(blocks.repeat(2, 0)[:5].repeat(3, 1))))


def test_block_masks_that_index_tensors(rng):
    torch = pytest.importorskip("torch")
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    import attune.torch as at

    ids, reach = torch.arange(70) // 20, torch.tensor([3, 9])
    for mod in (
        lambda b, h, i, j: (ids[i] == ids[j]) & (i >= j),
        lambda b, h, i, j: i - j < reach[h],
        lambda b, h, i, j: (i >= j) & (b >= 0),
    ):
        block_mask = flex.create_block_mask(mod, 2, 2, 70, 70, device="cpu")
        at_ = torch.meshgrid(*(torch.arange(n) for n in (2, 2, 70, 70)), indexing="ij")
        q, k, v = (torch.from_numpy(x) for x in tensors(rng, 70, 70, batch=2))
        expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mod(*at_))
        assert torch.allclose(at.softmax(q, k, v, mask=masks.from_block_mask(block_mask)), expected)


def test_masks_of_numbers_are_equal_by_content():
    make = [masks.full, masks.causal, lambda: masks.causal(align="start"), lambda: masks.window(3, 0), lambda: masks.window(2, 0)]
    make.append(lambda: masks.causal() & masks.prefix(2))
    for a, b in ((a, b) for a in range(len(make)) for b in range(len(make))):
        assert (make[a]() == make[b]()) == (a == b)
    assert len({each() for each in make * 2}) == len(make)
    one = masks.padding([1])  # with an array: itself alone
    assert one == one and one != masks.padding([1]) and masks.causal() != "causal()"
    with pytest.raises(TypeError, match="attune: a mask has no complement"):
        ~masks.causal()
