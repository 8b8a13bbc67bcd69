"""Calls on a CUDA device. Without one, the same calls run on emulated warps, and nvcc compiles what it would run."""

import ctypes
import subprocess

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import attune  # noqa: E402
import attune.torch as at  # noqa: E402
from attune import _abi, _cuda, _device_masks, masks  # noqa: E402
from attune._compile import Companions, _part, compiled  # noqa: E402
from attune._layout import CUDA_STEP  # noqa: E402
from attune._nvcc import Nvcc  # noqa: E402
from attune._sources import Part, source_of_operator, source_of_parts  # noqa: E402

compiles = pytest.mark.compiles
needs_nvcc = pytest.mark.skipif(Nvcc((9, 0)).words() is None, reason="there is no nvcc")
needs_device = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
KINDS = [torch.bfloat16, torch.float16]
EPSILON = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11, torch.float32: 2.0**-20}


@pytest.fixture
def warps():
    """Calls of attune.torch run on emulated warps."""
    with _cuda.on_emulated_warps():
        yield


def drawn(rng, kind, queries=19, keys=37, width=24, heads=4, key_heads=2, value_width=16, grad=False):
    shapes = (2, heads, queries, width), (2, key_heads, keys, width), (2, key_heads, keys, value_width)
    return [torch.from_numpy(rng.standard_normal(s)).to(kind).requires_grad_(grad) for s in shapes]


def near(found, exact, kind, size=1.0):
    """Within some roundings of numbers of a size."""
    return (found.double() - exact).abs().max() < 4 * EPSILON[kind] * size


def turned(*tensors):
    """The same numbers as (B, L, H, D), which no tile can copy as they are."""
    return [x.transpose(1, 2) for x in tensors]


def gradients(out, dout, *tensors):
    return torch.autograd.grad(out, tensors, dout)


# --- without a compiler -------------------------------------------------------------------------------------------------

BAND, SPACE = _device_masks.BAND, "attune::interop::on_device::"
PADDED, SHOWN = SPACE + "one<attune::mask::padding>", SPACE + "one<attune::mask::visible_table>"
CU = masks.from_cu_seqlens([0, 4, 9])


@pytest.mark.parametrize(
    "mask, form, count",
    [
        (masks.full(), BAND, 1),
        (masks.causal() & masks.window(3, None), BAND, 3),
        (masks.causal("start") & masks.full(), BAND, 3),
        (masks.causal("start") & masks.window(3, 3), f"{SPACE}both<{BAND}, {BAND}>", 3),
        (masks.causal() | masks.causal(), f"{SPACE}either<{BAND}, {BAND}>", 3),
        (masks.causal() & masks.padding([9]), f"{SPACE}both<{BAND}, {PADDED}>", 3),
        (masks.visible(np.eye(9, dtype=bool)), SHOWN, 1),
        (CU, SPACE + "ragged", 1),
        (CU & masks.causal(), f"{SPACE}ragged_within<{BAND}>", 2),
        (masks.window(2, 0) & CU, f"{SPACE}ragged_within<{BAND}>", 2),
        (masks.causal() & CU & masks.padding([9]), f"{SPACE}both<{SPACE}ragged_within<{BAND}>, {PADDED}>", 4),
    ],
    ids=lambda x: repr(x) if isinstance(x, masks.Mask) else "",
)
def test_forms_of_masks(mask, form, count):
    found = _device_masks.packed(mask, torch.device("cpu"))
    assert (found.form, found.count, len(found.memory)) == (form, count, count * _abi.MASK_NODE.size)
    assert _device_masks.packed(mask, torch.device("cpu")) is found  # its arrays are copied once
    found.require(9, 9)


def test_numbers_of_masks_are_checked_before_a_device_reads_them():
    for mask, text in [
        (masks.padding([9, 10]), "mask has the length 10; expected lengths in .0, 9."),
        (masks.padding([-1, 2]), "mask has the length -1"),
        (masks.from_cu_seqlens([0, 4, 8]), "cu_seqlens has the last value 8; expected 9, the number of queries"),
        (masks.from_cu_seqlens([0, 9], [0, 10]), "cu_seqlens_k has the last value 10; expected 9, the number of keys"),
    ]:
        with pytest.raises(attune.Error, match=text):
            _device_masks.packed(mask, torch.device("cpu")).require(9, 9)
    for values in ([1, 9], [0, 5, 4, 9]):
        with pytest.raises(attune.Error, match="numbers that begin with 0 and do not descend"):
            _device_masks.packed(masks.from_cu_seqlens(values), torch.device("cpu"))


def test_a_first_call_in_the_capture_of_a_graph_is_refused(warps, monkeypatch, rng):
    monkeypatch.setattr(_cuda.Warps, "captures", lambda self: True)
    monkeypatch.setattr(attune.op("softmax"), "_companions", Companions(attune.op("softmax")._companions._source))
    for grad in (False, True):
        with pytest.raises(RuntimeError, match="softmax is called for the first time in the capture of a CUDA graph"):
            at.softmax(*drawn(rng, torch.bfloat16, grad=grad))


def test_the_width_of_a_call_is_compiled(warps, rng):
    op, device = attune.op("softmax"), _cuda.Warps()
    for width, value_width, tiles in ((8, 64, "64"), (64, 65, "128"), (129, 8, "256"), (300, 8, "256")):
        q, k, v = drawn(rng, torch.bfloat16, width=width, value_width=value_width)
        call = _cuda.DeviceCall(op, {"q": q, "k": k, "v": v}, {}, None, None, "bhld", device)
        assert call._arguments("_vjp") == ("warps_vjp", call.code, "attune::bfloat16", tiles)
    assert op._companions._source.what("cuda_vjp", ("attune::bfloat16", "64")) == (
        "CUDA kernels of gradients of the preset softmax for bfloat16, 64 features"
    )


def test_recorded_calls_know_the_shapes_and_the_device_of_their_results():
    from attune.torch import _library, _passes
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(), torch.no_grad():
        q, k, v = (torch.empty(2, n, 8, 16, dtype=torch.bfloat16, device="cuda") for n in (4, 2, 2))
        lengths = masks.padding(torch.tensor([3, 8], device="cuda"))
        assert lengths._x.is_cuda  # no program waits for its numbers
        out, lse = at.sink(q, k, v, logit=0.5, mask=masks.causal() & lengths, returns=("out", "lse"))
        assert (out.device.type, out.dtype, lse.device.type, lse.dtype) == ("cuda", torch.bfloat16, "cuda", torch.float32)
        spec = _passes.Spec(attune.op("sink"), ["q", "k", "v"], {"logit": 0.5}, lengths, None, "bhld", None, ("out",))
        arrays, numbers, *_ = _library._plain(spec, [q, k, v])
        assert all(x.is_cuda for x in (*arrays, numbers))
        (out,), saved = _library.forward(spec, [q, k, v])
        dq, dk, dv = _library.backward(spec, [q, k, v], saved, [out], [True, False, True])
        assert saved.is_cuda and dq.is_cuda and dq.shape == q.shape and dk is None and dv.shape == v.shape


# --- emulated warps -----------------------------------------------------------------------------------------------------


@compiles
@pytest.mark.parametrize("kind", [*KINDS, torch.float32])
def test_the_path_of_a_call(warps, rng, kind):
    q, k, v = drawn(rng, kind)
    logit = torch.tensor([0.5, -1, 0, 2], dtype=torch.float32)
    for mask in (None, masks.causal(), masks.causal() & masks.window(5, None), masks.causal("start")):
        out, lse = at.sink(q, k, v, mask=mask, returns=("out", "lse"), logit=logit)
        exact = attune.reference("sink", q, k, v, mask=mask, logit=logit)
        assert out.dtype is kind and lse.dtype is torch.float32 and lse.shape == (2, 4, 19)
        assert near(out, exact.out, kind) and (lse - exact.lse).abs().max() < 1e-4
    # Another layout, strides that tiles cannot copy, an offset, a number as parameter.
    out = at.sink(*turned(q, k, v), mask=masks.causal(), offset=3, layout="blhd", logit=1.0)
    exact = attune.reference("sink", q, k, v, mask=masks.causal(), offset=3, logit=1.0)
    assert out.shape == (2, 19, 4, 16) and near(out.transpose(1, 2), exact.out, kind)
    assert at.sink(q[:, :, :0], k, v, logit=1.0).shape == (2, 4, 0, 16)
    assert not torch.equal(out, attune.op("sink")(*turned(q, k, v), mask=masks.causal(), offset=3, layout="blhd", logit=1.0))


@compiles
@pytest.mark.parametrize("kind", KINDS)
def test_gradients(warps, rng, kind):
    """By inputs and a parameter, of out and of lse, within the published bound."""
    q, k, v = drawn(rng, kind, grad=True)
    dout, dlse = torch.from_numpy(rng.standard_normal((2, 4, 19, 16))).to(kind), torch.randn(2, 4, 19)
    logit = torch.tensor([0.5, -1, 0, 2], requires_grad=True)
    given = dict(mask=masks.causal(), offset=15, logit=logit)
    out, lse = at.sink(q, k, v, **given, returns=("out", "lse"))
    names = ("dq", "dk", "dv", "dlogit")
    found = dict(zip(names, torch.autograd.grad((out, lse), (q, k, v, logit), (dout, dlse))), dout=dout, dlse=dlse)
    plain, given["logit"] = [x.detach() for x in (q, k, v)], logit.detach()
    report = attune.verdict("sink", *plain, **given, **found, out=out.detach(), lse=lse.detach())
    assert report, str(report)
    assert {"q", "k", "v", "normalizer.logit"} <= {name.removeprefix("d") for name in report.elements}
    assert all(0 < x.worst.error_over_bound <= 1 for x in report.elements.values())
    spoilt = (found["dk"] * torch.tensor([1, 1.1])[:, None, None]).to(kind)
    assert attune.verdict("sink", *plain, **given, **{**found, "dk": spoilt}).decision == "FAIL"
    # lse alone; q alone; another layout; a cotangent that one number is.
    (alone,) = torch.autograd.grad(at.sink(q, *plain[1:], **given, returns="lse"), q, dlse)
    (both,) = torch.autograd.grad(at.sink(q, *plain[1:], **given), q, dout)
    assert near(alone.double() + both.double(), found["dq"].double(), kind, 4)
    found = gradients(at.sink(*turned(q, k, v), **given, layout="blhd"), dout.transpose(1, 2), q, k, v)
    again = gradients(at.sink(q, k, v, **given), dout, q, k, v)
    assert all(torch.equal(a, b) for a, b in zip(found, again))
    (summed,) = torch.autograd.grad(at.sink(q, k, v, **given).sum(), v)
    (ones,) = gradients(at.sink(q, k, v, **given), torch.ones_like(out), v)
    assert torch.equal(summed, ones)
    empty = q[:, :, :0].detach().requires_grad_()
    assert all((g == 0).all() for g in gradients(at.sink(empty, k, v, logit=1.0).sum(), torch.ones(()), empty, k, v))


@compiles
def test_gradients_of_floats(warps, rng):
    q, k, v = drawn(rng, torch.float32, grad=True)
    logit = torch.tensor([0.5, -1, 0, 2], requires_grad=True)
    dout = torch.from_numpy(rng.standard_normal((2, 4, 19, 16))).float()
    found = gradients(at.sink(q, k, v, logit=logit, mask=masks.causal()), dout, q, k, v, logit)
    exact = [x.detach().double() for x in (q, k, v)]
    expected = attune.op("sink").vjp(*exact, logit=logit.detach().double(), mask=masks.causal(), dout=dout.double())
    for name, x in zip(("q", "k", "v", "normalizer.logit"), found):
        assert near(x, expected[name], torch.float32, expected[name].abs().max()), name


@compiles
def test_torch_func_has_the_same_gradients(warps, rng):
    q, k, v = drawn(rng, torch.bfloat16)
    f = lambda q: at.sink(q, k, v, logit=1.0).float().square().sum()
    x = q.clone().requires_grad_()
    assert torch.equal(torch.func.grad(f)(q), *torch.autograd.grad(f(x), x))


@compiles
def test_offsets_of_a_batch(warps, rng):
    q, k, v = drawn(rng, torch.bfloat16)
    out = at.sink(q, k, v, mask=masks.causal(), offset=torch.tensor([0, 11]), logit=0.0)
    for b, offset in enumerate((0, 11)):
        one = [x[b : b + 1] for x in (q, k, v)]
        exact = attune.reference("sink", *one, mask=masks.causal(), offset=offset, logit=0.0)
        assert near(out[b : b + 1], exact.out, torch.bfloat16)


@compiles
@pytest.mark.parametrize(
    "mask, grad",
    [
        (masks.causal() & masks.padding([37, 20]), True),
        (masks.causal() & masks.from_cu_seqlens([0, 4, 19], [0, 20, 37]), True),
        (masks.documents([0] * 9 + [1] * 10, [1] * 20 + [0] * 17) | masks.prefix(3), False),
        (masks.visible(np.arange(19 * 37).reshape(19, 37) % 3 == 0), False),
        (masks.block_sparse([[1, 0, 1, 0], [0, 1, 0, 0]], 10, 10) & masks.sink_window(2, 30), False),
    ],
    ids=["lengths", "sequences", "documents", "table", "blocks"],
)
def test_masks_with_arrays(warps, rng, mask, grad):
    q, k, v = drawn(rng, torch.bfloat16, grad=grad)
    op, exact, given = attune.op("softmax"), [x.detach().double() for x in (q, k, v)], dict(mask=mask, offset=18)
    out = at.softmax(q, k, v, **given)
    assert near(out, op(*exact, **given), torch.bfloat16)
    if grad:
        dout = torch.from_numpy(rng.standard_normal(out.shape)).bfloat16()
        expected = op.vjp(*exact, **given, dout=dout.double(), wanted=("q", "k", "v"))
        for name, x in zip("qkv", gradients(out, dout, q, k, v)):
            assert near(x, expected[name], torch.bfloat16, expected[name].abs().max())


@compiles
def test_torch_compile(warps, rng):
    """One graph without breaks, whose numbers are those of a call."""
    q, k, v = drawn(rng, torch.bfloat16, grad=True)
    lengths = masks.padding([37, 20])

    def f(q, k, v, logit):
        out, lse = at.sink(q, k, v, logit=logit, mask=masks.causal(), returns=("out", "lse"))
        return out.float().square().sum() + lse.sum() + at.softmax(q, k, v, mask=masks.causal() & lengths).float().sum()

    g = torch.compile(f, fullgraph=True, backend="aot_eager")
    for logit in (0.5, torch.tensor([0.5, -1, 0, 2])):
        expected, found = (torch.autograd.grad(h(q, k, v, logit), (q, k, v)) for h in (f, g))
        assert all(torch.equal(a, b) for a, b in zip(expected, found))
    with torch.no_grad():
        assert torch.equal(f(q, k, v, 0.5), g(q, k, v, 0.5))


@compiles
def test_autocast(warps, rng):
    q, k, v = drawn(rng, torch.float32, grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = at.sink(q, k, v, logit=1.0)
    found = gradients(out.float().sum(), torch.ones(()), q, k, v)
    narrow = [x.detach().bfloat16().requires_grad_() for x in (q, k, v)]
    expected = at.sink(*narrow, logit=1.0)
    assert out.dtype is torch.bfloat16 and torch.equal(out, expected)
    by = gradients(expected.float().sum(), torch.ones(()), *narrow)
    assert all(x.dtype is torch.float32 and torch.equal(x, y.float()) for x, y in zip(found, by))


@pytest.mark.parametrize(
    "change, text",
    [
        (dict(k="meta"), "k has the device meta; expected cpu, the device of q"),
        (dict(logit="numpy"), "logit has the type ndarray; expected a number or a tensor of torch"),
        (dict(q="double"), "q has the type float64; expected float32 or bfloat16 or float16"),
        (dict(offset=[1, 2]), "offset has the type list; expected integers, as a tensor on cpu"),
        (dict(offset=torch.tensor([0.5, 1])), "offset has the type torch.float32; expected integers"),
        (dict(mask=masks.padding([40, 1])), "mask has the length 40; expected lengths in [0, 37]"),
    ],
)
def test_refusals(warps, rng, change, text):
    q, k, v = drawn(rng, torch.bfloat16)
    given = {"q": q, "k": k, "v": v, "logit": 1.0, **change}
    for name, x in given.items():
        if isinstance(x, str):
            t = {"q": q, "k": k, "v": v, "logit": torch.ones(4)}[name]
            given[name] = t.numpy() if x == "numpy" else t.double() if x == "double" else t.to("meta")
    with pytest.raises(attune.Error) as refused:
        at.sink(**given)
    assert text in str(refused.value)


# --- learning -----------------------------------------------------------------------------------------------------------

HEADS, LENGTH, WIDTH = 2, 32, 64  # of a head


class Block(torch.nn.Module):
    def __init__(self, operator, fields):
        super().__init__()
        each = HEADS * WIDTH
        self.fields = fields
        self.norm, self.project = torch.nn.LayerNorm(each), torch.nn.Linear(each, len(fields) * each, bias=False)
        self.key_bias = torch.nn.Linear(each, HEADS) if "key_bias" in operator.fields else None
        self.attend, self.out = at.Attention(operator, HEADS, mask=masks.causal()), torch.nn.Linear(each, each)
        self.wide = torch.nn.Sequential(torch.nn.LayerNorm(each), torch.nn.Linear(each, each), torch.nn.GELU())

    def forward(self, x):
        y = self.norm(x)
        given = dict(zip(self.fields, self.project(y).unflatten(-1, (-1, HEADS, WIDTH)).permute(2, 0, 3, 1, 4)))
        if self.key_bias is not None:
            given["key_bias"] = self.key_bias(y).transpose(1, 2)
        x = x + self.out(self.attend(**given).transpose(1, 2).flatten(-2))
        return x + self.wide(x)


def losses(operator, fields, steps=5):
    """A GPT of two layers learns to repeat a text, from the same start."""
    torch.manual_seed(1)
    text = torch.arange(LENGTH + 1)[None] ** 2 % 11
    model = torch.nn.Sequential(
        torch.nn.Embedding(11, HEADS * WIDTH), Block(operator, fields), Block(operator, fields), torch.nn.Linear(HEADS * WIDTH, 11)
    )
    learned = [x for x in model.parameters() if x.requires_grad]
    steps_of, found = torch.optim.AdamW(learned, lr=3e-3), []
    for _ in range(steps):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(text[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), text[:, 1:].flatten())
        steps_of.zero_grad()
        loss.backward()
        steps_of.step()
        found.append(loss.item())
    assert all(x.grad is not None and x.grad.isfinite().all() and x.grad.abs().max() > 0 for x in learned)
    return found


def own_policy():
    hard = attune.policy.normalizer("sigmoid(a + bias - log_visible)", divided_by="one", parameters={"bias": 0.5})
    return attune.compile("dot_product{} + key_bias{}", normalizer=hard, dtypes=("float32", "bfloat16"))


@compiles
@pytest.mark.parametrize("name", ["sink", "principled", "own policy"])
def test_a_small_gpt_learns_as_on_the_cpu(name):
    operator = (own_policy() if name == "own policy" else attune.op(name)).with_products("float32")
    fields = [x for x in operator.fields if x in ("q", "k", "v", "gate_q", "gate_k")]
    expected = losses(operator, fields)
    with _cuda.on_emulated_warps():
        found = losses(operator, fields)
    assert found != expected and found[-1] < 0.8 * found[0]
    assert found == pytest.approx(expected, rel=4 * EPSILON[torch.bfloat16])


# --- what cannot run ----------------------------------------------------------------------------------------------------


@compiles
def test_gradients_that_tiles_do_not_have_are_refused_when_the_call_is_made(warps, rng):
    q, k, v = drawn(rng, torch.bfloat16)
    center, spread, place = (torch.ones(2, heads, n, 2).bfloat16() for heads, n in ((4, 19), (4, 19), (2, 37)))
    given = dict(center=center.requires_grad_(), spread=spread, place=place, beta=1.0)
    text = "center has a tensor on cpu that requires gradients; expected a tensor after detach.*, or tensors on the CPU: the tiles"
    with pytest.raises(attune.Error, match=text):
        at.smca(q, k, v, **given)
    with torch.no_grad():
        at.smca(q, k, v, **given)


@compiles
def test_operators_without_gradients_are_refused_when_the_call_is_made(warps, rng):
    with pytest.raises(attune.CompileError, match="self_adjusted on cpu has no gradients: call it under torch.no_grad"):
        at.self_adjusted(*drawn(rng, torch.bfloat16, grad=True))


# --- nvcc ---------------------------------------------------------------------------------------------------------------


def compiled_for(source, capability, kind="cuda", element="bfloat16", mask=None):
    return compiled(source, kind, 5, types=(f"attune::{element}", "64"), tool=Nvcc(capability), mask=mask)


@compiles
@needs_nvcc
def test_nvcc_compiles_what_a_device_would_run(rng):
    q, k, v = drawn(rng, torch.bfloat16)
    op = attune.op("softmax")
    mask = masks.causal() & masks.padding([37, 20])
    call = _cuda.DeviceCall(op, {"q": q, "k": k, "v": v}, {}, mask, None, "bhld", _cuda.Warps())
    call.blank_outputs(("out",))
    run = _abi.Companion(compiled_for(op._companions._source, (9, 0), mask=call.form), "cuda").run
    # To ask for sizes needs no device.
    needed = (ctypes.c_int64 * 2)()
    run(call.address, _cuda._PACK(0, 0, 0, 0, 0, 0, ctypes.addressof(needed), CUDA_STEP.measure))
    rows, (per_value, per_row) = 2 * 4 * 19, op._saved_per_row()
    assert needed[0] > rows * 4 and needed[1] == rows * (16 * per_value + per_row)


@compiles
@needs_nvcc
@pytest.mark.parametrize("kind", ["cuda", "cuda_vjp"])
def test_nvcc_compiles_policies_of_python(kind):
    hard = attune.policy.normalizer("sigmoid(a + bias - log_visible)", divided_by="one", parameters={"bias": 0.0})
    source = source_of_parts([_part("kernel", "kernel", "dot_product{}"), _part("normalizer", "normalizer", hard)])
    assert compiled_for(source, (8, 0), kind, "float16").stat().st_size > 10000


@compiles
@needs_nvcc
def test_operators_that_tiles_cannot_run_are_refused():
    source = attune.op("entmax15")._companions._source
    with pytest.raises(attune.CompileError, match="candidate set"):
        compiled_for(source, (9, 0))


@compiles
def test_folds_are_refused():
    source = source_of_operator(Part("operator", "operator", "fold(softmax_attention(m), {1.0, open})", None, "operator"))
    with pytest.raises(attune.CompileError, match="a fold does not run on a device"):
        compiled(source, "warps", 5, types=("attune::bfloat16", "64"))


def test_without_nvcc(monkeypatch):
    monkeypatch.setenv("ATTUNE_NVCC", "no-such-nvcc")
    with pytest.raises(attune.CompileError, match="there is no nvcc"):
        compiled_for(attune.op("softmax")._companions._source, (8, 0))


def test_the_command_of_nvcc(monkeypatch, tmp_path):
    nvcc = tmp_path / "nvcc"
    nvcc.write_text("#!/bin/sh\necho nvcc of a test\n")
    nvcc.chmod(0o755)
    monkeypatch.setenv("ATTUNE_NVCC", f"{nvcc} -lineinfo")
    words = Nvcc((10, 0)).words()
    assert words == [str(nvcc), "-lineinfo"] and "-arch=sm_100" in Nvcc((10, 0)).flags(5, words, "cuda")
    assert "nvcc of a test" in subprocess.run(words[:1], capture_output=True, text=True).stdout


# --- a device -----------------------------------------------------------------------------------------------------------


@compiles
@needs_nvcc
@needs_device
@pytest.mark.parametrize("kind", [*KINDS, torch.float32])
def test_on_a_device(rng, kind):
    q, k, v = drawn(rng, kind)
    logit = torch.tensor([0.5, -1, 0, 2])
    there = [x.cuda() for x in (q, k, v)]
    for mask in (None, masks.causal(), masks.window(5, 0), masks.causal() & masks.padding([37, 20])):
        out, lse = at.sink(*there, logit=logit.cuda(), mask=mask, returns=("out", "lse"))
        exact = attune.reference("sink", q, k, v, mask=mask, logit=logit)
        assert out.is_cuda and near(out.cpu(), exact.out, kind) and (lse.cpu() - exact.lse).abs().max() < 1e-3


@compiles
@needs_nvcc
@needs_device
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_on_a_device(rng, kind):
    """The numbers of a call, of a compiled function and of a graph."""
    q, k, v = drawn(rng, kind)
    dout = torch.from_numpy(rng.standard_normal((2, 4, 19, 16))).to(kind)
    there = [x.cuda().requires_grad_() for x in (q, k, v)]
    f = lambda *x: at.sink(*x, logit=0.5, mask=masks.causal())
    out = f(*there)
    dq, dk, dv = (x.cpu() for x in gradients(out, dout.cuda(), *there))
    report = attune.verdict("sink", q, k, v, logit=0.5, mask=masks.causal(), dout=dout, dq=dq, dk=dk, dv=dv)
    assert report, str(report)
    recorded = torch.compile(f, fullgraph=True)(*there)
    assert torch.equal(recorded, out)
    assert torch.equal(gradients(recorded, dout.cuda(), *there)[0].cpu(), dq)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = gradients(f(*there), dout.cuda(), *there)
    graph.replay()
    assert all(torch.equal(x.cpu(), y) for x, y in zip(kept, (dq, dk, dv)))
