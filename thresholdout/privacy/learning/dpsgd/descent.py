"""What the two estimators share: parameters that live on over calls, and the account of what these have cost."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from graphs.progress_bar import progress_bar
from thresholdout.errors import InputError
from thresholdout.privacy.learning.dpsgd.gradient_networks import Network, Output
from thresholdout.privacy.learning.dpsgd.plans import Call, Target, plan_fit, plan_partial_fit
from thresholdout.privacy.learning.dpsgd.settings import Preparation, Settings
from thresholdout.privacy.learning.dpsgd.spending import Account
from thresholdout.privacy.learning.dpsgd.training import Descent, descend
from thresholdout.privacy.learning.low_signal import noise_share, warn_of_noise
from thresholdout.privacy.learning.privacy_report import PrivacyReport
from thresholdout.privacy.learning.random_streams import is_seeded, streams
from thresholdout.privacy.learning.targets import SpentTargetWarning
from thresholdout.privacy.learning.threads import threads_for

__all__ = ["DivergedWarning", "PrivateDescent"]

Floats = NDArray[np.float64]

# Steps with fewer products than this, tens of milliseconds, run in one thread: several would gain little, and lose a
# factor of up to 100 where other processes use the cores too.
FEW_PRODUCTS = 2**27


class DivergedWarning(UserWarning):
    """Parameters have grown beyond all numbers: the learning rate, or its product with the penalty, is too large.

    Examples
    --------
    As an error, so that such a fit is not taken for a good one:

    >>> import warnings
    >>> warnings.filterwarnings("error", category=DivergedWarning)
    """


class PrivateDescent(BaseEstimator):  # type: ignore[misc]
    """Base of `DPSGDClassifier` and `DPSGDRegressor`, where parameters and attributes are described."""

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
    _target: Target | None
    _prepare: Preparation
    _report: PrivacyReport | None

    _output: Output = "identity"
    _most_noise = 0.1  # of what is learned; for classes more is bearable

    @property
    def privacy_report_(self) -> PrivacyReport:
        """What all steps since the parameters started have leaked; computed when it is first asked for."""
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
        """Plan a call, charge all of it, set what is known before its steps, and take them."""
        fresh = self._begins(partial=partial)
        settings.prepare.check(X.shape[1])
        sizes = (X.shape[1], *settings.hidden, outputs)
        network = Network(
            sizes, activation=settings.activation, output=self._output, intercept=bool(self.fit_intercept)
        )
        if not fresh and network != self._network:
            raise InputError("hidden_layer_sizes", "another network", "that of the earlier calls, or a new fit")
        account, delta = (Account(), None) if fresh else (self._account, self.delta_)
        if partial:
            target = None if fresh else self._target
            planned = plan_partial_fit(settings, len(X), account, delta, target, n_steps)
            if planned is None:
                self._warn_of_spent_target(settings)
                return
            call = planned
        else:
            call = plan_fit(settings, len(X), account, delta)
            share = noise_share(call.noise, call.rates, call.batches.batch_size, network.n_parameters)
            warn_of_noise(share, self._most_noise, "as many records, or as large an epsilon,", stacklevel=4)
        random = streams(self.random_state, account.calls)
        charged = account.charge(call.batches, call.noise, seeded=is_seeded(self.random_state))
        parameters = network.start(random.initial) if fresh else self._parameters.copy()
        rows = settings.prepare(X)

        if fresh or settings.average_after is None or settings.average_after == "half":
            self._averaged, self._n_averaged = np.zeros_like(parameters), 0
        self._network, self._account, self._leaks, self._report = network, charged, leaks, None
        self._describe(call, settings)
        for name, value in known.items():
            setattr(self, name, value)
        self.n_steps_ = 0 if fresh else self.n_steps_
        after = settings.average_after
        if after == "half":
            after = self.n_steps_ + len(call.noise) // 2
        self._store(parameters)
        descent = Descent(call.batches, settings.clip_norm, call.noise, call.rates, settings.l2)
        steps = descend(network, parameters, rows, targets, descent, sampling=random.sampling, noise=random.noise)
        taken = progress_bar(
            steps, doing=type(self).__name__, unit="steps", total=len(call.noise), show=bool(self.verbose)
        )
        small = call.batches.batch_size * network.n_parameters < FEW_PRODUCTS
        with threads_for(small):
            self._follow(taken, parameters, after, settings.callback)

    def _warn_of_spent_target(self, settings: Settings) -> None:
        message = (
            f"no step was taken: all the steps that the target epsilon {settings.epsilon:g} is for were taken before; "
            "more of them need a larger n_steps or n_epochs, with a larger epsilon for all together or with "
            "noise_multiplier= in its place"
        )
        warnings.warn(message, SpentTargetWarning, stacklevel=5)

    def _describe(self, call: Call, settings: Settings) -> None:
        batches = call.batches
        self._target, self._prepare, self.delta_ = call.target, settings.prepare, call.delta
        self.batch_size_, self.noise_multiplier_ = batches.batch_size, float(call.noise.min())
        self._details = {
            "sampling": batches.sampling,
            "batch_size": batches.batch_size,
            "records": batches.records,
            "clip_norm": settings.clip_norm,
        }

    def _follow(self, taken: Iterable[int], parameters: Floats, average_after: int | None, callback: Any) -> None:
        """Take the steps; what there is after an interrupt is stored, and was charged."""
        released = parameters.view()
        released.flags.writeable = False
        layers, before = self._network.layers(released), self.n_steps_
        try:
            for step in taken:
                self.n_steps_ = before + step + 1
                if average_after is not None and self.n_steps_ > average_after:
                    self._n_averaged += 1
                    with np.errstate(over="ignore", invalid="ignore"):
                        self._averaged = self._averaged + (parameters - self._averaged) / self._n_averaged
                if callback is not None and callback(self.n_steps_ - 1, layers):
                    break
        finally:
            self._store(parameters)
        if not np.isfinite(self._shown()).all():
            warnings.warn("the parameters are not finite; try a smaller learning_rate", DivergedWarning, stacklevel=5)

    def _store(self, parameters: Floats) -> None:
        self._parameters = parameters
        layers = self._network.layers(self._shown())
        self.coefs_ = [layer.weights for layer in layers]
        self.intercepts_ = [layer.intercepts for layer in layers if layer.intercepts is not None]
