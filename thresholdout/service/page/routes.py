"""Addresses of the pages; every one of them answers people, none programs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from fastapi import APIRouter, Request, Response

from thresholdout.service.http.access import Served
from thresholdout.service.http.bodies import announced, receive_form
from thresholdout.service.page.forms import FORM_BYTES, MOST_FIELDS, Sent, sent_in
from thresholdout.service.page.pages import Pages
from thresholdout.service.page.render import STATIC, static
from thresholdout.service.page.visits import NOBODY, Visit, visit
from thresholdout.service.refusals import ServiceRefused

__all__ = ["router"]

_Reading = Callable[[Pages, Request, Visit], Response]
_Writing = Callable[[Pages, Request, Visit, Sent], Response]
_Answering = Callable[[Pages, Request, Visit], Awaitable[Response]]

_HOLDOUT: Final = "/holdouts/{name}"


async def _answer(request: Request, answering: _Answering) -> Response:
    """Answer a request of whoever makes it, and what is refused as a page."""
    served: Served = request.app.state.served
    pages, who = Pages(served), NOBODY
    try:
        who = await served.intake.read(visit, request, served.service)
        request.state.by = who.principal
        return await answering(pages, request, who)
    except ServiceRefused as refused:
        request.state.refused = refused.code
        return pages.refused(request, who, refused)


def _shows(page: _Reading) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers requests that change nothing."""

    async def answering(pages: Pages, request: Request, who: Visit) -> Response:
        return await pages.served.intake.read(page, pages, request, who)

    async def endpoint(request: Request) -> Response:
        return await _answer(request, answering)

    return endpoint


def _takes(page: _Writing) -> Callable[[Request], Awaitable[Response]]:
    """Return what takes small forms, of a session and with its token."""

    async def answering(pages: Pages, request: Request, who: Visit) -> Response:
        who.check_session()
        sent = await sent_in(await receive_form(request, FORM_BYTES, files=0, fields=MOST_FIELDS))
        who.check(sent.text("token"))
        return await pages.served.intake.read(page, pages, request, who, sent)

    async def endpoint(request: Request) -> Response:
        return await _answer(request, answering)

    return endpoint


async def _submit(request: Request) -> Response:
    """Take a form with predictions when there is room for it."""

    async def answering(pages: Pages, request: Request, who: Visit) -> Response:
        who.check_session()
        served, most = pages.served, pages.served.limits.most_bytes + FORM_BYTES
        holdout = await served.intake.read(served.service.admit, who.principal, request.path_params["name"])
        async with served.intake.place(who.principal.key), served.intake.room(2 * announced(request, most)):
            sent = await sent_in(await receive_form(request, most, files=1, fields=MOST_FIELDS))
            who.check(sent.text("token"))
            return await served.intake.work(pages.submit, request, who, sent, holdout)

    return await _answer(request, answering)


async def _sign_in(request: Request) -> Response:
    """Take a key; who sends it has no session yet."""

    async def answering(pages: Pages, request: Request, who: Visit) -> Response:
        sent = await sent_in(await receive_form(request, FORM_BYTES, files=0, fields=MOST_FIELDS))
        return await pages.served.intake.read(pages.sign_in, request, who, sent)

    return await _answer(request, answering)


async def _static(request: Request) -> Response:
    """Answer one of the files that pages load; their addresses change with them, so browsers may keep them."""
    name = request.path_params["name"]
    if name not in STATIC:
        return Pages(request.app.state.served).refused(request, NOBODY, ServiceRefused("not_found"))
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(static(name), headers=headers, media_type=STATIC[name])


router: Final = APIRouter()
"""The pages of a service, for `make_app`."""

for _path, _page in (
    ("/", Pages.holdouts),
    (_HOLDOUT, Pages.board),
    (f"{_HOLDOUT}/certificate", Pages.certificate),
    (f"{_HOLDOUT}/submissions", Pages.history),
    (f"{_HOLDOUT}/submissions/{{id}}", Pages.submission),
    ("/keys", Pages.keys),
    ("/sign-in", Pages.sign_in_form),
):
    router.add_route(_path, _shows(_page), methods=["GET"], include_in_schema=False)
for _path, _form in (
    (f"{_HOLDOUT}/phase", Pages.set_phase),
    ("/keys", Pages.make_key),
    ("/keys/{id}/revoke", Pages.revoke),
    ("/sign-out", Pages.sign_out),
):
    router.add_route(_path, _takes(_form), methods=["POST"], include_in_schema=False)
router.add_route(f"{_HOLDOUT}/submissions", _submit, methods=["POST"], include_in_schema=False)
router.add_route("/sign-in", _sign_in, methods=["POST"], include_in_schema=False)
router.add_route("/static/{name}", _static, methods=["GET"], include_in_schema=False)
