"""Labelled values are aligned by label, others by order, and a mixture is refused; nothing takes keys for values."""

import datetime
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from graphs import (
    ArgumentError,
    BayesianNetwork,
    Communities,
    DependencyGraph,
    FactorGraph,
    Groups,
    HiddenMarkov,
    MarkovChain,
    MarkovField,
    exact_leakage,
)
from graphs.estimation import baum_welch, diagnose, fit_ising, fit_potts
from graphs.models.out_of_fold import OutOfFold
from graphs.plotting import plot_graph
from graphs.structure.sort_keys import sort_ranks
from tests.cases import for_each

PATIENTS = [f"patient {k}" for k in range(1000)]
TEN = {name: k // 10 for k, name in enumerate(PATIENTS)}
PEOPLE = 24
TWO = [[0.9, 0.1], [0.2, 0.8]]


# Sequences without labels of records ---------------------------------------------------------------------------------


def test_groups_of_a_mapping_are_not_its_keys() -> None:
    with pytest.raises(
        ArgumentError,
        match=r"labels must be a sequence with one label for each record; .*Pass list\(labels\.values\(\)\)",
    ):
        Groups(TEN)
    labels = TEN
    assert Groups(list(labels.values())).variance_inflation() == pytest.approx(10)


SEQUENCES: dict[str, Callable[[Any], object]] = {
    "Groups": Groups,
    "Communities": Communities,
    "communities of Communities": lambda values: Communities([0, 1], communities=values),
    "folds": OutOfFold,
    "groups of OutOfFold": lambda values: OutOfFold([0, 1], groups=values),
    "MarkovChain.fit": MarkovChain.fit,
    "states of a chain": lambda values: MarkovChain(TWO, 5, states=values),
    "HiddenMarkov.fit": lambda values: HiddenMarkov.fit(values, emission="categorical"),
    "baum_welch, numbers": baum_welch,
    "posterior": lambda values: HiddenMarkov(TWO, 5, emission=TWO).posterior(values),
    "records of a field": lambda values: MarkovField.ising(nx.path_graph(2), 0.5, records=values),
    "records of a graph": lambda values: DependencyGraph(nx.path_graph(2), records=values),
    "values of diagnose": lambda values: diagnose(values, order=True),
    "groups of diagnose": lambda values: diagnose([0.0, 1.0, 2.0], groups=values),
    "order of diagnose": lambda values: diagnose([0.0, 1.0, 2.0], order=values),
}


@for_each("name", SEQUENCES)
@for_each(
    "values",
    [{0: 5.0, 1: 6.0, 2: 5.0}, {0, 1}, frozenset({0, 1}), pd.DataFrame({0: [0, 1, 1], 1: [1, 0, 1]})],
    ids=type,
)
def test_what_has_no_order_of_records_is_refused(name: str, values: Any) -> None:
    with pytest.raises(ArgumentError, match=r"a mapping|a set|a table"):
        SEQUENCES[name](values)


def test_what_the_refusals_name_works() -> None:
    frame = pd.DataFrame({"fold": [0, 1, 0, 1], "patient": ["a", "b", "a", "b"]}, index=[7, 3, 9, 1])
    with pytest.raises(ArgumentError, match=r'one of its columns, labels\["name"\]'):
        Groups(frame)
    assert Groups(frame["patient"]).groups.tolist() == [0, 1, 0, 1]
    with pytest.raises(ArgumentError, match="a list in the order of the records"):
        Communities(set(frame["patient"]))
    assert Communities(list(frame["patient"])).n == 4
    with pytest.raises(ArgumentError, match="a vector"):
        Groups(frame[["patient"]].to_numpy())
    assert Groups(frame["patient"].to_numpy()).n == 4


# Two arguments with labels ----------------------------------------------------------------------------------------


def test_folds_and_groups_are_aligned_by_label() -> None:
    frame = pd.DataFrame({"fold": [0, 1, 0, 1], "patient": ["a", "b", "a", "c"]}, index=[7, 3, 9, 1])
    wanted = OutOfFold([0, 1, 0, 1], groups=["a", "b", "a", "c"])
    assert OutOfFold(frame["fold"], groups=frame["patient"]).fingerprint() == wanted.fingerprint()
    assert OutOfFold(frame["fold"], groups=frame["patient"].sort_index()).fingerprint() == wanted.fingerprint()
    with pytest.raises(
        ArgumentError, match=r"folds must be a pandas Series with labels, as `groups` is; .*Pass groups\.to_numpy"
    ):
        OutOfFold([0, 1, 0, 1], groups=frame["patient"])
    groups = frame["patient"]
    assert OutOfFold([0, 1, 0, 1], groups=groups.to_numpy()).fingerprint() == wanted.fingerprint()
    plain = frame.reset_index(drop=True)  # labels that are positions
    assert OutOfFold([0, 1, 0, 1], groups=plain["patient"]).fingerprint() == wanted.fingerprint()
    with pytest.raises(ArgumentError, match="nothing for the record 3"):
        OutOfFold(frame["fold"], groups=frame["patient"].rename({3: 4}))
    with pytest.raises(ArgumentError, match="occurs twice"):
        OutOfFold(pd.Series([0, 1], index=["a", "b"]), groups=pd.Series([0, 1], index=["a", "a"]))


# Graphs ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def ring() -> Any:
    """A ring of people in an order that is not that of the ring."""
    graph: nx.Graph[str] = nx.Graph()
    order = np.random.default_rng(0).permutation(PEOPLE)
    graph.add_nodes_from(f"p{k}" for k in order)
    graph.add_edges_from((f"p{k}", f"p{(k + 1) % PEOPLE}") for k in range(PEOPLE))
    return graph


def wave() -> dict[str, float]:
    """Values in the order of the ring, so alike for neighbours."""
    return {f"p{k}": float(np.sin(2 * np.pi * k / 12)) for k in range(PEOPLE)}


def test_values_of_a_mapping_or_series_go_to_their_nodes(ring: Any) -> None:
    values = wave()
    by_hand = [values[node] for node in ring.nodes]
    series = pd.Series(values)
    expected = diagnose(by_hand, graph=ring, permutations=49).tests[0].effect
    assert expected == pytest.approx(np.cos(2 * np.pi / 12), abs=1e-9)  # of neighbours on a sine wave
    for given in (values, series, dict(reversed(values.items())), series.sample(frac=1, random_state=1)):
        assert diagnose(given, graph=ring, permutations=49).tests[0].effect == pytest.approx(expected)
    assert diagnose(series.to_numpy(), graph=ring, permutations=49).tests[0].effect < 0.5  # in the order of graph.nodes


def test_labels_that_do_not_match_the_nodes_are_refused(ring: Any) -> None:
    values = wave()
    with pytest.raises(ArgumentError, match="nothing for the record 'p7'"):
        diagnose({key: v for key, v in values.items() if key != "p7"}, graph=ring)
    with pytest.raises(ArgumentError, match="a value for 'nobody', which is no record"):
        diagnose(values | {"nobody": 1.0}, graph=ring)
    with pytest.raises(ArgumentError, match="nothing for the record"):  # keys 0 to 59 are names, not an order
        diagnose(dict(enumerate(values.values())), graph=ring)
    with pytest.raises(ArgumentError, match="nothing for the record"):
        MarkovField.ising(ring, 0.1, dict.fromkeys(range(PEOPLE), 0.5))
    with pytest.raises(ArgumentError, match="nothing for the record 'p1'"):
        diagnose(pd.Series(values).rename({"p1": "x"}), graph=ring)


def test_a_mixture_of_labelled_and_unlabelled_is_refused(ring: Any) -> None:
    values, firms = pd.Series(wave()), pd.Series({f"p{k}": k // 6 for k in range(PEOPLE)})
    both = diagnose(values, graph=ring, groups=firms, permutations=49)
    reordered = firms.sample(frac=1, random_state=2)
    again = diagnose(values, graph=ring, groups=reordered, permutations=49)
    assert again.table().equals(both.table())
    with pytest.raises(
        ArgumentError, match=r"groups must be a pandas Series with labels, as `values` is; .*Pass values\.to_numpy"
    ):
        diagnose(values, graph=ring, groups=firms.to_numpy())
    with pytest.raises(ArgumentError, match=r"order must be .*`values`"):
        diagnose(values, graph=ring, order=range(PEOPLE))
    with pytest.raises(ArgumentError, match=r"^order must be a pandas Series with labels"):
        diagnose(values, graph=ring, order=True)
    with pytest.raises(ArgumentError, match=r"groups must be .*`values`"):
        diagnose(values, groups=firms.to_numpy())
    in_order = [values[node] for node in ring.nodes]
    bare = diagnose(in_order, graph=ring, groups=[firms[node] for node in ring.nodes], permutations=49)
    assert bare.table().equals(both.table())
    assert diagnose(values, groups=reordered, permutations=49).tests[0].effect == pytest.approx(both.tests[0].effect)


def test_a_series_without_an_index_of_its_own_is_taken_in_order(ring: Any) -> None:
    values = wave()
    by_hand = [values[node] for node in ring.nodes]
    one = diagnose(pd.Series(by_hand), graph=ring, permutations=49)
    assert one.tests[0].effect == diagnose(by_hand, graph=ring, permutations=49).tests[0].effect
    shuffled = nx.Graph([(2, 0), (0, 1), (1, 3), (3, 4), (4, 5)])  # numbers are labels here
    series = pd.Series([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    aligned = [series[node] for node in shuffled.nodes]
    assert (
        diagnose(series, graph=shuffled, permutations=49).tests[0].effect
        == diagnose(aligned, graph=shuffled, permutations=49).tests[0].effect
    )


def test_fits_of_fields_follow_labels(ring: Any) -> None:
    labels = {f"p{k}": int(k % 12 < 6) for k in range(PEOPLE)}
    by_hand = [labels[node] for node in ring.nodes]
    for fit in (fit_ising, fit_potts):
        expected = fit(ring, by_hand).fingerprint()
        assert fit(ring, labels).fingerprint() == fit(ring, pd.Series(labels).sample(frac=1)).fingerprint() == expected
        with pytest.raises(ArgumentError, match="a set"):
            fit(ring, set(range(PEOPLE)))
        with pytest.raises(ArgumentError, match="which is no record"):
            fit(ring, labels | {"nobody": 1})


def test_fields_of_nodes_follow_labels(ring: Any) -> None:
    field = {f"p{k}": k / 100 for k in range(PEOPLE)}
    by_hand = np.array([field[node] for node in ring.nodes])
    expected = MarkovField.ising(ring, 0.1, by_hand).fingerprint()
    assert MarkovField.ising(ring, 0.1, field).fingerprint() == expected
    assert MarkovField.ising(ring, 0.1, pd.Series(field)).fingerprint() == expected
    rows = {node: [0.0, value] for node, value in field.items()}
    by_row = MarkovField.potts(ring, 0.1, 2, np.array([rows[node] for node in ring.nodes]))
    assert MarkovField.potts(ring, 0.1, 2, rows).fingerprint() == by_row.fingerprint()
    edges = pd.Series(np.linspace(0, 1, PEOPLE), index=list(ring.edges)[::-1])
    with pytest.raises(
        ArgumentError, match=r"coupling must be numbers in the order of graph\.edges; .*Pass coupling\.to_numpy\(\)"
    ):
        MarkovField.ising(ring, edges)
    coupling = edges
    assert MarkovField.ising(ring, coupling.to_numpy()).n == PEOPLE
    with pytest.raises(ArgumentError, match="a table"):
        MarkovField(ring, [[1, 2], [2, 1]], pd.DataFrame(rows).T)


@pytest.mark.slow
def test_budgets_of_labelled_records_follow_labels(ring: Any) -> None:
    budgets = {f"p{k}": 0.01 * (k + 1) for k in range(PEOPLE)}
    for model in (MarkovField.ising(ring, 0.2), DependencyGraph(ring)):
        by_hand = model.leakage([budgets[node] for node in ring.nodes], adversary="uninformed")
        for given in (budgets, pd.Series(budgets), pd.Series(budgets).sample(frac=1)):
            np.testing.assert_array_equal(model.leakage(given, adversary="uninformed"), by_hand)
    with pytest.raises(ArgumentError, match=r"epsilon must be .*; got a mapping"):
        Groups([0, 1]).leakage({0: 0.1, 1: 0.2})
    epsilon = {0: 0.1, 1: 0.2}
    assert Groups([0, 1]).leakage(list(epsilon.values())).tolist() == [0.1, 0.2]


def test_drawings_follow_labels(ring: Any) -> None:
    values = wave()
    drawn = plot_graph(ring, pd.Series(values)).collections[0].get_array()
    np.testing.assert_array_equal(drawn, [values[node] for node in ring.nodes])


# Known records --------------------------------------------------------------------------------------------------


def named_models() -> list[Any]:
    """Models of three records in a row, whose names are numbers in another order, or texts."""
    path = nx.path_graph([2, 0, 1])
    law = [0.3, 0.7]
    names = nx.DiGraph([("a", "b"), ("b", "c")])
    return [
        MarkovField.ising(path, 0.7),
        DependencyGraph(path),
        FactorGraph({2: 2, 0: 2, 1: 2}, [((2, 0), [[2, 1], [1, 2]]), ((0, 1), [[3, 1], [1, 2]])]),
        BayesianNetwork(names, {"a": law, "b": [law, law[::-1]], "c": [law, law[::-1]]}),
    ]


@for_each("model", named_models(), ids=lambda model: type(model).__name__)
def test_known_records_are_named_by_their_labels(model: Any) -> None:
    middle, first = model.records[1], model.records[0]
    rest = model.given([middle])
    assert rest.known.tolist() == [1]
    assert str(middle) in rest.condition
    if not isinstance(model, DependencyGraph):
        assert rest.independent_groups().tolist() == [1, 1]  # the middle of a path cuts it
    assert rest.given([first]).known.tolist() == [0, 1]
    with pytest.raises(ArgumentError, match=r"known must be .*; got 'nobody'"):
        model.given(["nobody"])
    with pytest.raises(ArgumentError, match=r"known must be .*; got \['no', 'hash'\]"):
        model.given([["no", "hash"]])


def test_states_of_known_records_follow_labels() -> None:
    model = MarkovField.ising(nx.path_graph([2, 0, 1]), 0.7, field={2: 0.5, 0: 0.0, 1: -0.5})
    table = model.joint()  # axes in the order of records: 2, 0, 1
    for given in ({2: 1, 0: 0}, {0: 0, 2: 1}, pd.Series({0: 0, 2: 1})):
        np.testing.assert_allclose(model.given(given).joint(), table[1, 0] / table[1, 0].sum(), atol=1e-12)
    np.testing.assert_array_equal(
        [exact_leakage(model, 0.1, record, known=[0]) for record in (2, 1)],
        [exact_leakage(table, 0.1, place, known=[1]) for place in (0, 2)],
    )
    with pytest.raises(ArgumentError, match="a table"):
        model.given(pd.DataFrame({0: [1]}))
    chain = MarkovChain(TWO, 4)
    assert chain.given(pd.Series({2: 0, 1: 1})).fingerprint() == chain.given({1: 1, 2: 0}).fingerprint()


# Orders -------------------------------------------------------------------------------------------------------------

BERLIN = ZoneInfo("Europe/Berlin")
DAYS = [datetime.date(2024, 3, 9), datetime.date(2023, 12, 1), datetime.date(2024, 3, 30), datetime.date(2024, 1, 5)]
TIMES = [datetime.datetime(day.year, day.month, day.day, 5, 30) for day in DAYS]
RANKS = [2, 0, 3, 1]
ORDERS: dict[str, Any] = {
    "dates": DAYS,
    "tuple of dates": tuple(DAYS),
    "times": TIMES,
    "times in zones": [time.replace(tzinfo=BERLIN if k % 2 else datetime.UTC) for k, time in enumerate(TIMES)],
    "timestamps": [pd.Timestamp(time) for time in TIMES],
    "timestamps in a zone": [pd.Timestamp(time, tz="Europe/Berlin") for time in TIMES],
    "datetime64": np.array(TIMES, dtype="datetime64[s]"),
    "list of datetime64": [np.datetime64(time) for time in TIMES],
    "index": pd.DatetimeIndex(TIMES),
    "index in a zone": pd.DatetimeIndex(TIMES, tz="America/New_York"),
    "column in a zone": pd.Series(pd.DatetimeIndex(TIMES, tz="UTC")),
    "periods": pd.PeriodIndex(DAYS, freq="D"),
    "column of periods": pd.Series(pd.PeriodIndex(DAYS, freq="D")),
    "list of periods": [pd.Period(day, freq="D") for day in DAYS],
    "column of dates": pd.Series(DAYS),
    "differences": pd.to_timedelta([time - TIMES[1] for time in TIMES]),
    "list of differences": [time - TIMES[1] for time in TIMES],
    "numbers": [3.5, -1, 7, 2],
    "nullable numbers": pd.array([3, -1, 7, 2], dtype="Int64"),
    "large numbers": [3, -(10**30), 10**30, 2],
    "categories": pd.Categorical(["c", "a", "d", "b"], categories=list("abcd"), ordered=True),
}


@pytest.mark.slow
@for_each("name", ORDERS)
def test_keys_of_all_kinds_put_records_in_order(name: str) -> None:
    assert sort_ranks("order", ORDERS[name]).tolist() == RANKS
    values = [0.3, 0.1, 0.9, 0.2]
    found = diagnose(values, order=ORDERS[name], permutations=9)
    assert found.tests[0].effect == diagnose(sorted(values), order=True, permutations=9).tests[0].effect


def test_the_hour_that_clocks_repeat_is_in_order() -> None:
    """02:30 in summer time is before 02:10 in winter time, though the clock shows more."""
    summer = datetime.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=0)
    winter = datetime.datetime(2024, 10, 27, 2, 10, tzinfo=BERLIN, fold=1)
    assert sort_ranks("order", [winter, summer]).tolist() == [1, 0]
    index = pd.DatetimeIndex([winter.astimezone(datetime.UTC), summer.astimezone(datetime.UTC)]).tz_convert(
        "Europe/Berlin"
    )
    assert sort_ranks("order", index).tolist() == [1, 0]
    assert sort_ranks("order", [1, 0, 1, 5]).tolist() == [1, 0, 1, 2]  # equal keys


@for_each(
    ("order", "message"),
    [
        (pd.DatetimeIndex(["2024-01-01", None, "2024-01-02"]), "missing key, of record 1"),
        (pd.DatetimeIndex(["2024-01-01", None, "2024-01-02"], tz="UTC"), "missing key, of record 1"),
        (pd.PeriodIndex(["2024-01", None, "2024-02"], freq="M"), "missing key, of record 1"),
        (np.array(["2024-01-01", "2024-01-02", "NaT"], dtype="datetime64[D]"), "missing key, of record 2"),
        ([datetime.date(2024, 1, 1), None, datetime.date(2024, 1, 2)], "missing key, of record 1"),
        ([pd.Timestamp("2024"), pd.NaT, pd.Timestamp("2025")], "missing key, of record 1"),
        ([1.0, float("nan"), 2.0], "missing key, of record 1"),
        (pd.array([1, None, 2], dtype="Int64"), "missing key, of record 1"),
        (
            [TIMES[0], TIMES[1].replace(tzinfo=BERLIN), TIMES[2]],
            r"with a time zone and times without.*tz_localize",
        ),
        ([TIMES[0], DAYS[0], TIMES[1]], "several kinds"),
        ([pd.Period("2024-01", "M"), pd.Period("2024", "Y"), pd.Period("2025", "Y")], "several kinds"),
        (["10", "9", "8"], r"letter by letter.*pandas\.to_datetime\(order\).*pandas\.to_numeric\(order\)"),
        (pd.Series(["2024-01-01", "2024-01-03", "2024-01-02"]), r"pandas\.to_datetime\(order\)"),
        (pd.Categorical(["a", "b", "c"]), "without an order"),
        ([[1, 2], [3, 4], [5, 6]], "shape"),
        (False, "False"),
        ("2024", "2024"),
        ([1, 2], "2 values for 3 records"),
        ([(1, 2), "a", object()], "texts|kinds|lengths"),
    ],
)
def test_keys_without_an_order_are_refused(order: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=f"order must be .*({message})"):
        diagnose([0.0, 2.0, 1.0], order=order)


def test_what_the_refusals_of_keys_name_works() -> None:
    sizes, days = ["10.0", "9", "8"], ["2024-01-01", "2023-01-03", "2024-01-02"]
    assert sort_ranks("order", pd.to_numeric(sizes)).tolist() == [2, 1, 0]
    assert sort_ranks("order", pd.to_datetime(days)).tolist() == [1, 0, 2]
    naive = pd.Timestamp("2024-06-01 12:00").tz_localize("Europe/Berlin")
    aware = pd.Timestamp("2024-06-01 11:00", tz="UTC")
    assert sort_ranks("order", [aware, naive]).tolist() == [1, 0]
    grades = pd.Series(pd.Categorical(["b", "a"]))
    assert sort_ranks("order", grades.cat.as_ordered()).tolist() == [1, 0]
