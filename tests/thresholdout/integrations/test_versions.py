"""The section on hooks: its table of versions, and its examples."""

import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "model_selection.md"
TEXT = PAGE.read_text().split("\n## Hooks ")[1].split("\n## ")[0]
ROWS = re.findall(r"^\| ([a-z_-]+) \| ([0-9.]+) \| (.*?) \| (?:`(.*)`)? ?\|$", TEXT, re.MULTILINE)
SECTIONS = re.findall(r"^### (.*?)$(.*?)(?=^### |\Z)", TEXT, re.MULTILINE | re.DOTALL)
NEEDS = {
    "Ray Tune": "ray",
    "MLflow": "mlflow",
    "The Trainer of transformers": "transformers",
    "inspect_ai": "inspect_ai",
}


def examples(text: str) -> str:
    return "\n".join(re.findall(r"^```py\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def test_the_environment_has_the_versions_of_the_table() -> None:
    text = (ROOT / "Makefile").read_text()
    lists = r"^(?:HOOKS_LIBRARIES|TRAINERS_LIBRARIES|SHINKA_LIBRARY) := (.*?[^\\])$"
    pinned = re.findall(lists, text, re.MULTILINE | re.DOTALL)
    assert len(pinned) == 3
    pins = dict(re.findall(r"([a-z_-]+)(?:\[[a-z]+\])?==([0-9.]+)", " ".join(pinned)))
    assert pins == {name: number for name, number, _, _ in ROWS}
    assert len(ROWS) >= 11


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_library_that_is_installed_has_the_version_of_the_table(row: tuple[str, str, str, str]) -> None:
    name, number, _, file = row
    if file:
        assert list((ROOT / "tests" / "thresholdout").rglob(file)), f"{file}, which the table names"
    try:
        found = version(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    assert found.split("+")[0] == number, f"{name}: run make test-hooks, and write this version into {PAGE.name}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("section", NEEDS)
def test_the_examples_of_the_page_run(section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = pytest.importorskip(NEEDS[section], reason=f"{NEEDS[section]} is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    if section == "Ray Tune":
        library.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80 * 2**20)
    if section == "MLflow":
        library.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    introduction = TEXT.split("\n### ")[0]
    space: dict[str, object] = {"__name__": "__main__"}
    try:
        exec(compile(examples(introduction), str(PAGE), "exec"), space)
        exec(compile(examples(dict(SECTIONS)[section]), str(PAGE), "exec"), space)
    finally:
        if section == "Ray Tune":
            library.shutdown()


def test_every_section_with_an_example_is_run() -> None:
    assert {name for name, text in SECTIONS if examples(text)} == set(NEEDS)
