"""From an ONNX model to a graph.

In: a model and a reference shape. Out: a `Graph` whose types are concrete at that shape and whose dynamic values are
marked. Nothing that depends on a symbolic extent is folded, so `rebuild` gives the graph of any other shape.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np

from glowstone.errors import GlowstoneError, InputError, ModelError, ShapeError, UnknownValueError
from glowstone.graph import Builder, Graph, Tensor, Value
from glowstone.importer import rules
from glowstone.importer.model_file import ModelFile
from glowstone.importer.nodes import import_initializers, import_nodes
from glowstone.importer.ports import check_values, dimensions_of, open_inputs
from glowstone.importer.scope import Scope
from glowstone.importer.structure import check_structure
from glowstone.importer.tensors import element_type
from glowstone.ops import Constant
from glowstone.support.budget import budget
from glowstone.types import Dimension, ElementType, GivenShapes, TensorType, fits, resolve_shapes

Array = np.ndarray[Any, np.dtype[Any]]

logger = logging.getLogger("glowstone")

NOMINAL_EXTENTS = (64, 224, 48, 32, 128, 256, 16, 8, 4, 2, 1)
"""Tried in this order for symbolic dimensions without a reference shape; the first axis of an input counts as batch."""
NOMINAL_BATCH = 1

assert rules


def import_model(
    model: ModelFile,
    shapes: GivenShapes | None = None,
    constants: Mapping[str, Array] | None = None,
) -> Graph:
    """The graph of a model.

    Args:
        model: the parsed file.
        shapes: reference shapes by input and extents by symbol; what is left out gets nominal extents.
        constants: inputs fixed at compile time, by name.

    Raises:
        UnknownValueError: a shape depends on the values of inputs, or there are values that are no tensors.
        ModelError, UnsupportedError, ShapeError, LimitError: each names file, node and operator.
    """
    try:
        check_structure(model)
        check_values(model)
        graph_inputs = declared_inputs(model)
        _check_names(graph_inputs, constants or {})
        return _at_reference(model, graph_inputs, shapes or {}, dict(constants or {}))
    except GlowstoneError as error:
        raise error.with_context(file=model.name) from error.__cause__


def declared_inputs(model: ModelFile) -> dict[str, tuple[ElementType, tuple[Dimension, ...]]]:
    """Element type and dimensions of every input that no initializer gives, by name; unknown ones get a symbol.

    All are tensors of numbers: `check_values` says so.
    """
    return {
        entry.name: (
            element_type(entry.type.tensor_type.elem_type, f"input {entry.name!r}"),
            dimensions_of(entry.name, entry.type.tensor_type.shape.dim),
        )
        for entry in open_inputs(model.proto.graph)
    }


def _check_names(
    declared: Mapping[str, tuple[ElementType, tuple[Dimension, ...]]],
    constants: Mapping[str, Array],
) -> None:
    for name in constants:
        if name not in declared:
            raise ShapeError("no input of this name", expected=", ".join(declared) or "no inputs", found=name)


def check_shape(name: str, dimensions: tuple[Dimension, ...], shape: tuple[int, ...]) -> None:
    """Raise ShapeError unless the shape has the declared rank and static dimensions."""
    if not fits(shape, dimensions):
        raise ShapeError(
            f"input {name!r} has another shape",
            expected=list(dimensions),
            found=list(shape),
            remedy="give the declared rank and static dimensions, or make the dimension symbolic in the model file",
        )


def _at_reference(
    model: ModelFile,
    declared: Mapping[str, tuple[ElementType, tuple[Dimension, ...]]],
    given: GivenShapes,
    constants: dict[str, Array],
) -> Graph:
    resolved = resolve_shapes(given, {name: dimensions for name, (_, dimensions) in declared.items()})
    open_symbols = any(name not in resolved.shapes and name not in constants for name in declared)
    failure: GlowstoneError | None = None
    for extent in NOMINAL_EXTENTS if open_symbols else (1,):
        reference = _nominal_shapes(declared, resolved.symbols, extent)
        try:
            return _build(model, declared, reference, constants)
        except UnknownValueError:
            raise
        except (ShapeError, ModelError) as error:
            failure = failure or error
    assert failure is not None
    if open_symbols and failure.remedy is None:
        failure.remedy = "give the shapes of the symbolic inputs with shapes={...}"
    raise failure


def _nominal_shapes(
    declared: Mapping[str, tuple[ElementType, tuple[Dimension, ...]]], given: Mapping[str, int], extent: int
) -> dict[str, tuple[int, ...]]:
    """A reference shape for every input: static dimensions, symbols as given, or nominal."""
    symbols = dict(given)
    result = {}
    for name, (_, dimensions) in declared.items():
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
    budget().begin_nodes()
    proto = model.proto.graph
    graph = Graph(proto.name)
    builder = Builder(graph)
    scope = Scope(builder)
    for name, (element, dimensions) in declared.items():
        if name in constants:
            value = _fixed_input(builder, name, element, dimensions, constants[name])
        else:
            value = graph.add_input(name, TensorType(element, shapes[name]), dimensions)
        scope.define(name, value)
    import_initializers(model, scope, proto.initializer)
    import_nodes(model, scope, proto.node)
    for entry in proto.output:
        value = scope.value(entry.name)
        graph.add_output(entry.name, value, _output_dimensions(entry, value))
    return graph


def _output_dimensions(entry: Any, value: Value) -> tuple[Dimension, ...]:
    """The declared dimensions of an output; its extents at the reference shape where those do not fit.

    Raises:
        ModelError: the declared element type is not that of the value.
    """
    declared = entry.type.tensor_type
    if declared.elem_type and element_type(declared.elem_type, f"output {entry.name!r}") is not value.element:
        raise ModelError(
            f"output {entry.name!r} has another element type than declared",
            expected=element_type(declared.elem_type, ""),
            found=value.element,
        )
    if not declared.HasField("shape"):
        return value.shape
    dimensions = dimensions_of(entry.name, declared.shape.dim)
    if len(dimensions) != value.rank:
        return value.shape
    return tuple(
        dimension if isinstance(dimension, str) else extent
        for dimension, extent in zip(dimensions, value.shape, strict=True)
    )


def _fixed_input(
    builder: Builder, name: str, element: ElementType, dimensions: tuple[Dimension, ...], given: Array
) -> Value:
    array = np.asarray(given)
    if not np.can_cast(array.dtype, element.dtype, "same_kind"):
        raise InputError(f"constant {name!r} has another element type", expected=element, found=array.dtype)
    array = array.astype(element.dtype, copy=False)
    check_shape(name, dimensions, array.shape)
    return builder.emit(Constant(Tensor(array, element)))
