"""A PostgreSQL server of the tests' own: where its programs are, how to get them, and how to run one.

Run as ``python -m tests.thresholdout.ledger.postgres_server`` to install PostgreSQL from the system's packages where
that is possible; it says in one line what it found, and never fails.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from tests.system_packages import apt_get, privileged, works
from thresholdout.ledger.cipher import new_key

PROGRAMS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin")
OWNERS = ("postgres", "nobody")
USER = "guard"
KEY = new_key()
"""What the ledgers of the tests are encrypted with on a server."""
NO_CLUSTER = Path("/etc/postgresql-common/createcluster.d/thresholdout.conf")


def programs() -> Path | None:
    """Return the folder with the newest server's programs, or None."""
    found = [path for pattern in PROGRAMS for path in Path("/").glob(pattern[1:]) if (path / "initdb").exists()]
    found.sort(key=lambda path: [int(number) for number in re.findall(r"\d+", str(path))])
    on_path = shutil.which("initdb")
    if on_path is not None:
        found.append(Path(on_path).resolve().parent)
    return next((path for path in reversed(found) if (path / "postgres").exists()), None)


def version(folder: Path) -> str:
    said = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    return said.split()[2]


def missing() -> str | None:
    """Return why no server can be started here, or None."""
    if programs() is None:
        return "needs PostgreSQL's server programs: make system-packages installs them where it can"
    if os.geteuid() == 0 and owner() is None:
        return f"needs a user such as {OWNERS[0]} to run PostgreSQL, which refuses to run as root"
    return None


def owner() -> pwd.struct_passwd | None:
    """Return whom a server belongs to when root starts it."""
    for name in OWNERS:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    return None


def install(seconds: float = 240.0) -> str:
    """Install the system's package where that is possible, and say what there is now."""
    folder = programs()
    if folder is not None:
        return f"PostgreSQL {version(folder)} found"
    root = privileged()
    if root is not None:
        # Debian's package would make and start a server that nobody asked for.
        works([*root, "mkdir", "-p", str(NO_CLUSTER.parent)], 10)
        works([*root, "sh", "-c", f"echo 'create_main_cluster = false' > {NO_CLUSTER}"], 10)
        apt_get(["postgresql"], seconds)
        works([*root, "rm", "-f", str(NO_CLUSTER)], 10)
    folder = programs()
    if folder is not None:
        return f"PostgreSQL {version(folder)} installed"
    return "no PostgreSQL and no way to install it here: its tests will be skipped"


class Server:
    """A server that listens on a socket in a folder of its own, and is gone with this process at the latest.

    Parameters
    ----------
    **settings : str
        Of ``postgresql.conf``.
    """

    def __init__(self, **settings: str) -> None:
        folder = programs()
        assert folder is not None
        self._programs = folder
        self.settings = settings
        self.folder = Path(tempfile.mkdtemp(prefix="postgres-"))  # short: a socket's path has at most 107 characters
        self._user = owner() if os.geteuid() == 0 else None
        if self._user is not None:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._make()
            self.start()
        except BaseException:
            self.stop()
            raise

    def _popen(self, program: str, *arguments: str, output: int) -> subprocess.Popen[bytes]:
        user = self._user
        return subprocess.Popen(
            [str(self._programs / program), *arguments],
            cwd=self.folder,
            env={**os.environ, "LC_ALL": "C", "HOME": str(self.folder)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            user=None if user is None else user.pw_uid,
            group=None if user is None else user.pw_gid,
            extra_groups=None if user is None else [],
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )

    def _make(self) -> None:
        arguments = ["-D", "data", "-U", USER, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]
        making = self._popen("initdb", *arguments, output=subprocess.PIPE)
        said, _ = making.communicate(timeout=120)
        assert making.returncode == 0, said.decode()
        rules = self.folder / "data" / "pg_hba.conf"
        rules.write_text("local all careful scram-sha-256\nlocal all all trust\n")

    def start(self) -> None:
        """Start, and wait until it answers."""
        options = [word for name, value in self.settings.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = self._popen(
                "postgres",
                "-D",
                "data",
                "-k",
                str(self.folder),
                "-c",
                "listen_addresses=",
                *options,
                output=log.fileno(),
            )
        until = time.monotonic() + 60
        while not self._answers():
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < until, self.log()
            time.sleep(0.02)

    def _answers(self) -> bool:
        words = [str(self._programs / "pg_isready"), "-q", "-h", str(self.folder), "-d", "postgres"]
        return subprocess.run(words, check=False).returncode == 0

    def kill(self) -> None:
        """Kill every process of the server at once, as far as it can be told: no one gets to say goodbye."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        for process in (self._process.pid, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._process.wait(60)
        for child in children:
            until = time.monotonic() + 60
            while Path(f"/proc/{child}/stat").exists() and time.monotonic() < until:
                time.sleep(0.005)

    def stop(self) -> None:
        """Stop, and remove everything."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(60)
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def address(self, database: str, user: str = USER, password: str | None = None) -> str:
        secret = "" if password is None else f":{password}"
        return f"postgresql://{user}{secret}@/{database}?host={self.folder}"

    def new_database(self) -> str:
        """Make an empty database, and return its address."""
        name = f"test_{secrets.token_hex(6)}"
        self.run(f"CREATE DATABASE {name}")
        return self.address(name)

    def emptied_database(self) -> str:
        """Return the address of a database that is empty again; faster than a new one."""
        try:
            self.run("DROP SCHEMA IF EXISTS thresholdout CASCADE", "emptied")
        except psycopg.OperationalError:  # there is none yet
            self.run("CREATE DATABASE emptied")
        return self.address("emptied")

    def run(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run a statement as the server's superuser, and return its rows."""
        with psycopg.connect(self.address(database), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def dump(self, database: str) -> str:
        """Return a database's ledger as SQL that `run` takes."""
        words = ["pg_dump", "-h", str(self.folder), "-U", USER, "--no-owner", "--no-privileges", "--inserts"]
        words[0] = str(self._programs / words[0])
        said = subprocess.run(
            [*words, "--schema=thresholdout", database], capture_output=True, text=True, check=True
        ).stdout
        return "\n".join(line for line in said.splitlines() if not line.startswith(("\\", "--"))) + "\n"


def _end_with_parent() -> None:
    """Have the kernel stop the server at once when the tests' process is killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)


if __name__ == "__main__":
    print(install())
