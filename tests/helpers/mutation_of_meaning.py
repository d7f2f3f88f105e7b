"""Edits after which most models are valid still: other types, attributes, opsets, nodes more, constants as inputs."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper, numpy_helper

from helpers.mutation_edits import Edit, InapplicableError, Message, Random, of_type, pick

SMALL = (0, 1, 2, 3, -1, 4, 5)
FLOATS = (0.0, 0.5, 1.0, 2.0, -1.0, 1e-5)
WORDS = (
    "reflect", "edge", "wrap", "constant", "nearest", "linear", "cubic", "SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET",
    "reverse", "bidirectional", "forward", "none", "add", "mul", "max", "min", "sum", "mean", "floor", "half_pixel",
    "align_corners", "asymmetric", "tanh", "DCR", "CRD", "ij,jk->ik", "...i->i", "Relu", "Sigmoid", "LOGISTIC",
)  # fmt: skip
NEWEST_OPSET = 26
EXTENT = 2
"""Of an input that becomes a constant, where the file says nothing."""


def set_attribute(model: Message, donor: Message, random: Random) -> None:
    """One that the operator has in the newest opset, at a value that is likely to fit."""
    node = pick(random, of_type(model, onnx.NodeProto))
    schema = onnx.defs.get_schema(node.op_type, domain=node.domain)
    declared = pick(random, sorted(schema.attributes.values(), key=lambda one: one.name))
    count = int(random.integers(1, 5))
    choices = {"INT": SMALL, "FLOAT": FLOATS, "STRING": WORDS}.get(declared.type.name.removesuffix("S"))
    if choices is None:
        raise InapplicableError
    is_list = declared.type.name.endswith("S")
    value = [pick(random, choices) for _ in range(count)] if is_list else pick(random, choices)
    kept = [attribute for attribute in node.attribute if attribute.name != declared.name]
    made = [*(onnx.AttributeProto.FromString(one.SerializeToString()) for one in kept)]
    made.append(helper.make_attribute(declared.name, value))
    del node.attribute[:]
    node.attribute.extend(made)


def change_opset(model: Message, donor: Message, random: Random) -> None:
    pick(random, model.opset_import).version = int(random.integers(1, NEWEST_OPSET + 1))


def change_all_types(model: Message, donor: Message, random: Random) -> None:
    """Another element type in place of one, everywhere."""
    tensors = of_type(model.graph, onnx.TypeProto.Tensor)
    old, new = pick(random, tensors).elem_type, int(random.integers(1, TensorProto.INT2 + 1))
    for tensor in tensors:
        tensor.elem_type = new if tensor.elem_type == old else tensor.elem_type
    for constant in of_type(model.graph, onnx.TensorProto):
        if constant.data_type == old:
            array = numpy_helper.to_array(constant).astype(helper.tensor_dtype_to_np_dtype(new))
            constant.CopyFrom(numpy_helper.from_array(array, constant.name))


def free_constant(model: Message, donor: Message, random: Random) -> None:
    """An initializer becomes an input: its value arrives with the call."""
    index = int(random.integers(len(model.graph.initializer)))
    constant = model.graph.initializer.pop(index)
    model.graph.input.append(helper.make_tensor_value_info(constant.name, constant.data_type, list(constant.dims)))


def fix_input(model: Message, donor: Message, random: Random) -> None:
    """An input becomes an initializer."""
    index = int(random.integers(len(model.graph.input)))
    given = model.graph.input.pop(index)
    tensor = given.type.tensor_type
    shape = [dim.dim_value or EXTENT for dim in tensor.shape.dim]
    array = random.integers(0, 4, shape).astype(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    model.graph.initializer.append(numpy_helper.from_array(array, given.name))


def make_symbolic(model: Message, donor: Message, random: Random) -> None:
    """Extents of inputs become symbols, equal ones the same symbol; or all different ones."""
    are_apart = random.random() < 0.3
    for index, entry in enumerate(model.graph.input):
        for axis, dim in enumerate(entry.type.tensor_type.shape.dim):
            if dim.HasField("dim_value"):
                dim.dim_param = f"d{index}_{axis}" if are_apart else f"d{dim.dim_value}"


def change_extent(model: Message, donor: Message, random: Random) -> None:
    """One extent, in all inputs and outputs."""
    shapes = [entry.type.tensor_type.shape for entry in (*model.graph.input, *model.graph.output)]
    dimensions = [dim for shape in shapes for dim in shape.dim if dim.HasField("dim_value")]
    old, new = pick(random, dimensions).dim_value, pick(random, (0, 1, 2, 3, 5, 17))
    for dim in dimensions:
        dim.dim_value = new if dim.dim_value == old else dim.dim_value


def insert_node(model: Message, donor: Message, random: Random) -> None:
    """A node of another model between two of this one."""
    graph = model.graph
    place = int(random.integers(len(graph.node) + 1))
    before = [entry.name for entry in (*graph.input, *graph.initializer)]
    before += [name for node in graph.node[:place] for name in node.output if name]
    made = onnx.NodeProto.FromString(pick(random, of_type(donor, onnx.NodeProto)).SerializeToString())
    made.name = f"inserted {place}"
    made.input[:] = [pick(random, before) for _ in made.input]
    made.output[:] = [f"inserted {place}.{index}" for index in range(len(made.output))]
    for node in graph.node[place:]:
        for index, name in enumerate(node.input):
            if name in before and random.random() < 0.5:
                node.input[index] = made.output[0]
    nodes = [*graph.node[:place], made, *graph.node[place:]]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    known = {entry.domain for entry in model.opset_import}
    model.opset_import.extend(entry for entry in donor.opset_import if entry.domain not in known)


def show_value(model: Message, donor: Message, random: Random) -> None:
    """A value inside becomes an output."""
    shown = {entry.name for entry in model.graph.output}
    names = [name for node in model.graph.node for name in node.output if name and name not in shown]
    model.graph.output.append(onnx.ValueInfoProto(name=pick(random, names)))


def leave_out(model: Message, donor: Message, random: Random) -> None:
    """An operand or a result is left out."""
    node = pick(random, of_type(model, onnx.NodeProto))
    names = pick(random, (node.input, node.output))
    names[int(random.integers(len(names)))] = ""


MEANING_EDITS: tuple[Edit, ...] = (
    set_attribute,
    set_attribute,
    set_attribute,
    change_opset,
    change_all_types,
    free_constant,
    fix_input,
    make_symbolic,
    change_extent,
    insert_node,
    insert_node,
    show_value,
    leave_out,
)
