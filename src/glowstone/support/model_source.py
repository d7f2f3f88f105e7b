"""Where a model comes from: a path, bytes, or a message in memory. Needs nothing but the standard library."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from glowstone.errors import ModelError

MOST_BYTES = 2**31 - 1
"""What a protobuf message, and so a model file, may have."""

ModelSource = Any
"""A path (str or PathLike), the bytes of a model, or an onnx.ModelProto."""


def locate(source: ModelSource) -> tuple[str, Path | None]:
    """The name for errors, and the folder that a file really lies in; None where the source is no path."""
    if isinstance(source, (str, os.PathLike)):
        return str(source), Path(os.path.realpath(source)).parent
    return ("<bytes>" if isinstance(source, (bytes, bytearray, memoryview)) else "<ModelProto>"), None


def read_bytes(source: ModelSource) -> tuple[bytes | None, str, Path | None]:
    """The serialized bytes (None for a ModelProto), the name for errors, and the folder of a file.

    Raises:
        ModelError: the file cannot be read, or is larger than a model can be.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source), *locate(source)
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        try:
            size = path.stat().st_size
            if size > MOST_BYTES:
                raise too_large(str(path), size)
            return path.read_bytes(), *locate(path)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise ModelError(
                "cannot read the model file",
                file=str(path),
                found=getattr(error, "strerror", None) or error,
                remedy="check the path",
            ) from error
    return None, *locate(source)


def too_large(name: str, size: int) -> ModelError:
    """The error of a model that no protobuf message can be."""
    return ModelError(
        "the model file is larger than a protobuf message can be",
        file=name,
        expected=f"at most {MOST_BYTES} bytes",
        found=f"{size} bytes",
        remedy="keep the weights in a file beside it: onnx.save(model, path, save_as_external_data=True)",
    )
