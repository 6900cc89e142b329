"""A guard certifies once, when it is made; its answers, and whoever reads its certificate, take that one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs import Groups
from thresholdout import Claims, KFoldGuard, SparseVector, Thresholdout
from thresholdout.certificates import certify_parameters as certifying
from thresholdout.certificates.certificate import Certificate
from thresholdout.guard import registration as guards

HOLDOUT = np.arange(600.0)

DECLARED: list[dict[str, Any]] = [
    {},
    {"queries": 20, "mechanism": Claims(holdout_answers=3)},
    {"dependence": Groups(np.arange(600) // 3)},
    {"mechanism": Claims(noise=0.0)},
    {"mechanism": Claims(epsilon=1.0, holdout_answers=3)},
    {"mechanism": "ladder", "queries": 20},
    {"queries": 20, "mechanism": SparseVector(0.2, 0.02, budget=3)},
]


@pytest.fixture
def certified(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The confidences of all certificates that guards ask for."""
    found = []

    def counted(*arguments: Any) -> Certificate:
        found.append(arguments[2])
        return certifying.certify_parameters(*arguments)

    monkeypatch.setattr(guards, "certify_parameters", counted)
    return found


@pytest.mark.parametrize("declared", DECLARED, ids=str)
def test_a_guard_certifies_once(declared: dict[str, Any], certified: list[float]) -> None:
    guard = Thresholdout(HOLDOUT, **declared)
    for count in (100, 200, 300):
        guard.ask(count / 600.0, np.arange(600) < count)
    assert guard.certificate == guard.certificate
    assert guard.status.epsilon == guard.certificate.epsilon
    assert len(certified) == 1


def test_a_guard_that_is_opened_again_certifies_once(tmp_path: Path, certified: list[float]) -> None:
    made = Thresholdout(HOLDOUT, queries=20, mechanism=Claims(holdout_answers=2), ledger=tmp_path / "guard.db")
    opened = Thresholdout(HOLDOUT, queries=20, mechanism=Claims(holdout_answers=2), ledger=tmp_path / "guard.db")
    assert made.certificate == opened.certificate
    assert len(certified) == 2


def test_a_k_fold_guard_certifies_once(certified: list[float]) -> None:
    guard = KFoldGuard((HOLDOUT[:, None], HOLDOUT > 300), queries=20)
    assert guard.certificate.route == "fold claims"
    assert len(certified) == 1


def test_failures_take_a_certificate_of_their_own(certified: list[float]) -> None:
    """It is for a smaller share of the error budget, so it cannot be the same one; the next answer has it at hand."""
    guard = Thresholdout(HOLDOUT, train=HOLDOUT + 0.5, mechanism=SparseVector(0.2, 0.02, budget=3), queries=5)

    def fails(values: np.ndarray) -> np.ndarray:
        if values[0] == 0.0:
            raise ValueError
        return values > 300.0

    with pytest.raises(ValueError, match="failed on the holdout"):
        guard.ask(fails)
    guard.ask(0.5, HOLDOUT > 300)
    guard.ask(0.5, HOLDOUT > 200)
    assert len(certified) == 2
    assert certified[1] > certified[0]
