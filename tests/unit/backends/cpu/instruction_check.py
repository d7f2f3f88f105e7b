"""Compares a kernel's result with the operation's meaning and, where given, with an independent reference."""

from __future__ import annotations

import numpy as np
from kernel_runner import Run, run

from glowstone.lir import Buffer, BufferKind, Instruction, Operation, View
from glowstone.types import ElementType, row_major_strides

random = np.random.default_rng(20)


def sample(shape, element=ElementType.F32, low=-4.0, high=4.0):
    """Numbers of the element type (bf16 excluded)."""
    if element is ElementType.BOOL:
        return random.integers(0, 2, shape).astype(bool)
    if element.is_integer:
        return random.integers(0 if not element.is_signed else -20, 20, shape).astype(element.dtype)
    return random.uniform(low, high, shape).astype(element.dtype)


class Storage:
    """Buffers with content, and views on them."""

    def __init__(self) -> None:
        self.arrays: dict[Buffer, np.ndarray] = {}

    def add(self, array, *, padding=(), kind=BufferKind.ACTIVATION) -> View:
        """A view holding the array inside a buffer that is larger by `padding` per axis; the rest is NaN or 77."""
        array = np.asarray(array)
        full = (
            tuple(extent + more for extent, more in zip(array.shape, padding, strict=True)) if padding else array.shape
        )
        filler = np.nan if array.dtype.kind == "f" else 77
        storage = np.full(full, filler).astype(array.dtype)
        storage[tuple(slice(0, extent) for extent in array.shape)] = array
        buffer = Buffer(f"b{len(self.arrays)}", kind, ElementType.from_dtype(array.dtype), full)
        self.arrays[buffer] = storage.reshape(-1)
        return View(buffer, 0, array.shape, row_major_strides(full))

    def result(self, shape, element=ElementType.F32, padding=()) -> View:
        """A view to be written, holding NaN or 55."""
        filler = np.nan if element.is_float else 55
        return self.add(np.full(shape, filler).astype(element.dtype), padding=padding)


def check(operation: Operation, views, storage: Storage, integers=(), bound: float | None = None) -> Run:
    """Run as machine code and as `interpret`; compare all buffers. The order of units must not change a bit."""
    instruction = Instruction(operation, tuple(views), tuple(integers))
    found = run(instruction, storage.arrays, unit_order=lambda units: range(units - 1, -1, -1))
    together = run(instruction, storage.arrays)
    for buffer, content in found.contents.items():
        assert content.tobytes() == together.contents[buffer].tobytes()
    expected = {buffer: array.copy() for buffer, array in storage.arrays.items()}
    operation.interpret([view.array(expected[view.buffer]) for view in views], integers)
    outputs = {view.buffer for view in instruction.outputs}
    for buffer, array in expected.items():
        bound_here = (operation.ulp_bound if bound is None else bound) if buffer in outputs else 0.0
        assert_close(found.contents[buffer], array, bound_here)
    return found


def assert_close(found, expected, ulp_bound: float) -> None:
    """Same NaN and infinities; else within `ulp_bound` units in the last place of the largest value."""
    assert found.shape == expected.shape
    if expected.dtype.kind != "f" or ulp_bound == 0:
        both_nan = (found != found) & (expected != expected)
        assert ((found == expected) | both_nan).all()
        return
    finite = np.isfinite(expected)
    assert (np.isnan(found) == np.isnan(expected)).all()
    assert (found[~finite & ~np.isnan(expected)] == expected[~finite & ~np.isnan(expected)]).all()
    if finite.any():
        largest = np.abs(expected[finite]).max()
        tolerance = ulp_bound * np.spacing(largest).astype(np.float64)
        error = np.abs(found[finite].astype(np.float64) - expected[finite].astype(np.float64)).max()
        assert error <= tolerance, f"off by {error}, {error / tolerance * ulp_bound:.1f} ulp of the largest value"
