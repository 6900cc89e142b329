"""A list of named cases: functions that return numbers, texts and tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Case = Callable[[], Any]


class Cases(dict[str, Case]):
    """Named cases; a name that occurs twice is refused."""

    def add(self, name: str, function: Case) -> None:
        """Add a case under a name."""
        if name in self:
            raise KeyError(f"there are two cases called {name!r}")
        self[name] = function

    def case(self, name: str) -> Callable[[Case], Case]:
        """Return a decorator that adds a function under a name."""

        def decorate(function: Case) -> Case:
            self.add(name, function)
            return function

        return decorate
