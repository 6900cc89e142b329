"""Common settings of all steps since a start: the kind of mixture, its units, its noise, and its start."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import chosen, count, floats, positive
from thresholdout.privacy.accounting.events.composed_events import SelfComposed
from thresholdout.privacy.accounting.events.event_types import Adjacency, GaussianAnswer, check_adjacency
from thresholdout.privacy.learning.bounded_mean import check_bound
from thresholdout.privacy.learning.dpem.record_statistics import (
    COVARIANCE_TYPES,
    CovarianceType,
    MixtureParameters,
    Prior,
    maximize,
    moments,
    noise_scales,
    on_grid,
    sensitivity,
)

__all__ = ["Mixing", "Path", "Steps"]

Floats = NDArray[np.float64]
SHARES = (0.25, 0.5, 0.25)  # with these a replaced record moves all statistics by sqrt(2) at most (PROOFS.md, S3)


@dataclass(frozen=True)
class Steps:
    """The event of steps, as a function of their noise multiplier."""

    sensitivity: float
    adjacency: Adjacency
    steps: int

    def __call__(self, noise: float) -> SelfComposed:
        """Return the event of steps with a noise multiplier."""
        return SelfComposed(GaussianAnswer(noise, self.sensitivity, self.adjacency), self.steps)


@dataclass(frozen=True)
class Mixing:
    """Public settings that all calls share; `clip`, the bound on norms of records, is the unit of all other numbers."""

    components: int
    d: int
    covariance_type: CovarianceType
    clip: float
    shares: tuple[float, float, float]
    adjacency: Adjacency
    least_variance: float

    @classmethod
    def check(cls, estimator: Any, d: int = 1) -> Mixing:
        """Return the settings of an estimator for records with d coordinates."""
        shares = SHARES
        if estimator.budget_split is not None:
            given = estimator.budget_split
            if np.shape(given) != (3,):
                raise InputError("budget_split", repr(given), "three shares above 0 whose sum is 1")
            one, two, three = (positive(share, "budget_split") for share in given)
            total = one + two + three
            # More than the rounding of three shares; the rest is divided out.
            if abs(total - 1.0) > 1e-9:
                raise InputError("budget_split", repr(given), "three shares above 0 whose sum is 1")
            shares = (one / total, two / total, three / total)
        clip = check_bound(estimator.clip_norm, "clip_norm")
        least = positive(estimator.reg_covar, "reg_covar") / clip / clip
        kind = chosen(estimator.covariance_type, "covariance_type", COVARIANCE_TYPES)
        return cls(
            count(estimator.n_components, "n_components"),
            d,
            cast(CovarianceType, kind),
            clip,
            shares,
            check_adjacency(estimator.adjacency),
            min(max(least, 1e-12), 1.0),
        )

    def check_same(self, later: Mixing) -> None:
        """Refuse settings of a later call that mean another mixture, or other neighbours."""
        names = {
            "d": "the number of features",  # scikit-learn's own check is of the last call, also of one that was refused
            "components": "n_components",
            "covariance_type": "covariance_type",
            "clip": "clip_norm",
            "shares": "budget_split",
            "adjacency": "adjacency",
        }
        for field, name in names.items():
            before, now = getattr(self, field), getattr(later, field)
            if before != now:
                raise InputError(name, f"{now!r}", f"{before!r}, as in the earlier calls")

    @property
    def width(self) -> int:
        """Number of statistics of a component."""
        return 1 + self.d + moments(self.d, self.covariance_type)

    @property
    def noise_scales(self) -> Floats:
        """See `record_statistics.noise_scales`; shape (width,)."""
        return noise_scales(self.d, self.covariance_type, self.shares)

    @property
    def sensitivity(self) -> float:
        """See `record_statistics.sensitivity`."""
        return sensitivity(self.d, self.covariance_type, self.shares, self.adjacency)

    def of(self, steps: int) -> Steps:
        """Return so many steps, for any noise."""
        return Steps(self.sensitivity, self.adjacency, steps)

    def public_starts(self, given: Any) -> Floats | None:
        """Return given means in units of the bound, or None where none are given."""
        if given is None:
            return None
        shape = (self.components, self.d)
        found = floats(given, "means_init", f"finite numbers of shape {shape}")
        if found.shape != shape or not np.isfinite(found).all():
            seen = "a value that is not finite" if found.shape == shape else f"an array of shape {found.shape}"
            raise InputError("means_init", seen, f"finite numbers of shape {shape}")
        return on_grid(found, self.clip)

    def guess(self) -> MixtureParameters:
        """Return the mixture before the first step: records anywhere in the ball."""
        K, d = self.components, self.d
        cov = {"spherical": np.ones(()), "diag": np.ones(d), "full": np.eye(d)}[self.covariance_type] / d
        return MixtureParameters(np.full(K, 1 / K), np.zeros((K, d)), np.repeat(cov[None], K, axis=0))

    def prior(self, state: Floats, noise: float) -> Prior:
        """Return the moments of all records together, from the first numbers of a state."""
        noisy = state[: self.width][None]
        found = self._maximized(noisy, noise, None)
        # A noisy count may be negative, and `noise_share` divides by it.
        records = max(float(noisy[0, 0]), noise * float(self.noise_scales[0]), 1.0)
        return Prior(records, found.means[0], found.covariances[0])

    def start(self, prior: Prior, starts: Floats | None, directions: Floats) -> MixtureParameters:
        """Return the first mixture of the components: given means, or directions from the mean of all.

        Covariances are those of all records, of a volume that is divided by the number of components.
        """
        K, cov = self.components, prior.covariance
        if starts is None:
            root = np.linalg.cholesky(cov) if cov.ndim == 2 else np.diag(np.sqrt(np.broadcast_to(cov, self.d)))
            starts = prior.mean + directions @ root.T
        covariances = np.repeat(cov[None], K, axis=0) / K ** (2 / self.d)
        return MixtureParameters(np.full(K, 1 / K), starts, covariances)

    def mixture(self, state: Floats, noise: float, prior: Prior) -> MixtureParameters:
        """Return the mixture from the noisy statistics of the components."""
        return self._maximized(state.reshape(self.components, self.width), noise, prior)

    def _maximized(self, noisy: Floats, noise: float, prior: Prior | None) -> MixtureParameters:
        return maximize(noisy, noise, self.covariance_type, self.shares, self.least_variance, prior)


@dataclass(frozen=True, eq=False)
class Path:
    """All noisy statistics so far; an immutable value.

    `starts` are given means in units of the bound; without them, the means are drawn from `directions`, standard normal
    numbers. `states` has shape (steps + 1, components * width): zeros, then the statistics of all records together,
    then those of the components after each step. `noises` may include steps that a call has still to take.
    """

    mixing: Mixing
    starts: Floats | None
    directions: Floats
    states: Floats
    noises: Floats

    @property
    def steps(self) -> int:
        """Number of steps taken."""
        return len(self.states) - 1

    @property
    def noise_share(self) -> float:
        """Distance that noise moves the mean of an average component in the last step, by the noisy count."""
        if not self.steps:
            return math.inf
        moved = float(self.noises[self.steps - 1] * self.mixing.noise_scales[1]) * math.sqrt(self.mixing.d)
        return moved * self.mixing.components / self._prior().records

    def _prior(self) -> Prior:
        return self.mixing.prior(self.states[1], float(self.noises[0]))

    def mixture(self, *, average: bool) -> MixtureParameters:
        """Return the mixture by the last statistics, or by the mean of those of the later half of the steps."""
        taken = self.steps
        if not taken:
            return self.mixing.guess()
        if taken == 1:
            return self.mixing.start(self._prior(), self.starts, self.directions)
        # States 0 and 1 have no statistics of components.
        first = max(2, taken // 2 + 1) if average else taken
        noises = self.noises[first - 1 : taken]
        noise = float(np.sqrt(np.square(noises).sum())) / len(noises)
        return self.mixing.mixture(self.states[first:].mean(axis=0), noise, self._prior())
