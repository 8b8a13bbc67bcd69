# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""A step of gradient descent over the ranks of MPI: mpiexec -n 2 python python/examples/mpi_step.py

Every rank holds a part of one sequence of 1,024 positions. The logit of the sink is learned, and is the same on all
ranks.
"""

import numpy as np
from mpi4py import MPI

import attune
import attune.mpi
from attune import masks

POSITIONS, STEPS = 1024, 3


def tokens(seed, positions):
    """Queries, keys or values at these positions of the sequence, (1, 4, positions, 16)."""
    whole = np.random.default_rng(seed).standard_normal((1, 4, POSITIONS, 16), dtype=np.float32)
    return whole[:, :, positions]


def main():
    """Prints the loss of each step. Returns the last logits."""
    # [snippet: ranks]
    comm = MPI.COMM_WORLD
    ranks = attune.mpi.on_ranks(comm, attune.op("sink"), queries="zigzag", keys="zigzag")
    mine = attune.mpi.positions(comm, POSITIONS, "zigzag")  # those of this rank: even work under a causal mask
    q, k, v, target = (tokens(seed, mine) for seed in range(4))
    logit = np.zeros(4, np.float32)  # one for each head
    for step in range(STEPS):
        out, saved = ranks.forward_and_save(q, k, v, logit=logit, mask=masks.causal())
        loss = comm.allreduce(0.5 * float(np.sum((out - target) ** 2, dtype=np.float64)))
        g = ranks.vjp(saved, out - target)  # g["q"] belongs to this rank's queries ...
        logit -= 0.01 * g["normalizer.logit"]  # ... and this one is summed over all ranks
        if comm.rank == 0:
            print(f"step {step}: loss {loss:.4f}")
    # [/snippet]
    ranks.free()
    return logit


if __name__ == "__main__":
    main()
