"""From ONNX to the graph. `onnx` itself is imported on first use."""

from glowstone.importer.file_graph import FileGraph
from glowstone.importer.importer import check_shape, declared_inputs, import_model
from glowstone.importer.model_file import ModelFile, open_model, parse_model
from glowstone.importer.part import Given, Part, Wishes, deciding_inputs, import_part
from glowstone.importer.portable import with_data_inside
from glowstone.importer.ports import DeclaredPort, declared_ports
from glowstone.importer.registry import RULES, OnnxNode, imports, rule_for
from glowstone.importer.structure import check_structure

__all__ = [
    "RULES",
    "DeclaredPort",
    "FileGraph",
    "Given",
    "ModelFile",
    "OnnxNode",
    "Part",
    "Wishes",
    "check_shape",
    "check_structure",
    "deciding_inputs",
    "declared_inputs",
    "declared_ports",
    "import_model",
    "import_part",
    "imports",
    "open_model",
    "parse_model",
    "rule_for",
    "with_data_inside",
]
