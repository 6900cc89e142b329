"""The evaluation protocol of program optimisers, on the user's machine: ``POST evaluate {candidate}``.

A candidate is a program. The user's command makes its predictions here, the client submits these, and the service never
sees the program.
"""

from __future__ import annotations

import threading
from http import HTTPStatus
from typing import Any

from thresholdout.client.client import AGAIN, Client
from thresholdout.client.development import OpenRecords, accepted_or_corrected, correction
from thresholdout.client.errors import LimitReached, ServiceError
from thresholdout.client.evaluation import budget_of, evaluation_of
from thresholdout.client.local_server import Answer, LocalServer, candidate_of
from thresholdout.client.scoring_command import CommandFailed, ScoringCommand
from thresholdout.client.tables import Table
from thresholdout.errors import InputError

__all__ = ["EvaluateServer", "script_for"]


class EvaluateServer(LocalServer):
    """Server that turns candidates into scores.

    Notes
    -----
    With `development` the command predicts open records too. Their score is returned; a candidate is submitted only if
    it would be the best, and the holdout then accepts or corrects its score.
    """

    def __init__(
        self,
        client: Client,
        holdout: str,
        command: ScoringCommand,
        port: int = 0,
        *,
        development: OpenRecords | None = None,
    ) -> None:
        super().__init__(port)
        self._client = client
        self._holdout = holdout
        self._command = command
        self._development = development
        self._one_at_a_time = threading.Lock()
        self._best: float | None = None
        self._count = 0

    def evaluate(self, sent: object) -> Answer:
        """Answer a request by submitting the predictions of its candidate."""
        candidate = candidate_of(sent)
        if candidate is None:
            return HTTPStatus.BAD_REQUEST, {"error": "The body must be a JSON object with 'candidate', a text."}
        with self._one_at_a_time:
            try:
                return self._evaluated(candidate)
            except CommandFailed as error:
                return HTTPStatus.UNPROCESSABLE_ENTITY, {"error": error.why, "info": {"stderr": error.printed}}
            except InputError as error:
                return HTTPStatus.UNPROCESSABLE_ENTITY, {"error": str(error), "info": {}}
            except ServiceError as error:
                return _refused(error)

    def status(self) -> Answer:
        """Return the remaining budget, and this server's best score."""
        try:
            holdout = self._client.status(self._holdout)
        except ServiceError as error:
            return _refused(error)
        told = {"task": self._holdout, "best_score": self._best, "total_evals": self._count}
        return HTTPStatus.OK, {"budget": budget_of(holdout)} | told

    def _evaluated(self, candidate: str) -> Answer:
        table = self._command.predictions(candidate)
        if self._development is None:
            submission = self._client.submit(self._holdout, table)
            evaluation = evaluation_of(self._client.status(self._holdout), submission)
        else:
            evaluation = self._opened(*self._development.scored(table))
        score = evaluation["score"]
        self._count += 1
        if score is not None and (self._best is None or score > self._best):
            self._best = score
        return HTTPStatus.OK, evaluation

    def _opened(self, expected: float, table: Table) -> dict[str, Any]:
        """Return the score on the open records, and submit a candidate that would be the best."""
        holdout = self._client.status(self._holdout)
        score = expected if holdout.greater_is_better else -expected
        if self._best is not None and score <= self._best:
            info: dict[str, Any] = {"state": "development", "development": expected}
            return {"score": score, "info": info, "budget": budget_of(holdout)}
        submission = self._client.submit(self._holdout, table, expected=expected)
        evaluation = evaluation_of(self._client.status(self._holdout), submission)
        evaluation["score"] = accepted_or_corrected(holdout, submission, expected, self._best)
        evaluation["info"] |= {"development": expected, "correction": correction(holdout, submission, expected)}
        return evaluation


def _refused(error: ServiceError) -> Answer:
    """Return the response to a refusal; 429 means that a repeated request is useless now."""
    budget = {"exhausted": isinstance(error, LimitReached) and error.code not in AGAIN}
    told: dict[str, Any] = {"error": error.text, "code": error.code, "budget": budget}
    if error.retry_after is not None:
        told["retry_after"] = error.retry_after
    return error.status if 400 <= error.status < 600 else HTTPStatus.SERVICE_UNAVAILABLE, told


def script_for(url: str) -> str:
    """Return a script that evaluates a candidate at an address: ``eval.sh CANDIDATE`` prints the response.

    It exits with 0 for an evaluation, 5 for an exhausted budget, and 4 otherwise.
    """
    return f"""#!/bin/sh
# Usage: eval.sh CANDIDATE
# Prints {{"score", "info", "budget"}} as JSON. Exit code 0: evaluated; 5: exhausted; 4: anything else.
exec python3 - "$1" <<'END'
import json, sys, urllib.error, urllib.request

with open(sys.argv[1], encoding="utf-8") as file:
    body = json.dumps({{"candidate": file.read()}}).encode()
request = urllib.request.Request({url + "/evaluate"!r}, body, {{"Content-Type": "application/json"}})
direct = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))
try:
    with direct.open(request) as answer:
        print(answer.read().decode())
except urllib.error.HTTPError as error:
    told = error.read().decode()
    print(told)
    sys.exit(5 if error.code == 429 and json.loads(told)["budget"]["exhausted"] else 4)
except urllib.error.URLError as error:
    print(json.dumps({{"error": "the evaluation server does not answer"}}))
    sys.exit(4)
END
"""
