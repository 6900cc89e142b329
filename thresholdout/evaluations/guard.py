"""A guard of an evaluation set: one outcome a check, and a guarantee for the whole year."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, Self

import numpy as np

from thresholdout.errors import EvaluationSetUsed, InputError, LedgerMismatch
from thresholdout.evaluations.account import Account, Promise
from thresholdout.evaluations.check_results import Check, Event, Mode, Status
from thresholdout.evaluations.difference import check_margin, smallest_drop
from thresholdout.evaluations.pairing import Pairs, pair
from thresholdout.evaluations.scores import Scores, shown
from thresholdout.evaluations.set_parts import as_kept, from_kept, hidden_items, part, split
from thresholdout.ledger.entry import CONTENT, Entry, fresh_key

if TYPE_CHECKING:
    from thresholdout.ledger import Ledger

__all__ = ["EvaluationGuard"]

_KIND: Final = "evaluation set"
_DISCORDANT: Final = 0.1  # assumed share of items that a harmless change changes; it affects plans, no guarantee
_PROMOTED: Final = "promoted"


class EvaluationGuard:
    """Check changes against an evaluation set all year, with one guarantee for all outcomes.

    Every change that a team keeps because of its score on an evaluation set makes later scores less reliable. This
    guard compares each run with the released baseline and with main, reports a single outcome such as "worse", and
    tracks an error budget for all planned checks. `create` begins a guard in a file or a database, `check` compares a
    run, and `promote` makes a merged run the new main. Use `diff` for a single comparison.

    The items have two parts. Everybody may read the dev part, which is never compared. The gate part is compared, and
    nobody who makes changes may read its items or results on them.

    Parameters
    ----------
    where : str, path or Ledger
        File or database in which `create` began the guard: a file name, or an address such as
        ``"postgresql://user@host/database"``. `LedgerMismatch` is raised if it holds no evaluation set.

    Notes
    -----
    With probability at least .95 no outcome of the year is false, if nobody who makes changes reads gate items or
    results on them, and the judge stays the same. Proof: PROOFS.md of this package.

    Examples
    --------
    >>> import pandas as pd
    >>> from thresholdout.evaluations import read
    >>> from thresholdout.ledger import open_ledger
    >>> base = pd.DataFrame({"id": range(400), "score": [1] * 300 + [0] * 100})
    >>> bad = base.assign(score=[1] * 200 + [0] * 200)
    >>> guard = EvaluationGuard.create(open_ledger(None), read(base), dev=0.0)
    >>> guard.check(read(base)).outcome, guard.check(read(bad)).outcome
    ('nothing', 'worse')
    >>> guard.status().surprised
    1
    """

    def __init__(self, where: str | os.PathLike[str] | Ledger) -> None:
        from thresholdout.ledger import open_ledger

        self._ledger = open_ledger(where, must_exist=True)
        found = [each for each in self._ledger.guards() if self._ledger.parameters(each).get("kind") == _KIND]
        if not found:
            raise LedgerMismatch(self._ledger.location, "It has no evaluation set. Create one by `eval guard init`.")
        self._name = found[-1]
        self._parameters: dict[str, Any] = dict(self._ledger.parameters(self._name))
        self._release = from_kept(self._document("release"))
        dev = self._ledger.document(self._name, "dev")
        self._dev = None if dev is None else from_kept(dev)

    @classmethod
    def create(
        cls,
        where: str | os.PathLike[str] | Ledger,
        baseline: Scores,
        *,
        checks: int = 300,
        surprises: int = 5,
        mode: Mode = "alarm",
        margin: float = 0.02,
        dev: float = 0.2,
        promise: Promise = "year",
        any_laws: bool = False,
        expect: Literal["claim", "nothing"] | None = None,
    ) -> Self:
        """Start a guard of an evaluation set, with a run of the released baseline.

        Parameters
        ----------
        where : str, path or Ledger
            File or database of the guard. A new file is made.
        baseline : Scores
            Run of the release, from `read`.
        checks : int, default 300
            Planned number of checks, after which the set is used up.
        surprises : int, default 5
            Planned number of unexpected outcomes, such as "worse" in the mode "alarm". After these the set is used up,
            too.
        mode : {"alarm", "proof"}, default "alarm"
            "alarm" reports "worse" or "nothing". "proof" reports "not worse" by the margin, or "nothing".
        margin : float, default 0.02
            Largest drop that a proof accepts, as a fraction of the range of scores.
        dev : float, default 0.2
            Share of the items in the dev part, which everybody may read and which is never compared.
        promise : {"year", "each"}, default "year"
            "year" guarantees all outcomes also if changes depend on earlier outcomes, "each" only if they do not.
        any_laws : bool, default False
            Whether to use distribution-free tests (bets on cluster totals), which assume only that items or clusters
            are independent. See `diff`.
        expect : {"claim", "nothing"}, optional
            In the mode "proof": the outcome that is expected ("claim" for "not worse") and does not count as a
            surprise. If None, chosen by the number of items and the margin.

        Returns
        -------
        EvaluationGuard
            The new guard, with the baseline as its release.

        Raises
        ------
        LedgerMismatch
            If items of the set, or their clusters, are guarded already.
        InputError
            If an argument cannot be used, or the gate part would have fewer than 2 items.
        """
        from thresholdout.ledger import open_ledger

        _check_plan(checks, surprises, mode, margin, dev, promise, expect)
        key = os.urandom(16).hex()
        hidden = hidden_items(baseline, key, dev)
        gate, open_items = split(baseline, hidden)
        if len(gate) < 2:
            seen = f"{dev:g} of {len(baseline)} items, which leaves {len(gate)} to compare"
            raise InputError("dev", seen, "a share that leaves at least 2 items to compare")
        return cls._begin(
            open_ledger(where),
            part(baseline, set(gate)),
            part(baseline, set(open_items)) if open_items else None,
            key,
            {
                "kind": _KIND,
                "metric": baseline.metric,
                "mode": mode,
                "margin": margin,
                "promise": promise,
                "any_laws": any_laws,
                "checks": checks,
                "surprises": surprises,
                "dev": dev,
                "claim_expected": _claim_expected(mode, expect, len(gate), margin),
                "dev_items": len(open_items),
                "fields": {**baseline.fields, "range": list(baseline.scale)},
            },
        )

    @classmethod
    def _begin(cls, ledger: Ledger, gate: Scores, dev: Scores | None, key: str, parameters: dict[str, Any]) -> Self:
        known = _known(ledger)
        again = [item for item, new in zip(gate.items, _new(gate, known), strict=True) if not new]
        if again:
            raise LedgerMismatch(
                ledger.location,
                f"{len(again)} of {len(gate)} items, or their clusters, are in a guarded set already ({shown(again)}). "
                "Check runs against that set, or pass new items to refresh.",
            )
        account = _planned(parameters)
        state = json.dumps({"account": account.as_dict(), "key": key, "main": "release", "entries": 0})
        identities = json.dumps(sorted(gate.identities))
        taken = sorted({*gate.identities, *(() if dev is None else dev.identities), *(gate.clusters or ())})
        documents = {
            CONTENT: hashlib.sha256(identities.encode()).hexdigest(),
            "items": json.dumps(taken),
            "release": as_kept(gate),
        }
        if dev is not None:
            documents["dev"] = as_kept(dev)
        ledger.create(fresh_key(), parameters, state, documents)
        return cls(ledger)

    def read(self, path: str | os.PathLike[str], **fields: Any) -> Scores:
        """Read a run with the arguments with which the baseline was read; ``fields`` override them. See `read`."""
        from thresholdout.evaluations.reading import read

        return read(os.fspath(path), **{**self.fields, **fields})

    def check(self, candidate: Scores, name: str | None = None, *, allow_missing: float = 1.0) -> Check:
        """Compare a run with the release and with main, and return one outcome for both.

        A check counts against the planned number. Scores that were checked before return their outcome again, free.

        Parameters
        ----------
        candidate : Scores
            Run to check, from `EvaluationGuard.read`.
        name : str, optional
            Name of the check in the history. If None, the name of the run, such as its file.
        allow_missing : float, default 1
            Maximum percentage (0 to 100) of gate items, and of samples of the run, that may lack a score.

        Returns
        -------
        Check
            Its `outcome`, and the checks that remain. `Check.passes` tells whether the change may be merged.

        Raises
        ------
        EvaluationSetUsed
            If the planned checks, or the planned unexpected outcomes, are exhausted.
        EvaluationFileError
            If the run cannot be compared. The check is then free.
        """
        gate = self._gate(candidate)
        main = json.loads(self._ledger.state(self._name))["main"]
        against = [self._release] if main == "release" else [self._release, from_kept(self._document(main))]
        # results choose no test: it is fixed by the release and by the numbers of samples (PROOFS.md, "Which test")
        binary = self._release.binary and all(each.single for each in (*against, gate))
        pairs = [pair(each, gate, allow_missing, binary) for each in against]
        parameters = self._parameters
        any_laws, margin = bool(parameters["any_laws"]), float(parameters["margin"])

        def claimed(log_level: float) -> bool:
            if parameters["mode"] == "alarm":
                each = log_level - math.log(len(pairs))
                return any(each_pair.log_p_worse(any_laws) <= each for each_pair in pairs)
            return all(each_pair.not_worse(margin, log_level, any_laws) for each_pair in pairs)

        def compute(state: str) -> tuple[str, Entry]:
            kept = json.loads(state)
            if kept["main"] != main:
                raise LedgerMismatch(self._ledger.location, "The main run changed meanwhile. Check this run again.")
            account = Account.from_dict(kept["account"])
            if account.exhausted:
                raise EvaluationSetUsed(account.done, account.checks, account.surprised, account.surprises)
            found = claimed(account.log_level)
            after = account.after(found)
            outcome = ("worse" if parameters["mode"] == "alarm" else "not worse") if found else "nothing"
            number = kept["entries"] + 1
            state = json.dumps({**kept, "account": after.as_dict(), "entries": number})
            return state, _entry(number, outcome, name or candidate.name, after.checks - after.done)

        key = hashlib.sha256(f"check\0{self._known_part(candidate).digest()}\0{main}".encode()).hexdigest()
        entry, repeated = self._ledger.ask(self._name, key, self._dev_difference(candidate), "check", compute)
        account = Account.from_dict(json.loads(self._ledger.state(self._name))["account"])
        checks = sum(each.source != _PROMOTED for each in self._ledger.entries(self._name, 1, entry.query))
        return Check(
            entry.source, repeated, checks, account.checks - account.done, account.surprises - account.surprised
        )

    def promote(self, run: Scores, *, allow_missing: float = 1.0) -> None:
        """Make the run of a merged change the new main, with which later checks also compare.

        The release remains the other baseline of every check.

        Parameters
        ----------
        run : Scores
            Run of the merged change.
        allow_missing : float, default 1
            Maximum percentage (0 to 100) of gate items, and of samples of the run, that may lack a score.
        """
        gate = self._gate(run)
        pair(self._release, gate, allow_missing)
        digest = gate.digest()
        document = f"main-{digest[:32]}"
        if self._ledger.document(self._name, document) is None:
            self._ledger.put_document(self._name, document, as_kept(gate))

        def compute(state: str) -> tuple[str, Entry]:
            kept = json.loads(state)
            account = Account.from_dict(kept["account"])
            number = kept["entries"] + 1
            after = json.dumps({**kept, "main": document, "entries": number})
            return after, _entry(number, _PROMOTED, run.name, account.checks - account.done)

        self._ledger.ask(self._name, None, self._dev_difference(run), "promote", compute)

    def refresh(self, baseline: Scores) -> EvaluationGuard:
        """Start a new set with new items, which have an error budget of their own, and close this set.

        Parameters
        ----------
        baseline : Scores
            Run with new items. Items of an earlier set, or of clusters of an earlier gate part, are left out.

        Returns
        -------
        EvaluationGuard
            Guard of the new items, with the plan of this one.
        """
        self._check_metric(baseline)
        if (baseline.clusters is None) != (self._release.clusters is None):
            has = "no clusters" if baseline.clusters is None else "clusters"
            raise InputError(
                "cluster", f"{baseline.name} with {has}", "the field of the guarded set", "Read the run by guard.read."
            )
        known = _known(self._ledger)
        fresh = {name for name, new in zip(baseline.identities, _new(baseline, known), strict=True) if new}
        run = part(baseline, fresh) if fresh else baseline
        key = os.urandom(16).hex()
        new, open_items = split(run, hidden_items(run, key, float(self._parameters["dev"]))) if fresh else ([], [])
        if len(new) < 2:
            raise InputError(
                "baseline",
                f"{baseline.name} with {len(new)} of them to compare",
                "a run with at least 2 items of no earlier set",
            )
        parameters = {**self._parameters, "dev_items": len(open_items)}
        dev = part(run, set(open_items)) if open_items else None
        begun = type(self)._begin(self._ledger, part(run, set(new)), dev, key, parameters)
        if self._ledger.closed(self._name) is None:
            self.close("refreshed with new items")
        return begun

    def close(self, why: str = "closed") -> None:
        """Close this set permanently, for the reason ``why``. Its history remains readable."""
        self._ledger.close_guard(self._name, why)

    def status(self) -> Status:
        """Return a `Status`: the plan of this set, its use so far, and the drop that a check can still detect."""
        kept = json.loads(self._ledger.state(self._name))
        account = Account.from_dict(kept["account"])
        parameters = self._parameters
        same = pair(self._release, self._release)
        same = type(same)(
            same.items,
            _spread(same.differences.size),
            same.groups,
            same.clustered,
            same.binary,
            same.two_valued,
            None,
            0,
        )
        any_laws = bool(parameters["any_laws"])

        def seen(account: Account, promoted: bool) -> float | None:
            """Return the smallest drop that a check sees; after a promotion two baselines share its level."""
            if account.exhausted or parameters["mode"] != "alarm":
                return None
            return smallest_drop(same, account.log_level - (math.log(2.0) if promoted else 0.0), any_laws)

        past, promoted, history = _planned(parameters), False, []
        for each in self._ledger.entries(self._name):
            drop = seen(past, promoted)
            history.append(Event(each.query, each.source, each.candidate, each.time, each.train, drop))
            if each.source == _PROMOTED:
                promoted = True
            else:
                past = past.after(each.source != "nothing")
        level = -math.inf if account.exhausted else account.log_level
        return Status(
            str(parameters["metric"]),
            parameters["mode"],
            parameters["promise"],
            len(self._release),
            int(parameters["dev_items"]),
            int(same.groups.max()) + 1,
            same.tests(any_laws),
            same.assumption(any_laws),
            float(parameters["margin"]),
            account.checks,
            account.done,
            account.surprises,
            account.surprised,
            0.0 if math.isinf(level) else math.exp(level),
            seen(account, kept["main"] != "release"),
            _proof_power(same, level, float(parameters["margin"]), same.exact_binary and not any_laws)
            if parameters["mode"] == "proof"
            else None,
            self._ledger.closed(self._name),
            tuple(history),
        )

    def dev_items(self, run: Scores) -> list[str]:
        """Return the names of the items of a run that are in the dev part, which everybody may read."""
        dev = set() if self._dev is None else set(self._dev.identities)
        return [item for item, identity in zip(run.items, run.identities, strict=True) if identity in dev]

    @property
    def fields(self) -> dict[str, Any]:
        """Arguments of `thresholdout.evaluations.read` with which the guarded runs are read."""
        return {"metric": self._parameters["metric"], **self._parameters["fields"]}

    @property
    def mode(self) -> Mode:
        """Mode of the checks, "alarm" or "proof"."""
        found: Mode = self._parameters["mode"]
        return found

    def _gate(self, run: Scores) -> Scores:
        self._check_metric(run)
        return part(run, set(self._release.identities))

    def _check_metric(self, run: Scores) -> None:
        if run.metric != self._release.metric:
            raise InputError("metric", f"{run.metric} in {run.name}", f"{self._release.metric}, the guarded one")

    def _known_part(self, run: Scores) -> Scores:
        dev = () if self._dev is None else self._dev.identities
        return part(run, {*self._release.identities, *dev})

    def _dev_difference(self, run: Scores) -> float:
        """Return a run's difference from the release on the dev part; public."""
        if self._dev is None:
            return 0.0
        place = dict(zip(run.identities, run.values.tolist(), strict=True))
        found = [
            place[identity] - value
            for identity, value in zip(self._dev.identities, self._dev.values.tolist(), strict=True)
            if identity in place and not math.isnan(place[identity] - value)
        ]
        return round(math.fsum(found) / len(found), 9) if found else 0.0

    def _document(self, name: str) -> str:
        found = self._ledger.document(self._name, name)
        if found is None:
            raise LedgerMismatch(self._ledger.location, f"Its run {name!r} is missing. Restore the file from a backup.")
        return found


def _entry(number: int, source: str, candidate: str, left: int) -> Entry:
    value = float(source in ("worse", "not worse"))
    return Entry(number, "", "", 0.0, value, value, value, source, left, 0.0, 1.0, candidate=candidate[:200])


def _check_plan(
    checks: int, surprises: int, mode: str, margin: float, dev: float, promise: str, expect: str | None
) -> None:
    tests: tuple[tuple[str, object, Callable[[], bool], str], ...] = (
        ("checks", checks, lambda: 1 <= checks <= 100_000, "from 1 to 100,000"),
        ("surprises", surprises, lambda: 1 <= surprises <= checks, "from 1 to the number of checks"),
        ("mode", mode, lambda: mode in ("alarm", "proof"), "'alarm' or 'proof'"),
        ("dev", dev, lambda: 0.0 <= dev < 1.0, "at least 0 and below 1"),
        ("promise", promise, lambda: promise in ("year", "each"), "'year' or 'each'"),
        ("expect", expect, lambda: expect in (None, "claim", "nothing"), "'claim' or 'nothing'"),
    )
    for name, seen, holds, wanted in tests:
        if not holds():
            raise InputError(name, repr(seen), wanted)
    check_margin(margin)
    if expect == "claim" and mode == "alarm":
        raise InputError("expect", "'claim'", "'nothing' for alarms", "An alarm is never the expected outcome.")


def _planned(parameters: dict[str, Any]) -> Account:
    """Return the account before the first check."""
    return Account(
        int(parameters["checks"]),
        int(parameters["surprises"]),
        bool(parameters["claim_expected"]),
        parameters["promise"],
        math.log(0.05),
    )


def _claim_expected(mode: Mode, expect: str | None, items: int, margin: float) -> bool:
    """Whether a proof is likely for a harmless change; public numbers alone decide."""
    if mode == "alarm" or expect is not None:
        return expect == "claim"
    return margin * math.sqrt(items / _DISCORDANT) > 2.5  # z at level .05/e is 2.1: a proof has power .65 from here


def _known(ledger: Ledger) -> set[str]:
    """Return the items of all sets that a ledger has, and the clusters of their gate parts."""
    found: set[str] = set()
    for name in ledger.guards():
        if ledger.parameters(name).get("kind") == _KIND:
            found |= set(json.loads(ledger.document(name, "items") or "[]"))
    return found


def _new(scores: Scores, known: set[str]) -> list[bool]:
    """Whether no earlier set had an item or its cluster, even where a run repeats its content under several names."""
    repeated = {each.partition("/")[0] for each in known}  # contents, of items that their names tell apart
    units = scores.identities if scores.clusters is None else scores.clusters
    rows = zip(scores.identities, units, scores.contents, strict=True)
    return [not (known & {name, unit, content or name} or name in repeated) for name, unit, content in rows]


def _proof_power(pairs: Pairs, log_level: float, margin: float, exact: bool) -> float:
    """Return about the probability of a proof for a change without effect, by the normal law."""
    if math.isinf(log_level) or pairs.error == 0.0:
        return 0.0
    from scipy.special import ndtr, ndtri_exp

    z = -float(ndtri_exp(log_level)) if exact else math.sqrt(-2.0 * log_level)
    return float(ndtr(margin / pairs.error - z))


def _spread(items: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return differences of a change that wins and loses on a twentieth of the items each, evenly spaced."""
    found = np.zeros(items)
    step = max(1, round(2.0 / _DISCORDANT))
    found[::step] = 1.0
    found[step // 2 :: step] = -1.0
    return found
