"""Candidate programs are run on this side, what they predict is submitted, and optimisers read what comes of it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest

from tests.cases import for_each
from tests.patience import PATIENCE, wait_until
from tests.thresholdout.client.service_double import ServiceDouble
from thresholdout.client import Client
from thresholdout.client.client import RetryPolicy
from thresholdout.client.development import OpenRecords, accepted_or_corrected
from thresholdout.client.evaluate_server import EvaluateServer, script_for
from thresholdout.client.evaluation import evaluation_of, score_of
from thresholdout.client.received import Holdout, Submission
from thresholdout.client.scoring_command import TOKEN_VARIABLE, CommandFailed, ScoringCommand
from thresholdout.client.tables import Table
from thresholdout.errors import InputError
from thresholdout.ledger import cipher

COPY = ScoringCommand.parse("cp {candidate} {predictions}", seconds=PATIENCE)
CSV = "id,prediction\n1,0\n"


def python(code: str, seconds: float = PATIENCE) -> ScoringCommand:
    return ScoringCommand((sys.executable, "-c", code, "{candidate}", "{predictions}"), seconds=seconds)


@contextmanager
def evaluating(service: ServiceDouble, command: ScoringCommand = COPY, **more: Any) -> Iterator[str]:
    client = Client("http://h", "key", transport=service.transport, patience=RetryPolicy(0.0))
    server = EvaluateServer(client, "digits", command, **more)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server.url
    finally:
        server.stop()
        server.close()
        thread.join()


def asked(url: str, body: object = None, path: str = "/evaluate") -> tuple[int, Any]:
    """Ask as an optimiser does, with nothing but the standard library."""
    request = urllib.request.Request(url + path, None if body is None else json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


class TestDevelopment:
    """Ten open records, which the service never sees; its interval is always 0.86 to 0.91."""

    RECORDS = OpenRecords.of(
        pd.DataFrame({"id": [f"d{k}" for k in range(10)], "y": ["0", "1"] * 5}), "y", "id", "accuracy"
    )

    def candidate(self, right: int, of_holdout: int = 0) -> dict[str, str]:
        rows = [f"d{k},{k % 2 if k < right else 1 - k % 2}" for k in range(10)]
        return {"candidate": "\n".join(["id,prediction", f"1,{of_holdout}", *rows]) + "\n"}

    def test_what_would_be_the_best_is_submitted_and_the_rest_is_free(self) -> None:
        service = ServiceDouble()
        with evaluating(service, development=self.RECORDS) as url:
            told = [asked(url, self.candidate(right))[1] for right in (9, 8, 10, 9)]
            state = asked(url, path="/status")[1]
        assert [one["score"] for one in told] == [0.9, 0.8, 0.91, 0.9]  # accepted, free, corrected, free
        assert [one["info"]["development"] for one in told] == [0.9, 0.8, 1.0, 0.9]
        assert [one["info"]["state"] for one in told] == ["answered", "development", "answered", "development"]
        assert told[0]["info"]["correction"] == ""
        assert "at most 0.91" in told[2]["info"]["correction"]
        assert (state["best_score"], state["total_evals"]) == (0.91, 4)
        posted = [one for one in service.requests if one.method == "POST"]
        assert {one.content for one in posted} == {CSV.encode()}
        assert len(posted) == 2

    def test_predictions_without_open_records_are_refused_before_anything_is_submitted(self) -> None:
        service = ServiceDouble()
        with evaluating(service, development=self.RECORDS) as url:
            status, told = asked(url, {"candidate": CSV})
        assert (status, "got 0 rows for 10 open records" in told["error"]) == (422, True)
        assert not service.charged

    @for_each(
        ("metric", "better", "submission", "expected", "score"),
        [
            ("brier_score", False, Submission("s", "answered", low=0.1, high=0.2), 0.15, -0.15),
            ("brier_score", False, Submission("s", "answered", low=0.1, high=0.2), 0.05, -0.1),
            ("accuracy", True, Submission("s", "answered", verdict="better", number=3), 0.9, 0.9),
            ("accuracy", True, Submission("s", "answered", verdict="not settled", number=3), 0.9, 0.8),
            ("accuracy", True, Submission("s", "answered", value=0.85), 0.9, 0.85),
            ("accuracy", True, Submission("s", "hidden"), 0.9, 0.9),
            ("accuracy", True, Submission("s", "running"), 0.9, None),
        ],
    )
    def test_scores_are_accepted_or_corrected(
        self, metric: str, better: bool, submission: Submission, expected: float, score: float | None
    ) -> None:
        holdout = Holdout("digits", metric, better, "interval", "open")
        assert accepted_or_corrected(holdout, submission, expected, 0.8 if better else -0.3) == score

    def test_classes_and_losses(self) -> None:
        records = OpenRecords.of(pd.DataFrame({"n": ["7", "8"], "y": ["b", "a"]}), "y", "n", "brier_score")
        table = Table(b"n,p_b,p_a\n8,0.25,0.75\n1,0.5,0.5\n7,0.5,0.5\n")
        score, rest = records.scored(table)
        assert score == pytest.approx(0.5 * (0.25 + 0.0625))  # of the second class
        assert rest.body == b"n,p_b,p_a\n1,0.5,0.5\n"

    @for_each(
        ("table", "label", "said"),
        [
            ({"id": ["a"], "y": ["0"]}, "z", "a table without 'z'"),
            ({"id": ["a", "a"], "y": ["0", "1"]}, "y", "an id that occurs twice"),
            ({"id": [], "y": []}, "y", "an empty table"),
        ],
    )
    def test_open_records_that_are_none(self, table: dict[str, list[str]], label: str, said: str) -> None:
        with pytest.raises(InputError, match=said):
            OpenRecords.of(pd.DataFrame(table), label, "id", "accuracy")


class TestProtocol:
    def test_a_candidate_becomes_a_score(self) -> None:
        service = ServiceDouble()
        with evaluating(service) as url:
            status, told = asked(url, {"candidate": CSV})
            again = asked(url, {"candidate": CSV})[1]
            state = asked(url, path="/status")[1]
        assert status == 200
        assert set(told) == {"score", "info", "budget"}
        assert (told["score"], told["info"]["high"], told["info"]["repeated"]) == (0.86, 0.91, False)
        assert told["budget"] == {"exhausted": False, "max_evals": 20, "days": None, "remaining": None}
        assert (again["score"], again["info"]["repeated"]) == (0.86, True)
        assert (state["task"], state["best_score"], state["total_evals"]) == ("digits", 0.86, 2)
        assert list(service.charged.values()) == [1]
        assert service.requests[0].content == CSV.encode()

    @for_each("code", ["quota", "allowance", "exhausted"])
    def test_429_when_nothing_is_left(self, code: str) -> None:
        with evaluating(ServiceDouble([code])) as url:
            status, told = asked(url, {"candidate": CSV})
        assert (status, told["code"], told["budget"]) == (429, code, {"exhausted": True})

    @pytest.mark.slow
    @for_each(("code", "status"), [("rate", 429), ("closed", 409), ("bad_table", 400), ("busy", 503)])
    def test_other_refusals_are_no_end(self, code: str, status: int) -> None:
        with evaluating(ServiceDouble([code])) as url:
            answer, told = asked(url, {"candidate": CSV})
        assert (answer, told["code"], told["budget"]) == (status, code, {"exhausted": False})

    @pytest.mark.slow
    @for_each("body", [[], {}, {"candidate": 3}, "text", None])
    def test_what_is_no_candidate(self, body: object) -> None:
        service = ServiceDouble()
        with evaluating(service) as url:
            assert httpx.post(url + "/evaluate", json=body, trust_env=False, timeout=PATIENCE).status_code == 400
        assert service.requests == []

    def test_who_does_not_know_the_address_has_no_program_run(self) -> None:
        service = ServiceDouble()
        with evaluating(service) as url:
            root = url.rpartition("/")[0]
            for path in ("/evaluate", "//evaluate", "/wrong/evaluate", "/%C3%A9/evaluate", url[len(root) :]):
                assert asked(root, {"candidate": CSV}, path)[0] == 404
            assert asked(root, path="/status")[0] == 404
        assert url.startswith("http://127.0.0.1:")
        assert len(url.rpartition("/")[2]) == 32  # 24 random bytes
        assert service.requests == []

    def test_a_request_that_is_too_large_is_not_read(self) -> None:
        with evaluating(ServiceDouble()) as url:
            address = httpx.URL(url)
            import http.client

            for length in ("17000000", "9" * 30, "-1", "x"):
                connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=PATIENCE)
                connection.putrequest("POST", address.path + "/evaluate")
                connection.putheader("Content-Length", length)
                connection.endheaders()
                assert connection.getresponse().status in (411, 413), length
                connection.close()


class TestScripts:
    def run(self, url: str, tmp_path: Path, candidate: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "eval.sh").write_text(script_for(url))
        (tmp_path / "candidate").write_text(candidate)
        command = ["sh", str(tmp_path / "eval.sh"), str(tmp_path / "candidate")]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)

    @pytest.mark.slow
    def test_the_script_says_what_the_server_says(self, tmp_path: Path) -> None:
        text = CSV + '2,"é\'\\"\n'
        service = ServiceDouble(["", "", "quota"])
        with evaluating(service) as url:
            told = self.run(url, tmp_path, text)
            ended = self.run(url, tmp_path, "other" + text)
        assert (told.returncode, json.loads(told.stdout)["score"]) == (0, 0.86)
        assert service.requests[0].content == text.encode()
        assert (ended.returncode, json.loads(ended.stdout)["code"]) == (5, "quota")
        assert self.run(url, tmp_path, text).returncode == 4


class TestCommands:
    def test_the_candidate_is_a_file_and_no_shell_sees_it(self) -> None:
        code = (
            "import sys, os; text = open(sys.argv[1]).read();"
            "open(sys.argv[2], 'w').write(f'{os.path.basename(sys.argv[1])} {text}')"
        )
        assert python(code).predictions("$(touch x); `id`").body == b"candidate.py $(touch x); `id`"

    @for_each("variable", [TOKEN_VARIABLE, cipher.KEY_VARIABLE, cipher.KEY_FILE_VARIABLE])
    def test_no_key_is_handed_on(self, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
        monkeypatch.setenv(variable, "secret")
        monkeypatch.setenv("OTHER", "shown")
        code = "import os, sys; open(sys.argv[2], 'w').write(str(sorted(os.environ)) + str(os.environ.values()))"
        seen = python(code).predictions("").body.decode()
        assert "OTHER" in seen
        assert f"'{variable}'" not in seen  # pytest's own variable has the name of this test
        assert "secret" not in seen

    @pytest.mark.slow
    @for_each(
        ("code", "why", "printed"),
        [
            ("raise SystemExit('no such column')", "ended with status 1", "no such column"),
            ("pass", "wrote no predictions", ""),
            ("import sys; sys.exit('x' * 5000)", "ended with status 1", "x" * 1999),
        ],
    )
    def test_a_command_that_fails_says_so_and_nothing_is_submitted(self, code: str, why: str, printed: str) -> None:
        service = ServiceDouble()
        with evaluating(service, python(code)) as url:
            status, told = asked(url, {"candidate": CSV})
        assert status == 422
        assert why in told["error"]
        assert printed in told["info"]["stderr"]
        assert len(told["info"]["stderr"]) <= 2000
        assert service.requests == []

    @pytest.mark.slow
    def test_a_command_that_does_not_end_is_ended_with_what_it_started(self, tmp_path: Path) -> None:
        code = f"sleep 600 & echo $! > {tmp_path / 'pid'}; wait"
        with pytest.raises(CommandFailed, match="more than 4 seconds"):
            ScoringCommand(("sh", "-c", code), seconds=4.0).predictions("")
        pid = int((tmp_path / "pid").read_text())

        def ended() -> bool:
            try:
                return " Z " in Path(f"/proc/{pid}/stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                return True

        wait_until(ended)

    def test_nothing_is_left_behind(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        COPY.predictions(CSV)
        with pytest.raises(CommandFailed):
            python("pass").predictions("")
        assert list(tmp_path.iterdir()) == []

    def test_a_command_that_is_not_there(self) -> None:
        with pytest.raises(CommandFailed, match="cannot be started"):
            ScoringCommand.parse("/no/such {candidate} {predictions}").predictions("")

    @for_each("command", ["", "run {candidate}", "run {predictions}", "run '{candidate} {predictions}"])
    def test_a_command_without_its_two_files(self, command: str) -> None:
        with pytest.raises(InputError, match="command"):
            ScoringCommand.parse(command)

    @for_each("name", ["", "../x.py", "/x.py", "a/b.py", ".."])
    def test_a_file_name_that_is_none(self, name: str) -> None:
        with pytest.raises(InputError, match="file_name"):
            ScoringCommand.parse("cp {candidate} {predictions}", name)


class TestScores:
    def holdout(self, better: bool) -> Holdout:
        return Holdout("digits", "accuracy", better, "interval", "open")

    @for_each(
        ("better", "submission", "score"),
        [
            (True, Submission("s", "answered", value=0.9, low=0.8, high=0.95), 0.8),
            (False, Submission("s", "answered", value=0.2, low=0.1, high=0.3), -0.3),
            (True, Submission("s", "answered", value=0.9), 0.9),
            (False, Submission("s", "answered", value=0.2), -0.2),
            (True, Submission("s", "answered"), None),
            (False, Submission("s", "answered"), None),
            (True, Submission("s", "hidden"), None),
            (True, Submission("s", "running"), None),
        ],
    )
    def test_more_is_better(self, better: bool, submission: Submission, score: float | None) -> None:
        assert score_of(self.holdout(better), submission) == score

    def test_whoever_keeps_the_highest_score_keeps_the_last_champion(self) -> None:
        verdicts = ["first", "worse", "better", "not settled", "better", "worse"]
        scores = [
            evaluation_of(self.holdout(True), Submission("s", "answered", verdict=verdict, number=number, low=0.5))[
                "score"
            ]
            for number, verdict in enumerate(verdicts, 1)
        ]
        assert scores == [1, 0, 3, 0, 5, 0]
