"""Signed claims as one line of text: JSON Web Signatures in their compact form, with Ed25519 and nothing else.

A text is ``HEADER.CLAIMS.SIGNATURE``, each part in base64url without padding [RFC 7515, 7.1; RFC 8037]. The signature
covers the characters before the last dot. A verifier therefore need not reproduce the signer's serialisation, whose
rules for numbers differ between languages [RFC 8785].

Forged texts of this kind have relied on verifiers that trust the header's algorithm. Here there is one algorithm: a
header with another one is refused, and so is a key that is not among those given.
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from thresholdout.errors import ThresholdoutError
from thresholdout.service.receipts.errors import ReceiptInvalid

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

__all__ = ["ALGORITHM", "decoded", "encoded", "private_key", "public_key", "signed", "unverified", "verified"]

ALGORITHM: Final = "EdDSA"
# Characters of a signed text: a longer one is refused before it is decoded.
_LONGEST: Final = 1 << 16
_PART: Final = re.compile(r"[A-Za-z0-9_-]*")
_URL_SAFE: Final = str.maketrans("+/", "-_", "=")
_STANDARD: Final = str.maketrans("-_", "+/")


def encoded(raw: bytes) -> str:
    """Return bytes as base64url without padding.

    Examples
    --------
    >>> encoded(b"\\xfb\\xff")
    '-_8'
    """  # noqa: D301
    return binascii.b2a_base64(raw, newline=False).decode().translate(_URL_SAFE)


def decoded(text: str) -> bytes:
    """Return the bytes of base64url without padding; ValueError for any text but the one that `encoded` makes.

    Examples
    --------
    >>> decoded("-_8")
    b'\\xfb\\xff'
    """  # noqa: D301
    if _PART.fullmatch(text) is None:
        raise ValueError
    raw = binascii.a2b_base64(text.translate(_STANDARD) + "=" * (-len(text) % 4), strict_mode=True)
    if encoded(raw) != text:  # the last character has unused bits
        raise ValueError
    return raw


def private_key(raw: bytes | None = None) -> Ed25519PrivateKey:
    """Return a private key: a new one, or that of these 32 bytes."""
    key = _ed25519().Ed25519PrivateKey
    found: Ed25519PrivateKey = key.generate() if raw is None else key.from_private_bytes(raw)
    return found


def public_key(raw: bytes) -> Ed25519PublicKey:
    """Return the public key of 32 bytes; raise ValueError for invalid ones."""
    found: Ed25519PublicKey = _ed25519().Ed25519PublicKey.from_public_bytes(raw)
    return found


def signed(claims: Mapping[str, Any], kind: str, key: Ed25519PrivateKey, name: str) -> str:
    """Return signed claims.

    Notes
    -----
    `kind` is the header's ``typ``, so that one kind of text is never taken for another; `name` is its ``kid``.
    """
    header = {"alg": ALGORITHM, "kid": name, "typ": kind}
    text = ".".join(encoded(json.dumps(part, allow_nan=False).encode()) for part in (header, dict(claims)))
    return f"{text}.{encoded(key.sign(text.encode()))}"


def verified(text: str, kind: str, keys: Mapping[str, bytes]) -> tuple[dict[str, Any], str]:
    """Return the claims of a signed text, and the name of its key; `keys` are the trusted public keys by name."""
    from cryptography.exceptions import InvalidSignature

    if len(text) > _LONGEST or text.count(".") != 2:
        raise ReceiptInvalid("It does not consist of three parts with dots between them.")
    first, second, third = text.split(".")
    try:
        header, claims, signature = _object(decoded(first)), _object(decoded(second)), decoded(third)
    except (ValueError, RecursionError):
        raise ReceiptInvalid("Its parts are not two JSON objects and a signature in base64url.") from None
    if set(header) != {"alg", "kid", "typ"} or header["alg"] != ALGORITHM or header["typ"] != kind:
        raise ReceiptInvalid(f"Its header does not name {ALGORITHM}, {kind} and a key, and nothing else.")
    name = header["kid"]
    if not isinstance(name, str) or name not in keys:
        raise ReceiptInvalid(f"It is signed with key {str(name)[:64]!r}, which is not among the given public keys.")
    try:
        public_key(keys[name]).verify(signature, f"{first}.{second}".encode())
    except InvalidSignature:
        raise ReceiptInvalid("Its signature is wrong: the text was changed, or someone else wrote it.") from None
    return claims, name


def unverified(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and claims of a text without a check of its signature; raise ValueError for another form."""
    first, second, _ = text.split(".")
    return _object(decoded(first)), _object(decoded(second))


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise ThresholdoutError(
            "Receipts need the library cryptography: pip install 'thresholdout[service]'."
        ) from None
    return ed25519


def _object(raw: bytes) -> dict[str, Any]:
    """Return a JSON object; raise ValueError for other values, repeated names, and infinite numbers."""
    found = json.loads(raw, object_pairs_hook=_once, parse_constant=_refuse)
    if not isinstance(found, dict):
        raise ValueError
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError
    return fields


def _refuse(constant: str) -> float:
    raise ValueError(constant)
