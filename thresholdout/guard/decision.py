"""Decisions of a gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from graphs.numerics.rounding import shown_above

__all__ = ["Decision", "DecisionOutcome"]

DecisionOutcome: TypeAlias = Literal["keep", "reject", "worse", "not settled"]


@dataclass(frozen=True, slots=True)
class Decision:
    """Result of `Gate.propose`: whether a candidate is kept, and whether this is proved. It is true if it is kept.

    Attributes
    ----------
    outcome : {"keep", "reject", "worse", "not settled"}
        "keep" makes the candidate the gate's champion, "reject" does not. With a tolerance, "keep" states that it is
        not worse by more than the tolerance and "worse" that it is worse. Both are certified then, and the champion
        stays, as for "not settled".
    certified : bool
        Whether the candidate is proved to be better than the last certified model by more than the gate's delta; with a
        tolerance, whether the outcome is proved. Proofs have the guard's confidence, together with all its other
        answers. A candidate that is kept without a proof may be worse.
    test : str or None
        The test on the holdout: "sign test", "bets", "bets on groups", "normal limits", "relative entropy" or
        "Hoeffding's inequality"; ``None`` if cross-validation alone decided.
    cost : float
        Nats of the error budget spent; 0 if cross-validation alone decided.
    error_budget_left : float
        Remaining probability of error afterwards.
    remaining : int or None
        Number of answers from the holdout that are left; ``None`` if no limit was declared. A candidate that the
        holdout does not confirm uses one.
    gain : float
        Amount by which the candidate is better than the champion on the training part, in the metric's units. About the
        holdout's gain only `certified` is known.
    query : int
        Number of the decision in the guard's history.
    name : str
        Name that the caller gave the candidate.
    repeated : bool
        Whether this is an earlier decision, returned again at no cost because its key was used again.
    approximate : bool
        Whether the guard has normal limits. Then nothing is proved, and `certified` is approximate.

    Examples
    --------
    >>> decision = Decision("keep", True, "bets", 0.105, 0.045, None, 0.02, 3)
    >>> decision, bool(decision)
    (<Decision 3: keep, certified by bets; cost 0.11 nats, error budget left 0.045>, True)
    >>> Decision("keep", False, None, 0.0, 0.05, None, 0.02, 1)
    <Decision 1: keep on the way, not certified; free, error budget left 0.05>
    >>> Decision("keep", True, "bets", 0.0, 0.045, None, 0.02, 3, repeated=True)
    <Decision 3: keep, certified by bets; decided before, nothing spent>
    >>> Decision("worse", True, "sign test", 5.0, 0.0002, None, -0.02, 9)
    <Decision 9: worse, certified by sign test; cost 5 nats, error budget left 0.0002>
    """

    outcome: DecisionOutcome
    certified: bool
    test: str | None
    cost: float
    error_budget_left: float
    remaining: int | None
    gain: float
    query: int
    name: str = ""
    repeated: bool = False
    approximate: bool = False

    def __bool__(self) -> bool:
        return self.outcome == "keep"

    def __repr__(self) -> str:
        name = f" {self.name}" if self.name else ""
        if self.certified:
            how = f"approximate, not certified: {self.test}" if self.approximate else f"certified by {self.test}"
            what = f"{self.outcome}, {how}"
        elif self.outcome == "not settled":
            what = "not settled"
        elif self.outcome == "keep":
            what = "keep on the way, not certified" + ("" if self.test is None else f": {self.test} did not confirm it")
        else:
            what = "reject, by cross-validation" if self.test is None else f"reject: {self.test} did not confirm it"
        if self.repeated:  # the error budget of that time is not the present one
            return f"<Decision {self.query}{name}: {what}; decided before, nothing spent>"
        cost = "free" if self.test is None else f"cost {shown_above(self.cost, 2)} nats"
        return f"<Decision {self.query}{name}: {what}; {cost}, error budget left {self.error_budget_left:.3g}>"
