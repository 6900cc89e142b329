"""Bayesian linear regression by expectation propagation."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import RegressorMixin

from thresholdout.privacy.accounting.bound_arguments import positive
from thresholdout.privacy.learning.propagation.fitting import Finish, Fitting, Stopped
from thresholdout.privacy.learning.propagation.gaussian_models import LinearModel, Model
from thresholdout.privacy.learning.propagation.gaussian_predictions import GaussianPredictions
from thresholdout.privacy.learning.propagation.linear_base import LinearBase, design
from thresholdout.privacy.learning.propagation.natural import Floats
from thresholdout.privacy.learning.propagation.natural_gaussian import GaussianNatural
from thresholdout.privacy.learning.propagation.scaling import Scaling, checked_numbers, scaled_numbers
from thresholdout.privacy.learning.refused_calls import UnchangedIfRefused

__all__ = ["EPLinearRegression"]


class EPLinearRegression(GaussianPredictions, RegressorMixin, LinearBase):  # type: ignore[misc]
    """Bayesian linear regression with known noise, by expectation propagation, privately if asked for.

    Parameters
    ----------
    noise_var : float
        Variance of a target about its mean, in squared units of the target.
    prior_mean, prior_precision : float or array_like
        Of the weights of scaled inputs, the intercept's last, on the scale of the scaled target.
    fit_intercept : bool
    algorithm : {"ep", "adf", "sep", "clipped-sep", "dp-sep"}
        "ep" is exact, "sep" nearly so with memory for one site, "dp-sep" differentially private.
    n_epochs : int
        Passes; at most, for "ep".
    gamma : {"default", "paper", "sep", "auto"} or float
        Step parameter in (0, N], see `resolve_gamma`. By default "auto" with noise, "sep" without.
    clip_norm : float, optional
        Norm that sites are clipped to, for "clipped-sep" and "dp-sep". The norm of a site is that of ``x y / s2``
        and ``x x' / s2`` together, s2 being the scaled noise's variance.
    clip_mode : {"joint", "separate"}
        Clip ``eta`` and ``Lam`` of a site together, or each by itself, which needs more noise.
    epsilon, sigma : float, optional
        For "dp-sep", one of the two: the target, or the noise multiplier in units of the sensitivity (a tuple of two
        for separate clipping).
    delta : float
    sampling : {"uniform", "shuffle", "cyclic"}
        Order of the records; only "uniform" hides a record among the others.
    accountant : {"rdp", "best", "tight", "wbk"}
        Who chooses the noise: proved Renyi bounds; all proved accountants (slow); or published formulas, for
        comparison. The report's epsilon is always a proved one.
    budget_split : tuple of float, optional
        With separate clipping, the shares of ``eta`` and ``Lam`` in the Renyi divergence.
    rho : float
        What eigenvalues of the precision of at most 0 become.
    damping, tol : float
        Of "ep"; see `run_ep`.
    x_offset, x_scale, y_offset, y_scale : float or array_like, optional
        Public numbers with which inputs and target are scaled.
    standardize : bool
        Scale by means and deviations of the training data, which is no private step. None for that only where the fit
        is not private and no public number is given.
    prior_norm : {"ignore", "check"}
        Whether a prior beyond `clip_norm` is refused, as [VP] demands; nothing depends on it.
    allow_leaks : bool
        Allow a private fit to use or show what is outside its guarantee; `privacy_report_` lists it.
    verbose : bool
        Whether to show a bar of passes, once two seconds are over.
    random_state : None, int or generator
        For a release, None.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (d,), float
        Posterior means in the original units.
    posterior_, theta_0_, theta_f_ : GaussianNatural
        Posterior, prior, and shared site.
    privacy_report_ : PrivacyReport
    information_fraction_, signal_to_noise_, noise_std_, stationary_noise_std_ : float
        What share of the data's information was absorbed, and what the noise did; the latter for "dp-sep".

    Notes
    -----
    More passes cost little privacy and reduce the noise, down to some tens of them. Sites of this model do not depend
    on the cavity, so releasing the sum of all clipped sites once would need still less noise
    (``benchmarks/papers/propagation_learning.py``): "dp-sep" is here for comparison with the models that need it.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = X @ [1.0, -2.0] + 0.1 * rng.normal(size=200)
    >>> EPLinearRegression(noise_var=0.01).fit(X, y).coef_.round(1)
    array([ 1., -2.])
    """

    def __init__(
        self,
        *,
        noise_var: float = 1.0,
        prior_mean: Any = 0.0,
        prior_precision: Any = 1.0,
        fit_intercept: bool = True,
        algorithm: str = "ep",
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
        tol: float = 1e-8,
        x_offset: Any = None,
        x_scale: Any = None,
        y_offset: float | None = None,
        y_scale: float | None = None,
        standardize: bool = False,
        prior_norm: str = "ignore",
        allow_leaks: bool = False,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.noise_var = noise_var
        self.prior_mean = prior_mean
        self.prior_precision = prior_precision
        self.fit_intercept = fit_intercept
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
        self.x_offset = x_offset
        self.x_scale = x_scale
        self.y_offset = y_offset
        self.y_scale = y_scale
        self.standardize = standardize
        self.prior_norm = prior_norm
        self.allow_leaks = allow_leaks
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Find the posterior of the weights.

        Parameters
        ----------
        X : array_like, shape (N, d)
        y : array_like, shape (N,)

        Raises
        ------
        InputError
            When an argument is out of range or does not fit the others.
        """
        with UnchangedIfRefused(self):
            return self._learn(X, y, None)

    def _learn(self, X: Any, y: Any, prior: GaussianNatural | None) -> Self:
        fitting, noise_var = Fitting.check(self), positive(self.noise_var, "noise_var")
        X, y, scaling = scaled_numbers(
            self, X, y, private=fitting.private, allow_leaks=fitting.allow_leaks, fresh=prior is None
        )
        model = LinearModel(self._start(X.shape[1], prior), noise_var / scaling.y_scale**2)
        records, finish = self._records(X, y, scaling, model), self._finish(scaling)
        return self._begin(fitting, model, records, finish, leaks=scaling.leaks, continued=prior is not None)

    def _rest(self, call: Stopped, X: Any, y: Any) -> None:
        X, y = checked_numbers(self, X, y, reset=False)
        self._go_on(call, self._records(X, y, self.scaling_, call.model), self._finish(self.scaling_))

    @staticmethod
    def _records(X: Floats, y: Floats, scaling: Scaling, model: Model[GaussianNatural]) -> list[tuple[Floats, float]]:
        rows = design(X, scaling, model.prior.eta.size > X.shape[1])
        return list(zip(rows, scaling.targets(y).tolist(), strict=True))

    def _finish(self, scaling: Scaling) -> Finish:
        return lambda model, posterior: {"_s2": model.s2, **self._kept(posterior, scaling)}

    def _kept(self, posterior: GaussianNatural, scaling: Scaling) -> dict[str, Any]:
        found = super()._kept(posterior, scaling)
        mean, d = found["_mean"], self.n_features_in_
        coef = scaling.y_scale * mean[:d] / scaling.x_scale
        bias = float(mean[d]) if found["_intercept"] else 0.0
        intercept = float(scaling.y_offset + scaling.y_scale * bias - coef @ scaling.x_offset)
        return {**found, "coef_": coef, "intercept_": intercept}

    def _scaled_moments(self, X: Any) -> tuple[Floats, Floats]:
        mean, variance = self._predictor(X)
        return mean, variance + self._s2
