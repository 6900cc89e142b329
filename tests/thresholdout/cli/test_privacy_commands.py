"""Commands about what private learners leak."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.thresholdout.cli.running import run

LEARNER = ("--batch-size", "120", "--records", "50000", "--steps", "104000")


def _epsilon(output: str) -> float:
    return float(output.split("epsilon ")[1].split()[0])


@pytest.mark.slow
def test_account_from_options() -> None:
    replaced = run("privacy", "account", "--noise", "6", *LEARNER).output
    assert 1.08 < _epsilon(replaced) <= 1.101
    assert "one record replaced" in replaced
    assert "renyi" in replaced
    one_more = run("privacy", "account", "--noise", "6", *LEARNER, "--adjacency", "add-remove").output
    assert _epsilon(one_more) < _epsilon(replaced)
    poisson = run(
        "privacy", "account", "--noise", "6", *LEARNER, "--adjacency", "add-remove", "--sampling", "poisson"
    ).output
    assert _epsilon(poisson) < 0.5
    assert _epsilon(run("privacy", "account", "--noise", "6", *LEARNER, "--delta", "1e-7").output) > _epsilon(replaced)
    assert run("privacy", "account", "--noise", "6", *LEARNER, "--epsilon", "1.101").output.startswith("delta ")


@pytest.mark.slow
def test_account_of_a_schedule() -> None:
    sizes = ("--batch-size", "120", "--records", "50000")
    both = run(
        "privacy", "account", "--noise", "8", "--steps", "1000", "--noise", "6", "--steps", "2000", *sizes
    ).output
    assert both.count("SelfComposed(") == 2


@pytest.mark.slow
def test_account_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "events.toml"
    path.write_text(
        'delta = 1e-6\nadjacency = "replace_one"\n\n[[event]]\nkind = "laplace_answer"\nscale = 20.0\ncount = 3\n'
    )
    shown = run("privacy", "account", str(path)).output
    assert "delta 1e-06" in shown
    assert abs(_epsilon(shown) - 0.15) < 1e-5
    assert "delta 0" in run("privacy", "account", str(path), "--delta", "0").output
    assert "replaced records" in run("privacy", "account", str(path), "--adjacency", "add-remove", code=4).output
    path.write_text("rate = 3\n[[event]]\nkind = 'black_box'\nepsilon = 0.1\n")
    assert "'rate'" in run("privacy", "account", str(path), code=4).output
    path.write_text("[[event]]\nkind = 'black box'\n")
    assert "black_box" in run("privacy", "account", str(path), code=4).output


@pytest.mark.slow
def test_account_like_opacus(tmp_path: Path) -> None:
    """The history (1, .01, 1000) costs 1.828 at 1e-5 [dp-accounting's privacy-loss distributions: 1.8282]."""
    path = tmp_path / "history.json"
    path.write_text(json.dumps({"history": [[1.0, 0.01, 1000]], "mechanism": "prv"}))
    shown = run("privacy", "account", str(path), "--like", "opacus").output
    assert _epsilon(shown) == pytest.approx(1.8282, abs=2e-4)
    assert "one record more or less" in shown
    log = tmp_path / "log.csv"
    log.write_text("epoch, noise_multiplier, sample_rate, num_steps\n1, 1.0, 0.01, 600\n2, 1.0, 0.01, 400\n")
    assert _epsilon(run("privacy", "account", str(log), "--like", "opacus").output) == _epsilon(shown)
    same = ("--noise", "1", "--batch-size", "50", "--records", "5000", "--steps", "1000", "--like", "opacus")
    assert _epsilon(run("privacy", "account", *same).output) == _epsilon(shown)
    # Ten epochs, in each of which a replaced record moves one sum by two clipping norms: mu = 2 sqrt(10).
    shuffled = ("--sampling", "shuffled", "--records", "5000")
    found = run("privacy", "account", str(path), "--like", "opacus", *shuffled).output
    assert "one record replaced" in found
    assert _epsilon(found) == pytest.approx(_gaussian_epsilon(2 * np.sqrt(10.0), 1e-5), rel=1e-4)
    assert _epsilon(run("privacy", "account", *same[:-2], "--sampling", "shuffled").output) == _epsilon(found)
    fixed = run("privacy", "account", str(path), "--like", "opacus", "--sampling", "wor", "--records", "5000").output
    assert _epsilon(shown) < _epsilon(fixed) < _epsilon(found)


def _gaussian_epsilon(mu: float, delta: float) -> float:
    """Invert the delta of a Gaussian answer [Balle and Wang 2018, Theorem 8]."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    def above(epsilon: float) -> float:
        exact = norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))
        return float(exact - delta)

    return float(brentq(above, 0.0, 200.0))


@pytest.mark.slow
def test_audit_of_two_files(tmp_path: Path) -> None:
    """Noise of half of the claimed scale is refuted; what is right, once in ten audits at most, is not at this seed."""
    rng = np.random.default_rng(0)
    first, second, events = tmp_path / "first.csv", tmp_path / "second.npy", tmp_path / "events.toml"
    np.savetxt(first, rng.normal(size=300))
    np.save(second, rng.normal(2.0, size=300))
    events.write_text('[[event]]\nkind = "gaussian_answer"\nstd = 1.0\n')
    words = ("privacy", "audit", str(first), str(second), "--seed", "0")
    assert run(*words, "--claim", str(events), code=1).output.startswith("claim refuted: delta >= ")
    events.write_text('[[event]]\nkind = "gaussian_answer"\nstd = 0.5\n')
    assert run(*words, "--claim", str(events)).output.startswith("claim not refuted")
    found = json.loads(run(*words, "--epsilon", "0.5", "--delta", "0.01", "--json", code=1).output)
    assert (found["refuted"], found["at"]) == (True, {"epsilon": 0.5, "delta": 0.01})
    measured = json.loads(run(*words, "--delta", "1e-5", "--json").output)
    assert 1 < measured["epsilon"] < 8
    wrong = [
        (["--claim", str(events), "--delta", "0"], 2, "Pass --claim, or --epsilon and --delta, not both"),
        ([], 2, "Pass --claim, or --epsilon and --delta; or one of these two"),
        (["--delta", "0.1", "--adjacency", "add-remove"], 2, "--adjacency needs a claim"),
        (["--delta", "2"], 2, "--delta must be"),
    ]
    for more, code, message in wrong:
        assert message in run(*words, *more, code=code).output
    first.write_text("score\n1.0\n")
    assert "rows of numbers without a header" in run(*words, "--delta", "1e-5", code=4).output


def test_account_says_what_is_missing(tmp_path: Path) -> None:
    path, none = tmp_path / "events.toml", tmp_path / "none.toml"
    path.write_text("[[event]]\nkind = 'black_box'\nepsilon = 0.1\n")
    wrong: list[tuple[list[str], int, str]] = [
        ([], 2, "Pass a file of events, or --noise, --batch-size, --records and --steps"),
        (["--noise", "6", "--noise", "8", *LEARNER], 2, "--noise and --steps must be equally many; got 2 and 1"),
        (["--noise", "6", *LEARNER, "--delta", "1e-5", "--epsilon", "1"], 2, "Pass --epsilon or --delta, not both"),
        (["--noise", "-1", *LEARNER], 2, "--noise must be a finite number above 0; got -1.0"),
        (["--noise", "6", *LEARNER, "--delta", "2"], 2, "--delta must be a number in [0, 1); got 2.0."),
        (
            ["--noise", "6", "--batch-size", "5", "--records", "5", "--steps", "1"],
            2,
            "--batch-size must be less than --records 5; got 5",
        ),
        ([str(path), "--noise", "6"], 2, "Pass a file, or the options of a learner, not both"),
        ([str(none)], 2, "none.toml' does not exist"),
    ]
    for words, code, message in wrong:
        assert message in run("privacy", "account", *words, code=code).output


@pytest.mark.slow
def test_calibrate() -> None:
    shown = run("privacy", "calibrate", "--epsilon", "1.1", *LEARNER, "--method", "rdp").output
    noise = float(shown.split()[1].rstrip(":"))
    assert 5.9 < noise < 6.0
    assert _epsilon(shown) <= 1.1
    assert _epsilon(run("privacy", "account", "--noise", str(noise * 1.001), *LEARNER).output) <= 1.1
    assert "Missing option '--steps'" in run("privacy", "calibrate", "--epsilon", "1.1", code=2).output
    alone = run("privacy", "calibrate", "--epsilon", "1.1", "--steps", "3", code=2).output
    assert "--batch-size and --records are missing" in alone
    negative = run("privacy", "calibrate", "--epsilon", "-1", *LEARNER, code=2).output
    assert "--epsilon must be a finite number above 0; got -1.0." in negative


@pytest.mark.slow
def test_calibrate_by_distributions() -> None:
    sizes = ("--batch-size", "2", "--records", "1000", "--steps", "10", "--adjacency", "add-remove")
    shown = run("privacy", "calibrate", "--epsilon", "1", *sizes, "--method", "pld").output
    assert "by the distribution accountant" in shown
    assert _epsilon(shown) <= 1
