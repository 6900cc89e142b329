"""Processes that own a guard: how they end, are killed and fork, and how they are reached."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.patience import PATIENCE
from thresholdout.errors import SharingError
from thresholdout.guard.sharing import shared_objects as sharing
from thresholdout.guard.sharing.shared_objects import reference_of, same


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], bytes]]:
    """Another process with a guard, and the guard's pickle."""
    code = """
        import pickle, sys, warnings, numpy as np
        from thresholdout import Claims, Thresholdout, WideAnswersWarning
        warnings.simplefilter("ignore", WideAnswersWarning)
        two = Claims(holdout_answers=2)
        guard = Thresholdout((np.eye(40), np.zeros(40)), train=(np.eye(40) + 1, np.zeros(40)), mechanism=two)
        sys.stdout.write(pickle.dumps([guard, guard.scorer(), guard.split()]).hex() + "\\n")
        sys.stdout.flush()
        sys.stdin.readline()
    """
    process = subprocess.Popen(
        [sys.executable, "-X", "dev", "-W", "error", "-c", textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stdout is not None
    yield process, bytes.fromhex(process.stdout.readline())
    process.kill()
    process.communicate()


@pytest.mark.slow
def test_an_owner_ends_when_it_wants_and_leaves_nothing(owner: tuple[Any, bytes], tmp_path: Path) -> None:
    process, text = owner
    guard, scorer, split = pickle.loads(text)
    assert type(guard).__name__ == "RemoteGuard"
    assert guard.ask(0.5, np.ones(40)).query == 1
    assert list(tmp_path.rglob("tho-*/listener"))
    _, errors = process.communicate("end\n", timeout=PATIENCE)
    assert (process.returncode, errors) == (0, "")
    assert not list(tmp_path.rglob("*"))
    message = "does not answer .*It has ended.*the same ledger.*GuardedSearchCV"
    for use in ("ask", "history", "n"):
        with pytest.raises(SharingError, match=message):
            getattr(guard, use)(0.5, np.ones(40))
    with pytest.raises(SharingError, match=message):
        _ = scorer.asked
    with pytest.raises(SharingError, match=message):
        list(split.split(np.eye(40)))
    gone = f"process {process.pid} on {os.uname().nodename}, which does not answer>"
    assert repr(guard) == f"<Thresholdout in {gone}"
    assert repr(scorer) == f"<GuardScorer in {gone}"
    assert same(guard, pickle.loads(pickle.dumps(guard)))
    assert reference_of(guard) == guard._reference
    assert not hasattr(guard, "nothing")


@pytest.mark.slow
def test_an_owner_that_is_killed_is_noticed_in_the_middle_of_a_query(owner: tuple[Any, bytes]) -> None:
    process, text = owner
    guard = pickle.loads(text)[0]
    assert guard.status.answers_left == 2
    threading.Timer(0.5, process.kill).start()
    with pytest.raises(SharingError, match="has ended"):
        guard.ask(lambda X, y: __import__("time").sleep(600) or y)


@pytest.mark.slow
def test_a_child_of_the_owner_does_not_keep_its_connections_open() -> None:
    """A forked child inherits the descriptors; if it kept them, nobody would notice that the owner is gone."""
    code = """
        import os, pickle, sys, time, numpy as np
        from thresholdout import Claims, Thresholdout
        two = Claims(holdout_answers=2)
        guard = Thresholdout((np.eye(40), np.zeros(40)), train=(np.eye(40) + 1, np.zeros(40)), mechanism=two)
        sys.stdout.write(pickle.dumps(guard).hex() + "\\n")
        sys.stdout.flush()
        sys.stdin.readline()
        child = os.fork()
        if child == 0:
            os.close(1), os.close(2)
            time.sleep(600)
            os._exit(0)
        sys.stdout.write(f"{child}\\n")
        sys.stdout.flush()
        sys.stdin.readline()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdin is not None
    with process:
        guard = pickle.loads(bytes.fromhex(process.stdout.readline()))
        assert guard.status.answers_left == 2
        process.stdin.write("fork\n")
        process.stdin.flush()
        child = int(process.stdout.readline())
        process.kill()
        process.wait(PATIENCE)
        with pytest.raises(SharingError, match="has ended"):
            guard.ask(0.5, np.ones(40))
        os.kill(child, signal.SIGKILL)  # it was still there


@pytest.mark.slow
def test_a_directory_with_a_long_name_is_no_obstacle(tmp_path: Path) -> None:
    folder = tmp_path / ("long " * 30)
    folder.mkdir()
    code = """
        import warnings, numpy as np
        from thresholdout import Claims, Thresholdout, WideAnswersWarning
        warnings.simplefilter("ignore", WideAnswersWarning)
        two = Claims(holdout_answers=2)
        guard = Thresholdout((np.eye(40), np.zeros(40)), train=(np.eye(40) + 1, np.zeros(40)), mechanism=two)
        from thresholdout.guard.sharing.shared_objects import reference_of
        print(reference_of(guard).address, reference_of(guard).call("status").answers_left)
    """
    run = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    address, remaining = run.stdout.split()
    assert (remaining, run.stderr) == ("2", "")
    assert Path(address).is_absolute()  # a socket's name: the loopback would be open to every user
    assert not address.startswith(str(folder))
    assert not Path(address).parent.exists()


def test_a_listener_survives_trouble_and_ends_with_its_office() -> None:
    class Troubled:
        """A listener that fails once, then is closed."""

        failures, address = 0, ""

        def accept(self) -> Any:
            self.failures += 1
            if self.failures == 2:
                office.close()
            raise OSError

        def close(self) -> None:
            pass

    office = sharing.ProxyServer({})
    office._listener = troubled = Troubled()
    office._accept()
    assert troubled.failures == 2


@pytest.mark.slow
def test_no_process_is_forked_while_a_connection_is_closed() -> None:
    """A child would find the connection open, and close whatever has its descriptor by then."""
    begun, ended = threading.Event(), []

    def closes() -> None:
        with sharing._closing:
            begun.set()
            time.sleep(0.3)
            ended.append("closed")

    thread = threading.Thread(target=closes)
    thread.start()
    assert begun.wait(PATIENCE)
    child = os.fork()
    if child == 0:
        os._exit(0 if ended and sharing._closing.acquire(timeout=PATIENCE) else 1)
    assert ended
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
