"""Maps of ai.onnx.ml (dictionaries), and encoders whose categories are texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from glowstone.errors import ExecutionError, LimitError, ModelError
from glowstone.host.registry import (
    Array,
    HostNode,
    HostValue,
    Kind,
    array_at,
    describe,
    indices_at,
    operand_at,
    runs_on_host,
)
from glowstone.host.text import is_text, text_array

ML = "ai.onnx.ml"
SUFFIXES = {
    "strings": (Kind.TEXTS, np.dtype(object)),
    "int64s": (Kind.INTEGERS, np.dtype(np.int64)),
    "floats": (Kind.NUMBERS, np.dtype(np.float32)),
}
"""Of attributes that list keys or values, with their kind and the type of the elements."""
MOST_COLUMNS = 1 << 24
"""Of a map written out."""


@runs_on_host("ZipMap", domain=ML)
def zip_map(node: HostNode, operands: Sequence[HostValue]) -> list[dict[Any, np.float32]]:
    """A map from class to score for every row."""
    x = array_at(node, operands, 0)
    labels = _texts_or_numbers(node, "classlabels_strings", "classlabels_int64s")
    if not labels or x.shape[-1:] != (len(labels),):
        raise ExecutionError("scores do not fit the classes", expected=f"[N, {len(labels)}]", found=describe(x))
    return [dict(zip(labels, row, strict=True)) for row in x.reshape(-1, len(labels))]


def _texts_or_numbers(node: HostNode, texts: str, numbers: str) -> tuple[Any, ...]:
    """One of two attributes; empty where both are left out."""
    found: tuple[Any, ...] = node.attribute(texts, Kind.TEXTS) or node.attribute(numbers, Kind.INTEGERS) or ()
    return found


@runs_on_host("DictVectorizer", domain=ML)
def dict_vectorizer(node: HostNode, operands: Sequence[HostValue]) -> Array:
    """The values of a map in the order of the vocabulary, [1, C]; 0 for what it lacks."""
    given = operand_at(node, operands, 0)
    if not isinstance(given, dict):
        raise ModelError("an operand is no map", expected="a map", found=describe(given))
    names = _texts_or_numbers(node, "string_vocabulary", "int64_vocabulary")
    values = list(given.values())
    if values and isinstance(values[0], str):
        return text_array([given.get(name, "") for name in names], (1, len(names)))
    try:
        dtype = np.result_type(*values) if values and isinstance(values[0], np.generic) else np.float32
        return np.array([[given.get(name, 0) for name in names]], dtype)
    except (ValueError, TypeError) as error:
        raise ExecutionError("a value of a map is no number", expected="numbers", found=str(error)) from error


@runs_on_host("LabelEncoder", domain=ML, texts=True)
def label_encoder(node: HostNode, operands: Sequence[HostValue]) -> Array:
    """What the keys equal to the elements stand for; NaN equals NaN. Version 1 lists texts, each for its number."""
    x = array_at(node, operands, 0)
    classes = node.attribute("classes_strings", Kind.TEXTS)
    if classes:
        return _between(node, x, classes, range(len(classes)))
    keys, _ = _listed(node, "keys")
    values, dtype = _listed(node, "values")
    if len(keys) != len(values):
        raise ModelError("keys and values differ in number", expected=len(keys), found=len(values))
    meanings = _first_of_each(map(_comparable, keys), values)
    default = _default(node, dtype)
    return _array([meanings.get(_comparable(key), default) for key in x.reshape(-1).tolist()], dtype, x.shape)


def _listed(node: HostNode, what: str) -> tuple[list[Any], np.dtype[Any]]:
    """Keys or values, and the type of tensors of them."""
    tensor = node.attribute(f"{what}_tensor", Kind.TENSOR)
    if tensor is not None:
        return tensor.reshape(-1).tolist(), tensor.dtype
    for suffix, (kind, dtype) in SUFFIXES.items():
        listed = node.attribute(f"{what}_{suffix}", kind)
        if listed is not None:
            return np.asarray(listed, dtype).tolist(), dtype
    raise ModelError(f"{what} are missing", expected=", ".join(f"{what}_{suffix}" for suffix in SUFFIXES))


def _default(node: HostNode, dtype: np.dtype[Any]) -> Any:
    tensor = node.attribute("default_tensor", Kind.TENSOR)
    if tensor is not None and (tensor.size != 1 or tensor.dtype != dtype):
        raise ModelError("attribute default_tensor does not fit", expected=f"one {dtype}", found=describe(tensor))
    if tensor is not None:
        return tensor.reshape(-1)[0]
    if dtype.kind == "O":
        return node.attribute("default_string", Kind.TEXT, "_Unused")
    is_float = dtype.kind == "f"
    default = node.attribute("default_float", Kind.NUMBER, -0.0) if is_float else _default_integer(node)
    return np.array(default).astype(dtype)[()]


def _default_integer(node: HostNode) -> int:
    default: int = node.attribute("default_int64", Kind.INTEGER, -1)
    return default


def _comparable(key: Any) -> Any:
    """A key that equals itself even where it is NaN."""
    return "a NaN" if isinstance(key, float) and key != key else (type(key) is str, key)


@runs_on_host("CategoryMapper", domain=ML)
def category_mapper(node: HostNode, operands: Sequence[HostValue]) -> Array:
    """The number of each text, or the text of each number."""
    texts, numbers = node.attribute("cats_strings", Kind.TEXTS, ()), node.attribute("cats_int64s", Kind.INTEGERS, ())
    if len(texts) != len(numbers):
        raise ModelError("keys and values differ in number", expected=len(texts), found=len(numbers))
    return _between(node, array_at(node, operands, 0), texts, numbers)


def _between(node: HostNode, x: Array, texts: Sequence[str], numbers: Sequence[int]) -> Array:
    """Texts to their numbers, or numbers to their texts."""
    elements: Iterable[Any] = x.reshape(-1).tolist()
    if is_text(x):
        to_number = _first_of_each(texts, numbers)
        default = _default_integer(node)
        return np.array([to_number.get(text, default) for text in elements], np.int64).reshape(x.shape)
    to_text = _first_of_each(numbers, texts)
    nothing = node.attribute("default_string", Kind.TEXT, "_Unused")
    return text_array([to_text.get(number, nothing) for number in elements], x.shape)


def _first_of_each(keys: Iterable[Any], values: Iterable[Any]) -> dict[Any, Any]:
    """A mapping; of equal keys the first counts."""
    meanings: dict[Any, Any] = {}
    for key, value in zip(keys, values, strict=True):
        meanings.setdefault(key, value)
    return meanings


@runs_on_host("ArrayFeatureExtractor", domain=ML, texts=True)
def array_feature_extractor(node: HostNode, operands: Sequence[HostValue]) -> Array:
    """Elements along the last axis at the indices; of a vector a matrix of one row."""
    x, indices = array_at(node, operands, 0), indices_at(node, operands, 1).reshape(-1)
    extent = x.shape[-1] if x.ndim else 0
    bad = (indices < -extent) | (indices >= extent)
    if bad.any():
        wrong = int(indices[int(np.argmax(bad))])
        raise ExecutionError("index out of range", expected=f"{-extent} to {extent - 1}", found=wrong)
    return np.asarray(np.atleast_2d(x)[..., indices])


CASTS: dict[str, tuple[Callable[[Any], Any], np.dtype[Any], Any]] = {
    "TO_FLOAT": (float, np.dtype(np.float32), 0.0),
    "TO_INT64": (int, np.dtype(np.int64), 0),
    "TO_STRING": (str, np.dtype(object), "0.f"),
}
"""By `cast_to`: what makes a value, its type, and what stands for a missing one (in texts as ONNX Runtime has it)."""


@runs_on_host("CastMap", domain=ML)
def cast_map(node: HostNode, operands: Sequence[HostValue]) -> Array:
    """[1, columns]: values in the order of their keys, or (SPARSE) at the columns that their keys are."""
    given, target = operand_at(node, operands, 0), node.attribute("cast_to", Kind.TEXT, "TO_FLOAT")
    if not isinstance(given, dict):
        raise ModelError("an operand is no map", expected="a map", found=describe(given))
    if target not in CASTS:
        raise ModelError("attribute cast_to is unknown", expected=", ".join(CASTS), found=target)
    convert, dtype, nothing = CASTS[target]
    try:
        converted = {int(key): convert(value) for key, value in sorted(given.items())}
    except (ValueError, OverflowError, TypeError) as error:
        raise ExecutionError("a value of a map is no number", expected=target, found=str(error)) from error
    values = list(converted.values())
    if node.attribute("map_form", Kind.TEXT, "DENSE") == "SPARSE":
        columns = node.attribute("max_map", Kind.INTEGER, 1)
        if columns > MOST_COLUMNS:
            raise LimitError("attribute max_map is too large", expected=f"at most {MOST_COLUMNS}", found=columns)
        values = [converted.get(key, nothing) for key in range(columns)]
    return _array(values, dtype, (1, len(values)))


@runs_on_host("OneHotEncoder", domain=ML, texts=True)
def one_hot_encoder(node: HostNode, operands: Sequence[HostValue]) -> Array:
    """1 at the place of each text among the categories."""
    x = array_at(node, operands, 0)
    names = node.attribute("cats_strings", Kind.TEXTS, ())
    places = {name: place for place, name in enumerate(names)}
    result = np.zeros((x.size, len(names)), np.float32)
    for row, text in enumerate(x.reshape(-1).tolist()):
        if text in places:
            result[row, places[text]] = 1
        elif not node.attribute("zeros", Kind.INTEGER, 1):
            raise ExecutionError("a text is no category", expected=", ".join(names), found=text)
    return result.reshape(*x.shape, len(names))


def _array(values: list[Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    return text_array(values, shape) if dtype.kind == "O" else np.array(values, dtype).reshape(shape)
