"""Every operator by its own declaration: samples against independent references, types, decompositions, errors."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
from collections.abc import Callable, Sequence

import numpy as np
import onnxruntime
import pytest
from helpers.onnx_nodes import onnx_case
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidGraph, NotImplemented, RuntimeException

import glowstone.ops
from glowstone.errors import GlowstoneError, ModelError
from glowstone.graph import (
    OPERATORS,
    Builder,
    ErrorSample,
    Graph,
    Operator,
    Sample,
    Value,
    as_tuple,
    evaluate_graph,
    verify_graph,
)
from glowstone.importer import import_model, open_model
from glowstone.lowering import decompose
from glowstone.ops.constant import constant
from glowstone.ops.element_sets import ALL
from glowstone.types import ElementType, TensorType, is_float_dtype

OWN = {name: kind for name, kind in OPERATORS.items() if kind.__module__.startswith("glowstone.ops.")}
SAMPLES = [
    pytest.param(sample, id=f"{name}-{number}")
    for name, kind in OWN.items()
    for number, sample in enumerate(kind.samples())
]
ONNX_SAMPLES = [entry for entry in SAMPLES if entry.values[0].operator.onnx is not None]


def has_added_types(sample: Sample) -> bool:
    """Whether an operand or a field of the operator has a type that NumPy lacks, which ONNX Runtime's arrays cannot."""
    elements = {ElementType.from_dtype(np.asarray(array).dtype) for array in sample.operands if array is not None}
    elements |= {field for field in sample.operator.attributes().values() if isinstance(field, ElementType)}
    return any(element is ElementType.BF16 or element.is_narrow for element in elements)


RUNTIME_SAMPLES = [entry for entry in ONNX_SAMPLES if not has_added_types(entry.values[0])]
ERROR_SAMPLES = [
    pytest.param(sample, id=f"{name}-{number}")
    for name, kind in OWN.items()
    for number, sample in enumerate(kind.error_samples())
]


def tanh_recurrence(products, matrix, lengths, h, reverse):
    """h' = tanh(products + matrix h), every sequence by itself."""
    y, states = np.zeros_like(products), h.copy()
    for sequence, length in enumerate(lengths.astype(int)):
        for step in range(length)[:: -1 if reverse else 1]:
            states[sequence] = np.tanh(products[step, sequence] + matrix @ states[sequence])
            y[step, sequence] = states[sequence]
    return y, states


def one_step(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    state: np.ndarray,
    decay: np.ndarray | None = None,
    rate: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """One step of one head of linear attention: the state may decay, and the value be corrected."""
    state = state if decay is None else state * np.exp(decay[0, 0, 0])[:, None]
    value = v[0, 0, 0] if rate is None else rate.item() * (v[0, 0, 0] - k[0, 0, 0] @ state[0, 0])
    last = state + k[0, 0, 0][:, None] * value
    return (q[0, 0, 0] @ last[0, 0]).reshape(1, 1, 1, -1), last


def walked(x, nodes, roots, starts, targets, weights, dtype=np.float32, count=2, join=sum):
    """Rows through trees one at a time; the words of a node are its threshold, feature, and two positions."""
    words = nodes.astype(np.int32)
    threshold_words = np.dtype(dtype).itemsize // 4
    result = np.zeros((len(x), count))
    for number, row in enumerate(x):
        given = [[] for _ in range(count)]
        for position in roots.astype(int):
            while words[position + threshold_words + 1] != position:
                threshold = words[position : position + threshold_words].view(dtype)[0]
                feature, low, high = words[position + threshold_words :][:3]
                nan_goes_low, value = feature < 0, row[feature if feature >= 0 else ~feature]
                position = low if value <= threshold or (np.isnan(value) and nan_goes_low) else high
            for entry in range(int(starts[words[position]]), int(starts[words[position] + 1])):
                given[int(targets[entry])].append(weights[entry])
        result[number] = [join(numbers) if numbers else 0 for numbers in given]
    return result


def found(x, keys, values):
    """The value of the first equal key, by looking at all."""
    equal = (x[..., None] == keys) | (np.isnan(x)[..., None] & np.isnan(keys))
    return values[np.where(equal.any(-1), equal.argmax(-1), len(keys))]


def balanced(pairs):
    """What couplings of pairs approach: the probabilities that a linear system gives."""
    classes = int((1 + np.sqrt(1 + 8 * pairs.shape[1])) / 2)
    ratios = np.zeros((len(pairs), classes, classes))
    for place, (i, j) in enumerate(itertools.combinations(range(classes), 2)):
        ratios[:, i, j], ratios[:, j, i] = pairs[:, place], 1 - pairs[:, place]
    matrix = -ratios * ratios.transpose(0, 2, 1)
    for i in range(classes):
        matrix[:, i, i] = (ratios[:, :, i] ** 2).sum(axis=1)
    system = np.ones((len(pairs), classes + 1, classes + 1))
    system[:, :classes, :classes] = matrix
    system[:, classes, classes] = 0
    right = np.zeros((classes + 1, 1))
    right[classes] = 1
    return (np.linalg.pinv(system) @ right)[:, :classes, 0]


def counted(found: np.ndarray, size: int) -> np.ndarray:
    """The elements found, then zeros."""
    return np.concatenate([np.ravel(found), np.zeros(size - np.size(found))])


def non_zero(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates, axis by axis, and how many."""
    found = np.nonzero(np.atleast_1d(x))
    return counted(found if x.ndim else np.zeros(0), x.ndim * x.size), np.array([len(found[0])])


def compress(axis: int | None) -> Callable[..., tuple[np.ndarray, ...]]:
    """The slices where the condition holds."""
    return lambda x, condition: (counted(np.compress(condition, x, axis), x.size), np.array([condition.sum()]))


def unique(axis: int | None, ordered: bool) -> Callable[..., tuple[np.ndarray, ...]]:
    """By comparing slices as lists of numbers; NaN as a number above infinity."""

    def find(x: np.ndarray) -> tuple[np.ndarray, ...]:
        length = x.size if axis is None else x.shape[axis]
        slices = x.reshape(-1, 1) if axis is None else np.moveaxis(x, axis, 0)
        pairs = [[(number != number, 0 if number != number else number) for number in part.ravel()] for part in slices]
        distinct = [pair for place, pair in enumerate(pairs) if pair not in pairs[:place]]
        distinct = sorted(distinct) if ordered else distinct
        first = np.array([pairs.index(pair) for pair in distinct], int)
        y = np.take(x.ravel() if axis is None else x, first, axis or 0)
        occurrences = [pairs.count(pair) for pair in distinct]
        inverse = np.array([distinct.index(pair) for pair in pairs])
        return counted(y, x.size), counted(first, length), inverse, counted(occurrences, length), np.array([len(first)])

    return find


def suppress(by_center: bool, room: int | None) -> Callable[..., tuple[np.ndarray, ...]]:
    """As the onnx package selects."""

    def select(boxes: np.ndarray, scores: np.ndarray, *limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        names = ["boxes", "scores", "most", "overlap", "threshold"][: 2 + len(limits)]
        node = helper.make_node("NonMaxSuppression", names, ["y"], center_point_box=by_center)
        arrays = [np.zeros(1) if np.isnan(limit).any() else limit.reshape(1) for limit in limits]
        while len(arrays) < 2:
            arrays.append(np.zeros(1))
            node.input.append(("most", "overlap")[len(arrays) - 1])
        arrays[0] = np.maximum(arrays[0], 0).astype(np.int64)
        feeds = dict(zip(node.input, (boxes, scores, *arrays), strict=True))
        narrow = {name: array if array.dtype == int else array.astype(np.float32) for name, array in feeds.items()}
        found = ReferenceEvaluator(node).run(None, narrow)[0]
        rows = scores.shape[0] * scores.shape[1] * (boxes.shape[1] if room is None else min(room, boxes.shape[1]))
        return counted(found, 3 * rows), np.array([len(found)])

    return select


def low_bit_product(a: np.ndarray, weights: np.ndarray, scales: np.ndarray, zeros: np.ndarray, bits: int, block: int):
    """One number of a byte after the other."""
    result = np.zeros((len(a), len(weights)))
    for column, place in np.ndindex(len(weights), a.shape[1]):
        group, index = divmod(place, block)
        byte, part = divmod(index, 8 // bits)
        number = int(weights[column, group, byte]) // 2 ** (bits * part) % 2**bits
        result[:, column] += a[:, place] * (number - zeros[column, group]) * scales[column, group]
    return result


WITHOUT_ONNX: dict[str, tuple[Callable[..., np.ndarray | tuple[np.ndarray, ...]], ...]] = {
    "Map": tuple(
        (lambda x, y: (x + y) > 0) if element == "bool" else lambda x, y: np.maximum(x + 2 * y, x)
        for element in sorted(map(str, ALL))
    ),
    "Fused": (
        *(lambda a, b, offset: a @ b + offset,) * 11,
        lambda a, b, condition: np.where(condition, a @ b, 0),
        lambda a, b, offset: np.maximum(a @ b + offset, 0),
        lambda a, b, limit: a @ b < limit,
        lambda x, w, bias, scale, residual: same_convolution(x, w, bias) * scale + residual,
    ),
    "Recurrence": (
        lambda *operands: tanh_recurrence(*operands, reverse=False),
        lambda *operands: tanh_recurrence(*operands, reverse=True),
        lambda *operands: tanh_recurrence(*operands, reverse=False),
    ),
    "If": (
        lambda condition, x, step: 2 * x,
        lambda condition, x, step: step - x,
        lambda condition, x, step: 2 * x,
    ),
    "Loop": (
        lambda count, condition, start, x: (x.sum(axis=0), x.cumsum(axis=0), np.array(3)),
        lambda count, condition, start, x: (x[:2].sum(axis=0), np.r_[x[:2].cumsum(axis=0), 0 * x[:1]], np.array(2)),
        lambda count, condition, start, x: (start, 0 * x, np.array(0)),
        lambda count, condition, start, x: (start, x, np.array(0)),
        lambda count, condition, x, limit: (x / 32, np.array(5)),
        lambda count, condition, x, limit: (x / 32, np.array(5)),
        lambda count, condition, x, limit: (x, np.array(0)),
    ),
    "Iota": (lambda shape: np.arange(5), lambda shape: np.arange(6).reshape(2, 3)),
    "LinearRecurrence": (one_step, one_step),
    "Lookup": (found,) * 9,
    "PairwiseCoupling": (balanced,) * 5,
    "TreeScores": (
        walked,
        functools.partial(walked, join=min),
        functools.partial(walked, join=max),
        functools.partial(walked, count=1),
        walked,
        functools.partial(walked, dtype=np.float64),
        functools.partial(walked, dtype=np.float64, count=1),
        walked,
    ),
    "NonZero": (non_zero,) * len(OPERATORS["NonZero"].samples()),
    "Compress": tuple(compress(sample.operator.axis) for sample in OPERATORS["Compress"].samples()),
    "Unique": tuple(unique(sample.operator.axis, sample.operator.ordered) for sample in OPERATORS["Unique"].samples()),
    "NonMaxSuppression": tuple(
        suppress(sample.operator.by_center, sample.operator.room) for sample in OPERATORS["NonMaxSuppression"].samples()
    ),
    "LowBitMatMul": tuple(
        functools.partial(low_bit_product, bits=bits, block=block)
        for bits, block in ((4, 32), (4, 16), (2, 16), (8, 32), (4, 64), (2, 64), (8, 16))
    ),
    "UniformNumbers": (
        *(lambda shape: np.random.RandomState(3).uniform(0, 1, (3, 4)),) * 4,
        lambda shape: np.random.RandomState(7).uniform(-2, 5, (50, 40)),
    ),
    "NormalNumbers": (
        *(lambda shape: np.random.RandomState(3).normal(0, 1, (3, 4)),) * 4,
        lambda shape: np.random.RandomState(7).normal(1, 0.25, (50, 40)),
    ),
    "SumPool": (lambda x: same_windows(x).sum(axis=(-2, -1)),),
}
"""The samples of operators that ONNX does not have, in NumPy."""
CANNOT_FAIL = {"Constant", "NonZero", "Shape"}
"""Operators that have a type rule of their own which accepts every operand."""
REFERENCE_EVALUATOR_IS_WRONG = {
    *(f"LRN-{number}" for number in range(6)),
    *(f"MeanVarianceNormalization-{number}" for number in range(3, 6)),
    "LpNormalization-1",
    "LpNormalization-3",
    "Softsign-0",
    "TfIdfVectorizer-4",
    "MaxPool-4",
    "MaxPool-5",
    "MaxPoolWithIndices-4",
    "Pad-2",
    "GatherElements-1",
    "GatherElements-3",
    "MaxRoiPool-0",
    "MaxRoiPool-1",
    "ConvTranspose-6",
    "ConvTranspose-10",
    "GlobalMaxPool-1",
    "GlobalMaxPool-2",
    *(f"GlobalLpPool-{number}" for number in range(5)),
    *(f"{kind}-{number}" for kind in ("RNN", "GRU", "LSTM") for number in range(1, 11)),
    *(f"QLinearMatMul-{number}" for number in range(2, 6)),
}
"""What ONNX Runtime does right: onnx.reference counts one window too few where SAME_LOWER pads an odd extent, has no
largest element of windows of integers, no groups and no smaller output_shape of a transposed convolution, no global
maximum but over planes, no global p-norm, no Softsign of a scalar, no MaxRoiPool, takes no negative pads, and no
indices of fewer elements than x has off the axis; its LRN fills as many channels as there are images, its norm of p 1
takes no magnitudes, its MeanVarianceNormalization no element type but float32, its QLinearMatMul no floats of 8 bits
(`test_narrow_elements.py` has them), its recurrent networks know one direction, forward, and neither lengths nor a
clip, and its TfIdfVectorizer has no IDF without weights."""


RUNTIME_LACKS = (NotImplemented, InvalidGraph, Fail, RuntimeException)
RUNTIME_OPSET = 23
"""The newest opset that ONNX Runtime knows all operators of."""


def runtime_has_all_of(sample: Sample) -> bool:
    """Whether all arrays have the element type that ONNX Runtime has every operator for."""
    arrays = (*(array for array in sample.operands if array is not None), *reference(sample))
    return all(np.asarray(array).dtype == np.float32 for array in arrays)


def same_convolution(x: np.ndarray, w: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """A 3 x 3 convolution of stride 1 that keeps the extents."""
    return np.einsum("nchwij,ocij->nohw", same_windows(x), w) + bias.reshape(-1, 1, 1)


def same_windows(x: np.ndarray) -> np.ndarray:
    """The 3 x 3 windows of stride 1 around every position, 0 outside x, on two last axes."""
    return np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3))


def assert_close(found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    """Shape, element type, and values: floats within `tolerance` of the largest value, all else exactly."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    if ElementType.from_dtype(expected.dtype).is_narrow:
        found, expected, tolerance = found.astype(np.float64), expected.astype(np.float64), 0.0
    if not is_float_dtype(expected.dtype):
        np.testing.assert_array_equal(found, expected)
        return
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * largest)


def assert_all_close(found: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: float) -> None:
    """`assert_close` of every result."""
    for mine, theirs in zip(found, expected, strict=True):
        assert_close(np.asarray(mine), np.asarray(theirs), tolerance)


def one_node(sample: Sample | ErrorSample) -> tuple[Graph, dict[str, np.ndarray]]:
    """A graph of the operator alone, with the arrays to feed. Operands that decide shapes are constants."""
    graph = Graph()
    builder = Builder(graph)
    feeds: dict[str, np.ndarray] = {}
    operands: list[Value | None] = []
    rules = sample.operator.operands
    for index, operand in enumerate(sample.operands):
        if isinstance(operand, TensorType):
            operands.append(graph.add_input(f"x{index}", operand))
        elif operand is None:
            operands.append(None)
        elif rules and rules[min(index, len(rules) - 1)].host:
            operands.append(constant(builder, np.asarray(operand)))
        else:
            feeds[f"x{index}"] = np.asarray(operand)
            element = ElementType.from_dtype(feeds[f"x{index}"].dtype)
            operands.append(graph.add_input(f"x{index}", TensorType(element, feeds[f"x{index}"].shape)))
    for index, value in enumerate(builder.emit_node(sample.operator, *operands).results):
        graph.add_output(f"y{index}", value)
    return graph, feeds


def reference(sample: Sample) -> tuple[np.ndarray, ...]:
    return tuple(np.asarray(result) for result in as_tuple(sample.operator.reference(*sample.operands)))


@pytest.mark.parametrize("sample", RUNTIME_SAMPLES)
def test_reference_is_what_onnx_runtime_computes(sample):
    case = onnx_case(sample)
    try:
        session = onnxruntime.InferenceSession(case.model.SerializeToString(), providers=["CPUExecutionProvider"])
        expected = session.run(None, case.feeds)
    except RUNTIME_LACKS:  # this element type, or an opset as new as this: the onnx package has all
        assert case.opset > RUNTIME_OPSET or not runtime_has_all_of(sample)
        return
    assert_all_close(reference(sample), expected, sample.tolerance)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("sample", [entry for entry in ONNX_SAMPLES if entry.id not in REFERENCE_EVALUATOR_IS_WRONG])
def test_reference_is_what_the_onnx_package_computes(sample):
    case = onnx_case(sample)
    assert_all_close(reference(sample), ReferenceEvaluator(case.model).run(None, case.feeds), sample.tolerance)


@pytest.mark.parametrize("name", [name for name, kind in OWN.items() if kind.onnx is None])
def test_reference_without_onnx(name):
    samples = OWN[name].samples()
    for sample, formula in zip(samples, WITHOUT_ONNX[name], strict=True):
        wide = [np.asarray(operand, np.float64) for operand in sample.operands]
        for found, expected in zip(reference(sample), as_tuple(formula(*wide)), strict=True):
            assert_close(found, np.asarray(expected).astype(found.dtype), sample.tolerance)


@pytest.mark.parametrize("sample", SAMPLES)
def test_inferred_types_are_those_of_the_results(sample):
    graph, feeds = one_node(sample)
    verify_graph(graph)
    found = evaluate_graph(graph, feeds)
    for value, array in zip(graph.outputs, found.values(), strict=True):
        assert value.type == TensorType(ElementType.from_dtype(array.dtype), array.shape)


@pytest.mark.parametrize("sample", SAMPLES)
def test_decomposition_means_the_same(sample):
    graph, feeds = one_node(sample)
    decompose(graph, lambda node: False)
    verify_graph(graph)
    for node in graph.nodes:
        assert node.operator.decompose(Builder(graph), *node.operands) is None, f"{node} is no primitive"
    for found, expected in zip(evaluate_graph(graph, feeds).values(), reference(sample), strict=True):
        assert_close(found, expected, sample.tolerance)


@pytest.mark.parametrize("sample", ONNX_SAMPLES)
def test_importing_the_onnx_node_means_the_same(sample):
    case = onnx_case(sample)
    graph = import_model(open_model(case.model))
    verify_graph(graph)
    assert all(node.names for node in graph.nodes)
    assert_all_close(list(evaluate_graph(graph, case.feeds).values()), reference(sample), sample.tolerance)


@pytest.mark.parametrize("sample", ERROR_SAMPLES)
def test_errors_say_what_is_wrong(sample):
    with pytest.raises(GlowstoneError) as caught:
        one_node(sample)
    assert sample.message in caught.value.message
    assert caught.value.operator == sample.operator.name
    assert caught.value.found is not None or caught.value.expected is not None


@pytest.mark.parametrize("name", [name for name, kind in OWN.items() if kind.samples()])
def test_wrong_numbers_and_element_types_of_operands_are_refused(name):
    kind = OWN[name]
    sample = kind.samples()[0]
    least = sum(not (operand.optional or operand.variadic) for operand in kind.operands)
    if least:
        with pytest.raises(ModelError, match="wrong number of operands"):
            one_node(dataclasses.replace(sample, operands=()))
    if not kind.operands or not kind.operands[-1].variadic:
        with pytest.raises(ModelError, match="wrong number of operands"):
            one_node(dataclasses.replace(sample, operands=(*sample.operands, *(np.zeros(1),) * 7)))
    for index, rule in enumerate(kind.operands[: len(sample.operands)]):
        refused = set(ElementType) - (rule.elements or set(ElementType))
        for element in sorted(refused, key=str):
            operands = list(sample.operands)
            operands[index] = TensorType(element, np.shape(sample.operands[index]))
            with pytest.raises(ModelError, match=f"does not take this element type for {rule.name}"):
                one_node(ErrorSample(sample.operator, tuple(operands), ""))


@pytest.mark.parametrize("name", OWN)
def test_the_declaration_is_complete(name):
    kind = OWN[name]
    assert kind.__doc__
    assert inspect.cleandoc(kind.__doc__).splitlines()[0].endswith(".")
    assert kind.samples()
    assert getattr(glowstone.ops, name) is kind
    if kind.onnx is not None:
        assert f"ONNX {kind.onnx}" in kind.__doc__
    else:
        assert name in WITHOUT_ONNX
    own_rule = len(kind.operands) > 1 or kind.infer is not glowstone.ops.Elementwise.infer
    if own_rule and name not in CANNOT_FAIL:
        assert kind.error_samples()
    assert all(isinstance(sample.operator, kind) for sample in (*kind.samples(), *kind.error_samples()))


def test_every_public_name_of_the_operators_is_listed():
    defined = {name for name, value in vars(glowstone.ops).items() if inspect.isclass(value)}
    assert set(glowstone.ops.__all__) == defined
    assert set(OWN) <= defined
    assert all(issubclass(getattr(glowstone.ops, name), Operator) for name in defined)


INTEGER_CASES = [
    (glowstone.ops.Add(), 2),
    (glowstone.ops.Sub(), 2),
    (glowstone.ops.Mul(), 2),
    (glowstone.ops.Div(), 2),
    (glowstone.ops.Maximum(), 2),
    (glowstone.ops.Minimum(), 2),
    (glowstone.ops.Equal(), 2),
    (glowstone.ops.Less(), 2),
    (glowstone.ops.GreaterOrEqual(), 2),
    (glowstone.ops.MatMul(), 2),
    (glowstone.ops.Neg(), 1),
    (glowstone.ops.Abs(), 1),
    (glowstone.ops.ReduceSum((1,), True), 1),
    (glowstone.ops.ReduceMax((0,), False), 1),
    (glowstone.ops.ReduceMin(None, True), 1),
    (glowstone.ops.ReduceProd((1,), False), 1),
    (glowstone.ops.Cast(ElementType.F32), 1),
    (glowstone.ops.Cast(ElementType.U8), 1),
]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(("operator", "arity"), INTEGER_CASES, ids=lambda value: getattr(value, "name", ""))
def test_integers_are_what_onnx_runtime_computes(operator, arity, dtype):
    numbers = np.array([[-7, 7, -8], [3, 5, -2], [1, -1, 9]], dtype)
    others = np.array([[2, -2, 3], [-3, 2, -2], [7, 1, -4]], dtype)
    sample = Sample(operator, (numbers, others)[:arity])
    case = onnx_case(sample)
    session = onnxruntime.InferenceSession(case.model.SerializeToString(), providers=["CPUExecutionProvider"])
    assert_close(*reference(sample), np.asarray(session.run(None, case.feeds)[0]), 0)


@pytest.mark.parametrize("kind", [glowstone.ops.Maximum, glowstone.ops.Minimum, glowstone.ops.Pow, glowstone.ops.Less])
def test_special_values_of_pairs(kind):
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.0], np.float32)
    sample = Sample(kind(), (values[:, None], values))
    session = onnxruntime.InferenceSession(
        onnx_case(sample).model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    assert_close(*reference(sample), np.asarray(session.run(None, onnx_case(sample).feeds)[0]), 1e-6)


@pytest.mark.parametrize("name", ["Neg", "Abs", "Sqrt", "Exp", "Log", "Tanh", "Floor", "Ceil", "Round", "Sigmoid"])
def test_special_values(name):
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 88.0], np.float32)
    sample = Sample(OWN[name](), (values,))
    session = onnxruntime.InferenceSession(
        onnx_case(sample).model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (found,), expected = reference(sample), np.asarray(session.run(None, onnx_case(sample).feeds)[0])
    assert_close(found, expected, 1e-6)
    plain = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[plain]), np.signbit(expected[plain]))


@pytest.mark.parametrize(
    "operator",
    [glowstone.ops.Transpose(()), glowstone.ops.ReduceSum(None, True), glowstone.ops.Flatten(0), glowstone.ops.Shape()],
    ids=lambda operator: operator.name,
)
def test_scalars(operator):
    sample = Sample(operator, (np.array(-1.5, np.float32),))
    session = onnxruntime.InferenceSession(
        onnx_case(sample).model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    assert_close(*reference(sample), np.asarray(session.run(None, onnx_case(sample).feeds)[0]), 0)
