"""Audits of learners: the same result however the work is done, interruptions, files, refusals."""

from __future__ import annotations

import gc
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.cases import for_each
from tests.sizes import corners
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.auditing import AuditResult, audit_learner
from thresholdout.privacy.auditing.audit_settings import entropy_of, run_seed

Floats = NDArray[np.float64]

FIRST, SECOND = np.zeros(10), np.append(np.zeros(9), 1.0)


def path(data: Floats, seed: int, noise: float = 0.05) -> Floats:
    """Noisy means after one, two and three looks."""
    draws = np.random.default_rng(seed).normal(size=(3, 1))
    found: Floats = data.mean() + noise * np.cumsum(draws, axis=0) / np.arange(1, 4)[:, None]
    return found


def same(values: Floats) -> Floats:
    return values


def audit(learner: Any = path, features: Any = same, **options: Any) -> AuditResult:
    chosen = {"models": 40, "delta": 1e-5, "random_state": 3, "progress": False, **options}
    found: AuditResult = audit_learner(learner, FIRST, SECOND, features=features, **chosen)
    return found


def equal(one: AuditResult, other: AuditResult) -> bool:
    return all((getattr(one, name) == getattr(other, name)).all() for name in ("fp", "fn", "cuts", "bounds"))


class Recording:
    """A learner that counts its runs; all of them have the same name."""

    def __init__(self, fail_after: int | None = None) -> None:
        self.seeds: list[int] = []
        self.fail_after = fail_after

    def __call__(self, data: Floats, seed: int) -> Floats:
        if self.fail_after is not None and len(self.seeds) >= self.fail_after:
            raise KeyboardInterrupt
        self.seeds.append(seed)
        return path(data, seed)


@pytest.mark.slow
def test_the_path_of_a_learner() -> None:
    result = audit(models=200)
    assert result.stages == (1, 2, 3)
    assert result.n_fp == result.n_fn == 100
    assert result.bounds[-1] > 0.5
    single = audit(features=lambda values: values[-1], models=200)
    assert single.fp[0] == result.fp[-1]
    number = audit(features=lambda values: float(values[-1, 0]), models=200)
    assert number.epsilon == single.epsilon == result.epsilon


@pytest.mark.slow
def test_the_same_for_any_number_of_workers() -> None:
    assert equal(audit(), audit(n_jobs=2))


@pytest.mark.slow
def test_other_seeds_are_other_runs() -> None:
    assert not equal(audit(), audit(random_state=4))
    assert isinstance(audit(random_state=None), AuditResult)


@pytest.mark.slow
def test_every_run_has_its_own_seed() -> None:
    learner = Recording()
    audit(learner, models=100)
    assert len(set(learner.seeds)) == 200
    assert len({run_seed(9, part, run) for part in (0, 1) for run in range(50_000)}) == 100_000
    assert len({run_seed(entropy, 0, 0) for entropy in range(100)}) == 100


class TestFile:
    @pytest.mark.slow
    def test_an_interrupted_audit_goes_on(self, tmp_path: Path) -> None:
        store = tmp_path / "runs.jsonl"
        whole = Recording()
        expected = audit(whole)
        begun, continued = Recording(fail_after=33), Recording()
        with pytest.raises(KeyboardInterrupt):
            audit(begun, store=store)
        assert len(store.read_text().splitlines()) == 34
        assert equal(audit(continued, store=store), expected)
        assert begun.seeds + continued.seeds == whole.seeds
        idle = Recording()
        assert equal(audit(idle, store=str(store)), expected)
        assert not idle.seeds

    @pytest.mark.slow
    def test_more_models_start_with_those_that_are_there(self, tmp_path: Path) -> None:
        audit(store=tmp_path / "runs", models=10)
        learner = partial(path)
        assert equal(audit(store=tmp_path / "runs", models=20, n_jobs=2), audit(learner, models=20))

    @pytest.mark.slow
    def test_a_line_that_was_cut_off_is_done_again(self, tmp_path: Path) -> None:
        store = tmp_path / "runs"
        expected = audit(store=store)
        whole = store.read_bytes()
        for kept in (len(whole) - 1, len(whole) - 30, len(whole) // 2):
            store.write_bytes(whole[:kept])
            assert equal(audit(store=store), expected)
            lines = [json.loads(line) for line in store.read_text().splitlines()]
            assert len(lines) == 81

    @pytest.mark.slow
    def test_fresh_entropy_is_kept_in_the_file(self, tmp_path: Path) -> None:
        store = tmp_path / "runs"
        one = audit(store=store, random_state=None)
        assert equal(audit(store=store, random_state=None), one)

    def test_another_audit_is_refused(self, tmp_path: Path) -> None:
        store = tmp_path / "runs"
        audit(partial(path, noise=0.05), store=store)
        with pytest.raises(InputError, match="random_state 4"):
            audit(partial(path, noise=0.05), store=store, random_state=4)
        for learner in (partial(path, noise=0.1), Recording()):
            with pytest.raises(InputError, match="same learner on the same data"):
                audit(learner, store=store)
        with pytest.raises(InputError, match="same learner on the same data"):
            audit_learner(path, SECOND, FIRST, features=same, models=4, delta=0.0, random_state=3, store=store)

    @for_each("content", ["no file of an audit", "no file\nof an audit\n", '{"format": 9}\n', "[1]\n"])
    def test_other_files_are_refused_and_stay(self, tmp_path: Path, content: str) -> None:
        store = tmp_path / "notes.txt"
        store.write_text(content)
        with pytest.raises(InputError, match="store"):
            audit(store=store)
        assert store.read_text() == content


class TestRefusals:
    def test_before_anything_is_trained(self, tmp_path: Path) -> None:
        def never(data: Floats, seed: int) -> Floats:
            raise AssertionError("trained")

        store = tmp_path / "runs"
        changes: list[dict[str, Any]] = [
            {"delta": None},
            {"delta": 1.0},
            {"models": 3},
            {"models": 10.0},
            {"random_state": -1},
            {"random_state": 1.5},
            {"attack": "magic"},
            {"confidence": 2},
            {"features": 3},
            {"other": 3},
        ]
        for change in changes:
            with pytest.raises(InputError):
                audit(never, store=store, **change)
            assert not store.exists()
        with pytest.raises(InputTypeError, match="learner"):
            audit("a learner")

    def test_features_that_are_no_numbers(self) -> None:
        with pytest.raises(InputTypeError, match="features"):
            audit(features=str)
        with pytest.raises(InputTypeError, match="features"):
            audit(features=lambda values: values[None])

    @pytest.mark.slow
    @pytest.mark.parametrize("n_jobs", corners([1, 2], 0))
    def test_features_that_are_not_finite(self, tmp_path: Path, n_jobs: int) -> None:
        with pytest.raises(InputError, match="run 0"):
            audit(features=lambda values: np.nan * values, store=tmp_path / "runs", n_jobs=n_jobs)
        gc.collect()

    def test_features_that_change_their_shape(self) -> None:
        with pytest.raises(InputError, match="shapes"):
            audit(features=lambda values: values if values[0, 0] > 0 else values[:2])


def test_progress_goes_nowhere_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    audit(progress=True)
    assert capsys.readouterr().err == ""


def test_entropy() -> None:
    assert entropy_of(np.int64(5)) == 5
    assert entropy_of(None) != entropy_of(None)
