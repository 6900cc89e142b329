"""The parameters that every address needs: the service, the caller, and refusals as responses of fixed text."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import Depends, FastAPI, Request, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException

from thresholdout.service.http.admission import Admission
from thresholdout.service.http.json_schemas import Refused
from thresholdout.service.limits import Limits
from thresholdout.service.refusals import REFUSALS, ServiceRefused
from thresholdout.service.schemas import Principal

if TYPE_CHECKING:
    from thresholdout.service.evaluation import EvaluationService

__all__ = ["By", "Has", "Served", "answer_refusals", "refusal", "said"]

# Codes of errors that the framework raises itself.
_OF_STATUS: Final = {404: "not_found", 405: "method", 413: "too_large", 415: "unsupported"}
# Bounds of the response to a request with many or long wrong fields.
_MOST_ERRORS: Final = 10
_LONGEST: Final = 100


def refusal(refused: ServiceRefused, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return the response of a refusal.

    Examples
    --------
    >>> said = refusal(ServiceRefused("quota", retry_after=60, limit=20))
    >>> said.status_code, said.headers["retry-after"]
    (429, '60')
    """
    sent = dict(headers or {})
    if refused.retry_after is not None:
        sent["Retry-After"] = str(refused.retry_after)
    if refused.status == 401:
        sent["WWW-Authenticate"] = "Bearer"
    body = {"code": refused.code, "text": REFUSALS[refused.code].text, "details": refused.details}
    return JSONResponse(body, refused.status, headers=sent)


def said(*codes: str) -> dict[int | str, dict[str, Any]]:
    """Return the statuses of refusals for the OpenAPI document, with their texts.

    Examples
    --------
    >>> said("quota", "exhausted")[429]["description"].count("quota")
    1
    """
    found: dict[int | str, dict[str, Any]] = {}
    for code in codes:
        refused = REFUSALS[code]
        one = found.setdefault(refused.status, {"model": Refused, "description": ""})
        one["description"] = f"{one['description']}\n\n`{code}`: {refused.text}".strip()
    return found


def answer_refusals(app: FastAPI) -> None:
    """Answer every refusal and every request error of an application in this form, and note its code at the request."""

    async def refused(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, ServiceRefused)
        return noted(request, error)

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return noted(request, ServiceRefused("bad_request", errors=_places(error)))

    async def other(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        code = _OF_STATUS.get(error.status_code, "bad_request" if error.status_code < 500 else "unavailable")
        return noted(request, ServiceRefused(code), error.headers)

    def noted(request: Request, error: ServiceRefused, headers: Mapping[str, str] | None = None) -> JSONResponse:
        request.state.refused = error.code
        _let_go(error)
        return refusal(error, headers)

    app.add_exception_handler(ServiceRefused, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, other)


def _let_go(error: BaseException | None) -> None:
    """Clear the frames of an error, which would keep tables in memory until garbage collection."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error.__traceback__ = None
        behind, error.__context__, error.__cause__ = error.__context__, None, None
        error = behind


def _places(error: RequestValidationError) -> list[dict[str, str]]:
    """Return the places and rules at which a request is not as documented, without any of its content."""
    return [
        {"where": ".".join(str(part)[:_LONGEST] for part in one["loc"]), "rule": str(one["type"])}
        for one in error.errors()[:_MOST_ERRORS]
    ]


# Characters of a bearer token: an API token has 60, and a longer text is not hashed.
_LONGEST_KEY = 200

_bearer = HTTPBearer(auto_error=False, scheme_name="token", description="An API token, as the service printed it once.")


@dataclass(frozen=True, slots=True)
class Served:
    """The service, the admission control and the limits of an application."""

    service: EvaluationService
    admission: Admission
    limits: Limits


def _served(request: Request) -> Served:
    found: Served = request.app.state.served
    return found


async def _principal(
    request: Request,
    has: Annotated[Served, Depends(_served)],
    sent: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
) -> Principal:
    """Return the holder of a request's API token; a visitor where it has none."""
    if sent is None and "authorization" not in request.headers:
        by = await has.admission.read(has.service.authenticate, None)
    elif sent is None or not 0 < len(sent.credentials) <= _LONGEST_KEY:
        raise ServiceRefused("unknown_token")
    else:
        by = await has.admission.read(has.service.authenticate, sent.credentials)
    request.state.by = by
    return by


# Parameter of an address that uses the service.
Has = Annotated[Served, Depends(_served)]

# Parameter of an address that depends on the caller.
By = Annotated[Principal, Depends(_principal)]
