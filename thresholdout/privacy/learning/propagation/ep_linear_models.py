"""Linear regression and binary classification by private expectation propagation."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import chosen, floats, positive
from thresholdout.privacy.learning.interrupted_calls import UnchangedIfRefused
from thresholdout.privacy.learning.privacy_report import CLASSES_LEAK
from thresholdout.privacy.learning.propagation.continued_fits import ContinuedFits
from thresholdout.privacy.learning.propagation.fitting import Finish, Fitting, Stopped
from thresholdout.privacy.learning.propagation.gaussian_models import (
    LinearModel,
    LinearPredictor,
    Model,
    logistic_probability,
    probit_probability,
)
from thresholdout.privacy.learning.propagation.natural_parameters import Floats, GaussianNatural
from thresholdout.privacy.learning.propagation.scaling import (
    GaussianPredictions,
    Scaling,
    checked_numbers,
    scaled_numbers,
)

__all__ = ["EPClassifier", "EPLinearRegression", "LinearBase", "design"]


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
        precision = floats(self.prior_precision, "prior_precision", f"a number above 0, or a matrix of shape {(d, d)}")
        if precision.ndim == 0:
            precision = np.diag(np.full(d, positive(float(precision), "prior_precision")))
        if precision.shape != (d, d):
            expected = f"a number above 0, or a matrix of shape {(d, d)}"
            raise InputError("prior_precision", f"an array of shape {precision.shape}", expected)
        mean = floats(self.prior_mean, "prior_mean", f"a number, or {d} numbers")
        if mean.shape not in ((), (d,)):
            raise InputError("prior_mean", f"an array of shape {mean.shape}", f"a number, or {d} numbers")
        return GaussianNatural(precision @ np.broadcast_to(mean, (d,)), precision)

    def _predictor(self, X: Any) -> tuple[Floats, Floats]:
        """Return mean and variance of the linear predictor for each row."""
        check_is_fitted(self, "posterior_")
        rows = design(validate_data(self, X, reset=False, dtype=np.float64), self.scaling_, self._intercept)
        return rows @ self._mean, np.einsum("ij,jk,ik->i", rows, self._cov, rows)

    def _kept(self, posterior: GaussianNatural, scaling: Scaling) -> dict[str, Any]:
        """Return an estimator's attributes of a posterior and its scales."""
        intercept = posterior.eta.size > self.n_features_in_
        mean, cov = posterior.mean(), posterior.cov()
        return {"_mean": mean, "_cov": cov, "_intercept": intercept, "scaling_": scaling}

    def posterior(self) -> dict[str, Floats]:
        """Return the Gaussian posterior of the weights, for inputs and target as they were scaled.

        Returns
        -------
        dict
            Arrays by name, with the intercept last: the moments ``mean`` and ``cov``, and the natural parameters
            ``Lam``, the inverse of the covariance, and ``eta``, ``Lam`` times the mean.
        """
        check_is_fitted(self, "posterior_")
        return {**self.posterior_.arrays(), "mean": self._mean, "cov": self._cov}


def design(X: Floats, scaling: Scaling, intercept: bool) -> Floats:
    """Return the scaled inputs, with a column of ones if there is an intercept."""
    scaled = scaling.inputs(X)
    return np.hstack([scaled, np.ones((len(X), 1))]) if intercept else scaled


class EPLinearRegression(GaussianPredictions, RegressorMixin, LinearBase):  # type: ignore[misc]
    """Train a Bayesian linear regression with known noise variance, optionally with differential privacy.

    Expectation propagation approximates the contribution of each record to the posterior of the weights by a Gaussian
    factor, its site. Stochastic expectation propagation keeps one shared site for all records, which clipping and noise
    make private. `predict` returns means and, on request, standard deviations. A private posterior needs few features
    and many records, about 20,000 for 5 features. `SSPRegressor` and `DPSGDRegressor` give better private predictions.

    Parameters
    ----------
    noise_var : float, default 1.0
        Known variance of a target about its mean, in squared units of the target.
    prior_mean, prior_precision : float or array_like, default 0.0 and 1.0
        Mean and precision (a number or a matrix) of the prior of the weights, the intercept last. They apply to scaled
        inputs and target.
    fit_intercept : bool, default True
        Whether to add an intercept, with the same prior.
    algorithm : {"ep", "adf", "sep", "clipped-sep", "dp-sep"}, default "ep"
        - "ep": expectation propagation, exact for this model, with one site for each record in memory.
        - "adf": assumed density filtering, one pass over the records. Needs ``n_epochs=1``.
        - "sep": stochastic expectation propagation, nearly exact, with memory for one shared site.
        - "clipped-sep": "sep" with clipped sites and no noise, to see the effect of `clip_norm` alone.
        - "dp-sep": "sep" with clipped sites and noise. The only differentially private algorithm.
    n_epochs : int, default 100
        Number of passes over the data (the maximum for "ep").
    gamma : {"default", "paper", "sep", "auto"} or float, default "default"
        Step size in (0, N] of the stochastic algorithms: 1 for "paper", N for "sep", the smaller of N and 3 N /
        n_epochs for "auto". "default" means "auto" for "dp-sep" and "sep" otherwise.
    clip_norm : float, optional
        Clipping threshold for the norm of each site, the norm of ``x y / s2`` and ``x x' / s2`` concatenated, where s2
        is the variance of the scaled noise. Required for "clipped-sep" and "dp-sep", and None otherwise.
    clip_mode : {"joint", "separate"}, default "joint"
        Whether to clip the natural parameters ``eta`` and ``Lam`` of a site together, or each by itself, which needs
        more noise.
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
        With separate clipping, the shares of ``eta`` and ``Lam`` in the Renyi divergence. Equal by default.
    rho : float, default 1e-4
        Replacement for eigenvalues of the precision matrix that are zero or negative.
    damping : float, default 1.0
        For "ep", in (0, 1]: weight of a new site against the old one.
    tol : float, default 1e-8
        For "ep": stop after a pass that changes no natural parameter of a site by more than this.
    x_offset, x_scale, y_offset, y_scale : float or array_like, optional
        Public numbers for scaling: ``(X - x_offset) / x_scale``, and the same for y. 0 and 1 by default.
    standardize : bool, default False
        Whether to scale by means and standard deviations of the training data, which is not private. None means True
        unless the fit is private or a public number is given.
    prior_norm : {"ignore", "check"}, default "ignore"
        Whether to refuse a prior whose norm exceeds `clip_norm`, as [VP] demands. Nothing depends on it.
    allow_leaks : bool, default False
        Whether a private fit may use or show facts outside its guarantee, which `privacy_report_` then lists.
    verbose : bool, default False
        Whether to show a progress bar of passes after two seconds.
    random_state : int, numpy.random.Generator or None, default None
        Seed or generator of draws and noise. Pass None for a model that you publish: the seed reveals the noise.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,), float
        Posterior means of the weights and of the intercept, in the original units.
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

    Notes
    -----
    More passes cost little privacy and reduce the noise, up to some tens of them. Sites of this model do not depend on
    the rest of the posterior. So `SSPRegressor`, which releases their sum once, needs less noise. "dp-sep" is for
    comparison with the models that need it. [VP] is M. Vinaroz and M. Park, "Differentially private stochastic
    expectation propagation".

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
        """Compute the posterior of the weights.

        Parameters
        ----------
        X : array_like of shape (N, n_features)
            Features of the training records. All values must be finite.
        y : array_like of shape (N,)
            Target of each record. All values must be finite.

        Returns
        -------
        EPLinearRegression
            The fitted estimator itself.

        Raises
        ------
        InputError
            If a parameter is out of range or contradicts another one.
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


class EPClassifier(ClassifierMixin, LinearBase):  # type: ignore[misc]
    """Train a Bayesian probit or logistic regression for two classes, optionally with differential privacy.

    Expectation propagation approximates the posterior of the weights by a Gaussian. ``algorithm="dp-sep"`` clips the
    contributions of records and adds noise. `EPLinearRegression` describes the common parameters in full.

    Parameters
    ----------
    link : {"probit", "logit"}, default "probit"
        Link between the linear predictor and the probability of the positive class.
    classes : array_like, optional
        The two labels, the positive one last. If None, they are read from `y`. A private fit would then reveal a label
        that only one record has, so it is refused unless `allow_leaks` is True, and the report lists the leak.
    prior_mean, prior_precision, fit_intercept : default=0.0, 1.0 and True
        Gaussian prior of the weights of scaled inputs, and whether there is an intercept.
    algorithm, n_epochs, gamma : default="ep", 100 and "default"
        Algorithm ("ep", "adf", "sep", "clipped-sep" or the private "dp-sep"), number of passes, and step size.
    clip_norm, clip_mode : default=None and "joint"
        Clipping threshold for the norm of a site, required for "clipped-sep" and "dp-sep", and the parts it applies to.
    epsilon, delta, sigma : default=None, 1e-5 and None
        Privacy of "dp-sep": pass exactly one of `epsilon`, the target, and `sigma`, the noise multiplier.
    sampling, accountant, budget_split : default="uniform", "rdp" and None
        Order of the updates, accountant that calibrates the noise, and shares of separately clipped parts.
    rho, damping, tol : default=1e-4, 1.0 and 1e-6
        Least eigenvalue after a correction, and damping and tolerance of "ep".
    x_offset, x_scale, standardize : default=None, None and False
        Public offset and scale of the inputs, or whether to take them from the training data, which is not private.
    prior_norm, allow_leaks, verbose, random_state : default="ignore", False, False and None
        Check of the prior, permission for listed leaks, progress bar, and seed (None for a model that you publish).

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two labels, the positive one last.
    coef_, intercept_ : ndarray of shape (1, n_features) and (1,)
        Posterior means of the weights and of the intercept, in the original units.
    posterior_, theta_0_, theta_f_ : GaussianNatural
        Natural parameters of the posterior, the prior and the shared site.
    privacy_report_ : PrivacyReport
        Guarantee of all calls so far. Its epsilon is ``inf`` without noise.
    information_fraction_, signal_to_noise_, noise_std_, stationary_noise_std_ : float
        Absorbed share of the information, and the noise of a private fit, as for `EPLinearRegression`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> EPClassifier().fit(X, y).score(X, y) > 0.95
    True
    """

    _PROBABILITIES: ClassVar[dict[str, Any]] = {"probit": probit_probability, "logit": logistic_probability}

    classes_: Any
    _classes_given: bool
    _link: str

    def __init__(
        self,
        *,
        link: str = "probit",
        classes: Any = None,
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
        tol: float = 1e-6,
        x_offset: Any = None,
        x_scale: Any = None,
        standardize: bool = False,
        prior_norm: str = "ignore",
        allow_leaks: bool = False,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.link = link
        self.classes = classes
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
        self.standardize = standardize
        self.prior_norm = prior_norm
        self.allow_leaks = allow_leaks
        self.verbose = verbose
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Compute the posterior of the weights.

        Parameters
        ----------
        X : array_like of shape (N, n_features)
            Features of the training records. All values must be finite.
        y : array_like of shape (N,)
            Label of each record, one of two.

        Returns
        -------
        EPClassifier
            The fitted estimator itself.

        Raises
        ------
        InputError
            If there are not two classes, or a parameter is out of range or contradicts another one.
        """
        with UnchangedIfRefused(self):
            return self._learn(X, y, None)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Learn from further records, with the last posterior as the prior.

        Parameters
        ----------
        X, y : array_like of shape (n, n_features) and (n,)
            Features and labels of new records. Records of earlier calls would count twice.
        classes : array_like, optional
            Both labels, in the first call. If None, the parameter `classes`. Later calls may repeat the same labels.

        Returns
        -------
        EPClassifier
            The estimator itself. Its `privacy_report_` covers all calls so far.

        Raises
        ------
        InputError
            If `fit` would refuse the data, labels differ from those of earlier calls, or these have used up the target
            epsilon.

        Notes
        -----
        The report composes all calls. It holds for two sequences of data sets that differ in one record, which may be
        in each.
        """
        with UnchangedIfRefused(self):
            return self._learn(X, y, getattr(self, "posterior_", None), classes)

    def _learn(self, X: Any, y: Any, prior: GaussianNatural | None, classes: Any = None) -> Self:
        fitting, fresh = Fitting.check(self), prior is None
        link = chosen(self.link, "link", self._PROBABILITIES)
        Scaling.check(self, private=fitting.private, allow_leaks=fitting.allow_leaks)
        given = self.classes if classes is None else classes
        declared = given is not None if fresh else self._classes_given
        if fitting.private and not declared and not fitting.allow_leaks:
            advice = "Labels that are read from y can show a single record; allow_leaks=True permits it."
            raise InputError("classes", "None in a private fit", "both labels", advice)
        X, y = self._checked(X, y, reset=fresh)
        found, signs = self._signs(y, given if fresh or classes is not None else self.classes_)
        if not fresh and not np.array_equal(found, self.classes_):
            raise InputError("classes", "other labels", "those of the earlier calls, in their order")
        leaks = () if declared or not fitting.private else (CLASSES_LEAK,)
        scaling = (
            Scaling.of(self, X, signs, private=fitting.private, allow_leaks=fitting.allow_leaks)
            if fresh
            else self.scaling_
        )
        model = LinearPredictor(self._start(X.shape[1], prior), link)
        records, finish = self._records(X, signs, scaling, model), self._finish(found, declared, scaling)
        return self._begin(fitting, model, records, finish, leaks=(*leaks, *scaling.leaks), continued=not fresh)

    def _rest(self, call: Stopped, X: Any, y: Any) -> None:
        X, y = self._checked(X, y, reset=False)
        signs, scaling = self._signs(y, self.classes_)[1], self.scaling_
        finish = self._finish(self.classes_, self._classes_given, scaling)
        self._go_on(call, self._records(X, signs, scaling, call.model), finish)

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[Floats, Any]:
        X, y = validate_data(self, X, y, dtype=np.float64, reset=reset)
        check_classification_targets(y)
        return X, y

    @staticmethod
    def _records(X: Floats, signs: Floats, scaling: Scaling, model: Model[Any]) -> list[tuple[Floats, float]]:
        return list(zip(design(X, scaling, model.prior.eta.size > X.shape[1]), signs.tolist(), strict=True))

    def _finish(self, classes: Any, declared: bool, scaling: Scaling) -> Finish:
        def finish(model: LinearPredictor, posterior: GaussianNatural) -> dict[str, Any]:
            known = {"classes_": classes, "_classes_given": declared, "_link": model.link}
            return {**known, **self._kept(posterior, scaling)}

        return finish

    def _kept(self, posterior: GaussianNatural, scaling: Scaling) -> dict[str, Any]:
        found = super()._kept(posterior, scaling)
        mean, d = found["_mean"], self.n_features_in_
        coef = (mean[:d] / scaling.x_scale)[None, :]
        bias = float(mean[d]) if found["_intercept"] else 0.0
        return {**found, "coef_": coef, "intercept_": np.array([bias]) - coef @ scaling.x_offset}

    def _signs(self, y: Any, given: Any) -> tuple[Any, Floats]:
        """Return the classes, and the label of each record as -1 or 1."""
        found = np.unique(y)
        if given is None:
            if len(found) > 2:
                # scikit-learn's checks search for this sentence.
                advice = "Only binary classification is supported."
                raise InputError("y", f"{len(found)} labels", "two labels", advice)
            if len(found) < 2:
                advice = "Pass both of them as classes where the records have only one."
                raise InputError("y", "one class", "labels of two classes", advice)
            classes = found
        else:
            classes = np.asarray(given)
            if classes.shape != (2,) or classes[0] == classes[1]:
                raise InputError("classes", repr(given), "two different labels")
            if not np.isin(found, classes).all():
                raise InputError("y", "a label that is not among them", "labels out of classes")
        return classes, np.where(y == classes[1], 1.0, -1.0)

    def decision_function(self, X: Any) -> Floats:
        """Compute the posterior mean of the linear predictor of each row of `X`.

        Returns
        -------
        ndarray of shape (n,)
            Scores. A positive score favors the second class of `classes_`.
        """
        return self._predictor(X)[0]

    def predict_proba(self, X: Any) -> Floats:
        """Predict the probability of each class for each row of `X`, averaged over the posterior.

        Returns
        -------
        ndarray of shape (n, 2)
            Probabilities in the order of `classes_`.
        """
        mean, variance = self._predictor(X)
        of_label = self._PROBABILITIES[self._link]
        return np.column_stack([of_label(-mean, variance), of_label(mean, variance)])

    def predict(self, X: Any) -> Any:
        """Predict the more probable class of each row of `X`, an array of shape (n,)."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int)]

    def log_likelihood(self, X: Any, y: Any) -> float:
        """Compute the mean log probability of the labels `y` for the rows of `X`, a float; larger is better."""
        of_label = (np.asarray(y) == self.classes_[1]).astype(int)
        with np.errstate(divide="ignore"):
            return float(np.mean(np.log(self.predict_proba(X)[np.arange(len(of_label)), of_label])))
