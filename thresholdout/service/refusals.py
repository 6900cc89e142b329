"""All refusals of the service: one fixed text for each code, the same over HTTP, to agents and on pages.

A text depends on the code alone, and its details on identities, positions and the format of the request: no value that
is computed with labels reaches it. Messages of this package's errors stay inside of the service.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from graphs.errors import ArgumentError
from thresholdout.errors import ThresholdoutError

__all__ = ["REFUSALS", "Refusal", "ServiceRefused", "details_of"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """HTTP status and text of a code."""

    status: int
    text: str


REFUSALS: Final[dict[str, Refusal]] = {
    "no_token": Refusal(401, "An API token is needed. Send it as 'Authorization: Bearer TOKEN'."),
    "unknown_token": Refusal(401, "This API token is unknown, or was revoked."),
    "forbidden": Refusal(403, "This API token does not permit this request."),
    "not_found": Refusal(404, "Nothing was found at this address, or this API token may not see it."),
    "bad_request": Refusal(400, "The request is not valid."),
    "bad_table": Refusal(400, "The table cannot be used. Nothing was charged."),
    "bad_name": Refusal(400, "A name is too long, or has a character that is not allowed."),
    "method": Refusal(405, "This address does not accept this method."),
    "too_slow": Refusal(408, "The request did not arrive in time. Send it again: it is charged once."),
    "name_taken": Refusal(409, "Another holdout already has this name, or these records."),
    "key_used": Refusal(409, "This Idempotency-Key was used for other content."),
    "closed": Refusal(409, "This holdout accepts no more submissions."),
    "hidden": Refusal(409, "Nothing is shown until this holdout is closed."),
    "no_incumbent": Refusal(409, "There is no champion to compare with yet."),
    "no_comparison": Refusal(409, "This holdout does not compare submissions."),
    "too_large": Refusal(413, "The table is larger than this service accepts. Nothing was charged."),
    "unsupported": Refusal(415, "Tables are text/csv or application/vnd.apache.parquet."),
    "quota": Refusal(429, "This team has used its submissions. Nothing was charged."),
    "rate": Refusal(429, "Too many tables sent with this API token were refused."),
    "allowance": Refusal(429, "This team's answers have released all that they are allowed to. Nothing was charged."),
    "exhausted": Refusal(429, "This holdout answers no more queries. Earlier answers stay valid."),
    "busy": Refusal(503, "The service is busy. Send the request again: it is charged once."),
    "stopping": Refusal(503, "The service is stopping. Send the request again: it is charged once."),
    "damaged": Refusal(503, "The ledger of this holdout failed its check, so no new submission is answered."),
    "unavailable": Refusal(503, "The database cannot be used now. Send the request again: it is charged once."),
}


class ServiceRefused(ThresholdoutError):
    """Raised when the service refuses a request.

    Attributes
    ----------
    code : str
        Reason of the refusal, one of `REFUSALS`, such as "bad_table" or "quota".
    retry_after : int or None
        Number of seconds after which the same request may be accepted, or None if waiting does not help.
    details : dict
        Facts about the refusal, such as the row and column of a bad value, or the limit that was reached. They depend
        on the request alone, never on a label of the holdout.
    status : int
        HTTP status with which the service refuses the request.
    """

    def __init__(self, code: str, *, retry_after: int | None = None, **details: Any) -> None:
        self.code = code
        self.retry_after = retry_after
        self.details = details
        super().__init__(REFUSALS[code].text)

    @property
    def status(self) -> int:
        """HTTP status."""
        return REFUSALS[self.code].status

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, (self.code, self.retry_after, self.details))


def details_of(error: ArgumentError) -> dict[str, Any]:
    """Return the details of a refusal that an argument causes."""
    found = {"argument": error.argument, "seen": error.seen, "expected": error.expected}
    return found | ({"advice": error.advice} if error.advice else {})


def _again(code: str, retry_after: int | None, details: dict[str, Any]) -> ServiceRefused:
    return ServiceRefused(code, retry_after=retry_after, **details)
