"""Which strides an operand may have: the predicates that `Operation.accepts` is made of.

In: a view. Out: whether a kernel of the named kind can address it. Axes of extent 1 and empty views never matter.
"""

from __future__ import annotations

from glowstone.lir.buffer import View

BLOCKED_INNER_AXES = 2
"""Axes of a blocked buffer [N, blocks, spatial..., lanes] whose strides are free."""


def inner_stride(view: View) -> int:
    """Stride of the innermost axis with more than one element; 1 where there is none."""
    for extent, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if extent != 1:
            return stride
    return 1


def has_vector_stride(view: View) -> bool:
    """Elements of the innermost axis are side by side, or one for all: what kernels read in vectors."""
    return view.size == 0 or inner_stride(view) in (0, 1)


def has_unit_inner_stride(view: View) -> bool:
    """Elements of the innermost axis (of extent other than 1) are side by side."""
    return view.size == 0 or inner_stride(view) == 1


def has_unit_last_stride(view: View) -> bool:
    """Elements of the last axis are side by side; with one element per row the rows may be anywhere."""
    return view.size == 0 or view.rank == 0 or view.shape[-1] == 1 or view.strides[-1] == 1


def has_dense_planes(view: View) -> bool:
    """All axes but the first two are contiguous: [N, C, spatial...], or [N, blocks, spatial..., lanes] blocked."""
    if view.size == 0 or view.rank <= BLOCKED_INNER_AXES:
        return True
    axes = slice(BLOCKED_INNER_AXES, None)
    return View(view.buffer, 0, view.shape[axes], view.strides[axes]).is_contiguous


def is_epilogue_operand(view: View) -> bool:
    """Last axis side by side or one element for all: an extra operand of the result's shape, or broadcast to it."""
    return has_unit_last_stride(view) or view.strides[-1] == 0


def is_blocked_epilogue_operand(view: View) -> bool:
    """In blocked output layout, or the same for all pixels (strides 0) with lanes side by side or one for all."""
    if has_dense_planes(view):
        return True
    pixels = zip(view.shape[BLOCKED_INNER_AXES:-1], view.strides[BLOCKED_INNER_AXES:-1], strict=True)
    return all(extent == 1 or stride == 0 for extent, stride in pixels) and is_epilogue_operand(view)
