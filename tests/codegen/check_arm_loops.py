#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Products of pairs of bf16 keep the shape in the object code for ARM.

    check_arm_loops.py [--compiler aarch64-linux-gnu-g++] [--objdump aarch64-linux-gnu-objdump] [--include DIR]...
    check_arm_loops.py --show          print every loop with BFMMLA
    check_arm_loops.py --self-test     plant defects in copies of headers: each must be noticed

It compiles hot_loops.cpp, as check_hot_loops.py does for x86. Nothing is run and nothing is timed.
"""
import argparse
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import typing

from check_hot_loops import FLAGS, HEADERS, HERE, PRODUCTS, Problem, output_of, plant

ARM_FLAGS = [*FLAGS, "-O2", "-march=armv8.2-a+bf16", "-Wno-psabi", "-DHOT_LOOPS_PRODUCTS"]


# A loop of exec/cpu/bf16/bfmmla.hpp takes four pairs of so many rows and columns a step. Each BFMMLA multiplies two rows by two columns
# of two pairs, so there are rows x columns / 2. A load reads four pairs of a row, or one pair of four rows or columns. A zip makes a block
# of two rows, or columns, and two pairs. Of both there are rows + columns.
class Step(typing.NamedTuple):
    products: int
    operands: int  # loads at most, and zips at most


def step_of(rows, vectors):
    columns = 4 * vectors
    return Step(rows * columns // 2, rows + columns)


class Defect(typing.NamedTuple):
    name: str
    header: str
    pattern: str
    replacement: str
    what: str


HEADER = "attune/exec/cpu/bf16/bfmmla.hpp"
DEFECTS = [
    Defect("a block in two steps", HEADER, r"= bfmmla\(sums\[r\]\[c\], (.*)\);",
           r"= sums[r][c] + bfmmla(xsimd::batch<float, Arch>(0.0f), \1);", "neither BFMMLA nor load nor zip"),
    Defect("operands of four pairs that g++ 12 loads together", HEADER, r"asm volatile\(.*\);", ";", "on the stack"),
    Defect("zips by xsimd", HEADER, r"= zip_lower\(x, y\)", "= xsimd::zip_lo(x, y)", "neither BFMMLA nor load nor zip"),
]


class Function(typing.NamedTuple):
    kernel: str
    rows: int
    code: list  # (address, instruction)

    def loops(self):
        """Innermost loops with BFMMLA."""
        spans = {}
        for at, text in self.code:
            jump = re.match(r"(?:b\.?\w*|cbn?z\s+\w+,|tbn?z\s+\w+,\s*#\w+,)\s+([0-9a-f]+)\b", text)
            if jump and self.code[0][0] <= int(jump[1], 16) <= at:
                spans[int(jump[1], 16)] = at
        inner = [s for s in spans.items() if not any(t != s and s[0] <= t[0] and t[1] <= s[1] for t in spans.items())]
        loops = [[text for at, text in self.code if first <= at <= last] for first, last in sorted(inner)]
        return [x for x in loops if any(i.startswith(PRODUCT) for i in x)]


def functions_of(text):
    """The kernels of products of pairs, and the vectors of a tile."""
    parts = re.split(r"^[0-9a-f]+ <(.*)>:$", text, flags=re.MULTILINE)[1:]
    functions, vectors = [], None
    for name, body in zip(parts[::2], parts[1::2]):
        if shape := re.search(r"::tile_shape<float, \d+, (\d+)>", name):
            vectors = int(shape[1])
        found = re.search(r"::(%s)<float, .*?, (\d+), .*unsigned int" % "|".join(PRODUCTS), name)
        if found and "::block_step" in name:
            code = [(int(x[1], 16), re.sub(r"\s+", " ", re.sub(r"<.*>", "", x[2]))) for x in re.finditer(r"^\s+([0-9a-f]+):\s+(.*\S)\s*$", body, re.MULTILINE)]
            functions.append(Function(found[1], int(found[2]), code))
    return functions, vectors


PRODUCT = "bfmmla "
LOAD = r"ldu?r q|ldp q|ld1 "
ZIP = r"(zip|trn)[12] "


def count(loop, pattern):
    return sum(2 if i.startswith("ldp") else 1 for i in loop if re.match(pattern, i))


def of_vectors(instruction):
    return re.search(r"\b[vqdsh]\d+\b", instruction) and not re.match(r"b[. ]|[ct]bn?z ", instruction)  # d8 is an address, too


def check(functions, vectors):
    for name in PRODUCTS:
        if not any(f.kernel == name and f.rows % 4 == 0 for f in functions):
            yield f"{name}: there is no such function"
    for f in (x for x in functions if x.rows % 4 == 0):
        where, step, loops = f"{f.kernel}, {f.rows} rows", step_of(f.rows, vectors), f.loops()
        if not loops:
            yield f"{where}: no loop with BFMMLA"
        for loop in loops:
            products, loads, zips = (count(loop, x) for x in (PRODUCT, LOAD, ZIP))
            n = max(1, products // step.products)
            if products != n * step.products:
                yield f"{where}: {products} BFMMLA, expected {step.products} a step"
            if loads > n * step.operands:
                yield f"{where}: {loads} loads for {products} BFMMLA, expected {step.operands} a step"
            if zips > n * step.operands:
                yield f"{where}: {zips} zips for {products} BFMMLA, expected {step.operands} a step"
            if stack := [i for i in loop if "[sp" in i and of_vectors(i)]:
                yield f"{where}: {len(stack)} vector loads and stores on the stack: {'; '.join(stack)}"
            if other := [i for i in loop if of_vectors(i) and not re.match(f"{PRODUCT}|{LOAD}|{ZIP}", i)]:
                yield f"{where}: {len(other)} vector instructions that are neither BFMMLA nor load nor zip: {'; '.join(other)}"


def compiled(args, first_include=None):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "hot_loops.o")
        includes = [*([f"-I{first_include}"] if first_include else []), f"-I{HEADERS}", *[x for d in args.include if d for x in ("-idirafter", d)]]
        command = [*shlex.split(args.compiler), *ARM_FLAGS, *includes, "-c", str(HERE / "hot_loops.cpp"), "-o", str(file)]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise Problem(f"{' '.join(command)}\n{done.stderr}")
        text = output_of(args.objdump, "--disassemble", "--demangle", "--no-show-raw-insn", str(file))
        return functions_of(text)


def self_test(args):
    missed = 0
    for defect in DEFECTS:
        with tempfile.TemporaryDirectory() as folder:
            plant(defect, folder)
            findings = list(check(*compiled(args, folder)))
        if "g++ 12" in defect.name and not findings and not output_of(*shlex.split(args.compiler), "-dumpversion").startswith("12"):
            print(f"without effect in this compiler: {defect.name}")
            continue
        noticed = [f for f in findings if defect.what in f]
        print(f"{'noticed' if noticed else 'MISSED'}: {defect.name}")
        for f in noticed or findings:
            print(f"    {f}")
        missed += not noticed
    return min(missed, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="aarch64-linux-gnu-g++")
    parser.add_argument("--objdump", default="aarch64-linux-gnu-objdump")
    parser.add_argument("--include", action="append", default=[], help="a folder of headers that attune needs")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    for program in (shlex.split(args.compiler)[0], args.objdump):
        if not output_of(program, "--version"):
            print(f"skipped: {program} cannot be run")
            return 0
    try:
        if args.self_test:
            return self_test(args)
        functions, vectors = compiled(args)
    except Problem as problem:
        sys.exit(str(problem))
    if args.show:
        for f in functions:
            for loop in f.loops():
                print(f"{f.kernel}, {f.rows} rows, {len(loop)} instructions: {count(loop, PRODUCT)} BFMMLA, {count(loop, LOAD)} loads, "
                      f"{count(loop, ZIP)} zips, {sum(not of_vectors(i) for i in loop)} others")
                print("\n".join(f"    {i}" for i in loop))
    findings = list(check(functions, vectors))
    if findings:
        sys.exit("\n".join(findings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
