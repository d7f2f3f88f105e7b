"""Small files that ask for much, and files whose parts do not fit: refused in time, without the memory they ask for.

Every model runs in one process, whose peak of memory is looked at; a crash would end the test.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from helpers.reports import check_node, model_of, normal, one_node
from onnx import TensorProto, helper

import glowstone
from glowstone.errors import GlowstoneError, LimitError

HUGE = 17_592_186_044_800
ALLOWED_GROWTH = 64 << 20
SMALL = np.zeros((1, 1), np.float32)


def resident_bytes(field):
    """What the process holds (VmRSS), or the most that it held since `forget_peak` (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


def forget_peak():
    Path("/proc/self/clear_refs").write_text("5")


def at(*numbers):
    return np.array(numbers, np.int64)


@pytest.fixture
def little_memory():
    """The test needs no more than a little."""
    glowstone.compile(model_of("main (float[2] x) => (float[2] y) { y = Neg (x) }"), cache=False)
    forget_peak()
    before = resident_bytes("VmRSS")
    yield
    assert resident_bytes("VmHWM") - before < ALLOWED_GROWTH


LARGE_RESULTS = {
    "ConstantOfShape": lambda: one_node("ConstantOfShape", at(HUGE), fixed=[0]),
    "ConstantOfShape of several": lambda: one_node("ConstantOfShape", at(2**20, 2**20, 2**20), fixed=[0]),
    "ConstantOfShape that wraps": lambda: one_node("ConstantOfShape", at(2**32, 2**32), fixed=[0]),
    "ConstantOfShape below zero": lambda: one_node("ConstantOfShape", at(-1), fixed=[0]),
    "Expand": lambda: one_node("Expand", SMALL, at(HUGE, 4), fixed=[1]),
    "Expand that wraps": lambda: one_node("Expand", SMALL, at(2**33, 2**33), fixed=[0, 1]),
    "Tile": lambda: one_node("Tile", normal(8), at(HUGE), fixed=[1]),
    "Tile of a constant": lambda: one_node("Tile", normal(8), at(2**61), fixed=[0, 1]),
    "OneHot": lambda: one_node("OneHot", at(0, 1), np.array(2**50), np.float32([0, 1]), fixed=[1]),
    "OneHot of constants": lambda: one_node("OneHot", at(0, 1), np.array(2**62), np.float32([0, 1]), fixed=[0, 1, 2]),
    "Range": lambda: one_node("Range", np.array(0), np.array(2**62), np.array(1), fixed=[0, 1, 2]),
    "Range below zero": lambda: one_node(
        "Range", np.array(-(2**63)), np.array(2**63 - 1), np.array(1), fixed=[0, 1, 2]
    ),
    "Pad": lambda: one_node("Pad", normal(4), at(2**61, 2**61), fixed=[1]),
    "Resize": lambda: one_node("Resize", normal(1, 1, 4), None, np.float32([1, 1, 1e15]), fixed=[2]),
    "Col2Im": lambda: one_node("Col2Im", normal(1, 4, 4), at(2**40, 2**40), at(2, 2), fixed=[1, 2]),
    "ConvTranspose": lambda: one_node("ConvTranspose", normal(1, 1, 4, 4), normal(1, 1, 2, 2), strides=[2**40, 2**40]),
    "MaxUnpool": lambda: one_node(
        "MaxUnpool", normal(1, 1, 2), at(0, 1)[None, None], at(1, 1, 2**50), fixed=[2], kernel_shape=[2]
    ),
    "Expand to a square": lambda: one_node("Expand", SMALL, at(2**24, 2**24), fixed=[1]),
    "Reshape": lambda: one_node("Reshape", normal(4), at(2**62, 4), fixed=[1]),
    "Upsample": lambda: one_node("Upsample", normal(1, 1, 4, 4), opset=7, scales=[1.0, 1.0, 1e9, 1e9]),
}


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("name", LARGE_RESULTS)
def test_results_that_no_machine_holds(name):
    """onnxruntime#28730, #28055, #28070, #28014, #27625: refused before anything of the size is asked for."""
    model, feeds = LARGE_RESULTS[name]()
    with pytest.raises(GlowstoneError) as caught:
        glowstone.compile(model, cache=False, memory_limit=1 << 30).run(feeds)
    assert caught.value.file
    assert isinstance(caught.value, LimitError) or "extent" in str(caught.value) or caught.value.node


@pytest.mark.usefixtures("little_memory")
def test_a_large_constant_of_one_number_stays_one_number():
    """onnxruntime#28730: a file of 152 bytes that folding made 287 MB of."""
    text = """
    main (float[1] x) => (float[1] y) {
      shape = Constant <value = int64[2] {3000, 25000}> ()
      full = ConstantOfShape <value = float[1] {2}> (shape)
      row = ReduceMax <keepdims = 0> (full)
      y = Mul (x, row)
    }
    """
    model = model_of(text)
    assert len(model.SerializeToString()) < 400
    compiled = glowstone.compile(model, cache=False)
    assert compiled.report()["memory"]["constants_bytes"] < 4096
    with pytest.raises(LimitError):
        glowstone.compile(model_of(text.replace("3000", "3000000")), cache=False, memory_limit=1 << 28)(np.float32([3]))


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("dims", [[4611686018427387906], [-1], [2**32, 2**32], [-2, -4], [2**62, 4], [0, -1]])
@pytest.mark.parametrize("field", ["raw_data", "float_data"])
def test_extents_of_constants_that_wrap_or_are_negative(dims, field):
    """tract#2795: the product of the extents is computed without overflow, and no extent is below zero."""
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims)
    if field == "raw_data":
        tensor.raw_data = bytes(8)
    else:
        tensor.float_data.extend([1, 2])
    model = model_of("main (float[2] x) => (float[n] y) { y = Add (x, w) }")
    model.graph.initializer.append(tensor)
    with pytest.raises(GlowstoneError) as caught:
        glowstone.compile(model.SerializeToString(), cache=False)
    assert "'w'" in str(caught.value)


LEAST = -(2**63)
ARITHMETIC = {
    "least by minus one": ("Div", (LEAST, -1)),
    "rest of least by minus one": ("Mod", (LEAST, -1)),
    "by zero": ("Div", (4, 0)),
    "rest by zero": ("Mod", (4, 0)),
    "product that wraps": ("Mul", (2**62, 4)),
    "sum that wraps": ("Add", (2**63 - 1, 1)),
    "difference that wraps": ("Sub", (LEAST, 1)),
    "power": ("Pow", (3, 2**40)),
    "negative power": ("Pow", (0, -1)),
    "shift": ("BitShift", (1, 64)),
}


@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_on_shapes_that_has_no_result(name):
    """onnx#8277, onnxruntime#27625: a shape computed by it is refused or wraps; nothing traps."""
    kind, (left, right) = ARITHMETIC[name]
    attributes = ' <direction = "LEFT">' if kind == "BitShift" else ""
    element = "uint64" if kind == "BitShift" else "int64"
    text = f"""
    main (float["n"] x) => (float["m"] y) {{
      a = Constant <value = {element}[1] {{{left}}}> ()
      b = Constant <value = {element}[1] {{{right}}}> ()
      c = {kind}{attributes} (a, b)
      s = Cast <to = 7> (c)
      y = Expand (x, s)
    }}
    """
    outcome = outcome_of(model_of(text), x=normal(1))
    assert outcome.file if isinstance(outcome, GlowstoneError) else outcome["y"].ndim == 1


def outcome_of(model, **feeds):
    """The outputs, or the error of compiling or running."""
    try:
        return glowstone.compile(model, cache=False, memory_limit=1 << 28).run(feeds)
    except GlowstoneError as error:
        return error


def typed(shape, dtype=np.float32):
    return np.zeros(shape, dtype)


MISFITS = {
    "Conv: weights of more axes": ("Conv", [typed((1, 1, 5)), typed((1, 1, 3, 3, 3))], {"dilations": [1, 1, 1]}),
    "Conv: a scalar and a bias of rank 5": ("Conv", [typed((7, 6, 1, 5)), typed(()), typed((1,) * 5)], {}),
    "Conv: dilations of another rank": ("Conv", [typed((1, 1, 5, 5)), typed((1, 1, 3, 3))], {"dilations": [1]}),
    "Conv: groups of none": ("Conv", [typed((1, 2, 5)), typed((2, 1, 3))], {"group": 0}),
    "Conv: strides of zero": ("Conv", [typed((1, 2, 5)), typed((2, 2, 3))], {"strides": [0]}),
    "Gemm: a scalar and a short bias": (
        "Gemm",
        [typed((2, 1), np.float64), typed((), np.float64), typed((2,), np.float64)],
        {},
    ),
    "Gemm: of rank 3": ("Gemm", [typed((2, 3, 4)), typed((4, 5))], {}),
    "Einsum: more operands than terms": ("Einsum", [typed((2, 2)), typed((2, 2))], {"equation": "ij->ij"}),
    "Einsum: a letter from nowhere": ("Einsum", [typed((2, 2))], {"equation": "ij->ik"}),
    "Einsum: no equation": ("Einsum", [typed((2, 2))], {"equation": "->->,,..."}),
    "Transpose: an axis twice": ("Transpose", [typed((2, 3))], {"perm": [0, 0]}),
    "Transpose: an axis too many": ("Transpose", [typed((2, 3))], {"perm": [0, 1, 2]}),
    "OneHotEncoder: no categories": ("ai.onnx.ml.OneHotEncoder", [typed((2, 3))], {}),
    "SVMClassifier: counts that do not fit": (
        "ai.onnx.ml.SVMClassifier",
        [typed((2, 3))],
        {
            "classlabels_ints": [0, 1],
            "vectors_per_class": [2**31, 5],
            "support_vectors": [1.0, 2.0],
            "coefficients": [1.0],
            "rho": [0.5],
            "kernel_type": "LINEAR",
        },
    ),
    "EmbedLayerNormalization: scalars": (
        "com.microsoft.EmbedLayerNormalization",
        [typed((), np.int32), typed((), np.int32), *[typed((4, 2))] * 3, typed((2,)), typed((2,))],
        {},
    ),
    "BatchNormalization: a scalar": ("BatchNormalization", [typed(()), *[typed((1,))] * 4], {}),
    "MaxPool: no window": ("MaxPool", [typed((1, 1, 4))], {"kernel_shape": [0]}),
    "Split: parts of a negative size": ("Split", [typed((4,)), at(-1, 5)], {}),
    "TopK: more than there is": ("TopK", [typed((4,)), at(9)], {}),
}


@pytest.mark.parametrize("name", MISFITS)
def test_operands_and_attributes_that_do_not_fit(name):
    """onnxruntime#28731, #28175, #27699, #23258, onnx#6180, #6185, #7298, #5989: an error that names the node."""
    kind, operands, attributes = MISFITS[name]
    domain, _, kind = kind.rpartition(".")
    fixed = [index for index, array in enumerate(operands) if array.dtype == np.int64]
    model, _ = one_node(kind, *operands, domain=domain, fixed=fixed, **attributes)
    if domain == "ai.onnx.ml":
        model.opset_import.add(domain=domain, version=3)
    with pytest.raises(GlowstoneError) as caught:
        glowstone.compile(model, cache=False)
    assert "the node" in str(caught.value.node)
    assert caught.value.operator


@pytest.mark.parametrize("equation", ["ij,jk->ik", "...ij,...jk->...ik", "ii->i", "ij->", "i,j", " i j , j k -> k i "])
def test_equations_that_are_valid(equation):
    """onnxruntime#24806: the checker ended the process on a valid one."""
    count = equation.count(",") + 1
    rank = len([letter for letter in equation.split("->")[0].split(",")[0] if letter.isalpha()])
    check_node("Einsum", *(normal(*[3] * rank, seed=seed) for seed in range(count)), equation=equation)


def without_types(model):
    for port in (*model.graph.input, *model.graph.output):
        port.ClearField("type")


def without_node_inputs(model):
    del model.graph.node[0].input[:]


def without_inputs(model):
    del model.graph.input[:]


def without_output(model):
    del model.graph.node[0].output[:]


def without_graph(model):
    model.ClearField("graph")


def without_element_type(model):
    model.graph.input[0].type.tensor_type.ClearField("elem_type")


DAMAGES = [without_types, without_node_inputs, without_inputs, without_output, without_graph, without_element_type]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("kind", ["Add", "MatMul", "Concat", "Reshape"])
def test_parts_that_are_missing(kind, damage):
    """onnxruntime#4349, onnxruntime#4585: mutated models without types or inputs ended the process."""
    attributes = {"axis": 0} if kind == "Concat" else {}
    second = at(4, -1) if kind == "Reshape" else normal(2, 2)
    model, feeds = one_node(kind, normal(2, 2), second, **attributes)
    damage(model)
    with pytest.raises(GlowstoneError) as caught:
        glowstone.compile(model, cache=False).run(feeds)
    assert str(caught.value)


def function_chain(levels, width):
    """A model whose function of each level calls that of the one below `width` times."""
    functions = [
        helper.make_function(
            "local",
            f"f{level}",
            ["x"],
            ["y"],
            [
                helper.make_node(
                    f"f{level - 1}" if level else "Relu",
                    ["x" if not call else f"t{call}"],
                    ["y" if call == width - 1 else f"t{call + 1}"],
                    domain="local" if level else "",
                )
                for call in range(width)
            ],
            [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)],
        )
        for level in range(levels)
    ]
    graph = helper.make_graph(
        [helper.make_node(f"f{levels - 1}", ["x"], ["y"], domain="local")],
        "laughs",
        [helper.make_tensor_value_info("x", 1, [2])],
        [helper.make_tensor_value_info("y", 1, [2])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=9)


@pytest.mark.usefixtures("little_memory")
def test_functions_of_functions_that_grow_exponentially():
    """onnxruntime 1.32 bounds it by `session.function_expansion_node_limit`: 2 to the 40 nodes from 5 kB."""
    model = function_chain(40, 2)
    assert len(model.SerializeToString()) < 8000
    with pytest.raises(GlowstoneError):
        glowstone.compile(model, cache=False)
    recursive = function_chain(2, 1)
    recursive.functions[0].node[0].op_type = "f1"
    recursive.functions[0].node[0].domain = "local"
    with pytest.raises(GlowstoneError):
        glowstone.compile(recursive, cache=False)


def test_bodies_within_bodies_without_end():
    """onnxruntime#4349, the rest of the kind: a nesting that no recursion survives is an error."""
    inner = "float[2] a) { a = Identity (x) }"
    depth = 20
    model = model_of(
        "main (bool c, float[2] x) => (float[2] y) { y = If (c) <then_branch = p () => ("
        f"{inner}, else_branch = q () => (float[2] b) {{ b = Neg (x) }}> }}"
    )
    for _ in range(depth):
        outer = onnx.NodeProto()
        outer.CopyFrom(model.graph.node[0])
        branch = outer.attribute[0].g
        del branch.node[:]
        branch.node.append(model.graph.node[0])
        branch.output[0].name = model.graph.node[0].output[0]
        model.graph.node[0].CopyFrom(outer)
    outcome = outcome_of(model, c=np.array(True), x=normal(2))
    if isinstance(outcome, GlowstoneError):
        assert outcome.file
    else:
        np.testing.assert_array_equal(outcome["y"], normal(2))
