#!/usr/bin/env python3
"""One JSON and one table from what scripts/gpu ran.

    gpu_report.py FOLDER

Reads FOLDER/*.log and FOLDER/torch*.json, writes FOLDER/gpu.json and prints the table: attune's times next to the
least of PyTorch's at the same shape.
"""
import glob
import json
import os
import re
import sys

TIME = re.compile(r"^TIME\s+(.+?)\s+(bf16|fp16)\s+B(\d+) H(\d+) L(\d+) D(\d+)\s+([\d.]+) ms\s+([\d.]+) TFLOP/s", re.M)
CASE = re.compile(r"^(PASS|FAIL)\s+(.+?)\s{2,}", re.M)


def read(path):
    with open(path) as f:
        return f.read()


def main():
    folder = sys.argv[1]
    report = dict(cases={}, times=[], torch=[])
    for path in sorted(glob.glob(os.path.join(folder, "*.log"))):
        text, name = read(path), os.path.splitext(os.path.basename(path))[0]
        found = CASE.findall(text)
        if found:
            report["cases"][name] = dict(passed=sum(r == "PASS" for r, _ in found), failed=[c for r, c in found if r == "FAIL"])
        for operator, element, b, h, l, d, ms, tflops in TIME.findall(text):
            row = dict(operator=operator, element=element, B=int(b), H=int(h), L=int(l), D=int(d), ms=float(ms), tflops=float(tflops))
            same = [r for r in report["times"] if all(r[k] == row[k] for k in ("operator", "element", "B", "H", "L", "D"))]
            if not same:
                report["times"].append(row)
            elif row["ms"] < same[0]["ms"]:
                same[0].update(row)
        first = re.search(r"^(.+), sm_(\d+)$", text, re.M)
        if first:
            report["device"], report["architecture"] = first[1], "sm_" + first[2]
    for path in sorted(glob.glob(os.path.join(folder, "torch*.json"))):
        measured = json.loads(read(path))
        report["torch_version"] = measured["torch"]
        for r in measured["rows"]:
            if "ms" not in r:
                report["torch"].append(r)
                continue
            same = [x for x in report["torch"] if "ms" in x and all(x[k] == r[k] for k in ("name", "B", "H", "L", "D", "causal"))]
            if not same:
                report["torch"].append(r)
            elif r["ms"] < same[0]["ms"]:
                same[0].update(r)
    with open(os.path.join(folder, "gpu.json"), "w") as f:
        json.dump(report, f, indent=1)
    names = sorted({r["name"] for r in report["torch"] if "ms" in r})
    print(f"{'forward':28} {'':4} {'B H L D':18} {'ms':>8} {'TFLOP/s':>8}" + "".join(f"  {n:>22}" for n in names))
    for r in report["times"]:
        causal, line = "causal" in r["operator"], ""
        for n in names:
            peer = [x["ms"] for x in report["torch"] if "ms" in x and x["name"] == n and x["causal"] == causal and
                    all(x[k] == r[k] for k in ("B", "H", "L", "D"))]
            text = "{:.3f} ms ({:.2f})".format(peer[0], peer[0] / r["ms"]) if peer else ""
            line += f"  {text:>22}"
        print(f"{r['operator']:28} {r['element']:4} {r['B']} {r['H']} {r['L']} {r['D']:<10} {r['ms']:8.3f} {r['tflops']:8.0f}{line}")
    for name, c in report["cases"].items():
        print(f"{name}: {c['passed']} passed" + (f", FAILED: {'; '.join(c['failed'])}" if c["failed"] else ""))


if __name__ == "__main__":
    main()
