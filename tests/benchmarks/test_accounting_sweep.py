"""The sweep beside other accountants: settings, counts, going on after a stop, and the table in the page."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks import accounting_sweep
from benchmarks.accounting_sweep import accuracy, as_close, counts, main, rows, setting, table
from thresholdout.privacy.accounting.pld.distribution import PrivacyLossDistribution
from thresholdout.privacy.accounting.pld.minibatch_steps import poisson_pairs


def row(i: int, here: float, peer: float | None, **more: float) -> dict[str, Any]:
    found: dict[str, Any] = {
        "i": i,
        "here": here,
        "peer": peer,
        "cells": here,
        "equal": here,
        "autodp": 2 * here,
        **more,
    }
    return found | {f"{name}_s": 0.01 for name in ("here", "peer", "cells", "equal", "autodp")}


def test_settings_are_the_same_in_every_run_and_in_range() -> None:
    found = [setting(i) for i in range(300)]
    assert found == [setting(i) for i in range(300)]
    assert len(set(found)) == 300
    for sigma, q, steps, delta in found:
        assert 0.3 <= sigma <= 20
        assert 1e-5 <= q <= 0.5
        assert 1 <= steps <= 10**6
        assert 1e-12 <= delta <= 1e-2


def test_what_is_counted() -> None:
    found = [
        row(0, 1.0, 1.1),
        row(1, 1.0, 1.000001),
        row(2, 1.000002, 1.0, lower=0.9, fine=1.000001),
        row(3, 1.5, 1.0, lower=1.4, fine=1.5),
        row(4, 1.1, 1.0, lower=0.9, fine=1.0),
        row(5, 1.1, 1.0, lower=0.9, fine=1.05),
        row(6, 1.0, None),
    ]
    assert counts(found) == {"smaller": 1, "same": 2, "too small": 1, "finer": 1, "larger": 1}
    assert table(found).startswith("| 7 random settings | |")


def test_times_are_compared_at_the_accuracy_of_the_other() -> None:
    assert accuracy(row(0, 1.0, 1.25)) == 0.25
    assert accuracy(row(0, 1.0, 0.9)) == accuracy(row(0, 1.0, None)) == accuracy(row(0, 0.0, 0.0)) == 1e-5
    assert accuracy(row(0, 1.0, 9.0)) == 0.5


@pytest.mark.slow
def test_a_bound_as_close_as_the_other_is_sought_until_it_is_found() -> None:
    found = [PrivacyLossDistribution({pair: 4}) for pair in poisson_pairs(0.8244, 1.28e-5)]
    assert as_close(found, {"delta": 5.1e-7, "here": 0.0002521, "peer": 0.0002785}) <= 0.0002785


def test_a_run_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []

    def measured(i: int) -> dict[str, Any]:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(i)
        return row(i, 1.0, 1.1)

    monkeypatch.setattr(accounting_sweep, "DONE", tmp_path / "sweep.jsonl")
    monkeypatch.setattr(accounting_sweep, "measured", measured)
    with pytest.raises(KeyboardInterrupt):
        main(["3"])
    assert [each["i"] for each in rows()] == [0, 1]
    done.clear()
    main(["3"])
    assert done == [2]
    assert [each["i"] for each in rows()] == [0, 1, 2]


def test_the_page_has_the_table_of_the_file() -> None:
    page = Path(accounting_sweep.__file__).with_name("README.md").read_text()
    assert table(rows()) in page
