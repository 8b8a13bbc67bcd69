# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Calls with torch tensors on a CUDA device: on tensor cores, compiled by nvcc when they are first used."""

import contextlib
import ctypes
import functools
import re
import sys

from . import _abi, _device_masks
from ._arrays import View, is_torch, types_of, view, wrong
from ._calls import Call, output_shape
from ._compile import Host
from ._errors import CompileError
from ._layout import CUDA_STEP as STEP
from ._layout import TYPE
from ._nvcc import Nvcc

_TYPES = ("float32", "bfloat16", "float16")  # which tensor cores multiply
_WIDTHS = (64, 128, 256)  # of the tiles
_MULTIPLIED = ("D", "Dv", "gate_width", "position_width")  # features that a tile must hold
_PACK = _abi.Layout("cuda").packer("stream workspace bytes saved saved_count gradients needed step").pack
_NO_GRADIENT = re.compile(r"the gradient by (\S+) has a tensor; expected none: (.*?)(?:[;:] use thrust_on)?$")
_INSTEAD = "call it under torch.no_grad(), or with tensors on the CPU"


class Device:
    """A CUDA device of torch: where tensors must be, how its companions are compiled, on which stream they run."""

    kind = "cuda"

    def __init__(self, place):
        self._cuda, self.place = sys.modules["torch"].cuda, place
        self.tool = Nvcc(self._cuda.get_device_capability(place))

    def holds(self, x):
        """Whether a tensor lies there."""
        return x.device == self.place

    def current(self):
        """A context in which calls go to the device."""
        return self._cuda.device(self.place)

    def stream(self):
        """The address of the current stream."""
        return self._cuda.current_stream(self.place).cuda_stream

    def captures(self):
        """Whether the current stream is captured into a graph."""
        return self._cuda.is_current_stream_capturing()


class Warps(Device):
    """Emulated warps in the place of a device, with tensors on the CPU: for tests."""

    kind, tool = "warps", Host

    def __init__(self):
        self.place = sys.modules["torch"].device("cpu")

    def current(self):
        """As Device.current()."""
        return contextlib.nullcontext()

    def stream(self):
        """As Device.stream()."""
        return 0

    def captures(self):
        """As Device.captures()."""
        return False


warps = None  # what takes the place of the CPU


@contextlib.contextmanager
def on_emulated_warps():
    """Calls of attune.torch with tensors on the CPU run as those on a device do, on emulated warps: for tests. Slow. It
    counts for all threads."""
    global warps
    before, warps = warps, Warps()
    try:
        yield
    finally:
        warps = before


_device = functools.lru_cache(maxsize=None)(Device)


def device_of(x):
    """The device on which calls of this tensor run, or None: the CPU."""
    return _device(x.device) if x.is_cuda else warps


class DeviceCall(Call):
    """A call whose arrays lie on a device. Results are there when the device's current stream is."""

    __slots__ = ("device", "form", "_found")

    def __init__(self, operator, fields, named, mask, offset, layout, device):
        self.device, self.form, self._found = device, _device_masks.BAND, None
        super().__init__(operator, fields, named, mask, offset, 1, layout)
        if mask is not None:
            _device_masks.packed(mask, device.place).require(self.rows[2], self.extent_of("v"))

    def _view(self, name, x):
        if type(x) is View:
            return x
        if not is_torch(x) or not self.device.holds(x):
            got = f"the device {x.device}" if is_torch(x) else f"the type {type(x).__name__}"
            raise wrong(name, got, f"a tensor of torch on {self.device.place}")
        return view(name, x, x.device.type)

    def _like(self, x, shape, code=None):
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=x.dtype if code is None else types_of(torch)[code], device=self.device.place)

    def _types(self, d):
        return _TYPES

    def _offsets(self, offset):
        torch = sys.modules["torch"]
        if not is_torch(offset) or offset.dtype.is_floating_point or offset.dtype.is_complex or offset.dtype == torch.bool:
            got = offset.dtype if is_torch(offset) else type(offset).__name__
            raise wrong("offset", f"the type {got}", f"integers, as a tensor on {self.device.place}")
        return offset.to(torch.int64).contiguous()

    def _nodes(self, mask, offset):
        found = _device_masks.packed(mask, self.device.place)
        mask._require(found.needs_offset, offset)
        self.form = found.form
        return found.memory, found.count

    # --- companions -------------------------------------------------------------------------------------------------

    def _arguments(self, kind):
        """What Companions.run() and ready() take for this call. kind: "", or "_vjp"."""
        d = self.operator._description
        held = [at[1][3] for at, features in zip(self.views, d.features) if at and features in _MULTIPLIED]
        width = next((w for w in _WIDTHS if w >= max(held)), _WIDTHS[-1])
        return self.device.kind + kind, self.code, _abi.CPP[_abi.TYPES[self.code]], str(width)

    def _companion(self, kind, gradients=0):
        """The function of a companion, whose kernels are loaded."""
        device, companions = self.device, self.operator._companions
        arguments, how = self._arguments(kind), {"tool": device.tool, "mask": self.form}
        if device.captures() and not companions.is_loaded(*arguments, **how):
            raise RuntimeError(
                f"attune: {self.operator.name} is called for the first time in the capture of a CUDA graph: make the same "
                "call once before, with its backward pass if the graph has one"
            )
        run = companions.run(*arguments, **how)
        if (run, device.place) not in companions.prepared:
            run(self.address, _PACK(device.stream(), 0, 0, 0, 0, gradients, 0, STEP.prepare))
            companions.prepared.add((run, device.place))
        return run

    def _measure(self, run, gradients=0):
        """Bytes of workspace, and saved numbers."""
        needed = (ctypes.c_int64 * 2)()
        run(self.address, _PACK(self.device.stream(), 0, 0, 0, 0, gradients, ctypes.addressof(needed), STEP.measure))
        return needed

    def _run(self, run, bytes, saved, gradients=0):
        # Freed when this returns: torch gives it to nobody else before the stream is done with it.
        workspace = self._like(self.model, (bytes,), TYPE.bytes)
        at, count = (0, 0) if saved is None else (saved.data_ptr(), saved.shape[0])
        run(self.address, _PACK(self.device.stream(), workspace.data_ptr(), bytes, at, count, gradients, 0, STEP.run))

    # --- passes -----------------------------------------------------------------------------------------------------

    def _forward(self):
        """The companion of the forward pass, and what the call needs. Outputs are blank."""
        if self._found is None:
            run = self._companion("")
            self._found = run, self._measure(run)
        return self._found

    def saved_memory(self):
        """As Call.saved_memory()."""
        count = 0
        if 0 not in self.rows[:3]:
            with self.device.current():
                count = self._forward()[1][1]
        return self._like(self.model, (count,), TYPE.float32)

    def forward(self, saved=None):
        """As Call.forward()."""
        if 0 in self.rows[:3]:
            return
        with self.device.current():
            run, needed = self._forward()
            self._run(run, needed[0], saved)

    def vjp(self, saved, cotangents, wanted):
        """As Call.vjp(). saved: never None."""
        memory, results, _ = self.gradient_block(cotangents, wanted)
        if 0 in self.rows[:3]:
            for x in results.values():
                x.zero_()
            return results
        gradients = ctypes.addressof(memory)
        with self.device.current(), self._in_words():
            run = self._companion("_vjp", gradients)
            self._run(run, self._measure(run, gradients)[0], saved, gradients)
        return results

    def require_gradients(self, wanted):
        """As Call.require_gradients(). Both passes are compiled side by side, and the kernels of both are loaded."""
        if 0 in self.rows[:3]:
            return
        companions, known = self.operator._companions, (*self._arguments("_vjp"), self.form, self.device.place, tuple(wanted))
        if known in companions.prepared:
            return
        out = self._like(self.model, output_shape("out", self.rows, self.layout))
        memory, kept, _ = self.gradient_block((out, None, None), wanted)
        with self.device.current(), self._in_words():
            if not self.device.captures():
                kinds = [self._arguments(kind) for kind in ("_vjp", "")]
                companions.compile_together(kinds, tool=self.device.tool, mask=self.form)
            run = self._companion("_vjp", ctypes.addressof(memory))
            self._measure(run, ctypes.addressof(memory))
        del kept  # until here, `memory` has their addresses
        companions.prepared.add(known)

    @contextlib.contextmanager
    def _in_words(self):
        """What the executor says about gradients, in words for callers in Python."""
        try:
            yield
        except _abi.Error as e:
            found = _NO_GRADIENT.search(str(e))
            if not found:
                raise
            path, why = found.groups()
            got = f"a tensor on {self.device.place} that requires gradients"
            raise wrong(path, got, f"a tensor after detach(), or tensors on the CPU: {why}") from None
        except CompileError as e:
            text = re.sub(r"[:;,]? use thrust_on( for float)?", "", str(e))
            name, place = self.operator.name, self.device.place
            raise CompileError(f"{text}\nattune: {name} on {place} has no gradients: {_INSTEAD}", e.part) from None
