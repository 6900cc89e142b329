"""Errors of a client: the refusals of a service by kind.

::

    ServiceError (ThresholdoutError)    .code, .text, .details, .status, .retry_after
    ├── TokenRefused                    the API token is missing, unknown, revoked, or for something else
    ├── NothingThere                    no such holdout or submission, or none that this API token may see
    ├── BadRequest                      the table or an option cannot be used; free of charge
    ├── Conflict                        the service is in another state: closed, a used key, no champion
    ├── LimitReached                    a quota, an allowance, a rate or the holdout itself: no answer, no charge
    └── ServiceUnavailable              not reached, busy, or stopped, until the retry policy ended
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from thresholdout.errors import ThresholdoutError

__all__ = [
    "BadRequest",
    "Conflict",
    "LimitReached",
    "NothingThere",
    "ServiceError",
    "ServiceUnavailable",
    "TokenRefused",
    "refusal",
]


class ServiceError(ThresholdoutError):
    """Raised when an evaluation service refuses a request or cannot be reached.

    This is the base class of all errors that a `Client` receives from a service. The subclasses tell the kind of
    refusal: `TokenRefused`, `NothingThere`, `BadRequest`, `Conflict`, `LimitReached` and `ServiceUnavailable`. All
    have the same attributes.

    Attributes
    ----------
    code : str
        Code of the refusal, such as ``"quota"``. It is empty if the service itself did not answer.
    text : str
        Message of the service in words.
    status : int
        HTTP status of the response, or 0 if there was no response.
    details : dict
        Facts about the refusal, such as the row and the column of a bad value, or the limit that was reached. Empty if
        the service sent none.
    retry_after : float or None
        Number of seconds after which the service would accept the same request. None if the service did not say.

    Examples
    --------
    >>> error = LimitReached("quota", "This team has used its submissions.", 429, {"limit": 20}, 3600)
    >>> isinstance(error, ServiceError), error.code, error.details["limit"]
    (True, 'quota', 20)
    """

    def __init__(
        self,
        code: str,
        text: str,
        status: int = 0,
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.code = code
        self.text = text
        self.status = status
        self.details = dict(details or {})
        self.retry_after = retry_after
        more = "; ".join(f"{name}: {value}" for name, value in self.details.items())
        super().__init__(f"{text} ({more})" if more else text)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.code, self.text, self.status, self.details, self.retry_after))


class TokenRefused(ServiceError):
    """Raised when the API token is missing, unknown, revoked, or does not allow the request.

    The request is not charged. Ask the administrator of the service for a token of the right role.

    Examples
    --------
    >>> print(TokenRefused("unknown_token", "This API token is unknown, or was revoked.", 401))
    This API token is unknown, or was revoked.
    """


class NothingThere(ServiceError):
    """Raised when a holdout or submission does not exist, or this API token may not see it.

    The service does not reveal which of the two is the case.

    Examples
    --------
    >>> NothingThere("not_found", "Nothing was found at this address, or this API token may not see it.", 404).status
    404
    """


class BadRequest(ServiceError):
    """Raised when the table of predictions or an option cannot be used.

    The request is not charged. `details` names the position of the fault, such as its row and column.

    Examples
    --------
    >>> print(BadRequest("bad_table", "The table cannot be used.", 400, {"row": 3, "column": "id"}))
    The table cannot be used. (row: 3; column: id)
    """


class Conflict(ServiceError):
    """Raised when the state of the service does not allow the request.

    Examples are a closed holdout, an Idempotency-Key that was used for other content, or a missing champion.

    Examples
    --------
    >>> Conflict("closed", "This holdout accepts no more submissions.", 409).code
    'closed'
    """


class LimitReached(ServiceError):
    """Raised when a quota, an allowance, a rate limit or the budget of the holdout is used up.

    The request is neither answered nor charged. `retry_after` says when the same request would be accepted, if ever.

    Examples
    --------
    >>> LimitReached("quota", "This team has used its submissions.", 429, retry_after=3600).retry_after
    3600
    """


class ServiceUnavailable(ServiceError):
    """Raised when the service could not be reached, was busy or was stopping until the retry policy ended.

    Nothing is lost: the same call again has the same Idempotency-Key, and is charged only once.

    Examples
    --------
    >>> ServiceUnavailable("", "no answer").status
    0
    """


# Any other status belongs to a service that cannot be used now.
_BY_STATUS: Final[dict[int, type[ServiceError]]] = {
    400: BadRequest,
    401: TokenRefused,
    403: TokenRefused,
    404: NothingThere,
    405: BadRequest,
    409: Conflict,
    411: BadRequest,
    413: BadRequest,
    415: BadRequest,
    422: BadRequest,
    429: LimitReached,
}


def refusal(
    status: int, code: str, text: str, details: Mapping[str, Any] | None = None, retry_after: float | None = None
) -> ServiceError:
    """Return the error of an HTTP response.

    Examples
    --------
    >>> refusal(409, "key_used", "This Idempotency-Key was used for other content.")
    Conflict('This Idempotency-Key was used for other content.')
    """
    return _BY_STATUS.get(status, ServiceUnavailable)(code, text, status, details, retry_after)
