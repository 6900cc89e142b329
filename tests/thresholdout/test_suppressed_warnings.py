"""A silent thread shows nothing, and takes nothing from the others."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from sklearn.utils.parallel import Parallel, delayed

from tests.patience import PATIENCE
from thresholdout import Claims, Thresholdout
from thresholdout.suppressed_warnings import suppress_warnings


def state() -> tuple[object, ...]:
    return (id(warnings.filters), list(warnings.filters), warnings.showwarning, vars(warnings)["_showwarnmsg"])


def test_queries_in_many_threads_leave_warnings_as_they_were() -> None:
    """Two queries that overlap, the second ending last: with `catch_warnings` the process stays silent."""
    holdout = np.arange(400.0)
    guard = Thresholdout(holdout, train=holdout + 0.5, queries=100, mechanism=Claims(holdout_answers=50))
    before = state()
    first_is_in, second_is_in, first_is_out = threading.Event(), threading.Event(), threading.Event()

    def first(X: np.ndarray) -> np.ndarray:
        if X[0] == 0.0:
            first_is_in.set()
            assert second_is_in.wait(PATIENCE)
        return X < 200

    def second(X: np.ndarray) -> np.ndarray:
        if X[0] == 0.0:
            second_is_in.set()
            assert first_is_out.wait(PATIENCE)
        return X < 100

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(guard.ask, first, key="first")
        assert first_is_in.wait(PATIENCE)
        two = pool.submit(guard.ask, second, key="second")
        one.result()
        first_is_out.set()
        two.result()
    assert state() == before


def test_many_threads_begin_and_end_at_random() -> None:
    before = state()
    start = threading.Barrier(9)
    rng = np.random.default_rng(0)
    pauses = rng.uniform(0, 3e-4, size=(8, 100))

    def silent(k: int) -> None:
        start.wait()
        for pause in pauses[k]:
            with suppress_warnings():
                warnings.warn("secret", stacklevel=1)
                threading.Event().wait(pause)
                with suppress_warnings(DeprecationWarning):
                    warnings.warn("secret", stacklevel=1)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        inside = state()
        with ThreadPoolExecutor(8) as pool:
            done = [pool.submit(silent, k) for k in range(8)]
            start.wait()
            for _ in range(2000):
                warnings.warn("public", stacklevel=1)
            for each in done:
                each.result()
        assert state() == inside
    assert [str(one.message) for one in caught] == ["public"] * 2000
    assert state() == before


def test_a_silent_thread_raises_no_error_and_notes_nothing() -> None:
    registry: dict[Any, Any] = {}
    with suppress_warnings():  # tests turn warnings into errors
        warnings.warn_explicit("secret", UserWarning, "here", 1, registry=registry)
    assert not any(isinstance(key, tuple) for key in registry)
    with pytest.raises(UserWarning):
        warnings.warn("public", stacklevel=1)


def test_only_the_named_kinds_are_silent() -> None:
    with suppress_warnings(DeprecationWarning, ImportWarning):
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        warnings.warn("module", ImportWarning, stacklevel=1)
        with pytest.raises(FutureWarning):
            warnings.warn("new", FutureWarning, stacklevel=1)
        with suppress_warnings(FutureWarning):
            warnings.warn("new", FutureWarning, stacklevel=1)
        with pytest.raises(FutureWarning):
            warnings.warn("new", FutureWarning, stacklevel=1)


def test_another_threads_catch_warnings_that_ends_meanwhile_does_not_end_the_silence() -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        is_in, may_end = threading.Event(), threading.Event()

        def other() -> None:
            with warnings.catch_warnings():
                is_in.set()
                may_end.wait(PATIENCE)

        thread = threading.Thread(target=other)
        thread.start()
        assert is_in.wait(PATIENCE)
        with suppress_warnings():
            may_end.set()
            thread.join()
            warnings.warn("secret", stacklevel=1)
        warnings.warn("public", stacklevel=1)
    assert [str(one.message) for one in shown] == ["public"]


def test_threads_that_a_silent_one_starts_are_silent() -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with suppress_warnings(), ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda k: warnings.warn(f"secret {k}", stacklevel=1), range(4)))
    assert not shown


def test_filters_that_travel_take_the_silence_of_their_thread_along() -> None:
    def travelled() -> Any:
        return pickle.loads(pickle.dumps(warnings.filters))[0][1]

    start = threading.Barrier(2)
    with ThreadPoolExecutor(1) as pool:
        there = pool.submit(lambda: (start.wait(), travelled()))
        with suppress_warnings():
            here = travelled()
            start.wait()
            assert not there.result()[1].match("any text")
    assert here.match("any text")


def warns(k: int) -> int:
    warnings.warn(f"secret {k}", stacklevel=1)
    return k


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["sequential", "threading", "loky"])
def test_pools_of_scikit_learn_are_silent_too(backend: str, capfd: pytest.CaptureFixture[str]) -> None:
    """They copy the filters, as texts, to wherever their tasks run."""
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with suppress_warnings():
            assert Parallel(n_jobs=2, backend=backend)(delayed(warns)(k) for k in range(4)) == [0, 1, 2, 3]
    assert not shown
    assert "secret" not in capfd.readouterr().err


FORKED = """
import os, threading, warnings
from thresholdout.suppressed_warnings import suppress_warnings
is_in, may_end = threading.Event(), threading.Event()
def other():
    with suppress_warnings():
        is_in.set()
        may_end.wait(600)
thread = threading.Thread(target=other)
thread.start()
is_in.wait(600)
if os.fork() == 0:
    warnings.warn("of the child")
    os._exit(0)
os.wait()
may_end.set()
thread.join()
with suppress_warnings():
    if os.fork() == 0:
        warnings.warn("secret")
        os._exit(0)
    os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_a_forked_child_is_silent_only_if_its_own_thread_was() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", FORKED], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    assert "of the child" in done.stderr
    assert "secret" not in done.stderr
