#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Turns what peers.py or attune_track measured into Markdown tables, and a plot of time against length.

    benchmarks/tables.py FILE... [--plot STEM]

FILE: JSON lines of peers.py, or the JSON of `attune_track --benchmark_out=FILE`. Tables go to stdout. --plot writes STEM.csv and
STEM.gnuplot; `gnuplot STEM.gnuplot` then makes STEM.png. "1.5x" in the column of a peer: attune takes 1 / 1.5 of its time.
"""
import argparse
import collections
import csv
import json
import pathlib
import re

OURS = "attune"


# ---- reading ---------------------------------------------------------------------------------------------------------------------


def read(path):
    text = pathlib.Path(path).read_text()
    try:
        whole = json.loads(text)
    except json.JSONDecodeError:
        whole = None
    if isinstance(whole, dict) and "benchmarks" in whole:
        return tracked(whole)
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def tracked(whole):
    """The lines that peers.py would have printed, from a run of attune_track."""
    context, seconds = whole["context"], {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    runs = [r for r in whole["benchmarks"] if r.get("aggregate_name", "median") == "median"]
    aggregated = {r["run_name"] for r in runs if "aggregate_name" in r}
    runs = [r for r in runs if "aggregate_name" in r or r["run_name"] not in aggregated]
    limits = {r["run_name"].removesuffix("/real_time"): r for r in runs if r["run_name"].startswith("machine/")}
    lines = [dict(environment=True, date=context["date"], machine=context.get("machine", "unknown"), cores=context["num_cpus"],
                  load=(context.get("load_avg") or [None])[0], command=context.get("command", context["executable"]))]
    for run in runs:
        found = re.fullmatch(r"(\w+)/(\w+)( double)?/(full|causal)/(.*) T(\d+)/real_time", run["run_name"])
        if not found:
            continue
        group, case, double, mask, shape, threads = found.groups()
        line = dict(group=group, case=case, shape=f"{shape} {mask}", name=OURS, threads=int(threads),
                    dtype="f64" if double else "f32", median_s=run["real_time"] * seconds[run["time_unit"]])
        fma, reading = limits.get("machine/fma" + (double or " float")), limits.get(f"machine/read T{threads}")
        if "FLOP/s" in run:
            line["gflops"] = run["FLOP/s"] / 1e9
            if fma:
                line["pct_peak"] = 100 * run["FLOP/s"] / fma["FLOP/s"] / int(threads)
        if "bytes_per_second" in run:
            line["gbps"] = run["bytes_per_second"] / 1e9
            if reading:
                line["pct_read"] = 100 * run["bytes_per_second"] / reading["bytes_per_second"]
        lines.append(line)
    return lines


# ---- tables ----------------------------------------------------------------------------------------------------------------------


def milliseconds(s):
    return f"{s * 1e3:.0f} ms" if s >= 1 else f"{s * 1e3:.3g} ms"


def times(x):
    return f"{x:.2f}×" if x < 9.95 else f"{x:.0f}×"


def percent(x):
    return f"{x:.0f} %"


def by_case(lines):
    """(group, threads) -> (case, shape, dtype) -> name -> line, all in the order of the file; later lines replace earlier ones."""
    groups = {}
    for line in lines:
        if "median_s" in line:
            cases = groups.setdefault((line["group"], line["threads"]), {})
            cases.setdefault((line["case"], line["shape"], line["dtype"]), {})[line["name"]] = line
    return groups


def table(cases):
    """Our time and share of what the machine can do, then each peer's time as a multiple of ours."""
    peers = list(dict.fromkeys(name for run in cases.values() for name in run if name != OURS))
    bound_by_memory = any("gbps" in line for run in cases.values() for line in run.values())
    typed = any(dtype != "f32" for _, _, dtype in cases)
    head = ["case", "shape", *(["type"] if typed else []), OURS, *(["GB/s", "of read"] if bound_by_memory else ["GFLOP/s", "of peak"]),
            *peers]
    rows = [head, ["---"] * len(head)]
    for (case, shape, dtype), run in cases.items():
        ours = run.get(OURS)
        row = [case, shape, *([dtype] if typed else []), milliseconds(ours["median_s"]) if ours else "–"]
        rate, share = ("gbps", "pct_read") if bound_by_memory else ("gflops", "pct_peak")
        row += [f"{ours[rate]:.1f}" if ours and rate in ours else "–", percent(ours[share]) if ours and share in ours else "–"]
        for name in peers:
            peer = run.get(name)
            if not peer:
                row.append("–")
            elif ours:
                row.append(times(peer["median_s"] / ours["median_s"]))
            else:
                row.append(milliseconds(peer["median_s"]))
        rows.append([cell + (" WRONG" if wrong(run, n, head) else "") for n, cell in enumerate(row)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def wrong(run, column, head):
    return head[column] in run and run[head[column]].get("correct") is False


def environment(lines):
    """What was measured on: one paragraph for each machine and version, with its commands."""
    texts = collections.defaultdict(list)
    for e in lines:
        if e.get("environment"):
            versions = ", ".join(f"{k} {e[k]}" for k in ("attune", "torch") if k in e)
            where = f"{e['machine']}, {e['cores']} cores" + (f", {e['system']}" if "system" in e else "")
            texts[f"{e['date'][:10]}, {where}" + (f"; {versions}" if versions else "")].append(
                f"    {e['command']}" + (f"    # load {e['load']:.1f}" if e.get("load") is not None else ""))
    return "\n\n".join(head + ":\n\n" + "\n".join(commands) for head, commands in texts.items())


def not_run(lines):
    """What is missing or was skipped, and why: each reason once."""
    cases = collections.defaultdict(set)
    for line in lines:
        if "missing" in line:
            cases[line["name"], line["missing"]]
        elif "skipped" in line:
            cases[f"{line['name']} in {line['group']}", line["skipped"]].add(f"{line['case']} {line['dtype']}")
    return [f"- {name}" + (f" ({', '.join(sorted(where))})" if where else "") + f": {why}" for (name, why), where in cases.items()]


def checked(lines):
    results = [line for line in lines if "correct" in line]
    bad = [line for line in results if not line["correct"]]
    if not results:
        return "Results were not compared with anybody's."
    if not bad:
        return f"All {len(results)} results agree with the first of their case."
    return "\n".join([f"{len(bad)} of {len(results)} results are WRONG:", ""] +
                     [f"- {x['name']}, {x['group']} {x['case']} {x['shape']} {x['dtype']}: {x['error']}" for x in bad])


IN_ROUNDS = ("Medians of rounds in which all implementations of a case run in turn, in one process, and the limits of the machine are measured. "
             "A column of a peer: how many times attune's time it takes.")
ALONE = ("attune alone, case after case; the limits of the machine were measured once, before: on a machine that others use, shares mean "
         "little.")
LIMITS = "Peak: fused multiply-adds in registers (threads × one thread); read: bytes from memory."


def page(lines):
    compared = any("rounds" in line for line in lines)
    parts = ["# Benchmarks", environment(lines), (IN_ROUNDS if compared else ALONE) + " " + LIMITS, checked(lines)]
    for (group, threads), cases in by_case(lines).items():
        parts += [f"## {group}, {threads} thread" + "s" * (threads > 1), table(cases)]
    missing = not_run(lines)
    if missing:
        parts += ["## Not run", "\n".join(missing)]
    return "\n\n".join(parts) + "\n"


# ---- plot ------------------------------------------------------------------------------------------------------------------------


def curves(lines):
    """(mask, name) -> {L: ms} of softmax, one thread, B1 H8 D64: what differs in length alone."""
    found = collections.defaultdict(dict)
    for line in lines:
        shape = re.fullmatch(r"B1 H8 L(\d+) D64 (full|causal)", line.get("shape", ""))
        if shape and "median_s" in line and line["group"] in ("prefill", "forward") and \
                (line["case"], line["threads"], line["dtype"]) == ("softmax", 1, "f32"):
            found[shape[2], line["name"]][int(shape[1])] = line["median_s"] * 1e3
    return dict(sorted(found.items(), key=lambda c: (c[0][0], c[0][1] != OURS)))


def plot(lines, stem):
    drawn = curves(lines)
    if not drawn:
        return False
    lengths = sorted({length for curve in drawn.values() for length in curve})
    with open(f"{stem}.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["L", *(f"{name}, {mask}" for mask, name in drawn)])
        rows.writerows([[length, *(curve.get(length, "") for curve in drawn.values())] for length in lengths])
    panels = []
    for mask in sorted({mask for mask, _ in drawn}, reverse=True):
        columns = [(n + 2, name) for n, (m, name) in enumerate(drawn) if m == mask]
        panels.append(f'set title "{mask}"\nplot ' + ", \\\n     ".join(
            f'data using 1:{n} with linespoints linewidth {2 if name == OURS else 1} title "{name}"' for n, name in columns))
    pathlib.Path(f"{stem}.gnuplot").write_text(
        f'data = "{pathlib.Path(stem).resolve()}.csv"\nset terminal pngcairo size 1200,520 font ",11"\n'
        f'set output "{pathlib.Path(stem).resolve()}.png"\n'
        'set datafile separator ","\nset logscale x 2\nset logscale y 10\nset xlabel "length L"\nset ylabel "ms"\nset grid\nset key left top\n'
        f'set multiplot layout 1,{len(panels)} title "softmax, fp32, B 1, H 8, D 64, one thread"\n' + "\n".join(panels) + "\nunset multiplot\n")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--plot", metavar="STEM")
    given = parser.parse_args()
    lines = [line for file in given.files for line in read(file)]
    print(page(lines), end="")
    if given.plot:
        plot(lines, given.plot)


if __name__ == "__main__":
    main()
