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

        The first call is a `fit`. Offsets and scales of the inputs stay those of the first call.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Features of new records. Records of earlier calls would count twice.
        y : array_like of shape (n,), optional
            Target of each record. A mixture of Gaussians needs none.

        Returns
        -------
        object
            The estimator itself. Its `privacy_report_` covers all calls so far.

        Raises
        ------
        InputError
            If `fit` would refuse the parameters or the data, or if earlier calls have used up the target epsilon. Pass
            `sigma` then, or a larger epsilon for all calls together.

        Warns
        -----
        CostlyTargetWarning
            If the rest of a target needs at least twice the noise of earlier calls.

        Notes
        -----
        The report composes all calls. It holds for two sequences of data sets that differ in one record, which may be
        in the data of every call. If no record is used in two calls, the true privacy loss is smaller than reported.
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
