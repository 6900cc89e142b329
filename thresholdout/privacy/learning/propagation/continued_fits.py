"""What estimators by expectation propagation share: further records, and the rest of an interrupted call."""

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
    """Calls that continue each other: a posterior is the prior of further records."""

    posterior_: Any
    prior_norm: str
    _spent: Spent
    _stopped: Stopped | None

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from further records: what was learned before is the prior.

        Parameters
        ----------
        X, y
            As in `fit`; records that were not there before, as those that come back count twice.

        Returns
        -------
        object
            Itself.

        Raises
        ------
        InputError
            As `fit`; for a target epsilon that earlier calls have spent: `sigma`, or a larger epsilon for all calls.

        Warns
        -----
        CostlyTargetWarning
            When what earlier calls have left of a target takes twice their noise, or more.

        Notes
        -----
        Inputs are scaled as in the first call. The report composes all calls: it holds for sequences of data that
        differ in one record, which may be in each; where no record comes back it promises less than is true.
        """
        with UnchangedIfRefused(self):
            return self._learn(X, y, getattr(self, "posterior_", None))

    @abstractmethod
    def _learn(self, X: Any, y: Any, prior: Any) -> Self:
        """Learn from records with this prior, that of the parameters if there is none."""

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
        """Make the updates that an interrupt has left of a call, whose model is known."""
        call.resume(self, records, finish)
