"""What notebooks show: a guard's life in cards, with names that try to do harm."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from thresholdout import Claims, KFoldGuard, SparseVector, Thresholdout, plan

HARM = "<script>document.title = 'harm'</script> & \"quotes\" $a_b$ " + "long " * 30


@cache
def shown() -> dict[str, Any]:
    """Return objects of every kind that has a card; no noise, so that they are the same in every run."""
    from sklearn.datasets import make_classification
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression

    X, y = make_classification(1200, 5, random_state=0)
    model, other = (LogisticRegression(C=C).fit(X[600:], y[600:]) for C in (1.0, 0.01))
    dummy = DummyClassifier().fit(X[600:], y[600:])
    guard = Thresholdout(
        (X[:600], y[:600]), train=(X[600:], y[600:]), mechanism=Claims(holdout_answers=10, noise=0.0), queries=20
    )
    new = repr(guard), guard._repr_html_()
    answer = guard.score(model, cv=3)
    off = guard.ask(0.2, np.arange(600) < 400, name=HARM)
    listed = guard.score_all({HARM: other, "dummy": dummy}, cv=3)
    comparison = guard.compare_all({HARM: model}, dummy, cv=3)[0]
    folds = KFoldGuard((X, y), cv=2)
    folds.score(model)
    return {
        "new guard": Html(new[1]),
        "answer": answer,
        "answer from the holdout": off,
        "answer of a list": listed[0],
        "comparison": comparison,
        "guard": guard,
        "guard of folds": folds,
        "plan": plan(600, queries=20, anticipated_score=0.9),
        "certificate": guard.certificate,
        "certificate that says nothing": Thresholdout(np.arange(900.0), mechanism=SparseVector(0.1, 0.01)).certificate,
    }


class Html:
    """What was shown before."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text
