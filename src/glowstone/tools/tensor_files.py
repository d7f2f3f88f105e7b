"""The constants that the text of a graph only names, in an .npz file beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from glowstone.graph import Tensor
from glowstone.tools.arrays import save_arrays
from glowstone.types import ElementType

Array = np.ndarray[Any, np.dtype[Any]]
_BUILT_IN = 1
"""What NumPy says of its own types."""


def tensor_file(text_file: Path) -> Path:
    """Where the constants of a text file are: model.ir has model.npz."""
    return text_file.with_suffix(".npz")


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write constants by digest. NumPy's format has no name for the types that ml_dtypes adds: see `_entry`."""
    save_arrays(path, dict(_entry(digest, tensor) for digest, tensor in tensors.items()))


def load_tensors(path: Path) -> dict[str, Tensor]:
    """The constants by digest; none where there is no such file."""
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as archive:
        return dict(_constant(name, archive[name]) for name in archive.files)


def _entry(digest: str, tensor: Tensor) -> tuple[str, Array]:
    """Name and array in the file; of an added type the element type behind the digest, and the bits as integers."""
    if tensor.array.dtype.isbuiltin == _BUILT_IN:
        return digest, tensor.array
    return f"{digest}.{tensor.element}", tensor.array.view(f"u{tensor.element.size}")


def _constant(name: str, array: Array) -> tuple[str, Tensor]:
    """The inverse of `_entry`."""
    digest, _, element = name.partition(".")
    return digest, Tensor(array.view(ElementType(element).dtype) if element else array)
