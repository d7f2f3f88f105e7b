"""Packs the constant factor of matrix products into panels of columns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from glowstone.backends.cpu.ops import PackedMatMul
from glowstone.backends.cpu.product_tile import panel_width
from glowstone.backends.cpu.target import Target
from glowstone.backends.cpu.tuning import ProductCase, Tuning
from glowstone.graph import Builder, Graph, Node, Operator
from glowstone.ops import Fused, MatMul
from glowstone.ops.constant import constant, constant_array
from glowstone.types import ElementType


@dataclass(frozen=True)
class PackWeights:
    """The pass for one target."""

    target: Target
    tuning: Tuning = field(default_factory=Tuning)

    @property
    def __name__(self) -> str:
        return "pack_weights"

    def __call__(self, graph: Graph) -> bool:
        """Rewrite products with a constant right factor of rank 2; returns whether there were any."""
        changed = False
        for node in graph.nodes:
            anchor = node.operator.anchor if isinstance(node.operator, Fused) else node.operator
            if isinstance(anchor, MatMul):
                changed = self._pack(graph, node) or changed
        if changed:
            graph.drop_dead_uses()
        return changed

    def _pack(self, graph: Graph, node: Node) -> bool:
        a, b, *extras = node.operands
        weights = constant_array(b)
        if a is None or weights is None or weights.ndim != 2 or a.rank < 2 or a.element is not ElementType.F32:
            return False
        builder = Builder(graph, node.names)
        choice = self.tuning.product(product_case(a.shape, weights.shape))
        panel = panel_width(self.target) if choice is None else choice.panel
        form = PackedMatMul(weights.shape[1], panel)
        whole: Operator = form
        if isinstance(node.operator, Fused):
            whole = Fused(form, 2, node.operator.epilogue)
        graph.replace(node.result, builder.emit(whole, a, constant(builder, form.pack(weights)), *extras))
        return True


def product_case(left: tuple[int, ...], right: tuple[int, int]) -> ProductCase:
    """What choices depend on, from the shapes of the factors."""
    return ProductCase(math.prod(left[:-1]), right[0], right[1])
