"""A question whose values an engine counts: a scan that can fail for nobody's value, then what is read from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from thresholdout.errors import EngineFailed

__all__ = ["Scan", "scanned"]

TotalsT = TypeVar("TotalsT")


class Scan(Generic[TotalsT]):
    """What computes a question on the holdout, in two steps.

    The first one lets an engine count. Questions are made of operations that no value of a record can make fail
    (`thresholdout.data.parts.expressions`), so whether it fails is no function of the records, and nothing is charged;
    but for a second pass, which only some values need, and which is charged where it fails. The second step is a
    function of the counts; where it fails, that is charged like any failure on the holdout. PROOFS.md, "Failures".

    Parameters
    ----------
    count : callable
        Returns the counts. Secret.
    read : callable
        From the counts to what the mechanism needs. Secret.
    """

    __slots__ = ("_count", "_counted", "_late", "_read")

    def __init__(self, count: Callable[[], TotalsT], read: Callable[[TotalsT], Any]) -> None:
        self._count = count
        self._read = read
        self._counted: TotalsT | None = None
        self._late: EngineFailed | None = None

    def run(self) -> None:
        """Let the engine count, once.

        Raises
        ------
        EngineFailed
            When it fails in its first pass.
        """
        if self._counted is not None:
            return
        self._late = None
        try:
            self._counted = self._count()
        except EngineFailed as error:
            if not error.late:
                raise
            self._late = error

    def __call__(self) -> Any:
        """Return what the mechanism needs."""
        if self._late is not None:
            raise self._late
        assert self._counted is not None
        return self._read(self._counted)


def scanned(*questions: Callable[[], Any]) -> None:
    """Run the scans among what computes questions, before anything can be charged."""
    for question in questions:
        if isinstance(question, Scan):
            question.run()
