"""Results of as many elements as the data say: machine code against NumPy and ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from instruction_check import Storage, check, random, sample
from onnx import TensorProto, helper

from glowstone.lir.operations.counted import (
    DistinctSlices,
    FindNonZero,
    KeepSlices,
    ListSelected,
    SuppressOverlaps,
)
from glowstone.ops.element_sets import ALL
from glowstone.types import ElementType

I64, F32 = ElementType.I64, ElementType.F32
ELEMENTS = sorted(ALL, key=str)
SLICES = [(1, 40, 1), (2, 37, 3), (1, 9, 5), (3, 8, 1), (1, 0, 1), (0, 4, 2), (2, 3, 0), (1, 1, 1), (2, 0, 3)]


def few(shape, element):
    """Numbers of which many are equal, 0 among them."""
    low = 0 if not element.is_signed else -1
    return random.integers(low, 2, shape).astype(element.dtype)


def front(buffer, count):
    """The elements that count; all others must be zero."""
    assert not buffer[count:].any()
    return buffer[:count]


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_find_non_zero(element):
    for shape in [(), (40,), (3, 7), (2, 1, 5, 3), (0,), (2, 0, 3), (1, 1)]:
        storage = Storage()
        x = few(shape, element)
        views = [storage.result((x.ndim * x.size,), I64), storage.result((1,), I64), storage.add(x)]
        positions, count, _ = check(FindNonZero(), views, storage).arrays
        expected = np.argwhere(x).T
        assert count[0] == expected.shape[1]
        np.testing.assert_array_equal(front(positions, expected.size), expected.ravel())


def test_not_a_number_and_the_smallest_numbers_are_not_zero():
    storage = Storage()
    x = np.array([0.0, -0.0, np.nan, 1e-45, -np.inf], np.float32)
    views = [storage.result((5,), I64), storage.result((1,), I64), storage.add(x)]
    positions, _, _ = check(FindNonZero(), views, storage).arrays
    assert positions.tolist() == [2, 3, 4, 0, 0]


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_keep_slices(element):
    for shape in SLICES:
        for length in {0, shape[1] // 2, shape[1]}:
            storage = Storage()
            x, condition = few(shape, element), random.random(length) < 0.5
            views = [storage.result((x.size,), element), storage.result((1,), I64)]
            y, count, _, _ = check(KeepSlices(), [*views, storage.add(x), storage.add(condition)], storage).arrays
            expected = np.compress(condition, x, axis=1)
            assert count[0] == expected.shape[1]
            np.testing.assert_array_equal(front(y, expected.size), expected.ravel())


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_distinct_slices(element, ordered):
    for shape in SLICES:
        storage = Storage()
        x = few(shape, element)
        views = [storage.result((x.size,), element), *(storage.result((shape[1],), I64) for _ in range(3))]
        views += [storage.result((1,), I64), storage.add(x)]
        y, first, inverse, occurrences, count, _ = check(DistinctSlices(ordered), views, storage).arrays
        keys = [tuple(x[:, r].astype(np.float64).ravel().tolist()) for r in range(shape[1])]
        distinct = list(dict.fromkeys(keys))
        distinct = sorted(distinct) if ordered else distinct
        assert count[0] == len(distinct)
        assert inverse.tolist() == [distinct.index(key) for key in keys]
        assert front(first, len(distinct)).tolist() == [keys.index(key) for key in distinct]
        assert front(occurrences, len(distinct)).tolist() == [keys.count(key) for key in distinct]
        expected = x[:, first[: len(distinct)]]
        np.testing.assert_array_equal(front(y, expected.size), expected.ravel())


def test_distinct_numbers_among_many():
    storage = Storage()
    x = random.integers(0, 700, (1, 5000, 1)).astype(np.float32)
    x[0, ::50] = np.nan
    views = [storage.result((5000,)), *(storage.result((5000,), I64) for _ in range(3))]
    y, first, inverse, occurrences, count, _ = check(
        DistinctSlices(), [*views, storage.result((1,), I64), storage.add(x)], storage
    ).arrays
    expected = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for found, wanted in zip((y, first, inverse, occurrences), expected, strict=True):
        np.testing.assert_array_equal(found[: wanted.size], wanted.ravel())
    assert count[0] == expected[0].size


def suppress(boxes, scores, most, overlap, threshold=None, by_center=False, room=None):
    """Rows of (image, class, box)."""
    storage = Storage()
    classes, room = scores.shape[0] * scores.shape[1], boxes.shape[1] if room is None else room
    numbers = [np.array([overlap], np.float32), np.array([most], np.int64)]
    numbers += [] if threshold is None else [np.array([threshold], np.float32)]
    views = [storage.result((classes, room), I64), storage.result((classes,), I64)]
    views += [storage.add(array) for array in (boxes, scores, *numbers)]
    selected, counts, *_ = check(SuppressOverlaps(by_center, threshold is not None), views, storage).arrays
    listing = Storage()
    views = [listing.result((3 * selected.size,), I64), listing.result((1,), I64)]
    views += [listing.add(selected), listing.add(counts)]
    rows, count, *_ = check(ListSelected(), views, listing, integers=(scores.shape[1],)).arrays
    return front(rows, 3 * count[0]).reshape(-1, 3)


def runtime_suppress(boxes, scores, most, overlap, threshold, by_center):
    names = ("boxes", "scores", "most", "overlap", "threshold")
    limits = {"most": np.array([most]), "overlap": np.array([overlap], np.float32)}
    if threshold is not None:
        limits["threshold"] = np.array([threshold], np.float32)
    feeds = {"boxes": boxes, "scores": scores, **limits}
    node = helper.make_node(
        "NonMaxSuppression", [name for name in names if name in feeds], ["y"], center_point_box=by_center
    )
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in feeds.items()
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.INT64, None)]
    model = helper.make_model(
        helper.make_graph([node], "g", inputs, outputs), opset_imports=[helper.make_opsetid("", 11)], ir_version=8
    )
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)[0]


@pytest.mark.parametrize("by_center", [False, True])
@pytest.mark.parametrize("threshold", [None, 0.4])
@pytest.mark.parametrize(("overlap", "most"), [(0.3, 100), (0.0, 5), (1.0, 7), (0.5, 0)])
def test_suppression(by_center, threshold, overlap, most):
    boxes = random.random((2, 60, 4), np.float32)
    scores = np.round(random.random((2, 3, 60), np.float32), 1)  # with ties
    found = suppress(boxes, scores, most, overlap, threshold, by_center)
    np.testing.assert_array_equal(found, runtime_suppress(boxes, scores, most, overlap, threshold, by_center))


def test_suppression_with_less_room_than_boxes():
    boxes, scores = sample((1, 9, 4)), sample((1, 2, 9))
    found = suppress(boxes, scores, 3, 0.9, room=3)
    np.testing.assert_array_equal(found, runtime_suppress(boxes, scores, 3, 0.9, None, False))


@pytest.mark.parametrize("shape", [(1, 0, 2), (0, 3, 2), (2, 3, 0)])
def test_suppression_of_nothing(shape):
    images, count, classes = shape
    boxes, scores = np.zeros((images, count, 4), np.float32), np.zeros((images, classes, count), np.float32)
    assert suppress(boxes, scores, 4, 0.5, room=min(count, 4)).shape == (0, 3)


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf, 1e38])
def test_strange_boxes_scores_and_limits(strange):
    boxes, scores = sample((1, 8, 4)), sample((1, 2, 8))
    boxes[0, 2, 1], boxes[0, 5], scores[0, 1, ::3] = strange, strange, strange
    with np.errstate(all="ignore"):
        for most in (-(2**63), 2**63 - 1, 3):
            for threshold in (None, strange, 0.0):
                assert (suppress(boxes, scores, most, strange, threshold)[:, 2] < 8).all()
