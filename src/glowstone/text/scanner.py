"""Reads tokens of IR text and knows where it is, so that errors name line and column."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TypeVar

from glowstone.errors import GlowstoneError
from glowstone.types import TensorType, parse_type

Result = TypeVar("Result")

_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_WORD = re.compile(r"[-+.\w]+")
_INTEGERS = re.compile(r"-?\d+(?:\s*,\s*-?\d+)*")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_TYPE = re.compile(r"\w+\[[\d,]*\](?:\{c\d+\})?")
_NAME = re.compile(r'[^\s"\[\](){},:=+#]+')


class ParseError(GlowstoneError, ValueError):
    """Text that is not of the form. The message begins with line and column, counted from 1."""


class Scanner:
    """A position in a text. Blanks and comments (`#` to the end of the line) separate tokens and mean nothing."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._token = 0
        self._skip()

    def error(self, message: str) -> ParseError:
        """An error at the token read last."""
        before = self._text[: self._token]
        line = before.count("\n") + 1
        column = self._token - (before.rfind("\n") + 1) + 1
        return ParseError(f"line {line}, column {column}: {message}")

    @property
    def at_end(self) -> bool:
        return self._position == len(self._text)

    def accept(self, token: str) -> bool:
        """Read the token if it comes next."""
        self._token = self._position
        if not self.is_next(token):
            return False
        self._advance(self._position + len(token))
        return True

    def is_next(self, token: str) -> bool:
        """Whether the token comes next; nothing is read."""
        return self._text.startswith(token, self._position)

    def integers(self) -> tuple[int, ...]:
        """Integers separated by commas. A comma before anything else is left to the caller.

        Raises:
            ParseError: no integer comes next.
        """
        text = self._match(_INTEGERS, "an integer")
        return tuple(int(number) for number in text.split(","))

    def expect(self, token: str) -> None:
        """Read the token.

        Raises:
            ParseError: something else comes next.
        """
        if not self.accept(token):
            raise self.error(f"expected {token!r}, found {self._rest()!r}")

    def word(self) -> str:
        """A number or identifier."""
        return self._match(_WORD, "a word or number")

    def name(self) -> str:
        """A bare name (anything without blanks, brackets and separators) or a quoted one."""
        return self.string() if self.is_next('"') else self._match(_NAME, "a name")

    def string(self) -> str:
        """A string in double quotes, escaped as in JSON."""
        return self.convert(self._match(_STRING, "a string"), _unquote)

    def tensor_type(self) -> TensorType:
        """A tensor type as `str` prints it."""
        return self.convert(self._match(_TYPE, "a tensor type"), parse_type)

    def balanced(self) -> str:
        """Everything up to a separator or closing bracket that belongs to an outer level."""
        self._token = end = self._position
        depth = 0
        while end < len(self._text):
            character = self._text[end]
            if depth == 0 and character in ",)}":
                break
            depth += (character == "(") - (character == ")")
            end += 1
        text = self._text[self._position : end]
        self._advance(end)
        return text

    def convert(self, text: str, function: Callable[[str], Result]) -> Result:
        """`function(text)`, its complaint placed at the token read last.

        Raises:
            ParseError: the function raised ValueError, TypeError, KeyError or OverflowError.
        """
        try:
            return function(text)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise self.error(f"{error}") from error

    def _match(self, pattern: re.Pattern[str], what: str) -> str:
        self._token = self._position
        match = pattern.match(self._text, self._position)
        if match is None:
            raise self.error(f"expected {what}, found {self._rest()!r}")
        self._advance(match.end())
        return match.group()

    def _advance(self, position: int) -> None:
        self._position = position
        self._skip()

    def _skip(self) -> None:
        match = _BLANK.match(self._text, self._position)
        assert match is not None
        self._position = match.end()

    def _rest(self) -> str:
        return self._text[self._position :].split("\n", 1)[0][:20]


def quote_name(name: str) -> str:
    """The name as `Scanner.name` reads it."""
    return name if _NAME.fullmatch(name) else json.dumps(name)


def _unquote(text: str) -> str:
    value = json.loads(text)
    assert isinstance(value, str)
    return value
