"""What is in a report, and what never is."""

import dataclasses
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from joblib import Parallel, delayed
from sklearn.dummy import DummyClassifier

from graphs import Groups
from tests.cases import for_each
from tests.thresholdout.report.lives import SECRET, long_life
from thresholdout import Claims, SparseVector, Thresholdout
from thresholdout.cli import main
from thresholdout.errors import InputError, InputTypeError
from thresholdout.guard.guard_state import GuardState
from thresholdout.ledger import open_ledger
from thresholdout.ledger.transfer import move
from thresholdout.mechanisms import LadderParameters
from thresholdout.mechanisms.claims import ClaimsState
from thresholdout.privacy.accounting import BlackBox
from thresholdout.report import GuardReport, report_of
from thresholdout.report.answers import _ticks, decided, gates, tables
from thresholdout.report.page import _budget, _width, facts, thinned
from thresholdout.service.prediction_guard import PredictionGuard

VOID = {"meta", "img", "link", "br", "wbr"}


class Checker(HTMLParser):
    """Checks that elements are closed in order, and collects tags, attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(report: GuardReport) -> Checker:
    checker = Checker()
    checker.feed(report.html)
    assert checker.open == []
    return checker


@pytest.fixture(scope="module")
def guard() -> Thresholdout:
    return long_life()


@pytest.fixture(scope="module")
def page(guard: Thresholdout) -> Checker:
    return read(guard.report("Spring"))


@pytest.mark.slow
def test_the_numbers_are_those_of_the_history(guard: Thresholdout, page: Checker) -> None:
    history = guard.history
    text = " ".join(page.text)
    report = guard.report()
    assert report.queries == len(history)
    assert report.from_holdout == (history["source"] == "holdout").sum() == 5
    assert (report.budget, report.remaining, report.spent) == (5, 0, 5)
    assert f"{len(history)} of 200" in page.text
    assert "as many as there may be" in text
    assert guard.certificate.statement in page.text
    rows = re.findall(r'<tr[^>]*><td data-is="query">(\d+)</td>', guard.report().html)
    assert [int(row) for row in rows] == list(history["query"])
    last = history.iloc[-1]
    side = max(last["value"] - last["low"], last["high"] - last["value"])
    assert 0.0995 < side < 0.995  # so that two decimals are two digits of the half-width
    assert f"{last['value']:.2f}" in page.text
    low, high = math.floor(last["low"] * 1e2) / 1e2, math.ceil(last["high"] * 1e2) / 1e2
    assert f"{low:.2f} to {high:.2f}" in page.text


def test_both_epsilons_are_among_the_facts() -> None:
    """The paper's 9 B / (4 n sigma) per record, and twice as much for pairs."""
    settings: dict[str, Any] = {"mechanism": SparseVector(0.1, 0.01, 2), "queries": 10}
    n = 400
    paired = Thresholdout(np.arange(float(n)), dependence=Groups(np.repeat(np.arange(n // 2), 2)), **settings)
    shown = dict(facts(paired.report()))
    assert (9 * 2 / (4 * n * 0.01), 2 * 9 * 2 / (4 * n * 0.01)) == (1.125, 2.25)
    assert (shown["epsilon per record"], shown["epsilon with dependants"]) == ("1.13", "2.26")
    unbounded = Thresholdout(np.arange(float(n)), queries=10)
    assert not [name for name, _ in facts(unbounded.report()) if "epsilon" in name]


def test_nothing_is_loaded_and_nothing_runs(page: Checker) -> None:
    assert not {"script", "link", "iframe", "object", "form"} & set(page.tags)
    sources = [value for _, name, value in page.attributes if name in {"src", "href", "srcset", "action"}]
    assert sources == []
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert ("meta", "http-equiv", "Content-Security-Policy") in page.attributes


def test_names_are_text_and_not_markup(page: Checker) -> None:
    assert "rule <script>alert(7)</script>" in "".join(page.text)
    with pytest.raises(InputTypeError, match="title"):
        long_life(0).report(title=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="UTF-8"):
        long_life(0).report(title="half a \ud83d")


@pytest.mark.slow
def test_nothing_secret_is_shown(guard: Thresholdout) -> None:
    shown = guard.report().html
    noise = abs(GuardState.from_text(guard._ledger.state(guard._id), ClaimsState.from_text).mechanism.edge)
    assert noise > 999  # but for a probability below 1e-5: of 2**-10 of the range or more, in units of 2**-40
    for secret in (str(noise), str(SECRET)):
        assert secret not in shown
    assert str(SECRET) in str(guard._records.holdout[0][0, 0])  # the holdout does have it


@pytest.mark.slow
def test_labels_and_the_place_of_the_ledger_stay_out(tmp_path: Path) -> None:
    labels = np.where(np.arange(4000) % 2, "zebra-label", "okapi-label")
    table = pd.DataFrame({"id": range(4000), "x": range(4000), "y": labels})
    path = tmp_path / "guard.db"
    service = PredictionGuard.create(
        path, table[:2000], table[2000:], label="y", queries=100, mechanism=Claims(holdout_answers=1)
    )
    service.ask(pd.DataFrame({"id": table["id"], "prediction": labels}), "accuracy", name="first")
    output = tmp_path / "page.html"
    result = CliRunner().invoke(main, ["guard", "report", str(path), "--output", str(output), "--title", "Zoo"])
    assert result.exit_code == 0, result.output
    assert result.output == f"{output}: 1 query\n"
    shown = output.read_text()
    assert "first (accuracy)" in shown
    assert "With probability at least 0.95, every interval contains its estimand, all of them at once" in shown
    for secret in ("zebra", "okapi", str(tmp_path)):
        assert secret not in shown


@pytest.mark.slow
def test_a_ledger_alone_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "guard.db"
    holdout = np.arange(1000.0)
    guard = Thresholdout(holdout, queries=10, mechanism=Claims(holdout_answers=2), ledger=path)
    guard.ask(0.25, holdout < 250, name="small")
    result = CliRunner().invoke(main, ["guard", "report", str(path), "--output", str(tmp_path / "page.html")])
    assert result.exit_code == 0, result.output
    shown = (tmp_path / "page.html").read_text()
    assert "The certificate itself is not in the ledger" in shown
    assert "small" in shown
    missing = CliRunner().invoke(main, ["guard", "report", str(tmp_path / "other.db")])
    assert missing.exit_code == 4
    assert "other.db" in missing.output


@pytest.mark.slow
def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    report = long_life(2).report()
    file = report.save(str(tmp_path / "report.html"))
    assert report.save(file) == file
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(InputError, match=r"in an existing folder, .* in a folder that does not exist"):
        report.save(tmp_path / "nowhere" / "report.html")
    with pytest.raises(InputError, match="which is a folder"):
        report.save(tmp_path)
    with pytest.raises(InputTypeError, match="path"):
        report.save(3)  # type: ignore[arg-type]


def test_a_new_guard_says_so() -> None:
    page = read(long_life(0).report())
    assert "No query has been asked yet." in page.text
    assert "svg" not in page.tags


@pytest.mark.slow
def test_looks_failures_seeds_and_closing_are_told() -> None:
    holdout = np.arange(10_000.0)
    guard = Thresholdout(holdout, train=holdout + 1e5, queries=100, mechanism=Claims(holdout_answers=2), random_state=0)
    guard.releases.record(BlackBox(0.01))

    def fails(values: np.ndarray) -> np.ndarray:
        if values[0] < 1e5:
            raise ValueError
        return values > 0

    with pytest.raises(InputError):
        guard.ask(fails)
    guard.ask(lambda values: values % 2 == 0)
    guard._ledger.close_guard(guard._id, "the season is over")
    report = guard.report()
    text = " ".join(read(report).text)
    assert (report.queries, report.failures, len(report.answers)) == (2, 1, 1)
    assert "1 failed on the holdout, and are charged." in text
    assert "BlackBox(epsilon=0.01)" in text
    assert "it is a simulation" in text
    assert "the season is over" in text


@pytest.mark.slow
@for_each("mechanism", ["claims", "ladder"])
def test_every_mechanism_has_a_page(mechanism: str) -> None:
    rng = np.random.default_rng(0)
    holdout = rng.random(4000)
    options = {"queries": 20, "mechanism": LadderParameters() if mechanism == "ladder" else mechanism}
    guard = Thresholdout(holdout, **options)  # type: ignore[arg-type]
    for k in range(3):
        guard.ask(0.5, holdout > k / 4)
    report = guard.report()
    text = " ".join(read(report).text)
    assert "No query" not in text
    assert f"The truth is {guard.certificate.about}" in text
    assert report.queries == 3
    assert "packed" not in text


def test_answers_of_several_metrics_and_ranges_have_tables_of_their_own() -> None:
    holdout = np.random.default_rng(0).random(4000)
    guard = Thresholdout(holdout, queries=20, mechanism=Claims(holdout_answers=2))
    for high in (1.0, 2.0, 3.0):
        guard.ask(0.5, holdout, bounds=(0.0, high))
    guard.ask(0.5, holdout, bounds=(-1.0, 1.0))
    page = read(guard.report())
    assert sum(value == "bars" for _, name, value in page.attributes if name == "class") == 4
    titles = ["Other queries", *(f"Other queries, from {ends}" for ends in ("0 to 2", "0 to 3", "-1 to 1"))]
    assert [text for text in page.text if text.startswith("Other queries")] == titles


def test_bars_are_where_their_intervals_are_and_the_best_is_first() -> None:
    """An axis from the lowest end to the highest, with 4 % of room: places are shares of that, by hand."""
    rows = [(1, 0.6, 0.5, 0.7, 0.6), (2, 0.8, 0.75, 0.85, 0.1), (3, 0.7, 0.6, 0.76, 0.7)]
    history = pd.DataFrame(rows, columns=["query", "value", "low", "high", "train"])
    trees = [f"Tree(depth={number}, seed=0)" for number in (1, 2, 3)]
    history = history.assign(name="accuracy", candidate=trees, source="train", lower=0.0, upper=1.0, half_width=0.1)
    (table,) = tables(dataclasses.replace(long_life(0).report(), history=history))
    assert [row["name"] for row in table["rows"]] == ["depth=2", "depth=3", "depth=1"]
    assert [row["best"] for row in table["rows"]] == [True, True, False]
    low, high = 0.5 - 0.04 * 0.35, 0.85 + 0.04 * 0.35
    best = table["rows"][0]
    assert table["ends"] == pytest.approx((low, high))
    assert best["left"] == pytest.approx(100 * (0.75 - low) / (high - low), abs=0.01)
    assert best["width"] == pytest.approx(100 * 0.1 / (high - low), abs=0.02)
    assert best["train"] is None
    assert best["value"] == "0.800 ± 0.050"
    assert table["middle"] is None
    assert "Bold: may be the best, because no other is certified to be better." in table["note"]
    assert [text for _, text in table["ticks"]] == ["0.5", "0.6", "0.7", "0.8"]


def made_of(*rows: tuple[Any, ...]) -> GuardReport:
    """Return the report of a history: names, candidates, values, half-widths, and other columns or sources."""
    columns = ["name", "candidate", "value", "half_width", "source", "lower", "upper"]
    history = pd.DataFrame([(*row, *("train", 0.0, 1.0)[len(row) - 4 :]) for row in rows], columns=columns)
    ends = {"low": history["value"] - history["half_width"], "high": history["value"] + history["half_width"]}
    history = history.assign(**ends, query=range(1, len(rows) + 1), train=history["value"])
    return dataclasses.replace(long_life(0).report(), history=history.assign(log_error_budget=-3.0, remaining=5))


def test_a_settled_comparison_leaves_one_best_and_is_shown_with_its_verdict() -> None:
    scores = [("accuracy", "a", 0.81, 0.0496), ("accuracy", "b", 0.8, 0.0496)]
    compared = ("accuracy, difference", "a against b", 0.02, 0.0123, "train", -1.0, 1.0)
    open_, settled = made_of(*scores), made_of(*scores, compared)
    (table,) = tables(open_)
    assert not any(row["best"] for row in table["rows"])  # bold letters that all rows have say nothing
    assert "None is certified to be worse than another." in table["note"]
    assert decided(open_) == [
        "By accuracy, a has the best answer: 0.810 ± 0.050. None of the 2 is certified to be worse than another."
    ]
    table, other = tables(settled)
    assert [row["best"] for row in table["rows"]] == [True, False]
    assert any(sentence.startswith("Comparisons settled") for sentence in table["note"])
    assert decided(settled) == [
        "By accuracy, a has the best answer: 0.810 ± 0.050. It is certified to be better than all others, "
        "if equal names are equal models.",
        "1 comparison by accuracy: 1 better.",
    ]
    (row,) = other["rows"]
    assert (row["value"], row["verdict"]) == ("+0.020 ± 0.013", "better")
    assert other["title"] == "Comparisons by accuracy"
    low, high = -0.04 * 0.0323, 0.0323 + 0.04 * 0.0323
    assert other["middle"] == pytest.approx(100 * -low / (high - low), abs=0.01)


@for_each(
    "case",
    [
        ("accuracy, difference", 0.02, "better"),
        ("accuracy, difference", -0.02, "worse"),
        ("accuracy, difference", 0.005, "not settled"),
        ("squared_error(clip=4.0), difference", 0.02, "worse"),
        ("accuracy, win rate", 0.52, "better"),
        ("profit, difference", 0.02, "higher"),
    ],
)
def test_comparisons_have_verdicts_in_words(case: tuple[str, float, str]) -> None:
    name, value, verdict = case
    report = made_of((name, "a against b", value, 0.01, "train", -1.0, 1.0))
    ((row,),) = [table["rows"] for table in tables(report)]
    assert row["verdict"] == verdict
    assert f">{verdict}</td>" in report.html


def test_a_metric_of_the_user_has_no_best() -> None:
    (table,) = tables(made_of(("profit", "a", 0.9, 0.01), ("profit", "b", 0.1, 0.01)))
    assert not any(row["best"] for row in table["rows"])
    assert table["note"] == ["Highest first."]


def test_gates_have_sections_with_their_thresholds_and_outcomes() -> None:
    gained = {"value": 0.1, "half_width": 0.1}
    report = made_of(
        ("gate: accuracy", "a", *gained.values(), "keep", -1.0, 1.0),
        ("gate: accuracy", "b", *gained.values(), "reject", -1.0, 1.0),
        ("gate: accuracy with a tolerance of 0.02", "c", 0.48, 0.5, "keep", -1.0, 1.0),
        ("gate: accuracy with a tolerance of 0.02", "d", 0.48, 0.5, "unsettled", -1.0, 1.0),
        ("milestones: accuracy by more than 0.01", "e", *gained.values(), "step", -1.0, 1.0),
        ("milestones: accuracy by more than 0.01, last evaluation", "e", *gained.values(), "unconfirmed", -1.0, 1.0),
    )
    plain, tolerant, climb = gates(report)
    assert [row["outcome"] for row in plain["rows"]] == [
        "passed: certified to be better",
        "failed: the holdout did not confirm it",
    ]
    assert [row["passed"] for row in plain["rows"]] == [True, False]
    assert "not to be worse than the champion by more than 0.02" in tolerant["threshold"]
    assert [row["outcome"] for row in tolerant["rows"]] == [
        "passed: certified not to be worse by more",
        "not settled: the champion stays",
    ]
    assert "to be better by more than 0.01 than the last certified model" in climb["threshold"]
    assert [row["outcome"] for row in climb["rows"]] == [
        "kept on the way: not certified",
        "failed: the holdout did not confirm it",
    ]
    assert [gate["title"] for gate in (plain, tolerant, climb)] == [
        "Gate by accuracy",
        "Gate by accuracy",
        "Milestones by accuracy",
    ]
    assert (report.certified, report.tolerated) == (1, 1)  # a tolerated candidate may be worse
    text = " ".join(read(report).text)
    assert "1 is certified to be better than the champion before." in text
    assert "1 is certified not to be worse than the champion by more than a tolerance." in text


def test_values_have_the_decimals_of_their_half_widths() -> None:
    sizes = [(0.8, 0.1234), (0.8, 0.0456), (0.8, 0.00123), (0.8, 0.0)]
    (table,) = tables(made_of(*(("accuracy", f"m{k}", *size) for k, size in enumerate(sizes))))
    assert [row["value"] for row in table["rows"]] == [
        "0.80 ± 0.13",
        "0.800 ± 0.046",
        "0.8000 ± 0.0013",
        "0.800000 ± 0.000000",
    ]


def test_a_half_width_of_the_whole_range_is_no_bound() -> None:
    certificate = long_life(0).certificate
    assert _width(certificate, True, 1.0) == "each answer has its own"
    assert _width(certificate, False, 1.0) == _width(certificate, False, math.inf) == "no bound"
    assert _width(certificate, False, 0.05) == "0.05"


@for_each("ends", [(0.0, 1.0), (0.512, 0.538), (-3.0, 3.0), (1e-9, 2e-9), (0.0, 5e8), (-2.0, -1.99)])
def test_an_axis_has_a_few_round_numbers_inside(ends: tuple[float, float]) -> None:
    found = _ticks(*ends)
    assert 2 <= len(found) <= 6
    assert all(ends[0] - 1e-12 <= place <= ends[1] * (1 + 1e-12) or place <= ends[1] for place, _ in found)
    assert len({text for _, text in found}) == len(found)
    if ends[1] < 1e7:
        assert all(float(text) == pytest.approx(place, rel=1e-9, abs=1e-15) for place, text in found)


def test_names_break_between_words_only() -> None:
    html = made_of(("accuracy", "HistGradientBoostingClassifier(max_iter=30)", 0.8, 0.1)).html
    assert "Hist<wbr>Gradient<wbr>Boosting<wbr>Classifier(<wbr>max_iter=30)" in html


def test_the_mechanism_is_told_in_sentences() -> None:
    text = " ".join(read(long_life(3).report()).text)
    assert "At most 200 queries were declared." in text
    assert "Groups: 1,000 of 2 records." in text
    for raw in ("n train", "max half width", "None", "nan"):
        assert raw not in text


@pytest.mark.slow
def test_from_another_process_it_is_the_same() -> None:
    guard = long_life(3)
    (report,) = Parallel(n_jobs=2)(delayed(lambda g: g.report("there"))(g) for g in [guard])
    assert report.html == guard.report("there").html


@pytest.mark.slow
def test_a_notebook_shows_it_in_a_frame() -> None:
    shown = long_life(2).report()._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert "<script" not in shown


def test_long_histories_are_thinned() -> None:
    n = 100_000
    source = np.where(np.arange(n) % 1000 == 0, "holdout", "train")
    history = pd.DataFrame({"query": np.arange(1, n + 1), "source": source})
    kept = thinned(history)
    assert len(kept) == 2000
    assert (kept["source"] == "holdout").sum() == 100
    assert kept["query"].is_monotonic_increasing
    only = thinned(history.assign(source="holdout"))
    assert len(only) == 2000
    assert np.diff(only["query"]).max() == 50


def test_the_budget_is_drawn_where_it_was_used(guard: Thresholdout) -> None:
    found = _budget(guard.report())
    assert found is not None
    assert (found["top"], found["sentence"]) == ("5", "5 of 5 answers came from the holdout.")
    assert found["points"].startswith("0,100 ")
    assert found["points"].endswith("100,0.00")
    assert _budget(long_life(3).report()) is None
    assert "Budget over time" not in long_life(3).report().html


@pytest.mark.slow
def test_a_certificate_that_says_nothing_is_shown_as_that() -> None:
    holdout = np.arange(60.0)
    guard = Thresholdout(
        holdout, dependence=Groups(np.zeros(60)), mechanism=SparseVector(0.1, 0.01, budget=2, grid=0.01), queries=10
    )
    guard.ask(0.5, holdout < 30)
    assert not math.isfinite(guard.certificate.tolerance) or guard.certificate.tolerance >= 1.0
    assert "Nothing is certified about the answers." in " ".join(read(guard.report()).text)


@pytest.mark.slow
def test_where_a_guard_went_stays_out(tmp_path: Path) -> None:
    folder = tmp_path / "home-of-alice; if it is not there"
    folder.mkdir()
    with open_ledger(tmp_path / "source.db") as source, open_ledger(folder / "target.db") as target:
        guard = Thresholdout(np.arange(1000.0), queries=10, mechanism=Claims(holdout_answers=2), ledger=source)
        guard.ask(0.25, np.arange(1000) < 250)
        move(source, target, guard._id)
        shown = report_of(source, guard._id).html
        assert "moved to another ledger" in shown
        assert target.identity() in shown
        assert "alice" not in shown
        assert str(tmp_path) not in shown


@pytest.mark.parametrize("title", ["r.html", "page.HTM", "leaderboard.svg"])
def test_a_name_of_a_file_is_no_heading(guard: Thresholdout, title: str) -> None:
    with pytest.raises(InputError, match=rf"report\(\)\.save\('{title}'\) writes a file"):
        guard.report(title)
    assert (
        repr(guard.report("Our leaderboard"))
        == "<GuardReport 'Our leaderboard': " + repr(guard.report("x")).split(": ", 1)[1]
    )


@pytest.mark.slow
def test_after_a_final_check_everything_is_told() -> None:
    y = np.arange(2000) % 2
    X = np.arange(4000.0).reshape(2000, 2)
    made = Thresholdout((X[:1000], y[:1000]), train=(X[1000:], y[1000:]))
    made.final_check(DummyClassifier().fit(X[1000:], y[1000:]))
    assert made.status.information_released == math.inf
    assert made.report().information_released == math.inf
    text = made.report().html
    assert "all: the guard answers no more" in text
    assert "e+0" not in text
    assert "nats" not in text


def test_the_smallest_loss_is_the_best_and_a_final_check_stands_beside_the_scores() -> None:
    """Metrics have arguments in their names; names of models say by what these differ, also behind a final check."""
    rows = [(1, "log_loss(clip=5.0)", 1.6), (2, "log_loss(clip=5.0)", 1.1), (3, "log_loss(clip=5.0), final check", 1.2)]
    history = pd.DataFrame(rows, columns=["query", "name", "value"])
    history = history.assign(low=history["value"] - 0.1, high=history["value"] + 0.1, train=history["value"])
    trees = [f"Tree(depth={number}, seed=0)" for number in (1, 2, 2)]
    history = history.assign(candidate=trees, source="train", lower=0.0, upper=5.0, half_width=0.1)
    (table,) = tables(dataclasses.replace(long_life(0).report(), history=history))
    assert [row["name"] for row in table["rows"]] == ["depth=2", "depth=2, final check", "depth=1"]
    assert [row["best"] for row in table["rows"]] == [True, True, False]
