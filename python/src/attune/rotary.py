# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Angles of rotary position embeddings, for operators with the contraction rotary_dot.

    op = attune.compile(attune.policy.kernel("rotary_dot", "inverse_sqrt_width * rotary_dot"))
    out = op(q, k, v, angles=attune.rotary.angles(attune.rotary.plain(64), 4096))

Frequencies are arrays of one number for each pair of features, in radians per position.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._arrays import as_numpy


def plain(features: int, theta: float = 10000.0) -> Any:
    """theta^(-2 r / features), r = 0 .. features / 2 - 1 (RoFormer)."""
    return float(theta) ** (-np.arange(0, features, 2) / features)


def linear(features: int, scale: float, theta: float = 10000.0) -> Any:
    """plain, divided by scale = context length / training length."""
    return plain(features, theta) / scale


def ntk(features: int, scale: float, theta: float = 10000.0) -> Any:
    """plain with the base theta scale^(d / (d - 2)), d = features > 2."""
    return plain(features, theta * scale ** (features / (features - 2)))


def yarn(
    features: int, scale: float, training_length: int, theta: float = 10000.0, fast: float = 32, slow: float = 1
) -> Any:
    """YaRN: plain for pairs that turn `fast` times within the training length, linear for those that turn `slow` times.

    Give angles() the factor yarn_factor(scale), too.
    """
    w, turn = plain(features, theta), 2 * math.pi

    def pair_that_turns(times):
        return features * math.log(training_length / (times * turn)) / (2 * math.log(theta))

    low, high = max(math.floor(pair_that_turns(fast)), 0), min(math.ceil(pair_that_turns(slow)), features - 1)
    share = np.clip((np.arange(len(w)) - low) / (high - low if high > low else 0.001), 0, 1)
    return w / scale * share + w * (1 - share)


def yarn_factor(scale: float) -> float:
    """The attention factor of YaRN: 0.1 log(scale) + 1, for scale > 1."""
    return 0.1 * math.log(scale) + 1 if scale > 1 else 1.0


def angles(frequencies: Any, positions: Any, factor: float = 1.0) -> Any:
    """Cosines, then sines, of every position: (positions, 2 R), or (B, 1, positions, 2 R).

    positions: their number, for 0, 1, ...; or an array of numbers, (L) or (B, L). factor: multiplies all.
    """
    p = as_numpy("positions", positions, "a number, or positions in lists of one length")
    if p.ndim == 0:
        p = np.arange(positions)
    if p.ndim == 2:
        p = p[:, None]
    turn = p[..., None].astype(np.float64) * np.asarray(frequencies, np.float64)
    return factor * np.concatenate([np.cos(turn), np.sin(turn)], -1)


def joined(*of_axes: Any) -> Any:
    """Angles of several axes, such as rows and columns of an image: the pairs of the first, then of the second."""
    halves = [np.split(x, 2, axis=-1) for x in of_axes]
    return np.concatenate([*(c for c, _ in halves), *(s for _, s in halves)], -1)
