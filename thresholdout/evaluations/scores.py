"""Scores of one run: an item, its content, its cluster, and one value for each sample."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from thresholdout.errors import EvaluationFileError, InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Row", "Scores", "as_number", "choose", "collect", "fingerprint", "lookup"]

_WORDS: Final = {
    "C": 1.0,
    "I": 0.0,
    "P": 0.5,
    "N": 0.0,
    "yes": 1.0,
    "no": 0.0,
    "true": 1.0,
    "false": 0.0,
    "pass": 1.0,
    "fail": 0.0,
    "correct": 1.0,
    "incorrect": 0.0,
}
"""Letters as Inspect's own accuracy counts them, and the words that judges answer with."""

_GRADES: Final = {"P", "N"}  # Inspect's grades besides C and I: a scorer that uses them is not 0/1
_SHOWN: Final = 5  # items that a message names at most


class Row(NamedTuple):
    """One sample of a log; `value` is None where it is missing."""

    item: str
    value: Any
    sample: str | None = None
    content: str = ""
    cluster: str | None = None
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of one run of an evaluation set, as `read` returns them.

    An item is one example of the set. A run may score an item several times, in samples. `diff`, `rank`, `agreement`
    and `EvaluationGuard` compare such objects.

    Attributes
    ----------
    name : str
        Source of the run, such as its file, for messages.
    metric : str
        Name of the metric.
    items : tuple of str
        Names of the items, each once.
    values : ndarray of shape (items,)
        Mean score of an item's samples, mapped to [0, 1]. NaN if all of them are missing.
    samples : ndarray of shape (items,)
        Number of samples of each item with a score.
    missing : ndarray of shape (items,)
        Number of samples of each item without a score: errors, time-outs, limits.
    contents : tuple of str
        Fingerprint of each item's content. Empty if the log lacks the content.
    clusters : tuple of str or None
        Cluster of each item. None if no field was named.
    tags : tuple of str or None
        Slice of each item. None if no field was named.
    spread : ndarray of shape (items,)
        Variance between the samples of each item. NaN for fewer than two samples.
    scale : tuple of float, default (0, 1)
        Range of the scores, which is mapped to [0, 1].
    judge : str, default ""
        Fingerprint of the scorer's settings. Empty if the log lacks them.
    binary : bool, default False
        Whether every item has at most one score, and all scores are 0 or 1.
    two_valued : bool, default False
        Whether the metric has no other scores by definition: booleans, C and I, yes and no, or a metric such as
        exact_match.
    file_digest : str, default ""
        SHA-256 of the file. Empty for a data frame.
    fields : mapping
        Arguments of `read` with which other runs can be read alike.
    known_as : tuple of str or None
        Identities of the items in the whole run, if this object holds only a part of it.

    Examples
    --------
    >>> from thresholdout.evaluations import read
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"prompt": ["a", "a", "b"], "right": [True, False, True]})
    >>> scores = read(frame, metric="right", item="prompt")
    >>> scores.items, scores.values.tolist(), scores.samples.tolist()
    (('a', 'b'), [0.5, 1.0], [2, 1])
    """

    name: str
    metric: str
    items: tuple[str, ...]
    values: NDArray[np.float64]
    samples: NDArray[np.int64]
    missing: NDArray[np.int64]
    contents: tuple[str, ...]
    clusters: tuple[str, ...] | None
    tags: tuple[str, ...] | None
    spread: NDArray[np.float64]
    scale: tuple[float, float] = (0.0, 1.0)
    judge: str = ""
    binary: bool = False
    two_valued: bool = False
    file_digest: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    known_as: tuple[str, ...] | None = None

    @property
    def identities(self) -> tuple[str, ...]:
        """Identity of each item in every run: its content, with its name if several items have the same content."""
        if self.known_as is not None:
            return self.known_as
        times = Counter(self.contents)
        return tuple(
            content if content and times[content] == 1 else f"{content}/{item}"
            for item, content in zip(self.items, self.contents, strict=True)
        )

    @property
    def errors(self) -> int:
        """Number of samples without a score."""
        return int(self.missing.sum())

    @property
    def single(self) -> bool:
        """Whether every item has exactly one sample, with a score or without."""
        return int((self.samples + self.missing).max()) <= 1

    def digest(self) -> str:
        """Return a fingerprint of all scores, as text. It does not depend on the name of the run."""
        rows = sorted(
            zip(self.identities, self.values.tolist(), self.samples.tolist(), self.missing.tolist(), strict=True)
        )
        return hashlib.sha256(json.dumps([self.metric, self.scale, rows]).encode()).hexdigest()

    def predict(self, records: Any) -> NDArray[np.float64]:
        """Return the scores of records of `guard_of_items`. Its guard calls this to use a run as a model."""
        place = {row.tobytes(): at for at, row in enumerate(item_records(self.identities))}
        return self.values[[place[row.tobytes()] for row in np.asarray(records, dtype=np.int64)]]

    def __len__(self) -> int:
        return len(self.items)


def item_records(identities: Iterable[str]) -> NDArray[np.int64]:
    """Return items as records of a guard: digests, by which a ledger recognises them."""
    digests = [hashlib.sha256(each.encode("utf-8", "surrogatepass")).digest() for each in identities]
    return np.frombuffer(b"".join(digests), dtype="<i8").astype(np.int64).reshape(-1, 4)


def fingerprint(content: object) -> str:
    """Return 32 hexadecimal digits that stand for an item's content."""
    text = content if isinstance(content, str) else json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def lookup(row: Mapping[str, Any], path: str, where: str) -> Any:
    """Return a field by its name or its dotted path."""
    if path in row:
        return row[path]
    found: Any = row
    for part in path.split("."):
        if not isinstance(found, Mapping) or part not in found:
            known = ", ".join(sorted(map(str, found))) if isinstance(found, Mapping) else type(found).__name__
            raise EvaluationFileError(where, f"A sample has no field {path!r}. Its fields are: {known}.")
        found = found[part]
    return found


def choose(kind: str, names: Iterable[str], chosen: str | None, where: str, option: str = "metric=") -> str:
    """Return the one name of a kind, or the chosen one; otherwise list the names in an error."""
    known = sorted(set(names))
    if chosen is not None:
        if chosen not in known:
            if not known:
                raise InputError(kind, repr(chosen), "left out", f"{where} has no such names.")
            raise InputError(kind, repr(chosen), f"one of {', '.join(known)}, the names in {where}")
        return chosen
    if len(known) == 1:
        return known[0]
    raise InputError(
        kind, f"{len(known)} of them in {where}: {', '.join(known)}", "a single one", f"Choose one by {option}."
    )


def as_number(value: Any, scale: tuple[float, float], where: str, item: str) -> float:
    """Return a score mapped to [0, 1]."""
    if isinstance(value, str):
        word = _WORDS.get(value)
        if word is None:
            word = _WORDS.get(value.strip().lower())
        if word is not None:
            return word
        try:
            value = float(value)
        except ValueError:
            raise EvaluationFileError(
                where,
                f"Item {item!r} has the score {value!r}. Scores are numbers, booleans, yes/no, pass/fail, "
                "or C, I, P, N.",
            ) from None
    if isinstance(value, list | dict | tuple):
        raise EvaluationFileError(
            where, f"Item {item!r} has a score of several values, {str(value)[:60]}. Name one of them as METRIC.FIELD."
        )
    if isinstance(value, bool | np.bool_):
        return float(value)
    number = float(value)
    low, high = scale
    if math.isnan(number):
        raise EvaluationFileError(where, f"Item {item!r} has the score NaN. Leave missing scores out.")
    if not low <= number <= high:
        raise EvaluationFileError(
            where, f"Item {item!r} has the score {number:g}, outside of {low:g} to {high:g}. Pass both ends by range=."
        )
    return (number - low) / (high - low)


def collect(
    rows: Iterable[Row],
    name: str,
    metric: str,
    scale: tuple[float, float] = (0.0, 1.0),
    judge: str = "",
    two_valued: bool | None = None,
) -> Scores:
    """Gather the samples of each item; types of scores tell whether a metric is 0/1 where the log does not."""
    if not (math.isfinite(scale[0]) and math.isfinite(scale[1]) and scale[0] < scale[1]):
        raise InputError("range", scale, "two finite numbers in ascending order")
    place: dict[str, int] = {}
    contents: list[str] = []
    clusters: list[str | None] = []
    tags: list[str | None] = []
    sums: list[float] = []
    squares: list[float] = []
    counts: list[int] = []
    lost: list[int] = []
    seen: set[tuple[str, str]] = set()
    binary, words, plain = True, True, scale == (0.0, 1.0)
    for item, value, sample, content, cluster, tag in rows:
        at = place.setdefault(item, len(contents))
        if at == len(contents):
            contents.append(content)
            clusters.append(cluster)
            tags.append(tag)
            sums.append(0.0)
            squares.append(0.0)
            counts.append(0)
            lost.append(0)
        elif contents[at] != content:
            raise EvaluationFileError(
                name, f"Item {item!r} occurs with different contents. Name a field that identifies items by item=."
            )
        elif clusters[at] != cluster or tags[at] != tag:
            raise EvaluationFileError(
                name,
                f"The samples of item {item!r} are in different clusters or slices. An item must be in one of each.",
            )
        if sample is not None:
            if (item, sample) in seen:
                raise EvaluationFileError(
                    name, f"Item {item!r} has sample {sample} twice. Name a field that identifies samples by sample=."
                )
            seen.add((item, sample))
        if value is None:
            lost[at] += 1
            continue
        if type(value) is float and plain and 0.0 <= value <= 1.0:  # most scores: 100,000 in a tenth of a second
            number, words = value, False
        else:
            number = as_number(value, scale, name, item)
            words = words and _two_valued(value)
        binary = binary and (number == 0.0 or number == 1.0)
        sums[at] += number
        squares[at] += number * number
        counts[at] += 1
    if not contents:
        raise EvaluationFileError(name, "It has no samples. Run the evaluation again.")
    count = np.array(counts)
    total = np.array(sums)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.where(count > 0, total / count, np.nan)
        spread = np.where(count > 1, np.maximum(0.0, np.array(squares) - total * values) / (count - 1), np.nan)
    return Scores(
        name,
        metric,
        tuple(place),
        values,
        count,
        np.array(lost),
        tuple(contents),
        _all_or_none(clusters),
        _all_or_none(tags),
        spread,
        (float(scale[0]), float(scale[1])),
        judge,
        binary and int(count.max(initial=0)) <= 1,
        binary and (words if two_valued is None else two_valued),
    )


def _two_valued(value: Any) -> bool:
    """Whether a score is a truth value or a word for one."""
    if isinstance(value, str):
        return value not in _GRADES and (value in _WORDS or value.strip().lower() in _WORDS)
    return isinstance(value, bool | np.bool_)


def _all_or_none(names: list[str | None]) -> tuple[str, ...] | None:
    return None if None in names else tuple(map(str, names))


def shown(items: Iterable[str]) -> str:
    """Return some items for a message."""
    named = list(items)
    return ", ".join(map(repr, named[:_SHOWN])) + (f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else "")


def samples_each(scores: Scores) -> float:
    """Return the usual number of samples of an item, or the mean where items differ."""
    counts = Counter((scores.samples + scores.missing).tolist())
    number, times = counts.most_common(1)[0]
    return float(number) if times == len(scores) else float(np.mean(scores.samples + scores.missing))
