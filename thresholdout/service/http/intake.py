"""How much is held and worked on at once, whoever asks: places, bytes, and threads.

The loop of events only receives and sends. Memory is bounded by the limits of the service, and not by the number of its
clients: a body is read when there is room for all of it, and tables are made by as many threads as limits say.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, ParamSpec, TypeVar

from thresholdout.service.limits import Limits
from thresholdout.service.refusals import ServiceRefused

__all__ = ["Intake"]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_READERS: Final = 4
"""Threads for what is shown: boards, histories, keys."""

_PART_OF_ONE: Final = 4
"""One key has at most this part of all places, so that slow uploads with one key leave room for others."""


class Intake:
    """Places, bytes and threads of one process.

    Parameters
    ----------
    limits : Limits
        ``at_once`` tables in memory and threads for them, ``most_waiting`` more requests.

    Attributes
    ----------
    bytes_held : int
        Of bodies, at this moment.
    places_taken : int
        Requests with a table, at this moment.

    Examples
    --------
    >>> async def twice(number: int) -> int:
    ...     intake = Intake(Limits())
    ...     async with intake.place("k1"), intake.room(100):
    ...         found = await intake.work(lambda: 2 * number)
    ...     intake.close()
    ...     return found
    >>> asyncio.run(twice(3))
    6
    """

    def __init__(self, limits: Limits) -> None:
        self.bytes_held = 0
        self.places_taken = 0
        self._most_bytes = limits.at_once * limits.most_bytes
        self._places = limits.at_once + limits.most_waiting
        self._of_keys: Counter[str] = Counter()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._stopping = False
        self._workers = ThreadPoolExecutor(limits.at_once, thread_name_prefix="uploads")
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="reading")

    @asynccontextmanager
    async def place(self, key: str) -> AsyncIterator[None]:
        """Take a place for a request with a table.

        Raises
        ------
        ServiceRefused
            "busy" when there is none, or none for this key; "stopping" when nothing new is taken.
        """
        self._check_running()
        of_one = max(1, self._places // _PART_OF_ONE)
        if self.places_taken >= self._places or self._of_keys[key] >= of_one:
            raise ServiceRefused("busy", retry_after=1)
        self.places_taken += 1
        self._of_keys[key] += 1
        try:
            yield
        finally:
            self.places_taken -= 1
            self._of_keys[key] -= 1
            if not self._of_keys[key]:
                del self._of_keys[key]

    @asynccontextmanager
    async def room(self, size: int) -> AsyncIterator[None]:
        """Wait until there is room for so many bytes, in the order of requests.

        Raises
        ------
        ServiceRefused
            "stopping" when the service stops meanwhile.
        """
        size = min(size, self._most_bytes)
        if self._waiting or self.bytes_held + size > self._most_bytes:
            await self._turn(size)
        else:
            self.bytes_held += size
        try:
            self._check_running()
            yield
        finally:
            self.bytes_held -= size
            self._wake()

    async def _turn(self, size: int) -> None:
        """Wait for room, and take it."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():  # it came at the same moment
                self.bytes_held -= size
            else:
                self._waiting.remove((size, turn))
            self._wake()
            raise

    def _wake(self) -> None:
        """Give room to those who wait, as far as there is some."""
        while self._waiting and (
            self._waiting[0][1].cancelled() or self.bytes_held + self._waiting[0][0] <= self._most_bytes
        ):
            size, turn = self._waiting.popleft()
            if not turn.cancelled():
                self.bytes_held += size
                turn.set_result(None)

    def _check_running(self) -> None:
        if self._stopping:
            raise ServiceRefused("stopping", retry_after=5)

    async def work(self, job: Callable[Arguments, Result], *given: Arguments.args, **named: Arguments.kwargs) -> Result:
        """Do what takes a table in one of the threads for it."""
        return await self._in(self._workers, job, *given, **named)

    async def read(self, job: Callable[Arguments, Result], *given: Arguments.args, **named: Arguments.kwargs) -> Result:
        """Do what only shows something in another thread."""
        return await self._in(self._readers, job, *given, **named)

    async def _in(
        self,
        threads: ThreadPoolExecutor,
        job: Callable[Arguments, Result],
        *given: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """Run a job to its end, whether or not its client still waits."""
        self._check_running()
        return await asyncio.get_running_loop().run_in_executor(threads, partial(job, *given, **named))

    def stop(self) -> None:
        """Take nothing new; what was begun goes on."""
        self._stopping = True

    def close(self) -> None:
        """Take nothing new, and wait for what was begun."""
        self.stop()
        self._workers.shutdown()
        self._readers.shutdown()
