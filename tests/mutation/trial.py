"""One mutant against some tests, in a process forked from this one.

The mutant never reaches the disk: the fork gets a finder of modules that compiles the mutated text in place of the
file. Processes that a test starts run the code as it is. The libraries that the tests need are imported once, before
the fork; the packages under test never are. Time is the processor's, so that other work on the machine kills no mutant.
"""

from __future__ import annotations

import gc
import importlib
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from types import CodeType
from typing import Any, Final

import pytest

from tests.mutation.mutants import PACKAGES, ROOT, name_of

_STUCK: Final = 6.0  # the clock's seconds for each of the processor's: for tests that wait
_NO_TRIAL: Final = 70
_MEMORY: Final = 6 << 30
_OPTIONS: Final = (
    "-x",
    "-q",
    "--tb=no",
    "-rfE",
    "-p",
    "no:cacheprovider",
    "--assert=plain",
    "--confcutdir=tests",
    "-p",
    "_hypothesis_pytestplugin",
    "--hypothesis-seed=0",
)
_MARKS: Final = (("-m", "not slow"), ("-m", "slow or not slow"))
_LIBRARIES: Final = (
    *("numpy", "scipy.special", "scipy.stats", "scipy.optimize", "scipy.linalg", "scipy.sparse.csgraph", "pandas"),
    *("networkx", "sqlalchemy", "click", "sklearn.linear_model", "sklearn.model_selection", "mpmath"),
    "hypothesis.extra.numpy",
)
_FIRST: Final = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Result:
    """What came of some tests: ``passed``, ``failed`` or ``too long``; the first that failed; seconds."""

    outcome: str
    first: str
    seconds: float


def prepare() -> None:
    """Import the libraries that forks should find imported."""
    for name in _LIBRARIES:
        importlib.import_module(name)
    gc.freeze()  # so that forks do not look through them again and again


def run(tests: Sequence[str], module: str = "", source: str = "", limit: float = 600.0, slow: bool = False) -> Result:
    """Run tests with a mutated module, or with the code as it is, within a limit of the processor's seconds.

    Slow tests are left out, or run too.
    """
    if any(name.split(".")[0] in PACKAGES for name in sys.modules):
        raise RuntimeError("a package under test is imported already: its mutants would not be seen")
    with tempfile.TemporaryFile() as said, tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            _be_a_trial([*_MARKS[slow], *tests], module, source, limit, said.fileno(), folder)
        status, used = _wait(child, started + _STUCK * limit)
        said.seek(0)
        text = said.read().decode(errors="replace")
    if status is None or os.WIFSIGNALED(status):
        return Result("too long", "", used)
    if os.WEXITSTATUS(status) == pytest.ExitCode.OK:
        return Result("passed", "", used)
    if os.WEXITSTATUS(status) == _NO_TRIAL:
        raise RuntimeError(f"no trial: {text}")
    found = _FIRST.search(text)
    return Result("failed", found[1] if found else text.strip().rsplit("\n", 1)[-1][:100], used)


def _be_a_trial(tests: Sequence[str], module: str, source: str, limit: float, output: int, folder: str) -> None:
    """Run the tests and leave; called in the fork."""
    code = _NO_TRIAL
    try:
        os.setsid()
        os.chdir(ROOT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 1))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        sys.dont_write_bytecode = bool(module)
        if module:
            sys.meta_path.insert(0, _Mutated(module, source))
        code = int(pytest.main([*_OPTIONS, *tests]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(child: int, until: float) -> tuple[int | None, float]:
    """Return how the fork ended, None where it had to be stopped, and its seconds; end what it started."""
    status = None
    pause = 0.005
    while status is None and time.monotonic() < until:
        pid, found, usage = os.wait4(child, os.WNOHANG)
        if pid:
            status, used = found, usage.ru_utime + usage.ru_stime
        else:
            time.sleep(pause)
            pause = min(0.1, pause * 1.5)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if status is None:
        usage = os.wait4(child, 0)[2]
        used = usage.ru_utime + usage.ru_stime
    return status, used


class _Mutated(MetaPathFinder):
    """Finds one module, with a mutated text."""

    def __init__(self, module: str, source: str) -> None:
        self._path, self._source = ROOT / module, source
        self._name = name_of(module)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Find the module that is mutated."""
        if fullname != self._name:
            return None
        return spec_from_file_location(fullname, self._path, loader=_Loader(fullname, self._path, self._source))


class _Loader(SourceFileLoader):
    """Loads a text in place of the file's."""

    def __init__(self, fullname: str, path: Any, source: str) -> None:
        super().__init__(fullname, str(path))
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        """Return the mutated code."""
        return compile(self._source, self.path, "exec", dont_inherit=True)
