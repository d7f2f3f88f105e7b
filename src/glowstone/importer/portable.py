"""A model that needs no other file."""

from __future__ import annotations

from typing import Any

from glowstone.errors import LimitError
from glowstone.importer.bodies import tensors
from glowstone.importer.model_file import ModelFile
from glowstone.importer.tensors import decode_tensor
from glowstone.support.external_data import ExternalData
from glowstone.support.model_source import MOST_BYTES


def with_data_inside(model: ModelFile) -> Any:
    """The ModelProto with the data of its weights inside; the given one where it is so already.

    Raises:
        ModelError: external data that may not be read.
        LimitError: the model would be larger than one message can be.
    """
    if not any(tensor.external_data for tensor in tensors(model.proto.graph)):
        return model.proto
    copy = type(model.proto)()
    copy.CopyFrom(model.proto)
    total = 0
    for tensor in tensors(copy.graph):
        if tensor.external_data:
            total += _take_in(tensor, model.external)
            if total > MOST_BYTES:
                raise LimitError("the model is too large for one file", file=model.name, expected=f"{MOST_BYTES} bytes")
    return copy


def _take_in(tensor: Any, external: ExternalData) -> int:
    """Put a tensor's data inside; returns how many bytes they are."""
    array = decode_tensor(tensor, external).array
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")
    tensor.raw_data = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return int(array.nbytes)
