"""Convolution and pooling in the plain layout; pooling in the blocked layout too, which only adds an axis of lanes."""

from __future__ import annotations

from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.table import generates
from glowstone.lir import Convolution, Pool, PoolWithIndices
from glowstone.ops import AveragePool, Conv, MaxPool, MaxPoolWithIndices, Pooling, SumPool


@generates(Conv)
def generate_conv(generator: Generator, application: Application) -> None:
    operator = application.operator
    assert isinstance(operator, Conv)
    x, w = application.operand(0), application.operand(1)
    spatial = x.rank - 2
    pads = operator.window(w.shape[2:]).resolved_pads(x.shape[2:])[:spatial]
    operation = Convolution(operator.strides, operator.dilations, operator.groups, application.epilogue)
    out = generator.result(application.result)
    extras = generator.extra_views(application)
    generator.emit(operation, out, generator.view(x), generator.view(w), *extras, integers=pads)


_MODES: dict[type[Pooling], str] = {MaxPool: "max", AveragePool: "average", SumPool: "sum"}


@generates(MaxPool, AveragePool, SumPool)
def generate_pool(generator: Generator, application: Application) -> None:
    operator = application.operator
    assert isinstance(operator, Pooling)
    x = application.operand(0)
    pads = operator.window.resolved_pads(x.shape[2:])
    include = isinstance(operator, AveragePool) and operator.count_include_pad
    operation = Pool(
        _MODES[type(operator)],
        operator.kernel,
        operator.strides,
        operator.dilations,
        include,
        x.type.channel_block is not None,
    )
    integers = pads if include else pads[: len(operator.kernel)]
    generator.emit(operation, generator.result(application.result), generator.view(x), integers=integers)


@generates(MaxPoolWithIndices)
def generate_pool_with_indices(generator: Generator, application: Application) -> None:
    operator = application.operator
    assert isinstance(operator, MaxPoolWithIndices)
    x = application.operand(0)
    pads = operator.window.resolved_pads(x.shape[2:])[: len(operator.kernel)]
    operation = PoolWithIndices(operator.kernel, operator.strides, operator.dilations, operator.column_major)
    y, indices = (generator.result(value) for value in application.node.results)
    generator.emit(operation, y, indices, generator.view(x), integers=pads)
