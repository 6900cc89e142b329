"""Hashes of records, against Python's integers: whatever holds the records, and however many there are at a time."""

from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from tests.oracles.row_hashes import holdout_identity, holdout_order, record_hash, row_hash
from thresholdout.data import row_hashes as module
from thresholdout.data.identity import _sorted, identity, order
from thresholdout.data.row_hashes import record_hashes, row_hashes

NUMBERS = [
    [0.0, -0.0, 1.5],
    [np.nan, 3.0, -2.0],
    [np.inf, -np.inf, 0.0],
    [5e-324, 1e308, 0.1],
    [-np.inf, np.nan, 7.0],
]
TEXTS = [["a", "x"], ["b", "ä"], ["a", ""], ["b", "x"], ["a", "long" * 50]]


def listed(hashes: np.ndarray) -> list[tuple[int, int]]:
    return [(int(first), int(second)) for first, second in hashes]


def test_numbers() -> None:
    assert listed(row_hashes(np.array(NUMBERS))) == [row_hash(row) for row in NUMBERS]
    assert listed(row_hashes(csr_matrix(np.array(NUMBERS)))) == [row_hash(row) for row in NUMBERS]
    assert listed(row_hashes(np.array(NUMBERS, dtype=object))) == [row_hash(row) for row in NUMBERS]


@pytest.mark.parametrize("dtype", ["f2", "f4", ">f8", "g", "i1", "u1", "i4", ">i2", "u8", "i8", "?"])
def test_every_type_of_numbers(dtype: str) -> None:
    values = np.arange(12).reshape(4, 3).astype(dtype)
    expected = [row_hash(row) for row in values.astype(np.float64).tolist()]
    assert listed(row_hashes(values)) == expected
    assert listed(row_hashes(pd.DataFrame(values.astype(values.dtype.newbyteorder("="))))) == expected


@pytest.mark.parametrize("shape", [(7, 3), (3, 130), (50, 64), (1, 1), (33, 65), (4, 2, 3)])
def test_every_shape_in_blocks(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 256)
    values = np.random.default_rng(0).normal(size=shape).round(1)
    expected = [row_hash(row) for row in values.reshape(shape[0], -1).tolist()]
    assert listed(row_hashes(values)) == expected
    assert listed(row_hashes(np.asfortranarray(values))) == expected


@pytest.mark.parametrize(
    "held",
    [
        lambda: np.array(TEXTS),
        lambda: np.array(TEXTS, dtype=object),
        lambda: pd.DataFrame(TEXTS),
        lambda: pd.DataFrame(TEXTS, dtype="category"),
        lambda: pd.DataFrame(TEXTS, dtype=object),
        lambda: TEXTS,
    ],
)
def test_texts(held: Any) -> None:
    assert listed(row_hashes(held())) == [row_hash(row) for row in TEXTS]


def test_texts_in_other_columns_are_other_rows() -> None:
    rows = np.array(list(product(["no", "yes"], repeat=12)), dtype=object)
    assert len(np.unique(row_hashes(rows), axis=0)) == len(rows) == 2**12
    swapped = np.array([["a", "b", "b", "a"], ["b", "a", "a", "b"]])
    assert (row_hashes(swapped)[0] != row_hashes(swapped)[1]).all()


def test_a_hash_is_of_its_row_alone() -> None:
    rows: list[list[float | str]] = [["a", "b"], [1.0, "b"], [np.nan, "b"], ["b", 2.0], [0.0, 3.0], ["a", "c"]]
    table = np.array(rows, dtype=object)
    for size in (1, 2, 6):
        found = [listed(row_hashes(table[first : first + size])) for first in range(0, 6, size)]
        assert [pair for part in found for pair in part] == [row_hash(row) for row in rows]
    assert listed(row_hashes(pd.DataFrame(table).infer_objects())) == [row_hash(row) for row in rows]


def test_columns_of_anything() -> None:
    items = ["a", 1, 1.0, True, None, np.nan, pd.NA, pd.NaT, 2**70, "1", np.float64(1), np.int64(2), b"a"]
    plain: list[float | str] = ["a", 1.0, 1.0, 1.0, *[np.nan] * 4, 2.0**70, "1", 1.0, 2.0, "b'a'"]
    column = np.empty(len(items), dtype=object)
    column[:] = items
    assert listed(row_hashes(column)) == [row_hash([value]) for value in plain]
    more = [*items, (1,), (1.0,), Decimal("0.5"), np.bool_(True), 1j]
    column = np.empty(len(more), dtype=object)
    column[:] = more
    expected: list[float | str] = [*plain, "tuple [1]", "tuple [1.0]", 0.5, "True", "1j"]
    assert listed(row_hashes(column)) == [row_hash([value]) for value in expected]  # what is equal may differ in text


def test_times() -> None:
    times = np.array(["2020-01-01", "1970-01-01", "2020-01-01", "NaT"], dtype="datetime64[ns]")
    nanoseconds = [1577836800 * 10**9, 0, 1577836800 * 10**9, -(2**63)]
    expected = [row_hash([f"ns {value}"]) for value in nanoseconds]
    for unit in ("s", "us", "ns"):
        assert listed(row_hashes(times.astype(f"datetime64[{unit}]"))) == expected


def test_records_and_digests() -> None:
    pieces = np.array(NUMBERS), np.array(TEXTS), [0, 1, 1, 0, 1]
    rows = NUMBERS, TEXTS, [[0.0], [1.0], [1.0], [0.0], [1.0]]
    assert listed(record_hashes(pieces)) == [record_hash(*row) for row in zip(*rows, strict=True)]
    assert identity(pieces) == holdout_identity(*rows)
    assert order(pieces) == holdout_order(*rows)


def test_rows_are_sorted_by_both_halves() -> None:
    rng = np.random.default_rng(0)
    hashes = rng.integers(0, 4, (200, 2)).astype(np.uint64)  # first halves that agree do not occur in fact
    for rows in (hashes, hashes.T.copy().T, np.unique(rng.integers(0, 2**63, (200, 2)).astype(np.uint64), axis=0)):
        assert listed(_sorted(rows)) == sorted(listed(rows))
