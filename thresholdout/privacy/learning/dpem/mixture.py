"""A mixture of Gaussians that is fitted by differentially private expectation-maximisation (DP-EM)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from thresholdout.privacy.accounting.bound_arguments import count, open_unit
from thresholdout.privacy.learning.dpem.mixing import Mixing, Path
from thresholdout.privacy.learning.dpem.record_statistics import (
    MixtureParameters,
    check_records,
    log_joint,
    on_grid,
    responsibilities,
    statistics_sum,
)
from thresholdout.privacy.learning.interrupted_calls import ResumedCalls, UnchangedIfRefused, check_alike
from thresholdout.privacy.learning.iterates import LEAST_NOISE, keep_steps
from thresholdout.privacy.learning.privacy_report import (
    LowSignalWarning,
    PrivacyReport,
    account_for,
    standing_assumptions,
)
from thresholdout.privacy.learning.random_streams import is_seeded, streams
from thresholdout.privacy.learning.targets import Search, Spent, TargetNoise, further_steps, noise_of_call

__all__ = ["DPEMGaussianMixture"]

Floats = NDArray[np.float64]
MOST_NOISE = 0.3  # measured: python -m benchmarks.papers.mixtures worth
ALIKE = "a record's probabilities are rounded alike wherever it stands among the others"


@dataclass(frozen=True, eq=False)
class _Call:
    """One call, decided before any record counts: public numbers only."""

    steps: int
    delta: float
    noise: float
    number: int
    first: int
    records: int | None
    average: bool
    progress: bool
    random_state: Any


class DPEMGaussianMixture(ResumedCalls, DensityMixin, BaseEstimator):  # type: ignore[misc]
    """Fit a mixture of Gaussians with differentially private expectation-maximization (DP-EM).

    Use it in place of `sklearn.mixture.GaussianMixture` to cluster records, to estimate a density or to draw synthetic
    records, where the mixture must not reveal any single training record. Each step releases the count, sum and second
    moments of each component with Gaussian noise; each record counts by its probabilities of the components. Weights,
    means and covariances follow from these statistics alone. The first step releases the statistics of all records
    together, to find a start for the components.

    Parameters
    ----------
    n_components : int, default 4
        Number of mixture components.
    covariance_type : {"spherical", "diag", "full"}, default "spherical"
        Shape of the components. Fewer numbers have less noise in all.

        - "spherical": one variance for each component.
        - "diag": one variance for each coordinate of each component.
        - "full": one covariance matrix for each component.
    clip_norm : float, default 1.0
        Public clipping threshold: records are scaled down to at most this Euclidean norm. Subtract a public center
        first, and keep the threshold small, because the noise is proportional to it.
    n_steps : int, default 20
        Number of steps. Each step uses all records.
    epsilon : float, default 1.0
        Privacy target, for which the noise is calibrated. Ignored if `noise_multiplier` is given.
    delta : float, default 1e-5
        Delta of the guarantee, in (0, 1). It should be well below one over the number of records.
    noise_multiplier : float, optional
        Standard deviation of the noise, in units of the norm of the statistics of one record. Less than 0.01 gives no
        privacy.
    adjacency : {"replace_one", "add_remove"}, default "replace_one"
        Whether the guarantee is about one replaced record, or about one record more or less. No setting depends on the
        number of records.
    budget_split : tuple of three floats, optional
        Shares of counts, sums and second moments in the privacy budget of each release. The default is (1/4, 1/2, 1/4).
    means_init : array_like of shape (n_components, n_features), optional
        Public starting means. If None, they are drawn from a Gaussian with the moments of the first step. Such a start
        can miss a cluster, so pass rough means if any are publicly known.
    reg_covar : float, default 1e-6
        Least variance of a component. It is raised where the noise is larger.
    average : bool, default True
        Whether to use the mean of the statistics of the later half of the steps in place of the last ones. The mean has
        less noise and costs no privacy, because the guarantee covers all steps.
    random_state : int, numpy.random.Generator or None, default None
        Seed or generator of noise and start. Pass None for a mixture that you publish: anyone who knows the seed can
        compute the noise.
    progress : bool, default True
        Whether to show a progress bar after two seconds.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Weights of the components.
    means_ : ndarray of shape (n_components, n_features)
        Means of the components.
    covariances_ : ndarray
        Variances or covariances of the components. The shape is (n_components,) for "spherical", (n_components,
        n_features) for "diag" and (n_components, n_features, n_features) for "full".
    n_steps_ : int
        Number of steps taken since the start.
    noise_multiplier_ : float
        Noise multiplier of the last call.
    noise_share_ : float
        Distance that the noise moves the mean of an average component in one step, in units of the clipping norm. It is
        computed from the noisy number of records, and infinite before the first step.
    privacy_report_ : PrivacyReport
        Guarantee of all steps since the start together, with its assumptions.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (``n_features_in_``,)
        Names of the features, if `X` had names that are all strings.

    Notes
    -----
    The algorithm follows [P17]. PROOFS.md of this package proves the sensitivity of all statistics together, and that
    their sums are exact. The noise does not depend on the number of components. Weak components are shrunk towards the
    moments of all records, more strongly where the noise is larger.

    A call is charged as a whole before its first step. After an interrupt the mixture is the result of the finished
    steps, and `resume` takes the others.

    References
    ----------
    [P17] Park, Foulds, Chaudhuri, Welling, *DP-EM: Differentially Private Expectation Maximization*, 2017.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(m, 0.1, size=(5000, 2)) for m in (-0.5, 0.5)])
    >>> found = DPEMGaussianMixture(2, epsilon=1.0, random_state=0).fit(X)
    >>> found.means_[np.argsort(found.means_[:, 0])].round(1)
    array([[-0.5, -0.5],
           [ 0.5,  0.5]])
    >>> found.privacy_report_.epsilon <= 1.0
    True
    """

    weights_: Floats
    means_: Floats
    covariances_: Floats
    n_steps_: int
    noise_multiplier_: float
    privacy_report_: PrivacyReport
    _path: Path
    _spent: Spent
    _target: TargetNoise | None
    _stopped: _Call | None

    def __init__(
        self,
        n_components: int = 4,
        *,
        covariance_type: str = "spherical",
        clip_norm: float = 1.0,
        n_steps: int = 20,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        noise_multiplier: float | None = None,
        adjacency: str = "replace_one",
        budget_split: Any = None,
        means_init: Any = None,
        reg_covar: float = 1e-6,
        average: bool = True,
        random_state: Any = None,
        progress: bool = True,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.clip_norm = clip_norm
        self.n_steps = n_steps
        self.epsilon = epsilon
        self.delta = delta
        self.noise_multiplier = noise_multiplier
        self.adjacency = adjacency
        self.budget_split = budget_split
        self.means_init = means_init
        self.reg_covar = reg_covar
        self.average = average
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any = None) -> DPEMGaussianMixture:
        """Fit the mixture, from a new start.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Training records. All values must be finite.
        y : None
            Ignored, present for pipelines.

        Returns
        -------
        DPEMGaussianMixture
            The fitted estimator itself. Read its guarantee from `privacy_report_`.

        Raises
        ------
        InputError, InputTypeError
            If a parameter is out of range or of the wrong type, or no noise meets the target epsilon.

        Warns
        -----
        LowSignalWarning
            If the noise is likely to hide the signal, judged by the noisy number of records.
        """
        with UnchangedIfRefused(self):
            return self._train(X, partial=False, asked=None)

    def partial_fit(self, X: Any, y: Any = None, n_steps: int | None = None) -> DPEMGaussianMixture:
        """Continue training from the current mixture, on the same or on new data.

        If `epsilon` is set as a target, it is the budget for as many steps as a single call to `fit` would take; all
        calls to `partial_fit` together share those steps. The first call calibrates the noise for all of them.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Records of this call. All values must be finite.
        y : None
            Ignored, present for pipelines.
        n_steps : int, optional
            Number of steps. If None, one step.

        Returns
        -------
        DPEMGaussianMixture
            The estimator itself. Its `privacy_report_` covers all calls so far.

        Raises
        ------
        InputError, InputTypeError
            If `fit` would refuse the parameters or the data, if a target has fewer than `n_steps` steps left, or if the
            kind of mixture differs from that of earlier calls.

        Warns
        -----
        SpentTargetWarning
            If `n_steps` is None and a target has no steps left. The call then does nothing.
        CostlyTargetWarning
            If the target was changed, and its rest needs at least twice the noise of earlier calls.

        Notes
        -----
        The report composes all calls. It holds for two sequences of data sets that differ in one record, which may be
        in the data of every call.
        """
        with UnchangedIfRefused(self):
            return self._train(X, partial=True, asked=n_steps)

    def _rest(self, call: _Call, X: Any, y: Any) -> None:
        X = validate_data(self, X, dtype=np.float64, reset=False)
        check_records(len(X))
        if call.records is not None:
            check_alike("the number of records", call.records, len(X))
        self._follow(call, X, self._path, {})

    def _train(self, X: Any, *, partial: bool, asked: int | None) -> DPEMGaussianMixture:
        steps, delta = count(self.n_steps, "n_steps"), open_unit(self.delta, "delta")
        wanted = None if asked is None else count(asked, "n_steps")
        streams(self.random_state)
        Mixing.check(self)
        fresh = not (partial and hasattr(self, "_spent"))
        X = validate_data(self, X, dtype=np.float64, reset=fresh)
        check_records(len(X))
        mixing = Mixing.check(self, X.shape[1])
        starts = mixing.public_starts(self.means_init)
        if not fresh:
            self._path.mixing.check_same(mixing)
        spent, target = (Spent(), None) if fresh else (self._spent, self._target)
        taken, shared = steps, None if self.noise_multiplier is not None else self.epsilon
        if partial:
            taken = further_steps(wanted, 1, steps, spent.steps, shared)
            if not taken:
                return self
        noise, target = noise_of_call(
            mixing.of, spent, target, noise_multiplier=self.noise_multiplier, epsilon=self.epsilon, delta=delta,
            public=mixing, total=steps, adjacency=mixing.adjacency,
            search=Search(progress=bool(self.progress)),
        )  # fmt: skip
        first = 0 if fresh else self.n_steps_
        # Kept only where it is public (PROOFS.md, S8).
        records = len(X) if mixing.adjacency == "replace_one" else None
        call = _Call(
            taken, delta, noise, spent.calls, first, records, bool(self.average), bool(self.progress), self.random_state
        )
        # Less noise is no privacy: the report then has an infinite epsilon.
        event = mixing.of(taken)(noise) if noise >= LEAST_NOISE else None
        spent = spent.charge(event, taken, noise, seeded=is_seeded(self.random_state))
        report = self._report(mixing, delta, spent)
        charged = {"_target": target, "_spent": spent, "privacy_report_": report, "noise_multiplier_": noise}
        if fresh:
            directions = streams(self.random_state).initial.standard_normal((mixing.components, mixing.d))
            path = Path(mixing, starts, directions, np.zeros((1, mixing.components * mixing.width)), np.zeros(0))
        else:
            path = self._path
        self._follow(call, X, path, charged)
        if not partial:
            self._warn()
        return self

    def _follow(self, call: _Call, X: Floats, path: Path, charged: Mapping[str, Any]) -> None:
        """Take the steps of a call, or those that an interrupt has left."""
        random, mixing = streams(call.random_state, call.number), path.mixing
        rows, everything = on_grid(X, mixing.clip), np.ones((len(X), 1))
        scales = call.noise * mixing.noise_scales
        done = path.states[call.first :]
        noises = np.concatenate([path.noises[: call.first], np.full(call.steps, call.noise)])

        def keep(found: Floats, left: bool) -> None:
            whole = replace(path, states=np.concatenate([path.states[: call.first], found]), noises=noises)
            self.__dict__.update({**charged, **self._described(call, whole), "_stopped": call if left else None})

        def noisy(sums: Floats) -> Floats:
            return sums + scales * random.noise.standard_normal(sums.shape)

        first = path.states[1] if path.steps else np.zeros(0)

        def step(t: int, state: Floats) -> Floats:
            nonlocal first
            now = call.first + t
            # The first step has one component, to which every record belongs (PROOFS.md, S7).
            if now == 0:
                total = noisy(statistics_sum(rows, everything, mixing.covariance_type))
                first = np.concatenate([total[0], np.zeros(state.size - mixing.width)])
                return first
            prior = mixing.prior(first, float(noises[0]))
            if now == 1:
                mixture = mixing.start(prior, path.starts, path.directions)
            else:
                mixture = mixing.mixture(state, float(noises[now - 1]), prior)
            return noisy(statistics_sum(rows, responsibilities(rows, mixture), mixing.covariance_type)).ravel()

        taken = iter(range(call.first, call.first + len(done) - 1))

        def replay() -> None:
            random.noise.standard_normal(mixing.width if next(taken) == 0 else mixing.components * mixing.width)

        keep_steps(keep, done, call.steps, step, replay, progress=call.progress, unit="steps")

    def _described(self, call: _Call, path: Path) -> dict[str, Any]:
        """Return all steps so far, with their mixture in the units of records."""
        clip, found = path.mixing.clip, path.mixture(average=call.average)
        return {
            "_path": path,
            "n_steps_": path.steps,
            "weights_": found.weights,
            "means_": clip * found.means,
            "covariances_": clip**2 * found.covariances,
            "noise_share_": path.noise_share,
        }

    def _warn(self) -> None:
        if self.noise_share_ > MOST_NOISE:  # a function of released and public numbers
            message = (
                f"Noise moves the mean of a component by {self.noise_share_:.2g} times the clipping norm in a step. "
                f"Above {MOST_NOISE:g}, mixtures are useless. About {self.noise_share_ / MOST_NOISE:.2g} "
                "times as many records, or as large an epsilon, or fewer components, are needed."
            )
            warnings.warn(message, LowSignalWarning, stacklevel=4)

    @staticmethod
    def _report(mixing: Mixing, delta: float, spent: Spent) -> PrivacyReport:
        assumed = standing_assumptions(seeded=spent.seeded, adjacency=mixing.adjacency, calls=spent.calls)
        if mixing.adjacency == "add_remove":
            assumed += (ALIKE,)
        return account_for(
            spent.event,
            delta=delta,
            adjacency=mixing.adjacency,
            released="the noisy statistics of every step",
            noise_multiplier=spent.least_noise,
            assumptions=assumed,
            details={"sensitivity": mixing.sensitivity, "clip_norm": mixing.clip, "steps": spent.steps},
        )

    def _log_joint(self, X: Any) -> Floats:
        """Return the logarithm of each component's weight times its density at each row, shape (n, n_components)."""
        check_is_fitted(self, "means_")
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        return log_joint(rows, MixtureParameters(self.weights_, self.means_, self.covariances_))

    def predict_proba(self, X: Any) -> Floats:
        """Predict the probability of each component for each row.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n, n_components)
            Posterior probabilities of the components. Each row sums to 1.
        """
        joint = self._log_joint(X)
        return np.asarray(np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)))

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Predict the most probable component of each row.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Records.

        Returns
        -------
        ndarray of int of shape (n,)
            Index of the component.
        """
        return np.asarray(np.argmax(self._log_joint(X), axis=1))

    def score_samples(self, X: Any) -> Floats:
        """Compute the log density of the mixture at each row.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n,)
            Logarithm of the density.
        """
        return np.asarray(np.logaddexp.reduce(self._log_joint(X), axis=1))

    def score(self, X: Any, y: Any = None) -> float:
        """Compute the mean log density of the mixture at the rows, for example to compare settings in a search.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Records.
        y : None
            Ignored, present for pipelines.

        Returns
        -------
        float
            Mean of `score_samples`. Larger is better.
        """
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Floats, NDArray[np.int64]]:
        """Draw synthetic records from the mixture.

        The records are as private as the mixture itself, because they are computed from it alone.

        Parameters
        ----------
        n_samples : int, default 1
            Number of records.
        random_state : int, numpy.random.Generator or None, default None
            Seed or generator of these draws. Do not pass that of the fit.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Synthetic records, sorted by component as in `sklearn.mixture.GaussianMixture`.
        components : ndarray of int of shape (n_samples,)
            Index of the component of each record, in increasing order.
        """
        check_is_fitted(self, "means_")
        n, rng = count(n_samples, "n_samples"), streams(random_state).initial
        d = self.n_features_in_
        components = np.sort(rng.choice(len(self.weights_), n, p=self.weights_))
        drawn = rng.standard_normal((n, d))
        if self.covariances_.ndim == 3:
            drawn = np.einsum("nij,nj->ni", np.linalg.cholesky(self.covariances_)[components], drawn)
        else:
            drawn *= np.sqrt(self.covariances_).reshape(len(self.weights_), -1)[components]
        return self.means_[components] + drawn, components
