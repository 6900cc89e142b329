"""Files and tables that somebody made up: each ends in an error of the tree, in little memory, or is read as it is."""

from __future__ import annotations

import json
import sqlite3
import tracemalloc
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.cases import for_each
from tests.sizes import corners
from thresholdout import Claims, Thresholdout
from thresholdout.cli import main
from thresholdout.errors import InputError, LedgerDamaged, LedgerError, LedgerUnusable
from thresholdout.ledger import MemoryLedger, SQLLedger, export_history, import_history, verify_export
from thresholdout.ledger.digest_chain import first_digest, next_digest
from thresholdout.ledger.entry import Entry
from thresholdout.planning.declaration import read_declaration
from thresholdout.report import report_of

GUARD = "0123456789abcdef"
ENTRY = Entry(1, "a", "accuracy", 0.75, 0.5, 0.25, 0.75, "holdout", 1, 0.0, 1.0)
DEEP = 100_000


def crafted(file: Path, parameters: str, entries: list[Entry] = [ENTRY], **header: Any) -> Path:  # noqa: B006
    """Write a history whose digests are right, whatever is in it."""
    digest, lines = first_digest(GUARD, parameters), []
    for entry in entries:
        digest = next_digest(digest, GUARD, entry)
        lines.append(json.dumps(asdict(entry) | {"digest": digest}))
    first = {
        "format": "thresholdout guard",
        "version": 1,
        "guard": GUARD,
        "parameters": parameters,
        "checkpoint": digest,
    }
    file.write_text("\n".join([json.dumps(first | {"count": len(entries)} | header), *lines]) + "\n")
    return file


def parameters_of_a_guard() -> dict[str, Any]:
    ledger = MemoryLedger()
    Thresholdout(np.arange(900.0), queries=10, mechanism="ladder", ledger=ledger)
    found: dict[str, Any] = ledger.parameters(ledger.guards()[0])
    return found


READING = (("guard", "status"), ("guard", "history"), ("ledger", "verify"))


def run(*arguments: str | Path, code: int | None = None) -> str:
    """Run a command, which may fail, but not with a traceback."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code in ((0, 4) if code is None else (code,)), result.output
    return result.output


def changed(**parts: dict[str, Any]) -> str:
    parameters = parameters_of_a_guard()
    return json.dumps(parameters | {part: parameters[part] | values for part, values in parts.items()})


def odd_parameters() -> dict[str, str]:
    whole = parameters_of_a_guard()
    return {
        "nothing": "{}",
        "numbers": '{"declared": 1, "chosen": 2}',
        "lists": '{"declared": [], "chosen": []}',
        "no declared": json.dumps({name: value for name, value in whole.items() if name != "declared"}),
        "no chosen": json.dumps({name: value for name, value in whole.items() if name != "chosen"}),
        "a mechanism that is a list": changed(chosen={"mechanism": []}),
        "another field": changed(chosen={"oracle": 1}),
        "confidence in words": changed(declared={"confidence": "high"}),
        "confidence above 1": changed(declared={"confidence": 1e9}),
        "no confidence": changed(declared={"confidence": None}),
        "queries in words": changed(declared={"queries": "many"}),
        "budget in words": changed(chosen={"budget": "large"}),
        "lists in lists": changed(chosen={"mechanism": "ladder", "queries": nested(20_000)}),
    }


def nested(depth: int) -> Any:
    """Lists within lists; as deep as JSON can be read, not as deep as this says."""
    found: list[Any] = []
    for _ in range(min(depth, 300)):
        found = [found]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("case", corners(odd_parameters(), *range(0, len(odd_parameters()), 3)))
def test_parameters_that_no_guard_has_give_an_error(case: str, tmp_path: Path) -> None:
    text = json.dumps(json.loads(odd_parameters()[case]))
    file, ledger = crafted(tmp_path / "history.jsonl", text), tmp_path / "guard.db"
    tracemalloc.start()
    try:
        run("ledger", "verify", file)
        run("ledger", "import", ledger, file)
        for command in (*READING, ("guard", "report", "--output", str(tmp_path / "page.html"))):
            run(*command[:2], ledger, *command[2:])
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()
    with SQLLedger(ledger) as opened, pytest.raises(LedgerDamaged, match=r"parameters of guard .* cannot be read"):
        report_of(opened, opened.guards()[0])


def test_a_mechanism_that_this_program_does_not_have_is_said_to_be_one(tmp_path: Path) -> None:
    """The guess and check of earlier versions is one: its guards are refused, and their histories can be read."""
    stored = parameters_of_a_guard() | {"chosen": {"mechanism": "guess-and-check", "tolerance": 0.2}}
    file, ledger = crafted(tmp_path / "history.jsonl", json.dumps(stored)), tmp_path / "guard.db"
    run("ledger", "import", ledger, file)
    run("ledger", "verify", ledger)
    with SQLLedger(ledger) as opened:
        (guard,) = opened.guards()
        assert opened.verify(guard) == opened.count(guard)
        with pytest.raises(LedgerUnusable, match=r"'guess-and-check', which this version does not have. Use"):
            report_of(opened, guard)
        with pytest.raises(LedgerUnusable, match="'guess-and-check'"):
            read_declaration(opened, guard)


@pytest.mark.slow
@for_each(
    "change",
    [
        {"remaining": 2**63},
        {"remaining": -(10**100)},
        {"remaining": -1},
        {"list": 2**63},
        {"list": 10**1000},
        {"name": "x" * 10_001},
        {"key": "x" * 10_001},
        {"low": 0.9, "high": 0.1},
        {"log_error_budget": 1.0},
    ],
    ids=repr,
)
def test_entries_that_no_ledger_stores_are_damage(change: dict[str, Any], tmp_path: Path) -> None:
    good = json.dumps(parameters_of_a_guard())
    file = crafted(tmp_path / "history.jsonl", good, [replace(ENTRY, **change)])
    with pytest.raises(LedgerDamaged, match="Line 2 is damaged"):
        verify_export(file)
    for ledger in (MemoryLedger(), SQLLedger(tmp_path / "guard.db")):
        with ledger, pytest.raises(LedgerError):
            import_history(ledger, file)
    run("ledger", "verify", file)
    run("ledger", "import", tmp_path / "guard.db", file)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"lower": 2.0, "upper": 1.0},
        pytest.param({"lower": 0.0, "upper": 0.0}, marks=pytest.mark.slow),
        {"lower": -1e308, "upper": 1e308},
        {"value": 1e308, "train": -1e308},
        {"value": 1.7e308, "low": -1.7e308, "high": 1.7e308},
        pytest.param({"value": 1e100, "train": -1e100}, marks=pytest.mark.slow),
        {"value": 5e-324, "train": 5e-324},
        pytest.param({"low": 0.5, "high": 0.5}, marks=pytest.mark.slow),
        {"source": "oracle"},
        {"source": "failed"},
        pytest.param({"remaining": 2**63 - 1}, marks=pytest.mark.slow),
        pytest.param({"log_error_budget": -1e308}, marks=pytest.mark.slow),
        {"name": "<script>alert(1)</script>\x1b[2J"},
    ],
    ids=repr,
)
def test_odd_entries_are_read_as_they_are(change: dict[str, Any], tmp_path: Path) -> None:
    file = crafted(tmp_path / "history.jsonl", json.dumps(parameters_of_a_guard()), [replace(ENTRY, **change)])
    run("ledger", "import", tmp_path / "guard.db", file)
    for command in (*READING, ("guard", "report", "--output", str(tmp_path / "page.html"))):
        run(*command[:2], tmp_path / "guard.db", *command[2:], code=0)
    run("guard", "history", tmp_path / "guard.db", "--plot", tmp_path / "history.png", code=0)
    assert "<script>" not in (tmp_path / "page.html").read_text()


@for_each("count", [-1, 2**63, 10**4000], ids=["negative", "large", "huge"])
def test_a_count_that_no_history_has_is_damage(count: int, tmp_path: Path) -> None:
    file = crafted(tmp_path / "history.jsonl", json.dumps(parameters_of_a_guard()), count=count)
    with pytest.raises(LedgerDamaged, match="Line 1 is damaged"):
        verify_export(file)
    assert len(run("ledger", "verify", file)) < 1000


@for_each("version", ["x" * 100_000, [1] * 100_000, 10**4000, 2.0, True])
def test_a_version_of_any_kind_gives_a_short_message(version: Any, tmp_path: Path) -> None:
    file = crafted(tmp_path / "history.jsonl", "{}", version=version)
    with pytest.raises(LedgerError) as caught:
        verify_export(file)
    assert len(str(caught.value)) < 500


@for_each("where", ["first", "second", "later"])
def test_a_line_without_end_is_not_read_to_its_end(where: str, tmp_path: Path) -> None:
    file = crafted(tmp_path / "history.jsonl", json.dumps(parameters_of_a_guard()))
    lines = file.read_text().splitlines(keepends=True)
    kept = "".join(lines[: ["first", "second", "later"].index(where)])
    file.write_text(kept + '{"format": "thresholdout guard", "')
    with open(file, "rb+") as out:
        out.truncate(2**28)  # zeros, which take no room on the disk
    tracemalloc.start()
    try:
        with pytest.raises(LedgerError):
            verify_export(file)
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()


@for_each("text", ["[" * DEEP, '{"a":' * DEEP, '{"a": ' + "[" * DEEP + "]" * DEEP + "}"])
def test_nesting_without_end_is_damage(text: str, tmp_path: Path) -> None:
    file = crafted(tmp_path / "history.jsonl", text)
    with pytest.raises(LedgerError):
        verify_export(file)
    (tmp_path / "bare.jsonl").write_text(text + "\n")
    with pytest.raises(LedgerUnusable):
        verify_export(tmp_path / "bare.jsonl")


@for_each("name", ["events.json", "events.toml"])
@for_each("text", ["[" * DEEP, "a = " + "[" * DEEP, "9" * 5000, "a = " + "9" * 5000])
def test_events_without_end_are_an_error(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert "got a file that can't be read" in run("privacy", "account", tmp_path / name, code=4)


def test_the_longest_texts_go_through_a_file(tmp_path: Path) -> None:
    """What a ledger takes, an exported history takes, and may come back."""
    long = "\U0001f332" * 10_000
    with SQLLedger(tmp_path / "guard.db") as ledger:
        guard = Thresholdout(np.arange(900.0), queries=10, mechanism=Claims(holdout_answers=2), ledger=ledger)
        guard.ask(0.5, np.ones(900), name=long, key=long)
        for wrong in ({"name": long + "x"}, {"key": long + "x"}):
            with pytest.raises(InputError, match="a text of at most 10,000"):
                guard.ask(0.5, np.ones(900), **wrong)  # type: ignore[arg-type]
        identity = ledger.guards()[0]
        export_history(ledger, identity, tmp_path / "history.jsonl")
    other = MemoryLedger()
    assert other.find(import_history(other, tmp_path / "history.jsonl"), long) is not None


@pytest.mark.slow
@for_each("text", ["", "{", "[]", '"text"', "3", "{}", '{"declared": {}}', "[" * DEEP, "1e999"])
def test_a_table_with_other_parameters_is_damaged(text: str, tmp_path: Path) -> None:
    file = tmp_path / "guard.db"
    records = np.arange(900.0)
    Thresholdout(records, queries=10, mechanism=Claims(holdout_answers=2), ledger=file)
    with closing(sqlite3.connect(file)) as connection, connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("UPDATE guards SET parameters = ?", (text,))
    with pytest.raises(LedgerError, match=r"cannot be read|rules"):
        Thresholdout(records, queries=10, mechanism=Claims(holdout_answers=2), ledger=file)
    for command in (*READING, ("guard", "report", "--output", str(tmp_path / "page.html"))):
        run(*command[:2], file, *command[2:])
