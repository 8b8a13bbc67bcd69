# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Implementations of one case, run in turn (A B C, B C A, ...): what disturbs the machine disturbs all of them alike.

In every round the limits of the machine are measured too. A case prints a JSON line for each implementation:
  group, case, shape, name, threads, dtype     what ran; name "attune" is our answer to the case
  median_s, min_s, rounds                      seconds of one call
  gflops, fma_peak, pct_peak                   fma_peak: threads x that of one thread, for two short-lived threads often share a core
  gbps, read_peak, pct_read                    where a case is bound by memory
  error, correct                               largest difference to the first implementation, relative to its largest number
A line with "skipped" instead of times says why an implementation did not run.
"""
import dataclasses
import json
import statistics
import sys
import time
import typing

import torch


@dataclasses.dataclass
class Implementation:
    name: str
    run: typing.Optional[typing.Callable]  # one call; None: it does not exist here
    result: typing.Optional[typing.Callable] = None  # what a call computed, where run() does not return it
    same: bool = True  # computes what the others compute; False: a baseline, never compared


@dataclasses.dataclass
class Case:
    group: str
    name: str
    shape: str
    flops: float
    dtype: str = "f32"
    bytes: float = 0  # read from memory; 0: not what bounds this case
    tolerance: float = 1e-4


class _Contender:
    def __init__(self, of):
        self.name, self.run, self.seconds = of.name, of.run, []
        self.error = None


class Rounds:
    """options: threads, rounds, budget (seconds of a case), only (a compiled expression, or None). emit takes a dict."""

    def __init__(self, options, library):
        self.options, self.library = options, library
        self.wrong = 0

    def emit(self, **line):
        print(json.dumps(line), flush=True)

    def skipped(self, case, name, why):
        self.emit(group=case.group, case=case.name, shape=case.shape, name=name, threads=self.options.threads, dtype=case.dtype,
                  skipped=why.strip().splitlines()[0][:300] if why.strip() else "no message")

    def run(self, case, implementations):
        live, reference = [], None
        for one in implementations:
            if self.options.only and not self.options.only.search(one.name):
                continue
            if one.run is None:
                self.skipped(case, one.name, "not in this library")
                continue
            contender = _Contender(one)
            try:
                one.run()  # compiles, allocates
                start = time.perf_counter()
                output = one.run()
                contender.warm = time.perf_counter() - start
                if one.same:
                    output = _tensors(one.result() if one.result else output)
                    reference = reference or [x.clone() for x in output]
                    contender.error = _difference(output, reference)
            except Exception as problem:  # a peer that cannot do this case must not end the run
                self.skipped(case, one.name, f"{type(problem).__name__}: {problem}")
                continue
            live.append(contender)
        if not live:
            return
        rounds = max(min(3, self.options.rounds), min(self.options.rounds, int(self.options.budget / sum(x.warm for x in live))))
        fma, read = [], []
        for r in range(rounds):
            self._measure_machine(case, fma, read)
            first = r % len(live)  # who comes first finds caches full of what the machine was measured with
            for one in live[first:] + live[:first]:
                one.seconds.append(_seconds(one))
        for one in live:
            self._report(case, one, rounds, fma, read)

    def _measure_machine(self, case, fma, read):
        peak = self.library.machine("peak_fma_f64" if case.dtype == "f64" else "peak_fma", 1)
        if peak is not None:
            fma.append(self.options.threads * peak)
            if case.bytes:
                read.append(self.library.machine("peak_bw", self.options.threads))

    def _report(self, case, one, rounds, fma, read):
        median = statistics.median(one.seconds)
        line = dict(group=case.group, case=case.name, shape=case.shape, name=one.name, threads=self.options.threads,
                    dtype=case.dtype, median_s=median, min_s=min(one.seconds), rounds=rounds)
        line.update(_rate(case.flops / median / 1e9, "gflops", "fma_peak", "pct_peak", fma))
        if case.bytes:
            line.update(_rate(case.bytes / median / 1e9, "gbps", "read_peak", "pct_read", read))
        if one.error is not None:
            correct = one.error <= case.tolerance  # false for NaN
            self.wrong += not correct
            line.update(error=one.error if one.error == one.error else "NaN", correct=correct)
            if not correct:
                print(f"WRONG: {one.name}, {case.group} {case.name} {case.shape}: error {one.error}", file=sys.stderr)
        self.emit(**line)


def _rate(value, name, peak_name, percent_name, peaks):
    if not peaks:
        return {name: round(value, 2)}
    peak = statistics.median(peaks)
    return {name: round(value, 2), peak_name: round(peak, 1), percent_name: round(100 * value / peak, 1)}


def _seconds(one):
    """Of one call, from as many as last 10 ms."""
    time.sleep(0.004)  # let the threads of the runtime before us go to sleep
    if one.warm < 0.1:
        one.run()  # a system that wakes threads puts them on one processor first, and apart some milliseconds later
    calls = min(200, max(1, int(0.01 / max(one.warm, 1e-7))))
    start = time.perf_counter()
    for _ in range(calls):
        one.run()
    return (time.perf_counter() - start) / calls


def _tensors(output):
    return [x.detach().to(torch.float64) for x in ([output] if isinstance(output, torch.Tensor) else output)]


def _difference(output, reference):
    """The largest difference, relative to the largest number of its tensor. A tensor may be 0 but for rounding, such as the gradient by
    what all logits of a row have in common: its largest number counts as 1e-3 of the largest of all tensors at least."""
    if [x.shape for x in output] != [x.shape for x in reference]:
        return float("nan")
    sizes = [float(y.abs().max()) for y in reference]
    least = max(1e-3 * max(sizes), 1e-30)
    errors = [float((x - y).abs().max()) / max(size, least) for x, y, size in zip(output, reference, sizes)]
    return max(errors) if all(e == e for e in errors) else float("nan")
