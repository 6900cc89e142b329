"""Drawing the states of a network: exactly where an elimination order is narrow enough, else by Gibbs sampling."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.structure.elimination import Table, elimination_order, multiply, run_order
from graphs.structure.potentials import Potentials

__all__ = ["SWEEPS", "Sampler"]

#: Sweeps over all nodes from a random start, before a state drawn by Gibbs sampling is returned.
SWEEPS = 1000

#: Most entries of a table for which sampling is exact.
EXACT = 2**20


class Sampler:
    """Draws from the law of a network.

    Parameters
    ----------
    potentials : Potentials
        The network.

    Attributes
    ----------
    exact : bool
        Whether draws have the exact law of the network, up to rounding. Otherwise each is the end of a Gibbs sampler
        (one node after the other redrawn given all others) of `SWEEPS` sweeps from a start chosen uniformly.

    Raises
    ------
    ArgumentError
        When the network is too wide for exact draws and has zeros, with which a Gibbs sampler may get stuck.

    Notes
    -----
    Exact draws go backwards through a variable elimination: given the variables eliminated later, each variable has
    the law proportional to the product of the tables that contained it when it was eliminated.
    """

    def __init__(self, potentials: Potentials) -> None:
        self._potentials = potentials
        tables, sizes = list(potentials.tables), potentials.sizes
        order, largest = elimination_order([table.members for table in tables], sizes)
        self.exact = largest <= EXACT
        self._steps: list[tuple[int, list[tuple[FloatArray, tuple[Any, ...]]]]] = []
        if self.exact:
            run_order(tables, order, sizes, self._remember)
            self._steps.reverse()
            return
        if any(not table.values.all() for table in tables):
            seen = f"factors with zeros, in a network that needs a table of {largest} entries for exact draws"
            raise ArgumentError("factors", seen, f"at most {EXACT} entries, or no zeros")
        for v, held in enumerate(potentials.factors_of):
            self._remember(v, [tables[f] for f in held])

    def _remember(self, v: int, bucket: list[Table]) -> None:
        if len(bucket) > 4 and len({u for table in bucket for u in table.members}) <= 8:
            bucket = [multiply(bucket, sorted({u for table in bucket for u in table.members}))]
        step: list[tuple[FloatArray, tuple[Any, ...]]] = []
        for table in bucket:
            axis = table.members.index(v)
            others = tuple(u for u in table.members if u != v)
            step.append((np.moveaxis(table.values, axis, -1), others))
        self._steps.append((v, step))

    def draw(self, rng: np.random.Generator) -> IntArray:
        """Return one draw of all nodes, as positions among their possible states, shape (m,)."""
        sizes = np.array(self._potentials.sizes)
        state = (rng.random(len(sizes)) * sizes).astype(np.int64).tolist()
        for _ in range(1 if self.exact else SWEEPS):
            draws = rng.random(len(self._steps)).tolist()
            for (v, step), uniform in zip(self._steps, draws, strict=True):
                weights = 1.0
                for values, others in step:
                    weights = weights * values[tuple([state[u] for u in others])]
                sums = np.cumsum(weights)
                state[v] = int(np.searchsorted(sums[:-1], uniform * sums[-1], side="right"))
        return np.array(state, dtype=np.int64)
