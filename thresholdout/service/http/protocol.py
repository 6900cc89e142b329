"""HTTP on a connection, with an end to what comes before a body: neither endless headers nor endless patience."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["BoundedProtocol"]

_LONGEST_HEAD: Final = 64 * 1024
_PATIENCE: Final = 20.0
"""Seconds in which a connection has to send the head of its first request."""


class BoundedProtocol(HttpToolsProtocol):
    """Closes connections whose requests begin with more bytes, or more slowly, than any client needs."""

    _bytes_of_head = 0
    _in_head = True
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Give the connection some seconds."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(_PATIENCE, self._close_if_waiting)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
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
