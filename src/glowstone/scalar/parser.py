"""Reads the text form of scalar expressions: `max(add(x0:f32, x1:f32), 0.0:f32)`."""

from __future__ import annotations

import re

from glowstone.scalar.expression import CASTS, CONVERSIONS, Expression, Input, Literal, apply, cast, reinterpret
from glowstone.types import ElementType

_TOKEN = re.compile(r"\s*(?:(x\d+:\w+)|([-\w.+]+:\w+)|(\w+)\(|(\)(?::\w+)?)|(,))")


def parse_expression(text: str) -> Expression:
    """The inverse of `str(expression)`.

    Raises:
        ValueError: the text is not an expression; the position is named.
    """
    position = 0
    open_calls: list[tuple[str, list[Expression]]] = [("", [])]
    while position < len(text) and text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError(f"scalar expression, column {position}: cannot read {text[position:][:20]!r}")
        position = match.end()
        value, literal, function, close, _ = match.groups()
        if value:
            index, element = value[1:].split(":")
            open_calls[-1][1].append(Input(ElementType(element), int(index)))
        elif literal:
            open_calls[-1][1].append(_literal(literal))
        elif function:
            open_calls.append((function, []))
        elif close:
            name, arguments = open_calls.pop()
            if not open_calls:
                raise ValueError(f"scalar expression, column {position}: unbalanced parenthesis")
            open_calls[-1][1].append(_closed(name, arguments, close[2:]))
    if len(open_calls) != 1 or len(open_calls[0][1]) != 1:
        raise ValueError(f"not one complete scalar expression: {text!r}")
    return open_calls[0][1][0]


def _closed(name: str, arguments: list[Expression], element: str) -> Expression:
    if name not in CONVERSIONS:
        return apply(name, *arguments)
    target = ElementType(element)
    return cast(arguments[0], target, name == "cast") if name in CASTS else reinterpret(arguments[0], target)


def _literal(text: str) -> Literal:
    number, element_name = text.split(":")
    element = ElementType(element_name)
    if element is ElementType.BOOL:
        return Literal(element, number == "True")
    return Literal(element, float(number) if element.wide.is_float else int(number))
