"""What an ONNX file contains, whether or not Glowstone can compile it.

In: a path, and shapes for inputs with symbolic dimensions. Out: inputs and outputs, operators with their counts,
parameters, and the arithmetic of convolutions and matrix products.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from glowstone.errors import ModelError, ShapeError

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

Shape = tuple[int | str, ...]
_Shapes = Mapping[str, Shape]


@dataclass(frozen=True)
class TensorSummary:
    """A named tensor: element type as ONNX writes it, and shape with symbols ('?' where nameless) where dynamic."""

    name: str
    element: str
    shape: Shape


@dataclass(frozen=True)
class ModelSummary:
    """What a model contains. `operations` counts two for each multiply-add, None where shapes are not all known."""

    inputs: tuple[TensorSummary, ...]
    outputs: tuple[TensorSummary, ...]
    operators: Mapping[str, int]
    parameters: int
    parameter_bytes: int
    operations: int | None


def inspect_model(path: Path, shapes: Mapping[str, tuple[int, ...]] | None = None) -> ModelSummary:
    """Read a model and count what is in it.

    Raises:
        ModelError: the file is not an ONNX model.
        ShapeError: `shapes` names something that is not an input, or a shape that does not fit it.
        OSError: the file cannot be read.
    """
    from onnx import shape_inference

    model = _load(path)
    _set_shapes(model.graph, shapes or {})
    try:
        model = shape_inference.infer_shapes(model, data_prop=True)
    except (shape_inference.InferenceError, RuntimeError) as error:
        raise ShapeError(f"shapes do not fit the model: {error}", file=str(path)) from error
    graph = model.graph
    constants = _constants(graph)
    known = {info.name: _shape_of(info) for info in [*graph.value_info, *_real_inputs(graph), *graph.output]}
    known.update({name: tuple(tensor.dims) for name, tensor in constants.items()})
    return ModelSummary(
        inputs=tuple(map(_summary_of, _real_inputs(graph))),
        outputs=tuple(map(_summary_of, graph.output)),
        operators=dict(sorted(Counter(node.op_type for node in graph.node).items(), key=lambda one: (-one[1], one[0]))),
        parameters=sum(math.prod(tensor.dims) for tensor in constants.values()),
        parameter_bytes=sum(_byte_size(tensor) for tensor in constants.values()),
        operations=count_operations(graph.node, known),
    )


def declared_inputs(path: Path) -> tuple[TensorSummary, ...]:
    """The inputs as the file declares them.

    Raises:
        ModelError: the file is not an ONNX model.
        OSError: the file cannot be read.
    """
    return tuple(map(_summary_of, _real_inputs(_load(path).graph)))


def count_operations(nodes: Iterable[NodeProto], shapes: _Shapes) -> int | None:
    """Two for each multiply-add of the convolutions and matrix products; None if a shape that matters is not known."""
    total = 0
    for node in nodes:
        rule = _MULTIPLY_ADDS.get(node.op_type)
        if rule is None:
            continue
        operands = [shapes.get(name, ("?",)) for name in (*node.input[:2], node.output[0])]
        if not all(isinstance(extent, int) for shape in operands for extent in shape):
            return None
        total += 2 * rule(node, *([int(extent) for extent in shape] for shape in operands))
    return total


def _convolution(_: NodeProto, x: list[int], weights: list[int], y: list[int]) -> int:
    return math.prod(y) * math.prod(weights[1:])


def _transposed_convolution(_: NodeProto, x: list[int], weights: list[int], y: list[int]) -> int:
    return math.prod(x) * math.prod(weights[1:])


def _matrix_product(_: NodeProto, a: list[int], b: list[int], y: list[int]) -> int:
    return math.prod(y) * (a[-1] if a else 1)


def _gemm(node: NodeProto, a: list[int], b: list[int], y: list[int]) -> int:
    is_transposed = any(attribute.name == "transA" and attribute.i for attribute in node.attribute)
    return math.prod(y) * a[0 if is_transposed else 1]


_MULTIPLY_ADDS: Final[Mapping[str, Callable[[NodeProto, list[int], list[int], list[int]], int]]] = {
    "Conv": _convolution,
    "ConvTranspose": _transposed_convolution,
    "Gemm": _gemm,
    "MatMul": _matrix_product,
}


def _load(path: Path) -> ModelProto:
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load(path, load_external_data=False)
    except DecodeError as error:
        raise ModelError("not an ONNX model", file=str(path), found=str(error)) from error
    if not model.graph.node and not model.graph.output:
        raise ModelError("not an ONNX model", file=str(path), found="no graph")
    return model


def _real_inputs(graph: GraphProto) -> list[ValueInfoProto]:
    """The inputs a caller gives: old files list weights among the inputs too."""
    weights = {tensor.name for tensor in graph.initializer}
    return [info for info in graph.input if info.name not in weights]


def _constants(graph: GraphProto) -> dict[str, TensorProto]:
    """Tensors in the file: initializers, and the values of Constant nodes."""
    found = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            found.update((node.output[0], one.t) for one in node.attribute if one.name == "value")
    return found


def _set_shapes(graph: GraphProto, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Give inputs the shapes, where the file leaves them open."""
    inputs = {info.name: info for info in _real_inputs(graph)}
    for name, shape in shapes.items():
        if name not in inputs:
            raise ShapeError(f"the model has no input {name!r}", expected=", ".join(inputs), found=name)
        declared = _shape_of(inputs[name])
        fits = len(declared) == len(shape) and all(
            isinstance(old, str) or old == new for old, new in zip(declared, shape, strict=True)
        )
        if not fits:
            raise ShapeError(f"the shape of {name!r} does not fit", expected=declared, found=shape)
        for dimension, extent in zip(inputs[name].type.tensor_type.shape.dim, shape, strict=True):
            dimension.dim_value = extent


def _shape_of(info: ValueInfoProto) -> Shape:
    dimensions = info.type.tensor_type.shape.dim
    return tuple(one.dim_value if one.HasField("dim_value") else one.dim_param or "?" for one in dimensions)


def _summary_of(info: ValueInfoProto) -> TensorSummary:
    from onnx import TensorProto

    return TensorSummary(info.name, TensorProto.DataType.Name(info.type.tensor_type.elem_type).lower(), _shape_of(info))


def _byte_size(tensor: TensorProto) -> int:
    from onnx import helper

    return int(math.prod(tensor.dims) * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
