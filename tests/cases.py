"""Cases of one test in one loop."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest

Test = Callable[..., None]

#: Whether a case that fails is the last: where only whether a test fails matters.
ends_at_a_failure = False


def for_each(
    names: str | tuple[str, ...], cases: Iterable[Any], ids: Iterable[str] | Callable[[Any], Any] | None = None
) -> Callable[[Test], Test]:
    """Call a test with every case, as ``pytest.mark.parametrize`` does, but as one test.

    Every case is run, also after one that fails, and each failure names its case. A case has a folder, patches and
    captured output of its own.
    """
    arguments = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else names
    rows = list(cases)
    if not rows:
        raise ValueError("cases is empty: pass at least one case.")
    values = [_values(row, len(arguments), isinstance(names, str)) for row in rows]
    labels = _labels(rows, ids)

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)

        @wraps(test)
        def loop(*positional: Any, **fixtures: Any) -> None:
            __tracebackhide__ = True
            failures: list[BaseException] = []
            for place, (label, row) in enumerate(zip(labels, values, strict=True)):
                given = dict(zip(arguments, row, strict=True))
                with pytest.MonkeyPatch.context() as patches:
                    own = dict(fixtures)
                    if "monkeypatch" in own:
                        own["monkeypatch"] = patches
                    if "tmp_path" in own:
                        own["tmp_path"] = own["tmp_path"] / f"case{place}"
                        own["tmp_path"].mkdir()
                    if "capsys" in own:
                        own["capsys"].readouterr()
                    try:
                        test(*positional, **own, **given)
                    except (Exception, pytest.fail.Exception) as failure:
                        if ends_at_a_failure:
                            raise
                        shown = ", ".join(f"{name}={reprlib.repr(value)}" for name, value in given.items())
                        failure.add_note(f"case {label}: {shown}")
                        failures.append(failure)
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(rows)} cases failed", failures)

        others = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        if len(others) + len(arguments) != len(signature.parameters):
            raise ValueError(f"names must be arguments of {test.__name__}; got {names}.")
        loop.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]  # fixtures, for pytest
        return loop

    return decorate


def _values(row: Any, count: int, one_string: bool) -> tuple[Any, ...]:
    """Return the arguments of a case."""
    if hasattr(row, "marks"):
        if row.marks:
            raise ValueError(f"The case {row} has marks: a loop cannot leave it out. Use pytest.mark.parametrize.")
        return tuple(row.values)
    return (row,) if count == 1 and one_string else tuple(row)


def _labels(rows: list[Any], ids: Iterable[str] | Callable[[Any], Any] | None) -> list[str]:
    """Return the names of cases: their own, those of the list, or their places."""
    if ids is None:
        named: list[Any] = [*range(len(rows))]
    else:
        named = [ids(row) for row in rows] if callable(ids) else list(ids)
    own = [getattr(row, "id", None) if hasattr(row, "marks") else None for row in rows]
    return [str(name if given is None else given) for name, given in zip(named, own, strict=True)]
