from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.thresholdout.ledger import postgres_server
from tests.thresholdout.ledger.postgres_server import Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server for all tests of a worker."""
    reason = postgres_server.missing()
    if reason is not None:
        pytest.skip(reason)
    server = Server()
    yield server
    server.stop()
