"""A service that is killed in the middle of its answers is never taken for an older copy of itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import ROOT
from tests.patience import PATIENCE
from tests.thresholdout.ledger.mechanism import GUARD, assert_consistent
from thresholdout.ledger import SQLLedger
from thresholdout.service.receipts.rollback_detection import check_newest, copy_notes
from thresholdout.service.receipts.witness import FileWitness

CHILD = """
import sys
from tests.thresholdout.service.receipts.leaderboards import asked
from thresholdout.ledger import SQLLedger
from thresholdout.service.receipts.rollback_detection import check_newest
from thresholdout.service.receipts.witness import FileWitness
from thresholdout.service.receipts.witnessing import Witnessing

witness = FileWitness("elsewhere.jsonl")
ledger = SQLLedger("leaderboard.db")
check_newest(ledger, witness)
witnessing = Witnessing(witness, ledger.identity())
guards = ledger.guards()
start = ledger.count(guards[0]) if guards else 0
print("started", flush=True)
for number in range(start, start + 100000):
    asked(ledger, 1, start=number)
    witnessing.note(ledger.guards()[0], number + 1, ledger.checkpoint(ledger.guards()[0]))
    print(number, flush=True)
"""


@pytest.mark.slow
def test_kills(tmp_path: Path) -> None:
    counted = 0
    for number in range(11):  # each number of answers before the kill
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(2 + 7 * number % 11)]
        child.send_signal(signal.SIGKILL)
        _, said = child.communicate(timeout=PATIENCE)
        assert lines[0] == "started\n", said
        with SQLLedger(tmp_path / "leaderboard.db") as ledger:
            check_newest(ledger, FileWitness(tmp_path / "elsewhere.jsonl"))
            assert_consistent(ledger)
            assert ledger.count(GUARD) >= counted + len(lines) - 1
            counted = ledger.count(GUARD)
            assert copy_notes(ledger, GUARD) == ()
