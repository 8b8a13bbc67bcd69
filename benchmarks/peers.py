#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Times attune and its peers on this machine's CPU, in turn and in one process, and checks every result.

    python benchmarks/peers.py --library build/bench/cmake/benchmarks/libattune_bench.so --groups prefill,custom

Peers: PyTorch (scaled_dot_product_attention, FlexAttention, eager formulas, torch.compile), ONNX Runtime's MultiHeadAttention,
OpenVINO's scaled_dot_product_attention and the package entmax where they can be imported. Prints a JSON line per implementation and case (interleave.py says what is in
it; tables.py makes tables of them). Exit status: 0, or 1 if a result was wrong. scripts/bench does all of it.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import warnings

# Each is a function of groups.py, which imports torch: too early here.
GROUPS = "prefill small fp64 storage products custom entmax decode cache backward train long".split()


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="", help="libattune_bench.so; without it only the peers run")
    parser.add_argument("--groups", default="prefill", help=f"comma-separated, of {', '.join(GROUPS)}")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--budget", type=float, default=20, metavar="SECONDS", help="about so long per case: fewer rounds, at least 3")
    parser.add_argument("--longest", type=int, default=1 << 20, metavar="L", help="cut sequences to this length")
    parser.add_argument("--variants", type=re.compile, metavar="REGEX", help="of the groups custom, entmax and train")
    parser.add_argument("--only", type=re.compile, metavar="REGEX", help="only implementations whose name matches")
    parser.add_argument("--no-compile", dest="compile", action="store_false", help="neither torch.compile nor FlexAttention")
    given = parser.parse_args()
    given.groups = given.groups.split(",")
    for group in given.groups:
        if group not in GROUPS:
            parser.error(f"no group {group}; there are {', '.join(GROUPS)}")
    return given


def first_match(path, pattern):
    try:
        found = re.search(pattern, pathlib.Path(path).read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found.group(1).strip() if found else "unknown"


def environment(torch, given):
    here = pathlib.Path(__file__).resolve().parent
    git = subprocess.run(["git", "-C", str(here), "describe", "--always", "--dirty"], capture_output=True, text=True)
    return dict(environment=True, date=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                machine=first_match("/proc/cpuinfo", r"^model name\s*:(.*)$"), cores=os.cpu_count(),
                system=first_match("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)'), load=os.getloadavg()[0],
                attune=git.stdout.strip() or "unknown", torch=torch.__version__, isa=torch.backends.cpu.get_cpu_capability(),
                threads=given.threads, command=shlex.join(["benchmarks/peers.py", *sys.argv[1:]]))


def main():
    given = options()
    # Before torch is imported: its runtimes read these once.
    os.environ.setdefault("OMP_NUM_THREADS", str(given.threads))
    os.environ.setdefault("MKL_NUM_THREADS", str(given.threads))
    warnings.filterwarnings("ignore")
    try:
        import torch
        import torch._inductor.config
    except ImportError as problem:
        sys.exit(f"peers.py times PyTorch, which {sys.executable} cannot import ({problem}); attune_track times attune alone")
    torch.set_num_threads(given.threads)
    # Part of the key of the cache on disk: FlexAttention compiled for one thread corrupts the heap when two run it.
    torch._inductor.config.cpp.threads = given.threads
    # By default the ninth shape silently runs uncompiled.
    torch._dynamo.config.recompile_limit = 256
    torch._dynamo.config.accumulated_recompile_limit = 4096

    import groups
    import interleave
    import library

    ours = library.Library(given.library, given.threads)
    rounds = interleave.Rounds(given, ours)
    print(json.dumps(environment(torch, given)), flush=True)
    bench = groups.Bench(given, ours, rounds)
    for group in given.groups:
        getattr(groups, group)(bench)
    if rounds.wrong:
        sys.exit(f"{rounds.wrong} results were wrong")


if __name__ == "__main__":
    main()
