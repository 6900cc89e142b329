"""Groups, a time order or a graph in place of a model: what follows from columns, indices, arrays and graphs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from graphs import Crossed, DependencyGraph, GaussianField, Groups, MarkovField, MovingWindow
from tests.cases import for_each
from thresholdout import InputError, KFoldGuard, OverlapError, Thresholdout, TimeOrder, plan
from thresholdout.data.series_range import seen_range

N, TRAIN = 400, 600
ALL = N + TRAIN
PATIENTS = np.array([f"p{k // 4}" for k in range(ALL)])
DAYS = pd.date_range("2024-01-01", periods=ALL, freq="D")


def scans() -> tuple[pd.DataFrame, NDArray[np.int64]]:
    rng = np.random.default_rng(0)
    features = pd.DataFrame(
        {
            "age": rng.normal(size=ALL),
            "patient": PATIENTS,
            "day": DAYS,
            "number": np.arange(ALL),
        },
        index=pd.Index([f"s{k}" for k in range(ALL)], name="scan"),
    )
    return features, rng.integers(0, 2, size=ALL)


X, Y = scans()
LABELS: NDArray[np.int64] = np.arange(ALL) % 2
LATE = np.arange(TRAIN, ALL)


def made(held: Any = LATE, frame: pd.DataFrame = X, beside: Any = (None, None), **arguments: Any) -> Thresholdout:
    """Return a guard that holds out some records, the rest being its training part; beside them their groups."""
    rest = np.setdiff1d(np.arange(ALL), held)
    own, other = (() if groups is None else (groups,) for groups in beside)
    train = (frame.iloc[rest], LABELS[rest], *other)
    return Thresholdout((frame.iloc[held], LABELS[held], *own), train=train, **arguments)


def refused(**arguments: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        made(**arguments)
    return caught.value


class TestGroups:
    @for_each(
        "arguments",
        [
            {"groups": "patient"},
            {"groups": ["patient"]},
            {"beside": (PATIENTS[TRAIN:], PATIENTS[:TRAIN])},
            {"beside": (X["patient"][TRAIN:].sample(frac=1.0, random_state=0), PATIENTS[:TRAIN])},
            {"beside": (X["patient"][TRAIN:].astype("category"), X["patient"][:TRAIN])},
        ],
    )
    def test_a_column_or_its_values_are_the_model_of_groups(self, arguments: Mapping[str, Any]) -> None:
        guard = made(**arguments)
        assert guard.dependence.fingerprint() == Groups(PATIENTS[TRAIN:]).fingerprint()
        folds = guard._records.training_folds
        assert not folds.ordered
        assert folds.groups is not None
        assert len(set(zip(folds.groups.tolist(), PATIENTS[:TRAIN].tolist(), strict=True))) == TRAIN // 4

    def test_a_level_of_the_index_is_no_feature(self) -> None:
        frame = X.set_index("patient", append=True)[["age"]]
        guard = made(frame=frame, groups="patient")
        assert guard.dependence.fingerprint() == Groups(PATIENTS[TRAIN:]).fingerprint()
        assert list(guard.train[0].columns) == ["age"]

    def test_a_column_stays_where_it_was(self) -> None:
        assert list(made(groups="patient").train[0].columns) == list(X.columns)

    def test_a_group_in_both_parts_is_refused_and_what_the_refusal_names_works(self) -> None:
        held = np.arange(TRAIN - 2, ALL)
        with pytest.raises(OverlapError, match="1 of its 101 groups"):
            made(held, groups="patient")
        keep = ~np.isin(PATIENTS[: TRAIN - 2], PATIENTS[held])
        train = (X[: TRAIN - 2][keep], LABELS[: TRAIN - 2][keep])
        guard = Thresholdout((X.iloc[held], LABELS[held]), train=train, groups="patient")
        assert guard.n == N + 2

    @pytest.mark.slow
    def test_the_same_guard_as_with_the_model(self) -> None:
        answers = [
            made(**arguments).certificate.expected_half_width(0.9)
            for arguments in (
                {"groups": "patient"},
                {"dependence": Groups(PATIENTS[TRAIN:]), "beside": (None, PATIENTS[:TRAIN])},
            )
        ]
        assert answers[0] == answers[1]

    @for_each(
        ("arguments", "argument", "words"),
        [
            ({"groups": "Patient"}, "groups", "one of 'age', 'patient', 'day', 'number', 'scan'"),
            ({"groups": PATIENTS[TRAIN:]}, "groups", "Pass the groups of records as (X, y, groups)"),
            ({"groups": ["patient", PATIENTS]}, "groups", "(X, y, groups) in both parts"),
            ({"groups": []}, "groups", "a list of at most 8 names"),
            ({"beside": (PATIENTS[TRAIN:], None)}, "train", "(X_train, y_train, groups)"),
            ({"beside": (PATIENTS[:3], PATIENTS[:TRAIN])}, "groups", "400 values, one for each record"),
            (
                {"beside": (PATIENTS[TRAIN:], PATIENTS[:TRAIN]), "groups": "patient"},
                "groups",
                "None beside groups in (X, y, groups)",
            ),
            ({"groups": "patient", "dependence": TimeOrder(window=3)}, "dependence", "None beside groups"),
            ({"groups": "patient", "dependence": Groups(PATIENTS[TRAIN:])}, "dependence", "None beside groups"),
            ({"beside": (None, PATIENTS[:TRAIN])}, "groups", "(X, y, groups) in both parts"),
        ],
    )
    def test_what_cannot_be_is_said_in_one_sentence(
        self, arguments: Mapping[str, Any], argument: str, words: str
    ) -> None:
        error = refused(**arguments)
        assert error.argument == argument
        assert words in str(error)

    def test_two_columns_of_one_name(self) -> None:
        twice = pd.concat([X, X[["patient"]]], axis=1)
        with pytest.raises(InputError, match="the name of 2 columns or index levels of the holdout"):
            made(frame=twice, groups="patient")

    def test_names_serve_cross_validation_too(self) -> None:
        features = X[["age", "patient"]]
        named = KFoldGuard((features, LABELS), cv=2, groups="patient")
        given = KFoldGuard((features, LABELS, PATIENTS), cv=2)
        assert named.dependence.fingerprint() == given.dependence.fingerprint()


class TestSeveralKindsOfGroups:
    USERS, ITEMS = np.divmod(np.arange(900), 30)

    def ratings(self, held: NDArray[np.bool_], known: NDArray[np.bool_], **arguments: Any) -> Thresholdout:
        frame = pd.DataFrame({"user": self.USERS, "item": self.ITEMS})
        right = (self.USERS + self.ITEMS) % 2
        return Thresholdout((frame[held], right[held]), train=(frame[known], right[known]), **arguments)

    def test_users_and_items_are_crossed(self) -> None:
        held, known = (self.USERS < 20) & (self.ITEMS < 20), (self.USERS >= 20) & (self.ITEMS >= 20)
        guard = self.ratings(held, known, groups=["user", "item"])
        expected = Crossed.of_factors({"user": self.USERS[held], "item": self.ITEMS[held]})
        assert guard.dependence.fingerprint() == expected.fingerprint()
        folds = guard._records.training_folds.groups
        assert folds is not None
        assert len(set(zip(folds.tolist(), self.USERS[known].tolist(), strict=True))) == 10

    def test_users_or_items_of_both_parts_are_refused_and_what_the_refusal_names_works(self) -> None:
        held = self.USERS < 20
        with pytest.raises(
            OverlapError, match=r"groups must be names of columns without common groups; .* Pass groups='user' if"
        ):
            self.ratings(held, ~held, groups=["user", "item"])
        assert (
            self.ratings(held, ~held, groups="user").dependence.fingerprint() == Groups(self.USERS[held]).fingerprint()
        )

    def test_known_records_tie_effects_together(self) -> None:
        """Why that is refused: two users who share no item are dependent once ratings tie their items together."""
        users, items = ["a", "b", "c", "c"], ["x", "y", "x", "y"]
        model = Crossed(users, items)
        assert model.given([2, 3]).leakage(0.1, adversary="uninformed") == pytest.approx([0.2, 0.2])
        assert Crossed(users[:2], items[:2]).leakage(0.1, adversary="uninformed") == pytest.approx([0.1, 0.1])

    def test_what_cannot_be_is_said_in_one_sentence(self) -> None:
        held = self.USERS < 20
        with pytest.raises(InputError, match="'film', which is no column"):
            self.ratings(held, ~held, groups=["user", "film"])


class TestOrder:
    @for_each(
        ("order", "model"),
        [
            (TimeOrder(window=5), MovingWindow(N, 5)),
            (TimeOrder("day", window=pd.Timedelta(days=5)), MovingWindow.of_times(DAYS[TRAIN:], pd.Timedelta("5D"))),
            (TimeOrder("number", window=5), MovingWindow.of_times(np.arange(N), 5)),
            (TimeOrder(DAYS[TRAIN:], window=pd.Timedelta("5D")), MovingWindow.of_times(DAYS[:N], pd.Timedelta("5D"))),
            (TimeOrder(model=GaussianField.ar(0.5, N)), GaussianField.ar(0.5, N)),
            (TimeOrder("day", model=GaussianField.ar(0.5, N)), GaussianField.ar(0.5, N)),
        ],
    )
    def test_an_order_and_how_far_it_reaches_are_a_model(self, order: TimeOrder, model: Any) -> None:
        guard = made(dependence=order)
        assert guard.dependence.fingerprint() == model.fingerprint()
        assert guard._records.training_folds.ordered

    def test_without_a_reach_the_refusal_tells_what_the_training_part_shows(self) -> None:
        blocks = np.repeat(np.random.default_rng(1).integers(0, 2, size=ALL // 4), 4)
        shown = "correlated up to lag 3 records"
        for by, time in ((None, ""), ("day", ", about 3 days"), ("number", ", about 3,")):
            with pytest.raises(InputError, match=f"fit_autoregression.*n=400.*{shown}{time}") as caught:
                Thresholdout((X[TRAIN:], blocks[TRAIN:]), train=(X[:TRAIN], blocks[:TRAIN]), dependence=TimeOrder(by))
            assert caught.value.argument == "dependence"
        with pytest.raises(InputError, match=r"Pass window=.*\(in records\)"):
            Thresholdout(X[TRAIN:], dependence=TimeOrder())

    @for_each(
        ("held", "window", "joined"),
        [
            (np.arange(0, N), 5, 0),  # the training part comes after
            (np.arange(300, 300 + N), 5, 0),  # and on both sides
            (np.r_[0:200, 300:500], 5, 10),  # records 195 to 199 reach 300 to 304 through those between
            (np.arange(0, ALL, 3)[:333], 5, 333),
        ],
    )
    def test_training_records_join_what_they_stand_between(self, held: Any, window: int, joined: int) -> None:
        if not joined:
            assert made(held, dependence=TimeOrder("number", window=window)).n == len(held)
            return
        with pytest.raises(InputError, match=f"join {joined} of {len(held)} to more distant ones"):
            made(held, dependence=TimeOrder("number", window=window))

    def test_training_records_further_away_than_the_window_are_no_matter(self) -> None:
        held, between = np.r_[0:200, 300:500], np.arange(220, 280)
        guard = Thresholdout(
            (X.iloc[held], LABELS[held]),
            train=(X.iloc[between], LABELS[between]),
            dependence=TimeOrder("number", window=20),
        )
        expected = MovingWindow.of_times(held, 20)
        assert guard.dependence.fingerprint() == expected.fingerprint()
        with pytest.raises(InputError, match="training records between"):
            Thresholdout(
                (X.iloc[held], LABELS[held]),
                train=(X.iloc[between], LABELS[between]),
                dependence=TimeOrder("number", window=21),
            )

    @for_each("seed", range(12))
    def test_refused_is_what_paths_through_known_records_join(self, seed: int) -> None:
        """Paths whose interior is known, in the graph that joins records within the window, by networkx."""
        rng = np.random.default_rng(seed)
        times = np.sort(rng.integers(0, 40, size=24))
        known: NDArray[np.bool_] = np.isin(np.arange(24), np.sort(rng.permutation(24)[: rng.integers(1, 6)]))
        window = int(rng.integers(1, 6))
        near = nx.Graph([(i, j) for i, j in itertools.combinations(range(24), 2) if abs(times[i] - times[j]) <= window])
        near.add_nodes_from(range(24))
        held, train = np.flatnonzero(~known).tolist(), np.flatnonzero(known).tolist()
        joined = 0
        for record in held:
            inside = near.subgraph([record, *train])
            reached = {j for i in nx.node_connected_component(inside, record) for j in near[i]} - {record, *train}
            joined += reached != set(near[record]) - {*train}
        order = [*sorted(train, key=lambda k: times[k]), *rng.permutation(held).tolist()]
        frame = pd.DataFrame({"time": times[order], "other": rng.normal(size=24)})
        parts = frame[len(train) :], frame[: len(train)]
        if not joined:
            guard = Thresholdout(parts[0], train=parts[1], dependence=TimeOrder("time", window=window))
            assert guard.dependence.fingerprint() == MovingWindow.of_times(parts[0]["time"], window).fingerprint()
            return
        with pytest.raises(InputError, match=f"which join {joined} of {len(held)}"):
            Thresholdout(parts[0], train=parts[1], dependence=TimeOrder("time", window=window))

    def test_a_known_record_between_makes_two_independent_ones_dependent(self) -> None:
        """Two coins and, between them, their sum modulo 2: by themselves independent, given the sum they are not."""
        coins = list(itertools.product((0, 1), repeat=2))
        for known in (0, 1):
            given = [(a, b) for a, b in coins if (a + b) % 2 == known]
            both = sum(a == b == 1 for a, b in given) / len(given)
            assert both != (sum(a for a, _ in given) / len(given)) * (sum(b for _, b in given) / len(given))
        frame = pd.DataFrame({"number": np.arange(30.0)})
        held = np.arange(30) % 3 != 1
        arguments: dict[str, Any] = {"dependence": TimeOrder("number", window=1)}
        Thresholdout(frame[held], **arguments)
        with pytest.raises(InputError, match="which join 20 of 20"):
            Thresholdout(frame[held], train=frame[~held], **arguments)

    @for_each(
        ("order", "argument", "words"),
        [
            (TimeOrder("age", window=1.0), "dependence", "unsorted records in train="),
            (TimeOrder("patient", window=1), "dependence", "pandas.to_datetime"),
            (TimeOrder("day", window=5), "window", "a time difference"),
            (TimeOrder(window=2.5), "window", "an integer"),
            (TimeOrder(window=-1), "window", "an integer"),
            (TimeOrder(np.arange(3), window=5), "by", "400 values, one for each record"),
            (TimeOrder("hour", window=5), "by", "'hour', which is no column"),
        ],
    )
    def test_what_cannot_be_is_said_in_one_sentence(self, order: TimeOrder, argument: str, words: str) -> None:
        error = refused(dependence=order)
        assert error.argument == argument
        assert words in str(error)

    def test_what_no_order_can_be_is_refused_where_it_is_made(self) -> None:
        with pytest.raises(InputError, match=r"model must be .*; got a model beside window"):
            TimeOrder(window=5, model=GaussianField.ar(0.5, N))
        with pytest.raises(InputError, match=r"by must be the name of a column.*; got True"):
            TimeOrder(True)


class TestGraph:
    def test_a_graph_of_the_holdout_is_a_dependency_graph(self) -> None:
        names = X.index[TRAIN:].tolist()
        graph = nx.relabel_nodes(nx.cycle_graph(N), dict(enumerate(np.roll(names, 7))))
        guard = made(dependence=DependencyGraph(graph))
        model = guard.dependence
        assert isinstance(model, DependencyGraph)
        assert model.records == tuple(names)
        assert model.fingerprint() == DependencyGraph(graph, records=names).fingerprint()

    def test_more_edges_apart(self) -> None:
        graph = nx.path_graph(X.index[TRAIN:].tolist())
        reach = made(dependence=DependencyGraph(graph, distance=3)).dependence
        window = MovingWindow(N, 3)
        for adversary in ("informed", "uninformed"):
            found, expected = (model.leakage(0.01, adversary=adversary) for model in (reach, window))
            np.testing.assert_allclose(found, expected, rtol=1e-12)

    def test_arrays_are_nodes_by_their_number(self) -> None:
        rows = X[["age"]].to_numpy()
        guard = Thresholdout(
            (rows[TRAIN:], LABELS[TRAIN:]),
            train=(rows[:TRAIN], LABELS[:TRAIN]),
            dependence=DependencyGraph(nx.path_graph(N)),
        )
        assert guard.dependence.variance_inflation() == pytest.approx(2.0)

    def test_training_records_that_are_nodes_join_their_neighbours(self) -> None:
        """In a path, a known record between two others joins them; ends of the path join nothing."""
        graph = nx.path_graph(X.index.tolist())
        apart = made(dependence=DependencyGraph(graph)).dependence
        assert apart.fingerprint() == DependencyGraph(nx.path_graph(N)).fingerprint()
        held = np.arange(0, 800, 2)
        joined = made(held, dependence=DependencyGraph(graph)).dependence
        expected = MovingWindow(N, 1).leakage(0.1, adversary="uninformed")
        np.testing.assert_allclose(joined.leakage(0.1, adversary="uninformed"), expected, rtol=1e-12)

    @for_each("known", [True, False])
    def test_sums_that_are_known_tie_their_coins_together(self, known: bool) -> None:
        """Two fair coins, joined to their sum modulo 2: given that it is 0 they are equal, a mean is of half as many.

        The bound of the model has to be above the exact tail, and that of the graph without the known records is not.
        """
        pairs, beta = N // 2, 1e-6
        graph = nx.Graph([(f"sum {k}", f"{side} {k}") for k in range(pairs) for side in ("left", "right")])
        index = [f"{side} {k}" for k in range(pairs) for side in ("left", "right")]
        sums = [f"sum {k}" for k in range(pairs)]
        rows = np.random.default_rng(0).normal(size=(N + pairs, 1))
        holdout = pd.DataFrame(rows[:N], index=index)
        train = pd.DataFrame(rows[N:], index=sums)
        guard = Thresholdout(
            holdout, train=train, dependence=DependencyGraph(graph if known else graph.subgraph(index))
        )
        width = guard.dependence.half_width(1 - beta)
        counts = np.arange(pairs + 1)
        tail = binom.pmf(counts, pairs, 0.5)[np.abs(counts / pairs - 0.5) > width].sum()
        assert (tail <= beta) == known

    def test_training_records_that_join_everything_are_refused_and_what_the_refusal_names_works(self) -> None:
        hub = X.index[0]
        graph = nx.star_graph([hub, *X.index[1:]])
        error = refused(dependence=DependencyGraph(graph))
        assert error.argument == "dependence"
        assert "of 1 for one query, and of 0.068" in str(error)
        rest = graph.subgraph(X.index[1:])
        train = (X[1:TRAIN], LABELS[1:TRAIN])
        guard = Thresholdout((X[TRAIN:], LABELS[TRAIN:]), train=train, dependence=DependencyGraph(rest))
        assert guard.dependence.variance_inflation() == 1.0

    @for_each(
        ("graph", "words"),
        [
            ("friends", "a model of graphs, such as Groups(labels), or TimeOrder"),
            (
                nx.path_graph(3),
                "got a networkx Graph, which can mean two things",
            ),
            (nx.DiGraph(), "In the second, dependence passes along the edges"),
            (DependencyGraph(nx.path_graph(ALL)), "such as 's600'"),
            (DependencyGraph(nx.path_graph(X.index[TRAIN - 1 :].tolist())), "1 of 600 training records"),
        ],
    )
    def test_what_cannot_be_is_said_in_one_sentence(self, graph: Any, words: str) -> None:
        error = refused(dependence=graph)
        assert error.argument == "dependence"
        assert words in str(error)

    def test_both_meanings_that_a_bare_graph_can_have_are_models(self) -> None:
        names = X.index[TRAIN:].tolist()
        graph = nx.path_graph(names)
        assert isinstance(made(dependence=DependencyGraph(graph)).dependence, DependencyGraph)
        field = MarkovField.ising(graph, 0.1)
        assert made(dependence=field).dependence is field

    @pytest.mark.slow
    def test_paths_through_nodes_that_are_no_records_are_kept(self) -> None:
        """Two leaves of a star are two edges apart, and not at all in the subgraph of the leaves."""
        network = nx.star_graph(["hub", *X.index[TRAIN:]])
        model = made(dependence=DependencyGraph(network, distance=2)).dependence
        power = nx.power(network, 2).subgraph(X.index[TRAIN:])
        assert model.fingerprint() == DependencyGraph(power, records=X.index[TRAIN:]).fingerprint()
        assert model.variance_inflation() == ALL - TRAIN
        assert made(dependence=DependencyGraph(network)).dependence.variance_inflation() == 1.0

    def test_labels_that_do_not_tell_which_record_is_which(self) -> None:
        again = X.set_index(np.arange(ALL) % N)
        with pytest.raises(InputError, match="labels of records of both parts"):
            made(frame=again, dependence=DependencyGraph(nx.path_graph(N)))
        twice = X.set_index(pd.Index([*range(N), *range(N, ALL - 1), ALL - 2]))
        with pytest.raises(InputError, match="got 1 repeated labels"):
            made(frame=twice, dependence=DependencyGraph(nx.path_graph(range(TRAIN, ALL))))


class TestSeenReach:
    @for_each("length", [1, 2, 5])
    def test_blocks_are_seen_as_far_as_they_reach(self, length: int) -> None:
        values = np.repeat(np.random.default_rng(0).normal(size=2000 // length), length)
        assert seen_range(values) == (length - 1, 100)
        assert seen_range(np.where(values > 0, "up", "down")) == (length - 1, 100)

    @for_each("values", [[1.0] * 50, np.arange(5.0), np.eye(30), [1.0, np.nan] * 30])
    def test_nothing_is_said_where_nothing_can_be(self, values: Any) -> None:
        assert seen_range(values) is None


class TestPlan:
    @for_each(
        ("arguments", "model"),
        [
            ({"groups": PATIENTS[:N]}, Groups(PATIENTS[:N])),
            ({"groups": X["patient"][:N], "records": N}, Groups(PATIENTS[:N])),
            ({"records": N, "order": True, "window": 5}, MovingWindow(N, 5)),
            ({"order": DAYS[:N], "window": pd.Timedelta("5D")}, MovingWindow.of_times(DAYS[:N], pd.Timedelta("5D"))),
            ({"graph": nx.path_graph(X.index[:N].tolist())}, DependencyGraph(nx.path_graph(N))),
        ],
    )
    def test_the_same_words_make_the_model_of_a_plan(self, arguments: Mapping[str, Any], model: Any) -> None:
        planned = plan(**arguments, queries=5)
        assert planned.model.fingerprint() == model.fingerprint()
        assert planned.half_width == plan(model, queries=5).half_width

    @for_each(
        ("arguments", "argument", "words"),
        [
            ({"groups": "patient"}, "groups", "X['patient']"),
            ({"order": "day", "window": 3}, "order", "X['day']"),
            ({"order": True, "window": 3}, "records", "the number of records"),
            ({"records": N, "order": True}, "window", "as a number of records"),
            ({"order": DAYS[:N]}, "window", "a difference of two times"),
            ({"records": 3, "groups": PATIENTS[:N]}, "groups", "3 values, one for each record"),
            ({"records": 3, "graph": nx.path_graph(4)}, "graph", "3 values, one for each record"),
            ({"records": Groups(PATIENTS[:N]), "groups": PATIENTS[:N]}, "groups", "None beside a model"),
            ({"records": N, "window": 3}, "window", "order=True"),
            ({"records": N, "groups": PATIENTS[:N], "order": True}, "order", "groups alone"),
            ({"records": 3, "graph": [1]}, "graph", "an undirected networkx.Graph"),
        ],
    )
    def test_what_cannot_be_is_said_in_one_sentence(
        self, arguments: Mapping[str, Any], argument: str, words: str
    ) -> None:
        with pytest.raises(InputError) as caught:
            plan(**arguments, queries=5)
        assert caught.value.argument == argument
        assert words in str(caught.value)
