"""Buffers and views: the memory that instructions name.

In: nothing. Out: `Buffer`, `View`. Invariant: a view lies inside its buffer.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glowstone.types import ElementType, Shape, row_major_strides

Array = np.ndarray[Any, np.dtype[Any]]


class BufferKind(enum.Enum):
    """Where a buffer lives. The value is its name in IR text."""

    CONSTANT = "constant"
    """Weights: the same for every shape of a model."""
    PLAN_CONSTANT = "plan_constant"
    """Computed by the host for one shape."""
    MUTABLE = "mutable"
    """State kept from run to run."""
    ACTIVATION = "activation"
    """Placed in the arena by the memory planner."""
    INPUT = "input"
    OUTPUT = "output"
    WINDOW = "window"
    """Memory of another buffer, along which it moves pass by pass of a loop."""

    @property
    def is_read_only(self) -> bool:
        return self in (BufferKind.CONSTANT, BufferKind.PLAN_CONSTANT, BufferKind.INPUT)


@dataclass(eq=False)
class Buffer:
    """A typed block of memory, compared by identity.

    `shape` is physical and row-major. `channels` is the number of real channels of a blocked buffer
    [N, blocks, spatial..., lanes]: lanes from there on are padding and hold zero after every instruction.
    `data` is the content of constants.
    """

    name: str
    kind: BufferKind
    element: ElementType
    shape: Shape
    channels: int | None = None
    data: Array | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.size * self.element.size

    def view(self) -> View:
        """The whole buffer."""
        return View(self, 0, self.shape, row_major_strides(self.shape))


@dataclass(frozen=True)
class View:
    """A strided window on a buffer; offset and strides in elements."""

    buffer: Buffer
    offset: int
    shape: Shape
    strides: tuple[int, ...]

    @property
    def element(self) -> ElementType:
        return self.buffer.element

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def is_contiguous(self) -> bool:
        """Row-major without gaps. Axes of extent 1 do not matter."""
        expected = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent != 1 and stride != expected:
                return self.size == 0
            expected *= extent
        return True

    @property
    def last(self) -> int:
        """Offset of the last element touched (negative strides do not occur)."""
        return self.offset + sum((extent - 1) * stride for extent, stride in zip(self.shape, self.strides, strict=True))

    def reshape(self, shape: Shape) -> View | None:
        """The same elements in row-major order under another shape, or None where that needs a copy."""
        if math.prod(shape) != self.size:
            raise ValueError(f"cannot view {self.shape} as {shape}")
        if self.size == 0:
            return View(self.buffer, self.offset, shape, row_major_strides(shape))
        strides = _reshaped_strides(self.shape, self.strides, shape)
        return None if strides is None else View(self.buffer, self.offset, shape, strides)

    def transpose(self, permutation: tuple[int, ...]) -> View:
        return View(
            self.buffer,
            self.offset,
            tuple(self.shape[axis] for axis in permutation),
            tuple(self.strides[axis] for axis in permutation),
        )

    def slice(self, starts: Shape, shape: Shape, steps: Shape | None = None) -> View:
        """The box of `shape` at `starts`, every `steps`-th element (positive) along each axis."""
        steps = steps or (1,) * self.rank
        offset = self.offset + sum(start * stride for start, stride in zip(starts, self.strides, strict=True))
        strides = tuple(  # a step along one element leads nowhere, and may be as large as a number can be
            stride * (step if extent > 1 else 1)
            for stride, step, extent in zip(self.strides, steps, shape, strict=True)
        )
        return View(self.buffer, offset if math.prod(shape) else self.offset, shape, strides)

    def broadcast(self, shape: Shape) -> View:
        """Stretched to `shape` with stride 0, by NumPy's rules."""
        lead = len(shape) - self.rank
        strides = [0] * lead
        for extent, stride, target in zip(self.shape, self.strides, shape[lead:], strict=True):
            if extent not in (1, target):
                raise ValueError(f"cannot broadcast {self.shape} to {shape}")
            strides.append(0 if extent == 1 and target != 1 else stride)
        return View(self.buffer, self.offset, shape, tuple(strides))

    def array(self, storage: Array) -> Array:
        """The view as a NumPy array over the buffer's flat storage (elements of the buffer's dtype)."""
        if self.size == 0:
            return np.empty(self.shape, storage.dtype)
        itemsize = storage.dtype.itemsize
        strides = tuple(stride * itemsize for stride in self.strides)
        return np.ndarray(self.shape, storage.dtype, storage.view(np.uint8).data, self.offset * itemsize, strides)

    def __str__(self) -> str:
        text = f"{self.buffer.name}[{','.join(map(str, self.shape))}]"
        if self.offset:
            text += f"+{self.offset}"
        if not self.is_contiguous:
            text += f"/{','.join(map(str, self.strides))}"
        return text


def _reshaped_strides(shape: Shape, strides: tuple[int, ...], target: Shape) -> tuple[int, ...] | None:
    """Strides that show the same elements under `target`, or None. No extent is 0."""
    groups: list[tuple[int, int]] = []  # (extent, stride) with mergeable neighbours merged
    for extent, stride in zip(shape, strides, strict=True):
        if extent == 1:
            continue
        if groups and groups[-1][1] == extent * stride:
            groups[-1] = (groups[-1][0] * extent, stride)
        else:
            groups.append((extent, stride))
    result = [0] * len(target)
    position = len(groups)
    left, step = 1, 1
    for axis in range(len(target) - 1, -1, -1):
        extent = target[axis]
        if extent == 1:
            result[axis] = step
            continue
        if left == 1:
            position -= 1
            left, step = groups[position]
        if left % extent:
            return None
        result[axis] = step
        left //= extent
        step *= extent
    return tuple(result)
