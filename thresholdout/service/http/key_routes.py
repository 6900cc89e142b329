"""Addresses of keys, for administrators."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Path

from thresholdout.service.http.access import By, Has
from thresholdout.service.http.answers import said
from thresholdout.service.http.schemas import KeyList, KeyMade, KeyShown, NewKey

__all__ = ["router"]

_REFUSALS: Final = ("no_key", "unknown_key", "forbidden", "stopping", "unavailable")

router = APIRouter(prefix="/v1/keys", tags=["keys"])


@router.get("", response_model=KeyList, responses=said(*_REFUSALS))
async def keys(has: Has, by: By) -> Any:
    """Return all keys, the oldest first; none of their texts is kept."""
    return {"keys": await has.intake.read(has.service.keys, by)}


@router.post("", status_code=201, response_model=KeyMade, responses=said(*_REFUSALS, "bad_request", "bad_name"))
async def new_key(has: Has, by: By, new: Annotated[NewKey, Body()]) -> Any:
    """Make a key; its text is in this answer, and nowhere else."""
    text, key = await has.intake.read(has.service.new_key, by, new.role, new.team, new.note)
    return {"text": text, "key": key}


@router.delete("/{id}", response_model=KeyShown, responses=said(*_REFUSALS, "bad_request", "not_found"))
async def revoke(
    has: Has, by: By, id: Annotated[str, Path(min_length=1, max_length=100, description="Of the key.")]
) -> Any:
    """Refuse a key from now on."""
    return await has.intake.read(has.service.revoke, by, id)
