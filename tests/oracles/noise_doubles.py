"""What stands in for noise in tests."""

from __future__ import annotations

from fractions import Fraction


class LaplaceOnly:
    """Base of test noises for mechanisms that must not draw Gaussian numbers."""

    def rounded_gaussian(self, centre: Fraction, scale: Fraction) -> int:
        raise AssertionError("this mechanism draws Laplace noise only")
