"""Privacy-loss distributions with certified bounds on both sides. Proofs: ``PROOFS.md``."""
