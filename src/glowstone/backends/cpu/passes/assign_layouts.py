"""Chooses layout and algorithm of convolutions over the whole graph, so that conversions stay at its borders.

A two-dimensional convolution runs on channel-blocked data. What can work on either layout (elementwise nodes, pooling,
spatial reductions, resizing, joins and moves of whole blocks) takes the layout of its data, so blocked regions grow
until something needs the plain layout. Weights are packed here. Depends on the target and on static channel counts
only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from glowstone.backends.cpu.convolution_choice import winograd_tile
from glowstone.backends.cpu.ops import BlockedConv, DepthwiseConv, FromBlocked, StemConv, ToBlocked, WinogradConv
from glowstone.backends.cpu.ops.convolution import PackedConvolution
from glowstone.backends.cpu.product_tile import panel_width
from glowstone.backends.cpu.register_tile import blocks_per_panel, grouped_blocks_per_panel
from glowstone.backends.cpu.target import Target
from glowstone.backends.cpu.tuning import DIRECT, WINOGRAD, ConvolutionCase, ConvolutionChoice, Tuning
from glowstone.backends.cpu.winograd_transforms import KERNEL
from glowstone.graph import Builder, Graph, Node, Operator, Tensor, Value
from glowstone.ops import Concat, Constant, Conv, DepthToSpace, Elementwise, Fused, Pooling, Reduction, Resize
from glowstone.ops.constant import constant, constant_array
from glowstone.types import CHANNEL_AXIS, ElementType, normalize_axis

BLOCKED_RANK = 4
STEM_CHANNELS = 4
"""Up to so many input channels a convolution reads the plain layout: a block would be mostly padding."""


@dataclass(frozen=True)
class AssignLayouts:
    """The pass for one target. `exact` rules out algorithms that sum other products than the specification's."""

    target: Target
    exact: bool = False
    tuning: Tuning = field(default_factory=Tuning)

    @property
    def __name__(self) -> str:
        return "assign_layouts"

    def __call__(self, graph: Graph) -> bool:
        """Rewrite nodes to blocked forms, with conversions where layouts meet; returns whether anything changed."""
        return _Assignment(graph, self).run()


class _Assignment:
    """One run of the pass: which values have a blocked form."""

    def __init__(self, graph: Graph, settings: AssignLayouts) -> None:
        self._graph = graph
        self._settings = settings
        self._block = settings.target.channel_block
        self._blocked: dict[Value, Value] = {}
        self._plain: dict[Value, Value] = {}

    def run(self) -> bool:
        for node in self._graph.nodes:
            made = self._blocked_form(node)
            if made is not None:
                self._blocked[node.result] = made
                continue
            for index, operand in enumerate(node.operands):
                if operand is not None and operand in self._blocked:
                    self._graph.set_operand(node, index, self._plain_form(operand))
        for output in self._graph.outputs:
            if output in self._blocked:
                self._graph.replace(output, self._plain_form(output))
        if self._blocked:
            self._graph.drop_dead_uses()
        return bool(self._blocked)

    def _plain_form(self, value: Value) -> Value:
        if value not in self._plain:
            builder = Builder(self._graph, value.node.names if value.node is not None else ())
            self._plain[value] = builder.emit(FromBlocked(), self._blocked[value])
        return self._plain[value]

    def _to_blocked(self, value: Value) -> Value:
        """The blocked form of a value of rank 4; constants are blocked ahead."""
        if value not in self._blocked:
            builder = Builder(self._graph, value.node.names if value.node is not None else ())
            self._plain[value] = value
            array = constant_array(value)
            if array is not None:
                self._blocked[value] = builder.emit(Constant(Tensor(array, value.element), self._block))
            else:
                self._blocked[value] = builder.emit(ToBlocked(self._block), value)
        return self._blocked[value]

    def _blocked_form(self, node: Node) -> Value | None:
        """The node on blocked data, or None where it stays plain."""
        operator = node.operator.anchor if isinstance(node.operator, Fused) else node.operator
        if len(node.results) != 1 or node.result.rank != BLOCKED_RANK or node.result.element is not ElementType.F32:
            return None
        if isinstance(operator, Conv):
            return self._convolution(node, operator)
        if not any(operand in self._blocked for operand in node.present_operands()):
            return None
        if isinstance(operator, Elementwise):
            return self._elementwise(node)
        if isinstance(operator, Pooling):
            return Builder(self._graph, node.names).emit(operator, self._to_blocked(node.operands[0]))  # type: ignore[arg-type]
        if isinstance(operator, Reduction):
            return self._reduction(node, operator)
        if isinstance(operator, Concat):
            return self._concat(node, operator)
        if isinstance(operator, Resize) and operator.keeps_axis(CHANNEL_AXIS, *node.operands):
            return self._moved(node)
        if isinstance(operator, DepthToSpace) and operator.moves_blocks(self._channels(node), self._block):
            return self._moved(node)
        return None

    def _channels(self, node: Node) -> int:
        (x, *_) = node.present_operands()
        return x.shape[CHANNEL_AXIS]

    def _moved(self, node: Node) -> Value:
        """A node that moves pixels of its first operand and leaves lanes where they are."""
        x, *others = node.operands
        assert x is not None
        return Builder(self._graph, node.names).emit(node.operator, self._to_blocked(x), *others)

    def _extras(self, node: Node, count: int) -> list[Value] | None:
        """Epilogue or elementwise operands in blocked form, or None where one has none."""
        result = []
        for operand in node.operands[count:]:
            assert operand is not None
            if operand.type.size == 1 and not operand.dynamic:
                result.append(self._single(operand, node.result.shape[CHANNEL_AXIS]))
                continue
            aligned = self._rank_four(node, operand)
            if aligned is None or aligned.shape[CHANNEL_AXIS] != node.result.shape[CHANNEL_AXIS]:
                return None
            result.append(self._to_blocked(aligned))
        return result

    def _single(self, value: Value, channels: int) -> Value:
        """A value of one element: blocked if it is already and so is a result of one channel, else plain."""
        if value not in self._blocked:
            return value
        return self._blocked[value] if channels == 1 else self._plain_form(value)

    def _rank_four(self, node: Node, value: Value) -> Value | None:
        """A constant of lower rank with leading axes added; None for other values of lower rank."""
        if value.rank == BLOCKED_RANK:
            return value
        array = constant_array(value)
        if array is None:
            return None
        shape = (1,) * (BLOCKED_RANK - array.ndim) + array.shape
        return constant(Builder(self._graph, node.names), array.reshape(shape), value.element)

    def _elementwise(self, node: Node) -> Value | None:
        if any(operand.element is not ElementType.F32 for operand in node.present_operands()):
            return None
        operands = self._extras(node, 0)
        return None if operands is None else Builder(self._graph, node.names).emit(node.operator, *operands)

    def _reduction(self, node: Node, operator: Reduction) -> Value | None:
        x = node.operands[0]
        assert x is not None
        if not operator.keep or x.rank != BLOCKED_RANK or min(operator.normal_axes(x.rank), default=0) <= CHANNEL_AXIS:
            return None
        extras = self._extras(node, 1)
        if extras is None:
            return None
        return Builder(self._graph, node.names).emit(node.operator, self._to_blocked(x), *extras)

    def _concat(self, node: Node, operator: Concat) -> Value | None:
        """Joins of whole blocks; channels inside blocks would have to shift lanes."""
        axis = normalize_axis(operator.axis, BLOCKED_RANK)
        if axis == CHANNEL_AXIS and any(
            operand.shape[CHANNEL_AXIS] % self._block for operand in list(node.present_operands())[:-1]
        ):
            return None
        operands = [self._to_blocked(operand) for operand in node.present_operands()]
        return Builder(self._graph, node.names).emit(operator, *operands)

    def _convolution(self, node: Node, operator: Conv) -> Value | None:
        x, w = node.operands[0], node.operands[1]
        weights = constant_array(w)
        if (
            x is None
            or weights is None
            or weights.ndim != BLOCKED_RANK
            or (isinstance(node.operator, Conv) and len(node.operands) > 2)
        ):
            return None
        form = self._form(node, operator, weights.shape)
        if form is None:
            return None
        extras = self._extras(node, 2)
        if extras is None:
            return None
        builder = Builder(self._graph, node.names)
        packed = constant(builder, form.pack(weights))  # type: ignore[attr-defined]
        source = self._to_blocked(x) if form.reads_blocked else self._plain_source(x)
        whole: Operator = form
        if isinstance(node.operator, Fused):
            whole = Fused(form, 2, node.operator.epilogue)
        return builder.emit(whole, source, packed, *extras)

    def _form(self, node: Node, conv: Conv, weights: tuple[int, ...]) -> PackedConvolution | None:
        """The packed operator: as the tuning file says, else by the rules."""
        settings = self._settings
        choice = settings.tuning.convolution(convolution_case(conv, weights, node.result.shape))
        tile = self._winograd_tile(conv, weights, node.result.shape, choice)
        if tile is not None:
            return WinogradConv(
                pads=(conv.pads[0], conv.pads[1], conv.pads[2], conv.pads[3]),
                padding=conv.padding,
                channels=weights[0],
                block=self._block,
                inputs=weights[1],
                panel=panel_width(settings.target),
                tile=tile,
            )
        blocks = choice.blocks if choice is not None and choice.algorithm == DIRECT else None
        return packed_form(conv, weights, settings.target, blocks)

    def _winograd_tile(
        self, conv: Conv, weights: tuple[int, ...], result: tuple[int, ...], choice: ConvolutionChoice | None
    ) -> int | None:
        """Tile size of Winograd's algorithm, or None for another algorithm."""
        if self._settings.exact or not allows_winograd(conv, weights):
            return None
        if choice is not None:
            return WINOGRAD.get(choice.algorithm)
        images, _, height, width = result
        return winograd_tile(weights[1], weights[0], images, height, width, self._settings.target)

    def _plain_source(self, value: Value) -> Value:
        return self._plain_form(value) if value in self._blocked else value


def allows_winograd(conv: Conv, weights: tuple[int, ...]) -> bool:
    """Whether the convolution, with weights [O, I / groups, KH, KW], is one that Winograd's algorithm computes."""
    _, inputs, *kernel = weights
    plain = (tuple(kernel), conv.strides, conv.dilations, conv.groups) == ((KERNEL, KERNEL), (1, 1), (1, 1), 1)
    return plain and inputs > STEM_CHANNELS


def convolution_case(conv: Conv, weights: tuple[int, ...], result: tuple[int, ...]) -> ConvolutionCase:
    """What choices depend on, from weights [O, I / groups, KH, KW] and the shape [N, O, OH, OW] of the result."""
    outputs, inputs, *kernel = weights
    images, _, height, width = result
    return ConvolutionCase(
        inputs * conv.groups,
        outputs,
        conv.groups,
        (kernel[0], kernel[1]),
        (conv.strides[0], conv.strides[1]),
        (conv.dilations[0], conv.dilations[1]),
        images,
        height,
        width,
    )


def packed_form(
    conv: Conv, weights: tuple[int, ...], target: Target, blocks: int | None = None
) -> PackedConvolution | None:
    """The packed operator for weights [O, I / groups, KH, KW]; None where the plain convolution must do.

    `blocks` are the channel blocks of a register tile, chosen by rule where that is None or does not divide a group.
    """
    outputs, inputs, height, width = weights
    block = target.channel_block
    common = ((height, width), conv.strides, conv.dilations, conv.pads, conv.padding, outputs, block)
    out_blocks = -(-outputs // block)
    if conv.groups == 1:
        tile = blocks or blocks_per_panel(target, out_blocks)
        if inputs <= STEM_CHANNELS:
            return StemConv(*common, inputs, tile)  # type: ignore[arg-type]
        return BlockedConv(*common, inputs, 1, tile)  # type: ignore[arg-type]
    if inputs == 1 and outputs == conv.groups:
        return DepthwiseConv(*common)  # type: ignore[arg-type]
    per_group = outputs // conv.groups
    if inputs % block or per_group % block:
        return None
    tile = grouped_blocks_per_panel(target, per_group // block)
    if blocks is not None and per_group // block % blocks == 0:
        tile = blocks
    return BlockedConv(*common, inputs * conv.groups, conv.groups, tile)  # type: ignore[arg-type]
