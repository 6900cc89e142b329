"""Refusals as pages say them: the one text of the code, what it depends on, and when to come again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from thresholdout.service.refusals import REFUSALS, ServiceRefused

__all__ = ["RefusedView", "refused_view"]

_TITLES: Final = {
    400: "This cannot be used",
    401: "A key is needed",
    403: "Not with this key",
    404: "Nothing here",
    409: "Not any more",
    413: "Too large",
    415: "Not a table",
    429: "Not now",
    503: "Try again soon",
}
_UNSAID: Final = {"permanent"}
_UNITS: Final = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


@dataclass(frozen=True, slots=True)
class RefusedView:
    """A refusal as a page shows it.

    Attributes
    ----------
    title, text : str
        In short, and the fixed text of the code.
    details : list of str
        Positions, names and limits.
    later : str
        After which time the same request may be taken; empty where none is known.
    """

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
    """Return a detail as people read it."""
    return ", ".join(map(_said, value)) if isinstance(value, list | tuple) else str(value)


def _duration(seconds: int) -> str:
    """Return seconds in words, rounded up in the unit that fits."""
    size, unit = next((size, unit) for size, unit in _UNITS if seconds >= size or size == 1)
    count = -(-seconds // size)
    return f"{count} {unit}{'' if count == 1 else 's'}"
