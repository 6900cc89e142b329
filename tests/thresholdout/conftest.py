from __future__ import annotations

import hashlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from thresholdout.noise import sources

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


@pytest.fixture
def server_key(monkeypatch: pytest.MonkeyPatch) -> str:
    """Put the key of a server's ledgers into the environment, as an administrator does it."""
    from tests.thresholdout.ledger.postgres_server import KEY
    from thresholdout.ledger.cipher import KEY_VARIABLE

    monkeypatch.setenv(KEY_VARIABLE, KEY)
    return KEY


@pytest.fixture(autouse=True)
def _key_of_servers(request: pytest.FixtureRequest) -> None:
    """Give it to all tests with a server; those that get the server by name have to ask for the key too."""
    if "server" in request.fixturenames:
        request.getfixturevalue("server_key")


@pytest.fixture(autouse=True)
def _repeatable_noise(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let guards in this process draw from a stream that the test's name starts: what passes once passes again."""
    name = hashlib.sha256(request.node.nodeid.encode()).digest()
    stream = np.random.Generator(np.random.PCG64(int.from_bytes(name[:16], "big")))
    monkeypatch.setattr(sources, "os", SimpleNamespace(urandom=stream.bytes))
