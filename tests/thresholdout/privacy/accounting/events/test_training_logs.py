"""Events of trainings that other libraries ran."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cases import for_each
from thresholdout.errors import InputError
from thresholdout.privacy.accounting import (
    Composed,
    GaussianAnswer,
    PoissonGaussianStep,
    SelfComposed,
    WithoutReplacementGaussianStep,
    WithReplacementGaussianStep,
    best_epsilon,
    training_events,
)

HISTORY = [(1.1, 0.02, 300), (0.9, 0.02, 7)]


def test_a_history_in_every_form(tmp_path: Path) -> None:
    expected = Composed([SelfComposed(PoissonGaussianStep(n, q), k) for n, q, k in HISTORY])
    file = tmp_path / "history.json"
    file.write_text(json.dumps({"history": HISTORY, "mechanism": "prv"}))
    lines, table = tmp_path / "log.jsonl", tmp_path / "log.csv"
    rows = [{"noise_multiplier": n, "sample_rate": q, "num_steps": k} for n, q, k in HISTORY]
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table.write_text("noise_multiplier,epoch,sample_rate,num_steps\n1.1,1,0.02,300\n0.9,2,0.02,7\n")
    opacus = SimpleNamespace(history=HISTORY)
    for log in (HISTORY, opacus, {"history": HISTORY}, file, str(file), rows, lines, table):
        assert training_events(log) == expected


def test_a_row_without_steps_is_one_step() -> None:
    found = training_events([{"noise_multiplier": 2.0, "sample_rate": 0.5}] * 3)
    assert found == Composed([SelfComposed(PoissonGaussianStep(2.0, 0.5), 3)])


def test_single_steps_of_a_shuffled_order_are_counted_by_epochs() -> None:
    """Twenty rows of one step each are two epochs of ten batches, not twenty."""
    found = training_events([(1.0, 0.1, 1)] * 20, sampling="shuffled", records=100)
    assert found == Composed([SelfComposed(GaussianAnswer(1.0, 2.0), 2)])


def test_a_rate_of_1_is_no_sampling() -> None:
    assert training_events([(2.0, 1.0, 5)]) == Composed([SelfComposed(GaussianAnswer(2.0, 1.0, "add_remove"), 5)])


@for_each(
    ("sampling", "kind"),
    [("without_replacement", WithoutReplacementGaussianStep), ("with_replacement", WithReplacementGaussianStep)],
)
def test_batches_of_a_fixed_size(sampling: Any, kind: Any) -> None:
    found = training_events(HISTORY, sampling=sampling, records=1000)
    assert found == Composed([SelfComposed(kind(n, 20, 1000), k) for n, _, k in HISTORY])


@for_each(
    ("records", "size", "steps", "epochs"),
    [(1000, 100, 10, 1), (1000, 100, 11, 2), (10, 6, 100, 100), (10, 3, 9, 3), (10, 10, 4, 4)],
)
def test_shuffled_epochs(records: int, size: int, steps: int, epochs: int) -> None:
    """The most batches of a loader without its last, smaller batch that may hold one record."""
    found = training_events([(1.0, size / records, steps)], sampling="shuffled", records=records)
    assert found == Composed([SelfComposed(GaussianAnswer(1.0, 2.0), epochs)])


def test_rows_that_begin_within_an_epoch() -> None:
    """Two steps across the end of an epoch may both see a record."""
    found = training_events([(1.0, 0.1, 9), (2.0, 0.1, 2)], sampling="shuffled", records=100)
    assert found == Composed([SelfComposed(GaussianAnswer(1.0, 2.0), 1), SelfComposed(GaussianAnswer(2.0, 2.0), 2)])


@pytest.mark.slow
def test_epsilon_is_that_of_dp_accounting() -> None:
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    step = dp_accounting.PoissonSampledDpEvent(0.02, dp_accounting.GaussianDpEvent(1.1))
    theirs = PLDAccountant().compose(step, 300).get_epsilon(1e-5)
    found = best_epsilon(training_events(HISTORY[:1]), 1e-5, adjacency="add_remove").epsilon
    assert found == pytest.approx(theirs, rel=1e-3)


@for_each(
    ("log", "options", "words"),
    [
        (3, {}, "an int"),
        ([], {}, "no steps"),
        ([(1.0, 0.1)], {}, "row 0"),
        ([(1.0, 1.5, 3)], {}, "at most 1"),
        ([(0.0, 0.5, 3)], {}, "noise multiplier of row 0"),
        ([(1.0, 0.5, 2.5)], {}, "steps of row 0"),
        (HISTORY, {"sampling": "shuffled"}, "records"),
        (HISTORY, {"sampling": "cyclic"}, "sampling"),
        (HISTORY, {"sampling": "shuffled", "records": 33}, "whole number"),
        ("nowhere.json", {}, "nowhere.json"),
        ([{"noise_multiplier": 1.0}], {}, "row 0 without 'sample_rate'"),
    ],
)
def test_refusals(log: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        training_events(log, **options)
