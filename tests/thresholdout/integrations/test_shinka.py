from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.thresholdout.integrations.contract import HookContract, Told, text_in
from tests.thresholdout.integrations.run_programs import noting, programs
from tests.thresholdout.integrations.scripted_model import scripted_model

shinka: Any = pytest.importorskip("shinka.core", reason="ShinkaEvolve is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")

FORM = "<NAME>\nlonger\n</NAME>\n<DESCRIPTION>\nlonger\n</DESCRIPTION>\n<CODE>\n```python\n{}```\n</CODE>"


def marked(text: str) -> str:
    return f"# EVOLVE-BLOCK-START\n# {text}\n# EVOLVE-BLOCK-END\n"


class TestShinkaEvolve(HookContract):
    def run(self, texts: Sequence[str], folder: Path, **declared: Any) -> Told:
        from shinka.database import DatabaseConfig
        from shinka.launch import LocalJobConfig

        seed, results = folder / "seed.py", folder / f"run {len(list(folder.glob('run*')))}"
        seed.write_text(marked(texts[0]))
        guarded = programs(**declared)
        with (
            noting(folder) as evaluated,
            scripted_model([marked(text) for text in texts[1:]], FORM) as (url, shown),
            guarded.serving(folder / "evaluator.py"),
        ):
            runner = shinka.ShinkaEvolveRunner(
                evo_config=shinka.EvolutionConfig(
                    patch_types=["full"],
                    patch_type_probs=[1.0],
                    num_generations=len(texts),
                    llm_models=[f"local/scripted@{url}"],
                    llm_dynamic_selection=None,
                    embedding_model=None,
                    meta_rec_interval=None,
                    init_program_path=str(seed),
                    results_dir=str(results),
                    use_text_feedback=True,
                ),
                job_config=LocalJobConfig(eval_program_path=str(folder / "evaluator.py")),
                db_config=DatabaseConfig(db_path=str(results / "programs.db"), num_islands=1),
                verbose=True,
                max_evaluation_jobs=1,
                max_proposal_jobs=1,
                max_db_workers=1,
            )
            runner.run()
            best = best_of(results)
        assert guarded.candidates.champion.strip() == best.strip()
        return Told(guarded.candidates, text_in(best), "".join(shown), evaluated)


def best_of(results: Path) -> str:
    """Return the program that the library calls the best."""
    found: str = next((results / "best").glob("main.*")).read_text()
    return found
