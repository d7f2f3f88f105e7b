"""Import rules of the operators that ONNX Runtime's optimizer, quantizer and transformer exporters write."""

from glowstone.importer.rules.microsoft import activation, normalization, products, quantized, quantized_products

__all__ = ["activation", "normalization", "products", "quantized", "quantized_products"]
