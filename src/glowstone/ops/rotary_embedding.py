"""Rotary position embedding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ExecutionError, ShapeError
from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.element_sets import FLOATS
from glowstone.ops.elementwise import Add, Mul, Sub
from glowstone.ops.indexing import Gather
from glowstone.ops.operand_checks import require_one_element
from glowstone.ops.shape import Concat, unsqueeze
from glowstone.ops.shape_arithmetic import extents, reshaped, sliced
from glowstone.types import ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]

HEADS_APART = 4
"""Rank of [batch, heads, positions, features]."""


@operator
class RotaryEmbedding(Operator):
    """Pairs of features turned by an angle that grows with the position. ONNX RotaryEmbedding-23.

    x [B, H, S, D], or [B, S, H * D] with `heads`; cosines and sines [positions, R / 2] picked by `positions` [B, S], or
    [B, S, R / 2]. The first R features (all where `size` is 0) are turned: those R / 2 apart, or neighbours where
    `interleaved`.
    """

    onnx = "RotaryEmbedding-23"
    operands = (
        Operand("x", FLOATS),
        Operand("cosines", FLOATS),
        Operand("sines", FLOATS),
        Operand("positions", frozenset({ElementType.I64}), optional=True),
    )
    interleaved: bool = False
    heads: int = 0
    size: int = 0

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, cosines, sines, *positions = operands
        require_one_element(x, cosines, sines)
        batch, length, features = self._sizes(x.shape)
        turned = self.size or features
        if turned % 2 or turned > features:
            raise ShapeError("not a number of features to turn", expected=f"even, at most {features}", found=turned)
        expected = [batch, length, turned // 2]
        if positions:
            expected = [cosines.shape[0] if cosines.rank else 0, turned // 2]
            if positions[0].shape != (batch, length):
                raise ShapeError("positions do not fit x", expected=[batch, length], found=list(positions[0].shape))
        if list(cosines.shape) != expected or cosines.shape != sines.shape:
            raise ShapeError(
                "cosines and sines do not fit x", expected=expected, found=[list(cosines.shape), list(sines.shape)]
            )
        return (x.type,)

    def _sizes(self, shape: tuple[int, ...]) -> tuple[int, int, int]:
        """Batch, positions, features of a head."""
        if len(shape) == HEADS_APART:
            return shape[0], shape[2], shape[3]
        if len(shape) != HEADS_APART - 1 or self.heads < 1 or shape[2] % self.heads:
            raise ShapeError(
                "features do not split in heads", expected=f"rank 3 and a multiple of {self.heads}", found=list(shape)
            )
        return shape[0], shape[1], shape[2] // self.heads

    def reference(self, x: Array, cosines: Array, sines: Array, positions: Array | None = None) -> Array:
        if positions is not None:
            if ((positions < -len(cosines)) | (positions >= len(cosines))).any():
                raise ExecutionError("a position is out of range", expected=len(cosines), found=positions.tolist())
            cosines, sines = cosines[positions], sines[positions]
        batch, length, features = self._sizes(x.shape)
        heads_last = x.swapaxes(1, 2) if x.ndim == HEADS_APART else x.reshape(batch, length, self.heads, features)
        result = heads_last.astype(np.float64)
        turned = self.size or features
        firsts = slice(0, turned, 2) if self.interleaved else slice(0, turned // 2)
        seconds = slice(1, turned, 2) if self.interleaved else slice(turned // 2, turned)
        cosine, sine = (table[:, :, None].astype(np.float64) for table in (cosines, sines))
        first, second = result[..., firsts].copy(), result[..., seconds].copy()
        result[..., firsts] = first * cosine - second * sine
        result[..., seconds] = first * sine + second * cosine
        ordered = result.swapaxes(1, 2) if x.ndim == HEADS_APART else result.reshape(x.shape)
        return np.asarray(ordered).astype(x.dtype)

    def decompose(
        self, builder: Builder, x: Value, cosines: Value, sines: Value, positions: Value | None = None
    ) -> Value:
        _, _, features = self._sizes(x.shape)
        apart = x
        if x.rank != HEADS_APART:
            apart = reshaped(builder, x, extents(builder, x, 0, 2), (self.heads, features))
        elif x.dynamic:  # the features are counted here, so others are refused
            apart = reshaped(builder, x, extents(builder, x, 0, 3), features)
        head_axis = 1 if x.rank == HEADS_APART else 2
        if positions is not None:
            cosines, sines = (builder.emit(Gather(0), table, positions) for table in (cosines, sines))
        cosines, sines = (unsqueeze(builder, table, (head_axis,)) for table in (cosines, sines))
        turned = self._turned(builder, apart, cosines, sines, features)
        return turned if x.rank == HEADS_APART else reshaped(builder, turned, extents(builder, x))

    def _turned(self, builder: Builder, x: Value, cosines: Value, sines: Value, features: int) -> Value:
        emit, size = builder.emit, self.size or features
        half, last = size // 2, HEADS_APART - 1
        if self.interleaved:
            first, second = (sliced(builder, x, last, start, size, 2) for start in (0, 1))
        else:
            first, second = sliced(builder, x, last, 0, half), sliced(builder, x, last, half, size)
        real = emit(Sub(), emit(Mul(), cosines, first), emit(Mul(), sines, second))
        imaginary = emit(Add(), emit(Mul(), sines, first), emit(Mul(), cosines, second))
        if self.interleaved:
            pairs = [unsqueeze(builder, part, (last + 1,)) for part in (real, imaginary)]
            parts = [reshaped(builder, emit(Concat(-1), *pairs), extents(builder, x, 0, last), size)]
        else:
            parts = [real, imaginary]
        if size < features:
            parts.append(sliced(builder, x, last, size, features))
        return parts[0] if len(parts) == 1 else emit(Concat(-1), *parts)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(52)

        def normal(*shape: int) -> Array:
            return random.standard_normal(shape).astype(np.float32)

        positions = random.integers(0, 50, (2, 3))
        return [
            Sample(cls(), (normal(2, 4, 3, 8), normal(50, 4), normal(50, 4), positions)),
            Sample(cls(True), (normal(2, 4, 3, 8), normal(50, 4), normal(50, 4), positions)),
            Sample(cls(False, 4, 4), (normal(2, 3, 32), normal(50, 2), normal(50, 2), positions)),
            Sample(cls(True, 0, 4), (normal(2, 4, 3, 8), normal(2, 3, 2), normal(2, 3, 2))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, table = np.ones((2, 4, 3, 8), np.float32), np.ones((50, 4), np.float32)
        return [
            ErrorSample(cls(size=3), (x, table, table), "not a number of features to turn"),
            ErrorSample(cls(), (x, table, table), "cosines and sines do not fit x"),
            ErrorSample(cls(), (x[0], table, table), "features do not split in heads"),
        ]
