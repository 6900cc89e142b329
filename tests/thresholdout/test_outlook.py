"""What is said about widths before anything is asked, against exact intervals and against guards."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import beta

from thresholdout import InputError, SeededNoise, Thresholdout
from thresholdout.cli import main
from thresholdout.planning import Outlook, outlook


def guarded(view: Outlook) -> float:
    return next(way.half_width for way in view.ways if way.name == "a guard")


def half_length(count: int, n: int, level: float) -> float:
    return float(beta.ppf(1 - level / 2, count + 1, n - count) - beta.ppf(level / 2, count, n - count + 1)) / 2


@pytest.mark.parametrize(("n", "expected"), [(300, 0.9), (2000, 0.95), (20_000, 0.5)])
def test_lists_and_final_looks_are_exact_intervals(n: int, expected: float) -> None:
    widths = outlook(n=n, queries=50, expected=expected).table["half_width"]
    count = round(n * expected)
    assert widths["one final look"] == pytest.approx(half_length(count, n, 0.05), rel=1e-6)
    assert widths["a fixed list"] == pytest.approx(half_length(count, n, 0.001), rel=1e-6)
    assert widths["one final look"] < widths["a fixed list"] < widths["a guard"]


@pytest.mark.parametrize(("n", "questions", "score"), [(400, 20, 0.9), (2000, 60, 0.95)])
def test_a_guard_is_about_as_wide_as_was_said(n: int, questions: int, score: float) -> None:
    """Searches in which training and holdout records have the same law, on the average over five of them."""
    found = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        guard = Thresholdout(np.arange(float(n)), train=np.arange(float(n), 2.0 * n), noise=SeededNoise(seed))
        for _ in range(questions):
            right = rng.random(2 * n) < score
            low, high = guard.ask(right[n:], right[:n]).interval
            found.append((high - low) / 2)
    said = guarded(outlook(n=n, queries=questions, expected=score))
    assert np.mean(found) == pytest.approx(said, rel=0.2)


def test_more_training_records_make_a_guard_narrower() -> None:
    few, many = (outlook(n=1000, queries=50, expected=0.9, train_records=k) for k in (250, 4000))
    assert guarded(many) < 0.8 * guarded(few)
    assert "More training records" in few.recommendation
    assert "More training records" not in many.recommendation


def test_too_few_records_are_said_to_be_too_few() -> None:
    assert "too few records" in outlook(n=60, queries=100, expected=0.8).recommendation
    assert "too few records" not in outlook(n=5000, queries=100, expected=0.8).recommendation


@pytest.mark.parametrize("expected", [0.0, 1.0, -1.0, 0.001, float("nan"), "0.9"])
def test_refuses_scores_that_cannot_be(expected: float) -> None:
    with pytest.raises(InputError, match="expected"):
        outlook(n=300, queries=10, expected=expected)


def test_the_command_says_it() -> None:
    result = CliRunner().invoke(main, ["plan", "--records", "2000", "--queries", "100", "--expected", "0.95"])
    assert result.exit_code == 0
    assert "one final look, within 0.010" in result.output
    assert CliRunner().invoke(main, ["plan", "--tolerance", "0.1", "--expected", "0.95"]).exit_code == 2
