"""Roles and the methods that they may call; the refusals that leave a method when something fails."""

from __future__ import annotations

import functools
import logging
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, TypeVar

from thresholdout.errors import LedgerDamaged
from thresholdout.service.refusals import ServiceRefused
from thresholdout.service.schemas import Principal, Role

__all__ = ["PERMITTED", "check_role", "checked", "may_see"]

if TYPE_CHECKING:
    from thresholdout.service.store.holdouts import HoldoutRow

_log: Final = logging.getLogger("thresholdout.service")

Service = TypeVar("Service")
Given = ParamSpec("Given")
Result = TypeVar("Result")
Method = Callable[Concatenate[Service, Principal, Given], Result]

# By method of the service. Visitors without a token are viewers who see public holdouts only. Administrators submit
# nothing: a submission counts against a team's allowance. A person who organises and submits has two API tokens.
PERMITTED: Final[dict[str, frozenset[Role]]] = {
    "new_token": frozenset({"admin"}),
    "tokens": frozenset({"admin"}),
    "revoke": frozenset({"admin"}),
    "create_holdout": frozenset({"admin"}),
    "set_phase": frozenset({"admin"}),
    "correct": frozenset({"admin"}),
    "export": frozenset({"admin"}),
    "outlook": frozenset({"admin"}),
    "submit": frozenset({"team"}),
    "compare": frozenset({"team"}),
    "admit": frozenset({"team"}),
    "failed": frozenset({"admin", "team"}),
    "submission": frozenset({"admin", "team"}),
    "history": frozenset({"admin", "team"}),
    "holdouts": frozenset({"admin", "team", "viewer"}),
    "holdout": frozenset({"admin", "team", "viewer"}),
    "leaderboard": frozenset({"admin", "team", "viewer"}),
}


def check_role(by: Principal, method: str) -> None:
    """Refuse a method to roles that may not call it."""
    if by.role not in PERMITTED[method]:
        raise ServiceRefused("forbidden" if by.token or by.role == "admin" else "no_token")


def checked(method: Method[Service, Given, Result]) -> Method[Service, Given, Result]:
    """Check the caller's role before a method runs, and replace every error by a refusal.

    Errors are logged with their kind and lines only: messages could show submitted data.
    """
    name = method.__name__

    @functools.wraps(method)
    def done(service: Service, by: Principal, /, *given: Given.args, **named: Given.kwargs) -> Result:
        check_role(by, name)
        try:
            return method(service, by, *given, **named)
        except ServiceRefused:
            raise
        except LedgerDamaged as damaged:
            _log.error("%s failed: %s", name, damaged)
            raise ServiceRefused("damaged") from None
        except Exception as error:
            where = "; ".join(f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__))
            _log.error("%s failed: %s in %s", name, type(error).__name__, where)
        raise ServiceRefused("unavailable", retry_after=5)

    return done


def may_see(by: Principal, holdout: HoldoutRow) -> bool:
    """Return whether a holdout is visible: to every holder of an API token, and to visitors where it is public."""
    return bool(by.token) or by.role == "admin" or holdout.settings.public
