"""The nine `light_*` networks inside the onnx package, with seeded random weights in place of their one constant.

Every float initializer and every weight that ConstantOfShape makes is replaced. Weights are scaled so that signals
neither vanish nor grow, and the last layer so that no softmax saturates.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test import data

NAMES = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
IMAGE_SHAPE = (1, 3, 224, 224)
SLIMNESS = {"shufflenet": 2}  # its groups have 34 channels
DEFAULT_SLIMNESS = 4

_KEPT_EXTENTS = (1, 3, 1000)  # of scalars and groups, of the image, and the classes: the same in slim networks
_LOGIT_DEVIATION = 2.0
_INITIALIZERS_APART = 4  # from this version of the format on, an initializer need not be an input


def build(name: str, slimness: int = 1, seed: int = 0) -> onnx.ModelProto:
    """The network; a slim one has its channels divided by `slimness` (see `SLIMNESS`)."""
    model = onnx.load(Path(data.__path__[0]) / "light" / f"light_{name}.onnx")
    graph = model.graph
    shapes, others = _weights_and_others(graph)
    random = np.random.default_rng(seed)
    weights = {
        name: _sample(random, _slim(shape, slimness), user)
        for (name, shape), user in zip(shapes.items(), _users(graph, shapes), strict=True)
    }
    for node in graph.node:
        _slim_node(node, others, slimness)
    kept = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    used = {name for node in kept for name in node.input}
    inputs = [one for one in graph.input if one.name not in shapes and one.name not in others]
    for repeated in (graph.node, graph.initializer, graph.input):
        del repeated[:]
    graph.node.extend(kept)
    graph.input.extend(inputs)
    model.ir_version = max(model.ir_version, _INITIALIZERS_APART)
    constants = {name: array for name, array in {**others, **weights}.items() if name in used}
    graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    _scale_logits(model)
    return model


def _weights_and_others(graph: onnx.GraphProto) -> tuple[dict[str, tuple[int, ...]], dict[str, np.ndarray]]:
    """Shapes of all float constants by name, and the other constants."""
    arrays = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    shapes = {name: array.shape for name, array in arrays.items() if array.dtype == np.float32}
    others = {name: array for name, array in arrays.items() if name not in shapes}
    for node in graph.node:
        if node.op_type == "ConstantOfShape":
            shapes[node.output[0]] = tuple(int(extent) for extent in arrays[node.input[0]])
    return shapes, others


def _slim(shape: tuple[int, ...], slimness: int) -> tuple[int, ...]:
    """Channels divided, windows kept: the first two extents behind leading ones are channels."""
    lead = len(shape) - len(_without_leading_ones(shape))
    return tuple(
        extent // slimness if lead <= axis < lead + 2 and extent not in _KEPT_EXTENTS else extent
        for axis, extent in enumerate(shape)
    )


def _without_leading_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    while shape[:1] == (1,):
        shape = shape[1:]
    return shape


def _slim_node(node: onnx.NodeProto, constants: dict[str, np.ndarray], slimness: int) -> None:
    """Divide the groups of depthwise convolutions and the channels that a Reshape names."""
    if slimness == 1:
        return
    for attribute in node.attribute:
        if attribute.name == "group" and attribute.i > DEFAULT_SLIMNESS:
            attribute.i //= slimness
    if node.op_type == "Reshape":
        target = constants[node.input[1]].copy()
        target[max(1, target.size - 3)] //= slimness
        constants[node.input[1]] = target


def _users(graph: onnx.GraphProto, shapes: Mapping[str, tuple[int, ...]]) -> list[tuple[str, int]]:
    """For each weight the operator that takes it, behind rearrangements, and as which operand."""
    users = {name: (node.op_type, index) for node in graph.node for index, name in enumerate(node.input)}
    moved = {node.input[0]: node.output[0] for node in graph.node if node.op_type in ("Unsqueeze", "Reshape")}

    def last(name: str) -> str:
        while name in moved:
            name = moved[name]
        return name

    return [users.get(last(name), ("", 0)) for name in shapes]


def _sample(random: np.random.Generator, shape: tuple[int, ...], user: tuple[str, int]) -> np.ndarray:
    if user == ("BatchNormalization", 4):
        array = random.uniform(0.5, 2.0, shape)
    elif user in (("BatchNormalization", 1), ("Mul", 1)):
        array = random.uniform(0.8, 1.2, shape)
    elif user in (("Conv", 1), ("Gemm", 1)):
        fan_in = np.prod(_without_leading_ones(shape)[1:])
        array = random.standard_normal(shape, np.float32) * np.float32(np.sqrt(2 / fan_in))
    else:
        array = random.standard_normal(shape, np.float32) * np.float32(0.1)
    return array.astype(np.float32, copy=False)


def _scale_logits(model: onnx.ModelProto) -> None:
    """Scale the last layer so that what the softmax takes has a deviation of `_LOGIT_DEVIATION`."""
    layer = next(node for node in reversed(model.graph.node) if node.op_type in ("Conv", "Gemm"))
    softmax = model.graph.node[-1]
    if softmax.op_type != "Softmax":
        return
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    probe.graph.output.append(helper.make_tensor_value_info(softmax.input[0], TensorProto.FLOAT, None))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.disable_prepacking", "1")
    content = probe.SerializeToString()
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    (logits,) = session.run([softmax.input[0]], {model.graph.input[0].name: sample_image(0)})
    scale = np.float32(_LOGIT_DEVIATION / logits.std())
    sources = {node.output[0]: node.input[0] for node in model.graph.node if node.op_type == "Reshape"}
    scaled = {sources.get(name, name) for name in layer.input[1:]}
    for one in model.graph.initializer:
        if one.name in scaled:
            one.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(one) * scale, one.name))


def sample_image(seed: int) -> np.ndarray:
    """Patches of one colour with noise on them, as far apart as photographs are."""
    random = np.random.default_rng(seed)
    patches = random.standard_normal((1, 3, 7, 7))
    return (np.kron(patches, np.ones((32, 32))) + 0.25 * random.standard_normal(IMAGE_SHAPE)).astype(np.float32)
