"""A question whose values an engine counts: a scan that can fail for nobody's value, then what is read from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Scan", "scanned"]

TotalsT = TypeVar("TotalsT")


class Scan(Generic[TotalsT]):
    """What computes a question on the holdout, in two steps.

    The first one lets an engine count. Questions are made of operations that no value of a record can make fail
    (`thresholdout.data.parts.expressions`), so whether it fails is no function of the records, and nothing is charged.
    The second one is a function of the counts; where it fails, that is charged like any failure on the holdout.
    PROOFS.md, "Failures".

    Parameters
    ----------
    count : callable
        Returns the counts. Secret.
    read : callable
        From the counts to what the mechanism needs. Secret.
    """

    __slots__ = ("_count", "_counted", "_read")

    def __init__(self, count: Callable[[], TotalsT], read: Callable[[TotalsT], Any]) -> None:
        self._count = count
        self._read = read
        self._counted: TotalsT | None = None

    def run(self) -> None:
        """Let the engine count, once.

        Raises
        ------
        EngineFailed
            When it fails.
        """
        if self._counted is None:
            self._counted = self._count()

    def __call__(self) -> Any:
        """Return what the mechanism needs."""
        self.run()
        assert self._counted is not None
        return self._read(self._counted)


def scanned(*questions: Callable[[], Any]) -> None:
    """Run the scans among what computes questions, before anything can be charged."""
    for question in questions:
        if isinstance(question, Scan):
            question.run()
