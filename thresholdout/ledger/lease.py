"""Exclusive use of something, which is over at the latest when the call that took it is over.

An exception can be thrown into a thread from outside at any of its lines: a ``KeyboardInterrupt`` into the main thread,
any exception into any thread by ``PyThreadState_SetAsyncExc``. No ``finally`` is safe from that, since its own first
line can be hit; a lock that is lost in this way is held for ever, and whoever wants it waits for ever.

Therefore a lease is not a lock. Who holds it is one entry in a dictionary, made in one step together with the frame of
the call that it belongs to. While that frame is on its thread's stack the lease is held; when it no longer is, no line
of that call can run any more, and the next one takes the lease over, and is told that it was not given back.

Nothing may rest on this alone, since programs that switch stacks below Python (greenlets) hide frames: whoever takes
over a connection that was not given back closes it first, so that its former user can store nothing any more.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Final

__all__ = ["POLL", "Claim", "Forking", "Lease", "Waiting"]

POLL: Final = 0.02
"""Seconds after which those who wait look for themselves, in case that nobody is left to wake them up."""


class Claim:
    """One call's wish for exclusive use; it is never used twice.

    Parameters
    ----------
    frame : frame, optional
        Of the call; None for a whole thread, the present one.
    """

    __slots__ = ("_frame", "_gate", "clean", "over", "thread")

    def __init__(self, frame: FrameType | None) -> None:
        self.thread = threading.get_ident()
        self._frame = frame
        self._gate = threading.Lock()
        self._gate.acquire()
        self.over = False
        """Whether it has ended as it should."""
        self.clean = True
        """Whether the holder before this one had ended as it should."""

    def is_running(self) -> bool:
        """Whether the call can still do something."""
        # A stack that grows or shrinks while it is looked at could hide a frame once, hardly twice.
        return not self.over and (self._is_on_stack() or self._is_on_stack())

    def _is_on_stack(self) -> bool:
        top = sys._current_frames().get(self.thread)
        if self._frame is None:
            return top is not None
        try:
            while top is not None and top is not self._frame:
                top = top.f_back
        except AttributeError:  # what was a frame is something else by now: the call's thread runs
            return True
        return top is not None

    def again(self) -> Claim:
        """Return another claim of the same call."""
        return Claim(self._frame)

    def end(self) -> None:
        """Say that the call is over."""
        self.over = True
        self._frame = None

    def wait(self) -> bool:
        """Return when woken up, or after a while; tell which."""
        return self._gate.acquire(timeout=POLL)

    def wake(self) -> None:
        """End `wait`, now or the next one."""
        with suppress(RuntimeError):  # it was woken already
            self._gate.release()


class Waiting:
    """Claims that wait for something, in the order in which they came."""

    def __init__(self) -> None:
        self._claims: deque[Claim] = deque()

    def until(self, claim: Claim, attempt: Callable[[bool], bool]) -> None:
        """Make an attempt when it is a claim's turn, until one succeeds.

        Parameters
        ----------
        claim : Claim
            Who waits.
        attempt : callable
            Tries, does not wait, and says whether it succeeded. Told whether to look for calls that are over without
            having said so, which takes longer.
        """
        if not self._claims and attempt(False):
            return
        try:
            self._claims.append(claim)
            woken = False
            while not (self._is_first(claim, not woken) and attempt(not woken)):
                woken = claim.wait()
        finally:
            with suppress(ValueError):
                self._claims.remove(claim)

    def wake(self) -> None:
        """Let the first one try."""
        with suppress(IndexError):
            self._claims[0].wake()

    def clear(self) -> None:
        """In a process that was forked off: those who wait are not in it."""
        self._claims.clear()

    def _is_first(self, claim: Claim, thorough: bool) -> bool:
        """Whether a claim came first of all that wait, without those that wait for it: of its own thread, or gone."""
        for other in list(self._claims):
            if other is claim:
                return True
            if other.thread == claim.thread:
                continue
            if thorough and not other.is_running():
                with suppress(ValueError):
                    self._claims.remove(other)
                continue
            return False
        return True


class Lease:
    """Lets one claim in at a time, in the order in which they came.

    Examples
    --------
    >>> lease = Lease()
    >>> first, second = Claim(None), Claim(None)
    >>> lease.try_take(first), lease.try_take(second)
    (True, False)
    >>> lease.give_back(first)
    >>> lease.try_take(second), second.clean
    (True, True)
    """

    def __init__(self) -> None:
        nobody = Claim(None)
        nobody.end()
        self._tenures = {0: nobody}
        self._present = 0
        self.waiting = Waiting()

    def try_take(self, claim: Claim, thorough: bool = True) -> bool:
        """Take it for a claim if nobody has it.

        Parameters
        ----------
        claim : Claim
            Who wants it.
        thorough : bool, default True
            Whether to find out if the call of a holder that has not given it back is over.
        """
        number, holder = self._latest()
        if not holder.over and not (thorough and not holder.is_running()):
            return False
        if self._tenures.setdefault(number + 1, claim) is not claim:
            return False
        if self._present > number:  # that place was taken, and cleared away, long before
            self._tenures.pop(number + 1, None)
            return False
        claim.clean = holder.over
        self._present = number + 1
        self._tenures.pop(number - 1, None)
        return True

    def take(self, claim: Claim) -> None:
        """Take it for a claim, and wait while another one has it."""
        self.waiting.until(claim, lambda thorough: self.try_take(claim, thorough))

    def give_back(self, claim: Claim) -> None:
        """End a claim, and wake up who comes next."""
        claim.end()
        self.waiting.wake()

    def is_lost(self) -> bool:
        """Whether the call that has it is over, and did not give it back."""
        _, holder = self._latest()
        return not holder.over and not holder.is_running()

    def is_held_by(self, thread: int) -> bool:
        """Whether a call of a thread has it."""
        _, holder = self._latest()
        return holder.thread == thread and holder.is_running()

    def _latest(self) -> tuple[int, Claim]:
        """Return the last tenure's number and claim."""
        while True:
            number = self._present
            holder = self._tenures.get(number)
            if holder is not None:
                while (later := self._tenures.get(number + 1)) is not None:
                    number, holder = number + 1, later
                return number, holder


class Forking:
    """Holds leases while a process forks, so that nobody else is in the middle of something.

    Parameters
    ----------
    leases : callable
        Gives all leases there are.
    """

    def __init__(self, leases: Callable[[], list[Lease]]) -> None:
        self._leases = leases
        self._lock = threading.RLock()
        self._held: list[tuple[Lease, Claim]] = []
        self._is_on = False

    def begin(self) -> None:
        """Take all leases but those of the thread that forks, all at once: holding some of them would stop others."""
        self._lock.acquire()
        self._is_on = True
        while True:
            for lease in self._leases():
                claim = Claim(None)
                if any(lease is held for held, _ in self._held) or lease.is_held_by(claim.thread):
                    continue
                if not lease.try_take(claim):
                    break
                self._held.append((lease, claim))
            else:
                return
            self._give_back()
            claim.wait()

    def end(self, in_child: bool = False) -> None:
        """Give all leases back."""
        if in_child:
            for lease in self._leases():
                lease.waiting.clear()
        self._give_back()
        self._is_on = False
        self._lock.release()

    def is_under_way(self) -> bool:
        """Whether a thread is about to fork."""
        return self._is_on

    def _give_back(self) -> None:
        while self._held:
            self._held[-1][0].give_back(self._held[-1][1])
            self._held.pop()
