# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""One call on several processes: the queries and keys lie on the ranks of an mpi4py communicator.

    from mpi4py import MPI
    import attune.mpi

    ranks = attune.mpi.on_ranks(MPI.COMM_WORLD, attune.op("softmax"), queries="zigzag", keys="zigzag")
    mine = attune.mpi.positions(MPI.COMM_WORLD, length, "zigzag")     # of the whole sequence
    out, saved = ranks.forward_and_save(q[:, :, mine], k[:, :, mine], v[:, :, mine], mask=masks.causal())
    g = ranks.vjp(saved, dout)

Needs mpi4py, and MPI's development files where an operator is compiled. docs/howto/mpi.md has more.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any, Callable, Iterable, Optional, Sequence, Union

import numpy

from . import _abi
from ._arrays import index_of, is_torch, wrong
from ._calls import cotangents_of, names_of, returned
from ._errors import CompileError
from ._layout import RANKS_STEP as STEP
from ._layout import TYPE
from ._mpi_library import MpiLibrary, mpi4py_module
from ._operator import Operator
from .masks import Mask

#: "contiguous", "zigzag", or for each rank its intervals (first, last + 1).
Shards = Union[str, Sequence[Iterable[Sequence[int]]]]

_RANKS = _abi.Layout("ranks").packer("step plan communicator library queries keys ranks rows gradients")
_STEPS = {STEP.forward: "a forward pass", STEP.save: "forward_and_save", STEP.vjp: "vjp"}
_PLANS = ("chosen", "ring", "states")
_ORDERS = ("contiguous", "zigzag")
_KINDS: dict[str, Callable[[str], Exception]] = {
    "Error": _abi.Error,
    "TypeError": TypeError,
    "CompileError": CompileError,
    "MemoryError": MemoryError,
    "RuntimeError": RuntimeError,
}


def positions(comm: Any, length: int, order: Shards = "contiguous") -> Any:
    """The positions of a sequence that this rank holds, ascending: an array of int64, for x[:, :, positions(...)].

    order: as the arguments queries and keys of on_ranks.
    """
    n = index_of(length)
    if n is None or n < 0:
        raise wrong("length", f"the value {length!r}", "a number of positions >= 0")
    intervals = _intervals("order", order, n, comm.Get_size())[comm.Get_rank()]
    return numpy.concatenate([numpy.arange(0), *(numpy.arange(first, last) for first, last in intervals)])


def on_ranks(
    comm: Any,
    operator: Operator,
    *,
    queries: Shards = "contiguous",
    keys: Shards = "contiguous",
    plan: str = "chosen",
) -> RanksOperator:
    """The operator on all ranks of an mpi4py communicator. Each rank passes its part of every array.

    queries, keys: which rank holds which positions. "contiguous": in the order of the ranks, as many as each rank
    passes. "zigzag": two blocks for each rank, from the front and from the back, for even work under a causal mask. Or
    for each rank a list of its intervals (first, last + 1). `positions` lists the positions of a rank.
    plan: "ring" (keys travel), "states" (queries travel), or "chosen": the one that sends fewer bytes.

    All ranks make the same calls in the same order, from the thread that initialized MPI. An error on one rank raises
    the same exception on all. The communicator is duplicated; free() gives the duplicates back.
    Raises attune.Error if an argument is wrong, ImportError without mpi4py.
    """
    _check_communicator(comm)
    error, orders = _attempt(lambda: _checked(comm.Get_size(), operator, queries, keys, plan))
    _agree(comm, error)
    of_queries, of_keys = orders
    return RanksOperator(comm, operator, of_queries, of_keys, _PLANS.index(plan))


class RanksOperator:
    """An operator on the ranks of a communicator. attune.mpi.on_ranks makes it.

    Calls take the arguments of the operator. Arrays have the positions of this rank. The mask, the offset, the
    parameters and the tables belong to the whole problem and are the same on all ranks. Inputs with one number per pair
    have the rank's queries and all keys. Types are float32 and float64. The first use of each type compiles a library,
    which is kept. The bits depend neither on the threads nor on the run.
    """

    def __init__(self, comm: Any, operator: Operator, queries: Shards, keys: Shards, plan: int) -> None:
        self.operator = operator
        self._comm, self._orders, self._plan = comm.Dup(), (queries, keys), plan
        self._library = MpiLibrary()
        self._threads = _threads_of_this_rank(self._comm)
        self._joined: dict[int, ctypes.c_void_p] = {}  # a duplicate for each element type: each has its library

    def __repr__(self) -> str:
        return f"<{self.operator!r} on {self._comm.Get_size()} ranks>"

    def __call__(
        self, q: Any = None, k: Any = None, v: Any = None, *, mask: Optional[Mask] = None, offset: Any = None,
        threads: Optional[int] = None, returns: Union[str, Sequence[str]] = ("out",), layout: str = "bhld", **named: Any,
    ) -> Any:
        """The outputs for this rank's queries: one array, or a tuple in the order of `returns`.

        threads: of this rank; None shares the processors among the ranks of a machine. Other arguments are those of the
        operator. All ranks call it. Memory: two blocks of another rank, and a state for each of the rank's queries.
        """
        return self._forward(STEP.forward, q, k, v, mask, offset, threads, layout, returns, named)[0]

    def forward_and_save(
        self, q: Any = None, k: Any = None, v: Any = None, *, mask: Optional[Mask] = None, offset: Any = None,
        threads: Optional[int] = None, returns: Union[str, Sequence[str]] = ("out",), layout: str = "bhld", **named: Any,
    ) -> tuple[Any, Saved]:
        """What a call returns, and what vjp() needs of this rank's rows. Arrays must not change before vjp()."""
        return self._forward(STEP.save, q, k, v, mask, offset, threads, layout, returns, named)

    def vjp(
        self,
        saved: Saved,
        dout: Any = None,
        *,
        dlse: Any = None,
        dground_weight: Any = None,
        wanted: Optional[Iterable[str]] = None,
    ) -> dict[str, Any]:
        """Gradients of <dout, out> + <dlse, lse> + <dground_weight, ground_weight>, summed over all ranks, by name.

        An array gets the gradient by this rank's part. What all ranks hold (parameters, tables, inputs that all queries
        share) gets the sum over the ranks, with the same bits on every rank. saved: the result of forward_and_save(),
        which can serve several times. wanted: names of the gradients to return; None: of everything that the call gave.
        All ranks call it.
        """

        def prepare() -> _Prepared:
            if not isinstance(saved, Saved) or saved.of is not self:
                found = repr(saved) if isinstance(saved, Saved) else f"the type {type(saved).__name__}"
                raise wrong("saved", found, "the result of this object's forward_and_save()")
            call = saved.call
            places = self.operator._gradients_of(call, wanted)
            by = cotangents_of(self.operator, {"out": dout, "lse": dlse, "ground_weight": dground_weight})
            memory, results, _ = call.gradient_block(by, places)
            return _Prepared(call, self._function(call), results, memory)

        ready = self._ready(STEP.vjp, prepare)
        self._run(STEP.vjp, ready, saved.rows, ctypes.addressof(ready.gradients))
        return self.operator._by_path(ready.results)

    def free(self) -> None:
        """Frees the duplicates of the communicator. All ranks call it; no call may follow."""
        for code, joined in self._joined.items():
            self._run_library(self._function_of(code), STEP.leave, ranks=joined)
        self._joined = {}
        self._comm.Free()

    def _forward(self, step: int, q: Any, k: Any, v: Any, mask: Any, offset: Any, *more: Any) -> Any:
        """The outputs, and the Saved of the call if the step makes it."""
        threads, layout, returns, named = more

        def prepare() -> _Prepared:
            for x in (q, k, v, *named.values()):
                if is_torch(x) and x.requires_grad:
                    found = "a tensor that requires gradients"
                    raise wrong("the call", found, "detach(); forward_and_save() and vjp() are for gradients")
            own = self._threads if threads is None else threads
            call = self.operator._call(q, k, v, mask, offset, own, layout, named)
            outputs = call.blank_outputs(names_of(returns))
            return _Prepared(call, self._function(call), outputs)

        ready = self._ready(step, prepare)
        rows = ctypes.c_void_p()
        self._run(step, ready, rows)
        return returned(ready.results), Saved(self, ready.call, rows, ready.function) if step == STEP.save else None

    def _function(self, call: Any) -> Any:
        """The function of the library for the type of a call."""
        if call.code not in (TYPE.float32, TYPE.float64):
            raise wrong("the call", f"the type {_abi.TYPES[call.code]}", "float32 or float64: widen the arrays")
        return self._function_of(call.code)

    def _function_of(self, code: int) -> Any:
        run = self.operator._companions.run("mpi", code, against=self._library)
        if code not in self._joined:
            self._run_library(run, STEP.match)
        return run

    def _ready(self, step: int, prepare: Callable[[], _Prepared]) -> _Prepared:
        """What prepare() returns, when it has succeeded on all ranks and all are about to do the same."""
        if self._comm == mpi4py_module().COMM_NULL:
            raise wrong("the call", "no ranks after free()", "another attune.mpi.on_ranks(...)")
        error, ready = _attempt(prepare)
        numbers = (0, 0, 0) if ready is None else (ready.call.code, ready.call.rows[2], _keys(ready.call))
        found = _agree(self._comm, error, step, *numbers)
        assert ready is not None
        for n, words in ((0, _STEPS), (1, _abi.TYPES)):
            other = numpy.flatnonzero(found[:, n] != found[0, n])
            if other.size:
                r = int(other[0])
                expected = f"{words[int(found[0, n])]}, as on rank 0"
                raise wrong(f"the call on rank {r}", words[int(found[r, n])], expected)
        totals = found[:, 2].sum(), found[:, 3].sum()
        ready.shards = [
            _Shards(name, order, int(total), self._comm.Get_size())
            for name, order, total in zip(("queries", "keys"), self._orders, totals)
        ]
        code = ready.call.code
        if code not in self._joined:
            joined = ctypes.c_void_p()
            self._run_library(ready.function, STEP.join, ranks=joined)
            self._joined[code] = joined
        return ready

    def _run(self, step: int, ready: _Prepared, rows: ctypes.c_void_p, gradients: int = 0) -> None:
        parts = [n for shards in ready.shards for n in shards.packed]
        joined = self._joined[ready.call.code]
        self._run_library(ready.function, step, ready.call.address, joined, rows, gradients, parts)

    def _run_library(
        self,
        run: Any,
        step: int,
        call: Optional[int] = None,
        ranks: Optional[ctypes.c_void_p] = None,
        rows: Optional[ctypes.c_void_p] = None,
        gradients: int = 0,
        shards: Sequence[int] = (0,) * 8,
    ) -> None:
        """Runs a step of attune_mpi_1(): c_abi.h, attune_ranks."""
        identity = ctypes.create_string_buffer(self._library.identity.encode())
        handle = self._comm.py2f() if step == STEP.join else 0
        places = [0 if x is None else ctypes.addressof(x) for x in (ranks, rows)]
        run(call, _RANKS.pack(step, self._plan, handle, ctypes.addressof(identity), *shards, *places, gradients))


class Saved:
    """What vjp() needs of this rank's rows, and the arrays of the call."""

    def __init__(self, of: RanksOperator, call: Any, rows: ctypes.c_void_p, function: Any) -> None:
        self.of, self.call, self.rows = of, call, rows
        weakref.finalize(self, of._run_library, function, STEP.forget, rows=rows).atexit = False

    def __repr__(self) -> str:
        return f"<saved rows of {self.of!r}>"


class _Prepared:
    """A call that is checked on this rank."""

    def __init__(self, call: Any, function: Any, results: Any, gradients: Any = None) -> None:
        self.call, self.function, self.results, self.gradients = call, function, results, gradients
        self.shards: list[_Shards] = []


class _Shards:
    """A sharding as the interface reads it."""

    def __init__(self, name: str, order: Shards, total: int, ranks: int) -> None:
        self.packed = (0, 0, 0, 0)
        if isinstance(order, str) and order == "contiguous":
            return
        intervals = _intervals(name, order, total, ranks)
        self._counts = numpy.array([len(x) for x in intervals], numpy.int64)
        self._ends = numpy.array([n for x in intervals for pair in x for n in pair], numpy.int64)
        self.packed = self._counts.ctypes.data, self._ends.ctypes.data, total, ranks


def _intervals(name: str, order: Shards, total: int, ranks: int) -> list[list[tuple[int, int]]]:
    """For each rank its intervals, as sharding::contiguous and sharding::zigzag of exec/mpi/sharding.hpp."""

    def block(n: int, blocks: int) -> tuple[int, int]:
        size, more = divmod(total, blocks)
        return n * size + min(n, more), (n + 1) * size + min(n + 1, more)

    if isinstance(order, str) and order == "contiguous":
        return [[block(r, ranks)] for r in range(ranks)]
    if isinstance(order, str) and order == "zigzag":
        return [[block(r, 2 * ranks), block(2 * ranks - 1 - r, 2 * ranks)] for r in range(ranks)]
    return _listed(name, order, ranks)


def _listed(name: str, order: Any, ranks: int) -> list[list[tuple[int, int]]]:
    expected = f'"contiguous", "zigzag", or for each of the {ranks} ranks a list of intervals (first, last + 1)'
    try:
        if isinstance(order, str):
            raise ValueError
        intervals = [[tuple(index_of(n) for n in pair) for pair in shard] for shard in order]
    except (TypeError, ValueError):
        raise wrong(name, f"the value {order!r}", expected) from None
    if len(intervals) != ranks:
        raise wrong(name, f"lists for {len(intervals)} ranks", expected)
    for pair in (pair for shard in intervals for pair in shard):
        if len(pair) != 2 or any(n is None or not 0 <= n < 2**62 for n in pair):
            raise wrong(name, f"the interval {pair!r}", expected)
    return intervals


def _check_communicator(comm: Any) -> None:
    mpi = mpi4py_module()
    if not isinstance(comm, mpi.Comm):
        raise wrong("comm", f"the type {type(comm).__name__}", "a communicator of mpi4py")
    if comm == mpi.COMM_NULL:
        raise wrong("comm", "the value COMM_NULL", "a communicator that has this rank")
    if comm.Is_inter():
        raise wrong("comm", "two groups of ranks", "one group: comm.Merge()")


def _checked(ranks: int, operator: Any, queries: Shards, keys: Shards, plan: str) -> list[Shards]:
    """The orders, read once: an iterator has its intervals only once."""
    if not isinstance(operator, Operator):
        expected = "an operator: attune.op(name), attune.compile(...) or attune.compile_operator(text)"
        raise wrong("operator", f"the type {type(operator).__name__}", expected)
    if plan not in _PLANS:
        raise wrong("plan", f"the value {plan!r}", f"one of {', '.join(_PLANS)}")
    return [
        order if isinstance(order, str) and order in _ORDERS else _listed(name, order, ranks)
        for name, order in (("queries", queries), ("keys", keys))
    ]


def _keys(call: Any) -> int:
    """The number of keys of this rank."""
    return int(call.extent_of("v", "k"))


def _attempt(f: Callable[[], Any]) -> tuple[Optional[Exception], Any]:
    """What f() raises and returns."""
    try:
        return None, f()
    except Exception as e:
        return e, None


def _agree(comm: Any, error: Optional[Exception], *numbers: int) -> Any:
    """The numbers of all ranks, a row for each. If a rank has an error, all ranks raise that of the lowest one."""
    mine = numpy.array([error is not None, *numbers], numpy.int64)
    found = numpy.empty((comm.Get_size(), len(mine)), numpy.int64)
    comm.Allgather(mine, found)
    failed = numpy.flatnonzero(found[:, 0])
    if failed.size == 0:
        return found[:, 1:]
    rank = int(failed[0])
    kind, text = comm.bcast(_described(error) if comm.Get_rank() == rank else None, root=rank)
    raise _KINDS[kind](f"attune: rank {rank}: {text}") from error


def _described(error: Optional[Exception]) -> tuple[str, str]:
    """The kind and the text of an error. Kinds that the other ranks may not have become RuntimeError."""
    kind = next((name for name in _KINDS if isinstance(error, _KINDS[name])), "RuntimeError")  # type: ignore[arg-type]
    text = str(error) or type(error).__name__
    return kind, text.removeprefix("attune: ")


def _threads_of_this_rank(comm: Any) -> int:
    """The processors that this rank may use, divided by the ranks of the machine that may use one of them."""
    here = comm.Split_type(mpi4py_module().COMM_TYPE_SHARED)
    mine = frozenset(os.sched_getaffinity(0))
    sharing = sum(1 for theirs in here.allgather(mine) if theirs & mine)
    here.Free()
    return max(1, len(mine) // max(1, sharing))


__all__ = ["RanksOperator", "Saved", "Shards", "on_ranks", "positions"]
