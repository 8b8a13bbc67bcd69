# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The cases of test_mpi.py, on every rank: mpirun -n 2 python mpi_program.py SEED FULL RESULTS.

Every rank makes the same whole arrays, passes its part, and compares with the operator in one process. Rank 0 writes
for each case the errors of the ranks, as JSON: {"case": ["", ""]}.
"""

import importlib.util
import json
import pathlib
import runpy
import sys
import traceback
import types

import numpy as np
from mpi4py import MPI

import attune
import attune.mpi
from attune import masks

COMM = MPI.COMM_WORLD
R, SIZE = COMM.Get_rank(), COMM.Get_size()
CASES, FULL_CASES = {}, {}
CAUSAL = masks.causal()


def case(f):
    CASES[f.__name__] = f
    return f


def full_case(f):
    FULL_CASES[f.__name__] = f
    return f


def near(kind=np.float64):
    return dict(rtol=1e-11, atol=1e-12) if kind == np.float64 else dict(rtol=2e-4, atol=2e-5)


def compare(rng, op, order, kind=np.float64, length=13, plan="chosen", mask=CAUSAL, returns="out", terms=1, **named):
    """Forward and vjp on ranks against one process. terms: of a fold. Returns the gradients."""
    q, k, v, dout = (rng.standard_normal((2, h, length, 8)).astype(kind) for h in (4 * terms, 2 * terms, 2, 4))
    mine = attune.mpi.positions(COMM, length, order)
    ranks = attune.mpi.on_ranks(COMM, op, queries=order, keys=order, plan=plan)
    part = [x[:, :, mine] for x in (q, k, v)]
    out, saved = ranks.forward_and_save(*part, mask=mask, returns=returns, **named)
    again = ranks(*part, mask=mask, returns=returns, **named)
    found = ranks.vjp(saved, dout[:, :, mine])
    wanted = op(q, k, v, mask=mask, returns=returns, **named)
    exact = op.vjp(q, k, v, dout=dout, mask=mask, **named)
    if returns == "out":
        out, again, wanted = (out,), (again,), (wanted,)
    for x, y, z in zip(out, again, wanted):
        assert x.dtype == z.dtype and np.array_equal(x, y)
        np.testing.assert_allclose(x, z[:, :, mine], **near(kind))
    assert sorted(found) == sorted(exact)
    for name, x in found.items():
        y = exact[name][:, :, mine] if name in "qkv" else exact[name]
        np.testing.assert_allclose(x, y, err_msg=name, **near(kind))
    ranks.free()
    return found


def same_error(kind, text, f):
    """f raises this kind of exception on every rank, with one text."""
    try:
        f()
    except Exception as e:
        raised = e
    else:
        raised = None
    texts = COMM.allgather((type(raised).__name__, str(raised)))
    assert len(set(texts)) == 1, texts
    assert type(raised) is kind and text in str(raised), texts[0]


@case
def zigzag(rng):
    compare(rng, attune.op("softmax"), "zigzag", returns=("out", "lse"))


@case
def contiguous_ring_and_states(rng):
    for plan in ("ring", "states"):
        compare(rng, attune.op("softmax"), "contiguous", plan=plan, mask=masks.window(3, 0))


@case
def intervals(rng):
    uneven = [[(0, 2), (9, 13)], [(2, 9)]] + [[]] * (SIZE - 2)
    compare(rng, attune.op("softmax"), uneven, mask=masks.documents(np.arange(13) // 5))


@case
def a_rank_without_positions(rng):
    compare(rng, attune.op("softmax"), [[(0, 13)]] + [[]] * (SIZE - 1))


@case
def parts_as_the_ranks_pass_them(rng):
    """Without intervals: in the order of the ranks, of any sizes; an offset of the whole problem."""
    op = attune.op("softmax")
    q, k, v = (rng.standard_normal((1, 2, n, 4)) for n in (5, 9, 9))
    cut = [slice(0, 1), slice(1, None)] + [slice(0, 0)] * (SIZE - 2)
    ranks = attune.mpi.on_ranks(COMM, op)
    rest = dict(mask=CAUSAL, offset=2)
    out = ranks(q[:, :, cut[R]], k[:, :, cut[R]], v[:, :, cut[R]], **rest)
    np.testing.assert_allclose(out, op(q, k, v, **rest)[:, :, cut[R]], **near())
    ranks.free()


@case
def a_gradient_of_a_parameter(rng):
    logit = rng.standard_normal(4)
    found = compare(rng, attune.op("sink"), "zigzag", logit=logit)["normalizer.logit"]
    assert found.shape == (4,) and np.all(found != 0)
    assert len({x.tobytes() for x in COMM.allgather(found)}) == 1  # the same bits on every rank
    alone = compare(rng, attune.op("sink"), "zigzag", logit=0.5)["normalizer.logit"]
    assert alone.shape == () and alone != 0


@case
def saved_rows_serve_several_times(rng):
    q, dout = rng.standard_normal((2, 1, 2, 6, 4))
    mine = attune.mpi.positions(COMM, 6)
    ranks = attune.mpi.on_ranks(COMM, attune.op("softmax"))
    x, d = q[:, :, mine], dout[:, :, mine]
    first = ranks.forward_and_save(x, x, x)[1]
    ranks.forward_and_save(2 * x, x, x)
    g = ranks.vjp(first, d, wanted=["q", "v"])
    assert sorted(g) == ["q", "v"]
    assert np.array_equal(ranks.vjp(first, d)["q"], g["q"])
    np.testing.assert_allclose(g["q"], attune.op("softmax").vjp(q, q, q, dout=dout)["q"][:, :, mine], **near())
    ranks.free()


@case
def threads_do_not_change_bits(rng):
    q = rng.standard_normal((1, 2, 40, 4))[:, :, attune.mpi.positions(COMM, 40, "zigzag")]
    ranks = attune.mpi.on_ranks(COMM, attune.op("softmax"), queries="zigzag", keys="zigzag")
    assert np.array_equal(ranks(q, q, q, mask=CAUSAL, threads=1), ranks(q, q, q, mask=CAUSAL, threads=3))
    ranks.free()


@case
def mismatches_raise_on_all_ranks(rng):
    q = rng.standard_normal((1, 2, 6, 4))
    x = q[:, :, attune.mpi.positions(COMM, 6, "zigzag")]
    softmax, sink = attune.op("softmax"), attune.op("sink")
    last = R == SIZE - 1
    there = f"rank {SIZE - 1}"
    ranks = attune.mpi.on_ranks(COMM, softmax, queries="zigzag", keys="zigzag")
    sinks = attune.mpi.on_ranks(COMM, sink, queries="zigzag", keys="zigzag")
    _, saved = ranks.forward_and_save(x, x, x)
    _, other = sinks.forward_and_save(x, x, x, logit=0.5)
    for kind, text, f in (
        (attune.Error, f"the mask on {there}", lambda: ranks(x, x, x, mask=CAUSAL if last else None)),
        (attune.Error, f"normalizer.logit on {there}", lambda: sinks(x, x, x, logit=float(last))),
        (attune.Error, f"{there} has the exception", lambda: sinks(x, x, x, **({} if last else {"logit": 0.0}))),
        (attune.Error, f"k on {there} has shape (1, 1, 6, 4)", lambda: ranks(x, x[:, : 2 - last], x)),
        (attune.Error, f"attune: {there}: v has 3 axes", lambda: ranks(x, x, x[0] if last else x)),
        (attune.Error, f"on {there} has float32", lambda: ranks(*[x.astype(np.float32 if last else x.dtype)] * 3)),
        (attune.Error, f"on {there} has a forward pass", lambda: (ranks if last else ranks.forward_and_save)(x, x, x)),
        (attune.Error, "the positions that", lambda: ranks(x, x[:, :, 2 * last :], x[:, :, 2 * last :])),
        (attune.Error, "has the type float16; expected float32", lambda: ranks(*[x.astype(np.float16)] * 3)),
        (TypeError, f"{there}: softmax() has no argument", lambda: ranks(x, x, x, **({"other": 1.0} if last else {}))),
        (attune.Error, "the gradient of out", lambda: ranks.vjp(saved, x[:, :, last:])),
        (attune.Error, "saved has", lambda: ranks.vjp(other if last else saved, x)),
        (attune.Error, "plan has", lambda: attune.mpi.on_ranks(COMM, softmax, plan="fast" if last else "ring")),
        (attune.Error, "keys has", lambda: attune.mpi.on_ranks(COMM, softmax, keys=[[(0, 1)]] if last else "zigzag")),
        (attune.Error, "operator has", lambda: attune.mpi.on_ranks(COMM, "softmax")),
    ):
        same_error(kind, text, f)
    for text, options in (
        (f"the plan on {there}", dict(plan="ring" if last else "states")),
        ("the sharding of the keys", dict(keys="contiguous" if last else "zigzag")),
        ("position 0 twice", dict(keys=[[(0, 6)]] * SIZE)),
    ):
        differing = attune.mpi.on_ranks(COMM, softmax, queries="zigzag", **options)
        same_error(attune.Error, text, lambda: differing(x, x, x))
        differing.free()
    differing = attune.mpi.on_ranks(COMM, sink if last else softmax, queries="zigzag", keys="zigzag")
    same_error(attune.Error, f"the operator on {there}", lambda: differing(x, x, x, **({"logit": 0.5} if last else {})))
    differing.free()
    assert np.all(np.isfinite(ranks(x, x, x)))  # the next call works
    ranks.free(), sinks.free()
    same_error(attune.Error, "no ranks after free()", lambda: ranks(x, x, x))


@case
def another_mpi_is_refused(rng):
    op = attune.op("softmax")
    x = rng.standard_normal((1, 1, 2, 4))
    ranks = attune.mpi.on_ranks(COMM, op)
    ranks(x, x, x)
    other = attune.mpi.on_ranks(COMM, op)
    other._library.identity = "MPI of somebody else 1.0"
    same_error(attune.Error, 'the MPI "MPI of somebody else 1.0"', lambda: other(x, x, x))
    ranks.free(), other.free()


@case
def wrong_communicators(rng):
    op = attune.op("softmax")
    same_error(attune.Error, "comm has the value COMM_NULL", lambda: attune.mpi.on_ranks(MPI.COMM_NULL, op))
    same_error(attune.Error, "comm has the type str", lambda: attune.mpi.on_ranks("world", op))
    alone = attune.mpi.on_ranks(MPI.COMM_SELF, op, queries="zigzag", keys="zigzag")
    x = rng.standard_normal((1, 1, 4, 4))
    np.testing.assert_allclose(alone(x, x, x, mask=CAUSAL), op(x, x, x, mask=CAUSAL), **near())
    alone.free()


@case
def tensors_of_torch(rng):
    if importlib.util.find_spec("torch") is None:
        return
    import torch

    x = torch.from_numpy(rng.standard_normal((1, 2, 6, 4)))
    mine = torch.from_numpy(attune.mpi.positions(COMM, 6))
    ranks = attune.mpi.on_ranks(COMM, attune.op("softmax"))
    part = x[:, :, mine]
    out, saved = ranks.forward_and_save(part, part, part)
    assert torch.allclose(out, attune.op("softmax")(x, x, x)[:, :, mine])
    g = ranks.vjp(saved, part)
    assert isinstance(g["q"], torch.Tensor)
    assert torch.allclose(g["q"], attune.op("softmax").vjp(x, x, x, dout=x)["q"][:, :, mine])
    same_error(attune.Error, "requires gradients", lambda: ranks(part.requires_grad_(), part, part))
    ranks.free()


@full_case
def float32_and_the_other_layout(rng):
    compare(rng, attune.op("softmax"), "zigzag", kind=np.float32)
    op = attune.op("softmax")
    x = rng.standard_normal((2, 9, 3, 4)).astype(np.float32)
    mine = attune.mpi.positions(COMM, 9, "zigzag")
    ranks = attune.mpi.on_ranks(COMM, op, queries="zigzag", keys="zigzag")
    rest = dict(layout="blhd", mask=CAUSAL)
    out, saved = ranks.forward_and_save(*[x[:, mine]] * 3, **rest)
    np.testing.assert_allclose(out, op(x, x, x, **rest)[:, mine], **near(np.float32))
    g = ranks.vjp(saved, x[:, mine])["k"]
    np.testing.assert_allclose(g, op.vjp(x, x, x, dout=x, **rest)["k"][:, mine], **near(np.float32))
    ranks.free()


@full_case
def a_candidate_set(rng):
    compare(rng, attune.op("entmax15"), "zigzag")


@full_case
def an_own_operator_and_a_fold(rng):
    own = attune.compile_operator("attention(kernel::rbf{open}, normalizer::sink{open}, m)", dtypes="float64")
    compare(rng, own, "zigzag", tau=0.7, logit=rng.standard_normal(4))
    both = "fold(attention(kernel::dot_product{}, normalizer::softmax{}, m), {1.0, open})"
    compare(rng, attune.compile_operator(both, dtypes="float64"), "zigzag", terms=2, fold_1=-0.5)


@full_case
def the_example_of_the_page(rng):
    path = pathlib.Path(__file__).parents[1] / "examples" / "mpi_step.py"
    example = types.SimpleNamespace(**runpy.run_path(str(path)))
    found = example.main()
    q, k, v, target = (example.tokens(seed, slice(None)) for seed in range(4))
    op, logit = attune.op("sink"), np.zeros(4, np.float32)
    for _ in range(example.STEPS):
        rest = dict(logit=logit, mask=CAUSAL)
        logit = logit - 0.01 * op.vjp(q, k, v, dout=op(q, k, v, **rest) - target, **rest)["normalizer.logit"]
    assert np.all(np.abs(logit) > 0.01)
    np.testing.assert_allclose(found, logit, rtol=1e-3)


def main():
    seed, full, results = int(sys.argv[1]), sys.argv[2] == "1", sys.argv[3]
    found = {}
    for number, (name, f) in enumerate({**CASES, **(FULL_CASES if full else {})}.items()):
        error = ""
        try:
            f(np.random.default_rng([seed, number]))
        except Exception:
            error = traceback.format_exc()
        found[name] = COMM.gather(error)
    if R == 0:
        with open(results, "w") as file:
            json.dump(found, file)


if __name__ == "__main__":
    main()
