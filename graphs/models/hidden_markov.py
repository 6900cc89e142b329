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
    """Model records of any type that depend on the unobserved states of a Markov chain.

    Use it for a sequence whose records are noisy views of a hidden state, such as sensor readings under changing
    regimes. Use `HiddenMarkov.fit` to estimate it from data, and `MarkovChain` if the states are the records
    themselves.

    A record is one row of the data. `variance_inflation` is the design effect, the number of dependent records that are
    worth one independent record for a mean. `leakage` is the privacy loss about one record, which also arises through
    the records that depend on it.

    Parameters
    ----------
    transition : array_like of shape (k, k)
        Transition matrix of the hidden states. Row x holds the probabilities of the next state after state x.
    n : int
        Number of records. Each record has one hidden state.
    initial : array_like of shape (k,), default None
        Probabilities of the first state. If None, the stationary distribution.
    emission : array_like of shape (k, v), CategoricalEmission or GaussianEmission, default None
        Distribution of a record given its state. An array holds the probabilities of v values, one row per state. If
        None, records may be of any type, and the bounds hold for every distribution given the state.

    Raises
    ------
    ArgumentError
        If `transition`, `n` or `initial` is not accepted by `MarkovChain`, or `emission` is not a distribution for k
        states.

    Notes
    -----
    Hidden states are not records: they have no privacy budget. A record reveals information about another one through
    the hidden states only, so a table of emission probabilities can reduce the leakage. Without an emission, or with a
    normal one, a record may determine its state, and the leakage is that of a `MarkovChain` whose records are the
    states. The routes by long edges and quilts (sets of records that separate others) then apply to an uninformed
    adversary only, because known records do not separate a hidden chain. The variance inflation is at most that of the
    chain of states, and smaller if the emission distributions of the states are similar.

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
        """Estimate a hidden Markov chain from one or more observed sequences with the Baum-Welch algorithm.

        Use it if the number of hidden states is known, or compare fits by `graphs.estimation.baum_welch`.

        Parameters
        ----------
        *sequences : iterables
            Observed records, in order: numbers for "gaussian", hashable values for "categorical".
        states : int, default 2
            Number of hidden states.
        emission : {"gaussian", "categorical"}, default "gaussian"
            Distribution of a record given its state. "gaussian": a normal distribution per state. "categorical": a
            table of probabilities.
        n : int, default None
            Number of records of the model. If None, the length of the sequence. Required with several sequences.
        restarts : int, default 8
            Number of random starts. The fit with the largest likelihood is returned.
        seed : int, default 0
            Seed of the random starts.

        Returns
        -------
        HiddenMarkov
            Fitted model that starts in its stationary distribution. States are in increasing order of their mean, or of
            the probability of the last symbol.

        Raises
        ------
        ArgumentError
            If an argument cannot be used, a sequence has fewer than two records, or there are more states than
            different values.

        Notes
        -----
        The fitted model is an estimate. Its guarantees hold for the fitted distribution, not for the unknown one.
        `graphs.estimation.baum_welch` returns the details of the fit.

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
        """Model of the hidden states alone: a `MarkovChain` in which the states are the records."""
        return self._chain

    @property
    def spectral_gap(self) -> float:
        """Spectral gap of the chain of states [Z17, Lemma 4], see `MarkovChain.spectral_gap`."""
        return self._chain.spectral_gap

    @property
    def transition(self) -> FloatArray:
        """Transition matrix of the states with normalized rows, read-only array of shape (k, k)."""
        return self._chain.transition

    @property
    def initial(self) -> FloatArray:
        """Probabilities of the first state, read-only array of shape (k,)."""
        return self._chain.initial

    def revealed_blocks(self, missed: float = 0.0) -> RevealedBlocks:
        """Bound how many records change with each block when records are revealed block after block.

        See `DependenceModel.revealed_blocks` for the definition and for `missed`.

        Returns
        -------
        RevealedBlocks
            Attribute `changes` holds the numbers of records that change with a block, `counts` the number of such
            blocks. The blocks are those of the hidden chain, because later records depend on the past through its state
            alone.
        """
        return self._chain.revealed_blocks(missed)

    def sample(self, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw one synthetic sequence of n records.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness. Pass a seeded generator for reproducible draws.

        Returns
        -------
        ndarray of shape (n,)
            Value of each record, drawn from the distribution of its hidden state. Without an emission, the records are
            the states themselves, which is the strongest dependence that the model allows.

        Examples
        --------
        >>> HiddenMarkov([[0.9, 0.1], [0.2, 0.8]], n=8).sample(np.random.default_rng(1)).shape
        (8,)
        """
        return self.sample_both(rng)[1]

    def sample_both(self, rng: np.random.Generator) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Draw one synthetic sequence of n records together with its hidden states.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness. Pass a seeded generator for reproducible draws.

        Returns
        -------
        states : ndarray of shape (n,)
            Index of each record's hidden state, a row of the transition matrix.
        records : ndarray of shape (n,)
            Value of each record, drawn from the distribution of its hidden state. Without an emission, the states
            themselves.
        """
        states = self._chain.sample(rng).astype(np.int64)
        return states, self._emission.sample(states, rng)

    def posterior(self, records: Iterable[Any]) -> FloatArray:
        """Compute the probabilities of the hidden states given an observed sequence.

        Parameters
        ----------
        records : iterable
            Observed records, in order. Any number of them is allowed.

        Returns
        -------
        ndarray of shape (number of records, k)
            Probability of each state at each record, given all records of the sequence.

        Raises
        ------
        ArgumentError
            If the model has no emission, or a record is impossible under it.

        Examples
        --------
        >>> model = HiddenMarkov([[0.9, 0.1], [0.1, 0.9]], n=3, emission=[[0.8, 0.2], [0.2, 0.8]])
        >>> model.posterior([0, 0, 1])[:, 0].round(6)
        array([0.839917, 0.8     , 0.559252])
        """
        from graphs.models.baum_welch import state_probabilities

        return state_probabilities(self.transition, self.initial, self._emission.log_likelihood(records))

    def joint(self) -> FloatArray:
        """Compute the table of joint probabilities of all records, for short sequences.

        Returns
        -------
        ndarray
            Probability of each data set: one axis per record, one entry per value.

        Raises
        ------
        ArgumentError
            If the emission is not a table of probabilities, or there are more than a million joint values.

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
        """Describe the model in one line of text."""
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
