from __future__ import annotations

from pathlib import Path

import pytest

from tests.thresholdout.ledger.contract import LedgerContract
from tests.thresholdout.ledger.postgres_server import Server
from thresholdout.ledger import Ledger, SQLLedger


class TestPostgresLedger(LedgerContract):
    @pytest.fixture(autouse=True)
    def _server(self, server: Server) -> None:
        self.server = server

    def make(self, folder: Path) -> Ledger:
        return SQLLedger(self.server.emptied_database())
