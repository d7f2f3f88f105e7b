"""What errors say: the file, the node or its result, the operator, the operands with their shapes."""

from __future__ import annotations

import onnx
import pytest
from helpers.reports import model_of, normal

import glowstone
from glowstone.errors import ModelError, ShapeError

FAULTS = {
    "Add": ("float[2, 3, 16] x, float[4, 224] z", "y = Add (x, z)", "float[2, 3, 224] y"),
    "Concat": ("float[2, 96] x, float[3, 64] z", "y = Concat <axis = 1> (x, z)", "float[2, 160] y"),
    "MatMul": ("float[2, 96] x, float[64, 3] z", "y = MatMul (x, z)", "float[2, 3] y"),
    "Conv": ("float[1, 96, 5, 5] x, float[8, 64, 3, 3] z", "y = Conv (x, z)", "float[1, 8, 3, 3] y"),
    "Gemm": ("float[2, 96] x, float[64, 3] z", "y = Gemm (x, z)", "float[2, 3] y"),
    "Reshape": (
        "float[2, 96] x, float[1] z",
        "s = Constant <value = int64[2] {7, -1}> () y = Reshape (x, s)",
        "float[7, k] y",
    ),
}


@pytest.mark.parametrize("label", ["", "block3/fuse"])
@pytest.mark.parametrize("kind", FAULTS)
def test_shapes_that_do_not_fit_name_their_node(kind, label, tmp_path):
    """onnxruntime#1838, onnxruntime#1916, onnx#1800: file, node, operator, what was expected and what was found."""
    inputs, body, output = FAULTS[kind]
    model = model_of(f"main ({inputs}) => ({output}) {{ {body} }}")
    model.graph.node[-1].name = label
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    with pytest.raises(ShapeError) as caught:
        glowstone.compile(path)
    error = caught.value
    assert error.file == str(path)
    assert (label or "y") in str(error.node)
    assert error.operator == kind
    text = str(error)
    for extent in ("96",) if "96" in inputs else ("16", "224"):
        assert extent in text, text
    assert error.expected is not None or error.remedy is not None, text


def test_a_declared_type_that_differs_names_both():
    """onnxruntime#2264, onnx#2421: two descriptions of one value that do not agree."""
    with pytest.raises(ModelError) as caught:
        glowstone.compile(model_of("main (float[2, 96] x) => (int64[2, 96] y) { y = Relu (x) }"))
    assert "'y'" in caught.value.message
    assert (str(caught.value.expected), str(caught.value.found)) == ("i64", "f32")


@pytest.mark.parametrize("declared", ["[2, 64]", "[2]", "[2, 96, 1]", "[7, 96]"])
def test_declared_extents_that_differ_are_put_right(declared):
    """onnxruntime#2264: common in edited files; the model says what its results are."""
    compiled = glowstone.compile(model_of(f"main (float[2, 96] x) => (float{declared} y) {{ y = Relu (x) }}"))
    assert compiled.outputs[0].shape == compiled(normal(2, 96)).shape == (2, 96)


def test_a_fault_behind_many_nodes_names_the_first_that_fails():
    """onnxruntime#1916: not where the consequence shows."""
    lines = [f"t{number} = Relu ({f't{number - 1}' if number else 'x'})" for number in range(20)]
    body = "\n".join([*lines, "bad = MatMul (t19, x)", "y = Relu (bad)"])
    with pytest.raises(ShapeError) as caught:
        glowstone.compile(model_of(f"main (float[2, 3] x) => (float[2, 3] y) {{ {body} }}"))
    assert (caught.value.node, caught.value.operator) == ("bad", "MatMul")


def test_an_error_leaves_the_process_and_the_next_model_alone():
    """glow's importer ended the process: here the next model compiles and runs."""
    for source in (b"", b"\x08", b"\xff" * 64, model_of("main (float[2] x) => (float[2] y) { y = Relu (z) }")):
        with pytest.raises(ModelError):
            glowstone.compile(source)
    good = model_of("main (float[2] x) => (float[2] y) { y = Neg (x) }")
    assert (glowstone.compile(good)(normal(2)) == -normal(2)).all()
