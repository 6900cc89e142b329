from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix

from tests.cases import for_each
from thresholdout.data.identity import Part, content_of, part
from thresholdout.data.overlap import check_disjoint
from thresholdout.errors import InputError, InputTypeError, OverlapError

X = np.arange(12.0).reshape(4, 3)
Y = np.array([0, 1, 0, 1])


def identity(data: Part) -> str:
    return content_of(data).identity


def order(data: Part) -> str:
    return content_of(data).order


def test_the_same_content_has_the_same_identity() -> None:
    for known in (identity, order):
        expected = known((X, Y))
        assert len(expected) == 64
        assert expected == known((X.tolist(), Y.tolist()))
        assert expected == known((X.astype(np.float32), Y.astype(bool)))
        assert expected == known((pd.DataFrame(X, columns=list("abc")), pd.Series(Y, index=[3, 2, 1, 0])))
        assert expected == known((np.asfortranarray(X), Y))
        assert expected == known((X - 0.0, Y))
    assert identity((X, Y)) == identity((csr_matrix(X), Y))


def test_the_order_of_records_has_a_digest_of_its_own() -> None:
    turned = (X[::-1], Y[::-1])
    assert identity(turned) == identity((X, Y))
    assert order(turned) != order((X, Y))
    assert identity((X[::-1], Y)) != identity((X, Y))
    assert identity((np.repeat(X, 2, axis=0), np.repeat(Y, 2))) != identity((X, Y))


@for_each(
    "other",
    [
        (X + 1e-9, Y),
        (X, 1 - Y),
        (X[:3], Y[:3]),
        (X,),
        (X.reshape(4, 3, 1)[:, :2], Y),
        (np.where(X == 5, np.nan, X), Y),
        (X, Y.astype(str)),
        (np.hstack([X, np.zeros((4, 1))]), Y),
        (X[:, ::-1], Y),
    ],
)
def test_other_content_has_another(other: tuple[object, ...]) -> None:
    for known in (identity, order):
        assert known(other) != known((X, Y))


def test_texts_cannot_run_into_each_other() -> None:
    one, other = np.array(["a", "1:b"], dtype=object), np.array(["a1:b", ""], dtype=object)
    for known in (identity, order):
        assert known((one,)) != known((other,))


def test_shared_records_are_found() -> None:
    check_disjoint((X[:2], Y[:2]), (X[2:], Y[2:]))
    check_disjoint((X, Y), (X, 1 - Y))  # the same features with another label: another record
    with pytest.raises(OverlapError, match="2 of 3 holdout records"):
        check_disjoint((X[:3], Y[:3]), (X[1:], Y[1:]))
    with pytest.raises(OverlapError):
        check_disjoint((csr_matrix(X), Y), (csr_matrix(X[3:]), Y[3:]))
    mixed = pd.DataFrame({"a": ["x", "y", "z"], "b": [1, 2, 3]})
    check_disjoint((mixed[:1],), (mixed[1:],))
    with pytest.raises(OverlapError):
        check_disjoint((mixed[:2],), (mixed[1:],))


@for_each("data", [(), (X, Y[:3]), X[:0], ([], [])])
def test_refuses_parts(data: object) -> None:
    with pytest.raises(InputError, match="holdout"):
        part(data, "holdout")


@for_each("data", ["text", 3, (X, "text"), np.float64(3), (X, None)])
def test_refuses_what_is_no_data(data: object) -> None:
    with pytest.raises(InputTypeError, match="holdout"):
        part(data, "holdout")


def test_frames_of_polars_with_times_beside_numbers_are_those_of_pandas() -> None:
    """An array of a whole frame gives numbers and times one type, or fails where one is missing."""
    columns = {
        "number": [1, 2, 3],
        "real": [0.5, None, 2.0],
        "text": ["x", None, "z"],
        "time": [datetime(2020, 1, 1), None, datetime(2021, 5, 6, 7, 8, 9)],
        "right": [True, False, True],
    }
    theirs = identity((pl.DataFrame(columns),))
    assert theirs == identity((pd.DataFrame(columns),))
    days = {"number": [1, 2], "day": [datetime(2020, 1, 1), datetime(2020, 1, 2)]}
    of_polars = pl.DataFrame(days).with_columns(pl.col("day").cast(pl.Date))
    assert identity((of_polars,)) == identity((pd.DataFrame(days),))
