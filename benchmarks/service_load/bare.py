"""A bare handler of the same submissions: pandas parses a table and joins it with the labels, and one row is committed.

It has no accounts, keys, limits, receipts nor guard, and answers one request after another. Run by `bare` in a process
of its own.
"""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import uvicorn
from fastapi import FastAPI, Request

from benchmarks.ledger import bare_connection
from benchmarks.service_load.served import processor_seconds

__all__ = ["Bare", "bare"]


class Bare:
    """A running handler: its address and the processor time of its process."""

    def __init__(self, url: str, process: int) -> None:
        self.url = url
        self._process = process

    def seconds(self) -> float:
        """Return the processor time of its process."""
        return processor_seconds([self._process])


@contextmanager
def bare(folder: Path, holdout: pd.DataFrame) -> Iterator[Bare]:
    """Run the handler for the labels of a holdout until the block ends."""
    labels = folder / "labels.parquet"
    holdout.to_parquet(labels, index=False)
    words = [sys.executable, "-m", "benchmarks.service_load.bare", str(folder / "bare.db"), str(labels)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield Bare(process.stdout.readline().strip(), process.pid)
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    """Serve until killed; print the address first."""
    connection = bare_connection(Path(sys.argv[1]))
    connection.execute("CREATE TABLE submissions (expected REAL, score REAL, answer TEXT)")
    labels = pd.read_parquet(sys.argv[2])
    app = FastAPI()

    @app.post("/submissions")
    async def submit(request: Request, expected: float) -> dict[str, float]:
        table = labels.merge(pd.read_csv(io.BytesIO(await request.body())), on="id", validate="one_to_one")
        answer = {"score": float((table["y"] == table["prediction"]).mean())}
        connection.execute("BEGIN IMMEDIATE")
        row = expected, answer["score"], json.dumps(answer)
        connection.execute("INSERT INTO submissions VALUES (?, ?, ?)", row)
        connection.execute("COMMIT")
        return answer

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


if __name__ == "__main__":
    main()
