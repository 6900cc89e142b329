"""Diagnosis: levels of the tests, effects by independent formulas, fits, intervals, pictures."""

from typing import Any

import matplotlib.figure
import networkx as nx
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy import stats

from graphs import ArgumentError, Groups, HiddenMarkov, Independent, MarkovChain
from graphs.estimation import budget_interval, diagnose, fit_ising, fit_potts
from graphs.estimation.permutation import autocorrelation, holm, intraclass_correlation, morans_i
from graphs.models.markov_field import MarkovField
from graphs.plotting import plot_graph, plot_leakage
from tests.cases import for_each
from tests.sizes import corners

TWO = [[0.9, 0.1], [0.2, 0.8]]


def seasonal(rng: np.random.Generator, coefficient: float, n: int, lag: int) -> npt.NDArray[np.float64]:
    """Return a stationary normal series x_t = coefficient x_(t - lag) + noise."""
    values = rng.normal(size=n)
    values[lag:] *= np.sqrt(1 - coefficient**2)
    for t in range(lag, n):
        values[t] += coefficient * values[t - lag]
    return values


# Tests of independence ----------------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("broken", [False, True])
def test_permutation_tests_keep_their_level(broken: bool) -> None:
    """600 data sets of independent records, 39 permutations each, level 0.1 exactly: binomial at 1e-9.

    Broken: values that do depend must be rejected far more often.
    """
    rng = np.random.default_rng(0)
    ring = np.array([[i, (i + 1) % 20] for i in range(20)])
    groups = np.repeat(np.arange(5), 4)
    rejected: npt.NDArray[np.float64] = np.zeros(3)
    for _ in range(600):
        values = rng.exponential(size=(20, 1))
        if broken:
            values = values + rng.exponential(size=(5, 1))[groups]
        tests = [
            autocorrelation(values, 39, rng),
            morans_i(values, ring, 39, rng),
            intraclass_correlation(values, groups, 39, rng),
        ]
        rejected = rejected + np.array([float(test.p_value <= 0.1) for test in tests])
    low, high = float(stats.binom.ppf(5e-10, 600, 0.1)), float(stats.binom.isf(5e-10, 600, 0.1))
    assert (rejected > high).all() if broken else ((low <= rejected) & (rejected <= high)).all(), rejected


def test_effects_equal_their_textbook_formulas() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=30)
    centred = values - values.mean()
    found = autocorrelation(values[:, None], 9, rng).effect
    assert found == pytest.approx((centred[1:] * centred[:-1]).sum() / (centred**2).sum())
    graph = nx.gnp_random_graph(30, 0.2, seed=1)
    weights = nx.to_numpy_array(graph)
    moran = 30 / weights.sum() * (centred @ weights @ centred) / (centred @ centred)
    assert morans_i(values[:, None], np.array(graph.edges), 9, rng).effect == pytest.approx(moran)
    groups = np.repeat([0, 1, 2, 3], [3, 9, 10, 8])
    parts = [values[groups == g] for g in range(4)]
    sizes = np.array([len(p) for p in parts])
    between = sum(len(p) * (p.mean() - values.mean()) ** 2 for p in parts) / 3
    within = sum(((p - p.mean()) ** 2).sum() for p in parts) / 26
    size = (30 - (sizes**2).sum() / 30) / 3
    expected = (between - within) / (between + (size - 1) * within)
    shuffled = rng.permutation(30)
    found = intraclass_correlation(values[shuffled, None], groups[shuffled], 9, rng).effect
    assert found == pytest.approx(expected)


def test_shrout_and_fleiss_example() -> None:
    """Six targets, four judges: ICC(1,1) = 0.17 in Table 4 of the paper."""
    ratings = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    values = np.array(ratings, dtype=float).ravel()[:, None]
    effect = intraclass_correlation(values, np.repeat(np.arange(6), 4), 9, np.random.default_rng(0)).effect
    assert effect == pytest.approx(0.17, abs=0.005)


def test_strength_in_words() -> None:
    rng = np.random.default_rng(2)
    assert autocorrelation(np.arange(50.0)[:, None], 9, rng).strength == "strong"
    assert autocorrelation(np.array([0.0, 1.0] * 25)[:, None], 9, rng).effect < -0.9
    np.testing.assert_allclose(holm(np.array([0.5, 0.01, 0.6])), [1.0, 0.03, 1.0])


@pytest.mark.slow
def test_every_lag_up_to_a_season_is_tested() -> None:
    """Autocorrelation at lag 12 only, as in monthly data: lag 1 alone shows nothing."""
    rng = np.random.default_rng(12)
    months = seasonal(rng, 0.9, 240, 12)
    assert abs(autocorrelation(months[:, None], 9, rng).effect) < 0.2
    found = autocorrelation(months[:, None], 199, rng, lags=24)
    assert found.effect > 0.7
    assert found.p_value == 0.005
    assert found.name in ("order: autocorrelation at lag 12", "order: autocorrelation at lag 24")
    shown = diagnose(months, order=True, permutations=199)
    assert shown.dependent
    years = np.arange(1, 20)  # signs: twelve independent series of 20 years
    signs = 1 + 2 * float(((1 - years / 20) * (2 / np.pi) * np.arcsin(0.9**years)).sum())
    assert shown.model.variance_inflation() >= signs > 7
    assert "lag 12" in shown.words
    with pytest.raises(ArgumentError, match="season"):
        diagnose(months, order=True, season=121)
    with pytest.raises(ArgumentError, match="order"):
        diagnose(months, groups=np.arange(240) % 12, season=12)
    with pytest.raises(ArgumentError, match="lags"):
        autocorrelation(months[:, None], 9, rng, lags=240)


@pytest.mark.slow
@pytest.mark.parametrize("seed", corners(range(3), 0))
def test_what_is_recommended_for_a_long_memory_is_not_unsafe(seed: int) -> None:
    """An autoregression with 0.99: signs have the inflation 1 + 2 sum (2/pi) arcsin(0.99^k), 1 - k/n weighted: 125.

    The chain of quarters, which does not show these autocorrelations, has a fraction of it.
    """
    series = seasonal(np.random.default_rng(seed), 0.99, 1000, 1)
    lags = np.arange(1, 1000)
    signs = 1 + 2 * float(((1 - lags / 1000) * (2 / np.pi) * np.arcsin(0.99**lags)).sum())
    found = diagnose(series, order=True, permutations=19, level=0.1)
    assert found.model.variance_inflation() >= signs > 100
    assert found.costs()["inflation"]["chain of quarters"] < signs / 2


@pytest.mark.slow
def test_half_widths_and_records_are_those_of_hoeffdings_inequality() -> None:
    series = MarkovChain(TWO, 400).sample(np.random.default_rng(3))
    found = diagnose(series, order=True, permutations=19, confidence=0.9, level=0.1)
    row = found.costs()[found.costs()["recommended"]].iloc[0]
    assert row["half_width"] == pytest.approx(np.sqrt(row["inflation"] * np.log(20) / 800))
    assert row["records_for_0.05"] == np.ceil(row["inflation"] * np.log(20) / 0.005)
    assert f"±{row['half_width']:.3f}" in found.words
    with pytest.raises(ArgumentError, match="confidence"):
        diagnose(series, order=True, confidence=1.0)


# Diagnosis ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_chain_is_recognised() -> None:
    series = MarkovChain(TWO, 400).sample(np.random.default_rng(3))
    found = diagnose(series, order=True)
    assert found.dependent
    assert isinstance(found.model, MarkovChain)
    np.testing.assert_allclose(found.model.transition, TWO, atol=0.1)
    costs = found.costs()
    assert costs.index.tolist() == ["independent", "chain", "hidden chain"]
    assert costs["budget"].tolist()[1] == found.model.budget(0.5)
    assert costs["bic"].tolist()[1] < costs["bic"].tolist()[2]
    assert "Recommended: Markov chain" in str(found)
    assert "estimate" in found.words


@pytest.mark.slow
def test_a_noisy_chain_is_recognised_as_hidden() -> None:
    model = HiddenMarkov([[0.97, 0.03], [0.03, 0.97]], 1500, emission=[[0.8, 0.2], [0.2, 0.8]])
    found = diagnose(model.sample(np.random.default_rng(4)).astype(str), order=True, permutations=199)
    assert isinstance(found.model, HiddenMarkov)


@pytest.mark.slow
def test_keys_put_records_in_order() -> None:
    rng = np.random.default_rng(5)
    wave, shuffled = np.sin(np.arange(120) / 6), rng.permutation(120)
    found = diagnose(wave[shuffled], order=shuffled, permutations=99)
    assert found.tests[0].effect == pytest.approx(diagnose(wave, order=True, permutations=99).tests[0].effect)
    days = pd.Timestamp("2001-01-01") + pd.to_timedelta(shuffled, unit="D")
    assert diagnose(wave[shuffled], order=days, permutations=99).tests[0].effect == pytest.approx(found.tests[0].effect)


def test_groups_come_from_a_column() -> None:
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"patient": np.repeat(list("abcdefghij"), 6)})
    frame["value"] = rng.normal(size=10).repeat(6) + 0.5 * rng.normal(size=60)
    found = diagnose(frame["value"], groups=frame["patient"])
    assert isinstance(found.model, Groups)
    assert found.model.fingerprint() == Groups(frame["patient"]).fingerprint()
    assert "estimate" not in found.words


@pytest.mark.slow
def test_independent_records_stay_so() -> None:
    rng = np.random.default_rng(7)
    values = rng.normal(size=80)
    found = diagnose(values, nx.cycle_graph(80), np.repeat(np.arange(16), 5), True, permutations=199)
    assert not found.dependent
    assert isinstance(found.model, Independent)
    assert "does not show that there is none" in found.words
    assert len(found.table()) == 3
    again = diagnose(values, nx.cycle_graph(80), np.repeat(np.arange(16), 5), True, permutations=199)
    pd.testing.assert_frame_equal(found.table(), again.table())


@pytest.mark.slow
def test_several_structures_and_their_picture() -> None:
    rng = np.random.default_rng(8)
    groups = np.repeat(np.arange(12), 5)
    values = rng.normal(size=12)[groups] + 0.3 * rng.normal(size=60)
    found = diagnose(values, groups=groups, order=True, permutations=199)
    assert "Several structures" in found.words
    axes, widths = found.plot()
    assert [label.get_text().split("\n")[0] for label in axes.get_yticklabels()] == ["order", "groups"]
    bars = dict(zip([label.get_text() for label in widths.get_yticklabels()], widths.patches, strict=True))
    costs = found.costs()
    assert {name: bar.get_width() for name, bar in bars.items()} == costs["half_width"].to_dict()
    colours = {name: bar.get_facecolor() for name, bar in bars.items()}
    assert [name for name in colours if colours[name] != colours["independent"]] == [
        name for name in costs.index if costs["recommended"][name]
    ]
    assert isinstance(axes.figure, matplotlib.figure.Figure)


@pytest.mark.slow
def test_categories_on_a_graph() -> None:
    club = nx.karate_club_graph()
    sides = [club.nodes[v]["club"] for v in club]
    found = diagnose(sides, graph=club, permutations=199)
    assert isinstance(found.model, MarkovField)
    three = [("a", "b", "c")[v % 3] for v in range(34)]
    assert "Potts field" in diagnose(three, graph=club, permutations=99).costs().index
    assert "Ising field of halves" in diagnose(np.arange(34.0), graph=club, permutations=99).costs().index


@for_each(
    ("arguments", "options", "match"),
    [
        (([1, 2],), {"order": True}, "fewer than three"),
        ((5,), {"order": True}, "one value for each record"),
        (([1, 1, 1],), {"order": True}, "same value"),
        (([1, 2, np.nan],), {"order": True}, "record 2, which is nan"),
        ((["a", "b", None],), {"order": True}, "missing"),
        ((np.eye(3),), {"order": True}, "shape"),
        (([1, 2, 3],), {}, "order is missing"),
        (([1, 2, 3],), {"order": [1, 2]}, "2 values for 3 records"),
        (([1, 2, 3],), {"order": [1, 2, np.nan]}, "missing key"),
        (([1, 2, 3],), {"order": [[1], [2], [3]]}, "one sort key"),
        (([1, 2, 3],), {"groups": [0, 0]}, "2 values for 3 records"),
        (([1, 2, 3],), {"groups": [0, 0, 0]}, "one group only"),
        (([1, 2, 3],), {"groups": [0, 1, 2]}, "groups of one record"),
        (([1, 2, 3],), {"graph": nx.path_graph(4)}, "4 records"),
        (([1, 2, 3],), {"graph": nx.empty_graph(3)}, "without edges"),
        (([1, 2, 3],), {"graph": nx.DiGraph([(0, 1), (1, 2)])}, "directed"),
        (([1, 2, 3],), {"graph": nx.MultiGraph([(0, 1), (1, 2)])}, "multigraph"),
        (([1, 2, 3],), {"graph": nx.Graph([(0, 1), (1, 2), (2, 2)])}, "to itself"),
        (([1, 2, 3],), {"graph": "karate"}, "networkx Graph"),
        (([1, 2, 3],), {"order": True, "level": 1.5}, "level"),
        (([1, 2, 3],), {"order": True, "epsilon": 0}, "epsilon"),
        (([1, 2, 3],), {"order": True, "permutations": 0}, "permutations"),
    ],
)
def test_refusals(arguments: Any, options: Any, match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        diagnose(*arguments, **options)


# Fields ---------------------------------------------------------------------------------------------------------------


def diameter(model: MarkovField) -> float:
    return float(model.diameters.max())


def test_pseudo_likelihood_is_at_its_maximum() -> None:
    """The derivative of the pseudo-likelihood in coupling and field vanishes."""
    club = nx.karate_club_graph()
    spins = np.array([1.0 if club.nodes[v]["club"] == "Officer" else -1.0 for v in club])
    model = fit_ising(club, "club", ridge=0)
    coupling = diameter(model) / 4
    around = np.array([spins[list(club.neighbors(v))].sum() for v in club])

    def slope(field: float) -> tuple[float, float]:
        rest = spins - np.tanh(field + coupling * around)
        return float(rest.sum()), float((rest * around).sum())

    fields = np.linspace(-1, 1, 20_001)
    best = fields[int(np.argmin([abs(slope(h)[0]) for h in fields]))]
    assert abs(slope(best)[1]) < 0.02


@pytest.mark.statistical
def test_coupling_is_recovered() -> None:
    """On a tree of 3000 nodes edges are independent: the coupling of the likelihood is artanh of a mean of 2999."""
    tree = nx.random_labeled_tree(3000, seed=1)
    drawn = MarkovField.ising(tree, coupling=0.4).sample(np.random.default_rng(9))
    error = 1 / np.sqrt(2999) * np.cosh(0.4)
    assert abs(diameter(fit_ising(tree, drawn)) / 4 - 0.4) < 6.5 * 2 * error
    assert abs(diameter(fit_potts(tree, drawn)) / 2 - 0.8) < 6.5 * 4 * error
    assert abs(diameter(fit_ising(tree, drawn)) / 4 - 0.9) > 6.5 * 2 * error
    three = MarkovField.potts(tree, coupling=1.0, states=3).sample(np.random.default_rng(10))
    assert abs(diameter(fit_potts(tree, three)) / 2 - 1.0) < 0.35


def test_labels_of_a_field() -> None:
    path = nx.path_graph(["x", "y", "z"])
    by_list, by_mapping = fit_ising(path, ["a", "b", "b"]), fit_ising(path, {"z": "b", "y": "b", "x": "a"})
    assert by_list.fingerprint() == by_mapping.fingerprint()
    assert by_list.fingerprint() == fit_ising(path, pd.Series({"z": "b", "y": "b", "x": "a"})).fingerprint()
    for labels, match in (
        (["a", "a", "a"], "two different labels; got 1"),
        (["a", "b"], "2 values for 3"),
        ({"x": "a"}, "nothing for the record"),
        ("club", "nothing for the record"),
        (["a", "b", np.nan], "missing"),
        ([["a"], "b", "c"], "hashed"),
        (7, "one label for each node"),
    ):
        with pytest.raises(ArgumentError, match=match):
            fit_ising(path, labels)
    with pytest.raises(ArgumentError, match="ridge"):
        fit_ising(path, ["a", "b", "b"], ridge=-1.0)
    with pytest.raises(ArgumentError, match="one label"):
        fit_potts(path, "aaa".replace("", " ").split())


# Intervals ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.statistical
def test_interval_covers_the_true_budget() -> None:
    """20 series, 90 % intervals: at least 8 cover (binomial 1e-9 at 0.9); intervals around a wrong truth do not."""
    truth = MarkovChain(TWO, 150)
    budget = truth.budget(0.5)
    covered = wrong = 0
    for seed in range(20):
        fitted = MarkovChain.fit(truth.sample(np.random.default_rng(seed)))
        found = budget_interval(fitted, MarkovChain.fit, 0.5, confidence=0.9, draws=20)
        covered += found.low <= budget <= found.high
        wrong += found.low <= 4 * budget <= found.high
    assert covered >= stats.binom.ppf(1e-9, 20, 0.9)
    assert wrong <= 3


@pytest.mark.slow
def test_interval_in_numbers_and_words() -> None:
    chain = MarkovChain(TWO, 200)
    found = budget_interval(chain, lambda s: MarkovChain.fit(s), 0.5, draws=20, seed=1)
    assert found.budget == chain.budget(0.5)
    assert found.low <= found.budget <= found.high
    assert 1 <= found.inflation_low <= found.inflation <= found.inflation_high
    assert len(found.table()) == 20
    assert "estimate" in str(found)

    def never(_: Any) -> MarkovChain:
        raise ArgumentError("sequences", "nothing", "something")

    worst = budget_interval(chain, never, 0.5, draws=5)
    assert worst.low == pytest.approx(0.5 / 200)
    assert worst.inflation_high == 200
    for options, match in (({"confidence": 1.0}, "confidence"), ({"draws": 1}, "draws"), ({"epsilon": -1}, "epsilon")):
        with pytest.raises(ArgumentError, match=match):
            budget_interval(chain, never, **{"epsilon": 0.5, **options})  # type: ignore[arg-type]


# Pictures -------------------------------------------------------------------------------------------------------------


def test_pictures_show_what_was_computed() -> None:
    model = MarkovChain(TWO, 30)
    axes = plot_leakage(model, [0.01, 0.1])
    lines = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
    np.testing.assert_allclose(lines["messages"], [model.leakage(e, "messages").max() for e in (0.01, 0.1)])
    assert {"group", "quilt", "quilt-published", "independent records"} <= set(lines)
    own = matplotlib.figure.Figure().add_subplot()
    assert plot_leakage(HiddenMarkov(TWO, 9), ax=own, adversary="uninformed") is own
    coloured = plot_graph(nx.path_graph(4), [0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(coloured.collections[0].get_array(), [0.1, 0.2, 0.3, 0.4])
    with pytest.raises(ArgumentError, match="1 values for 4 records"):
        plot_graph(nx.path_graph(4), [0.1])
    with pytest.raises(ArgumentError, match="at most 5000"):
        plot_graph(nx.empty_graph(6000), np.ones(6000))
    with pytest.raises(ArgumentError, match="positive"):
        plot_leakage(model, [0.0])


def test_numbers_most_of_which_are_at_an_end_are_looked_at() -> None:
    """Scores that are capped: all quarters begin at the largest value, and no number is above the median."""
    values = np.r_[np.arange(12.0), np.full(48, 12.0)]
    assert diagnose(values, order=True, permutations=99).dependent
    assert diagnose(values, nx.path_graph(60), permutations=99).dependent


@pytest.mark.slow
@for_each("values", [[(1, 2), (1, 2), (3, 4), (1, 2)] * 5, [(1,), (1, 2), (1,), ()] * 5])
def test_tuples_are_categories(values: Any) -> None:
    """As any hashable type."""
    letters = ["abc"[sorted(set(values)).index(value)] for value in values]
    found, expected = (diagnose(given, order=True, permutations=99) for given in (values, letters))
    assert found.table()["p_value"].tolist() == expected.table()["p_value"].tolist()
