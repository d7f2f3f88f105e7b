"""Shapes that the file leaves open, or does not."""

from __future__ import annotations

import pytest
from helpers.reports import assert_close, by_runtime, model_of, normal, refused

import glowstone
from glowstone.errors import GlowstoneError, InputError, ShapeError

NETWORK = """
main (float[N, 3, 12, 12] x) => (float[N, 5] y) {
  sums = Conv <strides = [2, 2]> (x, w)
  active = Relu (sums)
  pooled = GlobalAveragePool (active)
  flat = Flatten (pooled)
  y = MatMul (flat, head)
}
"""
WEIGHTS = {"w": normal(4, 3, 3, 3), "head": normal(4, 5)}


def network(batch):
    """A classifier of `batch` images, a number or a symbol."""
    return model_of(NETWORK.replace("N", str(batch)), weights=WEIGHTS)


@pytest.mark.parametrize("reference", [None, 1, 4])
def test_an_open_batch_is_any_number(reference):
    """tvm#15123, executorch#1350: nothing is allocated for a symbol, and results grow and shrink with the call."""
    model = network('"batch"')
    shapes = None if reference is None else {"x": (reference, 3, 12, 12)}
    compiled = glowstone.compile(model, shapes=shapes)
    assert compiled.inputs[0].shape == ("batch", 3, 12, 12)
    for batch in (2, 7, 1, 0, 3):
        x = normal(batch, 3, 12, 12)
        assert_close(compiled(x), by_runtime(model, {"x": x})[0], 1e-5, f"batch {batch}")


@pytest.mark.parametrize("shape", [(-1, 3, 12, 12), (2, 3, 12), (2, 3, 12, 13), (2.5, 3, 12, 12), ("n", 3, 12, 12)])
def test_a_shape_that_is_none_is_refused(shape):
    """tvm#7096: minus one in the dictionary of shapes crashed."""
    with pytest.raises(GlowstoneError) as caught:
        glowstone.compile(network('"batch"'), shapes={"x": shape})
    assert isinstance(caught.value, ShapeError | InputError)
    assert "x" in str(caught.value)


def test_a_fixed_batch_says_what_it_wants_and_what_to_do():
    """onnxruntime#5577, #9867, tutorials#163, weaver-core#29, essentia#1507: the message names the way out."""
    error = refused(ShapeError, network(1), "input 'x'", {"x": normal(4, 3, 12, 12)})
    assert (error.expected, error.found) == ([1, 3, 12, 12], [4, 3, 12, 12])
    assert "symbolic" in str(error.remedy)
    at_once = refused(ShapeError, network(1), "x", shapes={"x": (4, 3, 12, 12)})
    assert at_once.expected is not None
    assert at_once.found is not None


def test_two_symbols_and_one_in_two_places():
    """tvm#15123, the rest of the kind: equal symbols are one number, which is checked, and different ones are two."""
    model = model_of("main (float[a, b] x, float[b, c] w) => (float[a, c] y) { y = MatMul (x, w) }")
    compiled = glowstone.compile(model)
    for a, b, c in ((2, 3, 4), (1, 1, 1), (5, 0, 2), (0, 3, 3)):
        x, w = normal(a, b), normal(b, c, seed=1)
        assert_close(compiled(x, w), x @ w, 1e-5, f"{a, b, c}")
    with pytest.raises(ShapeError, match="'b'"):
        compiled(normal(2, 3), normal(4, 2))
