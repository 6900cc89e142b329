"""Experiments: a grid of settings by seeds, parallel, resumable and reproducible."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from graphs.numerics.arguments import as_integer
from graphs.progress_bar import progress_bar
from thresholdout.data.arguments import check_word
from thresholdout.errors import InputError, InputTypeError, ThresholdoutError
from thresholdout.simulation.experiment_cells import Cell, CellStore, Failure, fingerprint

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ExperimentError", "run_experiment"]

Setting: TypeAlias = "Mapping[str, Any]"
CellFunction: TypeAlias = "Callable[..., Mapping[str, Any] | Iterable[Mapping[str, Any]]]"


class ExperimentError(ThresholdoutError):
    """Raised at the end of an experiment if some of its cells failed.

    Attributes
    ----------
    failures : tuple of Failure
        Errors of the failed cells.
    results : pandas.DataFrame
        Rows of all other cells.
    """

    def __init__(self, failures: Sequence[Failure], results: pd.DataFrame) -> None:
        self.failures = tuple(failures)
        self.results = results
        shown = "\n".join(f"  {failure}" for failure in self.failures[:5])
        more = f"\n  and {len(self.failures) - 5} more" if len(self.failures) > 5 else ""
        super().__init__(
            f"{len(self.failures)} cells failed; the others are in `results`, and with a folder only these run again:\n"
            f"{shown}{more}\nThe first traceback:\n{self.failures[0].traceback}"
        )


def run_experiment(
    function: CellFunction,
    grid: Mapping[str, Sequence[Any]] | Sequence[Setting],
    seeds: int | Sequence[int],
    *,
    folder: str | Path | None = None,
    n_jobs: int | None = None,
    progress: bool = True,
    version: str | None = None,
    format: Literal["csv", "parquet"] = "csv",
) -> pd.DataFrame:
    """Run a function for every setting and seed, and return all its rows as one table.

    The runs can be parallel, and an interrupted experiment can be resumed. The result depends on neither.

    Parameters
    ----------
    function : callable
        ``function(rng, **setting)`` returns one row, a mapping of names to numbers, texts, booleans or None, or several
        such rows. All its randomness must come from ``rng``. With several processes, the function must be importable
        from a module.
    grid : mapping of str to sequence, or sequence of mappings
        A mapping has the values of each parameter, and all their combinations are run. A sequence has the settings one
        by one. Values are numbers, texts, booleans or None.
    seeds : int or sequence of int
        Number of seeds, for the seeds 0 to ``seeds - 1``, or the seeds themselves.
    folder : path, optional
        Folder of the results, with a file for every finished run and ``results.csv`` at the end. An interrupted or
        failed experiment continues from it. If None, nothing is written.
    n_jobs : int, optional
        Number of joblib workers. If None, that of ``joblib.parallel_config``, or else one. The same context chooses
        other back ends, such as Dask or Ray.
    progress : bool, default True
        Whether to show a progress bar after two seconds.
    version : str, optional
        Version that all results of a folder share. If None, the source of the function's module, so that results of
        changed code are not mixed with earlier ones.
    format : {"csv", "parquet"}, default "csv"
        Format of the file of all results. "parquet" needs pyarrow or fastparquet.

    Returns
    -------
    pandas.DataFrame
        One row for each returned row, in the order of settings, seeds and rows. The columns are those of the setting,
        ``seed``, and the returned values.

    Raises
    ------
    InputError, InputTypeError
        If the grid is empty, settings or seeds are repeated, values have other types, or the folder holds results of
        another experiment. Nothing has run then.
    ExperimentError
        If some runs failed, or returned rows with ``seed`` or a name of the setting. All other runs are finished, and
        their rows are in the attribute ``results`` of the exception.

    Notes
    -----
    The generator of a run is made from the seed and a hash of the setting alone, and numerical libraries use one thread
    within a run. The results therefore do not depend on the number of workers, on their order, or on interruptions. A
    file is either complete or absent.

    Examples
    --------
    >>> def mean_of_coins(rng, n):
    ...     return {"mean": float((rng.random(n) < 0.5).mean())}
    >>> table = run_experiment(mean_of_coins, {"n": [10, 1000]}, seeds=2)
    >>> table.columns.tolist(), len(table)
    (['n', 'seed', 'mean'], 4)
    >>> table.equals(run_experiment(mean_of_coins, [{"n": 10}, {"n": 1000}], seeds=[0, 1]))
    True
    """
    if not callable(function):
        raise InputTypeError("function", f"a {type(function).__name__}", "a function of rng and a setting")
    check_word("format", format, ("csv", "parquet"))
    cells = _cells(_settings(grid), _seeds(seeds))
    store = None if folder is None else CellStore(Path(folder), fingerprint(function, version))
    found = {} if store is None else {cell.key: rows for cell in cells if (rows := store.load(cell)) is not None}
    failures: dict[str, Failure] = {}
    missing = [cell for cell in cells if cell.key not in found]
    for cell, outcome in _outcomes(function, missing, n_jobs, progress, len(cells)):
        if isinstance(outcome, Failure):
            failures[cell.key] = outcome
        else:
            found[cell.key] = outcome
            if store is not None:
                store.save(cell, outcome)
    results = _table(cells, found)
    if store is not None:
        store.publish(results, format)
    if failures:
        raise ExperimentError([failures[cell.key] for cell in cells if cell.key in failures], results)
    return results


def _settings(grid: Mapping[str, Sequence[Any]] | Sequence[Setting]) -> list[dict[str, Any]]:
    """List all settings."""
    if isinstance(grid, Mapping):
        names = list(grid)
        for name in names:
            if isinstance(grid[name], str) or not isinstance(grid[name], Sequence | np.ndarray):
                raise InputTypeError(f"grid[{name!r}]", f"a {type(grid[name]).__name__}", "a sequence of values")
        settings = [dict(zip(names, values, strict=True)) for values in product(*grid.values())]
    else:
        settings = [dict(setting) for setting in grid]
    if not settings:
        raise InputError("grid", "no setting", "a grid of at least one setting")
    for setting in settings:
        for name, value in setting.items():
            setting[name] = _plain(f"grid[{name!r}]", value)
        if "seed" in setting:
            raise InputError("grid", "one", "a grid without a parameter 'seed'", "The argument seeds has the seeds.")
    return settings


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    """List all seeds."""
    if isinstance(seeds, bool) or not isinstance(seeds, int | np.integer | Sequence | np.ndarray | range):
        raise InputTypeError("seeds", f"a {type(seeds).__name__}", "a number of seeds, or a sequence of them")
    listed = list(range(int(seeds))) if isinstance(seeds, int | np.integer) else list(seeds)
    numbers = []
    for seed in listed:
        number = as_integer(seed)
        if number is None or number < 0:
            raise InputError("seeds", seed, "integers of at least 0")
        numbers.append(number)
    if not listed:
        raise InputError("seeds", seeds, "at least one seed")
    return numbers


def _cells(settings: list[dict[str, Any]], seeds: list[int]) -> list[Cell]:
    """List all cells, and refuse repeated ones."""
    cells = [Cell(setting, seed) for setting in settings for seed in seeds]
    seen: set[str] = set()
    for cell in cells:
        if cell.key in seen:
            raise InputError("grid", f"{cell} twice", "a grid of different settings, with different seeds")
        seen.add(cell.key)
    return cells


def _plain(argument: str, value: Any) -> str | int | float | bool | None:
    """Return a value as a type of JSON."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise InputTypeError(argument, f"a {type(value).__name__}", "a number, a text, a boolean or None")


def _outcomes(
    function: CellFunction, cells: list[Cell], n_jobs: int | None, progress: bool, total: int
) -> Iterator[tuple[Cell, list[dict[str, Any]] | Failure]]:
    """Yield the outcome of every cell as soon as it is finished."""
    from joblib import Parallel, delayed

    workers = None
    for kind in ("generator_unordered", "generator", "list"):  # the first that backend and version of joblib offer
        try:
            workers = Parallel(n_jobs=n_jobs, return_as=kind)
        except ValueError:
            continue
        break
    assert workers is not None
    outcomes = workers(delayed(_run)(function, cell) for cell in cells)
    yield from progress_bar(
        outcomes, doing="experiment", unit="cells", total=total, done=total - len(cells), show=progress
    )


def _run(function: CellFunction, cell: Cell) -> tuple[Cell, list[dict[str, Any]] | Failure]:
    """Run one cell, on one thread."""
    from threadpoolctl import threadpool_limits

    try:
        with threadpool_limits(1):
            found = function(cell.generator(), **cell.setting)
        rows = [found] if isinstance(found, Mapping) else list(found)
        return cell, [_row(cell, row) for row in rows]
    except Exception as error:
        return cell, Failure(cell, f"{type(error).__name__}: {error}", traceback.format_exc())


def _row(cell: Cell, row: Mapping[str, Any]) -> dict[str, Any]:
    """Check one row, and make its values plain."""
    plain = {}
    for name, value in row.items():
        if name == "seed" or name in cell.setting:
            raise InputError("row", f"a column {name!r}", "a row without 'seed' and the names of the setting")
        plain[name] = _plain(f"row[{name!r}]", value)
    stored: dict[str, Any] = json.loads(json.dumps(plain))  # as a resumed run will read it
    return stored


def _table(cells: list[Cell], found: Mapping[str, list[dict[str, Any]]]) -> pd.DataFrame:
    """Put all rows in order."""
    import pandas as pd

    rows = [{**cell.setting, "seed": cell.seed, **row} for cell in cells for row in found.get(cell.key, ())]
    return pd.DataFrame(rows)
