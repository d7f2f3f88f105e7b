"""What an exported node consists of, before it is a protobuf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class OnnxForm:
    """An ONNX operator's name, its attributes as Python values, and constant operands behind those of the node."""

    kind: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    constants: tuple[Array, ...] = ()
