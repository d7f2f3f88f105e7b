"""Named arrays in an .npz file."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ALL_INPUTS = ""
"""Stands for the name of an input where one file has all of them."""


def flat_arrays(values: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """Results of a run as arrays: item 2 of a sequence "y" is "y.2"; an empty optional is left out."""
    result: dict[str, npt.NDArray[Any]] = {}
    for name, value in values.items():
        if isinstance(value, list):
            result.update(flat_arrays({f"{name}.{number}": item for number, item in enumerate(value)}))
        elif value is not None:
            result[name] = np.asarray(value)
    return result


def save_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write the arrays, uncompressed, to exactly this path; `numpy.load` reads them.

    Unlike `numpy.savez` it takes every name: an output of a model may well be called "file".
    """
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                plain = array.astype(str) if array.dtype.kind == "O" else np.asarray(array)
                np.lib.format.write_array(member, plain, allow_pickle=False)
