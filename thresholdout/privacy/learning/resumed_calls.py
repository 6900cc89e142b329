"""Estimators whose calls can be stopped in the middle: the rest of one is taken later, as it was charged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from thresholdout.errors import InputError

__all__ = ["ResumedCalls"]


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
