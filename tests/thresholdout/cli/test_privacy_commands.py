"""Commands about what private learners leak."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.thresholdout.cli.running import run

LEARNER = ("--batch-size", "120", "--records", "50000", "--steps", "104000")


def _epsilon(output: str) -> float:
    return float(output.split("epsilon ")[1].split()[0])


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


def test_account_of_a_schedule() -> None:
    sizes = ("--batch-size", "120", "--records", "50000")
    both = run(
        "privacy", "account", "--noise", "8", "--steps", "1000", "--noise", "6", "--steps", "2000", *sizes
    ).output
    assert both.count("SelfComposed(") == 2


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


def test_account_says_what_is_missing(tmp_path: Path) -> None:
    path, none = tmp_path / "events.toml", tmp_path / "none.toml"
    path.write_text("[[event]]\nkind = 'black_box'\nepsilon = 0.1\n")
    wrong: list[tuple[list[str], int, str]] = [
        ([], 2, "give a file of events, or --noise, --batch-size, --records and --steps"),
        (["--noise", "6", "--noise", "8", *LEARNER], 2, "give --noise and --steps equally often; seen: 2 and 1"),
        (["--noise", "6", *LEARNER, "--delta", "1e-5", "--epsilon", "1"], 2, "give --epsilon or --delta, not both"),
        (["--noise", "-1", *LEARNER], 2, "--noise: -1.0; expected: a finite number above 0"),
        (["--noise", "6", *LEARNER, "--delta", "2"], 2, "--delta: 2.0; expected: a number in [0, 1)"),
        (
            ["--noise", "6", "--batch-size", "5", "--records", "5", "--steps", "1"],
            2,
            "--batch-size: 5; expected: less than --records 5",
        ),
        ([str(path), "--noise", "6"], 2, "give a file, or the options of a learner, not both"),
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
    assert "give --batch-size and --records" in alone
    negative = run("privacy", "calibrate", "--epsilon", "-1", *LEARNER, code=2).output
    assert "--epsilon: -1.0; expected: a finite number above 0" in negative


@pytest.mark.slow
def test_calibrate_by_distributions() -> None:
    sizes = ("--batch-size", "2", "--records", "1000", "--steps", "10", "--adjacency", "add-remove")
    shown = run("privacy", "calibrate", "--epsilon", "1", *sizes, "--method", "pld").output
    assert "by the distribution accountant" in shown
    assert _epsilon(shown) <= 1
