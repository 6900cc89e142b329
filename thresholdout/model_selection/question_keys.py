"""Keys of questions: hashes of what a question is a function of, code included."""

from __future__ import annotations

import dis
import pickle
import site
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from joblib.hashing import NumpyHasher

from thresholdout.guard.sharing.shared_objects import dumps

__all__ = ["closed_over", "content_key", "is_installed", "used_globals"]

_OURS: Final = ("graphs", "thresholdout")
_NO_CONTENT: Final = frozenset(
    {
        "__dict__",
        "__weakref__",
        "__doc__",
        "__module__",
        "__firstlineno__",
        "__dataclass_fields__",
        "__dataclass_params__",
    }
)
_OF_THE_PROCESS: Final = ("n_threads", "_stop_words_id")
"""What scikit-learn's objects remember of the process that fitted them, and not of the records."""

_MOST_WRITTEN: Final = 5_000_000
_UNUSABLE: Final = (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError)


def content_key(*things: Any) -> str | None:
    """Return a hash of the content of objects, the same in every process and after every pickle.

    Parameters
    ----------
    *things
        Estimators, metrics, numbers.

    Returns
    -------
    str or None
        ``None`` when there is something whose content can't be told. Classes and functions of installed packages count
        by their names; all others, such as those of a notebook, by their code and the globals that it uses, so that
        another definition under the same name is another key.

    Notes
    -----
    What is hashed is the round trip through a pickle: a fitted estimator that comes from a worker process differs from
    one that was fitted here in what is shared inside of it, such as the objects of data types.

    Examples
    --------
    >>> content_key("a", 1.0) == content_key("a", 1.0), content_key("a", 1.0) == content_key("a", 1)
    (True, False)
    >>> import threading
    >>> content_key(threading.Lock()) is None
    True
    """
    try:
        return str(_Hasher().hash(pickle.loads(dumps(things))))
    except _UNUSABLE:
        return None


class _Hasher(NumpyHasher):  # type: ignore[misc]
    """Joblib's hasher, which also looks into code that nobody has installed, and does not see what is shared.

    Whether two attributes are the same object or equal ones depends on the process that fitted an estimator; so objects
    are written as often as they occur, and only what holds itself is a reference.
    """

    def __init__(self) -> None:
        super().__init__(hash_name="sha256")
        self._around: dict[int, int] = {}
        self._written = 0

    def memoize(self, obj: Any) -> None:
        """Remember nothing."""

    def save(self, obj: Any) -> None:
        """Write one object."""
        self._written += 1
        if self._written > _MOST_WRITTEN:
            raise pickle.PicklingError("too much is shared inside")
        name = id(obj)
        if name in self._around:
            super().save(("around", len(self._around) - self._around[name]))
            return
        self._around[name] = len(self._around)
        try:
            super().save(_seen(obj))
        finally:
            del self._around[name]


def _seen(thing: Any) -> Any:
    """Return what counts about modules, and about functions and classes that nobody has installed."""
    if isinstance(thing, ModuleType):
        return "module", thing.__name__, str(getattr(thing, "__version__", ""))
    if isinstance(thing, FunctionType) and not is_installed(thing):
        return _function(thing)
    if isinstance(thing, type) and not is_installed(thing):
        return _class(thing)
    if type(thing).__module__.startswith("sklearn."):
        for name in _OF_THE_PROCESS:  # the object is a copy, made for this
            getattr(thing, "__dict__", {}).pop(name, None)
    return thing


def _function(function: FunctionType) -> tuple[Any, ...]:
    """Return what a function does: its code, and everything that the code finds outside of itself."""
    cells = [content for cell in function.__closure__ or () for content in closed_over(cell)]
    used = sorted(name for name in set(used_globals(function.__code__)) if name in function.__globals__)
    outside = [(name, function.__globals__[name]) for name in used]
    parts = _code(function.__code__), function.__defaults__, function.__kwdefaults__, cells, outside
    return ("function", *parts, sorted(vars(function).items()))


def closed_over(cell: Any) -> list[Any]:
    """Return what is in a cell of a closure, if anything."""
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


def _code(code: CodeType) -> tuple[Any, ...]:
    constants = [
        _code(one) if isinstance(one, CodeType) else sorted(map(repr, one)) if isinstance(one, frozenset) else one
        for one in code.co_consts
    ]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    numbers = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    return (code.co_code, getattr(code, "co_exceptiontable", b""), constants, *names, *numbers)


def used_globals(code: CodeType) -> Iterator[str]:
    """Name the globals that a piece of code uses, also in the functions inside of it."""
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(step.argval)
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from used_globals(one)


def _class(kind: type) -> tuple[Any, ...]:
    """Return what a class is made of."""
    members: list[tuple[str, Any]] = []
    for name, member in sorted(vars(kind).items()):
        if name in _NO_CONTENT or name.startswith(("_abc_", "__abstractmethods__", "__annotations__")):
            continue
        if isinstance(member, (staticmethod, classmethod)):
            member = type(member).__name__, member.__func__
        elif isinstance(member, cached_property):
            member = "cached_property", member.func
        elif isinstance(member, property):
            member = "property", member.fget, member.fset, member.fdel
        members.append((name, member))
    return ("class", kind.__qualname__, type(kind), kind.__bases__, members)


def is_installed(thing: Any) -> bool:
    """Whether a function or a class has a name in a package that is installed, or part of Python."""
    module = getattr(thing, "__module__", None) or ""
    return module in sys.modules and "<" not in thing.__qualname__ and module != "__main__" and _of_a_package(module)


@cache
def _of_a_package(module: str) -> bool:
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top in _OURS:
        return True
    file = getattr(sys.modules[module], "__file__", None)
    if file is None:
        return True  # built into the interpreter
    folders = {sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib")}
    folders |= {*site.getsitepackages(), site.getusersitepackages()}
    return any(Path(file).is_relative_to(folder) for folder in folders if folder)
