"""A guard's history as a file of JSON lines, which can be verified without a ledger.

The first line is a header; each other line is one entry with its digest (`thresholdout.ledger.digest_chain`)::

    {"format": "thresholdout guard", "version": 1, "guard": F, "parameters": P, "checkpoint": D, "count": N}
    {"query": 1, "key": ..., "name": ..., "train": ..., ..., "client": ..., "time": ..., "digest": ...}

Parameters are the JSON text from which the chain starts, as a string. JSON has no infinite numbers: if no error budget
is left, its logarithm is the text ``"-inf"``. Nothing in such a file is secret.
"""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Self

from thresholdout.errors import LedgerDamaged, LedgerUnusable
from thresholdout.ledger.digest_chain import first_digest, next_digest
from thresholdout.ledger.entry import (
    JSON,
    LARGEST_COUNT,
    Entry,
    check_entry,
    check_query,
    check_texts,
)

__all__ = ["ExportedHistory", "HistoryFile", "write_history"]

_FORMAT: Final = "thresholdout guard"
_VERSION: Final = 1
_HEADER: Final = {"format": str, "version": int, "guard": str, "parameters": str, "checkpoint": str, "count": int}
_NUMBERS: Final = ("train", "value", "low", "high", "lower", "upper")
_TEXTS: Final = ("key", "name", "source", "candidate", "client")
_NOTHING_LEFT: Final = "-inf"
_FIELDS: Final = Entry.__slots__
_LONGEST_FIRST: Final = 1 << 24  # bytes of the first line, which has a guard's parameters
_LONGEST_LINE: Final = 1 << 20
"""Maximum bytes of a line: 12 for each character of an entry's five texts, and 400 kB for the rest."""


@dataclass(frozen=True, slots=True)
class ExportedHistory:
    """Header of an exported history: guard, parameters as JSON text, digest of the last entry, number of entries."""

    guard: str
    parameters: str
    checkpoint: str
    count: int


class HistoryFile:
    """An exported history, opened to be read once from its first to its last entry."""

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self.location = os.fspath(file)
        try:
            self._file: IO[bytes] = open(file, "rb")  # noqa: SIM115 - closed by `close`
        except OSError as error:
            raise LedgerUnusable(self.location, f"The file cannot be read: {error.strerror}.") from None
        try:
            self.header = self._header()
            self.digest = first_digest(self.header.guard, self.header.parameters)
        except BaseException:
            self._file.close()
            raise

    def entries(self) -> Iterator[Entry]:
        """Yield each entry, checked against its digest; completeness is known only at the end."""
        header = self.header
        number = 0
        while line := self._file.readline(_LONGEST_LINE + 1):
            number += 1
            if len(line) > _LONGEST_LINE:
                raise self._damaged(number + 1, "it is longer than any entry")
            entry, stored = self._entry(line, number)
            self.digest = next_digest(self.digest, header.guard, entry)
            if entry.query != number or self.digest != stored:
                raise self._damaged(number + 1, "its digest does not match its fields and the lines before it")
            yield entry
        if number != header.count:
            raise self._damaged(1, f"it announces {header.count} entries, but the file has {number}")
        if self.digest != header.checkpoint:
            raise self._damaged(1, "its checkpoint, or its guard and parameters, do not match the entries")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _header(self) -> ExportedHistory:
        """Return the header from the first line."""
        line = self._file.readline(_LONGEST_FIRST)
        try:
            fields = _object(line)
        except ValueError:
            fields = {}
        if fields.get("format") != _FORMAT:
            raise LedgerUnusable(self.location, "The file is not an exported history.")
        version = fields.get("version")
        if version != _VERSION or isinstance(version, bool):
            raise LedgerUnusable(
                self.location,
                f"Its format has version {repr(version)[:40]}, but this version reads {_VERSION}. "
                "Use the version of thresholdout that wrote it.",
            )
        if list(fields) != list(_HEADER) or any(type(fields[name]) is not kind for name, kind in _HEADER.items()):
            raise self._damaged(1, f"its fields are not {', '.join(_HEADER)}")
        if not 0 <= fields["count"] <= LARGEST_COUNT:
            raise self._damaged(1, "it announces an impossible number of entries")
        header = ExportedHistory(fields["guard"], fields["parameters"], fields["checkpoint"], fields["count"])
        try:
            check_texts(guard=header.guard, parameters=header.parameters)
            if not isinstance(_object(header.parameters.encode()), dict):
                raise ValueError
        except ValueError:
            raise self._damaged(1, "its guard or its parameters cannot be those of a ledger") from None
        return header

    def _entry(self, line: bytes, number: int) -> tuple[Entry, str]:
        """Return an entry and its digest from a line."""
        try:
            fields = _object(line)
            stored = fields.pop("digest")
            if tuple(fields) != _FIELDS:
                raise ValueError
            if fields["log_error_budget"] == _NOTHING_LEFT:
                fields["log_error_budget"] = -math.inf
            if not _well_typed(fields):
                raise ValueError
            entry = Entry(**fields)
            check_query(entry.key or None, entry.train, entry.name)
            check_entry(entry)
        except (KeyError, ValueError, AttributeError):
            raise self._damaged(number + 1, "it is not an entry") from None
        return entry, stored

    def _damaged(self, line: int, reason: str) -> LedgerDamaged:
        return LedgerDamaged(
            self.location, line - 1 or None, f"Line {line} is damaged: {reason}. Do not rely on this history."
        )


def write_history(file: str | os.PathLike[str], header: ExportedHistory, entries: Iterable[Entry]) -> None:
    """Write a history completely or not at all."""
    path = Path(file)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(draft, "x", encoding="ascii", newline="\n") as out:
            first: dict[str, JSON] = {"format": _FORMAT, "version": _VERSION}
            out.write(json.dumps(first | {name: getattr(header, name) for name in ExportedHistory.__slots__}) + "\n")
            digest, number = first_digest(header.guard, header.parameters), 0
            for number, entry in enumerate(entries, 1):  # noqa: B007 - counted for the check below
                digest = next_digest(digest, header.guard, entry)
                fields = {name: getattr(entry, name) for name in _FIELDS}
                fields.update((name, float(fields[name]) + 0.0) for name in _NUMBERS)  # never -0.0
                if entry.time is not None:
                    fields["time"] = float(entry.time) + 0.0
                if entry.log_error_budget is not None:
                    fields["log_error_budget"] = (
                        _NOTHING_LEFT if entry.log_error_budget == -math.inf else entry.log_error_budget + 0.0
                    )
                out.write(json.dumps(fields | {"digest": digest}, allow_nan=False) + "\n")
            if (number, digest) != (header.count, header.checkpoint):
                raise LedgerDamaged(
                    str(path),
                    None,
                    "The entries do not match their checkpoint. Run `thresholdout ledger verify` on the ledger.",
                )
            out.flush()
            os.fsync(out.fileno())
        os.replace(draft, path)
    except OSError as error:
        raise LedgerUnusable(str(path), f"The file cannot be written: {error.strerror}.") from None
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()


def _object(line: bytes) -> dict[str, Any]:
    """Return a line's JSON object; ValueError for anything else, for repeated names and for infinite numbers."""
    try:
        found = json.loads(line, object_pairs_hook=_once, parse_constant=_refuse)
    except RecursionError:
        found = None
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


def _well_typed(fields: dict[str, Any]) -> bool:
    """Whether an entry's fields have the types that a ledger stores."""
    return (
        all(_is_number(fields[name]) for name in _NUMBERS)
        and all(isinstance(fields[name], str) for name in _TEXTS)
        and type(fields["query"]) is int
        and all(fields[name] is None or type(fields[name]) is int for name in ("remaining", "list"))
        and (fields["time"] is None or _is_number(fields["time"]))
        and (
            fields["log_error_budget"] is None
            or fields["log_error_budget"] == -math.inf
            or _is_number(fields["log_error_budget"])
        )
    )


def _is_number(value: object) -> bool:
    """Whether a ledger can return this number: finite, and not minus zero."""
    return type(value) is float and math.isfinite(value) and (value != 0.0 or math.copysign(1.0, value) > 0.0)
