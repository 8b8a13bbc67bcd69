# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The tables and plots of docs/lab/training.md, from the lines of its results."""

from __future__ import annotations

import math
import statistics

from .model import ROOT, ROWS
from .plots import COLORS, Plot

PAGE, IMAGES = ROOT / "docs/lab/training.md", ROOT / "docs/images"
T_975 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776}  # Student's quantiles, by degrees of freedom
MAIN = list(ROWS)[:9]  # the operators; the others are variants of Principled, and a wider softmax
LENGTHS = "128", "256", "512"
NAMES = {name: f"Principled, {name}" for name in list(ROWS)[9:-1]} | {name: name.replace("_", " ") for name in MAIN}
NAMES |= {"entmax15": "entmax-1.5", "off_by_one": "off-by-one", "ssmax": "SSMax", "principled": "Principled"}
NAMES |= {"affine_scaled": "affine-scaled", "affine_scaled_total": "affine-scaled, N = L", "wider softmax": "softmax, wider"}
NAMES |= {name: f"only {name}" for name in ("margin", "gate", "ground")}


def name_of(row):
    return NAMES.get(row, row).replace("gamma from -", "γ from −")


class Study:
    """Results by row and seed."""

    def __init__(self, lines):
        self.of = {}
        for line in lines:
            if line["row"] in ROWS and line["steps"] == 1500 and line["text"] == "topics":
                self.of.setdefault(line["row"], {})[line["seed"]] = line
        self.rows = [row for row in ROWS if row in self.of]
        self.common = set.intersection(*(set(self.of[row]) for row in self.rows))  # seeds of every row
        self.times = next((line for line in reversed(lines) if line["row"] == "times"), None)

    def values(self, row, number):
        """A number of each seed's run."""
        return [number(line) for _, line in sorted(self.of[row].items())]

    def mean(self, row, number, digits=3):
        """For a table: the mean over the seeds that all rows have, which can be compared."""
        return f"{statistics.mean(number(self.of[row][seed]) for seed in self.common):.{digits}f}"

    def differences(self, row, number, base="softmax"):
        """A number minus that of another row with the same seed."""
        base = self.of[base]
        return [number(line) - number(base[seed]) for seed, line in sorted(self.of[row].items()) if seed in base]


def interval(values):
    """Mean and 95 % interval of the mean: from three seeds by Student's t. None from fewer."""
    mean = statistics.mean(values)
    if len(values) < 3:
        return mean, None
    return mean, T_975[len(values) - 1] * statistics.stdev(values) / math.sqrt(len(values))


def shown(values, digits=3, sign=""):
    """For a table: mean ± half the interval; two seeds: both; one: the number."""
    mean, half = interval(values)
    if half is not None:
        return f"{written(mean, digits, sign)} ± {half:.{digits}f}"
    return ", ".join(written(x, digits, sign) for x in values)


def written(x, digits, sign):
    """A number. What is rounded to 0 has no sign."""
    return f"{x:{sign}.{digits}f}" if float(f"{x:.{digits}f}") else f"{0:.{digits}f}"


def table(head, rows):
    lines = [f"| {' | '.join(map(str, row))} |".replace("| -", "| −").replace(", -", ", −") for row in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


# --- numbers of a line ----------------------------------------------------------------------------------------------


def loss(line):
    return line["validation"]["128"]["all"]


def last_loss(line):
    return line["curve"][-1]


def heads(line, name):
    """A number of all heads of all layers."""
    return [x for layer in line["layers"] for x in layer.get(name, [])]


def mean_of_heads(name):
    return lambda line: statistics.mean(heads(line, name) or [0.0])


def sinks(line):
    """The share of heads whose weight on the first character is above 0.3 on average."""
    found = heads(line, "first")
    return sum(x > 0.3 for x in found) / len(found)


def at_length(length, name):
    return lambda line: line["lengths"][length][name]


def same(length):
    return lambda line: line["validation"][length]["same"]


def hidden(name):
    """Of the last layer's output."""
    return lambda line: line["layers"][-1]["hidden"][name]


def ratio(line):
    return max(layer["hidden"]["max"] / layer["hidden"]["median"] for layer in line["layers"])


# --- tables ---------------------------------------------------------------------------------------------------------


def losses_table(study, rows, base="softmax"):
    """base: what the last columns compare with."""
    minus = f"minus {name_of(base)}"
    head = ["row", "seeds", "parameters", "validation loss", minus, f"training loss, last 50 steps, {minus}"]
    body = []
    for row in rows:
        count = f"{study.of[row][1]['parameters']:,}"
        off = ["–", "–"] if row == base else [shown(study.differences(row, f, base), sign="+") for f in (loss, last_loss)]
        body.append([name_of(row), len(study.of[row]), count, shown(study.values(row, loss)), *off])
    return table(head, body)


def lengths_table(study, rows):
    head = ["row", "loss, 128", "256", "512", "512 minus 128", "more than softmax", "whole text, 512"]
    body = []

    def growth(line):
        return same("512")(line) - same("128")(line)

    for row in rows:
        each = [study.mean(row, same(length)) for length in LENGTHS]
        off = "–" if row == "softmax" else shown(study.differences(row, growth), 2, "+")
        whole = study.mean(row, lambda line: line["validation"]["512"]["all"])
        body.append([name_of(row), *each, shown(study.values(row, growth), 2), off, whole])
    return table(head, body)


def dilution_table(study, rows):
    head = ["row", "entropy / log K, 128", "256", "512", "largest weight, 128", "256", "512"]
    body = []
    for row in rows:
        shares = [study.mean(row, at_length(length, "entropy share")) for length in LENGTHS]
        highest = [study.mean(row, at_length(length, "highest weight")) for length in LENGTHS]
        body.append([name_of(row), *shares, *highest])
    return table(head, body)


def sinks_table(study, rows):
    head = ["row", "first character, layer 1", "layer 2", "largest head", "heads above 0.3", "separators", "sum of weights"]
    head.append("ground")
    body = []
    for row in rows:
        layers = [
            study.mean(row, lambda line: statistics.mean(line["layers"][n]["first"])) for n in range(2)
        ]
        largest = study.mean(row, lambda line: max(heads(line, "first")))
        ground = study.mean(row, mean_of_heads("ground")) if heads(study.of[row][1], "ground") else "–"
        mass = study.mean(row, mean_of_heads("mass"), 2)
        separators = study.mean(row, mean_of_heads("separators"), 2)
        body.append([name_of(row), *layers, largest, study.mean(row, sinks, 2), separators, mass, ground])
    return table(head, body)


def activations_table(study, rows):
    head = ["row", "largest", "median", "largest / median, worst layer", "kurtosis", "norm, first / others"]
    head += ["size of q·k at first", "at last"]
    body = []
    for row in rows:
        numbers = [shown(study.values(row, hidden("max")), 1), study.mean(row, hidden("median"), 2)]
        numbers += [shown(study.values(row, ratio), 1), shown(study.values(row, hidden("kurtosis")), 2)]
        numbers.append(study.mean(row, hidden("first norm"), 2))
        numbers += [study.mean(row, lambda line: line["scores"][at], 1) for at in ("0", "1500")]
        body.append([name_of(row), *numbers])
    return table(head, body)


def weights_table(study, rows):
    head = ["row", "zero weights", "negative weights", "entropy, nats", "sum, deviation over queries"]
    body = []
    for row in rows:
        spread = float(study.mean(row, lambda line: max(layer["mass deviation"] for layer in line["layers"]), 6))
        zero, negative = (study.mean(row, mean_of_heads(name), 4) for name in ("zero", "negative"))
        entropy = study.mean(row, mean_of_heads("entropy"), 2)
        body.append([name_of(row), zero, negative, entropy, f"{spread:.3f}" if spread > 1e-5 else "0"])
    return table(head, body)


def gradients_table(study, rows):
    head = ["row", "mean", "deviation / mean", "spikes, k = 6", "spikes, k = 9"]
    body = []
    for row in rows:
        mean = shown(study.values(row, lambda line: line["gradients"]["mean"]))
        spread = shown(study.values(row, lambda line: line["gradients"]["deviation"] / line["gradients"]["mean"]), 2)
        counts = [shown(study.values(row, lambda line: line["gradients"][f"spikes {k}"]), 1) for k in (6, 9)]
        body.append([name_of(row), mean, spread, *counts])
    return table(head, body)


def learned_table(study, rows):
    """The parameters of Principled, as layers' means over heads and seeds, and the ground weight."""
    head = ["row", "α, layer 1", "layer 2", "β, layer 1", "layer 2", "γ, layer 1", "layer 2", "norm of v0", "ground weight"]
    body = []
    for row in rows:
        cells, lines = [], [study.of[row][seed] for seed in study.common]
        for name in ("alpha", "beta", "gamma"):
            for layer in range(2):
                found = [line["learned"][name][layer] for line in lines if name in line["learned"]]
                cells.append(f"{statistics.mean(x for part in found for x in part):.2f}" if found else "–")
        found = [x for line in lines for part in line["learned"].get("v0", []) for x in part]
        cells.append(f"{statistics.mean(found):.2f}" if found else "–")
        body.append([name_of(row), *cells, study.mean(row, mean_of_heads("ground"))])
    return table(head, body)


def hybrid_table(study):
    def tau(line):
        return [math.log1p(math.exp(x)) for layer in line["learned"]["tau"] for x in layer]

    body = []
    for seed, line in sorted(study.of.get("hybrid", {}).items()):
        near = [
            statistics.mean(x for layer in line["layers"] for x in layer["nearest"][k]) for k in ("8", "16", "32", "64")
        ]
        least, most = min(tau(line)), max(tau(line))
        body.append([seed, f"{least:.2f} … {most:.2f}", *(f"{x:.2f}" for x in near)])
    return table(["seed", "τ at last, of 8 heads", "weight on the 8 nearest", "16", "32", "64"], body)


def times_table(study, rows):
    if study.times is None:
        return "Not measured yet."
    found = study.times["times"]
    body = [[name_of(row), f"{found[row]['ms']:.1f}", f"{found[row]['to softmax']:.2f}"] for row in rows if row in found]
    return table(["row", "ms per step", "to softmax"], body)


# --- plots ----------------------------------------------------------------------------------------------------------


def ticks_to(edge):
    """Ticks from -edge to edge."""
    step = next(s for s in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if edge / s <= 5)
    count = int(edge / step + 1e-9)
    return [(n * step, f"{n * step:+.2g}".replace("-", "−") if n else "0") for n in range(-count, count + 1)]


def plot_differences(study):
    rows = [row for row in study.rows if row != "softmax"]
    found = {row: study.differences(row, loss) for row in rows}
    edge = math.ceil(20 * max(abs(x) for part in found.values() for x in part)) / 20
    names = [(-n, name_of(row)) for n, row in enumerate(rows)]
    title = "Validation loss minus that of softmax with the same seed"
    plot = Plot(title, ("nats per character; left is better", -edge, edge, ticks_to(edge)), ("", -len(rows) + 0.5, 0.5, names),
                height=17 * len(rows), left=180)  # fmt: skip
    plot.segment(0, 0.5, 0, -len(rows) + 0.5, "#888", 1)
    for n, row in enumerate(rows):
        color = COLORS[1] if row in MAIN else COLORS[2]
        mean, half = interval(found[row])
        if half is not None:
            plot.segment(max(-edge, mean - half), -n, min(edge, mean + half), -n, color)
        plot.segment(mean, -n - 0.3, mean, -n + 0.3, color)
        plot.points(found[row], [-n] * len(found[row]), color)
    plot.write(IMAGES / "training_differences.svg")


def curve_to_softmax(study, row):
    """The curve minus that of softmax, the mean over seeds, and over two points in turn."""
    base = study.of["softmax"]
    pairs = [zip(line["curve"], base[seed]["curve"]) for seed, line in study.of[row].items() if seed in base]
    found = [statistics.mean(x) for x in zip(*([a - b for a, b in pair] for pair in pairs))]
    return [statistics.mean(found[max(0, n - 1) : n + 1]) for n in range(len(found))]


def plot_curves(study, rows):
    found = {row: curve_to_softmax(study, row) for row in rows}
    edge = 0.06  # hybrid is above it at first
    title = "Training loss minus that of softmax, means over seeds and 100 steps"
    plot = Plot(title, ("step", 0, 1500, range(0, 1501, 250)), ("nats per character", -edge, edge, ticks_to(edge)))
    for row, color in zip(rows, COLORS):
        plot.line(range(50, 1501, 50), found[row], color, name_of(row))
    plot.write(IMAGES / "training_curves.svg")


def plot_lengths(study, rows):
    found = {row: [statistics.mean(study.values(row, same(length))) for length in LENGTHS] for row in rows}
    low = math.floor(10 * min(min(x) for x in found.values())) / 10
    high = math.ceil(10 * max(max(x) for x in found.values())) / 10
    ticks = [round(low + 0.2 * n, 1) for n in range(int((high - low) / 0.2 + 1e-9) + 1)]
    lengths = "characters of the text", 0, 2, [*enumerate(LENGTHS)]
    plot = Plot("Loss of the same 64 characters after a longer text", lengths, ("nats per character", low, high, ticks))
    for row, color in zip(rows, COLORS):
        plot.line(range(3), found[row], color, name_of(row))
        plot.points(range(3), found[row], color)
    plot.write(IMAGES / "training_lengths.svg")


# --- page -----------------------------------------------------------------------------------------------------------


def runs_text(study):
    """How many runs the tables have, which are missing, and what ran them."""
    done = sum(len(study.of[row]) for row in study.rows)
    planned = sum(seeds for _, seeds in ROWS.values())
    text = f"{done} of {planned} runs are done."
    missing = [(name_of(row), len(study.of.get(row, {})), seeds) for row, (_, seeds) in ROWS.items()]
    missing = [row for row in missing if row[1] < row[2]]
    if missing:
        text += " `scripts/training` resumes with the missing ones:\n\n" + table(["row", "seeds done", "planned"], missing) + "\n"
    if study.times:
        text += f"\nMachine: {study.times['machine']}, one thread. {study.times['versions']}."
    return text


def blocks(study):
    """What the page has between its marks."""
    main = [row for row in MAIN if row in study.rows]
    grid = [row for row in ("softmax", "wider softmax", "principled", *list(ROWS)[9:-1]) if row in study.rows]
    of_principled = [row for row in grid if "softmax" not in row]
    return {
        "runs": runs_text(study), "losses": losses_table(study, main), "grid": losses_table(study, grid, "principled"),
        "learned": learned_table(study, of_principled), "lengths": lengths_table(study, study.rows),
        "dilution": dilution_table(study, study.rows), "sinks": sinks_table(study, study.rows),
        "activations": activations_table(study, study.rows), "weights": weights_table(study, main),
        "gradients": gradients_table(study, main), "hybrid": hybrid_table(study), "times": times_table(study, study.rows),
    }  # fmt: skip


def write(lines):
    """The page with new tables, and the plots."""
    study = Study(lines)
    page = PAGE.read_text()
    for mark, text in blocks(study).items():
        begin, end = f"<!-- {mark}: written by scripts/training -->\n", f"\n<!-- /{mark} -->"
        at_begin = page.index(begin) + len(begin)
        page = page[:at_begin] + text + page[page.index(end, at_begin - 1) :]
    PAGE.write_text(page)
    main = [row for row in MAIN if row in study.rows]
    plot_differences(study)
    plot_curves(study, main)
    plot_lengths(study, main)
