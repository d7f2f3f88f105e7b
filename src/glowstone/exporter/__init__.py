"""From a graph to ONNX. `onnx` itself is imported on first use."""

from glowstone.exporter.exporter import DOMAIN, OPSET, export_graph

__all__ = ["DOMAIN", "OPSET", "export_graph"]
