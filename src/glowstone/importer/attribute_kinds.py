"""The kind of an attribute, which files of the first version of the format leave out."""

from __future__ import annotations

from typing import Any

_KIND_OF_FIELD = {
    "f": 1,
    "i": 2,
    "s": 3,
    "t": 4,
    "g": 5,
    "floats": 6,
    "ints": 7,
    "strings": 8,
    "tensors": 9,
    "graphs": 10,
}
"""onnx.AttributeProto.AttributeType by the field that holds the value."""
_SINGLE = frozenset("fistg")


def attribute_kind(attribute: Any) -> int:
    """As the file says; where it says nothing, that of the one field that is there."""
    if attribute.type:
        return int(attribute.type)
    found = [
        kind
        for field, kind in _KIND_OF_FIELD.items()
        if (attribute.HasField(field) if field in _SINGLE else len(getattr(attribute, field)))
    ]
    return found[0] if len(found) == 1 else 0
