from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.thresholdout.ledger.postgres_server import Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server for all tests of a worker."""
    from tests.thresholdout.ledger import postgres_server

    reason = postgres_server.missing()
    if reason is not None:
        pytest.skip(reason)
    server = postgres_server.Server()
    yield server
    server.stop()
