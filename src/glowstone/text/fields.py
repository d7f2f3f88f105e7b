"""Text of the fields of operators and operations, derived from their dataclasses: nothing is written for each.

In: a field's type hint and value, or a scanner at its text. Out: text, or the value.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import types
import typing
from collections.abc import Callable
from typing import Any

from glowstone.scalar import Expression, parse_expression
from glowstone.text.scanner import Scanner

_field_types: dict[type, dict[str, object]] = {}


def field_types(kind: type[Any]) -> dict[str, object]:
    """Name and type hint of every field of a dataclass, in order."""
    if kind not in _field_types:
        hints = typing.get_type_hints(kind)
        _field_types[kind] = {field.name: hints[field.name] for field in dataclasses.fields(kind)}
    return _field_types[kind]


def print_value(value: object) -> str:
    """The text that `parse_value` reads back under the type hint of the value.

    Raises:
        TypeError: values of this type have no text form.
    """
    if isinstance(value, tuple):
        return f"({', '.join(map(print_value, value))})"
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, str):
        return json.dumps(value)
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, Expression):
        return str(value)
    raise TypeError(f"no text form for {value!r}")


def parse_value(scanner: Scanner, hint: object) -> object:
    """Read a value of the hinted type.

    Raises:
        ParseError: the text is not of that type.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _parse_optional(scanner, arguments)
    if origin is tuple:
        return _parse_tuple(scanner, arguments)
    if isinstance(hint, type):
        if issubclass(hint, Expression):
            return scanner.convert(scanner.balanced(), parse_expression)
        if issubclass(hint, enum.Enum):
            return scanner.convert(scanner.word(), hint)
        if hint in _READERS:
            return _READERS[hint](scanner)
    raise TypeError(f"no text form for fields of type {hint}")


def _parse_optional(scanner: Scanner, arguments: tuple[object, ...]) -> object:
    kinds = [argument for argument in arguments if argument is not type(None)]
    if len(kinds) < len(arguments) and scanner.accept("None"):
        return None
    if len(kinds) != 1:
        raise TypeError(f"no text form for a field of one of {arguments}")
    return parse_value(scanner, kinds[0])


def _parse_tuple(scanner: Scanner, arguments: tuple[object, ...]) -> tuple[object, ...]:
    values: list[object] = []
    scanner.expect("(")
    while not scanner.accept(")"):
        if values:
            scanner.expect(",")
        number = 0 if arguments[-1] is Ellipsis else len(values)
        if number >= len(arguments):
            raise scanner.error(f"more than {len(arguments)} values")
        values.append(parse_value(scanner, arguments[number]))
    if arguments[-1] is not Ellipsis and len(values) != len(arguments):
        raise scanner.error(f"{len(values)} values, not {len(arguments)}")
    return tuple(values)


def _parse_bool(scanner: Scanner) -> bool:
    word = scanner.word()
    if word not in ("True", "False"):
        raise scanner.error(f"not a bool: {word}")
    return word == "True"


_READERS: dict[type, Callable[[Scanner], object]] = {
    bool: _parse_bool,
    int: lambda scanner: scanner.convert(scanner.word(), int),
    float: lambda scanner: scanner.convert(scanner.word(), float),
    str: Scanner.string,
}
