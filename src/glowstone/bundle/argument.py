"""An input or output of a bundle."""

from __future__ import annotations

import math
from dataclasses import dataclass

from glowstone.types import ElementType, Shape


@dataclass(frozen=True)
class Argument:
    """Name, element type and shape; row-major without gaps."""

    name: str
    element: ElementType
    shape: Shape

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.element.size
