"""Window arithmetic shared by convolution and pooling: output extents and padding. ONNX Conv-11, MaxPool-12."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from glowstone.errors import ShapeError
from glowstone.types import LARGEST_EXTENT

PADDINGS = ("explicit", "same_upper", "same_lower", "valid")


@dataclass(frozen=True)
class Window:
    """A sliding window: one number per spatial axis; `pads` are all beginnings, then all ends (padding "explicit")."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    padding: str = "explicit"
    ceil_mode: bool = False

    @property
    def reach(self) -> tuple[int, ...]:
        """Input positions that one window spans, per axis."""
        return tuple((size - 1) * step + 1 for size, step in zip(self.kernel, self.dilations, strict=True))

    def check(self, spatial: int) -> None:
        """Raise ShapeError unless every attribute fits `spatial` axes."""
        sizes = (len(self.kernel), len(self.strides), len(self.dilations), len(self.pads) // 2)
        if set(sizes) != {spatial} or len(self.pads) != 2 * spatial:
            raise ShapeError(
                "window attributes do not fit the rank", expected=f"{spatial} spatial axes", found=str(self)
            )
        least = min(*self.kernel, *self.strides, *self.dilations)
        if least < 1 or min(self.pads) < 0 or max(*self.kernel, *self.strides, *self.pads) > LARGEST_EXTENT:
            raise ShapeError(
                "window attributes out of range",
                expected=f"kernel, strides, dilations >= 1, pads >= 0, at most {LARGEST_EXTENT}",
                found=str(self),
            )

    def resolved_pads(self, extents: Sequence[int]) -> tuple[int, ...]:
        """Explicit padding for these input extents."""
        if self.padding == "explicit":
            return self.pads
        if self.padding == "valid":
            return (0,) * len(self.pads)
        begins, ends = [], []
        for extent, reach, stride in zip(extents, self.reach, self.strides, strict=True):
            total = max((-(-extent // stride) - 1) * stride + reach - extent, 0)
            small = total // 2
            begins.append(small if self.padding == "same_upper" else total - small)
            ends.append(total - begins[-1])
        return (*begins, *ends)

    def output_extents(self, extents: Sequence[int]) -> tuple[int, ...]:
        """Number of windows along each axis.

        A last window of ceil mode that would start in the padding after the input is dropped.

        Raises:
            ShapeError: the window is larger than the padded input.
        """
        pads = self.resolved_pads(extents)
        count = len(self.kernel)
        result = []
        for axis, extent in enumerate(extents):
            room = extent + pads[axis] + pads[axis + count] - self.reach[axis]
            if room < 0 and extent > 0:
                raise ShapeError(
                    "the window is larger than the padded input",
                    expected=f"at least {self.reach[axis]} on spatial axis {axis}",
                    found=extent + pads[axis] + pads[axis + count],
                )
            stride = self.strides[axis]
            windows = (-(-room // stride) if self.ceil_mode else room // stride) + 1
            if self.ceil_mode and (windows - 1) * stride >= extent + pads[axis]:
                windows -= 1
            result.append(max(windows, 0))
        return tuple(result)
