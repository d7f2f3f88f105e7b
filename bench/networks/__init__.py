"""Builders of the networks that are measured: ONNX models with seeded random weights, nothing downloaded.

Each module has one function `build(seed, ...) -> onnx.ModelProto` with the depth and width of the published network as
defaults. The nodes are spelled as PyTorch's exporter spells them, normalization folded into convolutions as it does.
"""
