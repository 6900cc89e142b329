"""Stochastic gradient Langevin dynamics for Bayesian linear regression, many chains at once."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphs.progress_bar import progress_bar
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import chosen, count, positive
from thresholdout.privacy.learning.interrupted_calls import RunInterrupted
from thresholdout.privacy.learning.random_streams import Streams, streams
from thresholdout.privacy.learning.sgld.regression_model import records

__all__ = ["ORDERS", "DivergingChainWarning", "UnfinishedChains", "batches", "sgld_sample"]

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
    """Yield the records of each step, and the order of its sweep."""
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


Floats = NDArray[np.float64]

Step = Callable[[Floats, Indices, float, Floats], None]

MOST_CHAINS = 1 << 14  # at once: their state stays in the processor's cache

MOST_INDICES = 1 << 26  # of shuffled records in memory, 256 MB

MOST_ROWS = 1 << 22  # numbers of gathered inputs in memory, 32 MB


class DivergingChainWarning(UserWarning):
    """A step size makes a record push the chain farther away than it was."""


@dataclass(frozen=True, eq=False)
class UnfinishedChains:
    """State of an interrupted run, whose chains run in groups, one after the other.

    `start` and `states` have the shape of all chains; those of later groups are at their start. `first` is the first
    chain of the interrupted group, `steps` the number of steps of this group, and `moved` the number of chains that
    have taken a step. `order` is that of the group's last sweep, `halfway` as in `run`.
    """

    start: Floats
    states: Floats
    first: int
    steps: int
    moved: int
    order: Indices | None = None
    halfway: Floats | None = None


@dataclass(frozen=True)
class Problem:
    """A checked sampling problem; x has shape (n,) or (n, d)."""

    x: Floats
    y: Floats
    alpha: float
    beta: float
    eta: Floats
    batch_size: int
    order: str
    clip: float | None
    chains: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the states of all chains."""
        return (self.chains, *self.x.shape[1:])


def sgld_sample(
    x: Any,
    y: Any,
    alpha: float,
    beta: float,
    eta: Any,
    n_steps: int,
    *,
    batch_size: int = 1,
    order: str = "cyclic",
    clip: float | None = None,
    theta0: Any = None,
    n_chains: int = 1,
    rng: Any = None,
    return_path: bool = False,
    progress: bool = True,
) -> Floats:
    """Run stochastic gradient Langevin dynamics on the posterior of a linear regression [HF, eq. 3, 23, 66].

    The noise of a step has variance eta. "uniform" draws records independently with replacement; "cyclic" shuffles once
    and sweeps in that order; "reshuffle" shuffles for each sweep. Sweeps need a batch size that divides n. `clip`
    bounds each record's gradient, not that of the prior; a clipped chain does not converge to the posterior. The start
    is a draw from the prior by default. The result holds the last state of each chain, or all states with
    `return_path`.

    Chains run in groups. So memory beyond the result is bounded for any number of chains, and grows with the steps by
    two numbers for each.
    """
    problem = _checked(x, y, alpha, beta, eta, n_steps, batch_size, order, clip, n_chains)
    start = _start(theta0, problem.shape)
    warn_if_diverging(problem)
    return run(problem, start, streams(rng), return_path=return_path, progress=progress)


def run(
    problem: Problem,
    start: Floats | None,
    generators: Streams,
    *,
    return_path: bool = False,
    progress: bool = True,
    resume: UnfinishedChains | None = None,
    seen: Floats | None = None,
) -> Floats:
    """Run a checked problem; without a start, from draws of the prior.

    With `resume`, the remaining steps of an interrupted run are taken; the random numbers of the others are drawn and
    dropped. An interrupt becomes a `RunInterrupted` with `UnfinishedChains`. An array `seen`, three times the shape of
    all chains, is filled with their start, their states after half of the steps (rounded down), and those before the
    last step; or with their last ones, where no step was left.
    """
    if resume is not None:
        start = resume.start
    elif start is None:
        start = generators.initial.standard_normal(problem.shape) / math.sqrt(problem.alpha)
    steps, n = problem.eta.size, problem.y.size
    shape = (problem.chains, steps + 1, *problem.shape[1:]) if return_path else problem.shape
    result = np.empty(shape) if return_path else np.array(start if resume is None else resume.states)
    halfway = None if seen is None else seen[1]
    if seen is not None:
        seen[:] = start
        if resume is not None and resume.halfway is not None:
            seen[1] = resume.halfway
    at_once = MOST_CHAINS
    if problem.order != "uniform":
        at_once = max(1, min(at_once, MOST_INDICES // n))
    if problem.x.ndim == 2:
        at_once = max(1, min(at_once, MOST_ROWS // (problem.batch_size * problem.x.shape[1])))
    groups = range(0, problem.chains, at_once)
    shown = progress_bar(doing="sampling", unit="steps", total=len(groups) * steps, show=progress)
    with shown as bar, np.errstate(all="ignore"):
        for first in groups:
            part = slice(first, min(first + at_once, problem.chains))
            taken = 0 if resume is None or first > resume.first else steps if first < resume.first else resume.steps
            theta = np.array(start[part] if taken == 0 or resume is None else resume.states[part], order="C")
            path = result[part] if return_path else None
            begun = None if resume is None or first != resume.first else resume.order
            try:
                half = None if halfway is None else halfway[part]
                last = _run_chains(problem, theta, generators, path, bar, taken, begun, half)
            except RunInterrupted as stopped:
                if resume is not None and first < resume.first:  # no more was done than before
                    stopped.run = resume
                    raise
                number, states, order = stopped.run
                result[part] = states
                moved = part.stop if number else first
                stopped.run = UnfinishedChains(np.array(start), result, first, number, moved, order, halfway)
                raise
            if not return_path:
                result[part] = theta
            if seen is not None:
                seen[2, part] = last
    return result


def _run_chains(
    problem: Problem,
    theta: Floats,
    generators: Streams,
    path: Floats | None,
    bar: Any,
    taken: int = 0,
    begun: Indices | None = None,
    halfway: Floats | None = None,
) -> Floats:
    """Run some chains, and return their states before the last step; `theta` holds them before and after all steps.

    For steps that are taken already, only the random numbers are drawn. The states after half of them go to `halfway`.
    """
    step = _one_dimensional(problem, theta.shape[0]) if problem.x.ndim == 1 else _many_dimensional(problem)
    chains, steps = theta.shape[0], problem.eta.size
    sizes = problem.y.size, problem.batch_size, chains, steps
    indices = batches(generators.sampling, problem.order, *sizes, taken=taken, begun=begun)
    ahead = max(1, 4096 // theta.size)  # few chains take the noise of several steps at once
    noise = np.empty((ahead, *theta.shape))
    roots = np.sqrt(problem.eta)
    if path is not None:
        path[:, 0] = theta
    # A step changes its states in several operations, between which an interrupt may fall: the states before it are
    # kept, in two places in turn, always together with their number.
    places = np.empty((2, *theta.shape))
    places[taken % 2] = theta
    kept = taken, places[taken % 2], begun
    try:
        for number, (batch, order) in enumerate(indices):
            row = number % ahead
            if row == 0:
                generators.noise.standard_normal(out=noise)
            if number >= taken:
                np.copyto(places[number % 2], theta)
                kept = number, places[number % 2], order
                if halfway is not None and number == steps // 2:
                    np.copyto(halfway, theta)
                kick = noise[row]
                kick *= roots[number]
                step(theta, batch, float(problem.eta[number]), kick)
                if path is not None:
                    path[:, number + 1] = theta
            if number % 256 == 255:
                bar.update(256)
        kept = steps, theta, None
        bar.update(steps % 256)
    except KeyboardInterrupt as stopped:
        if path is not None:
            raise
        raise RunInterrupted(kept) from stopped
    return places[(steps - 1) % 2] if steps > taken else theta


def _one_dimensional(problem: Problem, chains: int) -> Step:
    """Return a step for one slope."""
    x, y, alpha, scale = problem.x, problem.y, problem.alpha, problem.y.size / problem.batch_size
    slopes, pulls = problem.beta * x * x, problem.beta * x * y  # a record's gradient is pull - slope theta
    one, other, total = np.empty(chains), np.empty(chains), np.empty(chains)

    def linear(theta: Floats, batch: Indices, eta: float, noise: Floats) -> None:
        half = eta / 2.0
        np.take(slopes, batch[0], out=one, mode="clip")
        np.take(pulls, batch[0], out=other, mode="clip")
        for row in batch[1:]:
            np.add(one, np.take(slopes, row, out=total, mode="clip"), out=one)
            np.add(other, np.take(pulls, row, out=total, mode="clip"), out=other)
        np.multiply(one, -half * scale, out=one)
        np.add(one, 1.0 - half * alpha, out=one)
        np.multiply(theta, one, out=theta)
        np.multiply(other, half * scale, out=other)
        np.add(theta, other, out=theta)
        np.add(theta, noise, out=theta)

    def clipped(theta: Floats, batch: Indices, eta: float, noise: Floats) -> None:
        assert problem.clip is not None
        total[:] = 0.0
        for row in batch:
            np.take(slopes, row, out=one, mode="clip")
            np.take(pulls, row, out=other, mode="clip")
            np.multiply(one, theta, out=one)
            np.subtract(other, one, out=other)
            np.fmax(other, -problem.clip, out=other)  # inf - inf becomes a number, too
            np.fmin(other, problem.clip, out=other)
            np.add(total, other, out=total)
        np.multiply(total, eta / 2.0 * scale, out=total)
        np.add(total, noise, out=total)  # first, so that no other rounding counts (PROOFS.md, C3)
        np.multiply(theta, 1.0 - eta / 2.0 * alpha, out=theta)
        np.add(theta, total, out=theta)

    return linear if problem.clip is None else clipped


def _factor_limits(x: Floats, clip: float) -> Floats:
    """Return the limit of each record's factor such that its product with the record has a norm of at most `clip`.

    A record's gradient is its input times beta times its residual, so a limit on that factor clips it. Neither rounding
    nor squares that underflow or overflow make the product longer (PROOFS.md, C3).
    """
    # Entries are divided by the largest one, so that no square that matters underflows.
    largest = np.maximum(np.abs(x).max(axis=1), 1e-290)
    with np.errstate(over="ignore", under="ignore"):
        norms = largest * np.maximum(np.linalg.norm(x / largest[:, np.newaxis], axis=1), 1.0)
        limits = np.minimum(clip * (1.0 - 1e-14 * (x.shape[1] + 2)) / norms, 1e300)
    return np.where(limits < 1e-290, 0.0, limits)


def _many_dimensional(problem: Problem) -> Step:
    """Return a step for several slopes."""
    x, y, alpha, scale = problem.x, problem.y, problem.alpha, problem.y.size / problem.batch_size
    limits = None
    if problem.clip is not None:
        limits = _factor_limits(x, problem.clip)

    def step(theta: Floats, batch: Indices, eta: float, noise: Floats) -> None:
        rows = x[batch.T]  # (chains, batch, d)
        factors = problem.beta * (y[batch.T] - np.matmul(rows, theta[:, :, np.newaxis])[:, :, 0])
        if limits is not None:
            most = limits[batch.T]
            factors = np.fmin(np.fmax(factors, -most), most)  # inf - inf becomes a number, too
        gradient = np.matmul(factors[:, np.newaxis, :], rows)[:, 0, :]
        gradient *= eta / 2.0 * scale
        gradient += noise  # first, so that no other rounding counts (PROOFS.md, C3)
        theta *= 1.0 - eta / 2.0 * alpha
        theta += gradient

    return step


def _checked(
    x: Any,
    y: Any,
    alpha: Any,
    beta: Any,
    eta: Any,
    n_steps: Any,
    batch_size: Any,
    order: Any,
    clip: Any,
    n_chains: Any,
) -> Problem:
    try:
        several = np.ndim(x) == 2
    except ValueError:
        raise InputError("x", "rows of different lengths", "an array of shape (n,) or (n, d)") from None
    if several:
        inputs = _matrix(x)
        # The first column stands for the inputs in the checks of lengths.
        targets = records(inputs[:, 0], y)[1]
    else:
        inputs, targets = records(x, y)
    n, size = targets.size, count(batch_size, "batch_size")
    if size > n:
        raise InputError("batch_size", str(size), f"at most {n}, the number of records")
    order = chosen(order, "order", ORDERS)
    if order != "uniform" and n % size:
        expected = f"a divisor of {n}, the number of records"
        raise InputError("batch_size", f"{size}", expected, "order='uniform' takes any size.")
    steps = count(n_steps, "n_steps", least=0)
    return Problem(
        x=np.ascontiguousarray(inputs),
        y=targets,
        alpha=positive(alpha, "alpha"),
        beta=positive(beta, "beta"),
        eta=step_sizes(eta, steps),
        batch_size=size,
        order=order,
        clip=None if clip is None else positive(clip, "clip"),
        chains=count(n_chains, "n_chains"),
    )


def _matrix(x: Any) -> Floats:
    try:
        array = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError("x", f"a {type(x).__name__}", "an array of numbers") from None
    if not array.size or not np.isfinite(array).all():
        seen = "a value that is not finite" if array.size else "an empty array"
        raise InputError("x", seen, "finite numbers, one row for each record")
    return array


def step_sizes(eta: Any, steps: int, name: str = "eta") -> Floats:
    """Return a step size for each step: finite and above 0; errors name the argument."""
    if np.ndim(eta) == 0:
        return np.full(steps, positive(eta, name))
    try:
        array = np.asarray(eta, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(name, f"a {type(eta).__name__}", "a number, or one for each step") from None
    if array.shape != (steps,):
        raise InputError(name, f"an array of shape {array.shape}", f"a number, or one for each of {steps} steps")
    if not (np.isfinite(array) & (array > 0)).all():
        raise InputError(name, "a value that is not finite and above 0", "step sizes above 0")
    return array


def _start(theta0: Any, shape: tuple[int, ...]) -> Floats | None:
    if theta0 is None:
        return None
    expected = f"finite numbers that broadcast to shape {shape}"
    try:
        start = np.broadcast_to(np.asarray(theta0, dtype=np.float64), shape)
    except (TypeError, ValueError):
        raise InputError("theta0", f"a {type(theta0).__name__} of shape {np.shape(theta0)}", expected) from None
    if not np.isfinite(start).all():
        raise InputError("theta0", "a value that is not finite", expected)
    return start


def warn_if_diverging(problem: Problem) -> None:
    """Warn when a step size makes a record push the chain away."""
    if not problem.eta.size:
        return
    largest = 0.0
    if problem.clip is None:
        squares = problem.x**2 if problem.x.ndim == 1 else (problem.x**2).sum(axis=1)
        largest = float(squares.max())
    curvature = problem.alpha + problem.y.size * largest * problem.beta
    if float(problem.eta.max()) / 2.0 * curvature >= 2.0:
        message = (
            f"The chain diverges: the step size {problem.eta.max():g} times half the curvature {curvature:g} of a "
            "record is 2 or more. Pass a smaller step size."
        )
        warnings.warn(message, DivergingChainWarning, stacklevel=3)
