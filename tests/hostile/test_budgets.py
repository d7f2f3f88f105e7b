"""Budgets: whatever a file says, compiling takes no more than the options allow, and the refusal names the option."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

import glowstone
from glowstone.errors import GlowstoneError, LimitError, ModelError
from glowstone.importer import open_model
from glowstone.options import Options

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
MOST_BYTES = 64 << 20
"""What compiling the small files here may allocate at once."""


def model(nodes: list[NodeProto], x_shape: list[int] | None = None, **initializers: object) -> ModelProto:
    """A model of x f32 [2, 3] (or as given) and y."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", FLOAT, [2, 3] if x_shape is None else x_shape)],
        [helper.make_tensor_value_info("y", 0, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in initializers.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def node(kind: str, inputs: list[str], outputs: list[str] | None = None, **attributes: object) -> NodeProto:
    return helper.make_node(kind, inputs, outputs or ["y"], **attributes)


def large(*more: NodeProto) -> Callable[[int], ModelProto]:
    """A constant of so many numbers, all the same, and what is done with it."""
    return lambda size: model([node("ConstantOfShape", ["shape"], ["c"]), *more], shape=np.array([size, 4]))


HUGE = [
    large(node("Add", ["c", "c"])),
    large(node("Exp", ["c"], ["e"]), node("Mul", ["e", "x1"], ["m"]), node("Add", ["m", "c"])),
    large(node("Transpose", ["c"], ["t"]), node("Add", ["t", "t"])),
    large(node("MatMul", ["x4", "t4"]), node("Transpose", ["c"], ["t4"])),
    large(node("Concat", ["c", "c"], axis=0)),
    large(node("NonZero", ["c"])),
    large(node("TopK", ["c", "four"], ["y", "i"])),
    large(node("CumSum", ["c", "axis"])),
    large(node("Tile", ["c", "twice"])),
    large(node("Softmax", ["c"])),
    large(node("Cast", ["c"], to=INT64)),
    large(node("Unique", ["c"])),
    large(node("Gather", ["c", "axis"])),
    large(node("OneHot", ["axes", "depth", "c2"], ["o"]), node("Add", ["o", "o"])),
    large(node("ReduceSum", ["c"])),
]


def attempt(source: ModelProto, **options: object) -> GlowstoneError | None:
    """The error that compiling and running ends with, if it does."""
    try:
        glowstone.compile(source, cache=False, options=options)(np.ones((2, 3), np.float32))
    except GlowstoneError as error:
        return error
    return None


EXTRA = {
    "four": np.array([2]),
    "axis": np.array(0),
    "twice": np.array([2, 2]),
    "x1": np.float32(1.5),
    "x4": np.ones((1, 4), np.float32),
    "axes": np.array([1, 2]),
    "depth": np.array(2**31),
    "c2": np.array([0, 1], np.float32),
}


@pytest.mark.parametrize("make", HUGE, ids=range(len(HUGE)))
@pytest.mark.parametrize("size", [2**36, 2**42, 17592186044800])
def test_constants_that_are_said_to_be_huge(make, size):
    """152 bytes that ask for gigabytes: refused, or left out where nothing of them is needed."""
    source = make(size)
    source.graph.initializer.extend(numpy_helper.from_array(np.asarray(value), name) for name, value in EXTRA.items())
    names = {name for one in source.graph.node for name in one.input}
    source.graph.node.sort(key=lambda one: one.output[0] == "y")
    for initializer in list(source.graph.initializer):
        if initializer.name not in names:
            source.graph.initializer.remove(initializer)
    tracemalloc.start()
    error = attempt(source)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MOST_BYTES
    assert error is None or error.message


def test_a_splat_stays_one_number():
    """An image of 64 MB of ones is not written out to be cut down."""
    nodes = [
        node("ConstantOfShape", ["shape"], ["c"], value=numpy_helper.from_array(np.array([2], np.float32))),
        node("Slice", ["c", "starts", "ends"], ["s"]),
        node("Add", ["s", "x"]),
    ]
    source = model(nodes, shape=np.array([4000, 4000]), starts=np.array([0, 0]), ends=np.array([2, 3]))
    tracemalloc.start()
    compiled = glowstone.compile(source, cache=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MOST_BYTES
    np.testing.assert_array_equal(compiled(np.ones((2, 3), np.float32)), np.full((2, 3), 3, np.float32))


def test_values_above_the_budget_are_left_to_the_run():
    nodes = [node("Exp", ["c"], ["e"]), node("Mul", ["e", "r"], ["m"]), node("Mul", ["m", "x"])]
    c, r = np.linspace(0, 1, 300, dtype=np.float32)[:, None], np.linspace(1, 2, 300, dtype=np.float32)
    source = model(nodes, [300, 300], c=c, r=r)
    x = np.ones((300, 300), np.float32)
    for options in ({}, {"fold_value_limit": 1000}, {"fold_limit": 1000}):
        compiled = glowstone.compile(source, cache=False, options=options)
        np.testing.assert_allclose(compiled(x), np.exp(c) * r, rtol=1e-6)


def test_the_time_for_compiling():
    nodes = [node("Sin", [f"v{n}" if n else "x"], [f"v{n + 1}"]) for n in range(200)]
    source = model([*nodes, node("Neg", ["v200"])])
    with pytest.raises(LimitError, match="compile_seconds") as caught:
        glowstone.compile(source, cache=False, options={"compile_seconds": 0.01})
    assert "0.01" in str(caught.value.expected)
    assert glowstone.compile(source, cache=False) is not None


def test_the_memory_for_compiling():
    w = np.random.default_rng(0).standard_normal((256, 256)).astype(np.float32)
    nodes = [node("ConstantOfShape", ["shape"], ["c"]), node("Add", ["c", "ramp"], ["b"]), node("MatMul", ["x", "b"])]
    source = model(nodes, [2, 256], shape=np.array([256, 256]), ramp=w[0])
    with pytest.raises(LimitError, match="compile_memory"):
        glowstone.compile(source, cache=False, options={"compile_memory": 1000})
    assert glowstone.compile(model([node("MatMul", ["x", "w"])], [2, 256], w=w), cache=False,
                             options={"compile_memory": 0}) is not None  # fmt: skip


def test_results_that_no_machine_holds():
    source = model([node("Expand", ["x", "shape"])], shape=np.array([10**7, 2, 3]))
    with pytest.raises(LimitError, match="memory_limit"):
        glowstone.compile(source, cache=False, memory_limit=1 << 20)


def nested_ifs(depth: int) -> ModelProto:
    """If in If in If."""
    kept = _leaf(depth)
    for level in range(depth - 1, 0, -1):
        name = f"y{level}"
        inner = node("If", ["c"], [name], then_branch=kept, else_branch=_leaf(level))
        kept = helper.make_graph([inner], f"g{level}", [], [helper.make_tensor_value_info(name, FLOAT, None)])
    nodes = [
        node("ReduceSum", ["x"], ["total"], keepdims=0),
        node("Greater", ["total", "zero"], ["c"]),
        node("If", ["c"], ["y"], then_branch=kept, else_branch=_leaf(0)),
    ]
    return model(nodes, zero=np.float32(0))


def _leaf(level: int) -> GraphProto:
    info = helper.make_tensor_value_info(f"z{level}", FLOAT, None)
    return helper.make_graph([node("Neg", ["x"], [f"z{level}"])], "leaf", [], [info])


@pytest.mark.parametrize("depth", [5, 25])
def test_bodies_in_bodies(depth):
    assert attempt(nested_ifs(depth)) is None


@pytest.mark.parametrize("depth", [40, 3000])
def test_bodies_deeper_than_a_file_can_have(depth):
    source = nested_ifs(1)
    graph = source.graph.node[-1].attribute[0].g
    for level in range(depth):
        del graph.node[:]
        one = graph.node.add(op_type="If", input=["c"], output=[graph.output[0].name])
        one.attribute.add(name="else_branch", type=5).g.CopyFrom(_leaf(level))
        graph = one.attribute.add(name="then_branch", type=5).g
        graph.output.add(name=f"d{level}")
        graph.node.add(op_type="Neg", input=["x"], output=[f"d{level}"])
    with pytest.raises(LimitError, match="nesting_limit"):
        glowstone.compile(source, cache=False)
    assert isinstance(attempt_with_cache(source), LimitError | ModelError)


def attempt_with_cache(source: ModelProto) -> GlowstoneError | None:
    try:
        glowstone.compile(source)
    except GlowstoneError as error:
        return error
    return None


def test_types_in_types():
    source = model([node("Identity", ["x"])])
    inner = helper.make_tensor_type_proto(FLOAT, [2])
    for _ in range(90):
        inner = helper.make_sequence_type_proto(inner)
    source.graph.input[0].type.CopyFrom(inner)
    with pytest.raises(LimitError, match="nesting_limit"):
        glowstone.compile(source, cache=False)
    assert Options().nesting_limit < 90


def test_large_attributes():
    source = model([node("Transpose", ["x"], perm=list(range(5000)))])
    with pytest.raises(LimitError, match="attribute_limit"):
        glowstone.compile(source, cache=False, options={"attribute_limit": 4999})
    source = model([node("Pad", ["x", "pads"], mode="c" * 5000)], pads=np.zeros(4, np.int64))
    with pytest.raises(LimitError, match="attribute_limit"):
        glowstone.compile(source, cache=False, options={"attribute_limit": 4999})


def test_the_number_of_nodes():
    nodes = [node("Neg", [f"v{n}" if n else "x"], [f"v{n + 1}"]) for n in range(100)]
    source = model([*nodes, node("Neg", ["v100"])])
    with pytest.raises(LimitError, match="node_limit"):
        glowstone.compile(source, cache=False, options={"node_limit": 100})
    glowstone.compile(source, cache=False, options={"node_limit": 101})


def unrolled(count: int, depth: int) -> ModelProto:
    """Loops whose types change from pass to pass, so that they are unrolled: one in another."""

    def body(level: int) -> GraphProto:
        names = [f"{name}{level}" for name in ("i", "c", "v", "c2", "w")]
        i, c, v, c2, w = names
        inner = (
            [node("Concat", [v, v], [w], axis=0)]
            if level == depth
            else [node("Loop", ["count", "", v], [w], body=body(level + 1))]
        )
        inner.append(node("Identity", [c], [c2]))
        ports = [helper.make_tensor_value_info(i, INT64, []), helper.make_tensor_value_info(c, TensorProto.BOOL, []),
                 helper.make_tensor_value_info(v, FLOAT, None)]  # fmt: skip
        outs = [helper.make_tensor_value_info(c2, TensorProto.BOOL, []), helper.make_tensor_value_info(w, FLOAT, None)]
        return helper.make_graph(inner, f"body{level}", ports, outs)

    return model([node("Loop", ["count", "", "x"], ["y"], body=body(1))], count=np.array(count))


@pytest.mark.parametrize(("count", "depth"), [(2**40, 1), (60, 1), (8, 3), (2**62, 2)])
def test_loops_that_are_unrolled_many_times(count, depth):
    assert isinstance(attempt(unrolled(count, depth), compile_seconds=60), LimitError)


def test_a_loop_that_may_be_unrolled_is():
    x = np.ones((2, 3), np.float32)
    assert glowstone.compile(unrolled(3, 1), cache=False)(x).shape == (16, 3)


def test_names_as_long_as_the_file():
    name = "n" * 3_000_000
    source = model([helper.make_node("Neg", ["x"], ["y"], name=name)])
    assert attempt(source) is None
    error = attempt(model([helper.make_node("N" * 3_000_000, ["x"], ["y"], name=name)]))
    assert error is not None
    assert len(str(error)) < 100_000


def test_messages_nested_deeper_than_protobuf_reads():
    source = nested_ifs(30)
    data = source.SerializeToString()
    assert isinstance(attempt(source), GlowstoneError | None)
    with pytest.raises(GlowstoneError):
        open_model(b"\x3a\x80\x01" * 10_000 + data)


def test_tensors_of_many_axes():
    source = model([node("Reshape", ["x", "shape"])], shape=np.array([2, 3, *[1] * 100]))
    assert isinstance(attempt(source), LimitError)
    source = model([node("Neg", ["x"])])
    for _ in range(100_000):
        source.graph.input[0].type.tensor_type.shape.dim.add(dim_value=1)
    assert isinstance(attempt(source), LimitError)


def test_a_node_of_many_operands():
    """Time grows with the operands, not with their square."""
    count = 1500
    source = model([node("Concat", ["x"] * count, axis=0)])
    compiled = glowstone.compile(source, cache=False, options={"compile_seconds": 120})
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(compiled(x), np.tile(x, (count, 1)))
