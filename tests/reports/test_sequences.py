"""Recurrent networks against their equations in float64, and attention whose rows may see nothing."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.reports import check, check_node, check_nodes, model_of, normal, one_node

random = np.random.default_rng(0)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_pass(x, w, r, b, h, c, lengths, backward):
    """One direction of ONNX's LSTM, in float64: gates in the order input, output, forget, cell."""
    outputs = np.zeros((len(x), *h.shape))
    for batch, length in enumerate(lengths):
        state, cell = h[batch], c[batch]
        for step in reversed(range(length)) if backward else range(length):
            gates = w @ x[step, batch] + r @ state + b[: len(w)] + b[len(w) :]
            i, o, f, candidate = np.split(gates, 4)
            cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(candidate)
            state = sigmoid(o) * np.tanh(cell)
            outputs[step, batch] = state
        h[batch], c[batch] = state, cell
    return outputs, h, c


def lstm(x, w, r, b, lengths, h, c):
    """Y, Y_h, Y_c of all directions."""
    wide = [np.asarray(array, np.float64) for array in (x, w, r, b, h, c)]
    x, w, r, b, h, c = wide
    passes = [lstm_pass(x, w[d], r[d], b[d], h[d].copy(), c[d].copy(), lengths, d == 1) for d in range(len(w))]
    y, last, cells = zip(*passes, strict=True)
    return [array.astype(np.float32) for array in (np.stack(y, axis=1), np.stack(last), np.stack(cells))]


@pytest.mark.parametrize(
    ("steps", "batch", "width", "hidden", "directions"), [(35, 1, 200, 200, 1), (5, 3, 4, 6, 2)], ids=["long", "both"]
)
def test_lstm_from_given_states(steps, batch, width, hidden, directions):
    """iree#18441, onnx-tensorflow#409, onnxscript#2674: long sums, both directions, given states, gates in order."""
    scale = 1 / np.sqrt(hidden)
    x = normal(steps, batch, width)
    w, r = (normal(directions, 4 * hidden, size, seed=size) * np.float32(scale) for size in (width, hidden))
    b = normal(directions, 8 * hidden, seed=1)
    h, c = (normal(directions, batch, hidden, seed=seed) for seed in (2, 3))
    lengths = np.array([steps, max(steps - 2, 1), 1][:batch], np.int32)
    check_node(
        "LSTM",
        x,
        w,
        r,
        b,
        lengths,
        h,
        c,
        fixed=[1, 2, 3],
        results=3,
        expected=lstm(x, w, r, b, lengths, h, c),
        hidden_size=hidden,
        direction="forward" if directions == 1 else "bidirectional",
    )


def attention(q, k, v, mask):
    """Attention by its definition in float64; rows that see nothing are zero. `mask` is of booleans."""
    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    scores = np.where(mask, q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    largest = scores.max(axis=-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    total = powers.sum(axis=-1, keepdims=True)
    return powers / np.where(total > 0, total, 1) @ v


@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize("form", ["booleans", "numbers"])
def test_a_row_that_sees_nothing_is_zero(opset, form):
    """onnx#8068, iree#24175, pytorch#159973, rten#1321: no NaN; neighbouring rows are as ever."""
    q, k, v = (normal(2, 3, length, 8, seed=seed) for seed, length in enumerate((5, 7, 7)))
    mask = random.random((2, 1, 5, 7)) < 0.6
    mask[0, 0, 1] = mask[1, 0, 4] = False
    given = mask if form == "booleans" else np.where(mask, np.float32(0), np.float32(-np.inf))
    expected = attention(q, k, v, mask).astype(np.float32)
    assert not expected[0, :, 1].any()
    check_node("Attention", q, k, v, given, opset=opset, expected=[expected])


def test_no_causal_row_is_lost():
    """onnx#8068: rows before the first key of a causal mask that a mask takes away see nothing."""
    q, k, v = (normal(1, 2, 4, 8, seed=seed) for seed in range(3))
    mask = np.ones((4, 4), bool)
    mask[:, 0] = False
    expected = attention(q, k, v, mask & np.tri(4, dtype=bool)).astype(np.float32)
    check_nodes(one_node("Attention", q, k, v, mask, opset=23, is_causal=1), expected=[[expected]])


def test_sums_of_masks_in_half_precision():
    """transformers#17306: the least number of float16, and a bias on top of it, takes a key out and leaves no NaN."""
    text = """
    main (float16[2, 5, 8] q, float16[2, 8, 7] k, float16[2, 7, 8] v, float16[2, 5, 7] mask, float16[5, 7] bias)
      => (float16[2, 5, 8] y) {
      products = MatMul (q, k)
      biased = Add (products, bias)
      scores = Add (biased, mask)
      weights = Softmax <axis = -1> (scores)
      y = MatMul (weights, v)
    }
    """
    shapes = {"q": (2, 5, 8), "k": (2, 8, 7), "v": (2, 7, 8)}
    feeds = {name: normal(*shape, seed=seed, dtype=np.float16) for seed, (name, shape) in enumerate(shapes.items())}
    feeds["bias"] = np.full((5, 7), -16, np.float16)
    hidden = random.random((2, 5, 7)) < 0.5
    hidden[..., 0] = False
    feeds["mask"] = np.where(hidden, np.finfo(np.float16).min, np.float16(0))
    wide = {name: array.astype(np.float64) for name, array in feeds.items()}
    scores = np.where(hidden, -np.inf, wide["q"] @ wide["k"] + wide["bias"])
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    expected = powers / powers.sum(axis=-1, keepdims=True) @ wide["v"]
    check(model_of(text), feeds, expected=[expected.astype(np.float16)], tolerance=2e-2)
