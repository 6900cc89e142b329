"""Addresses and responses of the service's pages, for people."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from thresholdout.service.evaluation import MOST_NUMBER
from thresholdout.service.http import admission as bodies
from thresholdout.service.http.uploads import read_upload
from thresholdout.service.page import sessions as visits
from thresholdout.service.page.forms import FORM_BYTES, MOST_FIELDS, Sent, sent_in
from thresholdout.service.page.render import HEADERS, STATIC, render, static
from thresholdout.service.page.sessions import NOBODY, PageSession, visit
from thresholdout.service.page.views import history_view, leaderboard_view, submission_view
from thresholdout.service.refusals import REFUSALS, ServiceRefused
from thresholdout.service.schemas import Holdout, Phase, Role, Submission, Token

if TYPE_CHECKING:
    from starlette.requests import Request

    from thresholdout.service.http.access import Served
    from thresholdout.service.page.forms import Sent
    from thresholdout.service.page.sessions import PageSession

__all__ = ["Pages", "RefusedView", "refused_view", "routes"]

_TITLES: Final = {
    400: "This cannot be used",
    401: "An API token is needed",
    403: "Not with this API token",
    404: "Nothing here",
    409: "Not any more",
    413: "Too large",
    415: "Not a table",
    429: "Not now",
    503: "Try again soon",
}
# Details for programs, which pages leave out.
_UNSAID: Final = {"permanent"}
_UNITS: Final = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


@dataclass(frozen=True, slots=True)
class RefusedView:
    """A refusal as a page shows it: title, fixed text of the code, details, and the wait in words if it is known."""

    title: str
    text: str
    details: list[str]
    later: str


def refused_view(refused: ServiceRefused) -> RefusedView:
    """Return a refusal as a page shows it.

    Examples
    --------
    >>> refused_view(ServiceRefused("quota", retry_after=7200, limit=20)).later
    '2 hours'
    """
    permanent = bool(refused.details.get("permanent"))
    return RefusedView(
        _TITLES.get(refused.status, "This cannot be done"),
        REFUSALS[refused.code].text,
        [f"{name.replace('_', ' ')}: {_said(value)}" for name, value in refused.details.items() if name not in _UNSAID],
        "" if refused.retry_after is None or permanent else _duration(refused.retry_after),
    )


def _said(value: Any) -> str:
    """Return a detail in words."""
    return ", ".join(map(_said, value)) if isinstance(value, list | tuple) else str(value)


def _duration(seconds: int) -> str:
    """Return seconds in words, rounded up in the unit that fits."""
    size, unit = next((size, unit) for size, unit in _UNITS if seconds >= size or size == 1)
    count = -(-seconds // size)
    return f"{count} {unit}{'' if count == 1 else 's'}"


# Submissions on one page of a history.
_ROWS: Final = 50
# Seconds for which a form waits for its answer; afterwards the submission's page waits.
_WAIT: Final = 3.0

# Numbers that fit into 64 bits.
_NUMBER: Final = re.compile("[0-9]{1,18}")
_PHASES: Final[dict[str, Phase]] = {"open": "open", "blind": "blind", "closed": "closed"}
_ROLES: Final[dict[str, Role]] = {"admin": "admin", "team": "team", "viewer": "viewer"}


class Pages:
    """The pages of a service; each method takes a request and its session, and a form's content."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.service = served.service

    def holdouts(self, request: Request, visit: PageSession) -> Response:
        """Answer the list of holdouts."""
        return _page(request, visit, "holdouts.html", here="holdouts", holdouts=self.service.holdouts(visit.principal))

    def leaderboard(self, request: Request, visit: PageSession) -> Response:
        """Answer a leaderboard."""
        leaderboard = self.service.leaderboard(visit.principal, request.path_params["name"])
        close = request.query_params.get("look") == "close"
        outlook = (
            self.service.outlook(visit.principal, leaderboard.holdout.name) if visit.principal.role == "admin" else None
        )
        view = leaderboard_view(leaderboard, close=close)
        return _page(request, visit, "leaderboard.html", here="leaderboard", outlook=outlook, **view)

    def certificate(self, request: Request, visit: PageSession) -> Response:
        """Answer the guarantee of a holdout, in words."""
        holdout = self.service.holdout(visit.principal, request.path_params["name"])
        return _page(request, visit, "certificate.html", here="certificate", holdout=holdout)

    def history(self, request: Request, visit: PageSession) -> Response:
        """Answer a team's own submissions and the form for the next one; for an administrator all submissions."""
        before = request.query_params.get("before", "")
        start = int(before) if _NUMBER.fullmatch(before) else MOST_NUMBER
        return self._history(
            request, visit, self.service.holdout(visit.principal, request.path_params["name"]), before=start
        )

    def submission(self, request: Request, visit: PageSession) -> Response:
        """Answer one submission."""
        name = request.path_params["name"]
        holdout = self.service.holdout(visit.principal, name)
        found = self.service.submission(visit.principal, name, request.path_params["id"])
        refusal = REFUSALS[found.refusal].text if found.refusal in REFUSALS else ""
        repeated = "repeated" in request.query_params
        view = submission_view(holdout, found)
        return _page(
            request,
            visit,
            "submission.html",
            here="submissions",
            holdout=holdout,
            refusal=refusal,
            repeated=repeated,
            **view,
        )

    def submit(self, request: Request, visit: PageSession, sent: Sent, holdout: Holdout) -> Response:
        """Accept predictions; answer with the submission's address, or with the form and its error."""
        try:
            made = self._ask(visit, holdout, sent)
        except ServiceRefused as refused:
            request.state.refused = refused.code
            return self._history(request, visit, holdout, sent, refused)
        repeated = "?repeated" if made.repeated else ""
        return _to(request, f"/holdouts/{holdout.name}/submissions/{quote(made.id, safe='')}{repeated}")

    def set_phase(self, request: Request, visit: PageSession, sent: Sent) -> Response:
        """Begin another phase of a holdout."""
        phase = _PHASES.get(sent.text("phase"))
        if phase is None:
            raise ServiceRefused("bad_request", field="phase", expected=", ".join(_PHASES))
        holdout = self.service.set_phase(visit.principal, request.path_params["name"], phase)
        return _to(request, f"/holdouts/{holdout.name}")

    def tokens(self, request: Request, visit: PageSession) -> Response:
        """Answer the list of API tokens."""
        return self._tokens(request, visit)

    def make_token(self, request: Request, visit: PageSession, sent: Sent) -> Response:
        """Make an API token; only this page has its text."""
        role = _ROLES.get(sent.text("role"))
        if role is None:
            raise ServiceRefused("bad_request", field="role", expected=", ".join(_ROLES))
        team = sent.text("team")
        try:
            text, token = self.service.new_token(visit.principal, role, team, sent.text("note"))
        except ServiceRefused as refused:
            if refused.status != 400:
                raise
            return self._tokens(request, visit, sent, refused)
        return self._tokens(request, visit, made=(text, token))

    def revoke(self, request: Request, visit: PageSession, sent: Sent) -> Response:
        """Revoke an API token."""
        self.service.revoke(visit.principal, request.path_params["id"])
        return _to(request, "/tokens")

    def sign_in_form(self, request: Request, visit: PageSession) -> Response:
        """Answer the form that takes an API token."""
        back = visits.safe_address(request.query_params.get("next", "/"))
        return _to(request, back) if visit.session else self._sign_in(request, visit, back)

    def sign_in(self, request: Request, visit: PageSession, sent: Sent) -> Response:
        """Begin a session, and return to the requested page."""
        back = visits.safe_address(sent.text("next"))
        visits.check_sign_in(request, sent.text("token"))
        try:
            session = self.service.sessions.begin(sent.text("api_token"))
        except ServiceRefused as refused:
            if refused.code != "unknown_token":
                raise
            return self._sign_in(request, visit, back, refused)
        if visit.session:
            self.service.sessions.end(visit.session)
        response = _to(request, back)
        visits.begin(request, response, session)
        return response

    def sign_out(self, request: Request, visit: PageSession, sent: Sent) -> Response:
        """End a session."""
        self.service.sessions.end(visit.session)
        response = _to(request, "/")
        visits.end(request, response)
        return response

    def refused(self, request: Request, visit: PageSession, refused: ServiceRefused) -> Response:
        """Answer a refusal; offer to sign in where an API token is missing."""
        back = visits.safe_address(_path(request))
        if refused.code == "no_token" and request.method in ("GET", "HEAD"):
            return _to(request, f"/sign-in?next={quote(back, safe='')}")
        view = refused_view(refused)
        response = _page(request, visit, "refused.html", refused.status, here="refused", refused=view)
        if refused.retry_after is not None:
            response.headers["Retry-After"] = str(refused.retry_after)
        return response

    def _ask(self, visit: PageSession, holdout: Holdout, sent: Sent) -> Submission:
        """Query with a form's table; a table that cannot be read counts against the public rate of the API token."""
        comparison = sent.text("kind") == "comparison" or holdout.feedback == "verdict"
        expected = sent.number("expected") if comparison == (holdout.feedback == "verdict") else None
        try:
            predictions = read_upload(*sent.table, self.served.limits.of_holdout(holdout.rows))
        except ServiceRefused:
            self.service.failed(visit.principal, holdout.name)
            raise
        ask = self.service.compare if comparison else self.service.submit
        return ask(
            visit.principal,
            holdout.name,
            predictions,
            idempotency_key=sent.idempotency_key(),
            expected=expected,
            title=sent.text("title"),
            wait=_WAIT,
        )

    def _history(
        self,
        request: Request,
        visit: PageSession,
        holdout: Holdout,
        sent: Sent | None = None,
        refused: ServiceRefused | None = None,
        before: int = MOST_NUMBER,
    ) -> Response:
        rows = self.service.history(visit.principal, holdout.name, before=before, count=_ROWS)
        filled = {name: sent.text(name) if sent else "" for name in ("title", "expected")}
        return _page(
            request,
            visit,
            "submissions.html",
            refused.status if refused else 200,
            here="submissions",
            holdout=holdout,
            refused=refused_view(refused) if refused else None,
            filled=filled,
            most=f"{self.served.limits.most_bytes / 2**20:.3g} MiB",
            newest=before == MOST_NUMBER,
            older=rows[-1].number if len(rows) == _ROWS else None,
            **history_view(holdout, rows),
        )

    def _tokens(
        self,
        request: Request,
        visit: PageSession,
        sent: Sent | None = None,
        refused: ServiceRefused | None = None,
        made: tuple[str, Token] | None = None,
    ) -> Response:
        filled = {name: sent.text(name) if sent else "" for name in ("role", "team", "note")}
        return _page(
            request,
            visit,
            "tokens.html",
            refused.status if refused else 200,
            here="tokens",
            tokens=self.service.tokens(visit.principal),
            filled=filled,
            made=made,
            refused=refused_view(refused) if refused else None,
        )

    def _sign_in(
        self, request: Request, visit: PageSession, back: str, refused: ServiceRefused | None = None
    ) -> Response:
        text = visits.form_text(request)
        status = refused.status if refused else 200
        view = refused_view(refused) if refused else None
        token = visits.token_of(text)
        response = _page(request, visit, "sign-in.html", status, here="sign-in", back=back, token=token, refused=view)
        visits.keep_form(request, response, text)
        return response


def _page(request: Request, visit: PageSession, template: str, status: int = 200, **values: Any) -> Response:
    told = {
        "at": _root(request),
        "who": visit.principal,
        "token": visit.token,
        "back": visits.safe_address(_path(request)),
    }
    return HTMLResponse(render(template, **{**told, **values}), status, headers=HEADERS)


def _to(request: Request, address: str) -> Response:
    """Redirect to a page by a new request that reads."""
    return RedirectResponse(_root(request) + address, 303, headers=HEADERS)


def _root(request: Request) -> str:
    """Return the path prefix of this service on its host."""
    return str(request.scope.get("root_path", "")).rstrip("/")


def _path(request: Request) -> str:
    """Return the path of a request within this service."""
    return request.url.path.removeprefix(_root(request))


_Reading = Callable[[Pages, Request, PageSession], Response]
_Writing = Callable[[Pages, Request, PageSession, Sent], Response]
_Answering = Callable[[Pages, Request, PageSession], Awaitable[Response]]

_HOLDOUT: Final = "/holdouts/{name}"


def routes() -> APIRouter:
    """Return the pages of the service in the application's state ``served``."""
    found = APIRouter()
    endpoints = _Endpoints()
    for path, page in (
        ("/", Pages.holdouts),
        (_HOLDOUT, Pages.leaderboard),
        (f"{_HOLDOUT}/certificate", Pages.certificate),
        (f"{_HOLDOUT}/submissions", Pages.history),
        (f"{_HOLDOUT}/submissions/{{id}}", Pages.submission),
        ("/tokens", Pages.tokens),
        ("/sign-in", Pages.sign_in_form),
    ):
        found.add_route(path, endpoints.showing(page), methods=["GET"], include_in_schema=False)
    for path, form in (
        (f"{_HOLDOUT}/phase", Pages.set_phase),
        ("/tokens", Pages.make_token),
        ("/tokens/{id}/revoke", Pages.revoke),
        ("/sign-out", Pages.sign_out),
    ):
        found.add_route(path, endpoints.taking(form), methods=["POST"], include_in_schema=False)
    found.add_route(f"{_HOLDOUT}/submissions", endpoints.submit, methods=["POST"], include_in_schema=False)
    found.add_route("/sign-in", endpoints.sign_in, methods=["POST"], include_in_schema=False)
    found.add_route("/static/{name}", endpoints.static, methods=["GET"], include_in_schema=False)
    return found


class _Endpoints:
    """Endpoints: sessions, received forms, and refusals as pages."""

    def showing(self, page: _Reading) -> Callable[[Request], Awaitable[Response]]:
        """Return the endpoint of a page that changes nothing."""

        async def answering(pages: Pages, request: Request, who: PageSession) -> Response:
            return await pages.served.admission.read(page, pages, request, who)

        async def endpoint(request: Request) -> Response:
            return await self._answer(request, answering)

        return endpoint

    def taking(self, page: _Writing) -> Callable[[Request], Awaitable[Response]]:
        """Return the endpoint of a small form, which needs a session and its token."""

        async def answering(pages: Pages, request: Request, who: PageSession) -> Response:
            who.check_session()
            sent = await self._sent(request)
            who.check(sent.text("token"))
            return await pages.served.admission.read(page, pages, request, who, sent)

        async def endpoint(request: Request) -> Response:
            return await self._answer(request, answering)

        return endpoint

    async def submit(self, request: Request) -> Response:
        """Accept a form with predictions when there is room for it."""

        async def answering(pages: Pages, request: Request, who: PageSession) -> Response:
            who.check_session()
            served, most = pages.served, pages.served.limits.most_bytes + FORM_BYTES
            holdout = await served.admission.read(served.service.admit, who.principal, request.path_params["name"])
            bodies.check_is_form(request)
            async with (
                served.admission.place(who.principal.token),
                bodies.spooled(request, most) as body,
                served.admission.room(who.principal.token, 2 * body.size),  # the form, and the file in it
            ):
                form = await bodies.parsed_form(request, body.file.read(), files=1, fields=MOST_FIELDS)
                sent = await sent_in(form)
                who.check(sent.text("token"))
                return await served.admission.work(pages.submit, request, who, sent, holdout)

        return await self._answer(request, answering)

    async def sign_in(self, request: Request) -> Response:
        """Accept an API token; its sender has no session yet."""

        async def answering(pages: Pages, request: Request, who: PageSession) -> Response:
            return await pages.served.admission.read(pages.sign_in, request, who, await self._sent(request))

        return await self._answer(request, answering)

    async def static(self, request: Request) -> Response:
        """Answer a static file. Its address changes with its content, so browsers may keep it."""
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
        """Answer a request for its session, and a refusal as a page."""
        served: Served = request.app.state.served
        pages, who = Pages(served), NOBODY
        try:
            who = await served.admission.read(visit, request, served.service)
            request.state.by = who.principal
            return await answering(pages, request, who)
        except ServiceRefused as refused:
            request.state.refused = refused.code
            return pages.refused(request, who, refused)
