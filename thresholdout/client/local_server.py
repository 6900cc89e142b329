"""A server of candidate programs on this machine: ``POST evaluate {candidate}`` and ``GET status``.

A client of it can run programs here. So it listens on this machine by default, and its address has a secret part, which
other users and pages in a browser do not know.
"""

from __future__ import annotations

import json
import secrets
from abc import ABC, abstractmethod
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, TypeAlias

__all__ = ["Answer", "LocalServer", "candidate_of"]

# Bytes of a request with a candidate.
_MOST_BYTES: Final = 16 * 2**20

# A status, and the JSON that is sent with it.
Answer: TypeAlias = "tuple[int, dict[str, Any]]"


def candidate_of(sent: object) -> str | None:
    """Return the candidate of a request; ``None`` where there is none."""
    candidate = sent.get("candidate") if isinstance(sent, dict) else None
    return candidate if isinstance(candidate, str) else None


class LocalServer(ABC):
    """Server that turns candidates into scores, on a port of this machine; `url` has the secret part."""

    def __init__(self, port: int = 0, *, host: str = "127.0.0.1", secret: str | None = None) -> None:
        self._path = f"/{secret or secrets.token_urlsafe(24)}"
        self._server = ThreadingHTTPServer((host, port), _handler(self, self._path))
        self._server.daemon_threads = True
        self.url = f"http://{host}:{self._server.server_address[1]}{self._path}"

    @abstractmethod
    def evaluate(self, sent: object) -> Answer:
        """Answer a request in JSON; several may come at a time."""

    @abstractmethod
    def status(self) -> Answer:
        """Return the remaining budget."""

    def serve(self) -> None:
        """Answer until `stop` is called."""
        self._server.serve_forever(poll_interval=0.1)

    def stop(self) -> None:
        """Stop answering."""
        self._server.shutdown()

    def close(self) -> None:
        """Release the port."""
        self._server.server_close()


def _handler(server: LocalServer, path: str) -> type[BaseHTTPRequestHandler]:
    """Return the handler of requests."""

    class Handler(BaseHTTPRequestHandler):
        """One request."""

        timeout = 60.0
        server_version = "thresholdout"
        sys_version = ""

        def do_POST(self) -> None:
            """Evaluate a candidate."""
            if not self._is_at("/evaluate"):
                return self._send(HTTPStatus.NOT_FOUND, {"error": "there is nothing here"})
            length = self.headers.get("Content-Length", "")
            if not (length.isascii() and length.isdigit()):
                return self._send(HTTPStatus.LENGTH_REQUIRED, {"error": "The request must have a Content-Length."})
            if len(length) > 12 or int(length) > _MOST_BYTES:
                self.close_connection = True
                reply = {"error": f"The body must have at most {_MOST_BYTES} bytes."}
                return self._send(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, reply)
            try:
                sent = json.loads(self.rfile.read(int(length)))
            except (ValueError, RecursionError):
                return self._send(HTTPStatus.BAD_REQUEST, {"error": "The body must be JSON."})
            return self._send(*server.evaluate(sent))

        def do_GET(self) -> None:
            """Return the status."""
            if not self._is_at("/status"):
                return self._send(HTTPStatus.NOT_FOUND, {"error": "there is nothing here"})
            return self._send(*server.status())

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing: addresses are secret here."""

        def _is_at(self, address: str) -> bool:
            return secrets.compare_digest(self.path.encode(), (path + address).encode())

        def _send(self, status: int, reply: dict[str, Any]) -> None:
            body = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
