"""Gaussian guard: every question is answered with the holdout's mean and fresh Gaussian noise.

Round j, train value t, holdout mean h, both in units of the query's range::

    y = h + s_j g,   g standard normal, rounded to the answer grid and clipped to [0, 1]
    without a threshold:            answer y      (source: holdout)
    with one, and |y - t| <= T:     answer t      (source: train)
    with one, and |y - t| >  T:     answer y      (source: holdout)

The standard deviations ``s_1, s_2, ...`` are fixed in advance, or constant. Every question draws noise and spends
``1/(8 n s_j^2)`` of what the certificate allows, also one that is answered with the train value: the threshold is a
function of t and y, so it costs nothing and saves nothing; it gives answers without noise where train values are good.

What answers are worth is said by a certificate from the noise schedule alone, for independent records and independent
groups; PROOFS.md, "Gaussian guard: from the program to the theorem", says why it holds for this program.
"""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresholdout.data.arguments import as_float, check_count, check_number, check_unit
from thresholdout.data.parts.totals import Totals
from thresholdout.data.unit_sums import UnitSums
from thresholdout.data.values import ExactMean, record_rounding
from thresholdout.errors import BudgetExhausted, InputError, InputTypeError
from thresholdout.mechanisms.base import UNKNOWN, Known, Mechanism, Outcome, Past, refuse_if
from thresholdout.mechanisms.kind import Kind, Parameters
from thresholdout.mechanisms.rounding_costs import check_grid
from thresholdout.noise.sources import NoiseSource

__all__ = ["GAUSSIAN", "GaussianGuard", "GaussianParameters", "GaussianState", "NoiseSchedule"]

_SMALLEST, _LARGEST = 1e-9, 1e6
_MOST_STORED = 1 << 24  # answers of a schedule in a ledger; whatever reads one needs 8 bytes for each
_FINEST = 1 << 40  # steps of an answer without an answer grid
_FORMAT = "gaussian/1"
_SCALES = "numbers between 1e-9 and 1e6"


class NoiseSchedule:
    """Standard deviations of the noise in successive answers.

    Parameters
    ----------
    scales : float or array-like of shape (k,)
        One number for any number of answers, or ``s_1, ..., s_k`` for k answers, in units of the query's range; each
        between 1e-9 and 1e6.

    Attributes
    ----------
    limit : int or None
        k; ``None`` for one number.

    Raises
    ------
    InputError
        When a scale is out of range, or there is none.
    InputTypeError
        When they are not numbers.

    Examples
    --------
    >>> schedule = NoiseSchedule([0.03, 0.02, 0.02])
    >>> schedule.limit, schedule.scale(2)
    (3, 0.02)
    >>> NoiseSchedule.from_json(schedule.to_json()) == schedule
    True
    >>> NoiseSchedule(0.01)
    NoiseSchedule(0.01)
    """

    __slots__ = ("_scales", "limit")

    def __init__(self, scales: float | ArrayLike) -> None:
        try:
            array = np.array(scales, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputTypeError("scales", repr(scales), f"one number or a list of {_SCALES}") from None
        if isinstance(scales, (bool, str)) or array.ndim > 1 or array.size == 0:
            raise InputError("scales", f"an array of shape {array.shape}", f"one number or a list of {_SCALES}")
        good = (array >= _SMALLEST) & (array <= _LARGEST)
        if not good.all():
            raise InputError("scales", repr(float(array[~good].flat[0])), _SCALES)
        array.flags.writeable = False
        self._scales: NDArray[np.float64] = array
        self.limit = array.size if array.ndim else None

    def scale(self, answer: int) -> float:
        """Return ``s_j`` for answer j, counted from 1."""
        return float(self._scales) if self.limit is None else float(self._scales[answer - 1])

    def scales(self, answers: int) -> NDArray[np.float64]:
        """Return ``s_1, ..., s_j`` for the first answers, read-only."""
        return np.broadcast_to(self._scales, answers) if self.limit is None else self._scales[:answers]

    def to_json(self) -> dict[str, Any]:
        """Return the schedule for the parameters of a ledger: the same floats on every platform.

        Lists are stored as the differences of differences of their bit patterns, packed: a slowly changing schedule
        takes a few bytes an answer or less.

        Raises
        ------
        InputError
            When the list is longer than a ledger keeps.
        """
        if self.limit is None:
            return {"constant": float(self._scales)}
        if self.limit > _MOST_STORED:
            expected = f"at most {_MOST_STORED:,}, or one number for all answers, such as NoiseSchedule(0.01)"
            raise InputError("schedule", f"a list for {self.limit:,} answers", expected)
        patterns = self._scales.view(np.int64)
        seconds = np.diff(patterns, n=2, prepend=np.zeros(2, dtype=np.int64)).astype("<i8")
        shuffled = seconds.view(np.uint8).reshape(-1, 8).T.tobytes()
        return {"packed": base64.b64encode(zlib.compress(shuffled, 9)).decode(), "answers": self.limit}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> NoiseSchedule:
        """Read what `to_json` returned.

        Raises
        ------
        InputError
            When it is something else.
        """
        try:
            if "constant" in stored:
                return cls(float(stored["constant"]))
            answers = stored["answers"]
            if type(answers) is not int or not 0 < answers <= _MOST_STORED:
                raise ValueError
            packed = base64.b64decode(stored["packed"])
            shuffled = np.frombuffer(zlib.decompressobj().decompress(packed, 8 * answers + 1), dtype=np.uint8)
            seconds = np.ascontiguousarray(shuffled.reshape(8, answers).T).view("<i8").ravel()
            patterns = np.cumsum(np.cumsum(seconds.astype(np.int64)))
            return cls(patterns.view(np.float64))
        except (KeyError, TypeError, ValueError, binascii.Error, zlib.error):
            raise InputError("schedule", "a value of another form", "what a noise schedule wrote") from None

    def describe(self) -> str:
        """Say how much noise there is.

        Examples
        --------
        >>> NoiseSchedule([0.03, 0.02]).describe()
        'noise of standard deviation 0.03 on answer 1, 0.02 on answer 2, for values in [0, 1]'
        """
        first = f"noise of standard deviation {self.scale(1):.3g} on "
        if self.limit is None:
            return f"{first}every answer, for values in [0, 1]"
        return f"{first}answer 1, {self.scale(self.limit):.3g} on answer {self.limit}, for values in [0, 1]"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NoiseSchedule):
            return NotImplemented
        return self.limit == other.limit and bool(np.array_equal(self._scales, other._scales))

    def __hash__(self) -> int:
        return hash((self.limit, self._scales.tobytes()))

    def __repr__(self) -> str:
        if self.limit is None:
            return f"NoiseSchedule({float(self._scales)})"
        return f"<NoiseSchedule of {self.limit} answers, {self._scales[0]:.4g} to {self._scales[-1]:.4g}>"


@dataclass(frozen=True, slots=True)
class GaussianParameters(Parameters):
    """Public parameters of `GaussianGuard`, in units of the query's range.

    Parameters
    ----------
    schedule : NoiseSchedule, float or array-like
        Standard deviations of the noise; see `NoiseSchedule`.
    queries : int or None
        k: questions in all, at most as many as the schedule has. ``None`` for as many as it has, which may be any
        number.
    threshold : float or None
        T: the train value is the answer when it is within T of the noisy mean. Positive; ``None`` for no threshold.
    grid : float or None
        Step of the answer grid: 1/(K-1) for an integer K from 2 to 2**30 + 1. ``None`` for 2**-40.
    expected : float or None
        Near which value the answers are likely to be, in [0, 1]: the certificate spends its probability of failure so
        that intervals are narrow there. It holds for all answers. ``None`` for narrow ones wherever they are.
    shares : tuple of float or None
        On which events the certificate rests: the share of the probability of failure that the noise has, and one or
        more b (PROOFS.md, G1). ``None`` to look for good ones; a guard keeps those that it began with in its ledger,
        so that all its answers hold at once whatever a later version would find.

    Raises
    ------
    InputError
        When a parameter is out of range.
    InputTypeError
        When a parameter is not a number of its kind.

    Examples
    --------
    >>> parameters = GaussianParameters([0.03, 0.02, 0.02], grid=0.001)
    >>> parameters.queries, parameters.intervals
    (3, 1000)
    """

    words: ClassVar[str] = "Every question is answered from the holdout, with Gaussian noise."
    given_features: ClassVar[bool] = True
    later: ClassVar[frozenset[str]] = frozenset({"expected", "shares"})

    schedule: NoiseSchedule
    queries: int | None = None
    threshold: float | None = None
    grid: float | None = None
    expected: float | None = None
    shares: tuple[float, ...] | None = None

    def __init__(
        self,
        schedule: NoiseSchedule | float | ArrayLike,
        queries: int | None = None,
        threshold: float | None = None,
        grid: float | None = None,
        expected: float | None = None,
        shares: Sequence[float] | None = None,
    ) -> None:
        def fix(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        chosen = schedule if isinstance(schedule, NoiseSchedule) else NoiseSchedule(schedule)
        limit = chosen.limit if queries is None else check_count("queries", queries)
        if limit is not None and chosen.limit is not None and limit > chosen.limit:
            raise InputError("queries", limit, f"at most {chosen.limit}, as many as the schedule has scales")
        fix("schedule", chosen)
        fix("queries", limit)
        wanted = "a positive number up to 1e6"
        fix("threshold", None if threshold is None else check_number("threshold", threshold, 0.0, _LARGEST, wanted))
        fix("grid", None if grid is None else 1.0 / check_grid(grid))
        fix("expected", None if expected is None else _check_expected(expected))
        fix("shares", None if shares is None else _check_shares(shares))

    @property
    def alike(self) -> bool:
        """Whether all answers have the same noise, so that they can be compared with each other."""
        scales = self.schedule.scales(self.queries or self.schedule.limit or 1)
        return bool(np.all(scales == scales[0]))

    @property
    def wording(self) -> Mapping[str, str]:
        """The noise, which a ledger keeps packed, in words."""
        return {"schedule": self.schedule.describe()}

    def check_tells_each(self) -> None:
        """Refuse noise that changes from answer to answer.

        Examples
        --------
        >>> GaussianParameters([0.03, 0.02]).check_tells_each()
        Traceback (most recent call last):
        thresholdout.errors.InputError: guard: Gaussian noise of 0.03 to 0.02, with which early candidates would win...
        """
        if not self.alike:
            first, last = self.schedule.scale(1), self.schedule.scale(self.schedule.limit or 1)
            seen = (
                f"Gaussian noise of {first:.3g} to {last:.3g}, with which early candidates would win too often or too "
                "rarely"
            )
            wanted = "the same noise on all answers: mechanism='gaussian', or GaussianParameters with one number"
            raise InputError("guard", seen, wanted)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> GaussianParameters:
        """Return the parameters that `to_json` wrote."""
        values = dict(stored)
        if "schedule" in values:
            values["schedule"] = NoiseSchedule.from_json(values["schedule"])
        return cls(**values)

    @property
    def intervals(self) -> int:
        """Steps of the answer grid from 0 to 1: K - 1, or 2**40 without a grid."""
        return _FINEST if self.grid is None else check_grid(self.grid)


def _check_expected(expected: object) -> float:
    """Return a likely value of answers."""
    wanted = "a number in [0, 1], in units of the range"
    value = as_float(expected)
    if value is None:
        raise InputTypeError("expected", repr(expected), wanted)
    if not 0.0 <= value <= 1.0:
        raise InputError("expected", expected, wanted)
    return value


def _check_shares(shares: Sequence[float]) -> tuple[float, ...]:
    """Return the share of beta of the noise, and one or more b."""
    wanted = "a share in (0, 1), and one or more positive numbers"
    try:
        share, *stretches = map(float, shares)
    except (TypeError, ValueError):
        raise InputTypeError("shares", repr(shares), wanted) from None
    if not (0.0 < share < 1.0 and stretches and all(0.0 < stretch < math.inf for stretch in stretches)):
        raise InputError("shares", repr(shares), wanted)
    return share, *stretches


@dataclass(frozen=True, slots=True)
class GaussianState:
    """State of `GaussianGuard`; nothing in it is secret.

    Attributes
    ----------
    asked : int
        Questions so far, each of which drew noise.
    hits : int
        Answers with source "holdout" so far.

    Examples
    --------
    >>> GaussianState.from_text(GaussianState(asked=7, hits=2).to_text())
    GaussianState(asked=7, hits=2)
    """

    asked: int
    hits: int

    def agrees(self, past: Past) -> bool:
        """Whether the counts are those of a history; see `MechanismState.agrees`."""
        return (self.asked, self.hits) == (past.asked, past.charged)

    def to_text(self) -> str:
        """Return the state as one line of text, for a ledger."""
        return f"{_FORMAT} {self.asked} {self.hits}"

    @classmethod
    def from_text(cls, text: str) -> GaussianState:
        """Read what `to_text` wrote.

        Raises
        ------
        InputError
            When the text is something else.
        """
        try:
            tag, *words = text.split(" ")
            asked, hits = map(int, words)
            if tag != _FORMAT or not 0 <= hits <= asked:
                raise ValueError
        except ValueError:
            raise InputError("state", "a text of another form", f"what a {_FORMAT} state wrote") from None
        return cls(asked, hits)


class GaussianGuard(Mechanism[GaussianState, ExactMean]):
    """Every question answered with exact rounded Gaussian noise, with or without a threshold in front.

    Parameters
    ----------
    parameters : GaussianParameters
        Noise schedule, number of questions, threshold, answer grid.

    Attributes
    ----------
    parameters : GaussianParameters
        As given.

    Notes
    -----
    *Guarantee.* For independent records, or independent groups of them, the error of every answer is bounded from the
    noise schedule alone, for all answers at once and every adaptive analyst; the posterior mean of *every* query stays
    within D(x_t) of its truth, ``x_t = sum_{j<=t} 1/(8 n s_j^2)``. The theorem needs the answered query to be exactly a
    mean of numbers in [0, 1], one for each record, and the noise to be exactly Gaussian: values are rounded to a grid
    on which sums are exact (`thresholdout.data.unit_sums.UnitSums`), and what is drawn is the rounded value of ``h + s
    g``, not a discrete noise on a rounded h. PROOFS.md, "Gaussian guard: from the program to the theorem".

    There is no finite epsilon, and no certificate for dependence beyond groups and mixtures of groups.

    Examples
    --------
    >>> from thresholdout.noise.sources import SeededNoise
    >>> mechanism = GaussianGuard(GaussianParameters(0.01, queries=2, grid=0.001))
    >>> noise = SeededNoise(0)
    >>> values = mechanism.read([0, 1, 1, 1], 4, (0, 1), "holdout_values")
    >>> state, outcome = mechanism.step(mechanism.start(noise), 0.5, values, noise)
    >>> outcome.source, abs(outcome.value - 0.75) < 0.05, state
    ('holdout', True, GaussianState(asked=1, hits=1))
    """

    name: ClassVar[str] = "gaussian"
    from_totals: ClassVar[bool] = True

    def __init__(self, parameters: GaussianParameters) -> None:
        self.parameters = parameters
        self._intervals = parameters.intervals
        self._queries = math.inf if parameters.queries is None else parameters.queries

    def start(self, noise: NoiseSource) -> GaussianState:
        """Return the state before the first question; nothing is drawn."""
        return GaussianState(0, 0)

    def read(
        self, values: object, n: int, bounds: tuple[float, float], argument: str, known: Known = UNKNOWN
    ) -> ExactMean:
        """Check per-record values and return their exact mean; see `thresholdout.data.unit_sums.UnitSums`."""
        return values.mean if isinstance(values, Totals) else UnitSums(values, n, bounds, argument).mean

    def step(
        self, state: GaussianState, train: float, holdout: ExactMean, noise: NoiseSource
    ) -> tuple[GaussianState, Outcome]:
        """Answer one query; see `Mechanism.step`."""
        refuse_if(self.refusal(state))
        check_unit("train", train)
        asked, intervals = state.asked + 1, self._intervals
        centre = Fraction(holdout.total * intervals, holdout.n << holdout.bits)
        noisy = noise.rounded_gaussian(centre, Fraction(self.parameters.schedule.scale(asked)) * intervals)
        value = min(max(noisy, 0), intervals) / intervals
        threshold = self.parameters.threshold
        if threshold is not None and abs(value - train) <= threshold:
            return GaussianState(asked, state.hits), Outcome(train, "train", state.hits, asked)
        return GaussianState(asked, state.hits + 1), Outcome(value, "holdout", state.hits, asked)

    def fail(self, state: GaussianState, train: float, noise: NoiseSource) -> tuple[GaussianState, Outcome]:
        """Charge a question that could not be computed; see `Mechanism.fail`."""
        refuse_if(self.refusal(state))
        after = GaussianState(state.asked + 1, state.hits + 1)
        return after, Outcome(train, "failed", state.hits, after.asked, interval=(0.0, 1.0))

    def refusal(self, state: GaussianState) -> BudgetExhausted | None:
        """Return why no further query is allowed, or ``None``."""
        if state.asked >= self._queries:
            return BudgetExhausted("queries", state.asked, int(self._queries))
        return None

    def restore(self, text: str) -> GaussianState:
        """Return the state that `GaussianState.to_text` wrote."""
        return GaussianState.from_text(text)

    def remaining(self, state: GaussianState) -> int | None:
        """Return how many questions are left: each of them draws noise."""
        return None if self.parameters.queries is None else self.parameters.queries - state.asked

    def noise_slack(self, n: int) -> float:
        """Bound what rounding values to the grid of records, and answers without an answer grid, adds to an error.

        Examples
        --------
        >>> GaussianGuard(GaussianParameters(0.01)).noise_slack(1000) < 1e-12
        True
        """
        unseen = 0.0 if self.parameters.grid is not None else 0.5 / _FINEST
        return (record_rounding(n) + unseen + 2.0**-51) * (1.0 + 2.0**-50)


GAUSSIAN: Final = Kind(
    name=GaussianGuard.name,
    parameters=GaussianParameters,
    state=GaussianState,
    build=lambda parameters, n, labels: GaussianGuard(parameters),
    certify=lambda parameters, by: by.gaussian(parameters),
    suited=lambda parameters, by: by.gaussian_shares(parameters),
)
"""The mechanism as others see it."""
