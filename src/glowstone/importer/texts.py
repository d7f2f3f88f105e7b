"""Texts in a file: which nodes have to do with them."""

from __future__ import annotations

from typing import Any

TEXT = 8
"""onnx.TensorProto.STRING."""


def names_texts(node: Any) -> bool:
    """Whether a node gives or takes texts by what its attributes say."""
    return any(
        entry.strings
        or entry.t.data_type == TEXT
        or entry.name.startswith("value_string")
        or (entry.name == "to" and entry.i == TEXT)
        for entry in node.attribute
    )
