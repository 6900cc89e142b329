"""Audits of learners: many models on each of two neighbouring data sets, and an attack that tells them apart."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import IO, Any, Literal, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from graphs.progress_bar import progress_bar
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import count
from thresholdout.privacy.accounting.events.event_types import Adjacency
from thresholdout.privacy.auditing.attacks import Attack
from thresholdout.privacy.auditing.audit_result import AuditResult
from thresholdout.privacy.auditing.audit_settings import entropy_of, run_seed
from thresholdout.privacy.auditing.claim_audits import ClaimAudit
from thresholdout.privacy.auditing.claimed_curves import Claim
from thresholdout.privacy.auditing.error_counts import Method
from thresholdout.privacy.auditing.output_audits import (
    AuditSetting,
    ClaimOptions,
    ClaimSetting,
    OutputOptions,
    audit_setting,
    check_claim,
    check_options,
    claim_setting,
)
from thresholdout.suppressed_warnings import suppress_warnings

__all__ = ["RunFile", "audit_learner"]

Floats = NDArray[np.float64]

_FORMAT = 1  # of the file of runs; another number is refused


class RunFile:
    """Features of finished runs, kept in a file of JSON lines, or in memory only.

    A line that an interruption cut off is dropped, and its run is repeated. Floats are written so that they are read
    back exactly. One audit at a time may write to a file. Without `fixed_seed` the file's entropy is adopted; `audit`
    identifies data sets and learner.
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
            raise InputError("store", str(place), "a file of this audit, or a new one")
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
            raise InputError("store", f"{place}, with a line that is no JSON object", "a file of this audit")
        return found

    def _take(self, place: str, lines: list[dict[str, Any]], fixed_seed: bool, audit: str) -> None:
        header = lines[0]
        if header.get("format") != _FORMAT or not isinstance(header.get("entropy"), int):
            raise InputError("store", place, "a file of an audit of this version")
        if header.get("audit") != audit:
            expected = "a file of runs of the same learner on the same data"
            raise InputError("store", place, expected, "Name another file.")
        if fixed_seed and header["entropy"] != self.entropy:
            seen = f"{place}, of random_state {header['entropy']}"
            raise InputError("store", seen, f"a file of runs of random_state {self.entropy}", "Name another file.")
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
        """Close the file; its runs stay."""
        if self._file is not None:
            self._file.close()


Data = TypeVar("Data")

Model = TypeVar("Model")


@overload
def audit_learner(
    learner: Callable[[Data, int], Model],
    first: Data,
    second: Data,
    *,
    features: Callable[[Model], Any],
    claim: Claim,
    models: int = 200,
    random_state: int | np.random.Generator | None = None,
    n_jobs: int | None = 1,
    store: str | Path | None = None,
    progress: bool = True,
    confidence: float = 0.9,
    attack: str | Attack = "logistic",
    fit_share: float = 0.2,
    adjacency: Adjacency = "replace_one",
) -> ClaimAudit: ...


@overload
def audit_learner(
    learner: Callable[[Data, int], Model],
    first: Data,
    second: Data,
    *,
    features: Callable[[Model], Any],
    claim: None = None,
    models: int = 200,
    random_state: int | np.random.Generator | None = None,
    n_jobs: int | None = 1,
    store: str | Path | None = None,
    progress: bool = True,
    delta: float | None = None,
    epsilon: float | None = None,
    confidence: float = 0.9,
    attack: str | Attack = "logistic",
    cut: str | float = "best",
    method: Method | None = None,
    fit_share: float = 0.5,
    stages: Iterable[Hashable] | None = None,
    family: Literal["gaussian"] | None = None,
) -> AuditResult: ...


def audit_learner(
    learner: Callable[[Data, int], Model],
    first: Data,
    second: Data,
    *,
    features: Callable[[Model], Any],
    models: int = 200,
    random_state: int | np.random.Generator | None = None,
    n_jobs: int | None = 1,
    store: str | Path | None = None,
    progress: bool = True,
    claim: Claim | None = None,
    **options: Any,
) -> AuditResult | ClaimAudit:
    """Train many models on two neighbouring data sets to test a privacy claim, or to bound the leakage from below.

    A private learner produces similar models on two data sets that differ in one record. The audit trains models on
    both, fits an attack that tells them apart on one part of the models, and counts its errors on the others. Pass
    `claim` to test a claimed privacy. Pass `delta` or `epsilon` instead to measure a lower bound. `audit_training`
    needs one training only, and `audit_outputs` takes outputs that already exist.

    Parameters
    ----------
    learner : callable
        ``learner(data, seed)`` trains once and returns any object, such as a model or the path of its parameters.
        `seed` is an integer from 0 to 2**32 - 1, from which all its randomness must come.
    first, second : object
        The two data sets, which differ in one record. `make_neighbour` builds a pair that is easy to tell apart.
    features : callable
        ``features(result)`` turns the learner's result into the features of the attack: a number, an array of shape
        (features,), or an array of shape (stages, features) for a training that is audited stage by stage. The
        log-probabilities of the changed record after each epoch are an example.
    models : int, default 200
        Number of models on each data set, at least 4. The attack is fitted on the first ones, the share `fit_share`.
        `models_needed` returns the smallest number that can show a claimed epsilon, and lists the power of usual
        numbers.
    random_state : int, numpy.random.Generator or None, default None
        Seed of all trainings. The same integer gives the same result for any `n_jobs` and after interruptions.
    n_jobs : int or None, default 1
        Number of joblib processes, -1 for all cores.
    store : str or path, optional
        File that keeps the features of every finished training. An interrupted audit continues from it, and an audit
        with more `models` reuses its trainings. Use another file whenever the code of the learner changes: only the
        name and bound arguments of the learner and both data sets are compared. If None, nothing is written.
    progress : bool, default True
        Whether to show a progress bar after two seconds.
    claim : Event, list of Event, callable or pair of float, optional
        The privacy to test: an event, a function ``delta(epsilon)``, or a pair (epsilon, delta), see `audit_outputs`.
        For a learner of this library pass ``report.event`` together with ``adjacency=report.adjacency``. If None, the
        leakage is bounded.
    **options
        Further options of `audit_outputs`. Without a claim, exactly one of ``delta`` and ``epsilon`` is required, and
        ``confidence``, ``attack``, ``cut``, ``method``, ``fit_share``, ``stages`` and ``family`` are optional. With a
        claim, ``confidence``, ``attack``, ``fit_share`` and ``adjacency`` are optional.

    Returns
    -------
    ClaimAudit
        With a claim: whether it is `refuted`, and lower bounds `epsilon` and `delta`.
    AuditResult
        Without a claim: the lower bound `epsilon` or `delta`, with the errors of the attack.

    Raises
    ------
    InputError, InputTypeError
        If an option is out of range, which is checked before anything is trained. If the file belongs to another audit.
        If features are not finite or change their shape between trainings.

    Notes
    -----
    Without a claim, 200 models show at most 4.46 nats (delta 1e-5, confidence 0.9), and only if the attack makes no
    error. With the learner's event as claim, 300 models on each data set detect that half of the noise is missing, at
    epsilons of 1 to 8.

    The procedure is that of [HF, Section V], with equally many models on each data set instead of a coin for each
    model. Bounds of several stages are pointwise. The number of models must be chosen in advance: the guarantee does
    not cover an audit whose number of models depends on earlier results.

    Examples
    --------
    The mean of ten numbers in [0, 1] with Gaussian noise of 0.05, which costs 10.0 nats at delta 1e-5:

    >>> def noisy_mean(data, seed):
    ...     return data.mean() + 0.05 * np.random.default_rng(seed).normal()
    >>> zeros = np.zeros(10)
    >>> one = np.append(np.zeros(9), 1.0)
    >>> audit_learner(noisy_mean, zeros, one, features=float, models=1000, delta=1e-5, random_state=0, progress=False)
    <epsilon >= 2.74 at delta 1e-05, confidence 0.9; 500 and 500 outputs show 6.08 at most>
    """
    options["random_state"] = random_state if not isinstance(random_state, np.random.Generator) else None
    if claim is None:
        setting: AuditSetting | ClaimSetting = check_options(cast(OutputOptions, options))
    else:
        setting = check_claim(claim, cast(ClaimOptions, options))
    size = count(models, "models", least=4)
    for name, function in (("learner", learner), ("features", features)):
        if not callable(function):
            raise InputTypeError(name, f"a {type(function).__name__}", "a function")
    entropy = entropy_of(random_state)
    audit = _identity(learner, first, second) if store is not None else ""
    runs = RunFile(store, entropy=entropy, fixed_seed=isinstance(random_state, (int, np.integer)), audit=audit)
    try:
        _train(learner, (first, second), features, size, runs, n_jobs, progress)
    finally:
        runs.close()
    shapes = {found.shape for found in runs.found.values()}
    if len(shapes) > 1:
        seen = "arrays of the shapes " + ", ".join(map(str, sorted(shapes)))
        raise InputError("features", seen, "a function whose arrays have one shape for all runs")
    parts = [np.stack([runs.found[part, run] for run in range(size)]) for part in (0, 1)]
    if isinstance(setting, ClaimSetting):
        return claim_setting(setting, *parts)
    return audit_setting(setting, *parts)


def _train(
    learner: Callable[[Any, int], Any],
    data: tuple[Any, Any],
    features: Callable[[Any], Any],
    models: int,
    runs: RunFile,
    n_jobs: int | None,
    progress: bool,
) -> None:
    """Add the missing runs."""
    from joblib import Parallel, delayed

    waiting = [(part, run) for run in range(models) for part in (0, 1) if (part, run) not in runs.found]
    jobs = (
        delayed(_one)(learner, data[part], run_seed(runs.entropy, part, run), features, run) for part, run in waiting
    )
    done = Parallel(n_jobs=n_jobs, return_as="generator")(jobs)
    bar = progress_bar(doing="training for the audit", unit="models", total=len(waiting), show=progress)
    try:
        for (part, run), found in zip(waiting, done, strict=True):
            runs.add(part, run, found)
            bar.update()
    finally:
        bar.close()
        with suppress_warnings():  # joblib counts the runs that an error or interrupt made useless
            done.close()


def _one(learner: Callable[[Any, int], Any], data: Any, seed: int, features: Callable[[Any], Any], run: int) -> Floats:
    found = np.asarray(features(learner(data, seed)))
    if found.dtype.kind not in "biuf" or found.ndim > 2:
        seen = f"an array of {found.dtype} of shape {found.shape}"
        expected = "a function that returns a number, or numbers of shape (features,) or (stages, features)"
        raise InputTypeError("features", seen, expected)
    if not np.isfinite(found).all():
        raise InputError("features", f"a value of run {run} that is not", "a function that returns finite numbers")
    return found.astype(np.float64)


def _identity(learner: Any, first: Any, second: Any) -> str:
    """Return a hash of both data sets, with the learner's name and its bound arguments."""
    from functools import partial

    import joblib

    given: tuple[Any, ...] = ()
    while isinstance(learner, partial):
        given += (learner.args, sorted(learner.keywords.items()))
        learner = learner.func
    name = getattr(learner, "__qualname__", type(learner).__qualname__)
    return f"{name} {joblib.hash((first, second, given))}"
