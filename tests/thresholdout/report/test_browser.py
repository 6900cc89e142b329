"""The page in a real browser: complete, without a network, readable on screens and on paper."""

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.thresholdout.report import browser
from tests.thresholdout.report.lives import long_life

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

pytestmark = [
    pytest.mark.skipif(browser.missing() is not None, reason=str(browser.missing())),
    pytest.mark.filterwarnings("ignore::ResourceWarning:selenium"),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return long_life().report("Spring <leaderboard>").save(tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Chrome]":
    with browser.started(tmp_path_factory.mktemp("browser")) as driver:
        yield driver


@pytest.fixture
def shown(chrome: "Chrome", page: Path) -> "Chrome":
    chrome.get(page.as_uri())
    return chrome


def script(chrome: "Chrome", text: str) -> Any:
    return chrome.execute_script(text)


def test_the_page_is_complete(shown: "Chrome") -> None:
    assert shown.title == "Spring <leaderboard>"
    assert script(shown, "return document.querySelector('h1').textContent") == "Spring <leaderboard>"
    assert script(shown, "return document.compatMode") == "CSS1Compat"
    headings = script(shown, "return [...document.querySelectorAll('h2')].map(h => h.textContent)")
    assert headings[0] == "What was answered"
    assert headings[-1] == "Questions and answers"
    names = script(shown, "return [...document.querySelectorAll('tbody td:nth-child(2)')].map(c => c.textContent)")
    assert "rule <script>alert(7)</script>" in names
    assert script(shown, "return document.scripts.length") == 0


def test_every_picture_is_drawn(shown: "Chrome") -> None:
    sizes = script(
        shown, "return [...document.images].map(i => [i.complete, i.naturalWidth, i.getBoundingClientRect().width])"
    )
    assert len(sizes) == 3
    assert all(complete and natural > 0 and width > 600 for complete, natural, width in sizes)


def test_nothing_is_asked_of_a_network(chrome: "Chrome", page: Path) -> None:
    chrome.get_log("performance")  # type: ignore[no-untyped-call]
    chrome.get(page.as_uri())
    entries = chrome.get_log("performance")  # type: ignore[no-untyped-call]
    messages = [json.loads(entry["message"])["message"] for entry in entries]
    asked = [
        message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"
    ]
    assert asked
    assert all(url.startswith(("file:", "data:")) for url in asked), asked
    assert not chrome.get_log("browser")  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("width", [360, 1000])
def test_nothing_is_wider_than_the_window(chrome: "Chrome", page: Path, width: int) -> None:
    chrome.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False},
    )
    chrome.get(page.as_uri())
    assert script(chrome, "return document.documentElement.scrollWidth") <= width
    chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_it_prints_on_a_few_pages(shown: "Chrome") -> None:
    printed = shown.execute_cdp_cmd("Page.printToPDF", {"printBackground": False, "preferCSSPageSize": True})
    pdf = base64.b64decode(printed["data"])
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
    assert 3 <= pages <= 12
    sizes = {tuple(map(float, size.split())) for size in re.findall(rb"/MediaBox\s*\[([^\]]*)\]", pdf)}
    assert all(abs(w - 595) < 2 and abs(h - 842) < 2 for _, _, w, h in sizes)  # A4, in points


def test_the_page_shows_without_images_what_they_are(shown: "Chrome") -> None:
    texts = script(shown, "return [...document.images].map(i => i.alt)")
    assert all(len(text) > 20 for text in texts)
