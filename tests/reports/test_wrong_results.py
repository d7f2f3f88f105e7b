"""Results that other engines got wrong on small models, some at one level of optimization only."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from helpers.reports import LEVELS, assert_close, by_runtime, check, check_nodes, model_of, normal, one_node

import glowstone


def test_slopes_of_every_shape_that_broadcasts():
    """tvm#18598: PRelu, a slope [4, 1, 4, 4] on channels; slopes go to x as operands of Mul do."""
    x = normal(4, 3, 4, 4)
    slopes = [
        normal(*shape, seed=9)
        for shape in ((4, 1, 4, 4), (3, 1, 1), (1,), (4,), (4, 4), (1, 3, 1, 4), (4, 3, 4, 4), (4, 1, 1, 1))
    ]
    nodes = [one_node("PRelu", x, slope, fixed=[1] if number % 2 else []) for number, slope in enumerate(slopes)]
    check_nodes(*nodes, expected=[[np.where(x < 0, x * slope, x)] for slope in slopes])


SCALARS = """
main (int64 x, int64 y) => (int64 zero, int64 sign, int64 rest, int64 chosen, int64 rounded) {
  two = Constant <value = int64 {2}> ()
  three = Constant <value = int64 {3}> ()
  part = Div(x, three)
  whole = Mul(part, three)
  rest = Sub(x, whole)
  doubled = Add(x, x)
  half = Div(doubled, two)
  zero = Sub(half, x)
  sign = Sign(zero)
  small = Less(rest, y)
  chosen = Where(small, zero, y)
  low = Min(x, y)
  high = Max(x, y)
  span = Sub(high, low)
  middle = Div(span, two)
  rounded = Add(low, middle)
}
"""


def test_chains_of_integer_scalars():
    """tvm#17835, tvm#17876: zero became minus one at the default level, or a level did not compile at all."""
    pairs = itertools.product((0, 1, -1, 7, -8, 2**40 + 1), (0, -3, 5))
    feeds = [{"x": np.array(x), "y": np.array(y)} for x, y in pairs]
    check(model_of(SCALARS), *feeds, expected=by_runtime)


HEAT_MAP = """
main (float[n, 3, 24, 16] x) => (float[n, 4, 24, 16] heat, float[n, 4, 24, 16] high) {
  stem = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, w0)
  normed = BatchNormalization (stem, scale, offset, mean, variance)
  active = Relu (normed)
  deep = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (active, w1)
  deeper = Relu (deep)
  up = ConvTranspose <kernel_shape = [4, 4], strides = [2, 2], pads = [1, 1, 1, 1]> (deeper, w2)
  joined = Add (up, active)
  wide = Resize <mode = "linear"> (joined, , twice)
  maps = Conv (wide, w3)
  heat = Sigmoid (maps)
  peaks = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (heat)
  is_peak = Equal (peaks, heat)
  kept = Cast <to = 1> (is_peak)
  high = Mul (heat, kept)
}
"""


def test_a_heat_map_is_the_same_at_every_level():
    """onnxruntime#18959: a pose network whose maps differed by 61.8 between levels."""
    weights = {
        "w0": normal(8, 3, 3, 3) / 5,
        "scale": normal(8, seed=1),
        "offset": normal(8, seed=2),
        "mean": normal(8, seed=3),
        "variance": np.abs(normal(8, seed=4)) + np.float32(0.5),
        "w1": normal(16, 8, 3, 3, seed=5) / 8,
        "w2": normal(16, 8, 4, 4, seed=6) / 8,
        "w3": normal(4, 8, 1, 1, seed=7),
        "twice": np.array([1, 1, 2, 2], np.float32),
    }
    model = model_of(HEAT_MAP, weights=weights)
    x = normal(2, 3, 24, 16, seed=8)
    heat, _ = by_runtime(model, {"x": x})
    for level, skipped in LEVELS.items():
        compiled = glowstone.compile(model, shapes={"x": x.shape}, options={"skip_passes": skipped})
        for rows in (2, 1):
            found = compiled.run({"x": x[:rows]})
            assert_close(found["heat"], heat[:rows], 1e-4, level)
            np.testing.assert_array_equal(found["high"], peaks_of(found["heat"]), level)


def peaks_of(heat):
    """What is as large as all its neighbours, which within one run is the same number wherever it is read."""
    padded = np.pad(heat, ((0, 0), (0, 0), (1, 1), (1, 1)))
    largest = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3)).max(axis=(-2, -1))
    return np.where(largest == heat, heat, 0)


def test_places_of_the_largest():
    """openvino#30666, openvino#30996: int64 places of equal numbers, first or last, along each axis."""
    x = np.array([[[3, 1, 3], [0, 0, 0]], [[1, 2, 2], [5, 5, -5]], [[-1, -1, 7], [2, 9, 9]]], np.float32)
    nodes, expected = [], []
    for kind, axis, last, keep in itertools.product(("ArgMax", "ArgMin"), (0, -1, 1), (0, 1), (0, 1)):
        choose = np.argmax if kind == "ArgMax" else np.argmin
        place = x.shape[axis] - 1 - choose(np.flip(x, axis), axis) if last else choose(x, axis)
        nodes.append(one_node(kind, x, axis=axis, select_last_index=last, keepdims=keep))
        expected.append([np.expand_dims(place, axis) if keep else place])
    check_nodes(*nodes, expected=expected)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_with_weights(reduction):
    """openvino#20977: SoftmaxCrossEntropyLoss with weights, also of classes that are ignored."""
    scores = normal(3, 5, 4)
    labels = np.random.default_rng(1).integers(0, 5, (3, 4))
    weights = np.linspace(0.25, 2, 5, dtype=np.float32)
    check_nodes(
        *(
            one_node("SoftmaxCrossEntropyLoss", scores, labels, given, results=2, reduction=reduction, **ignored)
            for given in (weights, None)
            for ignored in ({}, {"ignore_index": 2})
        )
    )


def test_quantized_convolution_between_its_neighbours():
    """iree#22865: dequantize, Conv, Relu, quantize, 128 channels; powers of two make every step exact."""
    model = model_of(
        """
        main (int8[1, 128, 14, 14] x) => (int8[1, 128, 14, 14] y) {
          floats = DequantizeLinear (x, sx, zero)
          weights = DequantizeLinear (w, sw, zero)
          bias = DequantizeLinear (b, sb)
          sums = Conv <pads = [1, 1, 1, 1]> (floats, weights, bias)
          active = Relu (sums)
          y = QuantizeLinear (active, sy, zero)
        }
        """,
        weights={
            "sx": np.float32(2**-4),
            "sw": np.float32(2**-6),
            "sb": np.float32(2**-10),
            "sy": np.float32(1),
            "zero": np.int8(0),
            "w": integers(128, 128, 3, 3),
            "b": integers(128, seed=1).astype(np.int32) * 100,
        },
    )
    feeds = {"x": integers(1, 128, 14, 14, seed=2)}
    (expected,) = by_runtime(model, feeds)
    assert len(np.unique(expected)) > 100
    strict = glowstone.compile(model, numerics="strict").run(feeds)["y"]
    np.testing.assert_array_equal(strict, expected)
    relaxed = glowstone.compile(model).run(feeds)["y"].astype(int)
    assert np.abs(relaxed - expected).max() <= 1  # Winograd's sums round, and halves go either way
    assert (relaxed != expected).mean() < 1e-3


def integers(*shape, seed=0):
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def test_products_of_a_few_rows_with_a_bias():
    """iree#23171: MatMul of [1, 1, 96] and [96, 192], and an Add that broadcasts, in either order and of any rank."""
    sums = {0: "b, p{0}{1}", 1: "p{0}{1}, b"}
    nodes = "\n".join(
        f"p{rank}{first} = MatMul (x{rank}, w) y{rank}{first} = Add ({sums[first].format(rank, first)})"
        for rank in (1, 2, 3)
        for first in (0, 1)
    )
    outputs = ", ".join(f"float{[1] * (rank - 1) + [192]} y{rank}{first}" for rank in (1, 2, 3) for first in (0, 1))
    text = f"main (float[96] x1, float[1, 96] x2, float[1, 1, 96] x3) => ({outputs}) {{ {nodes} }}"
    weights = {"w": normal(96, 192) / 10, "b": normal(192, seed=1)}
    feeds = {"x1": normal(96, seed=2), "x2": normal(1, 96, seed=3), "x3": normal(1, 1, 96, seed=4)}
    check(model_of(text, weights=weights), feeds, expected=by_runtime)


DENSE_BLOCK = """
main (float[1, 16, h, 20] x) => (float[1, 32, h, 20] y) {
  n0 = BatchNormalization (x, scale0, offset0, mean0, variance0)
  a0 = Relu (n0)
  g0 = Conv (a0, narrow0)
  r0 = Relu (g0)
  d0 = Conv <pads = [1, 1, 1, 1]> (r0, wide0)
  j0 = Concat <axis = 1> (x, d0)
  n1 = BatchNormalization (j0, scale1, offset1, mean1, variance1)
  a1 = Relu (n1)
  g1 = Conv (a1, narrow1)
  r1 = Relu (g1)
  d1 = Conv <pads = [1, 1, 1, 1]> (r1, wide1)
  y = Concat <axis = 1> (j0, d1)
}
"""


def test_a_dense_block_and_wide_convolutions():
    """iree#20429, iree#23623: convolutions of 16 channels, joined again and again behind normalizations."""
    weights = {}
    for number, channels in enumerate((16, 24)):
        weights |= {
            f"scale{number}": normal(channels, seed=1),
            f"offset{number}": normal(channels, seed=2),
            f"mean{number}": normal(channels, seed=3),
            f"variance{number}": np.abs(normal(channels, seed=4)) + np.float32(0.5),
            f"narrow{number}": normal(12, channels, 1, 1, seed=5) / 4,
            f"wide{number}": normal(8, 12, 3, 3, seed=6) / 10,
        }
    feeds = [{"x": normal(1, 16, rows, 20, seed=7)} for rows in (128, 5, 1)]
    check(model_of(DENSE_BLOCK, weights=weights), *feeds, expected=by_runtime)


def test_reshapes_to_a_matrix():
    """ncnn#4342: 4096 x 8 stays 4096 x 8, however the numbers came about."""
    text = """
    main (float[1, 1, n, 64] x) => (float[m, 8] a, float[k, 4096] b, float[m, 8] c) {
      eight = Constant <value = int64[2] {-1, 8}> ()
      a = Reshape (x, eight)
      row = Constant <value = int64[2] {0, -1}> ()
      long = Constant <value = int64[2] {-1, 4096}> ()
      b = Reshape (a, long)
      flat = Flatten <axis = 0> (b)
      c = Reshape (flat, eight)
    }
    """
    x = normal(1, 1, 512, 64)
    expected = [x.reshape(-1, 8), x.reshape(-1, 4096), x.reshape(-1, 8)]
    check(model_of(text), {"x": x}, expected=expected)


@pytest.mark.parametrize("fixed", [(), (1, 2)], ids=["inputs", "weights"])
def test_every_form_of_gemm(fixed):
    """ncnn#4546, ncnn#6070, hls4ml#447: transposed operands, every shape of the bias, factors."""
    nodes, expected = [], []
    forms = itertools.product((None, (), (1,), (5,), (1, 5), (3, 1), (3, 5)), (0, 1))
    for number, (bias, flip_a) in enumerate(forms):
        flip_b = number // 3 % 2
        a, b = normal(*((4, 3) if flip_a else (3, 4))), normal(*((5, 4) if flip_b else (4, 5)), seed=1)
        c = None if bias is None else np.asarray(normal(*bias, seed=2), np.float32)
        nodes.append(one_node("Gemm", a, b, c, fixed=fixed, transA=flip_a, transB=flip_b, alpha=0.5, beta=-2.0))
        product = (a.T if flip_a else a).astype(np.float64) @ (b.T if flip_b else b)
        expected.append([(0.5 * product - 2.0 * (0 if c is None else c)).astype(np.float32)])
    check_nodes(*nodes, expected=expected)
