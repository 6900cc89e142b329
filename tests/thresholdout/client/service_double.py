"""A service that keeps the contract of ``/v1`` in memory, counts what it charges, and fails when it is told to."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

from thresholdout.service.refusals import REFUSALS

HOLDOUT = {
    "name": "digits",
    "metric": "accuracy",
    "greater_is_better": True,
    "feedback": "interval",
    "phase": "open",
    "made": "2026-01-02T00:00:00Z",
    "notes": ["12 labels were corrected"],
    "quota": 20,
    "remaining": None,
}


def refused(code: str, retry_after: int | None = None, **details: Any) -> httpx.Response:
    """Return a refusal as the service's."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    body = {"code": code, "text": REFUSALS[code].text, "details": details}
    return httpx.Response(REFUSALS[code].status, json=body, headers=headers)


@dataclass
class ServiceDouble:
    """Answers to requests; `events` says what happens to each, in turn, and then nothing does.

    An event is ``"before"`` or ``"after"`` (the connection is lost before or after the request was handled), a code of
    a refusal, ``"proxy"`` (status 502 of something else), ``"later"`` (202, and the answer at the next look) or
    ``"stop"`` (202, and the service stops before it has the answer).
    """

    events: Iterable[str] = ()
    charged: dict[str, int] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    requests: list[httpx.Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._events = iter(self.events)

    @property
    def transport(self) -> httpx.MockTransport:
        """What a client takes."""
        return httpx.MockTransport(self)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        event = next(self._events, "")
        if event == "before":
            raise httpx.ConnectError("refused", request=request)
        if event == "proxy":
            return httpx.Response(502, text="<html>bad gateway</html>")
        if event in REFUSALS:
            return refused(event, retry_after=7 if event in ("busy", "rate") else None)
        answer = self._handled(request, event)
        if event == "after":
            raise httpx.ReadTimeout("no answer", request=request)
        return answer

    def _handled(self, request: httpx.Request, event: str) -> httpx.Response:
        path = request.url.path
        if request.method == "POST":
            return self._submitted(request.headers["Idempotency-Key"], event)
        if path == "/v1/holdouts":
            return httpx.Response(200, json={"holdouts": [HOLDOUT]})
        if path == "/v1/holdouts/digits":
            return httpx.Response(200, json=HOLDOUT)
        if path.startswith("/v1/holdouts/digits/submissions/"):
            return self._looked_at(path.rpartition("/")[2])
        if path == "/v1/holdouts/digits/submissions":
            return httpx.Response(200, json={"submissions": [{"id": key, "state": "answered"} for key in self.charged]})
        if path == "/v1/holdouts/digits/leaderboard":
            row = {"team": "ann", "first": 1, "last": 2, "low": 0.8, "high": 0.9, "submissions": 3}
            return httpx.Response(200, json={"holdout": HOLDOUT, "rows": [row], "mine": "ann"})
        return refused("not_found")

    def _submitted(self, key: str, event: str) -> httpx.Response:
        again = self.states.get(key) == "answered"
        if event in ("later", "stop") and not again:
            self.states[key] = "running" if event == "later" else "interrupted"
            return httpx.Response(202, json={"id": key, "state": "running"}, headers={"Retry-After": "1"})
        self._charge(key)
        return httpx.Response(200, json=self._shown(key) | {"repeated": again})

    def _looked_at(self, key: str) -> httpx.Response:
        if self.states.get(key) == "running":
            self._charge(key)
        return httpx.Response(200, json=self._shown(key))

    def _charge(self, key: str) -> None:
        """Charge what has no answer yet, as the ledger does: by its key."""
        if self.states.get(key) != "answered":
            self.charged[key] = self.charged.get(key, 0) + 1
            self.states[key] = "answered"

    def _shown(self, key: str) -> dict[str, Any]:
        if self.states[key] != "answered":
            return {"id": key, "state": self.states[key]}
        return {"id": key, "state": "answered", "low": 0.86, "high": 0.91, "received": "2026-01-02T00:00:00+00:00"}


@contextmanager
def served(double: ServiceDouble) -> Iterator[str]:
    """Listen for other processes; give the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = httpx.Request(self.command, f"http://h{self.path}", headers=dict(self.headers), content=body)
            answer = double(request)
            self.send_response(answer.status_code)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.content)

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
