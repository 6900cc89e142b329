"""Clustering by a Bayesian mixture of Gaussians with unknown means, by expectation propagation."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import count, floats, positive
from thresholdout.privacy.learning.interrupted_calls import UnchangedIfRefused
from thresholdout.privacy.learning.propagation.continued_fits import ContinuedFits
from thresholdout.privacy.learning.propagation.fitting import Finish, Fitting, Stopped
from thresholdout.privacy.learning.propagation.gaussian_models import MixtureOfGaussians, weights_of
from thresholdout.privacy.learning.propagation.natural_parameters import Floats, GaussianNatural
from thresholdout.privacy.learning.random_streams import streams

__all__ = ["EPGaussianMixture"]


class _Clusters(NamedTuple):
    """Shares, variance, and posterior means and covariances of the clusters' means."""

    weights: Floats
    s2: float
    means: Floats
    covs: Floats

    def log_joint(self, rows: Floats) -> Floats:
        """Return the logarithm of each cluster's weight times its predictive density, shape (n, J)."""
        found = np.empty((len(rows), len(self.means)))
        for j, (mean, cov) in enumerate(zip(self.means, self.covs, strict=True)):
            root = np.linalg.cholesky(cov + self.s2 * np.eye(len(mean)))
            white = np.linalg.solve(root, (rows - mean).T)
            logs = 2 * np.log(np.diagonal(root)).sum() + len(mean) * np.log(2 * np.pi)
            found[:, j] = np.log(self.weights[j]) - ((white * white).sum(axis=0) + logs) / 2
        return found


class EPGaussianMixture(ContinuedFits, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Clusters with Gaussian noise of known variance, and posteriors of their means, optionally private.

    Parameters
    ----------
    n_components : int
        Number of clusters.
    weights : array_like, shape (n_components,), optional
        Known shares of the clusters, equal by default.
    noise_var : float
        Known variance of a record about its cluster's mean in each coordinate.
    prior_mean : "random" or array_like of shape (n_components, d)
        Must be distinct, as clusters are otherwise exchangeable; "random" draws from N(0, I).
    prior_precision : float
    algorithm, n_epochs, gamma, clip_norm, clip_mode
        As in `EPLinearRegression`; the norm of a site runs over all clusters.
    epsilon, delta, sigma, sampling, accountant, budget_split, rho, damping, tol
        As in `EPLinearRegression`.
    prior_norm, allow_leaks, verbose, random_state
        As in `EPLinearRegression`.

    Attributes
    ----------
    means_ : ndarray, shape (n_components, d)
        Posterior means of the clusters' means.
    covariances_ : ndarray, shape (n_components, d, d)
        Posterior covariances of the clusters' means.
    weights_ : ndarray, shape (n_components,)
    labels_ : ndarray, shape (N,)
        Clusters of the training records of the last call. A private fit has none, as each depends on its record.
    posterior_, theta_0_, theta_f_, privacy_report_, information_fraction_
        As in `EPLinearRegression`; so are the attributes about noise.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(m, 0.5, size=(30, 2)) for m in (-3.0, 3.0)])
    >>> found = EPGaussianMixture(2, n_epochs=5, prior_mean=[[-1.0, 0.0], [1.0, 0.0]]).fit(X)
    >>> found.means_.round(0)
    array([[-3., -3.],
           [ 3.,  3.]])
    """

    labels_: Any

    def __init__(
        self,
        n_components: int = 4,
        *,
        weights: Any = None,
        noise_var: float = 0.25,
        prior_mean: Any = "random",
        prior_precision: float = 0.1,
        algorithm: str = "sep",
        n_epochs: int = 100,
        gamma: float | str = "default",
        clip_norm: float | None = None,
        clip_mode: str = "joint",
        epsilon: float | None = None,
        delta: float = 1e-5,
        sigma: Any = None,
        sampling: str = "uniform",
        accountant: str = "rdp",
        budget_split: Any = None,
        rho: float = 1e-4,
        damping: float = 1.0,
        tol: float = 1e-6,
        prior_norm: str = "ignore",
        allow_leaks: bool = False,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.weights = weights
        self.noise_var = noise_var
        self.prior_mean = prior_mean
        self.prior_precision = prior_precision
        self.algorithm = algorithm
        self.n_epochs = n_epochs
        self.gamma = gamma
        self.clip_norm = clip_norm
        self.clip_mode = clip_mode
        self.epsilon = epsilon
        self.delta = delta
        self.sigma = sigma
        self.sampling = sampling
        self.accountant = accountant
        self.budget_split = budget_split
        self.rho = rho
        self.damping = damping
        self.tol = tol
        self.prior_norm = prior_norm
        self.allow_leaks = allow_leaks
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the posterior of the clusters' means.

        Parameters
        ----------
        X : array_like, shape (N, d)
        y : None

        Raises
        ------
        InputError
            When an argument is out of range, or contradicts another one.
        """
        with UnchangedIfRefused(self):
            return self._learn(X, y, None)

    def _learn(self, X: Any, y: Any, prior: GaussianNatural | None) -> Self:
        fitting = Fitting.check(self)
        J, variance = count(self.n_components, "n_components"), positive(self.noise_var, "noise_var")
        precision = positive(self.prior_precision, "prior_precision")
        weights = weights_of(np.full(J, 1 / J) if self.weights is None else self.weights, J)
        X = validate_data(self, X, dtype=np.float64, reset=prior is None)
        if prior is None:
            d = X.shape[1]
            means = self._prior_means(J, d)
            start = GaussianNatural(precision * means, np.broadcast_to(precision * np.eye(d), (J, d, d)))
        elif len(prior.eta) != J:
            raise InputError("n_components", f"{J}", f"{len(prior.eta)}, as in the earlier calls")
        else:
            start = prior
        model = MixtureOfGaussians(start, weights, variance)
        return self._begin(fitting, model, list(X), self._finish(fitting, X), continued=prior is not None)

    def _rest(self, call: Stopped, X: Any, y: Any) -> None:
        X = validate_data(self, X, dtype=np.float64, reset=False)
        self._go_on(call, list(X), self._finish(call.fitting, X))

    @staticmethod
    def _finish(fitting: Fitting, X: Floats) -> Finish:
        def finish(model: MixtureOfGaussians, posterior: GaussianNatural) -> dict[str, Any]:
            known = _Clusters(model.weights, model.s2, posterior.mean(), posterior.cov())
            found = {"weights_": known.weights, "_s2": known.s2, "means_": known.means, "covariances_": known.covs}
            return found if fitting.private else {**found, "labels_": np.argmax(known.log_joint(X), axis=1)}

        return finish

    def _prior_means(self, J: int, d: int) -> Floats:
        if isinstance(self.prior_mean, str):
            if self.prior_mean != "random":
                raise InputError("prior_mean", repr(self.prior_mean), "'random' or an array")
            return streams(self.random_state).initial.standard_normal((J, d))
        found = floats(self.prior_mean, "prior_mean", f"'random' or finite numbers of shape {(J, d)}")
        if found.shape != (J, d) or not np.isfinite(found).all():
            seen = "a value that is not finite" if found.shape == (J, d) else f"an array of shape {found.shape}"
            raise InputError("prior_mean", seen, f"'random' or finite numbers of shape {(J, d)}")
        return found

    def fit_predict(self, X: Any, y: Any = None) -> Any:
        """Fit, and return the cluster of each training record, which no privacy covers."""
        return self.fit(X).predict(X)

    def _log_joint(self, X: Any) -> Floats:
        """Return the logarithm of each cluster's weight times its predictive density, shape (n, J)."""
        check_is_fitted(self, "posterior_")
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        return _Clusters(self.weights_, self._s2, self.means_, self.covariances_).log_joint(rows)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each cluster for each row, averaged over the posterior, shape (n, J)."""
        joint = self._log_joint(X)
        return np.asarray(np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)))

    def predict(self, X: Any) -> Any:
        """Return the most probable cluster of each row, shape (n,)."""
        return np.argmax(self._log_joint(X), axis=1)

    def log_likelihood(self, X: Any, y: Any = None) -> float:
        """Return the mean logarithm of the predictive density of rows."""
        return float(np.logaddexp.reduce(self._log_joint(X), axis=1).mean())

    def score(self, X: Any, y: Any = None) -> float:
        """Return `log_likelihood`, so that searches can compare settings."""
        return self.log_likelihood(X)

    def posterior(self) -> dict[str, Floats]:
        """Return the posterior of the clusters' means.

        Returns
        -------
        dict
            Natural parameters ``eta`` and ``Lam``, moments ``mean`` and ``cov``.
        """
        check_is_fitted(self, "posterior_")
        return {**self.posterior_.arrays(), "mean": self.means_, "cov": self.covariances_}
