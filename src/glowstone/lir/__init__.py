"""The low-level, address-only representation. Knows nothing of graphs and operators."""

from glowstone.lir.buffer import Buffer, BufferKind, View
from glowstone.lir.instruction import Instruction
from glowstone.lir.operation import OPERATIONS, Access, Operation, operation
from glowstone.lir.operations import (
    Convolution,
    Copy,
    Elementwise,
    Fill,
    Gather,
    LayerNorm,
    MatMul,
    Pool,
    Reduce,
    Softmax,
)
from glowstone.lir.program import Alloc, Dealloc, Program, Statement

__all__ = [
    "OPERATIONS",
    "Access",
    "Alloc",
    "Buffer",
    "BufferKind",
    "Convolution",
    "Copy",
    "Dealloc",
    "Elementwise",
    "Fill",
    "Gather",
    "Instruction",
    "LayerNorm",
    "MatMul",
    "Operation",
    "Pool",
    "Program",
    "Reduce",
    "Softmax",
    "Statement",
    "View",
    "operation",
]
