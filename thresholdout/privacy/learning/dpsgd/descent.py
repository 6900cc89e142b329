"""Noisy minibatch gradient descent: steps, plans of calls, and the base of both estimators."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from graphs.progress_bar import progress_bar
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import count
from thresholdout.privacy.learning.dpsgd.batches import Batches, PlannedSteps
from thresholdout.privacy.learning.dpsgd.clipping import ClipNorm, ClippedSums, joint_norm
from thresholdout.privacy.learning.dpsgd.gradient_networks import Network, Output
from thresholdout.privacy.learning.dpsgd.settings import Preparation, Settings
from thresholdout.privacy.learning.dpsgd.spending import Account, noise_for_target, per_step, search_for
from thresholdout.privacy.learning.interrupted_calls import ResumedCalls, check_alike
from thresholdout.privacy.learning.privacy_report import PrivacyReport, noise_share, warn_of_noise
from thresholdout.privacy.learning.random_streams import Streams, is_seeded, streams, threads_for
from thresholdout.privacy.learning.targets import TargetNoise, further_steps, noise_of_call

__all__ = ["Call", "Descent", "DivergedWarning", "PrivateDescent", "Steps", "descend", "plan_fit", "plan_partial_fit"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Descent:
    """Public settings of all steps.

    `clip_norm` is C, the bound on a record's gradient in all parameters jointly; or one norm for each layer, and C is
    the root of the sum of their squares. `noise` and `rates` have one number for each step; the noise is that on the
    *sum* of clipped gradients, over C. `l2` is the strength of the penalty ``l2 / 2 |weights|^2``, which depends on no
    record and needs no noise.
    """

    batches: Batches
    clip_norm: ClipNorm
    noise: Floats
    rates: Floats
    l2: float = 0.0


def descend(
    network: Network,
    parameters: Floats,
    X: Floats,
    targets: NDArray[Any],
    descent: Descent,
    *,
    sampling: np.random.Generator,
    noise: np.random.Generator,
    done: int = 0,
) -> Iterator[int]:
    """Take steps of private gradient descent, in place.

    One step is ``parameters -= rate / B * (sum of clipped gradients + noise * C * Z) + rate * l2 * weights`` with Z
    standard normal. B is the divisor even if a Poisson batch has another size, and an empty batch gets its noise as
    well. The parameters change only after the noise was added: an interrupt leaves no sum without noise.
    """
    batches = descent.batches
    sums = ClippedSums(network, X, targets, descent.clip_norm, _rows(batches))
    drawn = np.empty_like(parameters)
    weights = network.penalised() if descent.l2 else None
    bound = joint_norm(descent.clip_norm)
    for step, (multiplier, rate) in enumerate(zip(descent.noise.tolist(), descent.rates.tolist(), strict=True)):
        records = batches.draw(sampling, len(X))
        # Of a step before an interrupt, only the random numbers are drawn (PROOFS.md, G7).
        if multiplier > 0.0 and step < done:
            noise.standard_normal(out=drawn)
        if step < done:
            continue
        total = sums(parameters, records)
        if multiplier > 0.0:
            noise.standard_normal(out=drawn)
            drawn *= multiplier * bound
            total += drawn
        # B is the divisor of Poisson batches, too: no number of records enters (G2).
        total *= rate / batches.batch_size
        with np.errstate(over="ignore", invalid="ignore"):
            if weights is not None:
                # After the noise: the penalty reads no record, so nothing here needs more of it.
                total += (rate * descent.l2) * weights * parameters
            parameters -= total
        yield step


def _rows(batches: Batches) -> int:
    """Return the rows to allocate; a Poisson batch rarely has more than six standard deviations above its mean."""
    size = batches.batch_size
    return size if batches.sampling != "poisson" else int(size + 6 * size**0.5) + 1


WARM = (
    "noise_multiplier in its place, pass warm_start=False, or call partial_fit with n_steps, which uses one target up "
    "in parts"
)


@dataclass(frozen=True, eq=False)
class Call:
    """Plan of one call; its target is None where the noise was given."""

    batches: Batches
    noise: Floats
    rates: Floats
    delta: float
    target: TargetNoise | None


def plan_fit(settings: Settings, n: int, account: Account, delta: float | None) -> Call:
    """Return the call of ``fit`` on n records; its target holds together with the account's steps, at their delta."""
    batches = settings.batches(n)
    delta = _delta(settings, batches, delta)
    steps, target = settings.steps(batches), None
    if settings.epsilon is not None:
        noise_multiplier = noise_for_target(account, batches, steps, settings.epsilon, delta, WARM)
        target = TargetNoise((batches, account.steps + steps, settings.epsilon, delta), noise_multiplier)
    return _call(settings, batches, account, steps, delta, target)


def plan_partial_fit(
    settings: Settings, n: int, account: Account, delta: float | None, target: TargetNoise | None, n_steps: object
) -> Call | None:
    """Return the call of ``partial_fit``; None where a target leaves no step and no number was asked for.

    A target epsilon is for all the steps that ``fit`` would take. The first call finds the noise for all of them, and
    further calls use it up. A call with other batches finds it anew, for the remaining steps. A call without a number
    of steps takes an epoch, or the remaining steps if they are fewer.
    """
    batches = settings.batches(n)
    delta = _delta(settings, batches, delta)
    epoch = math.ceil(batches.records / batches.batch_size)
    most = settings.steps(batches)
    asked = None if n_steps is None else count(n_steps, "n_steps")
    name = "n_steps or n_epochs" if asked is None else "n_steps"
    steps = further_steps(asked, epoch, most, account.steps, settings.epsilon, name=name, stacklevel=5)
    if not steps:
        return None
    if settings.epsilon is None:
        return _call(settings, batches, account, steps, delta, None)
    account.check(batches)
    _, target = noise_of_call(
        partial(PlannedSteps, batches), account, target, noise_multiplier=None, epsilon=settings.epsilon, delta=delta,
        public=batches, total=most, adjacency=batches.adjacency, stacklevel=6,
        search=search_for(batches, most - account.steps),
    )  # fmt: skip
    return _call(settings, batches, account, steps, delta, target)


def _delta(settings: Settings, batches: Batches, earlier: float | None) -> float:
    return settings.delta_for(batches) if settings.delta is not None or earlier is None else earlier


def _call(
    settings: Settings, batches: Batches, account: Account, steps: int, delta: float, target: TargetNoise | None
) -> Call:
    multiplier = settings.noise_multiplier if target is None else target.noise_multiplier
    noise = per_step(multiplier, "noise_multiplier", steps, first=account.steps, zero=True)
    rates = per_step(settings.learning_rate, "learning_rate", steps, first=account.steps)
    return Call(batches, noise, rates, delta, target)


# Steps with fewer products than this, tens of milliseconds, run in one thread: several would gain little, and lose a
# factor of up to 100 where other processes use the cores too.
FEW_PRODUCTS = 2**27


class DivergedWarning(UserWarning):
    """Issued when training by gradient descent ends with parameters that are not finite.

    `DPSGDClassifier` and `DPSGDRegressor` issue it if the learning rate, or its product with the penalty `l2`, is too
    large. Pass a smaller `learning_rate`.

    Examples
    --------
    Turn it into an error, so that such a fit does not pass for a good one:

    >>> import warnings
    >>> warnings.filterwarnings("error", category=DivergedWarning)
    """


@dataclass(frozen=True, eq=False)
class Steps:
    """The charged steps of one call; `resume` takes them from here."""

    descent: Descent
    number: int  # of the call
    first: int  # number of steps of earlier calls
    average_after: int | None
    random_state: Any
    callback: Any
    verbose: bool


class PrivateDescent(ResumedCalls, BaseEstimator):  # type: ignore[misc]
    """Base of `DPSGDClassifier` and `DPSGDRegressor`, which describe parameters and attributes."""

    coefs_: list[Floats]
    intercepts_: list[Floats]
    n_features_in_: int
    n_steps_: int
    batch_size_: int
    noise_multiplier_: float
    delta_: float
    _account: Account
    _network: Network
    _parameters: Floats
    _averaged: Floats
    _n_averaged: int
    _leaks: tuple[str, ...]
    _details: dict[str, Any]
    _target: TargetNoise | None
    _prepare: Preparation
    _report: PrivacyReport | None
    _stopped: Steps | None

    _output: Output = "identity"
    _most_noise = 0.1  # of the way of gradients; the classifier bears more

    @property
    def privacy_report_(self) -> PrivacyReport:
        """Privacy guarantee of all steps since the parameters started, a `PrivacyReport`.

        It is computed at the first access after a call.
        """
        check_is_fitted(self, "coefs_")
        if self._report is None:
            self._report = self._account.report(self.delta_, leaks=self._leaks, details=self._details)
        return self._report

    def _begins(self, *, partial: bool) -> bool:
        """Return whether a call starts new parameters."""
        return not hasattr(self, "_account") or not (partial or self.warm_start)

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self, "coefs_")
        X = validate_data(self, X, reset=False, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            return self._network.scores(self._shown(), self._prepare(X))

    def _shown(self) -> Floats:
        return self._averaged if self._n_averaged else self._parameters

    def _learn(
        self,
        X: Floats,
        targets: NDArray[Any],
        outputs: int,
        settings: Settings,
        known: Mapping[str, Any],
        *,
        leaks: tuple[str, ...] = (),
        partial: bool = False,
        n_steps: int | None = None,
    ) -> None:
        """Plan a call, charge all of it, set the attributes that are known before its steps, and take them."""
        fresh = self._begins(partial=partial)
        settings.prepare.check(X.shape[1])
        sizes = (X.shape[1], *settings.hidden, outputs)
        network = Network(
            sizes, activation=settings.activation, output=self._output, intercept=bool(self.fit_intercept)
        )
        if not fresh and network != self._network:
            advice = "Call fit with warm_start=False for a new network."
            raise InputError("hidden_layer_sizes", "another network", "as in the earlier calls", advice)
        # All checks come before the charge, and the charge before the first step.
        account, delta = (Account(), None) if fresh else (self._account, self.delta_)
        if partial:
            target = None if fresh else self._target
            planned = plan_partial_fit(settings, len(X), account, delta, target, n_steps)
            # A spent target: the warning is given, and nothing is charged.
            if planned is None:
                return
            call = planned
        else:
            call = plan_fit(settings, len(X), account, delta)
            share = noise_share(call.noise, call.rates, call.batches.batch_size, network.n_parameters)
            warn_of_noise(share, self._most_noise, "as many records, or as large an epsilon,", stacklevel=4)
        random = streams(self.random_state, account.calls)
        charged = account.charge_batches(call.batches, call.noise, seeded=is_seeded(self.random_state))
        parameters = network.start(random.initial) if fresh else self._parameters
        rows = settings.prepare(X)
        first = 0 if fresh else self.n_steps_
        after = settings.average_after
        averaged, n_averaged = np.zeros_like(parameters), 0
        if not (fresh or after is None or after == "half"):
            averaged, n_averaged = self._averaged, self._n_averaged
        if after == "half":
            # The mean starts anew in each call, in the middle of its steps.
            after = first + len(call.noise) // 2
        descent = Descent(call.batches, settings.clip_norm, call.noise, call.rates, settings.l2)
        callback, verbose = settings.callback, bool(self.verbose)
        steps = Steps(descent, account.calls, first, after, self.random_state, callback, verbose)
        set_now = {"_network": network, "_account": charged, "_leaks": leaks, "_report": None, "_stopped": steps}
        self.__dict__.update(
            {
                **known,
                **set_now,
                **self._described(call, settings),
                **_iterate(network, parameters, averaged, n_averaged),
            },
            n_steps_=first,
        )
        self._follow(steps, rows, targets, random)

    @staticmethod
    def _described(call: Call, settings: Settings) -> dict[str, Any]:
        batches = call.batches
        details = {
            "sampling": batches.sampling,
            "batch_size": batches.batch_size,
            "records": batches.records,
            "clip_norm": settings.clip_norm,
        }
        return {
            "_target": call.target,
            "_prepare": settings.prepare,
            "delta_": call.delta,
            "batch_size_": batches.batch_size,
            "noise_multiplier_": float(call.noise.min()),
            "_details": details,
        }

    def _go_on(self, steps: Steps, X: Floats, targets: NDArray[Any]) -> None:
        """Take the remaining steps of an interrupted call."""
        batches = steps.descent.batches
        if batches.adjacency == "replace_one":
            check_alike("the number of records", batches.records, len(X))
        elif batches.sampling != "poisson" and len(X) < batches.records:
            seen = f"{batches.records} (n_samples = {len(X)})"
            raise InputError("public_size", seen, "at most the number of records")
        random = streams(steps.random_state, steps.number)
        self._follow(steps, self._prepare(X), targets, random)

    def _follow(self, steps: Steps, rows: Floats, targets: NDArray[Any], random: Streams) -> None:
        """Take the steps of a call, or those that an interrupt has left.

        Each step is stored in one assignment before the callback sees it: an interrupt falls between two steps.
        """
        network, descent, done = self._network, steps.descent, self.n_steps_ - steps.first
        parameters, averaged, n_averaged = self._parameters.copy(), self._averaged, self._n_averaged
        taken = progress_bar(
            descend(
                network, parameters, rows, targets, descent, sampling=random.sampling, noise=random.noise, done=done
            ),
            doing=type(self).__name__,
            unit="steps",
            total=len(descent.noise) - done,
            show=steps.verbose,
        )
        small = descent.batches.batch_size * network.n_parameters < FEW_PRODUCTS
        with threads_for(small):
            for step in taken:
                number = steps.first + step
                if steps.average_after is not None and number >= steps.average_after:
                    n_averaged += 1
                    with np.errstate(over="ignore", invalid="ignore"):
                        averaged = averaged + (parameters - averaged) / n_averaged
                self.__dict__.update(_iterate(network, parameters.copy(), averaged, n_averaged), n_steps_=number + 1)
                if steps.callback is not None and steps.callback(number, network.layers(_frozen(parameters))):
                    break
        self._stopped = None
        if not np.isfinite(self._shown()).all():
            message = "The parameters are not finite. Pass a smaller learning_rate."
            warnings.warn(message, DivergedWarning, stacklevel=5)


def _iterate(network: Network, parameters: Floats, averaged: Floats, n_averaged: int) -> dict[str, Any]:
    """Return an estimator's attributes of one iterate, which nothing changes later."""
    layers = network.layers(averaged if n_averaged else parameters)
    return {
        "_parameters": parameters,
        "_averaged": averaged,
        "_n_averaged": n_averaged,
        "coefs_": [layer.weights for layer in layers],
        "intercepts_": [layer.intercepts for layer in layers if layer.intercepts is not None],
    }


def _frozen(parameters: Floats) -> Floats:
    view = parameters.view()
    view.flags.writeable = False
    return view
