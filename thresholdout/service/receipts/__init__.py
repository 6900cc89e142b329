"""Proof for others: signed receipts, heads that are kept elsewhere, and statements of who was told what."""
