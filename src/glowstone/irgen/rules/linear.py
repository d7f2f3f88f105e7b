"""Matrix products of values."""

from __future__ import annotations

from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.table import generates
from glowstone.lir import MatMul as MatMulOperation
from glowstone.lir import View
from glowstone.ops import MatMul


@generates(MatMul)
def generate_matmul(generator: Generator, application: Application) -> None:
    a, b = (generator.view(application.operand(index)) for index in (0, 1))
    result = application.result
    out = generator.result(result)
    extras = generator.extra_views(application)
    rows, columns = a.rank > 1, b.rank > 1
    left = a if rows else _with_axis(a, 0)
    right = b if columns else _with_axis(b, b.rank)
    y, *wide_extras = (_matrix(view, rows, columns) for view in (out, *extras))
    batch = y.shape[:-2]
    left = left.broadcast((*batch, *left.shape[-2:]))
    right = right.broadcast((*batch, *right.shape[-2:]))
    generator.emit(MatMulOperation(application.epilogue), y, left, right, *wide_extras)


def _matrix(view: View, rows: bool, columns: bool) -> View:
    """The result with the axes that a vector factor took away."""
    if not columns:
        view = _with_axis(view, view.rank)
    return view if rows else _with_axis(view, view.rank - 1)


def _with_axis(view: View, axis: int) -> View:
    shape = (*view.shape[:axis], 1, *view.shape[axis:])
    strides = (*view.strides[:axis], 0, *view.strides[axis:])
    return View(view.buffer, view.offset, shape, strides)
