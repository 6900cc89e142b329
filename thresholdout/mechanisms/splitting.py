"""Splitting: a fresh part of the records for every question.

Nothing adapts to a part that is used once, so no noise is needed and nothing has to be kept secret afterwards. With few
records per question this is the honest answer, and with more it is what a guard has to beat.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphs.numerics.rounding import ULP
from thresholdout.data.arguments import check_count, check_unit
from thresholdout.data.values import record_rounding
from thresholdout.errors import BudgetExhausted, InputError
from thresholdout.mechanisms.base import UNKNOWN, Known, Mechanism, Outcome, Past, refuse_if
from thresholdout.mechanisms.claims.reading import Reading, read_values
from thresholdout.mechanisms.kind import Kind, Parameters
from thresholdout.mechanisms.record_parts import equal_groups, shuffled
from thresholdout.noise.sources import NoiseSource

__all__ = ["SPLITTING", "Splitting", "SplittingParameters", "SplittingState"]

_FORMAT = "splitting/1"


@dataclass(frozen=True, slots=True)
class SplittingParameters(Parameters):
    """Public parameters of `Splitting`.

    Parameters
    ----------
    queries : int
        k: questions in all, each with a part of its own.

    Raises
    ------
    InputError
        When there is no question.
    InputTypeError
        When it is not an integer.
    """

    words: ClassVar[str] = (
        "Every question is answered from a part of the holdout that no other question has seen; its records were "
        "declared to have one law."
    )
    from_parts: ClassVar[bool] = True

    queries: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", check_count("queries", self.queries))


@dataclass(frozen=True, slots=True)
class SplittingState:
    """State of `Splitting`; nothing in it is secret.

    Attributes
    ----------
    asked : int
        Questions so far, hence parts that are used up.

    Examples
    --------
    >>> SplittingState.from_text(SplittingState(asked=3).to_text())
    SplittingState(asked=3)
    """

    asked: int

    def agrees(self, past: Past) -> bool:
        """Whether the counts are those of a history; see `MechanismState.agrees`."""
        return self.asked == past.asked

    def to_text(self) -> str:
        """Return the state as one line of text, for a ledger."""
        return f"{_FORMAT} {self.asked}"

    @classmethod
    def from_text(cls, text: str) -> SplittingState:
        """Read what `to_text` wrote.

        Raises
        ------
        InputError
            When the text is something else.
        """
        try:
            tag, word = text.split(" ")
            asked = int(word)
            if tag != _FORMAT or asked < 0:
                raise ValueError
        except ValueError:
            raise InputError("state", "a text of another form", f"what a {_FORMAT} state wrote") from None
        return cls(asked)


class Splitting(Mechanism[SplittingState, Reading]):
    """The mean of a fresh part of the records.

    Parameters
    ----------
    parameters : SplittingParameters
        Number of questions.
    n : int
        Number of records.
    labels : array-like of shape (n,), optional
        Groups of the records, all of one size: arbitrary dependence inside a group, none across. Groups go to parts
        whole.

    Attributes
    ----------
    parameters : SplittingParameters
        As given.

    Raises
    ------
    InputError
        When there are fewer records, or groups, than questions, or groups of different sizes.

    Notes
    -----
    *Guarantee.* Question j is a function of answers about other records, so it is fixed as far as its own part is
    concerned, and limits for one fixed question with a k-th of the failure probability hold for all:
    `thresholdout.certificates.split_records.SplittingWidths`; PROOFS.md, "Splitting". It is about the mean over the
    part. It is about the holdout only if all records (or groups) have one law and every question is the same function
    of each: which records are in which part is public, and a question that knows a record's number can be true of its
    own part alone.

    Values that are 0 or 1, by the metric, by declaration or by the training values, have exact binomial limits; a value
    of theirs that is in between becomes a coin with that mean.

    Single records: every part has ``floor(n/k)`` of them, in a fixed order that looks random. Groups are dealt out in
    turn, in such an order.

    Examples
    --------
    >>> from thresholdout.noise.sources import SeededNoise
    >>> mechanism, noise = Splitting(SplittingParameters(10), n=1000), SeededNoise(0)
    >>> values = mechanism.read([True] * 1000, 1000, (0, 1), "holdout_values")
    >>> mechanism.step(mechanism.start(noise), 0.5, values, noise)[1].value
    1.0
    """

    name: ClassVar[str] = "splitting"

    def __init__(self, parameters: SplittingParameters, n: int, labels: ArrayLike | None = None) -> None:
        self.parameters = parameters
        self._n = check_count("n", n)
        groups = None if labels is None else equal_groups(labels, n)
        most = n if groups is None else int(groups.max()) + 1
        if parameters.queries > most:
            things = "records" if groups is None else "independent groups"
            raise InputError("queries", parameters.queries, f"at most {most}, as many as there are {things}")
        self._alone = groups is None
        self._parts = _single(n, parameters.queries) if groups is None else _dealt(groups, parameters.queries)

    def start(self, noise: NoiseSource) -> SplittingState:
        """Return the state before the first question; nothing is drawn."""
        return SplittingState(0)

    def read(
        self, values: object, n: int, bounds: tuple[float, float], argument: str, known: Known = UNKNOWN
    ) -> Reading:
        """Check per-record values and keep them, rounded to the grid on which their sums are exact."""
        return read_values(values, n, bounds, argument, known)

    def step(
        self, state: SplittingState, train: float, holdout: Reading, noise: NoiseSource
    ) -> tuple[SplittingState, Outcome]:
        """Answer one query from its own part; see `Mechanism.step`. The train value is not used."""
        refuse_if(self.refusal(state))
        check_unit("train", train)
        if len(holdout.records) != self._n:
            raise InputError("holdout", f"{len(holdout.records)} records", f"{self._n}, as declared")
        part = Reading(holdout.records.part(self._parts[state.asked]), holdout.known)
        if holdout.known.binary and self._alone:
            value = part.count(noise) / len(part.records)
        else:
            value = part.records.exact_mean().mean()
        return SplittingState(state.asked + 1), Outcome(value, "holdout", state.asked, state.asked + 1)

    def fail(self, state: SplittingState, train: float, noise: NoiseSource) -> tuple[SplittingState, Outcome]:
        """Charge a question that could not be computed; see `Mechanism.fail`."""
        refuse_if(self.refusal(state))
        after = SplittingState(state.asked + 1)
        return after, Outcome(train, "failed", state.asked, after.asked, interval=(0.0, 1.0))

    def refusal(self, state: SplittingState) -> BudgetExhausted | None:
        """Return why no further query is allowed, or ``None``."""
        queries = self.parameters.queries
        return BudgetExhausted("queries", state.asked, queries) if state.asked >= queries else None

    def restore(self, text: str) -> SplittingState:
        """Return the state that `SplittingState.to_text` wrote."""
        return SplittingState.from_text(text)

    def remaining(self, state: SplittingState) -> int | None:
        """Return how many parts are left."""
        return self.parameters.queries - state.asked

    def noise_slack(self, n: int) -> float:
        """Bound what rounding values to the grid of records adds to an error."""
        return record_rounding(n) + ULP


def _single(n: int, queries: int) -> list[NDArray[np.intp]]:
    size = n // queries
    return list(shuffled(n)[: size * queries].reshape(queries, size))


def _dealt(groups: NDArray[np.intp], queries: int) -> list[NDArray[np.intp]]:
    """Deal groups out in turn, in a fixed order that looks random."""
    order = shuffled(int(groups.max()) + 1)
    owner = np.empty(order.size, dtype=np.intp)
    owner[order] = np.arange(order.size) % queries
    owners = owner[groups]
    records = np.argsort(owners, kind="stable")
    return np.split(records, np.cumsum(np.bincount(owners, minlength=queries))[:-1])


SPLITTING: Final = Kind(
    name=Splitting.name,
    parameters=SplittingParameters,
    state=SplittingState,
    build=Splitting,
    certify=lambda parameters, by: by.parts(parameters.queries),
)
"""The mechanism as others see it."""
