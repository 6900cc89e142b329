"""The application: the addresses of a service, its middleware, and its start and end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Body, FastAPI, Path, Request, Response
from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute

from thresholdout.errors import ThresholdoutError
from thresholdout.service.http import holdout_routes, submission_routes
from thresholdout.service.http.access import By, Has, Served, answer_refusals, said
from thresholdout.service.http.admission import Admission
from thresholdout.service.http.health import CONTENT_TYPE_LATEST, Health, Metrics
from thresholdout.service.http.json_schemas import (
    HoldoutSettings,
    Live,
    NewToken,
    Ready,
    ReceiptKeys,
    TokenList,
    TokenMade,
    TokenView,
)
from thresholdout.service.http.logs import Observed
from thresholdout.service.limits import Limits
from thresholdout.service.receipts.signing_keys import published_keys
from thresholdout.service.refusals import ServiceRefused

if TYPE_CHECKING:
    from thresholdout.service.evaluation import EvaluationService

__all__ = ["document", "make_app"]

_REFUSALS: Final = ("no_token", "unknown_token", "forbidden", "stopping", "unavailable")

_tokens = APIRouter(prefix="/v1/tokens", tags=["tokens"])


@_tokens.get("", response_model=TokenList, responses=said(*_REFUSALS))
async def tokens(has: Has, by: By) -> Any:
    """Return all API tokens without their texts, the oldest first."""
    return {"tokens": await has.admission.read(has.service.tokens, by)}


@_tokens.post("", status_code=201, response_model=TokenMade, responses=said(*_REFUSALS, "bad_request", "bad_name"))
async def new_token(has: Has, by: By, new: Annotated[NewToken, Body()]) -> Any:
    """Make an API token; its text is in this response alone."""
    text, token = await has.admission.read(has.service.new_token, by, new.role, new.team, new.note)
    return {"text": text, "token": token}


@_tokens.delete("/{id}", response_model=TokenView, responses=said(*_REFUSALS, "bad_request", "not_found"))
async def revoke(
    has: Has, by: By, id: Annotated[str, Path(min_length=1, max_length=100, description="Id of the API token.")]
) -> Any:
    """Revoke an API token."""
    return await has.admission.read(has.service.revoke, by, id)


_log = logging.getLogger("thresholdout.service.http")

_operation = APIRouter(tags=["operation"])


@_operation.get("/live", response_model=Live)
async def live() -> Any:
    """Return that this process runs, even if its database does not: an orchestrator restarts it otherwise."""
    return {"status": "ok"}


@_operation.get(
    "/ready",
    response_model=Ready,
    response_model_exclude_none=True,
    responses={503: {"model": Ready, "description": "The service cannot answer."}},
)
async def ready(request: Request, response: Response) -> Any:
    """Return whether answers can be stored, as found within the last seconds.

    "unavailable": the database can be neither read nor written (a full disk). "damaged": a holdout failed its check
    when the service started.
    """
    found: Ready = request.app.state.health.ready()
    response.status_code = 503 if found.status == "unavailable" else 200
    return found


@_operation.get("/v1/receipt-key", response_model=ReceiptKeys, responses=said("stopping", "unavailable"))
async def receipt_key(has: Has) -> Any:
    """Return the public keys for `thresholdout ledger receipt verify`, as JSON Web Keys, the present one first."""
    return await has.admission.read(_published, has)


def _published(has: Served) -> dict[str, Any]:
    try:
        return published_keys(has.service.ledger)
    except ThresholdoutError as error:
        _log.error("the public keys were not read: %s", type(error).__name__)
    raise ServiceRefused("unavailable", retry_after=5)


@_operation.get(
    "/metrics",
    response_class=Response,
    responses=said("no_token", "unknown_token", "forbidden", "stopping", "unavailable")
    | {200: {"description": "Numbers for Prometheus.", "content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request, by: By) -> Response:
    """Return counts and times of requests, for viewers and administrators."""
    if not by.token or by.role == "team":
        raise ServiceRefused("forbidden" if by.token else "no_token")
    return Response(request.app.state.metrics.text(), media_type=CONTENT_TYPE_LATEST)


_ABOUT: Final = """Certified answers to many adaptive queries of a holdout.

Tables are sent as they are, as `text/csv` or `application/vnd.apache.parquet`. A refused request is
`{"code", "text", "details"}`; it costs nothing."""

# Addresses that visitors may see without an API token, where a holdout is public.
_VISITORS: Final = frozenset({"holdouts", "holdout", "certificate", "remaining", "checkpoint", "leaderboard"})

# Schemas of the status 422, which this service never returns.
_OF_FASTAPI: Final = ("HTTPValidationError", "ValidationError")


def document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document of an application; it is made once."""
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
    """Remove the status 422, which this service never returns, and add optional security and Retry-After."""
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

    `routers` and `routes` add addresses, such as pages and tools for agents; `running` are contexts that are entered
    while the application runs.
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
        _operation,
        _tokens,
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
    """Finish running work, and close the store."""
    admission.close()
    service.close()
