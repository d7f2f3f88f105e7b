"""The errors a user can meet. All derive from `GlowstoneError` and carry what a remedy needs."""

from __future__ import annotations

from typing import ClassVar

MOST_SHOWN = 10_000
"""Characters of a field in a message."""


class GlowstoneError(Exception):
    """Base of every error of this package.

    Fields that do not apply are None. The message shows those that do, one per line.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        node: str | None = None,
        operator: str | None = None,
        expected: object = None,
        found: object = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.node = node
        self.operator = operator
        self.expected = expected
        self.found = found
        self.remedy = remedy

    _FIELDS = ("file", "node", "operator", "expected", "found", "remedy")
    _STATE: ClassVar[tuple[str, ...]] = _FIELDS
    """What pickling keeps besides the message."""

    def __str__(self) -> str:
        details = ((name, getattr(self, name)) for name in self._FIELDS)
        shown = (f"{name}: {_shortened(str(value))}" for name, value in details if value is not None)
        return "\n  ".join([_shortened(self.message), *shown])

    def with_context(
        self, *, file: str | None = None, node: str | None = None, operator: str | None = None
    ) -> GlowstoneError:
        """Fill in context fields that are still empty; returns self, for `raise error.with_context(...)`."""
        self.file = self.file or file
        self.node = self.node or node
        self.operator = self.operator or operator
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.message, {name: getattr(self, name) for name in self._STATE}))


def _shortened(text: str) -> str:
    """A text as messages show it: names in files may be of any length."""
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]} ... ({len(text)} characters)"


def _rebuild(kind: type[GlowstoneError], message: str, fields: dict[str, object]) -> GlowstoneError:
    error = kind(message)
    for name, value in fields.items():
        setattr(error, name, value)
    return error


class ModelError(GlowstoneError):
    """The model file is not a valid model: not ONNX, truncated, ill-typed, or reaching outside its folder."""


class UnsupportedError(GlowstoneError):
    """The model is valid, but uses operators or types that Glowstone does not have. Lists all of them at once."""


class ShapeError(GlowstoneError, ValueError):
    """A shape does not fit the model: wrong rank, a static dimension that differs, symbols that disagree."""


class UnknownValueError(ShapeError):
    """A value that decides a shape depends on data that arrives with a call.

    `value` is that value of the graph; where `is_fixed`, it must be the same in every call.
    """

    def __init__(self, message: str, *, value: object = None, is_fixed: bool = False) -> None:
        super().__init__(
            message,
            expected="a value that follows from shapes and constants",
            remedy="fix the input it depends on with constants={...}",
        )
        self.value = value
        self.is_fixed = is_fixed


class InputError(GlowstoneError, ValueError):
    """An input given to a call is not what the model declares: name, element type, aliasing, missing."""


class LimitError(GlowstoneError):
    """A budget would be exceeded: planned memory, folding, nesting."""


class ExecutionError(GlowstoneError):
    """A compiled model met a value at run time that the operator forbids, such as an index out of range."""


class InternalError(GlowstoneError):
    """A fault of Glowstone itself. `reproducer` is the IR text that shows it, if there is one; not in the message."""

    _STATE = (*GlowstoneError._FIELDS, "reproducer")
    reproducer: str | None = None

    def with_reproducer(self, text: str) -> InternalError:
        """Attach the IR text; returns self, for `raise error.with_reproducer(...)`."""
        self.reproducer = text
        return self
