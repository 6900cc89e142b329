"""Checks of a holdout's settings, and of names and texts that are shown."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final, get_args

from thresholdout.errors import InputError
from thresholdout.service.refusals import ServiceRefused, details_of
from thresholdout.service.schemas import Feedback, Phase
from thresholdout.service.standings import served_metric
from thresholdout.service.store.holdouts import Settings

if TYPE_CHECKING:
    from thresholdout.scoring.metrics import Metric

__all__ = ["check_name", "check_phase", "check_request_key", "check_size", "check_text", "checked_settings"]

# Names appear in addresses, files and lines of the log.
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_ALLOWED: Final = "1 to 63 lower-case letters, digits and hyphens, a letter or digit first"
# Characters of a displayed text.
_MOST: Final = 100
# Categories of characters that are invisible, or change the display of others.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def check_name(argument: str, name: object) -> str:
    """Return the name of a team or a holdout."""
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise ServiceRefused("bad_name", argument=argument, expected=_ALLOWED)
    return name


def check_text(argument: str, text: object) -> str:
    """Return a line that is shown to others."""
    if not isinstance(text, str) or len(text) > _MOST or any(unicodedata.category(one) in _HIDDEN for one in text):
        raise ServiceRefused("bad_name", argument=argument)
    return text


def check_request_key(text: object) -> str:
    """Return an Idempotency-Key."""
    if not isinstance(text, str) or not 1 <= len(text) <= 200 or not (text.isascii() and text.isprintable()):
        raise ServiceRefused("bad_request", argument="Idempotency-Key")
    return text


# Least number of records: with fewer, an interval at confidence 0.95 covers at least half of the range.
_FEWEST: Final = 20


def checked_settings(
    title: object, metric: object, public: object, feedback: Feedback, quota: object, quota_days: object
) -> tuple[Metric, Settings]:
    """Return the metric and the settings of a new holdout; see `Settings`."""
    chosen = _metric(metric)
    if feedback not in get_args(Feedback):
        raise ServiceRefused("bad_request", argument="feedback", expected=list(get_args(Feedback)))
    if not isinstance(public, bool):
        raise ServiceRefused("bad_request", argument="public", expected="true or false")
    if quota is not None and (not isinstance(quota, int) or isinstance(quota, bool) or quota < 1):
        raise ServiceRefused("bad_request", argument="quota", expected="an integer of at least 1, or nothing")
    if quota_days is not None and (
        quota is None or not isinstance(quota_days, int | float) or not 0.0 < quota_days <= 36500.0
    ):
        raise ServiceRefused("bad_request", argument="quota_days", expected="days beside a quota, above 0")
    days = None if quota_days is None else float(quota_days)
    return chosen, Settings(check_text("title", title), chosen.name, public, feedback, quota, days)


def check_phase(phase: Phase) -> Phase:
    """Return a phase that a holdout can be in."""
    if phase not in get_args(Phase):
        raise ServiceRefused("bad_request", argument="phase", expected=list(get_args(Phase)))
    return phase


def _metric(metric: object) -> Metric:
    """Return the metric of a name."""
    try:
        return served_metric(metric)
    except InputError as error:
        raise ServiceRefused("bad_request", **details_of(error)) from None


def check_size(records: int) -> None:
    """Refuse a holdout that is too small for a useful answer.

    Examples
    --------
    >>> check_size(1)
    Traceback (most recent call last):
    thresholdout.service.refusals.ServiceRefused: The table cannot be used. Nothing was charged.
    """
    if records < _FEWEST:
        seen, expected = f"{records} record{'' if records == 1 else 's'}", f"at least {_FEWEST}"
        raise ServiceRefused("bad_table", argument="holdout", seen=seen, expected=expected)
