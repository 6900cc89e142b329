"""The pages in a real browser: the whole way of a team, every width, both colour schemes, paper, the keyboard alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.sizes import corners
from tests.thresholdout.notebook.test_cards_in_browser import contrast
from tests.thresholdout.report import browser
from tests.thresholdout.service.evaluations import ADMIN, made, right_in
from tests.thresholdout.service.page.fake import HOLDOUT, MADE, FakeService, ranked, served
from thresholdout.service.schemas import Submission, Token
from thresholdout.service.serving import serving_here

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.skipif(browser.missing() is not None, reason=str(browser.missing()))

LONG = "a-team-with-a-name-that-is-sixty-three-characters-long-indeed-x"
LEADERBOARD = "/holdouts/spring"
ROWS = ranked([("ann", 0.87, 0.9, 3), ("bob", 0.86, 0.89, 80), (LONG, 0.7, 0.75, 2), ("junk", 0.4, 0.5, 400)])
ONE = Submission("s1", "spring", "ann", "a name", "score", "answered", MADE, number=1, query=3, low=0.4, high=0.6)
SENT = [
    replace(ONE, id="s6", number=6, name="w" * 100, receipt="e" * 300),
    replace(ONE, id="s5", number=5, kind="comparison", low=-0.01, high=0.02, verdict="not settled"),
    replace(ONE, id="s4", number=4, state="interrupted", low=None, high=None),
    replace(ONE, id="s3", number=3, state="refused", refusal="allowance", low=None, high=None),
    replace(ONE, id="s2", number=2, state="hidden", low=None, high=None),
    ONE,
]
KEYS = [Token("tho_0000000000aa", "admin", "", "", MADE, None), Token("tho_1", "team", LONG, "n" * 100, MADE, MADE)]
PATHS = {
    "ann-key": [
        "/",
        LEADERBOARD,
        f"{LEADERBOARD}/submissions",
        *(f"{LEADERBOARD}/submissions/s{k}" for k in (3, 5, 6)),
        "/tokens",
    ],
    "admin-key": [LEADERBOARD, f"{LEADERBOARD}/submissions", f"{LEADERBOARD}/certificate", "/tokens"],
}


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    with browser.started() as driver:
        yield driver


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    service = FakeService(
        shown=[replace(HOLDOUT, notes=("A label was corrected.",)), replace(HOLDOUT, name="b", phase="blind")],
        rows=ROWS,
        sent=SENT,
        listed=KEYS,
    )
    with served(service) as found:
        yield found


@contextmanager
def looking(chrome: Browser, address: str, key: str = "", **options: Any) -> Iterator[Page]:
    """Look at pages with a key, and refuse whatever a browser complains about or asks of others."""
    context = chrome.new_context(**options)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith(address) else said.append(request.url))
    if key:
        page.goto(f"{address}/sign-in")
        page.fill("#api-token", key)
        page.keyboard.press("Enter")
        page.wait_for_url(f"{address}/")
    yield page
    context.close()
    assert [one for one in said if "status of 40" not in one] == []


@pytest.mark.slow
@pytest.mark.parametrize("width", [320, *(pytest.param(width, marks=pytest.mark.slow) for width in (390, 760, 1200))])
@pytest.mark.parametrize("key", corners(PATHS, 1))
def test_no_page_is_wider_than_its_window(chrome: Browser, address: str, key: str, width: int) -> None:
    with looking(chrome, address, key, viewport={"width": width, "height": 800}) as page:
        for path in PATHS[key]:
            page.goto(address + path)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            outside = page.evaluate(
                "[...document.querySelectorAll('main *:not(svg *)')].filter(e => e.getClientRects().length"
                " && getComputedStyle(e).clipPath === 'none' && !e.closest('.tabs')"
                f" && e.getBoundingClientRect().right > {width} + 1).map(e => e.outerHTML.slice(0, 80))"
            )
            assert outside == [], path


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("key", corners(PATHS, 1))
def test_text_stands_out(chrome: Browser, address: str, key: str, scheme: Any) -> None:
    """By WCAG 2.2: 4.5 for text, 3 for what is drawn; grounds that let others through are mixed with them."""
    with looking(chrome, address, key, color_scheme=scheme) as page:
        for path in PATHS[key]:
            page.goto(address + path)
            found = page.evaluate(
                """() => [...document.querySelectorAll('body *:not(svg *)')]
                .filter(e => e.getClientRects().length)
                .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
                .map(e => { let g = e; while (getComputedStyle(g).backgroundColor === 'rgba(0, 0, 0, 0)'
                && g.parentElement) g = g.parentElement;
                return [getComputedStyle(e).color, getComputedStyle(g).backgroundColor, e.outerHTML.slice(0, 80)] })"""
            )
            assert len(found) > 5
            for text, ground, where in found:
                assert contrast(text, ground) >= 4.5, (path, where)
            ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
            drawn = page.evaluate(
                "[...document.querySelectorAll('.interval .end')].map(e => getComputedStyle(e).stroke)"
            )
            assert all(contrast(one, ground) >= 3.0 for one in drawn)


@pytest.mark.slow
def test_bars_are_where_they_say(chrome: Browser, address: str) -> None:
    with looking(chrome, address, "ann-key", viewport={"width": 1200, "height": 800}) as page:
        page.goto(address + LEADERBOARD)
        places = page.evaluate(
            """() => [...document.querySelectorAll('.leaderboard tr.row')].map(row => {
            const box = row.querySelector('svg.interval').getBoundingClientRect();
            const bar = row.querySelector('.body').getBoundingClientRect();
            return [(bar.left - box.left) / box.width, (bar.right - box.left) / box.width] })"""
        )
        marks = page.evaluate(
            """() => { const scale = document.querySelector('.scale').getBoundingClientRect();
            return [...document.querySelectorAll('.scale text')].map(t => { const b = t.getBoundingClientRect();
            return [Number(t.textContent), ((b.left + b.right) / 2 - scale.left) / scale.width] }) }"""
        )
    values, at = np.array(marks).T
    slope, start = np.polyfit(values, at, 1)
    for row, (left, right) in zip(ROWS, places, strict=True):
        assert (left, right) == pytest.approx((start + slope * row.low, start + slope * row.high), abs=0.006)


@pytest.mark.slow
def test_a_team_finds_itself_and_who_is_tied(chrome: Browser, address: str) -> None:
    with looking(chrome, address, "ann-key") as page:
        page.goto(address + LEADERBOARD)
        assert page.locator("tr.mine th").inner_text().split() == ["ann", "you"]
        assert page.locator("tr.tier").all_inner_texts() == [
            "Ranks 1 to 2: 2 teams are tied",
            "Rank 3, certified",
            "Rank 4, certified",
        ]
        assert page.locator("tr.row.tied th").all_text_contents() == ["bob, tied"]
        ends = page.locator("td.ends").all_inner_texts()
        assert ends[0] == "0.870 to 0.900"
        page.get_by_role("link", name="look closer").click()
        assert page.locator("svg.interval text").all_text_contents() == ["◂", "◂"]
        page.get_by_role("link", name="show all").click()
        assert page.locator("svg.interval text").count() == 0


@pytest.mark.slow
def test_headings_labels_and_tables_are_said_aloud(chrome: Browser, address: str) -> None:
    with looking(chrome, address, "admin-key", viewport={"width": 390, "height": 800}) as page:
        for path in PATHS["admin-key"]:
            page.goto(address + path)
            levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(h => +h.tagName[1])")
            assert levels[0] == 1
            assert levels.count(1) == 1
            assert page.get_by_role("main").count() == 1
            nameless = page.evaluate(
                "[...document.querySelectorAll('input:not([type=hidden]), select')].filter(i => !i.labels.length)"
                ".map(i => i.name)"
            )
            assert nameless == []
        page.goto(address + LEADERBOARD)
        leaderboard = page.get_by_role("table")  # also where rows are drawn one below the other
        assert leaderboard.get_by_role("row").count() == len(ROWS) + 3 + 1
        assert leaderboard.get_by_role("rowheader", name="bob").count() == 1


@pytest.mark.slow
def test_the_keyboard_is_enough(chrome: Browser, address: str) -> None:
    with looking(chrome, address, "ann-key", viewport={"width": 1200, "height": 800}) as page:
        page.goto(f"{address}{LEADERBOARD}/submissions")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        assert page.locator(".skip").bounding_box()["x"] >= 0  # type: ignore[index]
        page.keyboard.press("Enter")
        reached = set()
        for _ in range(30):
            page.keyboard.press("Tab")
            focused = page.evaluate(
                "(e => [e.id || e.value || e.textContent, getComputedStyle(e).outlineStyle])(document.activeElement)"
            )
            reached.add(focused[0])
            assert focused[1] != "none" or focused[0] in ("", None) or "Holdouts" in focused[0], focused
        assert {"table", "title", "expected", "score", "comparison", "a name"} <= reached


@pytest.mark.slow
def test_a_long_leaderboard_prints_its_heading_on_every_page(chrome: Browser) -> None:
    many = [(f"team-{k:03d}", 0.9 - 0.001 * k, 0.91 - 0.001 * k, k) for k in range(300)]
    with served(FakeService(rows=ranked(many))) as address, looking(chrome, address) as page:
        page.goto(address + LEADERBOARD)
        assert page.locator("tr.row").count() == 300
        size = len(page.content())
        pdf = page.pdf(print_background=False, prefer_css_page_size=True)
    assert size < 400_000
    assert 5 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 12
    boxes = {tuple(map(float, box.split())) for box in re.findall(rb"/MediaBox\s*\[([^\]]*)\]", pdf)}
    assert all(abs(w - 595) < 2 and abs(h - 842) < 2 for _, _, w, h in boxes)  # A4, in points


@pytest.mark.slow
def test_a_team_sends_predictions_and_an_administrator_closes(chrome: Browser, tmp_path: Path) -> None:
    service = made(tmp_path / "leaderboard.db", title="Cells", public=True, quota=5)
    ann, admin = (service.new_token(ADMIN, role, team)[0] for role, team in (("team", "ann"), ("admin", "")))  # type: ignore[arg-type]
    file = tmp_path / "predictions.csv"
    right_in(0.8).to_csv(file, index=False)
    with serving_here(service) as address:
        with looking(chrome, address, ann) as page:
            page.get_by_role("link", name="Cells").click()
            page.get_by_role("link", name="Your submissions").click()
            for note in ([], ["The same was sent before: this is the stored answer, and nothing was charged."]):
                page.set_input_files("#table", file)
                page.fill("#title", "forest")
                page.fill("#expected", "0.8")
                page.get_by_role("button", name="Send", exact=True).click()
                assert page.locator("h2").first.inner_text() == "forest"
                low, high = map(float, re.findall(r"\d\.\d+", page.locator(".answer").inner_text()))
                assert 0.0 < low < 0.8 < high < 1.0
                assert page.locator(".note").all_inner_texts() == note
                page.get_by_role("link", name="All submissions").click()
            assert page.locator("tr.row").count() == 1
            file.write_text("id,prediction\nr400,1\n")
            page.set_input_files("#table", file)
            page.get_by_role("button", name="Compare").click()
            assert "Nothing was charged" in page.get_by_role("alert").inner_text()
            page.get_by_role("link", name="Leaderboard").click()
            assert page.locator("tr.mine .rank").inner_text() == "1"
            page.get_by_role("button", name="Sign out").click()
            assert page.context.cookies() == []
        with looking(chrome, address, admin) as page:
            page.goto(f"{address}/holdouts/cells")
            page.get_by_role("radio", name=re.compile("^Closed")).check()
            page.get_by_role("button", name="Change the phase").click()
            assert page.locator(".badge").first.inner_text() == "Closed"
            page.get_by_role("link", name="API tokens").click()
            page.select_option("#role", "viewer")
            page.get_by_role("button", name="Make it").click()
            fresh = page.get_by_role("status").locator("code").inner_text()
            rows = page.locator("tbody tr")
            rows.last.get_by_role("button").click()
            assert "Revoked" in rows.last.inner_text()
        with looking(chrome, address) as page:
            page.goto(f"{address}/sign-in")
            page.fill("#api-token", fresh)
            page.get_by_role("button", name="Sign in").click()
            assert "unknown, or was revoked" in page.get_by_role("alert").inner_text()
