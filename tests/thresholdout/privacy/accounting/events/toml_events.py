"""Events as TOML files, for tests that read them."""

from __future__ import annotations

import json
from typing import Any

from thresholdout.privacy.accounting.events.composed_events import Composed, SelfComposed
from thresholdout.privacy.accounting.events.event_files import event_to_dict
from thresholdout.privacy.accounting.events.event_types import Event


def events_to_toml(event: Event) -> str:
    """Return an event as a TOML file: one table ``[[event]]``, or one for each member of a `Composed` event.

    Examples
    --------
    >>> from thresholdout.privacy.accounting.events.event_types import GaussianAnswer
    >>> print(events_to_toml(SelfComposed(GaussianAnswer(2.0), 3)))
    [[event]]
    kind = "gaussian_answer"
    std = 2.0
    count = 3
    <BLANKLINE>
    """
    members = event.events if isinstance(event, Composed) else (event,)
    tables = []
    for member in members:
        if isinstance(member, SelfComposed) and not isinstance(member.event, SelfComposed):
            values = event_to_dict(member.event) | {"count": member.count}
        else:
            values = event_to_dict(member)
        tables.append("[[event]]\n" + "".join(f"{name} = {_toml(value)}\n" for name, value in values.items()))
    return "\n".join(tables)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_toml(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)
