"""The page of errors has the message of each likely mistake, as it is raised.

``python -m tests.thresholdout.test_error_page`` writes it.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from graphs import DependencyGraph, Groups, Independent, MarkovChain, MovingWindow
from tests.documents import ROOT
from tests.thresholdout.test_typical_mistakes import ASKING, HOLDOUT, MAKING, TABLE, TRAIN, N, X, Y
from thresholdout import Claims, KFoldGuard, SparseVector, Thresholdout, plan
from thresholdout.evaluations import Scores, diff, read
from thresholdout.ledger import open_ledger
from thresholdout.privacy.accounting import GaussianAnswer, SelfComposed, best_epsilon
from thresholdout.privacy.learning import DPSGDClassifier

PAGE = ROOT / "docs" / "errors.md"
NAMED = (
    *(DependencyGraph, Groups, Independent, MarkovChain, MovingWindow),
    *(Claims, KFoldGuard, SparseVector, Thresholdout, plan, diff, read, open_ledger),
    *(GaussianAnswer, SelfComposed, best_epsilon, DPSGDClassifier),
)


def guard() -> Thresholdout:
    return Thresholdout(HOLDOUT, train=TRAIN, queries=50, mechanism=Claims(holdout_answers=5))


def scores(*items: int) -> Scores:
    return read(pd.DataFrame({"q": items, "right": [1, 0]}), "right", item="q")


NAMES: dict[str, Any] = {made.__name__: made for made in (*NAMED, guard, scores)} | {"np": np, "pd": pd, "nx": nx}
NAMES |= {"HOLDOUT": HOLDOUT, "TRAIN": TRAIN, "TABLE": TABLE, "X": X, "Y": Y, "N": N}
ELSEWHERE = """
a chain whose rows do not sum to 1: MarkovChain([[0.9, 0.2], [0.1, 0.9]], n=10)
a chain without a length: MarkovChain([[0.9, 0.1], [0.1, 0.9]], n=0)
a transition table that is not square: MarkovChain([[0.9, 0.1]], n=10)
a negative probability: MarkovChain([[1.1, -0.1], [0.1, 0.9]], n=10)
groups without records: Groups([])
groups as a number: Groups(5)
groups as a dictionary: Groups({"a": 1})
a window of no width: MovingWindow(100, -1)
no records at all: Independent(0)
half a record: Independent(10.5)
a leakage of a negative epsilon: Independent(10).leakage(-0.1)
a budget of nothing: Independent(10).budget(0.0)
a misprinted route: MarkovChain([[0.9, 0.1], [0.1, 0.9]], n=10).leakage(0.1, "mesages")
a bare graph: Thresholdout(np.arange(3.0), dependence=nx.path_graph(3))
a graph of other records: Thresholdout(np.arange(4.0), dependence=DependencyGraph(nx.path_graph(3)))
a model of other size: Thresholdout(np.arange(4.0), dependence=Groups([0, 1, 2]))
a threshold below 0: SparseVector(-0.1, 0.01, 2)
no noise for Algorithm 1: SparseVector(0.1, 0.0, 2)
a budget below 1: SparseVector(0.1, 0.01, 0)
a half-width above 1: Claims(max_half_width=2.0)
no answers from the holdout: Claims(holdout_answers=-1)
a plan without queries: plan(1000, queries=0)
a plan without records or width: plan()
a plan with a width of 2: plan(width=2.0, queries=10)
a plan for no confidence: plan(1000, confidence=1.0)
records as text: plan("1000")
frames in place of scores: diff(pd.DataFrame({"q": [1]}), scores(1, 2))
a ledger as a number: open_ledger(3)
a ledger that is a folder: open_ledger(".")
a development part of all records: Thresholdout(HOLDOUT, train=TRAIN, development=1.5)
a sampling that is misprinted: Thresholdout(HOLDOUT, train=TRAIN, sampling="idd")
one fold for K-fold: KFoldGuard((X, Y), cv=1)
K-fold without labels: KFoldGuard(X)
a group column that is missing: Thresholdout((TABLE[N:], Y[N:]), train=(TABLE[:N], Y[:N]), groups="patient")
a random state as text: Thresholdout(HOLDOUT, train=TRAIN, random_state="seed")
a file of logs that is missing: read("nowhere.eval")
scores without a column of items: read(pd.DataFrame({"right": [1, 0]}), "right")
a metric that the table lacks: read(pd.DataFrame({"q": [1, 2], "right": [1, 0]}), "wrong", item="q")
scores out of range: read(pd.DataFrame({"q": [1, 2], "right": [1, 5]}), "right", item="q")
a margin in points: diff(scores(1, 2), scores(1, 2), margin=2)
two runs of other items: diff(scores(1, 2), scores(3, 4))
a delta above 1: best_epsilon(GaussianAnswer(1.0), delta=2.0)
noise of 0: GaussianAnswer(0.0)
a negative sensitivity: GaussianAnswer(1.0, sensitivity=-1.0)
steps below 1: SelfComposed(GaussianAnswer(1.0), 0)
a learner without noise: DPSGDClassifier(noise_multiplier=-1.0, delta=1e-5, classes=[0, 1], random_state=0).fit(X, Y)
a target epsilon of 0: DPSGDClassifier(epsilon=0.0, delta=1e-5, classes=[0, 1], random_state=0).fit(X, Y)
a title that is a file: guard().report("page.html")
a report in a missing folder: guard().report().save("nowhere/report.html")
"""
"""A mistake and a call that makes it, in each line."""


def raised(call: Callable[[], object]) -> str:
    """Return the message of the error that a call raises."""
    try:
        call()
    except Exception as error:
        return str(error)
    raise AssertionError("no error")


def messages() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each table of the page: its title, and the message of each mistake."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "guard.db"
        yield "Make a guard", {name: raised(partial(make, ledger)) for name, (make, *_) in MAKING.items()}
    yield "Ask a guard", {name: raised(partial(ask, guard())) for name, (ask, *_) in ASKING.items()}
    calls = (line.split(": ", 1) for line in ELSEWHERE.strip().splitlines())
    yield "Elsewhere", {name: raised(partial(eval, call, dict(NAMES))) for name, call in calls}


def cell(text: str) -> str:
    """Return a text as a cell of a table: letters that Markdown reads are escaped."""
    return re.sub(r"([|*_<`\[\]])", r"\\\1", text)


INTRODUCTION = """# Errors

```python
>>> from thresholdout import InputError, plan
>>> try:
...     plan(1000, queries=0)
... except InputError as error:
...     print(error.argument, error.seen)
...     print(error)
queries 0
queries must be an integer of at least 1; got 0.

```

An error about an argument is an `InputError`, and also a `ValueError` or a `TypeError`. Its attributes are `argument`,
`seen`, `expected` and `advice`. No budget, noise or file is touched before the check. The tables have the messages of
likely mistakes; [the reference](reference.md) lists the other errors."""


def page() -> str:
    """Return the page as it has to be."""
    lines = INTRODUCTION.splitlines()
    for title, found in messages():
        lines += ["", f"## {title}", "", "| mistake | message |", "|---|---|"]
        lines += [f"| {name} | {cell(said)} |" for name, said in found.items()]
    return "\n".join(lines) + "\n"


def test_the_page_has_the_messages_that_are_raised() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written.splitlines() == page().splitlines()
    assert written.count("\n| ") - 3 >= 120


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
