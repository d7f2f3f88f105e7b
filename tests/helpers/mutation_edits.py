"""Edits that damage a model: of its bytes, and of the fields of its message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx

Random = np.random.Generator
Message = Any
Edit = Callable[[Message, Message, Random], None]
"""Takes the model that it changes, and another one to take from."""

INTEGERS = (0, 1, -1, 2, 3, 4, 7, 8, 16, 64, -2, 255, 1000, 65536, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63))
NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1e30, -3e38, float("inf"), float("-inf"), float("nan"))
TEXTS = ("", "x", "\0", "é", "NOTSET", "SAME_UPPER", "linear", "../x", "ai.onnx.ml", "com.microsoft", "N", "a" * 300)
LONGEST_CUT = 40
MOST_ELEMENTS = 6


class InapplicableError(Exception):
    """The model has nothing that this edit changes."""


def pick(random: Random, entries: Sequence[Any]) -> Any:
    if not len(entries):
        raise InapplicableError
    return entries[int(random.integers(len(entries)))]


# Bytes.


def flip_bits(data: bytes, random: Random) -> bytes:
    array = np.frombuffer(data, np.uint8).copy()
    for place in random.integers(len(array), size=random.integers(1, 5)) if len(array) else ():
        array[place] ^= 1 << int(random.integers(8))
    return array.tobytes()


def set_bytes(data: bytes, random: Random) -> bytes:
    array = np.frombuffer(data, np.uint8).copy()
    if len(array):
        array[random.integers(len(array))] = pick(random, (0, 1, 127, 128, 255))
    return array.tobytes()


def cut_bytes(data: bytes, random: Random) -> bytes:
    start, length = _stretch(data, random)
    return data[:start] + data[start + length :]


def cut_end(data: bytes, random: Random) -> bytes:
    return data[: int(random.integers(len(data) + 1))]


def insert_bytes(data: bytes, random: Random) -> bytes:
    start, length = _stretch(data, random)
    return data[:start] + random.bytes(length) + data[start:]


def copy_bytes(data: bytes, random: Random) -> bytes:
    start, length = _stretch(data, random)
    place, _ = _stretch(data, random)
    is_over = random.random() < 0.5
    return data[:place] + data[start : start + length] + data[place + (length if is_over else 0) :]


def _stretch(data: bytes, random: Random) -> tuple[int, int]:
    return int(random.integers(len(data) + 1)), int(random.integers(1, LONGEST_CUT))


BYTE_EDITS: tuple[Callable[[bytes, Random], bytes], ...] = (
    flip_bits,
    flip_bits,
    set_bytes,
    cut_bytes,
    cut_end,
    insert_bytes,
    copy_bytes,
)


# Fields.


def messages(message: Message) -> Iterator[Message]:
    """A message and all in it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if is_repeated(value) else (value,):
                yield from messages(inner)


def is_repeated(value: object) -> bool:
    return hasattr(value, "append")


def of_type(message: Message, kind: type) -> list[Message]:
    return [one for one in messages(message) if isinstance(one, kind)]


def value_for(field: Any, random: Random, near: Message) -> Any:
    """A value that a scalar field can hold."""
    if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        return pick(random, NUMBERS)
    if field.type == field.TYPE_STRING:
        return pick(random, [*TEXTS, *_texts_in(near)])
    if field.type == field.TYPE_BYTES:
        return random.bytes(int(random.integers(20)))
    if field.type == field.TYPE_ENUM:
        return pick(random, field.enum_type.values).number
    if field.type in (field.TYPE_INT32, field.TYPE_UINT64):
        return pick(random, (*range(28), 2**31 - 1))
    return pick(random, INTEGERS)


def _texts_in(model: Message) -> list[str]:
    return [name for node in of_type(model, onnx.NodeProto) for name in (node.op_type, *node.input, *node.output)]


def drop_field(model: Message, donor: Message, random: Random) -> None:
    message = pick(random, list(messages(model)))
    field, value = pick(random, message.ListFields())
    if is_repeated(value):
        del value[int(random.integers(len(value)))]
    else:
        message.ClearField(field.name)


def change_value(model: Message, donor: Message, random: Random) -> None:
    message = pick(random, list(messages(model)))
    field, value = pick(random, [entry for entry in message.ListFields() if entry[0].message_type is None])
    new = value_for(field, random, model)
    if is_repeated(value):
        value[int(random.integers(len(value)))] = new
    else:
        setattr(message, field.name, new)


def fill_field(model: Message, donor: Message, random: Random) -> None:
    """A field of any message, set or not."""
    message = pick(random, list(messages(model)))
    field = pick(random, message.DESCRIPTOR.fields)
    value = getattr(message, field.name)
    if field.message_type is not None:
        value.add() if is_repeated(value) else value.SetInParent()
    elif is_repeated(value):
        value.extend(value_for(field, random, model) for _ in range(random.integers(1, MOST_ELEMENTS)))
    else:
        setattr(message, field.name, value_for(field, random, model))


def rearrange(model: Message, donor: Message, random: Random) -> None:
    """Elements of a repeated field: one twice, two exchanged, or in another order."""
    message = pick(random, list(messages(model)))
    _, value = pick(random, [entry for entry in message.ListFields() if is_repeated(entry[1])])
    first, second = (int(random.integers(len(value))) for _ in range(2))
    elements = list(value)
    if random.random() < 0.5:
        elements.append(elements[first])
    else:
        elements[first], elements[second] = elements[second], elements[first]
    _assign(value, elements)


def _assign(repeated: Message, elements: Sequence[Any]) -> None:
    if elements and hasattr(elements[0], "SerializeToString"):
        elements = [type(one).FromString(one.SerializeToString()) for one in elements]
    del repeated[:]
    repeated.extend(elements)


def graft(model: Message, donor: Message, random: Random) -> None:
    """A message replaced by one of its type, of this model or another."""
    message = pick(random, list(messages(model))[1:])
    source = pick(random, of_type(pick(random, (model, donor)), type(message)))
    message.CopyFrom(type(message).FromString(source.SerializeToString()))


def change_operator(model: Message, donor: Message, random: Random) -> None:
    node, other = pick(random, of_type(model, onnx.NodeProto)), pick(random, of_type(donor, onnx.NodeProto))
    node.op_type, node.domain = other.op_type, other.domain
    if random.random() < 0.5:
        _assign(node.attribute, other.attribute)
    for entry in donor.opset_import:
        if entry.domain not in {known.domain for known in model.opset_import}:
            model.opset_import.append(entry)


def change_operands(model: Message, donor: Message, random: Random) -> None:
    node = pick(random, of_type(model, onnx.NodeProto))
    names = [*node.input]
    known = sorted({name for one in of_type(model, onnx.GraphProto) for name in _defined(one)} | {""})
    if names and random.random() < 0.7:
        names[int(random.integers(len(names)))] = pick(random, known)
    else:
        names.append(pick(random, known))
    node.input[:] = names


def _defined(graph: Message) -> Iterator[str]:
    yield from (entry.name for entry in (*graph.input, *graph.initializer))
    for node in graph.node:
        yield from node.output


def change_attribute(model: Message, donor: Message, random: Random) -> None:
    """Another value of the same kind: numbers at the ends of their range, lists of any length."""
    attribute = pick(random, of_type(model, onnx.AttributeProto))
    if attribute.type == onnx.AttributeProto.INT:
        attribute.i = pick(random, INTEGERS)
    elif attribute.type == onnx.AttributeProto.FLOAT:
        attribute.f = pick(random, NUMBERS)
    elif attribute.type == onnx.AttributeProto.INTS:
        attribute.ints[:] = _changed_list(list(attribute.ints), INTEGERS, random)
    elif attribute.type == onnx.AttributeProto.FLOATS:
        attribute.floats[:] = _changed_list(list(attribute.floats), NUMBERS, random)
    elif attribute.type == onnx.AttributeProto.STRING:
        others = [one.s for one in of_type(donor, onnx.AttributeProto) if one.s]
        attribute.s = pick(random, [*(text.encode() for text in TEXTS), *others])
    else:
        raise InapplicableError


def _changed_list(values: list[Any], choices: Sequence[Any], random: Random) -> list[Any]:
    if values and random.random() < 0.6:
        values[int(random.integers(len(values)))] = pick(random, choices)
        return values
    return [pick(random, choices) for _ in range(random.integers(MOST_ELEMENTS))]


def swap_attributes(model: Message, donor: Message, random: Random) -> None:
    """The values of two attributes exchanged, their names kept; or one taken from another model."""
    first = pick(random, of_type(model, onnx.AttributeProto))
    second = pick(random, of_type(pick(random, (model, donor)), onnx.AttributeProto))
    names, copy = (first.name, second.name), onnx.AttributeProto.FromString(first.SerializeToString())
    first.CopyFrom(onnx.AttributeProto.FromString(second.SerializeToString()))
    second.CopyFrom(copy)
    first.name, second.name = names


def change_dimensions(model: Message, donor: Message, random: Random) -> None:
    """Extents of a declared input or output: changed, made symbolic, added or dropped."""
    shape = pick(random, of_type(model.graph, onnx.TensorShapeProto))
    choice = random.integers(4)
    if choice == 0:
        shape.dim.add(dim_value=int(pick(random, (0, 1, 2, 5))))
    elif choice == 1 or not len(shape.dim):
        del shape.dim[int(random.integers(len(shape.dim) + 1)) :]
    elif choice == 2:
        pick(random, shape.dim).dim_value = pick(random, INTEGERS)
    else:
        pick(random, shape.dim).dim_param = pick(random, ("n", "m", ""))


def change_tensor(model: Message, donor: Message, random: Random) -> None:
    """A constant of other extents, another element type, or with other integers in it."""
    tensor = pick(random, of_type(model, onnx.TensorProto))
    choice = random.integers(4)
    if choice == 0:
        tensor.dims[:] = _changed_list(list(tensor.dims), INTEGERS, random)
    elif choice == 1:
        tensor.data_type = int(random.integers(28))
    else:
        count = len(tensor.dims) and int(np.clip(tensor.dims[0], 0, MOST_ELEMENTS))
        array = np.array([pick(random, INTEGERS) for _ in range(count or 1)], np.int64)
        name = tensor.name
        tensor.CopyFrom(onnx.numpy_helper.from_array(array if tensor.dims else array[0].reshape(()), name))


def change_element_type(model: Message, donor: Message, random: Random) -> None:
    tensor = pick(random, of_type(model.graph, onnx.TypeProto.Tensor))
    tensor.elem_type = int(random.integers(28))


FIELD_EDITS: tuple[Edit, ...] = (
    drop_field,
    change_value,
    fill_field,
    rearrange,
    graft,
    change_operator,
    change_operands,
    change_operands,
    change_attribute,
    change_attribute,
    swap_attributes,
    change_dimensions,
    change_tensor,
    change_tensor,
    change_element_type,
)
