"""What a guard was told, and that ledgers keep it as they always have."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import for_each
from thresholdout import Claims, LedgerMismatch, PriorQueries, SparseVector, Thresholdout
from thresholdout.errors import LedgerDamaged
from thresholdout.ledger import MemoryLedger, open_ledger
from thresholdout.mechanisms import LadderParameters
from thresholdout.planning.declaration import Declaration, read_declaration

KEPT = Path(__file__).parents[2] / "ledgers" / "format-1"

TEXT = (
    '{"queries": 20, "confidence": 0.95, "mechanism": {"mechanism": "ladder", "confidence": 0.95, "direction": '
    '"maximize", "queries": 20, "inflation": 1.0, "effective": null, "random_estimands": false}, '
    '"sampling": "independent", "final_check": false, "development": null, "dependence": "a model", '
    '"for_release": true, "prior_queries": null}'
)

DECLARED = [
    Declaration(),
    Declaration(queries=20, confidence=0.9, mechanism=Claims(max_half_width=0.1, noise=0.0), final_check=True),
    Declaration(mechanism=SparseVector(0.04, 0.0025, 1, 0.001), queries=9, dependence="x", for_release=False),
    Declaration(sampling="iid"),
    Declaration(sampling="fixed_features", prior_queries=PriorQueries(3, 101)),
    Declaration(mechanism=Claims(epsilon=1.0, holdout_answers=4)),
]


@for_each("declared", DECLARED, ids=map(str, range(len(DECLARED))))
def test_what_is_kept_is_read_again(declared: Declaration) -> None:
    text = json.dumps(declared.to_json())
    again = Declaration.from_json(json.loads(text))
    assert again == declared
    assert again.difference(declared) is None
    assert json.dumps(again.to_json()) == text


def test_the_text_in_a_ledger_is_this() -> None:
    declared = Declaration(queries=20, mechanism=LadderParameters(queries=20), dependence="a model")
    assert json.dumps(declared.to_json()) == TEXT


@for_each("name", ["algorithm-1", "from", "kfold", "labelled", "releases", "moved"])
def test_kept_ledgers_are_written_again_as_they_are(name: str, tmp_path: Path) -> None:
    """Byte for byte."""
    copy = tmp_path / f"{name}.db"
    copy.touch(mode=0o600)
    copy.write_bytes((KEPT / f"{name}.db").read_bytes())
    ledger = open_ledger(copy)
    for guard in ledger.guards():
        kept: Any = ledger.parameters(guard)
        declared, _ = read_declaration(ledger, guard)
        written = declared.to_json()
        assert json.dumps(written) == json.dumps(kept["declared"])


def test_a_guard_keeps_its_declaration() -> None:
    ledger, records = MemoryLedger(), np.arange(500.0)
    Thresholdout(records, queries=20, mechanism=Claims(holdout_answers=2), ledger=ledger, random_state=1)
    declared, _ = read_declaration(ledger, ledger.guards()[0])
    assert declared.queries == 20
    assert not declared.for_release
    assert ledger.parameters(ledger.guards()[0])["declared"] == declared.to_json()


def test_nothing_in_it_can_be_changed() -> None:
    declared = Declaration(queries=20)
    with pytest.raises(dataclasses.FrozenInstanceError):
        declared.queries = 200  # type: ignore[misc]


@for_each(
    ("argument", "value"),
    [("queries", 21), ("confidence", 0.9), ("mechanism", "claims"), ("mechanism", Claims(max_half_width=0.3)),
     ("sampling", "iid"), ("final_check", True), ("development", 0.5), ("random_state", 1), ("prior_queries", 1)],
)  # fmt: skip
def test_a_guard_is_opened_as_it_was_declared(argument: str, value: object) -> None:
    ledger, records = MemoryLedger(), np.arange(500.0)
    told: dict[str, Any] = {"queries": 20, "mechanism": Claims(holdout_answers=2), "ledger": ledger}
    Thresholdout(records, **told)
    kept_as = "for_release" if argument == "random_state" else argument
    with pytest.raises(LedgerMismatch, match=f"declared with {kept_as} = "):
        Thresholdout(records, **(told | {argument: value}))
    assert Thresholdout(records, **told).status.answers_left == 2


@for_each("name", [field.name for field in dataclasses.fields(Declaration)])
def test_what_has_always_been_there_has_to_be_there(name: str) -> None:
    kept = Declaration().to_json()
    del kept[name]
    with pytest.raises(KeyError):
        Declaration.from_json(kept)


@for_each(
    "change",
    [
        {"queries": 0},
        {"mechanism": {"declared": "Claims", "holdout_answers": "two"}},
        {"confidence": 1.5},
        {"for_release": "no"},
        {"mechanism": {"mechanism": "?"}},
    ],
    ids=str,
)
def test_what_is_no_declaration_is_refused(change: dict[str, Any]) -> None:
    ledger = MemoryLedger()
    guard = Thresholdout(np.arange(500.0), ledger=ledger)
    kept: Any = dict(ledger.parameters(guard._id))
    damaged = ledger.create("another", kept | {"declared": kept["declared"] | change}, "", {})
    with pytest.raises(LedgerDamaged, match=r"parameters of guard .* cannot be read"):
        read_declaration(ledger, damaged)
