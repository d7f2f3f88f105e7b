"""Counted loops with loop-carried values."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from llvmlite import ir

from glowstone.backends.cpu.ir_types import I64, Value


class Loop:
    """`for index = low; index < high; index += step`, as a context manager around the body.

    Inside: `index`, and `values`, the carried values of this pass; the body calls `carry` once with the next ones.
    Afterwards: `results`, the values after the last pass (the initial ones if there was none).
    """

    def __init__(self, builder: ir.IRBuilder, low: Value, high: Value, step: Value, carried: Sequence[Value]) -> None:
        self._builder = builder
        self._bounds = low, high, step
        self._initial = list(carried)
        self._next: list[Value] | None = None
        self.results: list[Value] = []

    def __enter__(self) -> Self:
        builder = self._builder
        low, high, _ = self._bounds
        entry = builder.block
        self._header = builder.append_basic_block("loop")
        body = builder.append_basic_block("body")
        self._exit = builder.append_basic_block("done")
        builder.branch(self._header)
        builder.position_at_end(self._header)
        self.index = builder.phi(I64)
        self.index.add_incoming(low, entry)
        self.values = []
        for value in self._initial:
            phi = builder.phi(value.type)
            phi.add_incoming(value, entry)
            self.values.append(phi)
        builder.cbranch(builder.icmp_signed("<", self.index, high), body, self._exit)
        builder.position_at_end(body)
        return self

    def carry(self, values: Sequence[Value]) -> None:
        """Set the carried values of the next pass."""
        self._next = list(values)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            return
        builder = self._builder
        following = self._next if self._next is not None else self.values
        assert len(following) == len(self.values), "one next value for each carried value"
        latch = builder.block
        self.index.add_incoming(builder.add(self.index, self._bounds[2], flags=["nsw"]), latch)
        for phi, value in zip(self.values, following, strict=True):
            phi.add_incoming(value, latch)
        builder.branch(self._header)
        builder.position_at_end(self._exit)
        self.results = list(self.values)
