"""A detector of the form of YOLOv8 (Jocher et al. 2023): SiLU, split blocks, pyramid of poolings, boxes by softmax."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from networks.writer import OPSET, NetworkWriter

CLASSES = 10
BINS = 16  # of the distribution over the distance to each side of a box
STRIDES = (8, 16, 32)


def build(
    width: int = 16, depth: int = 1, height: int = 160, breadth: int = 160, seed: int = 0, opset: int = OPSET
) -> onnx.ModelProto:
    """images [n, 3, height, breadth] to boxes and scores [n, 4 + CLASSES, anchors]; extents multiples of 32."""
    write = NetworkWriter("yolo", seed, opset)
    x = _layer(write, "images", 3, width, 3, 2)
    levels = []
    for level in range(4):
        channels = width << level
        x = _split_block(write, _layer(write, x, channels, 2 * channels, 3, 2), 2 * channels, 2 * channels, depth)
        levels.append(x)
    x = _pooling_pyramid(write, x, 16 * width)
    small, medium = levels[1], levels[2]
    top = _split_block(write, _joined_above(write, x, medium), 24 * width, 8 * width, depth, residual=False)
    fine = _split_block(write, _joined_above(write, top, small), 12 * width, 4 * width, depth, residual=False)
    down = write.node("Concat", _layer(write, fine, 4 * width, 4 * width, 3, 2), top, axis=1)
    middle = _split_block(write, down, 12 * width, 8 * width, depth, residual=False)
    down = write.node("Concat", _layer(write, middle, 8 * width, 8 * width, 3, 2), x, axis=1)
    coarse = _split_block(write, down, 24 * width, 16 * width, depth, residual=False)
    features = [(fine, 4 * width), (middle, 8 * width), (coarse, 16 * width)]
    detections = _detect(write, features, height, breadth)
    return write.float_model(
        {"images": ("n", 3, height, breadth)}, {"detections": (detections, ("n", 4 + CLASSES, "anchors"))}
    )


def _layer(write: NetworkWriter, x: str, channels: int, filters: int, kernel: int, stride: int = 1) -> str:
    return write.silu(write.convolution(x, channels, filters, kernel, stride=stride, gain=1.5))


def _split_block(write: NetworkWriter, x: str, channels: int, filters: int, depth: int, residual: bool = True) -> str:
    """Half of the channels goes through bottlenecks, and every stage of it is joined."""
    half = filters // 2
    parts = write.split(_layer(write, x, channels, filters, 1), [half, half], axis=1)
    for _ in range(depth):
        y = _layer(write, _layer(write, parts[-1], half, half, 3), half, half, 3)
        parts.append(write.node("Add", parts[-1], y) if residual else y)
    return _layer(write, write.node("Concat", *parts, axis=1), (2 + depth) * half, filters, 1)


def _pooling_pyramid(write: NetworkWriter, x: str, channels: int) -> str:
    half = channels // 2
    parts = [_layer(write, x, channels, half, 1)]
    for _ in range(3):
        parts.append(
            write.node("MaxPool", parts[-1], ceil_mode=0, kernel_shape=[5, 5], pads=[2, 2, 2, 2], strides=[1, 1])
        )
    return _layer(write, write.node("Concat", *parts, axis=1), 4 * half, channels, 1)


def _joined_above(write: NetworkWriter, x: str, other: str) -> str:
    """x twice as large, joined with the feature of the level below."""
    scales = write.constant([1.0, 1.0, 2.0, 2.0])
    larger = write.node(
        "Resize", x, "", scales, coordinate_transformation_mode="asymmetric", mode="nearest", nearest_mode="floor"
    )
    return write.node("Concat", larger, other, axis=1)


def _detect(write: NetworkWriter, features: Sequence[tuple[str, int]], height: int, breadth: int) -> str:
    batch = write.extent(features[0][0], 0)
    levels = []
    for x, channels in features:
        sides = write.convolution(_layer(write, x, channels, 4 * BINS, 3), 4 * BINS, 4 * BINS, 1, gain=1.0)
        kinds = write.convolution(_layer(write, x, channels, 4 * BINS, 3), 4 * BINS, CLASSES, 1, gain=1.0)
        joined = write.node("Concat", sides, kinds, axis=1)
        levels.append(write.reshape(joined, batch, 4 * BINS + CLASSES, -1))
    sides, kinds = write.split(write.node("Concat", *levels, axis=2), [4 * BINS, CLASSES], axis=1)
    spread = write.node("Transpose", write.reshape(sides, batch, 4, BINS, -1), perm=[0, 2, 1, 3])
    weights = write.parameter(np.arange(BINS, dtype=np.float32).reshape(1, BINS, 1, 1))
    expected = write.node("Conv", write.node("Softmax", spread, axis=1), weights, kernel_shape=[1, 1])
    boxes = _boxes(write, write.reshape(expected, batch, 4, -1), height, breadth)
    return write.node("Concat", boxes, write.node("Sigmoid", kinds), axis=1)


def _boxes(write: NetworkWriter, distances: str, height: int, breadth: int) -> str:
    """Centre and size in pixels from the distances of an anchor to the four sides."""
    anchors, strides = _anchors(height, breadth)
    points = write.parameter(anchors)
    low = write.node("Sub", points, write.slice(distances, 1, 0, 2))
    high = write.node("Add", points, write.slice(distances, 1, 2, 4))
    centre = write.node("Div", write.node("Add", low, high), write.constant(2.0))
    both = write.node("Concat", centre, write.node("Sub", high, low), axis=1)
    return write.node("Mul", both, write.parameter(strides))


def _anchors(height: int, breadth: int) -> tuple[np.ndarray, np.ndarray]:
    """Centres of the cells of all levels [1, 2, anchors], and the stride of each [1, anchors]."""
    points, strides = [], []
    for stride in STRIDES:
        rows, columns = np.meshgrid(np.arange(height // stride), np.arange(breadth // stride), indexing="ij")
        points.append(np.stack([columns.ravel(), rows.ravel()]) + 0.5)
        strides.append(np.full((1, rows.size), stride))
    return np.concatenate(points, 1)[None].astype(np.float32), np.concatenate(strides, 1).astype(np.float32)
