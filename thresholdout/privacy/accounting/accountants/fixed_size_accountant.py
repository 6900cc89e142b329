"""`FixedSizeAccountant`: what the steps of DP-SGD have cost so far, for one sampling scheme."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.accountants.accountant import Accountant
from thresholdout.privacy.accounting.accountants.calibration import METHODS, step_of
from thresholdout.privacy.accounting.accountants.distribution_accountant import DistributionAccountant
from thresholdout.privacy.accounting.accountants.renyi_accountant import RenyiAccountant
from thresholdout.privacy.accounting.accountants.renyi_conversion import EdgeOrderWarning
from thresholdout.privacy.accounting.bound_arguments import chosen, open_unit
from thresholdout.privacy.accounting.bound_arguments import count as check_count
from thresholdout.privacy.accounting.events.event_types import Adjacency, Event
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import batch
from thresholdout.silence import silence

__all__ = ["FixedSizeAccountant"]


class FixedSizeAccountant:
    """Keeps the steps of DP-SGD, whose noise may vary, and says what they cost.

    Parameters
    ----------
    sampling : {"wor", "wr", "poisson"}
        How batches are drawn, afresh in each step: without or with replacement, or by a coin for each record.
    adjacency : {"replace_one", "add_remove"}
        What a neighbour is.
    batch_size, dataset_size : int
        1 <= batch_size < dataset_size; with "poisson", the expected batch size.
    orders : array_like, optional
        Renyi orders above 1 to start from; see `RenyiAccountant`.

    Examples
    --------
    >>> accountant = FixedSizeAccountant("wor", "add_remove", 120, 50_000)
    >>> for epoch_noise in (8.0, 6.0):
    ...     accountant.step(epoch_noise, count=416)
    >>> round(accountant.epsilon(1e-5, method="rdp"), 3)
    0.079
    """

    def __init__(
        self, sampling: str, adjacency: Adjacency, batch_size: int, dataset_size: int, orders: Any = None
    ) -> None:
        self.sampling = chosen(sampling, "sampling", ("wor", "wr", "poisson"))
        self.batch_size, self.dataset_size = batch(batch_size, dataset_size)
        self._renyi = RenyiAccountant(adjacency, orders=orders)
        self._all: tuple[Accountant, ...] = (self._renyi, DistributionAccountant(adjacency))
        self._steps: dict[Event, int] = {}

    @property
    def adjacency(self) -> Adjacency:
        """What a neighbour is."""
        return self._renyi.adjacency

    @property
    def steps(self) -> int:
        """How many steps there were."""
        return sum(self._steps.values())

    def step(self, sigma: float, count: int = 1) -> None:
        """Add steps with a noise multiplier: the deviation of the noise on the *sum* of gradients, over their bound.

        Parameters
        ----------
        sigma : float
            0.01 to 1e8.
        count : int
            How many such steps, 1 or more.
        """
        event = step_of(self.sampling, sigma, self.batch_size, self.dataset_size)
        times = check_count(count, "count")
        for accountant in self._all:
            if accountant.supports(event):
                accountant.compose(event, times)
        self._steps[event] = self._steps.get(event, 0) + times

    def rdp(self, orders: Any = None) -> NDArray[np.float64]:
        """Return the Renyi divergence of all steps, at the accountant's orders or at others."""
        self._chosen("rdp")
        return self._renyi.rdp(orders)

    def epsilon(self, delta: float, *, conversion: str = "balle", method: str = "best") -> float:
        """Return a guaranteed epsilon at a delta.

        Parameters
        ----------
        delta : float
            In (0, 1).
        conversion : {"balle", "mironov"}
            From Renyi divergences.
        method : {"best", "rdp", "pld"}
            By every accountant that knows the steps, by Renyi divergences, or by privacy-loss distributions alone.

        Raises
        ------
        InputError
            When an argument is out of range, or the method knows nothing about such steps.
        """
        delta, found = open_unit(delta, "delta"), []
        with silence(EdgeOrderWarning):
            for accountant in self._chosen(method):
                if isinstance(accountant, RenyiAccountant):
                    accountant = accountant.with_conversion(conversion)
                found.append(accountant.epsilon(delta))
        return min(found, default=math.inf)

    def delta(self, eps: float, *, method: str = "best") -> float:
        """Return a guaranteed delta at an epsilon of 0 or more; for `method` see `epsilon`."""
        with silence(EdgeOrderWarning):
            return min((accountant.delta(eps) for accountant in self._chosen(method)), default=1.0)

    def _chosen(self, method: str) -> list[Accountant]:
        """Return the accountants of a method that have seen all steps."""
        chosen(method, "method", tuple(METHODS))
        among = [accountant for accountant in self._all if type(accountant) in METHODS[method]]
        seen = [accountant for accountant in among if accountant.total == self.steps]
        if not seen:
            reason = among[0].why_not(next(iter(self._steps)))
            where = f"{method!r} for {self.sampling!r} under {self.adjacency!r}"
            raise InputError("method", where, f"another one: {reason}")
        return seen
