"""Columns come back from their texts as they were; what is no such text is refused."""

from __future__ import annotations

import base64
import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import for_each
from thresholdout.service.labelled_records import packed_numbers, packed_texts, unpacked_numbers, unpacked_texts

integers = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200))
floats = st.lists(st.floats(allow_nan=False))
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)


@pytest.mark.slow
@given(integers)
def test_integers_come_back(values: list[int]) -> None:
    found = unpacked_numbers(packed_numbers(np.array(values, dtype=np.int64)))
    assert found.dtype == np.int64
    assert found.tolist() == values


@given(floats)
def test_floats_come_back_to_the_bit(values: list[float]) -> None:
    found = unpacked_numbers(packed_numbers(np.array(values, dtype=np.float64)))
    assert found.dtype == np.float64
    assert found.tobytes() == np.array(values, dtype=np.float64).tobytes()


@pytest.mark.slow
@given(st.lists(texts) | st.lists(st.sampled_from(["", "a", "größe", "b\n", '"'])))
def test_texts_come_back(values: list[str]) -> None:
    assert unpacked_texts(packed_texts(values)) == values


@for_each(("largest", "size"), [(127, 1), (128, 2), (2**15, 4), (2**31 - 1, 4), (2**31, 8)])
def test_integers_take_as_few_bytes_as_they_need(largest: int, size: int) -> None:
    """Read back without numpy: little end first."""
    found = json.loads(packed_numbers(np.array([0, largest, -largest - 1 if size < 8 else 0])[:2]))
    data = base64.b64decode(found["data"])
    assert len(data) == 2 * size
    letter = {1: "b", 2: "h", 4: "i", 8: "q"}[size]
    assert struct.unpack(f"<2{letter}", data) == (0, largest)
    assert found["kind"] == f"<i{size}"


@for_each(
    "text",
    ["", "[]", "{}", '{"kind": "O", "data": ""}', '{"kind": "<i2", "data": "AA=="}', '{"kind": "<i1", "data": 1}'],
)
def test_what_is_no_column_of_numbers_is_refused(text: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        unpacked_numbers(text)


@for_each(
    "text",
    [
        "{}",
        '{"texts": "ab"}',
        '{"texts": ["a", 1]}',
        json.dumps({"texts": ["a"], "rows": json.loads(packed_numbers(np.array([0, 1])))}),
        json.dumps({"texts": ["a"], "rows": json.loads(packed_numbers(np.array([-1])))}),
    ],
)
def test_what_is_no_column_of_texts_is_refused(text: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, IndexError)):
        unpacked_texts(text)
