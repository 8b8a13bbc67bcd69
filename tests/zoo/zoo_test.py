#!/usr/bin/env python3
"""Files of every kind, read by attune and by those who define the formats: NumPy, zipfile and the package safetensors.

    zoo_test.py PROGRAM FOLDER      PROGRAM is attune_read_zoo; the files are made in FOLDER

Where the judges read, attune must read the same numbers; where they refuse, attune must refuse. Exceptions, each of them listed:
types that attune has no use for are refused by name (complex, structured, ...), members compressed by other methods than deflate cost only
themselves, and a safetensors file with a type that nobody knows is readable but for that tensor.
"""
import io
import pathlib
import shutil
import struct
import subprocess
import sys
import warnings
import zipfile
import zlib

import numpy as np
import safetensors

ATTUNE = {"f8": "float64", "f4": "float32", "f2": "float16", "b1": "boolean", "u1": "uint8", "u2": "uint16", "u4": "uint32",
          "u8": "uint64", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "V2": "uint16"}  # raw words
SAFETENSORS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
               "F8_E5M2": "float8_e5m2", "BOOL": "boolean", "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64",
               "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64"}


def extents(shape):
    return "(" + ", ".join(map(str, shape)) + (",)" if len(shape) == 1 else ")")


def described(x):
    """(type, extents, CRC) of a NumPy array, as attune prints them; None where attune has no such type."""
    kind = x.dtype.str[1:]
    if x.dtype.fields or kind not in ATTUNE or (x.dtype.str[0] == ">" and x.dtype.itemsize > 1):
        return None
    return ATTUNE[kind], extents(x.shape), f"{zlib.crc32(np.ascontiguousarray(x).tobytes()):08x}"


class Zoo:
    def __init__(self, folder):
        self.folder = folder
        self.expected = {}  # path -> None: must be refused; or {name: (type, extents, CRC), or None: must be refused}

    def file(self, name):
        return self.folder / name

    def judge_npy(self, path):
        try:
            x = np.load(path, allow_pickle=False)
        except Exception:
            self.expected[path] = {"": None}
        else:
            self.expected[path] = {"": described(x)}

    def judge_npz(self, path):
        try:
            archive = zipfile.ZipFile(path)
        except Exception:
            self.expected[path] = None
            return
        arrays = {}
        for info in archive.infolist():  # of a name that comes twice, the last one
            if not info.filename.endswith(".npy"):
                continue
            name = info.filename[:-4]
            try:
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise ValueError("attune reads stored and deflated members")
                arrays[name] = described(np.lib.format.read_array(io.BytesIO(archive.read(archive.getinfo(info.filename))), allow_pickle=False))
            except Exception:
                arrays[name] = None
        self.expected[path] = arrays

    def judge_safetensors(self, path):
        try:
            tensors = safetensors.deserialize(path.read_bytes())
        except Exception as problem:
            self.expected[path] = {} if "unknown variant" in str(problem) else None
            return
        arrays = {}
        for name, x in tensors:
            known = SAFETENSORS.get(str(x["dtype"]))
            arrays[name] = known and (known, extents(x["shape"]), f"{zlib.crc32(bytes(x['data'])):08x}")
        self.expected[path] = arrays


def make_npy(zoo):
    random = np.random.default_rng(1)
    numbers = random.integers(0, 100, 30)
    for code in "?bBhHiIlLqQefdgFDGOSUVmM":
        for order in "<>=|":
            try:
                dtype = np.dtype(order + {"S": "S3", "U": "U3", "V": "V2", "m": "m8[s]", "M": "M8[s]"}.get(code, code))
                x = numbers.astype(dtype) if code not in "OV" else np.zeros(30, dtype)
            except TypeError:
                continue
            for shape in ((30,), (2, 3, 5), (0, 4), ()):
                for layout in "CF":
                    y = np.array(x[: int(np.prod(shape))].reshape(shape), order=layout)
                    path = zoo.file(f"{code}_{'lbnv'['<>=|'.index(order)]}_{len(shape)}_{y.size}_{layout}.npy")
                    np.save(path, y, allow_pickle=True)
                    zoo.judge_npy(path)
    np.save(zoo.file("record.npy"), np.zeros(3, [("a", "<f4"), ("b", "<i2")]))
    zoo.judge_npy(zoo.file("record.npy"))
    body = np.arange(6, dtype="<f4").tobytes()
    for n, descr in enumerate(["'<f4'", "'=f4'", "'f4'", "'|f4'", "'<b1'", "'>u1'", "'<u1'", "'|i1'", "'?'", "'>f4'", "'f'", "'<c8'", "'|O'"]):
        for version in (1, 2, 3):
            header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': ({6 if 'f' in descr else 24},), }}".encode()
            header += b" " * (-(len(header) + 1 + (10 if version == 1 else 12)) % 64) + b"\n"
            path = zoo.file(f"descr_{n}_{version}.npy")
            path.write_bytes(b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)) + header + body)
            zoo.judge_npy(path)
            if descr == "'f'":  # NumPy takes it, and never writes it: attune wants a size
                del zoo.expected[path]


class Stream(io.RawIOBase):
    """A file that cannot seek, as a pipe cannot."""

    def __init__(self, path):
        self.out = open(path, "wb")

    def writable(self):
        return True

    def write(self, data):
        return self.out.write(data)

    def close(self):
        self.out.close()
        super().close()


def npy_bytes(x):
    out = io.BytesIO()
    np.save(out, x)
    return out.getvalue()


def make_npz(zoo):
    q, k = np.arange(30, dtype="<f4").reshape(2, 3, 5), np.arange(8, dtype="<f8")
    np.savez(zoo.file("savez.npz"), q=q, k=k)
    np.savez_compressed(zoo.file("compressed.npz"), q=q, k=k)
    methods = {"stored": zipfile.ZIP_STORED, "deflated": zipfile.ZIP_DEFLATED, "bzip2": zipfile.ZIP_BZIP2, "lzma": zipfile.ZIP_LZMA}
    for name, method in methods.items():
        for zip64 in (False, True):
            for stream in (False, True):
                path = zoo.file(f"zipfile_{name}_{zip64}_{stream}.npz")
                with zipfile.ZipFile(Stream(path) if stream else path, "w") as archive:
                    for member, x in (("q.npy", q), ("other.npy", k)):
                        info = zipfile.ZipInfo(member)
                        info.compress_type = method if member != "q.npy" else zipfile.ZIP_STORED
                        with archive.open(info, "w", force_zip64=zip64) as to:
                            to.write(npy_bytes(x))
    plain = zoo.file("savez.npz").read_bytes()
    zoo.file("in_front.npz").write_bytes(b"#!/bin/sh\nexit 0\n" + plain)
    zoo.file("behind.npz").write_bytes(plain + b"\0" * 1000)
    zoo.file("cut.npz").write_bytes(plain[:-30])
    zoo.file("cut_in_front.npz").write_bytes(plain[30:])
    zoo.file("none.npz").write_bytes(b"no zip file at all, and longer than 22 bytes")
    with zipfile.ZipFile(zoo.file("comment.npz"), "w") as archive:
        archive.writestr("q.npy", npy_bytes(q))
        archive.comment = b"a comment " * 1000
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(zoo.file("twice.npz"), "w") as archive:
            archive.writestr("q.npy", npy_bytes(q))
            archive.writestr("q.npy", npy_bytes(k))
    one = npy_bytes(np.float32(1))
    for count in (65534, 65535, 65536, 70000):
        with zipfile.ZipFile(zoo.file(f"members_{count}.npz"), "w") as archive:
            for n in range(count):
                archive.writestr(f"{n}.npy", one)
    with zipfile.ZipFile(zoo.file("unicode.npz"), "w") as archive:
        archive.writestr("\u03b1\u03b2.npy", npy_bytes(q))
    for program, command in (("zip", ["zip", "-q"]), ("bsdtar", ["bsdtar", "--format=zip", "-cf"]),
                             ("bsdtar64", ["bsdtar", "--format=zip", "--options=zip:zip64", "-cf"]), ("7z", ["7z", "a", "-bd", "-tzip"])):
        if shutil.which(command[0]) is None:
            print(f"left out: {program} is not installed")
            continue
        folder = zoo.file("loose")
        folder.mkdir(exist_ok=True)
        np.save(folder / "q.npy", q)
        np.save(folder / "k.npy", np.zeros(5000))
        path = zoo.file(f"by_{program}.npz")
        path.unlink(missing_ok=True)
        subprocess.run(command + [str(path), "q.npy", "k.npy"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    for path in sorted(zoo.folder.glob("*.npz")):
        zoo.judge_npz(path)


def make_safetensors(zoo):
    q = '"q":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}'
    cases = {
        "plain": "{" + q + "}", "extra_key": '{"q":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":{"y":[1,2,{"z":null}]},"x":2}}',
        "two_types": '{"q":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}', "twice": "{" + q + "," + q + "}",
        "no_shape": '{"q":{"dtype":"F32","data_offsets":[0,8]}}', "null": '{"q":null}',
        "null_metadata": '{"__metadata__":null,' + q + "}", "number_in_metadata": '{"__metadata__":{"a":1},' + q + "}",
        "metadata_twice": '{"__metadata__":{"a":"1","a":"2"},' + q + "}", "two_metadata": '{"__metadata__":{},"__metadata__":{},' + q + "}",
        "nul": "{" + q + "}\0xx", "only_nul": "{" + q + "}\0\0", "blanks": "{" + q + "} \n\t ", "blank_in_front": " {" + q + "}",
        "garbage": "{" + q + "}x", "mark": "\ufeff{" + q + "}", "list": "[" + q[4:] + "]", "empty_with_data": "{}",
        "real_shape": '{"q":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}}', "negative": '{"q":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}',
        "exponent": '{"q":{"dtype":"F32","shape":[2e0],"data_offsets":[0,8]}}', "minus_zero": '{"q":{"dtype":"F32","shape":[2],"data_offsets":[-0,8]}}',
        "one_number": '{"q":{"dtype":"F64","shape":[],"data_offsets":[0,8]}}', "gap": '{"q":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}',
        "short": '{"q":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', "overlap": '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},' + q + "}",
        "nothing_in_front": '{"e":{"dtype":"F32","shape":[0,5],"data_offsets":[0,0]},' + q + "}",
        "nothing_behind": '{"e":{"dtype":"F32","shape":[0,5],"data_offsets":[8,8]},' + q + "}",
        "overflow": '{"e":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[8,8]},' + q + "}",
        "three_offsets": '{"q":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}}', "control": '{"a\1":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
        "surrogate": '{"\\ud800":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', "unknown": '{"e":{"dtype":"F99","shape":[1],"data_offsets":[8,8]},' + q + "}",
    }
    for name, header in cases.items():
        raw = header.encode()
        zoo.file(name + ".safetensors").write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(range(8)))
    bits = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "C64": 64, "BOOL": 8, "U8": 8, "I8": 8,
            "F8_E4M3": 8, "F8_E5M2": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "F64": 64, "I64": 64, "U64": 64}
    for dtype, size in bits.items():
        for count in (3, 4):
            end = 8 + count * size // 8
            raw = ('{"e":{"dtype":"%s","shape":[%d],"data_offsets":[8,%d]},%s}' % (dtype, count, end, q)).encode()
            zoo.file(f"type_{dtype}_{count}.safetensors").write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(n % 2 for n in range(end)))
    for name, length in (("no_header", 0), ("long_header", 1 << 40)):
        zoo.file(name + ".safetensors").write_bytes(struct.pack("<Q", length) + b"{}")
    for path in sorted(zoo.folder.glob("*.safetensors")):
        zoo.judge_safetensors(path)


def read_by_attune(program, paths):
    """path -> None if the file is refused, or {name: (type, extents, CRC), or None if that is refused}."""
    output = ""
    for first in range(0, len(paths), 500):
        output += subprocess.run([program, *map(str, paths[first:first + 500])], check=True, stdout=subprocess.PIPE, text=True).stdout
    found, texts, path = {}, {}, None
    for line in output.split("\n"):
        what, *rest = line.split("\t")
        if what == "file":
            path = pathlib.Path(rest[0])
            found[path], texts[path] = {}, []
        elif what == "array":
            found[path][rest[0]] = tuple(rest[1:])
        elif what == "refused":
            texts[path].append(rest[1])
            if rest[0] or path.suffix == ".npy":
                found[path][rest[0]] = None
            else:
                found[path] = None
    return found, texts


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    zoo = Zoo(folder)
    make_npy(zoo)
    make_npz(zoo)
    make_safetensors(zoo)
    found, texts = read_by_attune(program, sorted(zoo.expected))
    wrong = 0
    for path, expected in sorted(zoo.expected.items()):
        got = found[path]
        if path.name == "unknown.safetensors":
            expected = {"e": None, "q": ("float32", "(2,)", f"{zlib.crc32(bytes(range(8))):08x}")}
        if got != expected:
            wrong += 1
            print(f"{path.name}: expected {expected}, found {got} {texts[path][:2]}"[:400])
    refused = sum(e is None or None in e.values() for e in zoo.expected.values())
    print(f"{len(zoo.expected)} files, {refused} with something to refuse, {wrong} read differently")
    shutil.rmtree(folder)
    sys.exit(wrong != 0 or len(zoo.expected) < 500)


main()
