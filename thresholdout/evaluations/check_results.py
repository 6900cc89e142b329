"""Results of a guarded evaluation set: the outcome of a check, and the state of the set."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from thresholdout.evaluations.account import Promise

__all__ = ["Check", "Event", "Mode", "Status"]

Mode = Literal["alarm", "proof"]


@dataclass(frozen=True, slots=True)
class Check:
    """Result of `EvaluationGuard.check`: one outcome, and the budget that remains.

    Attributes
    ----------
    outcome : {"worse", "not worse", "nothing"}
        "worse" (only in the mode "alarm"): the run is worse than a baseline. "not worse" (only in the mode "proof"): it
        is not worse than the baselines by the margin or more. "nothing": nothing is asserted.
    repeated : bool
        Whether these scores were checked before. A repeated check is free.
    number : int
        Number of the check, counted from 1.
    checks_left, surprises_left : int
        Number of planned checks, and of planned unexpected outcomes, that remain.

    Examples
    --------
    >>> Check("nothing", False, 1, 299, 5).passes("alarm")
    True
    """

    outcome: str
    repeated: bool
    number: int
    checks_left: int
    surprises_left: int

    def passes(self, mode: Mode) -> bool:
        """Return whether to merge the change: no "worse" in the mode "alarm", a "not worse" in the mode "proof"."""
        return self.outcome != "worse" if mode == "alarm" else self.outcome == "not worse"


@dataclass(frozen=True, slots=True)
class Event:
    """A check or a promotion in the history; `smallest_drop` is None for proofs, and where no drop could be seen."""

    number: int
    outcome: str
    name: str
    time: float | None
    dev_difference: float
    smallest_drop: float | None

    @property
    def day(self) -> str:
        """The day as text."""
        return "-" if self.time is None else datetime.fromtimestamp(self.time, UTC).strftime("%Y-%m-%d")


@dataclass(frozen=True, slots=True)
class Status:
    """Result of `EvaluationGuard.status`: plan, use and history of a guarded set. Nothing in it is secret.

    Attributes
    ----------
    metric : str
        Name of the metric.
    mode, promise, margin
        Plan of the set, as described in `EvaluationGuard.create`.
    gate_items, dev_items : int
        Number of items in the gate part, which is compared, and in the dev part, which everybody may read.
    clusters : int
        Number of clusters of items in the gate part.
    tests : tuple of str
        Names of the tests of "worse" and of "not worse".
    assumption : str
        Assumption about the metric that these tests need. Empty if they need none.
    checks, done : int
        Planned number of checks, and number of checks so far.
    surprises, surprised : int
        Planned number of unexpected outcomes, and number of them so far.
    level : float
        Significance level of the next check.
    smallest_drop : float or None
        Approximate drop, as a fraction of the range of scores, that the next check reports with probability .8. None in
        the mode "proof", or if no drop can be.
    proof_power : float or None
        Approximate probability that a change without effect is proved "not worse". None in the mode "alarm".
    closed : str or None
        Why the set was closed, or None if it is open.
    history : tuple of Event
        Checks and promotions, in order.

    Examples
    --------
    >>> from dataclasses import fields
    >>> [field.name for field in fields(Status)][:4]
    ['metric', 'mode', 'promise', 'gate_items']
    """

    metric: str
    mode: Mode
    promise: Promise
    gate_items: int
    dev_items: int
    clusters: int
    tests: tuple[str, str]
    assumption: str
    margin: float
    checks: int
    done: int
    surprises: int
    surprised: int
    level: float
    smallest_drop: float | None
    proof_power: float | None
    closed: str | None
    history: tuple[Event, ...]
