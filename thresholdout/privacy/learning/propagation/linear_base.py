"""What linear predictors by expectation propagation share: prior, design matrix and posterior of the weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import floats, positive
from thresholdout.privacy.learning.propagation.continued_fits import ContinuedFits
from thresholdout.privacy.learning.propagation.natural import Floats
from thresholdout.privacy.learning.propagation.natural_gaussian import GaussianNatural
from thresholdout.privacy.learning.propagation.scaling import Scaling

__all__ = ["LinearBase", "design"]


class LinearBase(ContinuedFits, BaseEstimator):  # type: ignore[misc]
    """One linear predictor with a Gaussian prior on its weights."""

    posterior_: GaussianNatural
    scaling_: Scaling
    n_features_in_: int
    fit_intercept: bool
    y_offset: Any = None
    y_scale: Any = None
    _intercept: bool

    def _start(self, d: int, prior: GaussianNatural | None) -> GaussianNatural:
        """Return the prior of a call with d features: the last posterior, or that of the parameters."""
        weights = d + bool(self.fit_intercept)
        if prior is None:
            return self._prior(weights)
        if prior.eta.size != weights:
            raise InputError("fit_intercept", repr(self.fit_intercept), "as in the earlier calls")
        return prior

    def _prior(self, d: int) -> GaussianNatural:
        """Return the prior of the weights, the intercept's last."""
        precision = floats(self.prior_precision, "prior_precision", f"a number above 0, or shape {(d, d)}")
        if precision.ndim == 0:
            precision = np.diag(np.full(d, positive(float(precision), "prior_precision")))
        if precision.shape != (d, d):
            raise InputError("prior_precision", f"shape {precision.shape}", f"a number above 0, or shape {(d, d)}")
        mean = floats(self.prior_mean, "prior_mean", f"a number, or {d} numbers")
        if mean.shape not in ((), (d,)):
            raise InputError("prior_mean", f"shape {mean.shape}", f"a number, or {d} numbers")
        return GaussianNatural(precision @ np.broadcast_to(mean, (d,)), precision)

    def _predictor(self, X: Any) -> tuple[Floats, Floats]:
        """Return mean and variance of the linear predictor for each row."""
        check_is_fitted(self, "posterior_")
        rows = design(validate_data(self, X, reset=False, dtype=np.float64), self.scaling_, self._intercept)
        return rows @ self._mean, np.einsum("ij,jk,ik->i", rows, self._cov, rows)

    def _kept(self, posterior: GaussianNatural, scaling: Scaling) -> dict[str, Any]:
        """Return what an estimator holds of a posterior and its scales."""
        intercept = posterior.eta.size > self.n_features_in_
        mean, cov = posterior.mean(), posterior.cov()
        return {"_mean": mean, "_cov": cov, "_intercept": intercept, "scaling_": scaling}

    def posterior(self) -> dict[str, Floats]:
        """Return the posterior of the weights of scaled inputs, the intercept's last.

        Returns
        -------
        dict
            Natural parameters ``eta`` and ``Lam``, moments ``mean`` and ``cov``.
        """
        check_is_fitted(self, "posterior_")
        return {**self.posterior_.arrays(), "mean": self._mean, "cov": self._cov}


def design(X: Floats, scaling: Scaling, intercept: bool) -> Floats:
    """Return the scaled inputs, with a column of ones if there is an intercept."""
    scaled = scaling.inputs(X)
    return np.hstack([scaled, np.ones((len(X), 1))]) if intercept else scaled
