"""The application: all addresses of a service, what stands around them, and how it begins and ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute

from thresholdout.service.http import holdout_routes, operation_routes, submission_routes
from thresholdout.service.http.access import Served, answer_refusals
from thresholdout.service.http.admission import Admission
from thresholdout.service.http.health import Health, Metrics
from thresholdout.service.http.json_schemas import HoldoutSettings
from thresholdout.service.http.logs import Observed
from thresholdout.service.limits import Limits

if TYPE_CHECKING:
    from thresholdout.service.evaluation import EvaluationService

__all__ = ["document", "make_app"]

_ABOUT: Final = """A holdout that is asked many adaptive queries, and says what every answer is worth.

Tables are sent as they are, as `text/csv` or `application/vnd.apache.parquet`. A refused request is
`{"code", "text", "details"}`; it costs nothing."""

_VISITORS: Final = frozenset({"holdouts", "holdout", "certificate", "remaining", "checkpoint", "leaderboard"})
"""Addresses that visitors may see without an API token, where a holdout is public."""

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
    """Leave out the status that this service never has, and say where no API token is needed, and where to wait."""
    operation["responses"].pop("422", None)
    if operation["operationId"] in _VISITORS:
        operation["security"] = [{}, *operation["security"]]
    for status, response in operation["responses"].items():
        if status in ("429", "503"):
            response.setdefault("headers", {})["Retry-After"] = {
                "schema": {"type": "integer"},
                "description": "Seconds after which the same request may be taken.",
            }


OPENAPI: Final = "/v1/openapi.json"

Running = Callable[[], AbstractAsyncContextManager[Any]]


def make_app(
    service: EvaluationService,
    *,
    limits: Limits | None = None,
    routers: Sequence[APIRouter] = (),
    routes: Sequence[BaseRoute] = (),
    running: Sequence[Running] = (),
) -> FastAPI:
    """Make the application of a service, which closes the service when it ends.

    Parameters
    ----------
    service : EvaluationService
        What it serves.
    limits : Limits, optional
        Of uploads; those of the service by default.
    routers : sequence of APIRouter
        Further addresses, such as pages.
    routes : sequence of BaseRoute
        Further applications at their own addresses, such as tools for agents.
    running : sequence of callables
        Contexts that are entered while it runs.
    """
    limits = service.limits if limits is None else limits
    admission = Admission(limits)
    health = Health(service)

    @contextlib.asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        try:
            async with AsyncExitStack() as stack:
                for context in running:
                    await stack.enter_async_context(context())
                await health.look()
                looking = asyncio.create_task(health.keep_looking())
                stack.push_async_callback(_cancelled, looking)
                yield
                admission.stop()
        finally:
            await asyncio.to_thread(_close, admission, service)

    app = FastAPI(
        title="thresholdout",
        version="1",
        lifespan=life,
        docs_url=None,
        redoc_url=None,
        openapi_url=OPENAPI,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.served = Served(service, admission, limits)
    app.state.health = health
    app.state.metrics = Metrics(admission, health)
    answer_refusals(app)
    own = (
        operation_routes.router,
        operation_routes.key_router,
        holdout_routes.router,
        submission_routes.router,
    )
    for router in (*own, *routers):
        app.include_router(router)
    app.router.routes.extend(routes)
    app.add_middleware(Observed, metrics=app.state.metrics)
    app.openapi = lambda: document(app)  # type: ignore[method-assign]
    return app


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _close(admission: Admission, service: EvaluationService) -> None:
    """Finish what was begun, and close the store."""
    admission.close()
    service.close()
