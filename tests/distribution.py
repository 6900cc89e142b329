"""Build the wheel and the sdist, check their files, and try the wheel: ``python -m tests.distribution`` (`make dist`).

The wheel is installed into a new environment, and tried from a folder that is not the project's: it is imported, a
mechanism is planned, a guard is asked, and the command prints its version.
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

ROOT = Path(__file__).parents[1]
PACKAGES = ("thresholdout/", "graphs/")
NOT_SHIPPED = (".ci/", ".gitignore")
WRITTEN = ("PKG-INFO",)
SMOKE = """
import pathlib
import graphs, thresholdout
assert not pathlib.Path(thresholdout.__file__).is_relative_to({root!r}), thresholdout.__file__
import numpy as np
from graphs import Independent
from thresholdout import Thresholdout
from thresholdout.planning import plan
assert plan(Independent(1000), queries=20).half_width < 0.1
guards = [Thresholdout(np.arange(1000.0), queries=20, ledger="guard.db") for _ in range(2)]
first, second = (guard.ask(0.5, np.arange(1000) < 500, key="first") for guard in guards)
assert abs(first.value - 0.5) < 0.2
assert second.repeated and second.value == first.value
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


def tried(wheel: Path, folder: Path) -> str:
    """Install a wheel into a new environment in a folder, use it there, and return the version that it prints."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    python = str(folder / "venv" / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, str(wheel)], cwd=folder, check=True)
    smoke = [python, "-I", "-W", "error", "-c", SMOKE.format(root=str(ROOT))]
    subprocess.run(smoke, cwd=folder, check=True)
    command = [str(folder / "venv" / "bin" / "thresholdout"), "--version"]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


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
