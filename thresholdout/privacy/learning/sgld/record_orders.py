"""Which records a step of a sampler looks at: the three orders, for many chains at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ORDERS", "batches"]

ORDERS = ("uniform", "cyclic", "reshuffle")
Indices = NDArray[np.int64] | NDArray[np.int32]


def batches(
    rng: np.random.Generator,
    order: str,
    records: int,
    batch_size: int,
    chains: int,
    steps: int,
    *,
    taken: int = 0,
    begun: Indices | None = None,
) -> Iterator[tuple[Indices, Indices | None]]:
    """Yield the records of each step, and the order of the sweep that it is part of.

    Parameters
    ----------
    rng : numpy.random.Generator
        For sampling only.
    order : {"uniform", "cyclic", "reshuffle"}
        Independent draws with replacement; one shuffle, and then sweeps in its order for ever; or a new shuffle for
        each sweep. Chains are shuffled independently of each other.
    records, batch_size : int
        For "cyclic" and "reshuffle", batches divide the records.
    chains, steps : int
    taken : int
        How many of the steps an interrupted run has taken.
    begun : ndarray of int, optional
        The order of its last sweep, whose rest has that order, too: in another one a record could be in two steps of a
        sweep, which are charged as one.

    Yields
    ------
    ndarray of int, shape (batch_size, chains)
        Not to be written to.
    ndarray of int, shape (steps of a sweep, batch_size, chains), or None
        The same for independent draws, which have no sweeps.
    """
    kind = np.int32 if records < 2**31 else np.int64
    if order == "uniform":
        # Several steps at once, so that few chains are not slow.
        ahead = max(1, min(steps, 65_536 // (batch_size * chains)))
        for start in range(0, steps, ahead):
            for drawn in rng.integers(0, records, (min(ahead, steps - start), batch_size, chains), dtype=kind):
                yield drawn, None
        return
    sweep = records // batch_size
    shuffled: Any = np.empty((0, batch_size, chains), dtype=kind)
    for step in range(steps):
        position = step % sweep
        if position == 0 and (step == 0 or order == "reshuffle"):
            rows = np.broadcast_to(np.arange(records, dtype=kind), (chains, records))
            shuffled = np.ascontiguousarray(rng.permuted(rows, axis=1).T).reshape(sweep, batch_size, chains)
        if step == taken and begun is not None and (position or order == "cyclic"):
            shuffled = begun
        yield shuffled[position], shuffled
