"""Joins joins: a Concat within a Concat, the parts of one value put together again, and parts taken out of a Concat."""

from __future__ import annotations

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.graph_passes.slices import Bounds, bounds_of, emit_slice
from glowstone.ops import Concat, Slice, Split
from glowstone.types import normalize_axis


def merge_concats(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(
        graph, (drop_single, flatten_concat, join_split, join_slices, take_part_of_concat, take_parts_of_concat)
    )


def _axis(node: Node) -> int:
    assert isinstance(node.operator, Concat | Split)
    first = node.operands[0]
    assert first is not None
    return normalize_axis(node.operator.axis, first.rank)


@rewrite(Concat)
def drop_single(builder: Builder, node: Node) -> Value | None:
    return node.operands[0] if len(node.operands) == 1 else None


@rewrite(Concat)
def flatten_concat(builder: Builder, node: Node) -> Value | None:
    """The operands of an inner Concat along the same axis that nothing else reads, in its place."""
    axis = _axis(node)
    operands: list[Value | None] = []
    for value in node.operands:
        inner = value.node if value is not None and isinstance(value.operator, Concat) else None
        if inner is not None and value is not None and _axis(inner) == axis and builder.graph.has_single_use(value):
            operands.extend(inner.operands)
        else:
            operands.append(value)
    return builder.emit(node.operator, *operands) if len(operands) > len(node.operands) else None


@rewrite(Concat)
def join_split(builder: Builder, node: Node) -> Value | None:
    """All parts of a Split, in order, are the whole."""
    first = node.operands[0]
    split = first.node if first is not None else None
    if split is None or not isinstance(split.operator, Split) or _axis(split) != _axis(node):
        return None
    return split.operands[0] if node.operands == split.results else None


@rewrite(Concat)
def join_slices(builder: Builder, node: Node) -> Value | None:
    """Slices of one value that follow each other are one slice, at every extent: clamping keeps them neighbours."""
    axis = _axis(node)
    source: Value | None = None
    whole: Bounds | None = None
    for value in node.operands:
        bounds = bounds_of(value, axis)
        if bounds is None or value is None or value.node is None:
            return None
        if whole is None:
            source, whole = value.node.operands[0], bounds
        elif value.node.operands[0] is not source or bounds.start != whole.end:
            return None
        else:
            whole = Bounds(whole.start, bounds.end)
    assert source is not None
    assert whole is not None
    return emit_slice(builder, source, axis, whole)


@rewrite(Slice)
def take_part_of_concat(builder: Builder, node: Node) -> Value | None:
    """A slice that lies within one operand of a Concat reads that operand."""
    x = node.operands[0]
    if x is None or x.node is None or not isinstance(x.operator, Concat) or node.result.dynamic:
        return None
    assert isinstance(node.operator, Slice)
    axis = _axis(x.node)
    ranges = node.operator.known_ranges(*node.operands)
    kept = ranges[axis]
    is_along = all(taken == range(x.shape[place]) for place, taken in enumerate(ranges) if place != axis)
    if not is_along or kept.step != 1 or not len(kept):
        return None
    position = 0
    for part in x.node.present_operands():
        end = position + part.shape[axis]
        if position <= kept.start and kept.stop <= end:
            if len(kept) == part.shape[axis]:
                return part
            return emit_slice(builder, part, axis, Bounds(kept.start - position, kept.stop - position))
        position = end
    return None


@rewrite(Split)
def take_parts_of_concat(builder: Builder, node: Node) -> tuple[Value, ...] | None:
    """A Split into the very operands of a Concat."""
    x = node.operands[0]
    if x is None or x.node is None or not isinstance(x.operator, Concat) or x.dynamic or node.results[0].dynamic:
        return None
    parts = tuple(x.node.present_operands())
    if _axis(x.node) != _axis(node) or len(parts) != len(node.results):
        return None
    fits = all(part.type == result.type for part, result in zip(parts, node.results, strict=True))
    return parts if fits else None
