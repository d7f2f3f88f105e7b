"""Probabilities of classes from those of pairs of classes: what the operator and the interpreter share."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

ROUNDS = 100
"""At most so many."""
TOLERANCE = 0.005
"""Divided by the number of classes: how far from balance the result may be."""


def coupled(pairs: Array, classes: int) -> Array:
    """[rows, classes] from [rows, pairs], in float64: the second method of Wu, Lin and Weng (2004), as in libsvm.

    Pairs (i, j) with i < j are in lexical order; each gives the probability of i given i or j.
    """
    rows = len(pairs)
    ratios = np.zeros((rows, classes, classes))
    first, second = np.triu_indices(classes, 1)
    ratios[:, first, second] = pairs
    ratios[:, second, first] = 1 - pairs
    matrix = -ratios * ratios.transpose(0, 2, 1)
    diagonal = (ratios**2).sum(axis=1)
    matrix[:, np.arange(classes), np.arange(classes)] = diagonal
    result = np.full((rows, classes), 1 / classes)
    active = np.arange(rows)
    for _ in range(ROUNDS):
        products = np.einsum("nij,nj->ni", matrix[active], result[active])
        total = (result[active] * products).sum(axis=1)
        far = np.abs(products - total[:, None]).max(axis=1, initial=0) >= TOLERANCE / classes
        active, products, total = active[far], products[far], total[far]
        if not len(active):
            break
        result[active] = _balanced(matrix[active], result[active], products, total)
    return result


def _balanced(matrix: Array, p: Array, products: Array, total: Array) -> Array:
    """One round: every class moved to where it is in balance with the others."""
    for i in range(p.shape[1]):
        own = matrix[:, i, i]
        step = (total - products[:, i]) / own
        p[:, i] += step
        total = (total + step * (step * own + 2 * products[:, i])) / (1 + step) ** 2
        products = (products + step[:, None] * matrix[:, i]) / (1 + step)[:, None]
        p = p / (1 + step)[:, None]
    return p
