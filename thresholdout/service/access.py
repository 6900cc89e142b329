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
        """Create the first API token of an administrator.

        Returns
        -------
        str or None
            Text of the token, which is shown this once, or None if the service has or had an administrator's token
            already.
        """
        return self._tokens.first("the first token")

    def authenticate(self, text: str | None) -> Principal:
        """Identify the caller by an API token. The other methods take the result as their first argument.

        Parameters
        ----------
        text : str or None
            Text of the API token. If None, the caller is a visitor, who has access to public holdouts only.

        Returns
        -------
        Principal
            The caller, with the attributes `role` ("admin", "team" or "viewer") and `team`.

        Raises
        ------
        ServiceRefused
            With the code "unknown_token" if the token is unknown or was revoked.
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
        """Create an API token for an administrator, a team or a viewer.

        Parameters
        ----------
        by : Principal
            Caller, as returned by `authenticate`. Only administrators may call this method.
        role : {"admin", "team", "viewer"}
            Rights of the holder. An administrator manages holdouts and tokens, a team submits predictions, and a viewer
            reads leaderboards that are not public.
        team : str, default ""
            Name of the team, for the role "team" alone: lower-case letters, digits and hyphens.
        note : str, default ""
            Purpose of the token, shown in the list of tokens.

        Returns
        -------
        text : str
            Text of the token, which is shown this once. Only its digest is stored.
        token : Token
            The token as `tokens` lists it, with the attributes `id`, `role`, `team`, `note`, `made` and `revoked`.

        Raises
        ------
        ServiceRefused
            With the code "bad_request" if the role is unknown, or a team is given for another role. With "bad_name" if
            the team's name or the note has characters that are not allowed, or is too long.
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
        """Return all API tokens without their texts, the oldest first.

        Parameters
        ----------
        by : Principal
            Caller, as returned by `authenticate`. Only administrators may call this method.

        Returns
        -------
        list of Token
            Each token has the attributes `id`, `role`, `team`, `note`, and the POSIX timestamps `made` and `revoked`.
        """
        return self._tokens.all()

    @checked
    def revoke(self, by: Principal, id: str) -> Token:
        """Revoke an API token, so that it can no longer be used.

        Parameters
        ----------
        by : Principal
            Caller, as returned by `authenticate`. Only administrators may call this method.
        id : str
            Attribute `id` of the token, the public first characters of its text.

        Returns
        -------
        Token
            The revoked token. Revoking it again changes nothing.

        Raises
        ------
        ServiceRefused
            With the code "not_found" if there is no such token.
        """
        found = self._tokens.revoke(id)
        if found is None:
            raise ServiceRefused("not_found")
        return found
