#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The hot loops of the CPU executor keep the shape in the object code that makes them fast.

    check_hot_loops.py [--compiler g++] [--include DIR]...     compile hot_loops.cpp, look at its loops, show what is wrong
    check_hot_loops.py --show                                  print every loop with a count of its instructions
    check_hot_loops.py --self-test                             plant defects in copies of headers: each must be noticed

It compiles for AVX2 and for AVX-512 whatever the machine: nothing is run and nothing is timed, so the answer is the same
everywhere and a busy machine does not matter. What is looked at is the innermost loop of each function, as disassembled.
"""
import argparse
import collections
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import typing

HERE = pathlib.Path(__file__).resolve().parent
HEADERS = HERE.parent.parent / "include"
FLAGS = ["-std=gnu++20", "-w"]


# --- what is expected ---------------------------------------------------------------------------------------------------
class Target(typing.NamedTuple):
    march: str
    register: str  # what every lane of the loop lives in
    more: tuple = ()


# Parts of hot_loops.cpp that are compiled together, and how. By g++ 12 -O2 float's decode() for AVX-512 keeps two of its keys on
# the stack, with registers to spare, and takes a sixth longer (docs/lab/performance.md).
PARTS = {"-O2": ["PRODUCTS", "POINTWISE", "PREFETCHES", "TILES"], "-O3": ["STREAMS"]}
TARGETS = [Target("x86-64-v3", "ymm"), Target("x86-64-v4", "zmm", ("-mavx512bf16",))]
# It is the cost model of Zen (-march=native there) by which g++ 12 folds loads into FMAs: with Intel's or the generic one
# keep() could be taken away and nothing would change. By that of Zen clang unrolls pointwise loops until they spill: for clang
# the generic one.
TUNE_GCC = ["-mtune=znver3"]

# Products: functions NAME<T, Arch, Rows, ...> that run `multiply` of exec/cpu/microkernel.hpp. Their loop does rows x vectors
# FMAs a step (shape: exec/cpu/products/tiling.hpp) from `vectors` batches of b and one broadcast of a for each row, so
#   it reads rows + vectors vectors a step and no more. g++ 12 without keep() reads b again for every FMA. Whether a read stands
#       alone or in an FMA does not matter, only how many there are: two a cycle is what a core can do, as it can two FMAs;
#   it holds no other vector instruction: no spill, no move between registers, no multiplication with an addition after it.
PRODUCTS = ["contract_rows", "accumulate_rows", "outer_rows"]
# Those of pairs of bf16 (exec/cpu/bf16/) are the same functions with `pair_step`: VDPBF16PS in place of each FMA.
PAIRS = "bf16 pairs"
# The full tile must leave the loads some room: FMAs for each load, at least.
FMAS_PER_LOAD = 1.5
# Vector loads from the stack in the whole function, for each sum of the tile: at most. g++ -O2 (not -O3) left the loop that
# set the 8 x 2 sums to 0 as it stood, and so sent them through memory; `clear` is unrolled by decree.
STACK_LOADS_PER_SUM = 0


# Streams: functions of decode() that multiply rows of keys or values as they come from memory (exec/cpu/products/few_rows.hpp,
# bf16_kernels.hpp). For the largest block of rows each does rows x COLUMNS products a step, and keeps nothing on the stack:
# g++ stores an element of an array that an asm names, once a step, unless keep() takes a copy of it. Products with keys read
# `loads` vectors of keys for each column and one for each row, and hold no other vector instruction than `widening` for each column:
# numbers of 16 bits become floats by a load that extends and one shift, to which g++ may add a move (left alone it takes six
# instructions). Around those with values the compilers arrange requests for the next rows in ways of their own.
COLUMNS = {"x86-64-v3": 2, "x86-64-v4": 4}  # decode_tiling: keys and vectors


class Stream(typing.NamedTuple):
    symbol: str  # expression of the demangled name; group 1: rows; COLUMNS: so many
    scalar: str
    product: str
    loads: typing.Optional[int]
    marches: tuple
    widening: int = 0


ALL = tuple(t.march for t in TARGETS)
STREAMS = [
    Stream(r"::contract_rows_of_features<float, [^,]*, (\d+), float,", "float", r"vfmadd\d+ps", 1, ALL),
    Stream(r"::contract_rows_of_features<double, [^,]*, (\d+), double,", "double", r"vfmadd\d+pd", 1, ALL),
    Stream(r"::contract_rows_of_features<float, [^,]*, (\d+), attune::bfloat16,", "bf16 as float", r"vfmadd\d+ps", 1, ALL, 2),
    Stream(r"::contract_rows_of_pairs<[^,]*, (\d+)>", "bf16", r"vdpbf16ps", 2, ALL[1:]),
    Stream(r"::accumulate_rows_of_features<float, [^,]*, (\d+), COLUMNS, float>", "float", r"vfmadd\d+ps", None, ALL),
    Stream(r"::accumulate_rows_of_features<double, [^,]*, (\d+), COLUMNS, double>", "double", r"vfmadd\d+pd", None, ALL),
    Stream(r"::accumulate_rows_of_pairs<[^,]*, (\d+), 2, true>", "bf16", r"vdpbf16ps", None, ALL[1:]),
]

# Pointwise loops: member functions NAME of the tiles of softmax (no other operator asks less of them: what these loops need
# more than the formula is what every operator pays). Of a step, which is one batch of pairs:
class Step(typing.NamedTuple):
    stores: int  # to the block of pairs: exactly
    vector: int  # vector instructions of any kind, the more demanding of g++ 12 and clang 14: HEADROOM times that at most
    spills: int  # vector stores on the stack: at most. Loads from it are no worse than those of constants, which AVX2 has too
    #              few registers for, and are counted as instructions


HEADROOM = 1.1  # other versions of the compilers order and combine a little differently
POINTWISE = {
    ("logits<false>", "float", "x86-64-v3"): Step(1, 3, 0),  # multiply by the scale, maximum, store
    ("logits<false>", "double", "x86-64-v3"): Step(1, 3, 0),
    ("logits<false>", "float", "x86-64-v4"): Step(1, 3, 0),
    ("logits<false>", "double", "x86-64-v4"): Step(1, 3, 0),
    ("masses<false>", "float", "x86-64-v3"): Step(1, 20, 1),
    ("masses<false>", "double", "x86-64-v3"): Step(1, 25, 1),
    ("masses<false>", "float", "x86-64-v4"): Step(1, 19, 0),
    ("masses<false>", "double", "x86-64-v4"): Step(1, 24, 0),
    ("pull_pairs<false>", "float", "x86-64-v3"): Step(2, 36, 1),
    ("pull_pairs<false>", "double", "x86-64-v3"): Step(2, 41, 1),
    ("pull_pairs<false>", "float", "x86-64-v4"): Step(2, 35, 1),
    ("pull_pairs<false>", "double", "x86-64-v4"): Step(2, 40, 1),
}


# Rows asked for ahead of their use: prefetch(...) of hot_loops.cpp calls prefetch_rows of exec/cpu/products/prefetch.hpp, which asks. g++
# takes a function that does nothing but prefetch for one without effects, and leaves the call out.
PREFETCH, ASK = "prefetch", "prefetch_rows"


# Tiles of AMX (exec/cpu/bf16/amx.hpp): a step of the loop reads one tile of rows and two of columns and does two products. A load
# takes half the time of a product, so the products alone set the pace. Nothing else in the loop touches a vector or a tile.
TILES = Target("x86-64-v4", "zmm", ("-mavx512bf16", "-mamx-tile", "-mamx-bf16"))
TILE_STEP = {"tileloadd": 3, "tdpbf16ps": 2}




# What --self-test plants: in a copy of a header, `pattern` becomes `replacement`; a finding must then name `where` and `what`.
class Defect(typing.NamedTuple):
    name: str
    header: str
    pattern: str
    replacement: str
    part: str
    where: str
    what: str
    target: str = TARGETS[0].march  # or "amx"


DEFECTS = [
    Defect("keep() keeps nothing: g++ 12 folds loads into FMAs", "attune/exec/cpu/products/microkernel.hpp", r"asm\(.*?\);", ";",
           "PRODUCTS", "contract_rows<float, 4 rows>", "vector loads for"),
    Defect("a tile of pairs that does not fit into the registers", "attune/exec/cpu/products/tiling.hpp", r"\brows = [^;]*;", "rows = 16;",
           "PRODUCTS", "outer_rows<bf16 pairs, 16 rows>", "on the stack", TARGETS[1].march),
    Defect("a product of pairs in two steps", "attune/exec/cpu/products/pairs.hpp",
           r"return Unit::add_products\(acc, x, b\);", "return acc + Unit::add_products(xsimd::batch<float, Arch>(0.0f), x, b);", "PRODUCTS",
           "accumulate_rows<bf16 pairs, 8 rows>", "neither VDPBF16PS nor load", TARGETS[1].march),
    Defect("keep() names an element of an array: g++ stores it", "attune/exec/cpu/products/microkernel.hpp",
           r"auto data = x\.data;.*", "auto& data = x.data;", "STREAMS", "contract_rows_of_pairs", "on the stack", TARGETS[1].march),
    Defect("a conversion of 16 bits that is left to g++", "attune/core/storage.hpp",
           r"N == 8(\)\s+return std::bit_cast<floats>\(\s+_mm256_slli)", r"N == 0\1", "STREAMS", "contract_rows_of_features of bf16",
           "neither product nor load"),
    Defect("a tile that does not fit into the registers", "attune/exec/cpu/products/tiling.hpp", r"\brows = [^;]*;", "rows = 16;",
           "PRODUCTS", "accumulate_rows<double, 16 rows>", "on the stack"),
    Defect("an exponential that is a function of its own", "attune/core/simd_math.hpp",
           r"ATTUNE_INLINE( static batch exp_nonpositive\()", r"ATTUNE_NOINLINE\1", "POINTWISE", "masses<false>", "a call"),
    Defect("a tile that is read twice", "attune/exec/cpu/bf16/amx.hpp", r"_tile_dpbf16ps\(1, 2, 4\);",
           "_tile_loadd(2, a, apart); _tile_dpbf16ps(1, 2, 4);", "TILES", "multiply_tile", "4 tileloadd", "amx"),
    Defect("a prefetch that g++ takes for nothing", "attune/config.hpp", r"\(__builtin_prefetch\((.*?)\), .*\)\n",
           r"__builtin_prefetch(\1)\n", "PREFETCHES", PREFETCH, "nothing is asked for"),
]


# --- object code --------------------------------------------------------------------------------------------------------
class Instruction:
    """One line of the disassembly, AT&T order: the destination is the last operand."""

    def __init__(self, address, mnemonic, operands, text):
        self.address, self.mnemonic, self.text, self.calls = address, mnemonic, text, ""
        self.operands = [x.strip() for x in re.findall(r"(?:[^,(]|\([^)]*\))+", operands)]
        self.registers = re.findall(r"%([xyz]mm)\d+", operands)
        self.vector = bool(self.registers)
        self.register = max(self.registers, default="")  # xmm < ymm < zmm
        self.store = self.vector and "(" in self.operands[-1]
        self.load = self.vector and not self.store and any("(" in x for x in self.operands)
        address_of = next((x for x in self.operands if "(" in x), "")
        self.base = re.sub(r"^[^(]*\((%\w+)?.*$", r"\1", address_of)
        self.fma = bool(re.match(r"vfn?m(add|sub)(132|213|231)p[sd]$", mnemonic))
        self.call = mnemonic.startswith("call")
        # Arithmetic on a single number; loading one to broadcast it is none.
        self.scalar_arithmetic = self.vector and bool(re.match(r"v(?!mov|p?broadcast|ucomi|comi)\w+s[sd]$", mnemonic))

    @property
    def target(self):
        """Where a jump goes."""
        found = re.match(r"(?:0x)?([0-9a-f]+)\b", self.operands[0]) if self.mnemonic.startswith("j") and self.operands else None
        return int(found[1], 16) if found else None


KINDS = [
    ("FMA", r"vfn?m(add|sub)\d+p"),
    ("multiply", r"vmulp"),
    ("add, subtract", r"v(add|sub)p"),
    ("divide, root", r"v(div|sqrt)p"),
    ("largest, least", r"v(max|min)p"),
    ("compare", r"vp?cmp"),
    ("select, logic", r"v(p?blend|p?and|p?or|p?xor|ptern)|k[a-z]"),
    ("shift, integer", r"vp(sll|srl|sra|add|sub)"),
    ("broadcast", r"vp?broadcast"),
]


def kind(i, stack):
    if i.call:
        return "CALL"
    if not i.vector and not i.mnemonic.startswith("k"):
        return "jump" if i.mnemonic.startswith("j") else "integer unit"
    if i.base in stack:
        return "STACK store" if i.store else "STACK load"
    if i.store:
        return "store"
    if i.scalar_arithmetic:
        return "SCALAR arithmetic"
    if i.mnemonic.startswith(("vmov", "mov")):
        masked = "masked " if any("{%k" in x for x in i.operands) else ""
        return f"{masked}load" if i.load else f"{masked}move"
    return next((name for name, pattern in KINDS if re.match(pattern, i.mnemonic)), i.mnemonic)


class Function:
    def __init__(self, name):
        self.name, self.code = name, []

    def stack(self):
        """Registers that point into the frame: what nothing but addresses of the frame is ever put into."""
        written = collections.defaultdict(list)
        for i in self.code:
            if i.operands and not i.vector and not i.mnemonic.startswith(("cmp", "test", "push", "pop", "j", "call")):
                written[i.operands[-1]].append(i)
        frame = {"%rsp"}
        for _ in range(2):  # addresses made of addresses
            for register, by in written.items():
                if register.startswith("%r") and all(
                    (x.mnemonic == "mov" and x.operands[0] in frame) or (x.mnemonic == "lea" and x.base in frame) for x in by
                ):
                    frame.add(register)
        return frame

    def innermost_loops(self, of_interest=lambda loop: True):
        """Stretches between the target of a backward jump and the last jump to it, without another of their kind inside; of
        those that are of interest."""
        last = {}
        for i in self.code:
            if i.target is not None and self.code[0].address <= i.target <= i.address:
                last[i.target] = i.address
        loops = {span: [i for i in self.code if span[0] <= i.address <= span[1]] for span in last.items()}
        spans = [s for s, loop in loops.items() if of_interest(loop)]
        inner = [s for s in spans if not any(t != s and s[0] <= t[0] and t[1] <= s[1] for t in spans)]
        return [loops[s] for s in sorted(inner)]


def disassembly(objdump, file):
    text = subprocess.run(
        [objdump, "--disassemble", "--reloc", "--demangle", "--no-show-raw-insn", str(file)],
        stdout=subprocess.PIPE, check=True, text=True, env=dict(os.environ, LC_ALL="C"),
    ).stdout
    functions = []
    for line in text.splitlines():
        # A relocation may follow its instruction on the same line or stand on the next one.
        relocation = re.search(r"\s[0-9a-f]+:\s+R_X86_64_\w+\s+(.*)$", line)
        line = line[: relocation.start()] if relocation else line
        if found := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            functions.append(Function(found[1]))
        elif (found := re.match(r"\s+([0-9a-f]+):\s+(.*\S)", line)) and functions:
            text = re.sub(r"\s+(#.*|<.*>)$", "", found[2])
            words = re.sub(r"^((rep\w*|lock|bnd|notrack|data16|cs)\s+)+", "", text).split(None, 1)
            functions[-1].code.append(Instruction(int(found[1], 16), words[0], words[1] if len(words) > 1 else "", text))
        if relocation and functions and functions[-1].code:
            functions[-1].code[-1].calls = relocation[1]
    return functions


# --- checks -------------------------------------------------------------------------------------------------------------
class Finding:
    """What is wrong with a loop, and which instructions show it."""

    def __init__(self, where, what, loop=(), because=()):
        self.where, self.what, self.loop, self.because = where, what, loop, {i.address for i in because}

    def __str__(self):
        lines = [f"{self.where}: {self.what}"]
        for i in self.loop:
            called = f"  <{i.calls}>" if i.call and i.calls else ""
            lines.append(f"  {'>>' if i.address in self.because else '  '} {i.address:5x}:  {i.text}{called}")
        return "\n".join(lines)


def in_every_loop(where, loop, target):
    """Calls, single numbers and short vectors."""
    if calls := [i for i in loop if i.call]:
        yield Finding(where, "a call inside the loop: something was not inlined", loop, calls)
    if single := [i for i in loop if i.scalar_arithmetic]:
        yield Finding(where, f"{len(single)} instructions on single numbers", loop, single)
    if short := [i for i in loop if i.vector and i.register < target.register and not i.scalar_arithmetic and not i.load]:
        yield Finding(where, f"{len(short)} instructions on registers shorter than {target.register}", loop, short)


def check_product(where, function, rows, vectors, target, is_product=lambda i: i.fma, name="FMA"):
    loops = [x for x in function.innermost_loops() if any(is_product(i) for i in x)]
    if not loops:
        yield Finding(where, f"no loop with packed {name}s")
    stack = function.stack()
    for loop in loops:
        yield from in_every_loop(where, loop, target)
        if spills := [i for i in loop if i.vector and i.base in stack]:
            yield Finding(where, f"{len(spills)} vector loads and stores on the stack", loop, spills)
        fmas, loads = [i for i in loop if is_product(i)], [i for i in loop if i.load and i.base not in stack]
        steps = max(1, len(fmas) // (rows * vectors))
        if len(fmas) != steps * rows * vectors:
            yield Finding(where, f"{len(fmas)} {name}s, expected rows x vectors = {rows} x {vectors} a step", loop, fmas)
        if len(loads) > steps * (rows + vectors):
            expected = f"rows + vectors = {rows} + {vectors} a step" + (f" ({steps} steps)" if steps > 1 else "")
            what = f"{len(loads)} vector loads for {len(fmas)} {name}s, expected {expected}: folded into {name}s that share them?"
            yield Finding(where, what, loop, loads)
        if other := [i for i in loop if i.vector and not is_product(i) and not i.load and not i.store]:
            yield Finding(where, f"{len(other)} vector instructions that are neither {name} nor load", loop, other)
    reloads, most = [i for i in function.code if i.load and i.base in stack], STACK_LOADS_PER_SUM * rows * vectors
    if len(reloads) > most:
        yield Finding(where, f"{len(reloads)} vector loads from the stack around the loop, at most {most} expected", reloads)


def is_stream(stream, symbol, target):
    return re.search(stream.symbol.replace("COLUMNS", str(COLUMNS[target.march])), symbol)


def check_stream(where, function, rows, stream, target):
    def is_product(i):
        return re.match(stream.product, i.mnemonic)

    columns = COLUMNS[target.march]
    loops = function.innermost_loops(lambda loop: any(is_product(i) for i in loop))
    if not loops:
        yield Finding(where, "no loop with products")
    stack = function.stack()
    for loop in loops:
        products = [i for i in loop if is_product(i)]
        steps = max(1, len(products) // (rows * columns))
        if len(products) != steps * rows * columns:
            what = f"{len(products)} products, expected rows x {columns} = {rows * columns} a step"
            yield Finding(where, what, loop, products)
        if spills := [i for i in loop if i.vector and i.base in stack]:
            yield Finding(where, f"{len(spills)} vector loads and stores on the stack", loop, spills)
        if stream.loads is None:
            continue
        yield from in_every_loop(where, loop, target)
        loads, most = [i for i in loop if i.load], steps * (rows + stream.loads * columns)
        if len(loads) > most:
            yield Finding(where, f"{len(loads)} vector loads for {len(products)} products, expected at most {most}", loop, loads)
        other, most = [i for i in loop if i.vector and not is_product(i) and not i.load], steps * columns * stream.widening
        if len(other) > most:
            what = f"{len(other)} vector instructions that are neither product nor load, expected at most {most}"
            yield Finding(where, what, loop, other)


def pointwise_loop(function, stack):
    """The innermost loop that writes batches to memory; the longest, should a short copy run before or after."""
    loops = [x for x in function.innermost_loops() if any(i.store and i.base not in stack for i in x)]
    return max(loops, key=len, default=[])


def check_pointwise(where, function, target, expected):
    stack = function.stack()
    loop = pointwise_loop(function, stack)
    if not loop:
        yield Finding(where, "no loop that stores vectors")
        return
    yield from in_every_loop(where, loop, target)
    stores = [i for i in loop if i.store and i.base not in stack]
    steps = max(1, len(stores) // expected.stores)
    if len(stores) != steps * expected.stores:
        yield Finding(where, f"{len(stores)} stores, expected {expected.stores} a step", loop, stores)
    spills = [i for i in loop if i.store and i.base in stack]
    if len(spills) > steps * expected.spills:
        what = f"{len(spills)} vector stores on the stack for {steps} batches, expected at most {expected.spills} a batch"
        yield Finding(where, what, loop, spills)
    vector, most = [i for i in loop if i.vector], int(HEADROOM * steps * expected.vector)
    if len(vector) > most:
        yield Finding(where, f"{len(vector)} vector instructions for {steps} batches, expected at most {most}", loop)


def check_prefetch(functions, target):
    asks = any(f"::{ASK}<" in f.name and any(i.mnemonic.startswith("prefetch") for i in f.code) for f in functions)
    callers = [f for f in functions if f"::{PREFETCH}(" in f.name and any(ASK in i.calls for i in f.code)]
    if not (asks and callers):
        yield Finding(f"{PREFETCH} for {target.march}", "nothing is asked for")


def check_tiles(functions):
    found = [f for f in functions if "::multiply_tile<" in f.name]
    if not found:
        yield Finding("products of tiles", "there is no such function")
    for f in found:
        where = re.sub(r"^.*::(multiply_tile<\w+>).*$", r"\1", f.name)
        loops = f.innermost_loops(lambda loop: any(i.mnemonic == "tdpbf16ps" for i in loop))
        if not loops:
            yield Finding(where, "no loop with products")
        for loop in loops:
            counts = collections.Counter(i.mnemonic for i in loop if i.mnemonic in TILE_STEP)
            for name, expected in TILE_STEP.items():
                if counts[name] * TILE_STEP["tdpbf16ps"] != expected * counts["tdpbf16ps"]:
                    yield Finding(where, f"{counts[name]} {name} for {counts['tdpbf16ps']} products, expected {expected} for 2", loop)
            if other := [i for i in loop if i.vector or i.call or i.mnemonic.startswith(("tilestore", "tilezero", "ldtile"))]:
                yield Finding(where, f"{len(other)} instructions that are neither load nor product of tiles", loop, other)


class Product(typing.NamedTuple):
    name: str
    scalar: str
    rows: int


def product_of(symbol):
    found = re.search(r"::(%s)<(float|double), .*?, (\d+)[,>]" % "|".join(PRODUCTS), symbol)
    return Product(found[1], PAIRS if "::pair_step<" in symbol else found[2], int(found[3])) if found else None


def is_pair_product(i):
    return i.mnemonic == "vdpbf16ps"


def pointwise_of(symbol):
    if found := re.search(r"::logits<false, (float|double), ", symbol):
        return ("logits<false>", found[1])
    found = re.search(r"::\w+<(float|double), .*>::(\w+<false>)\(", symbol)
    return (found[2], found[1]) if found else None


def tile_shapes(functions):
    found = [re.search(r"::tile_shape<(float|double), (\d+), (\d+)>", f.name) for f in functions]
    return {x[1]: (int(x[2]), int(x[3])) for x in found if x}


def check(functions, target, parts):
    findings = []
    if "PRODUCTS" in parts:
        shapes, seen = tile_shapes(functions), set()
        if "-mavx512bf16" in target.more:
            shapes[PAIRS] = shapes["float"]
        for f in functions:
            if p := product_of(f.name):
                vectors = shapes[p.scalar][1]
                seen.add(p)
                where = f"{p.name}<{p.scalar}, {p.rows} rows> for {target.march}"
                how = (is_pair_product, "VDPBF16PS") if p.scalar == PAIRS else ()
                findings += check_product(where, f, p.rows, vectors, target, *how)
        for scalar, (rows, vectors) in shapes.items():
            if rows * vectors < FMAS_PER_LOAD * (rows + vectors):
                what = f"{rows} x {vectors} makes {rows * vectors} FMAs of {rows + vectors} loads, too few"
                findings.append(Finding(f"tiling<{scalar}> for {target.march}", what))
            for name in PRODUCTS:
                if Product(name, scalar, rows) not in seen:
                    findings.append(Finding(f"{name}<{scalar}, {rows} rows> for {target.march}", "there is no such function"))
    if "STREAMS" in parts:
        for stream in (x for x in STREAMS if target.march in x.marches):
            found = {int(x[1]): f for f in functions if (x := is_stream(stream, f.name, target))}
            name = re.match(r"::(\w+)", stream.symbol)[1]
            if not found:
                findings.append(Finding(f"{name} of {stream.scalar} for {target.march}", "there is no such function"))
                continue
            rows = max(found)
            where = f"{name} of {stream.scalar}, {rows} rows, for {target.march}"
            findings += check_stream(where, found[rows], rows, stream, target)
    if "POINTWISE" in parts:
        found = {pointwise_of(f.name): f for f in functions if pointwise_of(f.name)}
        for (name, scalar, march), expected in POINTWISE.items():
            if march != target.march:
                continue
            where = f"{name} of softmax, {scalar}, for {march}"
            if (name, scalar) in found:
                findings += check_pointwise(where, found[name, scalar], target, expected)
            else:
                findings.append(Finding(where, "there is no such function"))
    if "PREFETCHES" in parts:
        findings += check_prefetch(functions, target)
    if "TILES" in parts:
        findings += check_tiles(functions)
    return findings


def show(functions, target):
    for f in functions:
        stack = f.stack()
        if product_of(f.name):
            loops = [x for x in f.innermost_loops() if any(i.fma or is_pair_product(i) for i in x)]
        elif stream := next((x for x in STREAMS if is_stream(x, f.name, target)), None):
            loops = f.innermost_loops(lambda loop: any(re.match(stream.product, i.mnemonic) for i in loop))
        elif pointwise_of(f.name):
            loops = [pointwise_loop(f, stack)]
        else:
            continue
        for loop in loops:
            print(f"{f.name}\n  for {target.march}: {len(loop)} instructions")
            for name, count in sorted(collections.Counter(kind(i, stack) for i in loop).items(), key=lambda x: -x[1]):
                print(f"  {count:4} {name}")
            folded = sum(i.load and not i.mnemonic.startswith(("vmov", "vbroadcast")) for i in loop)
            print(f"       ({folded} loads as operands of other instructions)\n{Finding('  loop', '', loop)}")


# --- the program --------------------------------------------------------------------------------------------------------
class Problem(Exception):
    pass


def output_of(*command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    except OSError:
        return ""


def is_gcc(compiler):
    return "Free Software Foundation" in output_of(compiler, "--version")


def compiled(args, target, parts, first_include=None):
    """The functions of hot_loops.cpp."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "hot_loops.o")
        includes = [*([f"-I{first_include}"] if first_include else []), f"-I{HEADERS}"]
        includes += [x for d in args.include if d for x in ("-idirafter", d)]
        tune = TUNE_GCC if is_gcc(args.compiler) else []
        level = next(level for level, of in PARTS.items() if set(parts) <= set(of))
        command = [args.compiler, *FLAGS, level, f"-march={target.march}", *target.more, *tune, *[f"-DHOT_LOOPS_{p}" for p in parts], *includes]
        command += ["-c", str(HERE / "hot_loops.cpp"), "-o", str(file)]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise Problem(f"{' '.join(command)}\n{done.stderr}")
        return disassembly(args.objdump, file)


def plant(defect, folder):
    """Writes a copy of the defect's header, with the defect, to the folder."""
    text, count = re.subn(defect.pattern, defect.replacement, (HEADERS / defect.header).read_text(encoding="utf-8"))
    if not count:
        raise Problem(f"{defect.header} has nothing like {defect.pattern} any more")
    copy = pathlib.Path(folder, defect.header)
    copy.parent.mkdir(parents=True)
    copy.write_text(text, encoding="utf-8")


def self_test(args):
    """Each defect that this compiler can have, planted and noticed."""
    missed = 0
    for defect in DEFECTS:
        if "g++" in defect.name and not is_gcc(args.compiler):
            print(f"not planted, {args.compiler} cannot have it: {defect.name}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            plant(defect, folder)
            target = next((t for t in TARGETS if t.march == defect.target), TILES)
            findings = check(compiled(args, target, [defect.part], folder), target, [defect.part])
        if "g++ 12" in defect.name and not findings and not output_of(args.compiler, "-dumpversion").startswith("12"):
            print(f"without effect in this g++: {defect.name}")
            continue
        noticed = [f for f in findings if defect.where in f.where and defect.what in f.what]
        print(f"{'noticed' if noticed else 'MISSED'}: {defect.name}")
        for f in noticed or findings:
            print(f"    {f.where}: {f.what}")
        missed += not noticed
    return min(missed, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--objdump", default="objdump")
    parser.add_argument("--include", action="append", default=[], help="a folder of headers that attune needs")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    machine = output_of(args.compiler, "-dumpmachine").strip()
    if not re.match(r"x86_64-.*linux", machine):
        print(f"skipped: {args.compiler} compiles for {machine or 'nothing'}; the loops are known on x86_64 Linux")
        return 0
    if not output_of(args.objdump, "--version"):
        print(f"skipped: {args.objdump} (binutils) cannot be run")
        return 0
    try:
        if args.self_test:
            return self_test(args)
        findings = []
        of_all = [[p for p in parts if p != "TILES"] for parts in PARTS.values()]
        for target, parts in [*itertools.product(TARGETS, of_all), (TILES, ["TILES"])]:
            functions = compiled(args, target, parts)
            if args.show:
                show(functions, target)
            findings += check(functions, target, parts)
    except Problem as problem:
        sys.exit(str(problem))
    if findings:
        print(output_of(args.compiler, "--version").splitlines()[0])
        print("\n\n".join(str(f) for f in findings))
        sys.exit(f"\n{len(findings)} regressions in hot loops (what is expected, and why: tests/codegen/check_hot_loops.py)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
