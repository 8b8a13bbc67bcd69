# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Small models of random weights: the losses, gradients and tokens of their own attention."""

import copy

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS  # noqa: E402

import attune  # noqa: E402
import attune.torch as at  # noqa: E402

SIZES = {
    "vocab_size": 50,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1, "sliding_window": 5}
CAPS = {"attn_logit_softcapping": 1.0, "query_pre_attn_scalar": 8, "sliding_window": 5, "final_logit_softcapping": None}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 1}


def needs(*presets):
    missing = sorted(set(presets) - set(attune.presets(built=True)))
    return pytest.mark.skipif(bool(missing), reason=f"built without {', '.join(missing)}")


def model_of(name, **config):
    """A model with weights far from 0, in which attention matters."""
    at.register_with_transformers()
    kind = getattr(transformers, name)
    model = kind(kind.config_class(**{**SIZES, **config}))
    weights = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=weights) * 0.3)
    return model.eval()


def tokens_of(length=12):
    ids = torch.randint(3, 50, (2, length), generator=torch.Generator().manual_seed(2))
    seen = torch.ones_like(ids)
    seen[0, :4] = 0  # padding on the left
    return ids, seen


def loss_and_gradients(model, implementation, call):
    model.set_attn_implementation(implementation)
    model.zero_grad()
    loss = call(model)
    loss.backward()
    return loss.detach(), {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def require_same(model, call):
    """attune has the loss and all gradients of the model's own attention."""
    (loss, gradients), (mine, my_gradients) = (loss_and_gradients(model, name, call) for name in ("eager", "attune"))
    assert torch.allclose(loss, mine, rtol=1e-5)
    assert gradients.keys() == my_gradients.keys()
    for name, g in gradients.items():
        assert torch.allclose(g, my_gradients[name], rtol=1e-3, atol=1e-4 * float(g.abs().max())), name


def test_llama_has_the_loss_and_tokens_of_sdpa():
    at.register_with_transformers()
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=100,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    model = transformers.LlamaForCausalLM(config)
    ids = torch.randint(0, 100, (2, 33))
    seen = torch.ones_like(ids)
    seen[1, :7] = 0  # padding on the left
    found = {}
    for name in ("sdpa", "attune"):
        model.set_attn_implementation(name)
        model.zero_grad()
        loss = model(ids, attention_mask=seen, labels=ids).loss
        loss.backward()
        with torch.no_grad():
            tokens = model.generate(ids[:1], max_new_tokens=8, do_sample=False)
        found[name] = loss.detach(), model.model.layers[0].self_attn.k_proj.weight.grad.clone(), tokens
    (loss, gradient, tokens), (mine, my_gradient, my_tokens) = found["sdpa"], found["attune"]
    assert torch.allclose(loss, mine, atol=1e-6)
    assert torch.allclose(gradient, my_gradient, atol=1e-6)
    assert torch.equal(tokens, my_tokens)


@pytest.mark.parametrize(
    "name, config",
    [
        ("LlamaForCausalLM", {}),
        ("MistralForCausalLM", {"sliding_window": 4}),
        pytest.param("Gemma2ForCausalLM", CAPS, marks=needs("softcap")),
        pytest.param("GptOssForCausalLM", EXPERTS, marks=needs("sink")),
        pytest.param("T5ForConditionalGeneration", T5, marks=needs("biased")),
    ],
)
def test_models_have_their_own_loss_and_gradients(name, config):
    model, (ids, seen) = model_of(name, **config), tokens_of()
    labels = ids.clone()
    labels[0, :5] = -100  # a row of padding sees nothing: 0 in attune, a mean in transformers
    require_same(model, lambda m: m(input_ids=ids, attention_mask=seen, labels=labels).loss)


@needs("biased")
def test_numbers_of_a_mask_are_added():
    model, (ids, _) = model_of("LlamaForCausalLM"), tokens_of()
    hidden = ~torch.ones(12, 12, dtype=torch.bool).tril()
    mask = torch.randn(2, 1, 12, 12).masked_fill(hidden, torch.finfo(torch.float32).min)
    require_same(model, lambda m: m(input_ids=ids, attention_mask=mask, labels=ids).loss)


@needs("biased")
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_numbers_of_float32_are_added_to_scores_of_16_bits(kind):
    q, k = torch.zeros(1, 1, 1, 4, dtype=kind), torch.zeros(1, 1, 2, 4, dtype=kind)
    v, far = torch.tensor([[[[0.0], [1.0]]]], dtype=kind), torch.tensor([[[[4000.0, 4001.0]]]])
    attend = ALL_ATTENTION_FUNCTIONS["attune"]
    for mask, more in ((far, {}), (None, {"position_bias": far}), (far / 2, {"position_bias": far / 2}), (torch.zeros(1, 1, 1, 2, dtype=kind), {"position_bias": far})):
        out, _ = attend(torch.nn.Module(), q, k, v, mask, **more)
        assert out.dtype == kind and abs(out.item() - 0.7310586) < 0.002


@needs("softmax_dropout")
def test_dropout_of_every_key():
    q, k, v = (torch.full((1, 2, 9, 64), 200.0, dtype=torch.float16, requires_grad=True) for _ in range(3))
    out, _ = ALL_ATTENTION_FUNCTIONS["attune"](torch.nn.Module(), q, k, v, None, dropout=1.0)
    assert out.shape == (1, 9, 2, 64) and not out.any()
    assert not any(g.any() for g in torch.autograd.grad(out.sum(), (q, k, v)))


def test_a_static_cache_has_room_behind_its_keys():
    model, (ids, _) = model_of("LlamaForCausalLM"), tokens_of()
    found = []
    for name in ("sdpa", "attune"):
        model.set_attn_implementation(name)
        found.append(model.generate(ids, max_new_tokens=6, do_sample=False, cache_implementation="static"))
    assert torch.equal(*found)
    q, k, v = (torch.randn(1, 2, n, 4, dtype=torch.float64) for n in (3, 7, 7))
    module = torch.nn.Module()
    theirs, mine = (ALL_ATTENTION_FUNCTIONS[name](module, q, k, v, None)[0] for name in ("sdpa", "attune"))
    assert torch.allclose(theirs, mine)


@needs("biased_dropout", "softmax_dropout")
def test_dropout_in_training():
    q, k = (torch.randn(1, 2, 9, 4, dtype=torch.float64) for _ in "qk")
    v = torch.eye(9, dtype=torch.float64).expand(1, 2, 9, 9)  # outputs are weights
    attend = ALL_ATTENTION_FUNCTIONS["attune"]
    for more in ({}, {"position_bias": torch.randn(1, 2, 9, 9, dtype=torch.float64)}):
        plain, _ = attend(torch.nn.Module(), q, k, v, None, **more)
        torch.manual_seed(3)
        out, _ = attend(torch.nn.Module(), q, k, v, None, dropout=0.5, **more)
        kept = out != 0
        assert torch.allclose(out[kept], 2 * plain[kept]) and 0.3 < kept.sum() / (plain != 0).sum() < 0.7
    model, (ids, seen) = model_of("LlamaForCausalLM", attention_dropout=0.3).train(), tokens_of()
    loss, gradients = loss_and_gradients(model, "attune", lambda m: m(ids, attention_mask=seen, labels=ids).loss)
    assert loss.isfinite() and all(g.isfinite().all() for g in gradients.values())


def test_what_no_preset_has_is_refused():
    at.register_with_transformers()
    attend, x = ALL_ATTENTION_FUNCTIONS["attune"], torch.ones(1, 2, 5, 4)
    cases = [
        ({"indices": x.long()}, 'indices has the type Tensor; expected None: attn_implementation="attune" does not know it'),
        ({"head_mask": 0}, "head_mask has the value 0; expected None"),
        ({"cu_seq_lens_q": torch.tensor([0, 5])}, "cu_seq_lens_q has the type Tensor; expected position_ids alone"),
        ({"output_attentions": True}, "output_attentions has the value True; expected False"),
        ({"sliding_window": 3}, "sliding_window has the value 3 and no mask; expected a mask, which has the window"),
        ({"softcap": 5.0, "s_aux": torch.ones(2)}, r"attention has a softcap and sinks \(s_aux\); expected one of them"),
        ({"softcap": 5.0, "dropout": 0.1}, "attention has a softcap and dropout .*set the attention dropout of the model to 0"),
    ]
    for more, text in cases:
        with pytest.raises(attune.Error, match=text):
            attend(torch.nn.Module(), x, x, x, None, **more)
    with pytest.raises(attune.Error, match="attention_mask has the type torch.int64; expected bool, or a real type"):
        attend(torch.nn.Module(), x, x, x, torch.ones(1, 1, 5, 5, dtype=torch.int64))
    attend(torch.nn.Module(), x, x, x, None, indices=None, output_attentions=False, position_ids=torch.arange(5), use_cache=True)


TINY = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64}
OTHERS = {
    "Bloom": {"vocab_size": 50, "hidden_size": 32, "n_layer": 1, "n_head": 4},
    "DebertaV2": TINY,
    "Falcon": TINY,
    "XLNet": {"vocab_size": 50, "d_model": 32, "n_layer": 1, "n_head": 4, "d_inner": 64},
}


@pytest.mark.parametrize("name", OTHERS)
def test_models_that_ignore_the_name_are_refused(name):
    at.register_with_transformers()
    kind = getattr(transformers, f"{name}Model")
    config = kind.config_class(**OTHERS[name])
    text = f"attn_implementation has the value 'attune' for {name}Model; expected \"eager\": this model does not hand its attention"
    with pytest.raises(attune.Error, match=text):
        kind._from_config(config, attn_implementation="attune")
    kind._from_config(config, attn_implementation="eager")
    derived = type("Derived", (kind,), {"__module__": "a notebook"})
    with pytest.raises(attune.Error, match="for Derived; expected"):
        derived._from_config(config, attn_implementation="attune")
    with pytest.raises(attune.Error, match=f"no attention that attune can replace; (.|\n)*{name}Model does not hand its attention"):
        at.replace_attention(kind(kind.config_class(**OTHERS[name])))


def test_a_model_that_is_made_from_others_is_what_they_are(tmp_path, monkeypatch):
    """Also in a file with attention of its own."""
    text = "import transformers\nfrom torch import nn\nclass PoolingAttention(nn.Module):\n    pass\n"
    text += "".join(f"class My{name}(transformers.{name}Model):\n    pass\n" for name in ("Llama", "Falcon"))
    (tmp_path / "own_models.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    import own_models

    at.register_with_transformers()
    assert own_models.MyLlama._from_config(transformers.LlamaConfig(**TINY), attn_implementation="attune")
    with pytest.raises(attune.Error, match="for MyFalcon; expected"):
        own_models.MyFalcon._from_config(transformers.FalconConfig(**TINY), attn_implementation="attune")


def test_attention_of_a_whole_model():
    class Mine(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.text, self.other = model_of("LlamaForCausalLM"), torch.nn.MultiheadAttention(32, 4)

    model, (ids, _) = Mine(), tokens_of()
    expected = model.text(ids).logits
    found = at.replace_attention(model)
    assert [name for name, _ in found.replaced] == ["text", "other"] and not found.left
    assert model.text.config._attn_implementation == "attune"
    assert torch.allclose(model.text(ids).logits, expected, rtol=1e-4, atol=1e-4)
    other = Mine()
    assert at.replace_attention(other, "sink").left == [("text", "LlamaForCausalLM computes softmax, with masks and dropout of its own")]
    assert other.text.config._attn_implementation == "sdpa"


def test_parts_of_a_model_that_does_not_hand_its_attention_to_others():
    vision = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "output_channels": 16, "mlp_dim": 32}
    vision |= {"image_size": 64, "patch_size": 16, "global_attn_indexes": [0], "window_size": 2}
    config = transformers.GotOcr2Config(text_config={"model_type": "qwen2", **TINY, "num_key_value_heads": 4}, vision_config=vision)
    kind = transformers.GotOcr2ForConditionalGeneration
    model = kind._from_config(copy.deepcopy(config), attn_implementation={"text_config": "attune"})
    assert model.config.text_config._attn_implementation == "attune" != model.config.vision_config._attn_implementation
    with pytest.raises(attune.Error, match='for GotOcr2ForConditionalGeneration; expected "eager": .* Parts may: {"text_config": "attune"}'):
        kind._from_config(copy.deepcopy(config), attn_implementation="attune")
    model = kind._from_config(config, attn_implementation="eager")
    found = at.replace_attention(model)
    assert [name for name, _ in found.replaced] == ["model.language_model"]
    assert [name for name, _ in found.left] == ["", "model", "model.vision_tower"]
    assert model.config.text_config._attn_implementation == "attune"


@needs("biased")
def test_a_mask_may_change_before_the_backward_pass():
    """Also where the position bias alone has a gradient."""
    at.register_with_transformers()
    q, k, v = (torch.randn(1, 2, 6, 4, generator=torch.Generator().manual_seed(n)) for n in range(3))
    found = []
    for changes in (False, True):
        mask = torch.ones(1, 1, 6, 6, dtype=torch.bool).tril()
        bias = torch.zeros(1, 2, 6, 6, requires_grad=True)
        out, _ = ALL_ATTENTION_FUNCTIONS["attune"](torch.nn.Module(), q, k, v, mask, position_bias=bias)
        if changes:
            mask.fill_(True)
        out.square().sum().backward()
        found.append(bias.grad)
    assert torch.equal(*found)
