"""The command that serves: processes that begin, answer, and stop without losing what they began."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from click.testing import CliRunner

from tests.cases import for_each
from tests.patience import PATIENCE, wait_until
from tests.thresholdout.service.evaluations import ADMIN, HOLDOUT, TRAIN, made, right_in
from thresholdout.cli import main
from thresholdout.errors import InputError
from thresholdout.service import serving as server
from thresholdout.service.evaluation import EvaluationService
from thresholdout.service.http import admission
from thresholdout.service.limits import Limits
from thresholdout.service.serving import Serving, serve, serving_here

if TYPE_CHECKING:
    from tests.thresholdout.ledger.postgres_server import Server


class Process:
    """A server in a process of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [sys.executable, "-m", "thresholdout", "serve", "--port", "0", *options]
        self.folder, self.log = folder, folder / "log.jsonl"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )
        self.printed = ""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.printed += line
            if "serving" in line:
                break
        else:
            self.end()
            raise AssertionError(self.printed + self.log.read_text())
        self.address = re.search(r"http://[\d.:]+\d", self.printed)[0]  # type: ignore[index]

    def key(self) -> str:
        """Return the first administrator's key, which is in the file that the output names."""
        named = re.search(r"first administrator: in (\S+),", self.printed)
        assert named is not None, self.printed
        return (self.folder / named[1]).read_text().strip()

    def end(self) -> None:
        assert self.process.stdout is not None
        self.process.kill()
        self.process.wait(PATIENCE)
        self.process.stdout.close()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Process]:
    process = Process(folder, *options)
    try:
        yield process
    finally:
        process.end()


def tables(folder: Path, more: str = "") -> list[str]:
    TRAIN.to_csv(folder / "train.csv", index=False)
    HOLDOUT.to_csv(folder / "holdout.csv", index=False)
    (folder / "leaderboard.toml").write_text(
        '[[holdout]]\nname = "cells"\ntrain = "train.csv"\nholdout = "holdout.csv"\nlabel = "y"\n' + more
    )
    return ["--config", "leaderboard.toml"]


def submit(address: str, key: str, name: str, share: float = 0.8) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": name, "Content-Type": "text/csv"}
    body = right_in(share).to_csv(index=False)
    return httpx.post(f"{address}/v1/holdouts/cells/submissions", content=body, headers=headers, timeout=PATIENCE)


def made_key(process: Process, team: str) -> str:
    admin = {"Authorization": f"Bearer {process.key()}"}
    answer = httpx.post(
        f"{process.address}/v1/tokens", json={"role": "team", "team": team}, headers=admin, timeout=PATIENCE
    )
    return str(answer.json()["text"])


def run(*arguments: str, code: int = 0) -> str:
    found = CliRunner().invoke(main, list(arguments))
    assert found.exit_code == code, found.output
    return found.output


@pytest.mark.slow
def test_one_command_starts_a_leaderboard_that_finishes_what_it_began(tmp_path: Path) -> None:
    options = tables(tmp_path)
    with serving(tmp_path, *options) as process:
        key = made_key(process, "ann")
        first = submit(process.address, key, "a")
        assert first.json()["state"] == "answered"
        assert first.json()["receipt"] is not None
        (handed,) = tmp_path.glob("*.admin-token")
        assert f"in {handed}" in process.printed or f"in {handed.name}" in process.printed
        assert "tho_" not in process.printed
        assert handed.stat().st_mode & 0o777 == 0o600
        admin = {"Authorization": f"Bearer {handed.read_text().strip()}"}
        assert httpx.get(f"{process.address}/v1/tokens", headers=admin, timeout=PATIENCE).status_code == 200
        answers: list[int] = []
        senders = [
            threading.Thread(target=lambda k=k: answers.append(_status(process.address, key, str(k)))) for k in range(4)
        ]
        for sender in senders:
            sender.start()
        assert process.stop() in (0, -signal.SIGTERM)
        for sender in senders:
            sender.join(PATIENCE)
        assert len(answers) == 4
        log = [json.loads(line) for line in process.log.read_text().splitlines()]
        assert any(line.get("event") == "Application shutdown complete." for line in log)
        assert key not in process.log.read_text()
    with serving(tmp_path, *options) as again:
        assert "first administrator" not in again.printed
        repeated = submit(again.address, key, "a").json()
        assert repeated == first.json() | {"repeated": True}
        history = httpx.get(
            f"{again.address}/v1/holdouts/cells/submissions",
            headers={"Authorization": f"Bearer {key}"},
            timeout=PATIENCE,
        ).json()["submissions"]
        assert len(history) >= 1 + answers.count(200)


def _status(address: str, key: str, name: str) -> int:
    try:
        return submit(address, key, name, 0.5 + 0.01 * int(name)).status_code
    except httpx.TransportError:
        return 0  # it came when nobody listened any more


@pytest.mark.slow
def test_workers_share_a_server(server: "Server", tmp_path: Path) -> None:
    address = server.new_database()
    with serving(tmp_path, "--database", address, "--workers", "2", *tables(tmp_path)) as process:
        wait_until(lambda: _well(process.address))
        key = made_key(process, "ann")
        told = [submit(process.address, key, "a") for _ in range(8)]
        assert len({answer.json()["query"] for answer in told}) == 1
        admin = {"Authorization": f"Bearer {process.key()}"}
        numbers = httpx.get(f"{process.address}/metrics", headers=admin, timeout=PATIENCE).text
        counted = re.findall(r'requests_total\{.*submissions",status="200"\} (\d+)', numbers)
        assert sum(map(int, counted)) == 8
        assert process.stop() == 0


def _well(address: str) -> bool:
    try:
        return httpx.get(f"{address}/ready", timeout=PATIENCE).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    folder = tmp_path_factory.mktemp("small")
    with serving(folder, *tables(folder, "public = true\n"), "--most-megabytes", "1", "--no-receipts") as process:
        yield process


def _sent(process: Process, data: bytes, most: int = 2000) -> bytes:
    """Send bytes until the other side has enough, and return what it says."""
    host, port = process.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        found = b""
        try:
            connection.sendall(data)
            while len(found) < most and (part := connection.recv(1000)):
                found += part
        except ConnectionError:
            pass
    return found


@pytest.mark.slow
def test_checkpoints_without_an_end_are_cut_off(small: Process) -> None:
    assert b"200 OK" in _sent(small, b"GET /ready HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert _sent(small, b"GET /ready HTTP/1.1\r\nA: " + b"x" * 10**6) == b""
    assert _sent(small, b"GET /ready HTTP/1.1\r\n" + b"A: b\r\n" * 10**5) == b""
    assert _sent(small, b"GET /" + b"a" * 10**6) == b""
    assert b"400 Bad Request" in _sent(small, b"\x16\x03\x01 not http\r\n\r\n")


@pytest.mark.slow
def test_slow_uploads_with_many_keys_leave_room_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each announces as much as the service takes and sends a few bytes; no other team waits for them."""
    monkeypatch.setattr(admission, "_PATIENCE", 10.0 * PATIENCE)
    limits = Limits(at_once=2)
    service = made(tmp_path / "leaderboard.db", limits=limits)
    keys = [service.new_token(ADMIN, "team", f"team-{number}")[0] for number in range(7)]
    with serving_here(service) as address, ExitStack() as open_ones:
        host, port = address.removeprefix("http://").split(":")
        for number, key in enumerate(keys[:6]):
            slow = open_ones.enter_context(socket.create_connection((host, int(port))))
            head = (
                f"POST /v1/holdouts/cells/submissions HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n"
                f"Content-Type: text/csv\r\nIdempotency-Key: {number}\r\nContent-Length: {limits.most_bytes}\r\n\r\nid,"
            )
            slow.sendall(head.encode())
        with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {keys[6]}"}, timeout=PATIENCE) as client:
            body = right_in(0.7).to_csv(index=False)
            headers = {"Content-Type": "text/csv", "Idempotency-Key": "k"}
            assert client.post("/v1/holdouts/cells/submissions", content=body, headers=headers).status_code == 200


@pytest.mark.slow
def test_idle_connections_of_one_address_leave_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """127.0.0.1 is no proxy here: its 101st connection is told so, and one that ends makes room again."""
    monkeypatch.setattr(server, "_MOST_OF_ONE", 5)
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(EvaluationService.open(Path(folder) / "b.db")) as service,
        serving_here(service, proxies="") as address,
    ):
        host, port = address.removeprefix("http://").split(":")
        idle = [socket.create_connection((host, int(port)), timeout=PATIENCE) for _ in range(5)]
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as more:
            assert b"503 Service Unavailable" in more.recv(1000)
            assert more.recv(1000) == b""
        idle.pop().close()
        wait_until(lambda: httpx.get(f"{address}/live", timeout=PATIENCE).status_code == 200)
        for connection in idle:
            connection.close()


@pytest.mark.slow
def test_pages_and_tools_are_served_beside_the_api(small: Process) -> None:
    page = httpx.get(f"{small.address}/", timeout=PATIENCE)
    assert page.headers["content-type"].startswith("text/html")
    assert "cells" in page.text
    assert (
        "script-src" not in page.headers["content-security-policy"]
        or "unsafe" not in page.headers["content-security-policy"]
    )
    tools = httpx.post(
        f"{small.address}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, timeout=PATIENCE
    )
    assert tools.status_code == 401
    for answer in (page, tools):
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_what_cannot_be_served(tmp_path: Path) -> None:
    database = str(tmp_path / "leaderboard.db")
    with pytest.raises(InputError, match="workers"):
        serve(Serving(database, workers=2), lambda address, service: None)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert "Nothing can listen" in run("serve", "--database", database, "--port", str(port), code=4)
    assert "Nothing can listen" in run("serve", "--database", database, "--host", "no.such.host.invalid", code=4)


def test_workers_have_minutes_for_their_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """With five seconds, as uvicorn has it, a busy machine replaces workers for ever that have not begun yet."""
    configured: list[Any] = []

    class Supervisor:
        def __init__(self, config: object, sockets: object) -> None:
            configured.append(config)

        def run(self) -> None:
            pass

    monkeypatch.setattr(server, "Multiprocess", Supervisor)
    monkeypatch.setattr(server, "log_to", lambda: None)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    with socket.socket() as listening:
        server._serve_by_workers(Serving("postgresql://server/leaderboards", workers=2), listening)
    assert configured[0].timeout_worker_healthcheck >= 60


def test_what_a_process_tells_its_workers() -> None:
    told = Serving("postgresql://server/leaderboards", "guard.key", workers=3, limits=Limits(most_rows=7))
    assert Serving.read(told.text()) == told


@for_each(
    "command",
    [
        ("admin", "token", "new", "--team", "ann"),
        ("admin", "token", "list"),
        ("admin", "token", "revoke", "tho_1"),
        ("admin", "holdout", "list"),
        ("admin", "phase", "cells", "closed"),
    ],
)
def test_a_mistyped_database_is_refused_and_not_made(tmp_path: Path, command: tuple[str, ...]) -> None:
    there = tmp_path / "bord.db"
    assert "which does not exist" in run(*command, "--database", str(there), code=2)
    assert not there.exists()


@pytest.mark.slow
def test_keys_and_holdouts_are_looked_after_where_the_database_is(tmp_path: Path) -> None:
    database = ("--database", str(tmp_path / "leaderboard.db"))
    tables(tmp_path)
    parts = ("--train", str(tmp_path / "train.csv"), "--holdout", str(tmp_path / "holdout.csv"))
    said = run("admin", "holdout", "new", "cells", *parts, "--label", "y", "--quota", "20", *database)
    text = run("admin", "token", "new", "--team", "ann", "--note", "laptop", *database).strip()
    assert text.startswith("tho_")
    listed = run("admin", "token", "list", *database)
    assert "laptop" in listed
    assert text not in listed
    name = re.search(r"tho_\w+", listed)[0]  # type: ignore[index]
    assert "revoked" in run("admin", "token", "revoke", name, *database)
    assert "needs --team" in run("admin", "token", "new", *database, code=2)
    assert "no holdout or API token of this name" in run("admin", "token", "revoke", "nobody", *database, code=4)
    assert "lower-case letters" in run("admin", "token", "new", "--team", "Ann B", *database, code=2)
    assert "400 records, interval by accuracy, open" in said
    assert "--train must be" in run("admin", "holdout", "new", "other", *parts, "--label", "z", *database, code=4)
    assert "Missing option '--label'" in run("admin", "holdout", "new", "other", *parts, *database, code=2)
    other = ("admin", "holdout", "new", "other", *parts, "--label", "y", *database)
    assert "squared_error needs --clip" in run(*other, "--metric", "squared_error", code=2)
    assert "absolute_error with --clip" in run(*other, "--metric", "r2", code=2)
    refused = run(*other, "--order", "x", code=2)
    assert "--window" in refused
    assert "--transition" in refused
    assert "cells: closed" in run("admin", "phase", "cells", "closed", *database)
    rows: list[Any] = run("admin", "holdout", "list", *database).splitlines()
    assert rows[1].split()[:3] == ["cells", "closed", "interval"]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_clients(tmp_path: Path) -> None:
    body = b"id,prediction\n" + b"".join(b"zz%0400d,1\n" % k for k in range(2400))  # of no record of the holdout
    with serving(tmp_path, *tables(tmp_path), "--most-megabytes", "1", "--failures-per-hour", "1000000") as process:
        keys = [made_key(process, f"t{k}") for k in range(8)]

        def send(number: int) -> None:
            headers = {
                "Authorization": f"Bearer {keys[number % 8]}",
                "Idempotency-Key": "k",
                "Content-Type": "text/csv",
            }
            path = f"{process.address}/v1/holdouts/cells/submissions"
            assert httpx.post(path, content=body, headers=headers, timeout=PATIENCE).status_code in (400, 503)

        def most_after(requests: int) -> int:
            senders = [threading.Thread(target=send, args=(number,)) for number in range(requests)]
            for sender in senders:
                sender.start()
            for sender in senders:
                sender.join(PATIENCE)
            status = Path(f"/proc/{process.process.pid}/status").read_text()
            return int(re.search(r"VmHWM:\s+(\d+)", status)[1])  # type: ignore[index]

        first = most_after(16)
        later = most_after(48)
        assert later - first < 100_000  # kilobytes; tables that stayed would take more than three times as much
