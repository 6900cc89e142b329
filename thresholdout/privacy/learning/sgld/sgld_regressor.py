"""`SGLDRegressor`: Bayesian linear regression by Langevin dynamics, and a report of the privacy of its steps."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import chosen, count, open_unit, positive
from thresholdout.privacy.accounting.events.composed_events import Composed
from thresholdout.privacy.accounting.events.event_types import Event
from thresholdout.privacy.learning.interrupted_calls import (
    ResumedCalls,
    RunInterrupted,
    UnchangedIfRefused,
    check_alike,
)
from thresholdout.privacy.learning.privacy_report import PrivacyReport, account_for, standing_assumptions
from thresholdout.privacy.learning.random_streams import is_seeded, streams
from thresholdout.privacy.learning.sgld.clipped_events import (
    PlannedSteps,
    clipped_event,
    noise_multiplier_of,
    step_size_of,
    warn_of_noisy_steps,
    warn_of_start,
    warn_of_swing,
)
from thresholdout.privacy.learning.sgld.posterior_bound import posterior_dp
from thresholdout.privacy.learning.sgld.regression_model import RegressionDomain
from thresholdout.privacy.learning.sgld.sampler import (
    ORDERS,
    Problem,
    UnfinishedChains,
    run,
    step_sizes,
    warn_if_diverging,
)
from thresholdout.privacy.learning.sgld.worst_case_pair import pair_curve, plot_pair_curve, worst_of_pair
from thresholdout.privacy.learning.targets import Search, Spent, TargetNoise, further_steps, noise_of_call

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SGLDRegressor"]

Floats = NDArray[np.float64]
RELEASED = "the chains' states, the coefficients and the predictions"
BEFORE = (
    "the steps before convergence: that a draw from the posterior is private says nothing about them, and on the "
    "worst-case pair the iterates lose far more (privacy_curve, plot_privacy)"
)
AFTER = "the distance between the law of the last state and the posterior, which no number of steps bounds here"
_CHARGED = ("_spent", "_target", "privacy_report_", "_leaks")
INSTEAD = "step_size in its place, or warm_start=False"
CONDITION = "one exact draw were released instead, and all records are in the domain"
STEP = "the step size was chosen from the largest rows of the data; give step_size, epsilon or domain instead"


@dataclass(frozen=True, eq=False)
class _Call:
    """One call without its records, and the chains that an interrupt has left."""

    problem: Problem
    records: int
    intercept: bool
    number: int
    partial: bool
    progress: bool
    random_state: Any
    chains: UnfinishedChains | None = None


class SGLDRegressor(ResumedCalls, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Train Bayesian linear regression by stochastic gradient Langevin dynamics, optionally with differential privacy.

    The weights have a prior N(0, 1/alpha), and the targets normal noise of precision beta. Each chain is noisy gradient
    descent; the last states of many independent chains approximate draws from the posterior.

    **Without `clip` there is no privacy guarantee**, even where a draw from the posterior would be private [HF]. With
    `clip`, each record's gradient is bounded and the noise of the steps protects it, but the chains no longer converge
    to the posterior.

    Parameters
    ----------
    alpha, beta : float, default 1.0
        Precisions of the prior and of the noise of the target, above 0.
    step_size : float or array_like of shape (n_steps,), optional
        Step size of the chains. The default keeps them stable and the noise of the minibatches small. It follows from
        the data (their largest eigenvalue and row), or from `domain` alone if that is given.
    n_steps : int, default 2000
        Number of steps of each chain.
    batch_size : int, default 32
        Number of records in a step, all records if there are fewer.
    order : {"uniform", "cyclic", "reshuffle"}, default "uniform"
        Draws with replacement, one order that is repeated, or a new order for each pass. The last two need a
        `batch_size` that divides the number of records.
    clip : float, optional
        Clipping threshold for the norm of each record's gradient. If None, the fit is not private.
    epsilon : float, optional
        Privacy target for all chains together, over all fits that they continue. Needs `clip`, and no `step_size`.
    delta : float, default 1e-5
        Delta of the guarantee and of the target, in (0, 1).
    n_chains : int, default 100
        Number of chains. Each costs privacy. Their differences give the uncertainty in `predict`.
    fit_intercept : bool, default True
        Whether to add an intercept, with the same prior.
    domain : RegressionDomain, optional
        Public bounds of the records, for one feature without intercept. The report then has the privacy of the
        posterior, and a lower bound on the privacy loss of the iterates on the worst-case pair.
    warm_start : bool, default False
        Whether `fit` continues the last chains. Report and target then cover both; a target that is used up is refused.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None, default None
        Seed or generator. Pass None for a model that you publish: anyone who knows the seed can compute the noise.
    progress : bool, default True
        Whether to show a progress bar after two seconds.

    Attributes
    ----------
    samples_ : ndarray of shape (n_chains, n_features) or (n_chains, n_features + 1)
        Last state of each chain, with the intercept last.
    coef_, intercept_ : ndarray of shape (n_features,), float
        Means over the chains of the slopes and of the intercept, which is 0 without one.
    step_size_ : float or ndarray
        Step sizes in use.
    batch_size_, n_samples_, n_steps_ : int
        Batch size and number of records of the last call, and number of steps charged since the chains started.
    privacy_report_ : PrivacyReport
        Guarantee about a replaced record. Its ``leaks`` list the parts that it does not cover.
    n_features_in_, feature_names_in_ : int, ndarray
        Number and names of the features seen during `fit`.

    Notes
    -----
    A call is charged as a whole. After an interrupt the estimator holds the current states of the chains that have
    moved, and `resume` takes the remaining steps. [HF] is Heller and Fetaya, *Can Stochastic Gradient Langevin Dynamics
    Provide Differential Privacy for Deep Learning?*

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = X @ [1.0, -2.0] + 0.5 + rng.normal(scale=0.1, size=200)
    >>> model = SGLDRegressor(n_steps=1000, random_state=0).fit(X, y)
    >>> model.coef_.round(1), round(model.intercept_, 1), model.privacy_report_.epsilon
    (array([ 1., -2.]), 0.5, inf)
    >>> private = SGLDRegressor(clip=1.0, epsilon=8.0, n_steps=200, batch_size=20, order="cyclic", n_chains=1,
    ...                         random_state=0).fit(X, y)
    >>> private.privacy_report_.epsilon <= 8.0
    True
    """

    samples_: Floats
    privacy_report_: PrivacyReport
    n_steps_: int
    _spent: Spent
    _leaks: tuple[str, ...]
    _target: TargetNoise | None
    _stopped: _Call | None
    _problem: Problem

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        beta: float = 1.0,
        step_size: Any = None,
        n_steps: int = 2000,
        batch_size: int = 32,
        order: str = "uniform",
        clip: float | None = None,
        epsilon: float | None = None,
        delta: float = 1e-5,
        n_chains: int = 100,
        fit_intercept: bool = True,
        domain: RegressionDomain | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        progress: bool = True,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.step_size = step_size
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.order = order
        self.clip = clip
        self.epsilon = epsilon
        self.delta = delta
        self.n_chains = n_chains
        self.fit_intercept = fit_intercept
        self.domain = domain
        self.warm_start = warm_start
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any) -> SGLDRegressor:
        """Run the chains on the training data.

        Parameters
        ----------
        X, y : array_like of shape (n, n_features) and (n,)
            Features and targets of the training records. All values must be finite.

        Returns
        -------
        SGLDRegressor
            The fitted estimator itself.

        Raises
        ------
        InputError
            If a parameter is out of range, a target is given together with a step size or without `clip`, or earlier
            fits that are continued have used it up.

        Warns
        -----
        CostlyTargetWarning
            If the rest of a target needs at least twice the noise of earlier fits.
        DivergingChainWarning
            If a step size is so large that a record pushes the chain away.
        LowSignalWarning
            With `clip`: if the noise is likely to hide the signal, the last step was too long, or all steps were too
            short.
        """
        continued = bool(self.warm_start) and hasattr(self, "samples_")
        with UnchangedIfRefused(self):
            return self._sample(X, y, continued=continued, partial=False, asked=None)

    def partial_fit(self, X: Any, y: Any, n_steps: int | None = None) -> SGLDRegressor:
        """Continue the chains from their current states, on the same or on new data.

        If `epsilon` is set as a target, it is the budget for as many steps as a single call to `fit` would take; all
        calls to `partial_fit` together share those steps. The first call calibrates the noise for all of them.

        Parameters
        ----------
        X, y : array_like of shape (n, n_features) and (n,)
            Features and targets of the records of this call.
        n_steps : int, optional
            Number of steps. If None, one pass over the data, ``ceil(n / batch_size)`` steps, or the remaining steps of
            a target if they are fewer. With orders other than "uniform", a target is used up by whole passes.

        Returns
        -------
        SGLDRegressor
            The estimator itself. Its `privacy_report_` covers all calls so far.

        Raises
        ------
        InputError
            If `fit` would refuse the parameters or the data, or a target has fewer than `n_steps` steps left.

        Warns
        -----
        SpentTargetWarning
            If `n_steps` is None and a target has no steps left. The call then does nothing.

        Notes
        -----
        The report composes all calls. It holds for sequences of data sets that differ in one record, which may be in
        each.
        """
        wanted = None if n_steps is None else count(n_steps, "n_steps")
        with UnchangedIfRefused(self):
            return self._sample(X, y, continued=hasattr(self, "samples_"), partial=True, asked=wanted)

    def _rest(self, call: _Call, X: Any, y: Any) -> None:
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, reset=False)
        check_alike("the number of records", call.records, len(X))
        problem = replace(call.problem, x=_design(X, call.intercept), y=np.asarray(y, dtype=np.float64))
        self._run(call, problem, None)

    def _sample(self, X: Any, y: Any, *, continued: bool, partial: bool, asked: int | None) -> SGLDRegressor:
        delta = self._check_parameters()
        streams(self.random_state)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, reset=not (partial and continued))
        y = np.asarray(y, dtype=np.float64)
        if self.domain is not None and (X.shape[1] != 1 or self.fit_intercept):
            seen = f"a domain with {X.shape[1]} features and fit_intercept={self.fit_intercept!r}"
            raise InputError("domain", seen, "None, except for one feature without an intercept")
        rows = _design(X, bool(self.fit_intercept))
        size = min(self.batch_size, len(y))
        if self.order != "uniform" and len(y) % size:
            expected = f"a divisor of {len(y)}, the number of records"
            raise InputError("batch_size", f"{size}", expected, "order='uniform' takes any size.")
        start = self._continued(rows.shape[1]) if continued else None
        spent, target = (self._spent, self._target) if continued else (Spent(), None)
        steps = self.n_steps
        if partial:
            sweep, instead = math.ceil(len(y) / size), "step_size in its place"
            steps = further_steps(asked, sweep, self.n_steps, spent.steps, self.epsilon, instead=instead)
            cut = self.epsilon is not None and self.order != "uniform" and steps % sweep
            if cut and steps < self.n_steps - spent.steps:
                expected, advice = f"whole sweeps of {sweep} steps", "A part of a sweep costs as much as all of it."
                raise InputError("n_steps", str(steps), expected, advice)
            if not steps:
                return self
        eta, target = self._step_sizes(rows, size, delta, spent, target, steps, partial=partial)
        problem = Problem(
            x=rows,
            y=y,
            alpha=float(self.alpha),
            beta=float(self.beta),
            eta=eta,
            batch_size=size,
            order=self.order,
            clip=None if self.clip is None else float(self.clip),
            chains=self.n_chains,
        )
        warn_if_diverging(problem)
        if not partial:
            warn_of_noisy_steps(problem, stacklevel=3)
        charged = self._charge(problem, spent)
        report, leaks = self._report(problem, delta, charged, self._leaks if continued else ())
        bare = replace(problem, x=rows[:0].copy(), y=y[:0].copy())  # a view would hold all records
        call = _Call(
            bare, len(y), bool(self.fit_intercept), spent.calls, partial, bool(self.progress), self.random_state
        )
        self._run(call, problem, start, (charged, target, report, leaks))
        return self

    def _run(
        self,
        call: _Call,
        problem: Problem,
        start: Floats | None,
        charged: tuple[Spent, TargetNoise | None, PrivacyReport, tuple[str, ...]] | None = None,
    ) -> None:
        """Run the chains and keep their states, also after an interrupt; a run that moved none was not charged."""
        stopped: RunInterrupted | None = None
        left: _Call | None = None
        seen = np.empty((3, *problem.shape))
        try:
            drawn = streams(call.random_state, call.number)
            samples = run(problem, start, drawn, progress=call.progress, resume=call.chains, seen=seen)
        except RunInterrupted as interrupt:
            stopped, kept = interrupt, interrupt.run
            left, samples = replace(call, chains=kept), kept.states[: max(kept.moved, 1)]
        known = {} if charged is None else dict(zip(_CHARGED, charged, strict=True))
        spent = self._spent if charged is None else charged[0]
        # One assignment: after a second interrupt, too, the report is that of the samples beside it.
        self.__dict__.update({**known, **self._described(call, samples, spent), "_stopped": left})
        if stopped is not None:
            raise stopped
        if problem.clip is not None and problem.eta.size and not call.partial:
            warn_of_swing(seen[2], samples, self.n_features_in_, stacklevel=4)
            if not call.number:  # otherwise the start is no draw from the prior
                warn_of_start(seen[0], seen[1], samples, problem.eta, stacklevel=4)

    def _described(self, call: _Call, samples: Floats, spent: Spent) -> dict[str, Any]:
        width, eta, mean = self.n_features_in_, call.problem.eta, samples.mean(axis=0)
        return {
            "samples_": samples,
            "coef_": mean[:width],
            "intercept_": float(mean[-1]) if len(mean) > width else 0.0,
            "step_size_": float(eta[0]) if eta.size and (eta == eta[0]).all() else eta,
            "batch_size_": call.problem.batch_size,
            "n_samples_": call.records,
            "n_steps_": spent.steps,
            "_problem": call.problem,
        }

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the mean of the target of each row, and optionally its standard deviation.

        Parameters
        ----------
        X : array_like of shape (m, n_features)
            Features of the records.
        return_std : bool, default False
            Whether to return the standard deviation, too, of noise and of the weights over the chains. It needs many
            chains.

        Returns
        -------
        ndarray of shape (m,), or two of them
            Predictive means. With ``return_std=True``, also the standard deviations.
        """
        check_is_fitted(self, "samples_")
        X = validate_data(self, X, reset=False, dtype=np.float64)
        mean = X @ self.coef_ + self.intercept_
        if not return_std:
            return mean
        rows = _design(X, self.samples_.shape[1] > X.shape[1])
        spread = np.atleast_2d(np.cov(self.samples_, rowvar=False, bias=True))
        return mean, np.sqrt(1.0 / self._problem.beta + np.einsum("ij,jk,ik->i", rows, spread, rows))

    def privacy_curve(
        self, epochs: int | None = None, *, c: float | None = None, x_h: float | None = None
    ) -> pd.DataFrame:
        """Compute the epsilon of iterates and posterior on the worst-case pair of data sets, by epoch.

        Use it to see how much privacy a chain without `clip` loses before it converges.

        Parameters
        ----------
        epochs : int, optional
            Last epoch. The default is that of the chain, or twice the epoch of the proof if that is larger.
        c, x_h : float, optional
            Ratio of targets to inputs, and largest input, of the pair. By default those of `domain`. The pair has one
            feature, no intercept, as many records as the data (rounded down to full batches), and the settings of the
            fit.

        Returns
        -------
        DataFrame
            Columns ``epoch``; ``iterate``, a lower bound on the epsilon of the iterate after it in cyclic order
            (`eps_tail`); ``posterior``, the exact epsilon of a draw from the posterior on the same pair.

        Raises
        ------
        InputError
            With `clip`, or with step sizes that vary, for which no exact law is known.
        """
        check_is_fitted(self, "samples_")
        if self._problem.clip is not None:
            advice = "With clip there is a guarantee, in privacy_report_."
            raise InputError("clip", repr(self._problem.clip), "None", advice)
        if not isinstance(self.step_size_, float):
            raise InputError("step_size", "step sizes that vary", "a single number")
        return pair_curve(
            self.n_samples_,
            *self._pair(c, x_h),
            alpha=self._problem.alpha,
            beta=self._problem.beta,
            eta=self.step_size_,
            batch_size=self.batch_size_,
            delta=float(self.delta),
            steps=self._problem.eta.size,
            epochs=epochs,
        )

    def plot_privacy(self, ax: Any = None, **pair: Any) -> Any:
        """Plot `privacy_curve`.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on.
        **pair
            Arguments `epochs`, `c` and `x_h` of `privacy_curve`.

        Returns
        -------
        matplotlib axes
            The axes with the plot.
        """
        return plot_pair_curve(self.privacy_curve(**pair), float(self.delta), ax)

    def _pair(self, c: float | None, x_h: float | None) -> tuple[float, float]:
        found = []
        for name, value in (("c", c), ("x_h", x_h)):
            if value is None and self.domain is None:
                raise InputError(name, "None", "a number where the estimator has no domain")
            found.append(positive(getattr(self.domain, name) if value is None else value, name))
        return found[0], found[1]

    def _check_parameters(self) -> float:
        positive(self.alpha, "alpha")
        positive(self.beta, "beta")
        steps = count(self.n_steps, "n_steps", least=0)
        count(self.batch_size, "batch_size")
        count(self.n_chains, "n_chains")
        chosen(self.order, "order", ORDERS)
        if self.clip is not None:
            positive(self.clip, "clip")
        if self.epsilon is not None:
            positive(self.epsilon, "epsilon")
            if self.clip is None:
                raise InputError("clip", "None", "a bound on gradients where epsilon is given")
            if self.step_size is not None:
                raise InputError("epsilon", repr(self.epsilon), "None where step_size is given")
        if self.step_size is not None:
            step_sizes(self.step_size, steps, "step_size")
        if self.domain is not None and not isinstance(self.domain, RegressionDomain):
            raise InputTypeError("domain", f"a {type(self.domain).__name__}", "a RegressionDomain, or None")
        return open_unit(self.delta, "delta")

    def _continued(self, width: int) -> Floats:
        shape = (self.n_chains, width)
        if self.samples_.shape != shape:
            seen = f"True after chains of shape {self.samples_.shape}"
            raise InputError("warm_start", seen, f"False for chains of shape {shape}")
        return np.asarray(self.samples_)

    def _step_sizes(
        self,
        rows: Floats,
        size: int,
        delta: float,
        spent: Spent,
        target: TargetNoise | None,
        steps: int,
        *,
        partial: bool,
    ) -> tuple[Floats, TargetNoise | None]:
        """Return the step sizes of a call, and the target that its noise was found for."""
        n = len(rows)
        if self.step_size is not None:
            given = float(self.step_size) if isinstance(self.step_size, Real) else self.step_size
            return step_sizes(given, steps), None
        if self.epsilon is not None:
            clip = float(self.clip)  # type: ignore[arg-type]
            same = (n, size, clip, self.order, self.n_chains)
            noise, target = noise_of_call(
                lambda steps: PlannedSteps(steps, *same), spent, target if partial else None, noise_multiplier=None,
                epsilon=self.epsilon, delta=delta, public=same, total=self.n_steps if partial else spent.steps + steps,
                instead=INSTEAD, stacklevel=5, search=Search(progress=bool(self.progress)),
            )  # fmt: skip
            return np.full(steps, step_size_of(noise, n, size, clip)), target
        if self.domain is not None:
            largest = n * self.domain.x_h**2
            top = largest
        else:
            with np.errstate(over="ignore"):
                largest = n * float((rows**2).sum(axis=1).max())
            if not math.isfinite(largest * largest):
                raise InputError(
                    "X", "larger ones", "rows whose squares are finite", "With step_size, larger rows are allowed."
                )
            top = float(np.linalg.eigvalsh(rows.T @ rows)[-1])
        # 2 b/(u curved) keeps the noise of the minibatches small, 1/u every record's step stable.
        u, curved = self.alpha + self.beta * largest, self.alpha + self.beta * top
        return np.full(steps, positive(min(2.0 * size / (u * curved), 1.0 / u), "step_size")), None

    def _charge(self, problem: Problem, spent: Spent) -> Spent:
        event: Event | None = None
        noise, steps = 0.0, problem.eta.size
        # Without steps nothing but a draw from the prior is released.
        if not steps:
            event, noise = Composed(), spent.least_noise
        elif problem.clip is not None:
            n, size = problem.y.size, problem.batch_size
            noise = noise_multiplier_of(float(problem.eta.max()), n, size, problem.clip)
            event = clipped_event(problem.eta, n, size, problem.clip, order=problem.order, chains=problem.chains)
        return spent.charge(event, steps, noise, seeded=is_seeded(self.random_state))

    def _report(
        self, problem: Problem, delta: float, spent: Spent, leaks: tuple[str, ...]
    ) -> tuple[PrivacyReport, tuple[str, ...]]:
        if self.step_size is None and self.epsilon is None and self.domain is None:
            leaks = tuple(dict.fromkeys((*leaks, STEP)))
        event = spent.event
        if event is None:
            leaks = tuple(dict.fromkeys((*leaks, BEFORE, AFTER)))
        details: dict[str, Any] = {"chains": problem.chains, "steps": problem.eta.size}
        if self.domain is not None and problem.clip is None:
            details |= self._about_domain(problem, delta)
        report = account_for(
            event,
            delta=delta,
            released=RELEASED,
            noise_multiplier=0.0 if spent.least_noise == math.inf else spent.least_noise,
            assumptions=() if event is None else standing_assumptions(seeded=spent.seeded, calls=spent.calls),
            leaks=leaks,
            details=details,
        )
        return report, leaks

    def _about_domain(self, problem: Problem, delta: float) -> dict[str, Any]:
        """Return the privacy of the posterior on the domain, and the worst epoch of the worst-case pair."""
        domain, n = self.domain, problem.y.size
        assert domain is not None
        posterior = posterior_dp(n, delta, domain.x_l, domain.x_h, problem.alpha, problem.beta, domain.gamma1, domain.c)
        found: dict[str, Any] = {"posterior_epsilon": posterior, "posterior_epsilon_if": CONDITION}
        eta = problem.eta
        in_domain = domain.x_l <= domain.x_h / 2.0
        if in_domain and delta < 0.5 and eta.size and (eta == eta[0]).all():
            worst = worst_of_pair(
                n,
                domain.c,
                domain.x_h,
                alpha=problem.alpha,
                beta=problem.beta,
                eta=float(eta[0]),
                batch_size=problem.batch_size,
                delta=delta,
            )
            if worst is not None and math.isfinite(worst.epsilon):
                found |= {"worst_epoch": worst.epochs, "worst_epoch_epsilon_at_least": worst.epsilon}
        return found


def _design(X: Floats, intercept: bool) -> Floats:
    """Return rows with a column of ones if there is an intercept."""
    return np.ascontiguousarray(np.column_stack([X, np.ones(len(X))]) if intercept else X)
