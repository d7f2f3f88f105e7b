"""Models out of wheels on the Python package index: text detection and direction, file types, voice activity."""

from __future__ import annotations

from glowstone.tools.fetch import RECOGNIZER, Asset

TEXT_DETECTOR = Asset(
    package=RECOGNIZER.package,
    version=RECOGNIZER.version,
    wheel_sha256=RECOGNIZER.wheel_sha256,
    member="rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
)
TEXT_DIRECTION = Asset(
    package=RECOGNIZER.package,
    version=RECOGNIZER.version,
    wheel_sha256=RECOGNIZER.wheel_sha256,
    member="rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
)
FILE_TYPE = Asset(
    package="magika",
    version="1.0.3",
    wheel_sha256="3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529",
    member="magika/models/standard_v3_3/model.onnx",
)


def voice_activity(name: str) -> Asset:
    """One of the models of silero-vad."""
    return Asset(
        package="silero-vad",
        version="6.2.3",
        wheel_sha256="7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
        member=f"silero_vad/data/{name}.onnx",
    )
