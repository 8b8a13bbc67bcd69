# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Functions that users of FlexAttention write: those of attention-gym and of PyTorch's blog, in our words.

mask_mods(), score_mods(): by name. A score_mod stands with the captured tensors that have a gradient.
"""

import functools

import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import and_masks, noop_mask, or_masks


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def sliding_window(size):
    def near(b, h, q_idx, kv_idx):
        return q_idx - kv_idx <= size

    return and_masks(near, causal)


def prefix_lm(length):
    return or_masks(lambda b, h, q_idx, kv_idx: kv_idx < length, causal)


def dilated_window(size, dilation):
    def mask(b, h, q_idx, kv_idx):
        far = torch.abs(q_idx - kv_idx)
        return (far <= size) & (far % dilation == 0)

    return mask


def documents(inner, offsets):
    counts = offsets[1:] - offsets[:-1]
    ids = torch.repeat_interleave(torch.arange(len(counts), dtype=torch.int32), counts)

    def mask(b, h, q_idx, kv_idx):
        q_own = q_idx - offsets[ids[q_idx]]
        kv_own = kv_idx - offsets[ids[kv_idx]]
        return (ids[q_idx] == ids[kv_idx]) & inner(b, h, q_own, kv_own)

    return mask


def packed_documents(offsets):
    counts = offsets[1:] - offsets[:-1]
    ids = torch.repeat_interleave(torch.arange(len(counts)), counts)

    def mask(b, h, q_idx, kv_idx):
        return (kv_idx >= offsets[ids[q_idx]]) & causal(b, h, q_idx, kv_idx)

    return mask


def shared_prefix(offsets, prefixes):
    counts = offsets[1:] - offsets[:-1]
    ids = torch.repeat_interleave(torch.arange(len(counts)), counts)

    def mask(b, h, q_idx, kv_idx):
        own, prefix = ids[q_idx], prefixes[ids[q_idx]]
        in_own = (kv_idx >= offsets[own]) & causal(b, h, q_idx, kv_idx)
        return in_own | ((own != prefix) & (kv_idx >= offsets[prefix]) & (kv_idx < offsets[prefix + 1]))

    return mask


def batched(inner, size):
    def mask(b, h, q_idx, kv_idx):
        return (q_idx // size == kv_idx // size) & inner(b, h, q_idx % size, kv_idx % size)

    return mask


def block_diffusion(length, block):
    def mask(b, h, q_idx, kv_idx):
        q_noised, kv_noised = q_idx < length, kv_idx < length
        q_block, kv_block = (q_idx % length) // block, (kv_idx % length) // block
        own = (q_block == kv_block) & (q_noised == kv_noised)
        earlier = (q_block > kv_block) & q_noised & ~kv_noised
        return own | earlier | ((q_block >= kv_block) & ~q_noised & ~kv_noised)

    return mask


def flamingo(intervals, tokens):
    images = torch.repeat_interleave(torch.arange(len(intervals)), tokens)

    def mask(b, h, q_idx, kv_idx):
        interval = intervals[images[kv_idx]]
        return (q_idx >= interval[0]) & (q_idx < interval[1])

    return mask


def global_window(size, is_global):
    return or_masks(
        lambda b, h, q_idx, kv_idx: (q_idx - kv_idx).abs() <= size,
        lambda b, h, q_idx, kv_idx: is_global[q_idx] | is_global[kv_idx],
    )


def _near_on_canvas(place, width, height, reach_x, reach_y):
    def mask(b, h, q_idx, kv_idx):
        (q_x, q_y), (kv_x, kv_y) = place(q_idx), place(kv_idx)
        x, y = q_x.clamp(reach_x, width - 1 - reach_x), q_y.clamp(reach_y, height - 1 - reach_y)
        return ((x - kv_x).abs() <= reach_x) & ((y - kv_y).abs() <= reach_y)

    return mask


def natten(width, height, kernel):
    return _near_on_canvas(lambda at: (at // width, at % width), width, height, kernel // 2, kernel // 2)


def tiled_natten(width, height, kernel, tile):
    def place(at):
        n, inside = at // tile**2, at % tile**2
        return n % (width // tile) * tile + inside % tile, n // (width // tile) * tile + inside // tile

    return _near_on_canvas(place, width, height, kernel // 2, kernel // 2)


def morton_natten(width, height, kernel):
    def every_second(code):
        code = code & 0x55555555
        for shift, bits in ((1, 0x33333333), (2, 0x0F0F0F0F), (4, 0x00FF00FF), (8, 0x0000FFFF)):
            code = (code | (code >> shift)) & bits
        return code

    place = lambda at: (every_second(at), every_second(at >> 1))  # noqa: E731
    return _near_on_canvas(place, width, height, kernel // 2, kernel // 2)


def sliding_tiles(canvas, kernel, tile, text):
    across, reach, pixels = canvas // tile, kernel // tile, canvas**2

    def place(at):
        return at // tile**2 // across, at // tile**2 % across

    def mask(b, h, q_idx, kv_idx):
        left, right = reach // 2, reach // 2 + (reach % 2 - 1)
        seen = (q_idx < pixels) & (kv_idx < pixels)
        for q, kv in zip(place(q_idx), place(kv_idx)):
            center = q.clamp(left, across - 1 - right)
            seen = seen & (kv >= center - left) & (kv <= center + right)
        to_text = (q_idx < pixels) & (kv_idx >= pixels) & (kv_idx < pixels + text)
        return seen | to_text | ((q_idx >= pixels) & (kv_idx < pixels + text))

    return mask


def spatial_head(prompt, width):
    def mask(b, h, q_idx, kv_idx):
        return (kv_idx < prompt) | (q_idx < prompt) | (torch.abs(q_idx - kv_idx) < width)

    return mask


def temporal_head(prompt, frame, width):
    def mask(b, h, q_idx, kv_idx):
        q, kv = (q_idx - prompt) % frame, (kv_idx - prompt) % frame
        return (kv_idx < prompt) | (q_idx < prompt) | (torch.abs(q - kv) < width)

    return mask


def tree(prefix, ancestors):
    def mask(b, h, q_idx, kv_idx):
        at = (kv_idx - prefix).clamp(min=0, max=len(ancestors) - 1)
        in_tree = (kv_idx >= prefix) & (kv_idx < prefix + len(ancestors))
        return (kv_idx < prefix) | (in_tree & ancestors[q_idx % len(ancestors), at])

    return mask


def chosen_tiles(chosen, tile, lengths):
    def mask(b, h, q_idx, kv_idx):
        at = kv_idx // tile
        found = (chosen[b, h, q_idx // tile] == at.unsqueeze(-1)).any(dim=-1)
        return found & (kv_idx % tile < lengths[at])

    return mask


def transfusion(start, length):
    """Causal, and both ways inside of the image of each batch element."""

    def image(b, h, q_idx, kv_idx):
        inside = (q_idx >= start[b]) & (kv_idx >= start[b])
        return inside & (q_idx < start[b] + length[b]) & (kv_idx < start[b] + length[b])

    return or_masks(image, causal)


def padded(lengths):
    return lambda b, h, q_idx, kv_idx: kv_idx < lengths[b]


def mask_mods():
    """By name: the mask_mod for 48 queries and keys, and whether it needs no table of pairs."""
    offsets = torch.tensor([0, 10, 30, 48])
    some = torch.zeros(48, dtype=torch.bool)
    some[[0, 7]] = True
    ancestors = torch.tril(torch.ones(6, 6, dtype=torch.bool))
    chosen = torch.tensor([[0, 2], [1, 5], [3, 4], [0, 1], [2, 5], [4, 5]]).expand(2, 2, 6, 2)
    lengths = torch.tensor([8, 8, 5, 8, 2, 8])
    return {
        "none": (noop_mask, True),
        "causal": (causal, True),
        "sliding window": (sliding_window(5), True),
        "prefix": (prefix_lm(7), True),
        "batches": (batched(noop_mask, 12), True),
        "documents": (documents(noop_mask, offsets), True),
        "documents, causal": (lambda b, h, q, kv: (some.cumsum(0)[q] == some.cumsum(0)[kv]) & (q >= kv), True),
        "global window": (global_window(4, some), True),
        "spatial head": (spatial_head(4, 8), True),
        "padding": (padded(torch.tensor([48, 20])), True),
        "not after": (lambda b, h, q, kv: ~((kv > q) | ~(q - kv < 9)), True),
        "and true, or false": (lambda b, h, q, kv: ((q >= kv) & True) | False, True),
        "one of two": (lambda b, h, q, kv: (q >= kv) ^ (kv > 3), False),
        "heads": (lambda b, h, q, kv: torch.where(h == 0, q >= kv, q - kv < 3), False),
        "packed documents": (packed_documents(offsets), False),
        "documents, own positions": (documents(causal, offsets), False),
        "batches, causal": (batched(causal, 12), False),
        "dilated window": (dilated_window(9, 3), False),
        "shared prefix": (shared_prefix(offsets, torch.tensor([0, 0, 0])), False),
        "block diffusion": (block_diffusion(24, 4), False),
        "flamingo": (flamingo(torch.tensor([[0, 9], [9, 48], [20, 30]]), 16), False),
        "natten": (natten(8, 6, 3), False),
        "tiled natten": (tiled_natten(8, 6, 3, 2), False),
        "morton natten": (morton_natten(8, 6, 3), False),
        "sliding tiles": (sliding_tiles(6, 4, 2, 12), False),
        "temporal head": (temporal_head(4, 11, 3), False),
        "tree": (tree(42, ancestors), False),
        "chosen tiles": (chosen_tiles(chosen, 8, lengths), False),
        "transfusion": (transfusion(torch.tensor([4, 20]), torch.tensor([10, 9])), True),
    }


def alibi(heads):
    def bias(score, b, h, q_idx, kv_idx):
        return score + (kv_idx - q_idx) * torch.exp2(-((h + 1) * 8.0 / heads))

    return bias


def sandwich(heads, longest):
    rates = 1.0 / 10000 ** (2 * torch.arange(16, dtype=torch.float32) / 32)
    far = torch.arange(2 * longest - 1, dtype=torch.float32) - (longest - 1)
    table = torch.cos(far.abs()[:, None] * rates).sum(-1)
    scale = heads / (8.0 * torch.arange(1, heads + 1, dtype=torch.float32))

    def bias(score, b, h, q_idx, kv_idx):
        return score + table[q_idx - kv_idx + longest - 1] * scale[h]

    return bias


def cap_of(cap, score, b, h, q_idx, kv_idx):
    return cap * torch.tanh(score / cap)


def soft_cap(cap):
    return functools.partial(cap_of, cap)


def activation(function, offset=1.0):
    def mod(score, b, h, q_idx, kv_idx):
        return torch.log(function(score) + offset)

    return mod


def checkerboard(score, b, h, q_idx, kv_idx):
    score = torch.where(torch.abs(kv_idx - q_idx) % 2 == 1, score * 0.5, score)
    return torch.where(torch.abs(kv_idx - q_idx) % 2 == 0, score * 2.0, score)


def causal_score(score, b, h, q_idx, kv_idx):
    return torch.where(q_idx >= kv_idx, score, -float("inf"))


def everything(score, b, h, q_idx, kv_idx):
    """Functions of the score, one after the other; each has a slope everywhere in reach."""
    x = F.silu(score) + torch.exp2(0.3 * score) + F.softplus(score, beta=2.0) + score.clamp(-0.7, 0.9) ** 3
    x = x + F.elu(score) + F.leaky_relu(score, 0.2) + torch.rsqrt(score.square() + 1) + 2.0**score / 3
    x = x + torch.log2(x.abs() + 2) - F.logsigmoid(x) + F.gelu(score, approximate="tanh") + torch.erf(score)
    x += torch.sign(score) * torch.floor(score * 2) + (score % 0.8) - torch.clamp(score, min=0.1) + 1 / (3 + score.cosh())
    return torch.where((score > 0.2) & ~(q_idx == kv_idx) | (score < -1), x, x * score.sigmoid().to(score.dtype))


def score_mods(make, batch, heads, queries, keys):
    """By name: a score_mod and its captured tensors. make: a tensor with a gradient."""
    table, slopes, keyed, cap = make(heads, 13), make(heads), make(batch, keys), make(1)
    spatial, distances = make(heads, 8), (torch.arange(batch * queries * keys) % 8).reshape(batch, queries, keys)
    edges, kinds = make(heads, 2, 5), torch.arange(batch * queries * keys * 2).reshape(batch, queries, keys, 2) % 5
    paths = distances % 3
    turned_q, turned_k = make(batch, heads, queries, 6), make(batch, 1, keys, 6)
    relative, pairs = make(2 * max(queries, keys)), make(keys, heads, queries)
    ids = torch.arange(max(queries, keys)) // 5

    def graph_edges(score, b, h, q_idx, kv_idx):
        length, total = paths[b, q_idx, kv_idx], 0.0
        for n in range(2):
            total = total + torch.where(length > n, edges[h, n, kinds[b, q_idx, kv_idx, n]], 0.0)
        return score + total / torch.clamp(length, min=1)

    def latent(score, b, h, q_idx, kv_idx):
        return score + 0.3 * torch.dot(turned_q[b, h, q_idx], turned_k[b, h // heads, kv_idx])

    def mixed(score, b, h, q_idx, kv_idx):
        score += table[h, torch.clamp(q_idx - kv_idx, -6, 6) + 6] * slopes[h]
        score = cap[0] * torch.tanh(score / cap[0])
        return torch.where(ids[q_idx] < 2, score, 0.0) + keyed[b, kv_idx].exp() - (q_idx - kv_idx).abs() * 0.125

    return {
        "alibi": (alibi(heads), ()),
        "sandwich": (sandwich(heads, max(queries, keys)), ()),
        "relative table": (lambda s, b, h, q, kv: s + relative[q - kv + keys], (relative,)),
        "soft cap": (soft_cap(20), ()),
        "gelu": (activation(F.gelu), ()),
        "graph distances": (lambda s, b, h, q, kv: s + spatial[h, distances[b, q, kv]], (spatial,)),
        "graph edges": (graph_edges, (edges,)),
        "pairs": (lambda s, b, h, q, kv: s + pairs[kv, h, q], (pairs,)),
        "latent": (latent, (turned_q, turned_k)),
        "relative": (lambda s, b, h, q, kv: s + (q - kv), ()),
        "checkerboard": (checkerboard, ()),
        "causal score": (causal_score, ()),
        "documents": (lambda s, b, h, q, kv: torch.where(ids[q] == ids[kv], s, -torch.inf), ()),
        "mixed": (mixed, (table, slopes, keyed, cap)),
        "everything": (everything, ()),
    }
