#!/usr/bin/env python3
"""One JSON and one table from what scripts/gpu ran so far.

    gpu_report.py FOLDER [--quiet]

Reads FOLDER/steps, FOLDER/*.log and FOLDER/torch*.json, writes FOLDER/gpu.json and prints the table: attune's times next
to PyTorch's at the same shape, both medians, the lesser of the rounds; then the cases of each step, and the steps that
did not pass.
"""
import datetime
import glob
import json
import os
import re
import subprocess
import sys

TIME = re.compile(r"^TIME\s+(.+?)\s+(bf16|fp16|fp32)\s+B(\d+) H(\d+) L(\d+) D(\d+)\s+([\d.]+) ms\s+([\d.]+) TFLOP/s", re.M)
TILE = re.compile(r"^TILE\s+(.+?)\s+D(\d+)\s+([\d.]+) ms\s+([\d.]+) TFLOP/s", re.M)
CASE = re.compile(r"^(PASS|FAIL)\s+(.+?)\s{2,}", re.M)
STOP = re.compile(r"^STOP\s+(.+)$", re.M)
DOCTEST = re.compile(r"test cases: +(\d+) \| +(\d+) passed \| +(\d+) failed")
FAILED_TEST = re.compile(r"^TEST CASE: +(.+)$", re.M)


def read(path):
    with open(path, errors="replace") as f:
        return f.read()


def lesser(rows, row, keys):
    """Adds a row, or keeps the lesser of two that agree in these keys."""
    same = [r for r in rows if "ms" in r and all(r[k] == row[k] for k in keys)]
    if "ms" not in row or not same:
        rows.append(row)
    elif row["ms"] < same[0]["ms"]:
        same[0].update(row)


def revision():
    try:
        return subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def cases_of(text):
    """How many cases passed, and the names of the others; None where a log has no cases."""
    found = CASE.findall(text)
    if found:
        return dict(passed=sum(r == "PASS" for r, _ in found), failed=[c for r, c in found if r == "FAIL"] + STOP.findall(text))
    tests = DOCTEST.search(text)
    return dict(passed=int(tests[2]), failed=sorted(set(FAILED_TEST.findall(text)))) if tests else None


def collected(folder):
    report = dict(date=datetime.date.today().isoformat(), revision=revision(), steps=[], cases={}, times=[], tiles=[], torch=[])
    steps = os.path.join(folder, "steps")
    for line in read(steps).splitlines() if os.path.exists(steps) else []:
        name, result, seconds, text = (line.split("\t") + [""])[:4]
        report["steps"].append(dict(name=name, result=result, seconds=int(seconds)) | (dict(text=text) if text else {}))
    for path in sorted(glob.glob(os.path.join(folder, "*.log"))):
        text, name = read(path), os.path.splitext(os.path.basename(path))[0]
        if (cases := cases_of(text)) is not None:
            report["cases"][name] = cases
        if name.startswith("times"):
            for operator, element, b, h, l, d, ms, tflops in TIME.findall(text):
                row = dict(operator=operator, element=element, B=int(b), H=int(h), L=int(l), D=int(d), ms=float(ms), tflops=float(tflops))
                lesser(report["times"], row, ("operator", "element", "B", "H", "L", "D"))
        report["tiles"] += [dict(tile=t, D=int(d), ms=float(ms), tflops=float(f)) for t, d, ms, f in TILE.findall(text)]
        if first := re.search(r"^(.+), sm_(\d+)$", text, re.M):
            report["device"], report["architecture"] = first[1], "sm_" + first[2]
    for path in sorted(glob.glob(os.path.join(folder, "torch*.json"))):
        measured = json.loads(read(path))
        report["torch_version"] = measured["torch"]
        for row in measured["rows"]:
            lesser(report["torch"], row, ("name", "B", "H", "L", "D", "causal"))
    return report


def main():
    folder, quiet = sys.argv[1], "--quiet" in sys.argv[2:]
    report = collected(folder)
    path = os.path.join(folder, "gpu.json")
    with open(path + ".new", "w") as f:
        json.dump(report, f, indent=1)
    os.replace(path + ".new", path)  # whoever ends this script finds the JSON of the step before, or this one
    if quiet:
        return
    names = sorted({r["name"] for r in report["torch"] if "ms" in r})
    if report["times"]:
        print(f"{'forward':28} {'':4} {'B H L D':18} {'ms':>8} {'TFLOP/s':>8}" + "".join(f"  {n:>22}" for n in names))
    for r in report["times"]:
        causal, line = "causal" in r["operator"], ""
        for n in names:
            # PyTorch is measured in bf16.
            peer = [x["ms"] for x in report["torch"] if "ms" in x and x["name"] == n and x["causal"] == causal and r["element"] == "bf16" and
                    all(x[k] == r[k] for k in ("B", "H", "L", "D"))]
            text = "{:.3f} ms ({:.2f})".format(peer[0], peer[0] / r["ms"]) if peer else ""
            line += f"  {text:>22}"
        print(f"{r['operator']:28} {r['element']:4} {r['B']} {r['H']} {r['L']} {r['D']:<10} {r['ms']:8.3f} {r['tflops']:8.0f}{line}")
    for name, c in report["cases"].items():
        print(f"{name}: {c['passed']} passed" + (f", FAILED: {'; '.join(c['failed'])}" if c["failed"] else ""))
    for s in report["steps"]:
        if s["result"] != "passed":
            print(f"{s['name']}: {s['result']}" + (f": {s['text']}" if "text" in s else ""))


if __name__ == "__main__":
    main()
