"""Models that others quantized: sums of integers are exact, and scales belong to their channels."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.reports import by_runtime, check, check_nodes, model_of, normal, one_node

random = np.random.default_rng(0)


@pytest.mark.parametrize(("left", "right"), [(np.uint8, np.int8), (np.uint8, np.uint8), (np.int8, np.int8)])
def test_the_largest_products_do_not_saturate(left, right):
    """onnxruntime-inference-examples#319: pairs of extreme bytes exceed 16 bits, where some instructions stop."""
    a = np.array([np.iinfo(left).min, np.iinfo(left).max], left)[random.integers(0, 2, (5, 64))]
    b = np.array([np.iinfo(right).min, np.iinfo(right).max], right)[random.integers(0, 2, (64, 33))]
    a[0], b[:, 0] = np.iinfo(left).max, np.iinfo(right).min
    zeros = np.array(3, left), np.array(-2 if right is np.int8 else 5, right)
    product = (a.astype(np.int64) - zeros[0]) @ (b.astype(np.int64) - zeros[1])
    image, filters = a.reshape(1, 5, 8, 8), b.T.reshape(33, 1, 8, 8)[:5]
    sums = np.einsum("chw,ochw->o", image[0].astype(np.int64) - 3, np.repeat(filters.astype(np.int64), 5, 1) - zeros[1])
    check_nodes(
        one_node("MatMulInteger", a, b, *zeros),
        one_node("MatMulInteger", a, b, *zeros, fixed=[1, 2, 3]),
        one_node("ConvInteger", image, np.repeat(filters, 5, 1), *zeros, fixed=[1, 2, 3]),
        expected=[[product.astype(np.int32)]] * 2 + [[sums.astype(np.int32).reshape(1, 5, 1, 1)]],
    )


DEPTHWISE = """
main (float[1, 8, 9, 9] x) => (float[1, 8, 9, 9] y) {
  bytes = QuantizeLinear (x, sx, zx)
  floats = DequantizeLinear (bytes, sx, zx)
  weights = DequantizeLinear <axis = 0> (w, sw, zw)
  y = Conv <group = 8, pads = [1, 1, 1, 1]> (floats, weights)
}
"""


@pytest.mark.parametrize("per_channel", [True, False])
def test_scales_of_depthwise_filters(per_channel):
    """onnxruntime#11415, #11286, ability-draft-plus#80: filters of very different ranges, with one scale or many."""
    ranges = np.logspace(-3, 1, 8, dtype=np.float32)
    weights = {
        "sx": np.float32(0.03),
        "zx": np.uint8(120),
        "w": random.integers(-127, 128, (8, 1, 3, 3)).astype(np.int8),
        "sw": ranges / 127 if per_channel else np.float32(0.1),
        "zw": np.zeros(8, np.int8) if per_channel else np.int8(0),
    }
    x = normal(1, 8, 9, 9)
    model = model_of(DEPTHWISE, weights=weights)
    compiled = check(model, {"x": x}, expected=by_runtime)
    found, right = compiled(x), by_runtime(model, {"x": x})[0]
    for channel in range(8):  # the smallest channel is as near to its own largest value
        assert np.abs(found[0, channel] - right[0, channel]).max() <= 1e-5 * np.abs(right[0, channel]).max()


def test_quantized_sums_and_products_of_activations():
    """onnxruntime#12638: Mul and Add between dequantized values, as in a detector, to the step."""
    text = """
    main (uint8[1, 4, 6, 6] a, uint8[1, 4, 6, 6] b) => (uint8[1, 4, 6, 6] y) {
      fa = DequantizeLinear (a, sa, za)
      fb = DequantizeLinear (b, sb, zb)
      gate = Sigmoid (fb)
      product = Mul (fa, gate)
      sum = Add (product, fb)
      y = QuantizeLinear (sum, sy, zy)
    }
    """
    weights = {name: np.float32(value) for name, value in (("sa", 0.02), ("sb", 0.05), ("sy", 0.06))}
    weights |= {name: np.uint8(value) for name, value in (("za", 100), ("zb", 140), ("zy", 128))}
    feeds = {name: random.integers(0, 256, (1, 4, 6, 6)).astype(np.uint8) for name in "ab"}
    wide = {name: (feeds[name].astype(np.float64) - weights[f"z{name}"]) * weights[f"s{name}"] for name in "ab"}
    steps = (wide["a"] / (1 + np.exp(-wide["b"])) + wide["b"]) / weights["sy"] + 128
    clear = np.abs(steps - np.floor(steps) - 0.5) > 1e-3  # no halves, which rounding of floats may tip
    assert clear.mean() > 0.98
    model = model_of(text, weights=weights)
    from_runtime = by_runtime(model, feeds)[0]
    expected = np.where(clear, np.clip(np.rint(steps), 0, 255).astype(np.uint8), from_runtime)
    check(model, feeds, expected=[expected])
