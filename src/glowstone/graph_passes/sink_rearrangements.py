"""Moves transpositions and reshapes below nodes that do not mind, where that lets neighbours meet: a transposition its
inverse, or an elementwise node the convolution, product or reduction that takes it in.

Nothing else may read the rearranged value, so no work is done twice.
"""

from __future__ import annotations

import numpy as np

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.graph_passes.matching import TAKES_IN, operand
from glowstone.ops import (
    Concat,
    DepthToSpace,
    Elementwise,
    Identity,
    Reduction,
    ReshapeLike,
    Transpose,
    Unsqueeze,
)
from glowstone.ops.constant import constant, constant_array
from glowstone.types import normalize_axis


def sink_rearrangements(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (sink_transpose, sink_reshape, sink_below_concat, sink_below_reduction))


@rewrite(Elementwise)
def sink_transpose(builder: Builder, node: Node) -> Value | None:
    """Operands transposed alike, beside constants, which are transposed ahead."""
    if isinstance(node.operator, Identity) or node.result.known is not None:
        return None
    moved = [value for value in node.present_operands() if isinstance(value.operator, Transpose)]
    if not moved or not all(_is_read_here(builder, value, node) for value in moved):
        return None
    (permutation, *others) = dict.fromkeys(value.operator.permutation for value in moved)  # type: ignore[union-attr]
    pays = any(_takes_in(builder, value) for value in moved) or _meets_transpose(node.result)
    if others or not pays or all(value.shape != node.result.shape for value in moved):
        return None
    inner: list[Value | None] = []
    for value in node.operands:
        made = _before(builder, value, permutation)
        if value is not None and made is None:
            return None
        inner.append(made)
    return builder.emit(Transpose(permutation), builder.emit(node.operator, *inner))


def _is_read_here(builder: Builder, value: Value, node: Node) -> bool:
    """Whether only this node reads the value, which has as many axes as its result."""
    return value.users() == [node] and not builder.graph.is_output(value) and value.rank == node.result.rank


def _takes_in(builder: Builder, value: Value) -> bool:
    """Whether what a rearrangement, or several, rearranges is computed by something that takes in elementwise nodes."""
    current: Value | None = value
    while current is not None and builder.graph.has_single_use(current):
        if not isinstance(current.operator, Transpose | ReshapeLike | DepthToSpace):
            return isinstance(current.operator, TAKES_IN)
        current = operand(current)
    return False


def _meets_transpose(value: Value) -> bool:
    """Whether all that reads the value transposes it."""
    return bool(value.uses) and all(isinstance(user.operator, Transpose) for user in value.users())


def _before(builder: Builder, value: Value | None, permutation: tuple[int, ...]) -> Value | None:
    """An operand as it is before the transposition; None where it is neither transposed nor a constant."""
    if value is not None and isinstance(value.operator, Transpose):
        return operand(value)
    array = constant_array(value)
    if array is None or value is None or array.ndim > len(permutation):
        return None
    if array.size == 1:
        return constant(builder, array.reshape(()), value.element)
    aligned = array.reshape((1,) * (len(permutation) - array.ndim) + array.shape)
    return constant(builder, np.transpose(aligned, np.argsort(permutation)), value.element)


@rewrite(Elementwise)
def sink_reshape(builder: Builder, node: Node) -> Value | None:
    """One operand reshaped, or with channels moved into blocks of pixels, beside numbers: each element by itself."""
    if isinstance(node.operator, Identity) or node.result.known is not None:
        return None
    reshaped = [value for value in node.present_operands() if constant_array(value) is None]
    if len(reshaped) != 1 or not isinstance(reshaped[0].operator, ReshapeLike | DepthToSpace):
        return None
    (value,) = reshaped
    if value.rank != node.result.rank or not builder.graph.has_single_use(value) or not _takes_in(builder, value):
        return None
    inner: list[Value | None] = []
    for other in node.operands:
        array = constant_array(other)
        if other is None or other is value:
            inner.append(operand(other))
        elif array is not None and array.size == 1:
            inner.append(constant(builder, array.reshape(()), other.element))
        else:
            return None
    assert value.node is not None
    return builder.emit(value.node.operator, builder.emit(node.operator, *inner), *value.node.operands[1:])


@rewrite(Concat)
def sink_below_concat(builder: Builder, node: Node) -> Value | None:
    """Operands transposed alike, where the result is transposed again."""
    operands = list(node.present_operands())
    first = operands[0].operator
    if len(operands) < 2 or not isinstance(first, Transpose) or not _meets_transpose(node.result):
        return None
    assert isinstance(node.operator, Concat)
    if any(value.operator != first or not builder.graph.has_single_use(value) for value in operands):
        return None
    axis = first.permutation[normalize_axis(node.operator.axis, operands[0].rank)]
    joined = builder.emit(Concat(axis), *(operand(value) for value in operands))
    return builder.emit(first, joined)


@rewrite(Reduction)
def sink_below_reduction(builder: Builder, node: Node) -> Value | None:
    """Over the same axes before the transposition, where those are neighbours and the others are in order again."""
    x = node.operands[0]
    if x is None or not isinstance(x.operator, Transpose) or not builder.graph.has_single_use(x):
        return None
    assert isinstance(node.operator, Reduction)
    permutation, outer = x.operator.permutation, node.operator.normal_axes(x.rank)
    axes = sorted(permutation[axis] for axis in outer)
    kept = [axis for axis in permutation if axis not in axes]
    if not axes or axes != list(range(axes[0], axes[-1] + 1)) or kept != sorted(kept):
        return None
    reduced = builder.emit(type(node.operator)(tuple(axes), False), operand(x))
    return builder.emit(Unsqueeze(outer), reduced) if node.operator.keep else reduced
