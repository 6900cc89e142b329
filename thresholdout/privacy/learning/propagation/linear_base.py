"""What linear predictors by expectation propagation share: prior, design matrix and posterior of the weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import positive
from thresholdout.privacy.learning.propagation.fitting import Fitting, Stopped
from thresholdout.privacy.learning.propagation.gaussian_models import Model
from thresholdout.privacy.learning.propagation.natural import Floats
from thresholdout.privacy.learning.propagation.natural_gaussian import GaussianNatural
from thresholdout.privacy.learning.propagation.scaling import Scaling
from thresholdout.privacy.learning.spent import Spent

__all__ = ["LinearBase"]


class LinearBase(BaseEstimator, ABC):  # type: ignore[misc]
    """One linear predictor with a Gaussian prior on its weights."""

    posterior_: GaussianNatural
    scaling_: Scaling
    fit_intercept: bool
    y_offset: Any = None
    y_scale: Any = None
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
        if not hasattr(self, "posterior_"):
            return self._learn(X, y, None, None)
        return self._learn(X, y, self.posterior_, None)

    def resume(self, X: Any, y: Any) -> Self:
        """Make the updates that an interrupted call has left; it was charged for them.

        Parameters
        ----------
        X, y
            Those of the interrupted call, whose parameters count, also where they were changed since.

        Returns
        -------
        object
            Itself; with an integer as `random_state` as if the call had not been interrupted.

        Raises
        ------
        InputError
            When no call was interrupted, or there are not as many records as then.
        """
        check_is_fitted(self)
        if self._stopped is None:
            raise InputError("resume", "no call that was interrupted", "one, or partial_fit for further records")
        return self._learn(X, y, None, self._stopped)

    @abstractmethod
    def _learn(self, X: Any, y: Any, prior: GaussianNatural | None, stopped: Stopped | None) -> Self:
        """Learn from records with this prior; or go on with a call that was interrupted."""

    def _infer(
        self,
        make_model: Callable[[GaussianNatural], Model[GaussianNatural]],
        records: list[Any],
        start: GaussianNatural,
        continued: bool,
        stopped: Stopped | None,
        fitting: Fitting,
        leaks: tuple[str, ...],
        finish: Callable[[GaussianNatural], object],
    ) -> Self:
        """Run a call, or what an interrupt has left of one."""
        if stopped is not None:
            stopped.resume(self, make_model(self.theta_0_), records, finish)
            return self
        fitting.check_prior(start, self.prior_norm)
        spent = self._spent if continued else Spent()
        fitting.fit(self, make_model(start), records, leaks=leaks, spent=spent, finish=finish)
        return self

    def _prior(self, d: int) -> GaussianNatural:
        """Return the prior of the weights, the intercept's last."""
        precision = np.asarray(self.prior_precision, dtype=np.float64)
        if precision.ndim == 0:
            precision = np.diag(np.full(d, positive(float(precision), "prior_precision")))
        if precision.shape != (d, d):
            raise InputError("prior_precision", f"shape {precision.shape}", f"a number above 0, or shape {(d, d)}")
        mean = np.asarray(self.prior_mean, dtype=np.float64)
        if mean.shape not in ((), (d,)):
            raise InputError("prior_mean", f"shape {mean.shape}", f"a number, or {d} numbers")
        return GaussianNatural(precision @ np.broadcast_to(mean, (d,)), precision)

    def _predictor(self, X: Any) -> tuple[Floats, Floats]:
        """Return mean and variance of the linear predictor for each row."""
        check_is_fitted(self)
        rows = self._design(validate_data(self, X, reset=False, dtype=np.float64))
        return rows @ self._mean, np.einsum("ij,jk,ik->i", rows, self._cov, rows)

    def _design(self, X: Floats) -> Floats:
        """Return the scaled inputs, with a column of ones if there is an intercept."""
        scaled = self.scaling_.inputs(X)
        return np.hstack([scaled, np.ones((len(X), 1))]) if self.fit_intercept else scaled

    def _keep(self, posterior: GaussianNatural) -> None:
        self._mean, self._cov = posterior.mean(), posterior.cov()

    def posterior(self) -> dict[str, Floats]:
        """Return the posterior of the weights of scaled inputs, the intercept's last.

        Returns
        -------
        dict
            Natural parameters ``eta`` and ``Lam``, moments ``mean`` and ``cov``.
        """
        check_is_fitted(self)
        return {**self.posterior_.arrays(), "mean": self._mean, "cov": self._cov}
