# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Shared libraries of operators, by ctypes: include/attune/interop/c_abi.h says what the numbers mean.

A call is one block of memory, laid out as the C structures. Writing it with `struct` takes less time than ctypes'
structures do.
"""

import ctypes
import functools
import json
import os
import re
import struct
import threading

VERSION = 1
POINTER = ctypes.sizeof(ctypes.c_void_p)
if POINTER != 8:
    raise ImportError("attune: the package needs a 64-bit Python")

#: Element types, by their code.
TYPES = ("float32", "float64", "bfloat16", "float16", "int64", "bytes", "int32", "float8_e4m3fn", "float8_e5m2")
CODES = {name: code for code, name in enumerate(TYPES)}
#: Those with 8 bits, which keys and values of decode() may have next to another type.
FLOAT8 = TYPES[7:]
SIZES = (4, 8, 2, 2, 8, 1, 4, 1, 1)

# attune_tensor: data, extents, strides, type, given
TENSOR = struct.Struct("=Q8q2i")
# attune_parameter: a tensor, number, how
PARAMETER = struct.Struct("=Q8q2idq")
# attune_constant: name, value
CONSTANT = struct.Struct("=Qd")
# attune_mask_node: two tensors, a, b, kind
MASK_NODE = struct.Struct("=Q8q2iQ8q2i3q")
# attune_call: five pointers, the tensor `offsets`, four outputs, three numbers, four short ones
CALL = struct.Struct("=5Q" + "Q8q2i" * 5 + "3q4i")
# attune_gradients: three cotangents, three pointers
GRADIENTS = struct.Struct("=" + "Q8q2i" * 3 + "3Q")

# attune_statistics: eleven tensors, a number
STATISTICS = struct.Struct("=" + "Q8q2i" * 11 + "d")
# attune_decode: page numbers, scales of keys and values
DECODE = struct.Struct("=" + "Q8q2i" * 3)
# attune_ranks: four short numbers, a text, two shardings (two pointers, two numbers), three pointers
RANKS = struct.Struct("=4iQ" + "2Q2q" * 2 + "3Q")
# attune_reference: eight tensors
REFERENCE = struct.Struct("=" + "Q8q2i" * 8)
# attune_cuda: a stream, memory, its size, where to write how much is needed
CUDA = struct.Struct("=2QqQ")
# attune_verdict: three outputs, three cotangents, five pointers, a count, six short numbers, a function
VERDICT = struct.Struct("=" + "Q8q2i" * 6 + "5Qq6iQ")
RECEIVER = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
# attune_probes: twelve numbers, a function
PROBES = struct.Struct("=12qQ")
TENSOR_RECEIVER = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p)

ABSENT = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
ROOM = 4000


class _Operator(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("description", ctypes.c_char_p),
        ("saved_size", ctypes.c_void_p),
        ("forward", ctypes.c_void_p),
        ("vjp", ctypes.c_void_p),
    ]


class _Library(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_int32),
        ("count", ctypes.c_int32),
        ("operators", ctypes.POINTER(ctypes.POINTER(_Operator))),
        ("built_for", ctypes.c_char_p),
        ("own_pool", ctypes.c_void_p),
        ("use_pool", ctypes.c_void_p),
    ]


class _Companion(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("built_for", ctypes.c_char_p),
        ("own_pool", ctypes.c_void_p),
        ("use_pool", ctypes.c_void_p),
        ("run", ctypes.c_void_p),
    ]


class _Text(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("room", ctypes.c_int64)]


_SAVED_SIZE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, _Text)
_FORWARD = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, _Text)
_VJP = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, _Text)
_RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, _Text)
_USE_POOL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _Text)


class Error(ValueError):
    """An argument is wrong. The text names it, its value and what was expected."""


class _Thread(threading.local):
    """Memory for error texts, one per thread."""

    def __init__(self):
        self.memory = ctypes.create_string_buffer(ROOM)
        self.text = _Text(ctypes.addressof(self.memory), ROOM)


_thread = _Thread()


def check(status):
    """Raises the exception that a status of a C function stands for."""
    if status == 0:
        return
    # The function of C++ that found it has a name that the caller of Python does not know.
    text = re.sub(r"^attune::(\w+::)*\w+: ", "attune: ", _thread.memory.value.decode(errors="replace"))
    if status == 1:
        raise Error(text)
    if status == 2:
        raise MemoryError(text)
    raise RuntimeError(text)


class Functions:
    """The C functions of one operator. ctypes releases the interpreter's lock while they run."""

    def __init__(self, at, library):
        self.library = library  # keeps it loaded
        self.name = at.name.decode()
        self.description = json.loads(at.description)
        self._saved_size = _SAVED_SIZE(at.saved_size)
        self._forward = _FORWARD(at.forward)
        self._vjp = _VJP(at.vjp)

    def saved_size(self, call):
        """How many numbers `forward` saves of a call, given by its address."""
        count = ctypes.c_int64()
        check(self._saved_size(call, ctypes.addressof(count), _thread.text))
        return count.value

    def forward(self, call, saved=None, count=0):
        """Writes the outputs of a call, and the saved numbers if `saved` is an address."""
        status = self._forward(call, saved, count, _thread.text)
        if status:
            check(status)

    def forward_of_this_thread(self, call):
        """A function without arguments: forward() of this call, outputs alone, for this thread. It returns the status."""
        return functools.partial(self._forward, call, None, 0, _thread.text)

    def vjp(self, call, saved, count, gradients):
        """Writes the gradients of a call."""
        check(self._vjp(call, saved, count, gradients, _thread.text))


class _Loaded:
    """A loaded library: its file, what it was built for, its threads."""

    def __init__(self, path, kind, structure):
        self.path = os.fspath(path)
        self._handle = ctypes.CDLL(self.path, mode=os.RTLD_LOCAL | os.RTLD_NOW)
        try:
            entry = getattr(self._handle, f"attune_{kind}_{VERSION}")
        except AttributeError:
            raise ImportError(
                f"attune: {self.path} is no library of attune with interface {VERSION}: build it with the headers "
                "of this package"
            ) from None
        entry.restype = ctypes.POINTER(structure)
        self._at = entry().contents
        self.built_for = json.loads(self._at.built_for)
        _share_threads(self)

    @property
    def own_pool(self):
        """The address of the functions of this library's threads."""
        return self._at.own_pool

    def use_pool(self, pool):
        """Runs later calls on the threads of another library."""
        check(_USE_POOL(self._at.use_pool)(pool, _thread.text))


class Library(_Loaded):
    """A library of operators: `operators` by name."""

    def __init__(self, path):
        super().__init__(path, "library", _Library)
        self.operators = {}
        for n in range(self._at.count):
            functions = Functions(self._at.operators[n].contents, self)
            self.operators[functions.name] = functions


class Companion(_Loaded):
    """A library beside an operator's, with one function on its calls."""

    def __init__(self, path, kind):
        super().__init__(path, kind, _Companion)
        self._run = _RUN(self._at.run)

    def run(self, call, more):
        """Runs on a call. more: the address of the structure of this kind of library."""
        check(self._run(call, more, _thread.text))


_first = None
_loading = threading.Lock()


def _share_threads(library):
    """All libraries of a process run on the threads of the first: two pools would use twice the processors."""
    global _first
    with _loading:
        if _first is None:
            _first = library
        else:
            library.use_pool(_first.own_pool)
