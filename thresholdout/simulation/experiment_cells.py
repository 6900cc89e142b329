"""Cells of an experiment (one setting with one seed), and the files of finished ones."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from thresholdout.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Cell", "CellStore", "Failure", "fingerprint", "written"]


def written(value: Any) -> str:
    """Return a value as JSON, the same text for equal values.

    Examples
    --------
    >>> written({"b": 1, "a": 0.1})
    '{"a":0.1,"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class Cell:
    """One setting with one seed."""

    setting: Mapping[str, Any]
    seed: int

    @cached_property
    def key(self) -> str:
        """Name of the cell's file: a hash of setting and seed."""
        return hashlib.sha256(written([self.setting, self.seed]).encode()).hexdigest()[:32]

    def generator(self) -> np.random.Generator:
        """Return the cell's own generator, which depends on setting and seed alone."""
        digest = hashlib.sha256(written(self.setting).encode()).digest()
        # The whole hash enters the seed, so that different settings have independent generators.
        words = np.frombuffer(digest, dtype="<u4").tolist()
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=words))

    def __str__(self) -> str:
        return ", ".join([*(f"{name}={value!r}" for name, value in self.setting.items()), f"seed={self.seed}"])


@dataclass(frozen=True)
class Failure:
    """A failed cell, with its error and traceback."""

    cell: Cell
    error: str
    traceback: str

    def __str__(self) -> str:
        return f"{self.cell}: {self.error}"


def fingerprint(function: Callable[..., Any], version: str | None) -> str:
    """Return the identity of a folder's results: the function's name, and a version.

    The default version is the hash of the source of the function's module, or "unknown" without a source.

    Examples
    --------
    >>> fingerprint(fingerprint, "1")
    'thresholdout.simulation.experiment_cells.fingerprint, version 1'
    """
    inner: Any = function
    while isinstance(inner, partial):
        inner = inner.func
    name = f"{getattr(inner, '__module__', '?')}.{getattr(inner, '__qualname__', type(inner).__qualname__)}"
    if version is None:
        module = inspect.getmodule(inner)
        try:
            version = hashlib.sha256(inspect.getsource(module).encode()).hexdigest()[:16] if module else "unknown"
        except (OSError, TypeError):
            version = "unknown"
    return f"{name}, version {version}"


class CellStore:
    """The folder of one experiment: a file for each finished cell, and the table of all."""

    def __init__(self, folder: Path, identity: str) -> None:
        self.folder = folder
        self.cells = folder / "cells"
        self.cells.mkdir(parents=True, exist_ok=True)
        about = folder / "experiment.json"
        if about.exists():
            found = json.loads(about.read_text())["function"]
            if found != identity:
                seen = f"{folder}, with results of {found}"
                raise InputError("folder", seen, f"a new folder, or one with results of {identity}")
        else:
            _replace(about, written({"function": identity}))

    def load(self, cell: Cell) -> list[dict[str, Any]] | None:
        """Return the rows of a finished cell, or None."""
        path = self.cells / f"{cell.key}.json"
        try:
            rows: list[dict[str, Any]] = json.loads(path.read_text())["rows"]
        except FileNotFoundError:
            return None
        return rows

    def save(self, cell: Cell, rows: list[dict[str, Any]]) -> None:
        """Keep the rows of a finished cell."""
        text = json.dumps({"setting": dict(cell.setting), "seed": cell.seed, "rows": rows})
        _replace(self.cells / f"{cell.key}.json", text)

    def publish(self, results: pd.DataFrame, format: Literal["csv", "parquet"]) -> Path:
        """Write the table of all rows."""
        path = self.folder / f"results.{format}"
        if format == "csv":
            _replace(path, results.to_csv(index=False))
        else:
            unfinished = path.with_suffix(".unfinished")
            results.to_parquet(unfinished, index=False)
            os.replace(unfinished, path)
        return path


def _replace(path: Path, text: str) -> None:
    """Write a file atomically."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    with unfinished.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)
