"""Renyi differential privacy of minibatches of a fixed size, and of Poisson minibatches. Proofs: ``PROOFS.md``."""
