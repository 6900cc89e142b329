"""Detection of guards that can be reached from an object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from thresholdout.guard.content_keys import closed_over, is_installed, used_globals
from thresholdout.guard.scorer import GuardScorer
from thresholdout.guard.sharing.shared_objects import SHARED, same
from thresholdout.guard.train_split import TrainSplit

if TYPE_CHECKING:
    from thresholdout.guard.guard import Thresholdout

__all__ = ["reaches"]

_PLAIN: Final = (str, bytes, int, float, complex, type(None), ModuleType, TrainSplit)
_OF_DATA: Final = ("numpy", "pandas", "scipy")


def reaches(guard: Thresholdout, thing: Any) -> bool:
    """Return whether a guard, or a scorer that queries it, can be reached from an object.

    The search follows parameters of estimators, items of containers, closures, defaults and globals of functions, and
    attributes of all else. A splitter of the guard makes no queries.

    Examples
    --------
    >>> import numpy as np
    >>> from thresholdout import Claims, Thresholdout
    >>> guard = Thresholdout(np.arange(100.0), queries=10, mechanism=Claims(holdout_answers=2))
    >>> reaches(guard, [{"a": lambda: guard}]), reaches(guard, [{"a": lambda: 1}])
    (True, False)
    """
    seen: dict[int, Any] = {}
    waiting = [thing]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, _PLAIN):
            continue
        seen[id(one)] = one  # a reference, so that no new object gets its id
        if isinstance(one, GuardScorer):
            one = one.guard
        if hasattr(type(one), SHARED):
            if same(guard, one):
                return True
            continue
        waiting.extend(_next(one))
    return False


def _next(thing: Any) -> Iterator[Any]:
    """Yield the objects that an object holds or uses."""
    if isinstance(thing, Mapping):
        yield from thing.values()
    elif isinstance(thing, (list, tuple, set, frozenset)):
        yield from thing
    elif isinstance(thing, partial):
        yield from (thing.func, thing.args, thing.keywords)
    elif isinstance(thing, MethodType):
        yield from (thing.__self__, thing.__func__)
    elif isinstance(thing, FunctionType):
        yield from (thing.__defaults__, thing.__kwdefaults__, vars(thing))
        for cell in thing.__closure__ or ():
            yield from closed_over(cell)
        if not is_installed(thing):
            yield from used_globals(thing).values()
    elif isinstance(thing, type):
        if not is_installed(thing):
            yield from list(vars(thing).values())
    elif type(thing).__module__.partition(".")[0] not in _OF_DATA:
        yield type(thing)
        if hasattr(thing, "get_params"):
            yield thing.get_params(deep=False)
        else:
            yield getattr(thing, "__dict__", None)
