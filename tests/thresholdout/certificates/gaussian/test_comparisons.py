"""What comparisons with Gaussian noise give away: against exact fractions."""

from __future__ import annotations

from fractions import Fraction

from thresholdout.certificates.gaussian.comparisons import ComparisonDrift


def test_what_comparisons_gave_away_is_rounded_up() -> None:
    drift = ComparisonDrift(1000, 0.5, 0.02)
    information = crowded = Fraction(0)
    for scale, share in ((0.004, 0.02), (0.003, 0.1), (0.01, 1.0)):
        drift = drift.after(scale, share)
        single = 1 / (8 * 1000 * Fraction(scale) ** 2)
        information, crowded = information + Fraction(share) * single, crowded + single
        for found, exact in ((drift.information, information), (drift.crowded, crowded)):
            assert exact < Fraction(found) < exact * (1 + Fraction(4, 10**12))
