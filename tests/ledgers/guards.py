"""The guards that are kept in this folder: how each is opened, and what it is asked next.

Their mechanisms and parameters are given one by one, so that no change of a default touches them. All answers are the
same whatever the noise: gaps are 0 or at least 30 noise scales from the threshold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier

from thresholdout import Answer, KFoldGuard, Thresholdout
from thresholdout.ledger import Ledger, open_ledger
from thresholdout.ledger.entry import Entry
from thresholdout.mechanisms import LadderParameters, SparseVectorParameters
from thresholdout.privacy.accounting import BlackBox
from thresholdout.service.prediction_guard import PredictionGuard

FOLDER: Final = Path(__file__).parent
KEY: Final = "q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4k="
"""Of the encrypted ledger. It protects nothing but made-up numbers."""

N: Final = 20_000
ALGORITHM_1: Final = SparseVectorParameters(threshold=0.1, noise_scale=0.003, budget=4, queries=50)
LADDER: Final = LadderParameters(queries=50)
DECLARED: Final[dict[str, Any]] = {"queries": 1000}
"""Beside parameters, which have a limit of their own."""


def part(share: float) -> Any:
    """Values of which a share is 1."""
    return np.arange(N) < round(share * N)


def records() -> tuple[Any, Any]:
    return np.arange(N), np.arange(N) % 2


def algorithm_1(ledger: Ledger | Path | str) -> Thresholdout:
    return Thresholdout(records(), **DECLARED, mechanism=ALGORITHM_1, ledger=ledger)


def ladder(ledger: Ledger | Path | str) -> Thresholdout:
    return Thresholdout(records(), **DECLARED, mechanism=LADDER, ledger=ledger)


def kfold(ledger: Ledger | Path | str) -> KFoldGuard:
    X = np.arange(2000.0).reshape(-1, 1)
    return KFoldGuard((X, (X[:, 0] % 4 < 3).astype(int)), cv=2, mechanism="ladder", queries=50, ledger=ledger)


def labelled(ledger: Ledger | Path | str) -> PredictionGuard:
    rows = pd.DataFrame({"id": range(4000), "label": [0, 1] * 2000})
    return PredictionGuard.create(
        ledger, rows[:2000], rows[2000:], label="label", queries=50, mechanism=ALGORITHM_1, sampling="independent"
    )


def use(guard: Thresholdout) -> None:
    """Ask where both parts agree, and twice where they do not, so that half of the budget is left."""
    guard.ask(0.5, part(0.5), name="both agree", key="a")
    guard.ask(1.0, part(0.25), name="größer", key="b")
    guard.ask(0.0, part(0.75), bounds=(0.0, 1.0), name="=1+1", key="c")


def use_failing(guard: Thresholdout) -> None:
    """The same, and a look of somebody else before it."""
    guard.releases.record(BlackBox(1e-4))
    use(guard)


def use_kfold(guard: KFoldGuard) -> None:
    for guess in (0, 1):
        guard.score(DummyClassifier(strategy="constant", constant=guess), key=str(guess))


def use_labelled(guard: PredictionGuard) -> None:
    for guess in (0, 1):
        guard.ask(pd.DataFrame({"id": range(4000), "prediction": guess}), key=str(guess))


def next_of(guard: Thresholdout) -> Answer:
    return guard.ask(0.75, part(0.75), name="next", key="next")


def next_of_kfold(guard: KFoldGuard) -> Answer:
    return guard.score(DummyClassifier(strategy="prior"), key="next")


def next_of_labelled(guard: PredictionGuard) -> Answer:
    return guard.ask(pd.DataFrame({"id": range(4000), "prediction": [0, 1] * 2000}), key="next")


GUARDS: Final[dict[str, tuple[Callable[[Any], Any], Callable[[Any], None], Callable[[Any], Answer], str | None]]] = {
    "algorithm-1": (algorithm_1, use, next_of, None),
    "encrypted": (algorithm_1, use, next_of, KEY),
    "moved": (ladder, use, next_of, None),
    "releases": (algorithm_1, use_failing, next_of, None),
    "kfold": (kfold, use_kfold, next_of_kfold, None),
    "labelled": (labelled, use_labelled, next_of_labelled, None),
}
"""By the name of the file: how it is opened, used and asked next, and its key."""


def written(ledger: Ledger) -> dict[str, Any]:
    """Return what can be read of a ledger with one guard, as JSON values."""
    (guard,) = ledger.guards()
    return {
        "guard": guard,
        "checkpoint": ledger.checkpoint(guard),
        "parameters": ledger.parameters(guard),
        "documents": ledger.documents(guard),
        "closed": ledger.closed(guard),
        "entries": [as_kept(entry) for entry in ledger.entries(guard)],
    }


def as_kept(entry: Entry) -> dict[str, Any]:
    """Return an entry's fields."""
    return asdict(entry)


def answered(answer: Answer) -> dict[str, Any]:
    """Return what is known of an answer before it is given, whatever the noise."""
    return {
        "query": answer.query,
        "source": answer.source,
        "remaining": answer.remaining,
        "half_width": answer.half_width,
    }


def opened(file: Path, key: str | None) -> Ledger:
    return open_ledger(file, must_exist=True, key=key)
