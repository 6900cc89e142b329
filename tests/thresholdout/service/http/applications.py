"""An application of a service with a holdout and teams, for tests."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
from fastapi import FastAPI
from starlette.testclient import TestClient

from tests.thresholdout.service.evaluations import ADMIN, TABLE, N, made, right_in
from thresholdout.service.evaluation import EvaluationService
from thresholdout.service.http.app import make_app
from thresholdout.service.limits import Limits

__all__ = ["Calls", "csv", "opened", "parquet", "settings_form"]


class Calls:
    """Requests to an application, by the name of who sends them: a team, "admin", "viewer", or "" for a visitor."""

    def __init__(self, client: TestClient, service: EvaluationService, teams: tuple[str, ...]) -> None:
        self.client = client
        self.service = service
        self.keys = {name: service.new_token(ADMIN, "team", name)[0] for name in teams}
        self.keys |= {role: service.new_token(ADMIN, role)[0] for role in ("admin", "viewer")}

    def __call__(self, who: str, method: str, path: str, **options: Any) -> Any:
        headers = dict(options.pop("headers", {}))
        if who:
            headers["Authorization"] = f"Bearer {self.keys[who]}"
        return self.client.request(method, path, headers=headers, **options)

    def submit(self, who: str, body: bytes, key: str = "k", **options: Any) -> Any:
        """Send a table to the holdout "cells", or to another one in its place."""
        headers = {"Content-Type": "text/csv", "Idempotency-Key": key} | options.pop("headers", {})
        where = options.pop("where", "cells/submissions")
        return self(who, "POST", f"/v1/holdouts/{where}", content=body, headers=headers, **options)


@contextmanager
def opened(
    folder: Path, *, teams: tuple[str, ...] = ("ann", "bob"), limits: Limits | None = None, **settings: Any
) -> Iterator[Calls]:
    """Run an application with the holdout "cells"."""
    service = made(folder / "leaderboard.db", limits=limits, **settings)
    with running(make_app(service)) as client:
        yield Calls(client, service, teams)


@contextmanager
def running(app: FastAPI) -> Iterator[TestClient]:
    """Run an application; its errors are answered, as a server does it."""
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def csv(share: float = 0.8, seed: int = 1) -> bytes:
    """Return predictions that are right in a share of the records."""
    found: bytes = right_in(share, seed).to_csv(index=False).encode()
    return found


def parquet(table: pd.DataFrame) -> bytes:
    """Return a table as a Parquet file."""
    sink = io.BytesIO()
    table.to_parquet(sink)
    return sink.getvalue()


def settings_form(name: str, start: str, **settings: Any) -> dict[str, Any]:
    """Return the form of a new holdout, whose ids begin so."""
    table = TABLE.assign(id=[f"{start}{k}" for k in range(2 * N)])
    return {
        "train": ("train.csv", table[:N].to_csv(index=False)),
        "holdout": ("holdout.csv", table[N:].to_csv(index=False)),
        "settings": (None, json.dumps({"name": name, "label": "y"} | settings)),
    }
