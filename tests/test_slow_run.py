"""Slow tests are run until a deadline, the longest first; failures and files left out are told."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.cases import for_each
from tests.patience import PATIENCE
from tests.slow_run import Ended, by_turns, kept_times, main, processes, run_files, run_until

ROOT = Path(__file__).parents[1]
FILES = ["a.py", "b.py", "c.py", "d.py"]
GROUPS = [(file,) for file in FILES]


def test_short_ones_share_a_process_and_the_longest_of_the_others_are_first() -> None:
    times = {"a.py": 30.0, "b.py": 170.0, "c.py": 30.0, "e.py": 90.0, "f.py": 1.0}
    assert processes([*FILES, "e.py", "f.py"], times) == [("a.py", "c.py", "d.py", "f.py"), ("b.py",), ("e.py",)]
    assert processes([], times) == []


def test_where_time_is_short_other_files_are_last_each_day() -> None:
    """Ten files of ten seconds and room for seven of them: three are last, and no file is so every day."""
    groups = [("x.py", "y.py"), *((f"{letter}.py",) for letter in "jihgfedcba")]
    times = {file: 10.0 * (len(group) == 1) for group in groups for file in group}
    assert by_turns(groups, times, 100.0, 5) == groups
    last = [by_turns(groups, times, 70.0, day)[-3:] for day in range(10)]
    assert {group for late in last for group in late} == set(groups[1:])
    assert all(any(group not in late for late in last) for group in groups)
    for day, late in enumerate(last):
        found = by_turns(groups, times, 70.0, day)
        assert found[:-3] == [group for group in groups if group not in late]
        assert sorted(found) == sorted(groups)


def test_every_file_with_a_kept_time_exists() -> None:
    assert [file for file in kept_times() if not (ROOT / file).exists()] == []


@for_each(("seconds", "started"), [(0.0, 0), (10.0, 1), (10.5, 2), (1000.0, 4)])
def test_no_file_is_started_after_the_deadline(
    seconds: float, started: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each file takes ten seconds of a clock that only they move."""
    now = [0.0]

    def run(files: tuple[str, ...]) -> Ended:
        now[0] += 10.0
        return Ended(files, files != ("b.py",), dict.fromkeys(files, 10.0), "")

    ended, left = run_until(GROUPS, seconds, 1, run, lambda: now[0])
    assert [one.files for one in ended] == GROUPS[:started]
    assert left == FILES[started:]
    assert capsys.readouterr().out.count("FAILED") == (started > 1)


def test_as_many_files_at_a_time_as_there_are_workers() -> None:
    meeting = threading.Barrier(2, timeout=PATIENCE)

    def run(files: tuple[str, ...]) -> Ended:
        meeting.wait()  # passes when two are there
        return Ended(files, True, dict.fromkeys(files, 0.0), "")

    assert len(run_until(GROUPS, 60.0, 2, run)[0]) == len(FILES)


MARKED = "import pytest\n\ndef test_quick():\n    assert False\n\n@pytest.mark.slow\ndef test_slow():\n    assert {}\n"


@pytest.mark.slow
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
    assert main(["."]) == 1
    shown = capsys.readouterr().out
    assert "assert 1 == 2" in shown
    assert "0 files passed, 2 in processes that failed, 0 left out" in shown
    assert main([".", "--minutes", "0", "--left-out", "left.txt"]) == 0
    assert sorted(capsys.readouterr().out.splitlines()[1:]) == ["left out: test_right.py", "left out: test_wrong.py"]
    assert Path("left.txt").read_text().split() == ["test_right.py", "test_wrong.py"]


@pytest.mark.slow
def test_a_folder_that_cannot_be_collected_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test_broken.py").write_text("import nothing_of_this_name\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    with pytest.raises(SystemExit, match="nothing_of_this_name"):
        main(["."])


def test_a_process_says_how_long_each_file_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow: left out by default\n")
    for name, seconds in (("test_first.py", 0.0), ("test_second.py", 0.2)):
        text = f"import pytest, time\n\n@pytest.mark.slow\ndef test_slow():\n    time.sleep({seconds})\n"
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    ended = run_files(("test_first.py", "test_second.py"))
    assert ended.passed
    assert ended.seconds["test_first.py"] > 0.0
    assert ended.seconds["test_second.py"] >= 0.2
