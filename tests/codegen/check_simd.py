#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""attune uses the operations of xsimd that core/xsimd.hpp lists, and no others.

check_simd.py --root FOLDER [--program FILE --nm NM]     check the headers, and the symbols of a program compiled with -O0
check_simd.py --root FOLDER --compiler CXX --nm NM --self-test   plant an operator of each kind: each must be found

Names of xsimd are read from the headers. Operators have no names, so they are read from a program in which no function is
inlined: an operator that an instance of a template calls is one of its symbols, whatever the machine. xsimd from 12 on is
always inlined: there is nothing to see. `==` of masks cannot be told from `!`, which calls it.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

ALLOWED = {"batch", "batch_bool", "as_integer_t", "default_arch", "avx512f", "avx2", "avx", "sse4_1", "sse2", "neon64",
           "neon", "emulated"}
HOME = "core/xsimd.hpp"
OPERATOR = re.compile(r"\bxsimd::(batch(_bool)?<[^()]*>::)?operator\W")
# Masks: ^ and !=. Batches of floats and doubles: !=.
REFUSED = re.compile(r"\bxsimd::batch_bool<[^()]*>::operator(\^|!=)|\bxsimd::batch<(float|double),[^()]*>::operator!="
                     r"|\bxsimd::operator(\^=?|!=)\(xsimd::(batch_bool<|batch<(float|double),)")


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def names_in(root):
    for folder, _, files in os.walk(os.path.join(root, "include")):
        for file in sorted(files):
            path = os.path.join(folder, file)
            if not file.endswith((".hpp", ".cuh")) or path.endswith(HOME):
                continue
            with open(path, encoding="utf-8") as source:
                text = without_comments(source.read())
            for found in re.finditer(r"\bxsimd::(\w+)", text):
                if found[1] not in ALLOWED:
                    line = text.count("\n", 0, found.start()) + 1
                    yield f"{path}:{line}: xsimd::{found[1]}: call it through a function of {HOME}"


def operators_in(program, nm):
    symbols = subprocess.run([nm, "--defined-only", program], check=True, capture_output=True, text=True).stdout
    names = "\n".join(line.split()[-1] for line in symbols.splitlines() if "5xsimd" in line)
    shown = subprocess.run(["c++filt"], input=names, check=True, capture_output=True, text=True).stdout.splitlines()
    if not any(map(OPERATOR.search, shown)):
        print(f"skipped: no operator of xsimd is a symbol of {program}")
        sys.exit(0)
    return [f"{program}: {name}: see the head of {HOME}" for name in sorted(set(filter(REFUSED.search, shown)))]


PLANTS = {
    "(a < b) ^ (b < a)": True,
    "(a < b) != (b < a)": True,
    "a != b": True,
    "!(a == b) && (a < b || b < a)": False,
}


def self_test(options):
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, (plant, refused) in enumerate(PLANTS.items()):
            source, program = os.path.join(folder, f"{number}.cpp"), os.path.join(folder, f"{number}.o")
            with open(source, "w", encoding="utf-8") as to:
                to.write("#include <attune/core/xsimd.hpp>\n"
                         "using batch = xsimd::batch<float, xsimd::default_arch>;\n"
                         f"bool f(batch const& a, batch const& b) {{ return attune::simd::any({plant}); }}\n")
            subprocess.run([options.compiler, "-std=c++20", "-O0", "-march=native", "-w", "-c", source, "-o", program,
                            "-I", os.path.join(options.root, "include")]
                           + [word for path in options.include if path and path != "/usr/include"
                              for word in ("-isystem", path)], check=True)
            found = operators_in(program, options.nm)
            if bool(found) != refused:
                wrong += 1
                print(f"{plant}: {'not found' if refused else found}")
        header = os.path.join(folder, "include", "planted.hpp")
        os.makedirs(os.path.dirname(header))
        with open(header, "w", encoding="utf-8") as to:
            to.write("// xsimd::neq in a comment\nauto f = xsimd::neq(a, b);\n")
        if len(list(names_in(folder))) != 1:
            wrong += 1
            print("xsimd::neq in a header: not found")
    return wrong


def main():
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("--root", required=True)
    parse.add_argument("--program")
    parse.add_argument("--compiler")
    parse.add_argument("--nm", default="nm")
    parse.add_argument("--include", action="append", default=[], help="a folder of system headers")
    parse.add_argument("--self-test", action="store_true")
    options = parse.parse_args()
    if options.self_test:
        sys.exit(1 if self_test(options) else 0)
    faults = list(names_in(options.root))
    if options.program:
        faults += operators_in(options.program, options.nm)
    print("\n".join(faults) or "every use of xsimd is one that core/xsimd.hpp lists")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
