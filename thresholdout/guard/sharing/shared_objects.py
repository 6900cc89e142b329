"""Objects that stay in one process and are used from others.

A guard must not be copied: two copies would spend the same budget. So a pickle of a `shared` object is a `Reference`:
where its process listens, and which of its objects is meant. Unpickled where the object lives, a reference gives the
very same object; anywhere else on the machine, a `Proxy`, which asks it.

The classes know nothing of this: `shared` gives them copies that are themselves and a pickle, and a proxy is declared
for each of them beside it. A proxy reports the object's class as its own, as `weakref.proxy` does, so ``isinstance``
holds wherever the object is used.

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
    """Return a member that asks for the member of this name where the object lives.

    A method or property has the signature and the docstring of the one that it asks for, and is computed there each
    time. What the class does not define are attributes that an object gets when it is made; they are fetched once.

    A keyword ``key`` is chosen here if the caller chose none, and so is one of ``keys`` for each item of the first
    argument: a query that has to be sent twice is then charged once, also where it cannot be known by its content.

    Parameters
    ----------
    kind : type
        The class of the object.
    name : str
        What is asked for.

    Returns
    -------
    function, property or cached_property
        For a class whose objects have a `Reference` in ``_reference``.
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
            if isinstance(items, Collection):  # what is none is refused there
                kwargs["keys"] = [SpareKey(fresh_key()) for _ in items]
        return self._reference.call(name, *args, **kwargs)

    return method


T = TypeVar("T")
Kind = TypeVar("Kind", bound=type)

SHARED: Final = "_stays_in_its_process"
"""Name of an attribute that only shared classes and proxies have."""

_ATTEMPTS: Final = 3
"""How often a request is sent when connections break; a query carries a key, so that it is answered once."""

_DEADLINE: Final = 20.0
"""Seconds in which who connects has to prove that he knows the key."""

_CLIENTS: Final = 1000
"""The most connections at a time."""


def shared(kind: Kind) -> Kind:
    """Let a class have objects that stay in their process: copies are the object itself, a pickle is its reference."""
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


@shared
class Proxy:
    """Asks a shared object from another process.

    A subclass declares the class, the names that it asks for (methods and attributes, see `forwarding`), and those
    members of the class that run here, on the proxy. Names stand in one text, separated by blanks.

    Parameters
    ----------
    reference : Reference
        The object's.
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
"""The proxy of each class that has one; subclasses have the same."""


def _proxy(kind: type) -> type[Proxy]:
    return next(_PROXIES[base] for base in kind.__mro__ if base in _PROXIES)


def share(thing: T) -> T:
    """Return what asks an object of this process, for use in other processes.

    Pickling does this by itself. Call it before a process is forked that gets the object by being forked, not by
    pickling, such as with ``multiprocessing.Process(target=..., args=(share(guard),))`` on Linux.

    Parameters
    ----------
    thing : object
        A guard, a scorer or a gate.

    Returns
    -------
    object
        With the same methods and attributes.

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


def same(one: object, other: object) -> bool:
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
        if thing is None or name not in _proxy(type(thing)).serves:
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


def _attach(kind: type, reference: Reference) -> object:
    """Return the object of a reference: itself where it lives, its proxy elsewhere."""
    here = _server.find(reference)
    return _proxy(kind)(reference) if here is None else here


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
