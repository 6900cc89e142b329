"""What is missing in a wheel or an sdist, and what should not be there, is seen."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.cases import for_each
from tests.distribution import PAGE, installed, made_wheel, of_sdist, of_wheel, ran, tracked
from tests.documents import ROOT
from tests.test_examples import EXAMPLES, shows_what_is_promised

FILES = ["graphs/__init__.py", "thresholdout/py.typed", "tests/test_graphs.py", "pyproject.toml", ".ci/run"]
DESCRIBED = [f"thresholdout-1.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")]
LICENSE = "thresholdout-1.dist-info/licenses/LICENSE"
RIGHT = [FILES[0], FILES[1], *DESCRIBED, LICENSE]


@for_each(
    ("names", "told"),
    [
        (RIGHT, []),
        (RIGHT[1:], ["missing: graphs/__init__.py"]),
        ([*RIGHT, "tests/test_graphs.py"], ["not expected: tests/test_graphs.py"]),
        (RIGHT[:-1], ["missing: LICENSE"]),
    ],
)
def test_files_of_a_wheel(tmp_path: Path, names: list[str], told: list[str]) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        for name in names:
            archive.writestr(name, "")
    assert of_wheel(tmp_path / "a.whl", FILES) == told


@for_each(
    ("names", "told"),
    [
        ([*FILES[:4], "PKG-INFO"], []),
        (FILES[:3], ["missing: pyproject.toml"]),
        ([*FILES[:4], "guard.db"], ["not expected: guard.db"]),
    ],
)
def test_files_of_an_sdist(tmp_path: Path, names: list[str], told: list[str]) -> None:
    (tmp_path / "file").touch()
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        for name in names:
            archive.add(tmp_path / "file", f"thresholdout-1/{name}")
    assert of_sdist(tmp_path / "a.tar.gz", FILES) == told


def test_the_projects_files_are_known() -> None:
    try:
        files = tracked()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs git, and a clone")
    assert {"pyproject.toml", "thresholdout/py.typed"} <= set(files)


# `make test-hooks` and `make test-engines` run the others.
OTHERS = ("\nimport torch\n", "\nimport dask\n", "\nfrom pyspark.")
FROM_THE_WHEEL = [
    script for script in EXAMPLES if not any(line in script.read_text(encoding="utf-8") for line in OTHERS)
]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Install the wheel with what examples need, and nothing else, away from the project."""
    folder = tmp_path_factory.mktemp("clean")
    return installed(made_wheel(folder), folder, "[examples]"), folder


@pytest.mark.slow
@pytest.mark.parametrize("script", FROM_THE_WHEEL, ids=lambda path: path.stem)
def test_examples_run_from_the_wheel(script: Path, clean: tuple[str, Path], tmp_path: Path) -> None:
    python, _ = clean
    copy = Path(shutil.copy(script, tmp_path))
    shows_what_is_promised([python, "-I", "-W", "error"], copy, tmp_path)


@pytest.mark.slow
def test_code_of_the_first_page_runs_from_the_wheel(clean: tuple[str, Path], tmp_path: Path) -> None:
    """All pages run in the project's environment, and the examples here."""
    python, _ = clean
    assert ran([python, "-I", "-c", PAGE.format(root=str(ROOT)), str(ROOT / "README.md")], tmp_path) == ""


@pytest.mark.slow
def test_wrong_code_of_a_page_is_seen(clean: tuple[str, Path], tmp_path: Path) -> None:
    python, _ = clean
    page = tmp_path / "page.md"
    page.write_text("```python\n>>> a = 1\n\n```\n\n```python\n>>> a\n2\n\n```\n")
    assert "Got" in ran([python, "-I", "-c", PAGE.format(root=str(ROOT)), str(page)], tmp_path)
    page.write_text(page.read_text().replace("\n2\n", "\n1\n"))
    assert ran([python, "-I", "-c", PAGE.format(root=str(ROOT)), str(page)], tmp_path) == ""
