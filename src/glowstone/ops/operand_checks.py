"""What operators check about several operands together."""

from __future__ import annotations

from glowstone.errors import ModelError
from glowstone.graph import Value


def known_integer(value: Value, name: str) -> int:
    """The one integer that a known value is.

    Raises:
        ModelError: it is of another type, or more or less than one.
    """
    array = value.known
    if array is None or array.size != 1 or array.dtype.kind not in "iub":
        raise ModelError(f"operand {name} is not one integer", expected="one integer", found=str(value.type))
    return int(array.reshape(()))


def require_one_element(*operands: Value | None) -> None:
    """Check that operands, where given, have one element type.

    Raises:
        ModelError: they have several.
    """
    given = [operand for operand in operands if operand is not None]
    if any(operand.element is not given[0].element for operand in given):
        raise ModelError(
            "operands have different element types",
            expected=given[0].element,
            found=", ".join(str(operand.type) for operand in given),
        )
