"""The benchmark of prices runs, on small holdouts; its lists cost what lists do, and its bare commit is one."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from benchmarks.leaderboard import session as played
from benchmarks.ledger import bare_commit, bare_connection
from benchmarks.prices.candidates import BETA, half_length, real, simulated
from benchmarks.prices.sessions import Kind, after_attack, checked, compared, listed, searched
from benchmarks.prices.summary import known, quoted
from tests.cases import for_each


@pytest.mark.slow
def test_quoted_prices_are_of_all_cells_and_of_promises_that_held() -> None:
    found = quoted(2, (300,))
    there = known()
    assert set(found) == {key for key in there if not key.endswith(("_2000", "_20000"))}
    assert there["price.missed"]["value"] <= binom(there["price.sessions"]["value"], BETA).isf(1e-9)
    for key, (value, _) in found.items():
        if key.startswith("price.ratio_list"):
            assert 0.9 < value < 1.1


def test_the_baseline_is_the_exact_interval() -> None:
    exact = binomtest(47, 60).proportion_ci(0.99, method="exact")
    assert half_length(47 / 60, 60, 0.01) == pytest.approx((exact.high - exact.low) / 2)


def test_truths_of_simulated_candidates_are_theirs() -> None:
    for candidate in simulated(20_000, 5000, 5, 0):
        assert candidate.truth is not None
        assert abs(candidate.holdout.mean() - candidate.truth) < 0.02
        assert abs(candidate.train.mean() - candidate.truth) < 0.04


def test_a_list_costs_next_to_nothing_and_a_search_more() -> None:
    candidates = list(simulated(500, 500, 20, 1))
    alone, first, search = (
        listed(candidates, 500, 500, 0.0),
        listed(candidates, 500, 500, 0.2),
        searched(iter(candidates), 500, 500, 20),
    )
    assert 0.9 < alone.price < first.price < search.price < 3.0
    assert alone.missed == first.missed == search.missed == 0
    assert np.isnan(alone.told)


@for_each("kind", ["population", "win_rate", "given features"])
def test_comparisons_have_prices(kind: Kind) -> None:
    run = compared(kind, 400, 800, 3, 0.1, 0)
    assert 0.9 < run.price < 5.0
    assert len(run.prices) == 3


@for_each("attack", ["misleading", "majority"])
def test_attacks_make_later_intervals_wider(attack: str) -> None:
    after, fresh, told = after_attack(300, 10, attack, 0)
    assert after > 1.2 * fresh
    assert told > 3.0


def test_a_final_check_is_about_as_narrow_as_one_query_alone() -> None:
    assert checked(500, 500, 10, 0).price < 1.5


def test_real_candidates_are_cross_validated() -> None:
    found = list(real("breast cancer", 200, 150, 2, 0))
    assert [(c.train.size, c.holdout.size, c.truth) for c in found] == [(150, 200, None)] * 2


@pytest.mark.slow
def test_a_bare_commit_stores_a_row_as_wide_as_an_answer(tmp_path: Path) -> None:
    with closing(bare_connection(tmp_path / "bare.db")) as connection:
        bare_commit(connection)()
        (rows,) = connection.execute("SELECT COUNT(*) FROM answers").fetchone()
    assert rows > 1


def test_junk_costs_a_leaderboard_an_outcome_and_claims_everything() -> None:
    alone, beside = (played(500, junk, "cross-validated", 0, teams=6) for junk in (0, 1))
    claims = played(500, 1, "cross-validated", 0, teams=6, claims=True)
    assert (len(alone.widths), len(beside.widths), alone.refused, beside.refused) == (120, 100, 0, 0)
    assert max(alone.nats, beside.nats) < 40.0 < 60.0 < claims.nats
    assert np.mean(beside.widths) < 0.6 * np.mean(claims.widths)
    assert played(500, 0, "nothing", 0, teams=3).missed == 0
