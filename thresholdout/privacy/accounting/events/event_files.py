"""Events as JSON and TOML, both ways, and events read from a training log."""

from __future__ import annotations

import csv
import json
import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import chosen, count, positive
from thresholdout.privacy.accounting.events.composed_events import Composed, SelfComposed, check_event
from thresholdout.privacy.accounting.events.event_types import (
    BlackBox,
    Event,
    GaussianAnswer,
    LaplaceAnswer,
    ThresholdoutInteraction,
)
from thresholdout.privacy.accounting.events.learning_steps import (
    FederatedRound,
    PoissonGaussianStep,
    SGLDStep,
    WithoutReplacementGaussianStep,
    WithReplacementGaussianStep,
)

__all__ = [
    "Sampling",
    "event_from_dict",
    "event_to_dict",
    "read_events",
    "training_events",
]

# Names of events in files.
KINDS: dict[str, type[Event]] = {
    "laplace_answer": LaplaceAnswer,
    "gaussian_answer": GaussianAnswer,
    "thresholdout_interaction": ThresholdoutInteraction,
    "black_box": BlackBox,
    "poisson_gaussian_step": PoissonGaussianStep,
    "without_replacement_gaussian_step": WithoutReplacementGaussianStep,
    "with_replacement_gaussian_step": WithReplacementGaussianStep,
    "sgld_step": SGLDStep,
    "federated_round": FederatedRound,
    "self_composed": SelfComposed,
    "composed": Composed,
}

_NAMES = {kind: name for name, kind in KINDS.items()}

_DEEPEST = 50  # levels of events in files: readers and writers recurse, far below Python's limit of 1,000

_SHAPE = 'a table such as {"kind": "gaussian_answer", "std": 2.0}'


def event_to_dict(event: Event) -> dict[str, Any]:
    """Return an event as plain values: its kind, and its fields."""
    return _plain(check_event(event), 0)


def _plain(event: Event, depth: int) -> dict[str, Any]:
    _check_depth(depth)
    if type(event) not in _NAMES:
        raise InputTypeError("event", f"a {type(event).__name__}", "an event of this package")
    found: dict[str, Any] = {"kind": _NAMES[type(event)]}
    for field in fields(event):
        value = getattr(event, field.name)
        if isinstance(value, Event):
            found[field.name] = _plain(value, depth + 1)
        elif field.name == "events":
            found[field.name] = [_plain(each, depth + 1) for each in value]
        elif value != field.default:
            found[field.name] = list(value) if isinstance(value, tuple) else value
    return found


def _check_depth(depth: int) -> None:
    if depth > _DEEPEST:
        seen = f"events within events, more than {_DEEPEST} deep"
        raise InputError("event", seen, f"nested at most {_DEEPEST} levels deep", "Pass one Composed([...]) of all.")


def event_from_dict(values: object) -> Event:
    """Return the event that plain values describe; a ``count`` beside the fields repeats it.

    Examples
    --------
    >>> event_from_dict({"kind": "gaussian_answer", "std": 2.0, "count": 3})
    SelfComposed(GaussianAnswer(std=2.0), 3)
    """
    return _event(values, 0)


def _event(values: object, depth: int) -> Event:
    _check_depth(depth)
    if not isinstance(values, Mapping):
        raise InputTypeError("event", f"a {type(values).__name__}", _SHAPE)
    given = dict(values)
    kind = KINDS.get(given.pop("kind", None))
    if kind is None:
        raise InputError("kind", repr(values.get("kind")), "one of " + ", ".join(KINDS))
    repeated = None if kind is SelfComposed else given.pop("count", None)
    names = {field.name: field for field in fields(kind)}
    unknown = [str(name) for name in given if name not in names]
    if unknown:
        expected = f"a {values['kind']} with some of the fields {', '.join(names)}"
        raise InputError("event", f"one with the field {unknown[0]!r}", expected)
    if kind is Composed:
        each = given.get("events", [])
        if not isinstance(each, list):
            raise InputTypeError("events", f"a {type(each).__name__}", "a list of events")
        event: Event = Composed([_event(one, depth + 1) for one in each])
    else:
        if "event" in given:
            given["event"] = _event(given["event"], depth + 1)
        if isinstance(given.get("ratios"), list):
            given["ratios"] = tuple(given["ratios"])
        try:
            event = kind(**given)
        except TypeError as error:
            if isinstance(error, InputTypeError):
                raise
            needed = ", ".join(name for name, field in names.items() if field.default is MISSING)
            seen = f"one with {', '.join(given) or 'no fields'}"
            raise InputError("event", seen, f"a {values['kind']} with at least the fields {needed}") from None
    return event if repeated is None else SelfComposed(event, count(repeated, "count"))


def read_events(source: str | Path) -> tuple[Composed, dict[str, Any]]:
    """Read events from a TOML or JSON file, for `best_epsilon` or an accountant.

    Each event is a table with its ``kind``, such as "gaussian_answer", its parameters, and optionally a ``count`` of
    repetitions. In TOML each table is headed ``[[event]]``. In JSON the file has one such object or a list of them.

    Parameters
    ----------
    source : path or str
        Name of the file. A str with more than one line is read as the text of a TOML file.

    Returns
    -------
    events : Composed
        All events of the file.
    settings : dict
        The other values of a TOML file, such as ``delta`` and ``adjacency``. Empty for JSON.

    Raises
    ------
    InputError
        If the file cannot be read, has no event, or has a value that is not an event.

    Examples
    --------
    >>> read_events('''
    ... delta = 1e-5
    ... [[event]]
    ... kind = "gaussian_answer"
    ... std = 2.0
    ... count = 3
    ... ''')
    (Composed([SelfComposed(GaussianAnswer(std=2.0), 3)]), {'delta': 1e-05})
    """
    inline = isinstance(source, str) and "\n" in source
    try:
        text = str(source) if inline else Path(source).read_text(encoding="utf-8")
        if not inline and Path(source).suffix.lower() == ".json":
            values = json.loads(text)
            event = Composed([event_from_dict(each) for each in values]) if isinstance(values, list) else None
            return event or Composed([event_from_dict(values)]), {}
        settings = tomllib.loads(text)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:  # also of numbers with thousands of digits
        raise InputError(
            "events", f"a file that can't be read: {error}", "TOML with tables [[event]], or JSON"
        ) from None
    tables = settings.pop("event", None)
    if not isinstance(tables, list) or not tables:
        raise InputError("events", "none", "a file with a table [[event]] for each event")
    return Composed([event_from_dict(table) for table in tables]), settings


Sampling = Literal["poisson", "without_replacement", "with_replacement", "shuffled"]

_SAMPLING = ("poisson", "without_replacement", "with_replacement", "shuffled")

_EXPECTED = "an Opacus accountant, its history, its state as JSON, or rows (noise multiplier, sample rate, steps)"

_COLUMNS = ("noise_multiplier", "sample_rate", "num_steps")  # the names that Opacus' own code gives a row's parts


def training_events(log: Any, *, sampling: Sampling = "poisson", records: int | None = None) -> Composed:
    """Convert the log of a DP-SGD training, by Opacus or a torch loop, to events.

    The training clips the gradient of each record and adds Gaussian noise. Pass the result to `best_epsilon` to compute
    its privacy cost.

    Parameters
    ----------
    log : object, list of tuple, mapping, or path
        One of the following. As in Opacus, the noise multiplier is that of the *sum* of clipped gradients, in units of
        the clipping norm.

        * An Opacus accountant, its ``history``, or its ``state_dict()``. A history has rows (noise multiplier, sample
          rate, number of steps).
        * The path of a JSON file with a history or a state.
        * A log with the columns ``noise_multiplier``, ``sample_rate`` and ``num_steps`` (1 if it is missing), as a list
          of mappings or the path of a CSV or JSON Lines file.
    sampling : {"poisson", "without_replacement", "with_replacement", "shuffled"}, default "poisson"
        How batches were drawn.

        * "poisson": each record enters a batch independently, as in the loader of Opacus.
        * "without_replacement": a fresh batch of a fixed size for each step, for which Opacus has no accountant.
        * "with_replacement": the same with replacement, for which Opacus has no accountant either.
        * "shuffled": the usual torch loader, which cuts a shuffled order into batches. Each record is in one batch of
          an epoch, and sampling does not amplify privacy.
    records : int, optional
        Number of records in the data set, at least 2. Required for all but "poisson". Batch sizes are the sample rates
        times this number.

    Returns
    -------
    Composed
        The events of all logged steps. The cost of Poisson batches is
        ``best_epsilon(events, delta, adjacency="add_remove")``, as in Opacus. Shuffled batches have a cost for
        ``adjacency="replace_one"`` only.

    Raises
    ------
    InputError, InputTypeError
        If the log has none of these forms, a row is out of range, or a batch is not a whole number of records.

    Notes
    -----
    The result for "shuffled" holds if the batches do not depend on the values of the records: a replaced record then
    moves one noisy sum of each epoch by at most twice the clipping norm (dpsgd/PROOFS.md). Steps that are not logged
    are not counted.

    Examples
    --------
    >>> from thresholdout.privacy.accounting import best_epsilon
    >>> history = [(1.0, 0.01, 1000)]  # optimizer.accountant.history, or privacy_engine.accountant.history
    >>> events = training_events(history)
    >>> events
    Composed([SelfComposed(PoissonGaussianStep(noise_multiplier=1.0, rate=0.01), 1000)])
    >>> round(best_epsilon(events, 1e-5, adjacency="add_remove").epsilon, 2)
    1.83
    >>> training_events(history, sampling="shuffled", records=5000)
    Composed([SelfComposed(GaussianAnswer(std=1.0, sensitivity=2.0), 10)])
    """
    how = chosen(sampling, "sampling", _SAMPLING)
    if how != "poisson" and records is None:
        raise InputError("records", "nothing", f"the number of records, which sampling={how!r} needs")
    total = None if records is None else count(records, "records", least=2)
    rows = [_row(row, place) for place, row in enumerate(_rows(log))]
    if not rows:
        raise InputError("log", "no steps", _EXPECTED)
    # A log of single steps is one training: rows of equal steps are joined, so that epochs are counted correctly.
    runs = [(step, sum(row[2] for row in equal)) for step, equal in groupby(rows, key=lambda row: (row[0], row[1]))]
    return Composed([_logged_event(*step, steps, how, total, place == 0) for place, (step, steps) in enumerate(runs)])


def _rows(log: Any) -> list[Any]:
    if isinstance(log, (str, Path)):
        try:
            log = _logged(Path(log))
        except (OSError, ValueError) as error:
            raise InputError("log", f"{str(log)!r} ({error})", _EXPECTED) from None
    found = log.get("history") if isinstance(log, Mapping) else getattr(log, "history", log)
    if isinstance(found, (str, bytes)) or not isinstance(found, Iterable):
        raise InputTypeError("log", f"a {type(log).__name__}", _EXPECTED)
    return list(found)


def _logged(path: Path) -> Any:
    text, kind = path.read_text(encoding="utf-8"), path.suffix.lower()
    if kind == ".csv":
        rows = csv.DictReader(text.splitlines(), skipinitialspace=True)
        return [{name: _number(row[name]) for name in _COLUMNS if row.get(name)} for row in rows]
    if kind == ".jsonl":
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return json.loads(text)


def _number(text: str) -> float | int:
    return int(text) if text.strip().isdigit() else float(text)


def _row(row: Any, place: int) -> tuple[float, float, int]:
    try:
        if isinstance(row, Mapping):
            row = (row["noise_multiplier"], row["sample_rate"], row.get("num_steps", 1))
        noise, rate, steps = row
    except KeyError as missing:
        raise InputError(
            "log", f"row {place} without {missing}", "rows with the columns " + ", ".join(_COLUMNS)
        ) from None
    except (TypeError, ValueError):
        expected = "rows of a noise multiplier, a sample rate and a number of steps"
        raise InputError("log", f"row {place}, {row!r}", expected) from None
    share = positive(rate, f"sample rate of row {place}")
    if share > 1.0:
        raise InputError("log", f"row {place}, whose rate is {share!r}", "rows with sample rates of at most 1")
    return positive(noise, f"noise multiplier of row {place}"), share, count(steps, f"steps of row {place}")


def _logged_event(noise: float, rate: float, steps: int, sampling: str, records: int | None, first: bool) -> Event:
    if sampling == "poisson":
        step: Event = GaussianAnswer(noise, 1.0, "add_remove") if rate == 1.0 else PoissonGaussianStep(noise, rate)
        return SelfComposed(step, steps)
    assert records is not None
    size = round(rate * records)
    if size < 1 or abs(size - rate * records) > 1e-6 * records:
        seen = f"a sample rate of {rate!r} of {records} records, {rate * records:.6g} in a batch"
        expected = "rows whose batches have a whole number of records"
        raise InputError("log", seen, expected, "Pass the batch size over the number of records as sample rate.")
    if sampling == "shuffled":
        # One step of each epoch that these steps touch sees a record. The last, smaller batch may be left out, so an
        # epoch has at least this many steps. The first row begins with an epoch, later ones anywhere in it.
        in_epoch = max(1, records // size)
        epochs = math.ceil(steps / in_epoch) if first else math.ceil((steps - 1) / in_epoch) + 1
        return SelfComposed(GaussianAnswer(noise, 2.0), epochs)
    if size >= records:
        return SelfComposed(GaussianAnswer(noise, 2.0), steps)
    kind = WithoutReplacementGaussianStep if sampling == "without_replacement" else WithReplacementGaussianStep
    return SelfComposed(kind(noise, size, records), steps)
