"""Weights that gather the frequencies of a spectrum in bands as the ear does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ShapeError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import known_array
from glowstone.ops.element_sets import FLOATS, INDICES, NUMBERS
from glowstone.types import ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]

HERTZ = 700
MELS = 2595
"""A frequency f is MELS log10(1 + f / HERTZ) on the mel scale."""


@operator
class MelWeightMatrix(Operator):
    """Triangles of height 1 at equal distances on the mel scale: [length / 2 + 1, bands]. ONNX MelWeightMatrix-17.

    The spectrum is that of a transform of `length` elements at `rate` of them a second; the first triangle begins at
    `lowest` hertz, the last ends short of `highest`. Computed in float64.
    """

    onnx = "MelWeightMatrix-17"
    operands = (
        *(Operand(name, INDICES, host=True) for name in ("bands", "length", "rate")),
        *(Operand(name, FLOATS, host=True) for name in ("lowest", "highest")),
    )
    element: ElementType = ElementType.F32

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        arrays = [known_array(value, rule.name) for value, rule in zip(operands, self.operands, strict=True)]
        if any(array.size != 1 for array in arrays):
            raise ShapeError("an operand is not one number", expected=1, found=[array.size for array in arrays])
        bands, length, rate, lowest, highest = (array.reshape(()).item() for array in arrays)
        if min(bands, length, rate) < 1 or not 0 <= lowest <= highest <= rate / 2:
            raise ShapeError(
                "the bands do not fit the spectrum",
                expected="positive numbers, 0 <= lowest <= highest <= rate / 2",
                found=[bands, length, rate, lowest, highest],
            )
        return (TensorType(self.element, (length // 2 + 1, bands)),)

    def reference(self, bands: Array, length: Array, rate: Array, lowest: Array, highest: Array) -> Array:
        count, size = int(bands.reshape(())), int(length.reshape(()))
        ends = [MELS * math.log10(1 + float(edge.reshape(())) / HERTZ) for edge in (lowest, highest)]
        mels = ends[0] + np.arange(count + 2) * ((ends[1] - ends[0]) / (count + 2))
        corners = (size + 1) * (HERTZ * (10 ** (mels / MELS) - 1)) // int(rate.reshape(()))
        left, centre, right = corners[:-2], corners[1:-1], corners[2:]
        places = np.arange(size // 2 + 1)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            rising, falling = (places - left) / (centre - left), (right - places) / (right - centre)
        rises, falls = (left <= places) & (places < centre), (centre < places) & (places < right)
        weights = np.select([places == centre, rises, falls], [1.0, rising, falling])
        return weights.astype(self.element.dtype)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        typed = [Sample(cls(element), _numbers(3, 16, 8192, 0, 4096)) for element in sorted(NUMBERS, key=str)]
        return [*typed, Sample(cls(), _numbers(8, 64, 16000, 20, 7000)), Sample(cls(), _numbers(9, 8, 8192, 100, 900))]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        backwards, plain = _numbers(1, 1, 1, 9, 1), _numbers(1, 1, 1, 0, 0)
        return [
            ErrorSample(cls(), backwards, "do not fit the spectrum"),
            ErrorSample(cls(), (np.array([1, 2]), *plain[1:]), "not one number"),
        ]


def _numbers(*values: float) -> tuple[Array, ...]:
    return tuple(np.array(value, np.int64 if index < 3 else np.float32) for index, value in enumerate(values))
