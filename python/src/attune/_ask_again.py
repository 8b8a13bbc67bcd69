# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Asks a kernel again that failed: which is its smallest failing call, and which weights does it use?

verdict() is a black box here: a part of the call is a call, too, and the operator says what its result should be. C++
does the same for its callables (testing/asking/ask_again.hpp). The loops stand twice, since each calls a function of the
user's with arrays of its language; through the C interface, one more library would have to be compiled for each
operator.
"""

import copy
import time

import numpy

from . import masks
from ._abi import TYPES
from ._arrays import is_array, is_torch
from ._layout import MASK_KIND as KIND
from ._verdict import doubles, type_named, verdict
from ._weights_seen import differences

_AXES = ("batch", "heads", "queries", "keys")
_ONE = {"batch": "batch element", "heads": "head", "queries": "query", "keys": "key"}
_MANY = {"batch": "batch elements", "heads": "heads", "queries": "queries", "keys": "keys"}
_UNITS = {"float64": 2.0**-24, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
_STEPS = (8, 16, 32, 64, 128)  # a kernel may take multiples of these alone


class _Cut:
    """How the arrays of a probe are cut: parts are {"heads": (first, last), ...}."""

    def __init__(self, probe):
        d, self.layout = probe.operator._description, probe._call.get("layout", "bhld")
        self.sides = dict(zip(d.fields, d.sides))
        each = [self._extents(name, x) for name, x in probe.inputs.items()]
        self.whole = {axis: (0, max(e.get(axis, 1) for e in each)) for axis in _AXES}
        self.each = d.heads_each
        self.whole["heads"] = (0, self.whole["heads"][1] // self.each)

    def _places(self, side):
        """The numbers of the axes of an array."""
        if side == "ground":
            return {"heads": 1}
        if side == "pair":
            return {"batch": 0, "heads": 1, "queries": 2, "keys": 3}
        position, heads = (1, 2) if self.layout == "blhd" else (2, 1)
        return {"batch": 0, "heads": heads, "queries" if side == "query" else "keys": position}

    def _extents(self, name, x):
        side = self.sides[name]
        return {axis: x.shape[n] for axis, n in self._places(side).items() if not (side == "key" and axis == "heads")}

    def of(self, x, side, part):
        """A copy of that part of an array; None where the heads of the part share key heads in another way."""
        at = [slice(None)] * len(x.shape)
        for axis, n in self._places(side).items():
            (first, last), (_, count) = part[axis], self.whole[axis]
            if axis == "heads" and (first, last) != (0, count):
                total = x.shape[n]
                group = [h * total // count for h in range(first, last)]
                lowest, few = group[0], group[-1] - group[0] + 1
                if (last - first) % few or any(g - lowest != h * few // (last - first) for h, g in enumerate(group)):
                    return None
                first, last = lowest, lowest + few
            if x.shape[n] == 1 and count > 1 and axis != "heads":
                first, last = 0, 1
            at[n] = slice(first, last)
        return copied(x[tuple(at)])

    def probe(self, probe, part):
        """The probe of that part of the call; None if there is none."""
        one = copy.copy(probe)
        one.inputs = {name: self.of(x, self.sides[name], part) for name, x in probe.inputs.items()}
        one.dout = None if probe.dout is None else self.of(probe.dout, "query", part)
        return None if any(x is None for x in (*one.inputs.values(), one.dout if probe.dout is not None else 0)) else one


def copied(x):
    return x.detach().clone().contiguous() if is_torch(x) else numpy.array(x, order="C")


def _leaves(mask):
    if mask is None:
        return []
    return [mask] if mask._parts is None else [leaf for part in mask._parts for leaf in _leaves(part)]


class _Rules:
    """What may be cut, so that mask, alignment and parameters keep their meaning: the kernel was given them once."""

    def __init__(self, call, whole, each):
        leaves = _leaves(call.get("mask"))
        kinds = {leaf._kind for leaf in leaves}
        arrays = [x for leaf in leaves for x in (leaf._x, leaf._y) if x is not None]
        given = [x for name, x in call.items() if name not in ("mask", "layout") and is_array(x) and max(x.shape, default=1) > 1]
        lengths = {whole["queries"][1], whole["keys"][1]}
        self.offset = call.get("offset") is not None
        self.from_end = bool(kinds & set(masks._FROM_END))
        self.from_start = bool(kinds & set(masks._FROM_START))
        fixed = bool(arrays) or any(set(x.shape) & lengths for x in given) or (self.from_end and self.from_start)
        self.batch = not arrays and not given and not is_array(call.get("offset"))
        self.heads = not given and each == 1 and all(x.ndim < 3 or x.shape[-3] == 1 for x in arrays)
        self.queries = not fixed
        self.keys = not fixed and not self.offset
        self.first_query = not self.offset and not self.from_start
        self.first_key = self.first_query and kinds <= {KIND.none, KIND.causal, KIND.band}
        self.slack = min(whole["keys"][1] - whole["queries"][1], 0)  # every query sees a key, if it did before
        self.placed = self.from_end or self.from_start

    def part(self, now, axis, span):
        """The part with another span of one axis; None if it means another call."""
        part = {**now, axis: span}
        if axis == "queries" and self.from_end and not self.offset:  # the last query stays at its key
            first, last = now["keys"]
            part["keys"] = (first, last - (now["queries"][1] - span[1]))
        (i, end), (j, keys) = part["queries"], part["keys"]
        if (i and not self.first_query) or (j and not self.first_key) or keys <= j:
            return None
        if self.placed and not self.offset and (keys - j) - (end - i) < self.slack:
            return None
        return part


def _counts(low, high):
    """Numbers between two others, the middle first; then multiples of steps near it."""
    middle = (low + high + 1) // 2
    near = [n for step in _STEPS for n in (-(-middle // step) * step, middle // step * step)]
    return [n for n in dict.fromkeys([middle, *near]) if low < n < high]


class Asking:
    """Calls of a kernel on parts of a probe, within some seconds. compute(probe, gradients) gives its results."""

    def __init__(self, compute, probe, gradients, formats, seconds):
        self.compute, self.probe, self.formats = compute, probe, formats
        self.gradients, self.took, self.deadline = gradients, probe._took, time.perf_counter() + seconds
        self.cut = _Cut(probe)
        self.rules = _Rules(probe._call, self.cut.whole, self.cut.each)
        self.asked, self.late, self.last = {}, False, 0.0
        self.reason = None

    # --- one call ---

    def _has_time(self, part):
        share = 1.0
        for axis in _AXES:
            share *= (part[axis][1] - part[axis][0]) / self.cut.whole[axis][1]
        expected = max(self.took * max(share, 0.05), self.last)
        enough = time.perf_counter() + expected <= self.deadline
        self.late = self.late or not enough
        return enough

    def results(self, one, gradients):
        """What the kernel computed from copies of the inputs; None if it refused."""
        given = copy.copy(one)
        given.inputs = {name: copied(x) for name, x in one.inputs.items()}
        started = time.perf_counter()
        try:
            return self.compute(given, gradients)
        except Exception:  # a shape that the kernel does not take
            return None
        finally:
            self.last = time.perf_counter() - started

    def judged(self, one):
        """The verdict on one call; None if there is none."""
        results = self.results(one, self.gradients)
        if results is None:
            return None
        started = time.perf_counter()
        try:
            if self.gradients:  # out was right: only the gradients are asked for
                results = {name: x for name, x in results.items() if name[:1] == "d"}
            return verdict(one.operator, **one.inputs, **one._call, **results, **self.formats)
        except Exception:  # a result of another shape
            return None
        finally:
            self.last += time.perf_counter() - started

    def fails(self, part):
        """Whether the kernel fails on that part; None if it was not asked."""
        if part is None:
            return None
        key = tuple(part[axis] for axis in _AXES)
        if key not in self.asked:
            one = self.cut.probe(self.probe, part)
            if one is None or not self._has_time(part):
                return None
            found = self.judged(one)
            self.asked[key] = None if found is None else found.decision == "FAIL"
            if self.asked[key]:
                self.reason = found.reasons[0]
        return self.asked[key]

    # --- the smallest call ---

    def smaller(self, now, axis):
        """The smallest failing span of one axis: halves, then without the last, then without the first ones."""
        if not getattr(self.rules, axis):
            return now

        def ask(span):
            part = self.rules.part(now, axis, span)
            return self.fails(part), part

        halving = True
        while halving and now[axis][1] - now[axis][0] > 1:
            first, last = now[axis]
            halving = False
            for count in _counts(0, last - first):
                answers = [ask(span) for span in ((first, first + count), (last - count, last))]
                failing = [part for fails, part in answers if fails]
                if failing:
                    now, halving = failing[0], True
                if any(fails is not None for fails, _ in answers):
                    break
        for of_end in (True, False):
            first, last = now[axis]
            low, high, answered = 0, last - first, True  # `high` of them fail, `low` do not
            while answered and high - low > 1:
                answered = False
                for count in _counts(low, high):
                    fails, part = ask((first, first + count) if of_end else (last - count, last))
                    if fails is None:
                        continue
                    answered = True
                    if fails:
                        now, high = part, count
                        first, last = now[axis]
                    else:
                        low = count
                    break
        return now

    def smallest(self):
        """The part with fewer batch elements and heads, and the smallest one; None if the same call now passes."""
        now = dict(self.cut.whole)
        if self.fails(now) is False:
            return None
        for axis in ("batch", "heads"):
            now = self.smaller(now, axis)
        few = now
        for _ in range(3):
            before = now
            for axis in ("queries", "keys"):
                now = self.smaller(now, axis)
            if now == before:
                break
        return few, now

    def passing(self, now):
        """Sentences about the next smaller calls that pass."""
        found = []
        for axis in _AXES:
            first, last = now[axis]
            if last - first < 2 or not getattr(self.rules, axis):
                continue
            for end in range(last - 1, max(first, last - 5), -1):
                fails = self.fails(self.rules.part(now, axis, (first, end)))
                if fails is not None:
                    if not fails:
                        what = f"the last {last - end} {_MANY[axis]}" if last - end > 1 else f"the last {_ONE[axis]}"
                        found.append(f"without {what} it passes")
                    break
            if axis in ("batch", "heads") and self.fails(self.rules.part(now, axis, (last - 1, last))) is False:
                found.append(f"{_ONE[axis]} {last - 1} alone passes")
        return found

    # --- other values ---

    def wide(self, now):
        """Whether the smallest call fails with q, k, v in float32, too; None if it was not asked."""
        one = self.cut.probe(self.probe, now)
        if _type_of(one) not in ("float16", "bfloat16") or not self._has_time(now):
            return None
        one.inputs = {name: x.float() if is_torch(x) else x.astype(numpy.float32) for name, x in one.inputs.items()}
        one.dout = None if one.dout is None else one.dout.float() if is_torch(one.dout) else one.dout.astype(numpy.float32)
        found = self.judged(one)
        return None if found is None else found.decision == "FAIL"

    def weights(self, part):
        """(seen, exact) weights, each (B, H, Lq, Lk) of the part, from calls with one-hot values; or a sentence."""
        one = self.cut.probe(self.probe, part)
        operator = one.operator
        if "v" not in one.inputs or operator._description.heads_each != 1:
            return "the operator has no plain weights of the values"
        if "v0" in one.inputs:  # the ground's value would be added
            one.inputs["v0"] = one._to.of(numpy.zeros(one.inputs["v0"].shape))
        blhd = self.cut.layout == "blhd"

        def turned(x):
            return x.transpose(0, 2, 1, 3) if blhd else x

        def exact(v):
            kind = "float64" if "float64" in operator._description.types else "float32"
            inputs = {name: doubles(name, x).astype(kind) for name, x in {**one.inputs, "v": v}.items()}
            return turned(numpy.asarray(operator(**inputs, **one._call), numpy.float64))

        values = turned(doubles("v", one.inputs["v"]))
        keys, width = values.shape[2:]
        columns = {"seen": [], "exact": []}
        for first in range(0, keys, width):
            count = min(width, keys - first)
            v = numpy.zeros(values.shape)
            v[:, :, range(first, first + count), range(count)] = 1
            other = copy.copy(one)
            other.inputs = {**one.inputs, "v": one._to.of(numpy.ascontiguousarray(turned(v)))}
            if not self._has_time(part):
                return "no time"
            results = self.results(other, False)
            if results is None:
                return "the kernel refused these values"
            columns["exact"].append(exact(other.inputs["v"])[..., :count])
            try:
                columns["seen"].append(turned(doubles("out", results["out"]))[..., :count])
            except ValueError:
                return "out has another shape"
        seen, right = (numpy.concatenate(columns[name], -1) for name in ("seen", "exact"))
        if seen.shape != right.shape:
            return "out has another shape"
        group = right.shape[1] // values.shape[1]
        known = numpy.repeat(numpy.nan_to_num(values), group, 1)
        out = exact(one._to.of(numpy.ascontiguousarray(turned(numpy.nan_to_num(values)))))
        if abs(right @ known - out).max() > 1e-3 * max(abs(out).max(), 1e-30):
            return "the operator has no plain weights of the values"
        return seen, right


def _type_of(one):
    return TYPES[type_named("the type", next(iter(one.inputs.values())).dtype)]


def _span(part, whole, axis):
    first, last = part[axis]
    count, total = last - first, whole[axis][1]
    words = f"{count} {_ONE[axis] if count == 1 else _MANY[axis]}"
    if count == total:
        return words
    where = f"{_ONE[axis]} {first}" if count == 1 else f"{first}..{last - 1}"
    return f"{words} of {total} ({where})"


def _of_weights(asking, few, small):
    """Lines about the weights of the head with the largest difference."""
    whole = asking.cut.whole
    try:
        for part in (few, small):
            found = asking.weights(part)
            if found != "no time":
                break
    except Exception as e:  # the exact weights are the operator's, which may have to be compiled
        found = str(e).split("\n")[0]
    if isinstance(found, str):
        return [f"weights not seen: {found}"]
    seen, exact = found
    if not exact.size:
        return []
    off = numpy.nan_to_num(abs(seen - exact), nan=numpy.inf, posinf=numpy.inf).max((2, 3))
    b, h = numpy.unravel_index(int(off.argmax()), off.shape)
    rows, keys = (range(*part[axis]) for axis in ("queries", "keys"))
    unit = _UNITS[_type_of(asking.probe)]
    lines = differences(seen[b, h], exact[b, h], rows, keys, unit)
    head = "" if whole["heads"][1] == 1 else f" of head {part['heads'][0] + h}"
    size = f"{len(rows)} x {len(keys)}{head}, values one-hot"
    if not lines:
        return [f"weights seen ({size}) are the exact ones: look at how values are read and results are written"]
    return [f"weights seen ({size}):", *("  " + line for line in lines)]


def explained(compute, probe, gradients, formats, seconds):
    """Lines of text: the smallest failing call of a kernel that failed on a probe, and the weights that it shows.

    compute(probe, gradients): the results of the kernel. gradients: out is right, and the gradients are not.
    """
    try:
        return _explained(Asking(compute, probe, gradients, formats, seconds), gradients, seconds)
    except Exception as e:  # of a device that is gone, for example: the caller still has the verdict to tell
        return [f"asking again failed: {type(e).__name__}: {e}"]


def _explained(asking, gradients, seconds):
    found = asking.smallest()
    if found is None:
        return ["asked again, the same call passes: the results differ from run to run"]
    few, small = found
    whole = asking.cut.whole
    if not any(asking.asked.values()):
        return [f"not asked again: {seconds:g} s are too few for another call"] if asking.late else []
    lines = ["smallest failing call: " + ", ".join(_span(small, whole, axis) for axis in _AXES if whole[axis][1] > 1)]
    said = asking.reason if small != whole else None
    passes = asking.passing(small)
    wide = asking.wide(small)
    passes += [] if wide is None else [f"with inputs of float32 it {'fails, too' if wide else 'passes'}"]
    if passes:
        lines.append("  " + "; ".join(passes))
    if said:
        lines.append(f"  its verdict: {said}")
    if not gradients:
        lines += _of_weights(asking, few, small)
    if asking.late:
        lines.append(f"the time for asking again ({seconds:g} s) was over")
    return lines
