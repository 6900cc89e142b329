"""The state of a guard in one value: queries, answers and error budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from graphs.errors import amount
from graphs.numerics.rounding import shown_above
from thresholdout.mechanisms.claims.lists import NOTHING

if TYPE_CHECKING:
    from thresholdout.certificates import Certificate
    from thresholdout.mechanisms import Mechanism

__all__ = ["GuardStatus", "status_of"]


_EXHAUSTED: Final = {
    "queries": "all queries used",
    "error_budget": "error budget exhausted",
    "final_check": "closed by the final check",
    "epsilon": "epsilon exhausted",
}


@dataclass(frozen=True, slots=True)
class GuardStatus:
    """Result of `Thresholdout.status`: how much of a guard's budgets is used. Nothing in it is secret.

    A guard answers queries until one of its limits is reached: the error budget that all answers share, the declared
    number of queries, or the declared number of answers from the holdout.

    Attributes
    ----------
    asked : int
        Number of queries so far.
    answers_left : int or None
        Number of answers from the holdout that are left; ``None`` if no limit was declared.
    error_budget_left : float or None
        Remaining probability of error, between 0 and 1 - confidence; ``None`` if the mechanism has no error budget.
    information_released : float or None
        Largest information that the answers so far can have released, in nats: the logarithm of the ratio of initial
        to remaining error budget. Infinite if nothing is left, as after `Thresholdout.final_check`.
    epsilon : float or None
        Privacy loss of all answers together if one record is replaced, in nats; ``None`` if the mechanism does not
        bound it. Infinite after a query has failed on the holdout, since a failure shows without noise.
    bayesian_epsilon : float or None
        Bayesian privacy loss: that of a record with all records that depend on it, under the declared dependence.
    exhausted : {"budget", "queries", "error_budget", "final_check", "epsilon"} or None
        The limit that is reached, so that no new query is answered (see `BudgetExhausted`); ``None`` if none is.
    approximation : str
        How intervals and the error budget are approximate, in words. Empty if they are guaranteed.

    Examples
    --------
    >>> import numpy as np
    >>> from thresholdout import Claims, Thresholdout
    >>> guard = Thresholdout(np.arange(1000.0), queries=10, mechanism=Claims(holdout_answers=2))
    >>> guard.status.asked, guard.status.answers_left, guard.status.exhausted
    (0, 2, None)
    """

    asked: int
    answers_left: int | None
    error_budget_left: float | None
    information_released: float | None
    epsilon: float | None
    bayesian_epsilon: float | None
    exhausted: Literal["budget", "queries", "error_budget", "final_check", "epsilon"] | None
    approximation: str
    _mechanism: Mechanism[Any, Any] = field(repr=False, compare=False)
    _log_risk: float | None = field(repr=False, compare=False)
    _chosen: bool = field(repr=False, compare=False)

    def line(self, part: str = "holdout") -> str:
        """Return one line with the number of answers that are left, or the limit that is reached, and the privacy."""
        left = "any number of answers" if self.answers_left is None else amount(self.answers_left, "answer")
        said = _EXHAUSTED.get(self.exhausted or "", f"{left} from the {part} left")
        approximate = f"; approximate: {self.approximation}" if self.approximation else ""
        return f"{said}{self._privacy}{approximate}"

    @property
    def _privacy(self) -> str:
        """Both epsilons in words; empty if the mechanism bounds none."""
        if self.epsilon is None or self.bayesian_epsilon is None:
            return ""
        one = f"; epsilon {shown_above(self.epsilon)}"
        if self.bayesian_epsilon <= self.epsilon:
            return f"{one} for all answers"
        return f"{one} per record and {shown_above(self.bayesian_epsilon)} with dependants for all answers"

    def final_half_width(self, score: float) -> float:
        """Return the half-width that `Thresholdout.final_check` would have now.

        Parameters
        ----------
        score : float
            Anticipated share of correct predictions, in (0, 1).

        Returns
        -------
        float
            Half-width with the error budget that is left now. ``certificate.final.half_width(score)`` is the half-width
            to expect if every earlier interval is accepted at once.
        """
        mechanism = self._mechanism.shares_error_budget("a final check", "Or send one query after another.")
        assert self._log_risk is not None
        return mechanism.final_half_width(self._log_risk, score, chosen=self._chosen)


def status_of(
    mechanism: Mechanism[Any, Any],
    state: Any,
    asked: int,
    log_error_budget: float,
    worth: Certificate,
    chosen: bool,
) -> GuardStatus:
    """Return the status of a guard that began with this error budget (its logarithm)."""
    left, refusal = mechanism.log_error_budget(state), mechanism.refusal(state)
    released = None if left is None else math.inf
    if left is not None and left > NOTHING:
        released = max(0.0, log_error_budget - left)
    return GuardStatus(
        asked=asked,
        answers_left=mechanism.remaining(state),
        error_budget_left=None if left is None else math.exp(left),
        information_released=released,
        epsilon=worth.epsilon,
        bayesian_epsilon=worth.bayesian_epsilon,
        exhausted=None if refusal is None else cast(Any, refusal.what),
        approximation=worth.approximation,
        _mechanism=mechanism,
        _log_risk=left,
        _chosen=chosen,
    )
