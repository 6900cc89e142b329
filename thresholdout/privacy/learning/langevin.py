"""Stochastic gradient Langevin dynamics as the generalisation paper runs it: private in every step."""

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
    """What `run_sgld` returns: all iterates, and what they have leaked together about one record.

    Attributes
    ----------
    L : float
        Bound on the norm of each record's gradient.
    clipped : bool
        Whether gradients were clipped to it, or refused above it.
    step_sizes : ndarray, shape (T,)
        They do not matter for privacy.

    Notes
    -----
    The other attributes are those of `PrivateIterates`.

    Examples
    --------
    >>> run = run_sgld(lambda theta, X, y: X * (X @ theta - y)[:, None], np.ones((100, 1)), np.ones(100), theta0=[0.0],
    ...                step_sizes=0.1, T=20, batch_size=10, sigma=1.0, L=1.0, random_state=0)
    >>> run.trajectory.shape, run.event
    ((21, 1), SelfComposed(SGLDStep(noise_std=1.0, clip=1.0, batch_size=10, records=100), 20))
    >>> run.privacy(1e-5).epsilon < run.composition(1e-7, 1e-6).eps
    True
    """

    L: float
    clipped: bool
    step_sizes: Floats

    @property
    def noise_multiplier(self) -> float:
        """Standard deviation of the noise on the sum of a minibatch's gradients, over L."""
        return self.sigma * self.batch_size / self.L

    def composition(self, delta: float, dt: float, *, formula: str = "corrected", method: str = "kov") -> Composition:
        """Return `thresholdout.privacy.accounting.sgld_privacy` of this run, whose arguments these are.

        Examples
        --------
        >>> run = LangevinRun(np.zeros((2001, 1)), 60_000, 64, 0.5, False, 1.0, True, np.full(2000, 0.1))
        >>> round(run.composition(1e-6, 1e-6).eps, 4)
        0.083
        """
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

    Parameters
    ----------
    grad_loss : callable
        ``grad_loss(theta, X_rows, y_rows)`` returns the gradients of the loss of these records, one row each, shape
        (batch_size, d). Each row must depend on its own record only: no statistics of the batch. ``theta`` is
        read-only.
    X, y : array_like
        Records and labels, of the same length N.
    theta0 : array_like of shape (d,), or callable
        Where to start; or a function from a generator to it. It must not depend on the data.
    step_sizes : float or array_like of shape (T,)
        Above 0.
    T : int
        Steps, 1 or more.
    batch_size : int
        Records in a minibatch, tau; at most N.
    sigma : float
        Standard deviation (not variance) of the noise on the *mean* gradient; above 0.
    L : float
        Bound on the norm of each record's gradient; in [1e-100, 1e100].
    grad_reg : callable, optional
        Gradient of a regulariser at theta, shape (d,); divided by the batch size. It must not depend on the data.
    clip : bool
        Whether gradients are clipped to L. If not, a longer one is an error.
    random_state : None, int or generator of numpy
        See `thresholdout.privacy.learning.streams`. The global generator is never touched.
    progress : bool
        Whether to show a bar, once two seconds are over.
    resume : LangevinRun, optional
        The ``run`` of a `RunInterrupted`, with the same arguments as then: the steps that are left are taken, which
        cost nothing more. `theta0` is not used. With an integer as `random_state` the result is that of a run that was
        not interrupted; otherwise the noise of the steps that are left is fresh.

    Returns
    -------
    LangevinRun

    Raises
    ------
    RunInterrupted
        When it is interrupted: a KeyboardInterrupt whose ``run`` has the steps that were taken.
    InputError, InputTypeError
        When an argument is out of range; when a gradient is not finite, of another shape, or longer than L with
        ``clip=False``; when an iterate is no longer finite. That a run ends with an error about a gradient may tell of
        a record: it is not covered by the guarantee.

    Notes
    -----
    [He, Algorithm 1]: ``theta <- theta - step_size (grad_reg(theta)/tau + mean of gradients + noise)``. Every step is
    a Gaussian answer of sensitivity ``2 L/tau`` on a fresh subset, so all iterates together are private, not only the
    last one (FEDERATED.md, F1 to F4).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(-1, 1, (1000, 2)) / np.sqrt(2)
    >>> y = np.where(X @ [1.0, -1.0] > 0, 1.0, -1.0)
    >>> def logistic(theta, rows, signs):
    ...     return -(signs / (1.0 + np.exp(signs * (rows @ theta))))[:, None] * rows
    >>> run = run_sgld(logistic, X, y, theta0=[0.0, 0.0], step_sizes=0.5, T=200, batch_size=50, sigma=0.1, L=1.0,
    ...                random_state=0)
    >>> bool(np.mean(np.sign(X @ run.theta) == y) > 0.9)
    True
    """
    records, labels = _rows(X, "X"), _rows(y, "y")
    N, tau, T = len(records), count(batch_size, "batch_size"), count(T, "T")
    if len(labels) != N:
        raise InputError("y", f"{len(labels)} labels", f"{N}, as many as rows of X")
    if tau > N:
        raise InputError("batch_size", f"{tau} of {N}", "at most the number of records")
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
        raise InputError(name, f"an array of shape {array.shape}", "one row for each record, at least one")
    return array


def _step_sizes(value: Any, T: int) -> Floats:
    if np.ndim(value) == 0:
        return np.full(T, positive(value, "step_sizes"))
    sizes = np.asarray([positive(each, "step_sizes") for each in value])
    if len(sizes) != T:
        raise InputError("step_sizes", f"{len(sizes)} numbers", f"one number, or {T}, one for each step")
    return sizes


def _gradients(value: Any, shape: tuple[int, int]) -> Floats:
    array = np.asarray(value)
    if array.shape != shape or array.dtype.kind not in "iuf":
        seen = f"an array of shape {array.shape} and {array.dtype}"
        raise InputError("grad_loss", seen, f"numbers of shape {shape}, one row for each record of the minibatch")
    return array.astype(np.float64)


def _regulariser(value: Any, size: int) -> Floats:
    array = np.asarray(value)
    if array.shape != (size,) or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise InputError("grad_reg", f"an array of shape {array.shape}", f"finite numbers of shape ({size},)")
    return array.astype(np.float64)
