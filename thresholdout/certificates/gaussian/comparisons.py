"""Gaussian comparisons, given the features: two models differ on few records, and only these tell anything.

Comparison j is about ``(1/n) sum phi_ji`` over the set D_j of records where two models' predictions differ, phi_ji in
[0, 1] the share of the record that goes to the second model (1 where it alone is right). The sets are known from the
features. What answers give away shrinks with the share ``d_j = |D_j|/n``, and so does how far an expectation about few
records can be off. PROOFS.md, "Gaussian comparisons given the features".

A difference of accuracies is ``2 y - d``: its interval is that of y, doubled. Noise of standard deviation s on y is
noise of 2s on the difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from graphs.numerics.rounding import formula_up
from thresholdout.certificates.gaussian.deviations import GaussianWidths
from thresholdout.certificates.gaussian.noise_schedule import tightest_schedule
from thresholdout.certificates.independent_blocks import IndependentBlocks

__all__ = ["ComparisonDrift", "comparison_blocks", "tightest_comparisons"]

_UP = 1.0 + 1e-12


@dataclass(frozen=True, slots=True)
class ComparisonDrift:
    """How far expectations about few records can be from the truth, after Gaussian comparisons.

    Parameters
    ----------
    n : int
        Independent records, whatever their laws given the features.
    stretch : float
        b > 0, fixed before the first comparison.
    failure : float
        b2, probability with which this may ever be wrong.
    information : float
        ``x = sum d_j/(8 n s_j^2)`` so far.
    crowded : float
        X, at least ``sum 1/(8 n s_j^2)`` over the comparisons whose sets have a record in common, for every record.

    Examples
    --------
    >>> drift = ComparisonDrift(10_000, 0.5, 0.02)
    >>> for _ in range(20):
    ...     drift = drift.after(0.004, 0.02)
    >>> round(drift.bound(0.02), 4), round(drift.bound(1.0), 4)
    (0.0035, 0.0247)
    """

    n: int
    stretch: float
    failure: float
    information: float = 0.0
    crowded: float = 0.0

    def after(self, scale: float, share: float) -> ComparisonDrift:
        """Return the drift after one more comparison.

        Parameters
        ----------
        scale : float
            s_j, standard deviation of its noise.
        share : float
            d_j, in [0, 1]: share of the records on which the two models differ.
        """
        single = 1.0 / (8.0 * self.n * scale**2)
        information, crowded = (self.information + share * single) * _UP, (self.crowded + single) * _UP
        return ComparisonDrift(self.n, self.stretch, self.failure, information, crowded)

    def bound(self, share: float) -> float:
        """Return how far the expectation of any ``(1/n) sum_D phi_i`` can be from its truth, for a set of this share.

        ``inf`` where the comparisons gave away too much.
        """
        b = self.stretch
        room = 2.0 - (1.0 + b) * self.crowded / self.n * _UP
        if room <= 0.0:
            return math.inf
        squares = (1.0 + b) * (self.information - math.log(self.failure) / b) / room
        return formula_up(math.sqrt(share * squares / self.n))


def comparison_blocks(n: int, share: float) -> IndependentBlocks:
    """Return records whose answers are worth what comparisons on sets of one share are.

    With ``d_j = d`` for all j, a set being filled up with records where phi is 0, the bound is that for n/d records
    and a crowding of 1/(d n). Every function of schedules and half-widths can be used with it.

    Parameters
    ----------
    n : int
        Number of records.
    share : float
        d, in (0, 1]: the largest share of records on which two models will differ.

    Examples
    --------
    >>> blocks = comparison_blocks(10_000, 0.02)
    >>> round(blocks.effective), round(blocks.crowding, 6)
    (500000, 0.005)
    """
    return IndependentBlocks(n, share, 1.0)


def tightest_comparisons(n: int, share: float, answers: int, beta: float) -> GaussianWidths:
    """Choose the noise of k comparisons such that the largest half-width is smallest.

    Parameters
    ----------
    n : int
        Number of records.
    share : float
        d, in (0, 1]: the largest share of records on which two models will differ.
    answers : int
        k, declared number of comparisons.
    beta : float
        Probability of failure, in (0, 1).

    Returns
    -------
    GaussianWidths
        Half-widths of ``y_j = (1/n) sum_{D_j} phi_ji + s_j g_j``; those of differences ``2 y - d`` are twice as wide.

    Examples
    --------
    >>> widths = tightest_comparisons(10_000, 0.02, 353, 0.05)
    >>> 2 * widths.tolerance() < 0.03
    True
    """
    return tightest_schedule(comparison_blocks(n, share), answers, beta)
