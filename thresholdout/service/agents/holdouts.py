"""Holdouts as agents query them: of a service in this process, or of a remote service through the client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from thresholdout.client.errors import ServiceError
from thresholdout.client.tables import Table, content_key, options_of
from thresholdout.service.refusals import REFUSALS, ServiceRefused
from thresholdout.service.schemas import Principal

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from thresholdout.client import Client
    from thresholdout.client.received import Holdout as Received
    from thresholdout.client.received import Submission as ReceivedSubmission
    from thresholdout.service.schemas import Holdout, Submission

__all__ = ["Holdouts", "RemoteHoldouts", "Service", "ServiceHoldouts"]

# Seconds for which a tool waits for an answer before it reports "running".
_WAIT: Final = 20.0


class Service(Protocol):
    """The methods that agents use of a service in this process."""

    def authenticate(self, text: str | None) -> Principal:
        """Return the holder of an API token."""

    def holdouts(self, by: Principal) -> Sequence[Holdout]:
        """Return the holdouts that a principal may see."""

    def holdout(self, by: Principal, name: str) -> Holdout:
        """Return one holdout."""

    def admit(self, by: Principal, name: str) -> Holdout:
        """Raise if every table would be refused now."""

    def submit(
        self,
        by: Principal,
        name: str,
        predictions: pd.DataFrame,
        *,
        idempotency_key: str,
        expected: float | None = None,
        title: str = "",
        wait: float | None = None,
    ) -> Submission:
        """Query a score."""

    def compare(
        self,
        by: Principal,
        name: str,
        predictions: pd.DataFrame,
        *,
        idempotency_key: str,
        expected: float | None = None,
        title: str = "",
        wait: float | None = None,
    ) -> Submission:
        """Query whether predictions are better than the champion."""

    def history(self, by: Principal, name: str, *, after: int = 0, count: int = 100) -> Sequence[Submission]:
        """Return the team's own submissions."""

    def failed(self, by: Principal, name: str) -> None:
        """Count a table that was refused."""


class Holdouts(Protocol):
    """The queries of an agent; every refusal is a `ServiceRefused`."""

    def all(self) -> Sequence[Holdout | Received]:
        """Return the visible holdouts."""

    def one(self, name: str) -> Holdout | Received:
        """Return one holdout."""

    def submit(self, name: str, table: Table, *, expected: float | None, title: str) -> Submission | ReceivedSubmission:
        """Query a score."""

    def compare(
        self, name: str, table: Table, *, expected: float | None, title: str
    ) -> Submission | ReceivedSubmission:
        """Query whether predictions are better than the champion."""

    def history(self, name: str, after: int, count: int) -> Sequence[Submission | ReceivedSubmission]:
        """Return the team's own submissions."""


class ServiceHoldouts:
    """The holdouts of a service in this process; `who` returns the caller and runs in the caller's thread."""

    def __init__(
        self,
        service: Service,
        who: Callable[[], Principal],
        read: Callable[[bytes, str], pd.DataFrame],
    ) -> None:
        self._service = service
        self._who = who
        self._read = read

    def all(self) -> Sequence[Holdout]:
        """Return the visible holdouts."""
        return self._service.holdouts(self._who())

    def one(self, name: str) -> Holdout:
        """Return one holdout."""
        return self._service.holdout(self._who(), name)

    def submit(self, name: str, table: Table, *, expected: float | None, title: str) -> Submission:
        """Query a score."""
        by = self._who()
        read, key = self._taken(by, "submissions", name, table, expected, title)
        return self._service.submit(by, name, read, idempotency_key=key, expected=expected, title=title, wait=_WAIT)

    def compare(self, name: str, table: Table, *, expected: float | None, title: str) -> Submission:
        """Query whether predictions are better than the champion."""
        by = self._who()
        read, key = self._taken(by, "comparisons", name, table, expected, title)
        return self._service.compare(by, name, read, idempotency_key=key, expected=expected, title=title, wait=_WAIT)

    def history(self, name: str, after: int, count: int) -> Sequence[Submission]:
        """Return the team's own submissions."""
        return self._service.history(self._who(), name, after=after, count=count)

    def _taken(
        self, by: Principal, kind: str, name: str, table: Table, expected: float | None, title: str
    ) -> tuple[pd.DataFrame, str]:
        """Return a table and the key of its content; count a table that cannot be read."""
        self._service.admit(by, name)
        try:
            predictions = self._read(table.body, table.content_type)
        except ServiceRefused:
            self._service.failed(by, name)
            raise
        return predictions, content_key(kind, name, table, options_of(expected, title))


class RemoteHoldouts:
    """The holdouts of a remote service."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def all(self) -> Sequence[Received]:
        """Return the visible holdouts."""
        with _refusals():
            return self._client.holdouts()

    def one(self, name: str) -> Received:
        """Return one holdout."""
        with _refusals():
            return self._client.status(name)

    def submit(self, name: str, table: Table, *, expected: float | None, title: str) -> ReceivedSubmission:
        """Query a score."""
        with _refusals():
            return self._client.submit(name, table, expected=expected, title=title)

    def compare(self, name: str, table: Table, *, expected: float | None, title: str) -> ReceivedSubmission:
        """Query whether predictions are better than the champion."""
        with _refusals():
            return self._client.compare(name, table, expected=expected, title=title)

    def history(self, name: str, after: int, count: int) -> Sequence[ReceivedSubmission]:
        """Return the team's own submissions."""
        with _refusals():
            return self._client.history(name, after=after, count=count)


@contextmanager
def _refusals() -> Iterator[None]:
    """Translate refusals of the remote service into the texts of this one."""
    try:
        yield
    except ServiceError as error:
        code = error.code if error.code in REFUSALS else "unavailable"
        after = None if error.retry_after is None else round(error.retry_after)
        refused = ServiceRefused(code, retry_after=after)
        refused.details = error.details
        raise refused from None
