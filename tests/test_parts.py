"""The default tests are run in parts: each file in one of them, failures printed, and the status that of the worst."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import parts
from tests.cases import for_each
from tests.parts import main, package_of, parts_of
from tests.slow_run import NO_TESTS, kept_times

ROOT = Path(__file__).parents[1]


@for_each(
    ("path", "package"),
    [
        ("tests/thresholdout/guard/sharing/test_owners.py", "thresholdout/guard"),
        ("thresholdout/guard/kfold.py", "thresholdout/guard"),
        ("tests/graphs/test_model.py", "graphs"),
        ("docs/start.md", "docs"),
        ("tests/test_layers.py", "."),
        ("README.md", "."),
    ],
)
def test_a_module_and_its_tests_are_in_one_package(path: str, package: str) -> None:
    assert package_of(Path(path)) == package


def test_parts_take_about_as_long_as_each_other() -> None:
    assert parts_of({"a": 5.0, "b": 3.0, "c": 3.0, "d": 1.0}, 2) == {"a": 0, "b": 1, "c": 1, "d": 0}
    times = kept_times(parts.TIMES)
    found = parts_of(times, 2)
    seconds = [sum(times[package] for package in times if found[package] == part) for part in range(2)]
    assert max(seconds) <= 1.1 * min(seconds)


def test_every_package_with_kept_seconds_exists() -> None:
    assert [
        name for name in kept_times(parts.TIMES) if not any((ROOT / top / name).is_dir() for top in ("", "tests"))
    ] == []


def test_each_test_runs_once_and_a_failure_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for package, text in (("docs", "assert True"), ("graphs", "assert 1 == 2"), ("new", "assert True")):
        (tmp_path / "tests" / package).mkdir(parents=True)
        (tmp_path / "tests" / package / "test_one.py").write_text(f"def test_one():\n    {text}\n")
    (tmp_path / "test_alone.py").write_text("def test_one():\n    pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests test_alone.py\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(parts, "TIMES", tmp_path / "times.tsv")
    assert main(["--workers", "2", "--keep", "--import-mode=importlib"]) == 1
    shown = capfd.readouterr().out
    assert "assert 1 == 2" in shown
    assert sum(int(line.split(" passed")[0].split()[-1]) for line in shown.splitlines() if " passed" in line) == 3
    assert set(kept_times(parts.TIMES)) == {".", "docs", "graphs", "new"}
    assert main(["--workers", "2", "--import-mode=importlib", "-k", "one and two"]) == NO_TESTS
