"""What a gate says of a candidate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from graphs.numerics.rounding import shown_above

__all__ = ["Decision", "DecisionOutcome"]

DecisionOutcome: TypeAlias = Literal["keep", "reject", "worse", "not settled"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What a gate says of one candidate. It is true if the candidate is kept.

    Attributes
    ----------
    outcome : {"keep", "reject", "worse", "not settled"}
        "keep" makes the candidate the gate's champion. With a tolerance "keep" says that it is not worse by more, and
        "worse" that it is worse; both are certified, and the champion stays.
    certified : bool
        Whether it is proved, with the guard's confidence and together with everything else that the guard says, that
        the candidate is better than the last certified model by more than the gate's delta; with a tolerance, that the
        outcome is true. A candidate that is kept
        without that is on the way, and may be worse.
    test : str or None
        Which test the holdout was put to: "sign test", "bets", "bets on groups", "normal limits", "relative entropy" or
        "Hoeffding's inequality"; ``None`` where cross-validation alone decided.
    cost : float
        What it cost, in nats of the remaining error budget: 0 where cross-validation alone decided.
    error_budget_left : float
        What is left of the probability of error afterwards.
    remaining : int or None
        Answers from the holdout that are left; ``None`` when no budget was declared. A candidate that the holdout does
        not confirm is one.
    gain : float
        By how much the candidate is better than the champion on the training part, in the metric's units. Of the
        holdout's gain nothing is known but what `certified` says.
    query : int
        Number in the guard's history.
    name : str
        What the caller named the candidate.
    repeated : bool
        Whether this is an earlier decision, given again because its key was used again; it then cost nothing.
    approximate : bool
        Whether the guard has normal limits: then `certified` is approximate, and nothing is proved.

    Examples
    --------
    >>> decision = Decision("keep", True, "bets", 0.105, 0.045, None, 0.02, 3)
    >>> decision, bool(decision)
    (<Decision 3: keep, certified by bets; cost 0.11 nats, 0.045 of the risk left>, True)
    >>> Decision("keep", False, None, 0.0, 0.05, None, 0.02, 1)
    <Decision 1: keep on the way, not certified; free, 0.05 of the risk left>
    >>> Decision("keep", True, "bets", 0.0, 0.045, None, 0.02, 3, repeated=True)
    <Decision 3: keep, certified by bets; decided before: nothing spent>
    >>> Decision("worse", True, "sign test", 5.0, 0.0002, None, -0.02, 9)
    <Decision 9: worse, certified by sign test; cost 5 nats, 0.0002 of the risk left>
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
        if self.repeated:  # what was left then is not what is left now
            return f"<Decision {self.query}{name}: {what}; decided before: nothing spent>"
        cost = "free" if self.test is None else f"cost {shown_above(self.cost, 2)} nats"
        return f"<Decision {self.query}{name}: {what}; {cost}, {self.error_budget_left:.3g} of the risk left>"
