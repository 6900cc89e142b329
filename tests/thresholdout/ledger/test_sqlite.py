from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from tests.cases import for_each
from tests.patience import PATIENCE
from tests.thresholdout.ledger.contract import LedgerContract
from tests.thresholdout.ledger.mechanism import FIRST, GUARD, SECRET, Mechanism, assert_consistent
from thresholdout.errors import InputError, InputTypeError, LedgerError, LedgerMismatch, LedgerUnusable
from thresholdout.ledger import Ledger, MemoryLedger, SQLLedger, open_ledger, sqlite_file
from thresholdout.ledger.database import Cursor
from thresholdout.ledger.entry import Entry
from thresholdout.ledger.schema import APPLICATION_ID, FORMAT
from thresholdout.ledger.sqlite_file import SQLiteFile

NOBODY = 65534


class TestSQLLedger(LedgerContract):
    def make(self, folder: Path) -> Ledger:
        return SQLLedger(folder / "guard.db")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "guard.db"
    with SQLLedger(file) as ledger:
        ledger.create(GUARD, {"threshold": 0.1}, FIRST, {"labels": SECRET})
        ledger.ask(GUARD, "a", 0.5, "accuracy", Mechanism())
    return file


def content(folder: Path) -> dict[str, bytes | None]:
    return {path.name: path.read_bytes() if path.is_file() else None for path in folder.iterdir()}


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


# Opening


def test_a_reopened_ledger_continues(file: Path) -> None:
    with SQLLedger(file) as ledger:
        entries, state = ledger.entries(GUARD), ledger.state(GUARD)
        ledger.ask(GUARD, "b", 0.5, "accuracy", Mechanism())
    with SQLLedger(file, must_exist=True) as ledger:
        assert ledger.entries(GUARD)[:1] == entries
        assert ledger.state(GUARD) != state
        assert ledger.parameters(GUARD) == {"threshold": 0.1}
        assert ledger.document(GUARD, "labels") == SECRET
        with pytest.raises(LedgerMismatch):
            ledger.create(GUARD, {"threshold": 0.2}, FIRST)
        assert_consistent(ledger)


def test_a_commit_is_synchronised_with_the_disk(file: Path) -> None:
    with SQLLedger(file) as ledger:
        assert ledger.database.read("PRAGMA journal_mode") == [("wal",)]
        assert ledger.database.transact(lambda cursor: cursor.execute("PRAGMA synchronous").fetchone()) == (2,)


def test_only_the_owner_can_read_the_file_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    link, connect = os.link, sqlite3.connect

    def watched_link(source: Path, target: Path) -> None:
        seen.extend(modes(tmp_path).values())
        link(source, target)

    def watched_connect(*arguments: object, **options: object) -> sqlite3.Connection:
        seen.extend(modes(tmp_path).values())
        return connect(*arguments, **options)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(os, "link", watched_link)
    monkeypatch.setattr(sqlite3, "connect", watched_connect)
    mask = os.umask(0)
    try:
        with SQLLedger(tmp_path / "guard.db") as ledger:
            ledger.create(GUARD, {}, FIRST)
            ledger.ask(GUARD, "a", 0.5, "accuracy", Mechanism())
            found = modes(tmp_path)
    finally:
        os.umask(mask)
    assert found == {"guard.db": 0o600, "guard.db-wal": 0o600, "guard.db-shm": 0o600}
    assert len(seen) > 2
    assert set(seen) == {0o600}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o622])
def test_a_file_that_others_can_use_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    before = content(file.parent)
    with pytest.raises(LedgerUnusable, match=f"mode 0{mode:o}.*chmod 600 .*guard.db"):
        SQLLedger(file)
    assert content(file.parent) == before
    file.chmod(0o600)
    SQLLedger(file).close()


def text_file(file: Path) -> None:
    file.write_text("query,answer\n1,0.7\n" * 1000)


def empty_file(file: Path) -> None:
    file.touch()


def other_database(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE guards (id INTEGER)")
        connection.commit()


def other_database_with_log(file: Path) -> None:
    """As it looks while another program has it open."""
    source = file.with_name("source")
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE guards (id INTEGER)")
        connection.commit()
        for suffix in ("", "-wal"):
            shutil.copy(f"{source}{suffix}", f"{file}{suffix}")
    source.unlink()


def other_application(file: Path) -> None:
    other_database(file)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID + 1}")


def newer_ledger(file: Path) -> None:
    SQLLedger(file).close()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT + 1}")


def ledger_without_version(file: Path) -> None:
    SQLLedger(file).close()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 0")


def folder(file: Path) -> None:
    file.mkdir()


def pipe(file: Path) -> None:
    os.mkfifo(file)


def dangling_link(file: Path) -> None:
    file.symlink_to(file.with_name("nothing"))


@for_each(
    ("prepare", "reason"),
    [
        (text_file, "The file is not a ledger"),
        (empty_file, "The file is not a ledger"),
        (other_database, "The file is not a ledger"),
        (other_database_with_log, "The file is not a ledger"),
        (other_application, "The file is not a ledger"),
        (newer_ledger, f"format {FORMAT + 1}, but this version reads format {FORMAT}"),
        (ledger_without_version, "format 0"),
        (folder, "It is not a regular file"),
        (pipe, "It is not a regular file"),
        (dangling_link, "The file does not exist"),
    ],
)
@for_each("must_exist", [False, True])
def test_what_is_not_a_ledger_is_refused_and_left_alone(
    tmp_path: Path, prepare: Callable[[Path], None], reason: str, must_exist: bool
) -> None:
    file = tmp_path / "guard.db"
    prepare(file)
    if file.is_file():
        file.chmod(0o600)
    before, status = content(tmp_path), file.lstat()
    with pytest.raises(LedgerUnusable, match=reason) as caught:
        open_ledger(file, must_exist=must_exist)
    assert caught.value.location == str(file)
    assert content(tmp_path) == before
    assert (file.lstat().st_mtime_ns, file.lstat().st_mode) == (status.st_mtime_ns, status.st_mode)


def test_a_truncated_ledger_is_refused(file: Path) -> None:
    os.truncate(file, 4096)
    with pytest.raises(LedgerUnusable), SQLLedger(file) as ledger:
        ledger.entries(GUARD)


def test_a_missing_file_is_refused_when_it_must_exist(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnusable, match="The file does not exist"):
        open_ledger(tmp_path / "guard.db", must_exist=True)
    with pytest.raises(LedgerUnusable, match="No such file or directory"):
        open_ledger(tmp_path / "folder" / "guard.db")
    assert content(tmp_path) == {}


def test_a_file_system_without_links_leaves_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(LedgerUnusable, match="cannot be created: Operation not permitted"):
        SQLLedger(tmp_path / "guard.db")
    assert content(tmp_path) == {}


def test_a_file_made_meanwhile_by_another_process_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    link = os.link

    def late(source: Path, target: Path) -> None:
        shutil.copy(file, target)
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with SQLLedger(tmp_path / "other.db") as ledger:
        assert ledger.guards() == [GUARD]


def test_open_ledger_takes_paths_addresses_and_ledgers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for where in ("guard.db", tmp_path / "guard.db", "sqlite:///guard.db", f"sqlite:///{tmp_path}/guard.db"):
        with open_ledger(where) as ledger:
            assert isinstance(ledger, SQLLedger)
            ledger.create(GUARD, {}, FIRST)
            assert open_ledger(ledger) is ledger
    assert list(content(tmp_path)) == ["guard.db"]
    assert isinstance(open_ledger(None), MemoryLedger)


def test_a_relative_path_outlives_a_change_of_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with SQLLedger("a ledger?#%41.db") as ledger:
        monkeypatch.chdir("/")
        ledger.create(GUARD, {}, FIRST)
    assert list(content(tmp_path)) == ["a ledger?#%41.db"]


@for_each(
    ("where", "seen"),
    [
        ("mysql://user:hunter2@host/db", "a mysql address"),
        ("postgresql+asyncpg://user:hunter2@host/db", "a postgresql.asyncpg address"),
        ("sqlite+aiosqlite:///guard.db", "a sqlite.aiosqlite address"),
        ("://hunter2", "an address that can't be read"),
        ("sqlite:///guard.db?mode=memory", "an address with options"),
        ("sqlite://", "''"),
        ("", "''"),
        (":memory:", "':memory:'"),
        ("guard\0.db", "'guard.x00.db'"),
    ],
)
def test_other_addresses_are_refused(where: str, seen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"^ledger must be .*; got {seen}") as caught:
        open_ledger(where)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))
    assert content(tmp_path) == {}


def test_other_types_are_refused() -> None:
    with pytest.raises(InputTypeError, match=r"ledger must be .*; got an int"):
        open_ledger(3)  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match=r"ledger must be .*; got a bytes"):
        open_ledger(b"guard.db")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"ledger must be .*; got None"):
        open_ledger(None, must_exist=True)


@pytest.mark.slow
def test_sqlalchemy_is_imported_with_the_first_file() -> None:
    code = "import sys, thresholdout.ledger as l; l.open_ledger(None); print('sqlalchemy' in sys.modules, l.SQLLedger)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.split()[0] == "False"


# Trouble while it is used


@contextmanager
def refused(ledger: Ledger, reason: str) -> Iterator[None]:
    """Check that the work fails, answers nothing, stores nothing, and that the ledger works afterwards."""
    entries, state = ledger.entries(GUARD), ledger.state(GUARD)
    with pytest.raises(LedgerUnusable, match=reason) as caught:
        yield
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert (ledger.entries(GUARD), ledger.state(GUARD)) == (entries, state)


def assert_works(ledger: Ledger) -> None:
    for _ in range(3):
        _, repeated = ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
        assert not repeated
    assert_consistent(ledger)


def test_a_full_database(file: Path) -> None:
    with SQLLedger(file) as ledger:
        ((pages,),) = ledger.database.read("PRAGMA page_count")
        ledger.database.transact(lambda cursor: cursor.execute(f"PRAGMA max_page_count = {pages}"))
        with refused(ledger, "The disk is full"):
            ledger.put_document(GUARD, "long", "x" * 100_000)
        assert_works(ledger)


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size, which fails like a broken disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_disk_that_fails_at_the_commit(file: Path) -> None:
    with SQLLedger(file) as ledger:
        ledger.ask(GUARD, "before", 0.5, "accuracy", Mechanism())
        size = Path(f"{file}-wal").stat().st_size
        for more in (0, 100, 4200):
            with refused(ledger, "The disk failed"), file_size_limit(size + more):
                ledger.ask(GUARD, "b", 0.5, "accuracy", Mechanism())
        assert_works(ledger)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", disk], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("needs the right to mount a small file system")
    yield disk
    subprocess.run(["umount", disk], check=True)


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as stream:
        while stream.write(b"x" * 4096):
            pass
    return filler


def test_a_full_disk(small_disk: Path) -> None:
    file = small_disk / "guard.db"
    with SQLLedger(file) as ledger:
        ledger.create(GUARD, {}, FIRST)
        ledger.ask(GUARD, "a", 0.5, "accuracy", Mechanism())
        filler = fill(small_disk)
        answers: list[Entry] = []
        with pytest.raises(LedgerUnusable, match="The disk is full"):
            answers.extend(ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())[0] for _ in range(100))
        filler.unlink()
        assert ledger.entries(GUARD)[1:] == answers
        assert_works(ledger)


def test_no_room_for_a_new_ledger(small_disk: Path) -> None:
    fill(small_disk)
    with pytest.raises(LedgerUnusable):
        SQLLedger(small_disk / "guard.db")
    assert list(content(small_disk)) == ["filler"]


@contextmanager
def without_privileges(folder: Path) -> Iterator[None]:
    """Give a folder to an ordinary user, and become that user."""
    if os.geteuid() != 0:
        yield
        return
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that an ordinary user can reach, unlike pytest's."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o400, 0o700), (0o600, 0o500), (0o400, 0o500), (0o000, 0o700)])
def test_a_ledger_that_cannot_be_written(open_folder: Path, file_mode: int, folder_mode: int) -> None:
    file = open_folder / "guard.db"
    with SQLLedger(file) as ledger:
        ledger.create(GUARD, {}, FIRST)
    file.chmod(file_mode)
    open_folder.chmod(folder_mode)
    before = content(open_folder) if os.geteuid() == 0 else None
    with without_privileges(open_folder), pytest.raises(LedgerUnusable, match="Check the permissions"):
        SQLLedger(file)
    assert before is None or content(open_folder) == before
    open_folder.chmod(0o700)


def test_a_new_ledger_in_a_folder_that_cannot_be_written(open_folder: Path) -> None:
    open_folder.chmod(0o500)
    with without_privileges(open_folder), pytest.raises(LedgerUnusable, match="cannot be created: Permission denied"):
        SQLLedger(open_folder / "guard.db")
    open_folder.chmod(0o700)
    assert content(open_folder) == {}


def test_a_file_locked_by_another_process(file: Path) -> None:
    mechanism = Mechanism()
    with SQLLedger(file, timeout=0.05) as ledger:
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with refused(ledger, "Another process keeps the file locked"):
                ledger.ask(GUARD, "b", 0.5, "accuracy", mechanism)
            other.execute("ROLLBACK")
        assert mechanism.states == []
        assert_works(ledger)


def test_a_query_that_cannot_be_looked_up(file: Path) -> None:
    mechanism = Mechanism()
    with SQLLedger(file) as ledger, closing(sqlite3.connect(file)) as other:
        other.execute("ALTER TABLE entries RENAME TO gone")
        with pytest.raises(LedgerUnusable, match="Its tables are not those of a ledger"):
            ledger.ask(GUARD, "a", 0.5, "accuracy", mechanism)
        other.execute("ALTER TABLE gone RENAME TO entries")
        assert mechanism.states == []
        assert_works(ledger)


def test_a_query_waits_for_another_process(file: Path) -> None:
    with (
        SQLLedger(file, timeout=PATIENCE) as ledger,
        closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.2, other.execute, ["ROLLBACK"])
        timer.start()
        assert_works(ledger)
        timer.join()


@pytest.mark.parametrize("replacement", [False, True])
def test_a_file_that_was_moved_away_takes_no_more_charges(file: Path, replacement: bool) -> None:
    mechanism = Mechanism()
    with SQLLedger(file) as ledger:
        ledger.ask(GUARD, "b", 0.5, "accuracy", Mechanism())
        file.rename(file.with_name("moved.db"))
        if replacement:
            shutil.copy(file.with_name("moved.db"), file)
        with pytest.raises(LedgerUnusable, match="moved, deleted or replaced"):
            ledger.ask(GUARD, "c", 0.5, "accuracy", mechanism)
    assert mechanism.states == []


def test_two_ledgers_on_one_file_in_one_process(file: Path) -> None:
    with SQLLedger(file) as one, SQLLedger(file) as two:
        for ledger in (one, two, one, two):
            ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
        entry, _ = one.ask(GUARD, "shared", 0.5, "accuracy", Mechanism())
        assert two.ask(GUARD, "shared", 0.5, "accuracy", Mechanism()) == (entry, True)
        one.close()
        two.ask(GUARD, None, 0.5, "accuracy", Mechanism())
        assert_consistent(two)


def test_a_mechanism_cannot_read_the_ledger(file: Path) -> None:
    with SQLLedger(file) as ledger:

        def reading(state: str) -> tuple[str, Entry]:
            ledger.entries(GUARD)
            return Mechanism()(state)

        with pytest.raises(LedgerError, match="The mechanism used the ledger"):
            ledger.ask(GUARD, "b", 0.5, "accuracy", reading)
        assert_works(ledger)


def test_a_transaction_left_by_an_interrupt_does_not_stay(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a second one comes in the middle of the clean-up."""

    def half(cursor: Cursor) -> None:
        cursor.execute("UPDATE guards SET state = 'half'")
        raise KeyboardInterrupt

    def interrupted(connection: object) -> None:
        raise KeyboardInterrupt

    with SQLLedger(file) as ledger:
        for clean_up in (sqlite_file._Connection.disconnect, interrupted):
            monkeypatch.setattr(sqlite_file._Connection, "disconnect", clean_up)
            with pytest.raises(KeyboardInterrupt):
                ledger.database.transact(half)
            monkeypatch.undo()
            assert_works(ledger)


def test_the_tables_refuse_a_second_answer(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        for query, key in ((1, "b"), (2, "a")):
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute(
                    "INSERT INTO entries SELECT guard, ?, ?, name, train, value, low, high, source, remaining, "
                    "lower, upper, log_error_budget, list, candidate, client, time, digest FROM entries",
                    (query, key),
                )


def test_a_dropped_ledger_closes_its_file(file: Path) -> None:
    ledger = SQLLedger(file)
    ledger.ask(GUARD, "b", 0.5, "accuracy", Mechanism())
    del ledger
    assert list(content(file.parent)) == ["guard.db"]


def test_a_log_without_its_file_is_not_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "guard.db"
    for suffix in ("-wal", "-shm"):
        left_over = Path(f"{path}{suffix}")
        left_over.write_bytes(b"log")
        with pytest.raises(LedgerUnusable, match="records the spent budget"):
            open_ledger(path)
        assert left_over.read_bytes() == b"log"
        assert not path.exists()
        left_over.unlink()
    open_ledger(path).close()


def test_a_ledger_that_is_left_open_is_closed_without_modules(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As at the exit of the interpreter, when names of modules may be gone already."""
    opened = SQLiteFile(str(file), must_exist=True, timeout=1.0)
    opened.read("SELECT 1")
    connection = opened._reader.open
    assert connection is not None
    monkeypatch.setattr("thresholdout.ledger.sqlite_file.os", None)
    opened.__del__()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")
