"""Scores of a holdout from before its guard was made, and the information that they released."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from graphs.numerics.rounding import shown_above, shown_below
from thresholdout.data.arguments import as_float, check_count
from thresholdout.errors import InputError, InputTypeError

__all__ = ["PriorQueries", "check_prior_queries", "confidence_after"]

_FOUR_DECIMALS: Final = 10_001  # values of a score in [0, 1] with four decimals
_LEAST: Final = 1e-12  # remaining probability of error; confidences are known to 1e-16
_ROUNDING: Final = 1e-15  # absolute: 1 - confidence is exact to 1e-16
_MOST: Final = 1e6  # nats; no holdout can answer after as many
_EXPECTED: Final = "the number of earlier scores of this holdout, or PriorQueries(10, values=301)"


@dataclass(frozen=True, slots=True)
class PriorQueries:
    """Declare scores of a holdout that were seen before its guard was made, for ``prior_queries=``.

    Such scores may have influenced the models, so the guard charges them to its error budget at the start. Count all of
    them, also those of models that were dropped.

    Parameters
    ----------
    number : int
        Largest possible number of scores.
    values : int, optional
        Largest possible number of values of each score: 301 for an accuracy on 300 records, 1,001 for a score in [0, 1]
        that was read to three decimals, 20 for the best of 20 candidates or a place on a leaderboard of 20. If None,
        the scores are in [0, 1], and each is a share of the records (an accuracy) or was read to at most four decimals:
        the number of records plus one, or 10,001 if that is more.

    Raises
    ------
    InputError
        If a number is not an integer of at least 1.

    Notes
    -----
    The answers are as wide as those of a guard whose probability of error is divided by ``values ** number``, the
    number of possible outcomes of the scores. Each score may have been chosen in view of earlier ones, and so may their
    number (PROOFS.md, "Prior queries"). Count other information from the records too: a round at which training stopped
    on them, a plot, a list of the records that a model got wrong.

    Examples
    --------
    >>> PriorQueries(10).nats(300), PriorQueries(10, values=301).nats(300)
    (92.1..., 57.0...)
    """

    number: int
    values: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", check_count("prior_queries", self.number))
        if self.values is not None:
            object.__setattr__(self, "values", check_count("values", self.values))

    def counted(self, n: int) -> PriorQueries:
        """Return an equal object in which `values` is filled in for scores of `n` records."""
        return self if self.values is not None else replace(self, values=max(n + 1, _FOUR_DECIMALS))

    def nats(self, n: int) -> float:
        """Return the information that the scores can have released, rounded up.

        It is the logarithm of the number of possible outcomes of all scores.

        Parameters
        ----------
        n : int
            Number of records in the holdout.

        Returns
        -------
        float
            Upper bound on the information released, in nats.

        Raises
        ------
        InputError
            If it is above a million nats.
        """
        values = self.counted(n).values
        assert values is not None
        released = self.number * math.log(values) * (1.0 + 1e-12)
        if released > _MOST:
            seen = f"{self.number:,} scores, which may have released {shown_above(released)} nats"
            expected = f"scores that released at most {_MOST:,.0f} nats"
            raise InputError("prior_queries", seen, expected, "This holdout is exhausted: take a new one.")
        return released

    @property
    def words(self) -> str:
        """The scores in words, to be read after "before the guard was made,"."""
        times = "one score" if self.number == 1 else f"{self.number:,} scores"
        of = "" if self.values is None else f", of {self.values:,} possible values each"
        return f"at most {times} of these records had been seen{of}"


def check_prior_queries(given: object) -> PriorQueries | None:
    """Return queries before a guard, given as their number or with their numbers of values; ``None`` for none."""
    if given is None or isinstance(given, PriorQueries):
        return given
    number = as_float(given)
    if number is None:
        raise InputTypeError("prior_queries", f"a {type(given).__name__}", _EXPECTED)
    if number == 0.0:
        return None
    try:
        return PriorQueries(given)  # type: ignore[arg-type]
    except InputError:
        raise InputError("prior_queries", given, _EXPECTED) from None


def confidence_after(prior: PriorQueries | None, n: int, confidence: float) -> float:
    """Return the confidence that the guard's own answers need after prior queries, rounded up."""
    if prior is None:
        return confidence
    left = (1.0 - confidence) * math.exp(-prior.nats(n)) * (1.0 - 1e-12) - _ROUNDING
    if left < _LEAST:
        seen = f"{prior!r}, which leaves {shown_below(max(0.0, left), 1)}"
        expected = f"few enough to leave {_LEAST:g} of the probability of error"
        raise InputError("prior_queries", seen, expected, "mechanism='claims' takes any number of prior queries.")
    return 1.0 - left
