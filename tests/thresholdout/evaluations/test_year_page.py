"""The drawing of a year: positions follow from the differences, and main is a connected line."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from thresholdout.evaluations.check_results import Event, Status
from thresholdout.evaluations.year_page import year_page

EVENTS = (
    Event(1, "nothing", "one", 0.0, 0.04, 0.10),
    Event(2, "worse", "two", 86_400.0, -0.12, 0.10),
    Event(3, "promoted", "three", 86_400.0, 0.06, 0.12),
    Event(4, "promoted", "four", 172_800.0, -0.02, None),
)
STATUS = Status(
    "match",
    "alarm",
    "year",
    300,
    100,
    300,
    ("sign test", "exact trinomial"),
    "",
    0.0,
    300,
    2,
    5,
    1,
    0.01,
    0.12,
    None,
    None,
    EVENTS,
)


def drawing(status: Status) -> ElementTree.Element:
    found = re.search(r"<svg.*</svg>", year_page(status), re.DOTALL)
    assert found is not None
    return ElementTree.fromstring(found.group().replace("&times;", "x"))


def percent(text: str | None) -> float:
    assert text is not None
    return float(text.removesuffix("%"))


def test_heights_are_linear_in_the_differences() -> None:
    svg = drawing(STATUS)
    zero = next(percent(line.get("y1")) for line in svg.iter("line") if line.get("class") == "grid zero")
    check = zero - percent(next(svg.iter("circle")).get("cy"))
    alarm = zero - percent(next(svg.iter("text")).get("y"))
    ranges = [zero - percent(each.get("y")) for each in svg.iter("rect")]
    assert check > 0.0
    assert alarm == pytest.approx(-3.0 * check, abs=0.05)
    assert ranges == pytest.approx([-2.5 * check, -2.5 * check, -3.0 * check], abs=0.05)
    grid = [zero - percent(line.get("y1")) for line in svg.iter("line") if str(line.get("class")).startswith("grid")]
    assert max(grid) == pytest.approx(5.0 * check, abs=0.1)  # +20 points where the check has +4


def test_main_is_one_line_from_the_left_to_the_right() -> None:
    svg = drawing(STATUS)
    ends = [
        [percent(line.get(end)) for end in ("x1", "y1", "x2", "y2")]
        for line in svg.iter("line")
        if line.get("class") == "main"
    ]
    assert ends[0][0] == 0.0
    assert ends[-1][2] == 100.0
    for one, following in pairwise(ends):
        assert one[2:] == following[:2]
    assert len(ends) == 2 * 2 + 1


def test_numbers_at_the_top_and_rows() -> None:
    text = year_page(STATUS)
    assert "<dd>-2.0 points</dd>" in text
    assert [int(each) for each in re.findall(r'data-is="event">(\d+)', text)] == [4, 3, 2, 1]
    assert "1970-01-03" in text
    assert "a drop of 12.0 points" in text
    assert "<dd>300 in 60 clusters</dd>" in year_page(replace(STATUS, clusters=60))


def test_a_difference_that_rounds_to_none_has_no_minus() -> None:
    text = year_page(replace(STATUS, history=(Event(1, "promoted", "one", 0.0, -0.0003, 0.1),)))
    assert "<dd>+0.0 points</dd>" in text
    assert "-0.0" not in re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)


def test_a_closed_set_and_one_without_checks() -> None:
    assert "This evaluation set is closed: moved." in year_page(replace(STATUS, closed="moved"))
    empty = year_page(replace(STATUS, history=()))
    assert "No run was checked yet" in empty
    assert "<svg" not in empty
    assert "No drop can be detected any more" in year_page(replace(STATUS, smallest_drop=None))
