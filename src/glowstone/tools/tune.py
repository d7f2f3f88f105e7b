"""Measures which of the equivalent kernels are fastest for a model on this machine.

In: a model and reference shapes. Out: a `Tuning` with the cases where another choice beats that of the rules. Every
alternative for every distinct convolution and product is compiled by itself and timed with cold weights, as they are in
a model: a sweep over memory empties the caches before each run.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from glowstone.api.compilation import Request, compile_request
from glowstone.api.model import Model
from glowstone.backends.cpu.passes.assign_layouts import allows_winograd, convolution_case
from glowstone.backends.cpu.passes.pack_weights import product_case
from glowstone.backends.cpu.tuning import (
    DIRECT,
    MOST_BLOCKS,
    PANELS,
    WINOGRAD,
    Case,
    Choice,
    ConvolutionChoice,
    ProductChoice,
    Tuning,
)
from glowstone.exporter import export_graph
from glowstone.graph import Builder, Graph, Node, Tensor
from glowstone.graph.operator import Operator
from glowstone.ops import Constant, Conv, MatMul
from glowstone.ops.constant import constant_array
from glowstone.support.model_source import ModelSource
from glowstone.tools.graph_stages import graph_at_stage
from glowstone.tools.stepping import run_stepwise
from glowstone.types import ElementType, GivenShapes, Shape, TensorType

Array = np.ndarray[Any, np.dtype[Any]]
Progress = Callable[[int, int, str], None]
"""Receives how many of how many cases are done, and what the last one gave."""

ROUNDS: Final = 9
SWEEP_BYTES: Final = 64 << 20
"""More than the caches near a core hold."""
LEAST_GAIN: Final = 1.03
"""An alternative must beat the rules by so much: less is noise."""
IMAGE_RANK: Final = 4


@dataclass(frozen=True)
class TunedCase:
    """One case: how often the model has it, and nanoseconds by the rules and by the best alternative."""

    case: Case
    count: int
    by_rule: float
    best: float
    choice: Choice | None
    """The alternative, or None where the rules' choice stays."""

    @property
    def saved(self) -> float:
        """Nanoseconds of a run of the model."""
        return self.count * (self.by_rule - self.best)


@dataclass(frozen=True)
class _Work:
    """The operator and shapes behind a case, and what may be chosen."""

    operator: Operator
    x: Shape
    w: Shape
    alternatives: tuple[Choice, ...]


def tune_model(
    model: ModelSource, shapes: GivenShapes, progress: Progress = lambda *_: None
) -> tuple[Tuning, list[TunedCase]]:
    """Measure every case of the model. On one thread: choices do not depend on the number of threads.

    Args:
        model: a path, the bytes of a model, or an onnx.ModelProto.
        shapes: reference shapes, as for `compile`.
        progress: told after every case.

    Raises:
        GlowstoneError: the model is not valid, or cannot have these shapes.
    """
    found = _cases(graph_at_stage(model, shapes, "lowered"))
    sweep = np.zeros(SWEEP_BYTES, np.uint8)
    results = []
    for number, (case, (work, count)) in enumerate(found.items(), 1):
        result = _tuned(case, work, count, sweep)
        results.append(result)
        progress(number, len(found), f"{case}: {result.by_rule / result.best:.2f} times as fast")
    return Tuning({result.case: result.choice for result in results if result.choice is not None}), results


def _cases(graph: Graph) -> dict[Case, tuple[_Work, int]]:
    """Distinct convolutions and products with constant weights, with their numbers."""
    found: dict[Case, tuple[_Work, int]] = {}
    for node in graph.nodes:
        entry = _case_of(node)
        if entry is not None:
            case, work = entry
            found[case] = (work, found[case][1] + 1 if case in found else 1)
    return found


def _case_of(node: Node) -> tuple[Case, _Work] | None:
    operator = node.operator
    if not isinstance(operator, Conv | MatMul) or node.result.element is not ElementType.F32:
        return None
    x, weights = node.operands[0], constant_array(node.operands[1])
    if x is None or weights is None:
        return None
    if isinstance(operator, MatMul):
        if weights.ndim != 2 or x.rank < 2:
            return None
        choices: tuple[Choice, ...] = tuple(ProductChoice(panel) for panel in PANELS)
        return product_case(x.shape, (weights.shape[0], weights.shape[1])), _Work(
            operator, x.shape, weights.shape, choices
        )
    is_depthwise = operator.groups > 1 and weights.shape[1] == 1
    if weights.ndim != IMAGE_RANK or is_depthwise:
        return None
    choices = tuple(ConvolutionChoice(DIRECT, blocks) for blocks in range(1, MOST_BLOCKS + 1))
    if allows_winograd(operator, weights.shape):
        choices = (*choices, *map(ConvolutionChoice, WINOGRAD))
    return convolution_case(operator, weights.shape, node.result.shape), _Work(
        operator, x.shape, weights.shape, choices
    )


def _tuned(case: Case, work: _Work, count: int, sweep: Array) -> TunedCase:
    by_rule = _time(work, Tuning(), sweep)
    times = {choice: _time(work, Tuning({case: choice}), sweep) for choice in work.alternatives}
    choice = min(times, key=lambda one: times[one])
    if times[choice] * LEAST_GAIN >= by_rule:
        return TunedCase(case, count, by_rule, by_rule, None)
    return TunedCase(case, count, by_rule, times[choice], choice)


def _time(work: _Work, tuning: Tuning, sweep: Array) -> float:
    """Median nanoseconds of the operator's instructions that use its weights."""
    generator = np.random.default_rng(0)
    graph = Graph("case")
    builder = Builder(graph)
    x = graph.add_input("x", TensorType(ElementType.F32, work.x))
    weights = generator.standard_normal(work.w, dtype=np.float32)
    w = builder.emit(Constant(Tensor(weights, ElementType.F32)))
    graph.add_output("y", builder.emit(work.operator, x, w))
    model = compile_request(Request(export_graph(graph), threads=1, cache=False, tuning=tuning))
    return _cold_time(model, {"x": generator.standard_normal(work.x, dtype=np.float32)}, sweep)


def _cold_time(model: Model, inputs: Mapping[str, Array], sweep: Array) -> float:
    times: dict[int, list[int]] = {}

    def step(number: int, run: Callable[[], None]) -> None:
        np.add(sweep, 1, out=sweep)
        begin = time.perf_counter_ns()
        run()
        times.setdefault(number, []).append(time.perf_counter_ns() - begin)

    for _ in range(ROUNDS):
        plan, _ = run_stepwise(model, inputs, step)
    heavy = [
        number
        for number, instruction in enumerate(plan.instructions)
        if instruction.operation.multiply_adds(instruction.operands)
    ]
    return sum(statistics.median(times[number]) for number in heavy or times)


def total_saved(results: Iterable[TunedCase]) -> float:
    """Nanoseconds of a run of the model that the choices save."""
    return sum(result.saved for result in results)
