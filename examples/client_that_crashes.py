"""
A client that is killed, and charged once
=========================================

A program that submits predictions is killed at the worst moments, is started again, and is charged once.

The service here is a real one, in a thread of this script; its client is a program of its own, which is killed before
its request is sent, then twice when the answer is there and nobody has read it. Each time it is started again
unchanged. The key of a request is made from its content, so the service recognises it, and gives the first answer.

Run with ``python examples/client_that_crashes.py``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
import numpy as np
import pandas as pd

from thresholdout.client import Client

RECORDS = 2000


class Killing(httpx.HTTPTransport):
    """Carries requests, and kills its program when a submission is sent, or when it was answered."""

    def __init__(self, moment: str) -> None:
        super().__init__()
        self.moment = moment

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Carry a request."""
        if self.moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = super().handle_request(request)
        if self.moment == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return answer


def submit(url: str, key: str, file: str, moment: str) -> None:
    """Submit a file as a team's program does, and die at the chosen moment."""
    with Client(url, key, patience=60.0, transport=Killing(moment)) as client:
        answer = client.submit("coins", file, expected=0.7, title="forest")
    print(
        f"{answer.low:.3f} to {answer.high:.3f}, number {answer.number}, charged by this program: {not answer.repeated}"
    )


def started(url: str, key: str, file: Path, moment: str) -> subprocess.Popen[str]:
    """Start the program."""
    command = [sys.executable, sys.argv[0], url, key, str(file), moment]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def main() -> None:
    """Start a service, let the program be killed and started again, and count the charges."""
    from thresholdout.service.evaluation import EvaluationService  # here, since the client needs none of it
    from thresholdout.service.serving import serving_here

    rng = np.random.default_rng(0)
    table = pd.DataFrame({"id": range(2 * RECORDS), "coin": rng.integers(0, 2, 2 * RECORDS)})
    wrong = rng.permutation(RECORDS) < 0.3 * RECORDS
    holdout = table[RECORDS:]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "forest.csv")
        guesses = np.where(wrong, 1 - holdout["coin"], holdout["coin"])
        pd.DataFrame({"id": holdout["id"], "prediction": guesses}).to_csv(file, index=False)
        service = EvaluationService.open(Path(folder, "leaderboard.db"))
        owner = service.authenticate(service.first_admin_token())
        service.create_holdout(owner, "coins", table[:RECORDS], holdout, label="coin", quota=2)
        key, _ = service.new_token(owner, "team", "ann")
        with serving_here(service) as url:
            for moment in ("before", "after", "after", "never"):
                with started(url, key, file, moment) as program:
                    shown, _ = program.communicate(timeout=60)
                print(f"killed: {moment:6}", shown.strip() or f"ended by signal {-program.returncode}")
            with Client(url, key) as client:
                print(f"{client.status('coins').asked} query was charged, of 4 programs that asked it")


if __name__ == "__main__":
    submit(*sys.argv[1:]) if len(sys.argv) > 1 else main()
