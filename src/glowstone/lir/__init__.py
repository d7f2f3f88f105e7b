"""The low-level, address-only representation. Knows nothing of graphs and operators."""

from glowstone.lir.buffer import Buffer, BufferKind, View
from glowstone.lir.instruction import Instruction
from glowstone.lir.operation import OPERATIONS, Access, Operation, operation
from glowstone.lir.operations import (
    ArgReduce,
    Convolution,
    Copy,
    Cumulative,
    Elementwise,
    Fill,
    Gather,
    GatherElements,
    GatherND,
    LayerNorm,
    MatMul,
    Pool,
    PoolWithIndices,
    Reduce,
    ScatterElements,
    ScatterND,
    Softmax,
    TopK,
)
from glowstone.lir.program import Alloc, Dealloc, Program, Statement

__all__ = [
    "OPERATIONS",
    "Access",
    "Alloc",
    "ArgReduce",
    "Buffer",
    "BufferKind",
    "Convolution",
    "Copy",
    "Cumulative",
    "Dealloc",
    "Elementwise",
    "Fill",
    "Gather",
    "GatherElements",
    "GatherND",
    "Instruction",
    "LayerNorm",
    "MatMul",
    "Operation",
    "Pool",
    "PoolWithIndices",
    "Program",
    "Reduce",
    "ScatterElements",
    "ScatterND",
    "Softmax",
    "Statement",
    "TopK",
    "View",
    "operation",
]
