"""Encryption of secrets: keys and authenticated encryption.

An encrypted text is AES-256-GCM ciphertext. Its associated data are the place (guard, column) and the number of queries
asked, so a value can be decrypted only for its own place and time.
"""

from __future__ import annotations

import binascii
import os
import secrets
import stat
from contextlib import suppress
from typing import Final, NoReturn

from thresholdout.errors import InputError, InputTypeError, SharingError, ThresholdoutError

__all__ = [
    "KEY_FILE_VARIABLE",
    "KEY_VARIABLE",
    "Cipher",
    "DecryptionError",
    "Key",
    "is_encrypted",
    "make_key_file",
    "new_key",
]

KEY_VARIABLE: Final = "THRESHOLDOUT_KEY"
KEY_FILE_VARIABLE: Final = "THRESHOLDOUT_KEY_FILE"

_BYTES: Final = 32  # of an AES-256 key
_NONCE: Final = 12  # bytes; GCM with 96 bits needs no further hash [NIST SP 800-38D, 8.2.2]
_PREFIX: Final = "encrypted:1:"
_EXPECTED: Final = f"{_BYTES} random bytes as url-safe base64, as `thresholdout ledger new-key FILE` writes them"
_URL_SAFE: Final = str.maketrans("+/", "-_")
_STANDARD: Final = str.maketrans("-_", "+/")
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class DecryptionError(Exception):
    """A text cannot be decrypted: another key, place or time, or a changed text."""


class Key:
    """A key; its representation shows only its origin."""

    __slots__ = ("_bytes", "given", "origin")

    def __init__(self, text: str, origin: str, *, given: bool = True) -> None:
        if not isinstance(text, str):
            raise InputTypeError(origin, f"a {type(text).__name__}", _EXPECTED)
        self.origin = origin
        self.given = given
        self._bytes = _decoded(text.strip(), origin)

    @classmethod
    def find(cls, key: str | None = None, key_file: str | os.PathLike[str] | None = None) -> Key | None:
        """Return the given key, or else the environment's, or None.

        A variable that is set but empty is refused: most likely a secret is missing, and plain text would be stored.
        """
        if key is not None and key_file is not None:
            raise InputError("key", "a key beside a key_file", "None beside key_file=")
        if key is not None:
            return cls(key, "key")
        if key_file is not None:
            return cls(_read(key_file, "key_file"), "key_file")
        text, path = os.environ.get(KEY_VARIABLE), os.environ.get(KEY_FILE_VARIABLE)
        if text is not None and path is not None:
            raise InputError(KEY_VARIABLE, "a value", f"unset beside {KEY_FILE_VARIABLE}")
        if text is not None:
            return cls(text, KEY_VARIABLE, given=False)
        if path is not None:
            return cls(_read(path, KEY_FILE_VARIABLE), KEY_FILE_VARIABLE, given=False)
        return None

    def cipher(self) -> Cipher:
        """Return the cipher of this key."""
        return Cipher(self._bytes)

    def __repr__(self) -> str:
        return f"<Key from {self.origin}>"

    def __reduce__(self) -> NoReturn:
        raise _no_copy()


class Cipher:
    """Encrypts and decrypts texts with a key.

    AES-256-GCM with a random nonce of 96 bits for each encryption [NIST SP 800-38D, 8.2.2]. Two encryptions with one
    key share a nonce with probability below 2^-32 for at most 2^32 of them: rotate the key before four billion queries.
    """

    __slots__ = ("_decrypt", "_encrypt")

    def __init__(self, key: bytes) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise ThresholdoutError(
                "An encrypted ledger needs the library cryptography: pip install 'thresholdout[encryption]'."
            ) from None
        library = AESGCM(key)
        self._encrypt = library.encrypt
        self._decrypt = library.decrypt

    def encrypt(self, text: str, *about: str) -> str:
        """Encrypt a text with associated data."""
        nonce = os.urandom(_NONCE)
        encrypted = nonce + self._encrypt(nonce, text.encode(), _joined(about))
        return _PREFIX + binascii.b2a_base64(encrypted, newline=False).decode()

    def decrypt(self, encrypted: str, *about: str) -> str:
        """Decrypt a text with the same associated data."""
        plain = None
        if is_encrypted(encrypted):
            with suppress(Exception):  # one error for all failures, so that no detail leaks
                text = encrypted[len(_PREFIX) :].encode("ascii")
                raw = binascii.a2b_base64(text, strict_mode=True)
                if binascii.b2a_base64(raw, newline=False) == text:  # rejects other texts of the same bytes
                    plain = self._decrypt(raw[:_NONCE], raw[_NONCE:], _joined(about)).decode()
        if plain is None:
            raise DecryptionError
        return plain

    def __repr__(self) -> str:
        return "<Cipher>"

    def __reduce__(self) -> NoReturn:
        raise _no_copy()


def is_encrypted(text: str) -> bool:
    """Whether a text has the form of an encrypted one."""
    return text.startswith(_PREFIX)


def new_key() -> str:
    """Generate a new key for an encrypted ledger.

    Pass it as `key` to `open_ledger` or `encrypt`, and keep it in a safe place: without it, the ledger cannot be
    opened.

    Returns
    -------
    str
        Key of 32 bytes of the operating system's entropy, as text of 44 characters.

    Examples
    --------
    >>> len(new_key())
    44
    """
    return binascii.b2a_base64(secrets.token_bytes(_BYTES), newline=False).decode().translate(_URL_SAFE)


def make_key_file(path: str | os.PathLike[str]) -> None:
    """Write a new key for an encrypted ledger to a new file that only its owner can read.

    Pass the file as `key_file` to `open_ledger` or `encrypt`.

    Parameters
    ----------
    path : str or path
        The new file. It must not exist, because replacing a key would lose everything that it encrypted.

    Raises
    ------
    InputError
        If the file exists or cannot be created.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> make_key_file(Path(folder.name, "guard.key"))
    >>> Key.find(key_file=Path(folder.name, "guard.key"))
    <Key from key_file>
    >>> folder.cleanup()
    """
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except OSError as error:
        raise InputError("key file", f"{os.fspath(path)} ({error.strerror})", "the name of a new file") from None
    with open(descriptor, "w") as file:
        file.write(f"{new_key()}\n")
        file.flush()
        os.fsync(descriptor)


def _read(path: str | os.PathLike[str], argument: str) -> str:
    """Return a key file's text; refuse a file that others can read."""
    if not isinstance(path, str | os.PathLike):
        raise InputTypeError(argument, f"a {type(path).__name__}", "the path of a file")
    try:
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise InputError(argument, f"{path}, no regular file", "a file made by `thresholdout ledger new-key`")
            if os.name == "posix" and found.st_mode & _OTHERS:
                mode = stat.S_IMODE(found.st_mode)
                seen = f"{path}, which others can use (mode {mode:04o})"
                raise InputError(argument, seen, "readable by its owner alone", f"Run `chmod 600 {path}`.")
            raw = file.read(4 * _BYTES)  # longer than any key
    except OSError as error:
        raise InputError(
            argument, f"{path} ({error.strerror})", "a file made by `thresholdout ledger new-key`"
        ) from None
    return raw.decode("latin-1")  # accepts all bytes, so that a wrong file is refused without being shown


def _decoded(text: str, origin: str) -> bytes:
    """Return a key's bytes; an error shows only its length."""
    raw = b""
    if text.isascii() and not set(text) & {"+", "/"}:
        with suppress(binascii.Error):
            padded = text.translate(_STANDARD) + "=" * (-len(text) % 4)
            raw = binascii.a2b_base64(padded, strict_mode=True)
    if len(raw) != _BYTES:
        raise InputError(origin, "nothing" if not text else f"a text of {len(text)} characters", _EXPECTED)
    return raw


def _joined(parts: tuple[str, ...]) -> bytes:
    """Return texts as one; different lists give different texts."""
    return "".join([f"{len(part)}:{part}" for part in parts]).encode()


def _no_copy() -> SharingError:
    return SharingError("A key cannot be copied or pickled. Pass it to each process by its environment or a key file.")
