"""Sessions in cookies, and tokens that show that a form comes from this service.

A cookie holds the text of a session, never an API token. No script can read it, no other site's request carries it, and
where pages come over https no other connection does.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from thresholdout.service.refusals import ServiceRefused
from thresholdout.service.schemas import Principal
from thresholdout.service.tokens import SESSION_SECONDS

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from thresholdout.service.evaluation import EvaluationService

__all__ = [
    "NOBODY",
    "PageSession",
    "begin",
    "check_sign_in",
    "end",
    "form_text",
    "keep_form",
    "safe_address",
    "token_of",
    "visit",
]

# A sign-in returns to these addresses alone: no other host, and none that changes anything.
_SAFE: Final = re.compile(
    r"/(?:tokens|holdouts/[a-z0-9][a-z0-9-]{0,62}(?:/(?:submissions(?:/[A-Za-z0-9_-]{1,100})?|certificate))?)?"
)


@dataclass(frozen=True, slots=True)
class PageSession:
    """The principal of a request and the text of its session, which is empty for a visitor."""

    principal: Principal
    session: str

    @property
    def token(self) -> str:
        """The token in the forms of this session; empty without a session."""
        return token_of(self.session) if self.session else ""

    def check_session(self) -> None:
        """Refuse visitors, before any content is read."""
        if not self.session:
            raise ServiceRefused("no_token")

    def check(self, token: str) -> None:
        """Refuse a form that this service did not give to this session."""
        self.check_session()
        if not _same(self.token, token):
            raise ServiceRefused("forbidden")


NOBODY: Final = PageSession(Principal("", "viewer"), "")


def visit(request: Request, service: EvaluationService) -> PageSession:
    """Return the session of a request; an expired one counts as none."""
    text = request.cookies.get(_name(request, "session"), "")
    if not text:
        return NOBODY
    try:
        return PageSession(service.sessions.holder(text), text)
    except ServiceRefused as refused:
        if refused.code != "unknown_token":
            raise
        return NOBODY


def begin(request: Request, response: Response, session: str) -> None:
    """Set the session's cookie, and delete the sign-in form's cookie."""
    _keep(request, response, "session", session, SESSION_SECONDS)
    _forget(request, response, "form")


def end(request: Request, response: Response) -> None:
    """Delete the session's cookie."""
    _forget(request, response, "session")


def form_text(request: Request) -> str:
    """Return the secret of the sign-in form's token, since there is no session yet."""
    return request.cookies.get(_name(request, "form"), "") or secrets.token_urlsafe(32)


def keep_form(request: Request, response: Response, text: str) -> None:
    """Set the cookie with the secret of the sign-in form's token."""
    _keep(request, response, "form", text, SESSION_SECONDS)


def check_sign_in(request: Request, token: str) -> None:
    """Refuse a sign-in form that this service did not give to this browser.

    Another site could sign people in with its own API token otherwise.
    """
    if not _same(token_of(form_text(request)), token):
        raise ServiceRefused("forbidden")


def safe_address(text: str) -> str:
    """Return an address of this service's pages, and the first page for any other address.

    Examples
    --------
    >>> safe_address("/holdouts/spring"), safe_address("//elsewhere.example"), safe_address("https://elsewhere.example")
    ('/holdouts/spring', '/', '/')
    """
    return text if _SAFE.fullmatch(text) else "/"


def token_of(text: str) -> str:
    """Return the form token for the text of a cookie."""
    return hmac.new(text.encode("utf-8", "surrogatepass"), b"form", hashlib.sha256).hexdigest()


def _same(one: str, other: str) -> bool:
    """Return whether two texts are equal, in constant time."""
    return hmac.compare_digest(one.encode(), other.encode("utf-8", "surrogatepass"))


def _name(request: Request, what: str) -> str:
    """Return the name of a cookie; over https a name that only this host can set, for all of its paths."""
    name = f"thresholdout-{what}"  # other services of this host, at other ports, share its cookies
    return f"__Host-{name}" if request.url.scheme == "https" else name


def _keep(request: Request, response: Response, what: str, text: str, seconds: int) -> None:
    secure = request.url.scheme == "https"
    response.set_cookie(
        _name(request, what), text, max_age=seconds, path="/", secure=secure, httponly=True, samesite="strict"
    )


def _forget(request: Request, response: Response, what: str) -> None:
    secure = request.url.scheme == "https"
    response.delete_cookie(_name(request, what), path="/", secure=secure, httponly=True, samesite="strict")
