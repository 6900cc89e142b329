from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.thresholdout.integrations.contract import HookContract, Told
from tests.thresholdout.integrations.run_programs import noting, programs
from tests.thresholdout.integrations.scripted_model import scripted_model

openevolve: Any = pytest.importorskip("openevolve", reason="OpenEvolve is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")


class TestOpenEvolve(HookContract):
    def run(self, texts: Sequence[str], folder: Path, **declared: Any) -> Told:
        from openevolve.config import Config, LLMModelConfig

        seed = folder / "seed.py"
        seed.write_text(texts[0])
        guarded = programs(**declared)
        with (
            noting(folder) as evaluated,
            scripted_model(texts[1:]) as (url, shown),
            guarded.serving(folder / "evaluator.py"),
        ):
            config = Config(language="python", diff_based_evolution=False, max_code_length=1000, log_level="WARNING")
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
        assert guarded.candidates.champion.strip() == found.best_code.strip()
        return Told(guarded.candidates, found.best_code.strip(), "".join(shown), evaluated)
