"""When two float32 results count as the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

LARGEST_DIFFERENCE = 1e-4  # of the largest value
RELATIVE_L2_ERROR = 2e-4


def assert_agrees(found: npt.NDArray[Any], expected: npt.NDArray[Any], name: str = "") -> None:
    """Equal shape and type, equal integers, floats within both bounds with NaN and infinity in the same places."""
    assert found.shape == expected.shape, f"{name}: shape {found.shape}, expected {expected.shape}"
    assert found.dtype == expected.dtype, f"{name}: type {found.dtype}, expected {expected.dtype}"
    if not np.issubdtype(expected.dtype, np.floating):
        np.testing.assert_array_equal(found, expected, err_msg=name)
        return
    is_finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[~is_finite], expected[~is_finite], err_msg=f"{name}: NaN or infinity")
    ours, theirs = found[is_finite].astype(np.float64), expected[is_finite].astype(np.float64)
    if not theirs.size:
        return
    difference = np.abs(ours - theirs)
    largest = np.abs(theirs).max()
    assert difference.max() <= LARGEST_DIFFERENCE * largest, f"{name}: {difference.max()} of {largest}"
    norm = np.linalg.norm(theirs)
    assert np.linalg.norm(ours - theirs) <= RELATIVE_L2_ERROR * norm, f"{name}: {np.linalg.norm(ours - theirs) / norm}"
