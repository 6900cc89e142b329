"""Probabilistic backpropagation: regression by a Bayesian network and expectation propagation, private or not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from graphs.progress_bar import progress_bar
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import chosen, count, positive
from thresholdout.privacy.learning.interrupted_calls import RunInterrupted, UnchangedIfRefused, kept_if_interrupted
from thresholdout.privacy.learning.propagation.continued_fits import ContinuedFits
from thresholdout.privacy.learning.propagation.ep_runs import Run, Unfinished, information_fraction, run_sep
from thresholdout.privacy.learning.propagation.fitting import Finish, Fitting, Stopped
from thresholdout.privacy.learning.propagation.natural_parameters import Floats
from thresholdout.privacy.learning.propagation.network_moments import forward_moments, layer_shapes
from thresholdout.privacy.learning.propagation.pbp_sites import NetworkModel, NetworkNatural, WeightPrior
from thresholdout.privacy.learning.propagation.scaling import (
    GaussianPredictions,
    Scaling,
    checked_numbers,
    scaled_numbers,
)
from thresholdout.privacy.learning.random_streams import streams

__all__ = ["PBPRegressor"]

_NOISE_PRIOR = np.array([5.0, -6.0])  # Gamma(6, 6)


@dataclass(frozen=True, eq=False)
class _UnfinishedPasses:
    """Finished passes over the records, and the state of an interrupted one.

    `shared` is the shared site after the finished passes; `weights` and `prior` are the model's after the last
    refinement.
    """

    shared: NetworkNatural
    weights: WeightPrior
    prior: NetworkNatural
    passes: tuple[Run[NetworkNatural], ...] = ()
    within: Unfinished[NetworkNatural] | None = None

    @property
    def updates(self) -> int:
        return sum(run.n_updates + run.n_skipped for run in self.passes) + (self.within.updates if self.within else 0)

    def covered(self) -> _UnfinishedPasses:
        """Return the same without the counts that depend on the records alone, which no noise covers."""
        passes = tuple(replace(run, n_failed_sites=0) for run in self.passes)
        return replace(self, passes=passes, within=self.within and self.within.covered())

    def as_run(self, prior: NetworkNatural, N: int) -> Run[NetworkNatural]:
        """Return the same as a run that ended here."""
        runs = list(self.passes)
        if self.within is not None:
            runs.append(self.within.as_run(prior, N))
        shared = runs[-1].theta_f
        return Run(
            prior + shared.scale(N),
            shared,
            sum(run.n_updates for run in runs),
            sum(run.n_skipped for run in runs),
            sum(run.n_failed_sites for run in runs),
            sum(run.n_projections for run in runs),
            sum(run.n_passes for run in runs),
            tuple(change for run in runs for change in run.changes),
            False,
        )


class _NetworkFitting(Fitting):
    """Passes over the records, after each of which the prior of the weights may be refined."""

    def _run(
        self, model: Any, records: Sequence[Any], gamma: float, noise: tuple[float, ...], call: int, resume: Any
    ) -> Any:
        if self.algorithm in ("ep", "adf"):
            # These algorithms have no shared site that forgets a start, so the start is the prior's mean.
            if resume is None:
                model.prior = model.prior + model.start
            return super()._run(model, records, gamma, noise, call, resume)
        # A generator, so that each pass has streams of its own.
        seeds, N = streams(self.random_state, call).sampling, len(records)
        begun: _UnfinishedPasses = resume or _UnfinishedPasses(model.start.scale(1 / N), model.weights, model.prior)
        so_far = begun

        def kept() -> _UnfinishedPasses:
            model.weights, model.prior = so_far.weights, so_far.prior
            return so_far

        with kept_if_interrupted(kept):
            for done in self._bar():
                if done < len(begun.passes):
                    streams(seeds)
                    continue
                try:
                    run = run_sep(
                        model,
                        records,
                        n_epochs=1,
                        gamma=gamma,
                        C=self.clip_norm,
                        sigma=noise if noise else 0.0,
                        sampling=self.sampling,
                        clip_mode=self.clip_mode,
                        rho=self.rho,
                        random_state=seeds,
                        theta_f=so_far.shared,
                        resume=so_far.within,
                    )
                except RunInterrupted as stopped:
                    so_far = replace(so_far, within=stopped.run)
                    raise
                # A tilt without precision, such as the rest of the start, would count as evidence of large weights.
                left = 1 - information_fraction(gamma, N, done + 1)
                model.refine(run.theta - model.start.scale(left))
                so_far = _UnfinishedPasses(run.theta_f, model.weights, model.prior, (*so_far.passes, run))
        return so_far.as_run(model.prior, N)

    def _moved(self, run: Any, model: Any, gamma: float, N: int) -> Any:
        # The rest of the random start is no signal.
        start = model.start.scale(1 - information_fraction(gamma, N, self.n_epochs))
        return run.theta - start - model.prior

    def _bar(self) -> Any:
        passes = range(self.n_epochs)
        return progress_bar(passes, doing="probabilistic backpropagation", unit="passes", show=self.progress)


class _RefinedModel(NetworkModel):
    """A network with a random start, whose prior may be refined; or one that continues from a posterior as it is."""

    def __init__(
        self,
        shapes: Sequence[tuple[int, int]],
        noise_variance: float | None,
        rng: np.random.Generator,
        *,
        refined: bool,
        known: NetworkNatural | None = None,
    ) -> None:
        self.weights = WeightPrior(sum(out * width for out, width in shapes))
        noise = _NOISE_PRIOR if noise_variance is None else None
        prior = NetworkNatural(self.weights.eta, self.weights.Lam, noise)
        super().__init__(prior if known is None else known, shapes, noise_variance)
        self.start = self.prior.scale(0.0)
        if known is None:
            means = [rng.standard_normal(shape).ravel() / math.sqrt(shape[1]) for shape in shapes]
            self.start.eta[:] = np.concatenate(means) * self.weights.Lam
        self.refined = refined and known is None

    def refine(self, theta: NetworkNatural) -> None:
        """Refine the prior by the posterior, if that is wanted; reads no record."""
        if not self.refined:
            return
        weights = deepcopy(self.weights)  # an interrupt needs the old ones
        weights.refine(theta.eta, theta.Lam)
        noise = self.prior.noise if self.prior.learned else None
        self.weights, self.prior = weights, NetworkNatural(weights.eta, weights.Lam, noise)


class PBPRegressor(GaussianPredictions, ContinuedFits, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Train a Bayesian neural network for regression by probabilistic backpropagation, optionally private.

    Each weight has a Gaussian posterior, so `predict` also returns standard deviations. (Stochastic) expectation
    propagation learns the posteriors; ``algorithm="dp-sep"`` clips the contributions of records, their sites, and adds
    noise. A private network needs very many records, see the notes. `DPVIRegressor` fits a similar network by private
    gradient descent, and `EPLinearRegression` a linear model. The latter describes the parameters about privacy in
    full.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int, default (50,)
        Number of rectified linear units in each hidden layer.
    n_epochs : int, default 40
        Number of passes over the data (the maximum for "ep").
    noise_precision : {"default", "learn", "fixed"}, default "default"
        How to determine the noise of the target.

        - "learn": infer its precision, with a Gamma(6, 6) prior. A private fit includes it in the vector that is
          clipped and gets noise.
        - "fixed": use `noise_var`.
        - "default": "fixed" in a private fit, "learn" otherwise.
    noise_var : float, default 1.0
        Variance of a scaled target about its mean, a public number. Used if the noise is fixed.
    refine_prior : bool, default True
        Whether to infer the prior precision of the weights after each pass, from the posterior alone, with a Gamma(6,
        6) prior. Has no effect for "ep" and "adf".
    algorithm : {"sep", "ep", "adf", "clipped-sep", "dp-sep"}, default "sep"
        - "sep": stochastic expectation propagation, with one shared site for all records.
        - "ep": expectation propagation, with one site for each record.
        - "adf": assumed density filtering, one pass over the records. Needs ``n_epochs=1``.
        - "clipped-sep": "sep" with clipped sites and no noise, to see the effect of `clip_norm` alone.
        - "dp-sep": "sep" with clipped sites and noise. The only differentially private algorithm.
    gamma : {"default", "paper", "sep", "auto"} or float, default "default"
        Step size in (0, N] of the stochastic algorithms: 1 for "paper", N for "sep", the smaller of N and 3 N /
        n_epochs for "auto". "default" means "auto" for "dp-sep" and "sep" otherwise.
    clip_norm : float, optional
        Clipping threshold for the norm of a site. Required for "clipped-sep" and "dp-sep", and None otherwise.
    clip_mode : {"joint", "separate"}, default "joint"
        Whether to clip the natural parameters of a site together, or ``eta`` and the precisions separately, which needs
        more noise. The parameters of the noise belong to the precisions.
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
        With separate clipping, the shares of the two parts in the Renyi divergence. Equal by default.
    rho : float, default 1e-4
        Replacement for precisions that are zero or negative.
    damping : float, default 1.0
        For "ep", in (0, 1]: weight of a new site against the old one.
    tol : float, default 1e-6
        For "ep": stop after a pass that changes no natural parameter of a site by more than this.
    x_offset, x_scale, y_offset, y_scale : float or array_like, optional
        Public numbers for scaling: ``(X - x_offset) / x_scale``, and the same for y.
    standardize : bool, optional
        Whether to scale by means and standard deviations of the training data. If None, True unless the fit is private
        or a public number is given. A private fit also needs `allow_leaks` for it.
    prior_norm : {"ignore", "check"}, default "ignore"
        Whether to refuse a prior whose norm exceeds `clip_norm`. The norm grows with the number of weights, so a check
        refuses most networks.
    allow_leaks : bool, default False
        Whether a private fit may use or show facts outside its guarantee, which `privacy_report_` then lists.
    verbose : bool, default False
        Whether to show a progress bar of passes after two seconds.
    random_state : int, numpy.random.Generator or None, default None
        Seed or generator of start, draws and noise. Pass None for a model that you publish: the seed reveals the noise.

    Attributes
    ----------
    posterior_, theta_0_, theta_f_ : NetworkNatural
        Natural parameters of the posterior, the last prior and the shared site.
    means_, variances_ : list of ndarray
        Posterior means and variances of the weights, one array for each layer.
    noise_var_ : float
        Variance of a scaled target about its mean.
    privacy_report_ : PrivacyReport
        Guarantee of all calls so far. Its epsilon is ``inf`` without noise.
    information_fraction_ : float
        Share of the information in the data that was absorbed, 1 for "ep" and "adf".
    n_projections_ : int
        Number of updates after which the posterior had to be made proper.
    n_skipped_ : int
        Number of updates that were skipped because their result was improper. Not available after a private fit.
    n_failed_sites_ : int
        Number of updates that used the shared site in place of that of the record. Only for "dp-sep" with
        `allow_leaks`.
    signal_to_noise_ : float
        For "dp-sep": distance that the posterior moved, divided by the expected distance from noise alone.
    noise_std_ : float
        For "dp-sep": standard deviation of the noise after the last pass.

    Notes
    -----
    [PBP] is J. M. Hernandez-Lobato and R. P. Adams, "Probabilistic backpropagation for scalable learning of Bayesian
    neural networks" (2015). Each weight gets noise, so a private network needs very many records. At epsilon 1 and some
    thousands of records it predicts no better than a constant (``benchmarks/papers/pbp.py``), but `EPLinearRegression`
    with few features predicts better. A floor `rho` of the size of the prior's precision, 5/6, bounds the predictions
    of a noisy network, at no cost of privacy.

    Weights start at random means, because symmetric units would stay equal. "sep" puts them into the shared site, which
    forgets them; "ep" and "adf" keep them as means of the prior.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(150, 1))
    >>> y = np.abs(X[:, 0]) + 0.05 * rng.normal(size=150)
    >>> model = PBPRegressor(hidden_layer_sizes=(8,), n_epochs=20, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.8
    True
    """

    def __init__(
        self,
        hidden_layer_sizes: Any = (50,),
        *,
        n_epochs: int = 40,
        noise_precision: str = "default",
        noise_var: float = 1.0,
        refine_prior: bool = True,
        algorithm: str = "sep",
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
        y_offset: float | None = None,
        y_scale: float | None = None,
        standardize: bool | None = None,
        prior_norm: str = "ignore",
        allow_leaks: bool = False,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.n_epochs = n_epochs
        self.noise_precision = noise_precision
        self.noise_var = noise_var
        self.refine_prior = refine_prior
        self.algorithm = algorithm
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
        """Compute the posterior of the weights, from a new random start.

        Parameters
        ----------
        X : array_like of shape (N, n_features)
            Features of the training records. All values must be finite.
        y : array_like of shape (N,)
            Target of each record. All values must be finite.

        Returns
        -------
        PBPRegressor
            The fitted estimator itself.

        Raises
        ------
        InputError
            If a parameter is out of range or contradicts another one.

        Warns
        -----
        ConvergenceWarning
            If more than a tenth of the updates of a pass without noise was skipped.
        """
        with UnchangedIfRefused(self):
            return self._learn(X, y, None)

    def _learn(self, X: Any, y: Any, prior: NetworkNatural | None) -> Self:
        fitting: Fitting = _NetworkFitting.check(self)
        precision = chosen(self.noise_precision, "noise_precision", ("default", "learn", "fixed"))
        noise_var = positive(self.noise_var, "noise_var")
        hidden = [count(size, "hidden_layer_sizes") for size in np.atleast_1d(self.hidden_layer_sizes).tolist()]
        X, y, scaling = scaled_numbers(
            self, X, y, private=fitting.private, allow_leaks=fitting.allow_leaks, fresh=prior is None
        )
        learned = precision == "learn" or (precision == "default" and not fitting.private)
        shapes = layer_shapes(X.shape[1], hidden)
        if prior is not None:
            if shapes != [mean.shape for mean in self.means_]:
                raise InputError("hidden_layer_sizes", repr(self.hidden_layer_sizes), "as in the earlier calls")
            if precision == "default":
                learned = prior.learned
            elif learned != prior.learned:
                raise InputError("noise_precision", repr(precision), "as in the earlier calls")
        start, known = streams(self.random_state).initial, None if learned else noise_var
        model = _RefinedModel(shapes, known, start, refined=bool(self.refine_prior), known=prior)
        records, finish = self._records(X, y, scaling), self._finish(scaling)
        return self._begin(fitting, model, records, finish, leaks=scaling.leaks, continued=prior is not None)

    def _rest(self, call: Stopped, X: Any, y: Any) -> None:
        X, y = checked_numbers(self, X, y, reset=False)
        self._go_on(call, self._records(X, y, self.scaling_), self._finish(self.scaling_))

    @staticmethod
    def _records(X: Floats, y: Floats, scaling: Scaling) -> list[tuple[Floats, float]]:
        return list(zip(scaling.inputs(X), scaling.targets(y).tolist(), strict=True))

    @staticmethod
    def _finish(scaling: Scaling) -> Finish:
        def finish(model: _RefinedModel, posterior: NetworkNatural) -> dict[str, Any]:
            means, variances = model.moments(posterior)
            noise = model.noise_of(posterior)
            return {"noise_var_": noise, "means_": means, "variances_": variances, "scaling_": scaling}

        return finish

    def _scaled_moments(self, X: Any) -> tuple[Floats, Floats]:
        check_is_fitted(self, "posterior_")
        rows = self.scaling_.inputs(validate_data(self, X, reset=False, dtype=np.float64))
        found = forward_moments(self.means_, self.variances_, rows)
        return found.mean, found.variance + self.noise_var_

    def posterior(self) -> dict[str, Any]:
        """Return the posterior of the weights, for inputs and target as they were scaled.

        Returns
        -------
        dict
            The moments ``means`` and ``variances``, lists with one array for each layer. The natural parameters ``eta``
            and ``Lam`` as flat arrays, and ``noise`` if the noise was learned.
        """
        check_is_fitted(self, "posterior_")
        return {**self.posterior_.arrays(), "means": self.means_, "variances": self.variances_}
