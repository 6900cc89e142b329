"""Common parts of the estimators: checked settings, the choice of noise, the run, and its report."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from graphs.numerics.rounding import shown_above
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.accountants.calibration import METHODS
from thresholdout.privacy.accounting.accountants.renyi_conversion import EdgeOrderWarning
from thresholdout.privacy.accounting.bound_arguments import chosen, count, floats, open_unit, positive
from thresholdout.privacy.accounting.events.event_types import Event
from thresholdout.privacy.learning.interrupted_calls import RunInterrupted, check_alike
from thresholdout.privacy.learning.privacy_report import (
    LowSignalWarning,
    PrivacyReport,
    account_for,
    proved_epsilon,
    standing_assumptions,
)
from thresholdout.privacy.learning.propagation.ep_privacy import (
    BOUNDS,
    best_r2,
    calibrate_sep_sigma,
    epsilon_of,
    joint_sigma,
    noise_of_predictions,
    sensitivity,
    sep_event,
    sep_noise_std,
    split_sigma,
)
from thresholdout.privacy.learning.propagation.ep_runs import (
    SAMPLINGS,
    Run,
    information_fraction,
    resolve_gamma,
    run_adf,
    run_ep,
    run_sep,
)
from thresholdout.privacy.learning.propagation.gaussian_models import LinearModel, Model
from thresholdout.privacy.learning.propagation.natural_parameters import (
    CLIP_MODES,
    ClipMode,
    GaussianNatural,
    Natural,
    clip_norm_of,
)
from thresholdout.privacy.learning.random_streams import is_seeded, streams
from thresholdout.privacy.learning.targets import Search, Spent, noise_for_rest
from thresholdout.suppressed_warnings import suppress_warnings

__all__ = [
    "ALGORITHMS",
    "Finish",
    "Fitting",
    "LooseDeltaWarning",
    "LowInformationWarning",
    "Stopped",
    "UnprovedTargetWarning",
    "noise_after",
]

ALGORITHMS = ("ep", "adf", "sep", "clipped-sep", "dp-sep")
ACCOUNTANTS = ("rdp", "best", *BOUNDS)
_DRAWN = "nobody learns which records were drawn"
_LEAST_SIGNAL = 3.0  # over noise alone; measured: python -m benchmarks.private_learners worth
_MOST_NOISE = 4.0  # in predictions; measured: python -m benchmarks.private_learners posteriors
_INSTEAD = "sigma in its place, or start a new fit"
# Attributes that only some fits have.
_SOMETIMES = (
    *("n_skipped_", "n_failed_sites_", "noise_std_", "stationary_noise_std_", "signal_to_noise_"),
    "labels_",  # of training records, which no privacy covers
)

Finish = Callable[[Any, Any], dict[str, Any]]


class LooseDeltaWarning(UserWarning):
    """Issued when the delta of a private fit is at least one divided by the number of records.

    Such a delta permits a mechanism that publishes a whole record. Pass a delta well below one over the number of
    records.

    Examples
    --------
    Turn it into an error, so that such a fit does not pass for a good one:

    >>> import warnings
    >>> warnings.filterwarnings("error", category=LooseDeltaWarning)
    """


class LowInformationWarning(UserWarning):
    """Issued when a fit by stochastic expectation propagation absorbed less than half of the information in the data.

    The posterior is then still close to the prior. Pass a larger `gamma` or a larger `n_epochs`.

    Examples
    --------
    Turn it into an error, so that such a fit does not pass for a good one:

    >>> import warnings
    >>> warnings.filterwarnings("error", category=LowInformationWarning)
    """


class UnprovedTargetWarning(UserWarning):
    """Issued when a published formula chose the noise, and the proved epsilon is above the target.

    It appears with ``accountant="tight"`` or ``"wbk"`` of the estimators by expectation propagation. `privacy_report_`
    has the proved epsilon. Pass ``accountant="rdp"`` or ``"best"`` for a target that is met with proof.

    Examples
    --------
    Turn it into an error, so that such a fit does not pass for a good one:

    >>> import warnings
    >>> warnings.filterwarnings("error", category=UnprovedTargetWarning)
    """


def noise_after(sigma: float, C: float, gamma: float, N: int, T: int) -> tuple[float, float]:
    """Return the standard deviation of the noise in a posterior's natural parameters, after T passes and in the limit.

    ``sigma C sqrt(2 gamma (1 - (1 - gamma/N^2)^(2 N T)))``, to first order and without the last clipping, and ``sigma C
    sqrt(2 gamma)``.
    """
    limit = sigma * C * math.sqrt(2 * gamma)
    return limit * math.sqrt(information_fraction(gamma, N, 2 * T)), limit


@dataclass(frozen=True)
class Fitting:
    """The settings of one fit; made by `check`, which reads no data.

    In a private run one of `epsilon` and `sigma` is None, otherwise both are. `shares` are those of the privacy, for
    each clipped block.
    """

    algorithm: str
    accountant: str
    sampling: str
    clip_mode: ClipMode
    n_epochs: int
    gamma: float | str
    clip_norm: float | None
    epsilon: float | None
    sigma: tuple[float, ...] | None
    delta: float
    rho: float
    damping: float
    tol: float
    shares: tuple[float, ...]
    random_state: Any
    allow_leaks: bool
    progress: bool

    @classmethod
    def check(cls, estimator: Any) -> Fitting:
        """Return the settings of an estimator."""
        algorithm = chosen(estimator.algorithm, "algorithm", ALGORITHMS)
        private = algorithm == "dp-sep"
        mode = cast(ClipMode, chosen(estimator.clip_mode, "clip_mode", CLIP_MODES))
        sampling = chosen(estimator.sampling, "sampling", SAMPLINGS)
        accountant = chosen(estimator.accountant, "accountant", ACCOUNTANTS)
        passes = count(estimator.n_epochs, "n_epochs")
        if algorithm == "adf" and passes != 1:
            advice = "A second pass would count the records twice."
            raise InputError("n_epochs", str(passes), "1 for algorithm='adf'", advice)
        norm = None
        if algorithm in ("clipped-sep", "dp-sep"):
            if estimator.clip_norm is None:
                raise InputError("clip_norm", "None", f"a norm above 0 for algorithm={algorithm!r}")
            norm = clip_norm_of(estimator.clip_norm)
        elif estimator.clip_norm is not None:
            raise InputError("clip_norm", repr(estimator.clip_norm), f"None for algorithm={algorithm!r}")
        blocks = 2 if mode == "separate" else 1
        sigma, shares = _noise_settings(estimator, private, blocks)
        if private and sampling != "uniform" and accountant in BOUNDS:
            advice = "The other bounds hold only for records that are drawn anew for each update."
            raise InputError("accountant", f"{accountant!r} with sampling={sampling!r}", "'rdp' or 'best'", advice)
        gamma = estimator.gamma
        if isinstance(gamma, str):
            if chosen(gamma, "gamma", ("default", "paper", "sep", "auto")) == "default":
                gamma = "auto" if private else "sep"
        else:
            gamma = positive(gamma, "gamma")
        streams(estimator.random_state)
        return cls(
            algorithm=algorithm,
            accountant=accountant,
            sampling=sampling,
            clip_mode=mode,
            n_epochs=passes,
            gamma=gamma,
            clip_norm=norm,
            epsilon=positive(estimator.epsilon, "epsilon") if private and estimator.epsilon is not None else None,
            sigma=sigma,
            delta=open_unit(estimator.delta, "delta"),
            rho=positive(estimator.rho, "rho"),
            damping=positive(getattr(estimator, "damping", 1.0), "damping"),
            tol=positive(getattr(estimator, "tol", 1e-8), "tol", zero=True),
            shares=shares,
            random_state=estimator.random_state,
            allow_leaks=bool(estimator.allow_leaks),
            progress=bool(estimator.verbose),
        )

    @property
    def private(self) -> bool:
        """Whether noise is added."""
        return self.algorithm == "dp-sep"

    def check_prior(self, prior: Natural, prior_norm: object) -> None:
        """Refuse a prior beyond the clipping norm, if `prior_norm` is "check"."""
        if chosen(prior_norm, "prior_norm", ("ignore", "check")) == "ignore" or self.clip_norm is None:
            return
        found = prior.norm(self.clip_mode)
        if found > self.clip_norm:
            expected = f"a precision whose prior has a norm of at most {self.clip_norm:g}"
            raise InputError("prior_precision", f"a norm of {found:g}", expected)

    def fit(
        self,
        estimator: Any,
        model: Model[Any],
        records: Sequence[Any],
        *,
        leaks: tuple[str, ...] = (),
        spent: Spent,
        finish: Finish,
    ) -> None:
        """Run the algorithm, and set the estimator's attributes."""
        N, before = len(records), spent
        gamma = resolve_gamma(self.gamma, N, self.n_epochs)
        noise: tuple[float, ...] = ()
        charged = before.charge(None, 0, 0.0, seeded=is_seeded(self.random_state))
        if self.private:
            noise = self._sigma(N, before)
            event = sep_event(noise, N, self.n_epochs, self.sampling)
            seeded = is_seeded(self.random_state)
            charged = before.charge(event, N * self.n_epochs, joint_sigma(noise), seeded=seeded)
            report = self._report(noise, N, gamma, leaks, charged)
            self._warn_if_worthless(model, noise, gamma, N)
        else:
            report = account_for(None, delta=self.delta, released="the posterior", noise_multiplier=0.0)
        Stopped(self, noise, gamma, N, before.calls, model, None).go(estimator, records, finish, report, charged)

    def _warn_if_worthless(self, model: Model[Any], noise: tuple[float, ...], gamma: float, N: int) -> None:
        """Warn before the first step where linear weights are expected to be worse than a constant."""
        prior = model.prior
        if not isinstance(prior, GaussianNatural) or prior.eta.ndim != 1:
            return
        assert self.clip_norm is not None
        std = [noise_after(each, self.clip_norm, gamma, N, self.n_epochs)[0] for each in noise]
        # A site's Lam is tau x x', whose trace is its norm, at most the clipping norm.
        most = float(np.trace(prior.Lam)) + information_fraction(gamma, N, self.n_epochs) * N * self.clip_norm
        found = best_r2(most, prior.eta.size, float(std[0]), float(std[-1]), self.rho)
        if found < 0.0:
            message = (
                f"The weights are expected to have an R2 below that of a constant, 0, down to about {found:.1e} where "
                "features and target vary by about 1. The noise is too large for so few records. More records, a "
                "larger epsilon or fewer features are needed; SSPRegressor and DPSGDClassifier need fewer records."
            )
            warnings.warn(message, LowSignalWarning, stacklevel=6)

    def described(
        self, run: Run[Any], model: Model[Any], noise: tuple[float, ...], gamma: float, N: int, *, finished: bool
    ) -> tuple[dict[str, Any], list[Warning]]:
        """Return an estimator's attributes of a run, and warnings; those about noise only of a finished run."""
        stochastic = self.algorithm not in ("ep", "adf")
        fraction = information_fraction(gamma, N, self.n_epochs) if stochastic else 1.0
        found = {
            "theta_0_": model.prior,
            "theta_f_": run.theta_f,
            "posterior_": run.theta,
            "gamma_": gamma,
            "n_projections_": run.n_projections,
            "n_iter_": run.n_passes,
            "information_fraction_": fraction,
        }
        warned: list[Warning] = []
        if not finished:
            return found, warned
        if self.private:
            described, low = self._described_noise(run, model, noise, gamma, N)
            found |= described
            if low is not None:
                warned.append(low)
            if self.allow_leaks:
                found["n_failed_sites_"] = run.n_failed_sites
        else:
            found["n_skipped_"] = run.n_skipped
        if fraction < 0.5:
            warned.append(
                LowInformationWarning(
                    f"The fit absorbed {fraction:.1%} of the records' information at gamma = {gamma:g}. "
                    "Pass a larger gamma or more passes."
                )
            )
        return found, warned

    def _sigma(self, N: int, before: Spent) -> tuple[float, ...]:
        if self.delta >= 1 / N:
            message = f"delta is {self.delta:g}, which is large for {N} records. Pass a delta well below {1 / N:g}."
            warnings.warn(message, LooseDeltaWarning, stacklevel=6)
        # Drawing hides a record among the others (PROOFS.md, E2).
        if self.sampling == "uniform" and N < 2:
            expected = "a table of at least two records for sampling='uniform'"
            raise InputError("X", "one record", expected, "A single record is not hidden among others.")
        if self.sigma is not None:
            return self.sigma
        assert self.epsilon is not None
        if self.accountant in BOUNDS and not before.calls:
            one = calibrate_sep_sigma(self.epsilon, self.delta, 1 / N, N * self.n_epochs, self.accountant)
            return split_sigma(one, self.shares)
        # Multipliers for which twice the noise is in the accountants' range.
        search = Search(
            None if self.accountant == "best" else METHODS["rdp"], limits=(0.02, 4e7), progress=self.progress
        )
        with suppress_warnings(EdgeOrderWarning):
            one = noise_for_rest(
                _Updates(N, self.n_epochs, self.sampling), before, self.epsilon, self.delta, _INSTEAD, stacklevel=6,
                search=search,
            )  # fmt: skip
        return split_sigma(one, self.shares)

    def _report(
        self,
        noise: tuple[float, ...],
        N: int,
        gamma: float,
        leaks: tuple[str, ...],
        charged: Spent,
    ) -> PrivacyReport:
        assert self.clip_norm is not None
        event, together = charged.event, joint_sigma(noise)
        makers = None if self.accountant == "best" else METHODS["rdp"]
        if event is None:
            released = "the posterior: an earlier call had no noise"
            return account_for(None, delta=self.delta, released=released, noise_multiplier=0.0, leaks=leaks)
        best = proved_epsilon(event, self.delta, makers=makers)
        stds = tuple(sep_noise_std(each, N, self.clip_norm, gamma) for each in noise)
        details: dict[str, Any] = {
            "sigma": noise if len(noise) > 1 else noise[0],
            "sensitivity": sensitivity(N, self.clip_norm, gamma),
            "noise_std": stds if len(stds) > 1 else stds[0],
            "n_releases": N * self.n_epochs * len(noise),
            "sampling": self.sampling,
            "conversion": "balle",
            "how": best.how,
        }
        if self.accountant in BOUNDS:
            claim = epsilon_of(together, 1 / N, N * self.n_epochs, self.delta, self.accountant)
            details |= {"formula": self.accountant, "formula_epsilon": claim.epsilon, "order": claim.order}
            if self.epsilon is not None and best.epsilon > self.epsilon:
                proved = shown_above(best.epsilon, 4)
                message = (
                    f"The formula {self.accountant!r} promises epsilon {self.epsilon:g}, but only {proved} is proved. "
                    "Pass accountant='rdp' or 'best' for a proved target."
                )
                warnings.warn(message, UnprovedTargetWarning, stacklevel=6)
        assumed = standing_assumptions(seeded=charged.seeded, calls=charged.calls)
        if self.sampling == "uniform":
            assumed += (_DRAWN,)
        if self.allow_leaks:
            leaks += ("n_failed_sites_ counts records whose site could not be computed",)
        return PrivacyReport(
            epsilon=best.epsilon,
            delta=self.delta,
            adjacency="replace_one",
            event=event,
            accountant=best.accountant,
            noise_multiplier=charged.least_noise,
            released="the posterior after each update, and all that is computed from it alone",
            assumptions=assumed,
            leaks=leaks,
            details=details,
        )

    def _run(
        self, model: Model[Any], records: Sequence[Any], gamma: float, noise: tuple[float, ...], call: int, resume: Any
    ) -> Run[Any]:
        if self.algorithm == "ep":
            return run_ep(model, records, damping=self.damping, max_iter=self.n_epochs, tol=self.tol, resume=resume)
        if self.algorithm == "adf":
            return run_adf(model, records, resume=resume)
        return run_sep(
            model,
            records,
            n_epochs=self.n_epochs,
            gamma=gamma,
            C=self.clip_norm,
            sigma=noise if noise else 0.0,
            sampling=self.sampling,
            clip_mode=self.clip_mode,
            rho=self.rho,
            random_state=self.random_state,
            call=call,
            progress=self.progress,
            resume=resume,
        )

    def _described_noise(
        self, run: Run[Any], model: Model[Any], noise: tuple[float, ...], gamma: float, N: int
    ) -> tuple[dict[str, Any], Warning | None]:
        assert self.clip_norm is not None
        now, limit = np.transpose([noise_after(each, self.clip_norm, gamma, N, self.n_epochs) for each in noise])
        sizes = [block.stop - block.start for block in run.theta.blocks(self.clip_mode)]
        expected = math.sqrt(sum(size * float(std) ** 2 for size, std in zip(sizes, now, strict=True)))
        signal = self._moved(run, model, gamma, N).norm() / expected
        found = {
            "noise_std_": float(now[0]) if len(noise) == 1 else now,
            "stationary_noise_std_": float(limit[0]) if len(noise) == 1 else limit,
            "signal_to_noise_": signal,
        }
        # Functions of released and public numbers.
        if signal < _LEAST_SIGNAL:
            return found, LowSignalWarning(
                f"The posterior moved {signal:.2g} times as far as noise alone is expected to; "
                f"below {_LEAST_SIGNAL:g}, predictions are useless. At least "
                f"{(_LEAST_SIGNAL / signal) ** 2:.2g} times as many records are needed, or fewer "
                "dimensions; a larger epsilon helps less."
            )
        if isinstance(model, LinearModel):
            share = noise_of_predictions(run.theta, model.prior, float(now[0]), float(now[-1]))
            if not share <= _MOST_NOISE:
                return found, LowSignalWarning(
                    f"Noise adds {share:.2g} times the squares of the predictions to them; above {_MOST_NOISE:g}, "
                    "fits are useless. Some direction of the features is too short for the noise. Features and "
                    "target that vary by about 1 are needed (x_scale, y_offset and y_scale, from public numbers), or "
                    "fewer features, or more records."
                )
        return found, None

    def _moved(self, run: Run[Any], model: Model[Any], gamma: float, N: int) -> Any:
        """Return the distance of the posterior from the prior."""
        return run.theta - model.prior


@dataclass(frozen=True, eq=False)
class Stopped:
    """One call with its own settings, without its records, and the state that an interrupt has left.

    `N` is the number of records, `call` that of earlier calls, and `done` the finished part.
    """

    fitting: Fitting
    noise: tuple[float, ...]
    gamma: float
    N: int
    call: int
    model: Model[Any]
    done: Any

    def resume(self, estimator: Any, records: Sequence[Any], finish: Finish) -> None:
        """Make the remaining updates, which were charged."""
        check_alike("the number of records", self.N, len(records))
        self.go(estimator, records, finish, estimator.privacy_report_, estimator._spent)

    def go(self, estimator: Any, records: Sequence[Any], finish: Finish, report: PrivacyReport, charged: Spent) -> None:
        """Run, and set all attributes of the estimator in one assignment, also after an interrupt.

        So after any interrupt a report is that of the posterior beside it. Nobody has seen a result of a call that was
        interrupted before its first update or before this assignment; it is not charged.
        """
        fitting, left, model = self.fitting, None, copy(self.model)
        interrupt: RunInterrupted | None = None
        try:
            run = fitting._run(model, records, self.gamma, self.noise, self.call, self.done)
        except RunInterrupted as stopped:
            if not stopped.run.updates:
                raise
            interrupt, left = stopped, stopped.run
            if fitting.private and not fitting.allow_leaks:
                left = stopped.run = left.covered()  # estimators are saved and handed on
            run = left.as_run(model.prior, self.N)
        found, warned = fitting.described(run, model, self.noise, self.gamma, self.N, finished=left is None)
        found |= finish(model, run.theta)
        found |= {"privacy_report_": report, "_spent": charged}
        found["_stopped"] = None if left is None else replace(self, model=model, done=left)
        others = {name: value for name, value in vars(estimator).items() if name not in _SOMETIMES}
        estimator.__dict__ = {**others, **found}
        for each in warned:
            warnings.warn(each, stacklevel=6)
        if interrupt is not None:
            raise interrupt


def _noise_settings(estimator: Any, private: bool, blocks: int) -> tuple[tuple[float, ...] | None, tuple[float, ...]]:
    shares = (1 / blocks,) * blocks
    given = estimator.sigma is not None
    if not private:
        for name in ("epsilon", "sigma", "budget_split"):
            if getattr(estimator, name) is not None:
                raise InputError(name, repr(getattr(estimator, name)), "None unless algorithm='dp-sep'")
        return None, shares
    if given == (estimator.epsilon is not None):
        expected = "None where sigma is given" if given else "a target, or the noise multiplier sigma"
        raise InputError("epsilon", repr(estimator.epsilon) if given else "nothing", expected)
    if estimator.budget_split is not None:
        if given:
            raise InputError("budget_split", repr(estimator.budget_split), "None where sigma is given")
        expected = f"one share for each of {blocks} clipped blocks"
        if floats(estimator.budget_split, "budget_split", expected).shape != (blocks,):
            raise InputError("budget_split", repr(estimator.budget_split), expected)
        shares = tuple(positive(share, "budget_split") for share in estimator.budget_split)
        split_sigma(1.0, shares)
    if not given:
        return None, shares
    sigma = estimator.sigma
    found = tuple(positive(each, "sigma") for each in (sigma if isinstance(sigma, tuple) else (sigma,) * blocks))
    if len(found) != blocks:
        raise InputError("sigma", repr(sigma), f"a number, or one for each of {blocks} clipped blocks")
    return found, shares


@dataclass(frozen=True)
class _Updates:
    """The event of the updates of a call, as a function of their noise multiplier."""

    N: int
    n_epochs: int
    sampling: str

    def __call__(self, sigma: float) -> Event:
        return sep_event(sigma, self.N, self.n_epochs, self.sampling)
