"""What users call: `compile`, `Model`, `InferenceSession`."""

from glowstone.api.compilation import compile
from glowstone.api.model import BoundCall, Model, TensorInfo
from glowstone.api.session import InferenceSession

__all__ = ["BoundCall", "InferenceSession", "Model", "TensorInfo", "compile"]
