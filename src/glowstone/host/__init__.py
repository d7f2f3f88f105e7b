"""Operators that run on the host, by family; and the values they work on."""

from glowstone.host import control, image, maps, sequence, text, text_moves
from glowstone.host.registry import (
    HOST_RULES,
    MISSING,
    HostBody,
    HostNode,
    HostRule,
    HostValue,
    host_rule,
    is_for_texts,
)

__all__ = [
    "HOST_RULES",
    "MISSING",
    "HostBody",
    "HostNode",
    "HostRule",
    "HostValue",
    "control",
    "host_rule",
    "image",
    "is_for_texts",
    "maps",
    "sequence",
    "text",
    "text_moves",
]
