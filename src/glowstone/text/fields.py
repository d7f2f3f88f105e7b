"""Text of the fields of operators and operations, derived from their dataclasses: nothing is written for each.

In: a field's type hint and value, or a scanner at its text. Out: text, or the value. A representation adds classes of
its own by giving functions that print and read them.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from glowstone.scalar import Expression, parse_expression
from glowstone.text.scanner import Scanner

Printers = Mapping[type, Callable[[Any], str]]
"""Prints values of further classes, subclasses included."""
Readers = Mapping[type, Callable[[Scanner], object]]
"""Reads values of further classes, subclasses included."""

_field_types: dict[type, dict[str, object]] = {}
_NOTHING: dict[type, Any] = {}


def field_types(kind: type[Any]) -> dict[str, object]:
    """Name and type hint of every field of a dataclass, in order."""
    if kind not in _field_types:
        hints = typing.get_type_hints(kind)
        _field_types[kind] = {field.name: hints[field.name] for field in dataclasses.fields(kind)}
    return _field_types[kind]


def print_value(value: object, printers: Printers = _NOTHING) -> str:
    """The text that `parse_value` reads back under the type hint of the value.

    Raises:
        TypeError: values of this type have no text form.
    """
    for kind, printer in printers.items():
        if isinstance(value, kind):
            return printer(value)
    if isinstance(value, tuple):
        return f"({', '.join(print_value(entry, printers) for entry in value)})"
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, float):
        return float.__repr__(value)  # of the number alone, should it be NumPy's
    if value is None or isinstance(value, bool | int):
        return repr(value)
    if isinstance(value, Expression):
        return str(value)
    raise TypeError(f"no text form for {value!r}")


def parse_value(scanner: Scanner, hint: object, readers: Readers = _NOTHING) -> object:
    """Read a value of the hinted type.

    Raises:
        ParseError: the text is not of that type.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _parse_union(scanner, arguments, readers)
    if origin is tuple:
        return _parse_tuple(scanner, arguments, readers)
    if isinstance(hint, type):
        for kind, reader in readers.items():
            if issubclass(hint, kind):
                return reader(scanner)
        if issubclass(hint, Expression):
            return scanner.convert(scanner.balanced(), parse_expression)
        if issubclass(hint, enum.Enum):
            return scanner.convert(scanner.word(), hint)
        if hint in _READERS:
            return _READERS[hint](scanner)
    raise TypeError(f"no text form for fields of type {hint}")


def _parse_union(scanner: Scanner, arguments: tuple[object, ...], readers: Readers) -> object:
    kinds = [argument for argument in arguments if argument is not type(None)]
    if len(kinds) < len(arguments) and scanner.accept("None"):
        return None
    if len(kinds) == 1:
        return parse_value(scanner, kinds[0], readers)
    if str in kinds and scanner.is_next('"'):
        return scanner.string()
    if set(kinds) <= {bool, int, float, str}:
        return scanner.convert(scanner.word(), lambda word: _number(word, kinds))
    raise TypeError(f"no text form for a field of one of {arguments}")


def _number(word: str, kinds: list[object]) -> bool | int | float:
    """The word as the first of bool, int and float that it is a text of and that is asked for."""
    if bool in kinds and word in _BOOLS:
        return _BOOLS[word]
    if int in kinds and word.lstrip("-").isdecimal():
        return int(word)
    if float in kinds:
        return float(word)
    raise ValueError(f"no number of the right kind: {word}")


def _parse_tuple(scanner: Scanner, arguments: tuple[object, ...], readers: Readers) -> tuple[object, ...]:
    values: list[object] = []
    scanner.expect("(")
    while not scanner.accept(")"):
        if values:
            scanner.expect(",")
        number = 0 if arguments[-1] is Ellipsis else len(values)
        if number >= len(arguments):
            raise scanner.error(f"more than {len(arguments)} values")
        values.append(parse_value(scanner, arguments[number], readers))
    if arguments[-1] is not Ellipsis and len(values) != len(arguments):
        raise scanner.error(f"{len(values)} values, not {len(arguments)}")
    return tuple(values)


def _parse_bool(scanner: Scanner) -> bool:
    word = scanner.word()
    if word not in _BOOLS:
        raise scanner.error(f"not a bool: {word}")
    return _BOOLS[word]


_BOOLS = {"True": True, "False": False}
_READERS: dict[type, Callable[[Scanner], object]] = {
    bool: _parse_bool,
    int: lambda scanner: scanner.convert(scanner.word(), int),
    float: lambda scanner: scanner.convert(scanner.word(), float),
    str: Scanner.string,
}
