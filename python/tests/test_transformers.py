# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""A small Llama of random weights: the loss, gradients and tokens of PyTorch's attention."""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import attune.torch as at  # noqa: E402


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
