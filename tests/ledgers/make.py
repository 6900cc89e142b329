"""Make the ledgers in this folder: ``python -m tests.ledgers.make``.

From the first release on they are what users have: they are made once for each format, and never again.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.ledgers.guards import FOLDER, GUARDS, KEY, answered, opened, written
from tests.thresholdout.ledger.postgres_server import Server
from thresholdout.ledger import export_history, move, open_ledger, transfer
from thresholdout.ledger.schema import FORMAT


def make() -> None:
    """Write the files of this program's format, and what can be read in them."""
    target = FOLDER / f"format-{FORMAT}"
    if target.exists():
        raise SystemExit("they are there already, and are never made again")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected: dict[str, Any] = {}
        for kind, (guard_in, use, ask_next, key) in GUARDS.items():
            file = folder / f"{kind}.db"
            with open_ledger(folder / "from.db" if kind == "moved" else file, key=key) as ledger:
                use(guard_in(ledger))
                if kind == "moved":
                    with open_ledger(file) as new, patch.object(transfer, "_place", lambda _: "moved.db"):
                        (guard,) = ledger.guards()
                        move(ledger, new, guard)
            with opened(file, key) as ledger:
                expected[kind] = written(ledger)
            copy = folder / "copy.db"
            shutil.copy(file, copy)
            with opened(copy, key) as ledger:
                expected[kind]["next"] = answered(ask_next(guard_in(ledger)))
            copy.unlink()
        with opened(folder / "algorithm-1.db", None) as ledger:
            (guard,) = ledger.guards()
            export_history(ledger, guard, folder / "exported.jsonl")
        expected["postgresql"] = dump(folder / "postgresql.sql")
        (folder / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")
        shutil.copytree(folder, target)


def dump(file: Path) -> dict[str, Any]:
    """Write a server's ledger as SQL, and return what can be read in it."""
    guard_in, use, ask_next, _ = GUARDS["algorithm-1"]
    server = Server()
    try:
        server.run("CREATE DATABASE kept")
        with open_ledger(server.address("kept"), key=KEY) as ledger:
            use(guard_in(ledger))
            expected = written(ledger)
            file.write_text(server.dump("kept"))
            expected["next"] = answered(ask_next(guard_in(ledger)))
    finally:
        server.stop()
    return expected


if __name__ == "__main__":
    make()
