"""Models that ONNX Runtime's optimizers and quantizers write, compiled and compared with ONNX Runtime itself."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from helpers.bert import KINDS, LENGTH, WORDS, bert, gpt
from helpers.blocks import VOCABULARY, small_convnet, transformer_block
from helpers.microsoft import QUIET, assert_close, runtime_results
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

import glowstone

RANDOM = np.random.default_rng(14)
MASK = np.array([[1] * LENGTH, [1] * 4 + [0] * 3])
MODELS = {
    "convnet": (small_convnet, {"x": RANDOM.standard_normal((2, 3, 16, 20)).astype(np.float32)}),
    "block": (transformer_block, {"ids": RANDOM.integers(0, VOCABULARY, (2, 5))}),
    "bert": (
        bert,
        {
            "ids": RANDOM.integers(0, WORDS, (2, LENGTH)),
            "kinds": RANDOM.integers(0, KINDS, (2, LENGTH)),
            "mask": MASK,
        },
    ),
    "gpt": (gpt, {"ids": RANDOM.integers(0, WORDS, (2, 5))}),
}
FLOAT_TOLERANCE = 1e-5
QUANTIZED_TOLERANCE = 0.03
"""Numbers that fall on the other side of a rounding, carried through the layers behind it."""
LEVELS = onnxruntime.GraphOptimizationLevel
UNKNOWN_TYPES = {"DefaultTensorType": onnx.TensorProto.FLOAT}
"""What results of fused operators are, which ONNX's shape inference does not know."""


class Samples(CalibrationDataReader):
    """A few inputs to calibrate on."""

    def __init__(self, feeds: dict[str, np.ndarray]) -> None:
        self._left = [feeds] * 3

    def get_next(self) -> dict[str, np.ndarray] | None:
        return self._left.pop() if self._left else None


def written(name: str, folder: Path) -> tuple[Path, dict[str, np.ndarray]]:
    make, feeds = MODELS[name]
    path = folder / f"{name}.onnx"
    onnx.save(make(), path)
    return path, feeds


def optimized(path: Path, level: LEVELS) -> Path:
    """What ONNX Runtime writes after its own graph optimizations, without layouts of this processor only."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = QUIET
    result = path.with_suffix(".optimized.onnx")
    options.optimized_model_filepath = str(result)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"], disabled_optimizers=["NchwcTransformer"]
        )
    return result


def compare(path: Path, feeds: dict[str, np.ndarray], kinds: set[str], tolerance: float) -> None:
    """Compare, at the shape compiled for and at another batch; `kinds` are operators that must be in the model."""
    model = onnx.load(path)
    counts = Counter(node.op_type for node in model.graph.node if node.domain == "com.microsoft")
    counts.update(node.op_type for node in model.graph.node if node.op_type == "SimplifiedLayerNormalization")
    assert kinds <= counts.keys(), counts
    compiled = glowstone.compile(path, shapes={name: array.shape for name, array in feeds.items()})
    for given in (feeds, {name: array[:1] for name, array in feeds.items()}):
        for ours, theirs in zip(compiled.run(given).values(), runtime_results(model, given), strict=True):
            assert_close(ours, theirs, tolerance)


@pytest.mark.parametrize(
    ("name", "level", "kinds"),
    [
        ("convnet", LEVELS.ORT_ENABLE_EXTENDED, {"FusedConv"}),
        ("convnet", LEVELS.ORT_ENABLE_ALL, {"FusedConv"}),
        ("block", LEVELS.ORT_ENABLE_EXTENDED, {"FusedMatMul", "BiasGelu"}),
        ("bert", LEVELS.ORT_ENABLE_EXTENDED, {"FusedMatMul", "BiasGelu", "SkipLayerNormalization"}),
        ("gpt", LEVELS.ORT_ENABLE_ALL, {"FusedMatMul", "FastGelu"}),
    ],
)
def test_optimized(name, level, kinds, tmp_path):
    path, feeds = written(name, tmp_path)
    compare(optimized(path, level), feeds, kinds, FLOAT_TOLERANCE)


@pytest.mark.parametrize(
    ("name", "family", "kinds"),
    [
        ("bert", "bert", {"Attention", "BiasGelu", "SkipLayerNormalization"}),
        ("gpt", "gpt2", {"FastGelu", "SkipLayerNormalization"}),
    ],
)
def test_optimized_as_a_transformer(name, family, kinds, tmp_path):
    path, feeds = written(name, tmp_path)
    compare(transformed(path, family), feeds, kinds, FLOAT_TOLERANCE)


def transformed(path: Path, family: str) -> Path:
    """What `onnxruntime.transformers` writes."""
    from onnxruntime.transformers import optimizer

    result = path.with_suffix(".transformed.onnx")
    model = optimizer.optimize_model(str(path), model_type=family, num_heads=2, hidden_size=16, opt_level=0)
    model.save_model_to_file(str(result))
    return result


@pytest.mark.parametrize(
    ("name", "form", "signed", "kinds"),
    [
        ("convnet", QuantFormat.QDQ, False, set()),
        ("convnet", QuantFormat.QOperator, True, {"QGemm", "QLinearAdd", "QLinearMul", "QLinearConcat"}),
        ("block", QuantFormat.QOperator, False, {"QLinearAdd", "QLinearMul", "QLinearSoftmax"}),
    ],
)
def test_quantized(name, form, signed, kinds, tmp_path):
    path, feeds = written(name, tmp_path)
    result = quantized(path, feeds, form, signed)
    compare(result, feeds, kinds, QUANTIZED_TOLERANCE)


def quantized(path: Path, feeds: dict[str, np.ndarray], form: QuantFormat, signed: bool) -> Path:
    """Both in 8 bits; weights per channel where signed."""
    result = path.with_suffix(".quantized.onnx")
    kind = QuantType.QInt8 if signed else QuantType.QUInt8
    quantize_static(
        str(path), str(result), Samples(feeds), quant_format=form, activation_type=kind, weight_type=kind,
        per_channel=signed, reduce_range=True,
    )  # fmt: skip
    return result


@pytest.mark.parametrize("form", [QuantFormat.QDQ, QuantFormat.QOperator])
def test_quantized_then_optimized(form, tmp_path):
    """With the channels last, as ONNX Runtime prefers quantized convolutions."""
    path, feeds = written("convnet", tmp_path)
    result = optimized(quantized(path, feeds, form, signed=False), LEVELS.ORT_ENABLE_ALL)
    assert any(
        attribute.name == "channels_last" for node in onnx.load(result).graph.node for attribute in node.attribute
    )
    kinds = {"QGemm", "QLinearConv", "QLinearAdd", "QLinearGlobalAveragePool", "QLinearConcat"}
    compare(result, feeds, kinds, QUANTIZED_TOLERANCE)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("convnet", {"DynamicQuantizeMatMul"}),
        ("block", {"DynamicQuantizeMatMul", "MatMulIntegerToFloat", "SimplifiedLayerNormalization"}),
    ],
)
def test_quantized_dynamically_then_optimized(name, kinds, tmp_path):
    path, feeds = written(name, tmp_path)
    result = tmp_path / "dynamic.onnx"
    quantize_dynamic(str(path), str(result), weight_type=QuantType.QUInt8)
    compare(result, feeds, set(), QUANTIZED_TOLERANCE)
    compare(optimized(result, LEVELS.ORT_ENABLE_ALL), feeds, kinds, QUANTIZED_TOLERANCE)


def test_a_transformer_quantized_dynamically(tmp_path):
    path, feeds = written("bert", tmp_path)
    result = tmp_path / "dynamic.onnx"
    quantize_dynamic(
        str(transformed(path, "bert")), str(result), op_types_to_quantize=["Attention", "MatMul", "Gather"],
        weight_type=QuantType.QUInt8, extra_options=UNKNOWN_TYPES,
    )  # fmt: skip
    compare(result, feeds, {"QAttention"}, QUANTIZED_TOLERANCE)
