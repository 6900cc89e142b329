"""Federated averaging whose rounds are private about each client, with all the records it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import chosen, count, positive
from thresholdout.privacy.accounting.events.learning_steps import FederatedRound
from thresholdout.privacy.accounting.iterative_learners import federated_privacy
from thresholdout.privacy.accounting.results import Composition
from thresholdout.privacy.learning.bounded_mean import check_bound, noisy_mean
from thresholdout.privacy.learning.interrupted_calls import RunInterrupted, check_alike
from thresholdout.privacy.learning.iterates import PrivateIterates, check_noise, draw, run_steps, starting_point
from thresholdout.privacy.learning.random_streams import is_seeded, streams

__all__ = ["NON_FINITE", "ClientModels", "FederatedRun", "client_numbers", "run_federated"]

Floats = NDArray[np.float64]

Ints = NDArray[np.int64]

AT_ONCE = 2_000_000  # numbers in memory for the clients that are trained side by side, about 16 MB an array


def client_numbers(groups: Any, records: int) -> Ints:
    """Return each record's client, numbered from 0; without groups, each record is a client of its own."""
    if groups is None:
        return np.arange(records)
    try:
        array = np.asarray(groups)
    except ValueError:
        raise InputError("groups", "rows of different lengths", "one client for each record") from None
    if array.shape != (records,):
        raise InputError("groups", f"an array of shape {array.shape}", f"one client for each of {records} records")
    if any(value != value or value is None for value in array.tolist()):
        raise InputError("groups", "a missing value", "the client of every record")
    try:
        return np.asarray(np.unique(array, return_inverse=True)[1], dtype=np.int64)
    except TypeError:
        raise InputTypeError("groups", "values that cannot be sorted", "all numbers or all strings") from None


@dataclass(frozen=True)
class _Alike:
    """Clients with about as many records, padded with zeros of weight 0 to the same power of two."""

    X: Floats
    wanted: Floats
    weights: Floats


class ClientModels:
    """The records of all clients, and the local steps that turn a model into their increments.

    `X` has a column of ones if there is an intercept. `labels` and `clients` count from 0. `decay` is the penalty's
    gradient over the parameters, shape (p, 1), zero for the intercept.

    The number of zeros that pad a client depends on its own records only. Clients are trained side by side; none enters
    another one's numbers.
    """

    def __init__(
        self,
        X: Floats,
        labels: Ints,
        classes: int,
        clients: Ints,
        local_steps: int,
        learning_rate: float,
        decay: Floats,
    ) -> None:
        self.shape = X.shape[1], classes
        self.local_steps = local_steps
        self.learning_rate = learning_rate
        self.decay = decay
        sizes = np.bincount(clients)
        self.count = sizes.size
        # Powers of two: at most half of the entries are padding, and few shapes occur.
        self._kind = np.ceil(np.log2(sizes)).astype(np.int64)
        self._place = np.empty(self.count, dtype=np.int64)
        self._alike: dict[int, _Alike] = {}
        order = np.argsort(clients, kind="stable")
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        for kind in np.unique(self._kind).tolist():
            members = np.flatnonzero(self._kind == kind)
            self._place[members] = np.arange(members.size)
            slots = np.arange(2**kind)
            real = slots < sizes[members, None]
            # Slots beyond a client's records repeat some record, and count with weight 0.
            rows = order[np.minimum(starts[members, None] + slots, labels.size - 1)]
            wanted = np.eye(classes)[labels[rows]]
            weights = real / sizes[members, None]
            self._alike[kind] = _Alike(X[rows] * real[..., None], wanted, weights)

    def increments(self, drawn: Ints, theta: Floats) -> Floats:
        """Return the increments of some clients."""
        found = np.empty((drawn.size, theta.size))
        for kind, alike in self._alike.items():
            places = np.flatnonzero(self._kind[drawn] == kind)
            step = max(1, AT_ONCE // (2**kind * max(self.shape)))
            for first in range(0, places.size, step):
                part = places[first : first + step]
                found[part] = self._moved(alike, self._place[drawn[part]], theta)
        return found

    def _moved(self, alike: _Alike, places: Ints, theta: Floats) -> Floats:
        X, wanted, weights = alike.X[places], alike.wanted[places], alike.weights[places, :, None]
        start = theta.reshape(self.shape)
        models = np.repeat(start[None], places.size, axis=0)
        # A client whose steps diverge has an increment that is not finite, which `noisy_mean` handles.
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(self.local_steps):
                scores = X @ models
                scores -= scores.max(axis=2, keepdims=True)
                np.exp(scores, out=scores)
                scores /= scores.sum(axis=2, keepdims=True)
                scores -= wanted
                scores *= weights
                gradient = X.transpose(0, 2, 1) @ scores + self.decay * models
                models -= self.learning_rate * gradient
            return (models - start).reshape(places.size, -1)


Client = TypeVar("Client")

NON_FINITE = ("raise", "zero")


@dataclass(frozen=True, eq=False, repr=False)
class FederatedRun(PrivateIterates):
    """Result of `run_federated`: all iterates, and their joint privacy loss for one client.

    The population are clients. `L` is the bound that increments were clipped to; `non_finite`, "raise" or "zero", is
    the treatment of increments that were not finite.
    """

    L: float
    non_finite: str

    @property
    def noise_multiplier(self) -> float:
        """Standard deviation of the noise on the sum of a round's increments, over the bound on each of them."""
        return self.sigma * self.batch_size

    def composition(
        self,
        delta: float,
        dt: float,
        *,
        formula: str = "corrected",
        method: str = "kov",
        neighbours: str = "replace",
    ) -> Composition:
        """Return `thresholdout.privacy.accounting.federated_privacy` of this run, whose arguments these are."""
        sizes = self.population, self.batch_size, self.charged, self.sigma
        return federated_privacy(*sizes, delta, dt, neighbours, formula, method=method)

    def _bound(self) -> float:
        return self.L

    def _step(self) -> FederatedRound:
        return FederatedRound(self.sigma, self.batch_size, self.population)

    def _words(self) -> tuple[str, str, tuple[str, ...]]:
        return "client", "the start and all iterates", federated_assumptions(self.non_finite)


def federated_assumptions(non_finite: str) -> tuple[str, ...]:
    """Return the assumptions about clients, beside the noise."""
    own = "each client's increment depends on its own records, the current iterate, and fresh coins only"
    if non_finite == "zero":
        return (own,)
    return own, "no increment of any possible client is infinite or NaN"


def run_federated(
    client_update: Callable[[Client, Floats], Any],
    clients: Sequence[Client],
    *,
    theta0: Any,
    T: int,
    batch_size: int,
    sigma: float,
    L: float,
    random_state: Any = None,
    non_finite: str = "raise",
    progress: bool = True,
    resume: FederatedRun | None = None,
) -> FederatedRun:
    """Run federated averaging on fresh subsets of clients, with noise on each mean increment.

    [He, Algorithm 2], read as ``theta <- theta + mean of clipped increments + Normal(0, L^2 sigma^2 I)``. The agnostic
    federated learning of [He] is this averaging, private about clients; nothing is minimised over the worst mixture of
    clients (defect D12). Neighbours differ in one client, so statements about new data are about new clients. Proofs
    are in FEDERATED.md.

    ``client_update(client, theta)`` returns an increment of shape (d,). It must depend on no other client, and `theta0`
    on none. `sigma` is the standard deviation of the noise on the *mean* increment, in units of L. An error about an
    increment that is not finite is outside the guarantee; ``non_finite="zero"`` leaves no such error.

    `resume` is the ``run`` of a `RunInterrupted`, with the same other arguments as then. The remaining steps cost
    nothing more. With an integer as `random_state` the result is that of an uninterrupted run; otherwise the remaining
    noise is fresh.
    """
    everyone = _clients(clients)
    N, tau, T = len(everyone), count(batch_size, "batch_size"), count(T, "T")
    if tau > N:
        raise InputError("batch_size", f"{tau}", f"at most {N}, the number of clients")
    sigma, L = positive(sigma, "sigma"), check_bound(L)
    check_noise(sigma, sigma * tau)
    non_finite = chosen(non_finite, "non_finite", NON_FINITE)
    if not callable(client_update):
        raise InputTypeError("client_update", f"a {type(client_update).__name__}", "a function")
    random = streams(random_state)
    if resume is not None:
        resume.check_resumed(T, N, tau, sigma, L)
        check_alike("non_finite", resume.non_finite, non_finite)
    done = None if resume is None else resume.trajectory
    start = starting_point(theta0, random.initial) if done is None else done[0]
    seeded = is_seeded(random_state) or (resume is not None and resume.seeded)

    def round_(_: int, theta: Floats) -> Floats:
        drawn = draw(random.sampling, N, tau)
        increments = np.empty((tau, start.size))
        for row, client in enumerate(drawn.tolist()):
            increments[row] = _increment(client_update(everyone[client], theta), start.size)
        # The noise comes first; everything else is a function of the noisy mean (FEDERATED.md, F3).
        options: dict[str, Any] = {"non_finite": non_finite, "name": "increments"}
        return np.asarray(theta + noisy_mean(increments, L, L * sigma, random.noise, **options))

    def replay() -> None:
        draw(random.sampling, N, tau)
        random.noise.standard_normal(start.size)

    try:
        trajectory = run_steps(start, T, round_, progress=progress, unit="rounds", done=done, replay=replay)
    except RunInterrupted as stopped:
        stopped.run = FederatedRun(stopped.run, N, tau, sigma, seeded, L, non_finite, planned=T)
        raise
    return FederatedRun(trajectory, N, tau, sigma, seeded, L, non_finite)


def _clients(value: Any) -> Sequence[Any]:
    if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, np.ndarray)):
        raise InputTypeError("clients", f"a {type(value).__name__}", "a sequence of clients")
    found = list(value)
    if not found:
        raise InputError("clients", "an empty one", "a sequence of at least one client")
    return found


def _increment(value: Any, size: int) -> Floats:
    array = np.asarray(value)
    if array.shape != (size,) or array.dtype.kind not in "iuf":
        seen = f"an array of shape {array.shape} and type {array.dtype}"
        raise InputError("client_update", seen, f"a function that returns numbers of shape ({size},)")
    return array.astype(np.float64)
