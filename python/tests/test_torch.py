# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""attune.torch: gradients, torch.compile, the drop-in function, modules; and in which words the rest is refused."""

import inspect
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

import attune  # noqa: E402
import attune.torch as at  # noqa: E402
import dense  # noqa: E402
from attune import masks  # noqa: E402


def tensors(rng, *shapes, dtype=torch.float64, grad=True):
    return [torch.from_numpy(rng.standard_normal(s)).to(dtype).requires_grad_(grad) for s in shapes]


def arguments_of(op, rng, batch=1, groups=2, heads=4, queries=3, keys=5, width=4, dtype=torch.float64):
    """Tensors for every input, parameter and table of an operator: numbers that its description says are legal."""
    d, given = op._description, {}
    for name, side, narrow in zip(d.fields, d.sides, d.narrow):
        last = 1 if narrow else 2 if name in ("center", "spread", "place") else width
        shape = {
            "query": (batch, heads, queries, last),
            "key": (batch, groups, keys, last),
            "pair": (1, 1, queries, keys),
            "ground": (1, heads, 1, width),
        }[side]
        if name == "v" or name == "value_gate":
            shape = (batch, heads, keys, width)
        x = torch.from_numpy(rng.standard_normal(shape)).to(dtype)
        if name == "sort_k":
            x[:, :, 0] -= 5  # every query sees a key below it: where all masses are 0, lse is -inf and has no gradient
        given[name] = x.abs() + 0.5 if name in ("spread", "bias") else x  # a bias may be a prior, which is positive
    for p in op._functions.description["parameters"]:
        low = {"positive": 0.6, "above_one": 1.6, "one_to_four": 1.2}.get(p["domain"], -0.3)
        given[p["path"]] = low + 0.6 * torch.from_numpy(rng.random(heads)).to(torch.float64)
    for t in op._functions.description["tables"]:
        rows = 8 if "bidirectional" in op.constants else 11  # T5 takes an even number
        rows = 1 if t["columns"] == "query_row" else rows
        columns = {"one": 1, "any": 4}.get(t["columns"], width)
        given[t["path"]] = torch.from_numpy(rng.random((1, heads, rows, columns)))
    return given


@pytest.mark.parametrize("layout", ["bhld", "blhd"])
def test_outputs_are_dense_in_every_call_whatever_the_strides_of_q(layout):
    whole = torch.randn(2, 4, 4, 32)
    likes = [whole[..., :8], whole[..., :8].contiguous(), whole.transpose(1, 2)[..., :8], whole[:, :1, :, :8].expand(2, 4, 4, 8)]
    likes += [torch.randn(4, 2, 8, 4).permute(1, 0, 3, 2), torch.randn(2, 4, 4, 8).transpose(1, 2)]
    k, v = torch.randn(2, 4, 4, 8), torch.randn(2, 4, 4, 8)
    for q in likes:
        expected = at.softmax(q.contiguous(), k, v, layout=layout, returns=("out", "lse"))[0]
        for _ in range(3):
            out = at.softmax(q, k, v, layout=layout)
            assert out.is_contiguous() and torch.equal(out, expected)


@pytest.mark.parametrize("name", attune.presets(built=True))
def test_gradcheck_of_every_preset(name, rng, many):
    """By every input, parameter and table, through out, lse and ground weight."""
    op = attune.op(name)
    given = arguments_of(op, rng)
    names = list(given)
    assert len(names) == len(op.fields) + len(op.parameters) + len(op.tables)
    returns = tuple(n for n in op.outputs if n != "threshold")
    constants = {n: 2 for n in ("k", "constant_k") if n in op._description.names and n not in op.fields}  # of top_k
    xs = [x.requires_grad_() for x in given.values()]

    for mask in (masks.causal(), None) if many else (masks.causal(),):

        def f(*xs):
            out = at.attend(op, mask=mask, returns=returns, **constants, **dict(zip(names, xs)))
            return out if isinstance(out, tuple) else (out,)

        assert torch.autograd.gradcheck(f, xs, atol=1e-6, rtol=1e-5), (name, mask)


def test_values_of_bf16_and_threads(rng):
    q, k, v = tensors(rng, (2, 4, 33, 16), (2, 2, 40, 16), (2, 2, 40, 16), dtype=torch.bfloat16)
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            out, lse = at.softmax(q, k, v, mask=masks.causal(), returns=("out", "lse"))
            assert out.dtype == torch.bfloat16 and lse.dtype == torch.float32
            results.append((out, *torch.autograd.grad(out.float().square().sum() + lse.sum(), (q, k, v))))
        for other in results[1:]:
            assert all(torch.equal(a, b) for a, b in zip(results[0], other))
    finally:
        torch.set_num_threads(before)
    i, j = np.arange(33)[:, None] + 7, np.arange(40)
    expected, _ = dense.softmax(*(x.detach().float().numpy() for x in (q, k, v)), j <= i)
    assert np.abs(results[0][0].detach().float().numpy() - expected).max() < 0.02


def test_drop_in_is_pytorchs_function(rng, many):
    for number in range(200 if many else 40):
        lead = [(), (3,), (2, 4), (2, 1, 4)][number % 4]
        queries, keys, width, values = (int(n) for n in rng.integers(1, 9, 4))
        q, k, v = tensors(rng, (*lead, queries, width), (*lead, keys, width), (*lead, keys, values))
        more = {}
        kind = rng.integers(4)
        if kind == 1:
            more["is_causal"] = True
        if kind == 2:
            table = rng.random((queries, keys)) < 0.7
            table[:, 0] = True  # PyTorch has NaN in rows that see nothing
            more["attn_mask"] = torch.from_numpy(table)
        if kind == 3:
            (more["attn_mask"],) = tensors(rng, (*lead[-1:], queries, keys))
        if rng.random() < 0.3:
            more["scale"] = 0.3
        mine, theirs = at.scaled_dot_product_attention(q, k, v, **more), F.scaled_dot_product_attention(q, k, v, **more)
        assert mine.shape == theirs.shape and torch.allclose(mine, theirs, atol=1e-12), (number, lead, more)
        inputs = [q, k, v, *(x for x in more.values() if isinstance(x, torch.Tensor) and x.requires_grad)]
        for a, b in zip(*(torch.autograd.grad(x.square().sum(), inputs, allow_unused=True) for x in (mine, theirs))):
            assert torch.allclose(a, b, atol=1e-11), (number, lead, more)


def test_drop_in_broadcasts_what_pytorch_broadcasts(rng):
    q, k, v, one_k, one_v = tensors(rng, (2, 3, 6, 4), (2, 3, 6, 4), (2, 3, 6, 4), (1, 3, 6, 4), (1, 1, 6, 4))
    cases = [((q, k, v), shape) for shape in ((6, 1), (2, 1, 1, 1), (1, 3, 1, 6), (1, 6))]
    cases += [((q, one_k, v), None), ((q, one_k, one_v), (6, 1)), ((one_v, k, one_k), None)]
    cases += [((q[:, :1], k, v), (2, 3, 6, 6)), ((q[None], k[:, None], one_v[None]), (2, 1, 6, 1)), ((q[0, :1], k[0], v[0]), None)]
    for xs, shape in cases:
        more = {} if shape is None else {"attn_mask": tensors(rng, shape)[0]}
        mine, theirs = at.scaled_dot_product_attention(*xs, **more), F.scaled_dot_product_attention(*xs, **more)
        assert mine.shape == theirs.shape and torch.allclose(mine, theirs, atol=1e-12), ([x.shape for x in xs], shape)
        inputs = [q, k, v, one_k, one_v, *more.values()]
        for a, b in zip(*(torch.autograd.grad(x.square().sum(), inputs, allow_unused=True) for x in (mine, theirs))):
            assert (a is None) == (b is None) and (a is None or torch.allclose(a, b, atol=1e-11)), shape
    with pytest.raises(attune.Error, match=r"key has the batch axes \(3,\) and value \(3,\); expected \(2,\), as query, or 1"):
        at.scaled_dot_product_attention(q, *tensors(rng, *[(3, 3, 6, 4)] * 2))


def test_drop_in_with_gqa_and_refusals(rng):
    q, k, v = tensors(rng, (2, 4, 3, 5), (2, 2, 6, 5), (2, 2, 6, 5))
    assert torch.allclose(
        at.scaled_dot_product_attention(q, k, v, enable_gqa=True), F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    )
    with pytest.raises(attune.Error, match="key has 2 heads and value 2; expected 4, as query; or enable_gqa=True"):
        at.scaled_dot_product_attention(q, k, v)
    with pytest.raises(attune.Error, match="attn_mask has the type torch.int64; expected bool, or a real type"):
        at.scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(3, 3, dtype=torch.int64))
    with pytest.raises(attune.Error, match="dropout_p has the value 1.5"):
        at.scaled_dot_product_attention(q, k, v, dropout_p=1.5, enable_gqa=True)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_a_mask_of_a_wider_type_is_added_as_it_is(kind, rng):
    """Between 16-bit tensors a mask of float32 was rounded to 16 bits: 1000 and 1001 are the same number in bfloat16."""
    q, k, v = torch.zeros(1, 1, 1, 4, dtype=kind), torch.zeros(1, 1, 2, 4, dtype=kind), torch.tensor([[[[0.0], [1.0]]]], dtype=kind)
    mask = torch.tensor([[4000.0, 4001.0]], requires_grad=True)
    out = at.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert out.dtype == kind and abs(out.item() - 0.7310586) < 0.002
    out.float().sum().backward()
    assert mask.grad.dtype == torch.float32 and torch.allclose(mask.grad, torch.tensor([[-0.1966119, 0.1966119]]), atol=1e-6)

    q, k, v = tensors(rng, (2, 3, 6, 4), (2, 3, 9, 4), (2, 3, 9, 4), dtype=kind)
    (wide,) = tensors(rng, (6, 9), dtype=torch.float32)
    for mask in (wide, wide.detach().to(torch.float64).requires_grad_()):
        xs = [x.detach().to(mask.dtype).requires_grad_() for x in (q, k, v)]
        out = at.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        exact = at.scaled_dot_product_attention(*xs, attn_mask=mask)
        assert torch.equal(out, exact.to(kind))  # the output is rounded once
        dout = torch.randn_like(out)
        mine = torch.autograd.grad(out, [q, k, v, mask], dout)
        theirs = torch.autograd.grad(exact, [*xs, mask], dout.to(mask.dtype))
        assert all(torch.equal(a, b.to(a.dtype)) for a, b in zip(mine, theirs))
        assert [x.dtype for x in mine] == [kind] * 3 + [mask.dtype]
    other = torch.float16 if kind == torch.bfloat16 else torch.bfloat16  # neither type has the numbers of the other
    mask = wide.detach().to(other)
    assert torch.equal(
        at.scaled_dot_product_attention(q, k, v, attn_mask=mask), at.scaled_dot_product_attention(q, k, v, attn_mask=mask.float())
    )
    mask = wide.detach().to(kind)  # the type of q: a call of the preset
    assert torch.equal(at.scaled_dot_product_attention(q, k, v, attn_mask=mask), at.biased(q, k, v, bias=mask))
    assert torch.equal(
        at.scaled_dot_product_attention(q.float(), k.float(), v.float(), attn_mask=mask),
        at.biased(q.float(), k.float(), v.float(), bias=mask.float()),
    )
    with torch.autocast("cpu", dtype=kind):  # which makes every input of its type, as PyTorch does
        out = at.scaled_dot_product_attention(q.float(), k.float(), v.float(), attn_mask=wide)
    assert torch.equal(out, at.biased(q, k, v, bias=wide.to(kind)))


def test_a_mask_of_float64_beside_float32(rng):
    q, k, v = tensors(rng, (2, 3, 6, 4), (2, 3, 9, 4), (2, 3, 9, 4), dtype=torch.float32)
    (mask,) = tensors(rng, (6, 9))
    out = at.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    exact = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), attn_mask=mask)
    assert out.dtype == torch.float32 and torch.equal(out, exact.float())
    assert torch.autograd.grad(out.sum(), mask)[0].dtype == torch.float64


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16])
def test_dropout_of_every_key(kind):
    """Zeros with gradients of zeros, whatever the numbers are."""
    huge = torch.full((2, 3, 40, 64), 200.0, dtype=kind)
    v = huge.clone()
    v[:, :, 20:] = float("nan")
    v[:, :, 0] = float("inf")
    for mask in (None, torch.ones(40, 40), torch.ones(40, 40, dtype=torch.bool)):
        xs = [x.clone().requires_grad_() for x in (huge, huge, v)]
        if mask is not None and mask.is_floating_point():
            xs.append(mask.requires_grad_())
        out = at.scaled_dot_product_attention(*xs[:3], attn_mask=xs[3] if len(xs) > 3 else mask, dropout_p=1.0)
        assert out.dtype == kind and out.shape == huge.shape and not out.any()
        for x, g in zip(xs, torch.autograd.grad(out.float().sum(), xs)):
            assert g.shape == x.shape and g.dtype == x.dtype and not g.any()
    for n in range(3):  # one of them alone
        xs = [x.clone().requires_grad_(n == i) for i, x in enumerate((huge, huge, v))]
        at.scaled_dot_product_attention(*xs, dropout_p=1.0).float().sum().backward()
        assert not xs[n].grad.any()
    assert at.scaled_dot_product_attention(*(x[0] for x in (huge, huge, v)), dropout_p=1).shape == huge[0].shape


def test_no_heads_are_an_empty_result():
    q = torch.zeros(2, 0, 3, 4, requires_grad=True)
    out = at.scaled_dot_product_attention(q, q, q)
    out.sum().backward()
    assert out.shape == q.grad.shape == q.shape


@pytest.mark.skipif("softmax_dropout" not in attune.presets(built=True), reason="built without softmax_dropout")
def test_dropout(rng):
    q, k, v = tensors(rng, (1, 2, 60, 4), (1, 2, 50, 4), (1, 2, 50, 50), grad=False)
    v[:] = torch.eye(50)  # outputs are weights
    plain = at.softmax(q, k, v)
    torch.manual_seed(7)
    first = at.scaled_dot_product_attention(q, k, v, dropout_p=0.25)
    torch.manual_seed(7)
    assert torch.equal(first, at.scaled_dot_product_attention(q, k, v, dropout_p=0.25))
    kept = first != 0
    assert torch.allclose(first[kept], plain[kept] / 0.75) and abs(kept.double().mean() - 0.75) < 0.03
    assert not torch.equal(first, at.scaled_dot_product_attention(q, k, v, dropout_p=0.25))


def test_compile_without_breaks_and_with_dynamic_lengths(rng):
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()

    def f(q, k, v, logit, table):
        out, ground = at.sink(q, k, v, logit=logit, mask=masks.causal() & masks.visible(table), returns=("out", "ground_weight"))
        return out.sin() * ground.unsqueeze(-1)

    mask = torch.from_numpy(rng.random((70, 70)) < 0.8)
    for backend, dynamic in (("aot_eager", False), (counter, True)):
        g = torch.compile(f, fullgraph=True, backend=backend, dynamic=dynamic)
        for length in (9, 17, 33) if dynamic else (9,):
            q, k, v, logit = tensors(rng, *[(2, 4, length, 6)] * 3, (4,))
            expected, got = (h(q, k, v, logit, mask[:length, :length]) for h in (f, g))
            assert torch.equal(expected, got)
            for a, b in zip(*(torch.autograd.grad(x.sum(), (q, k, v, logit)) for x in (expected, got))):
                assert torch.equal(a, b)
    assert counter.frame_count == 1


def graphs_of(f, calls):
    """The number of graphs that torch.compile makes for these calls, whose results are those of f."""
    from torch._dynamo.testing import CompileCounter

    torch._dynamo.reset()
    counter = CompileCounter()
    g = torch.compile(f, fullgraph=True, backend=counter)
    for x in calls:
        assert torch.equal(g(*x), f(*x)), x
    return counter.frame_count


@pytest.mark.skipif("softmax_dropout" not in attune.presets(built=True), reason="built without softmax_dropout")
def test_compile_keeps_numbers_that_change(rng):
    """More calls than torch compiles a function anew for: with fullgraph=True that would be an error."""
    q, k, v = tensors(rng, *[(1, 2, 9, 4)] * 3, grad=False)
    many = range(1, 12)
    assert graphs_of(lambda s: at.softmax(q, k, v, scale=s), [(0.1 * n,) for n in many]) == 2
    assert graphs_of(lambda s: at.softmax_dropout(q, k, v, rate=0.5, seed=s), [(2**53 - n,) for n in many]) == 2
    assert graphs_of(lambda s: at.softmax_dropout(q, k, v, seed=s), [(torch.tensor(n),) for n in many]) == 1
    assert graphs_of(lambda n: at.softmax(q, k, v, mask=masks.window(n, 0)), [(n,) for n in many]) == 2
    assert graphs_of(lambda n: at.softmax(q, k, v, mask=masks.prefix(n)), [(n,) for n in many]) == 2
    assert graphs_of(lambda n: at.softmax(q, k, v, mask=masks.sink_window(2, n)), [(n,) for n in many]) == 2
    assert graphs_of(lambda n: at.softmax(q, k, v, mask=masks.causal(), offset=n), [(n,) for n in many]) == 2
    assert repr(masks.window(3, None) & masks.prefix(2)) == "(masks.window(3, None) & masks.prefix(2))"


@pytest.mark.skipif("softmax_dropout" not in attune.presets(built=True), reason="built without softmax_dropout")
def test_dropout_compiles(rng):
    q, k, v = tensors(rng, *[(1, 2, 9, 4)] * 3)
    f = lambda q: at.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    g = torch.compile(f, fullgraph=True, backend="aot_eager")
    found = []
    for h in (f, g):
        torch.manual_seed(7)
        out = h(q)
        found.append((out, *torch.autograd.grad(out.square().sum(), q)))
    assert all(torch.equal(a, b) for a, b in zip(*found))
    assert not torch.equal(g(q), g(q))


@pytest.mark.skipif("softmax_dropout" not in attune.presets(built=True), reason="built without softmax_dropout")
def test_a_constant_may_be_a_tensor_of_one_number(rng):
    q, k, v = tensors(rng, *[(1, 2, 9, 4)] * 3, grad=False)
    for n in (3, 5, 3):
        expected = at.softmax_dropout(q, k, v, seed=n)
        assert torch.equal(at.softmax_dropout(q, k, v, seed=torch.tensor(n)), expected)
        assert torch.equal(attune.op("softmax_dropout")(q, k, v, seed=torch.tensor(n)), expected)
    with pytest.raises(attune.Error, match="seed has 1 axes; expected a number, or a tensor of one number without axes"):
        at.softmax_dropout(q, k, v, seed=torch.tensor([3]))


def test_lists_of_numbers_compile(rng):
    q, k, v = tensors(rng, *[(2, 2, 9, 4)] * 3, grad=False)
    f = lambda q: at.sink(q, k, v, logit=[0.5, 1], mask=masks.causal(), offset=[0, 3])
    expected = at.sink(q, k, v, logit=torch.tensor([0.5, 1]), mask=masks.causal(), offset=torch.tensor([0, 3]))
    assert torch.equal(torch.compile(f, fullgraph=True, backend="aot_eager")(q), expected)
    with pytest.raises(attune.Error, match="logit has the value .*; expected a number or an array of numbers"):
        at.sink(q, k, v, logit=[0.5, "one"])


def test_tracers_record_the_operator(rng):
    """A program that a tracer recorded computes the attention of other tensors."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    f = lambda q, k, v: at.softmax(q, k, v, mask=masks.causal())
    first, others = tensors(rng, *[(1, 2, 5, 3)] * 3, grad=False), tensors(rng, *[(1, 2, 5, 3)] * 3, grad=False)
    expected = f(*others)
    f(*first)  # a call that looks like an earlier one takes a shorter way
    programs = [make_fx(f, tracing_mode=mode)(*first) for mode in ("real", "fake", "symbolic")]
    programs += [make_fx(f, pre_dispatch=True)(*first), torch.jit.trace(f, first)]
    for program in programs:
        assert torch.equal(program(*others), expected)
    q = others[0].clone().requires_grad_()
    gradient = torch.func.grad(lambda *x: f(*x).square().sum())
    (theirs,) = torch.autograd.grad(programs[-1](q, *others[1:]).square().sum(), q)
    assert torch.equal(make_fx(gradient)(*first)(*others), gradient(*others))
    assert torch.equal(theirs, gradient(*others))
    with FakeTensorMode() as mode:
        q, k, v = (mode.from_tensor(x) for x in first)
        out, lse = at.softmax(q, k, v, returns=("out", "lse"))
    assert type(out) is type(q) and out.shape == (1, 2, 5, 3) and lse.shape == (1, 2, 5)
    assert type(at.softmax(q, k, v)) is type(q)


def test_an_exported_program_runs_in_a_new_process(rng, tmp_path):
    class Model(torch.nn.Module):
        def forward(self, x, logit):
            return at.sink(x, x, x, logit=logit, mask=masks.causal())

    x, logit = tensors(rng, (1, 2, 5, 3), (2,), grad=False)
    torch.export.save(torch.export.export(Model(), (x, logit)), tmp_path / "model.pt2")
    torch.save((x, logit, Model()(x, logit)), tmp_path / "tensors.pt")
    program = (
        "import sys, torch, attune.torch\n"
        "x, logit, expected = torch.load(sys.argv[1] + '/tensors.pt')\n"
        "model = torch.export.load(sys.argv[1] + '/model.pt2').module()\n"
        "assert torch.equal(model(x, logit), expected)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)


def test_a_recorded_operator_must_be_there(rng):
    x = tensors(rng, *[(1, 2, 5, 3)] * 3, grad=False)
    with pytest.raises(attune.Error, match="the operator gone of attune.compile; expected an operator of this process"):
        torch.ops.attune.attend(x, [], x[0].new_empty(0), "gone", "q,k,v;", [], [0, -1, 0, 0], "out")


def test_the_operator_of_torch_library(rng):
    q, k, v, s = tensors(rng, *[(1, 2, 5, 3)] * 3, (2,))
    at.attend(attune.op("sink"), q, k, v, logit=s)
    half = torch.tensor([0.5], dtype=torch.float64)
    args = ([q, k, v, s], [], half, "sink", "q,k,v,logit;scale", [1, 0, 0, -1, -1], [0, -1, 1, 0], "out,lse,ground_weight")
    torch.library.opcheck(torch.ops.attune.attend, args)


def test_transforms_work_or_are_refused_in_words(rng):
    q, k, v = tensors(rng, *[(1, 2, 5, 3)] * 3)
    f = lambda q: at.softmax(q, k, v).square().sum()
    (expected,) = torch.autograd.grad(f(q), q)
    assert torch.equal(torch.func.grad(f)(q), expected)
    assert torch.equal(torch.func.vjp(f, q)[1](torch.ones((), dtype=torch.float64))[0], expected)
    (first,) = torch.autograd.grad(f(q), q, create_graph=True)
    assert torch.equal(first, expected)
    with pytest.raises(NotImplementedError, match="attune: second derivatives of an operator"):
        first.sum().backward()
    with pytest.raises(NotImplementedError, match="attune: torch.vmap over an operator"):
        torch.vmap(lambda q: at.softmax(q, k, v))(torch.ones(3, 1, 2, 5, 3, dtype=torch.float64))
    with pytest.raises(NotImplementedError, match="attune: forward-mode derivatives"):
        torch.func.jvp(lambda q: at.softmax(q, k.detach(), v.detach()), (q.detach(),), (q.detach(),))
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.equal(torch.autograd.grad(f(q), q)[0], expected)
    finally:
        torch.use_deterministic_algorithms(False)


def test_autocast(rng):
    q, k, v = tensors(rng, *[(1, 2, 5, 3)] * 3, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = at.softmax(q, k, v)
    assert out.dtype == torch.bfloat16
    assert torch.equal(out, at.softmax(q.bfloat16(), k.bfloat16(), v.bfloat16()))
    out.float().sum().backward()
    assert q.grad.dtype == torch.float32


def test_integers_and_devices_are_refused(rng):
    q, k, v = tensors(rng, *[(1, 2, 5, 3)] * 3)
    with pytest.raises(attune.Error, match="q has the type int64; expected float32 or float64"):
        at.softmax(q.long(), k, v)
    with pytest.raises(attune.Error, match="k has the device cpu; expected meta, the device of q"):
        at.softmax(q.detach().to("meta"), k, v)
    with pytest.raises(attune.Error, match="q has the layout torch.sparse_coo; expected a dense tensor"):
        at.softmax(q.detach()[0, 0].to_sparse(), k, v)
    with pytest.raises(attune.Error, match=r"q has the type torch.quint8, a quantized tensor; expected its numbers: x.dequantize\(\)"):
        at.softmax(torch.quantize_per_tensor(q.detach().float(), 0.1, 0, torch.quint8), k.detach().float(), v.detach().float())
    with pytest.raises(attune.Error, match="k has the type ndarray; expected a tensor of torch"):
        at.softmax(q, k.detach().numpy(), v)
    with pytest.raises(attune.Error, match=r"mask has the type Tensor; expected .* masks.visible\(table\)"):
        at.softmax(q, k, v, mask=torch.ones(5, 5, dtype=torch.bool))
    with pytest.raises(TypeError, match="has no argument 'gamma'"):
        at.softmax(q, k, v, gamma=1)
    with pytest.raises(TypeError, match=r"has no argument 'is_causal'; .* In its place: mask=masks.causal\(\)"):
        at.softmax(q, k, v, is_causal=True)


def test_modules(rng):
    theirs = torch.nn.MultiheadAttention(24, 4, batch_first=True, dtype=torch.float64)
    mine = at.MultiheadAttention(24, 4).double()
    mine.load_state_dict(theirs.state_dict())
    (x,) = tensors(rng, (2, 7, 24))
    assert torch.allclose(mine(x), theirs(x, x, x)[0])
    for shape in ((7, 24), (2, 7, 23)):
        with pytest.raises(attune.Error, match=r"key has the shape .*; expected \(batch, length, 24\)"):
            mine(x, torch.ones(shape, dtype=torch.float64))
    layer = at.Attention("principled", heads=4, mask=masks.causal())
    assert sorted(n for n, _ in layer.named_parameters()) == [
        "gate_beta",
        "length_scale_alpha",
        "length_scale_gamma",
        "normalizer_gamma",
    ]
    q, k, v, gq, gk = tensors(rng, *[(2, 4, 5, 3)] * 5)
    layer(q, k, v, gate_q=gq, gate_k=gk).sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in layer.parameters())
    same = pickle.loads(pickle.dumps(layer))
    assert torch.equal(same(q, k, v, gate_q=gq, gate_k=gk), layer(q, k, v, gate_q=gq, gate_k=gk))
    sunk = at.MultiheadAttention(24, 4, op="sink", parameters={"logit": 3.0}).double()
    with pytest.raises(RuntimeError, match="Missing key.*attention.logit"):
        sunk.load_state_dict(theirs.state_dict())
    sunk.load_state_dict(theirs.state_dict(), strict=False)
    out, lse = sunk(x, returns=("out", "lse"))
    assert torch.equal(out, sunk(x)) and lse.shape == (2, 4, 7)
    with pytest.raises(attune.Error, match=r"returns has the value \('lse',\); expected \"out\", alone or with others"):
        sunk(x, returns="lse")
    with pytest.raises(attune.Error, match="heads has the values 0 and key_heads 0"):
        at.MultiheadAttention(24, 0)
    grouped = at.MultiheadAttention(24, 4, op="sink", key_heads=2, parameters={"logit": 0.0}).double()
    grouped(x).sum().backward()
    assert grouped.attention.logit.grad.shape == (4,)


def test_types_and_names_of_learned_parameters():
    start = torch.zeros(2, dtype=torch.float64)
    layer = at.Attention("sink", 2, parameters={"logit": start})
    assert layer.logit.dtype == torch.float64
    assert at.Attention("sink", 2, parameters={"logit": torch.tensor(1)}).logit.dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert at.Attention("sink", 2, parameters={"logit": 0.5}).logit.dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    same = "normalizer.logit has a value, and so has logit, which is the same argument; expected one of them"
    with pytest.raises(attune.Error, match=same):
        at.Attention("sink", 2, parameters={"logit": 0.3, "normalizer.logit": 0.1})
    x = torch.ones(1, 2, 3, 4)
    with pytest.raises(attune.Error, match=same):
        layer(x, x, x, **{"normalizer.logit": 0.1})


def test_a_module_of_16_bits_learns_its_parameters(rng):
    q, k, v = tensors(rng, *[(1, 2, 5, 4)] * 3, dtype=torch.bfloat16)
    layer = at.Attention("sink", 2, parameters={"logit": 0.3}).bfloat16()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    found = []
    for f in (layer, layer, compiled):
        (g,) = torch.autograd.grad(f(q, k, v).float().square().sum(), layer.logit)
        assert g.dtype == torch.bfloat16
        found.append(g)
    logit = layer.logit.detach().float().requires_grad_()
    (exact,) = torch.autograd.grad(at.sink(q, k, v, logit=logit).float().square().sum(), logit)
    assert all(torch.equal(g, exact.bfloat16()) for g in found) and exact.abs().min() > 0
    assert torch.equal(attune.op("sink")(q.detach(), k.detach(), v.detach(), logit=layer.logit.detach()), layer(q, k, v))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_data_loaders_that_fork(rng):
    class Items(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, n):
            x = torch.full((1, 2, 5, 3), float(n))
            return at.softmax(x, x, x)

    at.softmax(*tensors(rng, *[(1, 4, 70, 8)] * 3))  # the threads of this process run
    found = torch.cat(list(torch.utils.data.DataLoader(Items(), batch_size=None, num_workers=2)))
    assert torch.equal(found[:, 0, 0, 0], torch.arange(4.0))


def test_errors_with_gradients_name_arguments_of_the_call(rng):
    q, k, v = tensors(rng, (2, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4))
    for grads in (True, False):
        given = [x if grads else x.detach() for x in (q, k, v)]
        with pytest.raises(attune.Error, match="^attune: k has batch extent 1; expected 2, the batch of q$"):
            at.softmax(*given)
        with pytest.raises(attune.Error, match="^attune: k has feature extent 4; expected 3, the width of q$"):
            at.softmax(given[0][:1, ..., :3], *given[1:])
    logit = [0.5, 1]
    out = at.sink(q[:1], k, v, logit=logit, mask=masks.causal(), offset=[2])
    assert torch.equal(out, at.sink(q[:1], k, v, logit=torch.tensor(logit).double(), mask=masks.causal(), offset=2))


def test_block_masks_of_flex_attention(rng):
    from torch.nn.attention.flex_attention import create_block_mask

    block = create_block_mask(lambda b, h, i, j: (i >= j) & ((i - j) < 9 * (h + 1)), 1, 2, 40, 40, device="cpu")
    q, k, v = tensors(rng, *[(1, 2, 40, 4)] * 3)
    i, j = np.arange(40)[:, None], np.arange(40)
    seen = np.stack([(i >= j) & (i - j < 9), (i >= j) & (i - j < 18)])[None]
    expected, _ = dense.softmax(*(x.detach().numpy() for x in (q, k, v)), seen)
    assert np.allclose(at.softmax(q, k, v, mask=masks.from_block_mask(block)).detach().numpy(), expected)


def test_calls_that_look_alike():
    """A call that looks like the one before takes a shorter way. It must notice every difference."""
    made = [[torch.randn(1, 2, length, 8, dtype=kind) for _ in "qkv"] for length in (3, 5) for kind in (torch.float32, torch.float64)]
    made.append([x.transpose(1, 2).contiguous().transpose(1, 2) for x in made[0]])  # other strides
    options = [{}, {"mask": masks.causal()}, {"mask": masks.causal(), "offset": 1}, {"returns": ("out", "lse")}, {"threads": 1}]
    order = [(a, b) for _ in range(2) for a in range(len(made)) for b in range(len(options))]
    order += [(a, b) for a, b in reversed(order)] + [(a, b) for b in range(len(options)) for a in range(len(made))]
    for a, b in order:
        q, k, v = made[a]
        found = at.softmax(q, k, v, **options[b])
        exact = attune.op("softmax")(*(x.numpy() for x in made[a]), **{"returns": ("out",), **options[b]})
        for x, y in zip(found if isinstance(found, tuple) else (found,), exact if isinstance(exact, tuple) else (exact,)):
            assert x.dtype in (q.dtype, torch.float32) and np.array_equal(x.numpy(), y)


def test_forward_mode_and_batched_cotangents_are_refused(rng):
    from torch.autograd import forward_ad

    q, k, v = tensors(rng, *[(1, 2, 5, 3)] * 3)
    for requires in (False, True):
        with forward_ad.dual_level():
            moving = forward_ad.make_dual(q.detach().requires_grad_(requires), torch.ones_like(q))
            for call in (
                lambda: at.softmax(moving, k, v),
                lambda: attune.op("softmax")(moving, k, v),
                lambda: at.sink(q, k, v, logit=forward_ad.make_dual(torch.zeros(2).double(), torch.ones(2).double())),
                lambda: at.scaled_dot_product_attention(moving, k, v),
            ):
                with pytest.raises(NotImplementedError, match="forward-mode derivatives"):
                    call()
            assert torch.equal(at.softmax(q, k, v), at.softmax(q.detach(), k, v))  # nothing moves
    x = q.detach().requires_grad_()
    out = at.softmax(x, k, v)
    with pytest.raises(NotImplementedError, match="torch.vmap over an operator"):
        torch.autograd.grad(out, x, torch.ones(3, *out.shape, dtype=out.dtype), is_grads_batched=True)


def test_threshold_has_no_gradient_in_a_compiled_function(rng):
    (q, k, v) = tensors(rng, *[(1, 2, 5, 3)] * 3)
    q.requires_grad_()
    f = torch.compile(
        lambda q: at.entmax15(q, k, v, returns=("out", "threshold")), backend="aot_eager", fullgraph=True
    )
    out, threshold = f(q)
    assert out.requires_grad and not threshold.requires_grad


def test_outputs_are_on_the_cpu_whatever_the_default_device(rng):
    q, k, v = tensors(rng, *[(1, 2, 5, 3)] * 3)
    with torch.device("meta"):
        out, lse = at.softmax(q, k, v, returns=("out", "lse"))
        x = q.detach().requires_grad_()
        at.softmax(x, k, v).backward(torch.ones_like(out))
    assert out.device.type == lse.device.type == x.grad.device.type == "cpu"


def test_numbers_are_on_the_cpu_whatever_the_default_device(rng):
    """The seeds of dropout, and tensors that are made of lists."""
    q, k, v = tensors(rng, *[(2, 4, 5, 3)] * 3, grad=False)
    bias = torch.zeros(5, 5, dtype=torch.float64)
    offset = lambda: at.softmax(q, k, v, mask=masks.causal(), offset=[1, 2])  # noqa: E731
    sink, later = at.sink(q, k, v, logit=[0.1, 0.2, 0.3, 0.4]), offset()
    recorded = torch.compile(offset, backend="aot_eager")
    with torch.device("meta"):
        assert torch.equal(at.sink(q, k, v, logit=[0.1, 0.2, 0.3, 0.4]), sink)
        assert torch.equal(offset(), later) and torch.equal(recorded(), later)
        assert at.scaled_dot_product_attention(q, k, v, dropout_p=1).device.type == "cpu"
        if {"softmax_dropout", "biased_dropout"} <= set(attune.presets(built=True)):
            for mask in (None, bias):
                assert at.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=0.3).device.type == "cpu"
    if "softmax_dropout" in attune.presets(built=True):
        layer = at.Attention("softmax_dropout", heads=4).train()
        with torch.device("meta"):
            assert layer(q, k, v, rate=0.1).device.type == "cpu"


def test_a_preset_has_its_arguments_and_documentation():
    assert inspect.signature(at.sink) == inspect.signature(attune.op("sink")) and "logit" in inspect.signature(at.sink).parameters
    assert "out = attune.torch.sink(q, k, v, logit=2.0, mask=attune.masks.causal())" in at.sink.__doc__
    assert "e^a / (e^t + Σ e^a); logit t" in at.sink.__doc__
    with pytest.raises(AttributeError, match="attune.torch has no 'sofmax'; expected one of attune.presets... Did you mean softmax"):
        at.sofmax


def test_a_tensor_without_memory_is_zeros(rng):
    q, k, v = tensors(rng, *[(1, 2, 5, 3)] * 3, grad=False)
    none = torch._efficientzerotensor(q.shape, dtype=q.dtype)
    for _ in range(2):  # the second call has a plan
        assert torch.equal(at.softmax(none, k, v), at.softmax(torch.zeros_like(q), k, v))
        assert torch.equal(at.softmax(q.clone().requires_grad_(), k, none), torch.zeros_like(q))


@pytest.mark.skipif("softmax_dropout" not in attune.presets(built=True), reason="built without softmax_dropout")
def test_a_decimal_comma(tmp_path):
    """Descriptions of operators were no JSON after setlocale() of a locale with a decimal comma."""
    numbers = 'LC_NUMERIC\ndecimal_point "<U002C>"\nthousands_sep "<U002E>"\ngrouping 3;3\nEND LC_NUMERIC\n'
    (tmp_path / "source").write_text(numbers)
    try:  # it warns of the other categories, with status 1
        subprocess.run(["localedef", "-c", "-i", tmp_path / "source", tmp_path / "comma"], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("no localedef")
    program = (
        "import locale, torch, attune, attune.torch as at\n"
        "try:\n    locale.setlocale(locale.LC_NUMERIC, 'comma')\n"
        "except locale.Error:\n    raise SystemExit(77)\n"
        "assert locale.localeconv()['decimal_point'] == ','\n"
        "x = torch.ones(1, 1, 3, 2)\n"
        "at.scaled_dot_product_attention(x, x, x, dropout_p=0.5)\n"
        "assert attune.op('softmax_dropout').constants['rate'] == 0.1\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "LOCPATH": str(tmp_path)})
    if found.returncode == 77:
        pytest.skip("the machine cannot make a locale")
    assert found.returncode == 0, found.stderr


def test_nested_tensors_are_refused(rng):
    (x,) = tensors(rng, (1, 2, 5, 3))
    for layout in (torch.strided, torch.jagged):
        nested = torch.nested.nested_tensor([torch.ones(2, 4, 3), torch.ones(2, 4, 3)], layout=layout)
        with pytest.raises(attune.Error, match="q has a nested tensor; expected one sequence after another"):
            at.softmax(nested, x, x)
        with pytest.raises(attune.Error, match="q has a nested tensor"):
            attune.op("softmax")(nested, x, x)
