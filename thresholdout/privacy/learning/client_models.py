"""What clients do in a round of federated averaging: gradient steps of a softmax model on their own records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError, InputTypeError

__all__ = ["ClientModels", "client_numbers"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

AT_ONCE = 2_000_000  # numbers of a part of the clients that are worked on together


def client_numbers(groups: Any, records: int) -> Ints:
    """Return each record's client, as numbers from 0 on; without groups, every record is one.

    Raises
    ------
    InputError, InputTypeError
        When there is not one group for each record, or some are missing.

    Examples
    --------
    >>> client_numbers(["b", "a", "b"], 3)
    array([1, 0, 1])
    """
    if groups is None:
        return np.arange(records)
    try:
        array = np.asarray(groups)
    except ValueError:
        raise InputError("groups", "rows of different lengths", "one group for each record") from None
    if array.shape != (records,):
        raise InputError("groups", f"an array of shape {array.shape}", f"{records} groups, one for each record")
    if any(value != value or value is None for value in array.tolist()):
        raise InputError("groups", "a missing value", "the client of every record")
    try:
        return np.asarray(np.unique(array, return_inverse=True)[1], dtype=np.int64)
    except TypeError:
        raise InputTypeError("groups", "values that cannot be sorted", "numbers, or texts, but not both") from None


@dataclass(frozen=True)
class _Alike:
    """Clients with about as many records: padded with zeros of weight 0 to the same power of two."""

    X: Floats
    wanted: Floats
    weights: Floats


class ClientModels:
    """The records of all clients, and the local steps that turn a model into their increments.

    Parameters
    ----------
    X : ndarray, shape (n, p)
        Records, with a column of ones where there is an intercept.
    labels : ndarray of int, shape (n,)
        Their classes, from 0 on.
    classes : int
        How many there are.
    clients : ndarray of int, shape (n,)
        Each record's client, from 0 on.
    local_steps : int
        Gradient steps of each client in a round.
    learning_rate : float
        Of these steps.
    decay : ndarray, shape (p, 1)
        The penalty's gradient over the parameters; zero in the intercept's row.

    Notes
    -----
    How many zeros a client is padded with depends on its own records only. Clients are worked on side by side, and
    none of them enters another one's numbers.

    Examples
    --------
    >>> models = ClientModels(np.ones((3, 1)), np.array([0, 1, 1]), 2, np.array([0, 1, 1]), 1, 1.0, np.zeros((1, 1)))
    >>> models.increments(np.array([0, 1]), np.zeros(2)).tolist()
    [[0.5, -0.5], [-0.5, 0.5]]
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
            rows = order[np.minimum(starts[members, None] + slots, labels.size - 1)]
            wanted = np.eye(classes)[labels[rows]]
            weights = real / sizes[members, None]
            self._alike[kind] = _Alike(X[rows] * real[..., None], wanted, weights)

    def increments(self, drawn: Ints, theta: Floats) -> Floats:
        """Return the increments of some clients.

        Parameters
        ----------
        drawn : ndarray of int, shape (tau,)
            Which clients.
        theta : ndarray, shape (p * classes,)
            The model.

        Returns
        -------
        ndarray, shape (tau, p * classes)
            Not finite for a client whose steps diverge.
        """
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
