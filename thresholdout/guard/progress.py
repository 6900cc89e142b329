"""What a guard tells about itself: what was asked and answered, and what is left."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, cast

from thresholdout.errors import InputError
from thresholdout.guard.external_releases import LooksRecorded
from thresholdout.mechanisms.claims.lists import NOTHING
from thresholdout.mechanisms.kind import Parameters

if TYPE_CHECKING:
    import pandas as pd

    from thresholdout.report import GuardReport

__all__ = ["ReportsProgress"]


class ReportsProgress(LooksRecorded):
    """The part of a guard that tells how far it is. Nothing in it is secret."""

    _confidence: float

    @property
    def exhausted(self) -> Literal["budget", "queries"] | None:
        """Which limit is reached, so that no new question is answered; ``None`` while there is none."""
        refusal = self._interaction.refusal()
        return None if refusal is None else cast(Literal["budget", "queries"], refusal.what)

    @property
    def risk_left(self) -> float | None:
        """What is left of the probability of error, for mechanisms with such a number."""
        left = self._interaction.log_risk()
        return None if left is None else math.exp(left)

    @property
    def told(self) -> float | None:
        """What the answers so far can have told, in nats: ln of the risk at the start over the risk that is left.

        Infinite when nothing is left, as after `final_check`.
        """
        left = self._interaction.log_risk()
        if left is not None and left <= NOTHING:
            return math.inf
        return None if left is None else max(0.0, math.log1p(-self._confidence) - self._parameters.told - left)

    def final_half_width(self, expected: float) -> float:
        """Return how wide `final_check` would be now, at a likely score.

        Parameters
        ----------
        expected : float
            Share of right predictions, in (0, 1). ``certificate.final.half_width(expected)`` is the one to expect if
            every claim is confirmed.
        """
        return self._interaction.final_half_width(expected)

    @property
    def remaining(self) -> int | None:
        """Answers from the holdout that are left; ``None`` when no limit was declared."""
        return self._interaction.remaining()

    @property
    def history(self) -> pd.DataFrame:
        """Every question and answer so far, one row each; nothing in it is secret."""
        from thresholdout.ledger.entry_table import history_frame

        return history_frame(self._ledger.entries(self._id))

    def _asked(self) -> int:
        """Return how many questions were asked."""
        return self._ledger.count(self._id)

    def _answered(self, key: str) -> bool:
        """Whether the question of this key was asked."""
        return self._ledger.find(self._id, key) is not None

    @property
    def parameters(self) -> Parameters:
        """The mechanism's public parameters, in units of a query's range; their class says which mechanism it is."""
        return self._parameters

    def plot(self, ax: Any = None) -> Any:
        """Draw the history: intervals with names where there are few, ties marked; over the questions otherwise.

        See `thresholdout.plotting.plot_history`.
        """
        from thresholdout.plotting import plot_history

        history = self.history
        return plot_history(history, ax=ax, lowest_is_best=_are_losses(set(history["name"])))

    def report(self, title: str = "") -> GuardReport:
        """Return everything public about this guard, as one page; its `save` writes an HTML file.

        Parameters
        ----------
        title : str, optional
            Heading of the page.

        Examples
        --------
        >>> import numpy as np, tempfile
        >>> from pathlib import Path
        >>> from thresholdout import Claims, Thresholdout
        >>> guard = Thresholdout(np.arange(1000.0), queries=10, mechanism=Claims(holdout_answers=2))
        >>> guard.report("Spring leaderboard").save(Path(tempfile.mkdtemp()) / "report.html").stat().st_size > 4000
        True
        """
        from thresholdout.report import report_of

        return report_of(
            self._ledger,
            self._id,
            certificate=self.certificate,
            dependence=self.dependence.describe(),
            looks=tuple(map(repr, self.recorded_looks.events)),
            title=title,
        )


def _are_losses(names: set[str]) -> bool:
    """Whether all names are of metrics of which the smallest value is best; what is no metric is none."""
    from thresholdout.scoring.statistics import get_score

    try:
        return bool(names) and not any(get_score(name).greater_is_better for name in names)
    except InputError:
        return False
