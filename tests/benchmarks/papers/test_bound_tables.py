"""The comparison tables, and what the package exports."""

import importlib
import math
from typing import Any

import pandas as pd
import pytest

import thresholdout.privacy.accounting as accounting
from benchmarks.papers.bound_tables import (
    compare_composition,
    compare_high_probability,
    compare_kl,
    compare_on_average,
    exponential_mechanism_gap,
)
from thresholdout.errors import InputError, InputTypeError


def rows(table: pd.DataFrame, *key: str) -> dict[tuple[Any, ...], dict[Any, Any]]:
    """Return the rows of a table by some of their columns."""
    return {tuple(row[name] for name in key): row for row in table.to_dict("records")}


def test_high_probability_table() -> None:
    table = compare_high_probability([0.02, 0.05, 1.0], 1e-6, 20_000, 0.1)
    assert table["rule"].nunique() == 5
    assert len(table) == 15
    at = rows(table, "eps", "rule")
    assert not at[0.05, "theorem1"]["vacuous"]
    assert at[0.05, "dwork2015"]["vacuous"]
    assert table[(table["eps"] == 1.0) & (table["rule"] != "oneto_risk")]["vacuous"].all()


def test_measured_gaps_of_the_exponential_mechanism() -> None:
    """Reference run of 100 records and 1,000 coins; the seed is fixed, standard errors are below 1 %."""
    for eps, gap in ((0.05, 0.0063), (0.2, 0.0250), (1.0, 0.115)):
        assert exponential_mechanism_gap(eps) == pytest.approx(gap, rel=0.05)
    table = compare_on_average([0.05, 0.2, 1.0], 0.0, draws=50)
    assert (table["measured"] < table["tight"]).all()
    assert (table["tight"] < table["theorem2"]).all()


def test_kl_table() -> None:
    table = compare_kl([0.1, 1.0, 5.0])
    assert table["ratio"].tolist() == pytest.approx([(1 + math.exp(e)) / 2 for e in (0.1, 1.0, 5.0)])


def test_composition_table_shows_where_the_published_delta_is_impossible() -> None:
    table = compare_composition(0.5, 1e-6, [10, 100, 300], 1e-9)
    sound = table[table["sound"]]
    assert not sound["violates"].any()
    assert not sound["below_leak"].any()
    at = rows(table, "T", "rule")
    assert at[100, "II"]["below_leak"]
    assert at[100, "optimal"]["eps"] < at[100, "kov"]["eps"] < at[100, "dwork_roth"]["eps"]
    gain = rows(compare_composition(0.1, 1e-6, [100], 1e-6), "rule")
    assert gain[("II",)]["claimed_gain"] == pytest.approx(2.098e-6, rel=1e-3)
    assert gain[("kov",)]["delta"] - gain[("II",)]["delta"] == pytest.approx(2.096e-6, rel=1e-3)
    pure = compare_composition(0.1, 0.0, [5], 0.5)
    assert (pure["leak_lower_bound"] == 0).all()


def test_refusals() -> None:
    with pytest.raises(InputError):
        compare_kl([])
    with pytest.raises(InputTypeError):
        compare_kl(0.1)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        compare_composition(0.1, 0, [], 1e-6)


def test_every_name_of_the_package_is_there() -> None:
    assert accounting.__all__ == sorted(accounting.__all__)
    assert set(accounting.__all__) < set(dir(accounting))
    for name in dir(accounting):
        found = getattr(accounting, name)
        assert getattr(importlib.import_module(found.__module__), name) is found
    with pytest.raises(AttributeError, match="best_of_all"):
        accounting.best_of_all  # type: ignore[attr-defined]  # noqa: B018
