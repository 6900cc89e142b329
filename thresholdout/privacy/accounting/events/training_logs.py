"""Events of a training that another library ran: an Opacus accountant's history, or a log of a loop of one's own."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import chosen, count, positive
from thresholdout.privacy.accounting.events.composed_events import Composed, SelfComposed
from thresholdout.privacy.accounting.events.event_types import Event, GaussianAnswer
from thresholdout.privacy.accounting.events.learning_steps import (
    PoissonGaussianStep,
    WithoutReplacementGaussianStep,
    WithReplacementGaussianStep,
)

__all__ = ["Sampling", "training_events"]

Sampling = Literal["poisson", "without_replacement", "with_replacement", "shuffled"]
_SAMPLING = ("poisson", "without_replacement", "with_replacement", "shuffled")
_EXPECTED = "an Opacus accountant, its history, its state as JSON, or rows (noise multiplier, sample rate, steps)"


def training_events(log: Any, *, sampling: Sampling = "poisson", records: int | None = None) -> Composed:
    """Return the events of a training with clipped gradients and Gaussian noise, run by Opacus or by a torch loop.

    Parameters
    ----------
    log : object, list of tuple, mapping, or path
        An Opacus accountant; its ``history``, rows (noise multiplier, sample rate, steps); its ``state_dict()``; or a
        JSON file with either of the two. The noise multiplier is that of the *sum* of clipped gradients, in units of
        the clipping norm, as Opacus has it.
    sampling : {"poisson", "without_replacement", "with_replacement", "shuffled"}
        How batches were drawn. "poisson" is Opacus' own loader: a coin for each record. The next two are fresh batches
        of a fixed size in each step, of which Opacus has no accountant. "shuffled" is the usual loader of torch, which
        cuts a shuffled order into batches: each record is in one batch of an epoch, and no sampling helps.
    records : int, optional
        How many records there are; needed for all but "poisson". Batch sizes are sample rates times this number.

    Returns
    -------
    Composed
        Price it with ``best_epsilon(events, delta, adjacency="add_remove")`` for Poisson batches, as Opacus does. For
        shuffled batches only ``adjacency="replace_one"`` has a price.

    Raises
    ------
    InputError, InputTypeError
        When the log is none of these, a row is out of range, or a batch is no whole number of records.

    Notes
    -----
    "shuffled" holds for partitions that do not depend on the records' values: a replaced record moves one noisy sum of
    each epoch by twice the clipping norm (dpsgd/PROOFS.md). Steps that are not logged are not counted.

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
        raise InputError("records", "none", f"the number of records, which batches that are {how!r} need")
    total = None if records is None else count(records, "records", least=2)
    found = [_event(*_row(row, place), how, total, place == 0) for place, row in enumerate(_rows(log))]
    if not found:
        raise InputError("log", "no steps", _EXPECTED)
    return Composed(found)


def _rows(log: Any) -> list[Any]:
    if isinstance(log, (str, Path)):
        try:
            log = json.loads(Path(log).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError("log", f"{str(log)!r} ({error})", _EXPECTED) from None
    found = log.get("history") if isinstance(log, Mapping) else getattr(log, "history", log)
    if isinstance(found, (str, bytes)) or not isinstance(found, Iterable):
        raise InputTypeError("log", f"a {type(log).__name__}", _EXPECTED)
    return list(found)


def _row(row: Any, place: int) -> tuple[float, float, int]:
    try:
        noise, rate, steps = row
    except (TypeError, ValueError):
        expected = "a noise multiplier, a sample rate, and a number of steps"
        raise InputError("log", f"row {place}: {row!r}", expected) from None
    share = positive(rate, f"sample rate of row {place}")
    if share > 1.0:
        raise InputError("log", f"row {place}: a sample rate of {share!r}", "a rate of at most 1")
    return positive(noise, f"noise multiplier of row {place}"), share, count(steps, f"steps of row {place}")


def _event(noise: float, rate: float, steps: int, sampling: str, records: int | None, first: bool) -> Event:
    if sampling == "poisson":
        step: Event = GaussianAnswer(noise, 1.0, "add_remove") if rate == 1.0 else PoissonGaussianStep(noise, rate)
        return SelfComposed(step, steps)
    assert records is not None
    size = round(rate * records)
    if size < 1 or abs(size - rate * records) > 1e-6 * records:
        seen = f"a sample rate of {rate!r} of {records} records, {rate * records:.6g} in a batch"
        raise InputError("log", seen, "a whole number of records: batch size over records as sample rate")
    if sampling == "shuffled":
        # Epochs that these steps touch, in each of which one step sees a record; the last batch may be left out. The
        # first row begins with an epoch, later ones anywhere in it.
        in_epoch = max(1, records // size)
        epochs = math.ceil(steps / in_epoch) if first else math.ceil((steps - 1) / in_epoch) + 1
        return SelfComposed(GaussianAnswer(noise, 2.0), epochs)
    if size >= records:
        return SelfComposed(GaussianAnswer(noise, 2.0), steps)
    kind = WithoutReplacementGaussianStep if sampling == "without_replacement" else WithReplacementGaussianStep
    return SelfComposed(kind(noise, size, records), steps)
