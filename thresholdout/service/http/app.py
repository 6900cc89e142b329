"""The application: all addresses of a service, what stands around them, and how it begins and ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, FastAPI
from starlette.routing import BaseRoute

from thresholdout.service.http import evaluate_routes, holdout_routes, key_routes, operation_routes, submission_routes
from thresholdout.service.http.access import Served
from thresholdout.service.http.answers import answer_refusals
from thresholdout.service.http.intake import Intake
from thresholdout.service.http.metrics import Metrics
from thresholdout.service.http.observing import Observed
from thresholdout.service.http.openapi import document
from thresholdout.service.http.pulse import Pulse
from thresholdout.service.limits import Limits

if TYPE_CHECKING:
    from thresholdout.service.evaluation import EvaluationService

__all__ = ["make_app"]

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
    intake = Intake(limits)
    pulse = Pulse(service)

    @contextlib.asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        try:
            async with AsyncExitStack() as stack:
                for context in running:
                    await stack.enter_async_context(context())
                await pulse.look()
                looking = asyncio.create_task(pulse.keep_looking())
                stack.push_async_callback(_cancelled, looking)
                yield
                intake.stop()
        finally:
            await asyncio.to_thread(_close, intake, service)

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
    app.state.served = Served(service, intake, limits)
    app.state.pulse = pulse
    app.state.metrics = Metrics(intake, pulse)
    answer_refusals(app)
    own = (
        operation_routes.router,
        key_routes.router,
        holdout_routes.router,
        submission_routes.router,
        evaluate_routes.router,
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


def _close(intake: Intake, service: EvaluationService) -> None:
    """Finish what was begun, and close the store."""
    intake.close()
    service.close()
