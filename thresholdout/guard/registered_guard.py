"""A guard whose holdout is registered in a ledger."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from thresholdout.certificates import Certificate
from thresholdout.guard.answer import Answer
from thresholdout.guard.declared_parts import in_lazy_frames
from thresholdout.guard.holdout import Origin, Records
from thresholdout.guard.model_queries import ModelQueries
from thresholdout.guard.query_engine import QueryEngine
from thresholdout.guard.registration import check_dependence, opened
from thresholdout.guard.releases import Releases
from thresholdout.guard.sharing.shared_objects import shared
from thresholdout.guard.status import GuardStatus, status_of
from thresholdout.ledger import Ledger
from thresholdout.ledger.entry import ContentKey
from thresholdout.mechanisms.kind import Parameters
from thresholdout.noise.sources import NoiseSource
from thresholdout.planning.declaration import Declaration
from thresholdout.scoring.metrics import Metric

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from graphs import DependenceModel
    from thresholdout.guard.column_queries import ColumnQueries
    from thresholdout.guard.training_values import TrainingFolds
    from thresholdout.report import GuardReport
    from thresholdout.scoring.statistics import Statistic

__all__ = ["RegisteredGuard"]


@shared
class RegisteredGuard:
    """A guard in a ledger: its declaration, state, guarantee and history, for whichever queries a subclass asks."""

    @classmethod
    def _of_records(cls, records: Records, model: DependenceModel, *rest: Any) -> Self:
        """Return the guard of records that are kept elsewhere; see `_begin`."""
        guard = cls.__new__(cls)
        guard._begin(records, check_dependence(model, records.n), *rest)
        return guard

    def _begin(
        self,
        records: Records,
        model: DependenceModel,
        declared: Declaration,
        noise: NoiseSource,
        ledger: str | Path | Ledger | None,
        documents: Mapping[str, str],
    ) -> None:
        """Find the holdout in the ledger and continue, or enter it; then build the guard's parts."""
        found = opened(records, model, declared, noise, ledger, documents)
        self.n, self.dependence = records.n, model
        self._records, self._declared, self._noise, self._opened = records, declared, noise, found
        self._ledger, self._id, self._mechanism = found.ledger, found.identity, found.mechanism
        self._engine = QueryEngine(found, noise)
        self._releases = Releases(self._engine, model, found)
        parts = self._engine, found.mechanism, model, declared
        self._queries: ModelQueries | ColumnQueries
        if in_lazy_frames(records):
            from thresholdout.guard.column_queries import ColumnQueries

            self._queries = ColumnQueries(records, *parts)
        else:
            self._queries = ModelQueries(records, *parts)
        self._searched = 0  # holdout scores that scorers of this guard were asked for

    def _recalled(self, key: str | None, score: Metric | Statistic) -> Answer | None:
        return self._engine.recall(key, "" if isinstance(score, Metric) else score.target)

    @property
    def _training_folds(self) -> TrainingFolds:
        return self._records.training_folds

    @property
    def _open_folds(self) -> TrainingFolds | None:
        return self._records.open_folds

    @property
    def _models(self) -> ModelQueries:
        assert isinstance(self._queries, ModelQueries)
        return self._queries

    def _made(self, digest: str) -> ContentKey:
        return self._queries.keys.made(digest)

    def _origin(self, hashes: NDArray[np.uint64], records: NDArray[np.uint64] | None = None) -> Origin:
        return self._records.origin(hashes, records)

    @property
    def certificate(self) -> Certificate:
        """Guarantee of the next answers, as a `Certificate`: its half-widths, confidence, assumptions and proof.

        It changes after a release is recorded. After a failed query, answers of Algorithm 1 are wider than it states.

        Examples
        --------
        >>> import numpy as np
        >>> from thresholdout import Thresholdout
        >>> Thresholdout(np.arange(10_000.0), queries=100).certificate.confidence
        0.95
        """
        return self._releases.certificate()

    @property
    def status(self) -> GuardStatus:
        """Use of the guard so far, as a `GuardStatus`; reading it costs nothing.

        It has the number of queries (`asked`), the answers and the error budget that are left, the information that
        was released, the privacy loss if the mechanism bounds it, and the limit that is exhausted.

        Examples
        --------
        >>> import numpy as np
        >>> from thresholdout import Thresholdout
        >>> holdout = np.arange(1000.0)
        >>> guard = Thresholdout(holdout, queries=10)
        >>> answer = guard.ask(0.25, holdout < 250)
        >>> guard.status.asked, 0.045 < guard.status.error_budget_left < 0.05, guard.status.exhausted
        (1, True, None)
        """
        state, asked = self._engine.state(), self._ledger.count(self._id)
        start = math.log1p(-self._opened.confidence) - self.parameters.information_released
        return status_of(self._mechanism, state, asked, start, self.certificate, self._records.development is not None)

    @property
    def releases(self) -> Releases:
        """Other private releases about the holdout, as `Releases`.

        Use ``guard.releases.record(event)`` if the holdout's records are also used elsewhere, for example to train a
        model with differential privacy. Record each release before any of its output is seen.
        """
        return self._releases

    @property
    def history(self) -> pd.DataFrame:
        """Data frame of all queries and answers so far, one row each. Nothing in it is secret.

        Among its columns are ``query`` (the number, from 1), ``name``, ``train`` (the training value), ``value``,
        ``source`` and the remaining error budget, as its logarithm ``log_error_budget``.
        """
        from thresholdout.ledger.entry import history_frame

        return history_frame(self._ledger.entries(self._id), self._mechanism.parameters.approximation)

    def _answered(self, key: str) -> bool:
        return self._ledger.find(self._id, key) is not None

    @property
    def parameters(self) -> Parameters:
        """Public parameters of the mechanism, in units of a query's range. Their class names the mechanism."""
        return self._opened.parameters

    def report(self, title: str = "") -> GuardReport:
        """Return a report of everything public about the guard: declaration, certificate, answers and budget.

        Parameters
        ----------
        title : str, optional
            Heading of the report.

        Returns
        -------
        GuardReport
            ``report.save("report.html")`` writes a page, and ``report.plot()`` draws the answers with their intervals.
            A notebook shows the report itself.
        """
        from thresholdout.report import report_of

        released, model = tuple(map(repr, self._releases.recorded.events)), self.dependence.describe()
        facts: dict[str, Any] = {"certificate": self.certificate, "dependence": model, "releases": released}
        return report_of(self._ledger, self._id, **facts, title=title)
