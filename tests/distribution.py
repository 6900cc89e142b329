"""Build the wheel and the sdist, check their files, and try the wheel: ``python -m tests.distribution`` (`make dist`).

The wheel is installed into a new environment, and tried from a folder that is not the project's: it is imported, a
mechanism is planned, a guard is asked, and the command prints its version. The slow tests run every example and every
page's code there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from tests.patience import PATIENCE

ROOT = Path(__file__).parents[1]
PACKAGES = ("thresholdout/", "graphs/")
NOT_SHIPPED = (".ci/", ".github/", ".gitignore")
WRITTEN = ("PKG-INFO",)
SMOKE = """
import pathlib
import graphs, thresholdout
assert not pathlib.Path(thresholdout.__file__).is_relative_to({root!r}), thresholdout.__file__
import numpy as np
from graphs import Independent
from thresholdout import Thresholdout
from thresholdout.planning.planner import plan
assert plan(Independent(1000), queries=20).half_width < 0.1
guards = [Thresholdout(np.arange(1000.0), queries=20, ledger="guard.db") for _ in range(2)]
first, second = (guard.ask(0.5, np.arange(1000) < 500, key="first") for guard in guards)
assert abs(first.value - 0.5) < 0.2
assert second.repeated and second.value == first.value
"""
PAGE = """
import doctest, pathlib, re, sys
import graphs, thresholdout
assert not pathlib.Path(thresholdout.__file__).is_relative_to({root!r}), thresholdout.__file__
flags, names, wrong = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, {{"__name__": "__main__"}}, 0
text = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
for number, block in enumerate(re.findall(r"^```python\\n(.*?)^```", text, re.DOTALL | re.MULTILINE), 1):
    if block.startswith(">>>"):
        test = doctest.DocTestParser().get_doctest(block, names, f"block {{number}}", sys.argv[1], 0)
        wrong += doctest.DocTestRunner(optionflags=flags).run(test, clear_globs=False).failed
        names = test.globs
    else:
        exec(block, names)
sys.exit(wrong > 0)
"""


def differences(found: Iterable[str], expected: Iterable[str]) -> list[str]:
    """Return what is missing and what should not be there, one a line."""
    there, wanted = set(found), set(expected)
    return [f"missing: {name}" for name in sorted(wanted - there)] + [
        f"not expected: {name}" for name in sorted(there - wanted)
    ]


def tracked(root: Path = ROOT) -> list[str]:
    """Return the files of the project that git knows."""
    done = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def of_wheel(wheel: Path, files: Iterable[str]) -> list[str]:
    """Compare a wheel with the files of the packages; what describes the wheel itself is beside them."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    described = {name.rsplit("/", 1)[1] for name in names if ".dist-info/" in name}
    inside = [name for name in names if ".dist-info/" not in name]
    lines = differences(inside, [name for name in files if name.startswith(PACKAGES)])
    return lines + differences(described, ["METADATA", "WHEEL", "RECORD", "entry_points.txt", "LICENSE"])


def of_sdist(sdist: Path, files: Iterable[str]) -> list[str]:
    """Compare an sdist with the files of the project."""
    with tarfile.open(sdist) as archive:
        names = [member.name.split("/", 1)[1] for member in archive.getmembers() if member.isfile()]
    return differences(
        [name for name in names if name not in (*WRITTEN, *NOT_SHIPPED)],
        [name for name in files if not name.startswith(NOT_SHIPPED)],
    )


def made_wheel(folder: Path) -> Path:
    """Build the wheel with the libraries that are installed here."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def installed(wheel: Path, folder: Path, extras: str = "") -> str:
    """Install a wheel into a new environment in a folder, and return the environment's Python."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    python = str(folder / "venv" / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"{wheel}{extras}"], cwd=folder, check=True)
    return python


def tried(wheel: Path, folder: Path) -> str:
    """Install a wheel into a new environment, use it there, and return the version that it prints."""
    python = installed(wheel, folder)
    smoke = [python, "-I", "-W", "error", "-c", SMOKE.format(root=str(ROOT))]
    subprocess.run(smoke, cwd=folder, check=True)
    command = [str(folder / "venv" / "bin" / "thresholdout"), "--version"]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def ran(command: list[str], folder: Path) -> str:
    """Run something in a folder that is not the project's, and return what went wrong."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def main() -> int:
    """Build, check and try; return the exit status."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=True)
        (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
        files = tracked()
        lines = [f"wheel: {line}" for line in of_wheel(wheel, files)]
        lines += [f"sdist: {line}" for line in of_sdist(sdist, files)]
        if lines:
            print("\n".join(lines))
            return 1
        print(f"{wheel.name} in a new environment: {tried(wheel, folder)}")
        (ROOT / "dist").mkdir(exist_ok=True)
        for archive in (wheel, sdist):
            shutil.copy(archive, ROOT / "dist")
    return 0


if __name__ == "__main__":
    sys.exit(main())
