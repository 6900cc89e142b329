"""Addresses for those who look after a service."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from thresholdout.service.http.access import By
from thresholdout.service.http.answers import said
from thresholdout.service.http.metrics import CONTENT_TYPE_LATEST
from thresholdout.service.http.schemas import Health
from thresholdout.service.refusals import ServiceRefused

__all__ = ["router"]

router = APIRouter(tags=["operation"])


@router.get("/health", response_model=Health, responses={503: {"model": Health, "description": "It does not answer."}})
async def health(request: Request, response: Response) -> Any:
    """Return whether the service answers, as it was found within the last seconds; nothing waits for that."""
    found: Health = request.app.state.pulse.health()
    response.status_code = 200 if found.status == "ok" else 503
    return found


@router.get(
    "/metrics",
    response_class=Response,
    responses=said("no_key", "unknown_key", "forbidden", "stopping", "unavailable")
    | {200: {"description": "Numbers for Prometheus.", "content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request, by: By) -> Response:
    """Return counts and times of requests, for viewers and administrators."""
    if not by.key or by.role == "team":
        raise ServiceRefused("forbidden" if by.key else "no_key")
    return Response(request.app.state.metrics.text(), media_type=CONTENT_TYPE_LATEST)
