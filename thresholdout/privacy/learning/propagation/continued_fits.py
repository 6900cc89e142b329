"""Common calls of the estimators by expectation propagation: further records, and the rest of an interrupted call."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

from thresholdout.privacy.learning.interrupted_calls import ResumedCalls, UnchangedIfRefused
from thresholdout.privacy.learning.propagation.fitting import Finish, Fitting, Stopped
from thresholdout.privacy.learning.propagation.gaussian_models import Model
from thresholdout.privacy.learning.targets import Spent

__all__ = ["ContinuedFits"]


class ContinuedFits(ResumedCalls):
    """Calls that continue each other: the last posterior is the prior of further records."""

    posterior_: Any
    prior_norm: str
    _spent: Spent
    _stopped: Stopped | None

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from further records, with the last posterior as the prior.

        Parameters
        ----------
        X, y
            As in `fit`. The records must be new: records that come back count twice.

        Returns
        -------
        object
            Itself.

        Raises
        ------
        InputError
            As `fit`; and for a target epsilon that earlier calls have spent: pass `sigma`, or a larger epsilon for all
            calls.

        Warns
        -----
        CostlyTargetWarning
            When the rest of a target needs at least twice the noise of earlier calls.

        Notes
        -----
        Inputs are scaled as in the first call. The report composes all calls. It holds for sequences of data sets that
        differ in one record, which may be in each. Where no record comes back, the true loss is smaller than the
        report.
        """
        with UnchangedIfRefused(self):
            return self._learn(X, y, getattr(self, "posterior_", None))

    @abstractmethod
    def _learn(self, X: Any, y: Any, prior: Any) -> Self:
        """Learn from records with this prior, or with that of the parameters."""

    def _begin(
        self,
        fitting: Fitting,
        model: Model[Any],
        records: Sequence[Any],
        finish: Finish,
        *,
        leaks: tuple[str, ...] = (),
        continued: bool,
    ) -> Self:
        """Make the updates of a new call."""
        fitting.check_prior(model.prior, self.prior_norm)
        fitting.fit(self, model, records, leaks=leaks, spent=self._spent if continued else Spent(), finish=finish)
        return self

    def _go_on(self, call: Stopped, records: Sequence[Any], finish: Finish) -> None:
        """Make the remaining updates of an interrupted call, whose model is known."""
        call.resume(self, records, finish)
