"""Shapes that a caller gives: by input, by symbolic dimension, or both.

{"x": (4, 3, 32)}    {"batch": 4, "length": 32}    {"x": (4, 3, "length"), "length": 32}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from glowstone.errors import ShapeError
from glowstone.types.tensor_type import Dimension, Shape

GivenShapes = Mapping[str, int | Sequence[Dimension]]
"""By input a shape, whose dimensions may be the symbols that the model declares there; by symbol an extent."""

Declared = Mapping[str, tuple[Dimension, ...] | None]
"""Dimensions by input, None where the model does not say the rank."""


@dataclass(frozen=True)
class ResolvedShapes:
    """What was given, in the terms of a model."""

    shapes: dict[str, Shape]
    """By input, where all of its extents are known."""
    symbols: dict[str, int]
    """Extents by symbolic dimension."""


def resolve_shapes(given: GivenShapes, declared: Declared) -> ResolvedShapes:
    """Match what was given with the inputs that a model declares.

    An extent of a symbol may also be a sequence of one number, as a command line has it.

    Raises:
        ShapeError: a name is neither an input nor a symbolic dimension, a shape does not fit its input, or two parts
            of what was given disagree about a symbol.
    """
    extents = _Extents(declared)
    shapes: dict[str, Shape] = {}
    for name, value in given.items():
        if name not in declared:
            extents.give(name, _single(name, value), f"dimension {name!r}")
            continue
        shape = _sequence(name, value)
        dimensions = declared[name]
        if dimensions is not None:
            extents.give_shape(name, dimensions, shape)
        elif all(isinstance(extent, int) for extent in shape):
            shapes[name] = tuple(extent for extent in shape if isinstance(extent, int))
    for name, dimensions in declared.items():
        if dimensions is not None:
            known = [extents.known.get(one, -1) if isinstance(one, str) else one for one in dimensions]
            if min(known, default=0) >= 0:
                shapes[name] = tuple(known)
    return ResolvedShapes(shapes, extents.known)


def fits(shape: Sequence[Dimension], dimensions: tuple[Dimension, ...]) -> bool:
    """Whether a shape has the declared rank and static dimensions; a symbol stands for itself or an extent."""
    return len(shape) == len(dimensions) and all(
        given == dimension or (isinstance(dimension, str) and isinstance(given, int) and given >= 0)
        for given, dimension in zip(shape, dimensions, strict=True)
    )


class _Extents:
    """The extents of symbols found so far."""

    def __init__(self, declared: Declared) -> None:
        self.known: dict[str, int] = {}
        self._inputs = tuple(declared)
        self._symbols = tuple(dict.fromkeys(_symbols(declared)))
        self._givers: dict[str, str] = {}

    def give(self, symbol: str, extent: int, giver: str) -> None:
        if symbol not in self._symbols:
            raise ShapeError(
                "no input of this name, and no symbolic dimension",
                expected=self._listed(),
                found=symbol,
            )
        before = self.known.setdefault(symbol, extent)
        first = self._givers.setdefault(symbol, giver)
        if before != extent:
            raise ShapeError(f"{first} and {giver} disagree about dimension {symbol!r}", expected=before, found=extent)

    def give_shape(self, name: str, dimensions: tuple[Dimension, ...], shape: Sequence[Dimension]) -> None:
        if not fits(shape, dimensions):
            raise ShapeError(
                f"input {name!r} has another shape",
                expected=list(dimensions),
                found=list(shape),
                remedy="give the declared rank, static dimensions and symbols, or make the dimension symbolic in the "
                f"model file; it has {self._listed()}",
            )
        for given, dimension in zip(shape, dimensions, strict=True):
            if isinstance(dimension, str) and isinstance(given, int):
                self.give(dimension, given, f"input {name!r}")

    def _listed(self) -> str:
        inputs, symbols = ", ".join(self._inputs), ", ".join(self._symbols)
        return f"inputs: {inputs or 'none'}; symbolic dimensions: {symbols or 'none'}"


def _symbols(declared: Declared) -> Iterator[str]:
    for dimensions in declared.values():
        yield from (dimension for dimension in dimensions or () if isinstance(dimension, str))


def _single(name: str, value: int | Sequence[Dimension]) -> int:
    extents = [value] if isinstance(value, int) else list(value)
    if len(extents) != 1 or not isinstance(extents[0], int) or extents[0] < 0:
        raise ShapeError(
            "the extent of a symbolic dimension is one number, 0 or more",
            expected=f"{name}: 4",
            found=value,
        )
    return extents[0]


def _sequence(name: str, value: int | Sequence[Dimension]) -> Sequence[Dimension]:
    if isinstance(value, int):
        raise ShapeError(f"a shape is a sequence of extents: input {name!r}", expected="such as (4, 3)", found=value)
    return value
