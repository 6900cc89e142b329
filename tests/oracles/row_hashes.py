"""Hashes of records as `thresholdout.data.row_hashes` describes them, one number at a time in Python's integers."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

__all__ = ["Time", "holdout_identity", "holdout_order", "mixed", "record_hash", "row_hash", "siphash"]

_LANES = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
_SIP_KEYS = (b"thresholdout txt", b"of other records")
_ALL = 2**64 - 1


@dataclass(frozen=True)
class Time:
    """A time, or a duration, by its nanoseconds."""

    nanoseconds: int


Entry = float | str | Time


def mixed(x: int) -> int:
    """Return the finaliser of splitmix64 [Steele, Lea and Flood 2014]."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _ALL
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _ALL
    return x ^ (x >> 31)


def siphash(key: bytes, text: bytes) -> int:
    """Return SipHash-2-4 [Aumasson and Bernstein 2012]."""
    k0, k1 = struct.unpack("<QQ", key)
    v: list[int] = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def turned(x: int, bits: int) -> int:
        return (x << bits | x >> (64 - bits)) & _ALL

    def rounds(count: int) -> None:
        for _ in range(count):
            v[0], v[2] = v[0] + v[1] & _ALL, v[2] + v[3] & _ALL
            v[1], v[3] = turned(v[1], 13) ^ v[0], turned(v[3], 16) ^ v[2]
            v[0], v[2] = turned(v[0], 32), v[2] + v[1] & _ALL
            v[0] = v[0] + v[3] & _ALL
            v[1], v[3] = turned(v[1], 17) ^ v[2], turned(v[3], 21) ^ v[0]
            v[2] = turned(v[2], 32)

    padded = text + b"\0" * (7 - len(text) % 8) + bytes([len(text) % 256])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _words(value: Entry, column: int) -> list[int]:
    keys = [mixed((5 * column + kind + 1) * _LANES[1] & _ALL) for kind in range(5)]
    if isinstance(value, str):
        known = [mixed(siphash(key, value.encode("utf-8", "surrogatepass"))) for key in _SIP_KEYS]
        return [mixed(word + key & _ALL) for word, key in zip(known, keys[3:], strict=True)]
    if isinstance(value, Time):
        return [mixed(value.nanoseconds + key & _ALL) for key in keys[1:3]]
    bits = 0x7FF8000000000000 if value != value else struct.unpack("<Q", struct.pack("<d", value + 0.0))[0]
    return [mixed(bits + keys[0] & _ALL)]


def row_hash(row: Sequence[Entry]) -> tuple[int, int]:
    """Return the hash of one row: numbers, times, and texts."""
    words = [word for j, value in enumerate(row) for word in _words(value, j)]
    width = len(row) + 1
    second = mixed(sum(word**2 for word in words) + width * _LANES[0] & _ALL)
    first = mixed(sum(words) + second + width * _LANES[1] & _ALL)
    return first, mixed(second + first + width * _LANES[0] & _ALL)


def record_hash(*pieces: Sequence[Entry]) -> tuple[int, int]:
    """Return the hash of one record that is made of a row of each piece."""
    first, second = row_hash(pieces[0])
    for piece in pieces[1:]:
        more = row_hash(piece)
        first, second = (mixed(a * _LANES[0] + b & _ALL) for a, b in ((first, more[0]), (second, more[1])))
    return first, second


def holdout_identity(*pieces: Sequence[Sequence[Entry]]) -> str:
    """Return who a holdout is, from the rows of each of its pieces."""
    hashes = [record_hash(*rows) for rows in zip(*pieces, strict=True)]
    sums = [sum(half) for half in zip(*hashes, strict=True)]
    return sha256(b"thresholdout holdout %d %d %d %d\n" % (len(pieces), len(hashes), *sums)).hexdigest()


def holdout_order(*pieces: Sequence[Sequence[Entry]]) -> str:
    """Return the digest of a holdout's records in their order."""
    hashes = [record_hash(*rows) for rows in zip(*pieces, strict=True)]
    words = b"".join(struct.pack("<QQ", *pair) for pair in hashes)
    return sha256(b"thresholdout order %d %d\n" % (len(pieces), len(hashes)) + words).hexdigest()
