"""Functions that somebody stops with Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any


class Stops:
    """A function that somebody stops with Ctrl-C at some call, before or after it has done its work."""

    def __init__(self, function: Callable[..., Any], at: int, *, after: bool = False) -> None:
        self.function, self.left, self.after = function, at, after

    def __call__(self, *args: Any) -> Any:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise KeyboardInterrupt
        found = self.function(*args)
        if self.left == 0:
            raise KeyboardInterrupt
        return found


class KeepsNames(Stops):
    """The same for a function with named arguments."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        function, self.function = self.function, partial(self.function, **named)
        try:
            return super().__call__(*args)
        finally:
            self.function = function


class StopsAtLine:
    """Ctrl-C at some line of the estimators' modules, of those that a call comes to, one after the other."""

    def __init__(self, at: int, *modules: str) -> None:
        self.left, self.modules = at, modules

    def __enter__(self) -> StopsAtLine:
        self.before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self.before)

    def _call(self, frame: Any, event: str, arg: Any) -> Any:
        return self._line if frame.f_code.co_filename.endswith(self.modules) else None

    def _line(self, frame: Any, event: str, arg: Any) -> Any:
        if event == "line":
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
        return self._line
