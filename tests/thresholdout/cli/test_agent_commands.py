"""Commands that serve agents and optimisers on the user's machine, as processes of their own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult

from tests.cases import for_each
from tests.patience import PATIENCE
from tests.thresholdout.client.service_double import ServiceDouble, served
from thresholdout.cli import main

CSV = "id,prediction\n1,0\n"


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("THRESHOLDOUT")}
    return kept | {"OPENBLAS_NUM_THREADS": "1", "THRESHOLDOUT_SERVICE_TOKEN": "ann-key"}


@pytest.mark.slow
def test_an_agent_submits_over_standard_input_and_output(tmp_path: Path) -> None:
    (tmp_path / "forest.csv").write_text(CSV)
    service = ServiceDouble(["", "", "quota"])

    async def run(url: str) -> list[CallToolResult]:
        command = ["-m", "thresholdout", "agent", "mcp", "--url", url, "--folder", str(tmp_path)]
        async with Client(StdioServerParameters(command=sys.executable, args=command, env=environment())) as client:
            return [
                await client.call_tool("status", {"holdout": "digits"}),
                await client.call_tool("submit", {"holdout": "digits", "file": "forest.csv", "expected": 0.9}),
                await client.call_tool("submit", {"holdout": "digits", "predictions": CSV + "2,1\n"}),
            ]

    with served(service) as url:
        status, submitted, refused = asyncio.run(run(url))
    assert status.structured_content is not None
    assert submitted.structured_content is not None
    assert refused.structured_content is not None
    assert status.structured_content["quota"] == 20
    assert (submitted.structured_content["low"], submitted.structured_content["high"]) == (0.86, 0.91)
    assert (refused.is_error, refused.structured_content["code"]) == (True, "quota")
    assert service.requests[1].content == CSV.encode()
    assert {request.headers["Authorization"] for request in service.requests} == {"Bearer ann-key"}
    told = json.dumps([one.model_dump(mode="json") for one in (status, submitted, refused)])
    assert "ann-key" not in told


@pytest.mark.slow
def test_an_evaluation_server_writes_its_script_and_ends_when_it_is_told_to(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("bob-key\n")
    candidate = CSV + "d1,1\nd2,1\n"
    (tmp_path / "candidate").write_text(candidate)
    service, script = ServiceDouble(), tmp_path / "eval.sh"
    command = [
        sys.executable,
        "-m",
        "thresholdout",
        "agent",
        "evaluate-server",
        "--command",
        "cp {candidate} {predictions}",
        "--development",
        str(tmp_path / "open.csv"),
        "--label",
        "y",
    ]
    (tmp_path / "open.csv").write_text("id,y\nd1,1\nd2,0\n")
    with served(service) as url:
        process = subprocess.Popen(
            [*command, "--url", url, "--token-file", tmp_path / "key", "--holdout", "digits", "--script", script],
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            told = httpx.post(address, json={"candidate": candidate}, trust_env=False, timeout=PATIENCE).json()
            ran = subprocess.run([script, tmp_path / "candidate"], capture_output=True, text=True, check=True)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
            process.stdout.close()
    assert (told["score"], told["info"]["development"]) == (0.86, 0.5)  # which the holdout corrects upwards
    assert json.loads(ran.stdout)["score"] == 0.5  # free: the best is 0.86
    assert stat.S_IMODE(script.stat().st_mode) == 0o700
    assert {request.headers["Authorization"] for request in service.requests} == {"Bearer bob-key"}


@for_each(
    ("arguments", "said"),
    [
        (
            ["mcp", "--url", "http://127.0.0.1:1"],
            "An API token is needed: pass --token-file, or set THRESHOLDOUT_SERVICE_TOKEN",
        ),
        (["mcp", "--url", "ftp://h"], "--url must be"),
        (
            ["mcp", "--url", "http://h", "--holdout", "digits"],
            "--holdout and --development go together: pass both, or neither",
        ),
        (
            ["evaluate-server", "--url", "http://h", "--holdout", "digits", "--command", "run"],
            "--command must be",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_line(arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("THRESHOLDOUT_SERVICE_TOKEN", raising=False)
    if said.startswith("--url"):
        monkeypatch.setenv("THRESHOLDOUT_SERVICE_TOKEN", "key")
    ended = CliRunner().invoke(main, ["agent", *arguments])
    assert ended.exit_code == 2
    assert ended.output.startswith(f"Error: {said}")
    assert ended.output.count("\n") == 1
