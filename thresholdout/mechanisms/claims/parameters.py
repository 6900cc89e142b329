"""Public parameters of a guard that makes claims."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from thresholdout.data.arguments import check_count, check_number
from thresholdout.errors import InputError
from thresholdout.limits.group_sums import GroupSizes
from thresholdout.mechanisms.kind import Parameters

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["NORMAL_MISSES", "ClaimsParameters"]

NORMAL_MISSES: Final = "on the laws tried, single tests failed up to 4.9 times as often as their level says"
"""Simulated by benchmarks/normal_limits.py; docs/dependence.md has the table."""


@dataclass(frozen=True, slots=True)
class ClaimsParameters(Parameters):
    """Set the public parameters of `ClaimsMechanism`, the default mechanism of a guard.

    A guard computes them from its declaration, and `thresholdout.Claims` sets those that users choose.

    Parameters
    ----------
    confidence : float, default 0.95
        Probability with which no answer is wrong, in (0, 1).
    queries : int, optional
        Total number of queries. A declared number makes intervals a little narrower. If None, any number is allowed.
    budget : int, optional
        Number of queries that may be answered from the holdout. If None, any number is allowed.
    max_half_width : float, optional
        Largest allowed half-width of an answer, in units of the range. A query whose first claim would be wider is
        refused at no cost. Lists and final checks are not refused. If None, any width is allowed.
    noise : float, default 0.05
        Scale of the Laplace noise in the edges of a claim, in standard deviations of the holdout's value (rounded down
        to a power of two of the range; twice that in each test). 0 means no noise, the method "guess and check".
    effective : float, optional
        Effective sample size N of limits by relative entropy, for records that depend on each other and have such a
        number; None otherwise.
    inflation : float, default 1.0
        Variance inflation Lambda of the dependence between records, at least 1. Exactly 1, without N, stands for
        independent records, whose limits are exact binomial ones for values that are 0 or 1, and bets for others.
    n_train : float, optional
        Effective number of training records, which determines the likely distance of holdout and training values; None
        for as many as there are in the holdout.
    final_check : bool, default False
        Whether claims reserve most of the error budget for a final check.
    epsilon : float, optional
        Privacy loss of all answers together, under replacing one record, in nats; `noise` does not count then. None for
        noise that does not protect records.
    information_released : float, default 0.0
        Bound on the information, in nats, that evaluations before the guard released. The logarithm of the error budget
        starts lower by this number.
    sizes : tuple of (int, int), optional
        Sizes and numbers of independent groups, where records have groups; None otherwise.
    correlation : float, optional
        Correlation of values inside groups, where no training values show it; None for 0.5.
    allowance : float, optional
        Nats that the answers of one client may release together, in a leaderboard. The expected value is a guess there,
        and each answer is the cell of the value, see `thresholdout.mechanisms.claims.leaderboard`. No noise is drawn.
        None for a guard of one party, whose training values are honest.
    blocks : tuple of (int, int), optional
        Sizes and numbers of a series' alternating blocks, where a plan has their correlation; None otherwise.
    normal_limits : bool, default False
        Whether claims about groups are tested by normal limits, which are approximate, where public numbers allow.

    Raises
    ------
    InputError
        If a parameter is out of range, or does not suit another one.

    Examples
    --------
    >>> ClaimsParameters(queries=100).noise
    0.05
    """

    words: ClassVar[str] = (
        "The guard tests whether the value on the holdout is in an interval around the training value, which earlier "
        "answers may have corrected. If it is, the interval is the answer, at almost no cost. If it is not, the guard "
        "retries with a wider interval and spends part of the error budget that all answers share."
    )
    prices_releases: ClassVar[bool] = True
    tells_nats: ClassVar[bool] = True
    given_features: ClassVar[bool] = True
    withdraws: ClassVar[bool] = True
    pays_prior_queries: ClassVar[bool] = True
    omitted_when_unset: ClassVar[frozenset[str]] = frozenset(
        {
            "final_check",
            "epsilon",
            "information_released",
            "allowance",
            "sizes",
            "correlation",
            "blocks",
            "normal_limits",
        }
    )

    confidence: float = 0.95
    queries: int | None = None
    budget: int | None = None
    max_half_width: float | None = None
    noise: float = 0.05
    effective: float | None = None
    inflation: float = 1.0
    n_train: float | None = None
    final_check: bool = False
    epsilon: float | None = None
    information_released: float = 0.0
    allowance: float | None = None
    sizes: tuple[tuple[int, int], ...] | None = None
    correlation: float | None = None
    blocks: tuple[tuple[int, int], ...] | None = None
    normal_limits: bool = False

    def __post_init__(self) -> None:
        def fix(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        below = math.nextafter(1.0, 0.0)
        fix("confidence", check_number("confidence", self.confidence, 0.0, below, "a number in (0, 1)"))
        for name in ("queries", "budget"):
            value = getattr(self, name)
            fix(name, None if value is None else check_count(name, value))
        if self.max_half_width is not None:
            fix("max_half_width", check_number("max_half_width", self.max_half_width, 0.0, 1.0, "a number in (0, 1]"))
        zero = -math.ulp(0.0)
        fix(
            "information_released",
            check_number("information_released", self.information_released, zero, 1e9, "nats, from 0 to 1e9"),
        )
        fix("noise", check_number("noise", self.noise, zero, 16.0, "a number from 0 to 16"))
        for name in ("effective", "n_train"):
            value = getattr(self, name)
            if value is not None:
                fix(name, check_number(name, value, 0.0, 1e15, "a positive number of records"))
        if self.epsilon is not None:
            fix("epsilon", check_number("epsilon", self.epsilon, 0.0, 1e6, "a positive number"))
        if self.allowance is not None:
            fix("allowance", check_number("allowance", self.allowance, 0.0, 1e6, "a positive number of nats"))
            if self.noise or self.epsilon is not None or self.final_check or self.max_half_width is not None:
                expected = "None beside noise=, epsilon=, final_check= or max_half_width="
                raise InputError("allowance", f"{self.allowance:g}", expected, "A leaderboard has noise=0.")
        if self.normal_limits and (self.epsilon is not None or self.allowance is not None):
            raise InputError("limits", "'normal'", "'exact' beside epsilon= or an allowance")
        if self.correlation is not None:
            least = -math.ulp(0.0)
            fix("correlation", check_number("correlation", self.correlation, least, 1.0, "a number from 0 to 1"))
        for name in ("sizes", "blocks"):
            counts = getattr(self, name)
            if counts is not None:
                fix(name, tuple((check_count(name, size), check_count(name, count)) for size, count in counts))
        least = math.nextafter(1.0, 0.0)
        fix("inflation", check_number("inflation", self.inflation, least, 1e15, "a number of at least 1"))

    @property
    def independent(self) -> bool:
        """Whether the records are independent."""
        return self.effective is None and self.inflation == 1.0

    @property
    def anticipates(self) -> bool:
        """Whether the guard is a leaderboard, whose expected values are guesses of clients."""
        return self.allowance is not None

    @property
    def approximation(self) -> str:
        """The approximation of the intervals, in words. Empty if they are guaranteed."""
        if not self.normal_limits:
            return ""
        groups = sum(number for _, number in self.sizes or ())
        return f"normal limits from {groups:,} groups; {NORMAL_MISSES}"

    @property
    def takes_lists(self) -> bool:
        """Whether lists of queries are answered, which noise that protects single records does not allow."""
        return self.epsilon is None

    def summary(self, from_holdout: int, left: str, answered: bool) -> str:
        """Return a sentence with the number of answers from the holdout."""
        told = f"{from_holdout:,} {'was' if from_holdout == 1 else 'were'} answered from the holdout"
        others = "; the holdout confirmed the expected values of the others" if answered else ""
        return f"{told}{left}{others}."

    def for_records(self, model: DependenceModel, confidence: float) -> ClaimsParameters:
        """Return the parameters with the dependence of the records filled in.

        Parameters
        ----------
        model : graphs.DependenceModel
            Dependence model of the holdout.
        confidence : float
            Probability with which no answer is wrong.

        Returns
        -------
        ClaimsParameters
            Parameters with effective sample size, inflation and groups of the model.

        Raises
        ------
        InputError
            If normal limits were declared for a model without groups.

        Examples
        --------
        >>> from graphs import Groups
        >>> ClaimsParameters().for_records(Groups([0, 0, 1, 1]), 0.95).effective
        2.0
        """
        effective, groups = model.effective_records(), counts_of_groups(model)
        if self.normal_limits and groups is None:
            seen = f"'normal' for {model.describe()}"
            advice = "Normal limits are for groups= of several records each."
            raise InputError("limits", seen, "'exact' for records without groups", advice)
        return replace(
            self,
            confidence=confidence,
            effective=None if effective == model.n else effective,
            inflation=model.variance_inflation(),
            sizes=groups,
            blocks=None if self.correlation is None else _counts_of_blocks(model),
        )


def counts_of_groups(model: DependenceModel) -> tuple[tuple[int, int], ...] | None:
    """Return sizes and numbers of independent groups; ``None`` without groups of several records."""
    from graphs import Groups
    from graphs.models.law_free import GroupSizes as ModelOfSizes

    if not isinstance(model, (Groups, ModelOfSizes)) or model.effective_records() == model.n:
        return None
    sizes = model.independent_groups()
    return None if sizes is None else GroupSizes.of(sizes).counts


def _counts_of_blocks(model: DependenceModel) -> tuple[tuple[int, int], ...] | None:
    """Return sizes and numbers of alternating blocks; ``None`` without a series that has a window."""
    from graphs import Independent

    if isinstance(model, Independent):
        return None  # without the modules of other models
    from graphs import MovingWindow

    if type(model) is not MovingWindow or model.m == 0:
        return None
    return GroupSizes.of(np.bincount(model.alternating_blocks())).counts
