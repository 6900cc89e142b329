"""What stands in for noise in tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class LaplaceOnly:
    """Base of test noises for mechanisms that must draw Laplace noise only."""

    def uniform(self, bits: int, size: int) -> NDArray[np.uint64]:
        raise AssertionError("this mechanism draws Laplace noise only")
