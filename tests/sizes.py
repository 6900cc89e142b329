"""What of a long test the default run does; `make test-slow` does the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def corners(cases: Iterable[Any], *places: int) -> list[Any]:
    """Return the cases of a parametrised test, all but those at the given places marked as slow.

    A tuple is a case of several arguments; one argument that is a tuple is given as ``pytest.param``.
    """
    sets = [
        case if hasattr(case, "marks") else pytest.param(*(case if isinstance(case, tuple) else (case,)))
        for case in cases
    ]
    if not set(places) <= set(range(len(sets))):
        raise ValueError(f"places must be numbers from 0 on, below {len(sets)}; got {places}.")
    return [
        case if place in places else pytest.param(*case.values, id=case.id, marks=(*case.marks, pytest.mark.slow))
        for place, case in enumerate(sets)
    ]


def sized(cases: Iterable[tuple[Any, ...]], few: Any, many: Any, *places: int) -> list[Any]:
    """Return cases with a size as their last argument: those at the places with a few, and all with many when slow."""
    given = list(cases)
    quick = [pytest.param(*given[place], few) for place in places]
    return [*quick, *(pytest.param(*case, many, marks=pytest.mark.slow) for case in given)]


def sizes(name: str, few: int, many: int) -> pytest.MarkDecorator:
    """Return a mark that runs a test with a few of what it repeats, and with many when slow."""
    return pytest.mark.parametrize(name, [few, pytest.param(many, marks=pytest.mark.slow)])
