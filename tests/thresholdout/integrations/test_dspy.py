import json
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cases import for_each
from tests.thresholdout.integrations.contract import HOLDOUT, TRAIN, HookContract, Told, act, part_of, right
from thresholdout import InputTypeError
from thresholdout.integrations import DSPyHoldout

dspy: Any = pytest.importorskip("dspy", reason="DSPy is not installed")
cloudpickle: Any = pytest.importorskip("cloudpickle", reason="DSPy is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")


class Model(dspy.BaseLM):  # type: ignore[misc]
    """A language model that counts letters of its instructions, and does what they say."""

    def __init__(self) -> None:
        super().__init__(model="letters")

    def forward(self, prompt: Any = None, messages: Any = None, **settings: Any) -> Any:
        written = json.dumps(messages)
        text = re.findall(r"<<(.*?)>>", written)[0]
        example = {"id": int(re.findall(r"number (\d+)", written)[-1])}
        act(text, part_of(example))
        said = f"[[ ## answer ## ]]\n{int(right(text, example))}\n\n[[ ## completed ## ]]"
        message = SimpleNamespace(content=said, tool_calls=None)
        return SimpleNamespace(
            choices=[SimpleNamespace(message=message, finish_reason="stop")], usage={}, model="letters"
        )


class Program(dspy.Module):  # type: ignore[misc]
    """Asks the model."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ask = dspy.Predict(dspy.Signature("question -> answer", f"<<{text}>>"))

    def forward(self, question: str) -> Any:
        return self.ask(question=question)


def examples(records: Sequence[dict[str, Any]]) -> list[Any]:
    return [
        dspy.Example(question=f"number {one['id']} {one['note']}", answer="1").with_inputs("question")
        for one in records
    ]


def metric(example: Any, pred: Any, trace: Any = None) -> bool:
    return bool(example.answer == pred.answer)


def text_of(state: Any) -> str:
    found: list[str] = re.findall(r"<<(.*?)>>", json.dumps(state))
    return found[0]


class Always:
    """Lets each proposal reach the validation set."""

    def should_accept(self, proposal: Any, state: Any) -> bool:
        return True


def recorded(hook: DSPyHoldout) -> list[tuple[str, Any]]:
    """Have a hook note what it evaluates."""
    evaluate, calls = hook.candidates._evaluate, []
    assert evaluate is not None

    def noted(state: Any, part: Any) -> Any:
        calls.append((text_of(state), part))
        return evaluate(state, part)

    hook.candidates._evaluate = noted
    return calls


class TestGEPAOfDSPy(HookContract):
    failing_on_training = ("skip",)
    failing_on_holdout = ("reject",)

    def run(self, texts: Sequence[str], folder: Path, **declared: Any) -> Told:
        script, rounds, shown = iter(texts[1:]), iter(range(len(texts) - 1)), []

        def propose(candidate: Any, reflective_dataset: Any, components_to_update: list[str]) -> dict[str, str]:
            shown.append(f"{candidate} {reflective_dataset}")
            text = next(script)
            return dict.fromkeys(components_to_update, f"<<{text}>>")

        with dspy.context(lm=Model(), num_threads=2):
            hook = DSPyHoldout(
                Program(texts[0]), metric, examples(TRAIN), examples(HOLDOUT), name="candidates", **declared
            )
            evaluated = recorded(hook)
            found = dspy.GEPA(
                metric=hook.metric,
                max_metric_calls=10**6,
                instruction_proposer=propose,
                skip_perfect_score=False,
                candidate_selection_strategy="current_best",
                use_merge=False,
                log_dir=str(folder / "log"),
                track_stats=True,
                num_threads=2,
                gepa_kwargs={
                    "acceptance_criterion": Always(),
                    "stop_callbacks": [hook.stop, lambda state: next(rounds, None) is None],
                },
            ).compile(hook.student, trainset=examples(TRAIN), valset=hook.valset)
            best = text_of(found.dump_state())
            assert text_of(hook.best.dump_state()) == best
        said = json.dumps(found.detailed_results.to_dict(), default=str)
        return Told(hook.candidates, best, " ".join([*map(str, shown), said]), evaluated)


def test_an_optimiser_that_tries_demonstrations_picks_the_champion(caplog: pytest.LogCaptureFixture) -> None:
    with dspy.context(lm=Model(), num_threads=2), caplog.at_level(logging.INFO):
        hook = DSPyHoldout(Program("aaaa"), metric, examples(TRAIN), examples(HOLDOUT), sampling="iid")
        evaluated = recorded(hook)
        optimiser = dspy.BootstrapFewShotWithRandomSearch(
            metric=hook.metric, max_bootstrapped_demos=1, max_labeled_demos=1, num_candidate_programs=2, num_threads=2
        )
        found = optimiser.compile(hook.student, trainset=examples(TRAIN), valset=hook.valset)
        assert found.program.dump_state() == hook.best.dump_state()
    assert "240" not in caplog.text  # of the holdout's 600 are right
    assert {part for _, part in evaluated} <= {"train", "holdout"}


@for_each("places", [2, 3, 5])
def test_metrics_are_called_with_what_they_take(places: int) -> None:
    calls: list[tuple[Any, ...]] = []

    def noted(*given: Any) -> float:
        calls.append(given)
        return 1.0

    kinds: dict[int, Any] = {
        2: lambda gold, pred: noted(gold, pred),
        3: lambda gold, pred, trace=None: noted(gold, pred, trace),
        5: lambda gold, pred, trace, name, pred_trace: noted(gold, pred, trace, name, pred_trace),
    }
    hook = DSPyHoldout(Program("a"), kinds[places], examples(TRAIN), examples(HOLDOUT))
    gold = examples(TRAIN)[0]
    assert hook.metric(gold, "pred", "trace", "name", "sub") == 1.0
    assert calls == [(gold, "pred", "trace", "name", "sub")[:places]]


def test_what_is_no_metric_is_refused() -> None:
    for wrong in (3, lambda pred: 1.0):
        with pytest.raises(InputTypeError, match="metric"):
            DSPyHoldout(Program("a"), wrong, examples(TRAIN), examples(HOLDOUT))  # type: ignore[arg-type]


class Noting(dspy.utils.callback.BaseCallback):  # type: ignore[misc]
    """A tracker's view of all calls of programs."""

    def __init__(self) -> None:
        self.inputs: list[str] = []

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.inputs.append(str(inputs))


def test_callbacks_see_no_call_on_the_holdout() -> None:
    tracker = Noting()
    with dspy.context(lm=Model(), num_threads=2, callbacks=[tracker]):
        hook = DSPyHoldout(Program("aa"), metric, examples(TRAIN), examples(HOLDOUT), sampling="iid")
        better = hook.student.deepcopy()
        better.program.ask.signature = better.program.ask.signature.with_instructions("<<aaaa>>")
        for program in (hook.student, better):
            hook.student.program(question="number 0 of the training part")
            program(**hook.valset[-1].inputs())
    assert hook.candidates.champion is not None
    seen = " ".join(tracker.inputs)
    assert "number 0 " in seen
    assert not any(f"number {one['id']} " in seen for one in HOLDOUT)


def test_an_evaluation_within_an_evaluation_of_dspy_ends() -> None:
    """In threads of another evaluation, programs that need no time."""
    at_once = SimpleNamespace(answer="1")

    class Quick(dspy.Module):  # type: ignore[misc]
        def forward(self, question: str) -> Any:
            return at_once

    hook = DSPyHoldout(Quick(), metric, examples(TRAIN), examples(HOLDOUT))
    for _ in range(5):
        evaluate = dspy.Evaluate(devset=[hook.valset[-1]] * 40, metric=lambda gold, pred: 1.0, num_threads=4)
        assert evaluate(hook.student).score == 100.0


def test_a_hook_and_its_student_are_not_pickled() -> None:
    hook = DSPyHoldout(Program("a"), metric, examples(TRAIN), examples(HOLDOUT))
    for thing in (hook, hook.student, hook.metric):
        with pytest.raises(InputTypeError, match=r"hook must be .*; got a hook to pickle"):
            cloudpickle.dumps(thing)


def test_a_program_keeps_the_model_that_it_was_given() -> None:
    """A state has neither the class of a model of one's own, nor the address and key of a server."""
    model = Model()
    program = Program("aa")
    program.set_lm(model)
    hook = DSPyHoldout(program, metric, examples(TRAIN), examples(HOLDOUT), sampling="iid")
    assert hook.student(**hook.valset[-1].inputs()).verdict.outcome == "first"
    assert hook.best.ask.lm is model
    served = Program("aa")
    served.set_lm(dspy.LM("openai/letters", api_base="http://127.0.0.1:1", api_key="key"))
    other = DSPyHoldout(served, metric, examples(TRAIN), examples(HOLDOUT))
    state = json.loads(json.dumps(served.dump_state()))
    assert other._loaded(state).ask.lm.kwargs["api_base"] == "http://127.0.0.1:1"


def test_runs_on_the_holdout_leave_no_trace() -> None:
    with dspy.context(lm=Model(), num_threads=2, trace=[]):
        hook = DSPyHoldout(Program("aa"), metric, examples(TRAIN), examples(HOLDOUT), sampling="iid")
        whole = hook.valset[-1]
        assert hook.metric(whole, hook.student(**whole.inputs())) == 61.0
        better = hook.student.deepcopy()
        better.program.ask.signature = better.program.ask.signature.with_instructions("<<aaaa>>")
        told = hook.metric(whole, better(**whole.inputs()), None, "program.ask", None)
        assert (told.score, told.feedback) == (
            122.0,
            "Kept: certified to be better than the champion, which it replaces.",
        )
        assert dspy.settings.trace == []
    assert text_of(hook.best.dump_state()) == "aaaa"
