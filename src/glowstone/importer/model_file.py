"""Reads the protobuf: from a path, bytes or a ModelProto, with the checks that must come before anything is believed.

Out: a `ModelProto` and the folder that external data may lie in. `onnx` is imported here, on first use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from glowstone.errors import GlowstoneError, ModelError
from glowstone.importer.file_checks import check_limits, check_names
from glowstone.importer.functions import expand_functions, noted_opset
from glowstone.importer.order import is_sorted, sort_nodes
from glowstone.importer.registry import DEFAULT_DOMAIN, canonical_domain
from glowstone.importer.text_labels import with_numbered_labels
from glowstone.support.budget import budget
from glowstone.support.external_data import ExternalData
from glowstone.support.model_source import MOST_BYTES, ModelSource, read_bytes, too_large

OLDEST_OPSET = 1
OPSETS_NAMED_IN = 3
"""Files of an older version of the format name no opset; they mean the first."""
NEWEST_OPSET = 26
FIRST_OPSET = 1
"""Of a domain that a file uses without saying at which version."""


@dataclass(frozen=True)
class ModelFile:
    """A parsed model. `name` is what errors call it; `external` reads external data; `opsets` go by domain."""

    proto: Any
    name: str
    external: ExternalData
    opsets: Mapping[str, int]

    def opset(self, domain: str = DEFAULT_DOMAIN) -> int:
        """The version of a domain (`canonical_domain`) that the model uses."""
        return self.opsets.get(domain, FIRST_OPSET)

    def opset_of(self, node: Any) -> int:
        """The version of its domain that a node is of: that of the function it comes from, or the model's."""
        noted = noted_opset(node)
        return self.opset(canonical_domain(node.domain)) if noted is None else noted


def open_model(source: ModelSource) -> ModelFile:
    """Read and parse. See `read_bytes` and `parse_model` for what is raised."""
    data, name, folder = read_bytes(source)
    return parse_model(source if data is None else data, name, ExternalData(folder))


def parse_model(source: Any, name: str, external: ExternalData) -> ModelFile:
    """Parse bytes, or take a ModelProto, and check the envelope: protobuf, graph present, opset known.

    Raises:
        ModelError: not a model, truncated, or without a graph.
    """
    import onnx
    from google.protobuf.message import DecodeError

    if not isinstance(source, bytes):
        proto = source
        if not isinstance(proto, onnx.ModelProto):
            raise ModelError("not a model", expected="a path, bytes or an onnx.ModelProto", found=type(source).__name__)
        budget().hold(_size_of(proto))
    else:
        if len(source) > MOST_BYTES:
            raise too_large(name, len(source))
        budget().hold(len(source))
        try:
            proto = onnx.ModelProto.FromString(source)
        except DecodeError as error:
            raise ModelError(
                "not an ONNX model, or a truncated one",
                file=name,
                expected="a serialized ModelProto",
                found=f"{len(source)} bytes that do not parse",
            ) from error
    if not proto.HasField("graph") or not proto.graph.output:
        raise ModelError("the model has no graph", file=name, expected="a graph with at least one output")
    try:
        return ModelFile(_prepared(proto, is_own=isinstance(source, bytes)), name, external, _opsets(proto, name))
    except GlowstoneError as error:
        raise error.with_context(file=name) from error.__cause__


def _size_of(proto: Any) -> int:
    """Bytes of a message; 0 where it is nested too deep to be written, which is refused later."""
    from google.protobuf.message import EncodeError

    try:
        return int(proto.ByteSize())
    except (EncodeError, ValueError):
        return 0


def _prepared(proto: Any, is_own: bool) -> Any:
    """The model within its limits, without functions, its nodes in order; a copy where the given one would change."""
    check_limits(proto, budget())
    check_names(proto)
    if proto.functions or not is_sorted(proto.graph):
        if not is_own:
            original, proto = proto, type(proto)()
            proto.CopyFrom(original)
        expand_functions(proto, budget())
        sort_nodes(proto.graph)
    return with_numbered_labels(proto)


def _opsets(proto: Any, name: str) -> dict[str, int]:
    """Versions by canonical domain; of the default domain always, and at least the oldest supported."""
    opsets: dict[str, int] = {}
    for entry in proto.opset_import:
        opsets.setdefault(canonical_domain(entry.domain), int(entry.version))
    if not opsets and 0 < proto.ir_version < OPSETS_NAMED_IN:
        opsets[DEFAULT_DOMAIN] = OLDEST_OPSET
    if not opsets:
        raise ModelError(
            "the model does not say which opset it uses", file=name, expected="an opset_import of the default domain"
        )
    version = opsets.setdefault(DEFAULT_DOMAIN, NEWEST_OPSET)  # left out: operators of other domains only
    if version < OLDEST_OPSET:
        raise ModelError("there is no such opset", file=name, expected=f"{OLDEST_OPSET} or newer", found=version)
    return opsets
