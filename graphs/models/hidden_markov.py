"""Records that depend on the unobserved states of a Markov chain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from graphs.errors import ArgumentError
from graphs.inflation.chain_evidence import contractions_of
from graphs.inflation.influences import passed_on
from graphs.known_records import BoolArray
from graphs.leakage.influence import Supports
from graphs.leakage.messages import Edges, along_chain, projective_diameter
from graphs.leakage.profile import Profile
from graphs.model import Adversary
from graphs.models.emission import CategoricalEmission, as_emission
from graphs.models.latent_states import LatentModel
from graphs.models.markov_chain import MOST_STATES, MarkovChain
from graphs.numerics.arguments import FloatArray
from graphs.numerics.rounding import UNIT, up, upward_sum
from graphs.structure.revealed_blocks import RevealedBlocks

__all__ = ["HiddenMarkov", "weighted_diameters"]

#: Most kernels of one length, over all patterns of known records between; longer edges are not used.
MOST_KERNELS = 1024

#: Smaller entries of products may have lost relative accuracy to underflow.
TINY = 1e-280


def weighted_diameters(
    transition: FloatArray, emission: FloatArray | None, supports: Supports, longest: int
) -> FloatArray:
    """Return the diameters of kernels of 1, 2, ... steps, for any known records between."""
    # an adversary may know any records between, and each known one weighs the states by its likelihoods
    masks = np.unique(np.concatenate([supports.head, supports.cycle]), axis=0)
    kernels, patterns = transition[None], (transition > 0)[None]
    found = [_largest(kernels, patterns, masks, len(transition) + 2)]
    if emission is None:
        return np.array(found)
    weights = _weights(emission)
    steps = [(transition * weight[:, None], (transition * weight[:, None]) > 0) for weight in weights]
    while len(found) < longest and len(kernels) * len(weights) * len(masks) <= MOST_KERNELS:
        kernels = np.concatenate([kernels @ step for step, _ in steps])
        patterns = np.concatenate([(patterns.astype(np.float64) @ pattern) > 0 for _, pattern in steps])
        possible = patterns.any(axis=(1, 2))
        kernels, patterns = kernels[possible], patterns[possible]
        kernels = kernels / kernels.max(axis=(1, 2), keepdims=True)  # diameters ignore factors; avoids underflow
        found.append(_largest(kernels, patterns, masks, (len(found) + 1) * (len(transition) + 6)))
    return np.array(found)


def _weights(emission: FloatArray) -> FloatArray:
    """Return the weights that a record may put on the states: none when unknown, else its likelihoods."""
    # symbols with proportional likelihoods give the same kernels
    columns = emission.T[(emission > 0).any(axis=0)]
    scaled = np.concatenate([np.ones((1, len(emission))), columns / columns.max(axis=1, keepdims=True)])
    weights: FloatArray = np.unique(scaled, axis=0)
    return weights


def _largest(
    kernels: FloatArray, patterns: npt.NDArray[np.bool_], masks: npt.NDArray[np.bool_], operations: int
) -> float:
    if (kernels[patterns] < TINY).any():  # a possible transition may have underflowed
        return float("inf")
    error = 2 * operations * UNIT
    return max(projective_diameter(kernel[mask], error) for kernel in kernels for mask in masks if mask.any())


class HiddenMarkov(LatentModel):
    """Records of any type that depend on the unobserved states of a Markov chain.

    Parameters
    ----------
    transition : array_like of shape (k, k)
        Transition matrix of the states, as in `MarkovChain`.
    n : int
        Number of records; there is one state for each.
    initial : array_like of shape (k,), optional
        Law of the first state; the stationary law by default.
    emission : array_like of shape (k, v), or Emission, optional
        Law of a record given its state: a table of probabilities for records with v values, or a `CategoricalEmission`
        or `GaussianEmission`. By default records may be of any type, and the bounds hold for every law of theirs.

    Raises
    ------
    ArgumentError
        As `MarkovChain`; also for an emission that is no law or does not have k states.

    Notes
    -----
    States are no records: they have no privacy budget and leak nothing of their own. Records leak about each other
    through the states only, so a finite table of emissions contracts the leakage twice more. Without emissions, or with
    normal ones, a record may determine its state, and leakages are those of a `MarkovChain` whose records are the
    states. Long edges and quilts are then for an uninformed adversary only, because known records do not cut a hidden
    chain. The variance inflation is that of the chain of states, or smaller where emissions are similar.

    Examples
    --------
    >>> model = HiddenMarkov([[0.9, 0.1], [0.2, 0.8]], n=5)
    >>> model.leakage(0.1).round(6)
    array([0.284718, 0.330203, 0.344814, 0.330203, 0.284718])
    >>> blurred = HiddenMarkov([[0.9, 0.1], [0.2, 0.8]], n=5, emission=[[0.6, 0.4], [0.4, 0.6]])
    >>> blurred.leakage(0.1).round(6)
    array([0.107395, 0.10921 , 0.109793, 0.10921 , 0.107395])
    """

    inflation_methods: ClassVar[tuple[str, ...]] = (
        "components",
        "spectral",
        "dobrushin",
        "coupling",
        "emission",
        "emission-spectral",
        "influences",
    )
    _inflations_given: ClassVar[tuple[str, ...]] = ("components", "evidence", "influences")

    def __init__(self, transition: Any, n: int, initial: Any = None, emission: Any = None) -> None:
        self._chain = MarkovChain(transition, n, initial)
        super().__init__(self._chain, as_emission(emission, len(self._chain.transition)))

    @classmethod
    def fit(
        cls,
        *sequences: Iterable[Any],
        states: int = 2,
        emission: Literal["gaussian", "categorical"] = "gaussian",
        n: int | None = None,
        restarts: int = 8,
        seed: int = 0,
    ) -> HiddenMarkov:
        """Estimate a hidden chain from one or more observed sequences, by the Baum-Welch algorithm.

        Parameters
        ----------
        *sequences : iterables
            Observed records in order: numbers for "gaussian", hashable values for "categorical".
        states : int, default=2
            Number of hidden states.
        emission : {"gaussian", "categorical"}, default="gaussian"
            Law of a record given its state.
        n : int, optional
            Number of records of the model; required unless there is one sequence, whose length is the default.
        restarts : int
            Number of random starts; the one with the largest likelihood counts.
        seed : int
            Seed of the random starts.

        Returns
        -------
        HiddenMarkov
            Started in its stationary law; states in increasing order of their mean, or of the probability of the
            last symbol.

        Raises
        ------
        ArgumentError
            If an argument cannot be used, a sequence has fewer than two records, or there are more states than
            different values.

        Notes
        -----
        A fitted model is an estimate: its leakages hold for the fitted law, not for the unknown one.
        `graphs.estimation.baum_welch` returns details of the fit.

        Examples
        --------
        >>> from graphs import GaussianEmission
        >>> truth = HiddenMarkov([[0.95, 0.05], [0.1, 0.9]], n=2000, emission=GaussianEmission([0, 4], [1, 1]))
        >>> model = HiddenMarkov.fit(truth.sample(np.random.default_rng(1)))
        >>> model.emission.means.round(1)
        array([0. , 3.9])
        """
        from graphs.models.baum_welch import baum_welch

        found = baum_welch(*sequences, states=states, emission=emission, restarts=restarts, seed=seed)
        if n is None:
            if len(found.lengths) != 1:
                expected = "the number of records of the model"
                raise ArgumentError("n", "nothing", expected, "Several sequences have no common length.")
            n = found.lengths[0]
        return cls(found.transition, n, emission=found.emission)

    @property
    def chain(self) -> MarkovChain:
        """The chain of the states, as if they were observed."""
        return self._chain

    @property
    def spectral_gap(self) -> float:
        """Spectral gap of the chain of states [Z17, Lemma 4], as `MarkovChain.spectral_gap`."""
        return self._chain.spectral_gap

    @property
    def transition(self) -> FloatArray:
        """Transition matrix of the states, shape (k, k), rows normalised, read-only."""
        return self._chain.transition

    @property
    def initial(self) -> FloatArray:
        """Law of the first state, shape (k,), read-only."""
        return self._chain.initial

    def revealed_blocks(self, missed: float = 0.0) -> RevealedBlocks:
        """Return those of the chain of states: later records depend on the past through its state alone."""
        return self._chain.revealed_blocks(missed)

    def sample(self, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw all records once; the states themselves when no emission was given (the worst case).

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        ndarray of shape (n,)

        Examples
        --------
        >>> HiddenMarkov([[0.9, 0.1], [0.2, 0.8]], n=8).sample(np.random.default_rng(1)).shape
        (8,)
        """
        return self.sample_both(rng)[1]

    def sample_both(self, rng: np.random.Generator) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Draw all states and records once.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        states, records : ndarray of shape (n,)
        """
        states = self._chain.sample(rng).astype(np.int64)
        return states, self._emission.sample(states, rng)

    def posterior(self, records: Iterable[Any]) -> FloatArray:
        """Return the probabilities of the states given a sequence of records.

        Parameters
        ----------
        records : iterable
            Observed records in order, any number of them.

        Returns
        -------
        ndarray of shape (number of records, k)

        Raises
        ------
        ArgumentError
            If no emission was given, or a value is impossible under it.

        Examples
        --------
        >>> model = HiddenMarkov([[0.9, 0.1], [0.1, 0.9]], n=3, emission=[[0.8, 0.2], [0.2, 0.8]])
        >>> model.posterior([0, 0, 1])[:, 0].round(6)
        array([0.839917, 0.8     , 0.559252])
        """
        from graphs.models.baum_welch import state_probabilities

        return state_probabilities(self.transition, self.initial, self._emission.log_likelihood(records))

    def joint(self) -> FloatArray:
        """Return the table of joint probabilities of the records, one axis of length v per record.

        Raises
        ------
        ArgumentError
            If the emission is no table, or there are more than a million joint values.

        Examples
        --------
        >>> HiddenMarkov([[0.9, 0.1], [0.1, 0.9]], n=2, emission=[[1, 0], [0, 1]]).joint()
        array([[0.45, 0.05],
               [0.05, 0.45]])
        """
        if not isinstance(self._emission, CategoricalEmission):
            expected = "a model whose emission is a table of probabilities"
            raise ArgumentError("model", self._emission.describe(), expected)
        values = self._emission.matrix.shape[1]
        if values**self.n * len(self.initial) > MOST_STATES:
            expected = f"a model with at most {MOST_STATES} joint values"
            raise ArgumentError("model", f"one with {values}^{self.n} joint values", expected)
        table = self.initial[None, :] * self._emission.matrix.T
        for _ in range(self.n - 1):
            table = (table @ self.transition)[..., None, :] * self._emission.matrix.T
        laws: FloatArray = table.sum(axis=-1)
        return laws

    def describe(self) -> str:
        """Return one line of words about the model."""
        start = "stationary" if self._chain.is_stationary else "with a given start"
        states = len(self.initial)
        return f"hidden Markov chain of {self.n} {self._emission.describe()} over {states} states, {start}"

    # Leakage -----------------------------------------------------------------------------------------------

    def _about_states(self, method: str, budgets: float | FloatArray, adversary: Adversary) -> Profile:
        if method == "long-edges" and adversary == "informed":
            messages = self._chain._profile("messages", budgets, "informed")
            zero = isinstance(budgets, float) and budgets == 0
            if zero or self.n == 1 or len(self._long_edges.steps) == 1:
                return messages
            return along_chain(self.n, budgets, self._long_edges).minimum(messages)
        return super()._about_states(method, budgets, adversary)

    @cached_property
    def _long_edges(self) -> Edges:
        """Edges over several states whose diameters hold for any known records between."""
        table = self._emission.matrix if isinstance(self._emission, CategoricalEmission) else None
        diameters = weighted_diameters(self.transition, table, self._chain._supports, self.n - 1)
        steps = np.arange(1, len(diameters) + 1)
        useful = np.flatnonzero(np.isfinite(diameters) | (steps == 1))
        return Edges(steps[useful], diameters[useful], np.zeros((0, len(useful))))

    # Variance inflation ------------------------------------------------------------------------------------

    def _inflation(self, method: str) -> float:
        if method == "influences":
            return self._influence_inflation()
        if method == "emission":
            return self._mixed(min(self._chain._inflation(name) for name in ("dobrushin", "coupling")))
        if method == "emission-spectral":
            return self._mixed(self._chain._inflation("spectral"))
        return self._chain._inflation(method)

    def _inflation_given(self, method: str, known: BoolArray) -> float | None:
        if method != "evidence":
            return None
        last, chain = int(np.flatnonzero(known)[-1]), self._chain
        weights, total = (~known[: last + 1][::-1]).astype(np.float64), np.zeros(1)
        passed = chain._contractions[:last][::-1]
        if last < self.n - 1:
            steps = contractions_of(chain._kernels, chain._possible, chain.transition)
            reach = steps.open_reach(self.n - 1 - last)
            total = reach.squares(np.array([self.n - 1 - last]))
            weights, passed = np.r_[reach.of_first, weights], np.r_[chain._contractions[last], passed]
        found = passed_on(passed, weights)[-last - 1 :]
        of_states = upward_sum(np.r_[total, found[weights[-last - 1 :] > 0] ** 2]) / float(self.n - known.sum())
        return min(up(of_states, 6), self._mixed(up(of_states, 6)))

    def _mixed(self, of_states: float) -> float:
        """Return 1 + c^2 Lambda: independent noise given the states, and the variation of their conditional means."""
        spread = self._emission.spread
        return up(1 + spread**2 * of_states, 4) if spread else 1.0

    def _content(self) -> Mapping[str, Any]:
        return {"chain": self._chain.fingerprint(), "n": self.n} | dict(self._emission.content())
