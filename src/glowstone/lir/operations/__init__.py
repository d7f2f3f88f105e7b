"""All operations of the low-level representation, by family."""

from glowstone.lir.operations.convolution import Convolution
from glowstone.lir.operations.data import Copy, Fill
from glowstone.lir.operations.elementwise import Elementwise
from glowstone.lir.operations.indexing import Gather
from glowstone.lir.operations.matmul import MatMul
from glowstone.lir.operations.pooling import Pool
from glowstone.lir.operations.reduction import LayerNorm, Reduce, Softmax

__all__ = [
    "Convolution",
    "Copy",
    "Elementwise",
    "Fill",
    "Gather",
    "LayerNorm",
    "MatMul",
    "Pool",
    "Reduce",
    "Softmax",
]
