"""The server of the Model Context Protocol as a part of the HTTP service: one address, and API tokens."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.routing import Route

from thresholdout.service.agents.holdouts import ServiceHoldouts
from thresholdout.service.agents.server import make_server
from thresholdout.service.refusals import ServiceRefused
from thresholdout.service.schemas import Principal

if TYPE_CHECKING:
    import pandas as pd
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from thresholdout.service.agents.holdouts import Service

__all__ = ["MountedServer", "mounted_server"]

PATH: Final = "/mcp"

MOST_BYTES: Final = 4 * 2**20
"""Of one call; larger tables come over HTTP."""

_PATIENCE: Final = 60.0
"""Seconds in which a call has to be here."""

_PART_OF_ONE: Final = 4
"""One API token has at most this part of all calls at once."""


@dataclass(frozen=True, slots=True)
class MountedServer:
    """What a HTTP application needs.

    Attributes
    ----------
    route : Route
        The address.
    running : callable
        A context in which calls are answered, to be entered once, while the application runs.
    """

    route: Route
    running: Callable[[], AbstractAsyncContextManager[None]]


class _Keys:
    """Keys of the service, as the protocol's library asks about them."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return who holds an API token; the token itself goes no further."""
        try:
            by = await anyio.to_thread.run_sync(self._service.authenticate, token)
        except ServiceRefused:
            return None
        return AccessToken(token=by.key, client_id=by.key, scopes=[], claims={"role": by.role, "team": by.team})


def _who() -> Principal:
    """Return who calls, from within a tool."""
    token = get_access_token()
    if token is None or token.claims is None:
        raise ServiceRefused("no_token")
    return Principal(token.client_id, token.claims["role"], token.claims["team"])


class _Bounded:
    """As many calls at once as there is memory for, a part of them with one API token; others are told that it is busy.

    Parameters
    ----------
    application : ASGI application
        What is called.
    most : int
        How many calls at once.
    """

    def __init__(self, application: ASGIApp, most: int) -> None:
        self._application = application
        self._most = most
        self._of_one = max(1, most // _PART_OF_ONE)
        self._now: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = Headers(scope=scope).get("authorization", "")
        if self._now.total() >= self._most or self._now[key] >= self._of_one:
            busy = ServiceRefused("busy")
            body = {"code": busy.code, "text": str(busy), "details": {}}
            await JSONResponse(body, busy.status, headers={"Retry-After": "1"})(scope, receive, send)
            return
        self._now[key] += 1
        try:
            await self._application(scope, _in_time(receive), send)
        finally:
            self._now[key] -= 1
            if not self._now[key]:
                del self._now[key]


def _in_time(receive: Receive) -> Receive:
    """Return how a body is received that has to be complete in time; one that is not is as one that was cut off."""
    end = asyncio.get_running_loop().time() + _PATIENCE
    complete = False

    async def received() -> Message:
        nonlocal complete
        if complete:
            return await receive()
        try:
            async with asyncio.timeout_at(end):
                message = await receive()
        except TimeoutError:
            message = {"type": "http.disconnect"}
        complete = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    return received


def mounted_server(
    service: Service, read: Callable[[bytes, str], pd.DataFrame], *, most_at_once: int = 64
) -> MountedServer:
    """Return the address ``/mcp`` of a service.

    No state is kept between calls, so any process of several may answer any of them, and there is no stream to listen
    to. Every call needs a key, so pages of other sites that reach this address by a name of their own (DNS rebinding)
    get nothing.

    Parameters
    ----------
    service : Service
        The service.
    read : callable
        Makes a table of a file's bytes and its content type, or refuses it.
    most_at_once : int
        Calls, each of which may have `MOST_BYTES`.
    """
    auth = AuthSettings(issuer_url=AnyHttpUrl("http://127.0.0.1"), resource_server_url=None)
    server: Any = make_server(ServiceHoldouts(service, _who, read), auth=auth, verifier=_Keys(service))
    application = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=MOST_BYTES,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return MountedServer(
        Route(PATH, endpoint=_Bounded(application, most_at_once), methods=["POST"]), server.session_manager.run
    )
