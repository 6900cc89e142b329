"""Objects that stay in one process and are used from others.

A guard must not be copied: two copies would spend the same budget. So a pickle of a `shared` object is a `Reference`:
the address of its process, and its token there. Unpickled in the object's own process, a reference gives the same
object; in other processes of the machine, a `Proxy` that calls it. A proxy reports the object's class as its own, as
`weakref.proxy` does, so ``isinstance`` holds everywhere.

The first pickle starts one thread that listens. It keeps no process alive; after the end of the process its references
raise an error. A shared object lives as long as its process, since a reference to it may always be under way.

A forked child has a copy of everything and must not use it: it would spend the same budget again, and locks may be held
by threads that it does not have. Shared objects therefore refuse to work there, unless their ledger is a file or a
server. A proxy that `share` returned before the fork, or a pickle, uses the parent.

References are secret, since their holders may ask queries. Connections use a socket that only this user can reach
(`thresholdout.guard.sharing.private_socket`), and both sides prove that they know a random key before anything else is
read.
"""

from __future__ import annotations

import atexit
import contextlib
import inspect
import os
import pickle
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property, wraps
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar

from thresholdout.errors import InputTypeError, SharingError
from thresholdout.guard.sharing.private_socket import check_private, hung_up_after, listen, remove
from thresholdout.ledger.entry import SpareKey, fresh_key

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = [
    "SHARED",
    "Proxy",
    "Reference",
    "check_process",
    "dumps",
    "forwarding",
    "reference_of",
    "same",
    "share",
    "shared",
]


def forwarding(kind: type, name: str) -> Any:
    """Return the proxy's member for a member of a class: a method, a property or a cached attribute.

    Methods and properties are computed in the object's process at each call; attributes of instances are fetched once.
    A missing keyword ``key``, or one of ``keys`` for each item of the first argument, is chosen here. A query that has
    to be sent twice is then charged once, even if it has no key of its content.
    """
    found = inspect.getattr_static(kind, name, None)
    if inspect.isfunction(found):
        return _method(name, found)
    if isinstance(found, property):
        return property(_reader(name), doc=found.__doc__)
    return cached_property(_reader(name))


def _reader(name: str) -> Callable[[Any], Any]:
    def read(self: Any) -> Any:
        return self._reference.call(name)

    return read


def _method(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    parameters = inspect.signature(original).parameters.values()
    keywords = {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
    positional = [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]

    @wraps(original)
    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        if "key" in keywords and kwargs.get("key") is None:
            kwargs["key"] = SpareKey(fresh_key())
        if "keys" in keywords and kwargs.get("keys") is None:
            items = args[0] if args else kwargs.get(positional[1], ())
            if isinstance(items, Collection):  # the object itself refuses anything else
                kwargs["keys"] = [SpareKey(fresh_key()) for _ in items]
        return self._reference.call(name, *args, **kwargs)

    return method


T = TypeVar("T")
Kind = TypeVar("Kind", bound=type)

SHARED: Final = "_stays_in_its_process"
"""Name of an attribute that only shared classes and proxies have."""

_ATTEMPTS: Final = 3
"""Attempts to send a request if connections break. Every query has a key, so it is answered once."""

_DEADLINE: Final = 20.0
"""Seconds in which a new connection must prove that it knows the key."""

_CLIENTS: Final = 1000
"""Maximum number of connections at a time; each has a thread."""


def shared(kind: Kind) -> Kind:
    """Make the objects of a class stay in their process: a copy is the object itself, a pickle is its reference."""
    for name in ("__copy__", "__deepcopy__", "__sklearn_clone__"):
        setattr(kind, name, _itself)
    setattr(kind, SHARED, True)
    kind.__reduce__ = _referred  # type: ignore[method-assign, assignment]
    return kind


def _itself(thing: Any, memo: object = None) -> Any:
    return thing


def _referred(thing: Any) -> tuple[Any, ...]:
    return (_attach, (thing.__class__, reference_of(thing)))


@dataclass(frozen=True, slots=True)
class Reference:
    """Address of a shared object: socket, key of both sides, token, and its process in words."""

    address: str
    authkey: bytes = field(repr=False)
    token: str = field(repr=False)
    owner: str

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the object in its process, or read an attribute; return the result or raise its error.

        Arguments are sent by pickle, or by cloudpickle if that fails.
        """
        try:
            request = dumps((self.token, name, args, kwargs, _configuration()))
        except Exception as error:
            seen = f"an argument that cannot be sent to {self.owner} ({error})"
            advice = "Pass a list in place of a generator, for example."
            raise InputTypeError(name, seen, "called with arguments that pickle can write", advice) from error
        for _ in range(_ATTEMPTS):
            connection = _clients.take(self)
            try:
                connection.send_bytes(request)
                reply = connection.recv_bytes()
            except (EOFError, OSError):
                connection.close()
                continue
            except BaseException:  # interrupted: a late reply would be read as that of the next request
                connection.close()
                raise
            _clients.give_back(self, connection)
            return _opened(reply)
        raise SharingError(f"The connection to {self.owner} broke {_ATTEMPTS} times. Ask again with the same key.")


@shared
class Proxy:
    """Calls a shared object in another process.

    A subclass declares the class ``of``, the names that it ``serves`` (methods and attributes, see `forwarding`), and
    the ``local`` members that run on the proxy; names are separated by blanks.
    """

    kind: ClassVar[type]
    serves: ClassVar[frozenset[str]]
    _reference: Reference

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init_subclass__(cls, *, of: type, serves: str, local: str = "") -> None:
        super().__init_subclass__()
        cls.kind, cls.serves = of, frozenset(serves.split())
        _PROXIES[of] = cls
        for name in local.split():
            setattr(cls, name, vars(of)[name])
        for name in cls.serves - vars(cls).keys() - vars(Proxy).keys():
            if "." in name:
                continue
            member = forwarding(of, name)
            setattr(cls, name, member)
            if isinstance(member, cached_property):
                member.__set_name__(cls, name)

    def __init__(self, reference: Reference) -> None:
        self._reference = reference

    @property
    def __class__(self) -> type[Self]:
        return type(self).kind

    @__class__.setter
    def __class__(self, kind: type) -> None:
        raise AttributeError(f"a proxy of a {self.kind.__name__} stays one")

    def __repr__(self) -> str:
        try:
            text: str = self._reference.call("__repr__")
        except SharingError:
            return f"<{type(self).kind.__name__} in {self._reference.owner}, which does not answer>"
        return f"{text[:-1]}; in {self._reference.owner}>"


_PROXIES: Final[dict[type, type[Proxy]]] = {}
"""Proxy classes by class; subclasses share them."""


def _proxy(kind: type) -> type[Proxy]:
    return next(_PROXIES[base] for base in kind.__mro__ if base in _PROXIES)


def share(thing: T) -> T:
    """Return a proxy of an object of this process, for use in other processes.

    Pickling does this by itself. Call it before a process is forked that inherits the object instead of unpickling it,
    such as ``multiprocessing.Process(target=..., args=(share(guard),))`` on Linux.

    Examples
    --------
    >>> import numpy as np
    >>> from thresholdout import Claims, Thresholdout
    >>> guard = Thresholdout(np.arange(100.0), queries=10, mechanism=Claims(holdout_answers=2))
    >>> share(guard).ask(0.5, np.arange(100) % 2).query, len(guard.history)
    (1, 1)
    """
    proxy: Any = thing if isinstance(thing, Proxy) else _proxy(type(thing))(reference_of(thing))
    found: T = proxy
    return found


def reference_of(thing: object) -> Reference:
    """Return the reference of an object; an object of this process becomes reachable from others."""
    return thing._reference if isinstance(thing, Proxy) else _server.reference(thing)


def check_process(made_in: int, what: str) -> None:
    """Refuse an object with a state of its own that a fork has copied."""
    if os.getpid() != made_in:
        raise SharingError(
            f"This {what} belongs to the process that made it, and was copied by a fork. Pickle it (joblib does), or "
            f"pass thresholdout.guard.sharing.share({what}), called before the fork, to the child."
        )


def same(one: object, other: object) -> bool:
    """Whether two objects are the same, or proxies of the same object."""
    if isinstance(one, Proxy) and isinstance(other, Proxy):
        return one._reference == other._reference
    return one is other


class ProxyServer:
    """The shared objects of one process, and the thread that listens for calls.

    ``inherited`` has the objects of the process that forked this one, by id, each with its reference there.
    """

    def __init__(self, inherited: Mapping[int, tuple[object, Reference]]) -> None:
        self._lock = threading.Lock()
        self._authkey = secrets.token_bytes(32)
        self._listener: Any = None
        self._open: set[Connection] = set()
        self._closed = False
        self._things: dict[str, object] = {}
        self.references = dict(inherited)

    def reference(self, thing: object) -> Reference:
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

    def find(self, reference: Reference) -> object | None:
        """Return the object if it is one of this process."""
        return self._things.get(reference.token)

    def close(self) -> None:
        """Stop listening."""
        self._closed = True
        if self._listener is not None:
            address = self._listener.address
            self._listener.close()
            remove(address)

    def hang_up(self) -> None:
        """Close the parent's connections in a forked child."""
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._open):  # an open copy would hide the end of the parent from its clients
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except OSError:
                if self._closed:
                    return
                time.sleep(0.1)  # such as no descriptors left, which may pass
                continue
            if len(self._open) >= _CLIENTS:
                connection.close()
                continue
            self._open.add(connection)
            try:
                threading.Thread(
                    target=self._serve, args=(connection,), name="thresholdout-answers", daemon=True
                ).start()
            except RuntimeError:  # such as no threads left
                self._end(connection)

    def _serve(self, connection: Connection) -> None:
        """Answer the requests of one connection until it is closed."""
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

        Between the two steps of closing, the descriptor may belong to another file already. A child that was forked
        then would close that one.
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
                    f"The process that holds the guard cannot read the arguments ({type(error).__name__}: {error}). "
                    "Define classes and functions in a module that both processes can import."
                )
            )
        thing = self._things.get(token)
        if thing is None or name not in _proxy(type(thing)).serves:
            return _failure(SharingError(f"{name!r} is not served here. The guard's process has ended."))
        try:
            with _configured(configuration):
                found = attrgetter(name)(thing)
                return dumps((True, found(*args, **kwargs) if callable(found) else found))
        except BaseException as error:  # includes the exceptions that end a search: the caller handles them
            return _failure(error)


class _Clients:
    """Connections of this process to others; each is used by one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[tuple[str, bytes], list[Connection]] = {}

    def take(self, reference: Reference) -> Connection:
        """Return a connection that no other thread uses."""
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
                f"The guard's {reference.owner} does not answer ({type(error).__name__}). It has ended, runs on "
                f"another machine, or has {_CLIENTS} connections already. Make the guard in this process, with the "
                "same data and the same ledger (ledger='guard.db'), or ask in the guard's process, as GuardedSearchCV "
                "does."
            ) from None

    def give_back(self, reference: Reference, connection: Connection) -> None:
        """Keep a connection for the next request."""
        with self._lock:
            self._idle.setdefault((reference.address, reference.authkey), []).append(connection)

    def close(self) -> None:
        """Close the idle connections."""
        for connections in self._idle.values():
            for connection in connections:
                connection.close()


def _attach(kind: type, reference: Reference) -> object:
    """Return the object of a reference: itself in its own process, else a proxy."""
    here = _server.find(reference)
    return _proxy(kind)(reference) if here is None else here


def dumps(thing: object) -> bytes:
    """Pickle an object; cloudpickle writes the rest, such as functions without a name."""
    try:
        return pickle.dumps(thing, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception:
        import cloudpickle

        text: bytes = cloudpickle.dumps(thing)
        return text


def _failure(error: BaseException) -> bytes:
    """Pickle an exception with its cause, or a description if it cannot be pickled."""
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
            f"This process cannot read the answer ({type(error).__name__}: {error}). "
            "Define classes in a module that both processes can import."
        ) from error
    if not fine:
        raised, cause = result
        raise raised from cause
    return result


def _configuration() -> dict[str, Any] | None:
    """Return scikit-learn's settings of this thread, under which an estimator must work in the other process, too."""
    sklearn = sys.modules.get("sklearn")
    return None if sklearn is None else sklearn.get_config()


def _configured(configuration: dict[str, Any] | None) -> contextlib.AbstractContextManager[None]:
    if configuration is None:
        return contextlib.nullcontext()
    from sklearn import config_context

    context: contextlib.AbstractContextManager[None] = config_context(**configuration)
    return context


def _start_afresh() -> None:
    """Forget the parent's objects in a forked child; the parent's threads may hold its locks."""
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
