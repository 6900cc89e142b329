"""Objects that stay in one process and are used from others.

A guard must not be copied: two copies would spend the same budget. So what travels when a shared object is pickled is
a `Reference`: where its process listens, and which of its objects is meant. Unpickled where it lives, a reference
gives the very same object; anywhere else on the machine, something that asks it.

The process of a shared object starts one thread that listens when something is pickled for the first time. The thread
keeps no process alive; when the process ends, its handles say so. A shared object lives as long as its process, since
nobody can know whether a reference to it is still on its way.

A forked child has a copy of everything, and must not use it: it would spend the same budget again, and locks may be
held by threads that it does not have. There the objects refuse, unless their ledger is a file or a server; what `share`
returned before the fork, or a pickle, asks the parent.

Handles are secrets in so far as who has one may ask queries. Connections go through a socket that only this user can
reach (`thresholdout.guard.sharing.private_socket`), and both sides prove that they know a random key before anything
else is read.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import secrets
import socket
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from thresholdout.errors import InputTypeError, SharingError
from thresholdout.guard.sharing.forwarding import forwarding
from thresholdout.guard.sharing.private_socket import check_private, hung_up_after, listen, remove

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["Proxy", "Reference", "Shared", "check_process", "dumps", "reference_of", "same", "share"]

_ATTEMPTS: Final = 3
"""How often a request is sent when connections break; a query carries a key, so that it is answered once."""

_DEADLINE: Final = 20.0
"""Seconds in which who connects has to prove that he knows the key."""

_CLIENTS: Final = 1000
"""The most connections at a time."""


class Shared(ABC):
    """An object that stays in its process; its pickle is a reference, and its copies are itself."""

    served: ClassVar[frozenset[str]]
    """Names of the methods and attributes that other processes may use."""

    @classmethod
    @abstractmethod
    def elsewhere(cls, reference: Reference) -> Shared:
        """Return what stands for the object in another process; it may make no connection yet."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __sklearn_clone__(self) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (_attach, (type(self), reference_of(self)))


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a shared object is.

    Attributes
    ----------
    address : str
        The socket where its process listens.
    authkey : bytes
        What both sides must know.
    token : str
        Which object it is.
    owner : str
        Which process it is, for messages.
    """

    address: str
    authkey: bytes = field(repr=False)
    token: str = field(repr=False)
    owner: str

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the object in its process, or read an attribute, and return what comes out.

        Parameters
        ----------
        name : str
            One of the names that the object serves.
        *args, **kwargs
            Sent by pickle, or by cloudpickle where that cannot.

        Raises
        ------
        InputTypeError
            When neither can write an argument.
        SharingError
            When the process is gone, or the two processes cannot read each other.
        BaseException
            Whatever the method raises.
        """
        try:
            request = dumps((self.token, name, args, kwargs, _configuration()))
        except Exception as error:
            seen = f"an argument that cannot be sent to the {self.owner} ({error})"
            raise InputTypeError(name, seen, "what can be pickled, such as a list in place of a generator") from error
        for _ in range(_ATTEMPTS):
            connection = _clients.take(self)
            try:
                connection.send_bytes(request)
                reply = connection.recv_bytes()
            except (EOFError, OSError):
                connection.close()
                continue
            except BaseException:  # interrupted: a reply may be on its way, so nobody else can use this connection
                connection.close()
                raise
            _clients.give_back(self, connection)
            return _opened(reply)
        raise SharingError(f"the connection to the {self.owner} broke {_ATTEMPTS} times; nothing is known to be lost")


class Proxy(Shared):
    """What stands for a shared object in another process.

    A subclass names the object's class as its second base, and has all that this class serves: what it does not define
    itself is forwarded, see `thresholdout.guard.sharing.forwarding`.

    Parameters
    ----------
    reference : Reference
        The object's.
    """

    _reference: Reference

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        kind = cls._kind()
        for name in kind.served - vars(cls).keys() - vars(Proxy).keys():
            if "." in name:
                continue
            member = forwarding(kind, name)
            setattr(cls, name, member)
            if isinstance(member, cached_property):
                member.__set_name__(cls, name)

    def __init__(self, reference: Reference) -> None:
        self._reference = reference

    @classmethod
    def _kind(cls) -> type[Shared]:
        """Return the class of the object."""
        return next(base for base in cls.__mro__ if issubclass(base, Shared) and not issubclass(base, Proxy))

    @classmethod
    def elsewhere(cls, reference: Reference) -> Shared:
        """Return another one of these."""
        return cls(reference)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_attach, (type(self), self._reference))

    def __repr__(self) -> str:
        try:
            text: str = self._reference.call("__repr__")
        except SharingError:
            return f"<{self._kind().__name__} in {self._reference.owner}, which does not answer>"
        return f"{text[:-1]}; in {self._reference.owner}>"


def share(thing: Shared) -> Shared:
    """Return what asks an object of this process, for use in other processes.

    Pickling does this by itself. Call it before a process is forked that gets the object by being forked, not by
    pickling, such as with ``multiprocessing.Process(target=..., args=(share(guard),))`` on Linux.

    Parameters
    ----------
    thing : Shared
        A guard, a scorer or a gate.

    Returns
    -------
    Shared
        With the same methods and attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from thresholdout import Claims, Thresholdout
    >>> guard = Thresholdout(np.arange(100.0), queries=10, mechanism=Claims(holdout_answers=2))
    >>> share(guard).ask(0.5, np.arange(100) % 2).query, len(guard.history)
    (1, 1)
    """
    return thing if isinstance(thing, Proxy) else thing.elsewhere(reference_of(thing))


def reference_of(thing: Shared) -> Reference:
    """Return the reference of an object, and make it reachable from other processes if it lives here."""
    return thing._reference if isinstance(thing, Proxy) else _server.reference(thing)


def check_process(made_in: int, what: str) -> None:
    """Refuse an object with a state of its own that was copied by a fork.

    Parameters
    ----------
    made_in : int
        The process that made it.
    what : str
        What it is.

    Raises
    ------
    SharingError
        When this is another process.
    """
    if os.getpid() != made_in:
        raise SharingError(
            f"this {what} belongs to the process that made it, and was copied by a fork; pickle it (joblib does), or "
            f"give the child what thresholdout.guard.sharing.share({what}) returned before the fork"
        )


def same(one: Shared, other: Shared) -> bool:
    """Whether two objects are the same, or stand for the same object of another process."""
    if isinstance(one, Proxy) and isinstance(other, Proxy):
        return one._reference == other._reference
    return one is other


class ProxyServer:
    """What one process shares: its objects, and the thread that listens for it.

    Parameters
    ----------
    inherited : mapping
        Objects of the process from which this one was forked, by number, each with its reference there.
    """

    def __init__(self, inherited: Mapping[int, tuple[Shared, Reference]]) -> None:
        self._lock = threading.Lock()
        self._authkey = secrets.token_bytes(32)
        self._listener: Any = None
        self._open: set[Connection] = set()
        self._closed = False
        self._things: dict[str, Shared] = {}
        self.references = dict(inherited)

    def reference(self, thing: Shared) -> Reference:
        """Return the reference of an object; see `share`."""
        with self._lock:
            known = self.references.get(id(thing))
            if known is not None:
                return known[1]
            if self._listener is None:
                self._listener = listen(backlog=128)
                threading.Thread(target=self._accept, name="thresholdout-sharing", daemon=True).start()
            owner = f"process {os.getpid()} on {socket.gethostname()}"
            reference = Reference(self._listener.address, self._authkey, secrets.token_hex(16), owner)
            self._things[reference.token] = thing
            self.references[id(thing)] = thing, reference
            return reference

    def find(self, reference: Reference) -> Shared | None:
        """Return the object when it lives here."""
        return self._things.get(reference.token)

    def close(self) -> None:
        """Listen no more."""
        self._closed = True
        if self._listener is not None:
            address = self._listener.address
            self._listener.close()
            remove(address)

    def hang_up(self) -> None:
        """Give up, in a forked child, the connections of its parent."""
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._open):  # otherwise nobody would notice the end of the parent
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except OSError:
                if self._closed:
                    return
                time.sleep(0.1)  # no descriptors left, say; there may be some later
                continue
            if len(self._open) >= _CLIENTS:
                connection.close()
                continue
            self._open.add(connection)
            try:
                threading.Thread(
                    target=self._serve, args=(connection,), name="thresholdout-answers", daemon=True
                ).start()
            except RuntimeError:  # no threads left, say
                self._end(connection)

    def _serve(self, connection: Connection) -> None:
        """Answer one connection, request by request, until it is closed."""
        from multiprocessing import AuthenticationError
        from multiprocessing.connection import answer_challenge, deliver_challenge

        try:
            with contextlib.suppress(EOFError, OSError, AuthenticationError):
                with hung_up_after(connection, _DEADLINE):
                    deliver_challenge(connection, self._authkey)
                    answer_challenge(connection, self._authkey)
                while True:
                    connection.send_bytes(self._reply(connection.recv_bytes()))
        finally:
            self._end(connection)

    def _end(self, connection: Connection) -> None:
        """Close a connection while no process is forked.

        In the middle of it the descriptor is closed and may be somebody else's already, and the connection does not
        know yet: a child that was forked then would close what is not its own.
        """
        with _closing:
            self._open.discard(connection)
            connection.close()

    def _reply(self, request: bytes) -> bytes:
        try:
            token, name, args, kwargs, configuration = pickle.loads(request)
        except Exception as error:
            return _failure(
                SharingError(
                    f"what was sent cannot be read in the process that holds the guard ({type(error).__name__}: "
                    f"{error}); define classes and functions in a module that both processes can import"
                )
            )
        thing = self._things.get(token)
        if thing is None or name not in thing.served:
            return _failure(SharingError(f"{name!r} is not served here: the guard belongs to a process that is gone"))
        try:
            with _configured(configuration):
                found = attrgetter(name)(thing)
                return dumps((True, found(*args, **kwargs) if callable(found) else found))
        except BaseException as error:  # also those that end a search: they belong to whoever asked
            return _failure(error)


class _Clients:
    """The connections of this process to others; each is used by one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[tuple[str, bytes], list[Connection]] = {}

    def take(self, reference: Reference) -> Connection:
        """Return a connection that nobody else uses."""
        with self._lock:
            idle = self._idle.get((reference.address, reference.authkey))
            if idle:
                return idle.pop()
        from multiprocessing import AuthenticationError
        from multiprocessing.connection import Client

        try:
            check_private(reference.address)
            return Client(reference.address, "AF_UNIX", authkey=reference.authkey)
        except (OSError, EOFError, AuthenticationError) as error:
            raise SharingError(
                f"the {reference.owner}, which holds it, does not answer ({type(error).__name__}): it has ended, "
                f"runs on another machine, or has {_CLIENTS} connections already. Make the guard in this process, with "
                "the same data and the same ledger (ledger='guard.db'), or let the process that holds it ask: "
                "GuardedSearchCV does so"
            ) from None

    def give_back(self, reference: Reference, connection: Connection) -> None:
        """Keep a connection for the next request."""
        with self._lock:
            self._idle.setdefault((reference.address, reference.authkey), []).append(connection)

    def close(self) -> None:
        """Close the connections that nobody uses."""
        for connections in self._idle.values():
            for connection in connections:
                connection.close()


def _attach(kind: type[Shared], reference: Reference) -> Shared:
    """Return the object of a reference: itself where it lives, what asks it elsewhere."""
    here = _server.find(reference)
    return kind.elsewhere(reference) if here is None else here


def dumps(thing: object) -> bytes:
    """Pickle; what plain pickle cannot, such as functions without a name, cloudpickle can."""
    try:
        return pickle.dumps(thing, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception:
        import cloudpickle

        text: bytes = cloudpickle.dumps(thing)
        return text


def _failure(error: BaseException) -> bytes:
    """Pickle an exception with its cause, or what can be said about one that does not survive it."""
    for cause in (error.__cause__, None):
        try:
            reply = dumps((False, (error, cause)))
            pickle.loads(reply)
        except Exception:
            continue
        return reply
    said = SharingError(f"{type(error).__name__} in the process that holds the guard: {error}")
    return dumps((False, (said, None)))


def _opened(reply: bytes) -> Any:
    """Return the result in a reply, or raise the exception in it."""
    try:
        fine, result = pickle.loads(reply)
    except Exception as error:
        raise SharingError(
            f"the answer cannot be read in this process ({type(error).__name__}: {error}); "
            "define classes in a module that both processes can import"
        ) from error
    if not fine:
        raised, cause = result
        raise raised from cause
    return result


def _configuration() -> dict[str, Any] | None:
    """Return scikit-learn's settings of this thread: an estimator that is sent away has to work as it does here."""
    sklearn = sys.modules.get("sklearn")
    return None if sklearn is None else sklearn.get_config()


def _configured(configuration: dict[str, Any] | None) -> contextlib.AbstractContextManager[None]:
    if configuration is None:
        return contextlib.nullcontext()
    from sklearn import config_context

    context: contextlib.AbstractContextManager[None] = config_context(**configuration)
    return context


def _start_afresh() -> None:
    """Forget, in a forked child, what belongs to its parent; locks of the parent may be held by threads of its own."""
    global _server, _clients
    _closing.release()
    parent, connections = _server, _clients
    _server, _clients = ProxyServer(parent.references), _Clients()
    connections.close()
    parent.hang_up()


def _close() -> None:
    _clients.close()
    _server.close()


_server = ProxyServer({})
_clients = _Clients()

_closing = threading.Lock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_closing.acquire, after_in_parent=_closing.release, after_in_child=_start_afresh)
atexit.register(_close)
