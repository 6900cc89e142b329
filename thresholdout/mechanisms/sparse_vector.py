"""The guard of [Z17, Algorithm 1], after [D15]: a sparse vector that also answers.

For each query with train value t and holdout mean h, both in units of the query's range::

    if |h - t| + gamma > That:   answer h + xi; spend one; That = T + a new delta     (source: holdout)
    else:                        answer t                                             (source: train)

with ``delta ~ Lap(sigma)`` in the noisy threshold ``That = T + delta``, ``gamma ~ Lap(2 sigma)`` fresh for every query,
and ``xi ~ Lap(4 sigma)`` fresh for every answer. The threshold is redrawn only after an answer from the holdout, and
never shown.

Everything is computed in integers, in units of a power of two, the *resolution*. PROOFS.md, "Privacy of the
interaction", has the price of that, and proves the guarantee for the program and not only for the formula.

References
----------
[Z17] J. Zhao, "Adaptive Statistical Learning with Bayesian Differential Privacy", WPES 2017.
[D15] C. Dwork, V. Feldman, M. Hardt, T. Pitassi, O. Reingold, A. Roth, "Generalization in adaptive data analysis and
holdout reuse", NeurIPS 2015.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final, NamedTuple

from thresholdout.data.arguments import check_count, check_number, check_unit
from thresholdout.data.parts.totals import Totals
from thresholdout.data.values import unit_mean
from thresholdout.errors import BudgetExhausted, InputError
from thresholdout.mechanisms.base import UNKNOWN, Known, Mechanism, Outcome, Past, refuse_if
from thresholdout.mechanisms.kind import Kind, Parameters
from thresholdout.mechanisms.rounding_costs import (
    check_grid,
    integer_sensitivity,
    mean_error,
    round_up,
)
from thresholdout.noise.sources import NoiseSource

__all__ = [
    "DWORK_RATIOS",
    "SPARSE_VECTOR",
    "ZHAO_RATIOS",
    "NoiseRatios",
    "SparseVectorMechanism",
    "SparseVectorParameters",
    "SparseVectorState",
    "interaction_epsilon",
    "noise_slack",
]

_FINENESS = 40  # the noise scale is between 2**40 and 2**41 grid steps
_SMALLEST, _LARGEST = 1e-12, 1e6
_FORMAT = "sparse-vector/1"


class NoiseRatios(NamedTuple):
    """Scales of the three noises of Algorithm 1, in units of the noise scale sigma.

    Attributes
    ----------
    threshold : float, default 1.0
        Scale of the noise in the threshold.
    test : float, default 2.0
        Scale of the noise in each comparison of a training value with the holdout's.
    answer : float, default 4.0
        Scale of the noise in each answer from the holdout.

    Examples
    --------
    >>> NoiseRatios()
    NoiseRatios(threshold=1.0, test=2.0, answer=4.0)
    """

    threshold: float = 1.0
    test: float = 2.0
    answer: float = 4.0


ZHAO_RATIOS = NoiseRatios()
"""The noises of [Z17, Algorithm 1]."""

DWORK_RATIOS = NoiseRatios(2.0, 4.0, 1.0)
"""The noises of [D15, Figure 1] (Thresholdout): louder comparisons and quieter answers.

A hit costs ``D/sigma (1/2 + 2/4 + 1) = 2 D/sigma`` instead of [Z17]'s ``9/4 D/sigma``.
"""


@dataclass(frozen=True, slots=True)
class SparseVectorParameters(Parameters):
    """Set the public parameters of `SparseVectorMechanism` (Algorithm 1), in units of the query's range.

    `thresholdout.SparseVector` is the short form for users.

    Parameters
    ----------
    threshold : float
        T, positive and at most 1e6. A training value within about T of the holdout mean is returned as the answer.
    noise_scale : float
        sigma, the scale of the noise, between 1e-12 and 1e6.
    budget : int or None
        B, the total number of answers from the holdout. If None, there is no limit, and epsilon is infinite.
    queries : int or None
        m, the total number of queries. If None, there is no limit.
    grid : float, optional
        Step of the grid to which answers from the holdout are rounded: 1/(K-1) for K = 2, 3, ... up to 2**30 + 1
        possible answers. None for the grid of the noise alone.
    ratios : NoiseRatios, default (1.0, 2.0, 4.0)
        Scales of the noises in units of sigma, each between 1/64 and 64. The default is that of [Z17].

    Raises
    ------
    InputError
        If a parameter is out of range.
    InputTypeError
        If a parameter has the wrong type.

    Examples
    --------
    >>> parameters = SparseVectorParameters(threshold=0.04, noise_scale=0.01, budget=10, queries=1000, grid=0.01)
    >>> parameters.levels
    101
    """

    words: ClassVar[str] = (
        "While the training part agrees with the holdout, the guard answers with the training value, which costs "
        "nothing. When they disagree, it answers with a noisy value from the holdout, and has one such answer less."
    )

    threshold: float
    noise_scale: float
    budget: int | None
    queries: int | None
    grid: float | None = None
    ratios: NoiseRatios = ZHAO_RATIOS

    def __post_init__(self) -> None:
        def fix(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        fix("threshold", check_number("threshold", self.threshold, 0.0, _LARGEST, "a positive number up to 1e6"))
        fix("noise_scale", _noise_scale(self.noise_scale))
        fix("budget", None if self.budget is None else check_count("budget", self.budget))
        fix("queries", None if self.queries is None else check_count("queries", self.queries))
        fix("ratios", _ratios(self.ratios))
        fix("grid", None if self.grid is None else 1.0 / check_grid(self.grid))

    @property
    def levels(self) -> int | None:
        """K, the number of possible values of an answer from the holdout, or ``None`` without a grid."""
        return None if self.grid is None else check_grid(self.grid) + 1

    def summary(self, from_holdout: int, left: str, answered: bool) -> str:
        """Return a sentence with the number of answers from the holdout."""
        told = f"{from_holdout:,} {'was' if from_holdout == 1 else 'were'} answered from the holdout"
        return f"{told}{left}; the holdout agreed with the training values of the others."

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> SparseVectorParameters:
        """Return the parameters from the dictionary that `to_json` wrote."""
        values = dict(stored)
        if "ratios" in values:
            values["ratios"] = NoiseRatios(*values["ratios"])
        return cls(**values)


@dataclass(frozen=True, slots=True)
class SparseVectorState:
    """State of `SparseVectorMechanism` between two queries.

    The noisy threshold is secret, and left out of the representation.

    Attributes
    ----------
    threshold : int
        The noisy threshold, in units of the mechanism's resolution.
    hits : int
        Number of answers from the holdout so far.
    asked : int
        Number of queries so far.

    Examples
    --------
    >>> state = SparseVectorState(threshold=123456, hits=1, asked=7)
    >>> state
    SparseVectorState(hits=1, asked=7)
    >>> SparseVectorState.from_text(state.to_text()) == state
    True
    """

    threshold: int = field(repr=False)
    hits: int
    asked: int

    def agrees(self, past: Past) -> bool:
        """Return whether the counts of the state are those of a history; see `MechanismState.agrees`."""
        return (self.asked, self.hits) == (past.asked, past.charged)

    def to_text(self) -> str:
        """Return the state as one line of text, for a ledger."""
        return f"{_FORMAT} {self.threshold} {self.hits} {self.asked}"

    @classmethod
    def from_text(cls, text: str) -> SparseVectorState:
        """Return the state from the text that `to_text` wrote."""
        try:
            tag, *words = text.split(" ")
            threshold, hits, asked = map(int, words)
            if tag != _FORMAT or not 0 <= hits <= asked:
                raise ValueError
        except ValueError:
            raise InputError("state", "a text of another form", f"the text of a {_FORMAT} state") from None
        return cls(threshold, hits, asked)


class SparseVectorMechanism(Mechanism[SparseVectorState, float]):
    """Answer queries by Algorithm 1 of [Z17], the sparse vector technique, computed in integers.

    If the training value differs from the holdout mean by less than a noisy threshold, the answer is the training
    value. Otherwise the answer is the holdout mean with noise. A guard with ``mechanism=SparseVector(...)`` calls this
    class.

    Parameters
    ----------
    parameters : SparseVectorParameters
        Threshold, noise scale, limits and answer grid.

    Attributes
    ----------
    parameters : SparseVectorParameters
        The parameters that were passed.
    resolution : float
        Step of the noise grid in units of the range, ``2**(floor(log2(noise_scale)) - 40)``.

    Notes
    -----
    Training value and holdout mean are rounded to the noise grid before they are compared. An answer from the holdout
    is clipped to [0, 1] and rounded to the answer grid. A training answer is the training value itself.

    Examples
    --------
    >>> from thresholdout.noise.sources import SeededNoise
    >>> mechanism = SparseVectorMechanism(SparseVectorParameters(0.04, 0.001, budget=1, queries=None, grid=0.01))
    >>> noise = SeededNoise(0)
    >>> state = mechanism.start(noise)
    >>> state, outcome = mechanism.step(state, train=0.71, holdout=0.7, noise=noise)
    >>> outcome.value, outcome.source, outcome.hits, outcome.asked
    (0.71, 'train', 0, 1)
    >>> state, outcome = mechanism.step(state, train=0.9, holdout=0.7, noise=noise)
    >>> outcome.source, state
    ('holdout', SparseVectorState(hits=1, asked=2))
    >>> mechanism.step(state, train=0.9, holdout=0.7, noise=noise)
    Traceback (most recent call last):
    thresholdout.errors.BudgetExhausted: The only answer from the holdout of this guard is used. ...
    """

    name: ClassVar[str] = "sparse vector"
    from_totals: ClassVar[bool] = True

    @property
    def title(self) -> str:
        """Name of the mechanism in a guard's representation."""
        return f"Algorithm 1 ({self.name})"

    def __init__(self, parameters: SparseVectorParameters) -> None:
        self.parameters = parameters
        self.resolution = _resolution(parameters.noise_scale)
        self._threshold_scale, self._test_scale, self._answer_scale = _scales(parameters.noise_scale, parameters.ratios)
        self._steps = 1.0 / self.resolution  # a power of two: multiplying by it is exact
        self._one = int(self._steps)
        self._threshold = round(parameters.threshold * self._steps)
        self._intervals = None if parameters.grid is None else check_grid(parameters.grid)
        self._budget = math.inf if parameters.budget is None else parameters.budget
        self._queries = math.inf if parameters.queries is None else parameters.queries

    def start(self, noise: NoiseSource) -> SparseVectorState:
        """Return the state before the first query, with the first noisy threshold."""
        return SparseVectorState(self._threshold + noise.laplace(self._threshold_scale), 0, 0)

    def trained(
        self, values: object, n: int | None, bounds: tuple[float, float], argument: str, binary: bool | None
    ) -> tuple[float, Known]:
        """Return the training values' mean, computed like the holdout's, and whether all are 0 or 1."""
        mean = values.mean.mean() if isinstance(values, Totals) else unit_mean(values, n, bounds, argument)
        return mean, Known(binary=True) if binary else UNKNOWN

    def read(self, values: object, n: int, bounds: tuple[float, float], argument: str, known: Known = UNKNOWN) -> float:
        """Check the values of the holdout records and return their mean; see `thresholdout.data.values.unit_mean`.

        Totals of other values than 0 and 1 are refused: they are those of values that were rounded to a grid, which
        `noise_slack` does not contain.
        """
        if isinstance(values, Totals):
            if not values.ends:
                raise InputError(argument, "values between the ends of the range", "true or false in each record")
            return values.mean.mean()
        return unit_mean(values, n, bounds, argument)

    def step(
        self, state: SparseVectorState, train: float, holdout: float, noise: NoiseSource
    ) -> tuple[SparseVectorState, Outcome]:
        """Answer one query; see `Mechanism.step`."""
        hits, asked = state.hits, state.asked
        refuse_if(self.refusal(state))
        check_unit("train", train)
        if not 0.0 <= holdout <= 1.0:
            raise InputError("holdout", "a value outside of it", "a number in [0, 1]")
        mean = round(holdout * self._steps)
        gap = abs(mean - round(train * self._steps))
        asked += 1
        if gap + noise.laplace(self._test_scale) <= state.threshold:
            return SparseVectorState(state.threshold, hits, asked), Outcome(train, "train", hits, asked)
        answer = self._release(mean + noise.laplace(self._answer_scale))
        threshold = self._threshold + noise.laplace(self._threshold_scale)
        return SparseVectorState(threshold, hits + 1, asked), Outcome(answer, "holdout", hits, asked)

    def fail(self, state: SparseVectorState, train: float, noise: NoiseSource) -> tuple[SparseVectorState, Outcome]:
        """Charge a query that could not be computed; see `Mechanism.fail`."""
        refuse_if(self.refusal(state))
        threshold = self._threshold + noise.laplace(self._threshold_scale)
        after = SparseVectorState(threshold, state.hits + 1, state.asked + 1)
        return after, Outcome(train, "failed", state.hits, after.asked, interval=(0.0, 1.0))

    def refusal(self, state: SparseVectorState) -> BudgetExhausted | None:
        """Return the reason why no further query is allowed, or ``None``."""
        if state.hits >= self._budget:
            return BudgetExhausted("budget", state.hits, int(self._budget))
        if state.asked >= self._queries:
            return BudgetExhausted("queries", state.asked, int(self._queries))
        return None

    def restore(self, text: str) -> SparseVectorState:
        """Return the state from the text that `SparseVectorState.to_text` wrote."""
        return SparseVectorState.from_text(text)

    def remaining(self, state: SparseVectorState) -> int | None:
        """Return the number of further answers from the holdout, or ``None`` without a limit."""
        return None if self.parameters.budget is None else self.parameters.budget - state.hits

    def epsilon(self, n: int) -> float:
        """Bound the differential privacy of all answers together; see `interaction_epsilon`.

        Examples
        --------
        >>> mechanism = SparseVectorMechanism(SparseVectorParameters(0.04, 0.01, budget=10, queries=None))
        >>> round(mechanism.epsilon(10_000), 6)
        0.225
        """
        parameters = self.parameters
        return interaction_epsilon(n, parameters.noise_scale, parameters.budget, parameters.ratios)

    def noise_slack(self, n: int) -> float:
        """Bound the part of an answer's error that comes from rounding and the noise grid; see `noise_slack`."""
        return noise_slack(n, self.parameters.noise_scale)

    def _release(self, answer: int) -> float:
        """Clip a noisy mean to [0, 1] and round it to the answer grid, upwards from the middle."""
        one = self._one
        clipped = min(max(answer, 0), one)
        if self._intervals is None:
            return clipped / one
        return ((2 * clipped * self._intervals + one) // (2 * one)) / self._intervals


def interaction_epsilon(n: int, noise_scale: float, budget: int | None, ratios: NoiseRatios = ZHAO_RATIOS) -> float:
    """Bound the differential privacy of all answers of a `SparseVectorMechanism` together.

    Parameters
    ----------
    n : int
        Number of records.
    noise_scale : float
        sigma, the scale of the noise, in units of the range.
    budget : int or None
        B, the total number of answers from the holdout. If None, there is no limit, and epsilon is infinite.
    ratios : NoiseRatios, default (1.0, 2.0, 4.0)
        Scales of the three noises in units of sigma.

    Returns
    -------
    float
        epsilon in nats, under replacing one record; ``inf`` without a budget.

    Raises
    ------
    InputError
        If an argument is out of range.

    Notes
    -----
    It is ``B D (1/(a s) + 2/(b s) + 1/(c s))`` in exact arithmetic, rounded up, where s is the noise scale and D the
    sensitivity, both in steps of the noise grid, and a, b and c are the ratios. D contains the rounding to this grid
    and the floating-point error of the mean. So it is ``9 B / (4 n sigma)`` up to a relative ``n 2**-35`` or so.

    It holds however long the interaction is: queries that are answered by the training value cost nothing beyond the
    threshold. The proof is in PROOFS.md, "Privacy of the interaction"; the source is [Z17, Algorithm 1].

    Examples
    --------
    >>> interaction_epsilon(10_000, 0.01, 10) >= 9 * 10 / (4 * 10_000 * 0.01)
    True
    >>> interaction_epsilon(10_000, 0.01, None)
    inf
    """
    check_count("n", n)
    scale = _noise_scale(noise_scale)
    first, second, third = _scales(scale, _ratios(ratios))
    if budget is None:
        return math.inf
    step = Fraction(_resolution(scale))
    moved = integer_sensitivity(Fraction(1, n), mean_error(n), step)
    return round_up(check_count("budget", budget) * moved * (1 / first + 2 / second + 1 / third))


def noise_slack(n: int, noise_scale: float) -> float:
    """Bound the part of an answer's error that comes from the noise grid and from floating-point arithmetic.

    Parameters
    ----------
    n : int
        Number of records.
    noise_scale : float
        sigma, the scale of the noise, in units of the range.

    Returns
    -------
    float
        ``4 * resolution + mean_error(n) + 2**-52``, rounded up, in units of the range.

    Raises
    ------
    InputError
        If an argument is out of range.

    Notes
    -----
    Let L_s be continuous Laplace noise. The discrete noises can be coupled with continuous ones, keeping their
    independence, so that every discrete draw (in units of the range) exceeds its continuous one by at most one
    resolution, and every absolute value by at most half. So for answers of `SparseVectorMechanism`, and the mean q(X)
    of the records' values,

    * train answers: ``|answer - q(X)| <= T + max delta_j + max (-gamma_i) + slack``,
    * holdout answers: ``|answer - q(X)| <= |xi_j| + grid/2 + slack``

    with continuous delta, gamma, xi. The proof is in PROOFS.md, "Noise".

    Examples
    --------
    >>> noise_slack(10_000, 0.01) < 1.2e-12
    True
    """
    step = Fraction(_resolution(_noise_scale(noise_scale)))
    return round_up(4 * step + mean_error(n) + Fraction(1, 1 << 52))


def _resolution(noise_scale: float) -> float:
    return math.ldexp(1.0, math.frexp(noise_scale)[1] - 1 - _FINENESS)


def _scales(noise_scale: float, ratios: NoiseRatios) -> tuple[Fraction, Fraction, Fraction]:
    """Return the scales of the three noises in units of the resolution, exactly."""
    scale = Fraction(noise_scale) / Fraction(_resolution(noise_scale))
    return Fraction(ratios[0]) * scale, Fraction(ratios[1]) * scale, Fraction(ratios[2]) * scale


def _noise_scale(value: object) -> float:
    below = math.nextafter(_SMALLEST, 0.0)
    return check_number("noise_scale", value, below, _LARGEST, "a number between 1e-12 and 1e6")


def _ratios(ratios: NoiseRatios) -> NoiseRatios:
    below = math.nextafter(1 / 64, 0.0)
    expected = "three numbers between 1/64 and 64"
    return NoiseRatios(*(check_number("ratios", ratio, below, 64.0, expected) for ratio in ratios))


SPARSE_VECTOR: Final = Kind(
    name="sparse-vector",
    parameters=SparseVectorParameters,
    state=SparseVectorState,
    build=lambda parameters, n: SparseVectorMechanism(parameters),
    certify=lambda parameters, by: by.algorithm_1(parameters),
)
"""The entry of the catalogue."""
