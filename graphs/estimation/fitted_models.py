"""Models that a diagnosis fits, one or two for each structure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from graphs.errors import ArgumentError, RouteUnavailable
from graphs.estimation.pseudo_likelihood import fit_ising, fit_potts
from graphs.model import DependenceModel
from graphs.models.baum_welch import baum_welch
from graphs.models.hidden_markov import HiddenMarkov
from graphs.models.law_free import Groups
from graphs.models.markov_chain import MarkovChain
from graphs.numerics.arguments import FloatArray, IntArray

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Candidate", "of_graph", "of_groups", "of_order"]

#: Longest series to which a hidden chain is fitted as a matter of course.
LONGEST = 5000

#: Added to every count of transitions, so that no state of the fitted chain is a dead end.
SMOOTHING = 0.5


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fitted model.

    Parameters
    ----------
    name : str
        In few words.
    model : DependenceModel
        The model.
    bic : float
        Bayesian information criterion for the values that were given; missing where there is no likelihood for them.
    preferred : bool
        Whether it is the one of its structure that a diagnosis recommends.
    """

    name: str
    model: DependenceModel
    bic: float = float("nan")
    preferred: bool = True

    def budget(self, epsilon: float) -> float:
        """Return the budget at a target leakage, 0 where the model leaves none."""
        try:
            return self.model.budget(epsilon)
        except RouteUnavailable:
            return 0.0


def of_order(codes: IntArray, numbers: FloatArray | None, epsilon: float, seed: int) -> list[Candidate]:
    """Return chains for a series: of its categories, and hidden ones.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Category of each record, or the quarter that its number falls into.
    numbers : ndarray of shape (n,) or None
        The numbers, where there are such.
    epsilon : float
        Target at which budgets are compared.
    seed : int
        Of random starts.

    Returns
    -------
    list of Candidate
        Preferred: of categories the one with the smaller BIC, of numbers the one with the smaller budget.

    Examples
    --------
    >>> series = MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=300).sample(np.random.default_rng(1))
    >>> [(c.name, c.preferred) for c in of_order(series, None, 0.5, 0)]
    [('chain', True), ('hidden chain', False)]
    """
    chain = MarkovChain.fit(codes, smoothing=SMOOTHING)
    hidden = None
    if len(codes) <= LONGEST:
        kind, records = ("categorical", codes) if numbers is None else ("gaussian", numbers)
        fitted = baum_welch(records, emission=kind, restarts=4, seed=seed)  # type: ignore[arg-type]
        try:
            model = HiddenMarkov(fitted.transition, len(codes), emission=fitted.emission)
            hidden = Candidate("hidden chain", model, fitted.bic)
        except ArgumentError:  # a state that is never left or never entered: no stationary law
            hidden = None
    if numbers is None:
        seen = Candidate("chain", chain, _chain_bic(codes, chain.transition))
    else:
        seen = Candidate("chain of quarters", HiddenMarkov(chain.transition, len(codes)))
    if hidden is None:
        return [seen]
    first = seen.bic <= hidden.bic if numbers is None else seen.budget(epsilon) <= hidden.budget(epsilon)
    return [replace(seen, preferred=bool(first)), replace(hidden, preferred=not first)]


def of_groups(model: Groups) -> list[Candidate]:
    """Return the groups themselves: they need no fit."""
    return [Candidate("groups", model)]


def of_graph(graph: nx.Graph[Any], codes: IntArray, numbers: FloatArray | None) -> list[Candidate]:
    """Return a field of the categories, or of numbers above and below their median.

    Examples
    --------
    >>> import networkx as nx
    >>> of_graph(nx.cycle_graph(6), np.array([0, 0, 0, 1, 1, 1]), None)[0].name
    'Ising field'
    """
    if numbers is not None:
        return [Candidate("Ising field of halves", fit_ising(graph, (numbers > np.median(numbers)).astype(np.int64)))]
    if codes.max() == 1:
        return [Candidate("Ising field", fit_ising(graph, codes))]
    return [Candidate("Potts field", fit_potts(graph, codes))]


def _chain_bic(codes: IntArray, transition: FloatArray) -> float:
    """Return BIC of a chain, its first record included with the share of its category."""
    count, n = len(transition), len(codes)
    likelihood = float(np.log(transition[codes[:-1], codes[1:]]).sum()) + float(np.log(np.mean(codes == codes[0])))
    return -2 * likelihood + (count * (count - 1) + count - 1) * float(np.log(n))
