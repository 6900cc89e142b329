"""Other private releases about a guard's holdout, and the certificate after them."""

from __future__ import annotations

import dataclasses
import json
import math
import secrets
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakMethod

from thresholdout.certificates.after_releases import releases_epsilon, with_releases
from thresholdout.certificates.change_of_measure import smallest_nats, whatever_the_labels
from thresholdout.errors import InputError, LedgerMismatch
from thresholdout.guard.query_engine import RELEASES, Certificates

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.certificates import Certificate
    from thresholdout.guard.query_engine import QueryEngine
    from thresholdout.guard.registration import Opened
    from thresholdout.guard.sharing.shared_objects import Reference
    from thresholdout.ledger import Ledger
    from thresholdout.privacy.accounting.events.composed_events import Composed
    from thresholdout.privacy.accounting.events.event_types import Event

__all__ = ["Releases", "RemoteReleases", "release_names"]

_PREFIX = "look-"


def release_names(ledger: Ledger, guard: str) -> tuple[str, ...]:
    """Return the names of the documents that record a guard's other private releases."""
    return tuple(name for name in ledger.documents(guard) if name.startswith(_PREFIX))


class Releases:
    """Record other private releases about a guard's holdout, and compute their effect on its certificate.

    ``guard.releases`` has them. A release is the output of any other private computation on the same records, such as a
    model that was trained on them with differential privacy. Each release is a document of the guard's ledger, so every
    process that opens the guard counts it from its next answer.

    Examples
    --------
    >>> import numpy as np
    >>> from thresholdout import Thresholdout
    >>> from thresholdout.privacy.accounting import BlackBox
    >>> guard = Thresholdout(np.arange(10_000.0), queries=100)
    >>> certificate = guard.releases.record(BlackBox(0.01))
    >>> guard.releases, guard.releases.recorded, guard.certificate == certificate
    (<Releases: 1>, Composed([BlackBox(epsilon=0.01)]), True)
    """

    def __init__(self, engine: QueryEngine, dependence: DependenceModel, opened: Opened) -> None:
        self._engine = engine
        self._dependence = dependence
        self._opened = opened
        self._alone = opened.certificate
        worth = WeakMethod(self.worth)  # avoids a cycle, so that an unreferenced guard closes its ledger at once
        engine.worth = lambda: cast("Certificates", cast(Any, worth)()())
        self._seen: tuple[tuple[str, ...], Certificate] | None = None

    def worth(self) -> Certificates:
        """Return the certificate of the next answers, and a function that returns it for a smaller share of beta."""
        names = self._names()
        return self._after(names), (lambda share: None) if names else self._opened.for_share

    def certificate(self) -> Certificate:
        """Return the certificate of the next answers, with an infinite epsilon after failures: they show no noise."""
        certificate = self._after(self._names())
        if certificate.epsilon is None or not self._engine.failures():
            return certificate
        return dataclasses.replace(certificate, epsilon=math.inf, bayesian_epsilon=math.inf)

    def _after(self, names: tuple[str, ...]) -> Certificate:
        """Return the certificate after the releases of these names, which gives the intervals of answers."""
        if not names:
            return self._alone
        seen = self._seen
        if seen is None or seen[0] != names:
            recorded = self._read(names)
            # Use this value and not self._seen, which another thread may have set from fewer releases.
            self._seen = seen = names, self._with(recorded)
        return seen[1]

    @property
    def recorded(self) -> Composed:
        """The recorded releases, in order, as one composed event."""
        return self._read(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def __repr__(self) -> str:
        return f"<Releases: {len(self)}>"

    def preview(self, events: Event | Iterable[Event]) -> Certificate:
        """Return the certificate that would hold after further releases, and record nothing.

        Parameters
        ----------
        events : Event or iterable of Event
            The releases, as events of `thresholdout.privacy.accounting`, such as ``BlackBox(0.01)``.

        Returns
        -------
        Certificate
            Certificate of the next answers after the releases.

        Examples
        --------
        >>> import numpy as np
        >>> from thresholdout import SparseVector, Thresholdout
        >>> from thresholdout.privacy.accounting import BlackBox
        >>> guard = Thresholdout(np.arange(10_000.0), queries=100, mechanism=SparseVector(0.04, 0.0025, budget=1))
        >>> guard.certificate.tolerance < guard.releases.preview(BlackBox(0.01)).tolerance < 0.11
        True
        """
        from thresholdout.privacy.accounting.events.composed_events import Composed, check_event

        if self._engine.parameters.approximation:
            advice = "Make the guard with limits='exact', whose intervals account for releases."
            raise InputError("events", "a release", "empty for a guard with normal limits", advice)
        more = check_event(events if not isinstance(events, Iterable) else list(events))
        return self._with(Composed([*self.recorded.events, more]))

    def _with(self, releases: Composed) -> Certificate:
        """Return the certificate after releases, in the order of their records."""
        spare = (1.0 - self._engine.confidence) * RELEASES
        return with_releases(self._alone, self._dependence, self._engine.parameters, releases, spare)

    def record(self, event: Event, *, void: bool = False) -> Certificate:
        """Record a private release about the holdout. Do this *before* anything of it is seen.

        Later half-widths account for the release. Earlier intervals do not change, and all hold together with the
        guard's confidence. Claims and the ladder pay from their error budget, at any time. They also pay for a delta if
        the range of the dependence between records is known (independent records, groups, windows, graphs, Markov
        chains). The release's computation must then be decided before the guard is asked again. Algorithm 1 accepts
        releases with a delta for independent records and groups only.

        Parameters
        ----------
        event : Event
            The computation that will use the holdout's records, as an event of `thresholdout.privacy.accounting`.
        void : bool, default False
            If True, record the release even if no certificate can account for it. Later half-widths are then the whole
            range, and a guard that makes claims answers no more queries.

        Returns
        -------
        Certificate
            Certificate of the next answers.

        Raises
        ------
        InputError
            If no half-width below the whole range would be left, and ``void`` is False. Nothing is recorded then.

        Examples
        --------
        A model that is trained privately on the holdout:

        >>> import numpy as np
        >>> from thresholdout import Thresholdout
        >>> from thresholdout.privacy.accounting import SelfComposed, WithoutReplacementGaussianStep
        >>> guard = Thresholdout(np.arange(50_000.0))
        >>> training = SelfComposed(WithoutReplacementGaussianStep(6.0, 120, 50_000), 200)
        >>> after = guard.releases.record(training)
        >>> round(guard.status.information_released)  # nats, paid from the error budget
        69
        """
        from thresholdout.privacy.accounting.events.composed_events import check_event
        from thresholdout.privacy.accounting.events.event_files import event_to_dict

        checked = check_event(event)
        after = self.preview(checked)
        if after.chosen is None and not void:
            raise InputError("event", f"{event!r} ({self._why_lost(after)})", "a release with a bound", self._instead())
        priced = self._engine.parameters.prices_releases
        if not (void or priced) and self.certificate().tolerance < 1.0 <= after.tolerance < math.inf:
            seen = f"{event!r}, after which half-widths could be {after.tolerance:.3g} of the range"
            raise InputError("event", seen, "a release that leaks less", "Pass void=True to record it all the same.")
        text = json.dumps({"id": secrets.token_hex(16), "event": event_to_dict(checked)})
        if priced:
            self._engine.charge_release(repr(checked), self._nats(checked), -math.inf if void else self._least())
        ledger, guard = self._engine.ledger, self._engine.identity
        number = len(self)
        while True:
            number += 1
            name = f"{_PREFIX}{number:06d}"
            if ledger.document(guard, name) is not None:
                continue
            try:
                ledger.put_document(guard, name, text)
            except LedgerMismatch:  # another process took this number
                if ledger.document(guard, name) is None:
                    raise
                continue
            return self.certificate()

    def _why_lost(self, after: Certificate) -> str:
        """Return why the route of the certificate has no bound after some releases."""
        name = self._alone.route
        why = next(
            (route.why_not for route in after.compared if route.name == name), "it has no bound without releases"
        )
        return f"the route {name!r}: {why}"

    def _instead(self) -> str:
        priced = self._engine.parameters.prices_releases
        claims = "" if priced else "A guard with mechanism='claims' accepts such releases. "
        return f"{claims}Pass void=True to do without half-widths."

    def _least(self) -> float:
        """Return the log error budget at which claims about values in mid-range have the whole range as interval."""
        model = self._dependence
        effective = model.effective_records() or model.n / model.variance_inflation()
        return -0.5 * effective  # Hoeffding's half-width, sqrt(nats/2N), is a half then

    def _nats(self, event: Event) -> Callable[[float, bool], float]:
        """Return a function for the price of a release: of the remaining risk, and of whether the labels are known."""
        epsilon = releases_epsilon(event)

        def nats(risk: float, labelled: bool) -> float:
            model = whatever_the_labels(self._dependence) if labelled else self._dependence
            return smallest_nats(model, event, epsilon, risk)

        return nats

    def _names(self) -> tuple[str, ...]:
        return release_names(self._engine.ledger, self._engine.identity)

    def _read(self, names: tuple[str, ...]) -> Composed:
        """Return the releases with these names."""
        from thresholdout.privacy.accounting.events.composed_events import Composed
        from thresholdout.privacy.accounting.events.event_files import event_from_dict

        ledger, guard = self._engine.ledger, self._engine.identity
        texts = [ledger.document(guard, name) for name in names]
        return Composed([event_from_dict(json.loads(text)["event"]) for text in texts if text is not None])


class RemoteReleases:
    """Proxy of the releases of a guard in another process."""

    def __init__(self, reference: Reference) -> None:
        self._reference = reference

    @property
    def recorded(self) -> Composed:
        """The recorded releases, in order."""
        found: Composed = self._reference.call("releases.recorded")
        return found

    def __len__(self) -> int:
        return len(self.recorded.events)

    def preview(self, events: Event | Iterable[Event]) -> Certificate:
        """Return the certificate that would hold after further releases; see `Releases.preview`."""
        found: Certificate = self._reference.call("releases.preview", events)
        return found

    def record(self, event: Event, *, void: bool = False) -> Certificate:
        """Record a private release about the holdout; see `Releases.record`."""
        found: Certificate = self._reference.call("releases.record", event, void=void)
        return found
