"""Holdouts that are declared by a TOML file, or by keywords, checked before anything is read or made."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from thresholdout.data.tables import read_table
from thresholdout.errors import InputError
from thresholdout.service.schemas import Feedback, Phase

if TYPE_CHECKING:
    from thresholdout.service.evaluation import EvaluationService
    from thresholdout.service.schemas import Holdout, Principal

__all__ = ["HoldoutSettings", "create_declared"]

_TABLES: Final = ("train", "holdout", "graph")
"""Files of a declaration; the last one may be missing."""


class HoldoutSettings(BaseModel):
    """How a holdout is made from two tables with labels."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"name": "digits", "label": "y"}]})

    name: str = Field(description="What addresses call it.", pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")
    label: str = Field(description="Column of the labels.", min_length=1)
    id: str = Field("id", description="Column that identifies a record.", min_length=1)
    groups: str | None = Field(None, description="Column of groups that may depend on each other arbitrarily.")
    order: str | None = Field(None, description="Column of the order of all rows, beside window.")
    window: int | None = Field(None, description="Rows further apart than this are independent.", ge=0)
    title: str = Field("", max_length=100)
    metric: str = "accuracy"
    feedback: Feedback = "interval"
    phase: Phase = "open"
    public: bool = False
    quota: int | None = Field(None, description="Submissions of each team.", ge=1)
    quota_days: float | None = Field(None, description="In so many days; null is all of the time.", gt=0)
    confidence: float = Field(0.95, ge=0.5, lt=1)
    prior_queries: int | None = Field(None, description="Scores of this holdout that were seen before.", ge=1)
    allow_duplicates: bool = Field(False, description="Whether equal rows of both parts are different records.")


def create_declared(
    service: EvaluationService, by: Principal, declared: str | Path | Mapping[str, Any], **changes: Any
) -> Holdout:
    """Make the holdout that a TOML file or a mapping declares; the same one again changes nothing.

    Parameters
    ----------
    service : EvaluationService
        Where it is made.
    by : Principal
        An administrator.
    declared : path or mapping
        The keys ``train``, ``holdout`` and perhaps ``graph`` name files of tables, relative to the TOML file; all
        others are those of `HoldoutSettings`.
    **changes
        Keys that replace those of the declaration.

    Raises
    ------
    InputError
        A file cannot be read, a key is unknown or missing, or a value is out of range; nothing is made then.
    ServiceRefused
        As `EvaluationService.create_holdout`.

    Examples
    --------
    >>> from thresholdout.service.schemas import Principal
    >>> create_declared(None, Principal("", "admin"), {"name": "churn", "lable": "y"})
    Traceback (most recent call last):
    thresholdout.errors.InputError: declaration: 'lable' is no setting; expected: 'label'...
    """
    where, folder = "declaration", Path()
    if isinstance(declared, Mapping):
        said = {**declared, **changes}
    else:
        file = Path(declared)
        where, folder = str(file), file.parent
        try:
            said = {**tomllib.loads(file.read_text(encoding="utf-8")), **changes}
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            expected = "a TOML file with train, holdout, name and label"
            raise InputError(where, f"no TOML file that can be read: {error}", expected) from None
    files = {name: said.pop(name) for name in _TABLES if said.get(name) is not None}
    unknown = sorted(set(said) - set(HoldoutSettings.model_fields))
    if unknown:
        known = [*HoldoutSettings.model_fields, *_TABLES]
        near = difflib.get_close_matches(unknown[0], known, 1) or known
        raise InputError(where, f"{unknown[0]!r} is no setting", ", ".join(map(repr, near)))
    for name in ("train", "holdout"):
        if not isinstance(files.get(name), str | Path):
            raise InputError(where, f"{name} is missing", f"{name} = the file of a table with labels")
    try:
        settings = HoldoutSettings.model_validate(said).model_dump()
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(where, f"{'.'.join(map(str, first['loc']))}: {first['msg']}", "another value") from None
    tables: dict[str, Any] = {name: read_table(folder / file) for name, file in files.items()}
    name, train, holdout = settings.pop("name"), tables.pop("train"), tables.pop("holdout")
    return service.create_holdout(by, name, train, holdout, **settings, **tables)
