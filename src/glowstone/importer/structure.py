"""Checks of a model's structure, before any node is imported: names, order, operators.

In: a parsed model. Out: nothing, or an error. Afterwards every name is computed exactly once, before it is read, and
every operator has a rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from glowstone.errors import ModelError, UnsupportedError
from glowstone.host import host_rule
from glowstone.importer.bodies import bodies_of, nested_graphs
from glowstone.importer.model_file import ModelFile
from glowstone.importer.registry import DEFAULT_DOMAIN, canonical_domain, rule_for


def node_name(node: Any, index: int) -> str:
    """What errors call a node: its name, else its first result, else its number."""
    return str(node.name or (node.output[0] if node.output else f"node {index}"))


def check_structure(model: ModelFile) -> None:
    """Check everything of this module.

    Raises:
        ModelError: names computed twice or not at all, or nodes on a cycle.
        UnsupportedError: operators without a rule, all of them at once; sparse initializers.
    """
    graphs = list(nested_graphs(model.proto.graph))
    for graph in graphs:
        if graph.sparse_initializer:
            raise UnsupportedError("sparse initializers are not supported", found=len(graph.sparse_initializer))
    _check_operators(model, graphs)
    _check_graph(model.proto.graph, None)


def _check_graph(graph: Any, around: frozenset[str] | None) -> None:
    """Check definitions and uses; `around` are the names that a body sees besides its own, which hide them."""
    defined = _defined_before_nodes(graph)
    _check_nodes(graph, defined, around or frozenset())
    _check_outputs(graph, defined, around)


def _check_operators(model: ModelFile, graphs: Sequence[Any]) -> None:
    missing: dict[str, list[str]] = {}
    for index, node in ((index, node) for graph in graphs for index, node in enumerate(graph.node)):
        domain = canonical_domain(node.domain)
        if rule_for(node.op_type, model.opset_of(node), domain) is None and host_rule(node.op_type, domain) is None:
            kind = node.op_type if domain == DEFAULT_DOMAIN else f"{domain}.{node.op_type}"
            missing.setdefault(kind, []).append(node_name(node, index))
    if missing:
        listed = ", ".join(f"{kind} ({len(nodes)})" for kind, nodes in sorted(missing.items()))
        raise UnsupportedError(
            f"the model uses operators that are not supported: {listed}",
            node="; ".join(nodes[0] for _, nodes in sorted(missing.items())),
            operator=", ".join(sorted(missing)),
            expected=f"operators of opset {model.opset()} that Glowstone has",
            found=listed,
        )


def _defined_before_nodes(graph: Any) -> set[str]:
    """Names of inputs and initializers; an initializer may give the value of an input."""
    defined: set[str] = set()
    for what, entries in (("input", graph.input), ("initializer", graph.initializer)):
        names: set[str] = set()
        for entry in entries:
            if not entry.name or entry.name in names:
                found = repr(entry.name) if entry.name else "no name"
                raise ModelError(f"an {what} has no name of its own", expected="distinct names", found=found)
            names.add(entry.name)
        defined |= names
    return defined


def _check_nodes(graph: Any, defined: set[str], around: frozenset[str]) -> None:
    computed = {name for node in graph.node for name in node.output}
    for index, node in enumerate(graph.node):
        context = {"node": node_name(node, index), "operator": node.op_type}
        for name in node.input:
            if name and name not in defined and name not in around:
                if name in computed:
                    raise ModelError(
                        f"operand {name!r} follows from itself",
                        expected="nodes that can be put in an order",
                        found="a cycle of nodes",
                        **context,
                    )
                raise ModelError(f"operand {name!r} is computed by no node", expected="a value", found=name, **context)
        for body in bodies_of(node):
            _check_graph(body, around | defined)
        for name in node.output:
            if name and name in defined:
                raise ModelError(
                    f"value {name!r} is computed twice", expected="each value is computed once", found=name, **context
                )
            defined.add(name)


def _check_outputs(graph: Any, defined: set[str], around: frozenset[str] | None) -> None:
    names: set[str] = set()
    for entry in graph.output:
        if not entry.name or (entry.name not in defined and entry.name not in (around or ())):
            raise ModelError(f"output {entry.name!r} is computed by no node", expected="a value", found=entry.name)
        if entry.name in names and around is None:  # a body may give one value twice
            raise ModelError(f"output {entry.name!r} is listed twice", expected="distinct names", found=entry.name)
        names.add(entry.name)
