"""A guarded set behind an address: what is sent, what comes back, and what stays."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from tests.cases import for_each
from thresholdout.cli import main
from thresholdout.client.errors import ServiceError
from thresholdout.errors import InputError, LedgerError
from thresholdout.evaluations import EvaluationGuard, read
from thresholdout.evaluations.pytest_plugin import EvalGate
from thresholdout.evaluations.set_parts import as_kept
from thresholdout.evaluations.verdict_service import RemoteGuard, VerdictServer, open_guard, secret_of


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, right in (("main", 300), ("same", 298), ("bad", 200), ("worst", 100)):
        frame = pd.DataFrame({"question": range(400), "right": [i < right for i in range(400)]})
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    run = read(tmp_path / "main.csv", "right", item="question")
    EvaluationGuard.create(tmp_path / "evals.db", run, dev=0.0, surprises=1)
    return tmp_path


@pytest.fixture
def url(files: Path) -> Iterator[str]:
    server = VerdictServer(str(files / "evals.db"))
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    yield server.url
    server.stop()
    thread.join()
    server.close()


def check(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["eval", "guard", "check", *map(str, arguments)])


def sent(url: str, body: object) -> tuple[int, Any]:
    request = urllib.request.Request(url + "/evaluate", json.dumps(body).encode())
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(request, timeout=60)
    return error.value.code, json.load(error.value)


def test_a_year_by_an_address(url: str, files: Path) -> None:
    assert check(url, files / "same.csv").output == "nothing to report (check 1); 299 checks and 1 surprise left\n"
    bad = check(url, files / "bad.csv", "--name", "pull request 7")
    assert (bad.exit_code, bad.output) == (1, "worse (check 2); 298 checks and 0 surprises left\n")
    again = check(url, files / "bad.csv")
    assert (again.exit_code, "as before" in again.output) == (1, True)
    used = check(url, files / "worst.csv")
    assert (used.exit_code, "1 of 1 planned surprises are used up" in used.output) == (4, True)
    # the database has the history, under the names that were sent
    assert [each.name for each in EvaluationGuard(files / "evals.db").status().history][1:] == ["pull request 7"]


def test_the_outcome_is_that_of_the_database(url: str, files: Path) -> None:
    own, other = EvaluationGuard(files / "evals.db"), RemoteGuard(url)
    assert (other.mode, other.read(files / "same.csv").digest()) == (own.mode, own.read(files / "same.csv").digest())
    first = other.check(other.read(files / "same.csv"))
    second = own.check(own.read(files / "same.csv"))
    assert (first.outcome, first.number, second.repeated) == (second.outcome, second.number, True)


def test_the_fixture_takes_an_address(url: str, files: Path) -> None:
    assert EvalGate(files).check("same.csv", url).outcome == "nothing"
    with pytest.raises(pytest.fail.Exception, match="worse"):
        EvalGate(files).check("bad.csv", url)


def test_items_and_scores_stay(url: str) -> None:
    with urllib.request.urlopen(url + "/status", timeout=60) as answer:
        assert set(json.load(answer)) == {"mode", "fields"}


@for_each(
    "change",
    [
        lambda run: run.update(values=[2.0] * 400),
        lambda run: run.update(values=[None] * 400),
        lambda run: run.update(values=[[1.0]] * 400),
        lambda run: run.update(samples=[2**62] * 400),
        lambda run: run.update(samples=[-1] * 400),
        lambda run: run.update(samples=[0] * 400, missing=[0] * 400, values=[None] * 400),
        lambda run: run.update(items=["a"] * 400),
        lambda run: run.update(contents=["a"] * 399),
        lambda run: run.update(clusters=["a"]),
        lambda run: run.update(metric=3),
        lambda run: run.pop("scale"),
    ],
)
def test_what_is_no_run_costs_nothing(url: str, files: Path, change: Callable[[dict[str, Any]], object]) -> None:
    run = json.loads(as_kept(read(files / "bad.csv", "right", item="question")))
    change(run)
    code, told = sent(url, {"run": json.dumps(run), "name": "x", "allow_missing": 1})
    assert (code, told["code"]) == (400, "run")
    assert EvaluationGuard(files / "evals.db").status().done == 0


def test_other_requests(url: str, files: Path) -> None:
    bodies: list[object] = [[], {}, {"run": 3}, {"run": "{}", "name": "x", "allow_missing": "much"}]
    for body in bodies:
        assert sent(url, body)[0] == 400
    other = pd.DataFrame({"question": range(900, 1300), "right": True})
    other.to_csv(files / "other.csv", index=False)
    done = check(url, files / "other.csv")
    assert (done.exit_code, "none of the guarded items" in done.output) == (4, True)
    wrong = check(url[:-3] + "abc", files / "same.csv")
    assert (wrong.exit_code, "no guarded set at this address" in wrong.output) == (4, True)
    assert EvaluationGuard(files / "evals.db").status().done == 0


def test_nobody_answers(files: Path) -> None:
    done = check("http://127.0.0.1:9/secret-part", files / "same.csv")
    assert done.exit_code == 4
    assert "127.0.0.1:9 does not answer" in done.output
    assert "secret-part" not in done.output
    with pytest.raises(ServiceError, match="does not answer"):
        open_guard("http://127.0.0.1:9/secret-part")


def test_a_secret_is_kept(files: Path) -> None:
    path = files / "secret"
    secret = secret_of(path)
    assert secret_of(path) == secret
    assert path.stat().st_mode & 0o077 == 0
    server = VerdictServer(str(files / "evals.db"), secret=secret)
    server.close()
    assert server.url.endswith(secret)
    path.write_text("short")
    with pytest.raises(InputError, match="20 letters"):
        secret_of(path)


def test_a_database_without_a_set(tmp_path: Path) -> None:
    with pytest.raises(LedgerError):
        VerdictServer(str(tmp_path / "none.db"))
