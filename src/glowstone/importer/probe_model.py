"""A tiny model that shows what another engine makes of symbolic dimensions."""

from __future__ import annotations

from collections.abc import Sequence


def dimension_probe(symbols: Sequence[str]) -> bytes:
    """A serialized model with one input of shape [symbol] for each symbol, each passed on to an output."""
    import onnx
    from onnx import TensorProto, helper

    def describe(name: str, shape: list[str] | None) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    inputs = [describe(f"x{number}", [symbol]) for number, symbol in enumerate(symbols)]
    outputs = [describe(f"y{number}", None) for number in range(len(symbols))]
    nodes = [helper.make_node("Identity", [f"x{number}"], [f"y{number}"]) for number in range(len(symbols))]
    graph = helper.make_graph(nodes, "dimension_probe", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert isinstance(model, onnx.ModelProto)
    serialized: bytes = model.SerializeToString()
    return serialized
