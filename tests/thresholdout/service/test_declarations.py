"""Holdouts that a TOML file or keywords declare."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.thresholdout.service.evaluations import ADMIN, HOLDOUT, TRAIN
from thresholdout.errors import InputError
from thresholdout.service.declarations import create_declared
from thresholdout.service.evaluation import EvaluationService

DECLARED = """\
name = "cells"
train = "tables/train.csv"
holdout = "tables/holdout.csv"
label = "y"
title = "Cells under a microscope"
public = true
quota = 20
quota_days = 7
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tables").mkdir()
    TRAIN.to_csv(tmp_path / "tables" / "train.csv", index=False)
    HOLDOUT.to_csv(tmp_path / "tables" / "holdout.csv", index=False)
    (tmp_path / "cells.toml").write_text(DECLARED, encoding="utf-8")
    return tmp_path


@pytest.fixture
def service(folder: Path) -> Iterator[EvaluationService]:
    service = EvaluationService.open(folder / "board.db")
    yield service
    service.close()


def test_a_file_declares_a_holdout(service: EvaluationService, folder: Path) -> None:
    made = create_declared(service, ADMIN, folder / "cells.toml")
    assert (made.name, made.title, made.public, made.quota, made.quota_days, made.records) == (
        "cells", "Cells under a microscope", True, 20, 7.0, len(HOLDOUT)
    )  # fmt: skip
    assert create_declared(service, ADMIN, folder / "cells.toml").identity == made.identity


def test_keywords_declare_one_and_change_what_a_file_says(service: EvaluationService, folder: Path) -> None:
    tables = {"train": folder / "tables" / "train.csv", "holdout": folder / "tables" / "holdout.csv"}
    assert create_declared(service, ADMIN, {"name": "a", "label": "y", **tables}, confidence=0.9).confidence == 0.9
    with pytest.raises(InputError, match=r"confidence: Input should be greater than or equal to 0\.5"):
        create_declared(service, ADMIN, folder / "cells.toml", confidence=0.05)


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("name = 'cells", "no TOML file that can be read"),
        (DECLARED.replace("quota_days", "quota_day"), "'quota_day' is no setting; expected: 'quota_days'"),
        (DECLARED.replace('train = "tables/train.csv"\n', ""), "train is missing"),
        (DECLARED.replace('label = "y"\n', ""), "label: Field required"),
        (DECLARED.replace('"cells"', '"Cells!"'), "name: String should match pattern"),
        (DECLARED.replace("tables/holdout.csv", "tables/nowhere.csv"), "nowhere.csv"),
    ],
)
def test_a_wrong_declaration_makes_nothing(service: EvaluationService, folder: Path, declared: str, said: str) -> None:
    (folder / "cells.toml").write_text(declared, encoding="utf-8")
    with pytest.raises(InputError) as error:
        create_declared(service, ADMIN, folder / "cells.toml")
    assert said in str(error.value)
    assert service.holdouts(ADMIN) == []
    assert service.ledger.guards() == []
