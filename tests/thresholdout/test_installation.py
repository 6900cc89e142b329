"""The package `graphs`, whose import name another distribution has too, and the version."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import thresholdout
from tests.distribution import made_wheel
from tests.documents import ROOT

FOREIGN = {"graphs/__init__.py": "class Graph: pass\n", "graphs/digraph.py": "", "graphs/plotting.py": "wrong = True\n"}


def imported(folder: Path, python: str = sys.executable, path: bool = True) -> str:
    """Import thresholdout in a new process, from a folder alone, and return the error's last line, if any."""
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); import thresholdout; print(thresholdout.__file__)"
    flags = ["-P", "-c", code] if path else ["-I", "-c", "import thresholdout"]
    done = subprocess.run([python, *flags], cwd=folder, env={}, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        assert not path or str(folder) in done.stdout
        return ""
    return done.stderr.strip().splitlines()[-1]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in ("graphs", "thresholdout"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_a_whole_installation_is_taken(copy: Path) -> None:
    assert imported(copy) == ""


def test_another_package_of_this_name_is_refused(copy: Path) -> None:
    for name, text in FOREIGN.items():
        (copy / name).write_text(text)
    said = imported(copy)
    assert said.startswith("ImportError: The package `graphs` of thresholdout is another distribution's")
    assert "pip install --force-reinstall --no-deps thresholdout" in said


@pytest.mark.slow
def test_a_package_that_lacks_files_is_refused(copy: Path) -> None:
    lost = copy / "graphs" / "models" / "panel.py"
    lost.unlink()
    assert f"lacks {lost}" in imported(copy)
    shutil.copy(ROOT / "graphs" / "models" / "panel.py", lost)
    assert imported(copy) == ""


def test_no_package_at_all_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholdout, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"`graphs` of thresholdout is missing. Uninstall"):
        vars(thresholdout)["_check_graphs"]()


def test_another_package_is_not_run(copy: Path) -> None:
    """The one on the package index compiles itself when it is imported, and prints 200 lines of errors."""
    (copy / "graphs" / "__init__.py").write_text("import pathlib\npathlib.Path('ran').touch()\nraise RuntimeError\n")
    assert "is another distribution's" in imported(copy)
    assert not (copy / "ran").exists()


@pytest.mark.slow
def test_another_distribution_is_installed_over_ours(tmp_path: Path) -> None:
    wheel, other = made_wheel(tmp_path), tmp_path / "graphs-0.1.3-py3-none-any.whl"
    info = "graphs-0.1.3.dist-info"
    files = {
        **FOREIGN,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: graphs\nVersion: 0.1.3\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(other, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")

    def pip(*words: str) -> None:
        subprocess.run([python, "-m", "pip", "--disable-pip-version-check", *words], check=True, capture_output=True)

    pip("install", "--no-deps", str(wheel), "lazy_loader")
    assert imported(tmp_path, python, path=False) == ""
    pip("install", "--no-deps", str(other))
    assert "is another distribution's" in imported(tmp_path, python, path=False)
    pip("uninstall", "--yes", "graphs")
    assert "The package `graphs` of thresholdout" in imported(tmp_path, python, path=False)
    pip("install", "--force-reinstall", "--no-deps", str(wheel))  # the advice
    assert imported(tmp_path, python, path=False) == ""


def test_the_version_is_that_of_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "thresholdout/__init__.py"
    assert f"version: {thresholdout.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
