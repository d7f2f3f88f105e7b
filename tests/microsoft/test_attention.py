"""Attention, MultiHeadAttention and RotaryEmbedding of the domain com.microsoft, against ONNX Runtime."""

import numpy as np
import pytest
from helpers.microsoft import assert_close, compare, feeds_of, node_model, runtime_results
from onnx import TensorProto, helper

import glowstone

RANDOM = np.random.default_rng(11)
TOLERANCES = {np.float32: 2e-5, np.float16: 4e-3}
BATCH, LENGTH, PAST, HEADS, SIZE, WIDTH = 2, 5, 3, 3, 4, 6
"""SIZE: features of a head; WIDTH: features of x."""


def normal(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


def bounds(batch: int, total: int, form: str) -> np.ndarray | None:
    """A mask of the form, of which every query sees something."""
    ends = RANDOM.integers(2, total + 1, batch)
    if form == "ends":
        return ends.astype(np.int32)
    if form == "starts":
        return np.concatenate([ends, RANDOM.integers(0, 2, batch)]).astype(np.int32)
    if form == "sums":
        return np.concatenate([ends, np.zeros(2 * batch + 2)]).astype(np.int32)
    return None


def mask_of(batch: int, length: int, total: int, form: str) -> np.ndarray | None:
    shapes = {"keys": (batch, total), "queries and keys": (batch, length, total)}
    if form not in shapes:
        return bounds(batch, total, form)
    mask = RANDOM.integers(0, 2, shapes[form], np.int32)
    mask[..., 0] = 1
    return mask


def attention_case(
    batch: int, length: int, past: int | None, mask: str, bias: tuple[bool, bool] | None, dtype: type = np.float32
) -> list[np.ndarray | None]:
    total = length + (past or 0)
    added = None
    if bias is not None:
        added = normal(batch if bias[0] else 1, HEADS if bias[1] else 1, length, total, dtype=dtype)
    before = None if past is None else normal(2, batch, HEADS, past, SIZE, dtype=dtype)
    return [normal(batch, length, WIDTH, dtype=dtype), None, None, mask_of(batch, length, total, mask), before, added]


def compare_attention(first: list, second: list, results: int, dtype: type = np.float32, **attributes: object) -> None:
    weights = [normal(WIDTH, 3 * HEADS * SIZE, dtype=dtype), normal(3 * HEADS * SIZE, dtype=dtype)]
    for case in (first, second):
        case[1:3] = weights
    compare(
        "Attention", first, second, results=results, fixed=(1, 2), tolerance=TOLERANCES[dtype], num_heads=HEADS,
        **attributes,
    )  # fmt: skip


@pytest.mark.parametrize("mask", ["none", "ends", "starts", "sums", "keys", "queries and keys"])
@pytest.mark.parametrize("past", [None, PAST])
@pytest.mark.parametrize("causal", [0, 1])
def test_attention(mask, past, causal):
    first = attention_case(BATCH, LENGTH, past, mask, None)
    second = attention_case(1, 3, None if past is None else 7, mask, None)
    compare_attention(first, second, 2, unidirectional=causal)


@pytest.mark.parametrize(
    ("bias", "mask"),
    [((False, False), "none"), ((True, False), "keys"), ((False, True), "none"), ((True, True), "keys")],
)
def test_attention_with_a_bias_of_scores(bias, mask):
    first, second = attention_case(BATCH, LENGTH, None, mask, bias), attention_case(3, 2, None, mask, bias)
    compare_attention(first, second, 1, scale=0.3, mask_filter_value=-500.0)


def test_attention_in_half_precision():
    for mask, past in (("keys", PAST), ("ends", None)):
        cases = [attention_case(batch, 4, past, mask, None, np.float16) for batch in (2, 1)]
        compare_attention(*cases, 2, np.float16, unidirectional=1)


def test_attention_hides_a_whole_row_as_onnx_runtime_does():
    """With a finite filter value, a row that sees nothing sees all."""
    case = attention_case(BATCH, LENGTH, None, "keys", None)
    case[3][1] = 0
    compare_attention(case, case, 1)


def test_attention_without_projection_bias_and_with_wider_values():
    x, weights = normal(BATCH, LENGTH, WIDTH), normal(WIDTH, 2 * HEADS * SIZE + HEADS * 5)
    sizes = [HEADS * SIZE, HEADS * SIZE, HEADS * 5]
    compare("Attention", [x, weights], fixed=(1,), num_heads=HEADS, qkv_hidden_sizes=sizes)


def test_a_square_mask_is_read_before_the_last_key():
    case = attention_case(BATCH, LENGTH, PAST, "none", None)
    weights = [normal(WIDTH, 3 * HEADS * SIZE), normal(3 * HEADS * SIZE)]
    square = RANDOM.integers(0, 2, (BATCH, 1, 12, 12), np.int32)
    square[..., 0] = 1
    total = LENGTH + PAST
    results = []
    for mask in (square, np.ascontiguousarray(square[:, 0, PAST:total, :total])):
        operands = [case[0], *weights, mask, case[4]]
        model = glowstone.compile(node_model("Attention", [operands], {"num_heads": HEADS}))
        results.append(model.run(feeds_of(operands))["y0"])
    np.testing.assert_allclose(*results, atol=1e-6)


def heads_case(batch: int, length: int, keys: int, form: str, past: int | None = None) -> list[np.ndarray | None]:
    """Operands 0 to 7 of MultiHeadAttention without masks."""
    width = HEADS * SIZE
    value_width = HEADS * 5 if form == "wide values" else width
    key, value = normal(batch, keys, width), normal(batch, keys, value_width)
    if form == "encoder":
        key, value = (normal(batch, HEADS, keys, SIZE) for _ in range(2))
    bias = normal(2 * width + value_width) if form in ("bias", "wide values") else None
    before = [None if past is None else normal(batch, HEADS, past, SIZE) for _ in range(2)]
    return [normal(batch, length, width), key, value, bias, None, None, *before]


@pytest.mark.parametrize(
    ("form", "mask"),
    [
        ("plain", "none"),
        ("plain", "queries and keys"),
        ("bias", "ends"),
        ("bias", "keys"),
        ("wide values", "none"),
        ("wide values", "sums"),
        ("encoder", "none"),
        ("encoder", "keys"),
    ],
)
def test_multi_head_attention(form, mask):
    first, second = heads_case(BATCH, LENGTH, 4, form), heads_case(1, 1, 9, form)
    first[4], second[4] = mask_of(BATCH, LENGTH, 4, mask), mask_of(1, 1, 9, mask)
    second[3] = first[3]
    compare("MultiHeadAttention", first, second, fixed=() if first[3] is None else (3,), num_heads=HEADS)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("mask", ["none", "keys"])
@pytest.mark.parametrize("bias", [None, (True, False), (False, True)])
def test_multi_head_attention_with_a_past(causal, mask, bias):
    cases = []
    for batch, length, past in ((BATCH, LENGTH, PAST), (1, 1, 8)):
        case = heads_case(batch, length, length, "bias", past)
        case[3] = cases[0][3] if cases else case[3]
        case[4] = mask_of(batch, length, length + past, mask)
        if bias is not None:
            case[5] = normal(batch if bias[0] else 1, HEADS if bias[1] else 1, length, length + past)
        cases.append(case)
    attributes = {"num_heads": HEADS, "unidirectional": causal, "scale": 0.4}
    compare("MultiHeadAttention", *cases, results=3, fixed=(3,), **attributes)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("length", [1, 4])
def test_multi_head_attention_in_a_shared_cache(causal, length):
    """The cache has room for 9 keys; what is behind those in use is not looked at."""
    cases = []
    for past in (3, 0, 9 - length - 1):
        case = heads_case(BATCH, length, length, "plain", 9)
        cases.append([*case, np.array([past], np.int32)])
    compare("MultiHeadAttention", *cases, results=3, num_heads=HEADS, unidirectional=causal)


def test_multi_head_attention_packed():
    """As ONNX Runtime's CPU provider takes them apart only."""
    q, k, v = (normal(BATCH, LENGTH, HEADS, SIZE) for _ in range(3))
    bias = normal(3 * HEADS * SIZE)
    flat = [x.reshape(BATCH, LENGTH, -1) for x in (q, k, v)]
    expected = runtime_results(
        node_model("MultiHeadAttention", [[*flat, bias]], {"num_heads": HEADS}), feeds_of([*flat, bias])
    )[0]
    forms = ([np.stack([q, k, v], 3), None, None, bias], [flat[0], np.stack([k, v], 3), None, bias])
    for operands in forms:
        model = glowstone.compile(node_model("MultiHeadAttention", [operands], {"num_heads": HEADS}))
        assert_close(model.run(feeds_of(operands))["y0"], expected, 2e-5)


def test_scores_of_multi_head_attention():
    case = heads_case(BATCH, LENGTH, 4, "plain")
    case[4] = mask_of(BATCH, LENGTH, 4, "keys")
    model = node_model("MultiHeadAttention", [case], {"num_heads": HEADS}, [True, False, False, True])
    model.graph.output[1].CopyFrom(helper.make_tensor_value_info("y3", TensorProto.FLOAT, None))
    found = list(glowstone.compile(model).run(feeds_of(case)).values())
    for ours, theirs in zip(found, runtime_results(model, feeds_of(case)), strict=True):
        assert_close(ours, theirs, 2e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(("interleaved", "apart"), [(0, True), (1, False)])
@pytest.mark.parametrize(("part", "first_only"), [(False, True), (False, False), (True, False)])
def test_rotary_embedding(dtype, interleaved, apart, part, first_only):
    size, turned = 8, (4 if part else 8)
    tables = [normal(20, turned // 2, dtype=dtype) for _ in range(2)]

    def case(batch: int, length: int) -> list[np.ndarray]:
        shape = (batch, HEADS, length, size) if apart else (batch, length, HEADS * size)
        positions = RANDOM.integers(0, 13, (1,) if first_only else (batch, length))
        return [normal(*shape, dtype=dtype), positions, *tables]

    attributes = {"num_heads": HEADS, "rotary_embedding_dim": turned} if part else {}
    compare(
        "RotaryEmbedding", case(2, 5), case(1, 7), fixed=(2, 3), tolerance=TOLERANCES[dtype], interleaved=interleaved,
        **attributes,
    )  # fmt: skip


X, WEIGHTS = normal(2, 3, 6), normal(6, 36)


@pytest.mark.parametrize(
    ("kind", "operands", "attributes", "message"),
    [
        ("Attention", [X, WEIGHTS], {}, "attribute num_heads is missing"),
        ("Attention", [X, WEIGHTS], {"num_heads": 0}, "num_heads is no number of heads"),
        ("Attention", [X, WEIGHTS], {"num_heads": 5}, "do not split in heads"),
        ("Attention", [X, WEIGHTS], {"num_heads": 3, "do_rotary": 1}, "attribute do_rotary"),
        ("Attention", [X, WEIGHTS], {"num_heads": 3, "qkv_hidden_sizes": [12, 6, 18]}, "qkv_hidden_sizes is wrong"),
        ("Attention", [X, WEIGHTS], {"num_heads": 3, "qkv_hidden_sizes": [12, 12, 6]}, "do not fill the last axis"),
        ("Attention", [X, WEIGHTS, None, np.ones(5, np.int32)], {"num_heads": 3}, "none of the known forms"),
        ("Attention", [X, WEIGHTS, None, np.ones((2, 4), np.int32)], {"num_heads": 3}, "number of elements"),
        ("Attention", [X, WEIGHTS, None, None, normal(2, 2, 3, 4)], {"num_heads": 3}, "the past is not of rank 5"),
        (
            "Attention", [X, WEIGHTS, None, None, normal(2, 2, 3, 4, 4)],
            {"num_heads": 3, "past_present_share_buffer": 1}, "an operand is missing",
        ),
        ("Attention", [X[0, 0], WEIGHTS], {"num_heads": 3}, "x is not of rank 3"),
        ("MultiHeadAttention", [X], {"num_heads": 3}, "keys or values are missing"),
        ("MultiHeadAttention", [X, X[0, 0], X, normal(18)], {"num_heads": 3}, "heads do not come apart"),
        ("MultiHeadAttention", [X, X, X, X[0, 0, 0]], {"num_heads": 3}, "do not fill the last axis"),
        ("MultiHeadAttention", [X.astype(np.int32)] * 3, {"num_heads": 3}, "attention is not of floats"),
        ("MultiHeadAttention", [X, X, X, normal(17)], {"num_heads": 3}, "do not fill the last axis"),
        ("MultiHeadAttention", [X, X, X, *[None] * 6, np.ones((2, 1, 4), np.int32)], {"num_heads": 3}, "cache_ind"),
        ("MultiHeadAttention", [X, X, X, *[None] * 5, np.ones(1, np.int32)], {"num_heads": 3}, "a cache is missing"),
        ("MultiHeadAttention", [X, X, X, None, None, normal(1, 1, 3, 2)], {"num_heads": 3}, "number of elements"),
        ("RotaryEmbedding", [X, np.ones(2, np.int64), normal(9, 3), normal(9, 3)], {"num_heads": 1}, "broadcast"),
        ("RotaryEmbedding", [X, np.ones(1, np.int64), normal(9, 3), normal(9, 3)], {"is_packed_batching": 1}, "packed"),
    ],
)  # fmt: skip
def test_refusals(kind, operands, attributes, message):
    with pytest.raises(glowstone.GlowstoneError, match=message) as caught:
        glowstone.compile(node_model(kind, [operands], attributes))
    assert caught.value.node == "the node"


def test_a_length_behind_the_cache_is_an_error_of_the_call():
    case = [*heads_case(1, 2, 2, "plain", 6), np.array([3], np.int32)]
    model = glowstone.compile(node_model("MultiHeadAttention", [case], {"num_heads": HEADS}, 3))
    model.run(feeds_of(case))
    with pytest.raises(glowstone.GlowstoneError, match="out of range"):
        model.run({**feeds_of(case), "x8": np.array([5], np.int32)})
