"""What is read of a table of predictions: the same whatever its order, kept as bytes, and of one guard only."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from thresholdout.errors import InputError
from thresholdout.scoring.metrics import get_metric
from thresholdout.service.prediction_guard import PredictionGuard
from thresholdout.service.prediction_reader import Reading

N = 60
NAMES = ["ant", "bee", "größe"]
TABLE = pd.DataFrame({"id": [f"r{k}" for k in range(2 * N)], "y": [NAMES[k % 3] for k in range(2 * N)]})
METRICS = ["accuracy", "brier_score"]


@pytest.fixture
def service(tmp_path: Path) -> PredictionGuard:
    return PredictionGuard.create(tmp_path / "guard.db", TABLE[:N], TABLE[N:], label="y")


def predicted(metric: str, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    if metric == "accuracy":
        return pd.DataFrame({"id": TABLE["id"], "prediction": rng.choice(NAMES, 2 * N)})
    shares = rng.dirichlet([1.0, 1.0, 1.0], 2 * N)
    return pd.DataFrame({"id": TABLE["id"]} | {f"p_{name}": shares[:, k] for k, name in enumerate(NAMES)})


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("both", [False, True])
def test_it_is_in_the_order_of_the_records(service: PredictionGuard, metric: str, both: bool) -> None:
    table = predicted(metric, 1) if both else predicted(metric, 1)[N:]
    shuffled = table.sample(frac=1, random_state=2)
    one, two = service.read(table, metric), service.read(shuffled, metric)
    columns = table.drop(columns="id").to_numpy()
    assert one.output.tolist() == (columns[:, 0] if metric == "accuracy" else columns).tolist()
    assert (one.output == two.output).all()
    assert one.digest == two.digest
    assert (one.train is not None) == both
    if one.train is not None:
        labels = TABLE["y"].to_numpy(dtype=str)[:N]
        wanted = get_metric(metric).values(labels, one.output[:N], one.classes)
        assert one.train.tolist() == np.asarray(wanted).tolist()
    with pytest.raises(ValueError, match="read-only"):
        one.output[0] = one.output[1]


@pytest.mark.parametrize("metric", METRICS)
def test_different_predictions_have_different_digests(service: PredictionGuard, metric: str) -> None:
    table = predicted(metric, 1)
    column = table.iloc[:, 1].tolist()
    moved = next(row for row in range(N, 2 * N) if column[row] != column[N])
    swapped = table.copy()
    swapped.iloc[[N, moved], 0] = swapped.iloc[[moved, N], 0].to_numpy()
    tables = [table, table[N:], predicted(metric, 2), swapped]
    assert len({service.read(one, metric).digest for one in tables}) == 4
    other = {"accuracy": "zero_one_loss", "brier_score": "log_loss"}[metric]
    assert service.read(table, metric).digest != service.read(table, other).digest


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("both", [False, True])
def test_it_comes_back_from_its_bytes(service: PredictionGuard, metric: str, both: bool) -> None:
    reading = service.read(predicted(metric, 1) if both else predicted(metric, 1)[N:], metric)
    found = service.decoded(reading.encoded)
    for name in ("output", "classes", "train"):
        one, two = getattr(reading, name), getattr(found, name)
        assert (one is None) == (two is None)
        if one is not None:
            assert (one.dtype, one.tolist()) == (two.dtype, two.tolist())
    assert (found.guard, found.metric, found.digest) == (reading.guard, reading.metric, reading.digest)


def test_it_is_asked_about_in_place_of_its_table(service: PredictionGuard) -> None:
    table, other = predicted("accuracy", 1), predicted("accuracy", 2)
    reading = service.decoded(service.read(table).encoded)
    first = service.ask(table, expected=0.3, client="ann")
    again = service.ask(reading, expected=0.3, client="ann")
    assert (again.repeated, again.value) == (True, first.value)
    told = service.compare(reading, other, client="ann")
    assert service.compare(table, service.read(other), client="ann").interval == told.interval
    assert len(service.guard.history) == 2


def test_what_was_read_for_something_else_is_refused(service: PredictionGuard, tmp_path: Path) -> None:
    other = PredictionGuard.create(tmp_path / "other.db", TABLE[:N], TABLE[N : 2 * N - 1], label="y")
    reading = service.read(predicted("accuracy", 1)[N:])
    with pytest.raises(InputError, match=r"^predictions must be a reading of guard .*; got a reading of guard"):
        other.ask(reading, expected=0.5)
    with pytest.raises(InputError, match="a reading for zero_one_loss; got a reading for accuracy"):
        service.ask(reading, "zero_one_loss", expected=0.5)
    short = Reading(service.identity, "accuracy", reading.output[1:].copy(), None, None)
    with pytest.raises(InputError, match=f"got a reading of {N - 1} records"):
        service.ask(short, expected=0.5)
    assert len(service.guard.history) == len(other.guard.history) == 0


def test_bytes_that_are_no_reading_are_refused(service: PredictionGuard, tmp_path: Path) -> None:
    good = service.read(predicted("accuracy", 1)).encoded
    start = good[: good.index(b"\n") + 1]
    other = PredictionGuard.create(tmp_path / "other.db", TABLE[:N], TABLE[N : 2 * N - 1], label="y")
    forged = [
        b"",
        start,
        good[:-5],
        good[1:],
        b"x" + good,
        start + zlib.compress(b"{}\n"),
        start + zlib.compress(b"[1]\nabc"),
        start + b"x" * 100,
        start + zlib.compress(zlib.decompress(good[len(start) :])[:-30]),
    ]
    for encoded in forged:
        with pytest.raises(InputError, match=r"^encoded must be .*; got other bytes"):
            service.decoded(encoded)
    with pytest.raises(InputError, match="got other bytes"):
        other.decoded(good)
