"""Forms that ended with opset 6 or before, each rewritten to the form that came next.

Differences that need no rule: the attributes consumed_inputs (opset 1 to 5) and output_sequence (recurrent networks)
say nothing about the results.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from glowstone.errors import ModelError
from glowstone.graph import Value
from glowstone.importer.imported import Imported
from glowstone.importer.registry import OnnxNode, imports, rule_for
from glowstone.importer.rules.mathematics import DEFAULT_DROPOUT
from glowstone.ops import Unsqueeze
from glowstone.ops.constant import constant, scalar
from glowstone.types import ElementType, normalize_axis

Rewrite = Callable[[OnnxNode], OnnxNode]

BROADCASTING = ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")


def rewrites(name: str, until: int) -> Callable[[Rewrite], Rewrite]:
    """Register what turns a node of the opsets up to `until` into one of the next."""

    def register(rewrite: Rewrite) -> Rewrite:
        def import_rewritten(node: OnnxNode) -> Imported | tuple[Imported, ...]:
            rule = rule_for(name, until + 1)
            assert rule is not None
            return rule(rewrite(node).changed(opset=until + 1))

        imports(name, until=until)(import_rewritten)
        return rewrite

    return register


def _with_broadcast(node: OnnxNode) -> OnnxNode:
    """Before opset 7 the axes of B are those of A from `axis` on, the last ones by default."""
    a, b = node.operand(0), node.operand(1)
    axis = node.optional_integer("axis")
    if not node.flag("broadcast") or axis is None:
        return node
    behind = a.rank - normalize_axis(axis, a.rank) - b.rank if a.rank else 0
    if behind < 0:
        raise ModelError("operand B does not fit behind attribute axis", expected=str(a.type), found=str(b.type))
    new_axes = tuple(range(b.rank, b.rank + behind))
    return node.changed(operands=(a, node.emit(Unsqueeze(new_axes), b))) if new_axes else node


for _name in BROADCASTING:
    rewrites(_name, until=6)(_with_broadcast)


@rewrites("PRelu", until=6)
def _with_slopes_of_channels(node: OnnxNode) -> OnnxNode:
    """One slope, or one for each channel (axis 1)."""
    x, slope = node.operand(0), node.operand(1)
    behind = tuple(range(1, x.rank - 1))
    if slope.rank != 1 or slope.shape == (1,) or not behind:
        return node
    return node.changed(operands=(x, node.emit(Unsqueeze(behind), slope)))


@rewrites("Cast", until=5)
def _with_number_of_type(node: OnnxNode) -> OnnxNode:
    """The type is given by its name."""
    import onnx

    numbers: dict[str, int] = dict(onnx.TensorProto.DataType.items())
    name = node.text("to", "").upper()
    if name not in numbers:
        raise ModelError("attribute to is no element type", expected=", ".join(sorted(numbers)), found=name)
    return node.changed(to=numbers[name])


@rewrites("Concat", until=3)
def _with_axis(node: OnnxNode) -> OnnxNode:
    return node.changed(axis=node.integer("axis", 1))


@rewrites("Reshape", until=4)
def _with_shape_operand(node: OnnxNode) -> OnnxNode:
    shape = node.integer_list("shape")
    if shape is None:
        raise ModelError("attribute shape is missing")
    return node.changed(operands=(node.operand(0), _integers(node, *shape)))


@rewrites("Split", until=1)
def _with_sizes_attribute(node: OnnxNode) -> OnnxNode:
    """Sizes are an operand or an attribute."""
    sizes = node.integers(1, "split")
    return node if sizes is None else node.changed(operands=node.operands[:1], split=sizes)


@rewrites("Pad", until=1)
def _with_pads(node: OnnxNode) -> OnnxNode:
    pads = node.integer_list("paddings")
    if pads is None:
        raise ModelError("attribute paddings is missing")
    return node.changed(pads=pads)


@rewrites("Tile", until=5)
def _with_repeats(node: OnnxNode) -> OnnxNode:
    """A number of tiles along one axis."""
    x = node.operand(0)
    tiles, axis = node.integers(1, "tiles"), node.integers(2, "axis")
    if tiles is None or axis is None or len(tiles) != 1 or len(axis) != 1:
        raise ModelError("operands tiles and axis are no single integers", expected="one each", found=[tiles, axis])
    repeats = [1] * x.rank
    repeats[normalize_axis(axis[0], x.rank)] = tiles[0]
    return node.changed(operands=(x, _integers(node, *repeats)))


@rewrites("Upsample", until=6)
def _with_scales(node: OnnxNode) -> OnnxNode:
    """x [N, C, H, W] with a scale for its height and one for its width."""
    scales = [node.number(name, 0.0) for name in ("height_scale", "width_scale")]
    if min(scales) <= 0 or node.operand(0).rank != 4:
        raise ModelError(
            "Upsample-1 takes x [N, C, H, W] and two scales",
            expected="rank 4, scales over 0",
            found=[str(node.operand(0).type), *scales],
        )
    return node.changed(scales=(1.0, 1.0, *scales))


def _with_integral_p(node: OnnxNode) -> OnnxNode:
    """p is a FLOAT."""
    p = node.number("p", 2.0)
    if not p.is_integer():
        raise node.refuse("p", "an integral number")
    return node.changed(p=int(p))


for _name in ("GlobalLpPool", "LpPool"):
    rewrites(_name, until=1)(_with_integral_p)


@rewrites("Dropout", until=6)
def _with_training_operand(node: OnnxNode) -> OnnxNode:
    """is_test is what became the operand training_mode; it means training where it is left out."""
    if node.flag("is_test"):
        return node
    ratio = scalar(node.builder, node.number("ratio", DEFAULT_DROPOUT), ElementType.F32)
    return node.changed(operands=(node.operand(0), ratio, scalar(node.builder, True, ElementType.BOOL)))


def _integers(node: OnnxNode, *numbers: int) -> Value:
    return constant(node.builder, np.array(numbers, np.int64))
