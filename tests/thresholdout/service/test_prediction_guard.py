"""Predictions behind which labels are hidden: what is read as what, and what errors show."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from graphs import MarkovChain, MovingWindow
from tests.cases import for_each
from thresholdout import Claims, Thresholdout
from thresholdout.data.tables import as_numbers, labels_of, numbers, shared_content, sorted_by
from thresholdout.errors import InputError, InputTypeError, LedgerMismatch, LedgerUnusable
from thresholdout.guard.registration import ORDER
from thresholdout.ledger import MemoryLedger
from thresholdout.ledger.entry import CONTENT
from thresholdout.mechanisms import LadderParameters
from thresholdout.scoring.metrics import Metric, absolute_error, brier_score, log_loss, squared_error
from thresholdout.service.prediction_guard import PredictionGuard, read_table

N = 1000


def tables(train: Sequence[Any], holdout: Sequence[Any], **columns: Sequence[Any]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return two tables of N records each, whose labels repeat."""
    ids = [f"r{k}" for k in range(2 * N)]
    labels = [[part[k % len(part)] for k in range(N)] for part in (train, holdout)]
    return (
        pd.DataFrame({"id": ids[:N], "y": pd.Series(labels[0])}),
        pd.DataFrame({"id": ids[N:], "y": pd.Series(labels[1])}),
    )


def made(path: Path, train: Sequence[Any], holdout: Sequence[Any], **settings: Any) -> PredictionGuard:
    return PredictionGuard.create(
        path / "guard.db",
        *tables(train, holdout),
        label="y",
        queries=20,
        mechanism=Claims(holdout_answers=1),
        **settings,
    )


def predicted(values: Sequence[Any], **columns: float) -> pd.DataFrame:
    """Return predictions for the records of `tables`, which repeat."""
    repeated = pd.Series([values[k % len(values)] for k in range(2 * N)])
    return pd.DataFrame({"id": [f"r{k}" for k in range(2 * N)], "prediction": repeated, **columns})


def refused(service: PredictionGuard, predictions: Any, metric: str | Metric = "accuracy") -> str:
    with pytest.raises(InputError) as caught:
        service.ask(predictions, metric)
    assert len(service.guard.history) == 0
    assert "\n" not in str(caught.value)
    return str(caught.value)


# How labels are read


@for_each(
    ("train", "holdout", "kind"),
    [
        (["0", "1"], ["1.0", "0.0"], "i"),
        ([0, 1], [0.0, 1.0], "i"),
        (["0.5", "-2"], ["1e-05", "3"], "f"),
        (["1.50", "2.25"], ["3.00", "-0.00"], "f"),
        (["1", "01"], ["1", "1"], "U"),
        (["1.1", "1.10"], ["1.1"], "U"),
        (["1", "1.0"], ["1"], "U"),
        (["1.1", "2"], ["1.10"], "U"),
        ([str(2**53), "1"], ["1"], "U"),
        ([2**60, 2**60 + 1], [2**60], "U"),
        (["NA", "None"], ["None"], "U"),
        (["1_0", "2"], ["1"], "U"),
        (["0.0", "-0.0", "0.5"], ["1"], "f"),
        ([True, False], [True], "U"),
        (["٣", "4"], ["4"], "U"),
    ],
)
def test_labels_are_numbers_only_where_none_are_merged(train: list[Any], holdout: list[Any], kind: str) -> None:
    found = labels_of(pd.Series(train), pd.Series(holdout), "y")
    assert found[0].dtype.kind == kind
    assert len(np.unique(found[0])) == len({str(v).replace("-0.0", "0.0") for v in train})


def test_every_float_that_python_writes_is_read_as_itself() -> None:
    rng = np.random.default_rng(5)
    values = [float(v) for v in rng.normal(size=200) * 10.0 ** rng.integers(-30, 30, size=200)]
    found = as_numbers([repr(v) for v in values])
    assert found is not None
    assert found[0].tolist() == values


@for_each("strange", ["inf", "-Infinity", "nan", "NA", "None", "null"])
def test_missing_and_infinite_values_among_numbers_are_refused(tmp_path: Path, strange: str) -> None:
    with pytest.raises(InputError, match="infinite or missing value among numbers, in row 2 of holdout"):
        made(tmp_path, ["0.5", "1.5"], ["0.5", strange])
    assert not (tmp_path / "guard.db").exists()


@for_each(
    ("labels", "words"),
    [
        ([0.5, np.inf], "infinite or missing"),
        ([0.5, np.nan], "is empty in row 2"),
        (["a", ""], "is empty in row 2"),
        ([pd.Timestamp(0), pd.Timestamp(1)], "a Timestamp in the column"),
        ([1 + 2j, 1j], "a complex in the column"),
        ([(1,), (2,)], "a tuple in the column"),
    ],
)
def test_what_is_no_label_is_refused(tmp_path: Path, labels: list[Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        made(tmp_path, labels, [0.5])
    assert not (tmp_path / "guard.db").exists()


def test_names_that_look_like_nothing_are_classes(tmp_path: Path) -> None:
    for name, part in zip(("train", "holdout"), tables(["NA", "None", "x"], ["None", "NA", "x"]), strict=True):
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    parts = [read_table(tmp_path / f"{name}.csv") for name in ("train", "holdout")]
    service = PredictionGuard.create(tmp_path / "guard.db", *parts, label="y", queries=5, mechanism="ladder")
    assert abs(service.ask(predicted(["NA", "None", "x"])).value - 0.66) <= 0.5
    assert service.labels == "read as text, 3 different ones in the training part"


def test_integers_written_as_floats_are_the_same_classes(tmp_path: Path) -> None:
    service = made(tmp_path, [0.0, 1.0], [0, 1])
    half = {"p_0": 0.5, "p_1": 0.5}
    answers = [
        (0.0, service.ask(predicted(["1.0", "0"]))),
        (1.0, service.ask(predicted([0, 1]))),
        (0.25, service.ask(predicted([0], **half), "brier_score")),
    ]
    for truth, answer in answers:
        assert abs(answer.value - truth) <= answer.half_width < 0.02


def test_01_and_1_are_two_classes(tmp_path: Path) -> None:
    service = made(tmp_path, ["01", "1"], ["01", "1"])
    assert service.ask(predicted(["01", "1"])).value == 1.0
    assert abs(service.ask(predicted(["1", "1"])).value - 0.5) < 0.3


def test_large_integers_stay_apart(tmp_path: Path) -> None:
    big = [2**60, 2**60 + 1]
    service = made(tmp_path, big, big)
    assert service.ask(predicted(big)).value == 1.0
    assert service.ask(predicted(big[::-1])).value == 0.0


# What errors show


def test_a_class_of_the_holdout_alone_counts_as_unseen_and_is_not_shown(tmp_path: Path) -> None:
    service = made(tmp_path, ["a", "b"], ["a", "b", "secret", "secret"])
    assert "p_a" in refused(service, predicted(["a"]), "log_loss")
    assert "secret" not in refused(service, predicted(["a"]), "brier_score")
    assert "which is for no such class" in refused(service, predicted(["a"], p_a=0.5, p_b=0.5, p_c=0.0), "log_loss")
    answer = service.ask(predicted(["a"], p_a=0.5, p_b=0.5), log_loss(2.0))
    # half of the holdout has an unseen class, whose loss is the clip
    assert abs(answer.value - (0.5 * np.log(2.0) + 0.5 * 2.0)) <= answer.half_width


def test_a_numeric_label_of_the_holdout_alone_is_not_shown(tmp_path: Path) -> None:
    service = made(tmp_path, [0, 1], [0, 1, 0.123])
    assert "0.123" not in refused(service, predicted([0]), "log_loss")
    answer = service.ask(predicted([0], p_0=0.5, p_1=0.5), "brier_score")
    assert abs(answer.value - (2 * 0.25 + 0.75) / 3) <= answer.half_width


@pytest.mark.slow
@for_each("metric", [log_loss(), brier_score()])
@for_each("labels", [list(range(101)), [0.125, 7.625]])
def test_probabilities_of_numbers_are_refused(tmp_path: Path, labels: list[float], metric: Metric) -> None:
    message = refused(made(tmp_path, labels, labels), predicted([0]), metric)
    assert "labels that are classes" in message
    assert ".625" not in message


@for_each("metric", [squared_error(1.0), absolute_error(1.0)])
def test_errors_of_text_labels_are_refused(tmp_path: Path, metric: Metric) -> None:
    message = refused(made(tmp_path, ["cat", "dog"], ["dog"]), predicted([0.5]), metric)
    assert "labels that were read as text" in message
    assert "cat" not in message
    assert "dog" not in message


def test_errors_of_a_metric_are_hidden(tmp_path: Path) -> None:
    def values(y: Any, output: Any, classes: Any) -> Any:
        raise KeyError(y[-1])

    message = refused(
        made(tmp_path, ["a"], ["secret"]), predicted(["a"]), Metric("own", "predict", values, (0.0, 1.0), True)
    )
    assert "got own, which raised KeyError" in message
    assert "secret" not in message


@for_each("fails", [True, False], ids=["raises", "out of range"])
def test_a_metric_that_fails_with_labels_of_the_holdout_is_charged_and_shows_none(tmp_path: Path, fails: bool) -> None:
    """One record at a time, whether a metric failed was a free and exact answer about the label of each."""

    def values(y: Any, output: Any, classes: Any) -> Any:
        if fails and (y == 7).any():
            raise KeyError(y[-1])
        return np.where(y == 7, 7.0, 0.0)

    metric = Metric("own", "predict", values, (0.0, 1.0), True)
    service = made(tmp_path, [0, 1], [0, 1, 7])
    if fails:
        with pytest.raises(InputError, match=r"^metric must be .*charged as an answer from the holdout") as caught:
            service.ask(predicted([0]), metric)
        assert "7" not in str(caught.value)
    else:
        assert 0.3 < service.ask(predicted([0]), metric).interval[1] <= 1.0
    history = service.guard.history
    assert len(history) == 1
    assert service.guard.status.answers_left == 0
    assert history["source"].tolist() == (["failed"] if fails else ["holdout"])


def test_probabilities_that_do_not_add_up_are_told_as_predictions(tmp_path: Path) -> None:
    service = made(tmp_path, [0, 1], [0, 1])
    assert refused(service, predicted([0], p_0=0.5, p_1=0.9), "log_loss").startswith("predictions must be ")


# Predictions of another kind


@pytest.mark.slow
@for_each(
    ("labels", "predictions", "words"),
    [
        ([0, 1], ["cat"], "text in column 'prediction', row 1"),
        ([0, 1], [0, 1, np.inf], "inf in column 'prediction', row 3"),
        ([0, 1], ["0", "-inf"], "-inf in column 'prediction', row 2"),
        ([0, 1], ["0", "1_0"], "text in column 'prediction', row 2"),
        ([0, 1], [2, 3], "without any of these labels"),
        (["cat", "dog"], [0, 1], "numbers in column 'prediction'"),
        (["01", "1"], [1], "numbers in column 'prediction'"),
        (["cat", "dog"], ["0", "Dog"], "without any of these labels"),
        ([True, False], ["1", "0"], "without any of these labels"),
    ],
)
def test_predictions_of_another_kind_are_refused(
    tmp_path: Path, labels: list[Any], predictions: list[Any], words: str
) -> None:
    service = made(tmp_path, labels, labels)
    assert words in refused(service, predicted(predictions))
    assert words in refused(service, predicted(predictions), "zero_one_loss")


def test_a_regression_needs_no_prediction_that_is_a_label(tmp_path: Path) -> None:
    assert made(tmp_path, [0.25, 0.75], [0.25, 0.75]).ask(predicted(["0.50"]), squared_error(1.0)).value == 0.0625


def test_predictions_that_are_no_table_are_refused(tmp_path: Path) -> None:
    service = made(tmp_path, [0, 1], [0, 1])
    assert "a list" in refused(service, [0, 1])
    twice = predicted([0, 1])
    twice.columns = pd.Index(["id", "id"])
    assert "two columns are called 'id'" in refused(service, twice)
    assert "no rows" in refused(service, predicted([0])[:0])


# Dependence


def test_edges_with_float_ids_meet_integer_ids(tmp_path: Path) -> None:
    train, holdout = (part.assign(id=part["id"].str[1:].astype(int)) for part in tables([0, 1], [0, 1]))
    edges = pd.DataFrame({"a": [1000.0, 1001.0, 5.0], "b": [1001.0, 1002.0, 1500.0]})
    service = PredictionGuard.create(
        tmp_path / "guard.db", train, holdout, label="y", graph=edges, queries=5, mechanism=Claims(holdout_answers=1)
    )
    sizes = service.guard.dependence.independent_groups()
    assert sizes is not None
    assert sorted(sizes.tolist()) == [1] * 997 + [3]
    assert service.note.startswith("1 edges touch both parts")
    assert PredictionGuard.open(tmp_path / "guard.db").note == service.note


@for_each(
    ("edges", "words"),
    [
        ({"a": ["r1000"], "b": ["1001"]}, "unknown id '1001' in row 1"),
        ({"a": ["r1000", None], "b": ["r1001", "r1002"]}, "column 'a' is empty in row 2"),
        ({"a": ["r1000"]}, "one column"),
        ({"a": [], "b": []}, "no rows"),
        ({"r1000": ["r1002"], "r1001": ["r1003"]}, "ids in the header"),
    ],
)
def test_bad_edges_are_refused(tmp_path: Path, edges: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        made(tmp_path, [0, 1], [0, 1], graph=pd.DataFrame(edges))
    assert not (tmp_path / "guard.db").exists()


def test_a_wrong_window_is_called_window(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^window must be .*; got -1"):
        made(tmp_path, [0, 1], [0, 1], window=-1)


def test_the_order_of_a_chain_is_that_of_its_numbers() -> None:
    table = pd.DataFrame({"t": ["10", "9", "100"], "when": ["2020-02-01", "2020-01-31", "2019-12-01"]})
    assert sorted_by(table, "t", "train")["t"].tolist() == ["9", "10", "100"]
    assert sorted_by(table, "when", "train")["t"].tolist() == ["100", "9", "10"]
    with pytest.raises(InputError, match="mixes kinds"):
        sorted_by(pd.DataFrame({"t": [1, "a"]}), "t", "train")


LAW = pd.DataFrame({"from": ["b", "a"], "a": [0.25, 0.9], "b": [0.75, 0.1]})


def chained(path: Path, start: float = N, law: Any = LAW, labels: tuple[str, str] = ("ab", "ab")) -> PredictionGuard:
    """Make a guard for a chain whose holdout begins at a time."""
    train, holdout = tables(*labels)
    parts = train.assign(t=range(N)), holdout.assign(t=start + np.arange(N))
    settings: dict[str, Any] = {"queries": 20, "mechanism": Claims(holdout_answers=1)}
    return PredictionGuard.create(path / "guard.db", *parts, label="y", order="t", transition=law, **settings)


def test_a_chain_is_declared_and_begins_after_the_last_training_label(tmp_path: Path) -> None:
    """Known labels beside the holdout leave no stationary start; the law is that of the rows as they are labelled."""
    guard = chained(tmp_path)
    expected = MarkovChain([[0.9, 0.1], [0.25, 0.75]], N, [0.25, 0.75])
    assert guard.guard.dependence.fingerprint() == expected.fingerprint()
    assert PredictionGuard.open(tmp_path / "guard.db").guard.dependence.fingerprint() == expected.fingerprint()
    stationary = MarkovChain([[0.9, 0.1], [0.25, 0.75]], N)
    assert expected.variance_inflation() > stationary.variance_inflation() > 1.0
    step = np.tanh(np.log(0.9 * 0.75 / (0.1 * 0.25)) / 4)  # what one step leaves, whatever comes before and after
    assert expected.variance_inflation() == pytest.approx((1 + step) / (1 - step), rel=0.01)


def test_an_estimated_chain_is_refused_and_what_the_refusal_names_works(tmp_path: Path) -> None:
    with pytest.raises(
        InputError,
        match=r"^order must be given with a window or a transition table; got an order alone",
    ):
        chained(tmp_path, law=None)
    assert not list(tmp_path.iterdir())
    assert made(tmp_path, "ab", "ab", window=3).guard.n == N
    (tmp_path / "guard.db").unlink()
    assert chained(tmp_path).guard.n == N


@for_each("start", [-N, N / 2 + 0.5, N - 1])
def test_a_holdout_of_a_chain_begins_after_the_training_part(tmp_path: Path, start: float) -> None:
    with pytest.raises(InputError, match=r"^order must be a column in which the holdout follows the last training row"):
        chained(tmp_path, start)
    assert not list(tmp_path.iterdir())


def test_rows_in_order_are_a_window_of_the_sorted_tables(tmp_path: Path) -> None:
    train, holdout = tables([0, 1], [0, 1])
    rng = np.random.default_rng(0)
    shuffled = holdout.assign(t=N + rng.permutation(N))
    settings: dict[str, Any] = {"label": "y", "order": "t", "window": 2}
    service = PredictionGuard.create(tmp_path / "guard.db", train.assign(t=range(N)), shuffled, **settings)
    assert service.guard.dependence.fingerprint() == MovingWindow(N, 2).fingerprint()
    assert service._records.holdout_ids == shuffled.sort_values("t")["id"].tolist()
    with pytest.raises(InputError, match=r"^order must be a column in which the holdout follows the last training row"):
        PredictionGuard.create(
            tmp_path / "other.db", train.assign(t=range(N)), holdout.assign(t=np.arange(N) - 0.5), **settings
        )
    with pytest.raises(InputError, match=r"order must be left out beside groups; got a column"):
        made(tmp_path, [0, 1], [0, 1], order="id", groups="id")


@for_each(
    ("law", "message"),
    [
        (LAW.assign(a=[0.25, 0.8]), "sum"),
        (LAW[:1], "each label once as row and as column"),
        (LAW.rename(columns={"b": "c"}), "each label once as row and as column"),
        (LAW[["from"]], "a table of 0 labels"),
        (LAW.assign(a=["x", "y"]), "text in column 'a', row 1"),
        (LAW.iloc[1:, :2].assign(a=1.0), "a table without 1000 labels"),
        ([[0.9, 0.1], [0.25, 0.75]], "transition must be"),
    ],
    ids=["sum", "row", "name", "no columns", "text", "label", "list"],
)
def test_laws_of_chains_that_cannot_be_used_are_refused(tmp_path: Path, law: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        chained(tmp_path, law=law)
    assert not list(tmp_path.iterdir())


def test_a_law_of_numbers_is_that_of_labels_that_are_numbers(tmp_path: Path) -> None:
    law = pd.DataFrame({"from": [0, 1], "0": [0.9, 0.25], "1": [0.1, 0.75]})
    guard = chained(tmp_path, law=law, labels=([0, 1], [0, 1]))  # type: ignore[arg-type]
    expected = MarkovChain([[0.9, 0.1], [0.25, 0.75]], N, [0.25, 0.75])
    assert guard.guard.dependence.fingerprint() == expected.fingerprint()
    with pytest.raises(InputError, match="given with an order"):
        made(tmp_path, [0, 1], [0, 1], transition=law)


# Ledgers


def test_an_existing_guard_must_be_the_same(tmp_path: Path) -> None:
    made(tmp_path, [0, 1], [0, 1])
    made(tmp_path, [0, 1], [0, 1])
    with pytest.raises(LedgerMismatch, match="another training part"):
        made(tmp_path, [1, 0], [0, 1])
    with pytest.raises(LedgerMismatch, match="declared with sampling = 'fixed_features', not 'independent'"):
        made(tmp_path, [0, 1], [0, 1], window=2)
    with pytest.raises(LedgerMismatch, match="dependence"):
        made(tmp_path, [0, 1], [0, 1], graph=pd.DataFrame({"a": ["r1000"], "b": ["r1001"]}))
    with pytest.raises(LedgerMismatch, match="another holdout"):
        made(tmp_path, [0, 1], [1, 0])
    train, holdout = (part.rename(columns={"id": "key"}) for part in tables([0, 1], [0, 1]))
    with pytest.raises(LedgerMismatch, match="another id column"):
        PredictionGuard.create(
            tmp_path / "guard.db", train, holdout, label="y", id="key", queries=20, mechanism=Claims(holdout_answers=1)
        )


def test_parameters_are_found_again(tmp_path: Path) -> None:
    path = tmp_path / "guard.db"
    ladder = LadderParameters(direction="minimize", queries=4)
    PredictionGuard.create(path, *tables([0, 1], [0, 1]), label="y", queries=4, mechanism=ladder)
    assert PredictionGuard.open(path).guard.parameters == ladder


def test_a_ladder_names_the_ladder_of_the_other_direction(tmp_path: Path) -> None:
    service = PredictionGuard.create(
        tmp_path / "guard.db", *tables([0, 1], [0, 1]), label="y", queries=20, mechanism="ladder"
    )
    with pytest.raises(InputError, match=r"mechanism=LadderParameters\(direction='minimize', queries=20\)"):
        service.ask(predicted([0, 1]), "zero_one_loss")


# Tables


def test_a_bom_and_ragged_rows(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b"\xef\xbb\xbfid,y\r\n1,2\r\n")
    assert read_table(path).columns.tolist() == ["id", "y"]
    path.write_text("id,y\n1,2,3\n")
    with pytest.raises(InputError, match="CSV"):
        read_table(path)
    with pytest.raises(InputError, match="No such file"):
        read_table(tmp_path / "none.csv")
    path.write_text('id,y\n"",2\n')
    assert read_table(path)["id"].isna().all()


def test_numbers_in_text_are_the_same_content() -> None:
    train = pd.DataFrame({"id": ["a"], "x": ["1.0"], "y": ["cat"], "z": [None], "left": ["q"]})
    holdout = pd.DataFrame({"id": ["b"], "y": ["cat"], "x": ["1"], "z": ["2"]})
    one, other = shared_content(train, holdout, "id")
    assert one.columns.tolist() == other.columns.tolist() == ["x", "y", "z"]
    assert one["x"].tolist() == other["x"].tolist() == [1]


def test_numbers_of_many_kinds() -> None:
    column = pd.Series([1, "2.50", True, np.float32(0.5)], dtype=object)
    assert numbers(column, "predictions", "prediction").tolist() == [1.0, 2.5, 1.0, 0.5]
    with pytest.raises(InputTypeError):
        labels_of(pd.Series([b"x"]), pd.Series([b"x"]), "y")


def test_records_joined_through_a_training_record_are_one_group(tmp_path: Path) -> None:
    table = pd.DataFrame({"id": [f"r{k}" for k in range(40)], "x": range(40), "y": [0, 1] * 20})
    edges = pd.DataFrame({"a": ["r0", "r0"], "b": ["r30", "r31"]})
    service = PredictionGuard.create(
        tmp_path / "guard.db",
        table[:20],
        table[20:],
        label="y",
        graph=edges,
        queries=2,
        mechanism=Claims(holdout_answers=1),
        confidence=0.5,
    )
    assert sorted(np.bincount(service.guard.dependence.groups))[-2:] == [1, 2]  # type: ignore[attr-defined]


def test_many_services_share_a_server() -> None:
    """A ledger that is open stands for a server here; the tests of PostgreSQL have one."""
    ledger = MemoryLedger()
    services = {}
    for name, labels in {"first": [0, 1] * 50, "second": [0, 0, 1, 1] * 25}.items():
        train, holdout = tables(labels, labels)
        holdout["id"] = train["id"] = [f"{name} {i}" for i in range(len(train))]
        holdout["id"] += " held"
        settings: dict[str, Any] = {
            "label": "y",
            "queries": 9,
            "mechanism": Claims(holdout_answers=2),
            "allow_duplicates": True,
        }
        services[name] = PredictionGuard.create(ledger, train, holdout, **settings)
        again = PredictionGuard.create(ledger, train, holdout, **settings)
        assert again.identity == services[name].identity
        with pytest.raises(LedgerMismatch, match="another training part"):
            PredictionGuard.create(ledger, train[1:], holdout, **settings)
    assert len(ledger.guards()) == 2
    Thresholdout(np.arange(100.0), queries=9, mechanism=Claims(holdout_answers=2), ledger=ledger)
    for name, service in services.items():
        found = PredictionGuard.open(ledger, service.identity[:8])
        assert (found.identity, found.queries) == (service.identity, 9)
        assert found._records.train_ids[3] == f"{name} 3"
    with pytest.raises(
        InputError, match=r"guard is missing: pass the first characters .* memory has 2 guards with labels"
    ):
        PredictionGuard.open(ledger)
    with pytest.raises(InputError, match="got 'x', with which no such identities begin"):
        PredictionGuard.open(ledger, "x")


def test_a_guard_without_labels_is_refused_and_left_as_it_is() -> None:
    ledger = MemoryLedger()
    train, holdout = tables([0, 1] * 20, [1, 0] * 20)
    records = [(np.asarray(t["id"].astype(str)), np.asarray(t["y"])) for t in (holdout, train)]
    Thresholdout(
        records[0],
        train=records[1],
        queries=9,
        mechanism=Claims(holdout_answers=2),
        sampling="fixed_features",
        ledger=ledger,
    )
    with pytest.raises(LedgerMismatch, match="created without labels"):
        PredictionGuard.create(
            ledger, train, holdout, label="y", queries=9, mechanism=Claims(holdout_answers=2), allow_duplicates=True
        )
    with pytest.raises(LedgerUnusable, match="has no guard with labels"):
        PredictionGuard.open(ledger)
    assert [ledger.documents(identity) for identity in ledger.guards()] == [[CONTENT, ORDER]]
