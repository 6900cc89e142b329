"""A service for a guarded set: it takes runs and returns outcomes; items, scores and the history stay with the server.

The address has a secret part. Use plain HTTP on this machine alone, or behind a proxy that adds TLS.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import urllib.error
import urllib.request
from dataclasses import asdict, replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from thresholdout.client.errors import ServiceError
from thresholdout.client.local_server import Answer, LocalServer
from thresholdout.errors import EvaluationSetUsed, InputError, LedgerError, ThresholdoutError
from thresholdout.evaluations.check_results import Check, Mode
from thresholdout.evaluations.guard import EvaluationGuard
from thresholdout.evaluations.reading import read
from thresholdout.evaluations.scores import Scores
from thresholdout.evaluations.set_parts import as_kept, from_kept

if TYPE_CHECKING:
    from thresholdout.ledger import Ledger

__all__ = ["RemoteGuard", "VerdictServer", "open_guard", "secret_of"]

_SCHEMES: Final = ("http://", "https://")
_SECONDS: Final = 600.0  # generous, since bets on many clusters are slow
_LONGEST: Final = 200  # characters of a run's name that an entry of the history holds


class Checks(Protocol):
    """Checks of runs, in this process or by a service."""

    @property
    def mode(self) -> Mode:
        """Whether checks say "worse" or "not worse"."""

    def read(self, path: str | os.PathLike[str], **fields: Any) -> Scores:
        """Read a run as the baseline's was read."""

    def check(self, candidate: Scores, name: str | None = None, *, allow_missing: float = 1.0) -> Check:
        """Compare a run with the release and with main, and return one outcome."""


def open_guard(where: str | os.PathLike[str]) -> Checks:
    """Return a guard of an evaluation set in a file, on a PostgreSQL server, or behind the address of a service."""
    return RemoteGuard(str(where)) if str(where).startswith(_SCHEMES) else EvaluationGuard(where)


def secret_of(path: Path) -> str:
    """Return the secret part of the address from a file; a new file is readable by its owner alone."""
    if not path.exists():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(24))
    secret = path.read_text(encoding="utf-8").strip()
    if len(secret) < 20 or not all(each.isascii() and (each.isalnum() or each in "-_") for each in secret):
        raise InputError(
            "secret_file", f"{path} with {len(secret)} characters", "a file with 20 letters and digits or more"
        )
    return secret


class VerdictServer(LocalServer):
    """Checks runs of clients; promotions and refreshes are made at the database."""

    def __init__(
        self, where: str | Ledger, port: int = 0, *, host: str = "127.0.0.1", secret: str | None = None
    ) -> None:
        from thresholdout.ledger import open_ledger

        self._ledger = open_ledger(where, must_exist=True)
        EvaluationGuard(self._ledger)  # a ledger without a set is refused before the server starts
        super().__init__(port, host=host, secret=secret)

    def evaluate(self, sent: object) -> Answer:
        """Check a run."""
        try:
            scores, name, allow_missing = _received(sent)
            # opened for each request: a refresh may have begun another set
            found = EvaluationGuard(self._ledger).check(scores, name, allow_missing=allow_missing)
        except EvaluationSetUsed as error:
            return HTTPStatus.CONFLICT, {"error": str(error), "code": "used"}
        except LedgerError as error:
            return HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error), "code": "database"}
        except ThresholdoutError as error:
            return HTTPStatus.BAD_REQUEST, {"error": str(error), "code": "run"}
        return HTTPStatus.OK, asdict(found)

    def status(self) -> Answer:
        """Return the arguments with which a run is read."""
        try:
            guard = EvaluationGuard(self._ledger)
        except LedgerError as error:
            return HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error), "code": "database"}
        return HTTPStatus.OK, {"mode": guard.mode, "fields": guard.fields}


class RemoteGuard:
    """A guarded set of a service: it reads runs here, sends their scores, and returns the outcome."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._settings = self._call("/status", None)

    @property
    def mode(self) -> Mode:
        """Whether checks say "worse" or "not worse"."""
        found: Mode = self._settings["mode"]
        return found

    def read(self, path: str | os.PathLike[str], **fields: Any) -> Scores:
        """Read a run as the baseline's was read."""
        return read(os.fspath(path), **{**self._settings["fields"], **fields})

    def check(self, candidate: Scores, name: str | None = None, *, allow_missing: float = 1.0) -> Check:
        """Send a run, which the service compares with the release and with main."""
        sent = {"run": as_kept(candidate), "name": name or candidate.name, "allow_missing": allow_missing}
        return Check(**self._call("/evaluate", sent))

    def _call(self, path: str, sent: object) -> dict[str, Any]:
        body = None if sent is None else json.dumps(sent).encode()
        request = urllib.request.Request(self._url + path, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
                return dict(json.load(answer))
        except urllib.error.HTTPError as error:
            try:
                told = json.load(error)
                code, text = str(told.get("code", "")), str(told["error"])
            except (ValueError, KeyError, AttributeError):
                code, text = "", f"the server answers {error.code}"
            if error.code == HTTPStatus.NOT_FOUND:
                text = "there is no guarded set at this address; it is the one that `eval guard serve` prints"
            raise ServiceError(code, text, error.code) from None
        except (OSError, ValueError) as error:
            host = self._url.split("/", 3)[2]  # messages may be logged, and the path is secret
            raise ServiceError("", f"{host} does not answer ({error}); start `eval guard serve` there") from None


def _received(sent: Any) -> tuple[Scores, str, float]:
    """Return a run from a request, after checks of every part of it."""
    try:
        scores, name, allow_missing = from_kept(sent["run"]), sent["name"], float(sent["allow_missing"])
        scores = replace(scores, known_as=None)  # a client cannot rename items: identities follow from contents
        lengths = {len(scores.items), len(scores.contents), scores.samples.size, scores.missing.size}
        lengths |= set() if scores.clusters is None else {len(scores.clusters)}
        texts = (*scores.items, *scores.contents, *(scores.clusters or ()), scores.metric, scores.judge, name)
        counts = np.minimum(scores.samples, scores.missing)
        scored = scores.values[~np.isnan(scores.values)]
        whole = (
            lengths == {scores.values.size}
            and scores.values.ndim == scores.samples.ndim == scores.missing.ndim == 1
            and int(max(scores.samples.max(), scores.missing.max())) < 2**31  # sums over items stay exact in int64
            and scores.values.size > 0
            and len(set(scores.items)) == len(scores.items)
            and all(isinstance(each, str) for each in texts)
            and bool((counts >= 0).all() and (scores.samples + scores.missing > 0).all())
            and bool((np.isnan(scores.values) == (scores.samples == 0)).all())
            and bool(((scored >= 0.0) & (scored <= 1.0)).all())
            and math.isfinite(allow_missing)
        )
    except (KeyError, TypeError, ValueError, IndexError, OverflowError):
        whole = False
    if not whole:
        raise InputError("run", "other content", "a run in the form that `eval guard check` sends")
    return scores, name[:_LONGEST], allow_missing
