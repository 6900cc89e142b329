"""Ledgers of every released format open, verify, and go on where they were."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cases import for_each
from tests.ledgers.guards import FOLDER, GUARDS, KEY, answered, opened, written
from tests.thresholdout.ledger.postgres_server import Server
from thresholdout import Thresholdout
from thresholdout.errors import LedgerClosed, LedgerEncrypted
from thresholdout.guard.guard_state import check_standing
from thresholdout.ledger import Ledger, MemoryLedger, import_history, open_ledger, verify_export

FORMATS = sorted(folder.name for folder in FOLDER.glob("format-*"))


def expected(number: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / number / "expected.json").read_text())
    return found


def copied(number: str, name: str, folder: Path) -> Path:
    """Return a copy that may be asked; only its owner can read it, which version control does not keep."""
    file = folder / name
    shutil.copyfile(FOLDER / number / name, file)
    file.chmod(0o600)
    return file


def assert_goes_on(ledger: Ledger, kind: str, known: dict[str, Any]) -> None:
    guard_in, _, ask_next, _ = GUARDS[kind]
    wanted = {name: value for name, value in known.items() if name != "next"}
    assert json.loads(json.dumps(written(ledger))) == wanted
    count = len(known["entries"])
    assert ledger.verify(known["guard"], known["checkpoint"]) == count
    check_standing(ledger, known["guard"])
    guard = guard_in(ledger)  # found again by its records
    assert ledger.guards() == [known["guard"]]
    answer = answered(ask_next(guard))
    # On the same event, intervals may be narrower than half-widths were that did not look at the value; never wider.
    assert 0.5 <= answer.pop("half_width") / known["next"]["half_width"] <= 1.0 + 1e-9
    assert answer == {name: value for name, value in known["next"].items() if name != "half_width"}
    assert answer["query"] == count + 1
    assert ledger.entries(known["guard"], count + 1)[0].time is not None
    assert ledger.verify(known["guard"], known["checkpoint"]) == count + 1
    assert written(ledger)["entries"][:count] == known["entries"]
    guard_in(ledger)  # its state fits


def test_there_is_a_folder_for_every_format() -> None:
    from thresholdout.ledger.schema import FORMAT

    assert [f"format-{number}" for number in range(1, FORMAT + 1)] == FORMATS


@pytest.mark.slow
@for_each("number", FORMATS)
@for_each("kind", GUARDS)
def test_a_file_goes_on(tmp_path: Path, number: str, kind: str) -> None:
    with opened(copied(number, f"{kind}.db", tmp_path), GUARDS[kind][-1]) as ledger:
        assert_goes_on(ledger, kind, expected(number)[kind])


@for_each("number", FORMATS)
def test_what_is_encrypted_needs_its_key(tmp_path: Path, number: str) -> None:
    with pytest.raises(LedgerEncrypted):
        opened(copied(number, "encrypted.db", tmp_path), None)


@for_each("number", FORMATS)
def test_half_of_the_budget_is_left(tmp_path: Path, number: str) -> None:
    with opened(copied(number, "algorithm-1.db", tmp_path), None) as ledger:
        guard: Thresholdout = GUARDS["algorithm-1"][0](ledger)
        assert (guard.status.answers_left, guard.certificate.route) == (2, "posterior")
        assert guard.ask(0.5, [0.5] * guard.n, name="both agree", key="a").query == 1


@for_each("number", FORMATS)
def test_a_look_is_still_counted(tmp_path: Path, number: str) -> None:
    with opened(copied(number, "releases.db", tmp_path), None) as ledger:
        guard: Thresholdout = GUARDS["releases"][0](ledger)
        assert [repr(event) for event in guard.releases.recorded.events] == ["BlackBox(epsilon=0.0001)"]


@for_each("number", FORMATS)
def test_where_a_guard_was_moved_from_it_answers_no_more(tmp_path: Path, number: str) -> None:
    known = expected(number)["moved"]
    with open_ledger(copied(number, "from.db", tmp_path), must_exist=True) as ledger:
        assert ledger.verify(known["guard"], known["checkpoint"]) == len(known["entries"])
        guard = GUARDS["moved"][0](ledger)
        with pytest.raises(LedgerClosed, match="it was moved to"):
            GUARDS["moved"][2](guard)


@for_each("number", FORMATS)
def test_an_export_is_read(number: str) -> None:
    file, known = FOLDER / number / "exported.jsonl", expected(number)["algorithm-1"]
    header = verify_export(file, known["checkpoint"])
    assert (header.guard, header.count, json.loads(header.parameters)) == (known["guard"], 3, known["parameters"])
    with MemoryLedger() as ledger:
        import_history(ledger, file)
        assert written(ledger)["entries"] == known["entries"]


@pytest.mark.slow
@for_each("number", FORMATS)
def test_a_dump_of_a_server_goes_on(server: Server, number: str) -> None:
    address = server.new_database()
    server.run((FOLDER / number / "postgresql.sql").read_text(), address.split("/")[3].partition("?")[0])
    with open_ledger(address, must_exist=True, key=KEY) as ledger:
        assert_goes_on(ledger, "algorithm-1", expected(number)["postgresql"])
