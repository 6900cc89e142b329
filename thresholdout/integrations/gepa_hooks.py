"""A holdout in GEPA, whose loop scores each example and writes prompts from traces that it shows to a model.

GEPA keeps every candidate that improves on a few training examples, scores it on a validation set example by example,
and breeds from the best candidates of each example. Here the validation set has the training examples, with their true
scores, and one more that stands for the whole holdout: its score is the verdict. So breeding uses public scores, the
loop learns one bit about the holdout for each candidate, and its best candidate is the champion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from thresholdout.errors import InputError, InputTypeError
from thresholdout.integrations.candidates import GuardedCandidates, Part
from thresholdout.integrations.examples import digest_of, guard_for

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.guard.gates import Certify
    from thresholdout.guard.guard import Thresholdout

__all__ = ["GEPAHoldout"]

_WHOLE: Final = "the whole holdout"


class GEPAHoldout:
    """Optimise texts by GEPA against a guarded holdout.

    GEPA scores candidates that improve on a few training examples on a validation set, and can overfit it in time. This
    object wraps your adapter so that a guard judges each such candidate on the whole holdout. A guard (`Thresholdout`)
    answers queries about a holdout and tracks an error budget. The object is the adapter, the evaluation policy and the
    stopper of a run. Pass `arguments` to ``gepa.optimize``.

    Parameters
    ----------
    adapter : gepa.GEPAAdapter
        Adapter that runs candidates on examples. It runs on the training examples as without a guard, and on the
        holdout only in a planned evaluation. Its outputs and traces there are discarded, and nothing is logged.
    train, holdout : sequence
        Public examples of the training part, and examples of the holdout, in the adapter's form.
    guard : Thresholdout, optional
        Existing guard with as many records as there are examples, in their order, such as
        `thresholdout.evaluations.guard_of_items` makes. All its users share one budget. If None, a guard of the
        examples is made.
    name : str, default "prompts"
        Name in the history, which distinguishes several loops on one guard. Use another name for another adapter.
    bounds : tuple of float, default (0, 1)
        Range of the adapter's scores. Greater is better.
    certify : {"each", "milestones"}, default "each"
        "each" tests every candidate that is better on the training part. "milestones" lets the training scores accept
        candidates at no cost, and from time to time tests the current one against the last certified one.
    delta : float, default 0.0
        By how much the mean score of a candidate has to be better.
    **declared
        Arguments of the new guard, such as ``groups=``, ``ledger=`` or ``sampling="iid"``. See `guard_of_examples`.

    Attributes
    ----------
    candidates : GuardedCandidates
        Object that judges the candidates. ``candidates.guard`` is the guard, ``candidates.champion`` the best
        candidate.
    arguments : dict
        Arguments of ``gepa.optimize``.
    valset : list
        Validation set of the run: the training examples, and one that represents the whole holdout.

    Notes
    -----
    A batch with a part of the holdout's examples is refused, since the score of one of them is a label. A batch with
    all of them has the verdict as every score. The score of the whole holdout is so large that the average over the
    validation set ranks champions by their place first.

    By GEPA's own rules adapters give an example that fails the worst score. If an adapter raises an error on the
    holdout, an answer is charged. On the training examples the error ends the run, as without a guard.

    Examples
    --------
    An adapter that needs no model: it counts the letters of the prompt.

    >>> from types import SimpleNamespace
    >>> from thresholdout.integrations import GEPAHoldout
    >>> class Adapter:
    ...     def evaluate(self, batch, candidate, capture_traces=False):
    ...         scores = [float(k % 10 < len(candidate["prompt"])) for k in batch]
    ...         return SimpleNamespace(outputs=batch, scores=scores, trajectories=batch, objective_scores=None)
    >>> hook = GEPAHoldout(Adapter(), range(1000), range(1000, 3000), sampling="iid")
    >>> for prompt in ("Add.", "Add both.", "Add"):
    ...     print(hook.evaluate(hook.valset, {"prompt": prompt}).scores[-1])
    1001.0
    2002.0
    0.0

    In a run: ``gepa.optimize(seed_candidate, reflection_lm=..., max_metric_calls=..., **hook.arguments)``.
    """

    def __init__(
        self,
        adapter: Any,
        train: Sequence[Any],
        holdout: Sequence[Any],
        *,
        guard: Thresholdout | None = None,
        name: str = "prompts",
        bounds: tuple[float, float] = (0.0, 1.0),
        certify: Certify = "each",
        delta: float = 0.0,
        **declared: Any,
    ) -> None:
        self._adapter = adapter
        self._examples: dict[Part, list[Any]] = {"train": list(train), "holdout": list(holdout)}
        own = guard_for(guard, train, holdout, declared)
        self.candidates = GuardedCandidates(own, self._scores, name=name, bounds=bounds, certify=certify, delta=delta)
        self._step = (len(train) + 1) * (bounds[1] - bounds[0])
        self._trained = [digest_of(example, "train") for example in train]
        self._held = Counter(digest_of(example, "holdout") for example in holdout)

    @property
    def valset(self) -> list[Any]:
        """Validation set of the run: the training examples, and one that represents the whole holdout."""
        return [*self._examples["train"], _WHOLE]

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of `gepa.optimize` by name, all but the seed candidate, the model and the limit of calls."""
        return {
            "adapter": self,
            "trainset": self._examples["train"],
            "valset": self.valset,
            "val_evaluation_policy": self,
            "stop_callbacks": [self.stop],
        }

    def evaluate(self, batch: list[Any], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        """Score a batch as an adapter does. The verdict is the score of the holdout. See `gepa.GEPAAdapter`."""
        return self._batches([(candidate, batch)], capture_traces)[0]

    def stop(self, state: object = None) -> bool:
        """Return whether the guard is exhausted, at which GEPA ends the run."""
        return self.candidates.exhausted

    def get_eval_batch(self, loader: Any, state: object, target_program_idx: int | None = None) -> list[Any]:
        """Return the identifiers of the whole validation set. See `gepa.EvaluationPolicy`."""
        return list(loader.all_ids())

    def get_best_program(self, state: Any) -> int:
        """Return the index of the last program that was kept."""
        programs = range(len(state.prog_candidate_val_subscores))
        return max(programs, key=lambda program: self.get_valset_score(program, state))

    def get_valset_score(self, program_idx: int, state: Any) -> float:
        """Return a program's score on the whole holdout, which ranks champions by their place."""
        scores = state.prog_candidate_val_subscores[program_idx]
        return float(scores.get(len(self._trained), 0.0))

    @property
    def propose_new_texts(self) -> Any:
        """Function of the wrapped adapter that proposes texts, or None if it has none."""
        return getattr(self._adapter, "propose_new_texts", None)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self._adapter, name)
        return partial(self._batches, capture_traces=True) if name == "batch_evaluate" else found

    def __reduce__(self) -> Any:
        advice = "Send hook.candidates, which is pickled as a reference: a hook has the holdout."
        raise InputTypeError("hook", "a hook to pickle", "left in its process", advice)

    def _batches(self, items: Sequence[tuple[dict[str, str], list[Any]]], capture_traces: bool) -> list[Any]:
        """Score batches in one call: examples outside the holdout by the adapter, the holdout by verdicts."""
        asked = [self._split(batch) for _, batch in items]
        plain = [
            (candidate, [batch[k] for k in places]) for (candidate, batch), places in zip(items, asked, strict=True)
        ]
        together = getattr(self._adapter, "batch_evaluate", None)
        if capture_traces and together is not None:
            found = list(together(plain))
        else:
            found = [self._adapter.evaluate(batch, candidate, capture_traces) for candidate, batch in plain]
        return [
            one if len(places) == len(batch) else self._judged(candidate, batch, places, one)
            for (candidate, batch), places, one in zip(items, asked, found, strict=True)
        ]

    def _split(self, batch: list[Any]) -> list[int]:
        """Return the places of a batch that are outside the holdout, and refuse a part of the holdout."""
        places, held = [], Counter[bytes]()
        for place, example in enumerate(batch):
            digest = b"" if isinstance(example, str) and example == _WHOLE else digest_of(example, "batch")
            if digest in self._held:
                held[digest] += 1
            elif digest:
                places.append(place)
        if held and held != self._held:
            seen = f"{held.total()} of the {self._held.total()} examples of the holdout"
            raise InputError(
                "batch", seen, "all of them, or none", "Pass valset=hook.valset, where one stands for all."
            )
        return places

    def _judged(self, candidate: dict[str, str], batch: list[Any], places: list[int], found: Any) -> Any:
        """Return the scores of a batch with the holdout in it."""
        plain = [digest_of(batch[k], "batch") for k in places]
        known = found.scores if plain == self._trained else None
        verdict = self.candidates.propose(candidate, train_values=known)
        filled = {place: k for k, place in enumerate(places)}

        def whole(values: list[Any] | None, instead: Any) -> list[Any] | None:
            if values is None:
                return None
            return [values[filled[k]] if k in filled else instead for k in range(len(batch))]

        found.scores = whole(found.scores, self._step * verdict.place)
        found.outputs = whole(found.outputs, verdict.text)
        found.trajectories = whole(found.trajectories, None)
        found.objective_scores = whole(found.objective_scores, {})
        return found

    def _scores(self, candidate: dict[str, str], part: Part) -> NDArray[np.float64]:
        """Return a candidate's score for each example of a part."""
        found = self._adapter.evaluate(list(self._examples[part]), dict(candidate), capture_traces=False)
        return np.asarray(found.scores, dtype=np.float64)
