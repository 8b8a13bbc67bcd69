# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""at.MultiheadAttention in place of nn.MultiheadAttention: arguments, masks, weights, layers of PyTorch around it; start
values of parameters; modules and calls on the meta device."""

import copy
import itertools
import math

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import attune  # noqa: E402
import attune.torch as at  # noqa: E402
from attune import masks  # noqa: E402

DOUBLE = torch.float64


def needs(*presets):
    missing = sorted(set(presets) - set(attune.presets()))
    return pytest.mark.skipif(bool(missing), reason=f"built without {', '.join(missing)}")


def numbers_of(table):
    """A mask of numbers that hides what is True."""
    return torch.zeros(table.shape, dtype=DOUBLE).masked_fill(table, -math.inf)


@needs("biased")
@pytest.mark.parametrize(
    "batch_first, kdim, vdim, bias", [*itertools.product((True, False), (None, 20), (None, 12), (True, False))]
)
def test_calls_of_pytorchs_module(batch_first, kdim, vdim, bias):
    """Every mask, with weights and without: outputs, weights and gradients of nn.MultiheadAttention."""
    batch, queries, keys = 3, 5, 7
    options = {"batch_first": batch_first, "kdim": kdim, "vdim": vdim, "bias": bias, "dtype": DOUBLE}
    theirs = nn.MultiheadAttention(24, 4, **options)
    mine = at.MultiheadAttention(24, num_heads=4, need_weights=True, **options)
    mine.load_state_dict(theirs.state_dict())
    theirs.load_state_dict(mine.state_dict())
    same = at.MultiheadAttention.of(theirs)
    assert [id(x) for x in same.parameters()] == [id(x) for x in theirs.parameters()]
    shapes = (queries, 24), (keys, kdim or 24), (keys, vdim or 24)
    q, k, v = (torch.randn(batch, *shape, dtype=DOUBLE, requires_grad=True) for shape in shapes)
    if not batch_first:
        q, k, v = (x.transpose(0, 1) for x in (q, k, v))
    padding, pairs, per_head = (torch.rand(s) < 0.3 for s in ((batch, keys), (queries, keys), (batch * 4, queries, keys)))
    for table in (padding, pairs, per_head):
        table[..., 0] = False
    added, of_keys = torch.randn(queries, keys, dtype=DOUBLE, requires_grad=True), torch.randn(batch, keys, dtype=DOUBLE)
    cases = [{}, {"key_padding_mask": padding}, {"attn_mask": pairs}, {"attn_mask": per_head}]
    cases += [{"attn_mask": pairs, "key_padding_mask": padding}, {"attn_mask": numbers_of(pairs)}]
    cases += [{"attn_mask": added}, {"attn_mask": added, "key_padding_mask": numbers_of(padding)}, {"key_padding_mask": of_keys}]
    for more in cases:
        for how in ({}, {"need_weights": False}, {"average_attn_weights": False}):
            (a, their_weights), (b, my_weights) = (m(q, k, v, **more, **how) for m in (theirs, mine))
            assert torch.allclose(a, b, atol=1e-12), (more.keys(), how)
            assert torch.equal(same(q, k, v, **more, **how)[0], b)
            assert (my_weights is None) == (their_weights is None) == ("need_weights" in how)
            if my_weights is not None:
                assert my_weights.shape == their_weights.shape and torch.allclose(my_weights, their_weights, atol=1e-12)
            inputs = [q, k, v, *(x for x in more.values() if x.requires_grad)]
            sums = (a.square().sum(), b.square().sum())
            if my_weights is not None:
                sums = (sums[0] + their_weights.square().sum(), sums[1] + my_weights.square().sum())
            for x, y in zip(*(torch.autograd.grad(s, inputs) for s in sums)):
                assert torch.allclose(x, y, atol=1e-11)
    one = [x[0] if batch_first else x[:, 0] for x in (q, k, v)]
    for how in ({}, {"average_attn_weights": False}):
        (a, their_weights), (b, my_weights) = (m(*one, key_padding_mask=padding[0], **how) for m in (theirs, mine))
        assert a.shape == b.shape and torch.allclose(a, b, atol=1e-12)
        assert my_weights.shape == their_weights.shape and torch.allclose(my_weights, their_weights, atol=1e-12)


def test_what_a_call_returns():
    x, layer = torch.randn(2, 5, 24), at.MultiheadAttention(24, 4, "sink", key_heads=2)
    out = layer(x)
    assert isinstance(out, torch.Tensor)
    pair = layer(x, need_weights=True, average_attn_weights=False)
    assert torch.equal(pair[0], out) and pair[1].shape == (2, 4, 5, 5)
    ground = layer(x, returns=("out", "ground_weight"))[1]
    assert torch.allclose(pair[1].sum(-1) + ground, torch.ones(2, 4, 5))
    assert layer(x, need_weights=False)[1] is None
    with pytest.raises(attune.Error, match="need_weights has the value True, and returns a value; expected one of them"):
        layer(x, need_weights=True, returns="out")
    seen = masks.causal() & masks.padding([3, 5])
    table = torch.arange(5) >= torch.tensor([[3], [5]])
    assert torch.equal(layer(x, is_causal=True, key_padding_mask=table), layer(x, mask=seen))
    hidden = ~torch.ones(5, 5, dtype=torch.bool).tril()
    assert torch.equal(layer(x, attn_mask=hidden, is_causal=True), layer(x, mask=masks.causal()))
    assert torch.equal(layer(x, attn_mask=numbers_of(hidden)), layer(x, mask=masks.causal()))
    fast = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert torch.equal(fast(x, attn_mask=numbers_of(hidden)), layer(x, mask=masks.causal()))
    with pytest.raises(RuntimeError, match="attune: attn_mask has other numbers than 0 and -inf"):
        fast(x, attn_mask=torch.randn(5, 5))


def test_arguments_that_are_refused():
    make, x = at.MultiheadAttention, torch.randn(2, 5, 24)
    cases = [
        (lambda: make(24), "heads has no value; expected one of the two"),
        (lambda: make(24, 4, num_heads=4), "heads has a value, and so has num_heads; expected one of the two"),
        (lambda: make(24, 4, 0.1), "op has the value 0.1; expected an operator, .*; dropout= is a name of its own"),
        (lambda: make(24, 4, add_bias_kv=True), 'add_bias_kv has the value True; expected False: .* op="sink"'),
        (lambda: make(24, 4, add_zero_attn=True), 'add_zero_attn has the value True; expected False: op="off_by_one"'),
        (lambda: make(24, 4, "sink", dropout=0.1), "dropout has the value 0.1, and sink has no dropout; expected 0; or"),
        (lambda: make(24, 4, dropout=1.5), r"dropout has the value 1.5; expected a number in \[0, 1\)"),
        (lambda: make(24, 4)(x, key_padding_mask=torch.ones(5, 5)), r"key_padding_mask has the shape \(5, 5\); expected .*\(2, 5\)"),
        (lambda: make(24, 4)(x, attn_mask=torch.ones(3, 5, 5)), r"attn_mask has the shape .*; expected .*\(5, 5\) or \(8, 5, 5\)"),
        (lambda: make(24, 4)(x, attn_mask=torch.ones(5, 5).int()), "attn_mask has the type torch.int32; expected bool, which hides"),
        (lambda: make(24, 4, "sink")(x, attn_mask=torch.randn(5, 5)), "attn_mask has other numbers than 0 and -inf; expected booleans"),
        (lambda: make(24, 4)(torch.nested.nested_tensor([x[0]])), "query has a nested tensor; .*enable_nested_tensor=False"),
    ]
    for call, text in cases:
        with pytest.raises(attune.Error, match=text):
            call()


@needs("softmax_dropout", "biased_dropout")
@pytest.mark.parametrize("op", ["softmax", "softmax_dropout"])
def test_dropout_of_the_module(op):
    x, layer = torch.randn(2, 30, 24), at.MultiheadAttention(24, 4, op, dropout=0.5)
    torch.manual_seed(3)
    out, weights = layer(x, need_weights=True, average_attn_weights=False)
    assert 0.45 < (weights == 0).double().mean() < 0.55
    torch.manual_seed(3)
    assert torch.equal(layer(x), out) and not torch.equal(layer(x), out)
    values = nn.functional.linear(x, layer.in_proj_weight[48:], layer.in_proj_bias[48:]).unflatten(-1, (4, 6)).transpose(1, 2)
    assert torch.allclose(layer.out_proj((weights @ values).transpose(1, 2).flatten(2)), out, atol=1e-5)
    layer(x, attn_mask=torch.randn(30, 30)).sum().backward()
    assert torch.equal(layer.eval()(x), layer(x, x, x, need_weights=False)[0])
    plain = at.MultiheadAttention(24, 4, op, dropout=0.0)
    plain.load_state_dict(layer.state_dict())
    assert torch.equal(plain(x), layer(x)) and at.MultiheadAttention(24, 4, "softmax_dropout").dropout == 0.1


@pytest.mark.parametrize("training", [True, False])
def test_layers_of_pytorch_around_the_module(training):
    """Also where nn.TransformerEncoderLayer would compute softmax in a way of its own."""
    kind = nn.TransformerEncoderLayer(24, 4, 48, batch_first=True, dropout=0.0, dtype=DOUBLE)
    encoder, decoder = nn.TransformerEncoder(kind, 2, enable_nested_tensor=False), nn.TransformerDecoderLayer(24, 4, 48, 0.0, batch_first=True)
    decoder.double()
    x, padding = torch.randn(3, 6, 24, dtype=DOUBLE), torch.arange(6) >= torch.tensor([[6], [4], [1]])
    causal = nn.Transformer.generate_square_subsequent_mask(6, dtype=DOUBLE)
    mine = copy.deepcopy(encoder)
    for layer in mine.layers:
        layer.self_attn = at.MultiheadAttention.of(layer.self_attn)
    other = copy.deepcopy(decoder)
    other.self_attn, other.multihead_attn = (at.MultiheadAttention.of(m) for m in (other.self_attn, other.multihead_attn))
    for m in (encoder, mine, decoder, other):
        m.train(training)
    with torch.set_grad_enabled(training):
        for more in ({}, {"src_key_padding_mask": padding}, {"mask": causal}, {"mask": causal, "is_causal": True}):
            a, b = (m(x, **more)[~padding] for m in (encoder, mine))
            assert torch.allclose(a, b, atol=1e-10), more
        a, b = (m(x, x, tgt_mask=causal, memory_key_padding_mask=padding) for m in (decoder, other))
        assert torch.allclose(a, b, atol=1e-10)
        mine.layers[0].self_attn = at.MultiheadAttention(24, 4, "sink", dtype=DOUBLE).train(training)
        shares = []
        mine.layers[0].self_attn.attention.register_forward_hook(lambda *x: shares.append(x[-1]))
        mine(x, src_key_padding_mask=padding)
        assert len(shares) == 1


def test_attention_of_a_whole_model():
    class Own(nn.Module):
        pass

    class SelfAttention(Own):
        pass

    model = nn.ModuleDict({"all": nn.Transformer(24, 4, 1, 1, 48, batch_first=True), "own": SelfAttention()})
    shared, hooked = nn.MultiheadAttention(24, 4), nn.MultiheadAttention(24, 4)
    hooked.register_forward_hook(lambda *x: None)
    model.update({"a": shared, "b": shared, "hooked": hooked, "added": nn.MultiheadAttention(24, 4, add_zero_attn=True)})
    before = {name: p for name, p in model.eval().named_parameters()}
    x, padding = torch.randn(3, 6, 24), torch.arange(6) >= torch.tensor([[6], [4], [2]])
    hides = {"src_key_padding_mask": padding, "memory_key_padding_mask": padding}
    with torch.no_grad():
        expected, pair = model["all"](x, x, **hides), shared(x, x, x)
    with pytest.raises(attune.Error, match="dropout has the value 0.1, and sink has no dropout"):
        at.replace_attention(model, "sink")
    assert type(model["a"]) is nn.MultiheadAttention
    found = at.replace_attention(model)
    names = [f"all.{name}" for name in ("encoder.layers.0.self_attn", "decoder.layers.0.self_attn", "decoder.layers.0.multihead_attn")]
    assert {name for name, _ in found.replaced} == {*names, "a", "b"}
    assert dict(found.left) == {
        "own": "SelfAttention has its own code: call at.scaled_dot_product_attention in it",
        "hooked": "it has hooks",
        "added": "add_bias_kv and add_zero_attn have no counterpart",
    }
    assert "5 replaced, 3 left" in str(found) and "  left hooked: it has hooks" in repr(found)
    assert model["a"] is model["b"] and {n: id(p) for n, p in model.named_parameters()} == {n: id(p) for n, p in before.items()}
    assert not model["a"].training
    with torch.no_grad():
        assert torch.allclose(model["all"](x, x, **hides), expected, atol=1e-5)
        for mine, theirs in zip(model["a"](x, x, x), pair):
            assert torch.allclose(mine, theirs, atol=1e-6)
    with pytest.raises(attune.Error, match="model has no attention that attune can replace; (.|\n)*left a: it is attune's already"):
        at.replace_attention(model)
    with pytest.raises(attune.Error, match="model has the type MultiheadAttention; expected a model that contains it"):
        at.replace_attention(nn.MultiheadAttention(24, 4))
    layer = nn.TransformerDecoderLayer(24, 4, dropout=0.1)
    at.replace_attention(layer, "sink", parameters={"logit": 3.0}, dropout=0.0)
    assert layer.self_attn.attention.logit.tolist() == [3.0] * 4


def test_start_values_of_required_parameters():
    layer = at.MultiheadAttention(24, 4, "sink", dtype=DOUBLE)
    assert torch.equal(layer.attention.normalizer_logit, torch.zeros(4, dtype=DOUBLE))
    layer(torch.randn(2, 5, 24, dtype=DOUBLE)).sum().backward()
    assert layer.attention.normalizer_logit.grad.abs().sum() > 0
    starts = {"softcap": [50.0] * 2, "entmax": [1.5] * 2, "alibi": [2**-4, 2**-8], "margin": [0.0] * 2, "affine_scaled": [1.0] * 2}
    for name, start in starts.items():
        if name in attune.presets():
            op = attune.op(name)
            assert list(at.Attention(op, 2).parameters())
            for path in op.required:
                assert getattr(at.Attention(op, 2), path.replace(".", "_")).tolist() == start
    for name in attune.presets():  # each has a start, or is refused by the constructor
        try:
            layer = at.Attention(name, 2)
        except attune.Error as e:
            assert "which has no usual start; expected a number for each that is learned: parameters={" in str(e)
        else:
            assert set(attune.op(name).required) <= set(layer._paths.values())
    assert not list(at.Attention("sink", 2, parameters={}).parameters())


def test_meta_tensors_give_shapes():
    q, k = torch.randn(2, 4, 5, 8, device="meta", requires_grad=True), torch.randn(2, 2, 7, 8, device="meta")
    table = torch.ones(5, 7, dtype=torch.bool, device="meta")
    for mask in (None, masks.causal() & masks.padding([3, 4]), masks.visible(table)):
        out, lse = at.softmax(q, k, k, mask=mask, returns=("out", "lse"))
        assert out.is_meta and lse.is_meta and out.shape == q.shape and lse.shape == (2, 4, 5)
        assert torch.autograd.grad(out.sum(), q)[0].shape == q.shape
    assert at.scaled_dot_product_attention(q, k, k, attn_mask=table, enable_gqa=True).is_meta
    assert attune.op("softmax")(q.detach(), k, k).is_meta
    assert at.sink(q, k, k, logit=torch.zeros(4, device="meta")).is_meta
    for call in (lambda: at.softmax(q, torch.randn(k.shape), k), lambda: at.sink(q, k, k, logit=torch.zeros(4))):
        with pytest.raises(attune.Error, match="(k|logit) has the device cpu; expected meta, the device of q"):
            call()
    layer = at.MultiheadAttention(24, 4, "sink", device="meta")
    assert layer(torch.randn(2, 5, 24, device="meta"), need_weights=True)[1].shape == (2, 5, 5)
    made = nn.utils.skip_init(at.MultiheadAttention, 24, 4, "sink")
    assert {p.device.type for p in made.parameters()} == {"cpu"}


def test_names_in_profiles_and_graphs():
    q, k, v = (torch.randn(1, 2, 5, 3, requires_grad=name == "q") for name in "qkv")
    assert "attune_sinkBackward" in str(at.sink(q, k, v, logit=0.0).grad_fn)
    at.softmax(q.detach(), k, v)
    with torch.profiler.profile() as found:
        at.softmax(q.detach(), k, v)
        at.sink(q, k, v, logit=0.0).sum().backward()
    assert {"attune::softmax", "attune::sink", "attune_sinkBackward"} <= {e.key for e in found.key_averages()}
    assert not [name for name in dir(at) if name.startswith("_") or name in ("Operator", "Tensor", "Any")]
    assert {"softmax", "MultiheadAttention"} <= set(dir(at))
