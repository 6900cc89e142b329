"""Addresses for those who look after a service."""

from __future__ import annotations

import logging
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Path, Request, Response

from thresholdout.errors import ThresholdoutError
from thresholdout.service.http.access import By, Has, Served, said
from thresholdout.service.http.health import CONTENT_TYPE_LATEST
from thresholdout.service.http.json_schemas import Live, NewToken, Ready, ReceiptKeys, TokenList, TokenMade, TokenView
from thresholdout.service.receipts.signing_keys import published_keys
from thresholdout.service.refusals import ServiceRefused

__all__ = ["key_router", "router"]

_REFUSALS: Final = ("no_token", "unknown_token", "forbidden", "stopping", "unavailable")

key_router = APIRouter(prefix="/v1/keys", tags=["keys"])


@key_router.get("", response_model=TokenList, responses=said(*_REFUSALS))
async def keys(has: Has, by: By) -> Any:
    """Return all API tokens, the oldest first; none of their texts is kept."""
    return {"keys": await has.admission.read(has.service.keys, by)}


@key_router.post("", status_code=201, response_model=TokenMade, responses=said(*_REFUSALS, "bad_request", "bad_name"))
async def new_key(has: Has, by: By, new: Annotated[NewToken, Body()]) -> Any:
    """Make an API token; its text is in this answer, and nowhere else."""
    text, key = await has.admission.read(has.service.new_key, by, new.role, new.team, new.note)
    return {"text": text, "key": key}


@key_router.delete("/{id}", response_model=TokenView, responses=said(*_REFUSALS, "bad_request", "not_found"))
async def revoke(
    has: Has, by: By, id: Annotated[str, Path(min_length=1, max_length=100, description="Of the API token.")]
) -> Any:
    """Revoke an API token."""
    return await has.admission.read(has.service.revoke, by, id)


_log = logging.getLogger("thresholdout.service.http")

router = APIRouter(tags=["operation"])


@router.get("/live", response_model=Live)
async def live() -> Any:
    """Return that this process runs, whatever its database does: an orchestrator starts another one otherwise."""
    return {"status": "ok"}


@router.get(
    "/ready",
    response_model=Ready,
    response_model_exclude_none=True,
    responses={503: {"model": Ready, "description": "It does not answer."}},
)
async def ready(request: Request, response: Response) -> Any:
    """Return whether answers can be stored, as it was found within the last seconds; nothing waits for that.

    "unavailable" where the database can be neither read nor written (a full disk), "damaged" where a holdout failed its
    check when the service started.
    """
    found: Ready = request.app.state.health.ready()
    response.status_code = 503 if found.status == "unavailable" else 200
    return found


@router.get("/v1/receipt-key", response_model=ReceiptKeys, responses=said("stopping", "unavailable"))
async def receipt_key(has: Has) -> Any:
    """Return the public keys for `thresholdout ledger receipt verify`, as JSON Web Keys, the present one first."""
    return await has.admission.read(_published, has)


def _published(has: Served) -> dict[str, Any]:
    try:
        return published_keys(has.service.ledger)
    except ThresholdoutError as error:
        _log.error("the public keys were not read: %s", type(error).__name__)
    raise ServiceRefused("unavailable", retry_after=5)


@router.get(
    "/metrics",
    response_class=Response,
    responses=said("no_token", "unknown_token", "forbidden", "stopping", "unavailable")
    | {200: {"description": "Numbers for Prometheus.", "content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request, by: By) -> Response:
    """Return counts and times of requests, for viewers and administrators."""
    if not by.key or by.role == "team":
        raise ServiceRefused("forbidden" if by.key else "no_token")
    return Response(request.app.state.metrics.text(), media_type=CONTENT_TYPE_LATEST)
