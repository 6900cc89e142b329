"""The OpenAPI document: what FastAPI writes, put right where the service does otherwise."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from thresholdout.service.http.schemas import HoldoutSettings

__all__ = ["document"]

_ABOUT: Final = """A holdout that is asked many adaptive questions, and says what every answer is worth.

Tables are sent as they are, as `text/csv` or `application/vnd.apache.parquet`. A refused request is
`{"code", "text", "details"}`; it costs nothing."""

_VISITORS: Final = frozenset({"holdouts", "holdout", "certificate", "remaining", "checkpoint", "leaderboard"})
"""Addresses that visitors may see without a key, where a holdout is public."""

_OF_FASTAPI: Final = ("HTTPValidationError", "ValidationError")


def document(app: FastAPI) -> dict[str, Any]:
    """Return the document of an application; it is made once."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, description=_ABOUT, routes=app.routes)
        for methods in made["paths"].values():
            for operation in methods.values():
                _mend(operation)
        schemas = made["components"]["schemas"]
        for name in _OF_FASTAPI:
            schemas.pop(name, None)
        schemas[HoldoutSettings.__name__] = HoldoutSettings.model_json_schema(
            ref_template="#/components/schemas/{model}"
        )
        app.openapi_schema = made
    return app.openapi_schema


def _mend(operation: dict[str, Any]) -> None:
    """Leave out the status that this service never has, and say where no key is needed, and where to wait."""
    operation["responses"].pop("422", None)
    if operation["operationId"] in _VISITORS:
        operation["security"] = [{}, *operation["security"]]
    for status, response in operation["responses"].items():
        if status in ("429", "503"):
            response.setdefault("headers", {})["Retry-After"] = {
                "schema": {"type": "integer"},
                "description": "Seconds after which the same request may be taken.",
            }
