"""Import rules of the operators that ONNX Runtime's optimizer, quantizer and transformer exporters write."""

from glowstone.importer.rules.microsoft import (
    activation,
    attention,
    group_query_attention,
    low_bit_matmul,
    normalization,
    products,
    quantized,
    quantized_attention,
    quantized_products,
)

__all__ = [
    "activation",
    "attention",
    "group_query_attention",
    "low_bit_matmul",
    "normalization",
    "products",
    "quantized",
    "quantized_attention",
    "quantized_products",
]
