"""Samples of one operator in many element types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from glowstone.graph import Operator, Sample
from glowstone.ops.elementwise import HALF_TOLERANCES
from glowstone.types import ElementType

Array = np.ndarray[Any, np.dtype[Any]]
ROUNDINGS = 2
"""Units in the last place that 16-bit results of different ways may be apart."""


def element_samples(
    operator: Operator, elements: Iterable[ElementType], *arrays: Array, fixed: tuple[Array, ...] = ()
) -> list[Sample]:
    """One sample of each element type: the arrays converted to it, then the fixed ones as they are."""
    return [
        Sample(
            operator,
            (*(array.astype(element.dtype) for array in arrays), *fixed),
            ROUNDINGS * HALF_TOLERANCES.get(element, Sample.tolerance),
        )
        for element in sorted(elements, key=str)
    ]
