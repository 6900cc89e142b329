"""Whether predictions are better than what a client has: one bit, for agents that climb."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from thresholdout.data.values import UnitRecords, clipped, unit_records
from thresholdout.guard.comparing import among_counted
from thresholdout.guard.decision import Decision
from thresholdout.guard.given_features import described, said_by
from thresholdout.guard.question import Question
from thresholdout.mechanisms import Known
from thresholdout.mechanisms.claims.difference_tests import Betting, DifferenceTest, Divergence, Inflated, Signs
from thresholdout.mechanisms.claims.gate_states import Rules
from thresholdout.mechanisms.claims.proposals import Proposed
from thresholdout.service.corrections import Labels
from thresholdout.service.prediction_questions import AsksAboutPredictions
from thresholdout.service.prediction_reader import OF_LABELS

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from thresholdout.ledger.entry import Entry
    from thresholdout.noise.sources import NoiseSource
    from thresholdout.scoring.metrics import Metric
    from thresholdout.service.reading import Reading

__all__ = ["DecidesAboutPredictions"]


class DecidesAboutPredictions(AsksAboutPredictions):
    """The part of a guard that holds labels which decides about proposals."""

    def propose(
        self,
        new: pd.DataFrame | Reading,
        old: pd.DataFrame | Reading,
        metric: str | Metric = "accuracy",
        *,
        name: str = "",
        key: str | None = None,
        client: str = "",
        quota: int | None = None,
        since: float | None = None,
    ) -> Decision:
        """Say whether predictions are certified to be better than others, and nothing else.

        One bit is told, so the holdout lasts longer than where differences are, and a rejection costs hundredths of a
        nat. No training value is used: whoever proposes knows the labels there. Predictions that differ on too few
        records for any outcome to be certified are rejected without a look, for nothing.

        Parameters
        ----------
        new, old : DataFrame or Reading
            As in `ask`; rows for the holdout are enough.
        metric, name, client, quota, since : optional
            As in `ask`.
        key : str, optional
            As in `ask`; by default the content of both.

        Returns
        -------
        Decision
            True if `new` is certified to be better; its ``gain`` says nothing here. A rejection says nothing about
            which of both is better.

        Raises
        ------
        InputError
            As `ask`; or when the mechanism answers no comparisons.
        BudgetExhausted
            When the guard, or this client, may ask no more.

        Examples
        --------
        >>> import pandas as pd
        >>> from thresholdout.ledger import open_ledger
        >>> from thresholdout.service import PredictionGuard
        >>> table = pd.DataFrame({"id": range(400), "y": [0, 1] * 200})
        >>> service = PredictionGuard.create(open_ledger(None), table[:200], table[200:], label="y")
        >>> right = table[200:].rename(columns={"y": "prediction"})
        >>> constant = right.assign(prediction=0)
        >>> bool(service.propose(right, constant, client="ann")), bool(service.propose(constant, right, client="ann"))
        (True, False)
        """
        chosen = self.guard._compared(self._checked(metric), "difference")
        said = [
            self._reader.read(predictions, chosen, f"predictions that are {which}")
            for which, predictions in (("new", new), ("old", old))
        ]
        title = f"{name} ({chosen.name}, proposal)" if name else f"{chosen.name}, proposal"
        most = chosen.bounds[1] - chosen.bounds[0]
        known = Known(difference=True, proposal=True)

        def ask(labels: Labels) -> Decision:
            known_as, called = self._known_by(labels, key, f"{chosen.name}, proposal", said, title, client)
            about = Question(0.5, (-most, most), called, known_as, known).asked_by(client, quota, since)
            test, which = self._contest(chosen, said[0], said[1], labels)
            entry, repeated = self.guard._interaction.decide(
                labels.asked(about),
                lambda state: Proposed.planned(state, client, test),
                lambda: self._tested(chosen, said[0], said[1], labels, which, test),
                0.0,
                0.0,
                0.0,
                self.guard._worth,
            )
            return self._decided(entry, repeated, test, name)

        return self._labels.with_these(ask)

    def _contest(
        self, metric: Metric, new: Reading, old: Reading, labels: Labels
    ) -> tuple[DifferenceTest, NDArray[np.bool_]]:
        """Return how both are tested, and on which records: from what is public."""
        n, parameters = self.guard.n, self.guard._mechanism.parameters
        if self.guard._declared.sampling != "fixed_features":
            rules, everywhere = Rules(parameters, n, 0.0, sign=False), np.ones(n, dtype=bool)
            if parameters.independent:
                return Betting(n), everywhere
            kind = Divergence if rules.test_name == "relative entropy" else Inflated
            return kind(n, rules.effective), everywhere
        b, a = (said_by(metric, one.output[-n:], one.classes) for one in (new, old))
        differ = among_counted(b.differs(a, n), labels.counted)[0]
        part = described(differ, self.guard.dependence, 1)
        if part.effective is not None:
            return Divergence(part.records, part.effective), differ
        two = metric.name in OF_LABELS and self._records.classes.size <= 2
        return (Signs if two else Betting)(part.records), differ

    def _tested(
        self,
        metric: Metric,
        new: Reading,
        old: Reading,
        labels: Labels,
        which: NDArray[np.bool_],
        test: DifferenceTest,
    ) -> Callable[[NoiseSource], float]:
        """Compute the differences on the holdout, and return what tests them."""
        n, bounds = self.guard.n, metric.bounds
        worst, most = bounds[0 if metric.greater_is_better else 1], bounds[1] - bounds[0]
        values = [clipped(self._on_holdout(metric, one, labels), n, bounds, "metric", worst) for one in (new, old)]
        gain = (values[0] - values[1]) if metric.greater_is_better else (values[1] - values[0])
        found: UnitRecords = unit_records(gain[which], test.records, (-most, most), "metric")
        return lambda noise: test.log_p(found, noise)

    def _decided(self, entry: Entry, repeated: bool, test: DifferenceTest, name: str) -> Decision:
        """Return the decision that an entry of the ledger stores."""
        assert entry.risk is not None
        charged = entry.source in ("keep", "reject") and not repeated
        before = self.guard._interaction.log_risk_before(entry) if charged else entry.risk
        return Decision(
            letter="keep" if entry.source == "keep" else "reject",
            certified=entry.source == "keep",
            test=test.name,
            cost=max(0.0, before - entry.risk),
            error_budget_left=math.exp(entry.risk),
            remaining=entry.remaining,
            gain=0.0,
            query=entry.query,
            name=name,
            repeated=repeated,
        )
