"""NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss."""

from __future__ import annotations

from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss


@imports("NegativeLogLikelihoodLoss", since=12)
def import_negative_log_likelihood_loss(node: OnnxNode) -> Value:
    operator = NegativeLogLikelihoodLoss(node.text("reduction", "mean"), node.optional_integer("ignore_index"))
    return node.emit(operator, *node.operands)


@imports("SoftmaxCrossEntropyLoss", since=12)
def import_softmax_cross_entropy_loss(node: OnnxNode) -> tuple[Value, ...]:
    operator = SoftmaxCrossEntropyLoss(node.text("reduction", "mean"), node.optional_integer("ignore_index"))
    return node.builder.emit_node(operator, *node.operands).results
