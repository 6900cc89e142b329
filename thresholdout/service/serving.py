"""A server that runs the application: one process, or several that share one database server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Final, cast

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.supervisors import Multiprocess

from thresholdout.errors import InputError, ThresholdoutError
from thresholdout.service.agents.server import mounted_server
from thresholdout.service.evaluation import EvaluationService
from thresholdout.service.http.app import make_app
from thresholdout.service.http.health import SHARED
from thresholdout.service.http.logs import log_to
from thresholdout.service.http.uploads import read_upload
from thresholdout.service.limits import Limits
from thresholdout.service.page.routes import routes
from thresholdout.service.receipts.witness import witness_at

__all__ = ["BoundedProtocol", "Serving", "leaderboard_app", "serve", "serving_here", "worker_app"]

# Bytes of the head of a request.
_LONGEST_HEAD: Final = 64 * 1024
# Seconds within which a connection has to send the head of its first request.
_PATIENCE: Final = 20.0


# Connections of one address; a trusted proxy may have any number.
_MOST_OF_ONE: Final = 100

# Response to an address with too many connections, before any request is read.
_TOO_MANY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)


class BoundedProtocol(HttpToolsProtocol):
    """Protocol that closes connections whose heads are too long or too slow, and refuses too many of one address.

    Connections of trusted proxies are not counted.
    """

    _open: ClassVar[Counter[str]] = Counter()
    _address: str | None = None

    _bytes_of_head = 0
    _in_head = True
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the connection's timer; close it where its address has too many."""
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if isinstance(peer, tuple) and peer else ""
        believed = self.config.forwarded_allow_ips or ""
        proxies = believed if isinstance(believed, list) else [one.strip() for one in believed.split(",")]
        if address and address not in proxies and "*" not in proxies:
            self._address = address
            self._open[address] += 1
            if self._open[address] > _MOST_OF_ONE:
                transport.write(_TOO_MANY)
                transport.close()
                return
        self._timer = self.loop.call_later(_PATIENCE, self._close_if_waiting)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the counts."""
        if self._address is not None:
            self._open[self._address] -= 1
            if not self._open[self._address]:
                del self._open[self._address]
            self._address = None
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read, and close a connection whose head is too long."""
        super().data_received(data)
        if self._in_head:
            self._bytes_of_head += len(data)
            if self._bytes_of_head > _LONGEST_HEAD:
                self.transport.close()

    def on_message_begin(self) -> None:
        """Count the bytes of a new head."""
        self._in_head, self._bytes_of_head = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Stop counting at the end of a head."""
        self._in_head = False
        super().on_headers_complete()

    def _close_if_waiting(self) -> None:
        if self._in_head and not self.transport.is_closing():
            self.transport.close()


# Environment variable with the configuration for workers; it has no secret.
_VARIABLE: Final = "THRESHOLDOUT_SERVING"

# Seconds for running requests when the server stops.
_GRACE: Final = 30

# Seconds without a sign of life after which a worker is replaced. Imports take many on a busy machine.
_SILENCE: Final = 120

# Concurrent connections of one process.
_CONNECTIONS: Final = 1000
# Seconds after which a computing thread yields to the event loop.
_SWITCH: Final = 0.001


@dataclass(frozen=True, slots=True)
class Serving:
    """Configuration of a server.

    Notes
    -----
    More than one worker needs a database server. Port 0 is any free port. `proxies` are the addresses, with commas,
    whose statements about a request's origin are trusted. `accept_rollback` is the reason to serve a database that its
    witness does not confirm.
    """

    database: str
    key_file: str | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    proxies: str = "127.0.0.1"
    receipts: bool = True
    witness: str | None = None
    accept_rollback: str | None = None
    limits: Limits = field(default_factory=Limits)

    def opened(self) -> EvaluationService:
        """Open the service."""
        return EvaluationService.open(
            self.database,
            key_file=self.key_file,
            limits=self.limits,
            receipts=self.receipts,
            witness=None if self.witness is None else witness_at(self.witness),
            accept_rollback=self.accept_rollback,
        )

    def text(self) -> str:
        """Return the configuration as text, for `read`."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> Serving:
        """Return the configuration in a text.

        Examples
        --------
        >>> Serving.read(Serving("leaderboard.db", port=80).text()) == Serving("leaderboard.db", port=80)
        True
        """
        said = json.loads(text)
        return cls(**said | {"limits": Limits(**said["limits"])})


def leaderboard_app(service: EvaluationService) -> FastAPI:
    """Make the whole application of a service: its API, its pages, and the tools for agents."""
    limits = service.limits
    read = partial(_table, limits=limits)
    agents = mounted_server(service, read)
    return make_app(service, routers=[routes()], routes=[agents.route], running=[agents.running])


def _table(content: bytes, content_type: str, *, limits: Limits) -> Any:
    return read_upload(content, content_type, limits)


def worker_app() -> FastAPI:
    """Make the application in one of several processes."""
    log_to()
    sys.setswitchinterval(_SWITCH)
    return leaderboard_app(Serving.read(os.environ[_VARIABLE]).opened())


def serve(serving: Serving, started: Callable[[str, EvaluationService], None]) -> None:
    """Serve until a signal ends it, and finish running requests first."""
    service = serving.opened()
    try:
        if serving.workers > 1 and not service.ledger.database.on_server:
            advice = "Several need the address of a PostgreSQL server."
            raise InputError("workers", serving.workers, "1 for a database in a file", advice)
        listening = _listen(serving.host, serving.port)
        with listening:
            started(_address(listening), service)
            if serving.workers == 1:
                log_to()
                sys.setswitchinterval(_SWITCH)
                uvicorn.Server(_config(serving, leaderboard_app(service))).run([listening])
            else:
                service.close()
                _serve_by_workers(serving, listening)
    finally:
        service.close()


@contextlib.contextmanager
def serving_here(
    service: EvaluationService, *, host: str = "127.0.0.1", port: int = 0, proxies: str = "127.0.0.1"
) -> Iterator[str]:
    """Serve in a thread of this process while a block runs; yield the address, and close the service in the end."""
    with _listen(host, port) as listening:
        config = _config(
            Serving(service.ledger.location, host=host, port=port, proxies=proxies), leaderboard_app(service)
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), name="serving", daemon=True)
        thread.start()
        try:
            while thread.is_alive() and not server.started:
                thread.join(0.01)
            if not server.started:
                raise ThresholdoutError(f"The service did not start at {_address(listening)}.")
            yield _address(listening)
        finally:
            server.should_exit = True
            thread.join()


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _serve_by_workers(serving: Serving, listening: socket.socket) -> None:
    log_to()
    with tempfile.TemporaryDirectory() as folder:
        accepted = replace(serving, accept_rollback=None)  # by this process, before its workers
        os.environ |= {_VARIABLE: accepted.text(), SHARED: folder}
        config = _config(
            serving,
            f"{__name__}:{worker_app.__name__}",
            factory=True,
            workers=serving.workers,
            timeout_worker_healthcheck=_SILENCE,
        )
        Multiprocess(config, sockets=[listening]).run()


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, so that an address in use is reported before anything begins."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ThresholdoutError(f"Nothing can listen at {host}: {error.strerror or error}.") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2048)
        listening.set_inheritable(True)
    except OSError as error:
        listening.close()
        raise ThresholdoutError(f"Nothing can listen at {host}, port {port}: {error.strerror or error}.") from None
    return listening


def _config(serving: Serving, app: Any, **more: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=cast(Any, BoundedProtocol),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_GRACE,
        forwarded_allow_ips=serving.proxies,
        **more,
    )
