"""All samples of an operator as one compiled model, as they are and with their floats in the other float types."""

from __future__ import annotations

import dataclasses

import numpy as np
import onnx
import pytest
from helpers.onnx_nodes import onnx_case
from onnx import compose, helper

import glowstone
from glowstone.graph import OPERATORS, Sample, as_tuple
from glowstone.types import ElementType, is_float_dtype

F16, BF16, F32, F64 = ElementType.F16, ElementType.BF16, ElementType.F32, ElementType.F64
TOLERANCES = {F16: 4e-3, BF16: 3e-2, F32: 1e-5, F64: 1e-6}
"""Relative to the largest value: about four units of the last place of a 16-bit float; ONNX attributes are float32."""
FLOATING = [
    *("Conv", "ConvTranspose", "DeformConv", "CausalConvWithState", "MatMul", "Gemm", "Einsum", "Det"),
    *("MaxPool", "MaxPoolWithIndices", "MaxUnpool", "AveragePool", "LpPool", "GlobalLpPool", "GlobalMaxPool"),
    *("Attention", "RotaryEmbedding", "LinearAttention"),
]
QUANTIZED = [
    *("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"),
    *("MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv"),
]


def elements_of(name: str) -> list[ElementType]:
    allowed = OPERATORS[name].operands[0].elements or set(ElementType)
    return [element for element in TOLERANCES if element in allowed]


def as_element(sample: Sample, element: ElementType) -> Sample:
    """The sample with float32 operands in another type."""
    operands = tuple(
        array if array is None or np.asarray(array).dtype != np.float32 else np.asarray(array).astype(element.dtype)
        for array in sample.operands
    )
    return dataclasses.replace(sample, operands=operands)


def joined(samples: list[Sample]) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """One model of all samples, side by side."""
    whole, feeds, opset = onnx.GraphProto(name="all"), {}, 0
    for number, sample in enumerate(samples):
        case = onnx_case(sample)
        prefix = f"s{number}_"
        part = compose.add_prefix_graph(case.model.graph, prefix)
        for field in ("node", "input", "output", "initializer"):
            getattr(whole, field).extend(getattr(part, field))
        feeds |= {prefix + name: array for name, array in case.feeds.items()}
        opset = case.opset
    return helper.make_model(whole, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), feeds


def check(samples: list[Sample], tolerance: float) -> None:
    model, feeds = joined(samples)
    found = list(glowstone.compile(model).run(feeds).values())
    expected = [result for sample in samples for result in as_tuple(sample.operator.reference(*sample.operands))]
    for mine, reference in zip(found, map(np.asarray, expected), strict=True):
        assert (mine.shape, mine.dtype) == (reference.shape, reference.dtype)
        if not is_float_dtype(reference.dtype):
            np.testing.assert_array_equal(mine, reference)
            continue
        mine, reference = mine.astype(np.float64), reference.astype(np.float64)
        largest = np.abs(reference[np.isfinite(reference)]).max(initial=0)
        np.testing.assert_allclose(mine, reference, rtol=0, atol=tolerance * largest)


@pytest.mark.parametrize(
    ("name", "element"), [(name, element) for name in FLOATING for element in elements_of(name)], ids=str
)
def test_floats(name, element):
    samples = list(OPERATORS[name].samples())
    check([as_element(sample, element) for sample in samples], TOLERANCES[element])


@pytest.mark.parametrize("name", QUANTIZED)
def test_quantized_numbers(name):
    check(list(OPERATORS[name].samples()), TOLERANCES[F32])


@pytest.mark.parametrize("element", [ElementType.I32, ElementType.I64, ElementType.U32, ElementType.U64], ids=str)
@pytest.mark.parametrize("name", ["MatMul", "Gemm", "Einsum"])
def test_integers(name, element):
    random = np.random.default_rng(111)
    samples = []
    for sample in OPERATORS[name].samples():
        fields = sample.operator.attributes()
        if all(float(fields.get(field, 1)).is_integer() for field in ("alpha", "beta")):
            numbers = [random.integers(0, 50, np.shape(array)).astype(element.dtype) for array in sample.operands]
            samples.append(Sample(sample.operator, tuple(numbers)))
    check(samples, 0)
