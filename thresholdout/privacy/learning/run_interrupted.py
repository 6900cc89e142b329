"""What becomes of a private run that is interrupted: what it has is kept, and what was charged can be taken later."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from thresholdout.errors import InputError

__all__ = ["RunInterrupted", "check_alike", "kept_if_interrupted"]


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
    thresholdout.errors.InputError: batch_size: 20; expected: 10, as in the interrupted run
    """
    if before != now:
        raise InputError(name, f"{now}", f"{before}, as in the interrupted run")
