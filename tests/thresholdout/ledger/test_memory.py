from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.patience import PATIENCE
from tests.thresholdout.ledger.contract import LedgerContract
from thresholdout.ledger import Ledger, MemoryLedger

FORKED = """
import os
from thresholdout.errors import SharingError
from thresholdout.ledger import MemoryLedger

ledger = MemoryLedger()
ledger.create("guard", {}, "state")
child = os.fork()
if child == 0:
    try:
        ledger.state("guard")
    except SharingError as error:
        os._exit(0 if "store it in a file" in str(error) else 2)
    os._exit(1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), ledger.state("guard"))
"""


class TestMemoryLedger(LedgerContract):
    def make(self, folder: Path) -> Ledger:
        return MemoryLedger()


def test_a_forked_process_cannot_spend_the_budget_again() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.split() == ["0", "state"]
