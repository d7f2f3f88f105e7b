"""Whether two views touch the same memory, and one view seen through a copy.

In: views. Out: answers that are exact for boxes of a common grid (slices, transposes, concat parts) and otherwise
err on the safe side: `overlaps` says yes, `rebase` says None.
"""

from __future__ import annotations

import math

from glowstone.lir.buffer import View
from glowstone.types import row_major_strides


def overlaps(first: View, second: View) -> bool:
    """False only if the views share no element."""
    if first.buffer is not second.buffer or not first.size or not second.size:
        return False
    if first.last < second.offset or second.last < first.offset:
        return False
    if first.offset == second.offset:
        return True
    grid = sorted({1, *_steps(first), *_steps(second)}, reverse=True)
    step = math.gcd(*(_steps(first) | _steps(second)))
    if step and (first.offset - second.offset) % step:
        return False
    for origin in (0, min(first.offset, second.offset)):
        box, other = _box(first, origin, grid), _box(second, origin, grid)
        if box is not None and other is not None:
            return all(low <= high2 and low2 <= high for (low, high), (low2, high2) in zip(box, other, strict=True))
    return True


def same_elements(first: View, second: View) -> bool:
    """Equal views, but for the strides of axes with at most one element."""
    if (first.buffer, first.offset, first.shape) != (second.buffer, second.offset, second.shape):
        return False
    axes = zip(first.shape, first.strides, second.strides, strict=True)
    return first.size == 0 or all(extent == 1 or stride == stride2 for extent, stride, stride2 in axes)


def is_injective(view: View) -> bool:
    """No element is named twice: what an output must be. Exact for views of nested axes, else False."""
    reach = 0
    for stride, extent in sorted((s, e) for s, e in zip(view.strides, view.shape, strict=True) if e != 1):
        if stride <= reach:
            return view.size == 0
        reach += stride * (extent - 1)
    return True


def _steps(view: View) -> set[int]:
    return {stride for extent, stride in zip(view.shape, view.strides, strict=True) if extent > 1 and stride > 0}


def _box(view: View, origin: int, grid: list[int]) -> list[tuple[int, int]] | None:
    """The view as a range of digits per grid step (largest step first), or None where digits would carry."""
    box = []
    rest, larger = view.offset - origin, 0
    for step in grid:
        low, rest = divmod(rest, step)
        axes = zip(view.shape, view.strides, strict=True)
        high = low + sum(extent - 1 for extent, stride in axes if stride == step and extent > 1)
        if larger and (larger % step or high >= larger // step):
            return None
        box.append((low, high))
        larger = step
    return box


def rebase(view: View, through: View, onto: View) -> View | None:
    """The view of `onto`'s buffer that shows what `view` shows, given that element i of `through` equals element i of
    `onto`, both of one shape.

    None where `view` has elements outside `through`, or where no strides express the result.
    """
    if view.size == 0:
        return View(onto.buffer, onto.offset, view.shape, row_major_strides(view.shape))
    axes = _joint_axes(through, onto)
    if axes is None:
        return None
    low = _digits(view.offset - through.offset, axes)
    if low is None:
        return None
    high = list(low)
    strides: list[int] = []
    for extent, stride in zip(view.shape, view.strides, strict=True):
        if extent == 1 or stride == 0:
            strides.append(0)
            continue
        axis = next((number for number, (_, step, _) in enumerate(axes) if step <= stride), None)
        if axis is None or stride % axes[axis][1]:
            return None
        count = stride // axes[axis][1]
        high[axis] += (extent - 1) * count
        strides.append(count * axes[axis][2])
    if any(digit >= extent for digit, (extent, _, _) in zip(high, axes, strict=True)):
        return None
    offset = onto.offset + sum(digit * target for digit, (_, _, target) in zip(low, axes, strict=True))
    return View(onto.buffer, offset, view.shape, _with_natural_units(view.shape, strides))


def _with_natural_units(shape: tuple[int, ...], strides: list[int]) -> tuple[int, ...]:
    """Axes of extent 1 get the stride of a row-major array, so that no kernel takes them for broadcast ones."""
    inner = 1
    for axis in range(len(shape) - 1, -1, -1):
        if shape[axis] == 1:
            strides[axis] = inner
        inner = max(inner, strides[axis] * shape[axis])
    return tuple(strides)


def _joint_axes(through: View, onto: View) -> list[tuple[int, int, int]] | None:
    """(extent, stride of `through`, stride of `onto`), outermost first, neighbours merged where both allow it.

    None where `through` is not a nest of axes, so that an element would have no unique position.
    """
    if not is_injective(through):
        return None
    axes = [
        (extent, step, target)
        for extent, step, target in zip(through.shape, through.strides, onto.strides, strict=True)
        if extent != 1
    ]
    axes.sort(key=lambda axis: -axis[1])
    merged: list[tuple[int, int, int]] = []
    for extent, step, target in axes:
        if merged and (merged[-1][1], merged[-1][2]) == (extent * step, extent * target):
            merged[-1] = (merged[-1][0] * extent, step, target)
        else:
            merged.append((extent, step, target))
    return merged


def _digits(offset: int, axes: list[tuple[int, int, int]]) -> list[int] | None:
    """The position of an offset along the axes, or None if it is not on them."""
    digits = []
    for _, step, _ in axes:
        digit, offset = divmod(offset, step)
        digits.append(digit)
    return digits if offset == 0 and all(digit >= 0 for digit in digits) else None
