"""What is missing in a wheel or an sdist, and what should not be there, is seen."""

from __future__ import annotations

import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.distribution import of_sdist, of_wheel, tracked

FILES = ["graphs/__init__.py", "thresholdout/py.typed", "tests/test_graphs.py", "pyproject.toml", ".ci/run"]
DESCRIBED = [f"thresholdout-1.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")]
LICENSE = "thresholdout-1.dist-info/licenses/LICENSE"
RIGHT = [FILES[0], FILES[1], *DESCRIBED, LICENSE]


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
