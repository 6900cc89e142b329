"""Guards with normal limits: each place that shows a promise calls it approximate, and what cannot be is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.thresholdout.cli.running import run
from thresholdout import Claims, KFoldGuard, Thresholdout
from thresholdout.errors import InputError, LedgerMismatch
from thresholdout.integrations.candidates import GuardedCandidates
from thresholdout.ledger import open_ledger
from thresholdout.mechanisms.claims import ClaimsParameters
from thresholdout.plotting import plot_history
from thresholdout.privacy.accounting import BlackBox
from thresholdout.report import report_of
from thresholdout.service.prediction_guard import PredictionGuard

GROUPS, SIZE = 150, 4
N = GROUPS * SIZE
NORMAL = Claims(limits="normal")
APPROXIMATE = re.compile("[Aa]pproximate|approximation='normal limits")
pytestmark = pytest.mark.filterwarnings("ignore::thresholdout.errors.WideAnswersWarning")


class Told:
    """A model that is right where it is told to be."""

    classes_ = np.array([0.0, 1.0])

    def __init__(self, right: np.ndarray) -> None:
        self.right = right

    def predict(self, X: np.ndarray) -> np.ndarray:
        number = X[:, 0].astype(int)
        return np.where(self.right[number], number % 2, 1 - number % 2).astype(float)


def made(**settings: Any) -> Thresholdout:
    X, groups = np.arange(2.0 * N)[:, None], np.arange(2 * N) // SIZE
    y = (X[:, 0] % 2).astype(float)
    given: dict[str, Any] = {"mechanism": NORMAL, "random_state": 0, **settings}
    return Thresholdout((X[:N], y[:N], groups[:N]), train=(X[N:], y[N:], groups[N:]), **given)


def model(share: float, seed: int = 0) -> Told:
    """Right answers of which a group shares half."""
    rng = np.random.default_rng(seed)
    own, shared = rng.random(2 * N) < share, np.repeat(rng.random(2 * GROUPS) < share, SIZE)
    return Told(np.where(rng.random(2 * N) < 0.3, shared, own))


def promises(guard: Thresholdout, path: Path) -> dict[str, str]:
    """What a guard shows of each kind of answer, and of itself."""
    better, worse = model(0.85), model(0.55, 1)
    compared = guard.compare(better, worse, cv="training")
    gate = guard.gate(worse)
    decision = gate.propose(better, cv="training")
    tolerant = guard.gate(worse, tolerance=0.05)
    settled = tolerant.propose(better, cv="training")
    assert decision.outcome == settled.outcome == "keep"
    scored = guard.score(better, cv="training")
    precise = guard.compare(better, worse, cv="training", precise=True)
    several = guard.score_all([better, worse], cv="training")
    differences = guard.compare_all([better], worse, cv="training")
    best = guard.score_all([better, worse], cv="training", report="best")
    report = guard.report()
    page = report.save(path).read_text(encoding="utf-8")
    found = {
        "guard": repr(guard),
        "guard in a notebook": guard._repr_html_(),
        "status": guard.status.line(),
        "status, whole": repr(guard.status),
        "certificate": repr(guard.certificate),
        "statement": guard.certificate.statement,
        "certificate in a notebook": guard.certificate._repr_html_(),
        "answer": repr(scored),
        "answer in a notebook": scored._repr_html_(),
        "comparison": repr(compared),
        "comparison in a notebook": compared._repr_html_(),
        "precise comparison": repr(precise),
        "gate": repr(gate),
        "decision": repr(decision),
        "gate with a tolerance": repr(tolerant),
        "decision with a tolerance": repr(settled),
        "list": repr(several),
        "list of comparisons": repr(differences),
        "best": repr(best),
        "page": page,
        "final": repr(guard.final_check(better, cv="training")),
    }
    found |= {f"answer {k} of a list": repr(answer) for k, answer in enumerate(several)}
    return found


def said(text: str) -> list[str]:
    """Words of a promise that an approximate interval has no right to."""
    plain = re.sub(r"</?[a-z!][^>]*>", " ", text)
    return re.findall(r"(?<!not )(?<!Nothing is )\b(?:guaranteed|certified|proved|With probability at least)\b", plain)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], dict[str, str]]:
    """With normal limits, and with exact ones."""
    folder = tmp_path_factory.mktemp("pages")
    return promises(made(), folder / "normal.html"), promises(made(mechanism=None), folder / "exact.html")


def test_every_promise_is_called_approximate(shown: tuple[dict[str, str], dict[str, str]]) -> None:
    normal, _ = shown
    for place, text in normal.items():
        assert APPROXIMATE.search(text), place
        assert said(text) == [], place


def test_exact_limits_are_called_so_nowhere(shown: tuple[dict[str, str], dict[str, str]]) -> None:
    """The side that must fail: what normal limits may not say is found."""
    _, exact = shown
    for place, text in exact.items():
        assert not APPROXIMATE.search(text), place
    for place in ("statement", "decision", "gate", "decision with a tolerance", "page"):
        assert said(exact[place]), place


def test_the_statement_says_how_many_groups_and_what_was_measured() -> None:
    statement = made().certificate.statement
    assert statement.startswith("Approximate, not guaranteed (normal limits from 150 groups; ")
    assert "times" in statement
    assert "docs/hypotheses.md, row normal-limits." in statement
    routes = made().certificate.routes
    assert routes["sound"].tolist() == [False]
    assert made(mechanism=None).certificate.routes["sound"].tolist() == [True]


def test_reports_and_commands_of_a_ledger_say_so(tmp_path: Path) -> None:
    file = tmp_path / "guard.db"
    made(ledger=file).score(model(0.85), cv="training")
    for command in ("status", "history"):
        line = "intervals are approximate, not guaranteed: normal limits from 150 groups"
        assert line in run("guard", command, str(file)).output
    run("guard", "history", str(file), "--csv", str(tmp_path / "history.csv"))
    assert pd.read_csv(tmp_path / "history.csv")["approximation"].str.startswith("normal limits").all()
    with open_ledger(file) as ledger:
        page = report_of(ledger, ledger.guards()[0]).html
    assert said(page) == []
    assert "Intervals are approximate" in page


def test_an_answer_stays_approximate_when_it_is_given_again() -> None:
    guard = made()
    first, again = (guard.score(model(0.85), cv="training", key="one") for _ in range(2))
    assert again.repeated
    assert first.approximate
    assert again.approximate
    assert guard.history.attrs["approximation"].startswith("normal limits")
    assert made(mechanism=None).history.attrs == {}
    assert not made(mechanism=None).score(model(0.85), cv="training").approximate


def test_intervals_are_narrower_than_exact_ones() -> None:
    """A list's about by sqrt(2 ln(1/d)) over the normal quantile, 1.3 at these levels; bets lose some more."""
    asked = [model(0.7 + 0.02 * k, k) for k in range(3)]
    widths = []
    for mechanism in (NORMAL, None):
        answers = made(mechanism=mechanism).score_all(asked, cv="training", reserve=0.0)
        widths.append([high - low for low, high in (answer.interval for answer in answers)])
    ratio = np.array(widths[1]) / np.array(widths[0])
    assert 1.15 < ratio.min() <= ratio.max() < 1.6


class TestRefusals:
    def test_limits_of_another_name(self) -> None:
        with pytest.raises(InputError, match="'exact' or 'normal'; got 't'"):
            Claims(limits="t")  # type: ignore[arg-type]

    def test_records_without_groups(self) -> None:
        with pytest.raises(InputError, match="groups= of several records each"):
            Thresholdout(np.arange(1000.0), mechanism=NORMAL)
        with pytest.raises(InputError, match="groups= of several records each"):
            Thresholdout(np.arange(1000.0), mechanism=ClaimsParameters(normal_limits=True))

    def test_noise_for_an_epsilon(self) -> None:
        with pytest.raises(InputError, match=r"limits must be 'exact' beside epsilon= or an allowance; got 'normal'"):
            made(mechanism=Claims(limits="normal", epsilon=1.0))

    def test_folds(self) -> None:
        X = np.arange(400.0)[:, None]
        with pytest.raises(InputError, match="alone for out-of-fold averages"):
            KFoldGuard((X, X[:, 0] % 2), cv=4, mechanism=NORMAL)

    def test_other_releases(self) -> None:
        guard = made()
        for void in (False, True):
            with pytest.raises(InputError, match="empty for a guard with normal limits"):
                guard.releases.record(BlackBox(0.01), void=void)
        with pytest.raises(InputError, match="empty for a guard with normal limits"):
            guard.releases.preview(BlackBox(0.01))
        assert len(guard.releases) == 0

    def test_candidates_that_texts_call_certified(self) -> None:
        with pytest.raises(InputError, match="normal limits, which certify no candidate"):
            GuardedCandidates(made(), lambda candidate, part: np.ones(len(part[1])))

    @pytest.mark.parametrize("mechanism", [NORMAL, ClaimsParameters(normal_limits=True)])
    def test_predictions_of_clients(self, mechanism: Any, tmp_path: Path) -> None:
        table = pd.DataFrame({"id": range(400), "y": [0, 1] * 200, "who": np.arange(400) // 4})
        rest: dict[str, Any] = {"label": "y", "groups": "who", "mechanism": mechanism}
        with pytest.raises(InputError, match="'exact' for predictions of clients; got 'normal'"):
            PredictionGuard.create(tmp_path / "guard.db", table[:200], table[200:], **rest)
        assert not (tmp_path / "guard.db").exists()

    def test_a_guard_keeps_its_limits(self, tmp_path: Path) -> None:
        made(ledger=tmp_path / "one.db")
        with pytest.raises(LedgerMismatch):
            made(ledger=tmp_path / "one.db", mechanism=None)
        made(ledger=tmp_path / "two.db", mechanism=None)
        with pytest.raises(LedgerMismatch):
            made(ledger=tmp_path / "two.db")
        assert made(ledger=tmp_path / "one.db").certificate.approximation


@pytest.mark.slow
def test_pictures_are_called_approximate() -> None:
    guard = made()
    for share in (0.9, 0.85, 0.2):
        guard.score(model(share), cv="training")
    for names, word in ((True, "worse than another, approximately"), (False, "approximate interval")):
        for history in (guard.history, guard.report().history):
            labels = plot_history(history, names=names).get_legend_handles_labels()[1]
            assert word in labels
            assert not any("certified" in label for label in labels)
    exact = made(mechanism=Claims())
    exact.score(model(0.85), cv="training")
    assert "interval" in plot_history(exact.history, names=False).get_legend_handles_labels()[1]
