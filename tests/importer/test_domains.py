"""Operators of other domains: rules are found by domain, and by that domain's version."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import glowstone
from glowstone.importer import RULES, imports
from glowstone.ops import Abs, Neg

DOMAIN = "org.example"


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two forms of `Turn` in a domain of its own: Neg from 1 on, Abs from 3 on."""
    monkeypatch.delitem(RULES, (DOMAIN, "Turn"), raising=False)
    imports("Turn", domain=DOMAIN)(lambda node: node.emit(Neg(), node.operand(0)))
    imports("Turn", since=3, domain=DOMAIN)(lambda node: node.emit(Abs(), node.operand(0)))
    monkeypatch.setitem(RULES, (DOMAIN, "Turn"), RULES.pop((DOMAIN, "Turn")))


def model_of(kind: str, domain: str, opsets: dict[str, int]) -> onnx.ModelProto:
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node(kind, ["x"], ["y"], domain=domain)], "one", ports[:1], ports[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*entry) for entry in opsets.items()])


@pytest.mark.parametrize(
    ("opsets", "expected"),
    [
        ({"": 17, DOMAIN: 2}, [1, 2, -3]),
        ({"": 17, DOMAIN: 3}, [1, 2, 3]),
        ({DOMAIN: 4}, [1, 2, 3]),
        ({"": 17}, [1, 2, -3]),
    ],
)
@pytest.mark.usefixtures("rules")
def test_a_rule_is_found_by_the_version_of_its_domain(opsets: dict[str, int], expected: list[int]) -> None:
    model = glowstone.compile(model_of("Turn", DOMAIN, opsets))
    np.testing.assert_array_equal(model(np.array([-1, -2, 3], np.float32)), np.array(expected, np.float32))


@pytest.mark.usefixtures("rules")
def test_an_operator_of_one_domain_is_none_of_another() -> None:
    for kind, domain in (("Turn", ""), ("Relu", DOMAIN)):
        with pytest.raises(glowstone.UnsupportedError, match=kind if not domain else f"{DOMAIN}.{kind}"):
            glowstone.compile(model_of(kind, domain, {"": 17, DOMAIN: 3}))


def test_the_default_domain_has_two_names() -> None:
    model = glowstone.compile(model_of("Relu", "ai.onnx", {"ai.onnx": 17}))
    np.testing.assert_array_equal(model(np.array([-1, 0, 2], np.float32)), np.array([0, 0, 2], np.float32))
