# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Calls with torch tensors on a CUDA device: the forward pass on tensor cores, compiled by nvcc when it is first used."""

import ctypes
import sys

from . import _abi
from ._arrays import View, is_torch, types_of, view, wrong
from ._calls import Call
from ._nvcc import Nvcc

_TYPES = ("float32", "bfloat16", "float16")  # which tensor cores multiply
CUDA = _abi.Layout("cuda").packer("stream workspace bytes needed")


class Device:
    """A CUDA device of torch: where tensors must be, how its companions are compiled, on which stream they run."""

    kind = "cuda"

    def __init__(self, device):
        self._cuda, self.place = sys.modules["torch"].cuda, device
        self.tool = Nvcc(self._cuda.get_device_capability(device))

    def holds(self, x):
        """Whether a tensor lies there."""
        return x.device == self.place

    def current(self):
        """A context in which calls go to the device."""
        return self._cuda.device(self.place)

    def stream(self):
        """The address of the current stream."""
        return self._cuda.current_stream(self.place).cuda_stream


class DeviceCall(Call):
    """A call whose arrays lie on a device."""

    __slots__ = ("device",)

    def __init__(self, operator, fields, named, mask, offset, layout, device):
        self.device = device
        super().__init__(operator, fields, named, mask, offset, 1, layout)

    def _view(self, name, x):
        if type(x) is View:
            return x
        if not is_torch(x) or not self.device.holds(x):
            got = f"the device {x.device}" if is_torch(x) else f"the type {type(x).__name__}"
            raise wrong(name, got, f"a tensor of torch on {self.device.place}")
        return view(name, x, x.device.type)

    def _empty(self, shape, code=None):
        torch = sys.modules["torch"]
        kind = self.model.dtype if code is None else types_of(torch)[code]
        return torch.empty(shape, dtype=kind, device=self.model.device)

    def _types(self, d):
        return _TYPES

    def _offsets(self, offset):
        torch = sys.modules["torch"]
        if not is_torch(offset) or offset.dtype.is_floating_point or offset.dtype.is_complex or offset.dtype == torch.bool:
            got = offset.dtype if is_torch(offset) else type(offset).__name__
            raise wrong("offset", f"the type {got}", f"integers, as a tensor on {self.device.place}")
        return offset.to(torch.int64).contiguous()


def forward(operator, fields, named, mask, offset, layout, returns, device):
    """The outputs of a call in a list. They are there when the device's current stream is."""
    torch = sys.modules["torch"]
    call = DeviceCall(operator, fields, named, mask, offset, layout, device)
    outputs = call.blank_outputs(returns)
    if 0 in call.rows[:3]:
        return outputs
    run = operator._companions.run(device.kind, call.code, _abi.CPP[_abi.TYPES[call.code]], tool=device.tool)
    needed = ctypes.c_int64()
    with device.current():
        stream = device.stream()
        run(call.address, CUDA.pack(stream, 0, 0, ctypes.addressof(needed)))
        # Freed when this returns: torch gives it to nobody else before the stream is done with it.
        workspace = torch.empty(needed.value, dtype=torch.uint8, device=call.model.device)
        run(call.address, CUDA.pack(stream, workspace.data_ptr(), needed.value, 0))
    return outputs
