# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""How the weights of a kernel differ from the exact ones, in words. The pattern is measured, nothing is assumed."""

import math

import numpy

_TINY = 1e-6  # smaller weights tell nothing: 16 bits may lose them
_NEAR_ZERO = 1e-3  # a weight that is this part of the exact one counts as 0


def ranges(numbers, most=6):
    """"0..3, 8, 12..15" of increasing whole numbers. Of many ranges the first ones."""
    found = []
    for n in numbers:
        if found and found[-1][1] == n - 1:
            found[-1][1] = n
        else:
            found.append([n, n])
    texts = [str(a) if a == b else f"{a}..{b}" for a, b in found[:most]]
    return ", ".join(texts) + (f", ... ({len(numbers)} in all)" if len(found) > most else "")


def of_keys(numbers, among):
    """Some keys of those that were measured: by their residue, if that tells them, else as ranges."""
    chosen, among = set(numbers), sorted(among)
    if chosen and chosen == set(among):
        return "all keys"
    whole = len(numbers) > 1 and numbers[-1] - numbers[0] + 1 == len(numbers)
    for m in range(2, (among[-1] - among[0] + 1) // 2 + 1 if len(chosen) > 1 and not whole else 0):
        residues = {j % m for j in chosen}
        if 2 * len(residues) <= m and len(chosen) > len(residues) and chosen == {j for j in among if j % m in residues}:
            of = ranges(sorted(residues))
            return f"keys j with j mod {m} {'=' if len(residues) == 1 else 'in'} {of} ({ranges(numbers, 3)})"
    return f"key{'s' * (len(numbers) > 1)} {ranges(numbers)}"


def _rows_of(rows, chosen):
    numbers = [int(rows[n]) for n in numpy.flatnonzero(chosen)]
    return "all queries" if len(numbers) == len(rows) else f"quer{'ies' if len(numbers) > 1 else 'y'} {ranges(numbers)}"


def _plus(n):
    return f"i + {n}" if n > 0 else f"i - {-n}" if n < 0 else "i"


def _ends(seen, exact, keys, last):
    """The last (first) key that each row sees, of the exact ones and of those seen, and whether the row can tell."""

    def end(x):
        return keys[len(keys) - 1 - x[:, ::-1].argmax(1) if last else x.argmax(1)]

    right, found = end(exact > 0), end(seen > _TINY)
    at = exact[numpy.arange(len(exact)), numpy.searchsorted(keys, right)]
    return right, found, (at > _TINY) & (seen > _TINY).any(1)


def _edge(seen, exact, rows, keys, last, constant=False):
    """A line about the last (first) key that each row sees; and which rows it explains. constant: only if all rows agree."""
    nothing = None, numpy.zeros(len(rows), bool)
    if not len(keys):
        return nothing
    right, found, told = _ends(seen, exact, keys, last)
    off = found - right
    wrong = told & (off != 0)
    if not wrong.any():
        return nothing
    outermost = keys[-1] if last else keys[0]
    sees_more = (off[wrong] > 0).all() == last  # then rows that see the outermost key are as they were
    free = told & (right != outermost) if sees_more else told
    if free.any() and len(set(off[free])) == 1:
        by, distance = int(off[free][0]), set((right - rows)[free])
        if len(distance) == 1:
            d = int(distance.pop())
            one, other = (("up to", "") if last else ("from", " on"))
            return f"query i sees keys {one} {_plus(d + by)}{other}, not {_plus(d)}", wrong
        if len(set(right[free])) == 1:
            one, other = (("up to", "") if last else ("from", " on"))
            return f"queries see keys {one} {found[free][0]}{other}, not {right[free][0]}", wrong
        which, way = "last" if last else "first", "late" if by > 0 else "early"
        return f"the {which} key that a query sees is {abs(by)} too {way}", wrong
    if constant or wrong.sum() < max(2, 0.02 * told.sum()) < told.sum():
        return nothing
    which = "last" if last else "first"
    low, high = off[wrong].min(), off[wrong].max()
    by = f"{low:+d}" if low == high else f"{low:+d} to {high:+d}"
    n = int(numpy.argmax(numpy.where(told, abs(off), -1)))
    example = f"query {rows[n]} sees keys {'up to' if last else 'from'} {found[n]}, not {right[n]}"
    place = set((found - rows)[wrong])
    if len(place) == 1:
        by = f"{by}: it is {_plus(int(place.pop()))} for query i"
    return f"the {which} key that a query sees is off by {by} in {_rows_of(rows, wrong)}: {example}", wrong


def _edges(seen, exact, rows, keys):
    """Lines about keys that are lost in every row, and about the ends of what rows see; keys lost; rows that are explained."""
    counts = (exact > 10 * _TINY).sum(0)
    gone = ((exact > 10 * _TINY) & (abs(seen) < _NEAR_ZERO * exact)).sum(0)
    lost, lines, explained = numpy.zeros(len(keys), bool), [], numpy.zeros(len(rows), bool)
    if not any(_edge(seen, exact, rows, keys, last, True)[0] for last in (True, False)):
        all_lost = (gone == counts) & (counts > 0)
        if (all_lost & (counts >= min(2, len(rows)))).any() and not (all_lost == (counts > 0)).all():
            lost = all_lost
            told = [int(j) for j in keys[counts > 0]]
            lines.append(f"{of_keys([int(j) for j in keys[lost]], told)}: weight 0 in all queries that see them")
    rest = numpy.flatnonzero(~lost)
    for last in (True, False):
        line, wrong = _edge(seen[:, rest], exact[:, rest], rows, keys[rest], last)
        lines += [line] if line else []
        explained |= wrong
    return lines, lost, explained


def _power(seen, exact, rel):
    """The power of the exact weights that those seen are, or None: logits times a number."""
    found = []
    for s, e in zip(seen, exact):
        both = (e > _TINY) & (s > _TINY)
        if both.sum() < 3 or (both != (e > _TINY)).any():
            continue
        x, y = numpy.log(e[both]), numpy.log(s[both])
        x, y = x - x.mean(), y - y.mean()
        if (x * x).sum() < 1e-2:
            continue
        slope = (x * y).sum() / (x * x).sum()
        if abs(y - slope * x).max() > 4 * rel:
            return None
        found.append(slope)
    if not found or max(found) - min(found) > 0.05 * abs(numpy.median(found)) or abs(numpy.median(found) - 1) < rel:
        return None
    return float(numpy.median(found))


def _factors(seen, exact, rows, keys, rel):
    """Lines about weights that are a multiple of the exact ones."""
    power = _power(seen, exact, rel)
    if power is not None:
        return [f"weights are the exact ones to the power {power:.4g}: logits are {power:.4g} times the exact ones"]
    both = (exact > _TINY) & (seen > _TINY)
    ratio = numpy.where(both, seen / numpy.where(both, exact, 1), numpy.nan)
    first = both.argmax(1)
    measured = both.any(1)
    base = numpy.where(measured, ratio[numpy.arange(len(rows)), first], numpy.nan)
    relative = ratio / base[:, None]
    counts = both.sum(0)
    mids = numpy.array([numpy.median(relative[both[:, j], j]) if counts[j] else 1.0 for j in range(len(keys))])
    changed = (abs(mids - 1) > 2 * rel) & (counts > 0)
    if changed.any() and 3 * changed.sum() > 2 * (counts > 0).sum():  # the first keys are the odd ones
        mids = mids / numpy.median(mids[changed])
        changed = (abs(mids - 1) > 2 * rel) & (counts > 0)
    if not changed.any():
        return []
    low, high = mids[changed].min(), mids[changed].max()
    by = f"{numpy.median(mids[changed]):.3g}" if high - low < 6 * rel * high else f"{low:.3g} to {high:.3g}"
    where = of_keys([int(keys[j]) for j in numpy.flatnonzero(changed)], [int(keys[j]) for j in numpy.flatnonzero(counts)])
    return [f"{where}: weights times {by}, compared with the other keys"]


def _largest(seen, exact, rows, keys, count=2):
    off = abs(seen - exact)
    lines = []
    for n in sorted(numpy.argsort(-off.max(1), kind="stable")[:count]):
        at = [j for j in sorted(numpy.argsort(-off[n], kind="stable")[:3]) if off[n, j] > 0]
        if at:
            told = (f"{keys[j]} {seen[n, j]:.3g} (exact {exact[n, j]:.3g})" for j in at)
            lines.append(f"query {rows[n]}: key{'s' * (len(at) > 1)} " + ", ".join(told))
    return lines


def differences(seen, exact, rows, keys, unit):
    """Lines about the weights of one head, (rows, keys). rows, keys: their numbers. unit: the rounding of the kernel's type.

    Empty if every weight is right.
    """
    rows, keys = numpy.asarray(rows), numpy.asarray(keys)
    rel = max(6 * unit, 1e-3)
    nan = ~numpy.isfinite(seen)
    if nan.any():
        where = f"{_rows_of(rows, nan.any(1))}, {of_keys([int(j) for j in keys[nan.any(0)]], keys.tolist())}"
        return [f"weights are NaN or infinite in {where}"]
    if not (abs(seen - exact) > rel * numpy.maximum(abs(seen), exact) + _TINY).any():
        ratio = seen.sum() / max(exact.sum(), _TINY)  # rounding averages out
        return [f"the weights sum to {ratio:.5g} times the exact sums"] if abs(ratio - 1) > max(unit / 4, 1e-4) else []
    lines, always, explained = _edges(seen, exact, rows, keys)
    lost = (exact > 10 * _TINY) & (abs(seen) < _NEAR_ZERO * exact) & ~always
    extra = (exact <= 0) & (abs(seen) > _TINY)
    for what, x in (("weight 0, and it should not be", lost), ("seen, and should not be", extra)):
        x = x & ~explained[:, None]
        if x.any():
            at = [int(j) for j in keys[x.any(0)]]
            lines.append(f"{of_keys(at, keys.tolist())}: {what}, in {_rows_of(rows, x.any(1))}")
    lines += _factors(seen, exact, rows, keys, rel)
    sums, right = seen.sum(1), exact.sum(1)
    odd = abs(sums - right) > rel * numpy.maximum(right, _TINY) + _TINY
    if odd.any():
        low, high = float((sums - right)[odd].min()), float((sums - right)[odd].max())
        by = f"{low:+.3g}" if math.isclose(low, high, rel_tol=0.01) else f"{low:+.3g} to {high:+.3g}"
        lines.append(f"the sum of the weights is off by {by} in {_rows_of(rows, odd)}")
    elif not lines:
        lines.append("no pattern of keys; the sums of the rows are right")
    return lines + _largest(seen, exact, rows, keys)
