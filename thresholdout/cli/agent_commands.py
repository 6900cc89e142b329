"""Commands for agents: they run on the user's machine, and query a remote service."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from thresholdout.cli.options import FILE, NEW_FILE, in_folder
from thresholdout.cli.running import Command, Failure, Misuse, show

if TYPE_CHECKING:
    from collections.abc import Callable

    from thresholdout.client import Client
    from thresholdout.client.development import OpenRecords

__all__ = ["evaluate_server", "mcp"]

_URL = click.option("--url", required=True, help="Address of the service, such as http://127.0.0.1:8000.")

_TOKEN_FILE = click.option(
    "--token-file", type=FILE, help="File with the API token. Default: the variable THRESHOLDOUT_SERVICE_TOKEN."
)


def _development(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that declare open records."""
    options = (
        click.option("--development", type=FILE, help="CSV of labelled records whose scores are free."),
        click.option("--label", help="Column of the labels in --development."),
        click.option("--id", default="id", show_default=True, help="Column that identifies a record."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command(cls=Command, prints_json=False)
@_URL
@_TOKEN_FILE
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder whose files of predictions the agent may submit by name.",
)
@click.option("--holdout", help="Name of the holdout that --development belongs to.")
@_development
def mcp(
    url: str,
    token_file: Path | None,
    folder: Path | None,
    holdout: str | None,
    development: Path | None,
    label: str | None,
    id: str,
) -> None:
    """Run an MCP server (Model Context Protocol) that gives an agent the holdouts of a service.

    The server speaks over standard input and output. It keeps the API token: no tool shows it, and the agent needs
    none. With --development the agent also sends predictions for open records, and gets their exact score at no cost.
    """
    if (holdout is None) != (development is None):
        raise Misuse("--holdout and --development go together: pass both, or neither.")
    try:
        from thresholdout.service.agents.server import make_server
    except ImportError:
        raise Failure("A server for agents needs mcp: pip install 'thresholdout[service]'.") from None
    from thresholdout.service.agents.holdouts import RemoteHoldouts
    from thresholdout.service.agents.server import Folder
    from thresholdout.service.limits import Limits

    read = None if folder is None else Folder(folder, Limits().most_bytes).read
    with _client(url, token_file) as client:
        open_records = None if holdout is None else _open_records(client, holdout, development, label, id)
        beside = None if holdout is None or open_records is None else (holdout, open_records)
        make_server(RemoteHoldouts(client), read_file=read, development=beside).run("stdio")


@click.command("evaluate-server", cls=Command)
@_URL
@_TOKEN_FILE
@click.option("--holdout", required=True, help="Name of the holdout.")
@click.option(
    "--command",
    required=True,
    help="Command that runs a candidate program, such as 'python predict.py {candidate} {predictions}'. It reads one "
    "file, and writes the other one, a CSV.",
)
@click.option(
    "--candidate-name",
    default="candidate.py",
    show_default=True,
    help="File name under which a candidate is stored for the command.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    help="Time limit of the command, in seconds.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on. Default: a free port.")
@click.option("--script", type=NEW_FILE, help="Shell script to write, which sends a candidate to this server.")
@_development
def evaluate_server(
    url: str,
    token_file: Path | None,
    holdout: str,
    command: str,
    candidate_name: str,
    seconds: float,
    port: int,
    script: Path | None,
    development: Path | None,
    label: str | None,
    id: str,
) -> None:
    """Run a local HTTP server that scores candidate programs on a holdout.

    POST {candidate} to the printed address: the answer is {score, info, budget}, or status 429 if the budget is
    exhausted. The command runs on this machine with your permissions, and the service sees predictions only. The
    address has a secret part: everybody who knows it can run programs.

    With --development the command also predicts open records. Their exact score is returned, and only a candidate that
    would be the best is submitted.
    """
    from thresholdout.client.evaluate_server import EvaluateServer, script_for
    from thresholdout.client.scoring_command import ScoringCommand

    scoring = ScoringCommand.parse(command, candidate_name, seconds)
    with _client(url, token_file) as client:
        open_records = _open_records(client, holdout, development, label, id)
        server = EvaluateServer(client, holdout, scoring, port, development=open_records)
        try:
            if script is not None:
                _write_script(in_folder(script), script_for(server.url))
            show({"address": f"{server.url}/evaluate"}, f"{server.url}/evaluate")
            _until_stopped(server)
        finally:
            server.close()


def _open_records(
    client: Client, holdout: str, development: Path | None, label: str | None, id: str
) -> OpenRecords | None:
    """Return the open records beside a holdout, with the service's metric."""
    from thresholdout.client.development import OpenRecords

    metric = client.status(holdout).metric
    if development is None:
        return None
    if label is None:
        raise Misuse("--development needs --label, the column of its labels.")
    return OpenRecords.read(development, label, id, metric)


def _client(url: str, token_file: Path | None) -> Client:
    from thresholdout.client import Client
    from thresholdout.client.scoring_command import TOKEN_VARIABLE

    token = os.environ.get(TOKEN_VARIABLE) if token_file is None else token_file.read_text(encoding="utf-8")
    if not token:
        raise Misuse(f"An API token is needed: pass --token-file, or set {TOKEN_VARIABLE}.")
    return Client(url, token)


def _write_script(path: Path, text: str) -> None:
    """Write a script with the server's secret address, which only its owner can read and run."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o700)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.chmod(path, 0o700)
        file.write(text)


def _until_stopped(server: Any) -> None:
    """Serve until the process is interrupted or terminated."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        server.serve()
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)
