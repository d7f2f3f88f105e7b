"""RNN, GRU, LSTM, ReverseSequence."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import GRU, LSTM, RNN, ReverseSequence


def _import_network(kind: Callable[..., Any], flag: dict[str, str], node: OnnxNode) -> tuple[Value, ...]:
    """`flag` is the network's own attribute: the name of our field by that of ONNX."""
    fields: dict[str, Any] = {
        "direction": node.text("direction", "forward"),
        "activations": node.text_list("activations") or (),
        "alphas": node.number_list("activation_alpha") or (),
        "betas": node.number_list("activation_beta") or (),
        "clip": node.number("clip", 0.0) if "clip" in node.attributes else None,
        "batch_first": node.flag("layout"),
        **{field: node.flag(name) for name, field in flag.items()},
    }
    return node.builder.emit_node(kind(**fields), *node.operands).results


_NETWORKS: dict[str, tuple[Callable[..., Any], dict[str, str]]] = {
    "RNN": (RNN, {}),
    "GRU": (GRU, {"linear_before_reset": "linear_before_reset"}),
    "LSTM": (LSTM, {"input_forget": "couples_input"}),
}

for _name, (_kind, _flag) in _NETWORKS.items():
    imports(_name)(functools.partial(_import_network, _kind, _flag))

import_lstm = functools.partial(_import_network, *_NETWORKS["LSTM"])


@imports("ReverseSequence", since=10)
def import_reverse_sequence(node: OnnxNode) -> Value:
    operator = ReverseSequence(node.integer("time_axis", 0), node.integer("batch_axis", 1))
    return node.emit(operator, node.operand(0), node.operand(1))
