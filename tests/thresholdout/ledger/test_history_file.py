"""Exported histories: every change shows, without any ledger."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from thresholdout.errors import LedgerError, LedgerUnusable
from thresholdout.ledger.entry import Entry
from thresholdout.ledger.history_file import ExportedHistory, HistoryFile, write_history

GUARD = hashlib.sha256(b"holdout").hexdigest()
PARAMETERS = '{"declared": {"budget": 2}}'
ENTRIES = [
    Entry(1, "a", "accuracy", 0.75, 0.75, 0.7, 0.8, "train", 2, 0.0, 1.0),
    Entry(2, "b", "größe", 0.75, 0.5, 0.4375, 0.5625, "holdout", 1, 0.0, 1.0, -0.25, 2, "forest", "Zoë", 0.1),
    Entry(3, "c", "", -2.5, -2.5, -2.625, -2.375, "train", None, -4.0, 4.0, -math.inf, 2),
]

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
numbers = st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0)


times = st.none() | numbers
risks = st.none() | st.floats(max_value=-0.0, allow_nan=False).map(lambda x: x + 0.0)


def measured(text: str) -> bytes:
    raw = text.encode()
    return str(len(raw)).encode() + b":" + raw


def digests(guard: str, parameters: str, entries: list[Entry]) -> list[str]:
    """The chain, written a second time from its description in words."""
    found = [hashlib.sha256(b"thresholdout-guard-1 " + measured(guard) + b" " + measured(parameters)).hexdigest()]
    for e in entries:
        bits = "".join(struct.pack(">d", x).hex() for x in (e.train, e.value, e.low, e.high, e.lower, e.upper))
        remaining = "-" if e.remaining is None else str(e.remaining)
        together = "-" if e.list is None else str(e.list)
        risk = "-" if e.log_error_budget is None else struct.pack(">d", e.log_error_budget).hex()
        time = "-" if e.time is None else struct.pack(">d", e.time).hex()
        line = f"thresholdout-entry-1 {found[-1]} {e.query} {remaining} {together} {bits} {risk} {time} ".encode()
        line += b" ".join(measured(text) for text in (guard, e.key, e.name, e.source, e.candidate, e.client))
        found.append(hashlib.sha256(line).hexdigest())
    return found


def write(file: Path, entries: list[Entry] = ENTRIES, guard: str = GUARD, parameters: str = PARAMETERS) -> Path:
    write_history(
        file, ExportedHistory(guard, parameters, digests(guard, parameters, entries)[-1], len(entries)), entries
    )
    return file


def read(file: Path) -> tuple[ExportedHistory, list[Entry]]:
    with HistoryFile(file) as history:
        return history.header, list(history.entries())


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts, st.lists(st.tuples(texts, texts, numbers, numbers, texts, st.none() | st.integers(0, 2**40), risks, times))
)
def test_what_is_written_is_read(tmp_path: Path, guard: str, rows: list[tuple[Any, ...]]) -> None:
    entries = [
        Entry(query, key, name, train, value, 0.25, 0.5, source, remaining, -1.0, 2.0, risk, remaining, name, key, time)
        for query, (key, name, train, value, source, remaining, risk, time) in enumerate(rows, 1)
    ]
    file = write(tmp_path / "history.jsonl", entries, guard)
    checkpoint = digests(guard, PARAMETERS, entries)[-1]
    assert read(file) == (ExportedHistory(guard, PARAMETERS, checkpoint, len(entries)), entries)


def test_the_form_of_a_file(tmp_path: Path) -> None:
    lines = write(tmp_path / "history.jsonl").read_bytes().decode("ascii").splitlines()
    expected = digests(GUARD, PARAMETERS, ENTRIES)
    assert json.loads(lines[0]) == {
        "format": "thresholdout guard",
        "version": 1,
        "guard": GUARD,
        "parameters": PARAMETERS,
        "checkpoint": expected[-1],
        "count": 3,
    }
    assert json.loads(lines[2]) == {
        "query": 2,
        "key": "b",
        "name": "größe",
        "train": 0.75,
        "value": 0.5,
        "low": 0.4375,
        "high": 0.5625,
        "source": "holdout",
        "remaining": 1,
        "lower": 0.0,
        "upper": 1.0,
        "log_error_budget": -0.25,
        "list": 2,
        "candidate": "forest",
        "client": "Zoë",
        "time": 0.1,
        "digest": expected[2],
    }
    assert [json.loads(line)["digest"] for line in lines[1:]] == expected[1:]
    assert [json.loads(line)["log_error_budget"] for line in lines[1:]] == [None, -0.25, "-inf"]


OTHER: dict[str, list[Any]] = {
    "guard": [GUARD[::-1], ""],
    "parameters": ['{"declared": {"budget": 3}}', PARAMETERS + " ", "{", "[]", "{}"],
    "checkpoint": ["0" * 64, ""],
    "count": [2, 4, 3.0, True, None],
    "format": ["other"],
    "version": [0, 2, True, "1"],
    "query": [0, 4, 2.0, "2", None],
    "key": ["z", "", None],
    "name": ["z", "grosse", 1],
    "train": [0.7500000000000001, 1, "0.75", None, 1e400],
    "value": [0.5000000000000001, True],
    "low": [0.40625, 0.75],
    "high": [0.59375, 1e999],
    "log_error_budget": [None, -0.125, 0.5, "-inf", "inf", -1, -1e999],
    "list": [None, 1, 2.0, "2"],
    "candidate": ["", None],
    "client": ["zoe", 3],
    "time": [None, 0.2, 1, "0.1", 1e400],
    "source": ["train", ""],
    "remaining": [0, None, 1.0, "1"],
    "lower": [-1.0, -0.0],
    "upper": [2.0],
    "digest": ["0" * 64, None],
}


@for_each(("field", "value"), [(field, value) for field, values in OTHER.items() for value in values])
def test_every_changed_field_is_seen(tmp_path: Path, field: str, value: Any) -> None:
    file = write(tmp_path / "history.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    line = lines[0] if field in lines[0] else lines[2]
    assert field in line
    line[field] = value
    file.write_text("\n".join(map(json.dumps, lines)) + "\n")
    with pytest.raises(LedgerError):
        read(file)


def swapped(lines: list[str]) -> list[str]:
    return [lines[0], lines[2], lines[1], lines[3]]


def without_count(lines: list[str], entries: int) -> list[str]:
    """Leave entries out at the end, and tell the first line."""
    fields = json.loads(lines[0]) | {"count": entries}
    return [json.dumps(fields), *lines[1 : entries + 1]]


@for_each(
    ("change", "words"),
    [
        (lambda lines: lines[:3], "announces 3 entries, but the file has 2"),
        (lambda lines: lines[:1], "announces 3 entries, but the file has 0"),
        (lambda lines: [*lines, lines[3]], "Line 5 is damaged: its digest"),
        (lambda lines: lines[:1] + lines[2:], "Line 2 is damaged: its digest"),
        (swapped, "Line 2 is damaged: its digest"),
        (lambda lines: without_count(lines, 2), "Line 1 is damaged: its checkpoint"),
        (
            lambda lines: [lines[0].replace("{", '{"more": 1, ', 1), *lines[1:]],
            "Line 1 is damaged: its fields are not",
        ),
        (
            lambda lines: [*lines[:2], lines[2].replace("{", '{"value": 0.9, ', 1), lines[3]],
            "Line 3 is damaged: it is not",
        ),
        (lambda lines: [*lines[:2], "", *lines[2:]], "Line 3 is damaged: it is not an entry"),
        (lambda lines: [*lines[:2], "[" * 10**5, *lines[2:]], "Line 3 is damaged: it is not an entry"),
        (lambda lines: [*lines[:2], "[]", *lines[2:]], "Line 3 is damaged: it is not an entry"),
        (lambda lines: [*lines[:2], lines[2].replace('"b"', '"\\ud800"'), lines[3]], "Line 3 is damaged: it is not"),
        (lambda lines: [*lines[:2], lines[2][:-9], lines[3]], "Line 3 is damaged: it is not an entry"),
        (lambda lines: lines[1:], "not an exported history"),
        (lambda lines: ["\0" * 100], "not an exported history"),
        (lambda lines: [], "not an exported history"),
    ],
)
def test_every_damaged_line_is_named(tmp_path: Path, change: Callable[[list[str]], list[str]], words: str) -> None:
    file = write(tmp_path / "history.jsonl")
    file.write_text("\n".join(change(file.read_text().splitlines())))
    with pytest.raises(LedgerError, match=words) as caught:
        read(file)
    assert caught.value.location == str(file)


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    file = write(tmp_path / "history.jsonl", ENTRIES[:1])
    before = file.read_bytes()
    changed = [ENTRIES[0], replace(ENTRIES[1], value=0.875), ENTRIES[2]]
    header = ExportedHistory(GUARD, PARAMETERS, digests(GUARD, PARAMETERS, ENTRIES)[-1], 3)
    for entries in (changed, ENTRIES[:2], [*ENTRIES, ENTRIES[0]]):
        with pytest.raises(LedgerError, match="do not match their checkpoint"):
            write_history(file, header, entries)
    assert file.read_bytes() == before
    write(file)
    assert file.read_bytes() != before
    assert [child.name for child in tmp_path.iterdir()] == ["history.jsonl"]
    with pytest.raises(LedgerUnusable, match="cannot be written: No such file or directory"):
        write(tmp_path / "none" / "history.jsonl")
    with pytest.raises(LedgerUnusable, match="cannot be read: No such file or directory"):
        read(tmp_path / "none.jsonl")
