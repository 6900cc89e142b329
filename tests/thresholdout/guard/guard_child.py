"""Processes with a whole guard, which the tests start, and kill.

Run as ``python -m tests.thresholdout.guard.guard_child command ledger [argument]``. An answer is printed on a line: the
query's key, the answer's number, value, half-width and source, and how many surprises are left.
"""

from __future__ import annotations

import itertools
import os
import random
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from types import FrameType
from typing import IO, Any

import numpy as np

from thresholdout import BudgetExhausted, Claims, SparseVector, Thresholdout, WideAnswersWarning

warnings.simplefilter("ignore", WideAnswersWarning)  # what answers are worth does not matter here

RECORDS = np.arange(2000.0)
BUDGET = 60
CLAIMS = Claims(holdout_answers=BUDGET)
QUERIES = 5000
UNSURPRISING = 0.75
"""The training value that agrees with the holdout; 0.1 is a surprise."""


def guard_in(ledger: str, mechanism: Claims | SparseVector = CLAIMS) -> Thresholdout:
    return Thresholdout(RECORDS, queries=QUERIES, mechanism=mechanism, ledger=ledger)


def forgetful(ledger: str) -> Thresholdout:
    """Return a guard that every surprise surprises: Algorithm 1, which learns nothing from its answers."""
    return guard_in(ledger, mechanism=SparseVector(0.1, 0.001, budget=BUDGET))


def training_value(key: str) -> float:
    """Return a surprise for one key in twenty."""
    return 0.1 if random.Random(key).random() < 0.05 else UNSURPRISING


def ask(guard: Thresholdout, key: str | None, train: float) -> str:
    answer = guard.ask(train, RECORDS < 1500, key=key)
    return f"{key} {answer.query} {answer.value!r} {answer.half_width!r} {answer.source} {answer.remaining}"


def show(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def history(guard: Thresholdout) -> dict[str, str]:
    """Check that every surprise was charged, and nothing else, and return what was answered to each key."""
    frame = guard.history
    surprises = int((frame["source"] == "holdout").sum())
    assert guard.status.answers_left == BUDGET - surprises, (guard.status.answers_left, surprises)
    assert list(frame["query"]) == list(range(1, len(frame) + 1))
    assert frame["key"].is_unique
    charged = (frame["source"] == "holdout").cumsum()
    assert list(BUDGET - charged) == list(frame["remaining"])
    columns = [frame[name] for name in ("key", "query", "value", "half_width", "source", "remaining")]
    return {key: f"{key} {q} {v!r} {h!r} {s} {r}" for key, q, v, h, s, r in zip(*map(list, columns), strict=True)}


def ask_to_the_end(ledger: str) -> None:
    """Fork four processes, each with a guard of its own, that ask for surprises until the budget is gone."""
    forgetful(ledger)  # all that a guard imports
    processes = []
    for _ in range(4):
        processes.append(os.fork())
        if processes[-1] == 0:
            _ask_to_the_end(ledger)
    for process in processes:
        _, status = os.waitpid(process, 0)
        assert status == 0, status


def _ask_to_the_end(ledger: str) -> None:
    try:
        guard = forgetful(ledger)
        for number in itertools.count():
            show(ask(guard, f"{os.getpid()}-{number}", 0.1))
    except BudgetExhausted:
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def killed_at_every_line(ledger: str, step: str) -> None:
    """Fork processes that are killed at one line of a query after the other, until one is left alive.

    Prints how many were killed, and how many of them before their query was charged.
    """
    guard = guard_in(ledger)
    lines, before, status = 0, 0, signal.SIGKILL.value
    known: dict[str, str] = {}
    while status == signal.SIGKILL:
        lines += int(step)
        key = f"line {lines}"
        process = os.fork()
        if process == 0:
            left = lines

            def count(frame: FrameType, event: str, argument: object) -> Any:
                nonlocal left
                file = frame.f_code.co_filename
                if "thresholdout/" not in file or "noise" in file:  # drawing noise takes a random number of lines
                    return None
                left -= event == "line"
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return count

            sys.settrace(count)
            ask(guard, key, UNSURPRISING if lines % 2 else 0.1)
            sys.settrace(None)
            os._exit(0)
        _, status = os.waitpid(process, 0)
        stored = history(guard)
        assert known.items() <= stored.items()
        assert stored.keys() <= known.keys() | {key}
        before += key not in stored
        known = stored
    assert status == 0, status
    assert history(guard_in(ledger)) == known
    print(lines // int(step) - 1, before)


def _ask_until_killed(guard: Thresholdout, prefix: str) -> tuple[int, IO[str]]:
    """Fork a process that asks; return its number, and where its answers can be read."""
    reader, writer = os.pipe()
    process = os.fork()
    if process:
        os.close(writer)
        return process, os.fdopen(reader)
    os.dup2(writer, 1)
    for number in itertools.count():
        key = f"{prefix}{number}"
        show(ask(guard, key, training_value(key)))
    os._exit(1)


def killed_at_random(ledger: str, kills: str) -> None:
    """Fork four processes at a time that ask until they are killed, and check the guard after all four."""
    random.seed(0)
    guard = guard_in(ledger)
    answers: dict[str, str] = {}
    for number in range(int(kills) // 4):
        forked = [_ask_until_killed(guard, f"{number}-{process}-") for process in range(4)]
        select.select([output for _, output in forked], [], [])  # until one of them is asking
        time.sleep(random.uniform(0, 0.015))
        random.shuffle(forked)
        for process, _ in forked:
            os.kill(process, signal.SIGKILL)
        for process, output in forked:
            os.waitpid(process, 0)
            with output:
                answers.update((line.split()[0], line.strip()) for line in output if line.endswith("\n"))
        stored = history(guard)
        assert answers.items() <= stored.items()
        assert len(stored) <= len(answers) + 4 * (number + 1)  # one answer of each may not have left
    assert history(guard_in(ledger)) == stored
    for key in random.sample(sorted(answers), 5):
        assert ask(guard, key, training_value(key)) == answers[key]
    assert history(guard) == stored
    print(len(answers), BUDGET - (guard.status.answers_left or 0))


COMMANDS: dict[str, Callable[..., None]] = {
    command.__name__: command for command in (ask_to_the_end, killed_at_every_line, killed_at_random)
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
