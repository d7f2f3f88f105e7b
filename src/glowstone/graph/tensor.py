"""Constant data: an immutable array with an element type, compared by content."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from glowstone.types import ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]

_SAMPLE = 16


class Tensor:
    """A read-only array. `array.dtype` is `element.dtype`.

    Equal content makes equal tensors; the hash looks at a sample only. A broadcast array (stride 0) stays symbolic:
    nothing here touches more than its distinct elements.
    """

    __slots__ = ("_digest", "array", "element")

    def __init__(self, array: Array, element: ElementType | None = None) -> None:
        self.element = element or ElementType.from_dtype(array.dtype)
        view = np.asarray(array).view()
        view.flags.writeable = False
        self.array = view
        self._digest: str | None = None

    def move_to(self, array: Array) -> None:
        """View other memory that holds the same content."""
        view = array.view()
        view.flags.writeable = False
        self.array = view

    @property
    def type(self) -> TensorType:
        return TensorType(self.element, tuple(self.array.shape))

    @property
    def is_splat(self) -> bool:
        """True where one element stands for all, by the strides alone."""
        return self.array.size > 0 and all(
            stride == 0 or extent == 1 for stride, extent in zip(self.array.strides, self.array.shape, strict=True)
        )

    @property
    def digest(self) -> str:
        """A name made from the content: SHA-256 over type, distinct elements and how they repeat, in hexadecimal."""
        if self._digest is None:
            distinct = np.ascontiguousarray(self._distinct())
            content = hashlib.sha256(f"{self.type} {list(distinct.shape)}\n".encode())
            ordered = distinct.astype(distinct.dtype.newbyteorder("<"), copy=False)
            content.update(ordered.reshape(-1).view(np.uint8).data)
            self._digest = content.hexdigest()
        return self._digest

    def _distinct(self) -> Array:
        """The array with every stride-0 axis cut to one element."""
        index = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in self.array.strides)
        return self.array[index]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Tensor) or (self.element, self.array.shape) != (other.element, other.array.shape):
            return False
        mine, theirs = self._distinct(), other._distinct()
        if mine.shape != theirs.shape:
            return False
        return mine.tobytes() == theirs.tobytes()

    def __hash__(self) -> int:
        distinct = self._distinct()
        corner = distinct[
            tuple(slice(0, _SAMPLE) if axis == distinct.ndim - 1 else slice(0, 1) for axis in range(distinct.ndim))
        ]
        return hash((self.element, self.array.shape, corner.tobytes()))

    def __repr__(self) -> str:
        if self.array.size <= _SAMPLE:
            return f"{self.type}{{{', '.join(map(str, self.array.ravel().tolist()))}}}"
        if self.is_splat:
            return f"{self.type}{{splat {self.array.flat[0]}}}"
        return f"{self.type}{{...}}"
