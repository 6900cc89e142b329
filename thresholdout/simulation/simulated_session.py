"""Sessions of one analyst with one mechanism and one data set: queries, answers and true values."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, SupportsFloat, TypeAlias

import numpy as np

from graphs.progress_bar import progress_bar
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.data.values import is_boolean
from thresholdout.errors import BudgetExhausted, InputError
from thresholdout.limits.rounded_intervals import larger_side
from thresholdout.mechanisms.base import Known, refuse_if
from thresholdout.mechanisms.catalogue import build_mechanism
from thresholdout.mechanisms.kind import Parameters
from thresholdout.noise.sources import NoiseSource

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from graphs import DependenceModel

__all__ = [
    "Analyst",
    "Answering",
    "Asking",
    "Exchange",
    "NaiveReuse",
    "Part",
    "Query",
    "Reply",
    "Session",
    "SimulatedGuard",
    "interview",
]


@dataclass(frozen=True)
class Part:
    """Records: one part of a data set. Columns of features are fastest to read in Fortran order."""

    features: NDArray[Any]
    labels: NDArray[Any]

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or self.labels.shape != self.features.shape[:1]:
            seen = f"features of shape {self.features.shape} and labels of shape {self.labels.shape}"
            raise InputError("labels", seen, "one label for each row of features")

    def __len__(self) -> int:
        return len(self.labels)


# Maps the records of a part to one value in [0, 1] for each; the query is about the mean.
Query: TypeAlias = "Callable[[Part], NDArray[Any]]"


@dataclass(frozen=True, slots=True)
class Reply:
    """The public part of an answer: its half-width is NaN if nothing was promised."""

    value: float
    half_width: float = math.nan
    source: Literal["train", "holdout", "failed", "unknown"] = "unknown"

    def __float__(self) -> float:
        return self.value


class Asking(Protocol):
    """A function that answers a query; a claim may replace its value on the training part."""

    def __call__(self, query: Query, claim: float | None = None) -> Reply:
        """Return the reply."""


class Analyst(Protocol):
    """An analyst sees the training part and the replies, never the holdout."""

    def run(self, ask: Asking, train: Part, rng: np.random.Generator) -> Query | None:
        """Query until done, and return the reported query, which came last; ``None`` when there is none."""


class Answering(Protocol):
    """A mechanism that answers queries, such as a guard.

    A result with attributes ``half_width`` and ``source`` (such as `thresholdout.Answer`) promises that half-width; a
    plain
    float promises nothing. `thresholdout.Thresholdout` conforms to this protocol.
    """

    def ask(self, train_values: Any, holdout_values: Any) -> SupportsFloat:
        """Answer from per-record values in [0, 1] of both parts; the first may be their mean, a number."""


class NaiveReuse:
    """Mechanism without protection: answer each query with its mean over the holdout.

    It is the baseline with which guards are compared in `interview` and `simulate`.

    Examples
    --------
    >>> NaiveReuse().ask([0, 1], [0, 1, 1, 1])
    0.75
    """

    def ask(self, train_values: ArrayLike, holdout_values: ArrayLike) -> float:
        """Return the mean of the holdout values.

        Parameters
        ----------
        train_values : array_like
            Values on the training part. They are not used.
        holdout_values : array_like
            One value for each holdout record.

        Returns
        -------
        float
            The mean of `holdout_values`.
        """
        return float(np.mean(np.asarray(holdout_values)))


class SimulatedGuard:
    """Guard without a ledger for simulations: a mechanism, its noise, and the half-widths of its certificate.

    A guard answers queries about a holdout within a certified half-width. This one is cheap to make, for simulations of
    many short sessions. It stores nothing and does not protect the holdout from other code in the process. Use
    `thresholdout.Thresholdout` for real data.

    Parameters
    ----------
    parameters : Parameters
        Public parameters of a mechanism, such as `thresholdout.mechanisms.SparseVectorParameters`, or the `parameters`
        of a plan that `thresholdout.plan` returns.
    model : graphs.DependenceModel
        The dependence model that the guard assumes for the holdout records.
    noise : NoiseSource
        Source of the noise, such as ``SeededNoise(seed)``.
    confidence : float, default 0.95
        Probability with which all half-widths hold at once under the model, in (0, 1).

    Attributes
    ----------
    certificate : Certificate
        Certificate of the answers under the model.

    Examples
    --------
    >>> from graphs import Independent
    >>> from thresholdout import SeededNoise, plan
    >>> guard = SimulatedGuard(plan(1000, queries=10).parameters, Independent(1000), SeededNoise(0))
    >>> reply = guard.ask(0.25, np.arange(1000) < 250)
    >>> reply.value, reply.source, round(reply.half_width, 2)
    (0.25, 'train', 0.06)
    """

    def __init__(
        self, parameters: Parameters, model: DependenceModel, noise: NoiseSource, confidence: float = 0.95
    ) -> None:
        self.certificate = certify_parameters(model, parameters, confidence)
        self._n = model.n
        self._mechanism = build_mechanism(parameters, model.n)
        self._noise = noise
        self._state = self._mechanism.start(noise)

    def renewed(self, noise: NoiseSource) -> SimulatedGuard:
        """Return a new guard with the same certificate and other noise.

        It is faster than a new `SimulatedGuard`, because the certificate is not computed again.

        Parameters
        ----------
        noise : NoiseSource
            Source of the noise of the new guard.

        Returns
        -------
        SimulatedGuard
            A guard before its first query.
        """
        other = object.__new__(SimulatedGuard)
        other.__dict__.update(self.__dict__, _noise=noise, _state=self._mechanism.start(noise))
        return other

    def ask(self, train_values: Any, holdout_values: Any) -> Reply:
        """Answer one query about the holdout.

        Parameters
        ----------
        train_values : array_like or float
            Values of the query on the training records, in [0, 1], or their mean.
        holdout_values : array_like
            Values of the query in [0, 1], one for each holdout record.

        Returns
        -------
        Reply
            Object with the answer ``value``, its ``half_width``, and its ``source``, "train" or "holdout".

        Raises
        ------
        BudgetExhausted
            If no further query is allowed, or if the answer would have a larger half-width than the `max_half_width` of
            the mechanism. A refused query costs nothing.
        InputError
            If values are missing or outside [0, 1].
        """
        train, known = _train_value(train_values, holdout_values)
        read = self._mechanism.read(holdout_values, self._n, (0.0, 1.0), "holdout_values", known)
        refuse_if(self._mechanism.refuses(self._state, train, known))
        self._state, outcome = self._mechanism.step(self._state, train, read, self._noise)
        source: Literal["train", "holdout"] = (
            "train" if outcome.source == "train" else "holdout"
        )  # no query fails here, and no other release is recorded
        interval = outcome.interval
        if interval is None:
            interval = self.certificate.interval(outcome.asked, outcome.hits, source, outcome.value)
        return Reply(outcome.value, larger_side(outcome.value, *interval), source)


def _train_value(values: Any, holdout_values: Any) -> tuple[float, Known]:
    """Return the mean of training values, and the known properties of the holdout's values, as a guard does."""
    numbers = np.asarray(values, dtype=np.float64)
    mean = float(numbers.mean())
    if numbers.ndim == 0:
        return mean, Known(binary=is_boolean(holdout_values))
    ends = bool(np.isin(numbers, (0.0, 1.0)).all())
    return mean, Known(None if ends else float(numbers.var()), ends)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One query and its answer, with the values that only the simulation knows.

    Notes
    -----
    `train` is the query's value on the training part, or the claim; `truth` is NaN when it is not known.
    """

    reply: Reply
    train: float
    holdout: float
    truth: float

    @property
    def error(self) -> float:
        """Distance of the answer from the true value."""
        return abs(self.reply.value - self.truth)

    @property
    def broken(self) -> bool:
        """Whether the distance exceeds the half-width; False when nothing was promised."""
        return self.error > self.reply.half_width


@dataclass
class Session:
    """Result of `interview`: all queries of an analyst to one mechanism, with values that only the simulation knows.

    `truth` is the true value of all queries, or a function of the query. `history` has the exchanges, `refused` is
    whether the budget was exhausted, and `reported` is the exchange whose answer the analyst reports, if any.
    """

    mechanism: Answering
    train: Part
    holdout: Part
    truth: float | Callable[[Query], float] = math.nan
    history: list[Exchange] = field(default_factory=list)
    refused: bool = False
    reported: Exchange | None = None

    def ask(self, query: Query, claim: float | None = None) -> Reply:
        """Pass a query on to the mechanism, and store it; see `Asking`."""
        train: Any = query(self.train) if claim is None else min(max(claim, 0.0), 1.0)
        holdout = query(self.holdout)
        answer = self.mechanism.ask(train, holdout)
        reply = Reply(float(answer), getattr(answer, "half_width", math.nan), getattr(answer, "source", "unknown"))
        truth = self.truth(query) if callable(self.truth) else self.truth
        self.history.append(Exchange(reply, float(np.mean(train)), float(np.mean(holdout)), truth))
        return reply

    @property
    def answered(self) -> int:
        """Number of answers."""
        return len(self.history)

    @property
    def broken(self) -> bool:
        """Whether some answer was farther from its true value than its half-width."""
        return any(exchange.broken for exchange in self.history)

    @property
    def largest_error(self) -> float:
        """The largest distance of an answer from its true value; 0 before the first."""
        return max((exchange.error for exchange in self.history), default=0.0)

    @property
    def promised(self) -> float:
        """The largest half-width among the answers; NaN when nothing was promised."""
        return max((exchange.reply.half_width for exchange in self.history), default=math.nan)

    def table(self) -> pd.DataFrame:
        """Return one row per query: answer, half_width, source, train, holdout, truth, error, broken."""
        import pandas as pd

        columns = ["answer", "half_width", "source", "train", "holdout", "truth", "error", "broken"]
        rows = [
            (x.reply.value, x.reply.half_width, x.reply.source, x.train, x.holdout, x.truth, x.error, x.broken)
            for x in self.history
        ]
        return pd.DataFrame(rows, columns=columns)


def interview(
    analyst: Analyst,
    mechanism: Answering,
    train: Part,
    holdout: Part,
    rng: np.random.Generator,
    truth: float | Callable[[Query], float] = math.nan,
) -> Session:
    """Let an analyst query a mechanism until the analyst is done or the budget of the mechanism is exhausted.

    An analyst chooses each query from the answers to earlier ones, such as `AggregationAnalyst`. A mechanism answers,
    such as `NaiveReuse`, `SimulatedGuard` or `thresholdout.Thresholdout`. `simulate` runs many such sessions and
    compares several mechanisms.

    Parameters
    ----------
    analyst : Analyst
        The analyst, an object with a method ``run(ask, train, rng)``.
    mechanism : Answering
        The mechanism that answers, an object with a method ``ask(train_values, holdout_values)``.
    train, holdout : Part
        The training part and the holdout, objects with arrays ``features`` of shape (n, d) and ``labels`` of shape
        (n,). The analyst sees the training part only.
    rng : numpy.random.Generator
        Source of randomness for the analyst.
    truth : float or callable, default nan
        The true value of each query: one number for all queries, or a function of the query. The default NaN stands for
        unknown true values.

    Returns
    -------
    Session
        All queries with their answers and true values, in ``history`` and ``table()``. ``answered`` is their number,
        and ``refused`` is True if the budget was exhausted. ``reported`` is the last query, if the analyst came to a
        conclusion, and None otherwise. ``largest_error`` is the largest distance of an answer from its true value.

    Examples
    --------
    >>> from thresholdout.simulation.analysts import AggregationAnalyst
    >>> coins = np.random.default_rng(0).random((800, 201)) < 0.5
    >>> train, holdout = (Part(coins[rows, 1:], coins[rows, 0]) for rows in (slice(400), slice(400, None)))
    >>> session = interview(AggregationAnalyst(), NaiveReuse(), train, holdout, np.random.default_rng(1), truth=0.5)
    >>> session.answered, session.reported.error > 0.1
    (201, True)
    """
    session = Session(mechanism, train, holdout, truth)
    try:
        with progress_bar(doing="interview", unit="queries") as bar:

            def ask(query: Query, claim: float | None = None) -> Reply:
                bar.update()
                return session.ask(query, claim)

            conclusion = analyst.run(ask, train, rng)
    except BudgetExhausted:
        session.refused = True
        return session
    if conclusion is not None and session.history:
        session.reported = session.history[-1]
    return session
