"""All operations of the low-level representation, by family."""

from glowstone.lir.operations.control import Branch, Control, Join, LoopBegin, LoopEnd, Otherwise
from glowstone.lir.operations.convolution import Convolution
from glowstone.lir.operations.coupling import PairwiseCoupling
from glowstone.lir.operations.cumulative import (
    Cumulative,
)
from glowstone.lir.operations.data import Copy, Fill
from glowstone.lir.operations.determinant import Determinant
from glowstone.lir.operations.elementwise import Elementwise
from glowstone.lir.operations.indexed_pooling import PoolWithIndices
from glowstone.lir.operations.indexing import Gather
from glowstone.lir.operations.linear_recurrence import LinearRecurrence
from glowstone.lir.operations.lookup import Lookup
from glowstone.lir.operations.low_bit_matmul import LowBitMatMul
from glowstone.lir.operations.matmul import MatMul
from glowstone.lir.operations.pooling import Pool
from glowstone.lir.operations.recurrence import (
    Recurrence,
)
from glowstone.lir.operations.reduction import LayerNorm, Reduce, Softmax
from glowstone.lir.operations.resampling import Resample
from glowstone.lir.operations.scatter import GatherElements, GatherND, ScatterElements, ScatterND
from glowstone.lir.operations.selection import (
    ArgReduce,
    TopK,
)
from glowstone.lir.operations.trees import TreeSums

__all__ = [
    "ArgReduce",
    "Branch",
    "Control",
    "Convolution",
    "Copy",
    "Cumulative",
    "Determinant",
    "Elementwise",
    "Fill",
    "Gather",
    "GatherElements",
    "GatherND",
    "Join",
    "LayerNorm",
    "LinearRecurrence",
    "Lookup",
    "LoopBegin",
    "LoopEnd",
    "LowBitMatMul",
    "MatMul",
    "Otherwise",
    "PairwiseCoupling",
    "Pool",
    "PoolWithIndices",
    "Recurrence",
    "Reduce",
    "Resample",
    "ScatterElements",
    "ScatterND",
    "Softmax",
    "TopK",
    "TreeSums",
]
