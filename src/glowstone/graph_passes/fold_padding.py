"""Zeros put around an image become padding of the convolution or pooling that reads it."""

from __future__ import annotations

from dataclasses import replace

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.ops import AveragePool, Conv, Pad
from glowstone.ops.constant import constant_array


def fold_padding(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (pad_in_convolution, pad_in_average))


@rewrite(Conv)
def pad_in_convolution(builder: Builder, node: Node) -> Value | None:
    operator = node.operator
    assert isinstance(operator, Conv)
    pads = _joined_pads(node, operator.padding, operator.pads)
    if pads is None:
        return None
    return builder.emit(replace(operator, pads=pads, padding="explicit"), _padded(node), *node.operands[1:])


@rewrite(AveragePool)
def pad_in_average(builder: Builder, node: Node) -> Value | None:
    """The zeros are counted, so own padding must be too."""
    operator = node.operator
    assert isinstance(operator, AveragePool)
    pads = _joined_pads(node, operator.padding, operator.pads)
    own = operator.padding == "explicit" and any(operator.pads)
    if pads is None or operator.ceil_mode or (own and not operator.count_include_pad):
        return None
    folded = replace(operator, pads=pads, padding="explicit", count_include_pad=True)
    return builder.emit(folded, _padded(node))


def _padded(node: Node) -> Value | None:
    """What the zeros are put around."""
    image = node.operands[0]
    assert image is not None
    assert image.node is not None
    return image.node.operands[0]


def _joined_pads(node: Node, padding: str, pads: tuple[int, ...]) -> tuple[int, ...] | None:
    """The window's padding with that of the `Pad` before it; None where it has none that fits."""
    image = node.operands[0]
    margins = _zero_margins(image) if image is not None else None
    if margins is None or padding not in ("explicit", "valid"):
        return None
    own = pads if padding == "explicit" else (0,) * len(margins)
    return tuple(mine + more for mine, more in zip(own, margins, strict=True))


def _zero_margins(image: Value) -> tuple[int, ...] | None:
    """Zeros before, then after the spatial axes of an image; None unless that is all a `Pad` does."""
    if image.node is None or not isinstance(image.operator, Pad) or image.operator.mode != "constant":
        return None
    _, pads, value, axes = (*image.node.operands, None, None)[:4]
    for host in (pads, axes):
        if host is not None and (host.known is None or host.dynamic):
            return None
    array = constant_array(value)
    if value is not None and (array is None or array.any()):
        return None
    before, after = image.operator.known_margins(*image.node.operands)
    if any((*before[:2], *after[:2])) or min((*before, *after), default=0) < 0:
        return None
    return (*before[2:], *after[2:])
