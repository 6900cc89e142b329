"""Markov quilts that are spheres, for all records of a network at once.

The records within a number of steps of a record are near it, and the sphere behind them is its quilt. What the record
shows in the sphere, whatever is known of the near ones, is bounded by messages that start at the sphere: `graphs/
PROOFS.md`, section on spheres.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from graphs.leakage.messages import phi
from graphs.leakage.network_messages import Links
from graphs.leakage.segment_sums import Segments
from graphs.numerics.arguments import FloatArray
from graphs.numerics.rounding import charges, up
from graphs.structure.incidence import Incidence

if TYPE_CHECKING:
    from scipy import sparse

__all__ = ["BallQuilts"]

#: Largest number of steps, and most pairs of a record and one near it: half a second, and 100 megabytes.
MOST_STEPS, MOST_PAIRS = 400, 4_000_000

#: A record that shows less than this in its sphere gains nothing from a larger one.
NEGLIGIBLE = 1e-12


class BallQuilts:
    """Spheres around every node of a network, and how strongly the node shows in them.

    Parameters
    ----------
    incidence : Incidence
        The network.

    Examples
    --------
    A path whose edges have the diameter 1, seen from its middle:

    >>> edges = np.stack([np.arange(8), np.arange(1, 9)], axis=1)
    >>> balls = BallQuilts(Incidence.pairwise(edges, np.ones(8), 9))
    >>> [influences[4].round(6).item() for influences in balls.influences[:3]]
    [2.0, 0.480458, 0.11754]
    >>> balls.leakages(np.full(9, 0.1))[4].round(6).item()
    0.61754
    """

    def __init__(self, incidence: Incidence) -> None:
        self._links = Links.of(incidence).merged()
        self._nodes = incidence.n_nodes

    @cached_property
    def influences(self) -> list[FloatArray]:
        """Bounds on the influence of each node on the sphere behind its ball of radius 0, 1, ..., whatever is known."""
        links, shells = self._links, self._shells
        order = np.lexsort((links.sources, links.targets))
        sources, targets, diameters = links.sources[order], links.targets[order], links.diameters[order]
        into = Segments(targets)
        # the message over a link needs all that its source receives but for the one over the same link backwards
        keys = targets * links.size + sources
        back = np.searchsorted(keys, sources * links.size + targets)
        messages, found = diameters, []
        for _ in shells:
            sums = np.zeros(links.size)
            sums[into.keys] = into.sums(messages)
            found.append(sums[: self._nodes])
            finite = np.isfinite(messages)
            rest = np.full(len(messages), np.inf)
            others = into.others(np.where(finite, messages, 0.0))
            endless = np.bincount(targets[~finite], minlength=links.size)[targets] - ~finite
            rest[endless == 0] = others[endless == 0]
            messages = phi(diameters, rest[back])
        return found

    @cached_property
    def _shells(self) -> list[sparse.csr_array]:
        """Which nodes each node has at the distance 0, 1, ... in steps of links."""
        from scipy import sparse

        links, size = self._links, self._links.size
        ones = np.ones(len(links.sources), dtype=np.int32)
        step = sparse.csr_array((ones, (links.sources, links.targets)), shape=(size, size))
        shell: Any = sparse.csr_array(sparse.eye_array(size, dtype=np.int32))[: self._nodes]
        before: Any = sparse.csr_array(shell.shape, dtype=np.int32)
        found: list[sparse.csr_array] = []
        pairs = 0
        while shell.nnz and len(found) < MOST_STEPS and pairs + shell.nnz <= MOST_PAIRS:
            pairs += shell.nnz
            found.append(sparse.csr_array(shell[:, : self._nodes]))
            onward: Any = shell @ step
            onward.data[:] = 1
            seen = onward.multiply(before + shell)
            onward = sparse.csr_array(onward - seen)
            onward.eliminate_zeros()
            before, shell = shell, onward
        return found

    def leakages(self, budgets: FloatArray) -> FloatArray:
        """Return the smallest leakage over all spheres of each node, rounded up; to every adversary.

        Parameters
        ----------
        budgets : ndarray of shape (n_nodes,)
            0 for nodes that are no records.
        """
        amounts, unit = charges(budgets) if budgets.any() else (np.zeros(len(budgets), dtype=np.int64), 1.0)
        near = np.zeros(self._nodes, dtype=np.int64)
        found = np.full(self._nodes, np.inf)
        for shell, influence in zip(self._shells, self.influences, strict=True):
            near = near + shell @ amounts
            np.minimum(found, up(up(near.astype(np.float64) * unit, 2) + influence, 1), out=found)
        return found
