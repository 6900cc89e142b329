"""Commands about the privacy loss of learners."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from graphs.numerics.rounding import shown_above
from thresholdout.cli.options import FILE
from thresholdout.cli.running import Command, Failure, show

if TYPE_CHECKING:
    from thresholdout.privacy.accounting.accountants.calibration import Method
    from thresholdout.privacy.accounting.events.composed_events import Composed
    from thresholdout.privacy.accounting.events.event_types import Adjacency

__all__ = ["account", "calibrate"]

_SAMPLING = ("wor", "wr", "poisson")
_ADJACENCY = ("replace-one", "add-remove")
_LIBRARY_NAMES = {"noise_multiplier": "--noise", "dataset_size": "--records", "target_epsilon": "--epsilon"}


def _minibatches(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of batches, neighbours and delta."""
    for option in (
        click.option(
            "--adjacency",
            type=click.Choice(_ADJACENCY),
            help="Neighbouring data sets: one record replaced (the default), or one more or less.",
        ),
        click.option("--delta", type=float, help="Delta of epsilon. Default: 1e-5."),
        click.option("--records", type=click.IntRange(min=2), help="Number of records."),
        click.option("--batch-size", type=click.IntRange(min=1), help="Records in a batch (their mean, for poisson)."),
        click.option(
            "--sampling",
            type=click.Choice(_SAMPLING),
            default="wor",
            show_default=True,
            help="Fresh batches in each step: without or with replacement, or a coin for each record.",
        ),
    ):
        command = option(command)
    return command


@click.command(cls=Command, library_names=_LIBRARY_NAMES)
@click.argument("events", type=FILE, required=False)
@_minibatches
@click.option("--noise", type=float, multiple=True, help="Noise multiplier: standard deviation over clipping norm.")
@click.option("--steps", type=click.IntRange(min=1), multiple=True, help="Steps with this noise.")
@click.option("--epsilon", type=float, help="Compute delta at this epsilon instead.")
@click.pass_context
def account(
    ctx: click.Context,
    events: Path | None,
    sampling: str,
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
    """  # noqa: D301
    from thresholdout.privacy.accounting.accountants.calibration import best_delta, best_epsilon

    given: dict[str, Any] = {}
    if events is not None:
        sampled = ctx.get_parameter_source("sampling") is not click.core.ParameterSource.DEFAULT
        if sampled or any((batch_size, records, noise, steps)):
            raise click.UsageError("give a file, or the options of a learner, not both")
        happened, given = _from_file(events)
    else:
        happened = _from_options(sampling, batch_size, records, noise, steps)
    neighbours = cast("Adjacency", adjacency.replace("-", "_") if adjacency else given.get("adjacency", "replace_one"))
    if epsilon is not None:
        if delta is not None:
            raise click.UsageError("give --epsilon or --delta, not both")
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
        raise Failure(f"no accountant has an epsilon for this. {refusals or 'Try a larger delta'}")
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
        raise Failure(f"{path}: {unknown[0]!r} beside the events; expected: delta, adjacency")
    return happened, settings


def _from_options(
    sampling: str, batch_size: int | None, records: int | None, noise: tuple[float, ...], steps: tuple[int, ...]
) -> Composed:
    from thresholdout.privacy.accounting.accountants.calibration import step_of
    from thresholdout.privacy.accounting.events.composed_events import Composed, SelfComposed

    if batch_size is None or records is None or not noise or not steps:
        raise click.UsageError("give a file of events, or --noise, --batch-size, --records and --steps")
    if len(noise) != len(steps):
        raise click.UsageError(f"give --noise and --steps equally often; seen: {len(noise)} and {len(steps)}")
    pairs = zip(noise, steps, strict=True)
    return Composed([SelfComposed(step_of(sampling, sigma, batch_size, records), times) for sigma, times in pairs])


@click.command(cls=Command, library_names=_LIBRARY_NAMES)
@_minibatches
@click.option("--epsilon", type=float, required=True, help="Target.")
@click.option("--steps", type=click.IntRange(min=1), required=True, help="Number of steps.")
@click.option("--method", type=click.Choice(["best", "rdp", "pld"]), default="best", show_default=True)
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
    """Find the smallest noise multiplier for which DP-SGD has an epsilon."""
    from thresholdout.privacy.accounting.accountants.calibration import METHODS, best_epsilon, calibrate_sigma, step_of
    from thresholdout.privacy.accounting.events.composed_events import SelfComposed

    if batch_size is None or records is None:
        raise click.UsageError("give --batch-size and --records")
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
