#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Which kind of processor ran which tests, at which commit: docs/contributing/machines.tsv and the page made of it.

    machines.py state                     HEAD, if nothing but the two files differs from it; else "not recorded: " and why
    machines.py record PART --at STATE [--junit FILE]
                                          PART passed: puts STATE, the commit that `state` named before it ran, and the date into the
                                          cells of this machine. Prints one line. If CI is set, it changes nothing
    machines.py cell PART                 the last record of PART for this machine, one line
    machines.py stale                     a line for each part that is older than its code, for this machine
    machines.py table                     all records, with the commits since
    machines.py sets CONFIGURATION...     instruction sets whose code these builds have, and which of it ran
    machines.py page [--check]            writes the page's table from the records; --check fails if it differs

"quick" is the quick tier; the other parts are those of scripts/test.
"""
import argparse
import collections
import datetime
import functools
import json
import os
import pathlib
import platform
import re
import shlex
import subprocess
import sys
import typing
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDS, PAGE = "docs/contributing/machines.tsv", "docs/contributing/machines.md"
HEAD = "# part\tprocessor\tcommit\tdate\tremark. Written by scripts/test; one line for each cell, the latest counts\n"
BEGIN, END = "<!-- machines: begin -->", "<!-- machines: end -->"

PROCESSORS = ["SSE2", "AVX2", "AVX-512 of AMD", "AVX-512 of Intel", "AMX", "NEON"]
KINDS = [*PROCESSORS, "GPU"]
# Parts that count for one kind, whatever processor runs them. `cuda` counts for GPU where there is a device.
OWN = {"sse2": "SSE2", "i686": "SSE2", "avx2": "AVX2", "aarch64": "NEON"}
REMARKS = {"aarch64": "qemu"}

# The files that the tests of a part depend on, besides EVERY. Pages are no code, nor is the script that starts the tests.
EVERY = ["include", "cmake", "CMakeLists.txt", "CMakePresets.json", "tests/CMakeLists.txt", "tests/cmake", "tests/support"]
OPERATORS = ["tests/instances", "tests/golden", "tests/parity", "tests/properties", "tools/catalogue"]
CODE = {
    "quick": ["tests", "examples", "tools", "python", "benchmarks", "scripts/python"],
    "unit": ["tests/unit", "tests/compile_fail", "tests/compile_time", "tests/consumer", "tests/portability", "tests/zoo", "tests/docs",
             "tests/codegen", "tests/benchmarks", "benchmarks", "tools/catalogue", "python/native"],
    "hooks": ["tests/hooks", "tests/unit"],
    "pairs": ["tests/pairs"],
    "operators": [*OPERATORS, "tests/gradients", "tests/bf16_products"],
    "thrust": [*OPERATORS, "tests/thrust", "tests/hooks", "tests/unit"],
    "enclosures": [*OPERATORS, "tests/enclosure"],
    "programs": ["examples", "tools", "benchmarks", "tests/tool"],
    "mpi": [*OPERATORS, "tests/mpi", "examples/mpi"],
    "mpich": [*OPERATORS, "tests/mpi"],
    "verdict": ["tests/verdict"],
    "tensor_cores": ["tests/exec_cuda", "tools/catalogue", "scripts/gpu"],
    "variants": ["examples/variants"],
    "python": ["python", "tools/catalogue", "scripts/python"],
    "clang": [*OPERATORS, "tests/unit", "tests/hooks", "tests/compile_time", "tests/gradients", "tests/thrust", "tests/portability"],
    "readers": ["tests/fuzz"],
    "sanitizers": [*OPERATORS, "tests/unit", "tests/hooks", "tests/mpi"],
    "threads": [*OPERATORS, "tests/unit"],
    "sse2": OPERATORS,
    "avx2": OPERATORS,
    "newest_xsimd": ["tests/unit", "examples"],
    "aarch64": [*OPERATORS, "tests/unit", "tests/codegen", "examples"],
    "i686": [*OPERATORS, "tests/unit", "examples"],
    "compilers": ["tests/unit/core", "tests/unit/check.hpp", "examples"],
    "first_call": ["tests/portability", "examples/first_call.cpp"],
    "debian13": ["tests", "examples", "tools", "python", "benchmarks", "scripts/demo", "scripts/python"],
    "debian13-clang": ["tests", "examples", "tools", "python", "benchmarks", "scripts/python"],
    "packages": ["tests/packages", "packaging", "scripts/single_header", "examples/first_call.cpp"],
    "cuda": ["tests/cuda", "tests/exec_cuda", "tests/thrust", "tests/instances", "tools/catalogue", "examples/cuda"],
}

# A vector's length goes by the first of these macros that the compiler has. Then what comes on top.
LENGTHS = {"AVX-512": ["__AVX512F__"], "AVX2": ["__AVX2__"], "AVX": ["__AVX__"], "SSE2": ["__SSE2__"], "NEON": ["__ARM_NEON"]}
ON_TOP = {"AVX-512 BF16": ["__AVX512BF16__"], "AMX": ["__AMX_BF16__", "__AMXBF16__"],
          "BF16 of ARM": ["__ARM_FEATURE_BF16_VECTOR_ARITHMETIC"]}
TELLING = {name for names in [*LENGTHS.values(), *ON_TOP.values()] for name in names}
SETS = ["SSE2", "AVX2", "AVX-512", "AVX-512 BF16", "AMX", "NEON", "BF16 of ARM"]
# Objects of tests/portability/CMakeLists.txt, of headers alone, and of examples/apps/dispatch, which runs one of its libraries.
COMPILED_ONLY = re.compile(r"(^|/)(attune_compiled_for|headers_of|attune_dispatch)_[^/]*\.dir/")


# --- the machine --------------------------------------------------------------------------------------------------------
def processor_kinds(machine, cpuinfo):
    """The columns of a processor: `uname -m` and /proc/cpuinfo. None where no column fits."""
    if machine in ("aarch64", "arm64"):
        return ["NEON"]
    entries = dict(re.findall(r"^(vendor_id|flags)\s*: (.*)$", cpuinfo, re.MULTILINE))
    flags = set(entries.get("flags", "").split())
    kinds = []
    if "avx512f" in flags:
        vendor = {"AuthenticAMD": "AMD", "GenuineIntel": "Intel"}.get(entries.get("vendor_id"))
        if vendor and flags >= {"avx512bw", "avx512cd", "avx512dq", "avx512vl"}:
            kinds = [f"AVX-512 of {vendor}"]
    elif flags >= {"avx2", "fma"}:
        kinds = ["AVX2"]
    elif "sse2" in flags and "avx" not in flags:
        kinds = ["SSE2"]
    return [*kinds, "AMX"] if kinds and flags >= {"amx_tile", "amx_bf16"} else kinds


@functools.lru_cache(None)
def machine_kinds():
    file = pathlib.Path("/proc/cpuinfo")
    return processor_kinds(platform.machine(), file.read_text() if file.exists() else "")


@functools.lru_cache(None)
def has_device():
    try:
        found = subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError:
        return False
    return found.returncode == 0 and "GPU " in found.stdout


def columns(part, processor, device):
    """The cells of a part that a run on this machine fills, and what is remarked."""
    if part in OWN:
        return [OWN[part]], REMARKS.get(part, "")
    if part == "cuda":
        return (["GPU"], "") if device else (processor, "compiled")
    return processor, ""


def may_have(part, kind):
    return kind == OWN[part] if part in OWN else kind != "GPU" or part == "cuda"


# --- git ----------------------------------------------------------------------------------------------------------------
def git(*arguments):
    """What git prints, or None where it fails."""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), "-c", "safe.directory=*", *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    except OSError:
        return None
    return done.stdout.rstrip("\n") if done.returncode == 0 else None


def state():
    commit = git("rev-parse", "--short", "HEAD")
    changed = git("status", "--porcelain", "--untracked-files=all", "--", ".", f":!{RECORDS}", f":!{PAGE}")
    if commit is None or changed is None:
        return "not recorded: git knows no commit here"
    if changed:
        files = [line[3:] for line in changed.splitlines()]
        more = f" and {len(files) - 2} more" if len(files) > 2 else ""
        return f"not recorded: changes without a commit: {', '.join(files[:2])}{more}"
    return commit


def commits_since(part, commit):
    """How many commits that HEAD has and `commit` lacks change the part's code; None where git lacks `commit`."""
    if git("cat-file", "-e", f"{commit}^{{commit}}") is None:
        return None
    count = git("rev-list", "--count", f"{commit}..HEAD", "--", *EVERY, *CODE[part])
    return None if count is None else int(count)


# --- the records --------------------------------------------------------------------------------------------------------
class Record(typing.NamedTuple):
    commit: str
    date: str
    remark: str = ""

    def __str__(self):
        return f"{self.commit} ({', '.join(filter(None, [self.date, self.remark]))})"


def parts():
    return ["quick", *re.findall(r"^part ([\w-]+) ", (ROOT / "scripts/test").read_text(), re.MULTILINE)]


def check_part(part):
    if part not in parts() or part not in CODE:
        sys.exit(f"scripts/lib/machines.py: '{part}' is {'without a line of CODE' if part in parts() else 'no part of scripts/test'}")


def read():
    """{(part, kind): Record}. After a merge a cell may have two lines: the later date, then the later line."""
    cells = {}
    file = ROOT / RECORDS
    for number, line in enumerate(file.read_text().splitlines() if file.exists() else [], 1):
        if line.startswith("#"):
            continue
        part, kind, *rest = line.split("\t")
        if len(rest) != 3 or kind not in KINDS:
            sys.exit(f"{RECORDS}:{number}: '{line}' is not part, processor (one of {', '.join(KINDS)}), commit, date, remark with tabs between")
        record = Record(*rest)
        if (part, kind) not in cells or record.date >= cells[part, kind].date:
            cells[part, kind] = record
    return cells


def replace(name, text):
    file = ROOT / name
    beside = file.with_name(f"{file.name}.{os.getpid()}")
    beside.write_text(text)
    beside.replace(file)


def write(cells):
    order = parts()
    known = [key for key in cells if key[0] in order]  # a part that is no more has no line
    known.sort(key=lambda key: (order.index(key[0]), KINDS.index(key[1])))
    replace(RECORDS, HEAD + "".join("\t".join([*key, *cells[key]]) + "\n" for key in known))
    replace(PAGE, page(cells))


def page(cells):
    lines = ["| part | " + " | ".join(KINDS) + " |", "|---|" + "---|" * len(KINDS)]
    for part in parts():
        row = [f"`{part}`"]
        for kind in KINDS:
            record = cells.get((part, kind))
            words = [f"`{record.commit}`", record.date, *([f"({record.remark})"] if record.remark else [])] if record else []
            row.append(" ".join(words) if may_have(part, kind) else "–")
        lines.append("| " + " | ".join(row) + " |")
    before, after = (ROOT / PAGE).read_text().split(BEGIN)[0], (ROOT / PAGE).read_text().split(END)[1]
    return before + "\n".join([BEGIN, *lines, END]) + after


def tests_of(junit):
    """How many tests of a JUnit file ran, and how many were skipped."""
    suite = xml.etree.ElementTree.parse(junit).getroot()
    number = lambda name: int(suite.get(name, 0))
    skipped = number("skipped") + number("disabled")
    return number("tests") - skipped, skipped


def reason_against(kinds, at):
    """Why a run that passed is not recorded, or ''."""
    now = state()
    if not re.fullmatch(r"[0-9a-f]{4,40}", at):
        return at
    if not kinds:
        return "not recorded"
    if now != at:
        return now if now.startswith("not recorded") else f"not recorded: HEAD was {at} when the tests started, and is {now}"
    return ""


def record(part, at, junit, kinds, remark):
    """Puts a run that passed into its cells; the line to print."""
    reason = reason_against(kinds, at)
    ran, skipped = tests_of(junit) if junit and not reason else (1, 0)
    if ran == 0:
        reason = "not recorded: every test was skipped"
    if reason:
        return f"{reason}; {describe_cell(part, kinds)}"
    new = Record(at, datetime.date.today().isoformat(), ", ".join(filter(None, [remark, f"{skipped} skipped" if skipped else ""])))
    on = " and ".join(kinds)
    if os.environ.get("CI"):
        return f"CI is set, so nothing is written. It would be: {on}: {new}"
    cells = read()
    for kind in kinds:
        cells[part, kind] = new
    write(cells)
    return f"recorded for {on}: {new}"


# --- what is printed ----------------------------------------------------------------------------------------------------
def age(part, record):
    since = commits_since(part, record.commit)
    if since is None:
        return f"this clone lacks commit {record.commit}, so how old that is is not known"
    return f"{since} commit{'' if since == 1 else 's'} of its code since"


def by_record(part, kinds, cells):
    """{Record or None: its kinds}"""
    found = collections.defaultdict(list)
    for kind in kinds:
        found[cells.get((part, kind))].append(kind)
    return found


def describe_cell(part, kinds):
    found = by_record(part, kinds, read())
    return "; ".join(f"last green on {' and '.join(on)} at {last}, {age(part, last)}" if last else f"never recorded on {' and '.join(on)}"
                     for last, on in found.items()) or "no column is for this processor"


def stale(kinds_of):
    """Lines for the parts that are older than their code, and one for those without a record."""
    cells, lines, never = read(), [], collections.defaultdict(list)
    for part in parts():
        for last, on in by_record(part, kinds_of(part), cells).items():
            if last is None:
                never[" and ".join(on)].append(part)
            elif commits_since(part, last.commit) != 0:
                lines.append(f"part {part}: last green on {' and '.join(on)} at {last}, {age(part, last)}")
    return lines + [f"never recorded on {on}: {', '.join(some)}" for on, some in never.items()]


def table():
    """The records as text: +N is N commits of the part's code since, +? a commit that this clone lacks."""
    cells, kinds = read(), []
    kinds = [kind for kind in KINDS if any(kind == on for _, on in cells)]
    rows = [["part", *kinds]]
    for part in parts():
        row = [part]
        for kind in kinds:
            last = cells.get((part, kind))
            since = commits_since(part, last.commit) if last else None
            behind = "+?" if since is None else f"+{since}"
            row.append(" ".join(filter(None, [last.commit, last.date, behind, last.remark])) if last else "" if may_have(part, kind) else "–")
        rows.append(row)
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
    yield ""
    for kind in KINDS:
        if kind not in kinds:
            yield f"{kind}: never recorded"
    yield f"This machine: {', '.join([*machine_kinds(), *(['GPU'] if has_device() else [])]) or 'no column'}. +N: commits of the part's code since."


# --- instruction sets ---------------------------------------------------------------------------------------------------
@functools.lru_cache(None)
def macros_of(compiler, flags):
    printed = subprocess.run([compiler, *flags, "-dM", "-E", "-x", "c++", os.devnull], check=True, stdout=subprocess.PIPE, text=True).stdout
    return TELLING.intersection(re.findall(r"^#define (\w+)", printed, re.MULTILINE))


def sets_of(macros):
    """One length of vectors, and what comes on top."""
    return (*[name for name, names in LENGTHS.items() if not macros.isdisjoint(names)][:1],
            *[name for name, names in ON_TOP.items() if not macros.isdisjoint(names)])


def sets(configurations):
    """Lines: what ran, what was only compiled, what was neither, from the commands of these builds."""
    ran, compiled = collections.Counter(), set()
    for configuration in configurations:
        for entry in json.loads((ROOT / "build" / configuration / "compile_commands.json").read_text()):
            words = shlex.split(entry["command"])
            compiler = next(word for word in words if "=" not in word and pathlib.Path(word).name != "ccache")
            macros = macros_of(compiler, tuple(word for word in words if re.match(r"-m|--target=", word)))
            found = sets_of(macros)
            this_processor_runs_it = macros <= macros_of(compiler, ("-march=native",))
            if COMPILED_ONLY.search(words[words.index("-o") + 1]) or not this_processor_runs_it:
                compiled.update(found)
            else:
                ran[found] += 1
    here = {name for found in ran for name in found}
    listed = [f"{' and '.join(found) or 'none of them'} ({count} file{'' if count == 1 else 's'})" for found, count in ran.most_common()]
    yield f"code ran:      {', '.join(listed) or 'none'}"
    yield f"only compiled: {', '.join(name for name in SETS if name in compiled - here) or 'none'}"
    yield f"neither:       {', '.join(name for name in SETS if name not in compiled | here) or 'none'}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    for name in ["state", "stale", "table"]:
        commands.add_parser(name)
    for name in ["record", "cell"]:
        commands.add_parser(name).add_argument("part")
    commands.choices["record"].add_argument("--at", required=True)
    commands.choices["record"].add_argument("--junit")
    commands.add_parser("sets").add_argument("configurations", nargs="+")
    commands.add_parser("page").add_argument("--check", action="store_true")
    args = parser.parse_args()
    of_machine = lambda part: columns(part, machine_kinds(), has_device())
    if args.what in ("record", "cell"):
        check_part(args.part)
    if args.what == "state":
        print(state())
    elif args.what == "record":
        print(record(args.part, args.at, args.junit, *of_machine(args.part)))
    elif args.what == "cell":
        print(describe_cell(args.part, of_machine(args.part)[0]))
    elif args.what == "stale":
        print("\n".join(stale(lambda part: of_machine(part)[0])))
    elif args.what == "table":
        print("\n".join(table()))
    elif args.what == "sets":
        print("\n".join(sets(args.configurations)))
    elif page(read()) != (ROOT / PAGE).read_text():
        if args.check:
            sys.exit(f"{PAGE} is not what {RECORDS} says: run scripts/lib/machines.py page")
        replace(PAGE, page(read()))


if __name__ == "__main__":
    main()
