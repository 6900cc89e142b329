"""Keys, and what they encrypt."""

from __future__ import annotations

import base64
import copy
import os
import pickle
import stat
import sys
import traceback
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import for_each
from thresholdout.errors import InputError, InputTypeError, SharingError, ThresholdoutError
from thresholdout.ledger.cipher import (
    KEY_FILE_VARIABLE,
    KEY_VARIABLE,
    Cipher,
    DecryptionError,
    Key,
    is_encrypted,
    make_key_file,
    new_key,
)

KEY = base64.urlsafe_b64encode(bytes(range(224, 256))).decode()
"""Has both characters in which url-safe base64 differs from the other one."""

texts = st.text(st.characters(codec="utf-8"))


@pytest.fixture
def cipher() -> Cipher:
    return Key(KEY, "key").cipher()


@pytest.fixture(autouse=True)
def no_key_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    monkeypatch.delenv(KEY_FILE_VARIABLE, raising=False)


@given(texts, st.lists(texts, max_size=4))
def test_what_is_encrypted_opens_in_its_place(text: str, about: list[str]) -> None:
    cipher = Key(KEY, "key").cipher()
    encrypted = cipher.encrypt(text, *about)
    assert is_encrypted(encrypted)
    assert encrypted.isascii()
    assert encrypted.isprintable()
    assert cipher.decrypt(encrypted, *about) == text
    assert Key(KEY.rstrip("="), "key").cipher().decrypt(encrypted, *about) == text


@given(st.lists(texts, max_size=3), st.lists(texts, max_size=3))
def test_no_other_place_opens_it(about: list[str], other: list[str]) -> None:
    cipher = Key(KEY, "key").cipher()
    if about == other:
        other = [*other, ""]
    with pytest.raises(DecryptionError):
        cipher.decrypt(cipher.encrypt("secret", *about), *other)


@pytest.mark.parametrize("other", [("ab", "c"), ("a", "b", "c"), ("abc",), ("a", "bc", ""), ("1:a2:bc",)])
def test_parts_of_a_place_do_not_run_together(cipher: Cipher, other: tuple[str, ...]) -> None:
    with pytest.raises(DecryptionError):
        cipher.decrypt(cipher.encrypt("secret", "a", "bc"), *other)


def test_another_program_can_open_it(cipher: Cipher) -> None:
    """The form, written down a second time: prefix, nonce of 12 bytes, AES-256-GCM, the place as netstrings."""
    raw = base64.b64decode(cipher.encrypt("secret", "guard", "state", "12").removeprefix("encrypted:1:"), validate=True)
    plain = AESGCM(bytes(range(224, 256))).decrypt(raw[:12], raw[12:], b"5:guard5:state2:12")
    assert plain == b"secret"
    assert len(raw) == 12 + len(b"secret") + 16


def test_each_encryption_has_its_own_nonce(cipher: Cipher) -> None:
    nonces = {base64.b64decode(cipher.encrypt("secret").removeprefix("encrypted:1:"))[:12] for _ in range(1000)}
    assert len(nonces) == 1000  # 96 random bits: a repeat by chance has probability 1e-23


@pytest.mark.parametrize("text", ["secret", "secrets", "secret s"])  # one for each length of the padding
def test_every_changed_character_is_seen(cipher: Cipher, text: str) -> None:
    encrypted = cipher.encrypt(text, "guard")
    last = encrypted.rstrip("=")[-1]
    for position, old in enumerate(encrypted):
        for new in {"A", "B", "!", "é", chr(ord(last) + 1), chr(ord(last) - 1)} - {old}:
            changed = encrypted[:position] + new + encrypted[position + 1 :]
            with pytest.raises(DecryptionError):
                cipher.decrypt(changed, "guard")
    for cut in range(len(encrypted)):
        with pytest.raises(DecryptionError):
            cipher.decrypt(encrypted[:cut], "guard")
    with pytest.raises(DecryptionError):
        cipher.decrypt("secret", "guard")


def test_another_key_does_not_open_it(cipher: Cipher) -> None:
    with pytest.raises(DecryptionError):
        Key(new_key(), "key").cipher().decrypt(cipher.encrypt("secret"))


def test_new_keys_differ_and_are_32_bytes() -> None:
    keys = {new_key() for _ in range(100)}
    assert len(keys) == 100
    assert {len(base64.urlsafe_b64decode(key)) for key in keys} == {32}


@for_each(
    "text",
    [
        "",
        "swordfish",
        KEY[:-4],
        KEY + "AAAA",
        KEY.replace("-", "+").replace("_", "/"),
        KEY[:20] + " " + KEY[21:],
        "é" * 44,
        "=" * 44,
    ],
    ids=["empty", "password", "short", "long", "other-base64", "space", "no-ascii", "padding"],
)
def test_what_is_no_key_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(InputError, match="32 random bytes as url-safe base64") as caught:
        Key(text, "key")
    shown = "".join(traceback.format_exception(caught.value))
    assert not text or text not in shown
    assert caught.value.argument == "key"


def test_no_key_shows_or_travels(cipher: Cipher) -> None:
    key = Key(f" {KEY}\n", "key")
    assert repr(key) == "<Key from key>"
    assert repr(cipher) == "<Cipher>"
    for thing in (key, cipher):
        assert not hasattr(thing, "__dict__")
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(SharingError, match="key cannot be copied or pickled"):
                copied(thing)


def test_where_keys_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Key.find() is None
    file = tmp_path / "guard.key"
    make_key_file(file)
    encrypted = Key(file.read_text(), "key").cipher().encrypt("secret")

    def found(key: str | None = None, key_file: Path | str | None = None) -> tuple[str, bool]:
        key_found = Key.find(key, key_file)
        assert key_found is not None
        assert key_found.cipher().decrypt(encrypted) == "secret"
        return key_found.origin, key_found.given

    assert found(file.read_text()) == ("key", True)
    assert found(key_file=file) == ("key_file", True)
    monkeypatch.setenv(KEY_FILE_VARIABLE, str(file))
    assert found() == (KEY_FILE_VARIABLE, False)
    monkeypatch.setenv(KEY_VARIABLE, new_key())
    assert found(key_file=str(file)) == ("key_file", True)  # what is given counts more than the environment
    with pytest.raises(InputError, match="set beside"):
        Key.find()
    with pytest.raises(InputError, match="None beside key_file="):
        Key.find(KEY, file)
    monkeypatch.delenv(KEY_FILE_VARIABLE)
    monkeypatch.setenv(KEY_VARIABLE, file.read_text().strip())
    assert found() == (KEY_VARIABLE, False)
    monkeypatch.setenv(KEY_VARIABLE, "")
    with pytest.raises(InputError, match=f"{KEY_VARIABLE} is missing: pass"):
        Key.find()


def test_key_files_are_refused_when_others_can_read_them(tmp_path: Path) -> None:
    file = tmp_path / "guard.key"
    make_key_file(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_bytes()
    with pytest.raises(InputError, match=r"the name of a new file; got .*File exists"):
        make_key_file(file)
    assert file.read_bytes() == before
    if os.name == "posix":
        for mode in (0o640, 0o604, 0o620):
            file.chmod(mode)
            with pytest.raises(InputError, match=rf"which others can use \(mode {mode:04o}\)\. Run `chmod 600 "):
                Key.find(key_file=file)
    with pytest.raises(InputError, match="no regular file"):
        Key.find(key_file="/dev/null")
    with pytest.raises(InputError, match="No such file"):
        Key.find(key_file=tmp_path / "none")
    with pytest.raises(InputError, match="No such file"):
        make_key_file(tmp_path / "none" / "guard.key")
    with pytest.raises(InputTypeError, match=r"key_file must be .*; got an int"):
        Key.find(key_file=3)  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match=r"key must be .*; got a bytes"):
        Key.find(bytes(32))  # type: ignore[arg-type]


def test_the_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(ThresholdoutError, match=r"pip install 'thresholdout\[encryption\]'"):
        Key(KEY, "key").cipher()
