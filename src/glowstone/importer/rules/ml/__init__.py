"""Rules of ai.onnx.ml, the domain of classical machine learning."""

from glowstone.importer.rules.ml import trees

__all__ = ["trees"]
