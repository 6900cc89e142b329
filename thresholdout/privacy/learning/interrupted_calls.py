"""Refused calls change nothing; interrupted calls keep their finished steps, and can be resumed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from thresholdout.errors import InputError

__all__ = ["ResumedCalls", "RunInterrupted", "UnchangedIfRefused", "check_alike", "kept_if_interrupted"]


class RunInterrupted(KeyboardInterrupt):
    """A run was interrupted between two steps; its finished part is in `run`, which resumes it.

    The run was charged for all its steps when it began, as whoever stops it may have seen iterates. So the remaining
    steps cost nothing more, once: taking them twice with fresh noise would be two releases.
    """

    def __init__(self, run: Any) -> None:
        super().__init__("The run was interrupted. Its finished part is kept and can be resumed.")
        self.run = run


@contextmanager
def kept_if_interrupted(kept: Callable[[], Any]) -> Iterator[None]:
    """Turn an interrupt inside into a `RunInterrupted` with the result of a function."""
    try:
        yield
    except KeyboardInterrupt as stopped:
        raise RunInterrupted(kept()) from stopped


def check_alike(name: str, before: Any, now: Any) -> None:
    """Refuse to resume with another value than the run was charged for."""
    if before != now:
        raise InputError(name, f"{now}", f"{before}, as in the interrupted run")


_OF_DATA = {"n_features_in_", "feature_names_in_"}


class UnchangedIfRefused:
    """Restore the recorded number and names of features when a call ends with an error before anything was charged.

    scikit-learn records them where it checks the data; a learner checks more after that, and sets all else together
    with the charge. So a call that changed only these attributes was not charged, and nobody has seen a result of it. A
    call that changed more is kept, with its charge.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> model = LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> with UnchangedIfRefused(model):
    ...     model.n_features_in_ = 3
    ...     raise ValueError("refused")
    Traceback (most recent call last):
    ValueError: refused
    >>> model.n_features_in_
    1
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator, self.before = estimator, dict(vars(estimator))

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, *_: object) -> None:
        now, before = vars(self.estimator), self.before
        # Identity, not equality: a learner that sets anything sets a new object.
        changed = {name for name in now.keys() | before.keys() if now.get(name) is not before.get(name)}
        if kind is not None and changed <= _OF_DATA:
            self.estimator.__dict__ = before


class ResumedCalls(ABC):
    """A call keeps the parameters that it was charged for; its rest reads no current parameter.

    `_stopped` holds them. It is set together with all other fitted attributes, and is None after a finished call.
    """

    _stopped: Any

    def resume(self, X: Any, y: Any = None) -> Self:
        """Take the remaining steps of an interrupted `fit` or `partial_fit`.

        The whole call was charged when it began, so its remaining steps cost no more privacy, once. All parameters are
        those that the call began with, even if they were changed since.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Features of the interrupted call, in the same order of records. In another order, one pass could use a
            record twice at the price of once.
        y : array_like of shape (n,), optional
            Targets or labels of the interrupted call, in the same order.

        Returns
        -------
        object
            The estimator itself. With an integer as `random_state`, the model equals that of an uninterrupted call.

        Raises
        ------
        InputError
            If no call was interrupted, or if the number of records differs where it is public.

        Notes
        -----
        A second copy of the interrupted estimator that is resumed, too, is a further release that no report includes.
        """
        self._rest(self._call_to_resume(), X, y)
        return self

    def _call_to_resume(self) -> Any:
        check_is_fitted(self, "_stopped")
        if self._stopped is None:
            seen, advice = "no call that was interrupted", "Call fit or partial_fit for a new one."
            raise InputError("resume", seen, "called after an interrupted call", advice)
        return self._stopped

    @abstractmethod
    def _rest(self, call: Any, X: Any, y: Any) -> None:
        """Take the remaining steps of a call."""
