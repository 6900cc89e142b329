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


class EPLinearRegression(GaussianPredictions, RegressorMixin, LinearBase):  # type: ignore[misc]
    """Bayesian linear regression with known noise, by expectation propagation, optionally private.

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
        Step parameter in (0, N]: 1 for "paper", N for "sep", the smaller of N and 3 N / n_epochs for "auto". The
        default is "auto" with noise, "sep" without.
    clip_norm : float, optional
        Norm that sites are clipped to, for "clipped-sep" and "dp-sep". The norm of a site is that of ``x y / s2`` and
        ``x x' / s2`` together, s2 being the scaled noise's variance.
    clip_mode : {"joint", "separate"}
        Clip ``eta`` and ``Lam`` of a site together, or each by itself, which needs more noise.
    epsilon, sigma : float, optional
        For "dp-sep", one of the two: the target, or the noise multiplier in units of the sensitivity (a tuple of two
        for separate clipping).
    delta : float
    sampling : {"uniform", "shuffle", "cyclic"}
        Order of the records; only "uniform" hides a record among the others.
    accountant : {"rdp", "best", "tight", "wbk"}
        Chooses the noise: proved Renyi bounds; all proved accountants (slow); or published formulas, for comparison.
        The report's epsilon is always a proved one.
    budget_split : tuple of float, optional
        With separate clipping, the shares of ``eta`` and ``Lam`` in the Renyi divergence.
    rho : float
        Replaces eigenvalues of the precision of at most 0.
    damping : float
        For "ep", in (0, 1]: weight of a new site against the old one.
    tol : float
        For "ep": a pass that changes no natural parameter of a site by more than this is the last one.
    x_offset, x_scale, y_offset, y_scale : float or array_like, optional
        Public numbers that scale inputs and target.
    standardize : bool
        Scale by means and deviations of the training data, which is no private step. None means True only if the fit is
        not private and no public number is given.
    prior_norm : {"ignore", "check"}
        Whether a prior beyond `clip_norm` is refused, as [VP] demands; nothing depends on it.
    allow_leaks : bool
        Allow a private fit to use or show facts outside its guarantee; `privacy_report_` lists them.
    verbose : bool
        Show a progress bar of passes after two seconds.
    random_state : None, int or generator
        For a release, None.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (d,), float
        Posterior means in the original units.
    posterior_, theta_0_, theta_f_ : GaussianNatural
        Posterior, prior, and shared site.
    privacy_report_ : PrivacyReport
    information_fraction_ : float
        Share of the data's information that was absorbed.
    signal_to_noise_, noise_std_, stationary_noise_std_ : float
        For "dp-sep": the distance that the posterior moved over that of noise alone, and the standard deviation of the
        noise after the last pass and in the limit.

    Notes
    -----
    More passes cost little privacy and reduce the noise, up to some tens of them. Sites of this model do not depend on
    the cavity. So `SSPRegressor`, which releases their sum once, needs less noise; "dp-sep" is for comparison with the
    models that need it. [VP] is M. Vinaroz and M. Park, "Differentially private stochastic expectation propagation".

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
            When an argument is out of range, or contradicts another one.
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
    """Bayesian probit or logistic regression for two classes, by expectation propagation, optionally private.

    Parameters
    ----------
    link : {"probit", "logit"}
    classes : array_like, optional
        The two labels, the positive one last. A private fit without them would show a label that only one record has.
        It is refused, unless `allow_leaks` is set; the report then lists the leak.
    prior_mean, prior_precision, fit_intercept, algorithm, n_epochs, gamma, clip_norm, clip_mode
        As in `EPLinearRegression`.
    epsilon, delta, sigma, sampling, accountant, budget_split, rho, damping, tol
        As in `EPLinearRegression`.
    x_offset, x_scale, standardize, prior_norm, allow_leaks, verbose, random_state
        As in `EPLinearRegression`.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    coef_, intercept_ : ndarray of shape (1, d) and (1,)
        Posterior means in the original units.
    posterior_, theta_0_, theta_f_, privacy_report_, information_fraction_
        As in `EPLinearRegression`; so are the attributes about noise.

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
        """Find the posterior of the weights.

        Parameters
        ----------
        X : array_like, shape (N, d)
        y : array_like, shape (N,)
            Of two labels.

        Raises
        ------
        InputError
            When there are not two classes, or an argument is out of range or contradicts another one.
        """
        with UnchangedIfRefused(self):
            return self._learn(X, y, None)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Learn from further records, with the last posterior as the prior.

        Parameters
        ----------
        X, y
            As in `fit`. The records must be new: records that come back count twice.
        classes : array_like, optional
            In the first call both labels, in place of the parameter; in later ones the same.

        Returns
        -------
        object
            Itself.

        Raises
        ------
        InputError
            As `fit`; for other labels than those of earlier calls, and for a target epsilon that these have spent.

        Notes
        -----
        As in `EPLinearRegression.partial_fit`.
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
        """Return the mean of the linear predictor of each row, shape (n,)."""
        return self._predictor(X)[0]

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, averaged over the posterior, shape (n, 2)."""
        mean, variance = self._predictor(X)
        of_label = self._PROBABILITIES[self._link]
        return np.column_stack([of_label(-mean, variance), of_label(mean, variance)])

    def predict(self, X: Any) -> Any:
        """Return the more probable class of each row."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int)]

    def log_likelihood(self, X: Any, y: Any) -> float:
        """Return the mean logarithm of the probabilities of labels."""
        of_label = (np.asarray(y) == self.classes_[1]).astype(int)
        with np.errstate(divide="ignore"):
            return float(np.mean(np.log(self.predict_proba(X)[np.arange(len(of_label)), of_label])))
