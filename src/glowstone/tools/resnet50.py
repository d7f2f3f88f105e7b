"""ResNet-50 with seeded random weights, as an ONNX file.

In: a seed. Out: the bytes of a model with the topology of `light_resnet50.onnx` from the onnx package. The weights that
package ships are one constant, whose output proves nothing about arithmetic; here every weight is random and scaled
so that signals neither vanish nor saturate: the 1,000 outputs differ and change with the input.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from onnx import GraphProto

INPUT_NAME: Final = "gpu_0/data_0"
INPUT_SHAPE: Final = (1, 3, 224, 224)
OUTPUT_NAME: Final = "gpu_0/softmax_1"

_PATCH: Final = 32  # pixels
_INITIALIZERS_APART: Final = 4  # from this version of the format on, an initializer need not be an input

# The residual sums let the variance grow from block to block; this brings the logits back to a few units.
_CLASSIFIER_GAIN: Final = 0.005

_Array = npt.NDArray[np.float32]
_Sampler = Callable[[np.random.Generator, tuple[int, ...]], _Array]


def build_resnet50(seed: int = 0) -> bytes:
    """The model, serialized: float32 (1, 3, 224, 224) in, float32 (1, 1000) out. The same bytes for the same seed."""
    import onnx
    from onnx import numpy_helper
    from onnx.backend.test import data

    model = onnx.load(Path(data.__path__[0]) / "light" / "light_resnet50.onnx")
    graph = model.graph
    shapes = _weight_shapes(graph)
    generator = np.random.default_rng(seed)
    weights: dict[str, _Array] = {}
    for node in graph.node:
        for position, name in enumerate(node.input):
            if node.op_type in _SAMPLERS and position > 0 and name not in weights:
                weights[name] = _SAMPLERS[node.op_type][position - 1](generator, shapes[name])
    kept = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    used = {name for node in kept for name in node.input}
    others = [one for one in graph.initializer if one.name in used and one.name not in weights]
    inputs = [one for one in graph.input if one.name == INPUT_NAME]
    for repeated in (graph.node, graph.initializer, graph.input):
        del repeated[:]
    graph.node.extend(kept)
    graph.initializer.extend(others)
    graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    graph.input.extend(inputs)
    model.ir_version = max(model.ir_version, _INITIALIZERS_APART)
    return bytes(model.SerializeToString(deterministic=True))


def sample_image(seed: int = 0) -> _Array:
    """A random input of `INPUT_SHAPE`: patches of one colour with noise on them, as far apart as photographs are."""
    generator = np.random.default_rng(seed)
    batch, channels, height, width = INPUT_SHAPE
    patches = generator.standard_normal((batch, channels, height // _PATCH, width // _PATCH), dtype=np.float32)
    noise = generator.standard_normal(INPUT_SHAPE, dtype=np.float32)
    return np.kron(patches, np.ones((_PATCH, _PATCH), np.float32)) + np.float32(0.25) * noise


def _weight_shapes(graph: GraphProto) -> dict[str, tuple[int, ...]]:
    """Shapes of all weights: those in the file, and those that `ConstantOfShape` makes from a shape in the file."""
    from onnx import numpy_helper

    arrays = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    shapes = {name: tuple(array.shape) for name, array in arrays.items()}
    for node in graph.node:
        if node.op_type == "ConstantOfShape":
            shapes[node.output[0]] = tuple(int(extent) for extent in arrays[node.input[0]])
    return shapes


def _normal(gain: float) -> _Sampler:
    """Normal values of deviation gain / sqrt(fan-in), where the fan-in of a vector is 1."""

    def sample(generator: np.random.Generator, shape: tuple[int, ...]) -> _Array:
        fan_in = int(np.prod(shape[1:]))
        values: _Array = (generator.standard_normal(shape) * (gain / np.sqrt(fan_in))).astype(np.float32)
        return values

    return sample


def _uniform(low: float, high: float) -> _Sampler:
    def sample(generator: np.random.Generator, shape: tuple[int, ...]) -> _Array:
        return generator.uniform(low, high, shape).astype(np.float32)

    return sample


# By operator, for the operands after the data: weights; scale, bias, mean and variance; weights and bias.
_SAMPLERS: Final[dict[str, tuple[_Sampler, ...]]] = {
    "Conv": (_normal(float(np.sqrt(2))),),
    "BatchNormalization": (_uniform(0.8, 1.2), _normal(0.1), _normal(0.1), _uniform(0.5, 2.0)),
    "Gemm": (_normal(_CLASSIFIER_GAIN), _normal(0.1)),
}
