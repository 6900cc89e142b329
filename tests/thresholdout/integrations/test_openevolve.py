import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.thresholdout.integrations.contract import HOLDOUT, ROOT, TRAIN, HookContract, Told
from tests.thresholdout.integrations.scripted_model import scripted_model
from thresholdout import Thresholdout
from thresholdout.integrations import GuardedPrograms

openevolve: Any = pytest.importorskip("openevolve", reason="OpenEvolve is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")


def programs(**declared: Any) -> GuardedPrograms:
    parts = [(pd.DataFrame(records), pd.Series([one["id"] % 2 for one in records])) for records in (HOLDOUT, TRAIN)]
    command = (
        f"{sys.executable} -m tests.thresholdout.integrations.predicting {{candidate}} {{features}} {{predictions}}"
    )
    return GuardedPrograms(Thresholdout(parts[0], train=parts[1], **declared), command, name="candidates")


def noted(file: Path) -> list[tuple[str, Any]]:
    lines = [line.partition("\t") for line in file.read_text().splitlines()] if file.exists() else []
    return [(text, part) for part, _, text in lines]


class TestOpenEvolve(HookContract):
    def run(self, texts: Sequence[str], folder: Path, **declared: Any) -> Told:
        from openevolve.config import Config, LLMModelConfig

        seed = folder / "seed.py"
        seed.write_text(texts[0])
        before = dict(os.environ)
        os.environ |= {"EVALUATED": str(folder / "evaluated.txt"), "PYTHONPATH": str(ROOT)}
        (folder / "evaluated.txt").unlink(missing_ok=True)
        guarded = programs(**declared)
        try:
            with scripted_model(texts[1:]) as (url, shown), guarded.serving(folder / "evaluator.py"):
                config = Config(
                    language="python", diff_based_evolution=False, max_code_length=1000, log_level="WARNING"
                )
                config.llm.models = [LLMModelConfig(name="scripted", api_base=url, api_key="none", retries=0)]
                config.llm.evaluator_models = config.llm.models
                config.evaluator.cascade_evaluation = False
                config.evaluator.parallel_evaluations = 1
                config.database.num_islands = 1
                found = openevolve.run_evolution(
                    str(seed),
                    str(folder / "evaluator.py"),
                    config,
                    iterations=len(texts) - 1,
                    output_dir=str(folder / "output"),
                    cleanup=False,
                )
        finally:
            os.environ.clear()
            os.environ |= before
        assert guarded.candidates.incumbent.strip() == found.best_code.strip()
        return Told(guarded.candidates, found.best_code.strip(), "".join(shown), noted(folder / "evaluated.txt"))
