"""Activations and products of the domain com.microsoft, against ONNX Runtime."""

import numpy as np
import pytest
from helpers.microsoft import compare, node_model

import glowstone

RANDOM = np.random.default_rng(7)


def normal(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize(
    ("kind", "shapes", "attributes"),
    [
        ("Gelu", [(2, 3, 5)], {}),
        ("BiasGelu", [(2, 3, 5), (5,)], {}),
        ("FastGelu", [(2, 3, 5)], {}),
        ("FastGelu", [(2, 3, 5), (5,)], {}),
        ("QuickGelu", [(2, 3, 5)], {}),
        ("QuickGelu", [(2, 3, 5)], {"alpha": 0.7}),
    ],
)
def test_activations(kind, shapes, attributes):
    first = [2 * normal(*shape) for shape in shapes]
    compare(kind, first, [normal(4, 1, 5), *first[1:]], **attributes)


@pytest.mark.parametrize(
    ("activation", "parameters"),
    [
        ("Relu", None),
        ("Tanh", None),
        ("Sigmoid", None),
        ("LeakyRelu", [0.3]),
        ("Clip", [-0.5, 1.0]),
        ("HardSigmoid", [0.25, 0.4]),
    ],
)
def test_fused_convolution(activation, parameters):
    form = {"Relu": "plain", "Tanh": "bias"}.get(activation, "residual")
    x, w, bias, residual = normal(2, 4, 7, 6), normal(6, 2, 3, 3), normal(6), normal(2, 6, 4, 6)
    operands = {"plain": (x, w), "bias": (x, w, bias), "residual": (x, w, bias, residual)}[form]
    attributes = {"group": 2, "strides": [2, 1], "pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
    if parameters:
        attributes["activation_params"] = parameters
    other = [normal(1, 4, 5, 6), *operands[1:3], *([normal(1, 6, 3, 6)] if form == "residual" else [])]
    compare("FusedConv", operands, other, activation=activation, **attributes)


def test_fused_convolution_without_an_activation_is_a_convolution():
    x, w = normal(1, 3, 9), normal(2, 3, 4)
    operands = [
        node_model(kind, [(x, w)], {"auto_pad": "SAME_UPPER"}, domain=domain)
        for kind, domain in (("FusedConv", "com.microsoft"), ("Conv", ""))
    ]
    fused, plain = (glowstone.compile(model)(x, w) for model in operands)
    np.testing.assert_array_equal(fused, plain)


@pytest.mark.parametrize(
    ("activation", "parameters"),
    [
        ("Relu", {}),
        ("Tanh", {}),
        ("Sigmoid", {}),
        ("Softplus", {}),
        ("Softsign", {}),
        ("Elu", {"activation_alpha": 0.5}),
        ("LeakyRelu", {"activation_alpha": 0.2}),
        ("ThresholdedRelu", {"activation_alpha": 0.4}),
        ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.6}),
        ("Selu", {"activation_alpha": 1.5, "activation_gamma": 1.1}),
        ("Celu", {"activation_alpha": 0.6}),
    ],
)
def test_fused_gemm(activation, parameters):
    a, b, c = normal(5, 3), normal(4, 3), normal(4)
    attributes = {"transB": 1, "alpha": 0.7, "beta": 1.3, "activation": activation, **parameters}
    compare("FusedGemm", (a, b, c), (normal(1, 3), b, c), **attributes)
    compare("FusedGemm", (normal(3, 5), normal(3, 4)), transA=1, activation=activation, **parameters)


@pytest.mark.parametrize("swaps", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("moves", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_fused_matmul(swaps, moves):
    def factor(batch: tuple[int, ...], rows: int, columns: int, swap: int, move: int) -> np.ndarray:
        matrix = (columns, rows) if swap else (rows, columns)
        return normal(*((matrix[0], *batch, matrix[1]) if move else (*batch, *matrix)))

    cases = [
        (factor(batch, rows, 5, swaps[0], moves[0]), factor(batch, 5, 4, swaps[1], moves[1]))
        for batch, rows in (((2, 3), 7), ((1, 3), 2))
    ]
    names = ("transA", "transB", "transBatchA", "transBatchB")
    compare("FusedMatMul", *cases, alpha=0.25, **dict(zip(names, (*swaps, *moves), strict=True)))


def test_fused_matmul_of_vectors_and_broadcast_batches():
    compare("FusedMatMul", (normal(5), normal(3, 5, 2)), alpha=2.0, transA=1)
    compare("FusedMatMul", (normal(3, 4, 5), normal(2, 5)), transB=1)
    compare("FusedMatMul", (normal(5), normal(5)))
    compare("FusedMatMul", (normal(2, 5, dtype=np.float64), normal(5, 3, dtype=np.float64)), alpha=0.5)


def test_transpose_matmul():
    compare("TransposeMatMul", (normal(2, 5, 3), normal(2, 4, 5)), transA=1, transB=1, alpha=-1.5)


@pytest.mark.parametrize(
    ("kind", "shapes", "attributes", "message"),
    [
        ("FusedConv", [(1, 2, 5), (3, 2, 3)], {"activation": "Sine"}, "attribute activation"),
        ("FusedConv", [(1, 2, 5), (3, 2, 3)], {"activation": "Clip", "activation_params": [1.0]}, "bounds of Clip"),
        ("FusedConv", [(1, 2, 5), (3, 2, 3), (3,), (4, 4, 4)], {"activation": "Relu"}, "broadcast"),
        ("FusedGemm", [(2, 3), (3, 4)], {"activation": 3}, "attribute activation has the wrong kind"),
        ("FusedMatMul", [(2, 3), (4, 5)], {"transB": 1}, "inner extents differ"),
        ("FastGelu", [(2, 3), (2,)], {}, "broadcast"),
    ],
)
def test_refusals(kind, shapes, attributes, message):
    operands = [normal(*shape) for shape in shapes]
    with pytest.raises(glowstone.GlowstoneError, match=message) as caught:
        glowstone.compile(node_model(kind, [operands], attributes))
    assert caught.value.node == "the node"
