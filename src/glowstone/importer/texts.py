"""Texts in a file: which nodes have to do with them, and classifiers whose labels they are.

Of such a classifier a compiled graph finds the number of the class, and the host says its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

TEXT = 8
"""onnx.TensorProto.STRING."""
LABELS = "classlabels_strings"
NUMBERS = "class numbers"
"""Behind the name of a label, the name of its number."""


def names_texts(node: Any) -> bool:
    """Whether a node gives or takes texts by what its attributes say."""
    return any(
        entry.strings
        or entry.t.data_type == TEXT
        or entry.name.startswith("value_string")
        or (entry.name == "to" and entry.i == TEXT)
        for entry in node.attribute
    )


def has_text_labels(node: Any) -> bool:
    """Whether the first result of a node is texts, which the file lists in its attribute."""
    return node.op_type != "ZipMap" and any(entry.name == LABELS and entry.strings for entry in node.attribute)


def with_named_labels(nodes: Iterable[Any]) -> Iterator[Any]:
    """The nodes, where a node has labels that are texts followed by one that names the numbers it finds."""
    from onnx import NodeProto, helper

    for node in nodes:
        if not has_text_labels(node) or not node.output or not node.output[0]:
            yield node
            continue
        finding = NodeProto()
        finding.CopyFrom(node)
        label = node.output[0]
        finding.output[0] = f"{label}.{NUMBERS}"
        yield finding
        names = next(entry.strings for entry in node.attribute if entry.name == LABELS)
        yield helper.make_node(
            "LabelEncoder",
            [finding.output[0]],
            [label],
            name=f"{node.name or label}.names",
            domain=node.domain,
            keys_int64s=range(len(names)),
            values_strings=[name.decode("utf-8", "replace") for name in names],
        )
