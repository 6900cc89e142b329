"""Keys of receipts: creation, encrypted storage in the ledger, rotation and publication.

The private key is kept with the ledger's other secrets, not in a file of its own: it is as secret as they are, one
backup holds both, and every process and machine of the service signs with the same key. Whoever has the ledger and its
key can sign, and can write another history too, but cannot change the checkpoints and receipts that others keep.

The name of a key is the thumbprint of its public half [RFC 7638; RFC 8037, appendix A.3], so that no two keys share
one. Public keys are published as a set of JSON Web Keys [RFC 7517]. After a rotation the earlier public key stays in
the set, and its signatures stay valid. A stolen key is withdrawn instead: it is no longer published, and receipts are
made anew from the ledger, with another key, when they are fetched again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from thresholdout.errors import InputError, LedgerDamaged
from thresholdout.ledger.encryption import RECEIPT_KEYS
from thresholdout.service.receipts.signed_text import ALGORITHM, decoded, encoded, private_key, public_key, signed

if TYPE_CHECKING:
    from thresholdout.ledger import SQLLedger

__all__ = ["Signer", "change_key", "public_keys", "published_keys", "thumbprint", "withdraw_key"]

# Keys of a published set, each of which is parsed.
_MOST_KEYS: Final = 1000


class Signer:
    """Signer with the present key of a ledger; the first key is made when there is none."""

    def __init__(self, ledger: SQLLedger) -> None:
        stored = _read(ledger) or _parsed(ledger, ledger.change_setting(RECEIPT_KEYS, _first))
        self._key = private_key(decoded(stored["private"]))
        self.key = thumbprint(self._key.public_key().public_bytes_raw())

    def sign(self, claims: Mapping[str, Any], kind: str) -> str:
        """Return claims with a signature, as one line of text."""
        return signed(claims, kind, self._key, self.key)

    def __repr__(self) -> str:
        return f"<Signer: {self.key}>"


def change_key(ledger: SQLLedger) -> str:
    """Rotate the signing key, and return the new name; earlier signatures stay valid."""
    return _replaced(ledger, withdrawn="")


def withdraw_key(ledger: SQLLedger, key: str) -> str:
    """Withdraw a stolen key from publication; a new one replaces it when it is the present one."""
    known = [found["kid"] for found in published_keys(ledger)["keys"]]
    if key not in known:
        raise InputError(
            "key", repr(key[:64]), f"one of {', '.join(known)}" if known else "a published key, and there is none yet"
        )
    return _replaced(ledger, withdrawn=key)


def published_keys(ledger: SQLLedger) -> dict[str, Any]:
    """Return the public keys of a ledger's receipts as a set of JSON Web Keys, the present one first."""
    stored = _read(ledger)
    if stored is None:
        return {"keys": []}
    return {"keys": [_jwk(decoded(text)) for text in (_public(stored["private"]), *stored["earlier"])]}


def public_keys(published: object) -> dict[str, bytes]:
    """Return the public keys of a set of JSON Web Keys, or of a single one, by their names."""
    found = published.get("keys", [published]) if isinstance(published, dict) else None
    if not isinstance(found, list) or not 1 <= len(found) <= _MOST_KEYS:
        raise InputError("public key", "other JSON", "a set of JSON Web Keys, as from /v1/receipt-key")
    keys = {}
    for one in found:
        try:
            raw = decoded(one["x"])
            public_key(raw)
            if one != _jwk(raw):
                raise ValueError
        except (KeyError, TypeError, ValueError):
            expected = "a set of Ed25519 keys, each named by its thumbprint, as from /v1/receipt-key"
            raise InputError("public key", "a key of another form", expected) from None
        keys[one["kid"]] = raw
    return keys


def thumbprint(raw: bytes) -> str:
    """Return the name of a public key.

    Examples
    --------
    The key of RFC 8037, appendix A:

    >>> thumbprint(decoded("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"))
    'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k'
    """
    named = {"crv": "Ed25519", "kty": "OKP", "x": encoded(raw)}
    return encoded(sha256(json.dumps(named, separators=(",", ":")).encode()).digest())


def _jwk(raw: bytes) -> dict[str, str]:
    """Return a public key as a JSON Web Key."""
    x = encoded(raw)
    return {"kty": "OKP", "crv": "Ed25519", "x": x, "use": "sig", "alg": ALGORITHM, "kid": thumbprint(raw)}


def _public(private: str) -> str:
    return encoded(private_key(decoded(private)).public_key().public_bytes_raw())


def _new() -> str:
    return encoded(private_key().private_bytes_raw())


def _first(stored: str | None) -> str:
    """Return the keys of a ledger that had none, unless another process has just made some."""
    return json.dumps({"private": _new(), "earlier": []}) if stored is None else stored


def _replaced(ledger: SQLLedger, withdrawn: str) -> str:
    """Withdraw a key, or put a new one before the others; return the name of the signing key."""

    def change(text: str | None) -> str:
        stored = _parsed(ledger, _first(text))
        present = _public(stored["private"])
        if not withdrawn or thumbprint(decoded(present)) == withdrawn:
            stored = {"private": _new(), "earlier": [present, *stored["earlier"]]}
        earlier = [key for key in stored["earlier"] if thumbprint(decoded(key)) != withdrawn]
        return json.dumps({"private": stored["private"], "earlier": earlier})

    stored = _parsed(ledger, ledger.change_setting(RECEIPT_KEYS, change))
    return thumbprint(decoded(_public(stored["private"])))


def _read(ledger: SQLLedger) -> dict[str, Any] | None:
    text = ledger.read_setting(RECEIPT_KEYS)
    return None if text is None else _parsed(ledger, text)


def _parsed(ledger: SQLLedger, text: str) -> dict[str, Any]:
    try:
        stored = json.loads(text)
        if len(decoded(stored["private"])) == 32 and all(len(decoded(key)) == 32 for key in stored["earlier"]):
            return {"private": stored["private"], "earlier": list(stored["earlier"])}
    except (AttributeError, KeyError, TypeError, ValueError):
        pass  # a message could show the key
    raise LedgerDamaged(ledger.location, None, "The keys of its receipts cannot be read.")
