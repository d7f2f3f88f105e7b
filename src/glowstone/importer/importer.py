"""From an ONNX model to a graph.

In: a model and a reference shape. Out: a `Graph` whose types are concrete at that shape and whose dynamic values are
marked. Nothing that depends on a symbolic extent is folded, so `rebuild` gives the graph of any other shape.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np

from glowstone.errors import GlowstoneError, LimitError, ModelError, ShapeError, UnsupportedError
from glowstone.graph import Builder, Dimension, Graph, Tensor, Value
from glowstone.importer import rules
from glowstone.importer.model_file import DEFAULT_DOMAINS, ModelFile
from glowstone.importer.registry import OnnxNode, rule_for
from glowstone.importer.tensors import decode_tensor, element_type
from glowstone.ops import Constant
from glowstone.ops.constant import LARGEST_EXTENT
from glowstone.types import ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]

logger = logging.getLogger("glowstone")

NOMINAL_EXTENTS = (64, 224, 48, 32, 128, 256, 16, 8, 4, 2, 1)
"""Tried in this order for symbolic dimensions without a reference shape; the first axis of an input counts as batch."""
NOMINAL_BATCH = 1

assert rules


def import_model(
    model: ModelFile,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    constants: Mapping[str, Array] | None = None,
) -> Graph:
    """The graph of a model.

    Args:
        model: the parsed file.
        shapes: reference shape by input name; inputs left out get nominal extents.
        constants: inputs fixed at compile time, by name.

    Raises:
        ModelError, UnsupportedError, ShapeError, LimitError: each names file, node and operator.
    """
    try:
        _check_operators(model)
        graph_inputs = declared_inputs(model)
        _check_names(graph_inputs, shapes or {}, constants or {})
        return _at_reference(model, graph_inputs, dict(shapes or {}), dict(constants or {}))
    except GlowstoneError as error:
        raise error.with_context(file=model.name) from error.__cause__


def declared_inputs(model: ModelFile) -> dict[str, tuple[ElementType, tuple[Dimension, ...]]]:
    """Element type and dimensions of every input that no initializer gives, by name; unknown ones get a symbol."""
    initializers = {tensor.name for tensor in model.proto.graph.initializer}
    result = {}
    for entry in model.proto.graph.input:
        if entry.name in initializers:
            continue
        if entry.type.WhichOneof("value") != "tensor_type":
            raise UnsupportedError(
                f"input {entry.name!r} is no tensor", expected="a tensor", found=entry.type.WhichOneof("value")
            )
        tensor = entry.type.tensor_type
        element = element_type(tensor.elem_type, f"input {entry.name!r}")
        if not tensor.HasField("shape"):
            raise UnsupportedError(
                f"input {entry.name!r} has no rank",
                expected="a shape, symbolic where unknown",
                remedy="run onnx shape inference, or declare the rank",
            )
        result[entry.name] = (element, _dimensions(entry.name, tensor.shape.dim))
    return result


def _dimensions(name: str, dims: Any) -> tuple[Dimension, ...]:
    result: list[Dimension] = []
    for axis, dim in enumerate(dims):
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            if dim.dim_value > LARGEST_EXTENT:
                raise LimitError(
                    f"input {name!r} has an extent that is too large",
                    expected=f"at most {LARGEST_EXTENT}",
                    found=dim.dim_value,
                )
            result.append(int(dim.dim_value))
        else:
            known = dim.dim_param if dim.dim_param not in ("", "?") else f"{name}_dim_{axis}"
            result.append(known)
    return tuple(result)


def _check_operators(model: ModelFile) -> None:
    """Refuse a model with operators that have no rule, all of them at once."""
    missing: dict[str, list[str]] = {}
    for node in model.proto.graph.node:
        default = node.domain in DEFAULT_DOMAINS
        if not default or rule_for(node.op_type, model.opset) is None:
            kind = node.op_type if default else f"{node.domain}.{node.op_type}"
            missing.setdefault(kind, []).append(node.name or (node.output[0] if node.output else "?"))
    if missing:
        listed = ", ".join(f"{kind} ({len(nodes)})" for kind, nodes in sorted(missing.items()))
        raise UnsupportedError(
            f"the model uses operators that are not supported: {listed}",
            node="; ".join(nodes[0] for _, nodes in sorted(missing.items())),
            operator=", ".join(sorted(missing)),
            expected=f"operators of opset {model.opset} that Glowstone has",
            found=listed,
        )


def _check_names(
    declared: Mapping[str, tuple[ElementType, tuple[Dimension, ...]]],
    shapes: Mapping[str, tuple[int, ...]],
    constants: Mapping[str, Array],
) -> None:
    for name in (*shapes, *constants):
        if name not in declared:
            raise ShapeError("no input of this name", expected=", ".join(declared) or "no inputs", found=name)
    for name, shape in shapes.items():
        check_shape(name, declared[name][1], tuple(shape))


def check_shape(name: str, dimensions: tuple[Dimension, ...], shape: tuple[int, ...]) -> None:
    """Raise ShapeError unless the shape has the declared rank and static dimensions."""
    fits = len(shape) == len(dimensions) and all(
        (isinstance(dimension, str) and extent >= 0) or dimension == extent
        for dimension, extent in zip(dimensions, shape, strict=True)
    )
    if not fits:
        raise ShapeError(
            f"input {name!r} has another shape",
            expected=list(dimensions),
            found=list(shape),
            remedy="give the declared rank and static dimensions, or make the dimension symbolic in the model file",
        )


def _at_reference(
    model: ModelFile,
    declared: Mapping[str, tuple[ElementType, tuple[Dimension, ...]]],
    shapes: dict[str, tuple[int, ...]],
    constants: dict[str, Array],
) -> Graph:
    open_symbols = any(
        isinstance(dimension, str)
        for name, (_, dimensions) in declared.items()
        if name not in shapes and name not in constants
        for dimension in dimensions
    )
    failure: GlowstoneError | None = None
    for extent in NOMINAL_EXTENTS if open_symbols else (1,):
        reference = nominal_shapes(declared, shapes, extent)
        try:
            return _build(model, declared, reference, constants)
        except (ShapeError, ModelError) as error:
            failure = failure or error
    assert failure is not None
    if open_symbols and failure.remedy is None:
        failure.remedy = "give the shapes of the symbolic inputs with shapes={...}"
    raise failure


def nominal_shapes(
    declared: Mapping[str, tuple[ElementType, tuple[Dimension, ...]]],
    shapes: Mapping[str, tuple[int, ...]],
    extent: int,
) -> dict[str, tuple[int, ...]]:
    """A reference shape for every input: as given, else static dimensions, symbols as elsewhere given, or nominal."""
    symbols: dict[str, int] = {}
    for name, shape in shapes.items():
        for dimension, given in zip(declared[name][1], shape, strict=True):
            if isinstance(dimension, str):
                symbols.setdefault(dimension, given)
    result = {}
    for name, (_, dimensions) in declared.items():
        if name in shapes:
            result[name] = tuple(shapes[name])
            continue
        extents = []
        for axis, dimension in enumerate(dimensions):
            nominal = NOMINAL_BATCH if axis == 0 else extent
            extents.append(symbols.setdefault(dimension, nominal) if isinstance(dimension, str) else dimension)
        result[name] = tuple(extents)
    return result


def _build(
    model: ModelFile,
    declared: Mapping[str, tuple[ElementType, tuple[Dimension, ...]]],
    shapes: Mapping[str, tuple[int, ...]],
    constants: Mapping[str, Array],
) -> Graph:
    proto = model.proto.graph
    graph = Graph(proto.name)
    builder = Builder(graph)
    values: dict[str, Value] = {}
    for name, (element, dimensions) in declared.items():
        if name in constants:
            values[name] = _fixed_input(builder, name, element, dimensions, constants[name])
        else:
            values[name] = graph.add_input(name, TensorType(element, shapes[name]), dimensions)
    for tensor in proto.initializer:
        builder.names = (tensor.name,)
        values[tensor.name] = builder.emit(Constant(decode_tensor(tensor, model.folder)))
    if proto.sparse_initializer:
        raise UnsupportedError("sparse initializers are not supported", found=len(proto.sparse_initializer))
    for index, node in enumerate(proto.node):
        _import_node(model, builder, values, node, index)
    for entry in proto.output:
        if entry.name not in values:
            raise ModelError("an output is computed by no node", node=entry.name, expected=f"a value {entry.name!r}")
        value = values[entry.name]
        declared_output = entry.type.tensor_type
        dimensions = (
            _dimensions(entry.name, declared_output.shape.dim) if declared_output.HasField("shape") else value.shape
        )
        graph.add_output(entry.name, value, dimensions if len(dimensions) == value.rank else value.shape)
    return graph


def _fixed_input(
    builder: Builder, name: str, element: ElementType, dimensions: tuple[Dimension, ...], given: Array
) -> Value:
    array = np.asarray(given)
    if array.dtype != element.dtype:
        array = array.astype(element.dtype, casting="same_kind")
    check_shape(name, dimensions, array.shape)
    return builder.emit(Constant(Tensor(array, element)))


def _import_node(model: ModelFile, builder: Builder, values: dict[str, Value], node: Any, index: int) -> None:
    name = node.name or (node.output[0] if node.output else f"node {index}")
    builder.names = (name,)
    try:
        operands = tuple(_operand(values, operand) for operand in node.input)
        attributes = {attribute.name: _attribute(model, attribute) for attribute in node.attribute}
        rule = rule_for(node.op_type, model.opset)
        assert rule is not None
        wrapped = OnnxNode(builder, node.op_type, name, operands, attributes, model.opset, len(node.output))
        results = rule(wrapped)
    except GlowstoneError as error:
        raise error.with_context(node=name, operator=node.op_type) from error.__cause__
    results = results if isinstance(results, tuple) else (results,)
    named = [output for output in node.output if output]
    if len(named) > len(results):
        raise UnsupportedError(
            "a result of the operator is not supported",
            node=name,
            operator=node.op_type,
            expected=f"at most {len(results)} results",
            found=len(named),
        )
    for output, value in zip(node.output, results, strict=False):
        if output:
            value.name = value.name or output
            values[output] = value


def _operand(values: Mapping[str, Value], name: str) -> Value | None:
    if not name:
        return None
    if name not in values:
        raise ModelError(
            f"operand {name!r} is computed by no earlier node", expected="nodes in topological order", found=name
        )
    return values[name]


def _attribute(model: ModelFile, attribute: Any) -> Any:
    import onnx

    if attribute.type == onnx.AttributeProto.TENSOR:
        return decode_tensor(attribute.t, model.folder)
    if attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS):
        raise UnsupportedError(f"attribute {attribute.name} holds a graph, which is not supported")
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if attribute.type in (onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS):
        return tuple(value)
    return value
