# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Runs of scripts/training: one is one line of JSON."""

from __future__ import annotations

import hashlib
import json
import math
import platform
import statistics
import time

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from . import measures
from .model import ROWS, model_of, text_of

BATCH, LENGTH, STEPS = 8, measures.LENGTH, 1500
RATE, WARM, DECAY, BETAS = 3e-3, 50, 0.1, (0.9, 0.95)
FIRST, BIN = 5, 50  # losses of the first steps; a point of the curve is the mean of so many steps


def order(names, seeds=None):
    """Pairs (row, seed): seed 1 of all rows, then the rows with most seeds, so that a study that is stopped has a use."""
    most = max(count for _, count in ROWS.values())
    pairs = [(name, seed) for seed in range(1, most + 1) for name in names if seed <= min(ROWS[name][1], seeds or most)]
    return sorted(pairs, key=lambda pair: pair[1] > 1 and most + 1 - ROWS[pair[0]][1])


def rate_at(step, steps):
    """Warm-up, then half a cosine to a tenth."""
    return RATE * min(1, (step + 1) / WARM) * (0.55 + 0.45 * math.cos(math.pi * step / steps))


def optimizer_of(model):
    """AdamW. The matrices of the model decay, and no parameter of an operator does."""
    decayed = [m.weight for m in model.modules() if isinstance(m, (nn.Linear, nn.Embedding))]
    known = {id(p) for p in decayed}
    others = [p for p in model.parameters() if id(p) not in known]
    groups = [{"params": decayed, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, RATE, betas=BETAS)


class Data:
    """The text, in two parts: the last tenth, or half of a short text, is for validation."""

    def __init__(self, name):
        numbers, self.letters = text_of(name)
        cut = len(numbers) * 9 // 10 if len(numbers) > 20 * measures.LENGTHS[-1] else len(numbers) // 2
        self.name, self.train, self.validation = name, numbers[:cut], numbers[cut:]
        self.hash = hashlib.sha256(bytes(numbers.to(torch.uint8).tolist())).hexdigest()[:16]

    def batches(self, seed):
        """Texts of LENGTH characters and their next ones. Every operator gets the same."""
        random = torch.Generator().manual_seed(seed)
        while True:
            starts = torch.randint(len(self.train) - LENGTH, (BATCH,), generator=random)
            texts = torch.stack([self.train[a : a + LENGTH + 1] for a in starts])
            yield texts[:, :-1], texts[:, 1:]


class Training:
    """A model that takes steps."""

    def __init__(self, row, seed, data, steps):
        self.model, self.steps, self.step = model_of(row, seed, len(data.letters)), steps, 0
        self.optimizer, self.batches = optimizer_of(self.model), data.batches(seed)

    def take(self):
        """A step: its loss, the norm of its gradient, and its processor time without that norm."""
        x, y = next(self.batches)
        self.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = rate_at(self.step, self.steps)
        start = time.thread_time()
        loss = cross_entropy(self.model(x).flatten(0, 1), y.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        used = time.thread_time() - start
        norm = torch.stack([p.grad.norm() for p in self.model.parameters()]).norm().item()
        start = time.thread_time()
        self.optimizer.step()
        used += time.thread_time() - start
        self.step += 1
        return loss.item(), norm, used


def run(row, seed, data, steps=STEPS):
    """A line of the results."""
    torch.set_num_threads(1)
    training = Training(row, seed, data, steps)
    probes = measures.windows(data.validation, LENGTH)[::40][:8]
    losses, norms, times, sizes = [], [], [], {}
    for step in range(steps):
        if step % 250 == 0:
            sizes[step] = measures.size_of_scores(training.model, probes)
        for kept, x in zip((losses, norms, times), training.take()):
            kept.append(x)
    sizes[steps] = measures.size_of_scores(training.model, probes)
    bins = [losses[a : a + BIN] for a in range(0, steps, BIN)]
    found = {
        "row": row, "seed": seed, "steps": steps, "text": data.name, "hash": data.hash,
        "parameters": sum(p.numel() for p in training.model.parameters()),
        "first": measures.rounded(losses[:FIRST], 6),
        "curve": measures.rounded([statistics.mean(part) for part in bins], 5),
        "gradients": measures.rounded(measures.gradient_norms(norms)),
        "scores": measures.rounded(sizes),
        "ms": round(1e3 * statistics.median(times[1:] or times), 2),
    }  # fmt: skip
    return {**found, **measures.measured(training.model, data.validation, data.letters)}


def times(names, data, rounds=60):
    """Processor time of a step of every row, one after the other, so that all share the minutes: a line of the results."""
    torch.set_num_threads(1)
    trained = {name: Training(name, 1, data, STEPS) for name in names}
    found = {name: [] for name in names}
    for n in range(rounds + 3):
        for name, training in trained.items():
            used = training.take()[2]
            if n >= 3:
                found[name].append(used)
    base = found["softmax"]
    rows = {
        name: {"ms": 1e3 * statistics.median(x), "to softmax": statistics.median(a / b for a, b in zip(x, base))}
        for name, x in found.items()
    }
    return {
        "row": "times", "seed": 0, "rounds": rounds, "times": measures.rounded(rows), "machine": machine(),
        "versions": f"Python {platform.python_version()}, PyTorch {torch.__version__.split('+')[0]}",
    }  # fmt: skip


def machine():
    """The processor, as Linux names it."""
    try:
        with open("/proc/cpuinfo") as f:
            return next(line.split(":")[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def read(path):
    """The lines of a file of results."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def add(path, found):
    """Adds a line at once: a study that is stopped has whole lines."""
    with open(path, "a") as f:
        f.write(json.dumps(found, separators=(",", ":")) + "\n")
