"""The address at which optimisers evaluate candidates: predictions in, ``{score, info, budget}`` out."""

from __future__ import annotations

import json
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from thresholdout.client.evaluation import evaluation_of
from thresholdout.client.tables import Table, content_key
from thresholdout.service.http.access import By, Has
from thresholdout.service.http.answers import said
from thresholdout.service.http.bodies import spooled
from thresholdout.service.http.submission_routes import Name, is_of_format
from thresholdout.service.http.uploads import CSV, read_upload
from thresholdout.service.refusals import ServiceRefused
from thresholdout.service.shown import Submission

__all__ = ["router"]

_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {"candidate": {"type": "string", "description": "Predictions, as CSV."}},
                    "required": ["candidate"],
                },
                "example": {"candidate": "id,prediction\nr1,1\nr2,0\n"},
            }
        },
    }
}
_REFUSALS: Final = (
    "bad_request", "bad_table", "bad_name", "no_key", "unknown_key", "forbidden", "not_found", "too_slow", "closed",
    "too_large", "unsupported", "quota", "rate", "allowance", "exhausted", "busy", "stopping", "unavailable",
)  # fmt: skip


class Evaluation(BaseModel):
    """What a candidate is worth: more is better. Of intervals it is the certified end, of verdicts see the guide."""

    score: float | None = Field(examples=[0.86])
    info: dict[str, Any] = Field(examples=[{"state": "answered", "low": 0.86, "high": 0.91, "repeated": False}])
    budget: dict[str, Any] = Field(examples=[{"exhausted": False, "max_evals": 20, "days": 7.0, "remaining": None}])


router = APIRouter(prefix="/v1/holdouts/{name}", tags=["submissions"])


@router.post(
    "/evaluate",
    response_model=Evaluation,
    responses={202: {"model": Evaluation, "description": "It is stored and goes on; ask again."}, **said(*_REFUSALS)},
    openapi_extra=_BODY,
)
async def evaluate(request: Request, has: Has, by: By, name: Name) -> Response:
    """Evaluate the predictions of a candidate that was run elsewhere; the same ones again are charged nothing."""
    holdout = await has.intake.read(has.service.admit, by, name)

    def answered(content: bytes) -> Submission:
        table = Table(_candidate(content).encode(errors="replace"), CSV)
        predictions = read_upload(table.body, table.content_type, has.limits.of_holdout(holdout.rows))
        key = content_key("submissions", name, table, {})
        return has.service.submit(by, name, predictions, idempotency_key=key, wait=has.limits.wait)

    async with has.intake.place(by.key):
        try:
            async with spooled(request, has.limits.most_bytes) as body, has.intake.room(by.key, body.size):
                found = await has.intake.work(lambda: answered(body.file.read()))
        except ServiceRefused as refused:
            if refused.code == "too_large" or is_of_format(refused):
                await has.intake.read(has.service.failed, by, name)
            raise
    return JSONResponse(evaluation_of(holdout, found), 202 if found.state in ("running", "interrupted") else 200)


def _candidate(content: bytes) -> str:
    """Return the candidate of a request."""
    try:
        sent = json.loads(content)
    except (ValueError, RecursionError):
        sent = None
    candidate = sent.get("candidate") if isinstance(sent, dict) else None
    if not isinstance(candidate, str):
        raise ServiceRefused("bad_request", argument="body", expected="JSON with 'candidate', a text")
    return candidate
