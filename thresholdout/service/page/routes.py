"""Addresses of the pages; every one of them answers people, none programs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from fastapi import APIRouter, Request, Response

from thresholdout.service.http import admission as bodies
from thresholdout.service.page.forms import FORM_BYTES, MOST_FIELDS, Sent, sent_in
from thresholdout.service.page.pages import Pages
from thresholdout.service.page.render import STATIC, static
from thresholdout.service.page.sessions import NOBODY, PageSession, visit
from thresholdout.service.refusals import ServiceRefused

if TYPE_CHECKING:
    from thresholdout.service.http.access import Served

__all__ = ["routes"]

_Reading = Callable[[Pages, Request, PageSession], Response]
_Writing = Callable[[Pages, Request, PageSession, Sent], Response]
_Answering = Callable[[Pages, Request, PageSession], Awaitable[Response]]

_HOLDOUT: Final = "/holdouts/{name}"


def routes() -> APIRouter:
    """Return the pages of the service that an application has as its state ``served``."""
    found = APIRouter()
    endpoints = _Endpoints()
    for path, page in (
        ("/", Pages.holdouts),
        (_HOLDOUT, Pages.board),
        (f"{_HOLDOUT}/certificate", Pages.certificate),
        (f"{_HOLDOUT}/submissions", Pages.history),
        (f"{_HOLDOUT}/submissions/{{id}}", Pages.submission),
        ("/keys", Pages.keys),
        ("/sign-in", Pages.sign_in_form),
    ):
        found.add_route(path, endpoints.showing(page), methods=["GET"], include_in_schema=False)
    for path, form in (
        (f"{_HOLDOUT}/phase", Pages.set_phase),
        ("/keys", Pages.make_key),
        ("/keys/{id}/revoke", Pages.revoke),
        ("/sign-out", Pages.sign_out),
    ):
        found.add_route(path, endpoints.taking(form), methods=["POST"], include_in_schema=False)
    found.add_route(f"{_HOLDOUT}/submissions", endpoints.submit, methods=["POST"], include_in_schema=False)
    found.add_route("/sign-in", endpoints.sign_in, methods=["POST"], include_in_schema=False)
    found.add_route("/static/{name}", endpoints.static, methods=["GET"], include_in_schema=False)
    return found


class _Endpoints:
    """What answers requests: who makes them, what they send, and what is refused, as a page."""

    def showing(self, page: _Reading) -> Callable[[Request], Awaitable[Response]]:
        """Return what answers requests that change nothing."""

        async def answering(pages: Pages, request: Request, who: PageSession) -> Response:
            return await pages.served.admission.read(page, pages, request, who)

        async def endpoint(request: Request) -> Response:
            return await self._answer(request, answering)

        return endpoint

    def taking(self, page: _Writing) -> Callable[[Request], Awaitable[Response]]:
        """Return what takes small forms, of a session and with its token."""

        async def answering(pages: Pages, request: Request, who: PageSession) -> Response:
            who.check_session()
            sent = await self._sent(request)
            who.check(sent.text("token"))
            return await pages.served.admission.read(page, pages, request, who, sent)

        async def endpoint(request: Request) -> Response:
            return await self._answer(request, answering)

        return endpoint

    async def submit(self, request: Request) -> Response:
        """Take a form with predictions when there is room for it."""

        async def answering(pages: Pages, request: Request, who: PageSession) -> Response:
            who.check_session()
            served, most = pages.served, pages.served.limits.most_bytes + FORM_BYTES
            holdout = await served.admission.read(served.service.admit, who.principal, request.path_params["name"])
            bodies.check_is_form(request)
            async with (
                served.admission.place(who.principal.key),
                bodies.spooled(request, most) as body,
                served.admission.room(who.principal.key, 2 * body.size),  # the form, and the file in it
            ):
                form = await bodies.parsed_form(request, body.file.read(), files=1, fields=MOST_FIELDS)
                sent = await sent_in(form)
                who.check(sent.text("token"))
                return await served.admission.work(pages.submit, request, who, sent, holdout)

        return await self._answer(request, answering)

    async def sign_in(self, request: Request) -> Response:
        """Take a key; who sends it has no session yet."""

        async def answering(pages: Pages, request: Request, who: PageSession) -> Response:
            return await pages.served.admission.read(pages.sign_in, request, who, await self._sent(request))

        return await self._answer(request, answering)

    async def static(self, request: Request) -> Response:
        """Answer one of the files that pages load; their addresses change with them, so browsers may keep them."""
        name = request.path_params["name"]
        if name not in STATIC:
            refused = ServiceRefused("not_found")
            return Pages(request.app.state.served).refused(request, NOBODY, refused)
        headers = {"Cache-Control": "public, max-age=31536000, immutable"}
        return Response(static(name), headers=headers, media_type=STATIC[name])

    async def _sent(self, request: Request) -> Sent:
        """Receive a form without a file."""
        return await sent_in(await bodies.receive_form(request, FORM_BYTES, files=0, fields=MOST_FIELDS))

    async def _answer(self, request: Request, answering: _Answering) -> Response:
        """Answer a request of whoever makes it, and what is refused as a page."""
        served: Served = request.app.state.served
        pages, who = Pages(served), NOBODY
        try:
            who = await served.admission.read(visit, request, served.service)
            request.state.by = who.principal
            return await answering(pages, request, who)
        except ServiceRefused as refused:
            request.state.refused = refused.code
            return pages.refused(request, who, refused)
