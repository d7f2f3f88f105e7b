"""FlexAttention of ai.onnx.preview: attention whose scores and probabilities graphs of the file may change."""

from __future__ import annotations

import numpy as np

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.importer.rules.loop import input_names
from glowstone.importer.scope import Scope
from glowstone.importer.tensors import element_type
from glowstone.ops import Attention, Cast, MatMul, Mul, Pow, Softmax, Transpose
from glowstone.ops.attention import DEFAULT_SCALE_EXPONENT, default_scale
from glowstone.ops.constant import scalar
from glowstone.ops.shape import unsqueeze
from glowstone.ops.shape_arithmetic import extents, reshaped
from glowstone.ops.widening import converted
from glowstone.types import ElementType

RANK = 4
MODIFIERS = ("score_mod", "prob_mod")


@imports("FlexAttention", domain="ai.onnx.preview")
def import_flex_attention(node: OnnxNode) -> Value:
    """q [B, H, L, E], k [B, G, S, E], v [B, G, S, F]; every group of H / G heads of q shares one of k and v."""
    q, k, v = (node.operand(index) for index in range(3))
    if not q.rank == k.rank == v.rank == RANK:
        raise ShapeError("heads do not stand apart", expected="rank 4", found=f"{q.type}, {k.type}, {v.type}")
    number = node.optional_integer("softmax_precision")
    default = ElementType.F64 if q.element is ElementType.F64 else ElementType.F32
    precision = default if number is None else element_type(number, "attribute softmax_precision")
    scale = node.number("scale", 0.0) if "scale" in node.attributes else None
    if not any(name in node.attributes for name in MODIFIERS):
        return node.builder.emit_node(Attention(scale=scale, precision=precision), q, k, v).results[0]
    return _modified(node, q, k, v, scale, precision)


def _modified(node: OnnxNode, q: Value, k: Value, v: Value, scale: float | None, precision: ElementType) -> Value:
    """Queries, keys and values as [B, G, H / G, ...]; scores and probabilities as [B, H, L, S] for the modifiers."""
    builder, emit = node.builder, node.emit
    groups = k.shape[1]
    if not groups or q.shape[1] % groups or v.shape[1] != groups:
        raise ShapeError(
            "heads do not come in groups", expected=f"a multiple of {groups}", found=[q.shape[1], v.shape[1]]
        )
    root = _root_of_scale(node, q, scale)
    apart = (groups, q.shape[1] // groups)
    batch = extents(builder, q, 0, 1)
    queries = reshaped(builder, emit(Mul(), q, root), batch, apart, extents(builder, q, 2))
    keys = emit(Transpose((0, 1, 3, 2)), emit(Mul(), k, root))
    products = emit(MatMul(), queries, unsqueeze(builder, keys, (2,)))
    together = (q.shape[1],)
    scores = reshaped(builder, products, batch, together, extents(builder, products, 3))
    scores = _changed(node, MODIFIERS[0], converted(builder, scores, precision))
    chances = _changed(node, MODIFIERS[1], emit(Softmax(-1), scores))
    chances = reshaped(builder, chances, batch, apart, extents(builder, chances, 2))
    sums = emit(MatMul(), chances, unsqueeze(builder, converted(builder, v, precision), (2,)))
    y = reshaped(builder, sums, batch, together, extents(builder, sums, 3))
    return converted(builder, y, v.element)


def _root_of_scale(node: OnnxNode, q: Value, scale: float | None) -> Value:
    """What queries and keys are multiplied with; the host computes it where the number of features may change."""
    if scale is not None or not q.dynamic:
        factor = default_scale(q.shape[-1]) if scale is None else scale
        with np.errstate(invalid="ignore"):  # of a negative scale
            return scalar(node.builder, float(np.sqrt(np.float32(factor))), q.element)
    features = node.emit(Cast(ElementType.F64), extents(node.builder, q, 3))
    root = node.emit(Pow(), features, scalar(node.builder, DEFAULT_SCALE_EXPONENT / 2, ElementType.F64))
    return node.emit(Cast(q.element), root)


def _changed(node: OnnxNode, name: str, x: Value) -> Value:
    """x as the graph of an attribute changes it; x itself where there is none."""
    if name not in node.attributes:
        return x
    body = node.body(name)
    (given,) = input_names(body, 1)

    def define(scope: Scope) -> None:
        scope.define(given, x)

    results = body.inline(define)
    if len(results) != 1 or results[0].type != x.type:
        raise ModelError(
            f"the graph {name} does not keep its input's type",
            expected=str(x.type),
            found=", ".join(str(result.type) for result in results),
        )
    return results[0]
