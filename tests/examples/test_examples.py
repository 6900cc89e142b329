"""Every example runs, is short, and draws its picture."""

import importlib
from pathlib import Path

import pytest


@pytest.mark.parametrize("name", ["grunfeld", "karate_club", "sunspots"])
def test_an_example_prints_little_and_draws(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "picture.png"
    importlib.import_module(f"examples.{name}").main(["--picture", str(picture)])
    lines = capsys.readouterr().out.splitlines()
    assert 8 < len(lines) < 40
    assert max(len(line) for line in lines[:-1]) <= 120
    assert any("budget" in line for line in lines)
    assert any("variance inflation" in line for line in lines)
    assert picture.read_bytes().startswith(b"\x89PNG")
