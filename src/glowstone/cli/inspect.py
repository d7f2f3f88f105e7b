"""`glowstone inspect MODEL`: what a model contains and, with --compiled, what the compiler made of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console

import glowstone
from glowstone.cli.arguments import GivenShape, debug_option, model_argument, shape_option, unique
from glowstone.cli.console import duration, progress, results, size, table
from glowstone.tools.benchmark import random_inputs
from glowstone.tools.dot import graph_to_dot
from glowstone.tools.graph_stages import graph_at_stage
from glowstone.tools.input_files import complete_shapes
from glowstone.tools.inspection import ModelSummary, Shape, inspect_model
from glowstone.tools.memory_drawing import draw_memory_plan
from glowstone.tools.profile import Profile, measure_limits, profile_model

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@model_argument
@shape_option
@click.option("--compiled", is_flag=True, help="Compile, and show instructions, kernels and the memory plan.")
@click.option(
    "--profile", "profiled", is_flag=True, help="Compile, run on random inputs, and show what takes the time."
)
@click.option("--memory", type=_FILE, help="Compile, and draw the memory plan over time: a file .svg.")
@click.option("--dot", type=_FILE, help="Draw the graph for Graphviz: a file .dot; with --compiled the compiled one.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@debug_option
def inspect(
    model_path: Path,
    shapes: Sequence[GivenShape],
    compiled: bool,
    profiled: bool,
    memory: Path | None,
    dot: Path | None,
    as_json: bool,
) -> None:
    """Show what MODEL contains: inputs, outputs, operators, parameters, operations."""
    given = unique(shapes, "--shape")
    with progress(4) as step:
        step("reading")
        complete = complete_shapes(model_path, given)
        summary = inspect_model(model_path, complete)
        report: Mapping[str, Any] | None = None
        profile: Profile | None = None
        if compiled or profiled or memory is not None:
            step("compiling")
            model = glowstone.compile(model_path, shapes=given or None)
            report = model.report() if compiled else None
        if profiled:
            step("measuring")
            instructions = profile_model(model, random_inputs(model.inputs, complete))
            profile = Profile(instructions, measure_limits(model.target))
        step("drawing")
        if memory is not None:
            plan = model.engine.reference_plan()
            memory.write_text(draw_memory_plan(plan.program, plan.memory), encoding="utf-8")
        if dot is not None:
            graph = graph_at_stage(model_path, given, "compiled" if compiled else "imported")
            dot.write_text(graph_to_dot(graph), encoding="utf-8")
    if as_json:
        parts: dict[str, Any] = {} if report is None else {"compiled": report}
        if profile is not None:
            parts["profile"] = profile.as_dict()
        click.echo(json.dumps(asdict(summary) | parts, indent=2))
        return
    console = results()
    print_summary(console, summary)
    if report is not None:
        print_instructions(console, report)
        print_stages(console, report)
        print_memory(console, report)
    if profile is not None:
        print_profile(console, profile)


def print_summary(console: Console, summary: ModelSummary) -> None:
    """Print inputs, outputs and operators as tables, then the sums."""
    tensors = [("input", one) for one in summary.inputs] + [("output", one) for one in summary.outputs]
    rows = [[kind, one.name, one.element, _shape_text(one.shape)] for kind, one in tensors]
    console.print(table("inputs and outputs", ["", "name", "type", "shape"], rows))
    symbols = dict.fromkeys(extent for one in summary.inputs for extent in one.shape if isinstance(extent, str))
    if symbols:
        console.print(f"symbols     {', '.join(symbols)}")
    console.print(table("operators", ["operator", "nodes"], list(summary.operators.items()), numeric=["nodes"]))
    console.print(f"nodes       {sum(summary.operators.values())}")
    console.print(f"parameters  {summary.parameters:,} ({size(summary.parameter_bytes)})")
    if summary.operations is None:
        console.print("operations  not known without the shapes of all inputs: give --shape")
    else:
        console.print(f"operations  {summary.operations / 1e9:.3f} billion in convolutions and matrix products")


def print_instructions(console: Console, report: Mapping[str, Any]) -> None:
    """Print one row for each instruction, in the order of the run."""
    rows = [
        [number, one["name"], one["operation"], one["kernel"], one["algorithm"], duration(one["cost_ns"] * 1e-9)]
        for number, one in enumerate(report["instructions"])
    ]
    columns = ["#", "name", "operation", "kernel", "algorithm", "expected cost"]
    console.print(table("instructions", columns, rows, numeric=["#", "expected cost"]))


def print_profile(console: Console, profile: Profile) -> None:
    """Print one row for each instruction, in the order of the run, and the limits of the machine."""
    whole = profile.nanoseconds
    rows = [
        [
            one.number,
            one.name,
            one.algorithm,
            one.tile,
            duration(one.nanoseconds * 1e-9),
            f"{one.nanoseconds / whole:.1%}",
            f"{one.flops_rate:.1f}" if one.flops else "",
            f"{one.byte_rate:.1f}",
            f"{one.share(profile.limits):.0%}",
        ]
        for one in profile.instructions
    ]
    columns = ["#", "name", "algorithm", "tile", "time", "of all", "GFLOP/s", "GB/s", "of limit"]
    console.print(table("profile, one thread", columns, rows, numeric=["#", *columns[4:]]))
    console.print(f"in all      {duration(whole * 1e-9)} of instructions, each called by itself")
    console.print(
        f"limits      {profile.limits.flops:.0f} GFLOP/s, {profile.limits.bytes:.1f} GB/s, measured for this table"
    )


def print_stages(console: Console, report: Mapping[str, Any]) -> None:
    """Print the compiler's stages with the time that each took."""
    rows = [[stage["name"], duration(stage["seconds"])] for stage in report["stages"]]
    console.print(table("stages", ["stage", "time"], rows, numeric=["time"]))


def print_memory(console: Console, report: Mapping[str, Any]) -> None:
    """Print kernels and the memory plan against its lower bound."""
    memory = report["memory"]
    arena, bound = memory["arena_bytes"], memory["bound_bytes"]
    ratio = f", {arena / bound:.3f} of the least possible {size(bound)}" if bound else ""
    console.print(f"kernels     {len(report['kernels'])} for {len(report['instructions'])} instructions")
    console.print(f"memory      {size(arena)} planned{ratio}")
    console.print(f"constants   {size(memory['constants_bytes'])}")


def _shape_text(shape: Shape) -> str:
    return " x ".join(map(str, shape)) or "scalar"
