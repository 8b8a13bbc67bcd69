#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Tries an installed package of attune that has the preset softmax and xsimd's headers: every library that this processor
can run, the program attune, the licenses, and, where there is a compiler, attune.compile with the package's xsimd.
scripts/wheel and scripts/sdist run it."""

import importlib.metadata
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np


def dense(q, k, v):
    """Softmax attention by NumPy."""
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    w = np.exp(s - s.max(-1, keepdims=True))
    return w / w.sum(-1, keepdims=True) @ v


def try_softmax():
    """Calls the preset softmax of the library that is loaded; returns its error."""
    import attune

    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((1, 2, n, 16)) for n in (5, 70, 70))
    out = attune.op("softmax")(q, k, v)
    g = attune.op("softmax").vjp(q, k, v, dout=out)
    assert g["v"].shape == v.shape and np.abs(g["v"].sum() - out.sum()) < 1e-11, "the gradient by v is wrong"
    error = np.abs(out - dense(q, k, v)).max()
    assert error < 1e-13, f"softmax is wrong by {error}"
    try:
        attune.op("softmax")(q, k[..., :5], v)
    except attune.Error as e:  # an exception of C++, caught in the library
        assert "16" in str(e), e
    else:
        raise AssertionError("a wrong call is not refused")
    return error


def command(*words):
    """What a command of the program attune prints, which is python -m attune."""
    program = pathlib.Path(sys.executable).with_name("attune")
    said = [subprocess.run([*start, *words], stdout=subprocess.PIPE, check=True).stdout for start in ((program,), (sys.executable, "-m", "attune"))]
    assert said[0] == said[1], said
    return said[0].decode().strip()


def try_verdicts():
    """The verdicts that a wheel has: the program, and attune.verdict without a compiler. Returns the program's seconds."""
    import attune
    from attune import masks

    rng = np.random.default_rng(3)
    x = {name: rng.standard_normal((1, 2, n, 16)).astype(np.float32) for name, n in (("q", 24), ("k", 40), ("v", 40))}
    out = attune.op("softmax")(**x, mask=masks.causal())
    program = pathlib.Path(sys.executable).with_name("attune")
    with tempfile.TemporaryDirectory() as folder:
        files = {name: f"{folder}/{name}.npy" for name in (*x, "right", "wrong")}
        for name, array in (*x.items(), ("right", out), ("wrong", out * np.float32(1.01))):
            np.save(files[name], array)
        call = ["verdict", "softmax", "--mask", "causal", *(word for name in x for word in (f"--{name}", files[name]))]
        start = time.monotonic()
        for name, decision, status in (("right", "PASS", 0), ("wrong", "FAIL", 1)):
            done = subprocess.run([program, *call, "--out", files[name]], stdout=subprocess.PIPE, text=True)
            assert done.stdout.startswith(decision + "\n") and done.returncode == status, done
        seconds = (time.monotonic() - start) / 2
    os.environ["ATTUNE_NO_COMPILE"] = "1"
    try:
        report = attune.verdict("softmax", **x, mask=masks.causal(), out=out)
    finally:
        del os.environ["ATTUNE_NO_COMPILE"]
    assert report, report
    return seconds


def try_compile(include, compiler):
    """Compiles an operator, or loads it from the folder of an earlier trial. The compiler must read the wheel's xsimd."""
    import attune

    folder = pathlib.Path(os.environ.get("ATTUNE_CACHE") or tempfile.mkdtemp())
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    read = folder / "read.d"  # make's rule, with every header that the compiler read
    if read.exists():
        read.unlink()
    op = attune.compile_operator(
        "attention(kernel::dot_product{}, normalizer::softmax{}, m)",
        dtypes="float64",
        compiler=f"{compiler} -MD -MF {read}",
        cache=folder,
    )
    q = np.random.default_rng(2).standard_normal((1, 1, 4, 8))
    error = np.abs(op(q, q, q) - dense(q, q, q)).max()
    assert error < 1e-13, f"the compiled operator is wrong by {error}"
    if not read.exists():
        return "right, compiled by an earlier trial"
    folders = {name[: name.index("/xsimd/")] for name in read.read_text().split() if "/xsimd/" in name}
    assert folders == {include}, f"the compiler read the xsimd of {folders}; expected that of {include}"
    return f"right, with the xsimd of {include}"


def main():
    import attune
    from attune import _presets

    library = pathlib.Path(_presets.library().path)
    here = pathlib.Path(attune.__file__).parent
    levels = ["native"] if (here / "_native" / "attune_native.so").exists() else _presets.levels()
    assert library == here / "_native" / f"attune_{levels[0]}.so", (library, levels)
    built = attune.presets(built=True)
    print(f"attune {attune.__version__} in {here}: {library.name}, {len(built)} of {len(attune.presets())} presets")
    for level in levels:
        environment = {**os.environ, "ATTUNE_LIBRARY": str(library.with_name(f"attune_{level}.so"))}
        done = subprocess.run([sys.executable, __file__, "softmax"], env=environment, stdout=subprocess.PIPE, check=True)
        print(f"  {level}: softmax is wrong by {float(done.stdout):.1e} at most")

    assert command("version") == attune.__version__ and command("presets").split() == attune.presets()
    include = attune.get_include()
    assert command("include") == include and command("cmake-dir") == attune.get_cmake_dir()
    files = {f.name for f in importlib.metadata.files("attune")}
    for name in ("LICENSE", "LICENSE.xsimd", "py.typed", "xsimd.hpp"):
        assert name in files, f"the wheel has no {name}"

    if (here / "_native" / "attune").exists():
        print(f"  attune verdict softmax: {try_verdicts():.1f} s")
    compiler = os.environ.get("ATTUNE_CXX") or os.environ.get("CXX") or "g++"
    can = shutil.which(compiler.split()[0]) is not None
    print(f"  attune.compile: {try_compile(include, compiler) if can else 'not tried, no compiler is here'}")


if __name__ == "__main__":
    if sys.argv[1:] == ["softmax"]:
        print(try_softmax())
    else:
        main()
