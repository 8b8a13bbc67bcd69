# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""What ONNX Runtime's Attention (opset 23) and MultiHeadAttention compute on a CPU, for tests/verdict/libraries_test.cpp.

    python3 examples/libraries/from_onnxruntime.py FOLDER      needs onnx, onnxruntime and numpy
"""
import sys

import numpy
import onnxruntime
from onnx import TensorProto, helper

from cases import Results, cases, visible

TYPES = {"fp32": (numpy.float32, TensorProto.FLOAT), "fp16": (numpy.float16, TensorProto.FLOAT16)}
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
results = Results()


def run(node, kind, tensors):
    """The only output of a graph of one node."""
    of = lambda name, x: helper.make_tensor_value_info(name, TensorProto.BOOL if x.dtype == bool else kind, x.shape)
    graph = helper.make_graph([node], "attention", [of(n, x) for n, x in tensors.items()],
                              [helper.make_tensor_value_info("out", kind, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)],
                              ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return session.run(None, tensors)[0]


for case, (q, k, v, dout) in cases().items():
    seen = visible(case)
    for form, (dtype, kind) in TYPES.items():
        tensors = {"q": q.astype(dtype), "k": k.astype(dtype), "v": v.astype(dtype)}
        if seen is not None:
            tensors["mask"] = seen
        node = helper.make_node("Attention", list(tensors), ["out"])
        results.add(f"{case}.attention.{form}", run(node, kind, tensors))
    if q.shape[1] == k.shape[1] and seen is None:  # MultiHeadAttention has (batch, position, head * feature)
        flat = {n: numpy.ascontiguousarray(x.swapaxes(1, 2)).reshape(x.shape[0], x.shape[2], -1)
                for n, x in {"q": q, "k": k, "v": v}.items()}
        node = helper.make_node("MultiHeadAttention", list(flat), ["out"], domain="com.microsoft",
                                num_heads=q.shape[1])
        out = run(node, TensorProto.FLOAT, flat).reshape(q.shape[0], q.shape[2], q.shape[1], -1).swapaxes(1, 2)
        results.add(f"{case}.multi_head.fp32", out)
results.write(sys.argv[1], "onnxruntime", {"onnxruntime": onnxruntime.__version__})
