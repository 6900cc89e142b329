"""HTTP on a connection: no endless headers, no endless patience, and not all connections for one address."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, ClassVar, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["BoundedProtocol"]

_LONGEST_HEAD: Final = 64 * 1024
_PATIENCE: Final = 20.0
"""Seconds in which a connection has to send the head of its first request."""


_MOST_OF_ONE: Final = 100
"""Connections of one address; a proxy that is believed has any number of them."""

_TOO_MANY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)


class BoundedProtocol(HttpToolsProtocol):
    """Closes connections whose requests begin with more bytes, or more slowly, than any client needs.

    An address that has too many is told so; proxies that are believed are no clients.
    """

    _open: ClassVar[Counter[str]] = Counter()
    _address: str | None = None

    _bytes_of_head = 0
    _in_head = True
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Give the connection some seconds; close it where its address has too many."""
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
        """Forget the connection."""
        if self._address is not None:
            self._open[self._address] -= 1
            if not self._open[self._address]:
                del self._open[self._address]
            self._address = None
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read, and close the connection where the head has no end."""
        super().data_received(data)
        if self._in_head:
            self._bytes_of_head += len(data)
            if self._bytes_of_head > _LONGEST_HEAD:
                self.transport.close()

    def on_message_begin(self) -> None:
        """Count anew."""
        self._in_head, self._bytes_of_head = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Count no more."""
        self._in_head = False
        super().on_headers_complete()

    def _close_if_waiting(self) -> None:
        if self._in_head and not self.transport.is_closing():
            self.transport.close()
