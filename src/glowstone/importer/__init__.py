"""From ONNX to the graph. `onnx` itself is imported on first use."""

from glowstone.importer.importer import check_shape, declared_inputs, declared_outputs, import_model
from glowstone.importer.model_file import ModelFile, open_model, parse_model
from glowstone.importer.portable import with_data_inside
from glowstone.importer.registry import RULES, OnnxNode, imports, rule_for
from glowstone.importer.tensors import external_locations

__all__ = [
    "RULES",
    "ModelFile",
    "OnnxNode",
    "check_shape",
    "declared_inputs",
    "declared_outputs",
    "external_locations",
    "import_model",
    "imports",
    "open_model",
    "parse_model",
    "rule_for",
    "with_data_inside",
]
