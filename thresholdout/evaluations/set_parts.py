"""The two parts of a guarded evaluation set, and the text form of scores in a ledger."""

from __future__ import annotations

import hashlib
import hmac
import json
import math

import numpy as np

from thresholdout.errors import InputError
from thresholdout.evaluations.scores import Scores

__all__ = ["as_kept", "from_kept", "hidden_items", "part", "split"]


def hidden_items(scores: Scores, key: str, dev: float) -> list[bool]:
    """Return whether each item is in the gate part, by a keyed hash of its cluster or of its identity."""
    units = list(scores.identities) if scores.clusters is None else list(scores.clusters)
    found = []
    for unit in units:
        digest = hmac.new(key.encode(), unit.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
        found.append(int.from_bytes(digest[:8], "big") >= dev * 2.0**64)
    return found


def split(scores: Scores, hidden: list[bool]) -> tuple[list[str], list[str]]:
    """Return the identities of the gate part and of the dev part."""
    parts: tuple[list[str], list[str]] = ([], [])
    for identity, each in zip(scores.identities, hidden, strict=True):
        parts[not each].append(identity)
    return parts


def part(scores: Scores, wanted: set[str]) -> Scores:
    """Return the scores of some items."""
    at = [number for number, identity in enumerate(scores.identities) if identity in wanted]
    if not at:
        raise InputError("run", f"{scores.name}, which has none of the guarded items", "a run of the guarded set")

    def some(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if names is None else tuple(names[k] for k in at)

    return Scores(
        scores.name,
        scores.metric,
        some(scores.items) or (),
        scores.values[at],
        scores.samples[at],
        scores.missing[at],
        some(scores.contents) or (),
        some(scores.clusters),
        None,
        scores.spread[at],
        scores.scale,
        scores.judge,
        scores.binary,
        scores.two_valued,
        known_as=some(scores.identities),
    )


def as_kept(scores: Scores) -> str:
    """Return scores as text for the ledger."""
    values = [None if math.isnan(value) else value for value in scores.values.tolist()]
    return json.dumps(
        {
            "name": scores.name,
            "metric": scores.metric,
            "items": scores.items,
            "values": values,
            "samples": scores.samples.tolist(),
            "missing": scores.missing.tolist(),
            "contents": scores.contents,
            "clusters": scores.clusters,
            "scale": scores.scale,
            "judge": scores.judge,
            "binary": scores.binary,
            "two_valued": scores.two_valued,
            "identities": scores.identities,
        }
    )


def from_kept(text: str) -> Scores:
    """Return the scores of a ledger's text."""
    kept = json.loads(text)
    values = np.array([math.nan if value is None else value for value in kept["values"]], dtype=float)
    return Scores(
        kept["name"],
        kept["metric"],
        tuple(kept["items"]),
        values,
        np.array(kept["samples"], dtype=np.int64),
        np.array(kept["missing"], dtype=np.int64),
        tuple(kept["contents"]),
        None if kept["clusters"] is None else tuple(kept["clusters"]),
        None,
        np.full(values.size, math.nan),
        (kept["scale"][0], kept["scale"][1]),
        kept["judge"],
        kept["binary"],
        kept["two_valued"],
        known_as=tuple(kept["identities"]),
    )
