"""What linear predictors by expectation propagation share: prior, design matrix and posterior of the weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import positive
from thresholdout.privacy.learning.propagation.natural import Floats
from thresholdout.privacy.learning.propagation.natural_gaussian import GaussianNatural
from thresholdout.privacy.learning.propagation.scaling import Scaling

__all__ = ["LinearBase"]


class LinearBase(BaseEstimator):  # type: ignore[misc]
    """One linear predictor with a Gaussian prior on its weights."""

    posterior_: GaussianNatural
    scaling_: Scaling
    fit_intercept: bool
    y_offset: Any = None
    y_scale: Any = None

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
