"""DFT, STFT, MelWeightMatrix."""

from __future__ import annotations

from glowstone.errors import ModelError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.importer.tensors import element_type
from glowstone.ops import DFT, STFT, MelWeightMatrix

_FLOAT = 1


@imports("DFT", since=17)
def import_dft_axis_attribute(node: OnnxNode) -> Value:
    """DFT-17: the axis is an attribute."""
    return _dft(node, node.integer("axis", 1))


@imports("DFT", since=20)
def import_dft(node: OnnxNode) -> Value:
    axis = node.integers(2, "axis")
    if axis is not None and len(axis) != 1:
        raise ModelError("operand axis is not one integer", expected="one integer", found=axis)
    return _dft(node, -2 if axis is None else axis[0])


def _dft(node: OnnxNode, axis: int) -> Value:
    return node.emit(DFT(axis, node.flag("inverse"), node.flag("onesided")), node.operand(0), node.optional(1))


@imports("STFT", since=17)
def import_stft(node: OnnxNode) -> Value:
    return node.emit(STFT(bool(node.integer("onesided", 1))), *node.operands)


@imports("MelWeightMatrix", since=17)
def import_mel_weight_matrix(node: OnnxNode) -> Value:
    element = element_type(node.integer("output_datatype", _FLOAT), "attribute output_datatype")
    return node.emit(MelWeightMatrix(element), *node.operands)
