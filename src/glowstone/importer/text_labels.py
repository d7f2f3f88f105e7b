"""Classifiers of ai.onnx.ml whose labels are texts, written as two nodes: numbered classes, which are compiled, and the
names of the numbers, which are found on the host.
"""

from __future__ import annotations

from typing import Any

ML_DOMAIN = "ai.onnx.ml"
NUMBERED = {
    "TreeEnsembleClassifier": "classlabels_int64s",
    "LinearClassifier": "classlabels_ints",
    "SVMClassifier": "classlabels_ints",
}
"""The attribute of integer labels, by operator."""
TEXTS = "classlabels_strings"
OF_ONE_LABEL = (b"0", b"1")
"""What two classes are called of which the file names but one, as in ONNX Runtime."""


def with_numbered_labels(proto: Any) -> Any:
    """The model with such nodes split; the model itself where it has none."""
    if not any(_text_labels(node) for node in proto.graph.node):
        return proto
    result = type(proto)()
    result.CopyFrom(proto)
    taken = {name for node in proto.graph.node for name in node.output}
    nodes = []
    for node in result.graph.node:
        labels = _text_labels(node)
        nodes.append(node)
        numbers = _number_labels(node, labels, taken) if labels else ""
        if numbers:
            nodes.append(_names_of(node, numbers, labels))
            node.output[0] = numbers
    del result.graph.node[:]
    result.graph.node.extend(nodes)
    return result


def _text_labels(node: Any) -> tuple[bytes, ...]:
    if node.domain != ML_DOMAIN or node.op_type not in NUMBERED:
        return ()
    if any(entry.name == NUMBERED[node.op_type] and entry.ints for entry in node.attribute):
        return ()  # both kinds: the rule refuses that
    return next((tuple(entry.strings) for entry in node.attribute if entry.name == TEXTS), ())


def _number_labels(node: Any, labels: tuple[bytes, ...], taken: set[str]) -> str:
    """Number the labels of a node; returns the name that the numbers are to have, "" where nothing reads them."""
    import onnx

    kept = [entry for entry in node.attribute if entry.name not in (TEXTS, NUMBERED[node.op_type])]
    kept.append(onnx.helper.make_attribute(NUMBERED[node.op_type], list(range(len(labels)))))
    copies = [onnx.AttributeProto.FromString(entry.SerializeToString()) for entry in kept]
    del node.attribute[:]
    node.attribute.extend(copies)
    if not node.output or not node.output[0]:
        return ""
    name = f"{node.output[0]}.class"
    while name in taken:
        name += "."
    taken.add(name)
    return name


def _names_of(node: Any, numbers: str, labels: tuple[bytes, ...]) -> Any:
    """A node that gives the numbers their names."""
    import onnx

    names = labels if len(labels) > 1 else OF_ONE_LABEL
    return onnx.helper.make_node(
        "CategoryMapper",
        [numbers],
        [node.output[0]],
        name=f"{node.name}.labels" if node.name else "",
        domain=ML_DOMAIN,
        cats_int64s=list(range(len(names))),
        cats_strings=list(names),
    )
