"""Proof for others: signed receipts, checkpoints that are kept elsewhere, and audit reports of who was told what."""
