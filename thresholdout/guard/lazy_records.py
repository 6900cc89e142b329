"""Records of a guard in two lazy frames, which an engine counts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

import numpy as np

from thresholdout.data.parts.lazy_part import LazyPart
from thresholdout.data.parts.part_groups import group_sizes, largest_multiplicity, shared_groups
from thresholdout.data.parts.part_identity import check_parts_disjoint, part_identity
from thresholdout.data.record_structure import TimeOrder, series_model
from thresholdout.errors import EngineFailed, InputError, InputTypeError, OverlapError
from thresholdout.guard.declared_dependence import Declared, among_known, check_meaning
from thresholdout.guard.holdout import Records
from thresholdout.guard.registration import check_dependence
from thresholdout.guard.training_values import TrainingFolds
from thresholdout.limits.group_sums import GroupSizes as SizesOfGroups
from thresholdout.mechanisms.claims.grouped_records import expected_groups, known_of_sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphs import DependenceModel
    from thresholdout.data.identity import Part
    from thresholdout.data.parts.lazy_part import Wanted
    from thresholdout.data.parts.totals import GroupTotals, Totals
    from thresholdout.mechanisms import Mechanism
    from thresholdout.mechanisms.base import Grouped

__all__ = ["LazyRecords"]

_ASK: Final = (
    "Use ask(expression), score(the name of a column of predictions) or compare(two of them), or load the frames by "
    "collect()."
)
_MODELS: Final = (
    "Pass None for independent records, groups= the name of a column, a TimeOrder of a column, graphs.Independent(n) "
    "or graphs.models.law_free.GroupSizes(sizes)."
)


_TYPES: Final = "a part with the holdout's types"


class LazyRecords(Records):
    """A holdout and a training part in lazy frames.

    ``part`` and ``train_part`` have the columns that were joined, and ``joined`` maps each of these to its place in its
    frame and that frame's content. ``label`` is the name of the label column, and ``of_label`` has it with all columns
    that were joined by it or by each other.
    """

    in_memory: ClassVar[bool] = False

    def __init__(self, holdout: object, train: object | None, allow_duplicates: bool, label: str | None) -> None:
        self.part = LazyPart(holdout, "holdout")
        self.train_part = None if train is None else LazyPart(train, "train")
        self._train = None
        self.labels = self.train_labels = None
        self.holdout: Part = ()
        self.training_folds = TrainingFolds()
        self.development = None
        self.label = label
        self.of_label = set[str]() if label is None else {label}
        self.joined: dict[str, str] = {}
        self._train_groups: int | None = None
        self._group_column: tuple[str, SizesOfGroups] | None = None
        if self.train_part is not None:
            _check_columns(self.train_part, self.part)
        if label is not None:
            _check_label(label, self.part, self.train_part)
        self.n = self.part.n
        if self.train_part is not None and not allow_duplicates:
            check_parts_disjoint(self.train_part, self.part)
        self.identity = self.order = part_identity(self.part)

    def declared(self, dependence: object, *, groups: object = None) -> Declared:
        """Return the declared dependence, which must not need a record's place: rows of lazy frames have none."""
        check_meaning(dependence)
        if isinstance(dependence, TimeOrder):
            if groups is not None:
                raise InputError("dependence", "a TimeOrder beside groups", "None beside groups=")
            return Declared(self._in_order(dependence), ordered=True)
        if groups is not None:
            if dependence is not None:
                seen = "a model beside groups"
                raise InputError(
                    "dependence", seen, "None beside groups=", "It states how all records depend on each other."
                )
            return Declared(self._in_groups(groups))
        model = check_dependence(dependence, self.n)
        if not _without_places(model):
            raise InputError(
                "dependence",
                f"{model.describe()}, in which each record has its place",
                "a model in which records have no place",
                _MODELS,
            )
        return Declared(model)

    def warn_of_mistakes(self, declared: object, model: DependenceModel) -> None:
        """Do nothing: columns are read only for queries."""

    def check_mechanism(self, mechanism: Mechanism[Any, Any]) -> None:
        """Refuse a mechanism that needs single values: parts of the records, or coins in place of values."""
        if not mechanism.from_totals:
            advice = "Other mechanisms need single values, so load the frames."
            raise InputError("mechanism", repr(mechanism.name), "'claims' for lazy frames", advice)

    def _in_groups(self, groups: object) -> DependenceModel:
        from graphs.models.law_free import GroupSizes

        if not isinstance(groups, str):
            seen = f"a {type(groups).__name__} for a lazy frame"
            raise InputTypeError("groups", seen, "the name of one column of both parts")
        _check_name("groups", groups, self.part)
        if self.train_part is not None:
            _check_types(self.train_part.schema[groups], self.part.schema[groups], groups)
            both = shared_groups(self.train_part, self.part, groups)
            if both:
                seen = f"{both} groups of {groups!r} in both parts"
                raise OverlapError("groups", seen, "a column without common groups", "Split the data by groups.")
            self._train_groups = sum(group_sizes(self.train_part, groups).values())
        model = GroupSizes(group_sizes(self.part, groups))
        if model.effective_records() != model.n:
            self._group_column = groups, SizesOfGroups.of(model.independent_groups())
        return model

    def _in_order(self, order: TimeOrder) -> DependenceModel:
        """Return the model of records at times; sums of values do not depend on their order."""
        if order.window is None or order.model is not None or not isinstance(order.by, str):
            seen = "a TimeOrder of a lazy frame without a column or a window"
            raise InputError("dependence", seen, "TimeOrder('day', window=7), with the name of a column of both parts")
        keys = [self._times(part, order.by) for part in self._parts()]
        model = series_model(keys[0], order.window, self.n)
        return model if self.train_part is None else among_known(model, keys[1], keys[0], order.window)

    def _times(self, part: LazyPart, column: str) -> NDArray[Any]:
        """Return the sorted times of a part's records, the only values of records that are in memory."""
        _check_name("by", column, part)
        kind = part.compiled(column, "by").kind
        if kind not in ("integer", "real", "time"):
            raise InputTypeError(
                "by", f"column {column!r} of type {part.schema[column]}", "a column of numbers or times"
            )
        try:
            found = np.asarray(part.frame.select(column).collect()[column].to_numpy())
        except Exception as error:
            raise EngineFailed(part.name, f"{type(error).__name__} while its times were read") from error
        lost = int(np.count_nonzero(found != found))  # NaN and NaT differ from themselves
        if lost or found.dtype.kind not in "iufM":
            seen = f"{lost or 'some'} records of the {part.name} part without a value of {column!r}"
            raise InputError("by", seen, "a column with a time for each record")
        return np.sort(found)

    def known_groups(self, train: Wanted | None, found: Totals | None) -> Grouped | None:
        """Return the public knowledge of a query's groups; ``None`` if no column has them.

        ``train`` is the query about the training part, and ``found`` its totals there.
        """
        if self._group_column is None:
            return None
        column, sizes = self._group_column
        if train is None or found is None or self.train_part is None:
            return expected_groups(np.zeros(0, dtype=np.int64), sizes, self._train_groups or 0)
        sums, mean = self.train_part.group_totals(train, column), found.mean
        steps = mean.total << mean.bits if found.ends else found.sum_of_squares
        square = math.ldexp(float(steps), -2 * mean.bits)
        return known_of_sums(sizes, mean.n, mean.mean(), square, sums.sums, sums.sizes)

    def group_totals(self, wanted: Wanted) -> GroupTotals:
        """Return the holdout's sums by group."""
        assert self._group_column is not None
        found = self.part.group_totals(wanted, self._group_column[0])
        self._check_sizes(found)
        return found

    def joint_group_totals(self, wanted: Sequence[Wanted]) -> list[GroupTotals]:
        """Return the holdout's sums by group of several queries, in one order of groups."""
        assert self._group_column is not None
        found = self.part.joint_group_totals(wanted, self._group_column[0])
        self._check_sizes(found[0])
        return found

    def _check_sizes(self, found: GroupTotals) -> None:
        assert self._group_column is not None
        column, sizes = self._group_column
        if SizesOfGroups.of(found.sizes.astype(np.int64)) != sizes:
            raise EngineFailed(self.part.name, f"groups of {column!r} of other sizes than before")

    def check_groups(
        self,
        train_groups: object | None,
        dependence: DependenceModel,
        *,
        together: NDArray[Any] | None = None,
        ordered: bool = False,
    ) -> None:
        """Do nothing: groups are compared where they are declared, and nothing is cross-validated here."""

    def check_development(self) -> None:
        """Refuse a development part: no model is fitted here, so the training part is one."""
        advice = "No model is fitted again here. Pass the open records as train=."
        raise InputError("development", "a development part", "None for lazy frames", advice)

    @property
    def train(self) -> Part:
        """The training part, as the given frame."""
        if self.train_part is None:
            raise InputError("train", "nothing", "Thresholdout(holdout, train=train)")
        return (self.train_part.frame.to_native(),)

    @property
    def pieces(self) -> int:
        """Number of pieces: features, and labels if there is a column of them."""
        return 1 if self.label is None else 2

    @property
    def in_groups(self) -> bool:
        """Whether a column has the records' groups."""
        return self._group_column is not None

    @property
    def group_column(self) -> str | None:
        """Name of the column of groups, if some group has several records."""
        return None if self._group_column is None else self._group_column[0]

    @property
    def train_size(self) -> int | None:
        """Number of training records, or ``None``."""
        return None if self.train_part is None else self.train_part.n

    @property
    def open_independent(self) -> int | None:
        """Number of independent training records: of their groups, if groups are declared."""
        return self.train_size if self._train_groups is None else self._train_groups

    def join(self, frame: object, on: str) -> None:
        """Add the columns of another frame to both parts, by an identifier column that all of them have.

        It must not repeat an identifier. A refusal does not show which records are missing.
        """
        more = LazyPart(frame, "predictions")
        for part in self._parts():
            _check_name("on", on, part)
            _check_join(part, more, on)
        if more.n < self.n:
            seen = f"{more.n} rows, for {self.n} records of the holdout"
            advice = "Records without a row would count as wrong."
            raise InputError("predictions", seen, "a frame with a row for each record of both parts", advice)
        content = part_identity(more)  # reads all that is in it, and counts no names
        if largest_multiplicity(more, on) > 1:
            raise InputError(
                "predictions", f"values of {on!r} that occur more than once", "a frame with one row for each record"
            )
        joined = [_joined(part, more, on) for part in self._parts()]
        self.part = joined[0]
        if self.train_part is not None:
            self.train_part = joined[1]
        places = {name: place for place, name in enumerate(more.columns)}
        by = f"{content} by column {places[on]}, which is {on!r} with {self._place(on)!r}"
        self.joined |= {name: f"column {place} of {by}" for name, place in places.items() if name != on}
        if on in self.of_label:
            self.of_label |= set(places)

    def content(self, columns: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """Return the identity of columns, beside the holdout's, which counts their places and not their names."""
        return tuple((name, self._place(name)) for name in sorted(columns))

    def _place(self, name: str) -> str:
        """Return the identity of a column: its place in the holdout, or in a joined frame."""
        return self.joined[name] if name in self.joined else f"column {self.part.columns.index(name)}"

    def _parts(self) -> list[LazyPart]:
        return [self.part] if self.train_part is None else [self.part, self.train_part]

    def labelled(self) -> NoReturn:
        """Refuse a computation on records in memory."""
        raise InputError("holdout", "a lazy frame", "records in memory for this call", _ASK)

    def apply(self, query: object) -> NoReturn:
        """Refuse a function of records in memory."""
        raise InputTypeError("train_values", "a function", "an expression for a lazy frame", _ASK)

    def ordered(self, values: object, argument: str) -> NoReturn:
        """Refuse values of records that have no order."""
        raise InputTypeError(argument, "values for records without an order", "an expression for a lazy frame", _ASK)

    def origin(self, hashes: object, records: object = None) -> NoReturn:
        """Refuse to return the origin of rows."""
        raise InputError("X", "rows", "None for a guard of lazy frames", _ASK)


def _without_places(model: DependenceModel) -> bool:
    from graphs import Independent
    from graphs.models.law_free import GroupSizes

    return isinstance(model, (Independent, GroupSizes))


def _check_columns(train: LazyPart, holdout: LazyPart) -> None:
    """Refuse parts with different columns."""
    if set(train.columns) != set(holdout.columns):
        less, more = (sorted(set(one.columns) - set(other.columns)) for one, other in _both_ways(train, holdout))
        seen = f"{f'columns {less} beside' if less else 'no columns'} {more or ''}".strip()
        raise InputError("train", f"{seen} of the holdout", "a part with the columns of the holdout")
    for name in holdout.columns:
        one, other = train.schema[name], holdout.schema[name]
        if _family(one) != _family(other):
            raise InputError("train", f"column {name!r} of type {one}, beside {other} in the holdout", _TYPES)


def _check_types(train: Any, holdout: Any, name: str) -> None:
    """Refuse groups of types that engines cannot join."""
    if train != holdout and not (train.is_integer() and holdout.is_integer()):
        seen = f"column {name!r} of type {train}, beside {holdout} in the holdout"
        raise InputError("groups", seen, "a column of one type in both parts", "Cast one of the two columns.")


def _both_ways(train: LazyPart, holdout: LazyPart) -> list[tuple[LazyPart, LazyPart]]:
    return [(train, holdout), (holdout, train)]


def _family(dtype: Any) -> str:
    """Return the kind of a column's values, without the width of numbers, in which engines differ."""
    if dtype.is_numeric():
        return "number"
    return "text" if str(dtype).startswith(("String", "Categorical", "Enum")) else str(dtype)


def _check_label(label: object, holdout: LazyPart, train: LazyPart | None) -> None:
    if not isinstance(label, str):
        raise InputTypeError("label", f"a {type(label).__name__}", "the name of a column of both parts")
    for part in (holdout, train):
        if part is not None:
            _check_name("label", label, part)
            part.compiled(label, "label")


def _check_name(argument: str, name: object, part: LazyPart) -> None:
    if not isinstance(name, str):
        raise InputTypeError(argument, f"a {type(name).__name__}", "the name of a column")
    if name not in part.schema:
        seen = f"no column {name!r} in the {part.name} part"
        raise InputError(argument, seen, f"a column, one of {', '.join(map(repr, part.columns[:20]))}")


def _check_join(part: LazyPart, more: LazyPart, on: str) -> None:
    """Refuse a frame that cannot be joined, and columns of two types: an engine's cast can fail for a value."""
    _check_name("on", on, more)
    type_of, other = more.schema[on], part.schema[on]
    kinds = {one.compiled(on, "on").kind for one in (more, part)}
    if type_of != other and kinds != {"integer"}:
        seen = f"column {on!r} of type {type_of}, beside {other} in the {part.name} part"
        raise InputError("on", seen, "a column of one type in both frames", "Cast one where its frame is made.")
    if more.frame.implementation is not part.frame.implementation:
        seen = f"a frame of {more.frame.implementation}, beside parts of {part.frame.implementation}"
        raise InputTypeError("predictions", seen, "a lazy frame of the parts' engine")
    again = sorted((set(more.columns) & set(part.columns)) - {on})
    if again:
        raise InputError("predictions", f"columns {again}, which the parts have", "a frame of columns with other names")
    if len(more.columns) < 2:
        raise InputError("predictions", f"no column beside {on!r}", "a frame with at least one column of predictions")


def _joined(part: LazyPart, more: LazyPart, on: str) -> LazyPart:
    joined = LazyPart(part.frame.join(more.frame, on=on, how="left"), part.name)
    if joined.n != part.n:
        raise InputError(
            "predictions", f"{joined.n} records after the join of {part.n}", "a frame with one row for each record"
        )
    return joined
