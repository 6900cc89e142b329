"""The theorem on Gaussian answers, executed on models so small that all states can be enumerated.

Nothing here uses the certificates: laws of a few groups are tables, the density of a transcript is a sum over all
states, and every quantity of the proof (PROOFS.md, "Gaussian answers") is computed from them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass
class SmallModel:
    """Independent groups, each with a law over a few states, and its number of records.

    `look` is the logarithm of the probability of what another look released, by joint state.
    """

    laws: Sequence[Floats]
    sizes: Floats
    look: Floats | float = 0.0

    @cached_property
    def states(self) -> NDArray[np.int64]:
        """All joint states, one row each."""
        return np.array(list(itertools.product(*(range(len(law)) for law in self.laws))))

    @cached_property
    def prior(self) -> Floats:
        """Probability of each joint state."""
        columns = [law[self.states[:, g]] for g, law in enumerate(self.laws)]
        return np.asarray(np.prod(np.array(columns), axis=0))

    @property
    def n(self) -> float:
        return float(self.sizes.sum())

    @property
    def inflation(self) -> float:
        return float(np.sum(self.sizes**2) / self.n)

    @property
    def crowding(self) -> float:
        return float(self.sizes.max() ** 2 / (self.inflation * self.n))

    def query(self, values: Sequence[Floats]) -> Floats:
        """Value of a question in each joint state; ``values[g]`` in [0, 1], the mean over group g in each state."""
        parts = [
            size * value[self.states[:, g]] for g, (size, value) in enumerate(zip(self.sizes, values, strict=True))
        ]
        return np.asarray(np.sum(np.array(parts), axis=0) / self.n)

    def variations(self, posterior: Floats) -> Floats:
        """Total variation between posterior and prior of each group."""
        found = []
        for g, law in enumerate(self.laws):
            marginal = np.bincount(self.states[:, g], weights=posterior, minlength=len(law))
            found.append(0.5 * float(np.abs(marginal - law).sum()))
        return np.array(found)

    def information(self, scales: Floats) -> float:
        """``x = sum Lambda/(8 n s_j^2)``."""
        return float(np.sum(self.inflation / (8.0 * self.n * scales**2)))

    def log_density(self, queries: Floats, scales: Floats, answers: Floats, dilation: float) -> float:
        """``ln p_a(y)`` up to a constant that does not depend on a; rows of ``queries`` are values by joint state."""
        return float(np.logaddexp.reduce(self._log_weights(queries, scales, answers, dilation)))

    def posterior(self, queries: Floats, scales: Floats, answers: Floats) -> Floats:
        """Law of the joint state given the answers."""
        weights = self._log_weights(queries, scales, answers, 1.0)
        return np.asarray(np.exp(weights - np.logaddexp.reduce(weights)))

    def slack(self, queries: Floats, scales: Floats, answers: Floats, dilation: float) -> float:
        """``ln p_a/p_1`` less its lower bound in the proof; the theorem says that it is never negative."""
        ratio = self.log_density(queries, scales, answers, dilation) - self.log_density(queries, scales, answers, 1.0)
        squares = float(np.sum(self.variations(self.posterior(queries, scales, answers)) ** 2))
        return ratio - self.lower_bound(squares, self.information(scales), dilation)

    def lower_bound(self, squares: float, information: float, dilation: float) -> float:
        """``2 (1 - a^-2) V - (a^2 - 1) x - 2 (a - 1) x c V``."""
        return (
            2.0 * (1.0 - dilation**-2) * squares
            - (dilation**2 - 1.0) * information
            - 2.0 * (dilation - 1.0) * information * self.crowding * squares
        )

    def _log_weights(self, queries: Floats, scales: Floats, answers: Floats, dilation: float) -> Floats:
        means = queries @ self.prior
        dilated = means[:, None] + dilation * (queries - means[:, None])
        residuals = (answers[:, None] - dilated) / scales[:, None]
        return np.asarray(np.log(self.prior) + self.look - 0.5 * np.sum(residuals**2, axis=0))


def random_model(rng: np.random.Generator, groups: int, states: int, *, equal: bool) -> SmallModel:
    """Draw laws, some close to a point mass, and sizes of the groups."""
    laws = [rng.dirichlet(np.full(states, rng.choice([0.2, 1.0, 5.0]))) + 1e-12 for _ in range(groups)]
    sizes = np.ones(groups) if equal else rng.integers(1, 5, groups).astype(np.float64)
    return SmallModel([law / law.sum() for law in laws], sizes)


def random_values(rng: np.random.Generator, model: SmallModel) -> list[Floats]:
    """Draw a question: values 0 or 1 for half of them, uniform ones otherwise."""
    values = [rng.random(len(law)) for law in model.laws]
    return [np.round(value) for value in values] if rng.random() < 0.5 else values
