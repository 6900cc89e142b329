"""Sampling from fields: forests exactly, attractive fields perfectly, others by Gibbs sampling."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from graphs.errors import ArgumentError
from graphs.inflation.colouring import greedy_colouring
from graphs.inflation.influences import burn_in
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.structure.interactions import Interactions
from graphs.structure.spanning_forest import Rooted

if TYPE_CHECKING:
    from scipy import sparse

__all__ = ["Diagnostics", "FieldSampler", "Plan"]

#: Target total variation distance of a burn-in, where it can be proved.
DISTANCE = 1e-6

#: Sweeps without a proved burn-in, and the longest burn-in.
SWEEPS = 1000
MOST_SWEEPS = 10_000

#: First number of sweeps of perfect sampling; doubled until all starts meet.
FIRST_PAST = 16


@dataclass(frozen=True, slots=True)
class Plan:
    """Sampling method of a field."""

    # "exact": sums along forests. "perfect": coupling from the past, whose draws have exactly the law of the field.
    # "gibbs": a Markov chain from a uniform start. For components with loops; those without are always exact
    method: Literal["exact", "perfect", "gibbs"]
    sweeps: int  # updates of every node (burn-in of "gibbs", first attempt of "perfect", 0 for "exact")
    # total variation distance to the law of the field at most; None where nothing is shown, see
    # `MarkovField.sampling_diagnostics`
    distance: float | None


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """Agreement of several Gibbs samplers on the total log-weight of their states."""

    # split R-hat: the spread of all chains over that within half chains; above 1.01 the burn-in is too short
    r_hat: float
    # number of independent draws that estimate the mean log-weight as well as all chains together
    effective_draws: float
    sweeps: int  # recorded sweeps of each chain, after as many unrecorded ones
    chains: int  # number of chains


class FieldSampler:
    """Draws from one field."""

    def __init__(self, interactions: Interactions, component: IntArray, matrix: sparse.csr_array) -> None:
        self._interactions = interactions
        self._component = component
        self._matrix = matrix
        links = np.bincount(component[interactions.edges[:, 0]], minlength=int(component.max()) + 1)
        self._looped = (links >= np.bincount(component))[component]

    @property
    def has_loops(self) -> bool:
        """Whether some component is no tree."""
        return bool(self._looped.any())

    @cached_property
    def plan(self) -> Plan:
        """Sampling method of the components with loops."""
        if not self.has_loops:
            return Plan("exact", 0, 0.0)
        inside = np.flatnonzero(self._looped)
        sweeps = burn_in(self._matrix[inside][:, inside], DISTANCE)
        if sweeps is None or sweeps > MOST_SWEEPS:
            return Plan("gibbs", SWEEPS, None)
        if self._interactions.attractive:
            return Plan("perfect", FIRST_PAST, 0.0)
        return Plan("gibbs", sweeps, DISTANCE)

    def draw(self, rng: np.random.Generator) -> IntArray:
        """Return one draw of the states of all nodes, shape (m,)."""
        states = np.zeros(len(self._component), dtype=np.int64)
        if not self._looped.all():
            self._forest.draw(states, rng)
        if not self.has_loops:
            return states
        if self.plan.method == "perfect":
            return self._perfect(states, rng)
        self._gibbs.start(states, rng)
        for _ in range(self.plan.sweeps):
            self._gibbs.sweep(states, rng)
        return states

    def diagnostics(self, rng: np.random.Generator, sweeps: int, chains: int) -> Diagnostics:
        """Run several Gibbs samplers and compare them."""
        traces = np.empty((chains, sweeps))
        for chain in range(chains):
            states = np.zeros(len(self._component), dtype=np.int64)
            self._gibbs.start(states, rng)
            for step in range(2 * sweeps):
                self._gibbs.sweep(states, rng)
                if step >= sweeps:  # the first half is burn-in
                    traces[chain, step - sweeps] = self._log_weight(states)
        return _compare(traces)

    def _log_weight(self, states: IntArray) -> float:
        its = self._interactions
        ends = states[its.edges]
        own = its.node_logs[its.node_kinds, states]
        return float(its.logs[its.kinds, ends[:, 0], ends[:, 1]].sum() + own.sum())

    def _perfect(self, states: IntArray, rng: np.random.Generator) -> IntArray:
        """Couple from the past: the updates keep the order of states, so the extreme starts enclose all others."""
        base = int(rng.integers(2**63))
        past = FIRST_PAST
        while True:
            low, high = np.where(self._looped, 0, states), np.where(self._looped, 1, states)
            for age in range(past, 0, -1):
                for part in (low, high):
                    self._gibbs.ordered_sweep(part, np.random.default_rng([base, age]))
            if (low == high).all():
                return low
            past *= 2

    @cached_property
    def _gibbs(self) -> _Gibbs:
        return _Gibbs(self._interactions, self._looped)

    @cached_property
    def _forest(self) -> _Forest:
        return _Forest(self._interactions, np.flatnonzero(~self._looped), self._component)


class _Forest:
    """Exact draws on trees: weights summed towards the roots, states drawn away from them."""

    def __init__(self, interactions: Interactions, nodes: IntArray, component: IntArray) -> None:
        self._interactions = its = interactions
        local = np.full(len(component), -1)
        local[nodes] = np.arange(len(nodes))
        kept = np.flatnonzero(local[its.edges[:, 0]] >= 0)
        first, second = local[its.edges[kept]].T
        trees = np.unique(component[nodes], return_inverse=True)[1]
        sources, targets = np.concatenate([first, second]), np.concatenate([second, first])
        self._tree = tree = Rooted(sources, targets, trees)
        place, goal = tree.position[sources], tree.position[targets]
        upwards = np.flatnonzero(tree.parent[place] == goal)
        self._nodes = nodes[tree.order[1:]]
        self._kinds = np.zeros(len(nodes) + 1, dtype=np.int64)
        # The states of a child that is the edge's first node are in the rows, so its matrix is transposed.
        self._kinds[place[upwards]] = np.concatenate([its.kinds[kept] + len(its.logs), its.kinds[kept]])[upwards]
        self._tables = np.concatenate([its.logs, its.logs.transpose(0, 2, 1)])

    @cached_property
    def _beliefs(self) -> FloatArray:
        """Log-weight of everything at and below each position, by its state."""
        tree, its = self._tree, self._interactions
        beliefs = np.zeros((len(tree.order), its.logs.shape[-1]))
        beliefs[1:] = its.node_logs[its.node_kinds[self._nodes]]
        for level in range(len(tree.levels) - 2, 1, -1):
            members, starts, parents = tree.families(level)
            messages = _log_sum(self._tables[self._kinds[members]] + beliefs[members, None, :])
            beliefs[parents] += np.add.reduceat(messages, starts, axis=0)
        return beliefs

    def draw(self, states: IntArray, rng: np.random.Generator) -> None:
        """Write one draw into `states` at the nodes of the trees."""
        tree, beliefs = self._tree, self._beliefs
        drawn = np.zeros(len(tree.order), dtype=np.int64)
        for depth, (low, high) in enumerate(zip(tree.levels[1:], tree.levels[2:], strict=False)):
            logits = beliefs[low:high]
            if depth:
                logits = logits + self._tables[self._kinds[low:high], drawn[tree.parent[low:high]]]
            drawn[low:high] = _choose(logits, rng)
        states[self._nodes] = drawn[1:]


class _Gibbs:
    """Updates of nodes from their law given their neighbours, a colour class at a time."""

    def __init__(self, interactions: Interactions, chosen: npt.NDArray[np.bool_]) -> None:
        self._interactions = its = interactions
        self._nodes = np.flatnonzero(chosen)
        self._tables = np.concatenate([its.logs, its.logs.transpose(0, 2, 1)])
        kept = np.flatnonzero(chosen[its.edges[:, 0]])
        edges = its.edges[kept]
        own, others = np.concatenate([edges[:, 1], edges[:, 0]]), np.concatenate([edges[:, 0], edges[:, 1]])
        kinds = np.concatenate([its.kinds[kept], its.kinds[kept] + len(its.logs)])
        colours = greedy_colouring(edges, len(chosen))
        order = np.lexsort((own, colours[own]))
        own, others, kinds = own[order], others[order], kinds[order]
        starts = np.searchsorted(colours[own], np.arange(int(colours.max()) + 2))
        self._classes: list[tuple[IntArray, IntArray, IntArray, IntArray]] = []
        for low, high in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            nodes, first = np.unique(own[low:high], return_index=True)
            if len(nodes):
                self._classes.append((nodes, first, others[low:high], kinds[low:high]))

    def start(self, states: IntArray, rng: np.random.Generator) -> None:
        """Write uniform states at the chosen nodes."""
        states[self._nodes] = rng.integers(0, self._interactions.sizes[self._nodes])

    def sweep(self, states: IntArray, rng: np.random.Generator) -> None:
        """Update every chosen node once."""
        for nodes, logits in self._laws(states):
            states[nodes] = _choose(logits, rng)

    def ordered_sweep(self, states: IntArray, rng: np.random.Generator) -> None:
        """Update nodes of two states monotonically in the neighbours, by the same random numbers."""
        for nodes, logits in self._laws(states):
            states[nodes] = rng.logistic(size=len(nodes)) < logits[:, 1] - logits[:, 0]

    def _laws(self, states: IntArray) -> Any:
        its = self._interactions
        for nodes, starts, others, kinds in self._classes:
            around = np.add.reduceat(self._tables[kinds, states[others]], starts, axis=0)
            yield nodes, around + its.node_logs[its.node_kinds[nodes]]


def _log_sum(values: FloatArray) -> FloatArray:
    """Return the logarithm of the sum of exponentials over the last axis."""
    top = values.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        found: FloatArray = np.log(np.exp(values - top).sum(axis=-1)) + top[..., 0]
    return found


def _choose(logits: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw one state per row with probabilities proportional to exp(logits)."""
    if np.isneginf(logits).all(axis=-1).any():
        seen = "a node without a possible state"
        raise ArgumentError("potentials", seen, "weights that allow a state of every node")
    chosen: IntArray = np.argmax(logits + rng.gumbel(size=logits.shape), axis=-1)
    return chosen


def _compare(traces: FloatArray) -> Diagnostics:
    """Return split R-hat and the number of effective draws of several traces [Vehtari et al. 2021]."""
    chains, sweeps = traces.shape
    half = sweeps // 2
    halves = np.concatenate([traces[:, :half], traces[:, half : 2 * half]])
    within = float(halves.var(axis=1, ddof=1).mean())
    between = half * float(halves.mean(axis=1).var(ddof=1))
    total = (half - 1) / half * within + between / half
    if within == 0:
        return Diagnostics(1.0 if between == 0 else float("inf"), float(chains * sweeps), sweeps, chains)
    centred = halves - halves.mean(axis=1, keepdims=True)
    transform = np.fft.rfft(centred, n=2 * half, axis=1)
    covariances = np.fft.irfft(np.abs(transform) ** 2, axis=1)[:, :half].mean(axis=0) / half
    correlations = 1 - (within - covariances * half / (half - 1)) / total
    correlations[0] = 1.0
    pairs = correlations[: half // 2 * 2].reshape(-1, 2).sum(axis=1)
    stop = int(np.argmax(pairs < 0)) if (pairs < 0).any() else len(pairs)
    time = max(2 * float(np.minimum.accumulate(pairs[:stop]).sum()) - 1, 1 / np.log10(chains * sweeps))
    return Diagnostics(float(np.sqrt(total / within)), len(halves) * half / time, sweeps, chains)
