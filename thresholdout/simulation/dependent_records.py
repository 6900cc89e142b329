"""Records with labels and features that depend on each other by a model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.data.arguments import check_count, check_number
from thresholdout.errors import InputError
from thresholdout.simulation.simulated_session import Part

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphs import DependenceModel

__all__ = ["DependentRecords"]


@dataclass(frozen=True)
class DependentRecords:
    """Synthetic data whose records depend on each other exactly as a dependence model says.

    Every record has a state, drawn from the model. Its label is the first binary digit of the state. Its attributes are
    emitted from the state, independently of each other given it. A record thus reveals the label of its state, and any
    other dependence between two records passes through their states. Pass the object to `simulate`, or call `draw` for
    one data set.

    Parameters
    ----------
    model : graphs.DependenceModel
        Model of the records. Its `sample` must return states 0, 1, ..., K - 1 (for a `HiddenMarkov` with emissions, the
        number of the symbol), or real values, whose signs are the states.
    attributes : int
        Number d of attributes.
    states : int, default 2
        Number K of states, a power of 2. With 2 states and one draw, uninformative attributes are independent fair
        coins. Otherwise each uninformative attribute is the parity of some digits of the state, never of the label's
        digit.
    informative : int, default 0
        Number of informative attributes. They are the first columns.
    strength : float, default 0.2
        An informative attribute equals the label with probability (1 + strength)/2. In (0, 1].
    noise : float, default 0.0
        Probability with which a parity is replaced by a fair coin, in [0, 1].
    draws : int, default 1
        Number of states of a record, each from a separate draw of the model. More than one is possible only for
        `Independent`, `Groups` and `MovingWindow`. These models state which records depend on each other and not how
        much, whereas two copies of a chain or of a field depend on each other more than one copy does.

    Raises
    ------
    InputError
        If a number is out of range, or `draws` is more than 1 for another model.

    Notes
    -----
    *The model holds.* Let x_i be record i and z_i its state. Given all states the records are independent, and record i
    depends on z_i only. A record that contains its state (one draw; the label and the parities without noise) is a
    relabelled state with coins of its own, so records of a chain, a field or a network of states form one, with the
    same potentials. With noise a record carries less information than its state: the states become unobserved, and the
    model of the states holds for adversaries who know the model only. For those who know other records, leakages by
    messages and groups hold, as they do for every record that is emitted from a state (`graphs/PROOFS.md`, section on
    latent states). Groups and windows only state which records are independent, and emissions do not change this.

    *True values.* Where states are uniform, as for all models here without external fields, every function of
    uninformative attributes agrees with the label with probability exactly 1/2: digits of a uniform state are
    independent coins.

    Examples
    --------
    >>> from graphs import Groups
    >>> data = DependentRecords(Groups([0, 0, 0, 1, 1, 1]), attributes=4, draws=5)
    >>> part = data.draw(np.random.default_rng(0))
    >>> part.features.shape, bool((part.features[0] == part.features[2]).all())
    ((6, 4), True)
    """

    model: DependenceModel
    attributes: int
    states: int = 2
    informative: int = 0
    strength: float = 0.2
    noise: float = 0.0
    draws: int = 1

    def __post_init__(self) -> None:
        from graphs import Groups, Independent, MovingWindow

        check_count("attributes", self.attributes)
        check_count("draws", self.draws)
        if check_count("states", self.states) < 2 or self.states & (self.states - 1):
            raise InputError("states", self.states, "a power of 2: 2, 4, 8, ...")
        if not 0 <= self.informative <= self.attributes:
            raise InputError(
                "informative", self.informative, f"an integer from 0 to {self.attributes}, the number of attributes"
            )
        check_number("strength", self.strength, 0.0, 1.0, "a number in (0, 1]")
        if not 0.0 <= self.noise <= 1.0:
            raise InputError("noise", self.noise, "a number in [0, 1]")
        if self.draws > 1 and not isinstance(self.model, (Independent, Groups, MovingWindow)):
            advice = "Use more states instead: two copies depend on each other more than one does."
            raise InputError("draws", self.draws, f"1 for a {type(self.model).__name__}", advice)

    def draw(self, rng: np.random.Generator) -> Part:
        """Draw one synthetic data set of n records.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        Part
            Object with boolean arrays ``features`` of shape (n, d), in Fortran order, and ``labels`` of shape (n,).

        Raises
        ------
        InputError
            If the model draws a state beyond the declared number of states.
        """
        digits = self._digits(rng)
        labels = digits[:, 0]
        features = np.empty((self.model.n, self.attributes), dtype=np.bool_, order="F")
        for column in range(self.attributes):
            features[:, column] = self._attribute(column, digits, rng)
        return Part(features, labels)

    def _digits(self, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Draw states, and return their binary digits, shape (n, draws * log2(states))."""
        bits = self.states.bit_length() - 1
        found = []
        for _ in range(self.draws):
            states: NDArray[Any] = np.asarray(self.model.sample(rng))
            if states.dtype.kind == "f":
                states = states > 0.0
            if states.dtype.kind not in "iub" or states.min() < 0 or states.max() >= self.states:
                raise InputError("states", f"{self.states}, and a state beyond it", "the number of states of the model")
            found.append((states.astype(np.int64)[:, None] >> np.arange(bits) & 1).astype(np.bool_))
        return np.asfortranarray(np.hstack(found))

    def _attribute(self, column: int, digits: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
        """Emit one attribute of all records."""
        n = len(digits)
        if column < self.informative:
            return digits[:, 0] ^ (rng.random(n) < (1 - self.strength) / 2)
        if digits.shape[1] == 1:
            return rng.random(n) < 0.5
        clean: NDArray[np.bool_] = np.logical_xor.reduce(digits[:, self._parities[column - self.informative]], axis=1)
        if self.noise:
            afresh = rng.random(n) < self.noise
            clean = np.where(afresh, rng.random(n) < 0.5, clean)
        return clean

    @cached_property
    def _parities(self) -> list[NDArray[np.intp]]:
        """Digits whose parity each attribute is: single digits first, then pairs, triples, ..., in turn."""
        from itertools import chain, combinations, cycle, islice

        count = self.draws * (self.states.bit_length() - 1)
        subsets = chain.from_iterable(combinations(range(1, count), size) for size in range(1, count))
        return [np.array(subset) for subset in islice(cycle(subsets), self.attributes)]
