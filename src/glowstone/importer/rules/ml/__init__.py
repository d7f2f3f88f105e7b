"""Rules of ai.onnx.ml, the domain of classical machine learning."""

from glowstone.importer.rules.ml import encoders, features, linear, support_vectors, trees

__all__ = ["encoders", "features", "linear", "support_vectors", "trees"]
