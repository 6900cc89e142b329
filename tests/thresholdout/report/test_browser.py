"""The page in a real browser: complete, without a network, readable on screens and on paper."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cases import for_each
from tests.thresholdout.report import browser
from tests.thresholdout.report.lives import long_life

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.skipif(browser.missing() is not None, reason=str(browser.missing()))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return long_life().report("Spring <leaderboard>").save(tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="module")
def chrome() -> "Iterator[Browser]":
    with browser.started() as driver:
        yield driver


@pytest.fixture(scope="module")
def shown(chrome: "Browser", saved: Path) -> "Page":
    page = chrome.new_page(viewport={"width": 1000, "height": 900})
    page.goto(saved.as_uri())
    return page


@pytest.mark.slow
def test_the_page_is_complete(shown: "Page") -> None:
    assert shown.title() == "Spring <leaderboard>"
    assert shown.locator("h1").text_content() == "Spring <leaderboard>"
    assert shown.evaluate("document.compatMode") == "CSS1Compat"
    headings = shown.locator("h2").all_text_contents()
    assert headings[0].startswith("Other queries")
    assert headings[-1] == "History"
    assert "rule <script>alert(7)</script>" in shown.locator("tbody td:nth-child(2)").all_text_contents()
    assert shown.evaluate("document.scripts.length") == 0


@pytest.mark.slow
def test_every_bar_is_drawn(shown: "Page") -> None:
    sizes = shown.evaluate(
        "[...document.querySelectorAll('table.bars rect')].map(r => r.getBoundingClientRect().width)"
    )
    assert len(sizes) == shown.locator("table.bars tbody tr").count() > 10
    assert all(width > 5 for width in sizes)


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_colours_follow_the_reader(chrome: "Browser", saved: Path, scheme: Any, dark: bool) -> None:
    page = chrome.new_page(color_scheme=scheme)
    page.goto(saved.as_uri())
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.close()
    assert (sum(map(int, re.findall(r"\d+", background)[:3])) < 300) == dark


@pytest.mark.slow
def test_nothing_is_asked_of_a_network(chrome: "Browser", saved: Path) -> None:
    page = chrome.new_page()
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(saved.as_uri(), wait_until="networkidle")
    page.close()
    assert asked
    assert all(url.startswith(("file:", "data:")) for url in asked), asked
    assert said == []


@pytest.mark.slow
@for_each("width", [360, 1000])
def test_nothing_is_wider_than_the_window(chrome: "Browser", saved: Path, width: int) -> None:
    page = chrome.new_page(viewport={"width": width, "height": 800})
    page.goto(saved.as_uri())
    reach = page.evaluate("document.documentElement.scrollWidth")
    page.close()
    assert reach <= width


@pytest.mark.slow
def test_it_prints_on_a_few_pages(shown: "Page") -> None:
    pdf = shown.pdf(print_background=False, prefer_css_page_size=True)
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
    assert 3 <= pages <= 12
    sizes = {tuple(map(float, size.split())) for size in re.findall(rb"/MediaBox\s*\[([^\]]*)\]", pdf)}
    assert all(abs(w - 595) < 2 and abs(h - 842) < 2 for _, _, w, h in sizes)  # A4, in points
