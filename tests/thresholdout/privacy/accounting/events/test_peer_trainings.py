"""Trainings by Opacus and torch, where these are installed: their histories, their epsilons, the example."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.documents import ROOT
from tests.patience import PATIENCE
from thresholdout.privacy.accounting import RenyiAccountant, best_epsilon, training_events

STEPS = [(1.1, 0.02)] * 40 + [(0.9, 0.05)] * 10


def test_a_history_of_opacus() -> None:
    """Its own accountant keeps it, and its Renyi divergences give the epsilon that those here give."""
    accountants = pytest.importorskip("opacus.accountants", reason="Opacus is not installed")
    theirs = accountants.RDPAccountant()
    for noise, rate in STEPS:
        theirs.step(noise_multiplier=noise, sample_rate=rate)
    assert [tuple(row) for row in theirs.history] == [(1.1, 0.02, 40), (0.9, 0.05, 10)]
    assert training_events(theirs) == training_events(theirs.state_dict()) == training_events(theirs.history)
    orders = [1.5, *range(2, 64)]
    here = RenyiAccountant("add_remove", orders=orders).compose(training_events(theirs)).epsilon(1e-5)
    assert here == pytest.approx(theirs.get_epsilon(1e-5, alphas=orders), rel=1e-6)


def test_the_default_accountant_of_opacus_allows_itself_an_error() -> None:
    accountants = pytest.importorskip("opacus.accountants", reason="Opacus is not installed")
    theirs = accountants.PRVAccountant()
    for noise, rate in STEPS:
        theirs.step(noise_multiplier=noise, sample_rate=rate)
    here = best_epsilon(training_events(theirs), 1e-5, adjacency="add_remove").epsilon
    assert abs(theirs.get_epsilon(1e-5) - here) < 0.02  # of which 0.01 is its own


@pytest.mark.slow
def test_the_example_of_torch() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    command = [sys.executable, str(ROOT / "examples" / "torch_digits.py")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=True)
    kept = ROOT / "examples" / "printed" / "torch_digits.txt"
    assert result.stdout.splitlines() == kept.read_text(encoding="utf-8").splitlines()
