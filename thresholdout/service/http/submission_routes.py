"""Addresses of submissions, and of optimisers: predictions in, ``{score, info, budget}`` out."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from thresholdout.client.evaluation import evaluation_of
from thresholdout.client.tables import Table, content_key
from thresholdout.service.http.access import By, Has, Served, said
from thresholdout.service.http.admission import spooled
from thresholdout.service.http.json_schemas import SubmissionList, SubmissionView
from thresholdout.service.http.uploads import CSV, PARQUET, media_type, read_upload
from thresholdout.service.refusals import ServiceRefused
from thresholdout.service.schemas import Principal, Submission

__all__ = ["NAME", "TABLE_BODY", "Name", "is_of_format", "router"]

NAME: Final = r"^[a-z0-9][a-z0-9-]{0,62}$"

Name = Annotated[str, Path(pattern=NAME, description="Name of the holdout.", examples=["digits"])]
Identity = Annotated[str, Path(min_length=1, max_length=100, description="Id of the submission.")]

Expected = Annotated[
    float | None,
    Query(allow_inf_nan=False, description="The anticipated score or difference.", examples=[0.87]),
]
Title = Annotated[str, Query(max_length=100, description="The team's name of the submission.", examples=["forest"])]
RequestKey = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[!-~]([ -~]*[!-~])?$",
        description="Key of this request: sent again with the same table, it gets the same answer and is charged once.",
        examples=["8c8a9f6e"],
    ),
]
Prefer = Annotated[
    str | None,
    Header(
        max_length=200,
        description="`wait=SECONDS`: how long to wait for the answer; `respond-async`: not at all.",
        examples=["wait=5"],
    ),
]

_OPTIONS: Final = frozenset({"expected", "title"})
# Bounds of a refusal that repeats unknown options.
_MOST_NAMED: Final = 10
_LONGEST_NAME: Final = 100
# Seconds that a client may prefer to wait.
_LONGEST_WAIT: Final = 60.0
# Seconds after which a client polls a running submission.
_POLL: Final = "1"

# The preference "wait" of RFC 7240, section 4.3.
_WAIT: Final = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?(\d{1,6})\"?\s*(?:$|[,;])", re.IGNORECASE)

TABLE_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "description": "The table itself; the first line of a CSV file has the names of the columns.",
        "content": {
            CSV: {"schema": {"type": "string"}, "example": "id,prediction\nr1,1\nr2,0\n"},
            PARQUET: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
_SUBMISSION_REFUSALS: Final = (
    "bad_request", "bad_table", "bad_name", "no_token", "unknown_token", "forbidden", "not_found", "too_slow",
    "key_used", "closed", "too_large", "unsupported", "quota", "rate", "allowance", "exhausted", "busy", "stopping",
    "unavailable",
)  # fmt: skip
_LATER: Final[dict[int | str, dict[str, Any]]] = {
    202: {
        "model": SubmissionView,
        "description": "It is stored and goes on; the answer will be at Location.",
        "headers": {
            "Location": {"schema": {"type": "string"}, "description": "Where to look for the answer."},
            "Retry-After": {"schema": {"type": "integer"}, "description": "Seconds until then."},
        },
    }
}

router = APIRouter(prefix="/v1/holdouts/{name}", tags=["submissions"])


@router.post(
    "/submissions",
    response_model=SubmissionView,
    responses=_LATER | said(*_SUBMISSION_REFUSALS),
    openapi_extra=TABLE_BODY,
)
async def submit(
    request: Request,
    has: Has,
    by: By,
    name: Name,
    idempotency_key: RequestKey,
    expected: Expected = None,
    title: Title = "",
    prefer: Prefer = None,
) -> Response:
    """Score predictions for all records of a holdout; the same ones of a team again are charged nothing."""
    return await _take(request, has, by, "submit", name, idempotency_key, expected, title, prefer)


@router.post(
    "/comparisons",
    response_model=SubmissionView,
    responses=_LATER | said(*_SUBMISSION_REFUSALS, "no_comparison", "no_incumbent"),
    openapi_extra=TABLE_BODY,
)
async def compare(
    request: Request,
    has: Has,
    by: By,
    name: Name,
    idempotency_key: RequestKey,
    expected: Expected = None,
    title: Title = "",
    prefer: Prefer = None,
) -> Response:
    """Compare predictions with the team's champion. Better ones replace it; the first ones become it for free."""
    return await _take(request, has, by, "compare", name, idempotency_key, expected, title, prefer)


async def _take(
    request: Request,
    has: Served,
    by: Principal,
    what: Literal["submit", "compare"],
    name: str,
    idempotency_key: str,
    expected: float | None,
    title: str,
    prefer: str | None,
) -> Response:
    """Accept a table when there is room for it, and answer as far as the client waits."""
    waits = _wait(prefer, has.limits.wait)
    _check_options(request)
    limits = has.limits.of_holdout((await has.admission.read(has.service.admit, by, name)).rows)
    content_type = request.headers.get("content-type", "")

    def answered(content: bytes) -> Submission:
        predictions = read_upload(content, content_type, limits)
        call = has.service.submit if what == "submit" else has.service.compare
        return call(by, name, predictions, idempotency_key=idempotency_key, expected=expected, title=title, wait=waits)

    async with has.admission.place(by.token):
        try:
            media_type(content_type)
            async with spooled(request, has.limits.most_bytes) as body, has.admission.room(by.token, body.size):
                found = await has.admission.work(lambda: answered(body.file.read()))
        except ServiceRefused as refused:
            if refused.code in ("too_large", "unsupported") or is_of_format(refused):
                await has.admission.read(has.service.failed, by, name)
            raise
    return _shown(found, None if prefer is None else waits)


def _check_options(request: Request) -> None:
    """Refuse unknown options, such as a misspelled `expected`, without which the query would be another one."""
    unknown = sorted(set(request.query_params) - _OPTIONS)[:_MOST_NAMED]
    if unknown:
        errors = [{"where": f"query.{name[:_LONGEST_NAME]}", "rule": "extra_forbidden"} for name in unknown]
        raise ServiceRefused("bad_request", errors=errors, expected=", ".join(sorted(_OPTIONS)))


def is_of_format(refused: ServiceRefused) -> bool:
    """Return whether a table was refused for its format, which the service itself has not counted."""
    return refused.code == "bad_table" and "argument" not in refused.details


def _wait(prefer: str | None, otherwise: float) -> float:
    """Return the number of seconds that a client waits.

    Examples
    --------
    >>> _wait("wait=5", 10.0), _wait("respond-async", 10.0), _wait(None, 10.0), _wait("wait=999", 10.0)
    (5.0, 0.0, 10.0, 60.0)
    """
    if prefer is None:
        return otherwise
    found = _WAIT.search(prefer)
    if found is not None:
        return min(float(found.group(1)), _LONGEST_WAIT)
    return 0.0 if "respond-async" in prefer.lower() else otherwise


def _shown(found: Submission, preferred: float | None) -> Response:
    """Return a submission: 200 where it is settled, 202 and an address while it runs."""
    headers = {} if preferred is None else {"Preference-Applied": f"wait={preferred:.0f}"}
    location = f"/v1/holdouts/{found.holdout}/submissions/{found.id}"
    status = 200
    if found.state in ("running", "interrupted"):
        status, headers = 202, {**headers, "Location": location, "Retry-After": _POLL}
    return JSONResponse(SubmissionView.model_validate(found).model_dump(mode="json"), status, headers=headers)


@router.get(
    "/submissions",
    response_model=SubmissionList,
    responses=said("bad_request", "no_token", "unknown_token", "forbidden", "not_found", "stopping", "unavailable"),
)
async def history(
    has: Has,
    by: By,
    name: Name,
    after: Annotated[int, Query(ge=0, lt=2**62, description="Number of the last one that is known.")] = 0,
    count: Annotated[int, Query(ge=1, le=1000, description="How many at most.")] = 100,
    team: Annotated[str | None, Query(pattern=NAME, description="Whose, for an administrator.")] = None,
) -> Any:
    """Return a team's own submissions, the oldest first; an administrator's are all, or those of one team."""
    found = await has.admission.read(has.service.history, by, name, after=after, count=count, team=team)
    return {"submissions": found}


@router.get(
    "/submissions/{id}",
    response_model=SubmissionView,
    responses=said("bad_request", "no_token", "unknown_token", "forbidden", "not_found", "stopping", "unavailable"),
)
async def submission(has: Has, by: By, name: Name, id: Identity, response: Response) -> Any:
    """Return one submission; a running one has the header Retry-After."""
    found = await has.admission.read(has.service.submission, by, name, id)
    if found.state == "running":
        response.headers["Retry-After"] = _POLL
    return found


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
    "bad_request", "bad_table", "bad_name", "no_token", "unknown_token", "forbidden", "not_found", "too_slow", "closed",
    "too_large", "unsupported", "quota", "rate", "allowance", "exhausted", "busy", "stopping", "unavailable",
)  # fmt: skip


class Evaluation(BaseModel):
    """Score of a candidate, of which more is better: the certified end of its interval. See the guide for verdicts."""

    score: float | None = Field(examples=[0.86])
    info: dict[str, Any] = Field(examples=[{"state": "answered", "low": 0.86, "high": 0.91, "repeated": False}])
    budget: dict[str, Any] = Field(examples=[{"exhausted": False, "max_evals": 20, "days": 7.0, "remaining": None}])


@router.post(
    "/evaluate",
    response_model=Evaluation,
    responses={202: {"model": Evaluation, "description": "It is stored and goes on; ask again."}, **said(*_REFUSALS)},
    openapi_extra=_BODY,
)
async def evaluate(request: Request, has: Has, by: By, name: Name) -> Response:
    """Evaluate the predictions of a candidate that was run elsewhere; the same ones again are charged nothing."""
    holdout = await has.admission.read(has.service.admit, by, name)

    def answered(content: bytes) -> Submission:
        table = Table(_candidate(content).encode(errors="replace"), CSV)
        predictions = read_upload(table.body, table.content_type, has.limits.of_holdout(holdout.rows))
        key = content_key("submissions", name, table, {})
        return has.service.submit(by, name, predictions, idempotency_key=key, wait=has.limits.wait)

    async with has.admission.place(by.token):
        try:
            async with spooled(request, has.limits.most_bytes) as body, has.admission.room(by.token, body.size):
                found = await has.admission.work(lambda: answered(body.file.read()))
        except ServiceRefused as refused:
            if refused.code == "too_large" or is_of_format(refused):
                await has.admission.read(has.service.failed, by, name)
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
