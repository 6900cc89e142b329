"""The text of a guard's state: a main part, and a line for each client, which ledgers store in a row of its own.

A row is read and written only with its client's queries, so a commit does not grow with the number of clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Final

__all__ = ["client_key", "join_state", "split_state"]

_CLIENT: Final = "\nclient "


def client_key(name: str) -> str:
    """Return the key of a client's row, which contains no text of the client's choice."""
    return sha256(name.encode()).hexdigest()[:32]


def join_state(main: str, clients: Mapping[str, str]) -> str:
    r"""Return the text of a state.

    Examples
    --------
    >>> join_state("claims/1 3", {"0a": "1 2"})
    'claims/1 3\nclient 0a 1 2'
    """
    return main + "".join(f"{_CLIENT}{key} {line}" for key, line in clients.items())


def split_state(text: str) -> tuple[str, dict[str, str]]:
    r"""Return the main part of a state, and its clients' lines by key.

    Examples
    --------
    >>> split_state("claims/1 3\nclient 0a 1 2")
    ('claims/1 3', {'0a': '1 2'})
    """
    main, *lines = text.split(_CLIENT)
    return main, {key: rest for key, _, rest in (line.partition(" ") for line in lines)}
