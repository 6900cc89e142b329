"""Keys of queries: digests of everything that a query is a function of, code included.

A key is right if equal keys imply equal queries. So every possible influence counts: the order of a dict, the bytes of
a number (-0.0 differs from 0.0), the version of each package that a class or a function comes from. Two equal queries
with different keys only cost a second query. Code counts with everything that it reaches; code that may read files,
clocks or random numbers has no key.
"""

from __future__ import annotations

import builtins
import copyreg
import dis
import functools
import hashlib
import pickle
import sys
import sysconfig
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from pathlib import Path, PurePath
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, Final

import numpy as np

from thresholdout.guard.sharing.shared_objects import SHARED

__all__ = [
    "Unrecognised",
    "check_code",
    "check_reached",
    "closed_over",
    "content_digest",
    "content_key",
    "is_harmless",
    "is_installed",
    "used_globals",
    "version_of",
]


class Unrecognised(Exception):
    """The reason for which a query has no key of its content; it shows nothing of the content."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OURS: Final = ("graphs", "thresholdout")

_OF_PYTHON: Final = _words(
    "abc array bisect builtins cmath collections copy dataclasses enum fractions functools heapq itertools "
    "logging math numbers operator re statistics string textwrap types typing unicodedata warnings"
)
"""Modules of Python whose results depend on the arguments alone, except for the names in `_OUTSIDE`."""

_OF_SCIENCE: Final = _words(
    "catboost imblearn lightgbm networkx numba numpy pandas scipy sklearn statsmodels torch xgboost"
).union(_OURS)
"""Packages for which the same holds."""

_OUTSIDE: Final = _words(
    "ExcelFile FileIO HDFStore __annotations__ __dict__ __doc__ __globals__ __import__ __subclasses__ argv "
    "attrgetter breakpoint check_random_state compile ctypeslib current_process default_rng default_timer empty "
    "empty_like environ eval exec fromfile fromregex genfromtxt get_config get_handle get_option get_printoptions "
    "getattr getenv geterr globals hash id import_module input io load load_svmlight_file load_svmlight_files "
    "loadmat loads loadtxt locals memmap mmread modules now open open_memmap os perf_counter permutation popen "
    "query rand randint randn random random_sample rvs sample seed set_state shuffle stat sys time today urandom "
    "urlopen uuid4 vars"
)
"""Names by which code reads external state: files, clocks, random numbers, uninitialised memory."""

_VALUES: Final = _words("cython datetime decimal uuid zoneinfo")
"""Modules whose objects are values, although some of their functions read external state."""

_FITTING: Final = frozenset({"fit", "fit_predict", "fit_transform", "partial_fit"})
"""Methods whose result is in the object's state, which is part of the key."""


def closed_over(cell: Any) -> list[Any]:
    """Return the content of a closure's cell as a list, empty if there is none."""
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


def used_globals(function: FunctionType) -> dict[str, Any]:
    """Return the globals that a function and its inner functions use, and names that were added to the builtins."""
    names = set(_arguments(function.__code__, "LOAD_GLOBAL", "LOAD_NAME"))
    added = {name: vars(builtins)[name] for name in names & vars(builtins).keys()}
    found = {name: thing for name, thing in added.items() if not (callable(thing) and is_installed(thing))}
    return found | {name: function.__globals__[name] for name in names & function.__globals__.keys()}


def _arguments(code: CodeType, *operations: str) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname in operations:
            yield str(step.argval)
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _arguments(one, *operations)


def check_code(function: FunctionType) -> None:
    """Refuse a function of the user's that may read external state: files, clocks, random numbers.

    Methods that fit are accepted: their inputs are in the state that they made.
    """
    if function.__name__ in _FITTING:
        return
    code, named = function.__code__, function.__qualname__
    for name in sorted(_names(code)):
        if name in _OUTSIDE or name.startswith("read_"):
            raise Unrecognised(f"{named} uses {name!r}, so what it returns can depend on more than its arguments")
    for name in sorted(set(_arguments(code, "IMPORT_NAME"))):
        _check_package(name, named)
    for thing in used_globals(function).values():
        check_reached(thing, named)
    for cell in function.__closure__ or ():
        for content in closed_over(cell):
            check_reached(content, named)


def check_reached(thing: Any, by: str) -> None:
    """Refuse a module, a function or a class that code uses if its results can depend on external state."""
    if isinstance(thing, ModuleType):
        _check_package(thing.__name__, by)
    elif isinstance(thing, (FunctionType, BuiltinFunctionType, type)) and is_installed(thing):
        if thing.__name__ in _OUTSIDE or thing.__name__.startswith("read_"):
            raise Unrecognised(f"{by} uses {thing.__name__!r}, whose results can depend on more than its arguments")
        _check_package(str(thing.__module__), by)


def is_harmless(kind: type) -> bool:
    """Whether objects of an installed class can be used by code that is not installed: they read no external state.

    Examples
    --------
    >>> import datetime, fractions, pathlib
    >>> is_harmless(fractions.Fraction), is_harmless(datetime.date), is_harmless(pathlib.Path)
    (True, True, False)
    """
    top = kind.__module__.partition(".")[0].removeprefix("_")
    return top in _OF_PYTHON or top in _OF_SCIENCE or top in _VALUES or hasattr(kind, "get_params")


def _names(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for one in code.co_consts:
        if isinstance(one, CodeType):
            names |= _names(one)
    return names


def _check_package(module: str, by: str) -> None:
    top = module.partition(".")[0].removeprefix("_")
    if top in _OF_PYTHON or (top in _OF_SCIENCE and _of_a_package(module)):
        return
    raise Unrecognised(f"{by} uses the module {module!r}, whose results can depend on more than arguments")


def is_installed(thing: Any) -> bool:
    """Whether a function or a class is the one of its name in an installed package or in Python."""
    module, path = getattr(thing, "__module__", None) or "builtins", str(getattr(thing, "__qualname__", "<>"))
    if module not in sys.modules or module == "__main__" or "<" in path or not _of_a_package(module):
        return False
    found: Any = sys.modules[module]
    for name in path.split("."):  # a function with a borrowed name (functools.wraps) is another object
        found = getattr(found, name, None)
    return found is thing


@cache
def _of_a_package(module: str) -> bool:
    """Whether a module belongs to Python, to this package or to an installed one."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top in _OURS:
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return module in sys.builtin_module_names or top in _OF_SCIENCE
    folders = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib")}
    folders |= {Path(path) for path in sys.path if Path(path).name in ("site-packages", "dist-packages")}
    return any(Path(file).is_relative_to(folder) for folder in folders)


@cache
def version_of(module: str) -> str:
    """Return the version of a module's package; that of Python for its own modules.

    Examples
    --------
    >>> import numpy
    >>> version_of("numpy.linalg") == numpy.__version__
    True
    """
    import importlib.metadata

    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        return ".".join(map(str, sys.version_info[:3]))
    version = getattr(sys.modules.get(top), "__version__", None)
    if isinstance(version, str):
        return version
    try:
        return importlib.metadata.version(top)
    except importlib.metadata.PackageNotFoundError:
        return ""


_DESCRIBING = (
    "__abstractmethods__ __annotate__ __annotate_func__ __annotations__ __annotations_cache__ "
    "__conditional_annotations__ __dataclass_fields__ __dataclass_params__ __dict__ __doc__ __firstlineno__ "
    "__module__ __orig_bases__ __parameters__ __slotnames__ __static_attributes__ __type_params__ __weakref__ "
    "_abc_impl"
)
_NO_CONTENT: Final = frozenset(_DESCRIBING.split())
"""Attributes that describe a class and do not change its behaviour."""
_OF_THE_PROCESS: Final = frozenset({"_deprecated_key_to_warnings", "_metadata_request", "_stop_words_id", "n_threads"})
"""Attributes of scikit-learn's objects that depend on the process or are lost in a pickle, without any prediction."""

_COUNTED: Final = ("KDTree", "BallTree")
_COUNTERS: Final = slice(7, 11)
"""Places in the state of a tree of neighbours that count its queries."""

_HOOKS: Final = ("__reduce__", "__reduce_ex__", "__getstate__", "__getnewargs__", "__getnewargs_ex__")
_ATOMS: Final = frozenset({str, int, float, bool, bytes, complex, type(None), tuple, list, dict})
_FEW: Final = 4096  # bytes; copies of so few are faster than views
_MOST_WRITTEN: Final = 20_000_000  # objects, which bounds the time of a key


def content_key(*things: Any) -> str | None:
    """Return a digest of the content of objects, or ``None`` if there is none; see `content_digest`.

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
    """Return a digest of the content of objects, equal in every process and after every pickle.

    Classes and functions of installed packages count by their names and the packages' versions. Others, such as those
    of a notebook, count by their code and the current globals and closed-over values that it uses. Content that cannot
    be determined, or may depend on external state, raises `Unrecognised`.

    Notes
    -----
    The hash is that of a stream of pickles without references, in which arrays, sets, functions and classes are
    replaced by their content. So shared references inside an object and the memory layout of arrays make no difference.
    Objects that contain themselves are refused, except for functions and classes.

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
    except Exception as error:  # pickling calls code of any class
        raise Unrecognised(f"part of it cannot be pickled ({type(error).__name__})") from None
    if walk.own_code and walk.foreign:
        raise Unrecognised(f"code that is not installed uses a {walk.foreign}, which can do anything")
    return digest


class _Walk:
    """One walk over all reachable objects, which also finds functions and classes that contain themselves."""

    def __init__(self) -> None:
        self.written = 0
        self.own_code = False
        self.foreign = ""
        self._kinds: dict[type, list[type]] = {}
        self._open: dict[int, int] = {}
        self._done: dict[int, tuple[Any, tuple[Any, ...]]] = {}
        self._lowest: float = np.inf

    def own_classes(self, kind: type) -> list[type]:
        """Return an object's classes that are not installed; note an installed one that may read external state."""
        found = self._kinds.get(kind)
        if found is None:
            if not is_harmless(kind) and is_installed(kind):
                self.foreign = kind.__qualname__
            found = self._kinds[kind] = [one for one in kind.__mro__ if not is_installed(one)]
        return found

    def digest(self, thing: Any) -> str:
        """Return the digest of one object."""
        sink = hashlib.sha256()
        writer = _Writer(self, _Sink(sink.update))
        writer.fast = True  # writes no references, so shared objects make no difference
        writer.dump(thing)
        return sink.hexdigest()

    def named(self, thing: Any, parts: Callable[[Any], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Return the token of a function or a class: its depth while it is being written, else its digest."""
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
            self._done[id(thing)] = thing, token  # independent of the place where it was found
            self._lowest = np.inf
        self._lowest = min(self._lowest, outside)
        return token


class _Sink:
    def __init__(self, write: Callable[[Any], None]) -> None:
        self.write = write


class _Writer(pickle.Pickler):
    """Pickler of the content of objects."""

    def __init__(self, walk: _Walk, sink: _Sink) -> None:
        super().__init__(sink, protocol=5)
        self._walk = walk

    def persistent_id(self, thing: Any) -> tuple[Any, ...] | None:
        """Return the token of an object whose pickle has too much or too little of its content."""
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
        if callable(thing) and is_installed(thing):  # compiled functions
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
        """Return the parts of an instance."""
        kind = type(thing)
        if isinstance(thing, PurePath) or hasattr(kind, SHARED):
            what = "a path, whose file is not in it" if isinstance(thing, PurePath) else "a guard, a scorer or a gate"
            raise Unrecognised(f"it holds {what}")
        own = self._walk.own_classes(kind)
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
    """Return a NumPy ufunc by its name; most of them do not store their module."""
    name = function.__name__
    for module in ("numpy", "scipy.special"):
        if getattr(sys.modules.get(module), name, None) is function:
            return "installed", module, name, version_of(module)
    raise Unrecognised(f"the function {name!r} of NumPy's kind is not one of NumPy or SciPy")


def _of_the_records(kind: type, found: tuple[Any, ...]) -> tuple[Any, ...]:
    """Remove the state of a scikit-learn object that depends on the process that fitted it."""
    state = found[2] if len(found) > 2 else None
    if isinstance(state, dict) and not _OF_THE_PROCESS.isdisjoint(state):
        state = {name: value for name, value in state.items() if name not in _OF_THE_PROCESS} or None
    elif isinstance(state, tuple) and kind.__name__.startswith(_COUNTED):
        state = state[: _COUNTERS.start] + state[_COUNTERS.stop :]
    else:
        return found
    return (*found[:2], state, *found[3:])


@cache
def _without_gaps(kind: np.dtype[Any]) -> np.dtype[Any]:
    """Return a type of the same fields without padding."""
    from numpy.lib.recfunctions import repack_fields

    packed: np.dtype[Any] = repack_fields(np.zeros(0, kind), align=False, recurse=True).dtype
    return packed


def _array(array: np.ndarray[Any, Any], walk: _Walk) -> tuple[Any, ...]:
    """Return an array's type, shape and values, without the padding of records."""
    kind = array.dtype
    if kind.names is not None and not kind.hasobject:
        packed = _without_gaps(kind)
        return "record", array.shape, packed.descr, hashlib.sha256(array.astype(packed).tobytes()).digest()
    if kind.names is not None:
        fields = [_array(np.asarray(array[name]), walk) for name in kind.names]
        return "record", array.shape, kind.names, walk.digest(fields)
    if kind.hasobject or kind.kind == "T":
        return "objects", array.shape, walk.digest(array.astype(object).ravel().tolist())
    whole = np.ascontiguousarray(array)
    data = whole.tobytes() if whole.nbytes <= _FEW else whole.reshape(-1).view(np.uint8).data
    return "array", kind.str, kind.name, array.shape, hashlib.sha256(data).digest()


def _function(function: FunctionType) -> tuple[Any, ...]:
    """Return a function's code and everything outside that the code uses."""
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
    """Return the content of a class."""
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
