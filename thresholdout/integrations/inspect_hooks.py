"""A guard as a scorer of inspect_ai; the library is loaded when the scorer is made.

A scorer gives each sample a score, which for a sample of the holdout would be its label. So samples of the holdout have
no target and equal scores. The metric, which receives all samples at the end of the evaluation, judges the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from thresholdout.errors import InputError, InputTypeError
from thresholdout.integrations.models import numbers
from thresholdout.integrations.verdicts import CandidateVerdict
from thresholdout.scoring.metrics import Metric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.integrations.models import GuardedModels

__all__ = ["graded", "guarded_samples", "guarded_scorer"]

_PARTS: Final = ("train", "holdout")


def graded(correct: Callable[[Any, Any], float] | None = None, *, name: str = "graded") -> Metric:
    """Return a metric of answers: the mean of ``correct(answer, target)``, by default equality of texts."""
    if correct is not None and not callable(correct):
        raise InputTypeError("correct", f"a {type(correct).__name__}", "a function correct(answer, target)")
    grade = correct or _same

    def values(y: NDArray[Any], output: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[Any]:
        return np.array([grade(told, truth) for told, truth in zip(output, y, strict=True)], dtype=np.float64)

    return Metric(name, "predict", values, (0.0, 1.0), True, False)


def guarded_samples(train: Sequence[Any], holdout: Sequence[Any], **fields: Any) -> list[Any]:
    """Return the samples of a task for `guarded_scorer`, without targets.

    Parameters
    ----------
    train, holdout : sequence
        The inputs of both parts, in the guard's order.
    **fields
        Other fields of ``inspect_ai.dataset.Sample``, the same for all.

    Returns
    -------
    list of inspect_ai.dataset.Sample
        Their identifiers have part and place.
    """
    from inspect_ai.dataset import Sample

    if "target" in fields or "id" in fields:
        advice = "The guard keeps the targets, and identifiers are made here."
        raise InputError("fields", ", ".join(sorted(fields)), "fields other than target and id", advice)
    parts = zip(_PARTS, (train, holdout), strict=True)
    return [Sample(input=text, id=f"{part} {k}", **fields) for part, texts in parts for k, text in enumerate(texts)]


def guarded_scorer(models: GuardedModels, answer: Callable[[Any], Any] | None = None) -> Any:
    """Return a scorer for ``Task(dataset=guarded_samples(...), scorer=...)`` that judges a model's answers.

    A training sample has its true score, a sample of the holdout always 0. The metric has ``train``, the mean score of
    the training samples, and the verdict: ``kept`` and ``certified``, 1 or 0; ``score``, which rises with every model
    that is kept and is 0 for all others; ``asked``, 0 if the guard is exhausted or samples are missing, as with
    ``limit=``.

    Parameters
    ----------
    models : GuardedModels
        Judges the answers, with a metric of answers such as `graded`; the guard's labels are the targets.
    answer : callable, optional
        ``answer(state)`` returns a text or a number from the state of a task. The stripped completion by default.

    Returns
    -------
    inspect_ai.scorer.Scorer

    Notes
    -----
    Equal answers are the same candidate: an evaluation that is scored again, or resumed, is free. A model that answers
    at random is another candidate each time, and the verdict is about its present answers. More than one epoch is
    refused, since the metric would receive several answers to one sample.

    The log of an evaluation has inputs and answers, and no target. Keep the guard's data out of the process of an agent
    that may read files.

    Examples
    --------
    ::

        guard = Thresholdout((questions, targets), train=(more_questions, more_targets))
        models = GuardedModels(guard, graded())
        task = Task(dataset=guarded_samples(more_questions, questions), solver=..., scorer=guarded_scorer(models))
        log = inspect_ai.eval(task, model="...")[0]
        log.results.scores[0].metrics["certified"].value
    """
    if answer is not None and not callable(answer):
        raise InputTypeError("answer", f"a {type(answer).__name__}", "a function answer(state)")
    from inspect_ai.scorer import SampleScore, Score, metric, scorer

    told = answer or _completion

    async def score(state: Any, target: Any) -> Any:
        part, place = _place(state.sample_id)
        if state.epoch != 1:
            raise InputError("epochs", state.epoch, "1", "All answers are judged as one candidate.")
        if target.text:
            seen = f"one in sample {state.sample_id!r}"
            raise InputError("target", seen, "empty for every sample", "Make the samples by guarded_samples.")
        given, value = told(state), 0.0
        if part == "train":
            value = float(models.values_on_train([given], [place])[0])
        return Score(value=value, answer=str(given), metadata={"given": given})

    def judge(scores: Any) -> dict[str, float]:
        return _judged(models, scores)

    judge.__annotations__["scores"] = list[SampleScore]  # inspect_ai recognises new metrics by this annotation
    made = metric(name="guarded")(lambda: judge)
    return scorer(metrics=[made()], name="guarded")(lambda: score)()


def _judged(models: GuardedModels, scores: Sequence[Any]) -> dict[str, float]:
    """Judge the answers of all samples; a part of them is not judged."""
    given: dict[str, dict[int, Any]] = {part: {} for part in _PARTS}
    values = []
    for one in scores:
        part, place = _place(one.sample_id)
        given[part][place] = one.score.metadata["given"]
        if part == "train":
            values.append(one.score.as_float())
    verdict = CandidateVerdict("failed")
    sizes = {"train": len(models.guard._open[1]), "holdout": models.guard.n}
    if all(sorted(given[part]) == list(range(size)) for part, size in sizes.items()):
        outputs = [np.array([given[part][k] for k in range(size)]) for part, size in sizes.items()]
        verdict = models.propose_outputs(*outputs)
    return {"train": float(np.mean(values)) if values else 0.0, **numbers(verdict)}


def _place(name: object) -> tuple[str, int]:
    """Return part and place from a sample's identifier, such as "holdout 12"."""
    part, _, place = str(name).partition(" ")
    if part not in _PARTS or not place.isdecimal():
        raise InputError("dataset", f"a sample {name!r}", "the samples of guarded_samples(train, holdout)")
    return part, int(place)


def _same(answer: Any, target: Any) -> bool:
    return str(answer) == str(target)


def _completion(state: Any) -> str:
    return str(state.output.completion).strip()
