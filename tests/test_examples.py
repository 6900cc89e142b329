"""Every example runs as a user would run it, is short, and draws its picture if it has one."""

import os
import subprocess
from pathlib import Path

from docs.examples_gallery import ORDER, PRINTED
from tests.documents import ROOT, documents
from tests.patience import PATIENCE

DOCUMENTS = documents()
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def shows_what_is_promised(python: list[str], script: Path, tmp_path: Path) -> None:
    """Run an example, and compare its lines and its picture with the documents; `test_distribution.py` calls it."""
    picture = tmp_path / "picture.png"
    draws = "--picture" in script.read_text()
    command = [*python, str(script), *(["--picture", str(picture)] if draws else [])]
    threads = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")  # as a user runs it, whatever runs this test
    environment = {name: value for name, value in os.environ.items() if name not in threads}
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, env=environment)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert 2 < len(lines) < 40
    assert max(map(len, lines)) <= 120
    assert picture.exists() == draws
    quoted = [block for block in DOCUMENTS.split("```") if block.strip("\n").startswith(lines[0])]
    assert len(quoted) == (f"`python examples/{script.name}`" in DOCUMENTS)
    for block in quoted:
        shown = block.strip("\n").splitlines()
        assert [line.rstrip() for line in shown] == [line.rstrip() for line in lines[: len(shown)]]
    assert not draws or picture.read_bytes().startswith(b"\x89PNG")
    kept = PRINTED / f"{script.stem}.txt"
    if kept.exists():
        assert kept.read_text(encoding="utf-8").splitlines() == lines


def test_the_gallery_has_every_example_under_a_title() -> None:
    scripts = {path.stem: path for path in (ROOT / "examples").glob("*.py")}
    assert set(scripts) == set(ORDER)
    assert {path.stem for path in PRINTED.glob("*.txt")} <= set(ORDER)
    for path in scripts.values():
        title, line, empty, first = path.read_text(encoding="utf-8").removeprefix('"""\n').splitlines()[:4]
        assert line == "=" * len(title)
        assert (empty, bool(first)) == ("", True)
        assert f"``python examples/{path.name}``" in path.read_text(encoding="utf-8")
