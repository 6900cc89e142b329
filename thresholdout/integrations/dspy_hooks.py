"""A holdout in DSPy, whose optimisers score a program example by example with ``metric(example, pred, trace=None)``.

A metric receives a prediction and not its program, so the program is wrapped. One example stands for the whole
holdout: called with it, the wrapper proposes the program to the guard and returns the verdict, which the metric turns
into a number. All other examples pass through the program unchanged.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final

from thresholdout.errors import InputTypeError
from thresholdout.integrations.candidates import CandidateVerdict, GuardedCandidates, Part
from thresholdout.integrations.examples import guard_for

if TYPE_CHECKING:
    from thresholdout.guard.gates import Certify
    from thresholdout.guard.guard import Thresholdout

__all__ = ["DSPyHoldout"]

_WHOLE: Final = "whole_holdout"


class DSPyHoldout:
    """Optimise a program of DSPy against a guarded holdout.

    Optimisers of DSPy score every candidate program on a validation set, and can overfit it in time. This object wraps
    your program and metric so that a guard judges each program on the whole holdout. A guard (`Thresholdout`) answers
    queries about a holdout and tracks an error budget. Give the optimiser `metric`, `student` and `valset` in place of
    your own, and take `best` at the end.

    Parameters
    ----------
    program : dspy.Module
        Program to optimise. Its state (`dspy.Module.dump_state`) identifies it: instructions, demonstrations, and
        models where they have their own.
    metric : callable
        Function ``metric(example, pred, trace=None)``, or with the further arguments of `dspy.GEPA`. It returns a
        number, a truth value or an object with a ``score``. If the program or the metric raises an error, the example
        has the worst score.
    train, holdout : sequence of dspy.Example
        Public examples of the training part, and examples of the holdout.
    guard : Thresholdout, optional
        Existing guard with as many records as there are examples, in their order, such as
        `thresholdout.evaluations.guard_of_items` makes. All its users share one budget. If None, a guard of the
        examples is made.
    name : str, default "program"
        Name in the history, which distinguishes several loops on one guard. Use another name for another program or
        metric.
    bounds : tuple of float, default (0, 1)
        Range of the metric. Greater is better.
    certify : {"each", "milestones"}, default "each"
        "each" tests every program that is better on the training part. "milestones" lets the training scores accept
        programs at no cost, and from time to time tests the current one against the last certified one.
    delta : float, default 0.0
        By how much the mean score of a program has to be better.
    threads : int, optional
        Number of examples that run at the same time. If None, DSPy's setting.
    **declared
        Arguments of the new guard, such as ``groups=``, ``ledger=`` or ``sampling="iid"``. See `guard_of_examples`.

    Attributes
    ----------
    candidates : GuardedCandidates
        Object that judges the programs. ``candidates.guard`` is the guard.
    student : dspy.Module
        The wrapped program, for the optimiser.
    valset : list of dspy.Example
        Validation set for the optimiser: the training examples, and one that represents the whole holdout.
    best : dspy.Module
        The last program that was kept.

    Notes
    -----
    The score of the whole holdout is so large that the average over `valset` ranks champions by their place first. An
    optimiser that scores random parts of `valset` (MIPROv2 with minibatches) sometimes leaves the holdout out, so make
    it score all of it.

    The training part runs once more for each new program, mostly from DSPy's cache. Runs on the holdout are not traced,
    logged or kept in the history of calls, and callbacks of DSPy's settings are not called. A model that keeps prompts
    itself, as ``lm.history`` does, keeps these too: do not show it to the author of the next program. Neither this
    object nor the student can be pickled or saved with ``save_program=True``. Save `best`.

    Examples
    --------
    With ``hook = DSPyHoldout(program, metric, trainset, holdout)``:
    ``dspy.GEPA(metric=hook.metric, ...).compile(hook.student, trainset=trainset, valset=hook.valset)``, then `best`.

    >>> from thresholdout.integrations import DSPyHoldout
    >>> DSPyHoldout(None, "exact match", train=[], holdout=[])
    Traceback (most recent call last):
    thresholdout.errors.InputTypeError: metric must be a function metric(example, pred, trace=None); got a str.
    """

    def __init__(
        self,
        program: Any,
        metric: Callable[..., Any],
        train: Sequence[Any],
        holdout: Sequence[Any],
        *,
        guard: Thresholdout | None = None,
        name: str = "program",
        bounds: tuple[float, float] = (0.0, 1.0),
        certify: Certify = "each",
        delta: float = 0.0,
        threads: int | None = None,
        **declared: Any,
    ) -> None:
        if not callable(metric):
            raise InputTypeError("metric", f"a {type(metric).__name__}", "a function metric(example, pred, trace=None)")
        self._program = program
        self._metric = metric
        self._arguments = _accepted(metric)
        self._examples: dict[Part, list[Any]] = {"train": list(train), "holdout": list(holdout)}
        self._threads = threads
        self._worst = float(bounds[0])
        self._step = (len(train) + 1) * (bounds[1] - bounds[0])
        own = guard_for(guard, train, holdout, declared)
        self.candidates = GuardedCandidates(own, self._scores, name=name, bounds=bounds, certify=certify, delta=delta)
        self.student = _guarded(program, self._judged)

    @property
    def valset(self) -> list[Any]:
        """Validation set for the optimiser: the training examples, and one that represents the whole holdout."""
        from dspy import Example

        return [*self._examples["train"], Example(**{_WHOLE: "all of it"}).with_inputs(_WHOLE)]

    @property
    def best(self) -> Any:
        """The last program that was kept, or the original one before any was judged."""
        state = self.candidates.champion
        return self._program.deepcopy() if state is None else self._loaded(state)

    def metric(
        self, gold: Any, pred: Any, trace: Any = None, pred_name: str | None = None, pred_trace: Any = None
    ) -> Any:
        """Return the score of a prediction. For the example that represents the holdout, the verdict determines it."""
        if _WHOLE not in gold:
            return self._metric(*(gold, pred, trace, pred_name, pred_trace)[: self._arguments])
        verdict = pred.verdict
        score = self._step * verdict.place
        if pred_name is None:
            return score
        from dspy import Prediction

        return Prediction(score=score, feedback=verdict.text)

    def stop(self, state: object = None) -> bool:
        """Return whether the guard is exhausted. Pass it as ``gepa_kwargs={"stop_callbacks": [hook.stop]}``."""
        return self.candidates.exhausted

    def _judged(self, program: Any) -> CandidateVerdict:
        """Propose a program."""
        return self.candidates.propose(json.loads(json.dumps(program.dump_state())))

    def _loaded(self, state: Any) -> Any:
        program = self._program.deepcopy()
        models = {name: one.lm for name, one in self._program.named_predictors() if one.lm is not None}
        own = {name: lm for name, lm in models.items() if _state_of(lm) == state[name]["lm"]}
        program.load_state({name: {**one, "lm": None} if name in own else one for name, one in state.items()})
        for name, predictor in program.named_predictors():
            predictor.lm = own.get(name, predictor.lm)  # a state has no API keys and no addresses of models
        return program

    def _scores(self, state: Any, part: Part) -> list[float]:
        """Return a program's score for each example of a part."""
        import dspy

        program = self._loaded(state)

        def score(example: Any) -> float:
            with dspy.context(trace=[], disable_history=True, callbacks=[]):
                try:
                    found = self._metric(*(example, program(**example.inputs()), None, None, None)[: self._arguments])
                    return float(found.score if hasattr(found, "score") else found)
                except Exception:
                    return self._worst

        # not dspy.Parallel: a nested one clears the progress bars of the outer one, which then raises
        with ThreadPoolExecutor(self._threads or dspy.settings.num_threads) as pool:
            running = [pool.submit(copy_context().run, score, example) for example in self._examples[part]]
            return [one.result() for one in running]

    def __reduce__(self) -> Any:
        advice = "Pickle or save hook.best: a hook, and the student that it wraps, have the holdout."
        raise InputTypeError("hook", "a hook to pickle or save", "left in its process", advice)


def _state_of(model: Any) -> Any:
    """Return a language model as a program's state has it."""
    return json.loads(json.dumps(model.dump_state()))


def _accepted(metric: Callable[..., Any]) -> int:
    """Return the number of DSPy's arguments that a metric takes: two, three or five."""
    parameters = inspect.signature(metric).parameters.values()
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return 5
    places = sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in parameters)
    if places < 2:
        seen = f"one of {places} argument{'s' * (places != 1)}"
        raise InputTypeError("metric", seen, "a function metric(example, pred, trace=None)")
    return min(places, 5)


def _guarded(program: Any, judged: Callable[[Any], CandidateVerdict]) -> Any:
    """Return a program that proposes itself when it is called with the example that stands for the holdout."""
    import dspy

    class GuardedProgram(dspy.Module):  # type: ignore[misc]
        """A program with the function that judges it."""

        def __init__(self) -> None:
            super().__init__()
            self.program = program

        def forward(self, **inputs: Any) -> Any:
            """Run the program, or have it judged."""
            if _WHOLE in inputs:
                return dspy.Prediction(verdict=judged(self.program))
            return self.program(**inputs)

    return GuardedProgram()
