"""Common parts of private iterative learners: their start, their draws, and the privacy of all their iterates."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphs.progress_bar import progress_bar
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.events.composed_events import SelfComposed
from thresholdout.privacy.accounting.events.event_types import Event
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import sample_minibatch
from thresholdout.privacy.accounting.results import Composition
from thresholdout.privacy.learning.interrupted_calls import RunInterrupted, check_alike
from thresholdout.privacy.learning.privacy_report import PrivacyReport, account_for, standing_assumptions

__all__ = ["LEAST_NOISE", "PrivateIterates", "check_noise", "draw", "keep_steps", "run_steps", "starting_point"]

Floats = NDArray[np.float64]

LEAST_NOISE, MOST_NOISE = 0.0100001, 1e8  # in units of the bound on the sum: the range of the accountants


@dataclass(frozen=True, eq=False)
class PrivateIterates(ABC):
    """All iterates of a private learner, and their joint privacy loss.

    `trajectory` has the start and every later iterate, shape (T + 1, d), read-only; the guarantee is about all of it.
    `sigma` is the noise that was asked for. `planned` is the number of steps that an interrupted run was begun with,
    and None for a finished one.
    """

    trajectory: Floats
    population: int
    batch_size: int
    sigma: float
    seeded: bool
    planned: int | None = field(default=None, kw_only=True)

    @property
    def theta(self) -> Floats:
        """The last iterate, shape (d,)."""
        return np.asarray(self.trajectory[-1])

    @property
    def steps(self) -> int:
        """Number of steps taken."""
        return len(self.trajectory) - 1

    @property
    def charged(self) -> int:
        """Number of steps charged: all planned ones, as whoever stopped the run had seen iterates."""
        return self.steps if self.planned is None else self.planned

    @property
    @abstractmethod
    def noise_multiplier(self) -> float:
        """Standard deviation of the noise on the sum of a step's vectors, over the bound on each of them."""

    @property
    def event(self) -> Event | None:
        """All steps, for an accountant or ``guard.releases.record``; None when there is too little noise to protect."""
        # Less noise is outside the accountants' range and protects nothing.
        if self.noise_multiplier < LEAST_NOISE:
            return None
        return SelfComposed(self._step(), self.charged)

    def privacy(self, delta: float) -> PrivacyReport:
        """Return the privacy of all iterates, at the smallest epsilon of all accountants."""
        unit, released, assumptions = self._words()
        return account_for(
            self.event,
            delta=delta,
            released=released,
            noise_multiplier=self.noise_multiplier,
            assumptions=(*standing_assumptions(seeded=self.seeded, unit=unit), *assumptions),
            unit=unit,
        )

    @abstractmethod
    def composition(self, delta: float, dt: float, *, formula: str = "corrected", method: str = "kov") -> Composition:
        """Return the same by composing epsilons and deltas of single steps, as [He] does."""

    @abstractmethod
    def _step(self) -> Event: ...

    @abstractmethod
    def _words(self) -> tuple[str, str, tuple[str, ...]]:
        """Return the unit, the released outputs, and the assumptions."""

    def __repr__(self) -> str:
        drawn = f"{self.batch_size} of {self.population}"
        planned = "" if self.planned is None else f" of {self.planned}"
        return f"<{type(self).__name__}: {self.steps}{planned} steps on {drawn}, sigma {self.sigma:g}>"

    def check_resumed(self, T: int, population: int, batch_size: int, sigma: float, bound: float) -> None:
        """Refuse to resume a finished run, or this run with other arguments."""
        if self.planned is None:
            raise InputError("resume", f"{self!r}, which has taken all steps", "the run of an interrupted call")
        names = ("T", "the number of records or clients", "batch_size", "sigma", "L")
        before = (self.planned, self.population, self.batch_size, self.sigma, self._bound())
        for name, one, other in zip(names, before, (T, population, batch_size, sigma, bound), strict=True):
            check_alike(name, one, other)

    @abstractmethod
    def _bound(self) -> float: ...


def check_noise(value: float, multiplier: float, name: str = "sigma") -> float:
    """Return the noise, if it is in the accountants' range; less than their least is allowed, and is no privacy."""
    if not multiplier <= MOST_NOISE:
        expected = f"at most {MOST_NOISE:g} times the bound on the sum"
        raise InputError(name, f"{value:g}, {multiplier:g} times the bound on the sum", expected)
    return value


def draw(rng: np.random.Generator, population: int, size: int) -> NDArray[np.int64]:
    """Return a fresh uniform subset of a size, without replacement; all units when the size is their number."""
    if size == population:
        return np.arange(population)
    return sample_minibatch(rng, population, size, "wor")


def starting_point(theta0: Any, rng: np.random.Generator) -> Floats:
    """Return the start: a vector, or the result of a function of a generator."""
    expected = "a vector of finite numbers, or a function from a generator to one"
    value = theta0(rng) if callable(theta0) else theta0
    try:
        array = np.asarray(value)
    except ValueError:
        raise InputError("theta0", "rows of different lengths", expected) from None
    if array.dtype.kind not in "iuf":
        raise InputTypeError("theta0", f"an array of {array.dtype}", expected)
    if array.ndim != 1 or not array.size:
        raise InputError("theta0", f"an array of shape {array.shape}", expected)
    if not np.isfinite(array).all():
        raise InputError("theta0", "a value that is not finite", expected)
    return array.astype(np.float64)


def _frozen(array: Floats) -> Floats:
    """Return a read-only view: a function of one client must not change the arrays of the next."""
    view = array.view()
    view.flags.writeable = False
    return view


def run_steps(
    start: Floats,
    T: int,
    step: Callable[[int, Floats], Floats],
    *,
    progress: bool,
    unit: str,
    done: Floats | None = None,
    replay: Callable[[], object] | None = None,
) -> Floats:
    """Return the start and T more iterates, read-only.

    Refusing an iterate that is not finite leaks nothing: noisy steps alone decide it.
    """
    trajectory = np.empty((T + 1, start.size))
    known = start[None] if done is None else done
    trajectory[: len(known)] = known
    taken = len(known) - 1
    try:
        # The random numbers of finished steps are drawn again, so that each later step has its own (FEDERATED.md, F4a).
        for _ in range(taken):
            if replay is not None:
                replay()
        for t in progress_bar(range(taken, T), doing="descending", unit=unit, show=progress):
            trajectory[t + 1] = step(t, _frozen(trajectory[t]))
            if not math.isfinite(float(np.abs(trajectory[t + 1]).max())):
                seen = f"an iterate that is not finite after {t + 1} steps"
                raise InputError("step sizes", seen, "small enough for finite iterates")
            taken = t + 1
    except KeyboardInterrupt as stopped:
        raise RunInterrupted(_frozen(trajectory[: taken + 1].copy())) from stopped
    return _frozen(trajectory)


def keep_steps(
    keep: Callable[[Floats, bool], None],
    done: Floats,
    T: int,
    step: Callable[[int, Floats], Floats],
    replay: Callable[[], object],
    *,
    progress: bool,
    unit: str,
) -> None:
    """Take the steps of a charged call, or those that an interrupt has left, and keep every finished one.

    `keep` takes some iterates, and whether steps are left. It sets all that an estimator has of them in one assignment,
    so that after any interrupt the report is that of the model beside it.
    """
    keep(done, True)
    try:
        found = run_steps(done[0], T, step, progress=progress, unit=unit, done=done, replay=replay)
    except RunInterrupted as stopped:
        keep(stopped.run, True)
        raise
    keep(found, False)
