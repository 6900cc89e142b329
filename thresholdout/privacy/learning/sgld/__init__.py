"""Stochastic gradient Langevin dynamics, and what its iterates leak before they converge. Proofs: ``PROOFS.md``."""
