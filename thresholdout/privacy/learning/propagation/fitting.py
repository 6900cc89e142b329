"""What the estimators share: checked settings, the choice of noise, the run, and the report of it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, cast

import numpy as np

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.accountants.calibration import METHODS, best_epsilon, calibrate
from thresholdout.privacy.accounting.accountants.renyi_conversion import EdgeOrderWarning
from thresholdout.privacy.accounting.bound_arguments import chosen, count, open_unit, positive
from thresholdout.privacy.accounting.events.event_types import Event
from thresholdout.privacy.learning.low_signal import LowSignalWarning
from thresholdout.privacy.learning.privacy_report import PrivacyReport, account_for, standing_assumptions
from thresholdout.privacy.learning.propagation.ep_privacy import (
    BOUNDS,
    calibrate_sep_sigma,
    epsilon_of,
    joint_sigma,
    sensitivity,
    sep_event,
    sep_noise_std,
    split_sigma,
)
from thresholdout.privacy.learning.propagation.ep_runs import (
    SAMPLINGS,
    Run,
    Unfinished,
    information_fraction,
    resolve_gamma,
    run_adf,
    run_ep,
    run_sep,
)
from thresholdout.privacy.learning.propagation.gaussian_models import Model
from thresholdout.privacy.learning.propagation.natural import CLIP_MODES, ClipMode, clip_norm_of
from thresholdout.privacy.learning.propagation.natural_gaussian import GaussianNatural
from thresholdout.privacy.learning.random_streams import is_seeded
from thresholdout.privacy.learning.run_interrupted import RunInterrupted, check_alike
from thresholdout.privacy.learning.spent import Spent
from thresholdout.privacy.learning.targets import noise_for_rest
from thresholdout.silence import silence

__all__ = [
    "ALGORITHMS",
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
_LEAST_SIGNAL = 3.0  # measured: python -m benchmarks.private_learners worth
_INSTEAD = "sigma= in its place, or a new fit"


class LooseDeltaWarning(UserWarning):
    """The delta is at least one over the number of records: it allows the publication of a record.

    Examples
    --------
    As an error, so that such a fit is not taken for a good one:

    >>> import warnings
    >>> warnings.filterwarnings("error", category=LooseDeltaWarning)
    """


class LowInformationWarning(UserWarning):
    """Less than half of what the records say was absorbed; a larger gamma or more passes absorb more.

    Examples
    --------
    As an error, so that such a fit is not taken for a good one:

    >>> import warnings
    >>> warnings.filterwarnings("error", category=LowInformationWarning)
    """


class UnprovedTargetWarning(UserWarning):
    """The noise was chosen by a formula that is not proved; what is proved of it is above the target.

    Examples
    --------
    As an error, so that such a fit is not taken for a good one:

    >>> import warnings
    >>> warnings.filterwarnings("error", category=UnprovedTargetWarning)
    """


def noise_after(sigma: float, C: float, gamma: float, N: int, T: int) -> tuple[float, float]:
    """Return the standard deviation of a posterior's natural parameters by noise, after T passes and in the limit.

    Parameters
    ----------
    sigma, C, gamma, N, T
        As in `run_sep`.

    Returns
    -------
    tuple of float
        ``sigma C sqrt(2 gamma (1 - (1 - gamma/N^2)^(2 N T)))``, to first order and without the last clipping, and
        ``sigma C sqrt(2 gamma)``.

    Examples
    --------
    >>> [round(each, 1) for each in noise_after(1.4812, 6, 20, 200, 20)]
    [55.7, 56.2]
    """
    limit = sigma * C * math.sqrt(2 * gamma)
    return limit * math.sqrt(information_fraction(gamma, N, 2 * T)), limit


@dataclass(frozen=True)
class Fitting:
    """The settings of one fit; made by `check`, which looks at no data.

    Attributes
    ----------
    algorithm, accountant, sampling, clip_mode : str
    n_epochs : int
    gamma : float or str
    clip_norm : float or None
    epsilon, sigma : float, tuple of float or None
        One of them is None in a private run, both otherwise.
    delta, rho, damping, tol : float
    shares : tuple of float
        Of the privacy, for each clipped block.
    random_state : Any
    allow_leaks, progress : bool
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
        """Return the settings of an estimator.

        Raises
        ------
        InputError
            When they are out of range or do not fit each other.
        """
        algorithm = chosen(estimator.algorithm, "algorithm", ALGORITHMS)
        private = algorithm == "dp-sep"
        mode = cast(ClipMode, chosen(estimator.clip_mode, "clip_mode", CLIP_MODES))
        sampling = chosen(estimator.sampling, "sampling", SAMPLINGS)
        accountant = chosen(estimator.accountant, "accountant", ACCOUNTANTS)
        passes = count(estimator.n_epochs, "n_epochs")
        if algorithm == "adf" and passes != 1:
            raise InputError("n_epochs", str(passes), "1 for algorithm='adf': a second pass counts the records twice")
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
            expected = "'rdp' or 'best': these bounds are about records that are drawn anew for each update"
            raise InputError("accountant", f"{accountant!r} with sampling={sampling!r}", expected)
        gamma = estimator.gamma
        if isinstance(gamma, str):
            if chosen(gamma, "gamma", ("default", "paper", "sep", "auto")) == "default":
                gamma = "auto" if private else "sep"
        else:
            gamma = positive(gamma, "gamma")
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

    def check_prior(self, prior: GaussianNatural, prior_norm: object) -> None:
        """Refuse a prior beyond the clipping norm, if that is asked for."""
        if chosen(prior_norm, "prior_norm", ("ignore", "check")) == "ignore" or self.clip_norm is None:
            return
        found = prior.norm(self.clip_mode)
        if found > self.clip_norm:
            raise InputError("prior_precision", f"a prior of norm {found:g}", f"a norm of at most {self.clip_norm:g}")

    def fit(
        self,
        estimator: Any,
        model: Model[GaussianNatural],
        records: Sequence[Any],
        *,
        leaks: tuple[str, ...] = (),
        spent: Spent | None = None,
        finish: Callable[[GaussianNatural], object] | None = None,
    ) -> GaussianNatural:
        """Run the algorithm, set the estimator's fitted attributes and return the posterior.

        Parameters
        ----------
        estimator, model, records
        leaks : tuple of str
        spent : Spent, optional
            What earlier calls have cost, which this one continues.
        finish : callable, optional
            Sets what else the estimator has, from the posterior; also after an interrupt, of which the estimator then
            keeps what can be resumed. Without it an interrupt leaves nothing.
        """
        N, before = len(records), Spent() if spent is None else spent
        gamma = resolve_gamma(self.gamma, N, self.n_epochs)
        noise: tuple[float, ...] = ()
        charged = before.charge(None, 0, 0.0, seeded=is_seeded(self.random_state))
        if self.private:
            noise = self._sigma(N, before)
            event = sep_event(noise, N, self.n_epochs, self.sampling)
            seeded = is_seeded(self.random_state)
            charged = before.charge(event, N * self.n_epochs, joint_sigma(noise), seeded=seeded)
            report = self._report(noise, N, gamma, leaks, charged)
        else:
            report = account_for(None, delta=self.delta, released="the posterior", noise_multiplier=0.0)
        stopped = Stopped(self, noise, gamma, N, before.calls, None)
        return stopped.go(estimator, model, records, finish, report, charged)

    def described(
        self,
        estimator: Any,
        run: Run[GaussianNatural],
        prior: GaussianNatural,
        noise: tuple[float, ...],
        gamma: float,
        N: int,
        *,
        finished: bool,
    ) -> None:
        """Set the estimator's attributes from what a run has found; what is about its noise, once it is finished."""
        estimator.theta_0_, estimator.theta_f_, estimator.posterior_ = prior, run.theta_f, run.theta
        estimator.gamma_, estimator.n_projections_ = gamma, run.n_projections
        estimator.n_iter_ = run.n_passes
        stochastic = self.algorithm not in ("ep", "adf")
        estimator.information_fraction_ = information_fraction(gamma, N, self.n_epochs) if stochastic else 1.0
        for name in ("n_skipped_", "n_failed_sites_", "noise_std_", "stationary_noise_std_", "signal_to_noise_"):
            if hasattr(estimator, name):
                delattr(estimator, name)
        if not finished:
            return
        if self.private:
            self._describe_noise(estimator, run, noise, gamma, N)
            if self.allow_leaks:
                estimator.n_failed_sites_ = run.n_failed_sites
        else:
            estimator.n_skipped_ = run.n_skipped
        if estimator.information_fraction_ < 0.5:
            message = f"{estimator.information_fraction_:.1%} of what the records say was absorbed at gamma = {gamma:g}"
            warnings.warn(message, LowInformationWarning, stacklevel=5)

    def _sigma(self, N: int, before: Spent) -> tuple[float, ...]:
        if self.delta >= 1 / N:
            message = f"delta = {self.delta:g} with {N} records; it should be well below {1 / N:g}"
            warnings.warn(message, LooseDeltaWarning, stacklevel=4)
        if self.sampling == "uniform" and N < 2:
            raise InputError("X", "one record", "at least two for sampling='uniform': one alone is hidden by no other")
        if self.sigma is not None:
            return self.sigma
        assert self.epsilon is not None
        if before.calls:
            later = noise_for_rest(
                partial(_event, N, self.n_epochs, self.sampling),
                before,
                self.epsilon,
                self.delta,
                _INSTEAD,
                stacklevel=6,
                find=partial(_least_noise, self.epsilon, self.delta, self.accountant),
            )
            return split_sigma(later, self.shares)
        one = _calibrated(self.epsilon, self.delta, N, self.n_epochs, self.sampling, self.accountant)
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
        best = best_epsilon(event, self.delta, accountants=makers)
        how = best.table.loc[best.table["epsilon"] == best.epsilon, "how"]
        stds = tuple(sep_noise_std(each, N, self.clip_norm, gamma) for each in noise)
        details: dict[str, Any] = {
            "sigma": noise if len(noise) > 1 else noise[0],
            "sensitivity": sensitivity(N, self.clip_norm, gamma),
            "noise_std": stds if len(stds) > 1 else stds[0],
            "n_releases": N * self.n_epochs * len(noise),
            "sampling": self.sampling,
            "conversion": "balle",
            "how": str(how.iloc[0]) if len(how) else "nothing is known",
        }
        if self.accountant in BOUNDS:
            claim = epsilon_of(together, 1 / N, N * self.n_epochs, self.delta, self.accountant)
            details |= {"formula": self.accountant, "formula_epsilon": claim.epsilon, "order": claim.order}
            if self.epsilon is not None and best.epsilon > self.epsilon:
                message = (
                    f"the formula {self.accountant!r} promises epsilon {self.epsilon:g}; {best.epsilon:.4g} is proved"
                )
                warnings.warn(message, UnprovedTargetWarning, stacklevel=4)
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
        self,
        model: Model[GaussianNatural],
        records: Sequence[Any],
        gamma: float,
        noise: tuple[float, ...],
        call: int = 0,
        resume: Unfinished[GaussianNatural] | None = None,
    ) -> Run[GaussianNatural]:
        if self.algorithm == "ep":
            return run_ep(model, records, damping=self.damping, max_iter=self.n_epochs, tol=self.tol)
        if self.algorithm == "adf":
            return run_adf(model, records)
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

    def _describe_noise(
        self, estimator: Any, run: Run[GaussianNatural], noise: tuple[float, ...], gamma: float, N: int
    ) -> None:
        assert self.clip_norm is not None
        now, limit = np.transpose([noise_after(each, self.clip_norm, gamma, N, self.n_epochs) for each in noise])
        estimator.noise_std_ = float(now[0]) if len(noise) == 1 else now
        estimator.stationary_noise_std_ = float(limit[0]) if len(noise) == 1 else limit
        sizes = [block.stop - block.start for block in run.theta.blocks(self.clip_mode)]
        expected = math.sqrt(sum(size * float(std) ** 2 for size, std in zip(sizes, now, strict=True)))
        estimator.signal_to_noise_ = (run.theta - estimator.theta_0_).norm() / expected
        if estimator.signal_to_noise_ < _LEAST_SIGNAL:  # a function of what was released, and of public numbers
            message = (
                f"the posterior moved {estimator.signal_to_noise_:.2g} times as far as noise alone is expected to, and "
                f"below {_LEAST_SIGNAL:g} predictions are worth nothing: at least "
                f"{(_LEAST_SIGNAL / estimator.signal_to_noise_) ** 2:.2g} times as many records are needed, or fewer "
                "dimensions; a larger epsilon helps less"
            )
            warnings.warn(message, LowSignalWarning, stacklevel=6)


@dataclass(frozen=True, eq=False)
class Stopped:
    """One call, without its records, and what an interrupt has left of it.

    Attributes
    ----------
    fitting : Fitting
    noise : tuple of float
    gamma : float
    N : int
        How many records there are.
    call : int
        How many calls there were before.
    done : Unfinished or None
        What was done before an interrupt.
    """

    fitting: Fitting
    noise: tuple[float, ...]
    gamma: float
    N: int
    call: int
    done: Unfinished[GaussianNatural] | None

    def resume(
        self,
        estimator: Any,
        model: Model[GaussianNatural],
        records: Sequence[Any],
        finish: Callable[[GaussianNatural], object],
    ) -> None:
        """Make the updates that an interrupt has left, which were charged."""
        check_alike("the number of records", self.N, len(records))
        self.go(estimator, model, records, finish, estimator.privacy_report_, estimator._spent)

    def go(
        self,
        estimator: Any,
        model: Model[GaussianNatural],
        records: Sequence[Any],
        finish: Callable[[GaussianNatural], object] | None,
        report: PrivacyReport,
        charged: Spent,
    ) -> GaussianNatural:
        """Run, set what the estimator has then, also after an interrupt, and return the posterior."""
        prior = model.prior
        fitting, left = self.fitting, None
        interrupt: RunInterrupted | None = None
        try:
            run = fitting._run(model, records, self.gamma, self.noise, self.call, self.done)
        except RunInterrupted as stopped:
            if finish is None or not stopped.run.updates:
                raise
            interrupt, left = stopped, stopped.run
            if fitting.private and not fitting.allow_leaks:
                left = stopped.run = replace(left, failed=0)  # not covered, and estimators are saved and handed on
            run = left.as_run(prior, self.N)
        estimator._stopped = None  # whenever a second interrupt comes, nothing can be resumed that was not charged
        estimator.privacy_report_, estimator._spent = report, charged
        estimator._stopped = None if left is None else replace(self, done=left)
        fitting.described(estimator, run, model.prior, self.noise, self.gamma, self.N, finished=left is None)
        if finish is not None:
            finish(run.theta)
        if interrupt is not None:
            raise interrupt
        return run.theta


def _noise_settings(estimator: Any, private: bool, blocks: int) -> tuple[tuple[float, ...] | None, tuple[float, ...]]:
    shares = (1 / blocks,) * blocks
    given = estimator.sigma is not None
    if not private:
        for name in ("epsilon", "sigma", "budget_split"):
            if getattr(estimator, name) is not None:
                raise InputError(name, repr(getattr(estimator, name)), "None unless algorithm='dp-sep'")
        return None, shares
    if given == (estimator.epsilon is not None):
        raise InputError("epsilon", f"{'both' if given else 'neither'} of epsilon and sigma", "one of the two")
    if estimator.budget_split is not None:
        shares = tuple(positive(share, "budget_split") for share in estimator.budget_split)
        if given or len(shares) != blocks:
            expected = f"one share for each of {blocks} clipped blocks, and a target epsilon"
            raise InputError("budget_split", repr(estimator.budget_split), expected)
        split_sigma(1.0, shares)
    if not given:
        return None, shares
    sigma = estimator.sigma
    found = tuple(positive(each, "sigma") for each in (sigma if isinstance(sigma, tuple) else (sigma,) * blocks))
    if len(found) != blocks:
        raise InputError("sigma", repr(sigma), f"a number, or one for each of {blocks} clipped blocks")
    return found, shares


@lru_cache(maxsize=128)
def _calibrated(epsilon: float, delta: float, N: int, n_epochs: int, sampling: str, accountant: str) -> float:
    if accountant in BOUNDS:
        return calibrate_sep_sigma(epsilon, delta, 1 / N, N * n_epochs, accountant)
    return _least_noise(epsilon, delta, accountant, partial(_event, N, n_epochs, sampling))


def _least_noise(epsilon: float, delta: float, accountant: str, make: Callable[[float], Event]) -> float:
    makers = None if accountant == "best" else METHODS["rdp"]
    with silence(EdgeOrderWarning):
        return calibrate(
            make, epsilon, delta, accountants=makers, bracket=(0.3, 30.0), limits=(0.02, 4e7), tolerance=1e-4
        ).value


def _event(N: int, n_epochs: int, sampling: str, sigma: float) -> Event:
    return sep_event(sigma, N, n_epochs, sampling)
