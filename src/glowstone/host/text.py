"""Texts: arrays of Python strings (NumPy type object)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from glowstone.errors import ExecutionError, ModelError
from glowstone.host.pattern import Pattern
from glowstone.host.registry import Array, HostNode, HostValue, Kind, array_at, describe, fitting, runs_on_host

LONGEST_PATTERN = 1000


def text_array(values: object, shape: tuple[int, ...]) -> Array:
    """Texts as an array, whatever their lengths."""
    result = np.empty(shape, object)
    result.reshape(-1)[:] = values
    return result


def is_text(value: HostValue) -> bool:
    """Whether a value is a tensor of texts."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "OUS"


def texts_at(node: HostNode, operands: Sequence[HostValue], index: int) -> Array:
    """A required operand that is a tensor of texts.

    Raises:
        ModelError: it is anything else.
    """
    array = array_at(node, operands, index)
    if not is_text(array):
        raise ModelError("an operand is no tensor of texts", expected="string", found=describe(array))
    return array


def _mapped(texts: Array, function: Callable[[str], Any]) -> list[Any]:
    return [function(str(text)) for text in texts.reshape(-1).tolist()]


@runs_on_host("Constant", texts=True)
def constant(node: HostNode, operands: Sequence[HostValue]) -> Array:
    """A constant of texts."""
    texts = node.attribute("value_strings", Kind.TEXTS)
    if texts is not None:
        return text_array(list(texts), (len(texts),))
    value = node.attribute("value", Kind.TENSOR)
    return text_array([node.attribute("value_string", Kind.TEXT, "")], ()) if value is None else np.asarray(value)


@runs_on_host("StringConcat")
def string_concat(node: HostNode, operands: Sequence[HostValue]) -> Array:
    first, second = texts_at(node, operands, 0), texts_at(node, operands, 1)

    def joined() -> Array:
        starts, ends = np.broadcast_arrays(first, second)
        pairs = zip(starts.reshape(-1).tolist(), ends.reshape(-1).tolist(), strict=True)
        return text_array([f"{start}{end}" for start, end in pairs], starts.shape)

    return fitting(joined, first, describe(second))


@runs_on_host("StringSplit")
def string_split(node: HostNode, operands: Sequence[HostValue]) -> tuple[Array, Array]:
    """Parts on a last axis that is as long as the longest list of them, empty texts behind; and how many there are."""
    x = texts_at(node, operands, 0)
    separator = node.attribute("delimiter", Kind.TEXT) or None
    most = node.attribute("maxsplit", Kind.INTEGER, -1)
    parts: list[list[str]] = _mapped(x, lambda text: text.split(separator, most))
    length = max(map(len, parts), default=0)
    padded = [part for row in parts for part in (*row, *[""] * (length - len(row)))]
    counts = np.array([len(row) for row in parts], np.int64).reshape(x.shape)
    return text_array(padded, (*x.shape, length)), counts


@runs_on_host("StringNormalizer")
def string_normalizer(node: HostNode, operands: Sequence[HostValue]) -> Array:
    """Texts without the stop words, in lower or upper case; one empty text where none is left."""
    x = texts_at(node, operands, 0)
    if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != 1):
        raise ExecutionError("texts to normalize are no list", expected="[C] or [1, C]", found=describe(x))
    changes: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}
    action = node.attribute("case_change_action", Kind.TEXT, "NONE")
    if action not in changes:
        raise ModelError("attribute case_change_action is unknown", expected=", ".join(changes), found=action)
    compared: Callable[[str], str] = str if node.attribute("is_case_sensitive", Kind.INTEGER, 0) else str.casefold
    stops = {compared(word) for word in node.attribute("stopwords", Kind.TEXTS, ())}
    kept = [changes[action](text) for text in _mapped(x, str) if compared(text) not in stops] or [""]
    return text_array(kept, (*x.shape[:-1], len(kept)))


@runs_on_host("RegexFullMatch")
def regex_full_match(node: HostNode, operands: Sequence[HostValue]) -> Array:
    x, pattern = texts_at(node, operands, 0), node.attribute("pattern", Kind.TEXT, "")
    if len(pattern) > LONGEST_PATTERN:
        raise ModelError("a pattern is too long", expected=f"at most {LONGEST_PATTERN} characters", found=len(pattern))
    compiled = Pattern(pattern)
    return np.array(_mapped(x, compiled.matches), np.bool_).reshape(x.shape)


@runs_on_host("Equal", texts=True)
def equal(node: HostNode, operands: Sequence[HostValue]) -> Array:
    first, second = texts_at(node, operands, 0), texts_at(node, operands, 1)
    return fitting(lambda: np.asarray(first == second, np.bool_), first, describe(second))


@runs_on_host("Cast", texts=True)
def cast(node: HostNode, operands: Sequence[HostValue]) -> Array:
    """Numbers from and to texts; `to` is the NumPy type."""
    x, target = array_at(node, operands, 0), node.required("to", Kind.TYPE)
    if is_text(x):
        return _numbers(x, target) if target != np.dtype(object) else x
    return text_array([_written(value) for value in x.reshape(-1)], x.shape)


def _numbers(texts: Array, target: np.dtype[Any]) -> Array:
    read: Callable[[str], Any] = int if target.kind in "iu" else float
    try:
        with np.errstate(over="ignore"):  # what is too large for the type is infinite
            return np.array(_mapped(texts, read), target).reshape(texts.shape)
    except (ValueError, OverflowError) as error:
        raise ExecutionError("a text is no number", expected=target, found=str(error)) from error


def _written(number: Any) -> str:
    """A number as ONNX writes it: as short as it can be read back, NaN and INF for what is no number."""
    if number.dtype.kind in "iub":
        return str(int(number))
    if not np.isfinite(number):
        return "NaN" if np.isnan(number) else ("INF" if number > 0 else "-INF")
    return str(number)
