# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Shared libraries of operators, by ctypes: include/attune/interop/c_abi.h says what the members mean.

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
from typing import Any

from ._layout import STATUS, STRUCTS, TYPE, VERSION

WORD = ctypes.sizeof(ctypes.c_void_p)
if WORD != 8:
    raise ImportError("attune: the package needs a 64-bit Python")

#: Names of element types, by their code.
TYPES = tuple(vars(TYPE))
#: Those with 8 bits, which keys and values of decode() may have next to another type.
FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
#: Their names in C++.
CPP = {name: f"attune::{name}" for name in ("bfloat16", "float16", *FLOAT8)}
CPP.update(float32="float", float64="double")

RECEIVER = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
TENSOR_RECEIVER = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p)
ROOM = 4000
_STRUCTS = dict(line.split(" ", 1) for line in STRUCTS.replace("\n    ", " ").strip().split("\n"))
# How a structure inside of another is given: its members.
_GIVEN = {"tensor": "data extents strides type given", "sharding": "counts ends positions ranks"}
_CTYPES = {"Q": ctypes.c_void_p, "z": ctypes.c_char_p, "q": ctypes.c_int64, "d": ctypes.c_double, "i": ctypes.c_int32}


class Layout:
    """A structure of the interface. at: the offsets of its members by name, "offsets" and "offsets.data"."""

    def __init__(self, name):
        size, _, members = _STRUCTS[name].partition(": ")
        self.name, self.size, self.at, self.types = name, int(size), {}, {}
        for item in members.split(", "):
            at, array, member = item.split()
            kind = array.lstrip("0123456789")
            count = int(array[: -len(kind)] or 1)
            self.at[member] = int(at)
            if len(kind) > 1:
                inner, kind = _inside(kind)
                self.at.update({f"{member}.{x}": int(at) + offset for x, offset in inner.items()})
            self.types[member] = kind * count

    def packer(self, members):
        """The `struct` of the structure that packs these members, in the order of the header. All others become 0."""
        text, end = "=", 0
        for member in members.split():
            if self.at[member] < end:
                raise ImportError(f"attune: {self.name} has {member} in front of the member before it")
            kinds = self.types[member].replace("z", "Q")
            text += f"{self.at[member] - end}x{kinds}"
            end = self.at[member] + struct.calcsize(f"={kinds}")
        return struct.Struct(f"{text}{self.size - end}x")

    def structure(self, **types: Any) -> Any:
        """The same for ctypes. types: of some members."""
        fields = [(x, types.get(x, _CTYPES[kind])) for x, kind in self.types.items()]
        return type(self.name, (ctypes.Structure,), {"_fields_": fields})


@functools.lru_cache(maxsize=None)
def _inside(name):
    """The offsets and the types of a structure inside of another."""
    layout = Layout(name)
    return layout.at, layout.packer(_GIVEN[name]).format[1:]


CALL, GRADIENTS = Layout("call"), Layout("gradients")
TENSOR = Layout("tensor").packer(_GIVEN["tensor"])
PARAMETER = Layout("parameter").packer("tensor number how")
CONSTANT = Layout("constant").packer("name value")
MASK_NODE = Layout("mask_node").packer("x y a b kind")
ABSENT = TENSOR.unpack(bytes(TENSOR.size))

_OPERATOR, _TEXT = Layout("operator").structure(), Layout("text").structure()
_POINTERS = ctypes.POINTER(ctypes.POINTER(_OPERATOR))
_LIBRARY, _COMPANION = Layout("library").structure(operators=_POINTERS), Layout("companion").structure()

_SAVED_SIZE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, _TEXT)
_FORWARD = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, _TEXT)
_VJP = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, _TEXT)
_RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, _TEXT)
_USE_POOL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _TEXT)


class Error(ValueError):
    """An argument is wrong. The text names it, its value and what was expected."""


Error.__module__ = "attune"  # where users find it, and how tracebacks print it


class _Thread(threading.local):
    """Memory for error texts, one per thread."""

    def __init__(self):
        self.memory = ctypes.create_string_buffer(ROOM)
        self.text = _TEXT(ctypes.addressof(self.memory), ROOM)


_thread = _Thread()


def check(status):
    """Raises the exception that a status of a C function stands for."""
    if status == 0:
        return
    # The function of C++ that found it has a name that the caller of Python does not know.
    text = re.sub(r"^attune::(\w+::)*\w+: ", "attune: ", _thread.memory.value.decode(errors="replace"))
    if status == STATUS.refused:
        raise Error(text)
    if status == STATUS.out_of_memory:
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
        super().__init__(path, "library", _LIBRARY)
        self.operators = {}
        for n in range(self._at.count):
            functions = Functions(self._at.operators[n].contents, self)
            self.operators[functions.name] = functions


class Companion(_Loaded):
    """A library beside an operator's, with one function on its calls."""

    def __init__(self, path, kind):
        super().__init__(path, kind, _COMPANION)
        self._run = _RUN(self._at.run)

    def run(self, call, more):
        """Runs on a call. more: the structure of this kind of library, as bytes or memory."""
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
