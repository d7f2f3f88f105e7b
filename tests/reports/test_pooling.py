"""Pooling windows that reach into padding or past it: ceil_mode, count_include_pad, float16."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from helpers.reports import check_nodes, normal, one_node


def windows(extent, kernel, stride, begin, end, ceil_mode, dilation=1):
    """For each window of one axis: which elements it sees, and how many places within the padded extent."""
    span = dilation * (kernel - 1) + 1
    steps = (extent + begin + end - span) / stride
    count = (math.ceil(steps) if ceil_mode else math.floor(steps)) + 1
    if ceil_mode and (count - 1) * stride >= extent + begin:
        count -= 1  # a window must begin before the padding at the end
    places = [[step * stride - begin + tap * dilation for tap in range(kernel)] for step in range(count)]
    return [([p for p in one if 0 <= p < extent], sum(p < extent + end for p in one)) for one in places]


def pooled(x, kernel, strides, pads, *, ceil_mode, count_include_pad=0, dilations=None, largest=False):
    """Pooling by its definition, in float64: an image [N, C, spatial ...], pads as ONNX has them."""
    rank = len(kernel)
    axes = [
        windows(*axis)
        for axis in zip(
            x.shape[2:],
            kernel,
            strides,
            pads[:rank],
            pads[rank:],
            [ceil_mode] * rank,
            dilations or [1] * rank,
            strict=True,
        )
    ]
    result = np.empty((*x.shape[:2], *map(len, axes)))
    for place in itertools.product(*(range(len(axis)) for axis in axes)):
        seen, counts = zip(*(axis[index] for axis, index in zip(axes, place, strict=True)), strict=True)
        window = x.astype(np.float64)[(..., *np.ix_(*seen))].reshape(*x.shape[:2], -1)
        divisor = math.prod(counts) if count_include_pad else window.shape[-1]
        result[(..., *place)] = window.max(axis=-1) if largest else window.sum(axis=-1) / divisor
    return result.astype(x.dtype)


def pool(kind, x, kernel, strides, pads, opset=22, **attributes):
    """A pooling node, and what it gives."""
    shared = {"strides": strides, "pads": pads, "ceil_mode": 1, **attributes}
    node = one_node(kind, x, opset=opset, kernel_shape=kernel, **shared)
    return node, [pooled(x, kernel, largest=kind == "MaxPool", **shared)]


def check_pools(*cases, tolerance=2e-5):
    nodes, expected = zip(*cases, strict=True)
    assert all(np.isfinite(array).all() for (array,) in expected)
    check_nodes(*nodes, expected=expected, tolerance=tolerance)


@pytest.mark.parametrize("opset", [10, 11, 18, 19, 22])
def test_the_last_average_divides_by_what_lies_within_the_padding(opset):
    """onnxruntime#16203, onnxruntime#29629, pytorch#183528: in every opset that has ceil_mode."""
    check_pools(
        *(
            pool("AveragePool", normal(1, 2, extent), [kernel], [stride], [pad, pad], opset, count_include_pad=include)
            for extent, kernel, stride, pad in ((9, 7, 3, 3), (6, 3, 2, 1), (10, 4, 3, 2))
            for include in (0, 1)
        )
    )


WINDOWS = [
    ((1, 1, 2, 2), [1, 1], [2, 2], [0, 0, 1, 1]),
    ((1, 2, 4), [2], [3], [0, 1]),
    ((1, 1, 3, 3), [2, 2], [3, 3], [1, 0, 0, 1]),
    ((2, 1, 5, 3, 2), [3, 2, 1], [4, 2, 2], [1, 1, 0, 1, 1, 0]),
]


@pytest.mark.parametrize("kind", ["AveragePool", "MaxPool"])
def test_no_window_lies_in_padding_alone(kind):
    """onnx#4958, onnx#5235, onnxruntime#16351: such a window would give NaN or the lowest number."""
    check_pools(*(pool(kind, normal(*shape), *window) for shape, *window in WINDOWS))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_averages_with_uneven_padding(dtype):
    """onnx#4961: also in half precision."""
    x = normal(1, 1, 5, 5, dtype=dtype)
    check_pools(
        *(
            pool("AveragePool", x, [3, 3], [2, 2], pads, count_include_pad=include)
            for pads in ([1, 1, 2, 2], [0, 1, 1, 0], [2, 2, 1, 1])
            for include in (0, 1)
        ),
        tolerance=1e-3 if dtype == np.float16 else 2e-5,
    )


@pytest.mark.parametrize("kind", ["AveragePool", "MaxPool"])
def test_windows_of_taps_apart(kind):
    """onnx#5235 with dilations: a window is as wide as its taps are apart."""
    check_pools(pool(kind, normal(1, 2, 7, 6), [2, 2], [3, 2], [1, 0, 1, 2], dilations=[2, 3]))
