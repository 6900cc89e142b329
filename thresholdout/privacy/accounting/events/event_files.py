"""Events as JSON and TOML, both ways."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import count
from thresholdout.privacy.accounting.events.composed_events import Composed, SelfComposed, check_event
from thresholdout.privacy.accounting.events.event_types import (
    BlackBox,
    Event,
    GaussianAnswer,
    LaplaceAnswer,
    ThresholdoutInteraction,
)
from thresholdout.privacy.accounting.events.learning_steps import (
    FederatedRound,
    PoissonGaussianStep,
    SGLDStep,
    WithoutReplacementGaussianStep,
    WithReplacementGaussianStep,
)

__all__ = ["event_from_dict", "event_to_dict", "event_to_json", "events_to_toml", "read_events"]

KINDS: dict[str, type[Event]] = {
    "laplace_answer": LaplaceAnswer,
    "gaussian_answer": GaussianAnswer,
    "thresholdout_interaction": ThresholdoutInteraction,
    "black_box": BlackBox,
    "poisson_gaussian_step": PoissonGaussianStep,
    "without_replacement_gaussian_step": WithoutReplacementGaussianStep,
    "with_replacement_gaussian_step": WithReplacementGaussianStep,
    "sgld_step": SGLDStep,
    "federated_round": FederatedRound,
    "self_composed": SelfComposed,
    "composed": Composed,
}
"""Names of events in files."""
_NAMES = {kind: name for name, kind in KINDS.items()}
_DEEPEST = 50  # levels of events in files, whose readers call themselves for each
_SHAPE = 'a table such as {"kind": "gaussian_answer", "std": 2.0}'


def event_to_dict(event: Event) -> dict[str, Any]:
    """Return an event as plain values: its kind, and its fields.

    Raises
    ------
    InputError
        For more than 50 levels of events within events.
    InputTypeError
        For no event, or one of a kind that files have no name for.

    Examples
    --------
    >>> from thresholdout.privacy.accounting.events.event_types import GaussianAnswer
    >>> event_to_dict(SelfComposed(GaussianAnswer(2.0), 3))
    {'kind': 'self_composed', 'event': {'kind': 'gaussian_answer', 'std': 2.0}, 'count': 3}
    """
    return _plain(check_event(event), 0)


def _plain(event: Event, depth: int) -> dict[str, Any]:
    _check_depth(depth)
    if type(event) not in _NAMES:
        raise InputTypeError("event", f"a {type(event).__name__}", "a kind of event of this package")
    found: dict[str, Any] = {"kind": _NAMES[type(event)]}
    for field in fields(event):
        value = getattr(event, field.name)
        if isinstance(value, Event):
            found[field.name] = _plain(value, depth + 1)
        elif field.name == "events":
            found[field.name] = [_plain(each, depth + 1) for each in value]
        elif value != field.default:
            found[field.name] = list(value) if isinstance(value, tuple) else value
    return found


def _check_depth(depth: int) -> None:
    if depth > _DEEPEST:
        seen = f"events within events, more than {_DEEPEST} deep"
        raise InputError("event", seen, "fewer levels where it is written down, such as one Composed([...]) of all")


def event_from_dict(values: object) -> Event:
    """Return the event that plain values describe; a ``count`` beside the fields repeats it.

    Raises
    ------
    InputError
        When the kind is unknown, a field is missing or unknown, or a value is out of range; or for more than 50
        levels of events within events.
    InputTypeError
        When it is no table.

    Examples
    --------
    >>> event_from_dict({"kind": "gaussian_answer", "std": 2.0, "count": 3})
    SelfComposed(GaussianAnswer(std=2.0), 3)
    """
    return _event(values, 0)


def _event(values: object, depth: int) -> Event:
    _check_depth(depth)
    if not isinstance(values, Mapping):
        raise InputTypeError("event", f"a {type(values).__name__}", _SHAPE)
    given = dict(values)
    kind = KINDS.get(given.pop("kind", None))
    if kind is None:
        raise InputError("kind", repr(values.get("kind")), "one of " + ", ".join(KINDS))
    repeated = None if kind is SelfComposed else given.pop("count", None)
    names = {field.name: field for field in fields(kind)}
    unknown = [str(name) for name in given if name not in names]
    if unknown:
        raise InputError("event", f"a field {unknown[0]!r} in {values['kind']}", "some of " + ", ".join(names))
    if kind is Composed:
        each = given.get("events", [])
        if not isinstance(each, list):
            raise InputTypeError("events", f"a {type(each).__name__}", "a list of events")
        event: Event = Composed([_event(one, depth + 1) for one in each])
    else:
        if "event" in given:
            given["event"] = _event(given["event"], depth + 1)
        if isinstance(given.get("ratios"), list):
            given["ratios"] = tuple(given["ratios"])
        try:
            event = kind(**given)
        except TypeError as error:
            if isinstance(error, InputTypeError):
                raise
            raise InputError("event", f"{values['kind']} with {', '.join(given) or 'no fields'}", str(error)) from None
    return event if repeated is None else SelfComposed(event, count(repeated, "count"))


def event_to_json(event: Event) -> str:
    """Return an event as one line of JSON.

    Examples
    --------
    >>> from thresholdout.privacy.accounting.events.event_types import BlackBox
    >>> event_to_json(BlackBox(0.5))
    '{"kind": "black_box", "epsilon": 0.5}'
    """
    return json.dumps(event_to_dict(event))


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


def read_events(source: str | Path) -> tuple[Composed, dict[str, Any]]:
    """Read a TOML or JSON file of events.

    Parameters
    ----------
    source : path, or str
        A file's name; or the text of a TOML file itself, when it has more than one line.

    Returns
    -------
    events : Composed
        All of them.
    settings : dict
        What stands beside them in a TOML file, such as ``delta`` and ``adjacency``; empty for JSON.

    Raises
    ------
    InputError
        When the file can't be understood.

    Examples
    --------
    >>> read_events('''
    ... delta = 1e-5
    ... [[event]]
    ... kind = "gaussian_answer"
    ... std = 2.0
    ... count = 3
    ... ''')
    (Composed([SelfComposed(GaussianAnswer(std=2.0), 3)]), {'delta': 1e-05})
    """
    inline = isinstance(source, str) and "\n" in source
    try:
        text = str(source) if inline else Path(source).read_text(encoding="utf-8")
        if not inline and Path(source).suffix.lower() == ".json":
            values = json.loads(text)
            event = Composed([event_from_dict(each) for each in values]) if isinstance(values, list) else None
            return event or Composed([event_from_dict(values)]), {}
        settings = tomllib.loads(text)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:  # also of numbers with thousands of digits
        raise InputError(
            "events", f"a file that can't be read: {error}", "TOML with tables [[event]], or JSON"
        ) from None
    tables = settings.pop("event", None)
    if not isinstance(tables, list) or not tables:
        raise InputError("events", "no table [[event]]", "one for each event")
    return Composed([event_from_dict(table) for table in tables]), settings
