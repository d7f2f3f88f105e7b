"""How a Fourier transform is computed: as products with small tables, in O(n sqrt n) or better.

A transform of n = p q elements is q transforms of p, a rotation of every element, and p transforms of q (Cooley and
Tukey); one of few elements is a product with a table; one of many whose number has no small factor is a convolution,
by transforms of a power of two (Bluestein). Tables are computed in float64 and rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glowstone.graph import Builder, Value
from glowstone.ops.constant import constant
from glowstone.ops.elementwise import Add, Mul
from glowstone.ops.indexing import Gather
from glowstone.ops.linear import MatMul
from glowstone.ops.padding import Pad
from glowstone.ops.shape import Transpose
from glowstone.ops.shape_arithmetic import extents, reshaped, sliced, vector
from glowstone.support.budget import budget

Array = np.ndarray[Any, np.dtype[Any]]

MOST_BY_TABLE = 128
"""Elements of a transform that is one product."""
LARGEST_FACTOR = 32
"""Of the first of two steps; larger ones have larger tables."""
MOST_PRIME_BY_TABLE = 512
"""Elements of a transform without a small factor that is one product all the same."""


@dataclass(frozen=True)
class Transform:
    """y[k] = sum over n of x[n] exp(sign 2 pi i k n / count)."""

    count: int
    sign: int

    def rotations(self, products: Array) -> Array:
        """exp(sign 2 pi i p / count) of integers p."""
        return np.asarray(np.exp(2j * np.pi * self.sign * (products % self.count) / self.count))


def transform(builder: Builder, x: Value, what: Transform) -> Value:
    """The transform along the last axis but one of x [..., count, 1 or 2]; the last axis holds the parts."""
    count = what.count
    factor = next((number for number in range(min(LARGEST_FACTOR, count), 1, -1) if count % number == 0), 1)
    if count <= MOST_BY_TABLE or (factor == 1 and count <= MOST_PRIME_BY_TABLE):
        return _by_table(builder, x, what)
    return _by_convolution(builder, x, what) if factor == 1 else _in_two_steps(builder, x, what, factor)


def _by_table(builder: Builder, x: Value, what: Transform) -> Value:
    """One product: rows of the table are the parts of x, columns those of the result."""
    budget().take_bytes(
        2 * what.count * what.count * x.shape[-1] * np.dtype(np.float64).itemsize, "a table of rotations"
    )
    places = np.arange(what.count)
    turns = what.rotations(places[:, None] * places)
    table = np.empty((what.count, x.shape[-1], what.count, 2))
    table[:, 0] = np.stack([turns.real, turns.imag], -1)
    if x.shape[-1] > 1:
        table[:, 1] = np.stack([-turns.imag, turns.real], -1)
    flat = table.reshape(what.count * x.shape[-1], what.count * 2).astype(x.element.dtype)
    outer = extents(builder, x, 0, x.rank - 2)
    product = builder.emit(MatMul(), reshaped(builder, x, outer, len(flat)), constant(builder, flat))
    return reshaped(builder, product, outer, (what.count, 2))


def _in_two_steps(builder: Builder, x: Value, what: Transform, factor: int) -> Value:
    """x[q a + b] to y[c + p d]: over a, then a rotation by b c / count, then over b; p = factor, q = count / p."""
    rest, rank = what.count // factor, x.rank + 1
    outer = extents(builder, x, 0, x.rank - 2)
    swap = Transpose((*range(rank - 3), rank - 2, rank - 3, rank - 1))
    apart = reshaped(builder, x, outer, (factor, rest, x.shape[-1]))
    first = transform(builder, builder.emit(swap, apart), Transform(factor, what.sign))
    turned = _rotated(builder, first, what.rotations(np.arange(rest)[:, None] * np.arange(factor)))
    second = transform(builder, builder.emit(swap, turned), Transform(rest, what.sign))
    return reshaped(builder, builder.emit(swap, second), outer, (what.count, 2))


def _by_convolution(builder: Builder, x: Value, what: Transform) -> Value:
    """k n = (k^2 + n^2 - (k - n)^2) / 2: a convolution with exp(-sign pi i m^2 / count), between two rotations."""
    count = what.count
    size = 1 << (2 * count - 2).bit_length()
    budget().take_bytes(4 * size * np.dtype(np.complex128).itemsize, "a table of rotations")
    squares = np.arange(count) ** 2
    chirp = Transform(2 * count, what.sign).rotations(squares)
    kernel = np.zeros(size, np.complex128)
    kernel[:count] = chirp.conj()
    kernel[size - count + 1 :] = chirp[:0:-1].conj()
    pads = np.zeros((2, x.rank), np.int64)
    pads[1, -2] = size - count
    padded = builder.emit(Pad(), _rotated(builder, x, chirp), vector(builder, tuple(pads.ravel().tolist())))
    spectrum = _rotated(builder, transform(builder, padded, Transform(size, -1)), np.fft.fft(kernel) / size)
    convolved = transform(builder, spectrum, Transform(size, 1))
    return _rotated(builder, sliced(builder, convolved, x.rank - 2, 0, count), chirp)


def _rotated(builder: Builder, x: Value, factors: Array) -> Value:
    """Complex numbers (real ones, if x has one part) times complex factors."""
    dtype = x.element.dtype
    if x.shape[-1] == 1:
        return builder.emit(Mul(), x, constant(builder, np.stack([factors.real, factors.imag], -1).astype(dtype)))
    real = np.stack([factors.real, factors.real], -1).astype(dtype)
    imaginary = np.stack([-factors.imag, factors.imag], -1).astype(dtype)
    swapped = builder.emit(Gather(x.rank - 1), x, vector(builder, (1, 0)))
    straight = builder.emit(Mul(), x, constant(builder, real))
    return builder.emit(Add(), straight, builder.emit(Mul(), swapped, constant(builder, imaginary)))
