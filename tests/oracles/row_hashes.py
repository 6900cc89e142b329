"""Hashes of records as `thresholdout.data.row_hashes` describes them, one number at a time in Python's integers."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import sha256

__all__ = ["holdout_identity", "holdout_order", "record_hash", "row_hash"]

_HALVES = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
_ALL = 2**64 - 1


def mixed(x: int) -> int:
    """Return the finaliser of splitmix64 [Steele, Lea and Flood 2014]."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _ALL
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _ALL
    return x ^ (x >> 31)


def _entry(value: float | str, constant: int, half: int, first: bool) -> int:
    if isinstance(value, str):
        digest = sha256(b"t" + value.encode()).digest()
        word = int.from_bytes(digest[8 * half : 8 * half + 8], "little") | (half == 0)
        return word * constant & _ALL if first else mixed(word + constant & _ALL)
    if value == 0.0:
        return 0
    bits = 0x7FF8000000000000 if value != value else struct.unpack("<Q", struct.pack("<d", value))[0]
    return mixed(mixed(bits) + constant & _ALL)


def row_hash(row: Sequence[float | str]) -> tuple[int, int]:
    """Return the hash of one row: numbers, and texts."""
    found = []
    for half, lane in enumerate(_HALVES):
        keys = [(j + 1) * lane & _ALL | 1 for j in range(len(row) + 1)]
        first = next((j for j, value in enumerate(row) if isinstance(value, str)), None)
        total = sum(_entry(value, keys[j], half, j == first) for j, value in enumerate(row))
        found.append(mixed(total + keys[-1] & _ALL))
    return found[0], found[1]


def record_hash(*pieces: Sequence[float | str]) -> tuple[int, int]:
    """Return the hash of one record that is made of a row of each piece."""
    first, second = row_hash(pieces[0])
    for piece in pieces[1:]:
        more = row_hash(piece)
        first, second = (mixed(a * _HALVES[0] + b & _ALL) for a, b in ((first, more[0]), (second, more[1])))
    return first, second


def _digest(what: bytes, pieces: int, hashes: Sequence[tuple[int, int]]) -> str:
    words = b"".join(struct.pack("<QQ", *pair) for pair in hashes)
    return sha256(what + b" %d %d\n" % (pieces, len(hashes)) + words).hexdigest()


def holdout_identity(*pieces: Sequence[Sequence[float | str]]) -> str:
    """Return who a holdout is, from the rows of each of its pieces."""
    return _digest(
        b"thresholdout holdout", len(pieces), sorted(record_hash(*rows) for rows in zip(*pieces, strict=True))
    )


def holdout_order(*pieces: Sequence[Sequence[float | str]]) -> str:
    """Return the digest of a holdout's records in their order."""
    return _digest(b"thresholdout order", len(pieces), [record_hash(*rows) for rows in zip(*pieces, strict=True)])
