"""Receipts: who can make one, and what an exported history says to it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.cases import for_each
from tests.thresholdout.ledger.mechanism import GUARD
from tests.thresholdout.service.receipts.leaderboards import asked, receipt_of
from thresholdout.errors import InputError, LedgerDamaged, LedgerEncrypted
from thresholdout.ledger import SQLLedger, encrypt, export_history, new_key, rotate_key
from thresholdout.service.receipts.errors import ReceiptContradicted, ReceiptInvalid
from thresholdout.service.receipts.receipt import KIND, Receipt, read_receipt, verify_in_history, written_time
from thresholdout.service.receipts.signed_text import signed, verified
from thresholdout.service.receipts.signing_keys import (
    Signer,
    change_key,
    public_keys,
    published_keys,
    withdraw_key,
)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SQLLedger]:
    with SQLLedger(tmp_path / "leaderboard.db") as ledger:
        yield asked(ledger, 3)


def keys_of(ledger: SQLLedger) -> dict[str, bytes]:
    return public_keys(json.loads(json.dumps(published_keys(ledger))))


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def test_a_receipt_comes_back_as_it_was_signed(ledger: SQLLedger) -> None:
    signer = Signer(ledger)
    receipt = receipt_of(ledger, 2)
    text = receipt.signed(signer)
    assert read_receipt(f"{text}\n", keys_of(ledger)) == (receipt, signer.key)
    assert text == receipt.signed(Signer(ledger))  # the same key, and no randomness: the same answer has one receipt


def test_another_library_reads_it(ledger: SQLLedger) -> None:
    receipt = receipt_of(ledger, 2)
    text = receipt.signed(Signer(ledger))
    (published,) = published_keys(ledger)["keys"]
    assert jwt.get_unverified_header(text) == {"alg": "EdDSA", "kid": published["kid"], "typ": KIND}
    claims = jwt.decode(text, jwt.PyJWK(published), algorithms=["EdDSA"])
    assert claims == {"version": 1} | {name: getattr(receipt, name) for name in Receipt.__slots__}


def test_the_known_answer_of_the_standard() -> None:
    """RFC 8037, appendix A.4 has this key, and its signature of these characters."""
    private = Ed25519PrivateKey.from_private_bytes(
        base64.urlsafe_b64decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=")
    )
    assert base64.urlsafe_b64encode(private.public_key().public_bytes_raw()).rstrip(b"=") == (
        b"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
    )
    text = signed({"query": 1}, KIND, private, "name")
    first, second, third = text.split(".")
    assert (first, second) == (part({"alg": "EdDSA", "kid": "name", "typ": KIND}), part({"query": 1}))
    signature = private.sign(f"{first}.{second}".encode())
    assert third == base64.urlsafe_b64encode(signature).decode().rstrip("=")


def test_every_changed_character_shows(ledger: SQLLedger) -> None:
    text = receipt_of(ledger, 1).signed(Signer(ledger))
    keys = keys_of(ledger)
    for place in range(len(text)):
        changed = text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :]
        with pytest.raises(ReceiptInvalid):
            read_receipt(changed, keys)


@pytest.mark.slow
@pytest.mark.parametrize(
    "header",
    [
        {"alg": "none", "typ": KIND},
        {"alg": "HS256", "typ": KIND},
        {"alg": "EdDSA", "typ": "JWT"},
        {"alg": "EdDSA", "typ": KIND, "crit": ["exp"]},
        {"alg": "EdDSA", "typ": KIND, "jwk": {}},
    ],
)
def test_a_header_that_says_something_else_is_refused_whatever_signs_it(
    ledger: SQLLedger, header: dict[str, Any]
) -> None:
    signer = Signer(ledger)
    claims = part(receipt_of(ledger, 1).claims())
    text = f"{part({**header, 'kid': signer.key})}.{claims}"
    signature = base64.urlsafe_b64encode(signer._key.sign(text.encode())).decode().rstrip("=")
    with pytest.raises(ReceiptInvalid, match="header"):
        read_receipt(f"{text}.{signature}", keys_of(ledger))


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "a.b", "a.b.c", "é.e30.e30", "e30.e30.e30", "W10.W10.", "e30=.e30.e30", "." * 9])
def test_what_is_no_receipt_is_refused(ledger: SQLLedger, text: str) -> None:
    Signer(ledger)
    with pytest.raises(ReceiptInvalid):
        read_receipt(text, keys_of(ledger))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("version", 2),
        ("version", True),
        ("query", 0),
        ("query", True),
        ("query", 1.0),
        ("low", 1),
        ("low", "0.5"),
        ("checkpoint", "AB" * 32),
        ("idempotency", ""),
        ("verdict", "best"),
        ("kind", None),
        ("time", "2026-11-22"),
        ("more", 1),
        ("team", None),
    ],
)
def test_signed_claims_of_another_form_are_no_receipt(ledger: SQLLedger, name: str, value: object) -> None:
    signer = Signer(ledger)
    text = signer.sign({**receipt_of(ledger, 1).claims(), name: value}, KIND)
    with pytest.raises(ReceiptInvalid):
        read_receipt(text, keys_of(ledger))


def test_another_service_did_not_sign_it(ledger: SQLLedger, tmp_path: Path) -> None:
    text = receipt_of(ledger, 1).signed(Signer(ledger))
    with SQLLedger(tmp_path / "other.db") as other:
        Signer(other)
        with pytest.raises(ReceiptInvalid, match="not among the given public keys"):
            read_receipt(text, keys_of(other))


def test_a_text_of_another_kind_is_no_receipt(ledger: SQLLedger) -> None:
    text = Signer(ledger).sign(receipt_of(ledger, 1).claims(), "statement")
    with pytest.raises(ReceiptInvalid, match="header"):
        read_receipt(text, keys_of(ledger))


# Keys


def test_after_a_change_of_keys_earlier_receipts_stay_valid(ledger: SQLLedger) -> None:
    first = Signer(ledger)
    text = receipt_of(ledger, 1).signed(first)
    named = change_key(ledger)
    second = Signer(ledger)
    assert named == second.key != first.key
    assert list(keys_of(ledger)) == [second.key, first.key]
    assert read_receipt(text, keys_of(ledger))[1] == first.key
    assert read_receipt(receipt_of(ledger, 1).signed(second), keys_of(ledger))[1] == second.key


def test_what_a_stolen_key_has_signed_is_no_receipt_any_more(ledger: SQLLedger) -> None:
    stolen = Signer(ledger)
    text = receipt_of(ledger, 1).signed(stolen)
    named = withdraw_key(ledger, stolen.key)
    assert list(keys_of(ledger)) == [named] == [Signer(ledger).key]
    with pytest.raises(ReceiptInvalid, match="not among"):
        read_receipt(text, keys_of(ledger))


def test_an_earlier_key_is_withdrawn_alone(ledger: SQLLedger) -> None:
    first, second = Signer(ledger).key, change_key(ledger)
    assert withdraw_key(ledger, first) == second
    assert list(keys_of(ledger)) == [second]
    with pytest.raises(InputError, match="key"):
        withdraw_key(ledger, first)


def test_processes_that_start_together_sign_with_one_key(tmp_path: Path) -> None:
    with SQLLedger(tmp_path / "leaderboard.db") as one, SQLLedger(tmp_path / "leaderboard.db") as two:
        assert Signer(one).key == Signer(two).key


@for_each("encrypted", [True, False])
def test_the_private_key_is_as_secret_as_the_ledger(tmp_path: Path, encrypted: bool) -> None:
    file, key = tmp_path / "leaderboard.db", new_key()
    with SQLLedger(file, key=key if encrypted else None) as ledger:
        asked(ledger, 1)
        private = base64.urlsafe_b64encode(Signer(ledger)._key.private_bytes_raw()).rstrip(b"=")
        name = Signer(ledger).key
    assert (private in file.read_bytes()) is not encrypted
    other = new_key()
    if encrypted:
        rotate_key(file, new_key=other, key=key)
    else:
        encrypt(file, key=other)
        assert private not in file.read_bytes()
    with SQLLedger(file, key=other) as ledger:
        assert Signer(ledger).key == name
    with pytest.raises(LedgerEncrypted):
        SQLLedger(file, key=key)


def test_damaged_keys_are_said_to_be_damaged(ledger: SQLLedger) -> None:
    Signer(ledger)
    row = ('{"private": "secret"}', "receipt_keys")
    ledger.database.transact(lambda cursor: cursor.execute(ledger.database.statements.set_setting, row))
    with pytest.raises(LedgerDamaged) as raised:
        Signer(ledger)
    assert "secret" not in str(raised.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [{"kid": "name"}, {"crv": "X25519"}, {"x": "AA"}, {"d": "AA"}, {"x": None}],
)
def test_public_keys_of_another_form_are_refused(ledger: SQLLedger, change: dict[str, Any]) -> None:
    Signer(ledger)
    published = published_keys(ledger)
    published["keys"][0] |= change
    with pytest.raises(InputError, match="public key"):
        public_keys(published)


@for_each("published", [None, [], {}, {"keys": []}, {"keys": 3}, {"keys": [3]}, "key"])
def test_what_is_no_set_of_keys_is_refused(published: object) -> None:
    with pytest.raises(InputError, match="public key"):
        public_keys(published)


def test_a_single_key_will_do(ledger: SQLLedger) -> None:
    key = Signer(ledger).key
    (one,) = published_keys(ledger)["keys"]
    assert list(public_keys(one)) == [key]


# Histories


@pytest.fixture
def history(ledger: SQLLedger, tmp_path: Path) -> Path:
    export_history(ledger, GUARD, tmp_path / "history.jsonl")
    return tmp_path / "history.jsonl"


def test_every_receipt_is_in_the_history(ledger: SQLLedger, history: Path) -> None:
    for query in (1, 2, 3):
        verify_in_history(receipt_of(ledger, query), history)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"checkpoint": "0" * 64},
        {"query": 1},
        {"query": 4},
        {"team": "bob"},
        {"low": 0.0},
        {"value": 0.123},
        {"time": written_time(0.0)},
    ],
)
def test_a_signed_receipt_that_says_otherwise_is_contradicted(
    ledger: SQLLedger, history: Path, change: dict[str, Any]
) -> None:
    with pytest.raises(ReceiptContradicted):
        verify_in_history(replace(receipt_of(ledger, 2), **change), history)


def test_a_receipt_without_an_interval_says_nothing_about_one(ledger: SQLLedger, history: Path) -> None:
    receipt = replace(receipt_of(ledger, 2), value=None, low=None, high=None, verdict="better", kind="comparison")
    verify_in_history(receipt, history)
    assert "answer" not in str(receipt)


def test_a_receipt_of_another_life_is_contradicted(ledger: SQLLedger, tmp_path: Path) -> None:
    with SQLLedger(tmp_path / "other.db") as other:
        lost = receipt_of(asked(other, 3), 3)
    export_history(ledger, GUARD, tmp_path / "history.jsonl")
    with pytest.raises(ReceiptContradicted, match="another history"):
        verify_in_history(lost, tmp_path / "history.jsonl")


def test_a_changed_history_contradicts_nobody(ledger: SQLLedger, history: Path) -> None:
    history.write_bytes(history.read_bytes().replace(b'"ann"', b'"eve"'))
    with pytest.raises(LedgerDamaged):
        verify_in_history(receipt_of(ledger, 1), history)


def test_the_history_of_another_holdout_is_no_answer(ledger: SQLLedger, history: Path) -> None:
    with pytest.raises(InputError, match="history"):
        verify_in_history(replace(receipt_of(ledger, 1), guard="other"), history)


def test_a_key_shows_as_its_digest_only(ledger: SQLLedger) -> None:
    text = receipt_of(ledger, 1).signed(Signer(ledger))
    claims, _ = verified(text, KIND, keys_of(ledger))
    ((entry, _checkpoint),) = ledger._links(GUARD, 1, 1)
    assert claims["idempotency"] == hashlib.sha256(entry.key.encode()).hexdigest()
    assert entry.key not in json.dumps(claims)
