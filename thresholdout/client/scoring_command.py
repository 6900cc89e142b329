"""The user's command that turns a candidate program into predictions, on the user's machine."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from thresholdout.client.tables import CSV, Table
from thresholdout.errors import InputError, ThresholdoutError

__all__ = ["TOKEN_VARIABLE", "CommandFailed", "ScoringCommand"]

# Environment variable with the API token of a service; no command receives it.
TOKEN_VARIABLE: Final = "THRESHOLDOUT_SERVICE_TOKEN"

# Prefix of this library's environment variables, which hold API tokens and keys of ledgers.
_OURS: Final = "THRESHOLDOUT_"

# Bytes at the end of standard error that are returned.
_TAIL: Final = 2000


class CommandFailed(ThresholdoutError):
    """Raised when a scoring command made no predictions.

    Attributes
    ----------
    why : str
        Reason of the failure.
    printed : str
        End of the command's standard error.
    """

    def __init__(self, why: str, printed: str) -> None:
        self.why = why
        self.printed = printed
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class ScoringCommand:
    r"""The command that makes predictions of a candidate; no shell reads it.

    Notes
    -----
    ``{candidate}`` and ``{predictions}`` in `arguments` are replaced by the names of two files: the program, named
    `file_name`, and the CSV of predictions to write. The command and its children are killed after `seconds`.
    """

    arguments: tuple[str, ...]
    file_name: str = "candidate.py"
    seconds: float = 600.0

    @classmethod
    def parse(cls, command: str, file_name: str = "candidate.py", seconds: float = 600.0) -> ScoringCommand:
        """Split a command as a shell would."""
        try:
            arguments = tuple(shlex.split(command))
        except ValueError as error:
            raise InputError("command", f"{command!r} ({error})", "a command that a shell could split") from None
        for place in ("{candidate}", "{predictions}"):
            if not any(place in argument for argument in arguments):
                raise InputError("command", repr(command), f"a command with {place} in the place of that file's name")
        if file_name in ("", "..") or Path(file_name).name != file_name:
            raise InputError("file_name", repr(file_name), "the name of a file, without a folder")
        return cls(arguments, file_name, seconds)

    def predictions(self, candidate: str) -> Table:
        """Run the command for a candidate; return the predictions."""
        with tempfile.TemporaryDirectory(prefix="candidate-", ignore_cleanup_errors=True) as folder:
            program, table, errors = Path(folder, "in", self.file_name), Path(folder, "out"), Path(folder, "errors")
            program.parent.mkdir()
            try:
                program.write_text(candidate, encoding="utf-8")
            except UnicodeEncodeError:
                raise CommandFailed("the program has characters that no file can have", "") from None
            with errors.open("wb") as written:
                why = self._run(program, table, written.fileno())
            if not why:
                with suppress(OSError):
                    return Table(table.read_bytes(), CSV)
                why = "the command wrote no predictions"
            raise CommandFailed(why, _end_of(errors))

    def _run(self, program: Path, table: Path, errors: int) -> str:
        """Run the command in a process group of its own; return its error in words."""
        names = {"{candidate}": str(program), "{predictions}": str(table)}
        arguments = [_filled(argument, names) for argument in self.arguments]
        # Candidates are not trusted with API tokens and keys.
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        try:
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            return f"the command cannot be started: {error.strerror}"
        try:
            status = process.wait(self.seconds)
        except subprocess.TimeoutExpired:
            return f"the command took more than {self.seconds:g} seconds"
        finally:
            with suppress(ProcessLookupError, PermissionError):
                # The group ends too: a candidate may have started other processes.
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return f"the command ended with status {status}" if status else ""


def _filled(argument: str, names: dict[str, str]) -> str:
    for place, name in names.items():
        argument = argument.replace(place, name)
    return argument


def _end_of(file: Path) -> str:
    with file.open("rb") as opened:
        opened.seek(max(0, file.stat().st_size - _TAIL))
        return opened.read().decode("utf-8", "replace")
