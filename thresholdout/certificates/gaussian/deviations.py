"""Gaussian answers: how far answers to adaptive questions can be from the truth.

The guard answers question j by ``q_j(X)`` and normal noise of standard deviation s_j, chosen from earlier answers. The
certificate has two parts: what the noise does to an answer, and how far the analyst's expectation of *any* question can
have moved from the truth, which depends on the information ``x = sum 1/(8 N s_j^2)`` given away so far. There is no
union over questions, and the probability of failure enters by its logarithm. PROOFS.md, "Gaussian answers".
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.rounding import ULP, formula_up
from thresholdout.certificates.gaussian.drift import AnytimeDrift, Drift, look_cost
from thresholdout.certificates.gaussian.intervals import Given, GivenAway, given_text, read_given, truths
from thresholdout.certificates.normal_extremes import anytime_superquantile, largest_normal_superquantile
from thresholdout.certificates.route import Earlier, larger_side

__all__ = ["GaussianWidths", "NoiseRuns"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NoiseRuns:
    """Standard deviations of successive answers, as runs of equal ones.

    Parameters
    ----------
    scales : tuple of float
        In units of the range, positive.
    runs : tuple of int
        For how many answers each holds, at least 1.

    Examples
    --------
    >>> schedule = NoiseRuns((0.2, 0.1), (1, 3))
    >>> schedule.answers, schedule.scale(1), schedule.scale(4)
    (4, 0.2, 0.1)
    >>> schedule.expand()
    array([0.2, 0.1, 0.1, 0.1])
    """

    scales: tuple[float, ...]
    runs: tuple[int, ...]

    @classmethod
    def constant(cls, scale: float, answers: int) -> NoiseRuns:
        """Return the same standard deviation for all answers."""
        return cls((scale,), (answers,))

    @classmethod
    def of(cls, scales: Sequence[float] | Floats) -> NoiseRuns:
        """Return the schedule that holds these standard deviations, one for each answer."""
        values = np.asarray(scales, dtype=np.float64)
        starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
        runs = np.diff(np.r_[starts, values.size])
        return cls(tuple(values[starts].tolist()), tuple(runs.tolist()))

    @property
    def answers(self) -> int:
        """How many answers there are."""
        return sum(self.runs)

    def expand(self) -> Floats:
        """Return one standard deviation for each answer."""
        return np.repeat(np.array(self.scales), np.array(self.runs))

    def scale(self, answer: int) -> float:
        """Return the standard deviation of an answer, counted from 1."""
        return self.scales[int(np.searchsorted(np.cumsum(self.runs), answer))]


class GaussianWidths:
    """Half-widths of the answers of a Gaussian guard.

    Parameters
    ----------
    drift : Drift or AnytimeDrift
        How far expectations can have moved.
    schedule : NoiseRuns
        Standard deviations of the answers.
    noise_failure : float
        b1, probability that the noise may be worse; the whole certificate fails with at most b1 + b2 and the root of
        the blocks' exception.
    threshold : float
        T of a threshold in front, where answers within T of the train value are replaced by it.
    slack : float
        What rounding adds to an answer's error.
    declared : bool
        Whether the schedule's length is the declared number of answers. Otherwise answers may go on for ever with the
        schedule's last standard deviation, and the half-widths pay for it.

    Examples
    --------
    >>> from thresholdout.certificates.independent_blocks import IndependentBlocks
    >>> drift = Drift(IndependentBlocks.of_records(10_000), 0.3, 0.02)
    >>> widths = GaussianWidths(drift, NoiseRuns.constant(0.02, 100), noise_failure=0.03)
    >>> round(widths.half_width(1, 0, "holdout"), 4), round(widths.half_width(100, 99, "holdout"), 4)
    (0.1063, 0.1096)
    """

    def __init__(
        self,
        drift: Drift | AnytimeDrift,
        schedule: NoiseRuns,
        noise_failure: float,
        *,
        threshold: float = 0.0,
        slack: float = 0.0,
        declared: bool = True,
    ) -> None:
        self.drift = drift
        self.schedule = schedule
        self.noise_failure = noise_failure
        self.threshold = threshold
        self.slack = slack
        self.declared = declared
        runs = np.array(schedule.runs, dtype=np.float64)
        self._ends = np.cumsum(np.array(schedule.runs, dtype=np.int64))
        single = 1.0 / (8.0 * drift.blocks.effective * np.array(schedule.scales) ** 2)
        self._single = single * (1.0 + (len(runs) + 16) * ULP)
        self._totals = np.cumsum(runs * self._single)
        self._constant = largest_normal_superquantile(schedule.answers, noise_failure) if declared else math.nan
        records = drift.blocks.fewest
        self._start = tuple(
            GivenAway(records, stretch, failure, looks=look_cost(drift.blocks, drift.looks, stretch))
            for stretch, failure in drift.events
        )
        self._followed: tuple[list[tuple[float, str]], list[tuple[GivenAway, ...]]] = ([], [self._start])

    def beside(self, looks: float) -> GaussianWidths:
        """Return the half-widths from now on, on the same events, where other looks had this epsilon together.

        Examples
        --------
        >>> from thresholdout.certificates.independent_blocks import IndependentBlocks
        >>> drift = Drift(IndependentBlocks.of_records(10_000), 0.3, 0.02)
        >>> widths = GaussianWidths(drift, NoiseRuns.constant(0.02, 100), noise_failure=0.03)
        >>> round(widths.tolerance(), 4), round(widths.beside(0.01).tolerance(), 4)
        (0.1096, 0.1109)
        """
        return GaussianWidths(
            dataclasses.replace(self.drift, looks=looks),
            self.schedule,
            self.noise_failure,
            threshold=self.threshold,
            slack=self.slack,
            declared=self.declared,
        )

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of the probability of failure that the noise has, and every b; see `widths_of`."""
        drift = sum(failure for _, failure in self.drift.events)
        return self.noise_failure / (self.noise_failure + drift), *(stretch for stretch, _ in self.drift.events)

    def information(self, answer: int) -> float:
        """Return x after an answer, counted from 1; rounded up."""
        run = min(int(np.searchsorted(self._ends, answer)), len(self._ends) - 1)
        before, done = (float(self._totals[run - 1]), int(self._ends[run - 1])) if run else (0.0, 0)
        return (before + (answer - done) * float(self._single[run])) * (1.0 + 2.0**-48)

    def half_width(self, query: int, hits: int, source: Literal["train", "holdout"]) -> float:
        """Return what the answer to question ``query`` (from 1) is worth.

        Every question draws noise, answered by the train value or not. ``inf`` beyond a declared number of answers.
        """
        if self.declared and query > self.schedule.answers:
            return math.inf
        constant = self._constant if self.declared else anytime_superquantile(query, self.noise_failure)
        width = self._scale(query) * constant + self.drift(self.information(query)) + self.slack
        return formula_up(width + (self.threshold if source == "train" else 0.0))

    def interval(
        self, query: int, hits: int, source: Literal["train", "holdout"], value: float, earlier: Earlier = None
    ) -> tuple[float, float]:
        """Return the truths that are possible given an answer, within its half-width.

        What earlier answers gave away is computed from their values; without these, as if they could vary most. Not
        for latent groups, where the half-width is all that is known.
        """
        states = self._unknown(query - 1) if earlier is None else self._follow(list(earlier))
        return self._interval(query, hits, source, value, states)[0]

    def recalled(
        self, query: int, hits: int, source: Literal["train", "holdout"], value: float, past: str
    ) -> tuple[tuple[float, float], str]:
        """Return the interval of an answer, given what was kept of earlier ones, and what to keep from now on.

        What is kept are the sums S and Y for each b (PROOFS.md, K3), so that the time for an answer does not grow with
        their number.

        Examples
        --------
        >>> from thresholdout.certificates.gaussian.chosen_widths import one_scale
        >>> from thresholdout.certificates.independent_blocks import IndependentBlocks
        >>> widths = one_scale(IndependentBlocks.of_records(10_000), 50, 0.05)
        >>> first, past = widths.recalled(1, 0, "holdout", 0.97, "")
        >>> second, _ = widths.recalled(2, 1, "holdout", 0.96, past)
        >>> second == widths.interval(2, 1, "holdout", 0.96, [(0.97, "holdout")])
        True
        """
        states = read_given(past, query - 1, self._start) if past else None
        states = self._unknown(query - 1) if states is None else states
        interval, after = self._interval(query, hits, source, value, states)
        return interval, given_text(query, after)

    def _interval(
        self,
        query: int,
        hits: int,
        source: Literal["train", "holdout"],
        value: float,
        states: tuple[GivenAway, ...],
    ) -> tuple[tuple[float, float], tuple[GivenAway, ...]]:
        """Return the interval of an answer, and what is given away after it."""
        width = self.half_width(query, hits, source)
        low, high = value - width, value + width
        if self.drift.blocks.exception or width == math.inf:
            return (low, high), states
        given = self._given(query, value, source)
        after = tuple(state.after(given) for state in states)
        least, most = truths(after, given.low, given.high)
        return (max(low, least), min(high, most)), after

    def _unknown(self, answers: int) -> tuple[GivenAway, ...]:
        """Return what so many answers gave away at most."""
        blocks = self.drift.blocks
        noise = formula_up(self.information(answers) * 4.0 * blocks.effective / blocks.fewest) if answers else 0.0
        return tuple(dataclasses.replace(start, weighed=0.25 * noise, noise=noise) for start in self._start)

    def expected(self, value: float) -> float:
        """Return the larger side of the widest interval, if all answers are from the holdout and have this value.

        More than 64 answers are taken in runs; the end of each counts. The last answer of a schedule without an end
        has no widest interval: ``inf``.
        """
        if not self.declared:
            return math.inf
        widest, states = 0.0, self._start
        ends = np.unique(np.linspace(0, self.schedule.answers, min(self.schedule.answers, 64) + 1).astype(np.int64))
        for first, last in itertools.pairwise(ends.tolist()):
            scales = [self._scale(query) for query in (first + 1, last)]
            whole = min(scales) / math.sqrt(last - first)  # one answer with this noise gives away what the run does
            reach = self._reach(last, "holdout")
            given = Given(whole, max(0.0, value - reach), min(1.0, value + reach))
            states = tuple(state.after(given) for state in states)
            least, most = truths(states, given.low, given.high)
            width = min(self.half_width(last, last - 1, "holdout"), larger_side(value, (least, most)))
            widest = max(widest, width)
        return formula_up(widest)

    def _scale(self, query: int) -> float:
        run = min(int(np.searchsorted(self._ends, query)), len(self._ends) - 1)
        return self.schedule.scales[run]

    def _reach(self, query: int, source: str) -> float:
        """How far the analyst's expectation of the answered mean can be from the answer, now and ever after."""
        constant = self._constant if self.declared else anytime_superquantile(query, self.noise_failure)
        return formula_up(self._scale(query) * constant + self.slack + (self.threshold if source == "train" else 0.0))

    def _given(self, query: int, value: float, source: str) -> Given:
        """Return an answer; a question that could not be computed is one of which nothing is known."""
        if source == "failed":
            return Given(self._scale(query))
        reach = self._reach(query, source)
        return Given(self._scale(query), max(0.0, value - reach), min(1.0, value + reach))

    def _follow(self, earlier: list[tuple[float, str]]) -> tuple[GivenAway, ...]:
        """Return what earlier answers gave away; what was computed for the same first answers is kept."""
        known, states = self._followed
        if known != earlier[: len(known)]:
            known, states = [], [self._start]
        states = list(states)
        for query in range(len(known) + 1, len(earlier) + 1):
            given = self._given(query, *earlier[query - 1])
            states.append(tuple(state.after(given) for state in states[-1]))
        self._followed = earlier, states
        return states[-1]

    def tolerance(self) -> float:
        """Return the largest half-width of any answer; ``inf`` without a declared number."""
        if not self.declared:
            return math.inf
        far = self.drift.bound(self._totals * (1.0 + 2.0**-48))
        widths = np.array(self.schedule.scales) * self._constant + far
        return formula_up(float(widths.max()) + self.slack + self.threshold)
