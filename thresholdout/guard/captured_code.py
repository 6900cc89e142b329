"""What code reaches outside of itself, and which code can be told by its content."""

from __future__ import annotations

import builtins
import dis
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Final

__all__ = [
    "Unrecognised",
    "check_code",
    "check_reached",
    "closed_over",
    "is_harmless",
    "is_installed",
    "used_globals",
    "version_of",
]


class Unrecognised(Exception):
    """What keeps a query from being known by its content, in words that show nothing of it."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OURS: Final = ("graphs", "thresholdout")

_OF_PYTHON: Final = _words(
    "abc array bisect builtins cmath collections copy dataclasses enum fractions functools heapq itertools "
    "logging math numbers operator re statistics string textwrap types typing unicodedata warnings"
)
"""Modules of Python of which the results depend on the arguments alone, but for `_OUTSIDE`."""

_OF_SCIENCE: Final = _words(
    "catboost imblearn lightgbm networkx numba numpy pandas scipy sklearn statsmodels torch xgboost"
).union(_OURS)
"""Packages of which the same holds."""

_OUTSIDE: Final = _words(
    "ExcelFile FileIO HDFStore __annotations__ __dict__ __doc__ __globals__ __import__ __subclasses__ argv "
    "attrgetter breakpoint check_random_state compile ctypeslib current_process default_rng default_timer empty "
    "empty_like environ eval exec fromfile fromregex genfromtxt get_config get_handle get_option get_printoptions "
    "getattr getenv geterr globals hash id import_module input io load load_svmlight_file load_svmlight_files "
    "loadmat loads loadtxt locals memmap mmread modules now open open_memmap os perf_counter permutation popen "
    "query rand randint randn random random_sample rvs sample seed set_state shuffle stat sys time today urandom "
    "urlopen uuid4 vars"
)
"""Names by which code reads what is not in it: files, clocks, random numbers, what happens to be in memory."""

_VALUES: Final = _words("cython datetime decimal uuid zoneinfo")
"""Modules of which the objects are values, though not all of their functions depend on arguments alone."""

_FITTING: Final = frozenset({"fit", "fit_predict", "fit_transform", "partial_fit"})
"""Methods of which the result is in the state of the object, which counts."""


def closed_over(cell: Any) -> list[Any]:
    """Return what is in a cell of a closure, if anything."""
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


def used_globals(function: FunctionType) -> dict[str, Any]:
    """Return the globals that a function uses, also in functions inside of it, and what was added to the builtins."""
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
    """Refuse a function that may read what its content does not say: files, clocks, random numbers.

    Parameters
    ----------
    function : function
        One that is not installed. Whatever fits is left alone: what it has read is in the state that it made.

    Raises
    ------
    Unrecognised
        When it does, or may do so.
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
    """Refuse a module, a function or a class that code uses, where its results can depend on more than arguments.

    Parameters
    ----------
    thing : object
        Anything but these three passes.
    by : str
        The function that uses it.

    Raises
    ------
    Unrecognised
        When it is such a one.
    """
    if isinstance(thing, ModuleType):
        _check_package(thing.__name__, by)
    elif isinstance(thing, (FunctionType, BuiltinFunctionType, type)) and is_installed(thing):
        if thing.__name__ in _OUTSIDE or thing.__name__.startswith("read_"):
            raise Unrecognised(f"{by} uses {thing.__name__!r}, whose results can depend on more than its arguments")
        _check_package(str(thing.__module__), by)


def is_harmless(kind: type) -> bool:
    """Whether objects of an installed class can be beside code that is not installed: what they do is up to them alone.

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
    """Whether a function or a class is the one of its name in a package that is installed, or part of Python."""
    module, path = getattr(thing, "__module__", None) or "builtins", str(getattr(thing, "__qualname__", "<>"))
    if module not in sys.modules or module == "__main__" or "<" in path or not _of_a_package(module):
        return False
    found: Any = sys.modules[module]
    for name in path.split("."):  # what borrows a name, as functools.wraps does, is another function
        found = getattr(found, name, None)
    return found is thing


@cache
def _of_a_package(module: str) -> bool:
    """Whether a module is part of Python, of this package, or of one that is installed."""
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
    """Return the version of the package that a module is in; that of Python for its own modules.

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
