# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""attune beside the peers: the C symbols of libattune_bench.so, called with torch tensors."""
import ctypes
import math
import os

import torch


class Library:
    """A missing library has no symbols: whoever asks for one gets None."""

    def __init__(self, path, threads):
        self.threads = threads
        self.symbols = ctypes.CDLL(os.path.abspath(path)) if path else None

    def symbol(self, name):
        return getattr(self.symbols, name, None) if self.symbols else None

    def machine(self, name, threads):
        """A limit of the machine, measured now; None without the library."""
        function = self.symbol(name)
        if function is None:
            return None
        function.restype = ctypes.c_double
        return function(ctypes.c_int(threads))

    def forward(self, name, q, k, v, causal, *parameters, terms=1):
        """A function of no argument that runs symbol `name` and returns its output; None if the library has no such symbol.
        terms: heads of q and k for each head of v and of the output."""
        function = self.symbol(name)
        if function is None:
            return None
        out = torch.empty((q.shape[0], q.shape[1] // terms, *q.shape[2:]), dtype=q.dtype)
        arguments = self._call(q, k, v, out, causal, parameters)
        tensors = (q, k, v, out, parameters)  # what the pointers point to lives as long as the function

        def run(_=tensors):
            function(*arguments)
            return out

        return run

    def train(self, name, leaves, by_out, *parameters, terms=1):
        """The same for forward and all gradients: (run, gradients), the second returns those of `leaves`, a dict of tensors."""
        q, k, v = leaves["q"], leaves["k"], leaves["v"]
        run = self.forward(name, q, k, v, True, *parameters, by_out, terms=terms)
        return (run, lambda: [self._gradient(n, x) for n, x in leaves.items()]) if run else (None, None)

    def backward(self, q, k, v, out, lse, by_out, causal, products=""):
        """softmax from saved rows, gradients only: (run, gradients of q, k and v). Saving is the forward pass's, and not timed.
        products: "", "_bf16_products" or "_amx_products"."""
        function = self.symbol("attune_backward" + products)
        if function is None:
            return None, None
        (b, h, queries, d), keys = q.shape, k.shape[2]
        tensors = (q, k, v, out, lse)
        numbers = (b, h, queries, keys, d, int(causal), self.threads, 1 / math.sqrt(d))
        self.symbol("attune_save" + products)(*[_argument(x, ctypes.c_float) for x in (*tensors, *numbers)])
        argument = _argument(by_out, ctypes.c_float)

        def run(_=(*tensors, by_out)):
            function(argument)

        return run, lambda: [self._gradient(n, x) for n, x in zip("qkv", (q, k, v))]

    def cache(self, sort_k, k, v, tau, eps):
        """A sorted cache of one head of these tokens: (certified, dense, scored), the first two functions of (sort_q, q) that return a
        row, the third the keys that the last certified row scored; Nones without the library. k and q may be None."""
        fill = self.symbol("attune_cache_fill")
        if fill is None:
            return None, None, None
        decode, all_keys = self.symbol("attune_cache_decode"), self.symbol("attune_cache_dense")
        decode.restype = ctypes.c_long
        real = ctypes.c_float
        pointer = lambda x: _argument(x, real) if x is not None else ctypes.c_void_p()
        fill(*map(pointer, (sort_k, k, v)), *(ctypes.c_int(n) for n in (sort_k.numel(), k.shape[-1] if k is not None else 0, v.shape[-1])))
        out = torch.empty(v.shape[-1])
        seen = []
        bandwidth = real(tau)

        def certified(sort_q, q, _=(sort_k, k, v)):
            seen[:] = [decode(pointer(sort_q), pointer(q), pointer(out), bandwidth, ctypes.c_double(eps))]
            return out

        def dense(sort_q, q, _=(sort_k, k, v)):
            all_keys(pointer(sort_q), pointer(q), pointer(out), bandwidth, ctypes.c_int(self.threads))
            return out

        return certified, dense, lambda: seen[0]

    def _call(self, q, k, v, out, causal, parameters):
        real = ctypes.c_double if q.dtype == torch.float64 else ctypes.c_float
        (b, h, queries, d), (_, key_heads, keys, _) = q.shape, k.shape
        numbers = (b, h, key_heads, queries, keys, d, int(causal), self.threads, 1 / math.sqrt(d))
        return [_argument(x, real) for x in (q, k, v, out, *numbers, *parameters)]

    def _gradient(self, name, like):
        to = torch.empty_like(like)
        function = self.symbol("attune_gradient")
        function.restype = ctypes.c_long
        size = function(name.encode(), _argument(to, ctypes.c_float), ctypes.c_long(to.numel()))
        if size != to.numel():
            raise RuntimeError(f"attune has {size} numbers as the gradient of {name}, not {to.numel()}")
        return to


def _argument(x, real):
    if isinstance(x, torch.Tensor):
        if not x.is_contiguous():
            raise ValueError("the symbols of libattune_bench.so take dense tensors")
        return ctypes.c_void_p(x.data_ptr())
    return ctypes.c_int(x) if isinstance(x, int) else real(x)
