"""The file of an audit that can be interrupted: one line for each finished run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError

__all__ = ["RunFile"]

Floats = NDArray[np.float64]
_FORMAT = 1


class RunFile:
    """Features of finished runs, kept in a file of JSON lines, or in memory only.

    Parameters
    ----------
    path : str, path or None
        Made when it does not exist; None keeps nothing. One audit at a time may write to it.
    entropy : int
        Of the audit.
    fixed_seed : bool
        Whether the entropy was chosen by the caller. Otherwise that of the file is taken over.
    audit : str
        What identifies data sets and learner.

    Attributes
    ----------
    entropy : int
    found : dict
        Features by data set and run.

    Raises
    ------
    InputError
        When the file belongs to another audit, or is none.

    Notes
    -----
    A line that was cut off by an interruption is dropped, and its run is done again. Floats are written so that they
    are read back exactly.
    """

    def __init__(self, path: str | Path | None, *, entropy: int, fixed_seed: bool, audit: str) -> None:
        self.entropy = entropy
        self.found: dict[tuple[int, int], Floats] = {}
        self._file: IO[str] | None = None
        if path is None:
            return
        place = Path(path)
        whole = place.read_bytes() if place.exists() else b""
        lines = whole[: whole.rfind(b"\n") + 1].splitlines()
        if lines:
            self._take(str(place), [self._read(str(place), line) for line in lines], fixed_seed, audit)
        elif whole:
            raise InputError("store", str(place), "a file of this audit, or none at all")
        self._file = place.open("r+" if whole else "w", encoding="utf-8", newline="\n")
        self._file.seek(whole.rfind(b"\n") + 1)
        self._file.truncate()
        if not lines:
            self._write({"format": _FORMAT, "entropy": entropy, "audit": audit})

    @staticmethod
    def _read(place: str, line: bytes) -> dict[str, Any]:
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise InputError("store", place, "a file of this audit: a line of it is no JSON object")
        return found

    def _take(self, place: str, lines: list[dict[str, Any]], fixed_seed: bool, audit: str) -> None:
        header = lines[0]
        if header.get("format") != _FORMAT or not isinstance(header.get("entropy"), int):
            raise InputError("store", place, "a file of an audit, of this version")
        if header.get("audit") != audit:
            raise InputError("store", place, "runs of the same learner on the same data; name another file")
        if fixed_seed and header["entropy"] != self.entropy:
            seen = f"{place}, of random_state {header['entropy']}"
            raise InputError("store", seen, f"runs of random_state {self.entropy}; name another file")
        self.entropy = header["entropy"]
        for line in lines[1:]:
            self.found[line["data_set"], line["run"]] = np.array(line["features"], dtype=np.float64)

    def _write(self, line: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()

    def add(self, data_set: int, run: int, features: Floats) -> None:
        """Keep the features of a finished run."""
        self.found[data_set, run] = features
        self._write({"data_set": data_set, "run": run, "features": features.tolist()})

    def close(self) -> None:
        """Close the file; what was added stays."""
        if self._file is not None:
            self._file.close()
