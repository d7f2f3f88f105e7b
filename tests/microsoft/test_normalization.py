"""Normalizations of the domain com.microsoft, against ONNX Runtime."""

import numpy as np
import pytest
from helpers.microsoft import compare, node_model

import glowstone

RANDOM = np.random.default_rng(8)
TOLERANCES = {np.float32: 2e-5, np.float64: 2e-5, np.float16: 2e-3}


def normal(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(("axis", "results"), [(-1, 1), (1, 1), (2, 2), (-2, 2)])
def test_simplified(dtype, axis, results):
    cases = [(normal(*shape, dtype=dtype), None) for shape in ((2, 3, 5), (4, 3, 5))]
    scale = normal(*cases[0][0].shape[axis:], dtype=dtype)
    cases = [(x, scale) for x, _ in cases]
    tolerance = TOLERANCES[dtype]
    compare("SimplifiedLayerNormalization", *cases, results=results, domain="", tolerance=tolerance, axis=axis)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("form", ["least", "beta", "bias", "broadcast"])
@pytest.mark.parametrize("simplified", [False, True])
def test_skip(dtype, form, simplified):
    def case(batch: int, length: int) -> list[np.ndarray | None]:
        skip = (1, length, 9) if form == "broadcast" else (batch, length, 9)
        parameters = [normal(9, dtype=dtype)]
        if not simplified:
            parameters.append(normal(9, dtype=dtype) if form != "least" else None)
        bias = normal(9, dtype=dtype) if form == "bias" else None
        return [normal(batch, length, 9, dtype=dtype), normal(*skip, dtype=dtype), *parameters, bias]

    kind = "SkipSimplifiedLayerNormalization" if simplified else "SkipLayerNormalization"
    first = case(2, 3)
    for results in ((True,), (True, False, False, True)):
        second = [*case(1, 7)[:2], *first[2:]]
        compare(kind, first, second, results=results, tolerance=TOLERANCES[dtype], epsilon=1e-5)


def test_statistics_of_skip_layer_normalization():
    x, skip, gamma = normal(2, 3, 8), normal(2, 3, 8), normal(8)
    for kind in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"):
        model = glowstone.compile(node_model(kind, [(x, skip, gamma)], {"epsilon": 1e-3}, results=3))
        y, mean, factor = model(x, skip, gamma)
        total = (x + skip).astype(np.float64)
        centre = total.mean(-1, keepdims=True) if kind.startswith("SkipL") else np.zeros((2, 3, 1))
        np.testing.assert_allclose(mean, centre, atol=1e-6)
        np.testing.assert_allclose(factor, 1 / np.sqrt(np.square(total - centre).mean(-1, keepdims=True) + 1e-3), 1e-5)
        np.testing.assert_allclose(y, (total - centre) * factor * gamma, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("form", ["words", "segments", "mask", "positions", "one row of positions"])
@pytest.mark.parametrize("results", [(True, True), (True, True, True)])
def test_embedding(dtype, form, results):
    words, places, kinds = (normal(count, 8, dtype=dtype) for count in (20, 12, 2))
    gamma, beta = normal(8, dtype=dtype), normal(8, dtype=dtype)

    def case(batch: int, length: int) -> list[np.ndarray | None]:
        ids, segments, mask = (RANDOM.integers(0, limit, (batch, length), np.int32) for limit in (20, 2, 2))
        rows = 1 if form == "one row of positions" else batch
        positions = RANDOM.integers(0, 12, (rows, length), np.int32)
        has_segments = form != "words"
        return [
            ids,
            segments if has_segments else None,
            words,
            places,
            kinds if has_segments else None,
            gamma,
            beta,
            mask if form == "mask" else None,
            positions if "positions" in form else None,
        ]

    compare(
        "EmbedLayerNormalization", case(2, 5), case(3, 12), results=results, fixed=(2, 3, 4, 5, 6),
        tolerance=TOLERANCES[dtype], epsilon=1e-6,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "operands", "attributes", "message"),
    [
        ("SkipLayerNormalization", [normal(1, 1, 4), normal(2, 3, 4), normal(4)], {}, "do not broadcast to the input"),
        ("SkipLayerNormalization", [normal(2, 3, 4), normal(2, 3, 5), normal(4)], {}, "broadcast"),
        ("SimplifiedLayerNormalization", [normal(2, 3), normal(3)], {"stash_type": 10}, "attribute stash_type"),
        ("SimplifiedLayerNormalization", [normal(2, 3), normal(3)], {"axis": 2}, "axis out of range"),
        (
            "EmbedLayerNormalization",
            [np.zeros((2, 3), np.int32), np.zeros((2, 3), np.int32), normal(5, 4), normal(5, 4), None, *normal(2, 4)],
            {},
            "segment IDs and their embedding",
        ),
    ],
)
def test_refusals(kind, operands, attributes, message):
    with pytest.raises(glowstone.GlowstoneError, match=message):
        glowstone.compile(node_model(kind, [operands], attributes))


def test_an_embedding_out_of_range_is_an_error_of_the_call():
    ids = np.array([[1, 9]], np.int32)
    operands = [ids, None, normal(5, 4), normal(2, 4), None, normal(4), normal(4)]
    model = glowstone.compile(node_model("EmbedLayerNormalization", [operands], {}, 2, fixed=(2, 3, 5, 6)))
    with pytest.raises(glowstone.GlowstoneError, match="9"):
        model(ids)
