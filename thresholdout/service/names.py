"""Names and texts that people and programs give: what is taken, checked before anything else is done."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from thresholdout.service.refusals import ServiceRefused

__all__ = ["check_name", "check_request_key", "check_text"]

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_ALLOWED: Final = "1 to 63 lower-case letters, digits and hyphens, a letter or digit first"
_MOST: Final = 100
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that show nothing, or change how others are shown."""


def check_name(argument: str, name: object) -> str:
    """Return the name of a team or a holdout.

    Raises
    ------
    ServiceRefused
        It is not one: lower-case letters, digits and hyphens, at most 63, and a letter or digit first.

    Examples
    --------
    >>> check_name("name", "ward-7")
    'ward-7'
    """
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise ServiceRefused("bad_name", argument=argument, expected=_ALLOWED)
    return name


def check_text(argument: str, text: object) -> str:
    """Return a line that is shown to others.

    Raises
    ------
    ServiceRefused
        It has more than 100 characters, or one that is not printed or changes the order of others.

    Examples
    --------
    >>> check_text("title", "Readmission, spring")
    'Readmission, spring'
    """
    if not isinstance(text, str) or len(text) > _MOST or any(unicodedata.category(one) in _HIDDEN for one in text):
        raise ServiceRefused("bad_name", argument=argument)
    return text


def check_request_key(text: object) -> str:
    """Return an Idempotency-Key.

    Raises
    ------
    ServiceRefused
        It is not 1 to 200 printable ASCII characters.

    Examples
    --------
    >>> check_request_key("run 12")
    'run 12'
    """
    if not isinstance(text, str) or not 1 <= len(text) <= 200 or not (text.isascii() and text.isprintable()):
        raise ServiceRefused("bad_request", argument="Idempotency-Key")
    return text
