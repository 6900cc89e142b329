"""Cards in a real browser: readable in light and dark notebooks, at any width, and dead."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cases import for_each
from tests.thresholdout.notebook.shown import shown
from tests.thresholdout.report import browser

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.skipif(browser.missing() is not None, reason=str(browser.missing()))

THEMES = {"light": ("rgb(27, 27, 27)", "rgb(255, 255, 255)"), "dark": ("rgb(221, 221, 221)", "rgb(17, 17, 17)")}


@pytest.fixture(scope="module")
def chrome() -> "Iterator[Page]":
    with browser.started() as driver:
        yield driver.new_page(viewport={"width": 1000, "height": 900})


def load(chrome: "Page", folder: Path, theme: str, width: int) -> None:
    text, ground = THEMES[theme]
    cards = "".join(thing._repr_html_() for thing in shown().values())
    page = folder / "notebook.html"
    page.write_text(
        "<!DOCTYPE html><meta charset=utf-8><title>notebook</title>"
        f"<body style='color: {text}; background: {ground}; margin: 0; width: {width}px'>{cards}</body>",
        encoding="utf-8",
    )
    chrome.goto(page.as_uri())


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour, as the accessibility guidelines define it (WCAG 2.2)."""
    parts = [float(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.slow
@for_each("theme", THEMES)
def test_colours_are_the_notebooks_and_dots_stand_out(chrome: "Page", tmp_path: Path, theme: str) -> None:
    load(chrome, tmp_path, theme, 900)
    text, ground = THEMES[theme]
    colours: list[str] = chrome.evaluate(
        "[...document.querySelectorAll('.thresholdout-card p, .thresholdout-card td')]"
        ".map(e => getComputedStyle(e).color)"
    )
    assert set(colours) == {text}
    dots: list[str] = chrome.evaluate(
        "[...document.querySelectorAll('.thresholdout-dot')].map(e => getComputedStyle(e).backgroundColor)"
    )
    assert len(set(dots)) == 2
    assert min(contrast(dot, ground) for dot in dots) >= 3.0


@pytest.mark.slow
@for_each("width", [900, 480])
def test_nothing_reaches_out_of_its_card(chrome: "Page", tmp_path: Path, width: int) -> None:
    load(chrome, tmp_path, "light", width)
    assert chrome.title() == "notebook"  # no script of a name has run
    assert chrome.evaluate("document.scripts.length") == 0
    reach: list[Any] = chrome.evaluate(
        "[...document.querySelectorAll('.thresholdout-card')].map(card => {"
        "const edge = card.getBoundingClientRect().right + 1;"
        "return [...card.querySelectorAll('p, span, div')].filter(e => e.getBoundingClientRect().right > edge)"
        ".map(e => e.className + e.textContent.slice(0, 40))})"
    )
    assert [out for card in reach for out in card] == []


@pytest.mark.slow
def test_bars_are_where_they_say(chrome: "Page", tmp_path: Path) -> None:
    load(chrome, tmp_path, "light", 900)
    answer = shown()["answer"]
    ends: list[float] = chrome.evaluate(
        "() => { const card = document.querySelectorAll('.thresholdout-card')[1];"
        "const track = card.querySelector('.thresholdout-track').getBoundingClientRect();"
        "const bar = card.querySelector('.thresholdout-bar').getBoundingClientRect();"
        "return [(bar.left - track.left) / track.width, (bar.right - track.left) / track.width] }"
    )
    assert ends == pytest.approx(answer.interval, abs=0.003)
