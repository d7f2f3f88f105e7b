"""Decision trees as one array of words: the layout that the operator, the interpreter and the kernel share.

A node is a few int32 words: its threshold (two words for float64), a feature, and the word positions of the nodes to go
to where `x[feature] <= threshold` and where not. A feature f that is not negative sends NaN high; ~f stands for
feature f with NaN going low. A leaf goes to itself both ways, its feature is 0, and its first word is its number.
Nodes come before those they lead to, so every walk ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glowstone.errors import ModelError, ShapeError
from glowstone.types import ElementType

Array = np.ndarray[Any, np.dtype[Any]]

AGGREGATES = ("sum", "min", "max")
LINK_WORDS = 3
WORD_BYTES = 4
LARGEST_TABLE = 2**31 - 1
"""Words: positions are int32."""


def node_words(element: ElementType) -> int:
    """Words of one node whose threshold has this element type."""
    return element.size // WORD_BYTES + LINK_WORDS


def feature_word(element: ElementType) -> int:
    """Which word of a node is the feature; low and high follow it."""
    return element.size // WORD_BYTES


@dataclass(frozen=True)
class ForestTable:
    """The words of a table as columns, one entry a node. `low` and `high` are positions of words."""

    words: Array
    element: ElementType

    @property
    def rows(self) -> Array:
        return self.words.reshape(-1, node_words(self.element))

    @property
    def positions(self) -> Array:
        """Where every node begins."""
        width = node_words(self.element)
        return np.arange(len(self.words) // width) * width

    @property
    def thresholds(self) -> Array:
        return np.ascontiguousarray(self.rows[:, : feature_word(self.element)]).view(self.element.dtype).ravel()

    @property
    def features(self) -> Array:
        return self.rows[:, feature_word(self.element)]

    @property
    def low(self) -> Array:
        return self.rows[:, feature_word(self.element) + 1]

    @property
    def high(self) -> Array:
        return self.rows[:, feature_word(self.element) + 2]

    @property
    def is_leaf(self) -> Array:
        return np.asarray(self.low == self.positions)

    @property
    def sends_nan_low(self) -> bool:
        """Whether any node does."""
        return bool((self.features < 0).any())

    @property
    def columns(self) -> Array:
        """The feature of every node, whichever way it sends NaN."""
        return np.where(self.features < 0, ~self.features, self.features)

    def check(self, roots: Array, leaves: int, columns: int) -> None:
        """Check all that a walk relies on.

        Raises:
            ModelError: the words are no table, or a leaf has no number below `leaves`.
            ShapeError: a node reads a feature that x with so many columns lacks.
        """
        width = node_words(self.element)
        if len(self.words) % width or len(self.words) > LARGEST_TABLE:
            raise ModelError("not a table of trees", expected=f"nodes of {width} words", found=len(self.words))
        positions, is_leaf = self.positions, self.is_leaf
        for links in (self.low, self.high):
            ends = is_leaf & (links == positions)
            leads = ~is_leaf & (links > positions) & (links < len(self.words)) & (links % width == 0)
            if not (ends | leads).all():
                raise ModelError("a tree has a node that leads nowhere", expected="a later node", found="another")
        if ((roots < 0) | (roots >= len(self.words)) | (roots % width != 0)).any():
            raise ModelError("a tree has no root", expected="the position of a node", found=roots.tolist()[:4])
        numbers = self.rows[is_leaf, 0]
        if ((numbers < 0) | (numbers >= leaves)).any():
            raise ModelError("a leaf has no number", expected=f"0 to {leaves - 1}", found=int(numbers.max()))
        if len(positions) and int(self.columns.max()) >= columns:
            raise ShapeError(
                "x has too few columns for the trees",
                expected=f"at least {int(self.columns.max()) + 1}",
                found=columns,
            )

    def leaves_of(self, roots: Array, x: Array) -> Array:
        """[rows of x, trees]: the number of the leaf that each row reaches in each tree."""
        width = node_words(self.element)
        rows = np.arange(len(x))[:, None]
        low, high, columns, thresholds = self.low, self.high, self.columns, self.thresholds
        nan_low, nodes = self.features < 0, np.broadcast_to(roots // width, (len(x), len(roots)))
        while True:
            values = x[rows, columns[nodes]]
            goes_low = (values <= thresholds[nodes]) | (np.isnan(values) & nan_low[nodes])
            following = np.where(goes_low, low[nodes], high[nodes]) // width
            if np.array_equal(following, nodes):
                return np.asarray(self.rows[nodes, 0])
            nodes = following


def aggregated(mode: str, leaves: Array, starts: Array, ids: Array, weights: Array, targets: int) -> Array:
    """[rows, targets] in float64 from the leaf that each row reached in each tree, [rows, trees]."""
    sums = np.full((len(leaves), targets), 0.0 if mode == "sum" else np.nan)
    join = {"sum": np.add, "min": np.fmin, "max": np.fmax}[mode]
    rows = np.arange(len(leaves))
    for reached in leaves.T:
        counts = starts[reached + 1] - starts[reached]
        entries = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        entries += np.repeat(starts[reached], counts)
        join.at(sums, (np.repeat(rows, counts), ids[entries]), weights[entries].astype(np.float64))
    return sums if mode == "sum" else np.nan_to_num(sums, posinf=np.inf, neginf=-np.inf)
