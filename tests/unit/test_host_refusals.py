"""Rules of the host refuse attributes of another kind and operands that do not fit; found by damaged models."""

from __future__ import annotations

import numpy as np
import pytest

from glowstone.errors import ExecutionError, LimitError, ModelError
from glowstone.host import HostNode, host_rule

ML = "ai.onnx.ml"
TEXTS = np.array([["a", "b", "c"], ["d", "e", "f"]], object)
WORDS = TEXTS[0]
X = np.arange(6.0, dtype=np.float32).reshape(2, 3)
SCALAR = np.array(1.0, np.float32)
INTEGERS = np.array([0, 1])


class Body:
    """Gives what it was made with."""

    def __init__(self, inputs: int, results: list, shapes: list | None = None) -> None:
        self.input_count = inputs
        self.output_shapes = [None] * len(results) if shapes is None else shapes
        self._results = results

    def run(self, inputs: list) -> list:
        return self._results


def call(kind, operands, attributes=None, domain="", opset=21, **bodies):
    node = HostNode(kind, "the node", attributes or {}, bodies, opset)
    return host_rule(kind, domain)(node, operands)


CASES = [
    ("Reshape", [TEXTS, WORDS], {}, ModelError, "no tensor of integers"),
    ("Reshape", [TEXTS, np.array([7])], {}, ExecutionError, "do not fit"),
    ("Reshape", [TEXTS], {"shape": 6}, ModelError, "attribute shape has the wrong kind"),
    ("Flatten", [TEXTS], {"axis": 3}, ModelError, "axis out of range"),
    ("Flatten", [TEXTS], {"axis": 1.0}, ModelError, "attribute axis has the wrong kind"),
    ("Squeeze", [TEXTS, np.array([5])], {}, ExecutionError, "do not fit"),
    ("Unsqueeze", [TEXTS, np.array([0, 0])], {}, ExecutionError, "do not fit"),
    ("Transpose", [TEXTS], {"perm": (0, 0)}, ExecutionError, "do not fit"),
    ("Transpose", [TEXTS], {"perm": ("1", "0")}, ModelError, "attribute perm has the wrong kind"),
    ("Concat", [TEXTS, WORDS], {"axis": 0}, ExecutionError, "do not fit"),
    ("Concat", [TEXTS], {"axis": "0"}, ModelError, "attribute axis has the wrong kind"),
    ("Concat", [], {"axis": 0}, ModelError, "operand is missing"),
    ("Concat", [TEXTS], {}, ModelError, "attribute axis is missing"),
    ("Gather", [TEXTS, X], {}, ModelError, "no tensor of integers"),
    ("Gather", [np.array("a", object), INTEGERS], {}, ExecutionError, "do not fit"),
    ("Slice", [TEXTS, INTEGERS, np.array([1])], {}, ExecutionError, "do not fit"),
    ("Slice", [TEXTS, INTEGERS, INTEGERS, np.array([0, 7])], {}, ExecutionError, "do not fit"),
    ("Slice", [TEXTS, INTEGERS, INTEGERS, INTEGERS, np.array([1, 0])], {}, ExecutionError, "do not fit"),
    ("Tile", [TEXTS, WORDS], {}, ModelError, "no tensor of integers"),
    ("Tile", [TEXTS, np.array([1, -1])], {}, ExecutionError, "do not fit"),
    ("Shape", [TEXTS], {"start": "1"}, ModelError, "attribute start has the wrong kind"),
    ("StringConcat", [TEXTS, TEXTS[:, :2]], {}, ExecutionError, "do not fit"),
    ("StringSplit", [WORDS], {"maxsplit": "1"}, ModelError, "attribute maxsplit has the wrong kind"),
    ("StringNormalizer", [WORDS], {"stopwords": (1, 2)}, ModelError, "attribute stopwords has the wrong kind"),
    ("Equal", [TEXTS, TEXTS[:, :2]], {}, ExecutionError, "do not fit"),
    ("Cast", [WORDS], {}, ModelError, "attribute to is missing"),
    ("Constant", [], {"value": "a text"}, ModelError, "attribute value has the wrong kind"),
    ("SplitToSequence", [X, SCALAR], {}, ModelError, "no tensor of integers"),
    ("SplitToSequence", [SCALAR], {}, ModelError, "axis out of range"),
    ("ConcatFromSequence", [[X, [X]]], {"axis": 0}, ModelError, "no tensors"),
    ("ConcatFromSequence", [[X]], {"axis": (0,)}, ModelError, "attribute axis has the wrong kind"),
]
ML_CASES = [
    ("ZipMap", [np.zeros((2, 0), np.float32)], {}, ExecutionError, "do not fit the classes"),
    ("ZipMap", [X], {"classlabels_int64s": ("a", "b", "c")}, ModelError, "classlabels_int64s has the wrong kind"),
    ("DictVectorizer", [{"a": 1.0, "b": "x"}], {"string_vocabulary": ("a", "b")}, ExecutionError, "is no number"),
    ("LabelEncoder", [WORDS], {"keys_tensor": (1, 2), "values_int64s": (1, 2)}, ModelError, "has the wrong kind"),
    (
        "LabelEncoder",
        [WORDS],
        {"keys_strings": ("a",), "values_int64s": (1,), "default_tensor": np.array(["z"], object)},
        ModelError,
        "default_tensor does not fit",
    ),
    ("ArrayFeatureExtractor", [WORDS, WORDS], {}, ModelError, "no tensor of integers"),
    ("CastMap", [{0: None}], {}, ExecutionError, "is no number"),
    ("CastMap", [{0: 1.0}], {"map_form": "SPARSE", "max_map": 2**60}, LimitError, "max_map is too large"),
]


@pytest.mark.parametrize(("kind", "operands", "attributes", "error", "message"), CASES)
def test_operands_and_attributes(kind, operands, attributes, error, message):
    with pytest.raises(error, match=message):
        call(kind, operands, attributes)


@pytest.mark.parametrize(("kind", "operands", "attributes", "error", "message"), ML_CASES)
def test_operands_and_attributes_of_ml(kind, operands, attributes, error, message):
    with pytest.raises(error, match=message):
        call(kind, operands, attributes, ML)


def test_a_default_is_one_of_the_values():
    """The default of integers is -1, which unsigned ones write otherwise."""
    attributes = {"keys_strings": ("a",), "values_tensor": np.array([7], np.uint8)}
    np.testing.assert_array_equal(call("LabelEncoder", [WORDS], attributes, ML), np.array([7, 255, 255], np.uint8))


YES, ONE = np.array(True), np.array(1)


@pytest.mark.parametrize(
    ("operands", "body", "error", "message"),
    [
        ([np.array("many", object), YES], Body(2, [YES]), ModelError, "not one integer"),
        ([ONE, YES, X], Body(3, [YES]), ModelError, "too few outputs"),
        ([ONE, YES], Body(2, [YES, [X]]), ModelError, "is no tensor"),
        ([ONE, YES], Body(2, []), ModelError, "too few outputs"),
    ],
)
def test_loops(operands, body, error, message):
    with pytest.raises(error, match=message):
        call("Loop", operands, body=body)


@pytest.mark.parametrize(
    ("operands", "attributes", "message"),
    [
        ([SCALAR], {}, "axis out of range"),
        ([X], {"scan_input_axes": (2,)}, "axis out of range"),
        ([X], {"scan_output_axes": (3,)}, "axis out of range"),
        ([X], {"scan_input_axes": 1}, "scan_input_axes has the wrong kind"),
        ([X], {"num_scan_inputs": "1"}, "num_scan_inputs has the wrong kind"),
    ],
)
def test_scans(operands, attributes, message):
    with pytest.raises(ModelError, match=message):
        call("Scan", operands, {"num_scan_inputs": 1, **attributes}, body=Body(1, [X]))


@pytest.mark.parametrize("operands", [[INTEGERS, X[:1]], [np.array([1, 1, 1]), X], [INTEGERS, np.ones(2, np.float32)]])
def test_scans_in_batches(operands):
    with pytest.raises(ExecutionError, match="do not fit each other"):
        call("Scan", operands, {"num_scan_inputs": 1}, opset=8, body=Body(1, [X]))
