"""What every address needs: the service, room for what is sent, and who asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from thresholdout.service.http.intake import Intake
from thresholdout.service.limits import Limits
from thresholdout.service.refusals import ServiceRefused
from thresholdout.service.shown import Principal

if TYPE_CHECKING:
    from thresholdout.service.evaluation import EvaluationService

__all__ = ["By", "Has", "Served"]

_LONGEST_KEY = 200

_bearer = HTTPBearer(auto_error=False, scheme_name="key", description="A key, as the service printed it once.")


@dataclass(frozen=True, slots=True)
class Served:
    """What an application serves.

    Attributes
    ----------
    service : EvaluationService
        The service without HTTP.
    intake : Intake
        Room and threads of this process.
    limits : Limits
        Of uploads.
    """

    service: EvaluationService
    intake: Intake
    limits: Limits


def _served(request: Request) -> Served:
    found: Served = request.app.state.served
    return found


async def _principal(
    request: Request,
    has: Annotated[Served, Depends(_served)],
    sent: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
) -> Principal:
    """Return who holds the key of a request; a visitor where it has none."""
    if sent is None and "authorization" not in request.headers:
        by = await has.intake.read(has.service.authenticate, None)
    elif sent is None or not 0 < len(sent.credentials) <= _LONGEST_KEY:
        raise ServiceRefused("unknown_key")
    else:
        by = await has.intake.read(has.service.authenticate, sent.credentials)
    request.state.by = by
    return by


Has = Annotated[Served, Depends(_served)]
"""The parameter of an address that uses the service."""

By = Annotated[Principal, Depends(_principal)]
"""The parameter of an address that depends on who asks."""
