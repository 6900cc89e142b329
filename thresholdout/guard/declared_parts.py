"""The records that a guard was given, in memory or in lazy frames, with their dependence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from thresholdout.data.parts.engines import is_lazy
from thresholdout.errors import InputError, InputTypeError
from thresholdout.guard.declared_dependence import declared_dependence
from thresholdout.guard.holdout import Records

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.guard.lazy_records import LazyRecords

__all__ = ["declared_parts", "in_lazy_frames"]


def declared_parts(
    holdout: object, train: object | None, allow_duplicates: bool, groups: object, dependence: object
) -> tuple[Records, DependenceModel]:
    """Return the records of both parts, and the model of the holdout's; see `thresholdout.Thresholdout`."""
    records, holdout_groups, train_groups = _read_parts(holdout, train, allow_duplicates)
    if in_lazy_frames(records):
        declared = records.declared(dependence, groups=groups)
    else:
        declared = declared_dependence(
            records, dependence, groups=groups, holdout_groups=holdout_groups, train_groups=train_groups
        )
    records.check_groups(declared.train_groups, declared.model, together=declared.together, ordered=declared.ordered)
    records.undeclared = dependence is None and groups is None and holdout_groups is None
    return records, declared.model


def in_lazy_frames(records: Records) -> TypeGuard[LazyRecords]:
    """Whether records are in lazy frames; their module is loaded where they are."""
    return not records.in_memory


def _read_parts(holdout: object, train: object | None, allow_duplicates: bool) -> tuple[Records, Any, Any]:
    """Return the records of both parts, in memory or in lazy frames, and their groups."""
    own, label = _split("holdout", holdout)
    other, train_label = (None, label) if train is None else _split("train", train)
    lazy = is_lazy(own)
    if train is not None and is_lazy(other) != lazy:
        seen = f"a {type(other).__name__} beside a holdout that is a {type(own).__name__}"
        raise InputTypeError("train", seen, "a part of the holdout's kind", "Convert a frame by .lazy() or .collect().")
    if not lazy:
        return Records(own, other, allow_duplicates), label, None if train is None else train_label
    if train_label != label:
        seen = f"{train_label!r} as the column of labels, beside {label!r} in the holdout"
        raise InputError("train", seen, "(frame, 'label') with the column of labels of the holdout")
    from thresholdout.guard.lazy_records import LazyRecords

    return LazyRecords(own, other, allow_duplicates, label), None, None


def _split(argument: str, part: object) -> tuple[Any, Any]:
    """Return the records and groups of one part; for lazy frames the name of the label column."""
    first = part[0] if isinstance(part, tuple) and part else part
    if isinstance(first, (str, Path)):
        expected = "a lazy frame, such as polars.scan_parquet(path), or a data frame or arrays in memory"
        raise InputTypeError(argument, f"the text or path {str(first)!r}", expected)
    if is_lazy(part):
        return part, None
    if isinstance(part, (tuple, list)) and any(is_lazy(piece) for piece in part):
        if isinstance(part, tuple) and len(part) == 2 and is_lazy(part[0]) and isinstance(part[1], str):
            return part[0], part[1]
        seen = f"a {type(part).__name__} with a lazy frame"
        raise InputTypeError(
            argument, seen, "(frame, 'label'), a lazy frame with all columns and the name of its column of labels"
        )
    if isinstance(part, tuple) and len(part) == 2 and isinstance(part[1], str):
        seen = f"the text {part[1]!r} beside records in memory"
        raise InputTypeError(
            argument, seen, "(X, y) with the labels themselves", "(frame, 'label') is for lazy frames."
        )
    if not isinstance(part, tuple) or len(part) < 3:
        return part, None
    if len(part) > 3:
        raise InputError(argument, f"a tuple of {len(part)}", "(X, y), or (X, y, groups) with a group for each record")
    X, y, groups = part
    return ((X,) if y is None else (X, y)), groups
