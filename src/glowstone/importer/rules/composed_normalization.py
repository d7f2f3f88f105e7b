"""InstanceNormalization, GroupNormalization, RMSNormalization, LRN, LpNormalization, MeanVarianceNormalization."""

from __future__ import annotations

from glowstone.errors import ModelError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import (
    LRN,
    GroupNormalization,
    InstanceNormalization,
    LpNormalization,
    MeanVarianceNormalization,
    RMSNormalization,
)


@imports("InstanceNormalization")
def import_instance_normalization(node: OnnxNode) -> Value:
    return node.emit(InstanceNormalization(node.number("epsilon", 1e-5)), *node.operands)


@imports("GroupNormalization", since=18)
def import_group_normalization_18(node: OnnxNode) -> Value:
    """GroupNormalization-18: scale and bias are per group."""
    return _group_normalization(node, per_group=True)


@imports("GroupNormalization", since=21)
def import_group_normalization(node: OnnxNode) -> Value:
    return _group_normalization(node, per_group=False)


def _group_normalization(node: OnnxNode, per_group: bool) -> Value:
    groups = node.optional_integer("num_groups")
    if groups is None:
        raise ModelError("attribute num_groups is missing", expected="an integer")
    return node.emit(GroupNormalization(groups, node.number("epsilon", 1e-5), per_group), *node.operands)


@imports("RMSNormalization", since=23)
def import_rms_normalization(node: OnnxNode) -> Value:
    return node.emit(RMSNormalization(node.integer("axis", -1), node.number("epsilon", 1e-5)), *node.operands)


@imports("LpNormalization")
def import_lp_normalization(node: OnnxNode) -> Value:
    return node.emit(LpNormalization(node.integer("axis", -1), node.integer("p", 2)), node.operand(0))


@imports("MeanVarianceNormalization", since=9)
def import_mean_variance_normalization(node: OnnxNode) -> Value:
    return node.emit(MeanVarianceNormalization(node.integer_list("axes") or (0, 2, 3)), node.operand(0))


@imports("LRN")
def import_lrn(node: OnnxNode) -> Value:
    size = node.optional_integer("size")
    if size is None:
        raise ModelError("attribute size is missing", expected="an integer")
    numbers = (node.number("alpha", 1e-4), node.number("beta", 0.75), node.number("bias", 1.0))
    return node.emit(LRN(size, *numbers), node.operand(0))
