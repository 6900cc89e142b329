"""Stochastic gradient Langevin dynamics, and the privacy of its iterates before they converge (``PROOFS.md``)."""
