"""Series whose dependence decays, declared by mixing coefficients or by a contraction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from graphs.errors import ArgumentError, RouteUnavailable
from graphs.inflation.concentration import block_inflation
from graphs.known_records import BoolArray
from graphs.leakage.profile import Profile
from graphs.model import Adversary, DependenceModel
from graphs.models.moving_window import MovingWindow
from graphs.numerics.arguments import FloatArray, IntArray, as_real, real_array
from graphs.numerics.rounding import up
from graphs.structure.labelled_values import refuse_unordered
from graphs.structure.revealed_blocks import RevealedBlocks

__all__ = ["MixingSeries"]

#: Steps of a geometric tail that are enumerated; the rest is summed in closed form.
STEPS = 20_000


class MixingSeries(DependenceModel):
    """Model a series whose dependence on the past decays at a declared rate (uniform mixing).

    Use it when dependence decays with time but never ends, and bounds on the decay are known. `MovingWindow` is the
    case of a finite range, `MixingSeries.contraction` that of a stationary Markov chain on any state space.

    A record is one row of the data. `variance_inflation` is the design effect, the number of dependent records that are
    worth one independent record for a mean. `leakage` is the privacy loss about one record, which also arises through
    the records that depend on it.

    Parameters
    ----------
    phi : iterable of float
        Uniform mixing coefficients phi_1, phi_2, ..., between 0 and 1. phi_k bounds ``|P(B | A) - P(B)|`` over all
        events A about the records up to some time and all events B about the records k or more steps later.
        Coefficients after the last one are zero, unless there is a `tail`. The coefficients of a series never increase
        with k, so a number that exceeds an earlier one is replaced by the smallest one so far.
    n : int
        Number of records, at least one.
    tail : float, default 0.0
        Factor from one coefficient to the next after the last given one, at least 0 and below 1. ``phi=[c], tail=r``
        means ``phi_k = c r^(k-1)``.

    Raises
    ------
    ArgumentError
        If there are no coefficients, one is not between 0 and 1, or `tail` is negative or not below 1.

    Notes
    -----
    *Variance inflation.* Given two pasts, the distributions of the future k records later differ by at most ``t_k =
    min(1, 2 phi_k)`` in total variation distance. With S the sum of the t_k, statistics with bounded differences have
    the variance inflation ``(1 + S)^2`` [Rio 2000], and about 4 S if S is above 1 ("mixing"). Any start and any change
    of the distribution in time are allowed. If coefficients are zero after the m-th, the series is a `MovingWindow` of
    range m, and means have m + 1 ("colouring"). Proofs: ``graphs/PROOFS.md``, section on mixing.

    *Leakage.* For an informed adversary, who may know other records, the bound is group privacy of the whole series.

    *Known records.* If the first records are known (training on earlier years, for example), the rest is a series of
    the same kind. Other known records can make the remaining records depend on each other more strongly.

    Examples
    --------
    >>> model = MixingSeries([0.4, 0.2, 0.1], n=1000)
    >>> round(model.variance_inflation(bounded_differences=True), 3), model.variance_inflation()
    (5.752, 4.0)
    >>> round(MixingSeries([0.1], n=1000, tail=0.5).variance_inflation(), 3)
    1.958
    """

    methods: ClassVar[tuple[str, ...]] = ("group", "quilt")
    inflation_methods: ClassVar[tuple[str, ...]] = ("components", "mixing", "colouring", "spectral")

    def __init__(self, phi: Iterable[float], n: int, *, tail: float = 0.0) -> None:
        expected = "coefficients phi_1, phi_2, ... in [0, 1], at least one"
        refuse_unordered("phi", phi, expected)
        values = real_array("phi", list(phi) if hasattr(phi, "__iter__") else phi, expected)
        if values.ndim != 1 or not len(values):
            raise ArgumentError("phi", f"an array of shape {values.shape}", expected)
        outside = ~((values >= 0) & (values <= 1))
        if outside.any():
            raise ArgumentError("phi", f"{values[outside][0]:.6g} at lag {int(np.argmax(outside)) + 1}", expected)
        factor = as_real(tail)
        if factor is None or not 0 <= factor < 1:
            raise ArgumentError("tail", repr(tail), "a factor in [0, 1)")
        reach = int(np.count_nonzero(np.minimum.accumulate(values)))
        endless = factor > 0 and reach == len(values)
        self._declare(n, values, factor, None, None if endless else reach)

    def _declare(self, n: int, phi: FloatArray, tail: float, norm: float | None, reach: int | None) -> None:
        super().__init__(n)
        self._phi, self._tail, self._norm = phi, tail, norm
        self._window = MovingWindow(self.n, self.n - 1 if reach is None else min(reach, self.n - 1))

    @classmethod
    def contraction(cls, norm: float, n: int) -> MixingSeries:
        """Build the model of a stationary Markov chain, on any state space, whose kernel contracts.

        Parameters
        ----------
        norm : float
            Contraction of the chain, between 0 and 1: the largest norm of E[h(X_{i+1}) | X_i] over functions h of one
            state with mean 0 and norm 1, norms in L2 of the stationary distribution. For a reversible chain it is the
            largest modulus of its spectrum other than 1, for a stationary Gaussian autoregression of order one the
            absolute coefficient.
        n : int
            Number of records. Each is the state of the chain at its time, or depends on that state alone.

        Returns
        -------
        MixingSeries
            Model in which means have the variance inflation ``(1 + norm) / (1 - norm)`` [Fan, Jiang, Sun 2021]
            ("spectral"), whether the chain is reversible or not. The bound does not hold given known records, nor for
            statistics that are not means.

        Raises
        ------
        ArgumentError
            If `norm` is not between 0 and 1.

        Examples
        --------
        >>> round(MixingSeries.contraction(0.9, 1000).variance_inflation(), 6)
        19.0
        """
        size = as_real(norm)
        if size is None or not 0 <= size <= 1:
            raise ArgumentError("norm", repr(norm), "the norm of a kernel, in [0, 1]")
        model = cls.__new__(cls)
        model._declare(n, np.zeros(0), 0.0, size, None if size else 0)
        return model

    @property
    def phi(self) -> FloatArray:
        """Declared mixing coefficients without the tail, each replaced by the smallest one so far."""
        return np.minimum.accumulate(self._phi)

    def _profile(self, method: str, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        return self._window._profile(method, epsilon, adversary)

    def _inflation(self, method: str) -> float:
        if method == "components":
            return self._window._inflation("components")
        if method == "colouring":
            if 0 < self._window.m >= self.n - 1:
                raise RouteUnavailable(method, "no two records are independent of each other", ("best",))
            return self._window._inflation("colouring")
        if (method == "spectral") != (self._norm is not None):
            declared = "coefficients of uniform mixing" if self._norm is None else "a contraction in L2"
            raise RouteUnavailable(method, f"the series was declared by {declared}", ("best",))
        if self._norm is not None:
            return up((1 + self._norm) / (1 - self._norm), 4) if self._norm < 1 else math.inf
        return block_inflation(*self._steps(), self.n)

    def _steps(self) -> tuple[FloatArray, float]:
        """Return the total variation distances of futures, lag by lag, and a bound on the sum of the others."""
        declared = self.phi
        beyond, left = 0.0, self.n - 1 - len(declared)
        if self._tail > 0 and left > 0:
            powers = up(self._tail ** np.arange(1, min(left, STEPS) + 1, dtype=np.float64), 16) * float(self._phi[-1])
            declared = np.concatenate([declared, np.minimum(up(powers, 2), declared[-1])])
            if left > STEPS:
                beyond = up(2 * float(declared[-1]) * self._tail / (1 - self._tail), 8)
        return np.minimum(2 * declared, 1.0), beyond

    def effective_records(self) -> float | None:
        """Compute the effective sample size for bounds by relative entropy (Chernoff bounds).

        See `DependenceModel.effective_records` for the bound that holds with it.

        Returns
        -------
        float or None
            The ratio n / (m + 1) if all coefficients after the m-th are zero. None otherwise.
        """
        return None if 0 < self._window.m >= self.n - 1 else self._window.effective_records()

    def independent_groups(self) -> IntArray | None:
        """Return the sizes of groups of records that are independent of each other.

        Returns
        -------
        ndarray of shape (n,), or None
            An array of n ones if all mixing coefficients are 0. None otherwise.
        """
        return self._window.independent_groups()

    def revealed_blocks(self, missed: float = 0.0) -> RevealedBlocks:
        """Bound how many records change with each block when records are revealed block after block.

        See `DependenceModel.revealed_blocks` for the definition and for `missed`.

        Returns
        -------
        RevealedBlocks
            Attribute `changes` holds the numbers of records that change with a block, `counts` the number of such
            blocks. The blocks are stretches of the series. For a `contraction` all records form one block.
        """
        exact = self._window.revealed_blocks()
        if self._norm is not None:
            return exact
        found = exact, RevealedBlocks.of_forgetting(self.n, self._steps()[0], missed)
        return min(found, key=lambda blocks: blocks.squares)

    def _content(self) -> Mapping[str, Any]:
        norm = -1.0 if self._norm is None else self._norm
        return {"n": self.n, "phi": self.phi, "last": self._phi[-1:], "tail": self._tail, "norm": norm}

    def sample(self, rng: np.random.Generator) -> IntArray:
        """Draw one synthetic series: a symmetric chain of zeros and ones that mixes at least as fast as declared.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness. Pass a seeded generator for reproducible draws.

        Returns
        -------
        ndarray of shape (n,)
            Value of each record, 0 or 1. It differs from the one before with probability (1 - r)/2, so that phi_k is
            ``r^k / 2`` and the norm is r. After each stretch as long as the range of the dependence, the chain
            restarts.
        """
        rate = self._norm
        if rate is None:
            known = self.phi[self.phi > 0]
            rates = np.minimum(2 * known, 1.0) ** (1 / np.arange(1, len(known) + 1))
            rate = float(rates.min(initial=1.0))
            if self._tail > 0:
                rate = min(rate, self._tail)
        fresh = rng.random(self.n) >= rate
        fresh[:: self._window.m + 1] = True
        coins: IntArray = rng.integers(0, 2, size=self.n)
        return coins[np.maximum.accumulate(np.where(fresh, np.arange(self.n), 0))]

    def describe(self) -> str:
        """Describe the model in one line of text."""
        if self._norm is not None:
            return f"{self.n} records of a stationary Markov chain whose kernel has norm {self._norm:.4g}"
        shown = ", ".join(f"{value:.3g}" for value in self.phi[:4])
        more = ", ..." if len(self._phi) > 4 or self._tail > 0 else ""
        return f"{self.n} records of a series with mixing coefficients {shown}{more}"

    def _remainder(self, known: BoolArray) -> DependenceModel | None:
        start = int(known.sum())
        if self._norm is None and known[:start].all():
            return MixingSeries(self._phi, self.n - start, tail=self._tail)
        return None if 0 < self._window.m >= self.n - 1 else self._window._remainder(known)
