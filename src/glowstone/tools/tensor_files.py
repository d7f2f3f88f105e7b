"""The constants that the text of a graph only names, in an .npz file beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from glowstone.graph import Tensor
from glowstone.tools.arrays import save_arrays
from glowstone.types import ElementType


def tensor_file(text_file: Path) -> Path:
    """Where the constants of a text file are: model.ir has model.npz."""
    return text_file.with_suffix(".npz")


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write constants by digest."""
    save_arrays(path, {digest: tensor.array for digest, tensor in tensors.items()})


def load_tensors(path: Path) -> dict[str, Tensor]:
    """The constants by digest; none where there is no such file."""
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    # NumPy's format has no name for bfloat16 and writes it as two bytes without a meaning
    bfloat16 = ElementType.BF16.dtype
    return {name: Tensor(array.view(bfloat16) if array.dtype.kind == "V" else array) for name, array in arrays.items()}
