"""The interaction of a guard's mechanism with whoever asks: single questions, lists of them, candidates of gates."""

from thresholdout.guard.answering_lists import AnswersLists
from thresholdout.guard.deciding import Decides

__all__ = ["Interaction"]


class Interaction(AnswersLists, Decides):
    """All that a guard does with its mechanism and its ledger; parameters as for `Answering`."""
