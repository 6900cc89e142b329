"""Slow tests are run until a deadline, in an order of the commit; what fails and what is left out is told."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.slow_run import Ended, commit, main, rotated, run_until

FILES = ["a.py", "b.py", "c.py", "d.py"]


@pytest.mark.parametrize(
    ("hash_of_commit", "order"), [("0", "abcd"), ("5", "bcda"), ("b665f9c3", "dabc"), ("f" * 40, "dabc")]
)
def test_the_order_is_rotated_by_the_commit(hash_of_commit: str, order: str) -> None:
    assert rotated(FILES, hash_of_commit) == [f"{letter}.py" for letter in order]
    assert rotated([], hash_of_commit) == []


def test_the_commit_is_a_hash() -> None:
    assert int(commit(), 16) >= 0


@pytest.mark.parametrize(("seconds", "started"), [(0.0, 0), (10.0, 1), (10.5, 2), (1000.0, 4)])
def test_no_file_is_started_after_the_deadline(
    seconds: float, started: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each file takes ten seconds of a clock that only they move."""
    now = [0.0]

    def run(file: str) -> Ended:
        now[0] += 10.0
        return Ended(file, file != "b.py", 10.0, "")

    ended, left = run_until(FILES, seconds, 1, run, lambda: now[0])
    assert [one.file for one in ended] == FILES[:started]
    assert left == FILES[started:]
    assert capsys.readouterr().out.count("FAILED") == (started > 1)


def test_as_many_files_at_a_time_as_there_are_workers() -> None:
    meeting = threading.Barrier(2, timeout=PATIENCE)

    def run(file: str) -> Ended:
        meeting.wait()  # passes when two are there
        return Ended(file, True, 0.0, "")

    assert len(run_until(FILES, 60.0, 2, run)[0]) == len(FILES)


MARKED = "import pytest\n\ndef test_quick():\n    assert False\n\n@pytest.mark.slow\ndef test_slow():\n    assert {}\n"


def test_slow_tests_of_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only tests that are marked are run; one that fails is shown, and is the exit status."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow: left out by default\n")
    (tmp_path / "test_quick.py").write_text("def test_quick():\n    assert False\n")
    (tmp_path / "test_right.py").write_text(MARKED.format(True))
    (tmp_path / "test_wrong.py").write_text(MARKED.format("1 == 2"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    assert main(["--folder", "."]) == 1
    shown = capsys.readouterr().out
    assert "assert 1 == 2" in shown
    assert "1 files passed, 1 failed, 0 left out" in shown
    assert main(["--folder", ".", "--minutes", "0"]) == 0
    assert sorted(capsys.readouterr().out.splitlines()[1:]) == ["left out: test_right.py", "left out: test_wrong.py"]


def test_a_folder_that_cannot_be_collected_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test_broken.py").write_text("import nothing_of_this_name\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    with pytest.raises(SystemExit, match="nothing_of_this_name"):
        main(["--folder", "."])
