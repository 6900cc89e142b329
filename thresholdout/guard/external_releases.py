"""What a guard knows about other private looks at its holdout."""

from __future__ import annotations

import dataclasses
import json
import math
import secrets
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from thresholdout.certificates.after_releases import pure_looks, with_looks
from thresholdout.certificates.routes.change_of_measure import smallest_nats, whatever_the_labels
from thresholdout.errors import InputError, LedgerMismatch
from thresholdout.guard.answering import LOOKS

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.certificates import Certificate
    from thresholdout.guard.interaction import Interaction
    from thresholdout.ledger import Ledger
    from thresholdout.mechanisms.kind import Parameters
    from thresholdout.privacy.accounting.events.composed_events import Composed
    from thresholdout.privacy.accounting.events.event_types import Event

__all__ = ["LooksRecorded", "look_names"]

_PREFIX = "look-"


def look_names(ledger: Ledger, guard: str) -> tuple[str, ...]:
    """Return the names of the documents in which a guard's other private looks are recorded.

    Parameters
    ----------
    ledger : Ledger
        Where the guard is.
    guard : str
        What the ledger calls it.
    """
    return tuple(name for name in ledger.documents(guard) if name.startswith(_PREFIX))


class LooksRecorded:
    """The part of a guard that takes other private looks at its holdout into account.

    Looks are documents of the guard's ledger, one each, so that they last and every process that opens the guard knows
    them before its next answer.
    """

    _ledger: Ledger
    _id: str
    _parameters: Parameters
    _alone: Certificate
    _confidence: float
    _interaction: Interaction
    n: int
    dependence: DependenceModel
    _seen: tuple[tuple[str, ...], Certificate] | None = None

    @property
    def certificate(self) -> Certificate:
        """What the answers are worth from now on, and by which route."""
        names = self._look_names()
        if not names:
            return self._stated(self._alone)
        seen = self._seen
        if seen is None or seen[0] != names:
            looks = self._read_looks(names)
            # Not read again: another thread may have set what it found when there were fewer looks.
            self._seen = seen = names, self._with(looks)
        return self._stated(seen[1])

    @property
    def epsilon(self) -> float | None:
        """Privacy loss of all answers of this guard together, under replacing one record; ``None`` if none is declared.

        Infinite after a question has failed on the holdout: whether one fails is told without noise.
        """
        return self.certificate.epsilon

    def _stated(self, certificate: Certificate) -> Certificate:
        """Return a certificate as it stands after failures."""
        if certificate.epsilon is None or not self._interaction.failures():
            return certificate
        return dataclasses.replace(certificate, epsilon=math.inf)

    @property
    def recorded_looks(self) -> Composed:
        """Other private looks at the holdout, as far as they were recorded."""
        return self._read_looks(self._look_names())

    def certificate_with(self, events: Event | Iterable[Event]) -> Certificate:
        """Say what the answers would be worth after further private looks at the holdout; nothing is recorded.

        Parameters
        ----------
        events : Event or iterable of Event
            See `thresholdout.privacy.accounting`, such as ``BlackBox(0.01)``.

        Returns
        -------
        Certificate

        Examples
        --------
        >>> import numpy as np
        >>> from thresholdout import SparseVector, Thresholdout
        >>> from thresholdout.privacy.accounting import BlackBox
        >>> guard = Thresholdout(np.arange(10_000.0), queries=100, mechanism=SparseVector(0.04, 0.0025, budget=1))
        >>> guard.certificate.tolerance < guard.certificate_with(BlackBox(0.01)).tolerance < 0.11
        True
        """
        from thresholdout.privacy.accounting.events.composed_events import Composed, check_event

        more = check_event(events if not isinstance(events, Iterable) else list(events))
        return self._with(Composed([*self.recorded_looks.events, more]))

    def _with(self, looks: Composed) -> Certificate:
        """Return what the answers are worth after some looks, in the order in which they were recorded."""
        spare = (1.0 - self._confidence) * LOOKS
        return with_looks(self._alone, self.dependence, self._parameters, looks, spare)

    def record_look(self, event: Event, *, void: bool = False) -> Certificate:
        """Record another private look at the holdout. Do this *before* anything that it releases is seen.

        Half-widths of later answers contain what the look may have taught; those of earlier answers stay as they are,
        and all hold together with the guard's confidence. A guard that makes claims, or a ladder, pays for a look from
        the risk that is left, at any time, and with a delta too if it is known how far the dependence of records
        reaches (independent records, groups, windows, graphs, Markov chains); what the look computes must then be
        decided before the guard is asked again. Algorithm 1 (`threshold=` and `noise_scale=`) takes looks with a delta
        for independent records and groups, Gaussian answers none with a delta.

        Parameters
        ----------
        event : Event
            What is about to happen to the holdout's records.
        void : bool, default=False
            Record a look also when no certificate can take it into account; later half-widths are the whole range, and
            a guard that makes claims answers no more.

        Returns
        -------
        Certificate
            From now on.

        Raises
        ------
        InputError
            When the guard's answers would have no half-width below the whole range any more, and `void` is false.
            Nothing was recorded.

        Examples
        --------
        >>> import numpy as np
        >>> from thresholdout import Claims, Thresholdout
        >>> from thresholdout.privacy.accounting import BlackBox
        >>> guard = Thresholdout(np.arange(10_000.0), queries=100, mechanism=Claims(holdout_answers=1))
        >>> certificate = guard.record_look(BlackBox(0.01))
        >>> guard.recorded_looks, guard.certificate == certificate
        (Composed([BlackBox(epsilon=0.01)]), True)

        A model that is trained privately on the holdout:

        >>> from thresholdout.privacy.accounting import SelfComposed, WithoutReplacementGaussianStep
        >>> guard = Thresholdout(np.arange(50_000.0))
        >>> training = SelfComposed(WithoutReplacementGaussianStep(6.0, 120, 50_000), 200)
        >>> after = guard.record_look(training)
        >>> round(guard.told)  # nats, paid from the risk that is left
        69
        """
        from thresholdout.privacy.accounting.events.composed_events import check_event
        from thresholdout.privacy.accounting.events.event_files import event_to_dict

        checked = check_event(event)
        after = self.certificate_with(checked)
        if after.chosen is None and not void:
            raise InputError("event", f"{event!r}: {self._why_lost(after)}", self._instead())
        priced = self._parameters.prices_looks
        if not (void or priced) and self.certificate.tolerance < 1.0 <= after.tolerance < math.inf:
            seen = f"{event!r}: half-widths could be {after.tolerance:.3g} of the range afterwards, which says nothing"
            raise InputError("event", seen, "a look that leaks less, or void=True to record it all the same")
        text = json.dumps({"id": secrets.token_hex(16), "event": event_to_dict(checked)})
        if priced:
            self._interaction.look_elsewhere(repr(checked), self._nats(checked), -math.inf if void else self._least())
        number = len(self._look_names())
        while True:
            number += 1
            name = f"{_PREFIX}{number:06d}"
            if self._ledger.document(self._id, name) is not None:
                continue
            try:
                self._ledger.put_document(self._id, name, text)
            except LedgerMismatch:  # another process took this number
                if self._ledger.document(self._id, name) is None:
                    raise
                continue
            return self.certificate

    def _why_lost(self, after: Certificate) -> str:
        """Return why the route that the certificate rested on says nothing after some looks."""
        name = self._alone.route
        why = next((route.why_not for route in after.compared if route.name == name), "it says nothing without looks")
        return f"the route {name!r}: {why}"

    def _instead(self) -> str:
        claims = "" if self._parameters.prices_looks else "for such looks a guard with mechanism='claims'; here "
        return f"{claims}another look, or void=True to do without half-widths"

    def _least(self) -> float:
        """Return the logarithm of the risk at which claims say nothing any more about values in mid-range."""
        effective = self.dependence.effective_records() or self.n / self.dependence.variance_inflation()
        return -0.5 * effective  # Hoeffding's half-width, sqrt(nats/2N), is a half then

    def _nats(self, event: Event) -> Callable[[float, bool], float]:
        """Return what a look costs a guard that makes claims, for a risk that is left, with the labels known or not."""
        epsilon = pure_looks(event)

        def nats(risk: float, labelled: bool) -> float:
            model = whatever_the_labels(self.dependence) if labelled else self.dependence
            return smallest_nats(model, event, epsilon, risk)

        return nats

    def _look_names(self) -> tuple[str, ...]:
        return look_names(self._ledger, self._id)

    def _read_looks(self, names: tuple[str, ...]) -> Composed:
        """Return the looks of these names."""
        from thresholdout.privacy.accounting.events.composed_events import Composed
        from thresholdout.privacy.accounting.events.event_files import event_from_dict

        texts = [self._ledger.document(self._id, name) for name in names]
        return Composed([event_from_dict(json.loads(text)["event"]) for text in texts if text is not None])
