"""Who else may be on the machine: nobody but this user reaches the socket, and nobody holds it up."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
import threading
from collections.abc import Iterator
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from tests.patience import PATIENCE, wait_until
from thresholdout import Claims, Thresholdout
from thresholdout.errors import SharingError
from thresholdout.guard.sharing import private_socket
from thresholdout.guard.sharing import shared_objects as sharing
from thresholdout.guard.sharing.private_socket import check_private, listen, remove
from thresholdout.guard.sharing.shared_objects import Reference, _Clients, reference_of


@pytest.fixture
def reference() -> Reference:
    records = np.arange(200.0)
    return reference_of(Thresholdout(records, queries=10, mechanism=Claims(holdout_answers=2)))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A short folder that only its owner can use."""
    found = Path(tempfile.mkdtemp(prefix="t-"))
    yield found
    for each in sorted(found.rglob("*"), reverse=True):
        each.rmdir() if each.is_dir() else each.unlink()
    found.rmdir()


def test_a_key_in_a_readable_file_opens_nothing_to_others(tmp_path: Path) -> None:
    """What unpickles requests must be behind something that no other user can pass."""
    records = np.arange(200.0)
    guard = Thresholdout(records, train=records + 0.5, queries=10, mechanism=Claims(holdout_answers=2))
    joblib.dump(guard, tmp_path / "search.joblib")
    assert (
        reference_of(guard).authkey in (tmp_path / "search.joblib").read_bytes()
    )  # so this is not what keeps them out
    listener = sharing._server._listener
    assert listener._listener._family == "AF_UNIX"
    found = os.stat(Path(reference_of(guard).address).parent)
    assert (stat.S_IMODE(found.st_mode), found.st_uid) == (0o700, os.geteuid())


def test_there_is_no_network_when_no_folder_is_found(monkeypatch: pytest.MonkeyPatch, reference: Reference) -> None:
    monkeypatch.setattr(private_socket, "_places", lambda: iter(["/nowhere", "/proc"]))
    with pytest.raises(SharingError, match="TMPDIR"):
        listen(1)
    monkeypatch.delattr(socket, "AF_UNIX")
    with pytest.raises(SharingError, match="TMPDIR"):
        listen(1)


def test_a_folder_for_temporary_files_as_the_message_asks(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with listen(1) as listener:
        address = str(listener.address)
        assert address.startswith(str(folder))
        check_private(address)
    remove(address)
    assert not list(folder.iterdir())


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o707])
def test_a_folder_that_others_can_use_is_refused(folder: Path, mode: int, reference: Reference) -> None:
    """Whoever has read the key may listen under an old name, and answer with what runs code."""
    own = folder / "tho-1"
    own.mkdir(mode=0o700)
    check_private(str(own / "listener"))
    own.chmod(mode)
    with pytest.raises(SharingError, match=r"ledger='guard\.db'"):
        Reference(str(own / "listener"), reference.authkey, reference.token, "process of another").call("status")
    own.chmod(0o700)
    folder.chmod(0o777)  # others could put a folder of their own in its place
    with pytest.raises(SharingError, match=r"ledger='guard\.db'"):
        check_private(str(own / "listener"))
    folder.chmod(0o1777)
    check_private(str(own / "listener"))
    folder.chmod(0o700)


def test_a_link_in_the_place_of_the_folder_is_refused(folder: Path) -> None:
    (folder / "real").mkdir(mode=0o700)
    (folder / "link").symlink_to(folder / "real")
    with pytest.raises(SharingError):
        check_private(str(folder / "link" / "listener"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
def test_a_folder_of_somebody_else_is_refused(folder: Path) -> None:
    own = folder / "tho-1"
    own.mkdir(mode=0o700)
    os.chown(own, 12345, 12345)
    with pytest.raises(SharingError):
        check_private(str(own / "listener"))


@pytest.mark.slow
@pytest.mark.parametrize("dribble", [False, True])
def test_who_does_not_prove_to_know_the_key_in_time_is_hung_up_on(
    reference: Reference, monkeypatch: pytest.MonkeyPatch, dribble: bool
) -> None:
    monkeypatch.setattr(sharing, "_DEADLINE", 0.5)
    before = len(sharing._server._open)
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(reference.address)
        if dribble:
            line.sendall((200).to_bytes(4, "big"))
        line.settimeout(0.1)

        def hung_up_on() -> bool:
            try:
                if dribble:
                    line.sendall(b"x")
                return line.recv(4096) == b""
            except TimeoutError:
                return False
            except (BrokenPipeError, ConnectionResetError):
                return True

        wait_until(hung_up_on)
    monkeypatch.setattr(sharing, "_DEADLINE", PATIENCE)
    assert reference.call("status").answers_left == 2
    wait_until(lambda: len(sharing._server._open) <= before + 1)


def test_who_has_proved_it_may_take_his_time(reference: Reference, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long that is: the clock that runs meanwhile has been stopped."""
    timers: list[threading.Timer] = []

    class Noted(threading.Timer):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            timers.append(self)

    monkeypatch.setattr(threading, "Timer", Noted)
    monkeypatch.setattr(sharing, "_DEADLINE", PATIENCE)
    monkeypatch.setattr(sharing, "_clients", _Clients())
    assert reference.call("status").answers_left == 2
    ((connection,),) = sharing._clients._idle.values()
    assert [timer.interval for timer in timers] == [PATIENCE]
    assert timers[0].finished.is_set()
    assert not timers[0].is_alive()
    assert reference.call("status").answers_left == 2
    assert list(sharing._clients._idle.values()) == [[connection]]
    sharing._clients.close()


def test_there_are_only_so_many_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_clients", _Clients())
    office = sharing.ProxyServer({})  # without the connections of earlier tests, which may just be closed
    monkeypatch.setattr(sharing, "_server", office)
    reference = reference_of(Thresholdout(np.arange(200.0), queries=10, mechanism=Claims(holdout_answers=2)))
    monkeypatch.setattr(sharing, "_CLIENTS", 3)
    taken: list[Connection] = [Client(reference.address, authkey=reference.authkey) for _ in range(3)]
    with pytest.raises(SharingError, match=f"has {sharing._CLIENTS} connections already"):
        reference.call("status")
    for connection in taken:
        connection.close()
    wait_until(lambda: len(office._open) < 3)
    assert reference.call("status").answers_left == 2
    sharing._clients.close()
    office.close()


def test_who_does_not_know_the_key_is_not_answered(reference: Reference) -> None:
    stranger = Reference(reference.address, b"0" * 32, reference.token, reference.owner)
    with pytest.raises(SharingError, match="AuthenticationError"):
        stranger.call("history")
    assert len(reference.call("history")) == 0
    assert reference.authkey.hex() not in repr(reference)
    assert reference.token not in repr(reference)


def test_only_what_is_served_is_reached(reference: Reference) -> None:
    for name in ("_records", "_ledger", "_holdout", "__class__", "_mechanism"):
        with pytest.raises(SharingError, match="is not served here"):
            reference.call(name)
    with pytest.raises(SharingError, match="process has ended"):
        Reference(reference.address, reference.authkey, "0" * 32, reference.owner).call("history")
    with pytest.raises(SharingError, match="The process that holds the guard cannot read"):
        reference.call("ask", Unreadable())


class Unreadable:
    """Something that can be sent and not received."""

    def __reduce__(self) -> Any:
        return (int, ("not a number",))
