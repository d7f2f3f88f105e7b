"""Inputs and outputs as a file declares them, whatever kind of value they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from glowstone.errors import ModelError, UnknownValueError, UnsupportedError
from glowstone.importer.bodies import nested_graphs
from glowstone.importer.model_file import ModelFile
from glowstone.importer.tensors import ELEMENT_TYPES, element_type
from glowstone.importer.texts import TEXT
from glowstone.types import Dimension

UNKNOWN_EXTENT = -1
TENSOR = "tensor"


@dataclass(frozen=True)
class DeclaredPort:
    """An input or output. `kind` is "tensor", or as in "seq(tensor)", "optional(seq(tensor))", "map".

    `dtype` is that of the tensors, object for texts; `dimensions` are of the tensors. None where the file has none.
    """

    name: str
    kind: str
    dtype: np.dtype[Any] | None
    dimensions: tuple[Dimension, ...] | None


def declared_ports(model: ModelFile) -> tuple[tuple[DeclaredPort, ...], tuple[DeclaredPort, ...]]:
    """Inputs that no initializer gives, and outputs."""
    inputs = [_port(entry) for entry in open_inputs(model.proto.graph)]
    return tuple(inputs), tuple(map(_port, model.proto.graph.output))


def open_inputs(graph: Any) -> list[Any]:
    """The declarations of inputs that no initializer gives."""
    given = {tensor.name for tensor in graph.initializer}
    return [entry for entry in graph.input if entry.name not in given]


def _port(entry: Any) -> DeclaredPort:
    kind, tensor = _unwrapped(entry.type)
    if tensor is None:
        return DeclaredPort(entry.name, kind, None, None)
    dtype = None
    if tensor.elem_type:
        is_text = tensor.elem_type == TEXT
        dtype = np.dtype(object) if is_text else element_type(tensor.elem_type, f"{entry.name!r}").dtype
    dimensions = dimensions_of(entry.name, tensor.shape.dim) if tensor.HasField("shape") else None
    return DeclaredPort(entry.name, kind, dtype, dimensions)


def _unwrapped(type: Any) -> tuple[str, Any]:
    """The kind of a type, and the tensor type inside."""
    field = type.WhichOneof("value")
    if field == "sequence_type":
        kind, tensor = _unwrapped(type.sequence_type.elem_type)
        return f"seq({kind})", tensor
    if field == "optional_type":
        kind, tensor = _unwrapped(type.optional_type.elem_type)
        return f"optional({kind})", tensor
    if field == "map_type":
        return "map", None
    if field == "sparse_tensor_type":
        raise UnsupportedError("sparse tensors are not supported")
    return TENSOR, type.tensor_type


def dimensions_of(name: str, dims: Any) -> tuple[Dimension, ...]:
    """Numbers, or symbols where unknown; -1 is what some exporters write for an unknown dimension."""
    result: list[Dimension] = []
    for axis, dim in enumerate(dims):
        if dim.HasField("dim_value") and dim.dim_value != UNKNOWN_EXTENT:
            if dim.dim_value < 0:
                raise ModelError(f"{name!r} has a negative dimension", expected="0 or more", found=dim.dim_value)
            result.append(int(dim.dim_value))
        else:
            result.append(dim.dim_param if dim.dim_param not in ("", "?") else f"{name}_dim_{axis}")
    return tuple(result)


def check_values(model: ModelFile) -> None:
    """Check that inputs are tensors of numbers whose rank is declared, and that no constant is a text.

    Raises:
        UnknownValueError: one is not: only a call shows what it is.
    """
    for graph in nested_graphs(model.proto.graph):
        if any(tensor.data_type == TEXT for tensor in graph.initializer):
            raise UnknownValueError("constants of the model are texts")
    ports: Mapping[str, DeclaredPort] = {port.name: port for port in declared_ports(model)[0]}
    for name, port in ports.items():
        if port.kind != TENSOR or port.dtype not in _NUMBERS or port.dimensions is None:
            raise UnknownValueError(f"input {name!r} is no tensor of numbers with a rank")


_NUMBERS = frozenset(element.dtype for element in ELEMENT_TYPES.values())
