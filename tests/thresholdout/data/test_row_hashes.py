"""Hashes of records, against Python's integers: whatever holds the records, and however many there are at a time."""

from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from tests.cases import for_each
from tests.oracles.row_hashes import Entry, Time, holdout_identity, holdout_order, mixed, record_hash, row_hash, siphash
from thresholdout.data import hashed_entries
from thresholdout.data import row_hashes as module
from thresholdout.data.identity import RecordSums, content_of
from thresholdout.data.row_hashes import record_hashes, record_keys, row_hashes
from thresholdout.errors import ThresholdoutError

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


@for_each("dtype", ["f2", "f4", ">f8", "g", "i1", "u1", "i4", ">i2", "u8", "i8", "?"])
def test_every_type_of_numbers(dtype: str) -> None:
    values = np.arange(12).reshape(4, 3).astype(dtype)
    expected = [row_hash(row) for row in values.astype(np.float64).tolist()]
    assert listed(row_hashes(values)) == expected
    assert listed(row_hashes(pd.DataFrame(values.astype(values.dtype.newbyteorder("="))))) == expected


@for_each("shape", [(7, 3), (3, 130), (50, 64), (1, 1), (33, 65), (4, 2, 3)])
def test_every_shape_in_blocks(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 256)
    values = np.random.default_rng(0).normal(size=shape).round(1)
    expected = [row_hash(row) for row in values.reshape(shape[0], -1).tolist()]
    assert listed(row_hashes(values)) == expected
    assert listed(row_hashes(np.asfortranarray(values))) == expected


@for_each(
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
    rows: list[list[Entry]] = [["a", "b"], [1.0, "b"], [np.nan, "b"], ["b", 2.0], [0.0, 3.0], ["a", "c"]]
    table = np.array(rows, dtype=object)
    for size in (1, 2, 6):
        found = [listed(row_hashes(table[first : first + size])) for first in range(0, 6, size)]
        assert [pair for part in found for pair in part] == [row_hash(row) for row in rows]
    assert listed(row_hashes(pd.DataFrame(table).infer_objects())) == [row_hash(row) for row in rows]


def test_columns_of_anything() -> None:
    items = ["a", 1, 1.0, True, None, np.nan, pd.NA, pd.NaT, 2**70, "1", np.float64(1), np.int64(2), b"a"]
    plain: list[Entry] = ["a", 1.0, 1.0, 1.0, *[np.nan] * 4, 2.0**70, "1", 1.0, 2.0, "b'a'"]
    column = np.empty(len(items), dtype=object)
    column[:] = items
    assert listed(row_hashes(column)) == [row_hash([value]) for value in plain]
    more = [*items, (1,), (1.0,), Decimal("0.5"), np.bool_(True), 1j]
    column = np.empty(len(more), dtype=object)
    column[:] = more
    expected: list[Entry] = [*plain, "tuple [1]", "tuple [1.0]", 0.5, 1.0, "1j"]
    assert listed(row_hashes(column)) == [row_hash([value]) for value in expected]  # what is equal may differ in text


def test_siphash_is_the_published_one() -> None:
    """The test vector of the paper's appendix A."""
    assert siphash(bytes(range(16)), bytes(range(15))) == 0xA129CA6149BE45E5


def test_a_pandas_that_hashes_texts_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [mixed(siphash(key, b"abcdefgh")) for key in (b"thresholdout txt", b"of other records")]
    assert expected == hashed_entries._EXPECTED
    hashed_entries._check_words.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(hashed_entries, "_SIP_KEYS", ("of other records", "thresholdout txt"))
        with pytest.raises(ThresholdoutError, match=r"^pandas .* hashes texts otherwise"):
            row_hashes(["a"])
    row_hashes(["a"])


def test_halves_of_characters_are_texts() -> None:
    items = np.array(["\ud800", "ä", "\udfff"], dtype=object)
    assert listed(row_hashes(items)) == [row_hash([item]) for item in items]


@for_each("kind", ["M", "m"])
@for_each("unit", ["W", "D", "h", "m", "s", "ms", "us", "ns"])
def test_times(kind: str, unit: str) -> None:
    seconds = {"W": 604800, "D": 86400, "h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
    counts = [0, 1, -3, 15000]
    expected = [row_hash([Time(round(count * seconds[unit] * 1e9))]) for count in counts]
    times = np.array(counts).astype(f"{kind}8[{unit}]")
    assert listed(row_hashes(times)) == expected
    assert listed(row_hashes(times.astype(f">{kind}8[{unit}]"))) == expected
    missing = row_hashes(np.array(["NaT", "NaT"], dtype=f"{kind}8[{unit}]"))
    assert listed(missing) == [row_hash([np.nan])] * 2


def test_times_of_every_library_are_the_same() -> None:
    texts = ["2020-01-01 12:00:00.000001", "1969-07-20", "NaT", "2020-02-29"]
    moments = pd.Series(pd.to_datetime(texts, format="mixed"))
    expected = listed(row_hashes(moments))
    day = 86400 * 10**9
    stamps = [18262 * day + day // 2 + 1000, -165 * day, None, 18321 * day]
    assert expected == [row_hash([np.nan if stamp is None else Time(stamp)]) for stamp in stamps]
    zoned = moments.dt.tz_localize("UTC")
    for held in (
        moments.astype("datetime64[ns]"),
        zoned,
        zoned.dt.tz_convert("Asia/Tokyo"),
        moments.astype(object),
        zoned.astype(object),
        pd.Series([None if pd.isna(moment) else moment.to_pydatetime() for moment in zoned], dtype=object),
        moments.to_numpy().astype(object),
        pd.Series(list(moments.to_numpy()), dtype=object),
    ):
        assert listed(row_hashes(held)) == expected
    days = moments.dt.normalize()
    dates = days.astype(object).map(lambda moment: None if pd.isna(moment) else moment.date())
    assert listed(row_hashes(dates)) == listed(row_hashes(days))
    lengths = pd.Series(pd.to_timedelta([1, 90_000_000_000_001, None], unit="us"))
    for held in (lengths.astype(object), pd.Series([None if pd.isna(x) else x.to_pytimedelta() for x in lengths])):
        assert listed(row_hashes(held)) == listed(row_hashes(lengths))


def test_nullable_columns_are_those_of_numpy() -> None:
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": [1, 0, 1], "c": ["x", "y", None]})
    expected = [row_hash([1.0, 1.0, "x"]), row_hash([np.nan, 0.0, "y"]), row_hash([3.0, 1.0, np.nan])]
    for held in (
        frame,
        frame.convert_dtypes(),
        frame.convert_dtypes(dtype_backend="pyarrow"),
        frame.astype({"b": bool}),
        frame.astype({"b": "boolean", "c": "category"}),
    ):
        assert listed(row_hashes(held)) == expected


def test_records_and_digests() -> None:
    pieces = np.array(NUMBERS), np.array(TEXTS), [0, 1, 1, 0, 1]
    rows = NUMBERS, TEXTS, [[0.0], [1.0], [1.0], [0.0], [1.0]]
    expected = [record_hash(*row) for row in zip(*rows, strict=True)]
    assert listed(record_hashes(pieces)) == expected
    assert record_keys(pieces).tolist() == [first for first, _ in expected]
    found = content_of(pieces, keys=True)
    assert (found.identity, found.order) == (holdout_identity(*rows), holdout_order(*rows))
    assert found.keys is not None
    assert found.keys.tolist() == [first for first, _ in expected]
    assert content_of(pieces).keys is None


def test_sums_have_no_modulus() -> None:
    """Sums of so many hashes go far beyond 64 bits."""
    sums, more = RecordSums(), RecordSums()
    hashes = np.full((1000, 2), 2**64 - 1, dtype=np.uint64)
    sums.add(hashes)
    for part in np.split(hashes, [1, 500]):
        more.add(part)
    assert sums._sums == more._sums == [1000 * (2**64 - 1)] * 2
    more.add(hashes[:0])
    assert sums.identity() == more.identity()


def test_copies_of_records_do_not_cancel() -> None:
    """Many copies of one record beside as many of another: sums modulo 2^64 would lose bits here."""
    X = np.arange(8.0).reshape(4, 2)
    turned = [np.repeat(X, counts, axis=0) for counts in ([4, 0, 0, 4], [0, 4, 4, 0], [2, 2, 2, 2], [4, 4, 0, 0])]
    assert len({content_of((rows,)).identity for rows in turned}) == 4


def test_few_words_of_small_numbers_do_not_collide() -> None:
    """All rows of three columns with 40 values each, and all swaps of two entries in them."""
    grid = np.stack(np.meshgrid(*[np.arange(40.0)] * 3), axis=-1).reshape(-1, 3)
    hashes = row_hashes(grid)
    assert len(np.unique(hashes[:, 0])) == len(np.unique(hashes[:, 1])) == len(grid) == 40**3
