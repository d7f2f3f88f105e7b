"""Builders of real architectures as ONNX models: seeded random weights, spelled as PyTorch's exporter spells them.

One module an architecture, with one function `build(...)` whose arguments are depth, widths, seed and opset. Extents of
batch and sequence are symbolic. `catalogue` names the networks with their inputs, in full and in reduced size.
"""
