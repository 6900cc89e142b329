"""Suppression of warnings in one thread, since warnings about a holdout could show its records.

`warnings.catch_warnings` suspends the warnings of all threads and restores the filters that it found: if two threads
overlap, the one that ends last restores the suppression of the other, permanently. Here every other thread of the
process keeps its warnings, and the last to end leaves everything as it was.

Two things silence a thread. The first is a filter in `warnings.filters` with an attribute of each thread in place of a
regular expression; no other thread can run while it decides, since `warnings` does not keep filters alive meanwhile. A
filter also keeps warnings from becoming errors, and from being recorded as shown. The second is a check before a
warning is shown, for two cases that no filter sees: another thread's ``catch_warnings`` has removed the filter, or a
silent thread has started threads of its own, which cannot be distinguished from others that start meanwhile.
"""

from __future__ import annotations

import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["suppress_warnings"]

_ALL: Final = re.compile("")
_NONE: Final = re.compile(r"(?!)")


class _InThread(threading.local):
    """Replaces a regular expression; matches every text in silent threads, and none in others."""

    match = staticmethod(_NONE.match)  # no function of Python's, in which another thread could take over

    @property
    def pattern(self) -> str:
        """The equivalent regular expression of this thread; pools pass filters on to their threads in this form."""
        category = next(category for category, place in _places.items() if place is self)
        return (_ALL if _is_silent(category) else _NONE).pattern

    def __reduce__(self) -> tuple[Callable[[str], re.Pattern[str]], tuple[str]]:
        return re.compile, (self.pattern,)  # and to their processes like this


@dataclass(frozen=True, eq=False, slots=True)
class _Silence:
    """One active suppression."""

    category: type[Warning]
    owner: int
    """The thread."""
    others: frozenset[int | None]
    """The threads that were there before, by their numbers in the system, which no later thread has."""


_lock = threading.RLock()
_going_on: tuple[_Silence, ...] = ()
_places: Final[dict[type[Warning], _InThread]] = {}
_show: Any = None
"""The function that shows warnings of other threads while some thread suppresses its own."""


@contextmanager
def suppress_warnings(*categories: type[Warning]) -> Iterator[None]:
    """Show no warnings of this thread, nor of threads that start meanwhile, and do not turn them into errors.

    Without ``categories`` all warnings are suppressed.

    Examples
    --------
    >>> import warnings
    >>> before = list(warnings.filters)
    >>> with suppress_warnings():
    ...     warnings.warn("record 7 has an unknown category")
    >>> before == warnings.filters
    True
    """
    others = frozenset(thread.native_id for thread in threading.enumerate()) - {threading.get_native_id()}
    begun = tuple(_Silence(category, threading.get_ident(), others) for category in categories or (Warning,))
    try:
        _change(lambda silences: (*silences, *begun))
        yield
    finally:
        _change(lambda silences: tuple(one for one in silences if one not in begun))


def _change(change: Callable[[tuple[_Silence, ...]], tuple[_Silence, ...]]) -> None:
    """Begin or end suppressions, and update `warnings` and this thread's attributes."""
    global _going_on
    with _lock:
        _going_on = change(_going_on)
        _settle()


def _settle() -> None:
    global _show
    here = {one.category for one in _going_on if one.owner == threading.get_ident()}
    for category in here - _places.keys():
        _places[category] = _InThread()
    for category, place in _places.items():
        if category in here:
            place.match = _ALL.match
        else:
            vars(place).pop("match", None)
    wanted = {one.category for one in _going_on}
    filters: list[Any] = [("ignore", _places[category], category, None, 0) for category in wanted]
    found: Any = warnings.filters  # the same list object, so that the record of shown warnings stays valid
    found[:] = filters + [each for each in found if not isinstance(each[1], _InThread)]
    if wanted and _show is None:
        _show = vars(warnings)["_showwarnmsg"]
        vars(warnings)["_showwarnmsg"] = _show_unless_silent
    elif not wanted and _show is not None:
        vars(warnings)["_showwarnmsg"], _show = _show, None


def _show_unless_silent(message: Any) -> None:
    """Show a warning, unless its thread is silent or may belong to a silent one."""
    show = _show
    if not _is_silent(message.category):
        (show or vars(warnings)["_showwarnmsg"])(message)


def _is_silent(category: type[Warning]) -> bool:
    """Whether this thread shows no warnings of a category: by its own suppression, or by one at its start."""
    ident, native = threading.get_ident(), threading.get_native_id()
    return any(
        issubclass(category, one.category) and (one.owner == ident or native not in one.others) for one in _going_on
    )


def _start_afresh() -> None:
    """End, in a forked child, the silences of threads that it does not have."""
    global _lock
    _lock = threading.RLock()
    _change(lambda silences: tuple(one for one in silences if one.owner == threading.get_ident()))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_afresh)
