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


def save_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write the arrays, uncompressed, to exactly this path; `numpy.load` reads them.

    Unlike `numpy.savez` it takes every name: an output of a model may well be called "file".
    """
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
