"""Records and groups that are in both parts are found, whatever they went through; others are not."""

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.model_selection import GroupShuffleSplit

from graphs import Communities, Groups, MovingWindow
from tests.cases import for_each
from thresholdout import Claims, Thresholdout
from thresholdout.data.overlap import _among, check_disjoint
from thresholdout.errors import InputError, OverlapError

RNG = np.random.default_rng(11)
N = 400
X, Y = RNG.normal(size=(2 * N, 3)), RNG.integers(0, 2, 2 * N)
OTHER = slice(0, N - 10)  # 10 records of the first N are in the second part too
BOTH = slice(N - 10, 2 * N)

STORED: dict[str, Any] = {
    "single": lambda X: X.astype(np.float32),
    "half": lambda X: X.astype(np.float16),
    "single and back": lambda X: X.astype(np.float32).astype(np.float64),
    "half as single": lambda X: X.astype(np.float16).astype(np.float32),
    "other byte order": lambda X: X.astype(">f8"),
    "single in the other byte order": lambda X: X.astype(">f4"),
    "objects": lambda X: X.astype(object),
    "lists of single": lambda X: X.astype(np.float32).tolist(),
    "frame": lambda X: pd.DataFrame(X),
    "frame of single": lambda X: pd.DataFrame(X.astype(np.float32), columns=list("abc")),
    "frame with one column of single": lambda X: pd.DataFrame(X).astype({1: np.float32}),
    "nullable": lambda X: pd.DataFrame(X).astype("Float32"),
    "sparse": lambda X: csr_matrix(X.astype(np.float32)),
    "columns in memory": lambda X: np.asfortranarray(X.astype(np.float32)),
}


@for_each("kind", STORED)
@for_each("turned", [False, True], ids=["train stored", "holdout stored"])
def test_copies_are_found_whatever_they_were_stored_in(kind: str, turned: bool) -> None:
    parts = (STORED[kind](X[:N]), Y[:N]), (X[BOTH], Y[BOTH])
    with pytest.raises(OverlapError, match=rf"^train must be .*; got 10 of {N if turned else N + 10} holdout records"):
        check_disjoint(*(parts[::-1] if turned else parts))
    apart = (STORED[kind](X[OTHER]), Y[OTHER]), (X[BOTH], Y[BOTH])
    check_disjoint(*(apart[::-1] if turned else apart))


TIMES: dict[str, Any] = {
    "another zone": lambda times: times.dt.tz_convert("Asia/Tokyo"),
    "no zone, in UTC": lambda times: times.dt.tz_convert("UTC").dt.tz_localize(None),
    "Python's own": lambda times: pd.Series([time.to_pydatetime() for time in times], dtype=object),
    "Python's own without a zone": lambda times: pd.Series(
        [time.to_pydatetime() for time in TIMES["no zone, in UTC"](times)], dtype=object
    ),
    "coarser": lambda times: times.astype("datetime64[s, Europe/Berlin]"),
}


@for_each("kind", TIMES)
@for_each("turned", [False, True], ids=["train stored", "holdout stored"])
def test_copies_of_times_are_found_in_any_zone(kind: str, turned: bool) -> None:
    times = pd.Series(pd.date_range("2024-03-30", periods=2 * N, freq="7h", tz="Europe/Berlin"))
    other = TIMES[kind](times)
    first = pd.DataFrame({"t": other[:N], "x": X[:N, 0]}), Y[:N]
    second = pd.DataFrame({"t": times[BOTH], "x": X[BOTH, 0]}), Y[BOTH]
    with pytest.raises(OverlapError, match=rf"^train must be .*; got 10 of {N if turned else N + 10} holdout records"):
        check_disjoint(*((second, first) if turned else (first, second)))
    apart = pd.DataFrame({"t": other[OTHER], "x": X[OTHER, 0]}), Y[OTHER]
    check_disjoint(*((second, apart) if turned else (apart, second)))


def test_copies_with_decimal_fractions_are_found() -> None:
    exact = np.array([[Decimal(value) for value in row] for row in X[:N].tolist()], dtype=object)
    with pytest.raises(OverlapError, match="10 of 410 holdout records"):
        check_disjoint((exact, Y[:N]), (X[BOTH], Y[BOTH]))


def test_a_guard_refuses_copies_and_names_what_works() -> None:
    settings: dict[str, Any] = {"queries": 5, "mechanism": Claims(holdout_answers=1)}
    with pytest.raises(
        OverlapError,
        match=r"Drop these records from one part or, .* pass allow_duplicates=True",
    ):
        Thresholdout((X[BOTH], Y[BOTH]), train=(X[:N].astype(np.float32), Y[:N]), **settings)
    for train, more in (((X[OTHER].astype(np.float32), Y[OTHER]), {}), ((X[:N], Y[:N]), {"allow_duplicates": True})):
        assert Thresholdout((X[BOTH], Y[BOTH]), train=train, **settings, **more).status.answers_left == 1  # type: ignore[arg-type]


def test_one_copy_among_originals_is_found() -> None:
    train = np.vstack([X[OTHER], X[-1:].astype(np.float32)])
    with pytest.raises(OverlapError, match="1 of 410 holdout records"):
        check_disjoint((train, np.r_[Y[OTHER], Y[-1:]]), (X[BOTH], Y[BOTH]))
    check_disjoint((train, np.r_[Y[OTHER], 1 - Y[-1:]]), (X[BOTH], Y[BOTH]))  # another label, another record


def test_labels_that_are_numbers_may_be_rounded_or_not() -> None:
    y = RNG.normal(size=2 * N)
    for labels in (y[:N], y[:N].astype(np.float32)):
        with pytest.raises(OverlapError, match="10 of 410"):
            check_disjoint((X[:N].astype(np.float32), labels), (X[BOTH], y[BOTH]))


def test_numbers_and_their_types_are_told_by_value() -> None:
    counts = RNG.integers(0, 10**6, (2 * N, 2))
    for stored in (counts[:N].astype(np.float64), counts[:N].astype(np.int32), counts[:N].astype(object)):
        with pytest.raises(OverlapError, match="10 of 410"):
            check_disjoint((stored, Y[:N]), (counts[BOTH], Y[BOTH].astype(np.float64)))


@for_each("start", [0, 5_000, 20_000_000])
@for_each("turn", [False, True])
def test_numbers_of_records_that_rounding_makes_equal_are_no_copies(start: int, turn: bool) -> None:
    """From 2,048 on half precision has no odd numbers, single precision from 16,777,216 on."""
    ids = np.arange(start, start + 2 * N)[:, None]
    half = np.random.default_rng(0).permutation(2 * N) if turn else np.r_[0 : 2 * N : 2, 1 : 2 * N : 2]
    for of in (np.asarray, pd.DataFrame):
        check_disjoint((of(ids[half[:N]]), Y[:N] * 0), (of(ids[half[N:]]), Y[:N] * 0))


def test_a_column_of_numbers_beside_rounded_ones_hides_nothing() -> None:
    ids = np.arange(20_000_000, 20_000_000 + 2 * N)
    frame = pd.DataFrame({"id": ids, "a": X[:, 0], "b": X[:, 1]})
    kept = frame.astype({"a": np.float32, "b": np.float32})
    for stored in (kept, frame.astype(np.float32)):
        with pytest.raises(OverlapError, match="10 of 410 holdout records, rounded"):
            check_disjoint((stored[:N], Y[:N]), (frame[BOTH], Y[BOTH]))


def test_different_measurements_are_no_copies() -> None:
    rng = np.random.default_rng(5)
    for kind in ("single", "half"):
        for _ in range(20):
            one, other = rng.normal(size=(2, 1000, 3))
            check_disjoint((STORED[kind](one), Y[:1] * np.ones(1000)), (other, Y[:1] * np.ones(1000)))


@for_each("size", [1, 2, 300])
def test_keys_among_others(size: int) -> None:
    """Keys that begin alike, and in all of their bits: against Python's sets."""
    rng = np.random.default_rng(size)
    keys = rng.integers(0, 2**64, size, dtype=np.uint64)
    for others in (keys ^ np.uint64(1), keys[: size // 2 + 1], rng.permutation(keys), keys + np.uint64(2**63)):
        known = set(others.tolist())
        assert _among(keys, others).tolist() == [key in known for key in keys.tolist()]
    near = keys[0] + np.arange(50, dtype=np.uint64)
    assert _among(near, near[::3]).tolist() == [k % 3 == 0 for k in range(50)]


# Groups


def grouped(groups: Any, **changes: Any) -> Thresholdout:
    settings: dict[str, Any] = {"train": (X[:N], Y[:N]), "queries": 5, "mechanism": Claims(holdout_answers=1)}
    return Thresholdout((X[N:], Y[N:]), **{"dependence": Groups(groups), **settings, **changes})


def test_groups_in_both_parts_are_refused_and_what_the_refusal_names_works() -> None:
    train_groups, holdout_groups = np.arange(N) // 4, np.arange(N) // 4 + 95
    with pytest.raises(OverlapError) as caught:
        grouped(holdout_groups, train=(X[:N], Y[:N], train_groups))
    assert "got 5 of its 100 groups, with 20 of 400 training records." in str(caught.value)
    keep = ~np.isin(train_groups, holdout_groups)
    assert "keep = ~np.isin(train_groups, holdout_groups)" in caught.value.advice
    guard = grouped(holdout_groups, train=(X[:N][keep], Y[:N][keep], train_groups[keep]))
    assert guard.status.answers_left == 1
    assert grouped(holdout_groups).status.answers_left == 1  # nobody has said whose the training records are


@for_each("of", [list, pd.Series, lambda names: pd.Categorical(names), tuple])
def test_names_of_groups_may_be_texts(of: Any) -> None:
    names = [f"patient {k // 4}" for k in range(2 * N)]
    assert grouped(of(names[N:]), train=(X[:N], Y[:N], of(names[:N]))).status.answers_left == 1
    with pytest.raises(OverlapError, match="1 of its 101 groups"):
        grouped(of(["patient 0", *names[N + 1 :]]), train=(X[:N], Y[:N], of(names[:N])))


def test_groups_split_by_scikit_learn_are_accepted() -> None:
    groups = np.arange(2 * N) // 5
    fit, held = next(GroupShuffleSplit(1, test_size=0.5, random_state=0).split(X, groups=groups))
    guard = Thresholdout(
        (X[held], Y[held]),
        train=(X[fit], Y[fit], groups[fit]),
        dependence=Groups(groups[held]),
        queries=5,
        mechanism=Claims(holdout_answers=1),
    )
    assert guard.n == len(held)


def test_communities_have_names_too() -> None:
    names = np.arange(N) // 4
    for shared, model in ((False, Communities(names + 100)), (True, Communities(names + 99))):
        settings: dict[str, Any] = {"dependence": model, "train": (X[:N], Y[:N], names)}
        if not shared:
            assert grouped(names, **settings).n == N
            continue
        with pytest.raises(OverlapError, match="1 of its 100 groups"):
            grouped(names, **settings)


@for_each(
    ("own", "changes", "message"),
    [
        (np.arange(N - 1), {}, "399 groups for 400 training records"),
        ([f"{k}" for k in range(N)], {}, "texts beside numbers for the holdout's groups"),
        ([None] * N, {}, "a missing label of record 0"),
        ({k: k for k in range(N)}, {}, "groups must be"),
        (np.arange(N), {"dependence": MovingWindow(N, 3)}, r"\(X, y, groups\) in both parts"),
        (np.arange(N), {"dependence": None}, r"\(X, y, groups\) in both parts"),
        (pd.Series(np.arange(N), index=np.arange(N) + 3), {}, "groups must be .*; got values with an index"),
    ],
)
def test_groups_that_cannot_be_compared_are_refused(own: Any, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        grouped(np.arange(N) + N, train=(X[:N], Y[:N], own), **changes)
