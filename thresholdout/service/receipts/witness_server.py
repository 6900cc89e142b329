"""HTTP server of a witness, which keeps checkpoints of services on other machines and never removes a line."""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from thresholdout.errors import InputError
from thresholdout.service.receipts.errors import WitnessUnusable
from thresholdout.service.receipts.witness import KEY_VARIABLE, FileWitness, ledger_of

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["serve_witness", "witness_app"]

# Bytes of one request: a service sends at most 100 lines, of a few hundred bytes each.
_MOST_BYTES: Final = 1 << 20
# Hosts that only this machine reaches, so that a witness needs no key.
_LOCAL: Final = ("127.0.0.1", "::1", "localhost")


def witness_app(witness: FileWitness, key: str | None) -> Starlette:
    """Return the application of a witness."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import PlainTextResponse, StreamingResponse
    from starlette.responses import Response as Empty
    from starlette.routing import Route

    def allowed(request: Request) -> bool:
        sent = request.headers.get("authorization", "")
        return key is None or hmac.compare_digest(sent.encode(), f"Bearer {key}".encode())

    async def keep(request: Request) -> Response:
        if not allowed(request):
            return PlainTextResponse("A key is needed.", 401)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BYTES:
                return PlainTextResponse("These are too many lines at once.", 413)
        lines = body.splitlines(keepends=True)
        if not lines or not all(ledger_of(line) for line in lines):
            return PlainTextResponse("These are no lines that a service writes.", 400)
        try:
            await run_in_threadpool(witness.append, [line.decode().rstrip("\n") for line in lines])
        except WitnessUnusable:
            return PlainTextResponse("The lines could not be kept.", 503)
        return Empty(status_code=204)

    async def tell(request: Request) -> Response:
        if not allowed(request):
            return PlainTextResponse("A key is needed.", 401)
        ledger = request.query_params.get("ledger", "")
        return StreamingResponse(_about(witness, ledger), media_type="application/x-ndjson")

    return Starlette(
        routes=[Route("/checkpoints", keep, methods=["POST"]), Route("/checkpoints", tell, methods=["GET"])]
    )


def serve_witness(witness: FileWitness, host: str, port: int) -> None:
    """Run a witness at an address until a signal ends it."""
    import uvicorn

    key = os.environ.get(KEY_VARIABLE)
    if not key and host not in _LOCAL:
        raise InputError(
            KEY_VARIABLE,
            "nothing",
            f"a key, since other machines can reach {host}",
            "`thresholdout ledger new-key` makes one.",
        )
    uvicorn.run(witness_app(witness, key or None), host=host, port=port, access_log=False, server_header=False)


def _about(witness: FileWitness, ledger: str) -> Iterator[bytes]:
    """Yield the lines about a ledger, and unreadable ones, which its client has to see."""
    return (line for line in witness.lines(ledger) if ledger_of(line) in (None, "", ledger))
