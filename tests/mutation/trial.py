"""Mutants against tests: a process collects the tests once, and forks for each mutant.

A mutant never reaches the disk. Where it changes bodies of functions only, the fork gives the functions that are
imported already the changed code: every module that imported one of them sees it. Where it changes anything that an
import runs (a constant, a default, a class), the packages are imported anew, with a finder of modules that compiles the
mutated text. Processes that a test starts run the code as it is. Time is the processor's, so that other work on the
machine kills no mutant.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import math
import os
import pickle
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, BinaryIO, Final, cast

import pytest
from hypothesis import Phase, settings

from tests import cases
from tests.mutation.mutants import PACKAGES, ROOT, Mutant, name_of
from tests.mutation.results import SURVIVED, Verdict

#: How many times longer than with the code as it is a test has to take to be noticed, beside some seconds.
SLOWER: Final = 3.0
SPARE: Final = 1.0
_STUCK: Final = 6.0  # the clock's seconds for each of the processor's: for tests that wait
_LONGEST: Final = 100  # seconds in which a changed module is imported and the tests are collected
_MEMORY: Final = 6 << 30
_OPTIONS: Final = (
    "-q",
    "--tb=no",
    "-p",
    "no:cacheprovider",
    "--assert=plain",
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
_INSIDE: Final = ("__wrapped__", "__func__", "fget", "func")  # where decorators keep the function

#: Names of functions, with their classes', and the code that they get.
Swaps = dict[tuple[str, ...], CodeType]


@dataclass
class Known:
    """The seconds of tests with the code as it is, and how often each noticed a mutant of a definition."""

    longest: float
    seconds: dict[str, float] = field(default_factory=dict)
    kills: Counter[tuple[str, str]] = field(default_factory=Counter)

    def ordered(self, items: Sequence[pytest.Item], definition: str) -> list[pytest.Item]:
        """Return the tests that are not too long, those first that are cheap and have noticed mutants."""
        short = [item for item in items if self.seconds.get(item.nodeid, 0.0) <= self.longest]
        return sorted(short, key=lambda item: self._cost(item.nodeid, definition))

    def _cost(self, test: str, definition: str) -> float:
        """Return the seconds of a test for each mutant that it is expected to notice, up to a factor."""
        return (self.seconds.get(test, 1.0) + 0.002) / (1 + self.kills[definition, test])

    def limit(self, test: str) -> float:
        """Return the seconds that a test has."""
        return SPARE + SLOWER * self.seconds[test] if test in self.seconds else _LONGEST


@dataclass(frozen=True)
class _Result:
    """What came of a mutant, or of the code as it is, and the seconds of the tests that passed."""

    mutant: Mutant | None
    verdict: Verdict
    seconds: dict[str, float]


def prepare() -> None:
    """Import the libraries that forks should find imported."""
    for name in _LIBRARIES:
        importlib.import_module(name)
    gc.freeze()  # so that forks do not look through them again and again


def run(
    mutants: Sequence[Mutant],
    tests: Sequence[str],
    *,
    slow: bool = False,
    longest: float = math.inf,
    minutes: float = 600.0,
) -> Iterator[tuple[Mutant, Verdict]]:
    """Yield the verdicts of some files of tests on mutants of one module.

    Slow tests are left out or not, and tests that take more seconds than the longest allowed.
    """
    if not mutants:
        return
    if any(name.split(".")[0] in PACKAGES for name in sys.modules):
        raise RuntimeError("a package under test is imported already: its mutants would not be seen")
    until = time.monotonic() + 60.0 * minutes
    known = Known(longest)
    swaps: dict[Mutant, Swaps | None] = {}
    for each in mutants:
        try:
            swaps[each] = swaps_of(Path(ROOT, each.module).read_text(encoding="utf-8"), each.source())
        except LookupError:
            yield each, Verdict(by="the code has changed: list the mutants again")
    quick: list[tuple[Mutant | None, Swaps]] = [(each, swap) for each, swap in swaps.items() if swap is not None]
    for result in _session([(None, {}), *quick], tests, slow, known, until):
        known.seconds.update(result.seconds)
        if result.mutant is not None:
            yield result.mutant, result.verdict
        elif result.verdict.outcome != SURVIVED:
            raise RuntimeError(f"{result.verdict.by}: {result.verdict.outcome} with the code as it is")
    for mutant in (each for each, swap in swaps.items() if swap is None):
        if time.monotonic() > until:
            return
        found = [each.verdict for each in _session([(mutant, {})], tests, slow, known, until, anew=mutant)]
        yield mutant, found[0] if found else Verdict("killed", "import")


def swaps_of(old: str, new: str) -> Swaps | None:
    """Return the functions of a module that differ in two texts, None where something else does."""
    found: Swaps = {}
    same = _find(compile(old, "", "exec", dont_inherit=True), compile(new, "", "exec", dont_inherit=True), (), found)
    return found if same else None


def _find(old: CodeType, new: CodeType, path: tuple[str, ...], found: Swaps) -> bool:
    """Add the functions that differ; whether all the rest of a module's or a class's code is the same."""
    inside, changed = _codes(old), _codes(new)
    if _own(old) != _own(new) or len(inside) != len(changed):
        return False
    for a, b in zip(inside, changed, strict=True):
        if _whole(a) == _whole(b):
            continue
        named = (*path, a.co_name)
        if a.co_name.startswith("<") or named in found:
            return False
        if a.co_flags & inspect.CO_OPTIMIZED:
            found[named] = b
        elif not _find(a, b, named, found):
            return False
    return True


def _codes(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


def _own(code: CodeType) -> tuple[object, ...]:
    """Return what a code runs, without the codes in it and without the numbers of its lines."""
    constants = [(type(each), repr(each)) for each in code.co_consts if not isinstance(each, CodeType)]
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, constants


def _whole(code: CodeType) -> tuple[object, ...]:
    return _own(code), [_whole(each) for each in _codes(code)]


def _swap(module: str, swaps: Swaps) -> None:
    """Give functions of an imported module other code."""
    for path, code in swaps.items():
        value: Any = importlib.import_module(module)
        for name in path:
            value = vars(value)[name]
        while not isinstance(value, FunctionType):
            value = next(getattr(value, name) for name in _INSIDE if hasattr(value, name))
        value.__code__ = code


def _session(
    jobs: Sequence[tuple[Mutant | None, Swaps]],
    tests: Sequence[str],
    slow: bool,
    known: Known,
    until: float,
    anew: Mutant | None = None,
) -> Iterator[_Result]:
    """Yield what comes of jobs, from a process that collects the tests, with a mutant imported anew or without."""
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory() as folder, os.fdopen(reading, "rb") as results:
        child = os.fork()
        if child == 0:
            _be_a_session([*_MARKS[slow], *tests], _Trials(jobs, known, until, writing), anew, folder)
        os.close(writing)
        with suppress(EOFError):
            while True:
                yield pickle.load(results)
        os.waitpid(child, 0)


def _be_a_session(arguments: Sequence[str], trials: _Trials, anew: Mutant | None, folder: str) -> None:
    """Collect the tests, try the mutants and leave; called in a fork."""
    try:
        os.setsid()
        os.chdir(ROOT)
        with Path(folder, "said").open("w", encoding="utf-8") as said:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        if anew is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (_LONGEST, resource.RLIM_INFINITY))
            sys.dont_write_bytecode = True
            sys.meta_path.insert(0, _Mutated(anew.module, anew.source()))
        pytest.main([*_OPTIONS, *arguments], plugins=[trials])
    finally:
        os._exit(0)


class _Trials:
    """A plugin of pytest that runs the tests that were collected once for each job, in a fork."""

    def __init__(self, jobs: Sequence[tuple[Mutant | None, Swaps]], known: Known, until: float, output: int) -> None:
        self._jobs, self._known, self._until, self._output = jobs, known, until, output
        self._said: BinaryIO | None = None  # in a fork: where it says what came of a test

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run them, and say what came of each job."""
        with os.fdopen(self._output, "wb") as output:
            for mutant, swaps in self._jobs:
                if time.monotonic() > self._until:
                    break
                result = self._try(mutant, swaps, session.items)
                pickle.dump(result, output)
                output.flush()
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Look for no smaller examples than the first that fails, and for no further cases."""
        settings.register_profile("trial", settings(), phases=(Phase.explicit, Phase.generate))
        settings.load_profile("trial")
        cases.ends_at_a_failure = True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Say what failed, and leave."""
        failure = call.excinfo.value if call.excinfo else None
        if not isinstance(failure, None | pytest.skip.Exception | pytest.xfail.Exception):
            self._say("killed", item.nodeid)
            os._exit(0)

    def _try(self, mutant: Mutant | None, swaps: Swaps, items: Sequence[pytest.Item]) -> _Result:
        """Run the tests in a fork."""
        definition = mutant.definition if mutant else ""
        ordered = self._known.ordered(items, definition)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            self._be_a_trial(mutant, swaps, ordered, os.fdopen(writing, "wb"))
        os.close(writing)
        seconds, last, failed = {}, "", ""
        with os.fdopen(reading, "rb") as said, suppress(EOFError):
            while True:
                outcome, test, used = cast("tuple[str, str, float]", pickle.load(said))
                if outcome == "killed":
                    failed = test
                elif outcome == "passed":
                    seconds[test] = used
                last = test
        status = os.waitpid(child, 0)[1]
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        if failed:
            verdict = Verdict("killed", failed)
        elif os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGALRM):
            verdict = Verdict("too long", last)
        else:
            verdict = Verdict(SURVIVED) if status == 0 else Verdict("killed", last)
        if mutant is None:
            self._known.seconds.update(seconds)
        elif verdict.outcome != SURVIVED:
            self._known.kills[definition, verdict.by] += 1
        return _Result(mutant, verdict, seconds if mutant is None else {})

    def _be_a_trial(self, mutant: Mutant | None, swaps: Swaps, items: Sequence[pytest.Item], said: BinaryIO) -> None:
        """Run the tests until one fails, and leave; called in a fork."""
        self._said = said
        code = 1
        try:
            os.setsid()
            if mutant is not None:
                _swap(name_of(mutant.module), swaps)
            for item, after in zip(items, [*items[1:], None], strict=True):
                limit = self._known.limit(item.nodeid)
                signal.setitimer(signal.ITIMER_PROF, limit)
                signal.setitimer(signal.ITIMER_REAL, _STUCK * limit)
                started = time.process_time()
                self._say("begun", item.nodeid)
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                self._say("passed", item.nodeid, time.process_time() - started)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def _say(self, outcome: str, test: str, seconds: float = 0.0) -> None:
        if self._said is not None:
            pickle.dump((outcome, test, seconds), self._said)
            self._said.flush()


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
