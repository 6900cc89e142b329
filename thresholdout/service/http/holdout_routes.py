"""Addresses of holdouts: guarantees, leaderboards, and administration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import ValidationError
from starlette.datastructures import UploadFile

from thresholdout.service.authority import check_role
from thresholdout.service.corrections import Basis
from thresholdout.service.http.access import By, Has, Served, said
from thresholdout.service.http.admission import announced, receive, receive_form
from thresholdout.service.http.json_schemas import (
    Certificate,
    Checkpoint,
    HoldoutList,
    HoldoutSettings,
    HoldoutView,
    LeaderboardView,
    NewPhase,
    Remaining,
)
from thresholdout.service.http.submission_routes import TABLE_BODY, Name
from thresholdout.service.http.uploads import CSV, PARQUET, media_type, read_upload
from thresholdout.service.refusals import ServiceRefused
from thresholdout.service.schemas import Holdout, Principal

__all__ = ["router"]

# The kind of a file in a form follows from its first bytes, since clients' types are unreliable.
_PARQUET_BEGINS: Final = b"PAR1"
# Bytes of a form beside its files.
_AROUND: Final = 2**17

_PARTS: Final = ("train", "holdout", "transition", "graph")
_FORM: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["settings", "train", "holdout"],
                    "additionalProperties": False,
                    "properties": {
                        "settings": {"$ref": "#/components/schemas/HoldoutSettings"},
                        "train": {"type": "string", "format": "binary", "description": "CSV or Parquet, with labels."},
                        "holdout": {"type": "string", "format": "binary", "description": "The same, of the holdout."},
                        "transition": {
                            "type": "string",
                            "format": "binary",
                            "description": "Law of a Markov chain: a column of labels, then a column for each label "
                            "with the probability that it comes next.",
                        },
                        "graph": {
                            "type": "string",
                            "format": "binary",
                            "description": "Pairs of ids of records that may depend on each other.",
                        },
                    },
                },
                "encoding": {"settings": {"contentType": "application/json"}},
            }
        },
    }
}
_SEEN: Final = ("bad_request", "no_token", "unknown_token", "not_found", "stopping", "unavailable")
_ADMIN: Final = (*_SEEN, "forbidden")
_UPLOAD: Final = (*_ADMIN, "bad_name", "bad_table", "too_slow", "too_large", "unsupported", "busy")

router = APIRouter(prefix="/v1/holdouts", tags=["holdouts"])


@router.get("", response_model=HoldoutList, responses=said("unknown_token", "stopping", "unavailable"))
async def holdouts(has: Has, by: By) -> Any:
    """Return the holdouts that this API token may see, the oldest first."""
    return {"holdouts": await has.admission.read(has.service.holdouts, by)}


@router.post(
    "",
    status_code=201,
    response_model=HoldoutView,
    responses=said(*_UPLOAD, "name_taken"),
    openapi_extra=_FORM,
)
async def create_holdout(request: Request, has: Has, by: By, response: Response) -> Any:
    """Make a holdout from two tables with labels; the same ones under the same name again change nothing."""
    check_role(by, "create_holdout")
    most = len(_PARTS) * has.limits.most_bytes + _AROUND
    async with has.admission.place(by.token), has.admission.room(by.token, announced(request, most)):
        form = await receive_form(request, most, files=len(_PARTS), fields=1)
        try:
            settings, files = _parts({name: form.getlist(name) for name in form})
            found = await has.admission.work(_create, has, by, settings, files)
        finally:
            await form.close()
    response.headers["Location"] = f"/v1/holdouts/{found.name}"
    return found


def _parts(form: dict[str, list[Any]]) -> tuple[HoldoutSettings, dict[str, bytes]]:
    """Return the settings and the files of a form; file names are ignored."""
    files: dict[str, bytes] = {}
    for name, sent in form.items():
        if name not in (*_PARTS, "settings") or len(sent) > 1:
            raise ServiceRefused("bad_request", argument=name[:100])
        if name != "settings":
            if not isinstance(sent[0], UploadFile):
                raise ServiceRefused("bad_request", argument=name, expected="a file")
            files[name] = sent[0].file.read()
    for name in ("train", "holdout"):
        if name not in files:
            raise ServiceRefused("bad_request", argument=name, expected="a file")
    sent = form.get("settings", [""])
    text = sent[0].file.read() if isinstance(sent[0], UploadFile) else sent[0]
    try:
        return HoldoutSettings.model_validate_json(text), files
    except ValidationError as error:
        wrong = [{"where": ".".join(map(str, one["loc"]))[:100], "rule": one["type"]} for one in error.errors()[:10]]
        raise ServiceRefused("bad_request", argument="settings", errors=wrong) from None


def _create(has: Served, by: Principal, settings: HoldoutSettings, files: dict[str, bytes]) -> Holdout:
    tables: dict[str, Any] = {}
    for name in list(files):
        content = files.pop(name)  # no file is kept longer than its table
        kind = PARQUET if content.startswith(_PARQUET_BEGINS) else CSV
        try:
            tables[name] = read_upload(content, kind, has.limits)
        except ServiceRefused as refused:
            refused.details["argument"] = name
            raise
    chosen = settings.model_dump()
    name = chosen.pop("name")
    train, holdout = tables.pop("train"), tables.pop("holdout")
    return has.service.create_holdout(by, name, train, holdout, **chosen, **tables)


@router.get("/{name}", response_model=HoldoutView, responses=said(*_SEEN))
async def holdout(has: Has, by: By, name: Name) -> Any:
    """Return a holdout with its guarantee and its remaining budget."""
    return await has.admission.read(has.service.holdout, by, name)


@router.get("/{name}/certificate", response_model=Certificate, responses=said(*_SEEN))
async def certificate(has: Has, by: By, name: Name) -> Any:
    """Return the guarantee of a holdout's answers, in words."""
    return await has.admission.read(has.service.holdout, by, name)


@router.get("/{name}/remaining", response_model=Remaining, responses=said(*_SEEN))
async def remaining(has: Has, by: By, name: Name) -> Any:
    """Return the remaining budget of a holdout."""
    return await has.admission.read(has.service.holdout, by, name)


@router.get("/{name}/checkpoint", response_model=Checkpoint, responses=said(*_SEEN))
async def checkpoint(has: Has, by: By, name: Name) -> Any:
    """Return the digest of the last entry of a holdout's history."""
    return await has.admission.read(has.service.holdout, by, name)


@router.get("/{name}/leaderboard", response_model=LeaderboardView, responses=said(*_SEEN))
async def leaderboard(has: Has, by: By, name: Name) -> Any:
    """Return the leaderboard, as far as it is certified: teams whose intervals overlap are tied."""
    return await has.admission.read(has.service.leaderboard, by, name)


@router.post("/{name}/corrections", response_model=HoldoutView, responses=said(*_UPLOAD), openapi_extra=TABLE_BODY)
async def correct(
    request: Request,
    has: Has,
    by: By,
    name: Name,
    reason: Annotated[
        str, Query(max_length=100, description="Reason, for everybody to read. It must not depend on labels.")
    ],
    basis: Annotated[Basis, Query(description="Basis of the corrections; see the documentation.")] = "labels",
) -> Any:
    """Correct labels by a table of ids and labels; an empty label withdraws a record. The budget carries over."""
    check_role(by, "correct")
    await has.admission.read(has.service.holdout, by, name)
    content_type = request.headers.get("content-type", "")
    media_type(content_type)

    def corrected(content: bytes) -> Holdout:
        return has.service.correct(by, name, read_upload(content, content_type, has.limits), reason, basis=basis)

    async with has.admission.place(by.token), has.admission.room(by.token, announced(request, has.limits.most_bytes)):
        return await has.admission.work(corrected, await receive(request, has.limits.most_bytes))


@router.put("/{name}/phase", response_model=HoldoutView, responses=said(*_ADMIN))
async def set_phase(has: Has, by: By, name: Name, new: Annotated[NewPhase, Body()]) -> Any:
    """Begin another phase: open, blind until it is closed, or closed."""
    return await has.admission.read(has.service.set_phase, by, name, new.phase)


@router.get(
    "/{name}/export",
    response_class=StreamingResponse,
    responses=said(*_ADMIN, "hidden")
    | {200: {"description": "Lines of JSON.", "content": {"application/jsonl": {"schema": {"type": "string"}}}}},
)
async def export(has: Has, by: By, name: Name) -> Response:
    """Return the public history, one entry a line, for `thresholdout ledger import` and for verification."""
    lines = await has.admission.read(has.service.export, by, name)
    first = await has.admission.read(next, lines, "")
    return StreamingResponse(_all(first, lines), media_type="application/jsonl")


def _all(first: str, lines: Iterator[str]) -> Iterator[str]:
    yield first
    yield from lines
