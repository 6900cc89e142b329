"""API tokens of the service: who they stand for, new ones, and revoked ones."""

from __future__ import annotations

import logging
from typing import Final, get_args

from thresholdout.errors import ThresholdoutError
from thresholdout.service.authority import checked
from thresholdout.service.refusals import ServiceRefused
from thresholdout.service.schemas import Principal, Role, Token
from thresholdout.service.settings import check_name, check_text
from thresholdout.service.tokens import Tokens

__all__ = ["Access"]

_log: Final = logging.getLogger("thresholdout.service")


class Access:
    """The part of the service that is about API tokens."""

    _tokens: Tokens

    def first_admin_token(self) -> str | None:
        """Return the text of the first administrator's API token once; ``None`` if there is or was one."""
        return self._tokens.first("the first token")

    def authenticate(self, text: str | None) -> Principal:
        """Return the holder of a token; without a token, a visitor who sees public holdouts only.

        Parameters
        ----------
        text : str or None
            The text of the token.

        Returns
        -------
        Principal
            The holder.

        Raises
        ------
        ServiceRefused
            "unknown_token": the token is unknown, or was revoked.
        """
        return Principal("", "viewer") if text is None else self._holder(text)

    def _holder(self, text: str) -> Principal:
        try:
            return self._tokens.holder(text)
        except ServiceRefused:
            raise
        except ThresholdoutError as error:
            _log.error("an API token was not looked up: %s", type(error).__name__)
        raise ServiceRefused("unavailable", retry_after=5)

    @checked
    def new_token(self, by: Principal, role: Role, team: str = "", note: str = "") -> tuple[str, Token]:
        """Make an API token.

        Parameters
        ----------
        by : Principal
            An administrator.
        role : {"admin", "team", "viewer"}
            Role of the holder.
        team : str, default ""
            The team, for the role "team" alone: lower-case letters, digits and hyphens.
        note : str, default ""
            Purpose of the token, in words.

        Returns
        -------
        text : str
            The token's text, which is shown this once.
        token : Token
            The token as it is listed.
        """
        if role not in get_args(Role):
            raise ServiceRefused("bad_request", argument="role", expected=list(get_args(Role)))
        if role == "team":
            check_name("team", team)
        elif team:
            raise ServiceRefused("bad_request", argument="team")
        return self._tokens.add(role, team, check_text("note", note))

    @checked
    def tokens(self, by: Principal) -> list[Token]:
        """Return all API tokens without their texts, the oldest first."""
        return self._tokens.all()

    @checked
    def revoke(self, by: Principal, id: str) -> Token:
        """Revoke an API token."""
        found = self._tokens.revoke(id)
        if found is None:
            raise ServiceRefused("not_found")
        return found
