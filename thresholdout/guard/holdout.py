"""Records of a guard: its holdout and its training part."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from graphs.numerics.arguments import as_real
from thresholdout.data.identity import (
    Part,
    check_labels,
    content_of,
    handed_out,
    kept,
    kind_of_labels,
    part,
    record_count,
    table_digest,
)
from thresholdout.data.overlap import check_disjoint, check_groups
from thresholdout.data.record_labels import aligned, is_name, record_column, record_labels
from thresholdout.data.record_structure import TimeOrder, series_model
from thresholdout.data.row_hashes import membership_keys, record_hashes, row_hashes
from thresholdout.data.values import unit_mean
from thresholdout.errors import InputError, InputTypeError, ThresholdoutError
from thresholdout.guard.development import Development, warn_of_another_division, warn_of_sorted
from thresholdout.guard.label_check import beyond_declared
from thresholdout.guard.likely_mistakes import check_pair, warn_of_classes, warn_of_columns, warn_of_labels
from thresholdout.guard.training_values import TrainingFolds, is_series
from thresholdout.mechanisms.base import Known, Mechanism
from thresholdout.mechanisms.claims.grouped_records import (
    BlockedRecords,
    GroupedRecords,
    blocked_records,
    grouped_records,
)

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from graphs import DependenceModel, MovingWindow

__all__ = ["Origin", "Records", "applied", "content_hashes", "origin"]

_EXPECTED = "a function of X and y with one value per record"
_EXAMPLE = "For example: lambda X, y: model.predict(X) == y."


def applied(query: Callable[..., object], train: Part) -> object:
    """Return a query function's values on the training part; their number and range are not checked.

    Examples
    --------
    >>> import numpy as np
    >>> applied(lambda X, y: np.mean(X == y), (np.arange(3), np.arange(3)))
    Traceback (most recent call last):
    thresholdout.errors.InputTypeError: train_values must be a function of X and y with one value per record; got ...
    """
    try:
        inspect.signature(query).bind(*train)
    except TypeError:
        takes = "1 argument" if len(train) == 1 else f"{len(train)} arguments"
        expected, advice = ("a function of the records alone", "") if len(train) == 1 else (_EXPECTED, _EXAMPLE)
        raise InputTypeError("train_values", f"a function that does not take {takes}", expected, advice) from None
    except ValueError:  # some built-in functions have no signature
        pass
    try:
        values = query(*train)
    except ThresholdoutError:
        raise
    except Exception as error:
        seen = f"a function that raises {type(error).__name__} on the training part"
        raise InputError("train_values", seen, _EXPECTED, f"Nothing was asked. {_EXAMPLE}") from error
    if as_real(values) is not None or isinstance(values, bool) or getattr(values, "ndim", 1) == 0:
        seen = f"a function that returns one number, {values}, for {len(train[0])} training records"
        raise InputTypeError("train_values", seen, _EXPECTED, f"The guard takes the mean. {_EXAMPLE}")
    return values


Origin: TypeAlias = Literal["train", "holdout", "other"]
"""Origin of rows; see `Records.origin`."""

_NO_TRAIN = "(X_train, y_train) when the guard is made"
_NO_OPEN = "(X_train, y_train), or development=, when the guard is made"


class Records:
    """A holdout, with the training part and the development part beside it.

    ``holdout`` is a private copy, and secret. ``identity`` is a digest of its records in any order, ``order`` one in
    their order; ``known`` has both if they are known already. ``labels`` and ``train_labels`` are the indexes of the
    parts.
    """

    in_memory: ClassVar[bool] = True
    """Whether the records are arrays or data frames, and not lazy frames."""

    def __init__(
        self, holdout: object, train: object | None, allow_duplicates: bool, known: tuple[str, str] | None = None
    ) -> None:
        check_pair(holdout, "holdout")
        check_pair(train, "train")
        given = part(holdout, "holdout")
        check_labels(given, "holdout")
        self.labels = record_labels(given, "holdout")
        self.train_labels = None
        self.training_folds = TrainingFolds()
        self.development: Development | None = None
        self.grouped: GroupedRecords | None = None
        self.blocked: BlockedRecords | None = None
        self.undeclared = False  # whether no dependence and no groups were declared
        self._train = None if train is None else part(train, "train")
        if self._train is not None:
            check_labels(self._train, "train")
            self.train_labels = record_labels(self._train, "train")
            _check_alike(self._train, given, "train")
        self.n = record_count(given)
        self.holdout = kept(given)
        compared = None if allow_duplicates else self._train
        keys = None
        if known is None:
            content = content_of(self.holdout, keys=compared is not None)
            known, keys = (content.identity, content.order), content.keys
        if compared is not None:
            check_disjoint(compared, self.holdout, keys)
        self.identity, self.order = known

    def check_groups(
        self,
        train_groups: object | None,
        dependence: DependenceModel,
        *,
        together: NDArray[Any] | None = None,
        ordered: bool = False,
    ) -> None:
        """Refuse training records of the holdout's groups, and set the folds of the training part.

        ``together`` has the training records that share a fold for another reason than these groups. The folds follow
        the order of the records if one was declared or the model has one.
        """
        if train_groups is not None:
            together = check_groups(train_groups, dependence, self.train_size, self.train_labels)
        self.training_folds = TrainingFolds(together, ordered or is_series(dependence))

    def group_by(self, dependence: DependenceModel) -> None:
        """Set the holdout's blocks, or the groups of both parts, after a development part was split off."""
        own = self.training_folds.groups if self.development is None else self.development.groups
        self.grouped = grouped_records(dependence, own)
        self.blocked = blocked_records(dependence)

    @property
    def pieces(self) -> int:
        """Number of arrays of the holdout: features, and labels if there are any."""
        return len(self.holdout)

    @property
    def in_groups(self) -> bool:
        """Whether the records' groups are known."""
        return self.grouped is not None

    def check_development(self) -> None:
        """Accept a development part; other kinds of records refuse one."""

    def check_mechanism(self, mechanism: Mechanism[Any, Any]) -> None:
        """Accept every mechanism, since single values are available."""

    def check_alike(self, found: Part, argument: str) -> None:
        """Refuse a part whose form differs from the holdout's."""
        _check_alike(found, self.holdout, argument)

    def open_share(self, chosen: NDArray[np.bool_], units: NDArray[np.intp] | None, public: bool) -> None:
        """Make some of the holdout's records the development part; the identity remains that of all of them."""
        rows, rest = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        labels, groups = self.labels, None if units is None else units[rows]
        self.development = Development(
            kept(_rows(self.holdout, rows)), None if labels is None else labels[rows], groups, True, public
        )
        self.holdout, self.n = kept(_rows(self.holdout, rest)), len(rest)
        self.labels = None if labels is None else labels[rest]

    def warn_of_mistakes(self, declared: object, model: DependenceModel) -> None:
        """Warn of declared classes without training records, of undeclared dependence, and of another split."""
        warn_of_another_division(self)
        warn_of_sorted(self.development)
        part = self._train if self.development is None or self._train is not None else self.development.part
        if part is None:
            return
        if self.undeclared:
            warn_of_columns(part[0])
        if len(part) == 2:
            warn_of_classes(part[1], self.holdout[1])
        from graphs import Independent

        if declared is None and isinstance(model, Independent):
            return  # nothing was declared, and the modules of other models are not loaded
        if self._train is not None and len(self._train) == 2:
            known = self.training_folds.groups, self._train_nodes(declared), self._train_series(declared, model)
            warn_of_labels(beyond_declared(self._train[1], declared, model, *known))

    def _train_series(self, declared: object, model: DependenceModel) -> MovingWindow | None:
        """Return the window of the training records; ``None`` if it is a length of time and their times are unknown."""
        from graphs import MovingWindow

        assert self._train is not None
        size = record_count(self._train)
        if isinstance(declared, TimeOrder) and declared.window is not None and declared.by is not None:
            if not is_name(declared.by):
                return None
            times = record_column(declared.by, self._train, self.train_labels, "by", "training part")
            return series_model(times, declared.window, size)
        return MovingWindow(size, model.m) if isinstance(model, MovingWindow) and model.even else None

    def _train_nodes(self, declared: object) -> NDArray[np.int64] | None:
        """Return the training records' nodes in a declared graph, or ``None``.

        If there are as many records as nodes, in an order of their own, they are assumed to be another draw of the
        network.
        """
        from graphs import DependencyGraph

        if not isinstance(declared, DependencyGraph):
            return None
        if self.train_labels is not None and self.labels is not None:
            places = {label: place for place, label in enumerate(declared.records)}
            named = [places.get(label, -1) for label in self.train_labels.tolist()]
            if named and min(named) >= 0:
                return np.array(named, dtype=np.int64)
        return np.arange(declared.n) if self.train_size == declared.n else None

    @property
    def train(self) -> Part:
        """A copy of the training part, which functions may write to."""
        if self._train is None:
            raise InputError("train", "nothing", _NO_TRAIN)
        return handed_out(self._train)

    @property
    def train_size(self) -> int | None:
        """Number of training records, or ``None``."""
        return None if self._train is None else record_count(self._train)

    @property
    def open(self) -> Part:
        """A copy of the development part, or else of the training part."""
        return self.train if self.development is None else handed_out(self.development.part)

    @property
    def open_size(self) -> int | None:
        """Number of open records, or ``None``."""
        return self.train_size if self.development is None else record_count(self.development.part)

    @property
    def open_labels(self) -> pd.Index[Any] | None:
        """Labels of the open records, or ``None``."""
        return self.train_labels if self.development is None else self.development.labels

    @property
    def open_folds(self) -> TrainingFolds | None:
        """Folds for training values on the open part; ``None`` for a development part, which needs none."""
        return self.training_folds if self.development is None else None

    @property
    def open_independent(self) -> int | None:
        """Number of independent open records: of their groups, if groups are declared."""
        if self.development is not None:
            return self.development.independent
        groups = self.training_folds.groups
        return self.train_size if groups is None else len(np.unique(groups))

    def labelled(self) -> tuple[Part, Part]:
        """Return the open part and the holdout, which must be pairs (X, y)."""
        opened = () if self.open_size is None else self.open  # read once, since every read copies the tables
        if len(opened) != 2:
            raise InputError("train", "nothing", _NO_OPEN)
        shape = tuple(getattr(opened[1], "shape", ()))
        if len(shape) == 2 and shape[1] == 1:
            advice = "Pass y.ravel() in both parts of the guard."
            raise InputError("y", f"labels of shape {shape}", f"labels of shape {shape[:1]}", advice)
        return opened, self.holdout

    def apply(self, query: Callable[..., object]) -> tuple[object, Callable[[], object]]:
        """Return a function's values on the open part, and a function that computes them on the holdout."""
        return applied(query, self.open), lambda: query(*handed_out(self.holdout))

    def train_mean(
        self,
        values: object,
        bounds: tuple[float, float],
        mechanism: Mechanism[Any, Any],
        binary: bool | None = None,
        tested: NDArray[np.intp] | None = None,
    ) -> tuple[float, Known]:
        """Return the mean of training values in units of the range, and their knowledge about the holdout's values.

        A number stands for the mean. ``binary`` is whether the holdout's values are ends of the range (by default if
        all training values are); ``tested`` has the records of the values if it is not each of them once.
        """
        number = as_real(values)
        if number is not None:
            mean, known = unit_mean([number], 1, bounds, "train_values"), Known(binary=bool(binary))
        elif tested is not None:
            mean, known = mechanism.trained(values, None, bounds, "train_values", binary)
        else:
            if self.open_size is not None:
                values = aligned(values, self.open_labels, "train_values")
            mean, known = mechanism.trained(values, self.open_size, bounds, "train_values", binary)
        if self.blocked is not None and mechanism.expects_spread:
            return mean, replace(known, blocks=self.blocked.known(values, bounds, tested))
        if self.grouped is None or not mechanism.expects_spread:
            return mean, known
        return mean, replace(known, groups=self.grouped.known(values, bounds, tested))

    def ordered(self, values: object, argument: str) -> object:
        """Return per-record values in the holdout's order; see `thresholdout.data.record_labels.aligned`."""
        return aligned(values, self.labels, argument)

    def origin(self, hashes: NDArray[np.uint64], records: NDArray[np.uint64] | None = None) -> Origin:
        """Return the origin of records from hashes of X, and of (X, y) if there are labels, in single precision.

        "train" is for training and development records, each at most as often as there, and depends on these alone.
        "holdout" is for exactly the holdout's rows in any order, by one digest of all. Everything else is "other". So
        nothing depends on a single row of the holdout, and a part of it is indistinguishable from other rows. Parts
        that are no pairs (X, y) are refused: their rows would show labels.
        """
        if len(self.holdout) != 2:
            raise InputError("X", "rows", "records of a guard with pairs: Thresholdout((X, y), ...)")
        if len(hashes) and self.open_size is not None:
            known = self._train_keys if records is None else self._train_record_keys
            if _within(membership_keys(hashes if records is None else records), known):
                return "train"
        return "holdout" if compare_digest(table_digest(hashes), self._holdout_digest) else "other"

    @cached_property
    def _holdout_digest(self) -> str:
        return table_digest(row_hashes(self.holdout[0], np.float32))

    @cached_property
    def _train_keys(self) -> NDArray[np.uint64]:
        keys = [membership_keys(row_hashes(part[0], np.float32)) for part in self._known_parts()]
        return np.sort(np.concatenate(keys))

    @cached_property
    def _train_record_keys(self) -> NDArray[np.uint64]:
        keys = [membership_keys(record_hashes(part, np.float32)) for part in self._known_parts()]
        return np.sort(np.concatenate(keys))

    def _known_parts(self) -> list[Part]:
        """Return the public parts."""
        found = [] if self._train is None else [self.train]
        return found if self.development is None else [*found, self.open]


def content_hashes(X: Any, y: Any = None) -> tuple[NDArray[np.uint64], NDArray[np.uint64] | None]:
    """Return hashes of the rows of X, and of (X, y) if there are labels, from which their origin is known."""
    return row_hashes(X, np.float32), None if y is None else record_hashes((X, y), np.float32)


class KnowsRecords(Protocol):
    """Protocol of guards, which know the origin of records."""

    def _origin(self, hashes: NDArray[np.uint64], records: NDArray[np.uint64] | None = None) -> Origin:
        """Return the origin of records, from the hashes of `content_hashes`."""


def origin(guard: KnowsRecords, X: Any, y: Any = None) -> Origin:
    """Return the origin of records from their content, in any order; see `Records.origin`.

    Numbers are compared in single precision; labels of the holdout are not compared.
    """
    return guard._origin(*content_hashes(X, y))


def _within(keys: NDArray[np.uint64], known: NDArray[np.uint64]) -> bool:
    """Whether keys are in a sorted array, each at most as often as there; copies of a single key any number of times.

    Copies of one training record represent the holdout in searches, see `thresholdout.guard.train_split.TrainSplit`.
    """
    different, counts = np.unique(keys, return_counts=True)
    there = np.searchsorted(known, different, side="right") - np.searchsorted(known, different, side="left")
    return bool((there >= (1 if different.size == 1 else counts)).all())


def _rows(data: Part, rows: NDArray[np.intp]) -> Part:
    """Return some records of a part."""
    from sklearn.utils import _safe_indexing

    return tuple(_safe_indexing(piece, rows) for piece in data)


def _check_alike(train: Part, holdout: Part, argument: str) -> None:
    """Refuse an open part whose form differs from the holdout's."""
    if len(train) != len(holdout):
        seen = f"a tuple of {len(train)} beside a holdout of {len(holdout)}"
        advice = f"Pass pairs for both: Thresholdout((X, y), {argument}=(X_{argument}, y_{argument}))."
        raise InputError(argument, seen, "a tuple of as many pieces as the holdout", advice)
    for place, (one, other) in enumerate(zip(train, holdout, strict=True)):
        if hasattr(one, "columns") and hasattr(other, "columns") and list(one.columns) != list(other.columns):
            expected = f"a table with the columns of the holdout, {list(other.columns)}"
            raise InputError(argument, f"the columns {list(one.columns)}", expected)
        left, right = getattr(one, "shape", None), getattr(other, "shape", None)
        if left is not None and right is not None and left[1:] != right[1:]:
            if len(train) == 2 and place == 1 and sorted((left[1:], right[1:])) == [(), (1,)]:
                seen = f"y of shape {left} beside {right} in the holdout"
                raise InputError(argument, seen, "a pair whose y has one dimension", "Pass y.ravel() in both parts.")
            expected = f"records of shape {right[1:]}, as in the holdout"
            raise InputError(argument, f"records of shape {left[1:]}", expected)
    kinds = [kind_of_labels(labels) for labels in (train[1], holdout[1])] if len(train) == 2 else []
    if sorted(kinds) == ["numbers", "text"]:
        seen = f"labels that are {kinds[0]} beside {kinds[1]} in the holdout"
        raise InputError(argument, seen, "a pair with labels of the holdout's type", "Convert one by y.astype(...).")
