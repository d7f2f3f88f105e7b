"""Quantized operators of the domain com.microsoft, against ONNX Runtime.

A rounding that falls the other way is one step; nothing is further off.
"""

import numpy as np
import pytest
from helpers.microsoft import compare, node_model

import glowstone

RANDOM = np.random.default_rng(9)
BYTES = (np.uint8, np.int8)


def integers(*shape: int, dtype: type = np.uint8) -> np.ndarray:
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max + 1, shape, dtype)


def scale(low: float = 0.01, high: float = 0.05, *shape: int) -> np.ndarray:
    return RANDOM.uniform(low, high, shape).astype(np.float32)


def zero_point(dtype: type = np.uint8, *shape: int) -> np.ndarray:
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min // 2 + 20, limits.max // 2 + 20, shape, dtype)


@pytest.mark.parametrize("kind", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize(
    "shapes", [[(2, 3, 5), (2, 3, 5)], [(2, 3, 5), (5,)], [(3, 1), (2, 1, 4)], [(4,), ()], [(0, 3), (3,)]]
)
def test_sums_and_products(kind, dtype, shapes):
    parameters = [(scale(), zero_point(dtype)) for _ in range(3)]
    operands = [integers(*shapes[0], dtype=dtype), *parameters[0], integers(*shapes[1], dtype=dtype), *parameters[1]]
    compare(kind, [*operands, *parameters[2]], steps=1, fixed=(1, 2, 4, 5, 6, 7))


@pytest.mark.parametrize("kind", ["QLinearAdd", "QLinearMul"])
def test_sums_and_products_at_other_shapes(kind):
    parameters = [(scale(), zero_point()) for _ in range(3)]
    shapes = (((2, 7), (2, 1)), ((5, 7), (5, 1)), ((2, 4), (1, 4)))
    cases = [[integers(*a), *parameters[0], integers(*b), *parameters[1], *parameters[2]] for a, b in shapes]
    compare(kind, *cases, steps=1, fixed=(1, 2, 4, 5, 6, 7))


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize(
    ("kind", "attributes"), [("QLinearSigmoid", {}), ("QLinearLeakyRelu", {}), ("QLinearLeakyRelu", {"alpha": 0.3})]
)
def test_functions(dtype, kind, attributes):
    parameters = (scale(), zero_point(dtype), scale(0.004, 0.02), zero_point(dtype))
    compare(
        kind, (integers(3, 7, dtype=dtype), *parameters), (integers(2, 9, dtype=dtype), *parameters),
        fixed=(1, 2, 3, 4), steps=1, **attributes,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["QLinearSigmoid", "QLinearLeakyRelu", "QLinearAdd", "QLinearMul"])
def test_zero_points_left_out(kind):
    """They are 0. ONNX Runtime refuses these, or ends the process."""
    x, zero, scales = integers(3, 7), np.array(0, np.uint8), (scale(), scale(), scale())
    operands = 1 if kind.startswith(("QLinearS", "QLinearL")) else 2
    results = []
    for offset in (None, zero):
        case = [array for index in range(operands) for array in (x, scales[index], offset)] + [scales[2], offset]
        fixed = set(range(1, len(case))) - {3 * (operands - 1)}
        model = node_model(kind, [case], {}, fixed=fixed)
        results.append(glowstone.compile(model)(*[x] * operands))
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize(("opset", "axis"), [(13, -1), (13, 1), (12, 1), (11, 2), (17, 0)])
def test_softmax(dtype, opset, axis):
    parameters = (scale(), zero_point(dtype), np.float32(1 / 255), np.array(np.iinfo(dtype).min, dtype))
    operands = (integers(2, 3, 9, dtype=dtype), *map(np.asarray, parameters))
    compare("QLinearSoftmax", operands, steps=1, fixed=(1, 2, 3, 4), opset=opset, axis=axis)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [3, 2], "strides": [2, 1]},
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
        {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"},
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 0, 0, 1], "ceil_mode": 1},
    ],
)
def test_average_pool(dtype, last, attributes):
    parameters = (scale(), zero_point(dtype), scale(), zero_point(dtype))
    shape = (2, 7, 6, 5) if last else (2, 5, 7, 6)
    operands = (integers(*shape, dtype=dtype), *parameters)
    compare("QLinearAveragePool", operands, steps=1, fixed=(1, 2, 3, 4), channels_last=last, **attributes)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("last", [0, 1])
def test_global_average_pool(dtype, last):
    parameters = (scale(), zero_point(dtype), scale(), zero_point(dtype))
    cases = [(integers(2, *extents, dtype=dtype), *parameters) for extents in ((7, 6, 5), (3, 4, 5))]
    cases = [(np.ascontiguousarray(np.moveaxis(x, -1, 1)) if not last else x, *rest) for x, *rest in cases]
    compare("QLinearGlobalAveragePool", *cases, steps=1, fixed=(1, 2, 3, 4), channels_last=last)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(dtype, axis):
    parts: list[np.ndarray] = []
    for extent in (3, 1, 4):
        shape = [2, 5, 3]
        shape[axis] = extent
        parts += [integers(*shape, dtype=dtype), scale(), zero_point(dtype)]
    fixed = (0, 1, 3, 4, 6, 7, 9, 10)
    compare("QLinearConcat", (scale(0.04, 0.06), zero_point(dtype), *parts), steps=1, fixed=fixed, axis=axis)


@pytest.mark.parametrize("dtype", BYTES)
def test_where(dtype):
    parts = [part for _ in range(2) for part in (integers(3, 4, dtype=dtype), scale(), zero_point(dtype))]
    condition = RANDOM.uniform(size=(2, 3, 1)) > 0.5
    fixed = (2, 3, 5, 6, 7, 8)
    compare("QLinearWhere", (condition, *parts, scale(0.05, 0.06), zero_point(dtype)), steps=1, fixed=fixed)


@pytest.mark.parametrize("per_channel", [False, True])
def test_convolution_with_the_channels_last(per_channel):
    channels = (6,) if per_channel else ()
    w_zero = np.zeros(channels, np.int8)
    operands = [
        integers(2, 8, 7, 4), scale(), zero_point(), integers(6, 4, 3, 3, dtype=np.int8) // 2,
        scale(0.01, 0.02, *channels), w_zero, scale(0.3, 0.5), zero_point(), RANDOM.integers(-500, 500, 6, np.int32),
    ]  # fmt: skip
    other = [integers(1, 5, 5, 4), *operands[1:]]
    attributes = {"strides": [2, 1], "pads": [1, 0, 1, 1], "channels_last": 1}
    compare("QLinearConv", operands, other, steps=1, fixed=range(1, 9), **attributes)


def test_max_pool_with_the_channels_last():
    for dtype in BYTES:
        attributes = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 1, 0, 0]}
        compare("NhwcMaxPool", [integers(2, 7, 6, 5, dtype=dtype)], [integers(1, 9, 4, 5, dtype=dtype)], **attributes)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
def test_quantization_of_the_domain(dtype):
    x, factor, zero = 3 * RANDOM.standard_normal((3, 5)).astype(np.float32), scale(), zero_point(dtype)
    compare("QuantizeLinear", [x, factor, zero], steps=0)
    compare("DequantizeLinear", [integers(3, 5, dtype=dtype), factor, zero])
    factors, zeros = scale(0.01, 0.05, 3), zero_point(dtype, 3)
    compare("DequantizeLinear", [integers(3, 5, dtype=dtype), factors, zeros], axis=0)


def test_scale_and_zero_point_of_one_element_may_differ_in_rank():
    """As ONNX Runtime's quantizer writes them for a bias."""
    x, factor, zero = integers(6), scale(0.01, 0.05, 1), zero_point()
    compare("DequantizeLinear", [x, factor, zero], fixed=(1, 2), domain="")


@pytest.mark.parametrize(
    ("kind", "operands", "attributes", "message"),
    [
        ("QLinearConcat", [scale(), zero_point(), integers(2, 3), scale()], {"axis": 0}, "come with scale"),
        ("QLinearConcat", [scale(), zero_point(), integers(2), scale(), zero_point()], {}, "attribute axis is missing"),
        ("QLinearSoftmax", [integers(2, 3), scale(), zero_point(), scale(), zero_point()], {}, "opset is missing"),
        ("QLinearAdd", [integers(2), scale(), None, integers(3), scale(), None, scale()], {}, "broadcast"),
        ("QLinearAdd", [integers(2), scale(), None, integers(2), scale()], {}, "an operand is missing"),
        ("QLinearSigmoid", [integers(2), scale(), zero_point(np.int8), scale()], {}, "zero point is of another type"),
        ("QLinearAveragePool", [integers(1, 2, 5), scale(), None, scale()], {}, "kernel_shape is missing"),
    ],
)
def test_refusals(kind, operands, attributes, message):
    with pytest.raises(glowstone.GlowstoneError, match=message) as caught:
        glowstone.compile(node_model(kind, [operands], attributes))
    assert caught.value.node == "the node"
