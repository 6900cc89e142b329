"""The examples that search models on a cluster run; a worker that is killed changes no answer and no charge."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documents import ROOT
from tests.patience import PATIENCE
from thresholdout.ledger import open_ledger

pytestmark = pytest.mark.slow


@pytest.fixture
def address() -> Iterator[str]:
    """A database of a server of our own."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: make test-engines")
    from tests.thresholdout.ledger import postgres_server

    reason = postgres_server.missing()
    if reason is not None:
        pytest.skip(reason)
    server = postgres_server.Server()
    yield server.new_database()
    server.stop()


@pytest.mark.parametrize(("engine", "library"), [("dask", "distributed"), ("spark", "pyspark")])
def test_a_search_on_a_cluster(engine: str, library: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed: make test-engines")
    if engine == "spark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java: make test-engines")
    address: str = request.getfixturevalue("address")
    from tests.thresholdout.ledger.postgres_server import KEY

    script = ROOT / "examples" / f"on_{engine}.py"
    command = [sys.executable, str(script), "--folder", str(tmp_path), "--ledger", address]
    # Three short lives of Java's machine are mostly its compiler's, unless it compiles little.
    settings = {"THRESHOLDOUT_KEY": KEY, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    found = subprocess.run(
        command, cwd=tmp_path, env=os.environ | settings, capture_output=True, text=True, timeout=PATIENCE
    )
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert lines == (ROOT / "examples" / "printed" / f"on_{engine}.txt").read_text(encoding="utf-8").splitlines()
    assert lines[-1].endswith("; the same answers and charges: True")
    with open_ledger(address, key=KEY) as ledger:
        (guard,) = ledger.guards()
        keys = [entry.key for entry in ledger.entries(guard)]
    assert len(keys) == len(set(keys)) == 4  # a score, the best of a list, a comparison, a final check
