"""Models that the package ships.

`digits.onnx` tells handwritten digits apart: image [n, 1, 8, 8] of float32 within [0, 1] to probabilities [n, 10]. It
was made by `scripts/train_digits.py` from the digits that scikit-learn bundles (UCI Machine Learning Repository, CC BY
4.0). `digits_test.npz` holds the images that were held back in training, with their labels.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

DIGITS: Final = Path(__file__).parent / "digits.onnx"
"""The digit classifier."""
DIGITS_INPUT: Final = "image"
DIGITS_OUTPUT: Final = "probabilities"

_TEST_IMAGES: Final = Path(__file__).parent / "digits_test.npz"
_LARGEST_PIXEL: Final = 16


def digit_images() -> tuple[Array, Array]:
    """Images [n, 1, 8, 8] that the classifier has not been trained on, as it takes them, and their digits [n]."""
    with np.load(_TEST_IMAGES) as held_back:
        pixels, labels = held_back["images"], held_back["labels"]
    return pixels[:, None].astype(np.float32) / np.float32(_LARGEST_PIXEL), labels
