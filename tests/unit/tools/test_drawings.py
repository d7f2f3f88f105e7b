"""Traces, drawings of memory plans, and graphs in DOT: what they say is what was planned and run."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import glowstone
from glowstone import examples
from glowstone.lir.parser import parse_program
from glowstone.memory import plan_memory
from glowstone.tools.dot import graph_to_dot
from glowstone.tools.graph_stages import graph_at_stage
from glowstone.tools.memory_drawing import draw_memory_plan, plan_boxes
from glowstone.tools.stepping import run_stepwise
from glowstone.tools.trace import trace_model

SVG = "{http://www.w3.org/2000/svg}"
PROGRAM = """glowstone.lir 1
input %x: f32[64]
output %y: f32[64]
activation %first: f32[64]
activation %"a<b": f32[64]
{
  alloc %first
  Copy(out %first[64], in %x[64])
  alloc %"a<b"
  Copy(out %"a<b"[64], in %first[64])
  dealloc %first
  Copy(out %y[64], in %"a<b"[64])
  dealloc %"a<b"
}
"""


@pytest.fixture(scope="module")
def digits():
    return glowstone.compile(examples.DIGITS, shapes={examples.DIGITS_INPUT: (2, 1, 8, 8)})


@pytest.fixture
def inputs():
    return {examples.DIGITS_INPUT: examples.digit_images()[0][:2]}


def test_stepwise_runs_compute_what_whole_runs_do(digits, inputs):
    numbers = []

    def step(number, run):
        numbers.append(number)
        run()

    plan, outputs = run_stepwise(digits, inputs, step)
    assert numbers == list(range(len(plan.instructions)))
    expected = digits.run(inputs)
    for name, array in expected.items():
        np.testing.assert_array_equal(outputs[name], array)


def test_a_trace_has_one_event_for_each_instruction_one_behind_the_other(digits, inputs):
    trace = trace_model(digits, inputs, runs=2)
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    instructions = digits.report()["instructions"]
    assert [event["cat"] for event in events] == [one["operation"] for one in instructions]
    assert [event["name"] for event in events] == [one["name"] or one["operation"] for one in instructions]
    assert any("conv2" in event["name"] for event in events)
    now = 0.0
    for event in events:
        assert event["ts"] == pytest.approx(now)
        assert event["dur"] > 0
        now += event["dur"]


def test_boxes_are_where_and_when_the_plan_says():
    program = parse_program(PROGRAM)
    plan = plan_memory(program)
    first, second = plan_boxes(program, plan)
    assert (first.name, first.begin, first.end, first.size) == ("first", 0, 2, 256)
    assert (second.name, second.begin, second.end, second.size) == ("a<b", 1, 3, 256)
    assert {first.offset, second.offset} == {0, 256}


def test_the_drawing_is_xml_with_a_box_for_each_buffer_inside_the_arena():
    program = parse_program(PROGRAM)
    text = draw_memory_plan(program, plan_memory(program))
    assert text == draw_memory_plan(program, plan_memory(program))
    root = ET.fromstring(text)
    boxes = [group.find(f"{SVG}rect") for group in root.iter(f"{SVG}g")]
    assert [group.find(f"{SVG}title").text.split(":")[0] for group in root.iter(f"{SVG}g")] == ["first", "a<b"]
    tops = sorted(float(box.get("y")) for box in boxes)
    heights = [float(box.get("height")) for box in boxes]
    assert tops[1] == pytest.approx(tops[0] + heights[0], abs=0.02)
    assert heights[0] == pytest.approx(heights[1])


def test_a_program_without_buffers_is_drawn():
    program = parse_program("glowstone.lir 1\ninput %x: f32[4]\noutput %y: f32[4]\n{\n  Copy(out %y[4], in %x[4])\n}\n")
    ET.fromstring(draw_memory_plan(program, plan_memory(program)))


def test_dot_has_the_nodes_and_edges_of_the_graph():
    graph = graph_at_stage(examples.DIGITS, {}, "canonical")
    text = graph_to_dot(graph)
    kinds = [node.operator.name for node in graph.nodes if node.operator.name != "Constant"]
    assert re.findall(r'^  node\d+ \[label="(\w+)', text, re.MULTILINE) == kinds
    edges = re.findall(r"^  (\w+) -> (\w+) ", text, re.MULTILINE)
    assert ("input0", "node0") in edges
    assert (f"node{len(kinds) - 1}", "output0") in edges
    assert len(edges) == len(kinds) + 1  # a chain, and the output
    assert text.count("{") == text.count("}")
