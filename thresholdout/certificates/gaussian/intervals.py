"""Intervals of Gaussian answers: what earlier answers gave away depends on how much they could vary.

An answer near 0 or 1 is about a mean with little variance, and gives away less than ``1/(8 N s^2)``: in its place comes
``h/(2 N s^2)``, h at least ``p (1-p)`` where the truth can be. How far expectations can be from truths then follows
with relative entropy. Everything is a function of the answers, and holds on the same event as the half-widths that do
not look at them. PROOFS.md, "Gaussian answers and entropy".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from graphs.numerics.rounding import ULP
from thresholdout.certificates.gaussian.drift import beside_looks
from thresholdout.certificates.gaussian.plausible_truths import largest_spread, lowest_truth
from thresholdout.errors import InputError

__all__ = ["Given", "GivenAway", "given_text", "read_given", "truths"]

_UP = 1.0 + 1e-12
_ROUNDS = 6


@dataclass(frozen=True, slots=True)
class Given:
    """One Gaussian answer, as far as it matters for what it gives away.

    Attributes
    ----------
    scale : float
        s, standard deviation of its noise.
    low, high : float
        What the analyst's expectation of the answered mean may be, now and ever after, in [0, 1]. All of [0, 1] where
        nothing is known.
    """

    scale: float
    low: float = 0.0
    high: float = 1.0


@dataclass(frozen=True, slots=True)
class GivenAway:
    """What answers gave away, for one dilation.

    Parameters
    ----------
    records : float
        N, the number of records, or of groups if all were as large as the largest.
    stretch : float
        b > 0, fixed before the first answer; the dilation is ``a = sqrt(1 + b)``.
    failure : float
        b2, probability with which this may ever be wrong.
    weighed, noise : float
        ``S = sum h_j/(2 N s_j^2)`` and ``Y = sum 1/(2 N s_j^2)`` of the answers so far.
    looks : float
        A, what other private looks add so far: `thresholdout.certificates.gaussian.drift.look_cost`.

    Examples
    --------
    >>> start = GivenAway(10_000, 0.7, 0.03)
    >>> sure, unsure = start.after(Given(0.01, 0.96, 0.98)), start.after(Given(0.01))
    >>> sure.noise == unsure.noise, sure.weighed < 0.2 * unsure.weighed
    (True, True)
    """

    records: float
    stretch: float
    failure: float
    weighed: float = 0.0
    noise: float = 0.0
    looks: float = 0.0

    @property
    def dilation(self) -> float:
        """Dilation of the values about their truths: a."""
        return math.sqrt(1.0 + self.stretch)

    def allowed(self, weighed: float, noise: float) -> float:
        """Return ``B/N``, the bound on the gap between expectation and truth; ``inf`` where there is none."""
        b = self.stretch
        # (a - 1)/(1 - a^-2) = (1 + b)/(a + 1), without cancellation
        room = 1.0 - (1.0 + b) / (self.dilation + 1.0) * noise / (4.0 * self.records) * _UP
        return beside_looks(b * weighed - math.log(self.failure), room, self.looks) / self.records * _UP

    @property
    def bound(self) -> float:
        """``B/N`` after the answers so far."""
        return self.allowed(self.weighed, self.noise)

    def after(self, answer: Given) -> GivenAway:
        """Return what is given away after one more answer.

        The answer's own h depends on the bound after it: from h = 1/4 downwards, and every step is a bound.
        """
        single = 1.0 / (2.0 * self.records * answer.scale**2)
        noise = (self.noise + single) * _UP
        h = 0.25
        for _ in range(_ROUNDS):
            allowed = self.allowed((self.weighed + h * single) * _UP, noise)
            smaller = largest_spread(answer.low, answer.high, self.dilation, allowed)
            if smaller > 0.999 * h:
                break
            h = smaller
        return replace(self, weighed=(self.weighed + h * single) * _UP, noise=noise)


def given_text(answers: int, states: Sequence[GivenAway]) -> str:
    """Return what so many answers gave away, as text: their number, and S and Y for each dilation."""
    return " ".join([str(answers), *(f"{state.weighed!r} {state.noise!r}" for state in states)])


def read_given(text: str, answers: int, starts: Sequence[GivenAway]) -> tuple[GivenAway, ...]:
    """Read what `given_text` wrote after so many answers.

    Raises
    ------
    InputError
        When the text is something else, or about another number of answers or dilations.

    Examples
    --------
    >>> start = GivenAway(10_000, 0.7, 0.03)
    >>> after = start.after(Given(0.01, 0.96, 0.98))
    >>> read_given(given_text(1, [after]), 1, [start]) == (after,)
    True
    """
    try:
        count, *words = text.split(" ")
        sums = [float(word) for word in words]
        if int(count) != answers or len(sums) != 2 * len(starts) or not all(0.0 <= x < math.inf for x in sums):
            raise ValueError
    except ValueError:
        raise InputError("past", "a text of another form", f"what was kept of {answers} answers") from None
    pairs = zip(sums[::2], sums[1::2], strict=True)
    return tuple(
        replace(start, weighed=weighed, noise=noise) for start, (weighed, noise) in zip(starts, pairs, strict=True)
    )


def truths(states: Sequence[GivenAway], low: float, high: float) -> tuple[float, float]:
    """Return the truths that are possible for a mean of which the analyst may expect anything in an interval.

    Parameters
    ----------
    states : sequence of GivenAway
        What was given away, for one or several dilations; all hold at once.
    low, high : float
        In [0, 1].

    Examples
    --------
    >>> state = GivenAway(10_000, 0.7, 0.03).after(Given(0.01, 0.96, 0.98))
    >>> [round(end, 4) for end in truths([state], 0.96, 0.98)]
    [0.9515, 0.9853]
    """
    bounds = [(state.dilation, state.bound) for state in states]
    least = max(lowest_truth(low, dilation, bound) for dilation, bound in bounds)
    most = min(1.0 - lowest_truth(1.0 - high, dilation, bound) for dilation, bound in bounds)
    return least, min(1.0, most * (1.0 + ULP))
