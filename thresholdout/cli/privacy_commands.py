"""Commands about the privacy loss of learners."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from graphs.numerics.rounding import shown_above
from thresholdout.cli.options import FILE
from thresholdout.cli.running import Command, ExitCode, Failure, show

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from thresholdout.privacy.accounting.accountants.calibration import Method
    from thresholdout.privacy.accounting.events.composed_events import Composed
    from thresholdout.privacy.accounting.events.event_files import Sampling
    from thresholdout.privacy.accounting.events.event_types import Adjacency

__all__ = ["account", "audit", "calibrate"]

_SAMPLING = ("wor", "wr", "poisson")
_LOGGED: dict[str, Sampling] = {
    "wor": "without_replacement",
    "wr": "with_replacement",
    "poisson": "poisson",
    "shuffled": "shuffled",
}
_ADJACENCY = ("replace-one", "add-remove")
# Options of arguments that the library names otherwise.
_LIBRARY_NAMES = {"noise_multiplier": "--noise", "dataset_size": "--records", "target_epsilon": "--epsilon"}


def _minibatches(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of batches, neighbours and delta."""
    for option in (
        click.option(
            "--adjacency",
            type=click.Choice(_ADJACENCY),
            help="Neighbouring data sets: one record is replaced (the default), or added or removed.",
        ),
        click.option("--delta", type=float, help="Delta at which epsilon is computed. Default: 1e-5."),
        click.option("--records", type=click.IntRange(min=2), help="Number of training records."),
        click.option(
            "--batch-size",
            type=click.IntRange(min=1),
            help="Number of records in a batch (the mean number for poisson).",
        ),
    ):
        command = option(command)
    return command


@click.command(cls=Command, library_names=_LIBRARY_NAMES | {"log": "EVENTS"})
@click.argument("events", type=FILE, required=False)
@_minibatches
@click.option(
    "--sampling",
    type=click.Choice(tuple(_LOGGED)),
    help="Fresh batches in each step: without (wor, the default) or with replacement (wr), or a coin for each record "
    "(poisson, the default of a log); or one shuffled order for each epoch (shuffled).",
)
@click.option(
    "--like",
    type=click.Choice(["opacus"]),
    help="Read EVENTS as an Opacus history or a training log (JSON, JSON Lines, CSV); Poisson batches and one record "
    "more or less are then the defaults.",
)
@click.option(
    "--noise",
    type=float,
    multiple=True,
    help="Noise multiplier: standard deviation divided by clipping norm. May be repeated.",
)
@click.option(
    "--steps", type=click.IntRange(min=1), multiple=True, help="Number of steps with this noise. May be repeated."
)
@click.option("--epsilon", type=float, help="Compute delta at this epsilon instead of epsilon.")
def account(
    events: Path | None,
    sampling: str | None,
    like: str | None,
    batch_size: int | None,
    records: int | None,
    delta: float | None,
    adjacency: str | None,
    noise: tuple[float, ...],
    steps: tuple[int, ...],
    epsilon: float | None,
) -> None:
    """Compute the privacy loss of DP-SGD, or of the EVENTS in a TOML or JSON file.

    For noise that changes, repeat --noise and --steps. A file may also set delta and adjacency:

    \b
    delta = 1e-5
    adjacency = "replace_one"
    [[event]]
    kind = "without_replacement_gaussian_step"
    noise_multiplier = 6.0
    batch_size = 120
    records = 50000
    count = 104000

    With --like opacus the file is the history of an Opacus accountant: rows (noise multiplier, sample rate, steps). Or
    it is a log of your own, with the columns noise_multiplier, sample_rate and num_steps.
    """  # noqa: D301
    from thresholdout.privacy.accounting.accountants.calibration import best_delta, best_epsilon

    given: dict[str, Any] = {}
    if like is not None:
        sampling = sampling or "poisson"
        # A step that sees every record once has no price for one record more or less.
        adjacency = adjacency or ("replace-one" if sampling == "shuffled" else "add-remove")
    if events is not None:
        if any((batch_size, noise, steps)) or (like is None and any((sampling, records))):
            raise click.UsageError("Pass a file, or the options of a learner, not both.")
        happened, given = _from_file(events) if like is None else (_from_log(events, sampling or "", records), {})
    else:
        happened = _from_options(sampling or "wor", batch_size, records, noise, steps)
    neighbours = cast("Adjacency", adjacency.replace("-", "_") if adjacency else given.get("adjacency", "replace_one"))
    if epsilon is not None:
        if delta is not None:
            raise click.UsageError("Pass --epsilon or --delta, not both.")
        found = best_delta(happened, epsilon, adjacency=neighbours)
        show(
            {"epsilon": epsilon, "delta": found, "adjacency": neighbours},
            f"delta {shown_above(found, 6)} at epsilon {epsilon:g}, {_in_words(neighbours)}",
        )
        return
    at = delta if delta is not None else given.get("delta", 1e-5)
    best = best_epsilon(happened, at, adjacency=neighbours)
    if best.accountant == "none":
        refusals = "; ".join(f"{name}: {reason}" for name, reason in best.refused.items())
        raise Failure(f"No accountant has an epsilon for this. {refusals or 'Try a larger delta'}.")
    accountants = best.table[["accountant", "epsilon", "bound", "how"]]
    show(
        {
            "epsilon": best.epsilon,
            "delta": best.delta,
            "adjacency": neighbours,
            "accountant": best.accountant,
            "accountants": accountants.to_dict("records"),
        },
        *(repr(event) for event in happened.events),
        f"epsilon {shown_above(best.epsilon, 6)} at delta {best.delta:g}, {_in_words(neighbours)}\n",
        accountants.to_string(index=False),
    )


def _in_words(adjacency: str) -> str:
    return "one record replaced" if adjacency == "replace_one" else "one record more or less"


def _from_file(path: Path) -> tuple[Composed, dict[str, Any]]:
    from thresholdout.privacy.accounting.events.event_files import read_events

    happened, settings = read_events(path)
    unknown = sorted(set(settings) - {"delta", "adjacency"})
    if unknown:
        raise Failure(f"{path}: the keys beside the events must be delta and adjacency; got {unknown[0]!r}.")
    return happened, settings


def _from_log(path: Path, sampling: str, records: int | None) -> Composed:
    from thresholdout.privacy.accounting.events.event_files import training_events

    return training_events(path, sampling=_LOGGED[sampling], records=records)


def _from_options(
    sampling: str, batch_size: int | None, records: int | None, noise: tuple[float, ...], steps: tuple[int, ...]
) -> Composed:
    from thresholdout.privacy.accounting.accountants.calibration import step_of
    from thresholdout.privacy.accounting.events.composed_events import Composed, SelfComposed

    if batch_size is None or records is None or not noise or not steps:
        raise click.UsageError("Pass a file of events, or --noise, --batch-size, --records and --steps.")
    if len(noise) != len(steps):
        raise click.UsageError(f"--noise and --steps must be equally many; got {len(noise)} and {len(steps)}.")
    pairs = list(zip(noise, steps, strict=True))
    if sampling == "shuffled":
        from thresholdout.privacy.accounting.events.event_files import training_events

        rows = [(sigma, batch_size / records, times) for sigma, times in pairs]
        return training_events(rows, sampling="shuffled", records=records)
    return Composed([SelfComposed(step_of(sampling, sigma, batch_size, records), times) for sigma, times in pairs])


@click.command(cls=Command, library_names=_LIBRARY_NAMES)
@_minibatches
@click.option(
    "--sampling",
    type=click.Choice(_SAMPLING),
    default="wor",
    show_default=True,
    help="Fresh batches in each step: without or with replacement, or a coin for each record.",
)
@click.option("--epsilon", type=float, required=True, help="Target epsilon.")
@click.option("--steps", type=click.IntRange(min=1), required=True, help="Number of steps.")
@click.option(
    "--method",
    type=click.Choice(["best", "rdp", "pld"]),
    default="best",
    show_default=True,
    help="Accountant that is used.",
)
def calibrate(
    sampling: str,
    batch_size: int | None,
    records: int | None,
    delta: float | None,
    adjacency: str | None,
    epsilon: float,
    steps: int,
    method: str,
) -> None:
    """Compute the smallest noise multiplier with which DP-SGD reaches a target epsilon."""
    from thresholdout.privacy.accounting.accountants.calibration import METHODS, best_epsilon, calibrate_sigma, step_of
    from thresholdout.privacy.accounting.events.composed_events import SelfComposed

    if batch_size is None or records is None:
        raise click.UsageError("--batch-size and --records are missing.")
    at = 1e-5 if delta is None else delta
    neighbours = cast("Adjacency", (adjacency or _ADJACENCY[0]).replace("-", "_"))
    sigma = calibrate_sigma(
        epsilon,
        at,
        steps,
        batch_size=batch_size,
        dataset_size=records,
        sampling=sampling,
        adjacency=neighbours,
        method=cast("Method", method),
    )
    event = SelfComposed(step_of(sampling, sigma, batch_size, records), steps)
    best = best_epsilon(event, at, adjacency=neighbours, accountants=METHODS[method])
    proved = shown_above(best.epsilon, 6)
    show(
        {
            "noise": sigma,
            "epsilon": best.epsilon,
            "delta": at,
            "adjacency": neighbours,
            "accountant": best.accountant,
            "steps": steps,
            "batch_size": batch_size,
            "records": records,
        },
        f"noise {shown_above(sigma, 6)}: epsilon {proved} at delta {at:g}, {_in_words(neighbours)}",
        f"by the {best.accountant} accountant; {steps:,} steps, {batch_size:,} of {records:,} records each",
    )


@click.command(cls=Command, library_names={"world_0": "WORLD_0", "world_1": "WORLD_1", "random_state": "--seed"})
@click.argument("world_0", type=FILE)
@click.argument("world_1", type=FILE)
@click.option(
    "--claim", type=FILE, help="TOML or JSON file of the claimed events, whose whole privacy curve is tested."
)
@click.option(
    "--epsilon", type=float, help="Claimed epsilon at --delta. Without --delta, measure delta at this epsilon."
)
@click.option(
    "--delta", type=float, help="Claimed delta at --epsilon. Without --epsilon, measure epsilon at this delta."
)
@click.option(
    "--confidence", type=float, default=0.9, show_default=True, help="Probability that a true claim is not refuted."
)
@click.option(
    "--attack",
    type=click.Choice(["logistic", "gaussian", "histogram", "score"]),
    default="logistic",
    show_default=True,
    help="Attack that turns outputs into scores.",
)
@click.option(
    "--adjacency",
    type=click.Choice(_ADJACENCY),
    help="How the two data sets differ: one record replaced (the default), or added or removed.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Seed, to repeat an audit. Default: none.")
@click.pass_context
def audit(
    ctx: click.Context,
    world_0: Path,
    world_1: Path,
    claim: Path | None,
    epsilon: float | None,
    delta: float | None,
    confidence: float,
    attack: str,
    adjacency: str | None,
    seed: int | None,
) -> None:
    """Test a privacy claim by outputs on two data sets that differ in one record.

    WORLD_0 and WORLD_1 hold independent outputs, one in each row: numbers in a CSV file without a header, or a NumPy
    array (.npy). A refuted claim ends with exit code 1.

    \b
    thresholdout privacy audit without.csv with.csv --epsilon 1 --delta 1e-5
    thresholdout privacy audit without.csv with.csv --claim events.toml
    thresholdout privacy audit without.csv with.csv --delta 1e-5
    """  # noqa: D301
    from thresholdout.privacy.auditing.output_audits import audit_outputs

    if claim is not None and (epsilon is not None or delta is not None):
        raise click.UsageError("Pass --claim, or --epsilon and --delta, not both.")
    if claim is None and epsilon is None and delta is None:
        raise click.UsageError("Pass --claim, or --epsilon and --delta; or one of these two, to measure the other.")
    options: dict[str, Any] = {"confidence": confidence, "attack": attack, "random_state": seed}
    outputs = _outputs(world_0), _outputs(world_1)
    if claim is None and (epsilon is None or delta is None):
        if adjacency is not None:
            raise click.UsageError("--adjacency needs a claim: a measurement depends on the outputs alone.")
        measured = audit_outputs(*outputs, epsilon=epsilon, delta=delta, **options)
        show({"epsilon": measured.epsilon, "delta": measured.delta, "confidence": confidence}, repr(measured)[1:-1])
        return
    claimed: Any = (epsilon, delta)
    if claim is not None:
        claimed, settings = _from_file(claim)
        adjacency = adjacency or settings.get("adjacency")
    neighbours = cast("Adjacency", (adjacency or _ADJACENCY[0]).replace("-", "_"))
    tested = audit_outputs(*outputs, claim=claimed, adjacency=neighbours, **options)
    found = {
        "refuted": tested.refuted,
        "epsilon": tested.epsilon,
        "delta": tested.delta,
        "at": {"epsilon": tested.at.epsilon, "delta": tested.at.delta},
        "confidence": confidence,
    }
    show(found, repr(tested)[1:-1])
    if tested.refuted:
        ctx.exit(ExitCode.NO)


def _outputs(path: Path) -> NDArray[np.float64]:
    """Return the outputs in a file, one in each row."""
    import numpy as np

    try:
        if path.suffix.lower() == ".npy":
            found = np.asarray(np.load(path, allow_pickle=False), dtype=np.float64)
        else:
            found = np.loadtxt(path, delimiter="," if path.suffix.lower() == ".csv" else None, ndmin=2)
    except (OSError, ValueError) as error:
        raise Failure(f"{path} must hold rows of numbers without a header, or a NumPy array: {error}.") from None
    return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found
