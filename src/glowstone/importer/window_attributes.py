"""The window attributes that convolution and pooling share."""

from __future__ import annotations

from dataclasses import dataclass

from glowstone.errors import ModelError
from glowstone.importer.registry import OnnxNode

_PADDINGS = {"NOTSET": "explicit", "SAME_UPPER": "same_upper", "SAME_LOWER": "same_lower", "VALID": "valid"}


@dataclass(frozen=True)
class WindowAttributes:
    """strides, dilations, pads and auto_pad, with their defaults filled in."""

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    padding: str


def window_attributes(node: OnnxNode, spatial: int) -> WindowAttributes:
    """The attributes of a node over `spatial` axes.

    Raises:
        ModelError: auto_pad is none of the four words of the specification.
    """
    word = node.text("auto_pad", "NOTSET") or "NOTSET"
    if word not in _PADDINGS:
        raise ModelError("attribute auto_pad is unknown", expected=", ".join(_PADDINGS), found=word)
    ones = (1,) * spatial
    pads = (node.integer_list("pads") if _PADDINGS[word] == "explicit" else None) or (0,) * (2 * spatial)
    strides, dilations = (node.integer_list(name) or ones for name in ("strides", "dilations"))
    return WindowAttributes(strides, dilations, pads, _PADDINGS[word])
