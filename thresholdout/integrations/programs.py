"""Predicting programs that a guard keeps or rejects, as an evaluator for optimisers that write programs.

Such optimisers run an evaluator in their own processes, repeat it after errors, and show its output to a model. So the
guard stays in this process, behind a server on this machine. A command runs a program on features without labels. The
evaluator receives a score, one of six sentences, and the program's own standard error on the training part.
"""

from __future__ import annotations

import io
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.client.local_server import Answer, LocalServer, candidate_of
from thresholdout.client.scoring_command import CommandFailed, ScoringCommand
from thresholdout.data.arguments import check_count
from thresholdout.errors import InputError
from thresholdout.guard.model_queries import check_mean
from thresholdout.integrations.candidates import CandidateVerdict, GuardedCandidates, Part
from thresholdout.integrations.evaluator_file import write_evaluator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.guard.gates import Certify
    from thresholdout.guard.guard import Thresholdout
    from thresholdout.scoring.metrics import Metric

__all__ = ["GuardedPrograms"]


class GuardedPrograms:
    r"""Keep or reject predicting programs that an optimiser writes, such as OpenEvolve or ShinkaEvolve.

    A command runs each program on features without labels, and the guard judges its predictions. A guard
    (`Thresholdout`) answers queries about a holdout and tracks an error budget. The first program becomes the champion,
    and a later one replaces it only if it is kept as `GuardedCandidates` describes. The optimiser runs an evaluator
    file, which `serving` writes and which sends programs to this process. It learns a score, one of six sentences, and
    the standard error of a program that fails on the training part.

    Parameters
    ----------
    guard : Thresholdout
        Guard of pairs (X, y) with a training part.
    command : str
        Command that runs a program, such as ``"python predict.py {candidate} {features} {predictions}"``. It reads the
        program from the file ``{candidate}`` and the features from the CSV ``{features}``. It writes the CSV
        ``{predictions}`` with a heading and a line for each record in order. Of several columns, ``prediction`` is
        used, or else the last. No shell is used. The command has your permissions: start a container in it for programs
        that you would not run yourself.
    metric : str or Metric, default "accuracy"
        Metric of predictions that is a mean over records, or its name.
    name : str, default "programs"
        Name in the history, which distinguishes several loops on one guard. Use another name for another command or
        metric.
    certify : {"each", "milestones"}, default "each"
        "each" tests every program that is better on the training part. "milestones" lets the training scores accept
        programs at no cost, and from time to time tests the current one against the last certified one.
    delta : float, default 0.0
        By how much the mean score of a program has to be better.
    file_name : str, default "candidate.py"
        Name of the file that a program is written to.
    seconds : float, default 600
        Time limit of one run of a program.
    at_once : int, default 1
        Largest number of programs that run at the same time.

    Attributes
    ----------
    candidates : GuardedCandidates
        Object that judges the programs. Its `champion` is the last program that was kept.

    Notes
    -----
    A program runs on the holdout's features only in a planned evaluation. If it fails there, an answer is charged, and
    its output is discarded. It could store the features that it reads and write them out later. Labels are in no file
    that it receives.

    Examples
    --------
    Three "programs", each a number that is predicted for all records:

    >>> import sys
    >>> import numpy as np
    >>> from thresholdout import Thresholdout
    >>> from thresholdout.integrations import GuardedPrograms
    >>> X, y = np.zeros((3000, 1)), np.arange(3000) % 10 < 7
    >>> guard = Thresholdout((X[1000:], y[1000:].astype(int)), train=(X[:1000], y[:1000].astype(int)),
    ...                      allow_duplicates=True, sampling="iid")
    >>> code = "import sys; c, f, p = sys.argv[1:]; rows = len(open(f).readlines()) - 1; "
    >>> code += "open(p, 'w').write('prediction\\n' + rows * (open(c).read() + '\\n'))"
    >>> programs = GuardedPrograms(guard, f'{sys.executable} -c "{code}" {{candidate}} {{features}} {{predictions}}')
    >>> for program in ("0", "1", "2"):
    ...     print(programs.evaluate(program)[1]["info"]["says"])
    The first candidate. It was not judged: the next one is compared with it.
    Kept: certified to be better than the champion, which it replaces.
    Rejected: it could not be evaluated. The champion stays.

    In a run of OpenEvolve: ``with programs.serving("evaluator.py"): run_evolution(program, "evaluator.py", config)``.
    """

    def __init__(
        self,
        guard: Thresholdout,
        command: str,
        metric: str | Metric = "accuracy",
        *,
        name: str = "programs",
        certify: Certify = "each",
        delta: float = 0.0,
        file_name: str = "candidate.py",
        seconds: float = 600.0,
        at_once: int = 1,
    ) -> None:
        self._metric = check_mean(metric)
        if self._metric.response != "predict":
            advice = "Programs write no probabilities."
            raise InputError("metric", repr(self._metric.name), "a metric of predictions, such as 'accuracy'", advice)
        self._command = ScoringCommand.parse(command, file_name, seconds)
        if not any("{features}" in argument for argument in self._command.arguments):
            raise InputError("command", repr(command), "a command with {features} in place of the file's name")
        self._running = threading.BoundedSemaphore(check_count("at_once", at_once))
        self.candidates = GuardedCandidates(
            guard,
            self._values,
            name=name,
            bounds=self._metric.bounds,
            greater_is_better=self._metric.greater_is_better,
            certify=certify,
            delta=delta,
        )
        self.candidates.hold_to(metric=self._metric.name)

    def evaluate(self, program: str) -> Answer:
        """Judge a program, and return the answer that the optimiser receives.

        Parameters
        ----------
        program : str
            Text of the program.

        Returns
        -------
        tuple of int and dict
            Status code and content. 200 with ``score``, ``info`` (the outcome, and its sentence under ``says``) and
            ``budget``. 422 if the program fails on the training part, with its standard error, free of charge. 429 if
            the guard is exhausted.
        """
        told = self.candidates.judged(program)
        if told is None:
            values = None
            if not self.candidates.exhausted:
                try:
                    values = self._values(program, "train")
                except (CommandFailed, InputError) as error:
                    return _failed(error)
            told = self.candidates.propose(program, train_values=values)
        status = HTTPStatus.TOO_MANY_REQUESTS if told.outcome == "exhausted" else HTTPStatus.OK
        return status, {"score": told.score, "info": _info(told), "budget": self._budget()}

    @contextmanager
    def serving(self, evaluator: str | Path, port: int = 0) -> Iterator[str]:
        """Serve programs on this machine within a ``with`` block, and write the evaluator file for an optimiser.

        Parameters
        ----------
        evaluator : str or Path
            Path of the file to write. Only you can read it, since it has the server's secret address. OpenEvolve takes
            it as its evaluator, ShinkaEvolve as ``eval_program_path``.
        port : int, default 0
            Port of the server. With 0, any free port.

        Yields
        ------
        str
            Address of the server. Programs are sent to ``/evaluate`` below it.
        """
        server = _Server(self, port)
        serving = threading.Thread(target=server.serve, name="thresholdout-programs", daemon=True)
        try:
            write_evaluator(Path(evaluator), server.url)
            serving.start()
            yield server.url
        finally:
            if serving.is_alive():
                server.stop()
                serving.join()
            server.close()

    def _budget(self) -> dict[str, Any]:
        return {"exhausted": self.candidates.exhausted, "remaining": self.candidates.guard.status.answers_left}

    def _values(self, program: str, part: Part) -> NDArray[Any]:
        """Return the metric's value of each record of a part for a program's predictions."""
        X, y = self.candidates.guard._records.labelled()[part == "holdout"]
        with tempfile.TemporaryDirectory(prefix="features-", ignore_cleanup_errors=True) as folder, self._running:
            features = Path(folder, "features.csv")
            _write(X, features)
            filled = tuple(one.replace("{features}", str(features)) for one in self._command.arguments)
            table = replace(self._command, arguments=filled).predictions(program)
        return self._metric.values(np.asarray(y), _read(table.body, np.asarray(y)), None)


class _Server(LocalServer):
    """Receives programs."""

    def __init__(self, programs: GuardedPrograms, port: int) -> None:
        self._programs = programs
        super().__init__(port)

    def evaluate(self, sent: object) -> Answer:
        """Judge the program of a request."""
        program = candidate_of(sent)
        if program is None:
            return HTTPStatus.BAD_REQUEST, {"error": "The body must be a JSON object with 'candidate', a text."}
        return self._programs.evaluate(program)

    def status(self) -> Answer:
        """Return the remaining budget."""
        return HTTPStatus.OK, {"budget": self._programs._budget()}


def _failed(error: CommandFailed | InputError) -> Answer:
    """Return the answer for a program that failed on the training part, with its output there."""
    failed, printed = CandidateVerdict("failed"), error.printed if isinstance(error, CommandFailed) else ""
    told = {"error": str(error), "score": failed.score, "info": _info(failed) | {"stderr": printed}}
    return HTTPStatus.UNPROCESSABLE_ENTITY, told


def _info(verdict: CandidateVerdict) -> dict[str, Any]:
    return {
        "outcome": verdict.outcome,
        "kept": bool(verdict),
        "certified": verdict.certified,
        "repeated": verdict.repeated,
        "says": verdict.text,
    }


def _write(X: Any, path: Path) -> None:
    """Write features as a CSV with a heading."""
    import pandas as pd

    table = X if hasattr(X, "to_csv") else pd.DataFrame(np.asarray(X).reshape(len(X), -1)).add_prefix("x")
    table.to_csv(path, index=False)


def _read(body: bytes, y: NDArray[Any]) -> NDArray[Any]:
    """Return the predictions of a CSV, as the labels are written."""
    import pandas as pd

    numbers = y.dtype.kind in "biuf"
    try:
        table = pd.read_csv(io.BytesIO(body), dtype=None if numbers else str, keep_default_na=numbers)
    except ValueError as error:
        raise CommandFailed("the predictions are no CSV", "") from error
    column = "prediction" if "prediction" in table.columns else table.columns[-1]
    found = table[column].to_numpy()
    if len(found) != len(y):
        raise CommandFailed(f"{len(found)} predictions for {len(y)} records", "")
    if numbers and (found.dtype.kind not in "biuf" or not np.isfinite(found.astype(np.float64)).all()):
        raise CommandFailed("predictions that are no numbers", "")
    return found
