"""Operator definitions by family."""

from glowstone.ops.constant import Constant, ConstantOfShape
from glowstone.ops.convolution import BatchNormalization, Conv
from glowstone.ops.elementwise import (
    Abs,
    Add,
    And,
    Binary,
    Cast,
    Ceil,
    Clip,
    Div,
    Elementwise,
    Equal,
    Erf,
    Exp,
    Floor,
    Greater,
    GreaterOrEqual,
    HardSigmoid,
    Identity,
    LeakyRelu,
    Less,
    LessOrEqual,
    Log,
    Map,
    Maximum,
    Minimum,
    Mul,
    Neg,
    Not,
    Or,
    Pow,
    Reciprocal,
    Relu,
    Round,
    Sigmoid,
    Sqrt,
    Sub,
    Tanh,
    Unary,
    Where,
    Xor,
)
from glowstone.ops.fused import Fused
from glowstone.ops.indexing import Gather
from glowstone.ops.linear import Gemm, MatMul
from glowstone.ops.normalization import LayerNormalization, Softmax
from glowstone.ops.pooling import AveragePool, GlobalAveragePool, MaxPool, Pooling
from glowstone.ops.reduction import ReduceMax, ReduceMean, ReduceMin, ReduceProd, ReduceSum, Reduction
from glowstone.ops.shape import (
    Concat,
    Expand,
    Flatten,
    Reshape,
    ReshapeLike,
    Shape,
    Slice,
    Squeeze,
    Transpose,
    Unsqueeze,
)

__all__ = [name for name in dir() if name[0].isupper()]
