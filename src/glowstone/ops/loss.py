"""Losses of classifiers: x [N, C, spatial...] against class numbers [N, spatial...], with weights [C] per class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glowstone.errors import ExecutionError, ShapeError
from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import scalar
from glowstone.ops.element_samples import element_samples
from glowstone.ops.element_sets import FLOATS, INDICES
from glowstone.ops.elementwise import Div, Equal, Exp, Log, Mul, Neg, Sub, Where
from glowstone.ops.indexing import Gather
from glowstone.ops.reduction import ReduceMax, ReduceMean, ReduceSum
from glowstone.ops.scatter import GatherElements
from glowstone.ops.shape import Squeeze, unsqueeze
from glowstone.ops.widening import computed_element, converted
from glowstone.types import ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]
CLASS_AXIS = 1
REDUCTIONS = ("none", "sum", "mean")


@dataclass(frozen=True, eq=False)
class ClassLoss(Operator):
    """Base: `reduction` is "none", "sum" or "mean" (by weights); elements of class `ignored` count nothing."""

    operands = (Operand("x", FLOATS), Operand("target", INDICES), Operand("weight", FLOATS, optional=True))
    reduction: str = "mean"
    ignored: int | None = None

    def loss_type(self, x: Value, target: Value, weight: Value | None = None) -> TensorType:
        """Checks the operands.

        Raises:
            ShapeError: shapes that do not fit, or an unknown reduction.
        """
        if self.reduction not in REDUCTIONS:
            raise ShapeError("no such reduction", expected=", ".join(REDUCTIONS), found=self.reduction)
        if x.rank < 2 or target.shape != x.shape[:1] + x.shape[2:]:
            raise ShapeError("classes do not fit x", expected=f"x [N, C, ...] of {target.type}", found=str(x.type))
        if weight is not None and weight.shape != x.shape[1:2]:
            raise ShapeError("weights are one per class", expected=list(x.shape[1:2]), found=list(weight.shape))
        return x.type.with_shape(target.shape if self.reduction == "none" else ())

    def reduced_loss(self, builder: Builder, x: Value, target: Value, weight: Value | None) -> Value:
        """The loss of logarithms of probabilities."""
        ignored = None
        if self.ignored is not None:
            ignored = builder.emit(Equal(), target, scalar(builder, self.ignored, target.element))
            target = builder.emit(Where(), ignored, scalar(builder, 0, target.element), target)
        picked = builder.emit(GatherElements(CLASS_AXIS), x, unsqueeze(builder, target, (CLASS_AXIS,)))
        element = computed_element(x.element)
        loss = converted(builder, builder.emit(Neg(), builder.emit(Squeeze((CLASS_AXIS,)), picked)), element)
        weights = None
        if weight is not None:
            weights = converted(builder, builder.emit(Gather(), weight, target), element)
            loss = builder.emit(Mul(), loss, weights)
        if ignored is not None:
            zero, one = scalar(builder, 0.0, element), scalar(builder, 1.0, element)
            loss = builder.emit(Where(), ignored, zero, loss)
            weights = builder.emit(Where(), ignored, zero, one if weights is None else weights)
        return converted(builder, self._reduced(builder, loss, weights), x.element)

    def _reduced(self, builder: Builder, loss: Value, weights: Value | None) -> Value:
        if self.reduction == "none":
            return loss
        if self.reduction == "mean" and weights is None:
            return builder.emit(ReduceMean(keep=False), loss)
        total = builder.emit(ReduceSum(keep=False), loss)
        if self.reduction == "sum" or weights is None:
            return total
        return builder.emit(Div(), total, builder.emit(ReduceSum(keep=False), weights))

    def numpy_loss(self, x: Array, target: Array, weight: Array | None) -> Array:
        """`reduced_loss` in NumPy, in float64."""
        ignored = np.zeros(target.shape, np.bool_) if self.ignored is None else target == self.ignored
        classes = np.where(ignored, 0, target)
        count = x.shape[CLASS_AXIS]
        if ((classes < -count) | (classes >= count)).any():
            raise ExecutionError("a class is out of range", expected=f"below {count}", found=target.tolist())
        picked = np.take_along_axis(x, np.expand_dims(classes, CLASS_AXIS), CLASS_AXIS).squeeze(CLASS_AXIS)
        weights = np.ones(target.shape) if weight is None else weight.astype(np.float64)[classes]
        weights = np.where(ignored, 0.0, weights)
        loss = np.where(ignored, 0.0, -picked * weights)
        if self.reduction == "none":
            return loss
        return np.asarray(loss.sum() if self.reduction == "sum" else loss.sum() / weights.sum())

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(23)
        x = random.standard_normal((3, 5)).astype(np.float32)
        images = random.standard_normal((2, 5, 3, 4)).astype(np.float32)
        weight = random.uniform(0.5, 2, 5).astype(np.float32)
        target, pixels = random.integers(0, 5, 3), random.integers(0, 5, (2, 3, 4))
        masked = np.where(pixels == 1, -7, pixels)
        return [
            *(Sample(cls(reduction), (x, target)) for reduction in REDUCTIONS),
            *(Sample(cls(reduction), (images, pixels, weight)) for reduction in REDUCTIONS),
            *(Sample(cls(reduction, -7), (images, masked)) for reduction in REDUCTIONS),
            Sample(cls("mean", -7), (images, masked, weight)),
            Sample(cls("mean", 2), (images, pixels.astype(np.int32), weight)),
            *element_samples(cls(), FLOATS - {ElementType.F32}, x, fixed=(target,)),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, target = np.ones((2, 3), np.float32), np.zeros(2, np.int64)
        return [
            ErrorSample(cls(), (x, target[:1]), "classes do not fit"),
            ErrorSample(cls(), (x, target, x[0, :2]), "one per class"),
            ErrorSample(cls("median"), (x, target), "no such reduction"),
        ]


@operator
class NegativeLogLikelihoodLoss(ClassLoss):
    """-x at the class, weighted. ONNX NegativeLogLikelihoodLoss-13."""

    onnx = "NegativeLogLikelihoodLoss-13"

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        return (self.loss_type(*operands),)

    def reference(self, x: Array, target: Array, weight: Array | None = None) -> Array:
        return self.numpy_loss(x.astype(np.float64), target, weight).astype(x.dtype)

    def decompose(self, builder: Builder, x: Value, target: Value, weight: Value | None = None) -> Value:
        return self.reduced_loss(builder, x, target, weight)


@operator
class SoftmaxCrossEntropyLoss(ClassLoss):
    """Minus the logarithm of the softmax at the class, weighted; and all those logarithms.

    ONNX SoftmaxCrossEntropyLoss-13.
    """

    onnx = "SoftmaxCrossEntropyLoss-13"
    result_names = ("output", "log_prob")

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        return (self.loss_type(*operands), operands[0].type)

    def reference(self, x: Array, target: Array, weight: Array | None = None) -> tuple[Array, Array]:
        wide = x.astype(np.float64)
        wide = wide - wide.max(axis=CLASS_AXIS, keepdims=True)
        logarithms = wide - np.log(np.exp(wide).sum(axis=CLASS_AXIS, keepdims=True))
        return self.numpy_loss(logarithms, target, weight).astype(x.dtype), logarithms.astype(x.dtype)

    def decompose(self, builder: Builder, x: Value, target: Value, weight: Value | None = None) -> tuple[Value, Value]:
        element: ElementType = computed_element(x.element)
        wide = converted(builder, x, element)
        shifted = builder.emit(Sub(), wide, builder.emit(ReduceMax((CLASS_AXIS,)), wide))
        total = builder.emit(ReduceSum((CLASS_AXIS,)), builder.emit(Exp(), shifted))
        logarithms = builder.emit(Sub(), shifted, builder.emit(Log(), total))
        loss = self.reduced_loss(builder, logarithms, target, weight)
        return converted(builder, loss, x.element), converted(builder, logarithms, x.element)
