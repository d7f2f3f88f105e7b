"""Glowstone as a backend of the `onnx` package: `prepare`, `run_model`, `run_node`, `supports_device`, `is_compatible`.

The module itself has these functions, as the official test runner and scoreboard want them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper
from onnx.backend.base import Backend, BackendRep

from glowstone.api.compilation import compile
from glowstone.api.model import Model
from glowstone.errors import GlowstoneError, InputError

Array = np.ndarray[Any, np.dtype[Any]]


class GlowstoneBackendRep(BackendRep):
    """A compiled model as the test runner calls it."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Array, ...]:
        """Outputs in order, from a list of inputs in order, a mapping by name, or one array."""
        names = [info.name for info in self.model.inputs]
        if isinstance(inputs, Mapping):
            feed = dict(inputs)
        else:
            arrays = inputs if isinstance(inputs, list | tuple) else [inputs]
            if len(arrays) > len(names):
                raise InputError("too many inputs", expected=names, found=len(arrays))
            feed = dict(zip(names, arrays, strict=False))
        return tuple(self.model.run({name: _value(given) for name, given in feed.items()}).values())


def _value(given: Any) -> Any:
    """An input as `Model.run` takes it: sequences and empty optionals stay what they are."""
    return given if given is None or isinstance(given, list | dict) else np.asarray(given)


class GlowstoneBackend(Backend):
    """See the module."""

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether the model compiles."""
        try:
            cls.prepare(model, device, **kwargs)
        except GlowstoneError:
            return False
        return True

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> GlowstoneBackendRep:
        """Compile a model; keyword arguments go to `glowstone.compile`.

        Raises:
            GlowstoneError: as `glowstone.compile`; another device than the CPU is an InputError.
        """
        if not cls.supports_device(device):
            raise InputError("unknown device", expected="CPU", found=device)
        return GlowstoneBackendRep(compile(model, **kwargs))

    @classmethod
    def run_model(cls, model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Array, ...]:
        """Compile and run once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Array, ...]:
        """Run one node: a model is made of it, with the inputs' types and shapes."""
        version = kwargs.pop("opset_version", None)
        names = [name for name in node.input if name]
        arrays = [inputs[name] for name in names] if isinstance(inputs, Mapping) else list(inputs)
        described = [_described(name, np.asarray(array)) for name, array in zip(names, arrays, strict=True)]
        results = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in node.output if name]
        graph = helper.make_graph([node], "node", described, results)
        opsets = [helper.make_opsetid("", version)] if version else None
        return cls.run_model(helper.make_model(graph, opset_imports=opsets), arrays, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """CPU only."""
        return device.partition(":")[0] == "CPU"


def _described(name: str, array: Array) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


is_compatible = GlowstoneBackend.is_compatible
prepare = GlowstoneBackend.prepare
run_model = GlowstoneBackend.run_model
run_node = GlowstoneBackend.run_node
supports_device = GlowstoneBackend.supports_device
