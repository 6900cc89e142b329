"""What estimators by expectation propagation share: further records, and the rest of an interrupted call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from thresholdout.errors import InputError
from thresholdout.privacy.learning.propagation.fitting import Finish, Fitting, Stopped
from thresholdout.privacy.learning.propagation.gaussian_models import Model
from thresholdout.privacy.learning.refused_calls import UnchangedIfRefused
from thresholdout.privacy.learning.spent import Spent

__all__ = ["ContinuedFits"]


class ContinuedFits(ABC):
    """Calls that continue each other: a posterior is the prior of further records."""

    posterior_: Any
    prior_norm: str
    _spent: Spent
    _stopped: Stopped | None

    def partial_fit(self, X: Any, y: Any) -> Self:
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
            return self._learn(X, y, getattr(self, "posterior_", None), None)

    def resume(self, X: Any, y: Any) -> Self:
        """Make the updates that an interrupted call has left; it was charged for them, once.

        Parameters
        ----------
        X, y
            Those of the interrupted call, in their order. Its parameters count, also where they were changed since.

        Returns
        -------
        object
            Itself; with an integer as `random_state` as if the call had not been interrupted.

        Raises
        ------
        InputError
            When no call was interrupted, or there are not as many records as then.

        Notes
        -----
        A copy that is resumed, too, is a further release, which no report knows.
        """
        check_is_fitted(self, "posterior_")
        if self._stopped is None:
            raise InputError("resume", "no call that was interrupted", "one, or partial_fit for further records")
        return self._learn(X, y, None, self._stopped)

    @abstractmethod
    def _learn(self, X: Any, y: Any, prior: Any, stopped: Stopped | None) -> Self:
        """Learn from records with this prior, that of the parameters if there is none; or go on with a call."""

    def _infer(
        self,
        call: Fitting | Stopped,
        model: Model[Any],
        records: Sequence[Any],
        *,
        finish: Finish,
        leaks: tuple[str, ...] = (),
        continued: bool = False,
    ) -> Self:
        """Run a call with a model, or what an interrupt has left of one, whose model is known."""
        if isinstance(call, Stopped):
            call.resume(self, records, finish)
            return self
        call.check_prior(model.prior, self.prior_norm)
        spent = self._spent if continued else Spent()
        call.fit(self, model, records, leaks=leaks, spent=spent, finish=finish)
        return self
