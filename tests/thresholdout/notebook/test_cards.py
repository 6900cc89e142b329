"""Cards: what they say, and that nothing in them is live."""

import math
import re
from html.parser import HTMLParser

import pytest

from tests.cases import for_each
from tests.thresholdout.notebook.shown import HARM, shown
from thresholdout.notebook.cards import Bar, Card, Table

KINDS = ["new guard", "answer", "answer from the holdout", "answer of a list", "comparison", "guard", "guard of folds"]
KINDS += ["plan", "certificate", "certificate that says nothing"]


class Read(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.words: list[str] = []
        self.open = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open += 1

    def handle_endtag(self, tag: str) -> None:
        self.open -= 1

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] != ["style"] or not data.strip().startswith("."):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.mark.slow
@for_each("kind", KINDS)
def test_every_card_is_one_element_with_nothing_live_and_nothing_from_elsewhere(kind: str) -> None:
    html = shown()[kind]._repr_html_()
    found = Read(html)
    assert set(found.tags) <= {"div", "style", "p", "span", "table", "thead", "tbody", "tr", "th", "td"}
    assert found.attributes <= {"class", "style", "title", "aria-hidden"}
    assert found.open == 0
    assert not re.search(r"url\(|@import|https?:|javascript", html)
    assert len(html) < 12_000
    style = html[html.index("<style>") + 7 : html.index("</style>")]
    assert all(rule.strip().startswith(".thresholdout-card") for rule in style.strip().split("\n"))


def test_names_are_escaped_and_whole() -> None:
    for kind in ("answer from the holdout", "answer of a list", "comparison", "guard"):
        html = shown()[kind]._repr_html_()
        assert "<script" not in html
        assert " ".join(HARM.split()) in Read(html).text


def test_an_answer_says_value_interval_and_source() -> None:
    answer = shown()["answer"]
    text = Read(answer._repr_html_()).text
    low, high = answer.interval
    ends = f"{math.floor(1e3 * low) / 1e3:.3f} and {math.ceil(1e3 * high) / 1e3:.3f}"
    assert 0.0099 < answer.half_width < 0.099  # two digits of it are three decimals
    assert f"{answer.value:.3f}; with the guard's confidence the truth is between {ends}." in text
    assert ("confirmed by the holdout" in text) == (answer.source == "train")
    assert "answers from the holdout left 10" in text
    assert "from the holdout" in Read(shown()["answer from the holdout"]._repr_html_()).text


def test_a_comparison_says_its_verdict() -> None:
    comparison = shown()["comparison"]
    text = Read(comparison._repr_html_()).text
    assert text.startswith(f"Comparison: {comparison.verdict}")
    low, high = comparison.interval
    assert 0.099 < comparison.answer.half_width < 0.99  # two digits of it are two decimals
    assert f"{math.floor(1e2 * low) / 1e2:+.2f} and {math.ceil(1e2 * high) / 1e2:+.2f}" in text


def test_a_guard_says_what_happened_and_names_its_answers() -> None:
    text = Read(shown()["guard"]._repr_html_()).text
    assert "5 of 20 queries were asked" in text
    assert "600 independent records" in text
    assert "answers, the last ones of one metric and range" in text  # values, scores and a difference
    assert "No query has been asked yet" in Read(shown()["new guard"]._repr_html_()).text
    assert "KFoldGuard" in Read(shown()["guard of folds"]._repr_html_()).text


def test_a_plan_and_a_certificate_say_what_they_say_in_text() -> None:
    made, certificate = shown()["plan"], shown()["certificate"]
    text = Read(made._repr_html_()).text
    assert made.recommendation in text
    assert all(way.name in text and way.call in text for way in made.ways)
    assert certificate.statement in Read(certificate._repr_html_()).text
    assert "half-width" in Read(certificate._repr_html_()).text
    assert "width none" in Read(shown()["certificate that says nothing"]._repr_html_()).text


def test_bars_are_on_one_axis() -> None:
    bars = [
        Bar("a", 0.25, 0.75, "half"),
        Bar("b", 0.0, 1.0, "all", 0.5, "holdout"),
        Bar("c", 0.0, float("inf"), "none"),
    ]
    html = Card("bars", bars=bars, axis=(0.0, 1.0), mark=0.25).html
    assert html.count('style="left: 25.0%; width: 50.0%"') == 1
    assert html.count('style="left: 0.0%; width: 100.0%"') == 1
    assert html.count('thresholdout-mark" style="left: 25.0%"') == 2  # what has no end is left out
    assert 'thresholdout-dot thresholdout-holdout" style="left: 50.0%"' in html
    near = Read(Card("near", bars=[Bar("a", 0.9, 1.0, "")], within=(0.0, 1.0)).html).text
    assert near.split()[-1] == "1"  # and not beyond
    assert "0.5 1.5" in Read(Card("point", bars=[Bar("a", 1.0, 1.0, "")]).html).text


def test_one_row_of_a_table_stands_out() -> None:
    html = Card("table", table=Table(("x",), [("1",), ("2",)], 1)).html
    assert html.count('<tr class="thresholdout-chosen"><td>2</td>') == 1
