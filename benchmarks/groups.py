# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The cases: a function for each group of peers.py. The first implementation of a case is what the others are compared with."""
import importlib
import math

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import formulas
from interleave import Case, Implementation
from variants import SOFTMAX, SPARSE, VARIANTS, sdpa

REDUCED_TOLERANCE = {torch.bfloat16: 3e-2, torch.float16: 5e-3}


class Bench:
    """What every group needs. options: threads, longest, compile; rounds: interleave.Rounds; library: library.Library."""

    def __init__(self, options, library, rounds):
        self.options, self.library, self.rounds = options, library, rounds
        self.compiled = {}

    def lengths(self, shapes, at=2):
        """The shapes with their length (item `at`) cut to --longest, each once."""
        cut = [(*s[:at], min(s[at], self.options.longest), *s[at + 1:]) for s in shapes]
        return list(dict.fromkeys(cut))

    def chosen(self, variants):
        return [v for v in variants if not self.options.variants or self.options.variants.search(v.name)]

    def compile(self, function):
        """function compiled by torch.compile; None where nothing is to be compiled."""
        if not self.options.compile:
            return None
        if function not in self.compiled:
            self.compiled[function] = torch.compile(function, dynamic=False)
        return self.compiled[function]

    def flex(self, q, k, v, causal, **more):
        """Compiled FlexAttention: a list of one implementation, or of none."""
        compiled = self.compile(flex_attention)
        if not compiled:
            return []
        length = q.shape[2]
        if causal:
            more["block_mask"] = create_block_mask(lambda b, h, i, j: i >= j, None, None, length, length, device="cpu")
        return [Implementation("FlexAttention", lambda: compiled(q, k, v, **more))]

    def package(self, name):
        """A package that may be missing."""
        try:
            return importlib.import_module(name)
        except ImportError as problem:
            self.rounds.emit(name=name, missing=str(problem))
            return None


def numbers(seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(*shape, generator=generator).to(dtype)


def qkv(b, h, key_heads, queries, keys, d, dtype=torch.float32):
    random = numbers(dtype=dtype)
    return random(b, h, queries, d), random(b, key_heads, keys, d), random(b, key_heads, keys, d)


def text(b, h, length, d, causal):
    return f"B{b} H{h} L{length} D{d} {'causal' if causal else 'full'}"


def matrix_products(count, b, h, length, d, causal):
    """Floating-point operations of that many matrix products over the visible pairs."""
    return count * 2.0 * b * h * length * length * d * (0.5 if causal else 1)


def causal_mask(length):
    return torch.ones(length, length, dtype=torch.bool).triu(1)


def around(length, causal):
    """What formulas need beside tensors."""
    visible = torch.arange(1.0, length + 1)[:, None] if causal else torch.full((1, 1), float(length))
    return {"hidden": causal_mask(length) if causal else None, "visible": visible}


def sdpa_math(q, k, v, causal):
    with sdpa_kernel(SDPBackend.MATH):
        return sdpa(q, k, v, causal)


# ---- softmax ---------------------------------------------------------------------------------------------------------------------


def softmax_cases(bench, group, shapes, peers):
    for b, h, length, d, causal in bench.lengths(shapes):
        q, k, v = qkv(b, h, h, length, length, d)
        with torch.no_grad():
            bench.rounds.run(Case(group, "softmax", text(b, h, length, d, causal), matrix_products(2, b, h, length, d, causal)),
                             [*peers(q, k, v, causal), Implementation("attune", bench.library.forward("attune_softmax", q, k, v, causal))])


def all_peers(bench):
    runtime = onnx_runtime(bench)

    def peers(q, k, v, causal):
        some = [Implementation("SDPA", lambda: sdpa(q, k, v, causal)),
                Implementation("SDPA math", lambda: sdpa_math(q, k, v, causal)),
                *bench.flex(q, k, v, causal)]
        if runtime:
            some.append(Implementation("ONNX Runtime", runtime(q, k, v, causal)))
        return some

    return peers


def prefill(bench):
    shapes = [(1, 8, length, 64, c) for length in (256, 512, 1024, 2048, 4096) for c in (False, True)]
    softmax_cases(bench, "prefill", shapes + [(1, 8, 2048, 128, c) for c in (False, True)], all_peers(bench))


def small(bench):
    softmax_cases(bench, "small", [(16, 12, 128, 32, False), (1, 12, 128, 32, False), (1, 8, 512, 64, True)], all_peers(bench))


def long(bench):
    softmax_cases(bench, "long", [(1, 1, length, 64, True) for length in (4096, 16384, 32768, 65536)],
                  lambda q, k, v, c: [Implementation("SDPA", lambda: sdpa(q, k, v, c))])


def fp64(bench):
    for b, h, length, d, causal in bench.lengths([(1, 8, 1024, 64, False), (1, 8, 1024, 64, True)]):
        single, double = (qkv(b, h, h, length, length, d, t) for t in (torch.float32, torch.float64))
        case = Case("fp64", "softmax", text(b, h, length, d, causal), matrix_products(2, b, h, length, d, causal), "f64", tolerance=1e-12)
        with torch.no_grad():
            bench.rounds.run(case, [
                Implementation("SDPA", lambda: sdpa(*double, causal)),
                Implementation("eager", lambda: formulas.softmax(*double, **around(length, causal))),
                Implementation("attune", bench.library.forward("attune_softmax_f64", *double, causal)),
                Implementation("attune f32", bench.library.forward("attune_softmax", *single, causal), same=False)])


def storage(bench):
    """bf16 and fp16 tensors, arithmetic in fp32."""
    for b, h, length, d, causal in bench.lengths([(1, 8, 1024, 64, False), (1, 8, 2048, 64, True), (1, 8, 2048, 128, False)]):
        single = qkv(b, h, h, length, length, d)
        for name, dtype in (("bf16", torch.bfloat16), ("f16", torch.float16)):
            q, k, v = (x.to(dtype) for x in single)
            some = [Implementation("SDPA f32", lambda: sdpa(*single, causal)),
                    Implementation("SDPA", lambda: sdpa(q, k, v, causal)),
                    *bench.flex(q, k, v, causal),
                    Implementation("attune", bench.library.forward("attune_softmax_" + name, q, k, v, causal)),
                    Implementation("attune f32", bench.library.forward("attune_softmax", *single, causal), same=False)]
            with torch.no_grad():
                bench.rounds.run(Case("storage", "softmax", text(b, h, length, d, causal), matrix_products(2, b, h, length, d, causal),
                                      name, tolerance=REDUCED_TOLERANCE[dtype]), some)


def products(bench):
    """Products of bf16, sums in fp32. OpenVINO reads fp32 tensors and computes in the precision of its name."""
    make = openvino(bench)
    for b, h, length, d, causal in bench.lengths([(1, 8, n, d, c) for n, d in ((1024, 64), (2048, 64), (1024, 128), (2048, 128))
                                                  for c in (False, True)]):
        single = qkv(b, h, h, length, length, d)
        q, k, v = (x.to(torch.bfloat16) for x in single)
        some = [Implementation("attune f32", bench.library.forward("attune_softmax", *single, causal)),
                Implementation("SDPA", lambda: sdpa(q, k, v, causal)),
                Implementation("attune bf16", bench.library.forward("attune_softmax_bf16", q, k, v, causal)),
                Implementation("attune", bench.library.forward("attune_softmax_bf16_products", q, k, v, causal)),
                Implementation("attune, f32 tensors", bench.library.forward("attune_softmax_f32_bf16_products", *single, causal)),
                Implementation("attune AMX", bench.library.forward("attune_softmax_amx_products", q, k, v, causal)),
                Implementation("attune AMX, f32 tensors", bench.library.forward("attune_softmax_f32_amx_products", *single, causal))]
        if make:
            some += [Implementation("OpenVINO " + name, make(*single, causal, name)) for name in ("f32", "bf16")]
        with torch.no_grad():
            bench.rounds.run(Case("products", "softmax", text(b, h, length, d, causal), matrix_products(2, b, h, length, d, causal),
                                  "bf16", tolerance=REDUCED_TOLERANCE[torch.bfloat16]), some)
    for variant in bench.chosen([v for v in VARIANTS if v.name in ("principled", "alibi", "softcap", "sink")]):
        b, h, length, d = 1, 8, min(1024, bench.options.longest), 64
        leaves, constants = inputs_of(variant, b, h, length, d)
        q, k, v, *parameters = leaves.values()
        forward = lambda symbol: bench.library.forward(symbol, q, k, v, True, *parameters, *constants.values())
        with torch.no_grad():
            bench.rounds.run(Case("products", variant.name, text(b, h, length, d, True), matrix_products(2, b, h, length, d, True),
                                  "bf16", tolerance=REDUCED_TOLERANCE[torch.bfloat16]),
                             [Implementation("attune f32", forward(variant.symbol)),
                              Implementation("attune", forward(variant.symbol + "_bf16_products")),
                              Implementation("attune AMX", forward(variant.symbol + "_amx_products"))])


def openvino(bench):
    """A function that makes OpenVINO's attention in a precision and returns a function that runs it; None without the package."""
    package = bench.package("openvino")
    if not package:
        return None
    operations = importlib.import_module("openvino.opset13")
    core = package.Core()

    def make(q, k, v, causal, precision):
        parameters = [operations.parameter(list(x.shape), package.Type.f32, name) for name, x in zip("qkv", (q, k, v))]
        node = operations.scaled_dot_product_attention(*parameters, causal=causal)
        compiled = core.compile_model(package.Model([node], parameters), "CPU", {
            "INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": bench.options.threads, "PERFORMANCE_HINT": "LATENCY"})
        if compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name() != precision:
            return None  # this machine has no such arithmetic
        request = compiled.create_infer_request()
        for n, x in enumerate((q, k, v)):
            request.set_input_tensor(n, package.Tensor(x.contiguous().numpy(), shared_memory=True))

        def run():
            request.infer()
            return torch.from_numpy(request.get_output_tensor().data)

        return run

    return make


def onnx_runtime(bench):
    """A function that makes a MultiHeadAttention node and returns a function that runs it; None where packages are missing."""
    onnx, runtime = bench.package("onnx"), bench.package("onnxruntime")
    if not onnx or not runtime:
        return None
    helper = onnx.helper

    def make(q, k, v, causal):
        b, h, length, d = q.shape
        tensor = lambda name: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [b, length, h * d])
        node = helper.make_node("MultiHeadAttention", ["q", "k", "v"], ["out"], domain="com.microsoft", num_heads=h,
                                unidirectional=int(causal))
        graph = helper.make_graph([node], "attention", [tensor("q"), tensor("k"), tensor("v")], [tensor("out")])
        domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = bench.options.threads, 1
        session = runtime.InferenceSession(helper.make_model(graph, opset_imports=domains, ir_version=8).SerializeToString(),
                                           options, providers=["CPUExecutionProvider"])
        rows = lambda x: runtime.OrtValue.ortvalue_from_numpy(x.transpose(1, 2).reshape(b, length, h * d).contiguous().numpy())
        inputs = {"q": rows(q), "k": rows(k), "v": rows(v)}

        def run():
            out = session.run_with_ort_values(["out"], inputs)[0].numpy()
            return torch.from_numpy(out).reshape(b, length, h, d).transpose(1, 2)

        return run

    return make


# ---- variants --------------------------------------------------------------------------------------------------------------------


def inputs_of(variant, b, h, length, d):
    """(q, k, v and parameters, numbers): what has a gradient, and what has none."""
    q, k, v = qkv(b, variant.terms * h, variant.terms * h, length, length, d)
    v = v[:, :h].contiguous()
    return {"q": q, "k": k, "v": v, **variant.parameters(numbers(1), b, h, length, d)}, variant.constants


def forward_of(bench, variant, leaves, constants, causal):
    q, k, v, *parameters = leaves.values()
    return bench.library.forward(variant.symbol, q, k, v, causal, *parameters, *constants.values(), terms=variant.terms)


def variant_case(bench, group, variant, shape, more=()):
    """One variant forward: eager, compiled, the tricks there are, attune; attune's softmax as a baseline."""
    b, h, length, d, causal = shape
    leaves, constants = inputs_of(variant, b, h, length, d)
    x = {**leaves, **constants, **variant.given(b, h, length, constants), **around(length, causal)}
    formula, same = dict(x), variant.by_users is None
    by_users = variant.by_users or variant.formula
    compiled = bench.compile(by_users)
    some = [] if same else [Implementation("eager, random numbers given", lambda: variant.formula(**formula))]
    some += [Implementation("eager", lambda: by_users(**formula), same=same), *more]
    if compiled:
        some.append(Implementation("torch.compile", lambda: compiled(**formula), same=same))
    if variant.score_mod:
        some += bench.flex(x["q"], x["k"], x["v"], causal, score_mod=variant.score_mod(x))
    if variant.spelled:
        some.append(Implementation("SDPA trick", lambda: variant.spelled(x, causal), same=same))
    q, k = (x[name][:, :h].contiguous() for name in "qk")
    some += [Implementation("attune", forward_of(bench, variant, leaves, constants, causal)),
             Implementation("attune softmax", bench.library.forward("attune_softmax", q, k, x["v"], causal), same=False)]
    products = matrix_products(variant.terms * variant.products, *shape)
    with torch.no_grad():
        bench.rounds.run(Case(group, variant.name, text(*shape), products, tolerance=variant.tolerance), some)


def custom(bench):
    for variant in bench.chosen(VARIANTS):
        for shape in bench.lengths([(1, 8, 1024, 64, False), (1, 8, 1024, 64, True), (1, 8, 2048, 64, True)]):
            variant_case(bench, "custom", variant, shape)


def entmax(bench):
    package = bench.package("entmax")
    for variant in bench.chosen(SPARSE):
        for shape in bench.lengths([(1, 8, 512, 64, False), (1, 8, 1024, 64, False), (1, 8, 1024, 64, True)]):
            more = []
            if package:
                q, k, v = qkv(*shape[:2], shape[1], shape[2], shape[2], shape[3])
                hidden, weights = around(shape[2], shape[4])["hidden"], getattr(package, variant.name)
                more = [Implementation("entmax package",
                                       lambda: weights(formulas.hide(formulas.scores(q, k), hidden, -1e9), dim=-1) @ v)]
            variant_case(bench, "entmax", variant, shape, more)
    shape = bench.lengths([(1, 8, 1024, 64, True)])[0]
    q, k, v = qkv(*shape[:2], shape[1], shape[2], shape[2], shape[3])
    some = around(shape[2], shape[4])
    others = [
        ("entmax13", lambda: formulas.entmax_bisected(q, k, v, **some, alpha=1.3), 1e-3),
        ("self_adjusted", lambda: formulas.self_adjusted(q, k, v, **some), 1e-4),
        # A key within rounding of the last one kept may change places with it.
        ("top_k", lambda: formulas.top_k(q, k, v, **some, kept=16), 1e-1),
    ]
    for name, eager, tolerance in others:
        with torch.no_grad():
            bench.rounds.run(Case("entmax", name, text(*shape), matrix_products(2, *shape), tolerance=tolerance), [
                Implementation("eager", eager),
                Implementation("attune", bench.library.forward("attune_" + name, q, k, v, True)),
                Implementation("attune softmax", bench.library.forward("attune_softmax", q, k, v, True), same=False)])


# ---- decode ----------------------------------------------------------------------------------------------------------------------


def decode(bench):
    """One query per head against a cache, heads in groups; K and V are read once, which bounds it."""
    shapes = [(1, 32, 4096, 64, 8), (1, 32, 32768, 64, 8), (1, 32, 4096, 128, 8), (1, 32, 32768, 128, 8), (1, 32, 4096, 128, 32)]
    for b, h, keys, d, key_heads in bench.lengths(shapes):
        single = qkv(b, h, key_heads, 1, keys, d)
        shape = f"B{b} H{h} Hk{key_heads} Lq1 Lk{keys} D{d}"
        for dtype_name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
            q, k, v = (x.to(dtype) for x in single)
            group = h // key_heads
            packed = lambda q=q: q.view(b, key_heads, group, d)
            first = [] if dtype == torch.float32 else [Implementation("SDPA f32", lambda: sdpa(*single, False, enable_gqa=True))]
            some = [*first,
                    Implementation("SDPA enable_gqa", lambda: sdpa(q, k, v, False, enable_gqa=True)),
                    Implementation("SDPA packed group", lambda: sdpa(packed(), k, v, False).reshape(b, h, 1, d)),
                    Implementation("matmul", lambda: (torch.softmax(formulas.scores(packed(), k), -1) @ v).view(b, h, 1, d))]
            some += bench.flex(q, k, v, False, enable_gqa=True)
            symbol = "attune_softmax" + ("" if dtype == torch.float32 else "_bf16")
            some.append(Implementation("attune", bench.library.forward(symbol, q, k, v, False)))
            if dtype != torch.float32:
                some.append(Implementation("attune bf16 products", bench.library.forward("attune_softmax_bf16_products", q, k, v, False)))
                some.append(Implementation("attune f32", bench.library.forward("attune_softmax", *single, False), same=False))
            with torch.no_grad():
                bench.rounds.run(Case("decode", "softmax", shape, 4.0 * b * h * keys * d, dtype_name,
                                      bytes=2.0 * b * key_heads * keys * d * q.element_size(),
                                      tolerance=REDUCED_TOLERANCE.get(dtype, 1e-4)), some)


def cache(bench):
    """One query against a sorted cache whose certified window holds some 1,000 keys, and against all keys. Queries change from call to
    call: a window that was just read would lie in the processor's cache."""
    width, eps, window, queries = 64, 1e-6, 1000, 64
    for keys in dict.fromkeys(min(n, bench.options.longest) for n in (10_000, 100_000, 1_000_000)):
        tau = (window / (2 * keys)) ** 2 / -math.log(eps)
        generator = torch.Generator().manual_seed(0)
        uniform = lambda *shape: torch.rand(*shape, generator=generator)
        sort_k, v, sort_q = uniform(keys), uniform(keys, width) * 2 - 1, uniform(queries, 1)
        for name in ("scalar", "hybrid"):
            hybrid = name == "hybrid"
            k, q = (uniform(keys, width) * 2 - 1, uniform(queries, width) * 2 - 1) if hybrid else (None, None)
            certified, dense, scored = bench.library.cache(sort_k, k, v, tau, eps)
            eager = formulas.hybrid_row if hybrid else formulas.scalar_row
            turn = [0]

            def one(function, at=None):
                """The next row, or row `at`."""
                turn[0] = (turn[0] + 1) % queries
                n = turn[0] if at is None else at
                return function(sort_q[n], q[n] if hybrid else None)

            def implementation(label, function):
                return Implementation(label, function and (lambda: one(function)), function and (lambda: one(function, 0).clone()))

            torch_row = lambda s, x: eager(s, x, sort_k, k, v, tau)
            compiled = bench.compile(eager)
            some = [implementation("eager", torch_row)]
            if compiled:
                some.append(implementation("compile", lambda s, x: compiled(s, x, sort_k, k, v, tau)))
            some += [implementation("attune dense", dense), implementation("attune", certified)]
            with torch.no_grad():
                bench.rounds.run(Case("cache", name, f"Lk{keys} D{width}", 2.0 * keys * width * (2 if hybrid else 1),
                                      bytes=4.0 * keys * (width * (2 if hybrid else 1) + 1)), some)
            if scored:
                certified(sort_q[0], q[0] if hybrid else None)
                bench.rounds.emit(group="cache", case=name, shape=f"Lk{keys} D{width}", tau=tau, eps=eps, scored=scored())


# ---- gradients -------------------------------------------------------------------------------------------------------------------


def backward(bench):
    """softmax: the backward pass alone, from what the forward pass saved."""
    for b, h, length, d, causal in bench.lengths([(1, 8, 512, 64, False), (1, 8, 1024, 64, False), (1, 8, 1024, 64, True),
                                                  (1, 8, 2048, 64, False), (1, 8, 2048, 64, True), (1, 8, 2048, 128, False),
                                                  (1, 8, 2048, 128, True)]):
        leaves = [x.requires_grad_() for x in qkv(b, h, h, length, length, d)]
        q, k, v = (x.detach() for x in leaves)
        some = around(length, causal)
        by_out = numbers(2)(b, h, length, d)

        def only_backward(forward):
            out = forward(*leaves)
            return lambda: torch.autograd.grad(out, leaves, by_out, retain_graph=True)

        logits = formulas.hide(formulas.scores(q, k), some["hidden"])
        lse = torch.logsumexp(logits, -1).contiguous()
        out = (torch.softmax(logits, -1) @ v).contiguous()
        del logits
        bench.rounds.run(Case("backward", "softmax", text(b, h, length, d, causal), matrix_products(5, b, h, length, d, causal),
                              tolerance=1e-3), [
            Implementation("SDPA", only_backward(lambda q, k, v: sdpa(q, k, v, causal))),
            Implementation("SDPA math", only_backward(lambda q, k, v: sdpa_math(q, k, v, causal))),
            Implementation("eager", only_backward(lambda q, k, v: formulas.softmax(q, k, v, **some))),
            Implementation("attune", *bench.library.backward(q, k, v, out, lse, by_out, causal))])
        narrow = [x.detach().to(torch.bfloat16).requires_grad_() for x in leaves]
        out16, by_out16 = sdpa(*narrow, causal), by_out.to(torch.bfloat16)
        bench.rounds.run(Case("backward", "softmax", text(b, h, length, d, causal), matrix_products(5, b, h, length, d, causal),
                              "bf16", tolerance=REDUCED_TOLERANCE[torch.bfloat16]), [
            Implementation("attune f32", *bench.library.backward(q, k, v, out, lse, by_out, causal)),
            Implementation("SDPA", lambda: torch.autograd.grad(out16, narrow, by_out16, retain_graph=True)),
            Implementation("attune", *bench.library.backward(q, k, v, out, lse, by_out, causal, "_bf16_products")),
            Implementation("attune AMX", *bench.library.backward(q, k, v, out, lse, by_out, causal, "_amx_products"))])


def train(bench):
    """Variants, causal: forward and the gradients of all inputs and parameters."""
    for variant in bench.chosen([SOFTMAX, *VARIANTS, *SPARSE]):
        for b, h, length, d in bench.lengths([(1, 8, 1024, 64), (1, 8, 2048, 64)]):
            train_case(bench, variant, (b, h, length, d, True))


def train_case(bench, variant, shape):
    b, h, length, d, causal = shape
    leaves, constants = inputs_of(variant, b, h, length, d)
    by_out = numbers(2)(b, h, length, d)
    def trained(symbol):
        return bench.library.train(symbol, {variant.called.get(n, n): x for n, x in leaves.items()}, by_out,
                                   *list(leaves.values())[3:], *constants.values(), terms=variant.terms)

    run, gradients = trained(variant.train_symbol)
    some = {**constants, **variant.given(b, h, length, constants), **around(length, causal)}
    grown = {name: x.clone().requires_grad_() for name, x in leaves.items()}

    def differentiated(function):
        return lambda: torch.autograd.grad(function(**grown, **some), list(grown.values()), by_out)

    same = variant.by_users is None
    by_users = variant.by_users or variant.formula
    compiled = bench.compile(by_users)
    peers = [] if same else [Implementation("eager, random numbers given", differentiated(variant.formula))]
    peers.append(Implementation("eager", differentiated(by_users), same=same))
    if compiled:
        peers.append(Implementation("torch.compile", differentiated(compiled), same=same))
    if variant.spelled:
        peers.append(Implementation("SDPA trick", differentiated(lambda **x: variant.spelled(x, causal)), same=same))
    passes = variant.terms * (variant.products + 3 * variant.products - 1)
    bench.rounds.run(Case("train", variant.name, text(*shape), matrix_products(passes, *shape), tolerance=variant.gradient_tolerance),
                     [*peers, Implementation("attune", run, gradients)])
    by_products = lambda kind: trained(variant.train_symbol + ("_f32" if variant is SOFTMAX else "") + kind)
    products, of_products = by_products("_bf16_products")
    if products:
        bench.rounds.run(Case("train", variant.name, text(*shape), matrix_products(passes, *shape), "bf16",
                              tolerance=REDUCED_TOLERANCE[torch.bfloat16]),
                         [Implementation("attune f32", run, gradients), Implementation("attune", products, of_products),
                          Implementation("attune AMX", *by_products("_amx_products"))])
