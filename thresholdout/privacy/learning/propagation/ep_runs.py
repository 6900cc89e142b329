"""Runs over all records: expectation propagation, assumed density filtering, stochastic expectation propagation."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar, cast

import numpy as np

from graphs.progress_bar import progress_bar
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import chosen, count, number, positive
from thresholdout.privacy.learning.interrupted_calls import kept_if_interrupted
from thresholdout.privacy.learning.propagation.ep_privacy import sep_noise_std
from thresholdout.privacy.learning.propagation.ep_update import dp_sep_step
from thresholdout.privacy.learning.propagation.gaussian_models import Model
from thresholdout.privacy.learning.propagation.natural_parameters import (
    CLIP_MODES,
    ClipMode,
    Floats,
    Natural,
    clip_norm_of,
)
from thresholdout.privacy.learning.random_streams import streams, threads_for

__all__ = [
    "SAMPLINGS",
    "Run",
    "Unfinished",
    "UnfinishedSites",
    "information_fraction",
    "resolve_gamma",
    "run_adf",
    "run_ep",
    "run_sep",
]

T = TypeVar("T", bound=Natural)
SAMPLINGS = ("uniform", "shuffle", "cyclic")
_FEW_SKIPS = 0.1  # of a pass; more are warned of
_NOISE_FLOATS = 2**18  # noise drawn at a time, 2 MB
_MANY_PARAMETERS = 2**16  # from here on, several threads gain more than they cost


@dataclass(frozen=True)
class Run(Generic[T]):
    """Result of a run.

    `theta_f` is the shared site, or the mean of all sites. `n_skipped` counts updates that something improper
    prevented; a private run has none. `n_failed_sites` counts updates with the shared site in place of the record's. It
    depends on the records and must not leave a private run. `n_projections` counts posteriors that were made proper.
    `changes` has the largest change of any natural parameter of a site in each pass (0 in passes before a `run_sep` was
    resumed). `converged` means that the last change was within the tolerance and nothing was skipped.
    """

    theta: T
    theta_f: T
    n_updates: int
    n_skipped: int
    n_failed_sites: int
    n_projections: int
    n_passes: int
    changes: tuple[float, ...]
    converged: bool


@dataclass(frozen=True)
class Unfinished(Generic[T]):
    """State of an interrupted run of `run_sep`.

    `updates` counts those made or skipped. `order` is that of the records in the interrupted pass, for
    sampling="shuffle": with another order for the rest of the pass a record could be in two of its updates.
    """

    theta_f: T
    updates: int = 0
    failed: int = 0
    projections: int = 0
    skipped: int = 0
    order: tuple[int, ...] = ()

    def covered(self) -> Self:
        """Return the same without the count that depends on the records alone, which no noise covers."""
        return replace(self, failed=0)

    def as_run(self, prior: T, N: int) -> Run[T]:
        """Return the same as a run that ended here."""
        theta, made = prior + self.theta_f.scale(N), self.updates - self.skipped
        passes = self.updates // N
        return Run(theta, self.theta_f, made, self.skipped, self.failed, self.projections, passes, (), False)


@dataclass(frozen=True, eq=False)
class UnfinishedSites(Generic[T]):
    """State of an interrupted run of `run_ep` or `run_adf`, neither of which is private.

    `sites` are those of all records; `run_adf` keeps none. `changes` and `skipped` are of finished passes; `done`,
    `skips` and `change` are of the interrupted one.
    """

    theta: T
    sites: Floats
    changes: tuple[float, ...] = ()
    skipped: int = 0
    done: int = 0
    skips: int = 0
    change: float = 0.0

    @property
    def updates(self) -> int:
        """Number of updates made or skipped."""
        return len(self.sites) * len(self.changes) + self.done

    def covered(self) -> Self:
        """Return the same: no guarantee covers any of it."""
        return self

    def as_run(self, prior: T, N: int) -> Run[T]:
        """Return the same as a run that ended here."""
        skipped, mean = self.skipped + self.skips, (self.theta - prior).scale(1 / N)
        return Run(self.theta, mean, self.updates - skipped, skipped, 0, 0, self.updates // N, self.changes, False)


Callback = Callable[[int, T], object]


def resolve_gamma(gamma: object, N: int, T: int) -> float:
    """Return the step parameter: a number in (0, N], "paper" (1), "sep" (N), or "auto" (the smaller of N and 3N/T)."""
    if isinstance(gamma, str):
        names = {"paper": 1.0, "sep": float(N), "auto": min(N, 3 * N / T)}
        return names[chosen(gamma, "gamma", names)]
    found = number(gamma, "gamma", f"a number in (0, {N}], 'paper', 'sep' or 'auto'")
    if not 0 < found <= N:
        raise InputError("gamma", repr(found), f"a number in (0, {N}], the number of records")
    return found


def information_fraction(gamma: float, N: int, T: int) -> float:
    """Return the share of the records' information that T passes of N updates absorb, from a shared site of 0."""
    share = gamma / N**2
    return 1.0 if share >= 1 else -math.expm1(N * T * math.log1p(-share))


def run_ep(
    model: Model[T],
    records: Sequence[Any],
    *,
    damping: float = 1.0,
    max_iter: int = 100,
    tol: float = 1e-8,
    callback: Callback[T] | None = None,
    resume: UnfinishedSites[T] | None = None,
) -> Run[T]:
    """Run expectation propagation, with a site for each record [VP, Algorithm 1].

    The result is exact after one pass where sites do not depend on the cavity. `damping`, in (0, 1], is the weight of a
    new site against the old one. A pass that changes no natural parameter of a site by more than `tol` is the last one.
    A ConvergenceWarning comes when more than a tenth of a pass was skipped. `resume` is the ``run`` of a
    `RunInterrupted`, with the same other arguments as then.
    """
    N, passes = _checked(records), count(max_iter, "max_iter")
    weight, small = positive(damping, "damping"), positive(tol, "tol", zero=True)
    if weight > 1:
        raise InputError("damping", repr(weight), "a number in (0, 1]")
    theta_0 = model.prior
    begun = UnfinishedSites(theta_0, np.zeros((N, theta_0.values.size))) if resume is None else resume
    sites = begun.sites.copy()
    pending: tuple[int, Floats] | None = None  # the site of the last update, which may not stand among the others yet
    known = begun, pending  # always together

    def kept() -> UnfinishedSites[T]:
        state, last = known
        found = sites.copy()
        if last is not None:
            found[last[0]] = last[1]
        return replace(state, sites=found)

    theta, changes, skipped = begun.theta, list(begun.changes), begun.skipped
    with kept_if_interrupted(kept), threads_for(theta_0.values.size < _MANY_PARAMETERS), np.errstate(all="ignore"):
        for number_of_pass in range(len(changes) + 1, passes + 1):
            resumed = number_of_pass == len(begun.changes) + 1
            first, skips, change = (begun.done, begun.skips, begun.change) if resumed else (0, 0, 0.0)
            for n in range(first, N):
                pending = None
                old = theta_0.with_values(sites[n])
                cavity = theta - old
                found = _site_of(model, records[n])(cavity).values if cavity.is_pd() else None
                # An update that leaves no proper density is tried again at half its weight, and then skipped.
                for step in (weight, weight / 2):
                    if found is None or not np.isfinite(found).all():
                        skips += 1
                        break
                    new = theta_0.with_values((1 - step) * old.values + step * found)
                    updated = cavity + new
                    if updated.is_pd():
                        change = max(change, float(np.abs(new.values - old.values).max()))
                        pending, theta = (n, new.values), updated
                        break
                else:
                    skips += 1
                known = UnfinishedSites(theta, sites[:0], tuple(changes), skipped, n + 1, skips, change), pending
                if pending is not None:
                    sites[n] = pending[1]
            # The running sum has collected rounding errors.
            fresh = theta_0.with_values(theta_0.values + sites.sum(axis=0))
            theta = fresh if fresh.is_pd() else theta
            changes.append(change)
            skipped += skips
            _warn_of_skips(skips, N)
            if callback is not None:
                callback(number_of_pass, theta)
            if change <= small:
                break
    done = len(changes)
    mean = theta_0.with_values(sites.mean(axis=0))
    settled = changes[-1] <= small and not skips
    return Run(theta, mean, N * done - skipped, skipped, 0, 0, done, tuple(changes), settled)


def run_adf(model: Model[T], records: Sequence[Any], *, resume: UnfinishedSites[T] | None = None) -> Run[T]:
    """Run assumed density filtering: one pass, in which each record's site is added to the posterior so far."""
    N, theta = _checked(records), model.prior
    so_far = UnfinishedSites(theta, np.empty((0, theta.values.size))) if resume is None else resume
    with (
        kept_if_interrupted(lambda: so_far),
        threads_for(theta.values.size < _MANY_PARAMETERS),
        np.errstate(all="ignore"),
    ):
        for n in range(so_far.done, N):
            theta = so_far.theta
            found = _site_of(model, records[n])(theta)
            updated = theta + found
            if np.isfinite(found.values).all() and updated.is_pd():
                change = max(so_far.change, float(np.abs(found.values).max()))
                so_far = replace(so_far, theta=updated, done=n + 1, change=change)
            else:
                so_far = replace(so_far, done=n + 1, skips=so_far.skips + 1)
    _warn_of_skips(so_far.skips, N)
    return replace(so_far.as_run(model.prior, N), changes=(so_far.change,))


def run_sep(
    model: Model[T],
    records: Sequence[Any],
    *,
    n_epochs: int,
    gamma: float | str = "sep",
    C: float | None = None,
    sigma: float | tuple[float, ...] = 0.0,
    sampling: str = "uniform",
    clip_mode: ClipMode = "joint",
    rho: float = 1e-4,
    random_state: Any = None,
    noise_fn: Callable[[int, tuple[int, ...]], Any] | None = None,
    callback: Callback[T] | None = None,
    theta_f: T | None = None,
    state: str = "site",
    progress: bool = True,
    call: int = 0,
    resume: Unfinished[T] | None = None,
) -> Run[T]:
    """Run stochastic expectation propagation, optionally clipped and with noise [VP, Algorithms 2 and 3].

    Each of the `n_epochs` passes has N updates by one record. "uniform" draws each update's record by itself; "shuffle"
    and "cyclic" go through all records in each pass, in a new order or in theirs. `sigma` is in units of the
    sensitivity ``2 gamma C / N``, one for each clipped block if a tuple. A private run may release the posterior after
    each pass, which `callback` gets. A run with noise never skips an update.

    For tests, ``noise_fn(k, shape)`` replaces the generator: the noise of update k = 1, 2, ... for each array of the
    parameters, as it is added.

    `resume` is the ``run`` of a `RunInterrupted`, in place of `theta_f`, with the same other arguments as then. The
    random numbers of finished updates are drawn and dropped.
    """
    N, passes = _checked(records), count(n_epochs, "n_epochs")
    step, mode = resolve_gamma(gamma, N, passes), cast(ClipMode, chosen(clip_mode, "clip_mode", CLIP_MODES))
    order, kept = chosen(sampling, "sampling", SAMPLINGS), chosen(state, "state", ("site", "posterior"))
    least = positive(rho, "rho")
    limit = None if C is None else clip_norm_of(C, "C")
    theta_0 = model.prior
    begun = Unfinished(theta_0.scale(0.0) if theta_f is None else theta_f) if resume is None else resume
    shared = begun.theta_f
    rng = streams(random_state, call)
    private = noise_fn is not None or bool(np.any(np.asarray(sigma) != 0))
    noises: Iterator[T | None] = iter(lambda: None, 0)
    if private:
        if limit is None:
            raise InputError("C", "None with noise", "a norm to clip to")
        if noise_fn is not None:
            noises = _injected(noise_fn, theta_0)
        else:
            scales = _scales(theta_0, sigma, limit, N, step, mode)
            noises = _drawn(rng.noise, theta_0, scales, N * passes)
    failed, projections, skipped, changes = begun.failed, begun.projections, begun.skipped, list[float]()
    so_far, done = begun, 0
    bar = progress_bar(range(1, passes + 1), doing="expectation propagation", unit="passes", show=progress)
    with (
        kept_if_interrupted(lambda: so_far),
        threads_for(theta_0.values.size < _MANY_PARAMETERS),
        np.errstate(all="ignore"),
    ):
        for number_of_pass in bar:
            skips, change = 0, 0.0
            drawn = _order(order, N, rng.sampling)
            if begun.order and done < begun.updates < done + N:
                drawn = list(begun.order)
            if done + N > begun.updates:  # of a pass that is gone through again, only the random numbers are drawn
                so_far = replace(so_far, order=tuple(drawn) if order == "shuffle" else ())
            for n, noise in zip(drawn, noises, strict=False):
                done += 1
                if done <= begun.updates:
                    continue
                after, trace = dp_sep_step(
                    shared,
                    theta_0,
                    _site_of(model, records[n]),
                    N=N,
                    gamma=step,
                    C=limit,
                    noise=noise,
                    rho=least,
                    clip_mode=mode,
                    state=kept,
                )
                # Without noise an update may be left out; with noise that would be a decision about a record
                # (PROOFS.md, E1).
                if not private and (trace.failed or trace.projected):
                    skips += 1
                    so_far = replace(so_far, updates=done, skipped=skipped + skips)
                    continue
                failed += trace.failed
                projections += trace.projected
                change = max(change, float(np.abs(after.values - shared.values).max()))
                shared = after
                so_far = Unfinished(shared, done, failed, projections, skipped + skips, so_far.order)
            skipped += skips
            changes.append(change)
            _warn_of_skips(skips, N)
            if callback is not None and done > begun.updates:
                callback(number_of_pass, theta_0 + shared.scale(N))
    updates = N * passes - skipped
    theta = theta_0 + shared.scale(N)
    return Run(theta, shared, updates, skipped, failed, projections, passes, tuple(changes), False)


def _checked(records: Sequence[Any]) -> int:
    if not len(records):
        raise InputError("records", "an empty one", "a sequence of at least one record")
    return len(records)


def _site_of(model: Model[T], record: Any) -> Callable[[T], T]:
    """Return the record's site as a function of the cavity; a failure to compute it becomes NaN."""

    def site(cavity: T) -> T:
        try:
            return model.site(record, cavity)
        except (ArithmeticError, ValueError):
            return cavity.scale(math.nan)

    return site


def _order(sampling: str, N: int, rng: np.random.Generator) -> list[int]:
    if sampling == "uniform":
        return cast(list[int], rng.integers(N, size=N).tolist())
    return cast(list[int], rng.permutation(N).tolist()) if sampling == "shuffle" else list(range(N))


def _scales(theta: Natural, sigma: float | tuple[float, ...], C: float, N: int, gamma: float, mode: ClipMode) -> Floats:
    """Return the standard deviation of the noise of each natural parameter."""
    blocks = theta.blocks(mode)
    each = sigma if isinstance(sigma, tuple) else (sigma,) * len(blocks)
    if len(each) != len(blocks):
        raise InputError("sigma", f"{len(each)} numbers", f"one number, or one for each of {len(blocks)} blocks")
    scales = np.empty(theta.values.size)
    for block, multiplier in zip(blocks, each, strict=True):
        scales[block] = sep_noise_std(positive(multiplier, "sigma"), N, C, gamma)
    return scales


def _drawn(rng: np.random.Generator, like: T, scales: Floats, updates: int) -> Iterator[T]:
    rows = max(1, _NOISE_FLOATS // scales.size)
    for start in range(0, updates, rows):
        block = rng.standard_normal((min(rows, updates - start), scales.size))
        for row in like.mirror(block) * scales:
            yield like.with_values(row)


def _injected(noise_fn: Callable[[int, tuple[int, ...]], Any], like: T) -> Iterator[T]:
    k = 0
    while True:
        k += 1
        parts = [np.broadcast_to(noise_fn(k, part.shape), part.shape).ravel() for part in like.arrays().values()]
        yield like.with_values(like.mirror(np.concatenate(parts).astype(np.float64)))


def _warn_of_skips(skips: int, N: int) -> None:
    if skips > _FEW_SKIPS * N:
        from sklearn.exceptions import ConvergenceWarning

        message = (
            f"{skips} of {N} updates of a pass were skipped, because a cavity, a site or a posterior was not proper."
        )
        warnings.warn(message, ConvergenceWarning, stacklevel=3)
