"""Keys of queries: digests of what a query is a function of, code included.

A key is right when equal keys mean equal queries. So whatever might count does: the order of a dict, the bytes of a
number (-0.0 is another one than 0.0), the version of each package that a class or a function comes from. Two equal
queries with different keys are asked twice, and no more than that.
"""

from __future__ import annotations

import copyreg
import functools
import hashlib
import pickle
import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import PurePath
from types import (
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, Final

import numpy as np

from thresholdout.guard.captured_code import (
    Unrecognised,
    check_code,
    closed_over,
    is_harmless,
    is_installed,
    used_globals,
    version_of,
)
from thresholdout.guard.sharing.shared_objects import is_shared

__all__ = ["content_digest", "content_key"]

_DESCRIBING = (
    "__abstractmethods__ __annotate__ __annotate_func__ __annotations__ __annotations_cache__ "
    "__conditional_annotations__ __dataclass_fields__ __dataclass_params__ __dict__ __doc__ __firstlineno__ "
    "__module__ __orig_bases__ __parameters__ __slotnames__ __static_attributes__ __type_params__ __weakref__ "
    "_abc_impl"
)
_NO_CONTENT: Final = frozenset(_DESCRIBING.split())
"""What a class says of itself, and not what it does."""
_OF_THE_PROCESS: Final = frozenset({"_deprecated_key_to_warnings", "_metadata_request", "_stop_words_id", "n_threads"})
"""What scikit-learn's objects remember of their process or of who fits them, or lose in a pickle: no prediction."""

_COUNTED: Final = ("KDTree", "BallTree")
_COUNTERS: Final = slice(7, 11)
"""Where the state of a tree of neighbours counts how often it was asked."""

_HOOKS: Final = ("__reduce__", "__reduce_ex__", "__getstate__", "__getnewargs__", "__getnewargs_ex__")
_ATOMS: Final = frozenset({str, int, float, bool, bytes, complex, type(None), tuple, list, dict})
_FEW: Final = 4096
_MOST_WRITTEN: Final = 20_000_000


def content_key(*things: Any) -> str | None:
    """Return a digest of the content of objects, or ``None`` where that can't be told; see `content_digest`.

    Parameters
    ----------
    *things
        Estimators, metrics, numbers.

    Examples
    --------
    >>> content_key("a", 1.0) == content_key("a", 1.0), content_key("a", 1.0) == content_key("a", 1)
    (True, False)
    >>> import threading
    >>> content_key(threading.Lock()) is None
    True
    """
    try:
        return content_digest(*things)
    except Unrecognised:
        return None


def content_digest(*things: Any) -> str:
    """Return a digest of the content of objects, the same in every process and after every pickle.

    Classes and functions of installed packages count by their names and the packages' versions; all others, such as
    those of a notebook, by their code and by the globals and closed-over values that it uses, as they are now.

    Parameters
    ----------
    *things
        Estimators, functions, metrics, numbers.

    Returns
    -------
    str
        64 hexadecimal digits.

    Raises
    ------
    Unrecognised
        When the content of something can't be told, or code that is not installed may read something outside of
        itself: a file, a clock, random numbers, a module that nobody has installed.

    Notes
    -----
    What is hashed is a stream of pickles without references, in which arrays, sets, functions and classes are replaced
    by what counts about them. So it makes no difference what is shared inside of an object, nor in which order an array
    lies in memory. Whatever holds itself, but for functions and classes, can't be told.

    Examples
    --------
    >>> import numpy as np
    >>> content_digest(np.zeros(2)) == content_digest(-np.zeros(2))
    False
    >>> threshold = 1.0
    >>> def query(X):
    ...     return X > threshold
    >>> before, threshold = content_digest(query), 2.0
    >>> content_digest(query) == before
    False
    """
    walk = _Walk()
    try:
        digest = walk.digest(things)
    except Unrecognised:
        raise
    except Exception as error:  # whatever its own pickling raises
        raise Unrecognised(f"part of it cannot be pickled ({type(error).__name__})") from None
    if walk.own_code and walk.foreign:
        raise Unrecognised(f"code that is not installed uses a {walk.foreign}, which can do anything")
    return digest


class _Walk:
    """One walk over everything that can be reached; functions and classes that hold themselves are met again in it."""

    def __init__(self) -> None:
        self.written = 0
        self.own_code = False
        self.foreign = ""
        self._open: dict[int, int] = {}
        self._done: dict[int, tuple[Any, tuple[Any, ...]]] = {}
        self._lowest: float = np.inf

    def digest(self, thing: Any) -> str:
        """Return the digest of one object."""
        sink = hashlib.sha256()
        writer = _Writer(self, _Sink(sink.update))
        writer.fast = True  # no references, so that nothing depends on what is shared
        writer.dump(thing)
        return sink.hexdigest()

    def named(self, thing: Any, parts: Callable[[Any], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Return what stands for a function or a class: by its place where it is being written, else its digest."""
        known = self._done.get(id(thing))
        if known is not None:
            return known[1]
        depth = self._open.get(id(thing))
        if depth is not None:
            self._lowest = min(self._lowest, depth)
            return "around", len(self._open) - depth
        self.own_code = True
        depth = self._open[id(thing)] = len(self._open)
        outside, self._lowest = self._lowest, np.inf
        try:
            token = "code", self.digest(parts(thing))
        finally:
            del self._open[id(thing)]
        if self._lowest >= depth:
            self._done[id(thing)] = thing, token  # the same wherever it is met
            self._lowest = np.inf
        self._lowest = min(self._lowest, outside)
        return token


class _Sink:
    def __init__(self, write: Callable[[Any], None]) -> None:
        self.write = write


class _Writer(pickle.Pickler):
    """Writes what counts about objects."""

    def __init__(self, walk: _Walk, sink: _Sink) -> None:
        super().__init__(sink, protocol=5)
        self._walk = walk

    def persistent_id(self, thing: Any) -> tuple[Any, ...] | None:
        """Return what stands for an object whose pickle says too much or too little of it."""
        walk = self._walk
        walk.written += 1
        if walk.written > _MOST_WRITTEN:
            raise Unrecognised(f"it consists of more than {_MOST_WRITTEN:,} objects")
        kind = type(thing)
        if kind in _ATOMS:
            return None
        if thing is Ellipsis or thing is NotImplemented:
            return "constant", repr(thing)
        if kind is np.ndarray or kind is np.memmap:
            return _array(thing, walk)
        if kind is set or kind is frozenset:
            return kind.__name__, sorted(map(walk.digest, thing))
        if isinstance(thing, type):
            return _installed(thing) if is_installed(thing) else walk.named(thing, _class)
        if kind is FunctionType:
            return _installed(thing) if is_installed(thing) else walk.named(thing, _function)
        if kind is np.ufunc:
            return _universal(thing)
        if callable(thing) and is_installed(thing):  # what is compiled
            return _installed(thing)
        if kind is MethodType:
            return "method", walk.digest((thing.__func__, thing.__self__))
        if kind is functools._lru_cache_wrapper:
            return "cached", walk.digest(thing.__wrapped__)
        if kind is CodeType:
            return walk.named(thing, _code)
        if kind is ModuleType or isinstance(thing, ModuleType):
            return "module", thing.__name__, version_of(thing.__name__)
        if kind is MemberDescriptorType or kind is GetSetDescriptorType:
            return "descriptor", thing.__name__
        return None

    def reducer_override(self, thing: Any) -> Any:
        """Return what an instance is made of."""
        kind = type(thing)
        if isinstance(thing, PurePath) or is_shared(thing):
            what = "a path, whose file is not in it" if isinstance(thing, PurePath) else "a guard, a scorer or a gate"
            raise Unrecognised(f"it holds {what}")
        if not is_harmless(kind) and is_installed(kind):
            self._walk.foreign = kind.__qualname__
        own = [one for one in kind.__mro__ if not is_installed(one)]
        if own and (kind in copyreg.dispatch_table or any(hook in vars(one) for one in own for hook in _HOOKS)):
            raise Unrecognised(f"{kind.__qualname__} says itself how it is pickled, which need not be all of it")
        if own and isinstance(thing, np.ndarray):
            raise Unrecognised(f"{kind.__qualname__} is a kind of array of which pickles need not tell all")
        reduce = copyreg.dispatch_table.get(kind)
        found = reduce(thing) if reduce is not None else thing.__reduce_ex__(5)
        if isinstance(found, str):
            raise Unrecognised(f"a {kind.__qualname__} is pickled by its name alone")
        if kind.__module__.startswith("sklearn.") or hasattr(kind, "get_metadata_routing"):
            return _of_the_records(kind, found)
        return found


def _installed(thing: Any) -> tuple[str, str, str, str]:
    module = str(thing.__module__)
    return "installed", module, thing.__qualname__, version_of(module)


def _universal(function: np.ufunc) -> tuple[str, str, str, str]:
    """Return a function of NumPy's kind by its name; most of them do not say where they are from."""
    name = function.__name__
    for module in ("numpy", "scipy.special"):
        if getattr(sys.modules.get(module), name, None) is function:
            return "installed", module, name, version_of(module)
    raise Unrecognised(f"the function {name!r} of NumPy's kind is not one of NumPy or SciPy")


def _of_the_records(kind: type, found: tuple[Any, ...]) -> tuple[Any, ...]:
    """Leave out what an object of scikit-learn remembers of the process that fitted it."""
    state = found[2] if len(found) > 2 else None
    if isinstance(state, dict) and not _OF_THE_PROCESS.isdisjoint(state):
        state = {name: value for name, value in state.items() if name not in _OF_THE_PROCESS} or None
    elif isinstance(state, tuple) and kind.__name__.startswith(_COUNTED):
        state = state[: _COUNTERS.start] + state[_COUNTERS.stop :]
    else:
        return found
    return (*found[:2], state, *found[3:])


def _array(array: np.ndarray[Any, Any], walk: _Walk) -> tuple[Any, ...]:
    """Return an array's type, shape and values; what is between the fields of a record is no value."""
    kind = array.dtype
    if kind.names is not None:
        fields = [_array(np.asarray(array[name]), walk) for name in kind.names]
        return "record", array.shape, kind.names, walk.digest(fields)
    if kind.hasobject or kind.kind == "T":
        return "objects", array.shape, walk.digest(array.astype(object).ravel().tolist())
    whole = np.ascontiguousarray(array)
    data = whole.tobytes() if whole.nbytes <= _FEW else whole.reshape(-1).view(np.uint8).data
    return "array", kind.str, kind.name, array.shape, hashlib.sha256(data).digest()


def _function(function: FunctionType) -> tuple[Any, ...]:
    """Return what a function does: its code, and everything that the code finds outside of itself."""
    check_code(function)
    cells = [content for cell in function.__closure__ or () for content in closed_over(cell)]
    outside = sorted(used_globals(function).items())
    parts = _code(function.__code__), function.__defaults__, function.__kwdefaults__, cells, outside
    return ("function", *parts, sorted(vars(function).items()))


def _code(code: CodeType) -> tuple[Any, ...]:
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    numbers = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    return (code.co_code, getattr(code, "co_exceptiontable", b""), code.co_consts, *names, *numbers)


def _class(kind: type) -> tuple[Any, ...]:
    """Return what a class is made of."""
    members: list[tuple[str, Any]] = []
    for name, member in sorted(vars(kind).items()):
        if name in _NO_CONTENT:
            continue
        if isinstance(member, (staticmethod, classmethod)):
            member = type(member).__name__, member.__func__
        elif isinstance(member, cached_property):
            member = "cached_property", member.func
        elif isinstance(member, property):
            member = "property", member.fget, member.fset, member.fdel
        members.append((name, member))
    return ("class", kind.__qualname__, type(kind), kind.__bases__, members)
