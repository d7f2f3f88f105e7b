"""Products of quantized numbers of the domain com.microsoft, against ONNX Runtime."""

import numpy as np
import pytest
from helpers.microsoft import compare, node_model

import glowstone

RANDOM = np.random.default_rng(10)
BYTES = (np.uint8, np.int8)


def integers(*shape: int, dtype: type = np.uint8) -> np.ndarray:
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max + 1, shape, dtype)


def weights_of(*shape: int, dtype: type = np.uint8) -> np.ndarray:
    """Of 7 bits where signed: with more, ONNX Runtime's products of uint8 and int8 saturate on some processors."""
    numbers = integers(*shape, dtype=dtype)
    return numbers // 2 if dtype is np.int8 else numbers


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def scale(*shape: int) -> np.ndarray:
    return RANDOM.uniform(0.01, 0.05, shape).astype(np.float32)


@pytest.mark.parametrize("dtypes", [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
@pytest.mark.parametrize("columns", [(), (6,)])
@pytest.mark.parametrize("form", ["least", "zero points", "all"])
def test_matmul_integer_to_float(dtypes, columns, form):
    left, right = dtypes
    b = weights_of(9, 6, dtype=right)
    rest = [scale(), scale(*columns)]
    if form != "least":
        rest += [integers(dtype=left), integers(*columns, dtype=right)]
    if form == "all":
        rest.append(normal(6))
    cases = [(integers(*rows, 9, dtype=left), b, *rest) for rows in ((2, 5), (3, 1))]
    compare("MatMulIntegerToFloat", *cases, fixed=(1, 3, 5, 6)[: {"least": 2, "zero points": 3, "all": 4}[form]])


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("columns", [(), (1,), (6,)])
@pytest.mark.parametrize("form", ["least", "zero points", "bias", "all"])
def test_dynamic_quantize_matmul(dtype, columns, form):
    b = weights_of(9, 6, dtype=dtype)
    zero = integers(*columns, dtype=dtype) if form in ("zero points", "all") else None
    bias = normal(6) if form in ("bias", "all") else None
    rest = (b, scale(*columns), zero, bias)
    cases = [(normal(*rows, 9), *rest) for rows in ((2, 5), (3, 1))]
    compare("DynamicQuantizeMatMul", *cases, fixed=[1, 2, *([3] if zero is not None else [])], tolerance=1e-4)


@pytest.mark.parametrize("dtypes", [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
@pytest.mark.parametrize("swaps", [(0, 0), (1, 1)])
@pytest.mark.parametrize("columns", [(), (6,)])
@pytest.mark.parametrize("form", ["float", "quantized"])
def test_qgemm(dtypes, swaps, columns, form):
    left, right = dtypes
    a = integers(*((9, 4) if swaps[0] else (4, 9)), dtype=left)
    b = weights_of(*((6, 9) if swaps[1] else (9, 6)), dtype=right)
    c = RANDOM.integers(-5000, 5000, 6, np.int32)
    operands = [a, scale(), integers(dtype=left), b, scale(*columns), integers(*columns, dtype=right), c]
    if form == "quantized":
        operands += [np.array(0.5, np.float32), integers(dtype=left)]
    attributes = {"transA": swaps[0], "transB": swaps[1], "alpha": 0.8}
    compare("QGemm", operands, steps=1, fixed=range(1, len(operands)), **attributes)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("form", ["least", "all"])
def test_dynamic_quantize_lstm(direction, dtype, form):
    """ONNX Runtime quantizes what the weights are multiplied with, which loses about a hundredth."""
    directions, hidden, inputs = (2 if direction == "bidirectional" else 1), 8, 6
    middle = 128 if dtype is np.uint8 else 0
    weights = [(0.4 * RANDOM.standard_normal((directions, rows, 4 * hidden))).clip(-1, 1) for rows in (inputs, hidden)]
    factor, zero = np.full(directions, 1 / 63, np.float32), np.full(directions, middle, dtype)
    quantized = [(np.rint(weight * 63) + middle).astype(dtype) for weight in weights]

    def case(steps: int, batch: int) -> list[np.ndarray | None]:
        options: list[np.ndarray | None] = [None] * 5
        if form == "all":
            states = [0.5 * normal(directions, batch, hidden) for _ in range(2)]
            lengths = RANDOM.integers(1, steps + 1, batch, np.int32)
            options = [0.3 * normal(directions, 8 * hidden), lengths, *states, 0.2 * normal(directions, 3 * hidden)]
        return [normal(steps, batch, inputs), *quantized, *options, factor, zero, factor, zero]

    fixed = (1, 2, 8, 9, 10, 11) if form == "least" else (1, 2, 3, 7, 8, 9, 10, 11)
    first, second = case(4, 3), case(7, 2)
    for index in fixed:
        second[index] = first[index]
    attributes = {"direction": direction, "hidden_size": hidden}
    compare("DynamicQuantizeLSTM", first, second, results=3, fixed=fixed, tolerance=0.03, **attributes)


def test_dynamic_quantize_lstm_against_float():
    """With the weights as they are meant, it is the LSTM of the default domain to the last digits."""
    x, hidden = normal(5, 2, 3), 4
    w, r = integers(1, 3, 16, dtype=np.int8), integers(1, hidden, 16, dtype=np.int8)
    factors, zeros = scale(1, 16), RANDOM.integers(-9, 9, (1, 16)).astype(np.int8)
    operands = [x, w, r, *[None] * 5, factors, zeros, factors, zeros]
    attributes = {"hidden_size": hidden}
    found = glowstone.compile(node_model("DynamicQuantizeLSTM", [operands], attributes, 3, fixed=(1, 2, 8, 9, 10, 11)))
    meant = [((weights.astype(np.float32) - zeros) * factors).transpose(0, 2, 1) for weights in (w, r)]
    expected = glowstone.compile(node_model("LSTM", [[x, *meant]], attributes, 3, fixed=(1, 2), domain=""))
    for ours, theirs in zip(found(x), expected(x), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize(("columns", "past", "mask"), [((), None, False), ((36,), 3, True)])
def test_quantized_attention(dtype, columns, past, mask):
    """Batches of 2 and 1, 3 heads of 4 features."""
    weights = [weights_of(8, 36, dtype=dtype), normal(36), scale(), scale(*columns) / 5]
    zeros = [integers(), np.zeros(columns, dtype)]
    cases = []
    for batch, length in ((2, 5), (1, 4)):
        ends = RANDOM.integers(2, length + (past or 0), batch, np.int32) if mask else None
        before = None if past is None else normal(2, batch, 3, past, 4)
        cases.append([integers(batch, length, 8), *weights, ends, *zeros, before])
    attributes = {"num_heads": 3, "unidirectional": 0 if past is None else 1}
    compare("QAttention", *cases, results=1 if past is None else 2, fixed=(1, 2, 3, 4, 6, 7), **attributes)


@pytest.mark.parametrize("segments", [False, True])
def test_quantized_embedding(segments):
    tables = [integers(count, 8) for count in (20, 12, 2)]
    scales, zeros = [scale() for _ in range(5)], [integers() for _ in range(5)]
    vectors = [integers(8), integers(8)]
    if not segments:
        tables[2] = scales[2] = zeros[2] = None

    def case(batch: int, length: int) -> list[np.ndarray | None]:
        ids, kinds, mask = (RANDOM.integers(0, limit, (batch, length), np.int32) for limit in (20, 2, 2))
        return [ids, kinds if segments else None, *tables, *vectors, mask, *scales, *zeros]

    fixed = [index for index in range(2, 18) if index != 7 and (segments or index not in (4, 10, 15))]
    compare("QEmbedLayerNormalization", case(2, 5), case(3, 12), results=2, fixed=fixed, epsilon=1e-6)


@pytest.mark.parametrize(
    ("kind", "operands", "message"),
    [
        ("MatMulIntegerToFloat", [integers(2, 3), integers(4, 5), scale(), scale()], "inner extents differ"),
        ("DynamicQuantizeMatMul", [normal(2, 3), integers(3, 4), scale(3)], "broadcast"),
        ("QGemm", [integers(2, 3), scale(), integers(), integers(4, 4), scale()], "inner extents differ"),
        (
            "DynamicQuantizeLSTM",
            [normal(2, 1, 3), integers(1, 3, 8), integers(1, 2, 8), *[None] * 5, scale(3), None, scale(1), None],
            "does not fit the weights",
        ),
    ],
)
def test_refusals(kind, operands, message):
    with pytest.raises(glowstone.GlowstoneError, match=message):
        glowstone.compile(node_model(kind, [operands], {}))
