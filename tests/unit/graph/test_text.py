"""The text form of graphs: what is printed comes back as the same graph, and bad text is refused with its place."""

from __future__ import annotations

import numpy as np
import pytest

from glowstone import ops, scalar
from glowstone.graph import (
    OPERATORS,
    Builder,
    Graph,
    Tensor,
    evaluate_graph,
    named_tensors,
    parse_graph,
    print_graph,
    verify_graph,
)
from glowstone.ops.constant import constant
from glowstone.text import ParseError
from glowstone.types import ElementType, TensorType

SAMPLES = [
    pytest.param(sample, id=f"{name}-{number}")
    for name, kind in OPERATORS.items()
    for number, sample in enumerate(kind.samples())
]


def round_trip(graph: Graph) -> Graph:
    text = print_graph(graph)
    parsed = parse_graph(text, named_tensors(graph))
    assert print_graph(parsed) == text
    verify_graph(parsed)
    return parsed


def constant_graph(array: np.ndarray, element: ElementType | None = None) -> Graph:
    graph = Graph()
    graph.add_output("y", constant(Builder(graph), array, element))
    return graph


def only_tensor(graph: Graph) -> Tensor:
    (node,) = graph.nodes
    assert isinstance(node.operator, ops.Constant)
    return node.operator.tensor


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_operator_comes_back(sample):
    graph = Graph("one node")
    builder = Builder(graph)
    operands = [None if array is None else constant(builder, array) for array in sample.operands]
    builder.names = ("a name", 'with "quotes"\n')
    node = builder.emit_node(sample.operator, *operands)
    for index, result in enumerate(node.results):
        graph.add_output(f"y{index}", result)
    parsed = round_trip(graph)
    again = parsed.outputs[0].node
    assert again is not None
    if not sample.operator.bodies:  # a body is equal to itself alone
        assert again.operator == sample.operator
    assert repr(again.operator) == repr(sample.operator)  # 0, 0.0, -0.0 and False are equal, not the same
    assert again.names == node.names
    expected, found = evaluate_graph(graph, {}), evaluate_graph(parsed, {})
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()  # NaN of bf16 is equal to nothing, not even for NumPy's tests


def test_nested_operator_and_expression():
    f32 = ElementType.F32
    body = scalar.apply(
        "max", scalar.Input(f32, 0), scalar.apply("mul", scalar.Input(f32, 1), scalar.Literal(f32, -0.0))
    )
    fused = ops.Fused(ops.Conv((2, 2), groups=3), 2, body)
    graph = Graph()
    x = graph.add_input("x", TensorType(f32, (1, 6, 5, 5)))
    builder = Builder(graph)
    w, bias = constant(builder, np.ones((3, 2, 1, 1), np.float32)), constant(builder, np.ones((3, 1, 1), np.float32))
    graph.add_output("y", builder.emit(fused, x, w, bias))
    assert (
        "%2 = Fused{anchor=Conv{strides=(2, 2), groups=3}, epilogue=max(x0:f32, mul(x1:f32, -0.0:f32))}(%x, %0, %1)"
        " : f32[1,3,3,3]\n"
    ) in print_graph(graph)
    assert round_trip(graph).outputs[0].operator == fused


@pytest.mark.parametrize(
    ("value", "element", "text"),
    [
        (0.0, ElementType.F32, ""),
        (-0.0, ElementType.F32, "{value=-0.0}"),
        (np.nan, ElementType.F32, "{value=nan}"),
        (np.inf, ElementType.F64, "{value=inf, element=f64}"),
        (np.float64(0.1), ElementType.F32, "{value=0.1}"),
        (0, ElementType.I64, "{value=0, element=i64}"),
        (False, ElementType.BOOL, "{value=False, element=bool}"),
    ],
)
def test_numbers_come_back_as_they_are(value, element, text):
    graph = Graph()
    builder = Builder(graph)
    graph.add_output("y", builder.emit(ops.ConstantOfShape(value, element), constant(builder, np.array([2]))))
    assert f"ConstantOfShape{text}(%0)" in print_graph(graph)
    operator = round_trip(graph).outputs[0].operator
    assert operator == ops.ConstantOfShape(value, element)
    others = [other for other in (0.0, -0.0, 0, False, 1.0, 1, True, np.nan) if repr(other) != repr(value)]
    assert all(operator != ops.ConstantOfShape(other, element) for other in others)


def test_interface_comes_back():
    graph = Graph('a "name"')
    names = ["0", "with space", "ünï", "x"]
    dimensions = [("n", 3), (1, "width of it"), (2, 2), ()]
    shapes = [(2, 3), (1, 4), (2, 2), ()]
    values = [
        graph.add_input(name, TensorType(ElementType.I32, shape), declared)
        for name, shape, declared in zip(names, shapes, dimensions, strict=True)
    ]
    product = Builder(graph, ("node",)).emit(ops.Add(), values[0], values[3])
    graph.add_output("y 1", product, ("n", 3))
    graph.add_output("same", product)
    graph.add_output("input", values[2])
    parsed = round_trip(graph)
    assert parsed.name == graph.name
    assert [value.name for value in parsed.inputs] == names
    assert [value.dynamic for value in parsed.inputs] == [True, True, False, False]
    assert parsed.dimensions == dimensions
    assert parsed.output_names == ["y 1", "same", "input"]
    assert parsed.output_dimensions == [("n", 3), (2, 3), (2, 2)]
    assert parsed.outputs[0] is parsed.outputs[1]


@pytest.mark.parametrize(
    "array",
    [
        np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 0.1], np.float32),
        np.array([0x7FC00001, 0xFFC00000], np.uint32).view(np.float32),
        np.array([1 / 3, 5e-324]),
        np.array([0.1, 6e-8], np.float16),
        np.array([True, False]),
        np.array([-(2**63), 2**63 - 1]),
        np.array([2**64 - 1], np.uint64),
        np.array(7, np.int8),
        np.empty((0, 3), np.float32),
        np.broadcast_to(np.float32(0.5), (1000, 1000)),
        np.arange(100, dtype=np.float32).reshape(10, 10).T,
    ],
    ids=lambda array: f"{array.dtype}{list(array.shape)}",
)
def test_constants_come_back_bit_for_bit(array):
    graph = constant_graph(array)
    tensor = only_tensor(round_trip(graph))
    assert tensor.array.tobytes() == array.tobytes()
    assert tensor.type == only_tensor(graph).type
    assert len(print_graph(graph)) < 300


def test_bf16_comes_back():
    graph = constant_graph(np.array([0x3F80, 0xFFC1], np.uint16).view(ElementType.BF16.dtype))
    assert "bf16[2]{hex 803fc1ff}" in print_graph(graph)
    assert only_tensor(round_trip(graph)) == only_tensor(graph)


def test_large_constants_go_by_content():
    array = np.arange(100.0)
    text = print_graph(constant_graph(array))
    assert text == print_graph(constant_graph(array.copy()))
    changed = array.copy()
    changed[50] += 1
    assert text != print_graph(constant_graph(changed))
    with pytest.raises(ParseError, match="not among the tensors given"):
        parse_graph(text)
    ((digest, _),) = named_tensors(constant_graph(array)).items()
    with pytest.raises(ParseError, match="of another content"):
        parse_graph(text, {digest: Tensor(changed)})


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("glowstone.graph 2", "line 1, column 17: text of version 2"),
        ("glowstone.lir 1", "line 1, column 1: expected 'glowstone.graph'"),
        ("input %x: f32[2]\n%0 = Relu(%x) : f32[3]", "line 3, column 17: a result of type f32\\[3\\]; inferred is f32"),
        ("input %x: f32[2]\n%0 = Rely(%x) : f32[2]", "line 3, column 6: unknown operator Rely"),
        ("input %x: f32[2]\n%0 = Relu(%z) : f32[2]", "line 3, column 12: no value %z"),
        ("input %x: f32[2]\n%1 = Relu(%x) : f32[2]", "result %1 out of order"),
        ("input %x: f32[2]\n%0, %1 = Relu(%x) : f32[2]", "2 results; Relu has 1"),
        ("input %x: f32[2]\n%0 = Relu(%x, %x) : f32[2]", "wrong number of operands"),
        ("input %x: f32[2]\n%0 = Relu{axis=1}(%x) : f32[2]", "no such field, or twice: axis"),
        ("input %x: f32[2]\n%0 = Softmax{axis=x}(%x) : f32[2]", "invalid literal"),
        ("input %x: f32[2]\ninput %x: f32[2]", "not a new name for an input"),
        ('input %x: f32[2] ("n", 2)', "2 dimensions for f32"),
        ("input %x: f33[2]", "not a valid ElementType"),
        ("%0 = Constant() : f32[]", "missing 1 required positional argument"),
        ("%0 = Constant{tensor=f32[2]{1.0}}() : f32[2]", "1 elements, not 2"),
        ("%0 = Constant{tensor=u8[1]{256}}() : u8[1]", "256 out of bounds"),
        ("%0 = Constant{tensor=f32[2]{hex 00}}() : f32[2]", "1 bytes for 2 elements"),
        ("input %x: f32[2]\noutput y = %x\noutput y = %x", "second output of name y"),
        ("output y = %0", "no value %0 before"),
        ("nonsense", "text after the graph"),
    ],
)
def test_bad_text_is_refused_with_its_place(lines, message):
    text = lines if lines.startswith("glowstone.") else f"glowstone.graph 1\n{lines}"
    with pytest.raises(ParseError, match=message):
        parse_graph(text + "\n")
