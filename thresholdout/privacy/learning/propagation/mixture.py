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
    """Cluster records by a Bayesian mixture of Gaussians with known variance, optionally with differential privacy.

    The means of the clusters are unknown; their weights and the variance of records about them are known. (Stochastic)
    expectation propagation computes a Gaussian posterior of each mean. ``algorithm="dp-sep"`` clips the contributions
    of records, their sites, and adds noise. `DPEMGaussianMixture` also learns weights and variances.
    `EPLinearRegression` describes the parameters about algorithm and privacy in full.

    Parameters
    ----------
    n_components : int, default 4
        Number of clusters.
    weights : array_like of shape (n_components,), optional
        Known weights of the clusters. Equal by default.
    noise_var : float, default 0.25
        Known variance of a record about the mean of its cluster, in each coordinate.
    prior_mean : "random" or array_like of shape (n_components, n_features), default "random"
        Prior mean of each cluster. Rows must differ, because clusters are otherwise exchangeable. "random" draws them
        from a standard normal distribution.
    prior_precision : float, default 0.1
        Prior precision of the mean of each cluster, in each coordinate.
    algorithm : {"ep", "adf", "sep", "clipped-sep", "dp-sep"}, default "sep"
        Expectation propagation with one site for each record ("ep"), a single pass ("adf", needs ``n_epochs=1``), one
        shared site ("sep"), the same with clipped sites ("clipped-sep"), or with clipped sites and noise ("dp-sep", the
        only private algorithm).
    n_epochs : int, default 100
        Number of passes over the data (the maximum for "ep").
    gamma : {"default", "paper", "sep", "auto"} or float, default "default"
        Step size in (0, N] of the stochastic algorithms: 1 for "paper", N for "sep", the smaller of N and 3 N /
        n_epochs for "auto". "default" means "auto" for "dp-sep" and "sep" otherwise.
    clip_norm : float, optional
        Clipping threshold for the norm of a site over all clusters. Required for "clipped-sep" and "dp-sep", and None
        otherwise.
    clip_mode : {"joint", "separate"}, default "joint"
        Whether to clip the two natural parameters of a site together, or each by itself, which needs more noise.
    epsilon, sigma : float, optional
        Pass exactly one for "dp-sep", and none otherwise: `epsilon`, the privacy target, or `sigma`, the noise
        multiplier relative to the sensitivity (with separate clipping, a number or a tuple of two).
    delta : float, default 1e-5
        Delta of the guarantee, in (0, 1). It should be well below 1 / N.
    sampling : {"uniform", "shuffle", "cyclic"}, default "uniform"
        Order of the updates in the "sep" algorithms: independent uniform draws, a new permutation for each pass, or the
        order of the data. Only "uniform" gains privacy from the random choice of records.
    accountant : {"rdp", "best", "tight", "wbk"}, default "rdp"
        How to calibrate the noise to `epsilon`: proved Renyi bounds ("rdp"), all proved accountants ("best", slow), or
        published formulas, for comparison ("tight", "wbk"). The epsilon in `privacy_report_` is always proved.
    budget_split : tuple of float, optional
        With separate clipping, the shares of the two parameters in the Renyi divergence. Equal by default.
    rho : float, default 1e-4
        Replacement for eigenvalues of a precision matrix that are zero or negative.
    damping : float, default 1.0
        For "ep", in (0, 1]: weight of a new site against the old one.
    tol : float, default 1e-6
        For "ep": stop after a pass that changes no natural parameter of a site by more than this.
    prior_norm : {"ignore", "check"}, default "ignore"
        Whether to refuse a prior whose norm exceeds `clip_norm`.
    allow_leaks : bool, default False
        Whether a private fit may use or show facts outside its guarantee, which `privacy_report_` then lists.
    verbose : bool, default False
        Whether to show a progress bar of passes after two seconds.
    random_state : int, numpy.random.Generator or None, default None
        Seed or generator of prior means, draws and noise. Pass None for a model that you publish: the seed reveals the
        noise.

    Attributes
    ----------
    means_ : ndarray of shape (n_components, n_features)
        Posterior means of the cluster means.
    covariances_ : ndarray of shape (n_components, n_features, n_features)
        Posterior covariances of the cluster means.
    weights_ : ndarray of shape (n_components,)
        Weights of the clusters.
    labels_ : ndarray of shape (N,)
        Clusters of the training records of the last call. Not available after a private fit, because each label depends
        on its record.
    posterior_, theta_0_, theta_f_ : GaussianNatural
        Natural parameters of the posterior, the prior and the shared site.
    privacy_report_ : PrivacyReport
        Guarantee of all calls so far. Its epsilon is ``inf`` without noise.
    information_fraction_ : float
        Share of the information in the data that was absorbed, 1 for "ep" and "adf".
    signal_to_noise_ : float
        For "dp-sep": distance that the posterior moved, divided by the expected distance from noise alone.
    noise_std_, stationary_noise_std_ : float
        For "dp-sep": standard deviation of the noise after the last pass, and after infinitely many.

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
        """Compute the posterior of the cluster means.

        Parameters
        ----------
        X : array_like of shape (N, n_features)
            Training records. All values must be finite.
        y : None
            Ignored, present for pipelines.

        Returns
        -------
        EPGaussianMixture
            The fitted estimator itself.

        Raises
        ------
        InputError
            If a parameter is out of range or contradicts another one.
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
        """Fit the mixture, and predict the cluster of each training record.

        No guarantee covers the labels, even of a private fit, because each label depends on its record.

        Parameters
        ----------
        X : array_like of shape (N, n_features)
            Training records. All values must be finite.
        y : None
            Ignored, present for pipelines.

        Returns
        -------
        ndarray of int of shape (N,)
            Index of the cluster of each record.
        """
        return self.fit(X).predict(X)

    def _log_joint(self, X: Any) -> Floats:
        """Return the logarithm of each cluster's weight times its predictive density, shape (n, J)."""
        check_is_fitted(self, "posterior_")
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        return _Clusters(self.weights_, self._s2, self.means_, self.covariances_).log_joint(rows)

    def predict_proba(self, X: Any) -> Floats:
        """Predict the probability of each cluster for each row, averaged over the posterior.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n, n_components)
            Probabilities of the clusters. Each row sums to 1.
        """
        joint = self._log_joint(X)
        return np.asarray(np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)))

    def predict(self, X: Any) -> Any:
        """Predict the most probable cluster of each row.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Records.

        Returns
        -------
        ndarray of int of shape (n,)
            Index of the cluster.
        """
        return np.argmax(self._log_joint(X), axis=1)

    def log_likelihood(self, X: Any, y: Any = None) -> float:
        """Compute the mean log predictive density of the rows.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Records.
        y : None
            Ignored, present for pipelines.

        Returns
        -------
        float
            Mean over the rows of the logarithm of the predictive density. Larger is better.
        """
        return float(np.logaddexp.reduce(self._log_joint(X), axis=1).mean())

    def score(self, X: Any, y: Any = None) -> float:
        """Compute the same as `log_likelihood`, so that a search of scikit-learn can compare settings.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Records.
        y : None
            Ignored, present for pipelines.

        Returns
        -------
        float
            Mean log predictive density. Larger is better.
        """
        return self.log_likelihood(X)

    def posterior(self) -> dict[str, Floats]:
        """Return the Gaussian posterior of the cluster means.

        Returns
        -------
        dict
            Arrays by name, with one entry for each cluster along the first axis: the moments ``mean`` and ``cov``, and
            the natural parameters ``Lam``, the inverse of the covariance, and ``eta``, ``Lam`` times the mean.
        """
        check_is_fitted(self, "posterior_")
        return {**self.posterior_.arrays(), "mean": self.means_, "cov": self.covariances_}
