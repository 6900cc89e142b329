"""A call that is refused changes nothing; one that is interrupted keeps its steps, and the rest is taken later."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from thresholdout.errors import InputError

__all__ = ["ResumedCalls", "RunInterrupted", "UnchangedIfRefused", "check_alike", "kept_if_interrupted"]


class RunInterrupted(KeyboardInterrupt):
    """A run was interrupted between two steps; `run` is what it has, and what it is continued with.

    The run was charged for all its steps when it began, as whoever stops it may have seen iterates. So the steps that
    are left cost nothing more, once: to take them twice with fresh noise would be two releases.

    Attributes
    ----------
    run : object
        What was done; its type is that of the run.

    Examples
    --------
    >>> try:
    ...     raise RunInterrupted("the first steps")
    ... except KeyboardInterrupt as stopped:
    ...     print(stopped.run)
    the first steps
    """

    def __init__(self, run: Any) -> None:
        super().__init__("interrupted; what was done is kept, and can be resumed")
        self.run = run


@contextmanager
def kept_if_interrupted(kept: Callable[[], Any]) -> Iterator[None]:
    """Turn an interrupt of what is done inside into a `RunInterrupted` with what the function returns then."""
    try:
        yield
    except KeyboardInterrupt as stopped:
        raise RunInterrupted(kept()) from stopped


def check_alike(name: str, before: Any, now: Any) -> None:
    """Refuse to resume with another number or kind than what the run was charged for.

    Examples
    --------
    >>> check_alike("batch_size", 10, 20)
    Traceback (most recent call last):
    thresholdout.errors.InputError: batch_size must be 10, as in the interrupted run; got 20.
    """
    if before != now:
        raise InputError(name, f"{now}", f"{before}, as in the interrupted run")


_OF_DATA = {"n_features_in_", "feature_names_in_"}


class UnchangedIfRefused:
    """Take back what was noted of the data of a call that ends with an error before anything was charged.

    scikit-learn notes their number and names of features where it checks them; a learner checks more after that. A
    learner sets all else together with the charge. So if those are all that a call has changed, it was not charged, and
    nobody has seen anything of it; what has changed more is kept, and its charge with it.

    Parameters
    ----------
    estimator : object

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
        changed = {name for name in now.keys() | before.keys() if now.get(name) is not before.get(name)}
        if kind is not None and changed <= _OF_DATA:
            self.estimator.__dict__ = before


class ResumedCalls(ABC):
    """What was charged is a call with the parameters that it began with; so its rest reads no parameter of today.

    Whatever a call needs of its parameters is kept with it, in `_stopped`, which is set together with all else that is
    fitted; None where a call was finished.
    """

    _stopped: Any

    def resume(self, X: Any, y: Any = None) -> Self:
        """Take the steps that an interrupted call has left; it was charged for them, once.

        Parameters
        ----------
        X, y
            Those of the interrupted call, in their order: in another one a sweep could look at a record twice, for the
            price of once. All parameters are those that the call began with, also where they were changed since.

        Returns
        -------
        object
            Itself; with an integer as `random_state` as if the call had not been interrupted.

        Raises
        ------
        InputError
            When no call was interrupted, or there are other numbers of records than then, where these are public.

        Notes
        -----
        A copy that is resumed, too, is a further release, which no report knows.
        """
        self._rest(self._call_to_resume(), X, y)
        return self

    def _call_to_resume(self) -> Any:
        check_is_fitted(self, "_stopped")
        if self._stopped is None:
            raise InputError("resume", "no call that was interrupted", "one; a new one is begun by fit or partial_fit")
        return self._stopped

    @abstractmethod
    def _rest(self, call: Any, X: Any, y: Any) -> None:
        """Take the steps that are left of a call."""
