"""Stochastic gradient Langevin dynamics as in [He]: private in every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import count, positive
from thresholdout.privacy.accounting.events.learning_steps import SGLDStep
from thresholdout.privacy.accounting.iterative_learners import sgld_privacy
from thresholdout.privacy.accounting.results import Composition
from thresholdout.privacy.learning.bounded_mean import check_bound, noisy_mean
from thresholdout.privacy.learning.interrupted_calls import RunInterrupted, check_alike
from thresholdout.privacy.learning.iterates import PrivateIterates, check_noise, draw, run_steps, starting_point
from thresholdout.privacy.learning.random_streams import is_seeded, streams

__all__ = ["LangevinRun", "run_sgld"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class LangevinRun(PrivateIterates):
    """Result of `run_sgld`: all iterates, and their joint privacy loss for one record.

    `L` bounds the norm of each record's gradient, by clipping if `clipped`, otherwise by refusal. `step_sizes` do not
    matter for privacy.
    """

    L: float
    clipped: bool
    step_sizes: Floats

    @property
    def noise_multiplier(self) -> float:
        """Standard deviation of the noise on the sum of a minibatch's gradients, over L."""
        return self.sigma * self.batch_size / self.L

    def composition(self, delta: float, dt: float, *, formula: str = "corrected", method: str = "kov") -> Composition:
        """Return `thresholdout.privacy.accounting.sgld_privacy` of this run, whose arguments these are."""
        sizes = self.population, self.batch_size, self.charged, self.L, self.sigma
        return sgld_privacy(*sizes, delta, dt, formula, method=method)

    def _bound(self) -> float:
        return self.L

    def _step(self) -> SGLDStep:
        return SGLDStep(self.sigma, self.L, self.batch_size, self.population)

    def _words(self) -> tuple[str, str, tuple[str, ...]]:
        assumptions = ["each record's gradient depends on no other record, and the regulariser on none"]
        if self.clipped:
            assumptions.append("no gradient of any possible record is infinite or NaN")
        else:
            assumptions.append(f"no gradient of any possible record is infinite, NaN, or longer than {self.L:g}")
        return "record", "the start and all iterates", tuple(assumptions)


def run_sgld(
    grad_loss: Callable[[Floats, NDArray[Any], NDArray[Any]], Any],
    X: Any,
    y: Any,
    *,
    theta0: Any,
    step_sizes: Any,
    T: int,
    batch_size: int,
    sigma: float,
    L: float,
    grad_reg: Callable[[Floats], Any] | None = None,
    clip: bool = True,
    random_state: Any = None,
    progress: bool = True,
    resume: LangevinRun | None = None,
) -> LangevinRun:
    """Run stochastic gradient Langevin dynamics on fresh minibatches, with noise on each mean gradient.

    [He, Algorithm 1]: ``theta <- theta - step_size (grad_reg(theta)/tau + mean of gradients + noise)``. Every step is a
    Gaussian answer of sensitivity ``2 L/tau`` on a fresh subset. So all iterates together are private, not only the
    last one (FEDERATED.md, F1 to F4).

    ``grad_loss(theta, X_rows, y_rows)`` returns one gradient row for each record, shape (batch_size, d). Each row must
    depend on its own record only: no statistics of the batch. `theta0` and `grad_reg` must not depend on the data.
    `sigma` is the standard deviation of the noise on the *mean* gradient. An error about a gradient may release
    information about a record; the guarantee does not cover it.

    `resume` works as in `run_federated`.
    """
    records, labels = _rows(X, "X"), _rows(y, "y")
    N, tau, T = len(records), count(batch_size, "batch_size"), count(T, "T")
    if len(labels) != N:
        raise InputError("y", f"{len(labels)} labels", f"{N} labels, one for each row of X")
    if tau > N:
        raise InputError("batch_size", f"{tau}", f"at most {N}, the number of records")
    L = check_bound(L)
    sigma = check_noise(positive(sigma, "sigma"), sigma * tau / L)
    sizes = _step_sizes(step_sizes, T)
    if not isinstance(clip, (bool, np.bool_)):
        raise InputTypeError("clip", f"a {type(clip).__name__}", "True or False")
    if not callable(grad_loss) or not (grad_reg is None or callable(grad_reg)):
        raise InputTypeError("grad_loss, grad_reg", "a value that cannot be called", "functions")
    random = streams(random_state)
    if resume is not None:
        resume.check_resumed(T, N, tau, sigma, L)
        check_alike("clip", resume.clipped, bool(clip))
        check_alike("step_sizes", resume.step_sizes.tolist(), sizes.tolist())
    done = None if resume is None else resume.trajectory
    start = starting_point(theta0, random.initial) if done is None else done[0]
    seeded = is_seeded(random_state) or (resume is not None and resume.seeded)

    def step(t: int, theta: Floats) -> Floats:
        drawn = draw(random.sampling, N, tau)
        gradients = _gradients(grad_loss(theta, records[drawn], labels[drawn]), (tau, start.size))
        direction = noisy_mean(gradients, L, sigma, random.noise, clip=bool(clip))
        if grad_reg is not None:
            direction = direction + _regulariser(grad_reg(theta), start.size) / tau
        return np.asarray(theta - sizes[t] * direction)

    def replay() -> None:
        draw(random.sampling, N, tau)
        random.noise.standard_normal(start.size)

    try:
        trajectory = run_steps(start, T, step, progress=progress, unit="steps", done=done, replay=replay)
    except RunInterrupted as stopped:
        stopped.run = LangevinRun(stopped.run, N, tau, sigma, seeded, L, bool(clip), sizes, planned=T)
        raise
    return LangevinRun(trajectory, N, tau, sigma, seeded, L, bool(clip), sizes)


def _rows(value: Any, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except ValueError:
        raise InputError(name, "rows of different lengths", "an array with one row for each record") from None
    if array.ndim == 0 or not len(array):
        raise InputError(name, f"an array of shape {array.shape}", "an array of at least one row, one for each record")
    return array


def _step_sizes(value: Any, T: int) -> Floats:
    if np.ndim(value) == 0:
        return np.full(T, positive(value, "step_sizes"))
    sizes = np.asarray([positive(each, "step_sizes") for each in value])
    if len(sizes) != T:
        raise InputError("step_sizes", f"{len(sizes)} numbers", f"a number, or one for each of {T} steps")
    return sizes


def _gradients(value: Any, shape: tuple[int, int]) -> Floats:
    array = np.asarray(value)
    if array.shape != shape or array.dtype.kind not in "iuf":
        seen, advice = f"an array of shape {array.shape} and type {array.dtype}", "It has one row for each record."
        raise InputError("grad_loss", seen, f"a function that returns numbers of shape {shape}", advice)
    return array.astype(np.float64)


def _regulariser(value: Any, size: int) -> Floats:
    array = np.asarray(value)
    if array.shape != (size,) or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        expected = f"a function that returns finite numbers of shape ({size},)"
        raise InputError("grad_reg", f"an array of shape {array.shape}", expected)
    return array.astype(np.float64)
