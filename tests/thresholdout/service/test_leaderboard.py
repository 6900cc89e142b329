"""A leaderboard behind a service: guesses, clients, what they see of each other, and who leads."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.stats import binom

from tests.cases import for_each
from tests.sizes import sizes
from thresholdout import Claims
from thresholdout.cli import main
from thresholdout.errors import BudgetExhausted, InputError
from thresholdout.ledger import open_ledger
from thresholdout.ledger.entry import Entry
from thresholdout.scoring.metrics import brier_score
from thresholdout.service.prediction_guard import PredictionGuard
from thresholdout.service.standings import standings

N = 2000
LABELS = np.random.default_rng(7).integers(0, 2, 2 * N)
TABLE = pd.DataFrame({"id": [f"r{k}" for k in range(2 * N)], "y": LABELS, "day": np.arange(2 * N)})


def made(folder: Path, name: str = "guard", **settings: object) -> PredictionGuard:
    settings = {"label": "y", "allow_duplicates": True, **settings}
    return PredictionGuard.create(folder / f"{name}.db", TABLE[:N], TABLE[N:], **settings)  # type: ignore[arg-type]


def right_in(share: float, seed: int, *, train: float | None = None) -> pd.DataFrame:
    """Return predictions that are right in a share of the holdout, and of the training part where it has rows."""
    rng = np.random.default_rng(seed)
    wanted = np.full(2 * N, share)
    wanted[:N] = share if train is None else train
    wrong = rng.random(2 * N) >= wanted
    table = pd.DataFrame({"id": TABLE["id"], "prediction": np.where(wrong, 1 - LABELS, LABELS)})
    return (table[N:] if train is None else table).sample(frac=1, random_state=seed)


def test_rows_for_the_holdout_are_enough(tmp_path: Path) -> None:
    service = made(tmp_path)
    assert service.guard._declared.sampling == "fixed_features"
    for expected, share in ((0.8, 0.8), (None, 0.8), (1.0, 0.5)):
        answer = service.ask(right_in(share, 1), expected=expected, client="ann")
        assert answer.interval[0] < share < answer.interval[1]
        assert answer.half_width < 0.2
    again = service.ask(right_in(0.8, 1), expected=0.8, client="ann")
    assert again.repeated
    reopened = PredictionGuard.open(tmp_path / "guard.db").ask(right_in(0.8, 1), expected=0.8, client="ann")
    assert (reopened.value, reopened.repeated) == (again.value, True)


def test_a_score_on_training_records_is_a_guess_and_no_evidence(tmp_path: Path) -> None:
    """It has the price and the answer of the same number as ``expected=``, and a wrong one proves nothing."""
    for train in (0.7, 1.0):
        found = []
        for expected in (None, train):
            service = made(tmp_path, name=f"{train} {expected}")
            answer = service.ask(right_in(0.7, 3, train=train), expected=expected, client="ann")
            assert answer.interval[0] < 0.7 < answer.interval[1]
            found.append((answer.value, *answer.interval, service.guard.status.error_budget_left))
        assert found[0] == pytest.approx(found[1], abs=2e-3)  # of 2,000 training rows not just so many are right
        assert (answer.source == "train") == (train == 0.7)


def test_who_expects_nothing_is_expected_to_score_as_others_did(tmp_path: Path) -> None:
    service = made(tmp_path)
    for name in ("ann", "bob", "cleo"):
        service.ask(right_in(0.8, 1), expected=0.8, client=name)
    told = service.ask(right_in(0.81, 4), client="dan")
    assert told.source == "train"
    assert told.value == pytest.approx(0.8, abs=0.02)


def test_other_guards_need_a_training_value(tmp_path: Path) -> None:
    service = made(tmp_path, mechanism="claims")
    with pytest.raises(InputError, match=r"rows for both parts; got rows for the holdout alone\. Or pass .* expected="):
        service.ask(right_in(0.8, 1))
    assert len(service.guard.history) == 0
    told = service.ask(right_in(0.8, 1), expected=0.8), service.ask(right_in(0.8, 1, train=0.8))
    for answer in told:
        assert answer.interval[0] < 0.8 < answer.interval[1]


@for_each("wrong", [1.5, -0.1, np.nan, "much"])
def test_what_cannot_be_expected_is_refused(tmp_path: Path, wrong: float) -> None:
    service = made(tmp_path)
    with pytest.raises(InputError, match=r"^expected must be"):
        service.ask(right_in(0.8, 1), expected=wrong)
    assert len(service.guard.history) == 0


def test_equal_predictions_of_another_client_show_nothing_of_the_first(tmp_path: Path) -> None:
    service = made(tmp_path)
    first = service.ask(right_in(0.8, 1), expected=0.8, name="secret plan", client="ann")
    second = service.ask(right_in(0.8, 1), expected=0.8, name="mine", client="bob")
    assert (second.repeated, second.name) == (False, "mine (accuracy)")
    assert second.query == first.query + 1
    history = service.guard.history
    assert history["client"].tolist() == ["ann", "bob"]
    assert history["key"].nunique() == 2


def test_a_quota_counts_and_repeats_do_not(tmp_path: Path) -> None:
    service = made(tmp_path)
    for _ in range(3):
        service.ask(right_in(0.8, 1), expected=0.8, client="ann", quota=1)
    with pytest.raises(BudgetExhausted, match="The only query of this client is used"):
        service.ask(right_in(0.8, 2), expected=0.8, client="ann", quota=1)
    service.ask(right_in(0.8, 2), expected=0.8, client="bob", quota=1)


def test_two_junk_submissions_end_nobody_s_budget(tmp_path: Path) -> None:
    service = made(tmp_path)
    for seed in (1, 2):
        service.ask(right_in(0.5, seed, train=1.0), expected=1.0, client="junk")
    answer = service.ask(right_in(0.85, 3), expected=0.85, client="ann")
    assert answer.source == "train"
    assert answer.half_width < 0.1


def test_the_truth_is_given_the_features_where_that_is_proved(tmp_path: Path) -> None:
    assert made(tmp_path, name="1").guard._declared.sampling == "fixed_features"
    assert made(tmp_path, name="2", sampling="independent").guard._declared.sampling == "independent"
    assert made(tmp_path, name="3", order="day", window=2).guard._declared.sampling == "independent"
    with pytest.raises(InputError, match=r"^sampling must be"):
        made(tmp_path, name="4", order="day", window=2, sampling="fixed_features")


def test_comparisons_know_who_asks(tmp_path: Path) -> None:
    service = made(tmp_path)
    found = service.compare(right_in(0.9, 1, train=0.9), right_in(0.6, 2, train=0.6), client="ann", quota=1)
    assert found.verdict == "better"
    assert service.guard.history["client"].tolist() == ["ann"]
    with pytest.raises(BudgetExhausted):
        service.compare(right_in(0.9, 1, train=0.9), right_in(0.7, 2, train=0.7), client="ann", quota=1)


def test_a_quota_of_a_week_counts_from_its_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service, week = made(tmp_path), 7 * 86400.0
    for number, now in enumerate((10.0, week - 1.0, week)):
        monkeypatch.setattr("thresholdout.ledger.entry.time", lambda now=now: now)
        service.ask(right_in(0.8, number), expected=0.8, client="ann", quota=2, since=0.0 if now < week else week)
    service.compare(right_in(0.8, 1), right_in(0.7, 2), expected=0.1, client="ann", quota=2, since=week)
    with pytest.raises(BudgetExhausted, match="All 2 queries of this client"):
        service.ask(right_in(0.8, 3), expected=0.8, client="ann", quota=2, since=week)
    assert service.ask(right_in(0.8, 0), expected=0.8, client="ann", quota=2, since=week).repeated
    assert service.guard.history["time"].tolist() == [10.0, week - 1.0, week, week]


def difference_of(b: pd.DataFrame, a: pd.DataFrame) -> float:
    """The difference of both shares of right predictions, counted from the tables."""
    truth = TABLE.set_index("id")["y"]
    shares = [(one.set_index("id")["prediction"] == truth[one["id"].to_numpy()]).mean() for one in (b, a)]
    return float(shares[0] - shares[1])


@pytest.mark.slow
@for_each("sampling", ["fixed_features", "independent"])
@for_each("expected", [None, 0.2, -1.0, 1.0])
def test_comparisons_need_no_training_rows(tmp_path: Path, sampling: str, expected: float | None) -> None:
    service = made(tmp_path, sampling=sampling)
    b, a = right_in(0.8, 1), right_in(0.6, 2)
    truth = difference_of(b, a)
    found = service.compare(b, a, expected=expected, client="ann")
    assert found.interval[0] <= truth <= found.interval[1]
    assert not found.answer.repeated
    if sampling == "fixed_features":
        assert found.verdict == "better"
    again = service.compare(service.read(b), service.decoded(service.read(a).encoded), expected=expected, client="ann")
    assert (again.answer.repeated, again.interval) == (True, found.interval)
    back = service.compare(a, b, expected=None if expected is None else -expected, client="bob")
    assert back.interval[0] <= -truth <= back.interval[1]
    assert service.guard.history["source"].isin(["train", "holdout"]).all()


def test_a_good_guess_of_a_difference_pays(tmp_path: Path) -> None:
    left, widths = [], []
    for expected in (0.2, -0.6):
        service = made(tmp_path, name=f"{expected}")
        low, high = service.compare(right_in(0.8, 1), right_in(0.6, 2), expected=expected, client="ann").interval
        widths.append(high - low)
        left.append(service.guard.status.error_budget_left or 0.0)
    assert left[0] > 0.5 * 0.05
    assert left[1] < 0.1 * 0.05  # an outcome
    assert widths[0] < widths[1]


def test_equal_tables_and_third_classes_are_no_difference(tmp_path: Path) -> None:
    """A class that nobody has is wrong like the other one: values of a difference are 0, in between."""
    service = made(tmp_path)
    b = right_in(0.8, 1)
    same = service.compare(b, b, client="ann")
    assert same.interval[0] <= 0.0 <= same.interval[1]
    assert same.verdict == "not settled"
    wrong = b.assign(prediction=np.where(b["prediction"] == TABLE["y"][b.index], b["prediction"], 7))
    found = service.compare(wrong, b, client="ann")
    assert found.interval[0] <= 0.0 <= found.interval[1]


def test_what_cannot_be_expected_of_a_difference_is_refused(tmp_path: Path) -> None:
    service, other = made(tmp_path), made(tmp_path, mechanism=Claims(noise=0.0), name="other")
    b, a = right_in(0.8, 1), right_in(0.6, 2)
    for wrong in (1.5, -1.01, np.nan, "much"):
        with pytest.raises(InputError, match=r"^expected must be"):
            service.compare(b, a, expected=wrong)  # type: ignore[arg-type]
    with pytest.raises(
        InputError, match=r"got rows for the holdout alone\. Or pass the anticipated difference by expected="
    ):
        other.compare(b, a)
    assert len(service.guard.history) == len(other.guard.history) == 0
    found = other.compare(b, a, expected=0.2)
    assert found.interval[0] <= difference_of(b, a) <= found.interval[1]


@pytest.mark.statistical
@sizes("sessions", 30, 200)
def test_intervals_of_differences_hold_whatever_is_expected(tmp_path: Path, sessions: int) -> None:
    """Labels are drawn anew for each session, and the truth given the features is known; the twin has no claim left."""
    n, missed, narrow = 400, 0, 0
    rng = np.random.default_rng(5)
    ids = np.arange(2 * n)
    chance = rng.random(2 * n)
    for _ in range(sessions):
        labels = (rng.random(2 * n) < chance).astype(int)
        table = pd.DataFrame({"id": ids, "y": labels})
        service = PredictionGuard.create(open_ledger(None), table[:n], table[n:], label="y", confidence=0.9)
        wrong = inside = 0
        for _ in range(4):
            b, a = (rng.integers(0, 2, n) for _ in range(2))
            right = [np.where(one == 1, chance[n:], 1.0 - chance[n:]) for one in (b, a)]
            truth = float(np.mean(right[0] - right[1]))
            new, old = (pd.DataFrame({"id": ids[n:], "prediction": one}) for one in (b, a))
            expected = [None, truth, -truth][rng.integers(3)]
            low, high = service.compare(new, old, expected=expected, client="ann").interval
            wrong += not low <= truth <= high
            middle, half = 0.5 * (low + high), 0.5 * (high - low)
            inside += not middle - 0.1 * half <= truth <= middle + 0.1 * half
        missed += wrong > 0
        narrow += inside > 0
    limit = binom.isf(1e-9, sessions, 0.1)
    assert missed <= limit
    assert narrow > limit  # intervals of a tenth of the width


def test_probabilities_are_scored_without_training_rows(tmp_path: Path) -> None:
    service = made(tmp_path)
    table, truth = right_in(0.9, 1), 0.9 * 0.01 + 0.1 * 0.81
    table = table.assign(p_1=0.1 + 0.8 * table["prediction"], p_0=0.9 - 0.8 * table["prediction"])
    answer = service.ask(table[["id", "p_0", "p_1"]], brier_score(), expected=truth, client="ann")
    assert answer.interval[0] < truth < answer.interval[1]


# Who leads


def answered(
    number: int, client: str, low: float, high: float, name: str = "accuracy", source: str = "holdout"
) -> Entry:
    return Entry(number, f"{number}", name, 0.5, low, low, high, source, None, 0.0, 1.0, client=client)


def test_ranks_come_from_intervals_and_never_from_values() -> None:
    history = [
        answered(1, "ann", 0.70, 0.80),
        answered(2, "bob", 0.78, 0.90, "mine (accuracy)"),
        answered(3, "zoe", 0.10, 0.20),
        answered(4, "ann", 0.74, 0.82),
        answered(5, "eve", 0.95, 1.00, "accuracy, difference"),
        answered(6, "eve", 0.95, 1.00, "accuracy", "failed"),
        answered(7, "eve", 0.00, 1.00, "(accuracy) brier_score"),
    ]
    found = standings(history, "accuracy", greater_is_better=True)
    assert [(one.team, one.ranks, one.low, one.high, one.submissions) for one in found] == [
        ("bob", "1-2", 0.78, 0.90, 1),
        ("ann", "1-2", 0.74, 0.82, 2),
        ("zoe", "3", 0.10, 0.20, 1),
    ]
    losses = standings(history, "accuracy", greater_is_better=False)
    assert [(one.team, one.ranks) for one in losses] == [("zoe", "1"), ("ann", "2-3"), ("bob", "2-3")]
    assert standings([], "accuracy", greater_is_better=True) == []


def test_ranks_are_those_of_every_order_that_intervals_allow() -> None:
    """Counted pair by pair, for random intervals."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        ends = np.sort(rng.random((8, 2)), axis=1)
        history = [answered(k + 1, f"team {k}", *pair) for k, pair in enumerate(ends.tolist())]
        for one in standings(history, "accuracy", greater_is_better=True):
            low, high = ends[int(one.team.split()[1])]
            assert one.first == 1 + (ends[:, 0] > high).sum()
            assert one.last == 8 - (ends[:, 1] < low).sum()


def test_the_leaderboard_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    TABLE[:N].to_csv("train.csv", index=False)
    TABLE[N:].to_csv("holdout.csv", index=False)

    def run(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(main, list(arguments))
        assert result.exit_code == code, result.output
        return result.output

    run(
        "guard",
        "create",
        "g.db",
        "--train",
        "train.csv",
        "--holdout",
        "holdout.csv",
        "--label",
        "y",
        "--allow-duplicates",
    )
    assert "no submissions by accuracy yet" in run("guard", "history", "--leaderboard", "g.db")
    for client, share in (("ann", 0.9), ("bob", 0.88), ("=cmd|x", 0.5)):
        right_in(share, 1).to_csv("p.csv", index=False)
        said = run(
            "guard", "score", "g.db", "p.csv", "--client", client, "--anticipated-score", f"{share}", "--quota", "1"
        )
        assert "about as anticipated" in said
    assert "The only query of this client is used" in run(
        "guard",
        "score",
        "g.db",
        "p.csv",
        "--client",
        "bob",
        "--name",
        "again",
        "--quota",
        "1",
        "--anticipated-score",
        "0.6",
        code=5,
    )
    assert [line.split()[-1] for line in run("guard", "history", "g.db").splitlines()] == [
        "client",
        "ann",
        "bob",
        "=cmd|x",
    ]
    shown = run("guard", "history", "--leaderboard", "g.db")
    assert "Overlapping ranks are ties" in shown
    rows = {line.split()[1]: line.split()[0] for line in shown.splitlines()[1:4]}
    assert rows == {"ann": "1-2", "bob": "1-2", "=cmd|x": "3"}
    stored = json.loads(run("guard", "history", "--leaderboard", "g.db", "--json"))["leaderboard"]
    assert [one["team"] for one in stored] == ["ann", "bob", "=cmd|x"]


def test_the_command_says_what_to_expect_of_expected(tmp_path: Path) -> None:
    made(tmp_path)
    right_in(0.8, 1).to_csv(tmp_path / "sent.csv", index=False)
    ask = ["guard", "score", str(tmp_path / "guard.db"), str(tmp_path / "sent.csv"), "--client", "ann"]
    refused = CliRunner().invoke(main, [*ask, "--anticipated-score", "80"])
    assert refused.exit_code == 2
    assert "--anticipated-score must be a score between 0 and 1; got 80" in refused.output
    unsaid = CliRunner().invoke(main, ask).output
    assert "not as anticipated; query 1; a good --anticipated-score narrows the interval" in unsaid
    assert "a good" not in CliRunner().invoke(main, ask).output  # repeated
    assert "about as anticipated; query 2" in CliRunner().invoke(main, [*ask, "--anticipated-score", "0.8"]).output


@for_each("training", [20, 400])
@for_each("expected", [None, 0.0])
def test_a_collapse_is_told_whatever_was_expected_of_the_difference(training: int, expected: float | None) -> None:
    """305 records worse and 64 better of 1,000, of predictions without training rows: 24 points are no equality."""
    n = 1000
    y = np.random.default_rng(0).integers(0, 2, n + training)
    table = pd.DataFrame({"id": np.arange(n + training), "y": y})
    service = PredictionGuard.create(open_ledger(None), table[n:], table[:n], label="y")
    order = np.random.default_rng(1).permutation(n)
    old, new = y[:n].copy(), y[:n].copy()
    old[order[:64]] ^= 1
    new[order[64:369]] ^= 1
    before, after = (pd.DataFrame({"id": np.arange(n), "prediction": said}) for said in (old, new))
    found = service.compare(after, before, expected=expected, client="ann")
    assert found.verdict == "worse"
    assert found.interval[0] <= -0.241 <= found.interval[1] < -0.05
    assert service.compare(before, after, expected=expected, client="ann").verdict == "better"
