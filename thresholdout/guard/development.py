"""A development part: open records with free and exact scores, beside the protected records of a guard.

PROOFS.md, "A development part", proves that no guarantee changes.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

import numpy as np

from graphs.numerics.arguments import as_real
from graphs.numerics.rounding import shown_above, shown_below
from thresholdout.data.identity import Part, check_labels, kept, part, record_count
from thresholdout.data.overlap import check_disjoint, check_groups
from thresholdout.data.record_labels import aligned, record_column, record_labels
from thresholdout.data.row_hashes import record_keys
from thresholdout.errors import DevelopmentOverfitWarning, InputError, LikelyMistakeWarning, OverlapError, outside
from thresholdout.guard.registration import SPLIT, is_there
from thresholdout.guard.training_values import trained
from thresholdout.ledger import open_ledger

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from numpy.typing import NDArray

    from graphs import DependenceModel
    from thresholdout.guard.answer import Answer
    from thresholdout.guard.holdout import Records
    from thresholdout.ledger import Ledger
    from thresholdout.noise.sources import NoiseSource
    from thresholdout.scoring.metrics import Metric
    from thresholdout.scoring.statistics import Statistic

__all__ = [
    "Development",
    "declared_share",
    "development_score",
    "open_positions",
    "open_records",
    "warn_of_another_division",
    "warn_of_overfit",
    "warn_of_sorted",
]

_PUBLIC: Final = "00" * 16  # one key for all guards, so that the same records are open in every ledger
_RARE: Final = math.log(1e-9)  # log-probability of a false warning
_KINDS: Final = "for independent records or one kind of groups"
_OTHERWISE: Final = "Pass the open records as train= for other dependence."


@dataclass(frozen=True, slots=True)
class Development:
    """Open records with labels and group numbers, and whether a key (the public one) split them off."""

    part: Part
    labels: pd.Index[Any] | None
    groups: NDArray[Any] | None
    split_off: bool = False
    public: bool = False

    @property
    def independent(self) -> int:
        """Number of independent records: of groups, if groups are declared."""
        return record_count(self.part) if self.groups is None else len(np.unique(self.groups))


def declared_share(development: object) -> float | None:
    """Return the declared open share of the holdout; ``None`` if a part is given, or nothing.

    Examples
    --------
    >>> declared_share(0.5), declared_share(None), declared_share(np.zeros((3, 1)))
    (0.5, None, None)
    """
    if development is None:
        return None
    share = as_real(development)
    if share is None:
        return None
    if not 0.0 < share < 1.0:
        expected = "a share of the holdout between 0 and 1, or a part (X, y)"
        raise InputError("development", repr(development), expected)
    return share


def open_positions(key: str, units: NDArray[np.intp], share: float) -> NDArray[np.bool_]:
    """Return the open records: whole units (groups or single records) in the order of a keyed hash, close to the share.

    Only the key and the numbers of the units count, so the choice does not depend on the records.

    Examples
    --------
    >>> units = np.repeat(np.arange(50), 2)
    >>> chosen = open_positions("00ff", units, 0.5)
    >>> int(chosen.sum()), bool((chosen[::2] == chosen[1::2]).all())
    (50, True)
    """
    sizes = np.bincount(units)
    if len(sizes) < 2:
        raise InputError("development", f"a share of {len(sizes)} group", "a share of at least two groups")
    # An extendable hash in counter mode: 64 bits for each unit.
    drawn = hashlib.shake_128(b"thresholdout development " + bytes.fromhex(key)).digest(8 * len(sizes))
    order = np.argsort(np.frombuffer(drawn, dtype="<u8"), kind="stable")
    taken = np.cumsum(sizes[order])[:-1]
    first = int(np.argmin(np.abs(taken - share * len(units)))) + 1
    chosen = np.zeros(len(sizes), dtype=bool)
    chosen[order[:first]] = True
    return chosen[units]


def open_records(
    records: Records,
    model: DependenceModel,
    given: object,
    share: float | None,
    groups: object,
    allow_duplicates: bool,
    ledger: str | Path | Ledger | None,
    noise: NoiseSource,
) -> tuple[DependenceModel, dict[str, str]]:
    """Give records a development part; return the model of the guarded ones, and documents for the ledger.

    A share is split off by the ledger's key if there is one, else by the public key, or by a seeded one in simulations.
    """
    from graphs import Groups, Independent

    records.check_development()
    if not isinstance(model, Groups | Independent):
        what = "a part beside" if share is None else "a share of"
        raise InputError("development", f"{what} {model.describe()}", _KINDS, _OTHERWISE)
    if share is None:
        records.development = _given(records, model, given, groups, allow_duplicates)
        return model, {}
    key = _stored_key(ledger, records.identity)
    if key is None:
        key = _PUBLIC if noise.for_release else "".join(f"{int(word):016x}" for word in noise.uniform(64, 2))
    units = model.groups if isinstance(model, Groups) else np.arange(records.n)
    if not allow_duplicates:  # before the split: whether it is refused must not depend on it
        _check_different(records.holdout, units)
    chosen = open_positions(key, units, share)
    records.open_share(chosen, units if isinstance(model, Groups) else None, key == _PUBLIC)
    if isinstance(model, Groups):
        return Groups([model.names[unit] for unit in units[~chosen]]), {SPLIT: key}
    return Independent(records.n), {SPLIT: key}


def _stored_key(ledger: str | Path | Ledger | None, identity: str) -> str | None:
    """Return the key that an existing ledger stores for a holdout."""
    if ledger is None or not (is_there(ledger) or "://" in str(ledger)):
        return None
    found = open_ledger(ledger)
    try:
        known = found.known(identity)
        return None if known is None else found.document(known, SPLIT)
    finally:
        if found is not ledger:
            found.close()


def _given(records: Records, model: DependenceModel, given: Any, groups: Any, allow_duplicates: bool) -> Development:
    """Return a given open part, checked against the other parts of the guard."""
    from graphs import Groups

    own = None
    if isinstance(given, tuple) and len(given) == 3:
        X, y, own = given
        given = (X,) if y is None else (X, y)
    found = part(given, "development")
    check_labels(found, "development")
    labels = record_labels(found, "development")
    records.check_alike(found, "development")
    if groups is not None:
        (name,) = groups if isinstance(groups, (list, tuple)) else (groups,)
        own = record_column(name, found, labels, "groups", "development part")
    if own is None and isinstance(model, Groups):
        raise InputError("development", "a part without groups", "(X, y, groups), like the holdout")
    numbers = None
    if own is not None:
        try:
            numbers = check_groups(aligned(own, labels, "groups"), model, record_count(found), labels)
        except OverlapError as error:
            raise OverlapError(
                "development", str(error.seen).replace("training", "development"), error.expected, error.advice
            ) from None
    if not allow_duplicates:
        _check_apart(found, records.holdout)
        if records.train_size is not None:
            _check_apart(records.train, found, "training", "development")
    return Development(kept(found), labels, numbers)


def _check_different(holdout: Part, units: NDArray[np.intp]) -> None:
    """Refuse equal records of two units, which the split could put into two parts."""
    keys = record_keys(holdout)
    order = np.lexsort((units, keys))
    keys, units = keys[order], units[order]
    shared = int(np.count_nonzero((keys[1:] == keys[:-1]) & (units[1:] != units[:-1])))
    if shared:
        whose = "others" if len(units) == units.max() + 1 else "records of other groups"
        seen = f"a share of a holdout in which {shared} records repeat {whose}"
        advice = "If equal rows are different records here, pass allow_duplicates=True."
        raise OverlapError("development", seen, "a share of a holdout without repeated records", advice)


def _check_apart(first: Part, second: Part, one: str = "development", other: str = "holdout") -> None:
    """Refuse two parts that share records."""
    try:
        check_disjoint(first, second)
    except OverlapError as error:
        seen = str(error.seen).replace("holdout", other).replace("training", one)
        raise OverlapError("development", seen, error.expected, error.advice) from None


def development_score(records: Records, estimator: Any, metric: str | Metric | Statistic) -> float:
    """Return a fitted estimator's score on the open records."""
    from thresholdout.scoring.statistics import get_score

    if records.development is None:
        expected = "(X, y) or a share of the holdout, such as 0.5, when the guard is made"
        raise InputError("development", "nothing", expected)
    return float(np.mean(trained(get_score(metric), estimator, records.labelled()[0], None, None).values))


_divided: WeakValueDictionary[str, Records] = WeakValueDictionary()
"""Records of this process's guards with a development part that was split off, by identity."""


def warn_of_another_division(records: Records) -> None:
    """Warn if a guard of the same records, in this process, has other open records."""
    if not _divided and records.development is None:
        return
    earlier, own = _divided.get(records.identity), records.development
    if earlier is None or earlier.development is None:
        if own is not None and own.public:
            _divided[records.identity] = records
        return
    if own is not None:
        opened, before = (np.sort(record_keys(one.part)) for one in (own, earlier.development))
        if np.array_equal(opened, before):
            return
    warnings.warn(
        "Another guard of these records, in this process, opened other ones: by another share, order or groups. A "
        "model that was fitted to its open records, or chosen by them, may have seen records that this guard protects. "
        "Its scores here are not guaranteed. Make guards of the same records with the same development= and order.",
        LikelyMistakeWarning,
        stacklevel=outside(),
    )


def warn_of_sorted(development: Development | None) -> None:
    """Warn if each class of a share's open labels is contiguous, as in a file that is sorted by its labels.

    For labels in random order the probability is k! n_1! ... n_k! / n! for k classes of n_c records, with 2 in place of
    k! for labels that rise or fall. Each group counts with its first record.
    """
    if development is None or not development.split_off or len(development.part) != 2:
        return
    import pandas as pd

    y = np.asarray(development.part[1])
    if y.ndim != 1:
        return
    if development.groups is not None:
        y = y[np.sort(np.unique(development.groups, return_index=True)[1])]
    codes = pd.factorize(y, use_na_sentinel=False)[0]
    counts = np.bincount(codes)
    if counts.size < 2 or 1 + np.count_nonzero(np.diff(codes)) != counts.size:
        return
    rises = y.dtype.kind in "biuf" and (np.all(y[1:] >= y[:-1]) or np.all(y[1:] <= y[:-1]))
    log_orders = math.log(2.0) if rises else math.lgamma(counts.size + 1.0)
    if log_orders + sum(math.lgamma(count + 1.0) for count in counts) - math.lgamma(codes.size + 1.0) > _RARE:
        return
    warnings.warn(
        "The records are sorted by their labels, and a share of them is open. Open labels then tell how many records "
        "of each class are guarded, and intervals do not hold for the population. Shuffle the records once, before the "
        "first guard, and keep that order.",
        LikelyMistakeWarning,
        stacklevel=outside(),
    )


def warn_of_overfit(answer: Answer, expected: float, *, greater_is_better: bool) -> None:
    """Warn if the guarded records refute a development score as too good."""
    low, high = answer.interval
    if greater_is_better and high < expected:
        says = f"at most {shown_above(high, 3)}"
    elif not greater_is_better and low > expected:
        says = f"at least {shown_below(low, 3)}"
    else:
        return
    warnings.warn(
        f"{answer.candidate or answer.name} is {expected:.3g} on the development part, but {says} on the guarded "
        "records. The model was lucky on the development part, or that part is overfitted. Use fresh development "
        "records, or decide by the guard's answers alone.",
        DevelopmentOverfitWarning,
        stacklevel=outside(),
    )
