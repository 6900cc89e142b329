"""Models that a diagnosis fits, with their costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from graphs.errors import ArgumentError, RouteUnavailable
from graphs.estimation.fitted_fields import fit_autoregression, fit_kernel
from graphs.estimation.permutation import autocorrelations, centred
from graphs.estimation.pseudo_likelihood import fit_ising, fit_potts
from graphs.inflation.half_widths import answer_half_width, mean_half_width
from graphs.model import DependenceModel
from graphs.models.baum_welch import baum_welch
from graphs.models.gaussian_field import GaussianField
from graphs.models.hidden_markov import HiddenMarkov
from graphs.models.law_free import Groups
from graphs.models.markov_chain import MarkovChain
from graphs.numerics.arguments import FloatArray, IntArray, real_array

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Candidate", "neighbour_edges", "of_graph", "of_groups", "of_order", "of_places", "read_places"]

#: Nearest neighbours compared with each record. Six is the mean degree of a planar triangulation.
NEIGHBOURS = 6

#: Most records to which a range is fitted, each test being cubic in them; of more records a sample is drawn.
FITTED = 300

#: Most records with a model of distances: its dense matrix takes 72 MB at this size.
MOST_PLACES = 3000


def read_places(coordinates: Any, n: int, values: Any) -> FloatArray:
    """Return the coordinates of the records, shape (n, d).

    >>> read_places([0.0, 1.5], 2, None).tolist()
    [[0.0], [1.5]]
    """
    expected = f"a number or d finite numbers for each of {n} records"
    own, other = (getattr(each, "index", None) if hasattr(each, "iloc") else None for each in (coordinates, values))
    if own is not None and other is not None and not own.equals(other):
        expected = "a table with the index of the values"
        raise ArgumentError("coordinates", "another index", expected, "Pass coordinates.loc[values.index].")
    places = real_array("coordinates", coordinates, expected)
    places = places[:, None] if places.ndim == 1 else places
    if places.ndim != 2 or len(places) != n or not places.shape[1]:
        raise ArgumentError("coordinates", f"an array of shape {places.shape}", expected)
    if not np.isfinite(places).all():
        raise ArgumentError("coordinates", "a missing or infinite number", expected)
    if n > MOST_PLACES:
        advice = "Diagnose some of the records."
        raise ArgumentError("coordinates", f"{n:,} places", f"at most {MOST_PLACES:,} places", advice)
    return places


def neighbour_edges(places: FloatArray) -> IntArray:
    """Return the pairs of records of which one is among the six nearest of the other."""
    from scipy.spatial import KDTree

    n = len(places)
    near = KDTree(places).query(places, k=min(NEIGHBOURS + 1, n))[1].reshape(n, -1)
    pairs = np.stack([np.repeat(np.arange(n), near.shape[1]), near.ravel()], axis=1)
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    return np.unique(pairs, axis=0).astype(np.int64)


def of_places(
    places: FloatArray, edges: IntArray, codes: IntArray, numbers: FloatArray | None, seed: int
) -> list[Candidate]:
    """Return a field of numbers whose correlations fall with distance, or a field of categories on near neighbours.

    >>> rng = np.random.default_rng(0)
    >>> places = rng.random((60, 2))
    >>> of_places(places, neighbour_edges(places), np.arange(60) % 2, None, 0)[0].name
    'Ising field'
    """
    n = len(places)
    if numbers is None:
        import networkx as nx

        graph: nx.Graph[int] = nx.empty_graph(n)
        graph.add_edges_from(edges.tolist())
        return of_graph(graph, codes, None)
    chosen = np.sort(np.random.default_rng([seed, 2]).permutation(n)[:FITTED])
    try:
        model = fit_kernel(numbers[chosen], places[chosen], places, fit_failure=FAILURE)
    except ArgumentError:  # no range is excluded, or records share a place
        return [Candidate("distances, range not limited", Groups(np.zeros(n, dtype=np.int64)))]
    return [Candidate("correlations by distance, upper limit", model)]


#: Longest series to which a hidden chain, or a limit for an autoregression, is fitted: a diagnosis stays fast.
LONGEST = 5000

#: Added to every count of transitions (Jeffreys' prior), so that the fitted chain leaves every state.
SMOOTHING = 0.5

#: Series drawn from each fitted model to check its autocorrelations: the smallest p-value is 1/100.
DRAWN = 99

#: A model with a smaller p-value counts as not fitting.
DOUBTFUL = 0.05

#: A model is set aside when its BIC exceeds another's by more: strong evidence by [Kass, Raftery 1995].
BEHIND = 6.0

#: Probability of failure of the limit for an autoregression.
FAILURE = 0.01


def of_order(codes: IntArray, numbers: FloatArray | None, lags: int, seed: int) -> list[Candidate]:
    """Return models of a series, and mark the preferred one.

    >>> series = MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=300).sample(np.random.default_rng(1))
    >>> [(c.name, c.preferred) for c in of_order(series, None, 6, 0)]
    [('chain', True), ('hidden chain', False)]
    """
    found = _categories(codes, seed) if numbers is None else _numbers(codes, numbers, lags, seed)
    rng = np.random.default_rng([seed, 1])
    indicators = np.eye(int(codes.max()) + 1)
    tried = []
    for candidate in found:
        numeric = numbers is not None and candidate.name != "chain of quarters"
        seen = numbers[:, None] if numeric and numbers is not None else indicators[codes]
        tried.append(replace(candidate, p_value=_p_value(candidate.model, seen, lags, rng)))
    least = min((c.bic for c in tried if np.isfinite(c.bic)), default=0.0)
    likely = [c for c in tried if not c.bic > least + BEHIND]
    fitting = [c for c in likely if not c.p_value <= DOUBTFUL] or likely
    best = max(fitting, key=lambda c: c.model.variance_inflation())
    return [replace(c, preferred=c is best) for c in tried]


def _categories(codes: IntArray, seed: int) -> list[Candidate]:
    chain = MarkovChain.fit(codes, smoothing=SMOOTHING)
    return [Candidate("chain", chain, bic=_chain_bic(codes, chain.transition)), *_hidden(codes, "categorical", seed)]


def _numbers(codes: IntArray, numbers: FloatArray, lags: int, seed: int) -> list[Candidate]:
    n = len(codes)
    quarters = HiddenMarkov(MarkovChain.fit(codes, smoothing=SMOOTHING).transition, n)
    found = [Candidate("chain of quarters", quarters), *_hidden(numbers, "gaussian", seed)]
    coefficients = _autoregression(numbers, lags)
    if len(coefficients):
        found.append(Candidate(f"autoregression of order {len(coefficients)}", GaussianField.ar(coefficients, n)))
    if n <= LONGEST:
        try:
            limit: DependenceModel = fit_autoregression(numbers, n, fit_failure=FAILURE)
        except ArgumentError:  # a unit root is not excluded, so a shock may last forever
            found.append(Candidate("autoregression, unit root not excluded", Groups(np.zeros(n, dtype=np.int64))))
        else:
            found.append(Candidate("autoregression of order 1, upper limit", limit))
    return found


def _hidden(records: IntArray | FloatArray, kind: str, seed: int) -> list[Candidate]:
    if len(records) > LONGEST:
        return []
    fitted = baum_welch(records, emission=kind, restarts=4, seed=seed)  # type: ignore[arg-type]
    try:
        model = HiddenMarkov(fitted.transition, len(records), emission=fitted.emission)
    except ArgumentError:  # a state that is never left or never entered: no stationary law
        return []
    return [Candidate("hidden chain", model, bic=fitted.bic)]


def _autoregression(numbers: FloatArray, most: int) -> FloatArray:
    """Return the coefficients of the autoregression with the smallest BIC, by the recursion of Levinson and Durbin."""
    n = len(numbers)
    correlations = autocorrelations(centred(numbers[:, None]), most)
    left, coefficients, best = 1.0, np.zeros(0), (0.0, np.zeros(0))
    for order in range(1, most + 1):
        partial = float(correlations[order - 1] - coefficients @ correlations[: order - 1][::-1]) / left
        coefficients = np.append(coefficients - partial * coefficients[::-1], partial)
        left *= 1 - partial**2
        criterion = n * float(np.log(left)) + order * float(np.log(n))
        if criterion < best[0]:
            best = (criterion, coefficients)
    return best[1]


def _p_value(model: DependenceModel, seen: FloatArray, lags: int, rng: np.random.Generator) -> float:
    """Return the share of series drawn from a model whose autocorrelations are as far from the model's as the observed.

    The distance is the largest deviation over lags, in standard deviations. A model of one group has no lags; its share
    is 1.
    """
    if isinstance(model, Groups):
        return 1.0
    numeric = seen.shape[1] == 1
    rows = [autocorrelations(centred(seen), lags)]
    for _ in range(DRAWN):
        drawn = np.asarray(model.sample(rng))
        features = drawn.astype(np.float64)[:, None] if numeric else np.eye(seen.shape[1])[drawn.astype(np.int64)]
        rows.append(autocorrelations(centred(features), lags) if np.ptp(features, axis=0).any() else np.zeros(lags))
    table = np.array(rows)
    middle, spread = table.mean(axis=0), np.maximum(table.std(axis=0), 1e-12)
    distances = np.abs((table - middle) / spread).max(axis=1)
    return float((distances >= distances[0]).mean())


def _chain_bic(codes: IntArray, transition: FloatArray) -> float:
    """Return BIC of a chain, its first record included with the share of its category."""
    count, n = len(transition), len(codes)
    likelihood = float(np.log(transition[codes[:-1], codes[1:]]).sum()) + float(np.log(np.mean(codes == codes[0])))
    return -2 * likelihood + (count * (count - 1) + count - 1) * float(np.log(n))


def of_groups(model: Groups) -> list[Candidate]:
    """Return the groups themselves: they need no fit."""
    return [Candidate("groups", model)]


def of_graph(graph: nx.Graph[Any], codes: IntArray, numbers: FloatArray | None) -> list[Candidate]:
    """Return a field of the categories, or of numbers above and below their median."""
    if numbers is not None:
        middle = np.median(numbers)
        upper = numbers > middle if (numbers > middle).any() else numbers >= middle
        return [Candidate("Ising field of halves", fit_ising(graph, upper.astype(np.int64)))]
    if codes.max() == 1:
        return [Candidate("Ising field", fit_ising(graph, codes))]
    return [Candidate("Potts field", fit_potts(graph, codes))]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fitted model of one structure, with its BIC and its fit to the autocorrelations."""

    name: str
    model: DependenceModel
    # Bayesian information criterion for the given values; missing where there is no likelihood for them
    bic: float = float("nan")
    # share of series drawn from the model that deviate from it as much as the data; missing where none were drawn
    p_value: float = float("nan")
    preferred: bool = True  # whether a diagnosis recommends it for its structure

    def budget(self, epsilon: float) -> float:
        """Return the privacy budget at a target leakage, 0 where the model leaves none."""
        try:
            return self.model.budget(epsilon)
        except RouteUnavailable:
            return 0.0

    def half_width(self, confidence: float, records: int) -> float:
        """Return the half-width of one query fixed in advance, for a number of records of this kind.

        >>> from graphs import Independent
        >>> round(Candidate("independent", Independent(200)).half_width(0.95, 800), 4)
        0.048
        """
        return mean_half_width(records, self._inflation_of(records), confidence, self.model.fit_failure)

    def noisy_half_width(self, epsilon: float, confidence: float, records: int) -> float:
        """Return the half-width of one answer with noise at a target leakage, for a number of records of this kind."""
        budget = self.budget(epsilon)
        if not budget > 0.0:
            return 1.0
        inflation = self._inflation_of(records)
        return answer_half_width(records, inflation, budget, confidence, self.model.fit_failure)

    def _inflation_of(self, records: int) -> float:
        """Return the variance inflation for more records: unchanged, or their number where all are one group."""
        inflation = self.model.variance_inflation()
        return float(records) if inflation >= self.model.n > 1 else inflation
