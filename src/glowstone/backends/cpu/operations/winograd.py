"""Three-by-three convolution by Winograd's minimal filtering, on channel-blocked data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from glowstone.backends.cpu.operations.blocked import BlockedAnchor, unblock
from glowstone.backends.cpu.winograd_transforms import FILTERINGS, KERNEL
from glowstone.lir.buffer import View
from glowstone.lir.operation import Array, operation, require
from glowstone.lir.operations.epilogue import verify_epilogue
from glowstone.scalar import Expression


@operation
class WinogradConvolution(BlockedAnchor):
    """A 3 x 3 convolution of stride 1 by F(tile x tile, 3 x 3); see `winograd_transforms`.

    Operands: y [N, OB, OH, OW, b], x [N, IB, H, W, b], u [(tile + 2)^2, panels, IB * b, panel], extras. A panel is a
    number of output channels side by side, a multiple of b; unused rows and columns are zero.
    """

    tile: int = 4
    epilogue: Expression | None = None
    ulp_bound: ClassVar[float] = 512.0

    def multiply_adds(self, views: Sequence[View]) -> int:
        """Those of the direct convolution."""
        return super().multiply_adds(views) * KERNEL * KERNEL // FILTERINGS[self.tile].products

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, x, u, *extras = views
        require(self.tile in FILTERINGS, f"tile {self.tile}")
        require(y.rank == x.rank == 5 and u.rank == 4, f"ranks {y.rank}, {x.rank}, {u.rank}")
        require(len(integers) == 3, "integers are pad top, pad left, output channels")
        lanes = y.shape[4]
        require(u.shape[0] == FILTERINGS[self.tile].products and u.shape[3] % lanes == 0, f"weights {u.shape}")
        require(u.shape[2] == x.shape[1] * lanes == x.shape[1] * x.shape[4], f"weights {u.shape} for {x.shape}")
        require(u.shape[1] == -(-y.shape[1] * lanes // u.shape[3]), f"{u.shape[1]} panels for {y.shape[1]} blocks")
        require(y.shape[0] == x.shape[0], f"batches {y.shape[0]}, {x.shape[0]}")
        verify_epilogue(self.epilogue, y, extras)

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, x, u, *extras = arrays
        points, _, depth, _ = u.shape
        plain = np.transpose(u, (0, 2, 1, 3)).reshape(points, depth, -1)[:, :, : y.shape[1] * y.shape[4]]
        form = FILTERINGS[self.tile]
        sums = form.convolve_tiles(unblock(x), plain, y.shape[2], y.shape[3], integers[0], integers[1])
        self._store(y, sums, extras, integers[2])
