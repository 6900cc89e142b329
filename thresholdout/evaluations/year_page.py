"""The page about the year of a guarded evaluation set, by a template in ``thresholdout/report/templates``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from thresholdout.report.page import templates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thresholdout.evaluations.check_results import Event, Status

__all__ = ["year_page"]


def year_page(status: Status) -> str:
    """Return the page as HTML without scripts or external files."""
    drawn = _drawing(status.history) if status.history else {}
    return (
        templates()
        .get_template("year.html")
        .render(s=status, test=status.tests[0 if status.mode == "alarm" else 1], facts=_facts(status), **drawn)
    )


def _facts(status: Status) -> list[tuple[str, str]]:
    """Return the numbers at the top with their names."""
    gate = f"{status.gate_items:,}"
    if status.clusters != status.gate_items:
        gate += f" in {status.clusters:,} clusters"
    promoted = [each.dev_difference for each in status.history if each.outcome == "promoted"]
    return [
        ("checks", f"{status.done:,} of {status.checks:,}"),
        ("surprises", f"{status.surprised:,} of {status.surprises:,}"),
        ("main against the release", f"{100 * promoted[-1]:+z.1f} points" if promoted else "the same run"),
        ("gate items, compared", gate),
        ("dev items, open to all", f"{status.dev_items:,}"),
    ]


def _drawing(history: Sequence[Event]) -> dict[str, object]:
    """Return the positions of everything drawn, in percent of the drawing: main as steps, checks, and alarms."""
    points = [100.0 * each.dev_difference for each in history]
    drops = [None if each.smallest_drop is None else 100.0 * each.smallest_drop for each in history]
    most = max(1.0, *map(abs, points), *(drop for drop in drops if drop is not None))
    power = 10.0 ** math.floor(math.log10(most))
    step = next(share * power for share in (0.5, 1.0, 1.5, 2.5, 5.0) if 2.0 * share * power >= most)
    reach = 2.2 * step

    def height(value: float) -> float:
        return round(50.0 - 50.0 * value / reach, 2)

    def across(number: float) -> float:
        return round(100.0 * number / (len(history) + 1), 2)

    main: list[tuple[float, float, float, float]] = []
    checks, alarms = [], []
    start, value = 0.0, 0.0
    for number, (event, found) in enumerate(zip(history, points, strict=True), 1):
        name = f"{event.name}: {found:+z.1f}"
        if event.outcome == "promoted":
            main.append((across(start), height(value), across(number), height(value)))
            main.append((across(number), height(value), across(number), height(found)))
            start, value = number, found
        elif event.outcome == "worse":
            alarms.append((across(number), height(found), name))
        else:
            checks.append((across(number), height(found), name))
    main.append((across(start), height(value), 100.0, height(value)))
    ranges = [
        (across(number - 0.5), across(1.0), height(-drop)) for number, drop in enumerate(drops, 1) if drop is not None
    ]
    return {
        "caption": "Differences from the release: main as a line, checks as dots, alarms as crosses",
        "ticks": [(height(k * step), f"{k * step:+.12g}" if k else "0") for k in (2, 1, 0, -1, -2)],
        "ranges": ranges,
        "main": main,
        "checks": checks,
        "alarms": alarms,
    }
