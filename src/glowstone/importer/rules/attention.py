"""Attention, LinearAttention, RotaryEmbedding, CausalConvWithState."""

from __future__ import annotations

from glowstone.errors import ModelError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.importer.tensors import element_type
from glowstone.ops import Attention, CausalConvWithState, LinearAttention, RotaryEmbedding
from glowstone.ops.attention import NORMALIZED, UNBOUNDED


@imports("Attention", since=23)
def import_attention(node: OnnxNode) -> tuple[Value, ...]:
    mode = node.integer("qk_matmul_output_mode", 0)
    if not 0 <= mode <= NORMALIZED:
        raise ModelError("attribute qk_matmul_output_mode is unknown", expected="0 to 3", found=mode)
    precision = node.integer("softmax_precision", 0)
    operator = Attention(
        node.flag("is_causal"),
        node.optional_integer("q_num_heads"),
        node.optional_integer("kv_num_heads"),
        node.number("scale", 0.0) if "scale" in node.attributes else None,
        node.number("softcap", 0.0),
        mode,
        element_type(precision, "attribute softmax_precision") if precision else None,
        node.integer("left_window_size", UNBOUNDED),
        node.integer("right_window_size", UNBOUNDED),
    )
    return node.builder.emit_node(operator, *node.operands).results


@imports("RotaryEmbedding", since=23)
def import_rotary_embedding(node: OnnxNode) -> Value:
    operator = RotaryEmbedding(
        node.flag("interleaved"), node.integer("num_heads", 0), node.integer("rotary_embedding_dim", 0)
    )
    return node.emit(operator, *node.operands)


@imports("LinearAttention", since=27)
def import_linear_attention(node: OnnxNode) -> tuple[Value, ...]:
    operator = LinearAttention(
        node.integer("q_num_heads", 0),
        node.integer("kv_num_heads", 0),
        node.number("scale", 0.0),
        node.text("update_rule", "gated_delta"),
    )
    return node.builder.emit_node(operator, *node.operands).results


@imports("CausalConvWithState", since=27)
def import_causal_convolution(node: OnnxNode) -> tuple[Value, ...]:
    operator = CausalConvWithState(node.text("activation", "none"))
    return node.builder.emit_node(operator, *node.operands).results
